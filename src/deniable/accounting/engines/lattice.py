"""The tilted law of a composed loss on a lattice, as cumulative sums of both laws with what may be wrong with them.

The discrete pairs of :mod:`deniable.accounting.engines.cells` bracket every step; their compositions come from FFTs of
laws tilted by e^{cL}, which keeps relative accuracy in the tail that is asked for. What wraps around is bounded by
Chernoff's inequality, FFT rounding by a forward error bound; both are charged to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtbtrs

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._fourier import fft_error
from deniable.accounting.engines.cells import LatticeLaw, above, all_cells, below, log_sum, widest_step
from deniable.accounting.engines.convolution import alone, composed, counted
from deniable.accounting.engines.inversion import Region, saddle
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Charged, Direction, Side

_STEEPEST = 1000.0  # tilts beyond, in units of the law's width, serve rates below e^{−1000}
_EXTENT = 20.0  # widths of a law that its window has, about
_OFFSETS = np.array([0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
_LEAST = -90.0  # logarithm of frequencies of the composed law that are left out
_MANY = 16  # equal steps from which they are: each factor is then far above its rounding
MIRRORED: dict[Region, Region] = {"left": "right", "middle": "middle", "right": "left"}


@dataclass(frozen=True, eq=False)
class Lattice:
    """The tilted law of a composed loss on first + η·(0, 1, 2, …) and what may be wrong with it."""

    region: Region
    c: float
    design: float
    width: float
    first: float
    spacing: float
    growth: float  # log Σ denominator·e^{cv} of the composed law
    denominator_total: float  # Σ denominator, 1 unless losses were moved to midpoints or some are −∞
    above_out: FloatArray  # cumulative sums relative to the prefactor at each lattice point, see :func:`cumulated`
    above_in: FloatArray
    error: float  # L1 error of the tilted law
    paid: float  # shift of the loss that the lower side pays
    sure: float = 0.0  # mass on outcomes that only the numerator can produce, which show what happened
    lost: float = 0.0  # mass of either law that is charged wherever it lies
    bias: float = 0.0  # about how far merged losses lie above their lattice points: thresholds move down by it
    # of the error what wraps around and what was left out; the rest is rounding. None: not told apart
    parts: tuple[float, float] | None = None
    prefactor_error: float = 0.0  # relative, of e^growth
    instead: tuple[tuple[float, float], ...] = ()  # other values of error and lost that hold as well

    def at(self, index: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Denominator and numerator mass at lattice points ≥ index, with absolute errors."""
        k = np.clip(index, 0, self.above_out.size - 1).astype(np.intp)
        value = self.first + self.spacing * k
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # ∞·0 makes NaN, which callers refuse
            scale = np.exp(self.growth - self.c * value)
            scale_in = np.exp(self.growth - (self.c - 1) * value)
            out, inside = scale * self.above_out[k], scale_in * self.above_in[k]
            # exponents of steep tilts are large: they are rounded, and differently on either law
            exponent = self.prefactor_error + 4 * EPS * (abs(self.growth) + (abs(self.c) + 1) * np.abs(value))
            charges = [(self.error, self.lost), *self.instead]
            out_error = np.fmin.reduce([scale * error + lost for error, lost in charges])
            out_error += (self._rounding(self.c) + exponent) * out
            in_error = np.fmin.reduce([scale_in * error + lost for error, lost in charges])
            in_error += (self._rounding(self.c - 1) + exponent) * inside
        out = self.denominator_total - out if self.region == "left" else out
        # what only the numerator can produce lies above every threshold
        inside = inside + self.sure if self.region == "right" else 1 - inside
        return out, inside, out_error + 64 * EPS * np.abs(out), in_error + 64 * EPS * np.abs(inside)

    def mass_above(self, index: float) -> float:
        """Denominator mass at lattice points ≥ index, without its error: it falls with the index."""
        return float(self.at(np.array([index]))[0][0])

    def hockey_stick(self, index: float) -> float:
        """H at a lattice point, without its errors: it falls with the index."""
        out, inside, _, _ = self.at(np.array([index]))
        return float(inside[0] - math.exp(min(self.value(index), 700.0)) * out[0])

    def _rounding(self, decay: float) -> float:
        """Relative rounding of sums that remember 1/(decay·spacing) terms, each multiplied by a rounded factor."""
        most = 2 * _block(self.above_out.size)
        return 4 * EPS * (min(most, 1 / max(abs(decay) * self.spacing, 1e-300)) + 8)

    def charged(self, index: float, log_gamma: float, engine: str) -> Charged:
        """What was charged at a lattice point on either law's tail, the out-law's times γ."""
        if self.parts is None:
            return Charged(engine)
        place = np.array([index])
        value = self.first + self.spacing * np.clip(place, 0, self.above_out.size - 1)
        _, _, out_error, in_error = self.at(place)
        gamma = math.exp(min(log_gamma, MOST_EXPONENT))
        total = float((in_error + gamma * out_error)[0])
        scale = np.exp(self.growth - (self.c - 1) * value) + gamma * np.exp(self.growth - self.c * value)
        wrapped, left_out = (float(scale[0]) * part for part in self.parts)
        left_out += (1 + gamma) * self.lost
        return Charged(engine, "", wrapped, left_out, max(total - wrapped - left_out, 0.0))

    @property
    def last(self) -> float:
        """The last lattice point."""
        return self.value(self.above_out.size - 1)

    def value(self, index: float) -> float:
        """The loss at an index."""
        return self.first + self.spacing * index

    def holds(self, threshold: float) -> bool:
        """Whether a threshold lies between the first and the last lattice point."""
        return self.first <= threshold <= self.last

    def index(self, threshold: FloatArray) -> FloatArray:
        """Index of the first lattice point above a threshold."""
        return np.clip(np.ceil((threshold - self.bias - self.first) / self.spacing), 0, self.above_out.size - 1)


