"""Transform inversion on vertical lines: tails of the privacy loss and hockey sticks with an error bound.

With w = c + it, the out-law transform M(w) = E_out[e^{wL}] and a threshold ℓ,

    out(L > ℓ)  = 1/(2πi) ∫ M(w) e^{−wℓ}      / w         dw      (c > 0; for c < 0 it is −out(L ≤ ℓ))
    in(L > ℓ)   = 1/(2πi) ∫ M(w) e^{−(w−1)ℓ}  / (w − 1)   dw      (c > 1; for c < 1 it is −in(L ≤ ℓ))
    H_{e^ℓ}     = 1/(2πi) ∫ M(w) e^{−(w−1)ℓ}  / (w(w−1))  dw      (c > 1; minus E min(p, γq) for 0 < c < 1;
                                                                   γ·H_{1/γ}(out‖in) for c < 0).

The trapezoid rule with spacing h turns each into itself plus aliases at ℓ + mΛ, Λ = 2π/h, which Chernoff's inequality
bounds by real transforms M(θ); the sum cut at t_N is wrong by at most ∫ |M(c + it)|/t^k beyond t_N; and rounding is
bounded by perturbing every term: every number comes as a :class:`deniable.accounting.trapezoid.Sum`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.engines.chernoff import ROUNDING_OF_K, Chernoff
from deniable.accounting.engines.likelihood import Tails, dual_from, hockey_stick_from
from deniable.accounting.sizes import UNDERFLOW
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import ComplexArray
from deniable.accounting.transform import decay
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.trapezoid import Sum, even_aliases, half_line, nodes_until, poles

Region = Literal["left", "middle", "right"]  # c < 0, 0 < c < 1, c > 1
_EDGES: dict[Region, tuple[float, float]] = {"left": (-np.inf, 0.0), "middle": (0.0, 1.0), "right": (1.0, np.inf)}
TOLERANCE = 1e-13  # truncation and aliasing error aimed at, relative to the natural size of the integrand
GOOD = 2e-10  # relative errors that are not worth a second line
_SLACK = 4.0  # logarithm of how much larger integrands may be on damped lines
_RETURNED = 1e-8  # aimed at where no transform decays: what is neglected is more
_WIDTHS = 3.0  # √K″(c) on either side of its own threshold that a line serves


@dataclass(frozen=True, eq=False)
class Contour:
    """One line Re w = c with its nodes: thresholds within a few √K″(c) of K′(c) keep relative accuracy."""

    region: Region
    c: float
    growth: float  # K(c)
    period: float
    t: FloatArray
    # (nodes, 5): for out, in, hockey stick and the densities; the factor h/π and the half weight included
    coefficients: ComplexArray
    chernoff: FloatArray  # (2, points): θ − c and K(θ) − K(c)
    truncation: FloatArray  # (5,)
    rounding: FloatArray  # (5,) constant part, relative to the prefactor
    phase_rounding: FloatArray  # (5,) times |ℓ|
    dropped: tuple[float, float]  # mass left out of the two laws
    unseen: float  # and of one outcome or another under "in"
    lost_above: bool  # that only a ceiling cuts, where losses are not negative

    def tails(self, threshold: FloatArray) -> Tails:
        """Evaluate at every threshold; far from the mean of the tilted law the errors grow, they never lie."""
        found = self.sums(threshold)
        q, p, s, density, in_density = found.value
        eq, ep, es, *_ = found.error
        if self.region == "left":
            out_below, in_below = -q, -p
            out_above, in_above = 1 + q, 1 + p
            dual, dual_error = s, es
            hockey_stick, hockey_stick_error = hockey_stick_from(s, es, threshold)
        else:
            in_below = -p if self.region == "middle" else 1 - p
            in_above = 1 + p if self.region == "middle" else p
            out_above, out_below = q, 1 - q
            # in the middle −s = E min(p, γq): H_γ = 1 + s, and γ·H_{1/γ}(out‖in) = γ + s
            hockey_stick, hockey_stick_error = (1 + s, es + 4 * EPS) if self.region == "middle" else (s, es)
            if self.region == "middle":
                with np.errstate(over="ignore"):
                    gamma = np.exp(threshold)
                    dual, dual_error = gamma + s, es + 4 * EPS * (gamma + np.abs(s))
            else:
                dual, dual_error = dual_from(s, es, threshold)
        return Tails(
            threshold, out_above, out_below, eq, density, in_above, in_below, ep, in_density,
            hockey_stick, dual, hockey_stick_error, dual_error,
        )  # fmt: skip

    def sums(self, threshold: FloatArray) -> Sum:
        """The three integrals and the two densities; what was left out counts as truncated."""
        total = self._integrals(threshold)
        missed = np.zeros_like(total.truncation)
        missed[:3] = np.stack(self._missed(threshold))
        missed[1:3] += self.unseen
        # below the smallest normal number nothing has relative accuracy
        return replace(total, truncation=total.truncation + missed, rounding=total.rounding + UNDERFLOW)

    def _missed(self, threshold: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What was left out takes at most this from out, in and the hockey stick.

        Above ℓ the in-law is at least e^ℓ times the out-law, below it is at most that, so that one mass bounds both.
        A run with an outcome beyond a ceiling is below ℓ if its other steps are, as r ≥ 1 there: for c ≤ 0 the share
        e^{K(c) − cℓ} of that mass at most, since M ≥ 1 for every step.
        """
        out, inside = self.dropped
        with np.errstate(over="ignore", under="ignore"):
            gamma = np.exp(threshold)
            if self.region == "left" and self.lost_above:
                exponent = self.growth - self.c * threshold
                size = np.abs(self.growth) + np.abs(self.c * threshold)
                out = out * np.exp(np.minimum(exponent + 2 * ROUNDING_OF_K + 64 * EPS * size, 0.0))
            out_above = np.minimum(out, inside / np.maximum(gamma, UNDERFLOW) + (gamma < UNDERFLOW))
            in_below = np.minimum(inside, gamma * out) if self.dropped[0] > 0 else np.full_like(threshold, inside)
            if self.region == "left":
                return out + 0 * threshold, in_below, gamma * out if self.dropped[0] > 0 else in_below
            if self.region == "middle":
                return out_above, in_below, in_below
            in_above = np.full_like(threshold, inside)
        return out_above, in_above, in_above

    @cached_property
    def _blocks(self) -> ComplexArray:
        """The coefficients of t = h·(Ba + b) as B rows of A·5: e^{−itℓ} is then a product of two short tables."""
        length = math.isqrt(self.t.size - 1) + 1
        padded = np.zeros((length * -(-self.t.size // length), 5), dtype=np.complex128)
        padded[: self.t.size] = self.coefficients
        return padded.reshape(-1, length, 5).transpose(1, 0, 2).reshape(length, -1)

    def _sums(self, threshold: FloatArray) -> FloatArray:
        """Re Σ coefficients·e^{−itℓ} at every threshold: row by row, so that none depends on which others are asked."""
        sums = np.empty((threshold.size, 5))
        length, count = self._blocks.shape[0], self._blocks.shape[1] // 5
        rows = max(1, (1 << 17) // self._blocks.shape[1])
        for k in range(0, threshold.size, rows):
            turn = -2j * np.pi / self.period * threshold[k : k + rows]
            short, long = (np.exp(np.multiply.outer(turn, n)) for n in (np.arange(length), length * np.arange(count)))
            inner = (short[:, None, :] @ self._blocks).reshape(-1, count, 5)
            sums[k : k + rows] = (long[:, None, :] @ inner)[:, 0].real
        return sums

    def _integrals(self, threshold: FloatArray) -> Sum:
        sums = self._sums(threshold)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            exponent = self.growth - self.c * threshold
            prefactor = np.exp(
                np.stack([exponent, exponent + threshold, exponent + threshold, exponent, exponent + threshold])
            )
            argument = 2 * EPS * (np.abs(self.growth) + np.abs(self.c * threshold) + np.abs(threshold))
            rounding = self.rounding[:, None] + self.phase_rounding[:, None] * np.abs(threshold)
            values = prefactor * sums.T
            rounding = prefactor * rounding + np.abs(values) * argument
            return Sum(
                values, prefactor * self._aliases(threshold), prefactor * self.truncation[:, None], rounding
            ).checked()

    def _aliases(self, threshold: FloatArray) -> FloatArray:
        """Chernoff bound of all aliases, relative to the prefactor; the best θ on either side."""
        offset, log_ratio = self.chernoff
        total = np.zeros_like(threshold)
        for sign in (1.0, -1.0):
            side = offset * sign > 0
            distance = np.abs(offset[side]) * self.period
            relative_error = ROUNDING_OF_K + 64 * EPS * (np.abs(log_ratio[side]) + 2 * abs(self.growth))
            log_bound = log_ratio[side] + relative_error - np.multiply.outer(threshold, offset[side]) - distance
            total += np.exp(np.min(log_bound - np.log(-np.expm1(-distance)), axis=1, initial=MOST_EXPONENT))
        return total


@dataclass(frozen=True, eq=False)
class Posts:
    """Where the lines of one region stand, and which thresholds each serves.

    The places depend on the mechanism alone, not on what was asked before, and so do the lines laid there: equal
    questions have equal answers whatever their order. Integrands of ``damped`` lines may be larger than on the best one
    where a lower c, and with c < 0 a shorter line, serves.
    """

    known: Chernoff
    region: Region
    damped: bool = False

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """Numbers of the points of the region, but for the first and the last of all, and where a ceiling cuts."""
        (low, high), points, loss = _EDGES[self.region], self.known.points[1:-1], self.known.loss
        usable = (points > low) & (points < high)
        if math.isfinite(loss.ceiling):
            usable &= loss.at_ceiling(points) < GOOD
        return np.flatnonzero(usable) + 1

    @cached_property
    def _heights(self) -> FloatArray:
        c = self.known.points[self.places]
        return np.asarray(self.known.growth[self.places] - np.log(np.abs(c * (c - 1))))

    def nearest(self, threshold: FloatArray) -> NDArray[np.intp]:
        """Number of the line for every threshold: where the integrand e^{K(c) − cℓ}/|c(c − 1)| is least."""
        sizes = self._heights - np.multiply.outer(threshold, self.known.points[self.places])
        slack = _SLACK if self.damped else 0.0
        return np.asarray(self.places[np.argmax(sizes <= sizes.min(axis=1, keepdims=True) + slack, axis=1)])

    def contour(self, place: int, tolerance: float, most: int) -> Contour:
        """Lay the line at a point, with errors of about ``tolerance`` of the natural size of the integrand.

        Raises
        ------
        TooSlowError
            If it takes more than ``most`` nodes, or 2,000 times as many terms.
        """
        known, loss = self.known, self.known.loss
        tolerance = tolerance if loss.decays else max(tolerance, _RETURNED)
        c, width = float(known.points[place]), math.sqrt(float(known.variance[place]))
        if not width * (1 + abs(c)) > 1e-12:
            raise TooSlowError("the tilted law is an atom in double precision")
        # natural sizes of the three integrals, relative to the prefactor
        target = tolerance * min(1.0, 1 / (width * abs(c))) / max(1.0, abs(c - 1))
        low, high = _EDGES[self.region]
        near = (known.points >= low) & (known.points <= high) & (known.points != c)
        offset, rise = known.points[near] - c, known.growth[near] - known.growth[place]
        center = float(known.mean[place]) - 1 / c - 1 / (c - 1)  # the threshold of which c is the saddle point
        period = _period(offset, rise, (center - _WIDTHS * width, center + _WIDTHS * width), math.log(target))
        spacing = 2 * math.pi / period
        if loss.decays:
            t_end, truncation = decay.cut(loss.line(c), width, target, spacing)
            t = nodes_until(t_end, spacing, most)
            line = loss.line(c, float(t[-1]))
            if t.size * line.size > (most << 6) * max(loss.summands, 32):  # what is asked next takes longer, too
                raise TooSlowError(f"{t.size} nodes of {line.size} terms")
            growth, (log_m, transform_error) = line.cumulants[0], line.transform(t, spacing)
        else:
            t = spacing * np.arange(most >> 3 << 1, dtype=np.float64)
            truncation, growth, (log_m, transform_error) = decay.returning(loss, c, t)
        w = c + 1j * t
        weight, kernel = half_line(t.size, period), poles(w)
        coefficients = (weight * np.exp(log_m))[:, None] * kernel
        sizes = np.abs(coefficients)
        rounding = np.abs(kernel).T @ (weight * transform_error) + 64 * EPS * sizes.sum(axis=0)
        chernoff = np.stack([offset, known.growth[near] - growth])
        return Contour(
            self.region, c, growth, period, t, coefficients, chernoff,
            truncation, rounding, 4 * EPS * (sizes.T @ t), loss.dropped, loss.unseen, loss.lost_above,
        )  # fmt: skip


def overlap(loss: PrivacyLoss, tolerance: float, most: int) -> Sum:
    """∫ min(p, q), 1 minus the advantage, on the line Re w = ½ alone: there K is needed nowhere else.

    Aliases come from :func:`deniable.accounting.trapezoid.even_aliases`; the rest is charged as on every line.

    Raises
    ------
    TooSlowError
        If it takes more than ``most`` nodes.
    """
    period = 2 * math.log(4 / tolerance)
    spacing, real = 2 * math.pi / period, loss.line(0.5)
    width = math.sqrt(real.cumulants[2])
    if not width * most > 1:
        raise TooSlowError("the loss is small")
    t_end, truncation = decay.cut(real, width, tolerance, spacing)
    t = nodes_until(t_end, spacing, most)
    line = loss.line(0.5, float(t[-1]))
    log_m, error = line.transform(t, spacing)
    weight = half_line(t.size, period) * (math.exp(line.cumulants[0]) / (t * t + 0.25))
    sizes = weight * np.exp(log_m.real)
    rounding = weight @ error + 64 * EPS * sizes.sum() * (1 + abs(line.cumulants[0]))
    every = (sizes @ np.cos(log_m.imag), even_aliases(period), truncation[2] + loss.dropped[1] + loss.unseen, rounding)
    return Sum(*(np.array([x]) for x in every)).checked()


def _period(offset: FloatArray, rise: FloatArray, thresholds: tuple[float, float], target: float) -> float:
    """Smallest Λ for which aliases stay below the target for thresholds between two."""
    need = []
    for sign, threshold in zip((1.0, -1.0), thresholds, strict=True):
        side = offset * sign > 0
        exponent = rise[side] - offset[side] * threshold - target + 0.7
        need.append(np.min(exponent / np.abs(offset[side]), initial=np.inf))
    return float(max(*need, thresholds[1] - thresholds[0]))
