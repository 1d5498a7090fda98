"""A certified privacy-loss grid: the second engine, where transforms converge slowly and to check the first.

The discrete pairs of :mod:`deniable.accounting.engines.cells` bracket every step; their compositions come from FFTs of
laws tilted by e^{cL}, which keeps relative accuracy in the tail that is asked for. What wraps around is bounded by
Chernoff's inequality, FFT rounding by a forward error bound; both are charged to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtbtrs

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.engines.cells import Law, above, all_cells, below, widest_step
from deniable.accounting.engines.convolution import composed, counted, totals
from deniable.accounting.engines.inversion import Region, saddle
from deniable.accounting.loss import PrivacyLoss
from deniable.accounting.transform.nodes import TooSlowError
from deniable.curves import Charged, Direction, Question, Side, Tradeoff

_MOST_KEPT = 1 << 22  # lattice points
_STEEPEST = 1000.0  # tilts beyond, in units of the law's width, serve rates below e^{−1000}
_EXTENT = 20.0  # widths of a law that its window has, about
_TAIL = 0.05  # rates below are looked for in the tail
_FULL = 1 - 1e-4  # and rates above this where little is left
_SKETCHED = 1 << 14  # lattice points for a picture
_NEAR = 32  # lattice points around a threshold at which tests are tried
_NARROWEST, _WIDEST = 0.02, 0.2  # cells of thresholds near a finite end, as shares of what remains
_LAST = 1e-9  # of the law's half, from which thresholds count as its end
_FIRST = 1e-3  # of the law's half, at which rates are looked for at the earliest
_OFFSETS = np.array([0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
_MANY_PHASES = 4  # up to which all points are used
_MIRRORED: dict[Region, Region] = {"left": "right", "middle": "middle", "right": "left"}


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
    above_out: FloatArray  # cumulative sums relative to the prefactor at each lattice point, see _sums
    above_in: FloatArray
    error: float  # L1 error of the tilted law
    paid: float  # shift of the loss that the lower side pays
    numerator_total: float = 1.0  # mass on outcomes that both can produce; the rest shows what happened
    lost: float = 0.0  # mass of either law that is charged wherever it lies
    bias: float = 0.0  # about how far merged losses lie above their lattice points: thresholds move down by it
    # of the error what wraps around and what was left out; the rest is rounding. None: not told apart
    parts: tuple[float, float] | None = None
    prefactor_error: float = 0.0  # relative, of e^growth

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
            out_error = scale * self.error + (self._rounding(self.c) + exponent) * out
            in_error = scale_in * self.error + (self._rounding(self.c - 1) + exponent) * inside
        out = self.denominator_total - out if self.region == "left" else out
        inside = inside if self.region == "right" else self.numerator_total - inside
        inside = inside + (1 - self.numerator_total)  # what only the numerator can produce lies above every threshold
        out_error, in_error = out_error + self.lost, in_error + self.lost
        return out, inside, out_error + 64 * EPS * np.abs(out), in_error + 64 * EPS * np.abs(inside)

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
        gamma = math.exp(min(log_gamma, 700.0))
        total = float((in_error + gamma * out_error)[0])
        scale = np.exp(self.growth - (self.c - 1) * value) + gamma * np.exp(self.growth - self.c * value)
        wrapped, left_out = (float(scale[0]) * part for part in self.parts)
        left_out += (1 + gamma) * self.lost
        return Charged(engine, "", wrapped, left_out, max(total - wrapped - left_out, 0.0))

    def holds(self, threshold: float) -> bool:
        """Whether a threshold lies between the first and the last lattice point."""
        return self.first <= threshold <= self.first + self.spacing * (self.above_out.size - 1)

    def index(self, threshold: FloatArray) -> FloatArray:
        """Index of the first lattice point above a threshold."""
        return np.clip(np.ceil((threshold - self.bias - self.first) / self.spacing), 0, self.above_out.size - 1)


@dataclass(frozen=True)
class GridTradeoff(Tradeoff):
    """Bracket from discretised privacy losses: upper from split cells, lower from merged ones.

    Where no tilt of the law can be computed the bracket is trivial, not wrong.
    """

    loss: PrivacyLoss
    points: int = 1 << 20
    method: str = field(default="certified grid", kw_only=True)
    # the last ones: 16 MB for a million points
    _lattices: dict[tuple[Direction, Side, float], Lattice] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def sketch(self) -> Tradeoff:
        """Return the same from fewer points."""
        return self if self.points <= _SKETCHED else replace(self, points=_SKETCHED)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        finite = np.isfinite(log_gamma)
        trivial = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
        bound = trivial.copy()
        above, below = self.loss.highest, self.loss.lowest
        if direction == "remove":
            above, below = -below, -above
        # beyond the range of the loss nothing is left but what only one world produces
        sure, missing = self._only(direction, side)
        beyond, before = log_gamma > above + 32 * EPS * abs(above), log_gamma < below - 32 * EPS * abs(below)
        bound[beyond] = np.maximum(bound[beyond], sure)
        bound[before] += np.exp(log_gamma[before]) * missing * (1 + (4 if side == "upper" else -4) * EPS)
        for k in np.flatnonzero(finite & ~beyond & ~before):
            bound[k] = self._hockey_stick_at(float(log_gamma[k]), direction, side)
        return np.where(finite, np.clip(np.maximum(bound, trivial), 0, 1), np.where(log_gamma > 0, sure, 1.0))

    def _only(self, direction: Direction, side: Side) -> tuple[float, float]:
        """Mass of outcomes that only the numerator, and that only the denominator produces, rounded to a side."""
        sure, missing = (1 - total for total in totals(self.loss, direction))
        slack = 64 * EPS if side == "upper" else -64 * EPS
        first, second = (max(mass * (1 + slack) + slack, 0.0) if mass > 0 else 0.0 for mass in (sure, missing))
        return first, second

    def _unknown_at(self, log_gamma: float, direction: Direction) -> float:
        """Upper bound without a lattice of its own: H falls with γ, so that H_1 bounds it on the right of 1."""
        return self._hockey_stick_at(0.0, direction, "upper") if log_gamma > 0 else 1.0

    def _hockey_stick_at(self, log_gamma: float, direction: Direction, side: Side) -> float:
        try:
            lattice = self._lattice(log_gamma, direction, side)
            if not lattice.holds(log_gamma):
                lattice = self._composed(log_gamma, direction, side)
        except TooSlowError:
            return self._unknown_at(log_gamma, direction) if side == "upper" else 0.0
        level = log_gamma + (lattice.paid if side == "lower" else 0.0)
        if side == "upper" and not lattice.holds(level):  # the best test against the discrete pair is not known there
            return self._unknown_at(log_gamma, direction)
        index = lattice.index(np.array([level]))
        if lattice.bias:  # merged losses are known about: the best test near there
            index = index + np.arange(-_NEAR, _NEAR + 1.0)
        out, inside, out_error, in_error = lattice.at(index)
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(level)
            error = in_error + gamma * out_error
            value = inside - gamma * out + (error if side == "upper" else -error)
        best = float(np.max(value))
        return best if np.isfinite(best) else float(side == "upper")

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        inside = np.flatnonzero((fpr > 0) & (fpr < 1))
        bound = np.maximum(fpr, self._only(direction, side)[0])
        for k in inside:
            try:
                bound[k] = self._rate(float(fpr[k]), direction, side)
            except TooSlowError:
                bound[k] = float(side == "upper")
        if side == "upper":
            bound = np.minimum(bound, self._range_bound(fpr, direction))
        return np.clip(bound, fpr, 1.0)

    def _range_bound(self, fpr: FloatArray, direction: Direction) -> FloatArray:
        """Bound TPR by the range of the loss: P(S) ≤ e^{sup L}·Q(S) and P(not S) ≥ e^{inf L}·Q(not S)."""
        sure, missing = self._only(direction, "upper")
        above, below = self.loss.highest, self.loss.lowest
        if direction == "remove":
            above, below = -below, -above
        slack = 64 * EPS * (1 + np.abs([above, below]))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            steep = np.exp(above + np.log(fpr)) * (1 + 1600 * EPS + slack[0])
            rest = np.exp(below) * (1 - np.minimum(slack[1], 1.0)) * np.maximum(1 - fpr - missing - 4 * EPS, 0.0)
            bound = np.fmin(steep + sure, 1 - rest + 4 * EPS)
        return np.where(np.isfinite(bound), bound, 1.0)

    def _rate(self, alpha: float, direction: Direction, side: Side) -> float:
        """Improve the threshold until the tilt fits the false positive rate; every threshold gives a sound bound."""
        lattice, index = self._test(alpha, direction, side)
        near = index + np.array([-1.0, 0.0, 1.0])
        out, tpr, out_error, in_error = lattice.at(near)
        with np.errstate(over="ignore", invalid="ignore"):
            if side == "upper":
                value = lattice.first + lattice.spacing * np.clip(near, 0, lattice.above_out.size - 1)
                bounds = tpr + in_error + np.exp(np.minimum(value, 700)) * (alpha - out + out_error) * (1 + 4 * EPS)
                bounds = np.where(np.isfinite(bounds), np.maximum(bounds, alpha), 1.0)
                return float(np.clip(bounds.min(), alpha, 1.0))
            if not lattice.paid < 700:  # cells so wide that the merged pair says nothing
                return alpha
            high, low = (out + out_error) * math.exp(lattice.paid), tpr - in_error
            alone = np.minimum(np.divide(alpha, high, out=np.ones_like(high), where=high > alpha), 1.0) * low
            mixed = alone.max(initial=alpha)
            for a, b in ((0, 1), (1, 2)):  # randomise between neighbouring thresholds
                if high[b] <= alpha <= high[a] and high[a] > high[b]:
                    share = (alpha - high[b]) / (high[a] - high[b])
                    mixed = max(mixed, (low[b] + share * (low[a] - low[b])) * (1 - 8 * EPS))
        return float(np.clip(mixed, alpha, 1.0)) if np.isfinite(mixed) else alpha

    def _test(self, alpha: float, direction: Direction, side: Side) -> tuple[Lattice, float]:
        """A lattice and its point near the threshold of the best test."""
        threshold, end = self._start(direction, alpha), self._largest_log_ratio(direction)
        if math.isfinite(end):
            middle = self.loss.cumulants(0.5)[1]
            threshold = min(threshold, end - _FIRST * abs(end - (middle if direction == "add" else -middle)))
        for _ in range(12):
            lattice = self._lattice(threshold, direction, side)
            index = _first_at_most(lattice, alpha)
            if _TAIL < alpha < _FULL and 0 < index < lattice.above_out.size - 1:  # absolute accuracy is enough
                break
            found = lattice.first + lattice.spacing * index
            if abs(found - threshold) < 2 * lattice.width and lattice is self._lattice(found, direction, side):
                break
            # near a finite end laws are narrow, and a window shows little: by multiples of what remains
            step = max(4 * lattice.width, 7 * (end - threshold)) if math.isfinite(end) else 4 * lattice.width
            threshold = float(np.clip(found, threshold - step, threshold + step))
        return lattice, index

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        try:
            if question == "roc":
                lattice, index = self._test(at, direction, "upper")
                return lattice.charged(index, lattice.first + lattice.spacing * index, self.method)
            lattice = self._lattice(at, direction, "upper")
            if not lattice.holds(at):
                lattice = self._composed(at, direction, "upper")
        except TooSlowError:
            return Charged("trivial bound: no tilt of the law is in reach")
        if not lattice.holds(at):  # H falls with γ
            return Charged(self.method)
        return lattice.charged(float(lattice.index(np.array([at]))[0]), at, self.method)

    def _largest_log_ratio(self, direction: Direction) -> float:
        if self._only(direction, "upper")[0] > 0:
            return math.inf
        bound = self.loss.highest if direction == "add" else -self.loss.lowest
        return bound * (1 + 64 * EPS) if self.loss.others else bound

    def _least_log_ratio(self, direction: Direction) -> float:
        known = all(step.attained for step, _ in self.loss.others)
        bound = self._largest_log_ratio(direction)
        if not self.loss.others:
            return bound
        return bound * (1 - 256 * EPS) if known else 0.0

    def _start(self, direction: Direction, alpha: float) -> float:
        """Where to look first: the mean or, of other steps in the tail, where Chernoff's inequality allows the rate."""
        mean = self.loss.cumulants(0.0 if direction == "add" else 1.0)[1]
        first = mean if direction == "add" else -mean
        if not self.loss.others or alpha > _TAIL:
            return first
        growth = [(c, self.loss.cumulants(c if direction == "add" else 1 - c)[0]) for c in self._orders]
        return max(first, min((k - math.log(alpha)) / c for c, k in growth))

    @cached_property
    def _orders(self) -> list[float]:
        width = math.sqrt(self.loss.cumulants(0.5)[2])
        return [c / width for c in (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)]

    def _lattice(self, threshold: float, direction: Direction, side: Side) -> Lattice:
        """The lattice laid for the middle of the threshold's cell: it does not depend on what was asked before."""
        design = self._design(threshold if direction == "add" else -threshold)
        design = design if direction == "add" else -design
        key = direction, side, design
        if key not in self._lattices:
            while self._lattices and self._kept() > _MOST_KEPT - self.points:
                del self._lattices[next(iter(self._lattices))]
            self._lattices[key] = self._composed(design, direction, side)
        return self._lattices[key]

    def _design(self, threshold: float) -> float:
        """The middle of the cell in which a loss lies: the wider, the further from the middle of the law and its ends.

        Beyond half way to a finite end, cells are a share of what remains.
        """
        _, centre, variance = self.loss.cumulants(0.5)
        spread, end = 20 * math.sqrt(variance), self.loss.highest if threshold > centre else self.loss.lowest
        half = (end - centre) / 2
        if half == 0:
            return end
        if not abs(threshold - centre) > abs(half):
            place = round(5 * math.asinh((threshold - centre) / spread)) / 5
            found = centre + spread * math.sinh(place)
            return found if abs(found - centre) <= abs(half) else centre + half
        share = min(max(spread / (5 * abs(half)), _NARROWEST), _WIDEST)
        remaining = max((end - threshold) / half, _LAST)
        return end - half * math.exp(share * round(math.log(remaining) / share))

    def _kept(self) -> int:
        return sum(lattice.above_out.size for lattice in self._lattices.values())

    def _composed(self, design: float, direction: Direction, side: Side) -> Lattice:
        if self.loss.others:
            return _convolved(self.loss, design, direction, side, self.points)
        phases = self.loss.steps.size + len(self.loss.randomized_responses) + (self.loss.gaussian > 0)
        # every phase costs a transform of so many points: many phases get fewer, and a wider bracket
        fewer = max(0, math.ceil(math.log2(phases / _MANY_PHASES)))
        return _compose(self.loss, design, direction, side, self.points >> fewer)


