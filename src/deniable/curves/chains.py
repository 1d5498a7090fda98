"""Chains of curves: from one data set to another by way of a third, TPR∘TPR."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._kept import Kept
from deniable._special import expit
from deniable.curves.answer import Charged, Question, bound_of
from deniable.curves.base import Tradeoff
from deniable.curves.closed import ApproximateTradeoff
from deniable.curves.safe import OPPOSITE, AnyDirection, Direction, Side, directions

_LADDER = 1 / (1 + np.exp(-np.sinh(np.linspace(-np.arcsinh(690.0), np.arcsinh(20.0), 161))))  # rates from 1e-300 on
_WHOLE, _MIDDLE = slice(None), slice(*np.searchsorted(_LADDER, [1e-6, 1 - 1e-6]))  # that is enough for an advantage
_BENT = 0.05  # how much log slopes may change, by the largest one below 1, from a cell of the ladder to the next one
_NEAR = 1e-7  # distance of logits at which tests are alike, whatever bends between them
_MOST = 1024  # tests of a ladder: sketches with many kinks get no finer one
_SEEN = 1e-9  # relative difference of two rates that has digits enough for a slope
_SAME = 1e-6  # log slopes this near the steepest one are that: a little below it, H is no longer 0 or δ


@dataclass(frozen=True)
class ChainTradeoff(Tradeoff):
    """A walk over worlds W_0, …, W_k of which each neighbouring pair has a known curve: TPR_k∘…∘TPR_1.

    ``links`` holds the curves and their directions, from the null world on. Upper sides of hockey sticks follow from
    TPR_j(y) ≤ g_j·y + H_j(g_j) for any slopes g_j ≥ 0: with Π g_j ≤ γ,

        H_γ ≤ H_k(g_k) + g_k·H_{k−1}(g_{k−1}) + … + g_k⋯g_2·H_1(g_1).

    The best slopes are those of the curves at the best test, and tests lie on a line: slopes are read off sketches
    along a ladder of tests, which is fine where they change. Whatever they are, the bound holds. Lower sides: those of
    the links, or with ``attained`` what the composed lower sides reach at some test.
    """

    links: tuple[tuple[Tradeoff, Direction], ...]
    attained: bool = False
    _ladders: Kept[object, tuple[FloatArray, ...]] = field(default_factory=Kept, init=False, repr=False, compare=False)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        if question == "hockey stick":  # of every link at a slope of its own
            return Charged(self.method)
        engines, rate = [], at
        for curve, way in self.walk(direction):
            engines.append(curve.charges(question, rate, way).engine if 0 < rate < 1 else curve.method)
            rate = bound_of(curve, question, rate, way, "upper")
        return Charged(f"a chain of curves: {', '.join(dict.fromkeys(engines))}")

    def walk(self, direction: Direction) -> tuple[tuple[Tradeoff, Direction], ...]:
        """The links from the null world of ``direction`` on."""
        return self.links if direction == "remove" else tuple((t, OPPOSITE[d]) for t, d in reversed(self.links))

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        walk = self.walk(direction)
        if side == "upper" or self.attained:
            rate = fpr
            for curve, way in walk:
                rate = np.clip(curve.rates(rate, way, side), rate, 1.0)
            return rate
        best: FloatArray = np.max([curve.rates(fpr, way, side) for curve, way in walk], axis=0)
        return best

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        trivial = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
        if side == "lower":
            each = [curve.hockey_sticks(log_gamma, way, side) for curve, way in self.walk(direction)]
            found: FloatArray = np.max([*each, self._reached(log_gamma, direction), trivial * (1 - 4 * EPS)], axis=0)
            return found
        bound = np.ones_like(log_gamma)
        bound[np.isposinf(log_gamma)] = self._roc(np.zeros(1), direction, side)[0]
        above, below = (np.isfinite(log_gamma) & part for part in (log_gamma >= 0, log_gamma < 0))
        if above.any():
            bound[above] = self._touched(log_gamma[above], direction)
        if below.any():  # H_γ = 1 − γ + γ·H_{1/γ} with the worlds exchanged
            gamma = np.exp(log_gamma[below])
            value = -np.expm1(log_gamma[below]) + gamma * self._touched(-log_gamma[below], OPPOSITE[direction])
            bound[below] = value * (1 + 8 * EPS)
        return np.clip(bound, trivial, 1.0)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        known = [curve.log_ratio_bound(way, side) for curve, way in self.walk(direction)]
        if side == "upper":
            return sum(known) * (1 + 4 * EPS)
        return sum(known) * (1 - 4 * EPS) if self.attained else max(known)

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the worlds walk along the same curves, in the same directions where these matter."""
        return all(
            one is other and (way == reverse or one.symmetric)
            for (one, way), (other, reverse) in zip(self.walk("remove"), self.walk("add"), strict=True)
        )

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Where the tangents of the ladder put ε."""
        found = []
        for way in directions(direction, self.symmetric):
            _, fpr, tpr = self._tangents(way)
            with np.errstate(all="ignore"):
                found.append([np.nanmax(np.log(np.maximum(tpr - d, 0.0) / fpr), initial=-np.inf) for d in delta])
        near = np.maximum(np.max(found, axis=0), 0.0)
        return near, 1e-4 * (1 + np.abs(near))

    def _touched(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """The bound at tests in the middle of the ladder, where engines are quick; beyond these on all of it."""
        sums = self._tangents(direction, _MIDDLE)[0].sum(axis=0)
        within, bound = (sums[0] < log_gamma) & (log_gamma < sums[-1]), np.ones_like(log_gamma)
        for tests, mine in ((_MIDDLE, within), (_WHOLE, ~within)):
            if mine.any():
                bound[mine] = self._touched_on(self._tangents(direction, tests)[0], log_gamma[mine], direction)
        return bound

    def _touched_on(self, slopes: FloatArray, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """The bound at the slopes of the test that γ touches; beyond the rarest one at others, too."""
        sums = slopes.sum(axis=0)
        bound = self._bound(log_gamma, np.array([np.interp(log_gamma, sums, slope) for slope in slopes]), direction)
        far = log_gamma > sums[-1]
        if far.any():
            last, earlier = slopes[:, -1:], slopes[:, [np.searchsorted(sums, 0.9 * sums[-1])]]
            with np.errstate(invalid="ignore"):
                shares = (last - earlier) / (last - earlier).sum()
            for further in (
                last + np.nan_to_num(shares) * (log_gamma[far] - sums[-1]),
                0 * last + log_gamma[far] / len(last),
            ):
                bound[far] = np.minimum(bound[far], self._bound(log_gamma[far], further, direction))
        return bound

    def _bound(self, log_gamma: FloatArray, slopes: FloatArray, direction: Direction) -> FloatArray:
        """The bound of the class docstring at log slopes of shape (links, points), the first moved to sum to log γ."""
        walk = self.walk(direction)
        slopes[0] += log_gamma - slopes.sum(axis=0)
        slopes[0] -= 8 * len(walk) * EPS * np.abs(slopes).sum(axis=0)  # Π g_j ≤ γ
        total, later = np.zeros_like(log_gamma), np.zeros_like(log_gamma)
        for (curve, way), slope in zip(reversed(walk), slopes[::-1], strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                term = np.exp(later) * curve.hockey_sticks(slope, way, "upper")
            total += np.where(np.isnan(term), np.inf, term)
            later = later + slope
        return np.asarray(total * (1 + (4 * len(walk) + 4 * np.abs(slopes).sum(axis=0)) * EPS))

    def _tangents(self, direction: Direction, part: slice = _WHOLE) -> tuple[FloatArray, ...]:
        """Log slopes of all links by growing sum, a test's FPR and last TPR, from a part of the ladder."""
        way = directions(direction, self.symmetric)[0]
        return self._ladders((way, part is _WHOLE), lambda: self._ladder(way, _LADDER[part]))

    def _ladder(self, direction: Direction, tests: FloatArray) -> tuple[FloatArray, ...]:
        """Chords of the sketches between tests: parted where they bend, but at a kink only until tests are alike."""
        rates = self._along(tests, direction)
        while True:
            with np.errstate(all="ignore"):
                logits, steps = np.log(rates[0] / (1 - rates[0])), np.diff(rates, axis=1)
                slopes, seen = np.diff(np.log(steps), axis=0), np.all(steps > _SEEN * rates[:, 1:], axis=0)
                seen &= rates[-1, 1:] < 1
            largest = np.abs(slopes[:, seen]).max(initial=0.0)
            bends = np.abs(np.diff(slopes, axis=1)).max(axis=0) > _BENT * min(largest, 1.0)
            bends &= seen[1:] & seen[:-1]
            open_ = (np.append(bends, False) | np.append(False, bends)) & (np.diff(logits) > _NEAR)
            if not open_.any() or logits.size > _MOST:
                break
            between = [logits[:-1][open_] + share * np.diff(logits)[open_] for share in (0.25, 0.5, 0.75)]
            rates = np.hstack([rates, self._along(expit(np.concatenate(between)), direction)])
            rates = rates[:, np.argsort(rates[0], kind="stable")]
        if not seen.any():  # every test of the ladder accuses all, or tells nothing
            return np.zeros((len(slopes), 1)), np.ones(1), np.ones(1)
        slopes, tests = slopes[:, seen], rates[:, 1:][:, seen]
        for slope, (curve, way) in zip(slopes, self.walk(direction), strict=True):
            low, high = -_steepest(curve, OPPOSITE[way]), _steepest(curve, way)
            slope[:] = np.where(slope > high - _SAME, high, np.where(slope < low + _SAME, low, slope))
        order = np.argsort(slopes.sum(axis=0), kind="stable")
        return slopes[:, order], tests[0, order], tests[-1, order]

    def _along(self, tests: FloatArray, direction: Direction) -> FloatArray:
        """About the rates of tests in all worlds of the walk."""
        rates = [tests]
        for curve, way in self.walk(direction):
            rates.append(np.clip(curve.sketch().rates(rates[-1], way, "upper"), rates[-1], 1.0))
        return np.array(rates)

    def _reached(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """What the composed lower sides reach at the tests of the ladder and at kinks, if they are attained."""
        if not self.attained:
            return np.zeros_like(log_gamma)
        tests = np.concatenate([[0.0], _LADDER, self._tangents(direction)[1], [1.0]])
        hits = self._roc(tests, direction, "lower")
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(log_gamma)[:, None]
            value = hits - np.where(tests > 0, gamma * tests, 0.0)
            value = value - 4 * EPS * (1 + np.where(tests > 0, gamma * tests, 0.0))
        return np.asarray(np.nan_to_num(value, nan=0.0, neginf=0.0).max(axis=1).clip(0.0, 1.0))


def _steepest(curve: Tradeoff, direction: Direction) -> float:
    """The log slope of the steepest line of a curve, where one is known."""
    return (
        curve.guaranteed_epsilon
        if isinstance(curve, ApproximateTradeoff)
        else curve.log_ratio_bound(direction, "upper")
    )
