"""A certified privacy-loss grid: the second engine, where transforms converge slowly and to check the first.

Every answer is read off a lattice (:mod:`deniable.accounting.engines.lattice`) that is laid for its threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._kept import Kept
from deniable._search import bisect_integers
from deniable.accounting.engines.convolution import alone
from deniable.accounting.engines.lattice import Lattice, compose, convolved
from deniable.accounting.renyi import loss_divergence
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import AnyDirection, Charged, Direction, Question, Side, Tradeoff
from deniable.curves.safe import directions

_MOST_KEPT = 1 << 22  # lattice points, 16 bytes each
_MOST_LAID = 12  # lattices in a search for a threshold
_TAIL = 0.05  # rates below are looked for in the tail
_FULL = 1 - 1e-4  # and rates above this where little is left
_SKETCHED = 1 << 14  # lattice points for a picture
_NEAR = 32  # lattice points around a threshold at which tests are tried
_NARROWEST, _WIDEST = 0.02, 0.2  # cells of thresholds near a finite end, as shares of what remains
_LAST = 1e-9  # of the law's half, from which thresholds count as its end
_FIRST = 1e-3  # of the law's half, at which rates are looked for at the earliest
_MANY_PHASES = 4  # up to which all points are used


@dataclass(frozen=True)
class GridTradeoff(Tradeoff):
    """Bracket from discretised privacy losses: upper from split cells, lower from merged ones.

    Where no tilt of the law can be computed the bracket is trivial, not wrong.
    """

    loss: PrivacyLoss
    points: int = 1 << 20
    method: str = field(default="certified grid", kw_only=True)
    _lattices: Kept[tuple[Direction, Side, float], Lattice] = field(
        default_factory=lambda: Kept(_MOST_KEPT, _points), init=False, repr=False, compare=False
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
        slack = 64 * EPS if side == "upper" else -64 * EPS
        sure, missing = (min(mass * (1 + slack), 1.0) for mass in alone(self.loss, direction))
        return sure, missing

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
        if side == "upper":
            level = min(level, lattice.last)  # H falls with γ
            if not lattice.holds(level):  # the best test against the discrete pair is not known there
                return self._unknown_at(log_gamma, direction)
        best = _hockey_stick_on(lattice, level, side)
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
        """Improve the threshold until the tilt fits the false positive rate; every threshold gives a sound bound.

        The last lattice may be so narrow that it holds one atom near an end of the losses: the one before holds more.
        """
        found = [_rate_on(lattice, index, alpha, side) for lattice, index in self._tests(alpha, direction, side)]
        return min(found) if side == "upper" else max(found)

    def _tests(self, alpha: float, direction: Direction, side: Side) -> list[tuple[Lattice, float]]:
        """The last lattices and their points near the threshold of the best test; the very last one is laid there."""
        found_on: list[tuple[Lattice, float]] = []
        threshold, end = self._start(direction, alpha), self._largest_log_ratio(direction)
        for _ in range(_MOST_LAID):
            lattice = self._lattice(threshold, direction, side)
            index = _first_index(lattice, lattice.mass_above, alpha)
            found_on = [*found_on[-1:], (lattice, index)]
            if _TAIL < alpha < _FULL and 0 < index < lattice.above_out.size - 1:  # absolute accuracy is enough
                break
            found = lattice.value(index)
            if abs(found - threshold) < 2 * lattice.width and lattice is self._lattice(found, direction, side):
                break
            # near a finite end laws are narrow, and a window shows little: by multiples of what remains
            step = max(4 * lattice.width, 7 * (end - threshold)) if math.isfinite(end) else 4 * lattice.width
            threshold = float(np.clip(found, threshold - step, threshold + step))
        return found_on

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Where a lattice laid there puts ε, to a few of its points: the search then asks that lattice only."""
        found = [
            [self._epsilon_on_lattice(float(d), way) for way in directions(direction, self._symmetric)] for d in delta
        ]
        best = np.array([max(ways) for ways in found])
        return best[:, 0], best[:, 1]

    def _epsilon_on_lattice(self, delta: float, direction: Direction) -> tuple[float, float]:
        threshold = self._start(direction, min(delta, _TAIL))
        spacing = 1.0
        with suppress(TooSlowError):  # then Chernoff's inequality says where to begin
            for _ in range(_MOST_LAID):
                lattice = self._lattice(threshold, direction, "upper")
                index = _first_index(lattice, lattice.hockey_stick, delta)
                threshold, spacing = lattice.value(index - 0.5), lattice.spacing
                if lattice is self._lattice(threshold, direction, "upper"):
                    break
        return threshold, spacing

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        try:
            if question == "roc":
                lattice, index = self._tests(at, direction, "upper")[-1]
                return lattice.charged(index, lattice.first + lattice.spacing * index, self.method)
            lattice = self._lattice(at, direction, "upper")
            if not lattice.holds(at):
                lattice = self._composed(at, direction, "upper")
        except TooSlowError:
            return Charged("trivial bound: no tilt of the law is in reach")
        if not lattice.holds(at):  # H falls with γ
            return Charged(self.method)
        return lattice.charged(float(lattice.index(np.array([at]))[0]), at, self.method)

    @property
    def _symmetric(self) -> bool:
        return self.loss.symmetric

    def _largest_log_ratio(self, direction: Direction) -> float:
        if self._only(direction, "upper")[0] > 0:
            return math.inf
        return self.loss.largest_log_ratio(direction, "upper")

    def _least_log_ratio(self, direction: Direction) -> float:
        if self._only(direction, "upper")[0] > 0:
            return math.inf
        return self.loss.largest_log_ratio(direction, "lower")

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return loss_divergence(self.loss, order, direction)

    def _start(self, direction: Direction, alpha: float) -> float:
        """Where to look first: the mean or, of other steps in the tail, where Chernoff's inequality allows the rate."""
        mean = self.loss.cumulants(0.0 if direction == "add" else 1.0)[1]
        first = mean if direction == "add" else -mean
        if self.loss.others and alpha <= _TAIL:
            growth = [(c, self.loss.cumulants(c if direction == "add" else 1 - c)[0]) for c in self._orders]
            first = max(first, min((k - math.log(alpha)) / c for c, k in growth))
        end = self._largest_log_ratio(direction)
        if math.isfinite(end):
            middle = self.loss.cumulants(0.5)[1]
            first = min(first, end - _FIRST * abs(end - (middle if direction == "add" else -middle)))
        return first

    @cached_property
    def _orders(self) -> list[float]:
        width = math.sqrt(self.loss.cumulants(0.5)[2])
        return [c / width for c in (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)]

    def _lattice(self, threshold: float, direction: Direction, side: Side) -> Lattice:
        """The lattice laid for the middle of the threshold's cell: it does not depend on what was asked before."""
        design = self._design(threshold if direction == "add" else -threshold)
        design = design if direction == "add" else -design
        return self._lattices((direction, side, design), lambda: self._composed(design, direction, side))

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

    def _composed(self, design: float, direction: Direction, side: Side) -> Lattice:
        if self.loss.others:
            return convolved(self.loss, design, direction, side, self.points)
        phases = self.loss.steps.size + len(self.loss.randomized_responses) + (self.loss.gaussian > 0)
        # every phase costs a transform of this many points: many phases get fewer, and a wider bracket
        fewer = max(0, math.ceil(math.log2(phases / _MANY_PHASES)))
        return compose(self.loss, design, direction, side, self.points >> fewer)