def _first_at_most(lattice: Lattice, alpha: float) -> float:
    """First lattice index whose mass above is at most alpha (bisection: the mass falls)."""
    low, high = 0, lattice.above_out.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if lattice.at(np.array([float(middle)]))[0][0] <= alpha else (middle, high)
    return float(high)


def _compose(loss: PrivacyLoss, threshold: float, direction: Direction, side: Side, points: int) -> Lattice:
    """Build the tilted composed law around a threshold."""
    added = threshold if direction == "add" else -threshold
    at_zero, at_one = loss.cumulants(0.0)[1], loss.cumulants(1.0)[1]
    region: Region = "right" if added >= at_one else "left" if added <= at_zero else "middle"
    try:
        c = saddle(loss, region, added)
        growth, width, above_c, log_up, below_c, log_down = _around(loss, c)
    except TooSlowError:  # a tilt of neither law still gives a sound bracket
        region, c = "middle", 0.5
        growth, width, above_c, log_up, below_c, log_down = _around(loss, c)
    up, down = above_c - c, below_c - c
    reach_up, reach_down = (log_up - growth + 39.0) / up, (log_down - growth + 39.0) / down
    high = min(float(reach_up.min()), loss.highest)
    low = max(float(reach_down.max()), loss.lowest)
    margin = 0.02 * (high - low)
    low, high = low - margin, high + margin
    witnesses = (float(up[np.argmin(reach_up)]), float(down[np.argmax(reach_down)]))
    spacing = max((high - low) / points, widest_step(loss, c) / (2 * points))
    if direction == "remove":
        low, c, region, witnesses = -high, 1 - c, _MIRRORED[region], (-witnesses[1], -witnesses[0])
    steps = all_cells(loss, spacing, 1 - c if direction == "remove" else c)
    if direction == "remove":
        steps = (part.flipped(spacing) for part in steps)
    laws = ((above(part, spacing), 0.0) if side == "upper" else below(part, spacing) for part in steps)
    product = _Product.of(laws, (c, c + witnesses[0], c + witnesses[1], 0.0), spacing, points)
    # the lattice of sums starts at the sum of the first values
    start = math.floor((low - product.first) / spacing)
    first = product.first + spacing * start
    growth, *beside, total = product.log_mgf
    tilted, rounded = product.tilted(points)
    error = rounded
    window = (first + spacing * points, first)
    wraps = (product.last >= window[0], product.first < first)
    for offset, end, grown, beyond in zip(witnesses, window, beside, wraps, strict=True):
        if beyond:  # else nothing wraps around
            error += math.exp(min(grown - growth - offset * end, 0.0))
    wrapped = error - rounded
    error += product.lost
    out, inside = _sums(np.roll(tilted, -(start % points)), region, c, spacing)
    mass = math.exp(min(total, 700.0)) if side == "lower" else 1.0
    return Lattice(
        region,
        c,
        threshold,
        width,
        first,
        spacing,
        growth,
        mass,
        out,
        inside,
        error,
        product.paid,
        parts=(wrapped, product.lost),
        prefactor_error=product.prefactor_error,
    )