def compose(loss: PrivacyLoss, threshold: float, direction: Direction, side: Side, points: int) -> Lattice:
    """Build the tilted composed law around a threshold."""
    added = threshold if direction == "add" else -threshold
    at_zero, at_one = loss.cumulants(0.0)[1], loss.cumulants(1.0)[1]
    region: Region = "right" if added >= at_one else "left" if added <= at_zero else "middle"
    try:
        c = saddle(loss, region, added)
        width, low, high, witnesses = window_of(loss, c, loss.lowest, loss.highest)
    except TooSlowError:  # a tilt of neither law still gives a sound bracket
        region, c = "middle", 0.5
        width, low, high, witnesses = window_of(loss, c, loss.lowest, loss.highest)
    spacing = max((high - low) / points, widest_step(loss, c) / (2 * points))
    if direction == "remove":
        low, c, region, witnesses = -high, 1 - c, MIRRORED[region], (-witnesses[1], -witnesses[0])
    steps = all_cells(loss, spacing, 1 - c if direction == "remove" else c)
    if direction == "remove":
        steps = (part.flipped(spacing) for part in steps)
    laws = ((above(part, spacing), 0.0) if side == "upper" else below(part, spacing) for part in steps)
    product = Product.of(laws, (c, c + witnesses[0], c + witnesses[1], 0.0), spacing, points)
    return product.lattice(region, c, threshold, width, low, witnesses, spacing, side, points)


def convolved(loss: PrivacyLoss, threshold: float, direction: Direction, side: Side, points: int) -> Lattice:
    """The same for a loss with other steps: see :mod:`deniable.accounting.engines.convolution`."""
    added = threshold if direction == "add" else -threshold
    slope_at_zero, slope_at_one = loss.cumulants(0.0)[1], loss.cumulants(1.0)[1]
    region: Region = "right" if added >= slope_at_one else "left" if added <= slope_at_zero else "middle"
    spread = math.sqrt(loss.cumulants(0.5)[2])
    try:
        c = saddle(loss, region, added)
        c = min(max(c, 0.5 - _STEEPEST / spread), 0.5 + _STEEPEST / spread)
        region = "right" if c >= 1 else "left" if c <= 0 else "middle"  # weights of cumulative sums are at most 1 there
        width = math.sqrt(max(loss.cumulants(c)[2], (spread / _STEEPEST) ** 2))
    except TooSlowError:
        region, c, width = "middle", 0.5, spread
    if direction == "remove":
        c, region = 1 - c, MIRRORED[region]
    extent = min(_EXTENT * width, loss.highest - loss.lowest)
    found = composed(counted(loss), c, width, extent, direction, side, points)
    law, (sure, missing) = found.law, alone(loss, direction)
    if side == "upper":  # what the law does not have counts as above every threshold, right of the poles too
        sure += found.hidden
    out, inside = cumulated(law.weight[0], region, c, law.spacing)
    bias, error = 0.0, law.error
    if len(law.weight) > 1:
        log_share = float(law.log_size[1] - law.log_size[0])
        if not abs(log_share) < MOST_EXPONENT:
            raise TooSlowError("the two tilted laws differ too much in size")
        inside = cumulated(law.weight[1], region, c, law.spacing)[1] * math.exp(log_share)
        error *= math.exp(max(log_share, 0.0))  # of both laws it is in units of the first one's size
        middle = int(np.argmax(law.weight.min(axis=0)))
        bias = float(np.log(law.weight[1][middle] / law.weight[0][middle]) + law.log_size[1] - law.log_size[0])
        bias = bias if math.isfinite(bias) else 0.0
    return Lattice(
        region,
        c,
        threshold,
        width,
        law.first,
        law.spacing,
        float(law.log_size[0]),
        1 - missing,
        out,
        inside,
        error,
        0.0,
        sure,
        found.lost,
        bias,
        prefactor_error=found.prefactor_error,
    )