def _points(lattice: Lattice) -> float:
    return lattice.above_out.size


def _hockey_stick_on(lattice: Lattice, level: float, side: Side) -> float:
    """Read H off a lattice that holds the threshold; NaN where rounding leaves nothing."""
    index = lattice.index(np.array([level]))
    if lattice.bias:  # merged losses are known about: the best test near there
        index = index + np.arange(-_NEAR, _NEAR + 1.0)
    out, inside, out_error, in_error = lattice.at(index)
    with np.errstate(over="ignore", invalid="ignore"):
        gamma = np.exp(level)
        error = in_error + gamma * out_error
        value = inside - gamma * out + (error if side == "upper" else -error)
    return float(np.max(value))


def _rate_on(lattice: Lattice, index: float, alpha: float, side: Side) -> float:
    """Bound the true positive rate by tests near a lattice point."""
    near = index + np.array([-1.0, 0.0, 1.0])
    out, tpr, out_error, in_error = lattice.at(near)
    with np.errstate(over="ignore", invalid="ignore"):
        if side == "upper":
            value = lattice.first + lattice.spacing * np.clip(near, 0, lattice.above_out.size - 1)
            gap = alpha - out + out_error
            gamma = np.exp(np.where(gap > 0, value, np.minimum(value, MOST_EXPONENT)))
            bounds = tpr + in_error + gamma * gap * (1 + 4 * EPS)
            bounds = np.where(np.isfinite(bounds), np.maximum(bounds, alpha), 1.0)
            return float(np.clip(bounds.min(), alpha, 1.0))
        if not lattice.paid < MOST_EXPONENT:  # cells so wide that the merged pair says nothing
            return alpha
        high, low = (out + out_error) * math.exp(lattice.paid), tpr - in_error
        high = np.where(high >= 0, high, np.inf)  # where a lattice over- and underflows, NaN is no rate
        alone = np.minimum(np.divide(alpha, high, out=np.ones_like(high), where=high > alpha), 1.0) * low
        mixed = alone.max(initial=alpha)
        for a, b in ((0, 1), (1, 2)):  # randomise between neighbouring thresholds
            if high[b] <= alpha <= high[a] and high[a] > high[b]:
                share = (alpha - high[b]) / (high[a] - high[b])
                mixed = max(mixed, (low[b] + share * (low[a] - low[b])) * (1 - 8 * EPS))
    return float(np.clip(mixed, alpha, 1.0)) if np.isfinite(mixed) else alpha


def _first_index(lattice: Lattice, falling: Callable[[float], float], level: float) -> float:
    """First lattice index at which what falls with it is at most a level, by bisection; the last if there is none."""
    return float(bisect_integers(lambda at: falling(float(at)) <= level, lattice.above_out.size - 1, 0)[0])