def _convolved(loss: PrivacyLoss, threshold: float, direction: Direction, side: Side, points: int) -> Lattice:
    """The same for a loss with other steps: see :mod:`deniable.accounting.engines.convolution`."""
    added = threshold if direction == "add" else -threshold
    slope_at_zero, slope_at_one = loss.cumulants(0.0)[1], loss.cumulants(1.0)[1]
    region: Region = "right" if added >= slope_at_one else "left" if added <= slope_at_zero else "middle"
    spread = math.sqrt(loss.cumulants(0.5)[2])
    try:
        c = saddle(loss, region, added)
        c = min(max(c, 0.5 - _STEEPEST / spread), 0.5 + _STEEPEST / spread)
        width = math.sqrt(max(loss.cumulants(c)[2], (spread / _STEEPEST) ** 2))
    except TooSlowError:
        region, c, width = "middle", 0.5, spread
    if direction == "remove":
        c, region = 1 - c, _MIRRORED[region]
    extent = min(_EXTENT * width, loss.highest - loss.lowest)
    steps = counted(loss)
    found = composed(steps, c, width, extent, direction, side, points)
    own = c if direction == "add" else 1 - c
    largest = [max(abs(low), abs(high)) for low, high in (part.step.range(own) for part in steps)]
    rounded = sum(part.times * (16 + 2 * (abs(c) + 1) * x) for part, x in zip(steps, largest, strict=True)) * EPS
    law, (numerator, denominator) = found.law, totals(loss, direction)
    out, inside = _sums(law.weight[0], region, c, law.spacing)
    bias = 0.0
    if len(law.weight) > 1:
        inside = _sums(law.weight[1], region, c, law.spacing)[1] * math.exp(law.log_size[1] - law.log_size[0])
        middle = int(np.argmax(law.weight[0]))
        bias = float(np.log(law.weight[1][middle] / law.weight[0][middle]) + law.log_size[1] - law.log_size[0])
    return Lattice(
        region,
        c,
        threshold,
        width,
        law.first,
        law.spacing,
        float(law.log_size[0]),
        denominator,
        out,
        inside,
        law.error,
        0.0,
        numerator,
        found.lost,
        bias,
        prefactor_error=rounded,
    )