def window_of(
    loss: PrivacyLoss, c: float, lowest: float = -math.inf, highest: float = math.inf
) -> tuple[float, float, float, tuple[float, float]]:
    """√K″(c), the ends of a window beyond which the tilted law has mass below 1e-17, and the tilts that show it."""
    growth, _, variance = loss.cumulants(c)
    width = math.sqrt(variance)
    (above_c, log_up), (below_c, log_down) = (loss.log_mgf_known(c + sign * _OFFSETS / width) for sign in (1, -1))
    up, down = above_c - c, below_c - c
    reach_up, reach_down = (log_up - growth + 39.0) / up, (log_down - growth + 39.0) / down
    high, low = min(float(reach_up.min()), highest), max(float(reach_down.max()), lowest)
    margin = 0.02 * (high - low)
    return width, low - margin, high + margin, (float(up[np.argmin(reach_up)]), float(down[np.argmax(reach_down)]))


class Product(NamedTuple):
    """The transform of a composed tilted law, made of one phase after the other so that none is kept."""

    transform: NDArray[np.complex128]
    sensitivity: FloatArray  # Σ_j |∂ product/∂ factor j|
    log_mgf: tuple[float, ...]  # of the composed law, at each of the points asked for
    first: float
    last: float
    lost: float
    paid: float
    prefactor_error: float  # relative, of the exponential of the first of ``log_mgf``
    sure: float  # bound on the numerator mass that the laws hide

    @classmethod
    def of(
        cls, laws: Iterable[tuple[LatticeLaw, float]], at: tuple[float, ...], spacing: float, points: int
    ) -> Product:
        """Multiply the transforms of laws tilted by ``at[0]``, modulo a window of so many points."""
        transform = np.ones(points // 2 + 1, dtype=np.complex128)
        sensitivity = np.zeros(points // 2 + 1)
        log_mgf, first, last, lost, paid = np.zeros(len(at)), 0.0, 0.0, 0.0, 0.0
        prefactor_error = sure = 0.0
        for law, cost in laws:
            values = law.values(spacing)
            log_mgf += law.steps * np.array([log_sum(law.log_mass + point * values) for point in at])
            first, last = first + law.steps * law.first, last + law.steps * (law.first + spacing * (values.size - 1))
            mass = law.log_mass + at[0] * values
            mass = np.exp(mass - log_sum(mass))
            # of exponents, on average; lattice points carry the rounding of the first one
            rounded = 2 * EPS * (abs(at[0]) * float(mass @ np.abs(values)) + (abs(at[0]) + 1) * abs(law.first))
            del values
            lost, paid = lost + law.steps * (64 * EPS + rounded + law.lost + law.wrong), paid + cost
            prefactor_error += law.steps * (16 * EPS + rounded)
            sure += law.steps * law.hidden
            if mass.size > points:
                mass = np.pad(mass, (0, -mass.size % points)).reshape(-1, points).sum(axis=0)
            factor = np.fft.rfft(mass, points)
            del mass
            if law.steps == 1:
                sensitivity = sensitivity * np.abs(factor) + np.abs(transform)
                transform *= factor
                continue
            log_size = np.log(np.maximum(np.abs(factor), 1e-300))
            kept = np.flatnonzero((law.steps - 1) * log_size > _LEAST) if law.steps > _MANY else slice(None)
            log_size = log_size[kept]
            grown = np.zeros(transform.size, dtype=np.complex128), np.zeros(transform.size)
            grown[0][kept] = np.exp(law.steps * (log_size + 1j * np.angle(factor[kept])))
            grown[1][kept] = law.steps * np.exp((law.steps - 1) * log_size)
            sensitivity = sensitivity * np.abs(grown[0]) + grown[1] * np.abs(transform)
            transform *= grown[0]
            if law.steps > _MANY:  # each of the others is at most e^{_LEAST}: Parseval, Cauchy and Schwarz
                lost += 2 * math.sqrt(points) * math.exp(_LEAST)
        growths = tuple(float(value) for value in log_mgf)
        return cls(transform, sensitivity, growths, first, last, lost, paid, prefactor_error, sure)

    def tilted(self, points: int) -> tuple[FloatArray, float]:
        """Tilted law of the sum, modulo the window, and a bound on the L1 error that FFT rounding causes."""
        rounding = fft_error(points) * (self.sensitivity + np.abs(self.transform))
        return np.maximum(np.fft.irfft(self.transform, points), 0.0), math.sqrt(2) * float(np.linalg.norm(rounding))

    def lattice(
        self,
        region: Region,
        c: float,
        design: float,
        width: float,
        low: float,
        witnesses: tuple[float, float],
        spacing: float,
        side: Side,
        points: int,
        further: float = 0.0,
    ) -> Lattice:
        """The composed law from about ``low`` on; ``further`` is what is missing from it beside what the laws lost."""
        # the lattice of sums starts at the sum of the first values
        start = math.floor((low - self.first) / spacing)
        first = self.first + spacing * start
        growth, *beside, total = self.log_mgf
        tilted, rounded = self.tilted(points)
        error = rounded
        window = (first + spacing * points, first)
        wraps = (self.last >= window[0], self.first < first)
        for offset, end, grown, beyond in zip(witnesses, window, beside, wraps, strict=True):
            if beyond:  # else nothing wraps around
                error += math.exp(min(grown - growth - offset * end, 0.0))
        wrapped, lost = error - rounded, self.lost + further
        out, inside = cumulated(np.roll(tilted, -(start % points)), region, c, spacing)
        # of the denominator: where cells move it is above 1; what is missing from the laws is no less of it
        mass = max(math.exp(min(total, MOST_EXPONENT)), 1.0) * (1 + self.prefactor_error) if side == "lower" else 1.0
        return Lattice(
            region, c, design, width, first, spacing, growth, mass, out, inside, error + lost, self.paid,
            self.sure, parts=(wrapped, lost), prefactor_error=self.prefactor_error,
        )  # fmt: skip


def cumulated(tilted: FloatArray, region: Region, c: float, spacing: float) -> tuple[FloatArray, FloatArray]:
    """Cumulative denominator and numerator mass relative to the prefactor at every lattice point.

    Denominator: Σ w_j·e^{−c(v_j − v_k)} over j ≥ k (over j < k in the left region, where c < 0); numerator: the same
    with c − 1, over j ≥ k in the right region only. Every weight is then at most 1: nothing is amplified.
    """

    def from_above(decay: float) -> FloatArray:
        return _remembered(tilted[::-1], decay * spacing)[::-1]

    def from_below(decay: float) -> FloatArray:
        sums = _remembered(tilted, decay * spacing) * math.exp(-decay * spacing)
        return np.concatenate([[0.0], sums[:-1]])

    out = from_below(-c) if region == "left" else from_above(c)
    inside = from_above(c - 1) if region == "right" else from_below(1 - c)
    return out, inside


def _remembered(weight: FloatArray, decay: float) -> FloatArray:
    """Return Σ w_j·e^{−decay·(k − j)} over j ≤ k, for every k, with rounding of about 2·√size terms.

    Block by block, and what all blocks before have left.
    """
    length = _block(weight.size)
    blocks = np.pad(weight, (0, -weight.size % length)).reshape(-1, length)
    inner = _running(blocks.T, math.exp(-decay)).T
    before = _running(inner[:-1, -1:], math.exp(-decay * length))[:, 0]
    inner[1:] += before[:, None] * np.exp(-decay * np.arange(1.0, length + 1))
    return inner.ravel()[: weight.size]


def _block(size: int) -> int:
    return math.isqrt(size) + 1


def _running(terms: FloatArray, factor: float) -> FloatArray:
    """y_k = x_k + factor·y_{k−1} down columns, by forward substitution: scipy.signal takes 0.3 s to import."""
    if not terms.size:
        return terms
    band = np.empty((2, terms.shape[0]), order="F")
    band[0], band[1] = 1.0, -factor
    found: FloatArray = dtbtrs(band, terms, uplo="L", diag="U")[0]
    return found