def _around(loss: PrivacyLoss, c: float) -> tuple[float, float, FloatArray, FloatArray, FloatArray, FloatArray]:
    """K(c), √K″(c), and K at tilts above and below c, which show where the tilted law has mass below 1e-17."""
    growth, _, variance = loss.cumulants(c)
    width = math.sqrt(variance)
    return growth, width, *loss.log_mgf_known(c + _OFFSETS / width), *loss.log_mgf_known(c - _OFFSETS / width)


class _Product(NamedTuple):
    """The transform of a composed tilted law, made of one phase after the other so that none is kept."""

    transform: NDArray[np.complex128]
    sensitivity: FloatArray  # Σ_j |∂ product/∂ factor j|
    log_mgf: tuple[float, ...]  # of the composed law, at each of the points asked for
    first: float
    last: float
    lost: float
    paid: float
    prefactor_error: float  # relative, of the exponential of the first of ``log_mgf``

    @classmethod
    def of(cls, laws: Iterable[tuple[Law, float]], at: tuple[float, ...], spacing: float, points: int) -> _Product:
        """Multiply the transforms of laws tilted by ``at[0]``, modulo a window of so many points."""
        transform = np.ones(points // 2 + 1, dtype=np.complex128)
        sensitivity = np.zeros(points // 2 + 1)
        log_mgf, first, last, lost, paid = np.zeros(len(at)), 0.0, 0.0, 0.0, 0.0
        prefactor_error = 0.0
        for law, cost in laws:
            values = law.values(spacing)
            log_mgf += law.steps * np.array([_log_sum(law.log_mass + point * values) for point in at])
            first, last = first + law.steps * law.first, last + law.steps * (law.first + spacing * (values.size - 1))
            mass = law.log_mass + at[0] * values
            mass = np.exp(mass - _log_sum(mass))
            rounded = 2 * EPS * abs(at[0]) * float(mass @ np.abs(values))  # of exponents, on average
            del values
            lost, paid = lost + law.steps * (64 * EPS + rounded + law.lost), paid + cost
            prefactor_error += law.steps * (16 * EPS + rounded)
            if mass.size > points:
                mass = np.pad(mass, (0, -mass.size % points)).reshape(-1, points).sum(axis=0)
            factor = np.fft.rfft(mass, points)
            del mass
            log_size = np.log(np.maximum(np.abs(factor), 1e-300))
            sensitivity *= np.exp(law.steps * log_size)
            sensitivity += law.steps * np.exp((law.steps - 1) * log_size) * np.abs(transform)
            transform *= np.exp(law.steps * (log_size + 1j * np.angle(factor)))
        growths = tuple(float(value) for value in log_mgf)
        return cls(transform, sensitivity, growths, first, last, lost, paid, prefactor_error)

    def tilted(self, points: int) -> tuple[FloatArray, float]:
        """Tilted law of the sum, modulo the window, and a bound on the L1 error that FFT rounding causes."""
        rounding = 3 * EPS * math.log2(points) * (self.sensitivity + np.abs(self.transform))
        return np.maximum(np.fft.irfft(self.transform, points), 0.0), math.sqrt(2) * float(np.linalg.norm(rounding))


def _log_sum(exponent: FloatArray) -> float:
    top = float(np.max(exponent))
    return top + math.log(float(np.sum(np.exp(exponent - top))))


def _sums(tilted: FloatArray, region: Region, c: float, spacing: float) -> tuple[FloatArray, FloatArray]:
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
