"""Chains of curves: from one data set to another by way of a third, TPR∘TPR.

Slopes are proposed by tables of a curve's hockey sticks, which are quick, nearly right, and no bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._special import expit
from deniable.curves.answer import Charged, Question, bound_of
from deniable.curves.base import Tradeoff
from deniable.curves.closed import ApproximateTradeoff, GaussianTradeoff
from deniable.curves.epsilon_search import EpsilonSearch
from deniable.curves.safe import ADD, OPPOSITE, REMOVE, AnyDirection, Direction, Side, directions

_LADDER = 1 / (1 + np.exp(-np.sinh(np.linspace(-np.arcsinh(92.0), np.arcsinh(20.0), 129))))  # rates from 1e-40 on
_TRIED = np.linspace(-1.0, 1.0, 9)
_ROUNDS = 6  # each narrows the search for slopes fourfold, unless a parabola has found the least bound,
_SETTLED = 1e-5  # which it has where its prediction is this true
_POLISHED = 0.02  # the same around slopes that were found on sketches or tables
_NEAR = 1e-4  # by 1 + ε: to which ε of a sketch is narrowed
_APART = 0.15  # log slopes around those of a ladder of tests in which the best ones are looked for first
_POINTS = 193
_DENSE = 0.25  # log γ up to which points are evenly spaced; further out they are by their logarithm
_UNSEEN = 1e-40  # hockey sticks below are not tabulated
_FARTHEST = 5e3


class TangentTable:
    """log H_γ of ``curve`` (upper side) for γ ≥ 1 in both directions, joined by cubics in log γ."""

    def __init__(self, curve: Tradeoff) -> None:
        self.curve = curve

    @cached_property
    def _tabulated(self) -> dict[Direction, tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        """By direction: log γ, log H and its slope, and the coefficients of the cubics."""
        from scipy.interpolate import PchipInterpolator

        found = {}
        for way in directions("both", self.curve.symmetric):
            farthest, most = 1.0, min(self.curve.log_ratio_bound(way, "upper"), _FARTHEST)
            while farthest < most and self._asked(np.array([farthest]), way)[0] > _UNSEEN:
                farthest *= 2
            points = _DENSE * np.sinh(np.linspace(0.0, np.arcsinh(min(farthest, most) / _DENSE), _POINTS))
            logs = np.log(np.maximum(self._asked(points, way), _UNSEEN))
            joined = PchipInterpolator(points, logs)
            found[way] = points, logs, np.asarray(joined(points, nu=1)), np.asarray(joined.c)
        return found if len(found) == 2 else {REMOVE: found[REMOVE], ADD: found[REMOVE]}

    def _asked(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        return self.curve.hockey_sticks(log_gamma, direction, "upper")

    def hockey_sticks(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """Return about H_γ, under the name by which curves return bounds on it; ``side`` is that of bounds."""
        height = np.zeros_like(log_gamma)
        for way, part in ((direction, log_gamma >= 0), (OPPOSITE[direction], log_gamma < 0)):
            height[part] = self._above_one(np.abs(log_gamma[part]), way)
        with np.errstate(over="ignore"):
            gamma = np.exp(np.minimum(log_gamma, 0.0))
        return np.where(log_gamma < 0, 1 - gamma + gamma * height, height)

    def _above_one(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        points, _, _, cubics = self._tabulated[direction]
        cell = np.clip(np.searchsorted(points, log_gamma, side="right") - 1, 0, points.size - 2)
        x = log_gamma - points[cell]
        logs = ((cubics[0, cell] * x + cubics[1, cell]) * x + cubics[2, cell]) * x + cubics[3, cell]
        return np.where(log_gamma <= points[-1], np.exp(logs), 0.0)

    def tests(self, direction: Direction) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log slopes of tangents, growing, and about the logits of FPR and TPR where they touch the ROC."""
        slopes, fprs, tprs = [], [], []
        for way, sign in ((OPPOSITE[direction], -1), (direction, 1)):
            slope, logs, bend, _ = self._tabulated[way]
            with np.errstate(all="ignore"):
                log_fpr = np.minimum(logs + np.log(-bend) - slope, -1e-300)
                log_tpr = np.minimum(np.logaddexp(logs, slope + log_fpr), -1e-300)
                pair = [log_fpr - np.log(-np.expm1(log_fpr)), log_tpr - np.log(-np.expm1(log_tpr))]
            fpr, tpr = pair if sign > 0 else [-pair[1], -pair[0]]
            known = np.isfinite(fpr) & np.isfinite(tpr)
            slopes.append((sign * slope[known])[::sign])
            fprs.append(fpr[known][::sign])
            tprs.append(tpr[known][::sign])
        return np.concatenate(slopes), np.concatenate(fprs), np.concatenate(tprs)


@dataclass(frozen=True)
class ChainTradeoff(Tradeoff):
    """A walk over worlds W_0, …, W_k of which each neighbouring pair has a known curve: TPR_k∘…∘TPR_1.

    ``links`` holds the curves and their directions, from the null world on. Upper sides of hockey sticks follow from
    TPR_j(y) ≤ g_j·y + H_j(g_j) for any slopes g_j ≥ 0: with Π g_j ≤ γ,

        H_γ ≤ H_k(g_k) + g_k·H_{k−1}(g_{k−1}) + … + g_k⋯g_2·H_1(g_1).

    The slopes are searched for (the best ones are those of the curves at the best test); whatever they are, the bound
    holds. Lower sides: those of the links, or with ``attained`` what the composed lower sides reach at some test.
    """

    links: tuple[tuple[Tradeoff, Direction], ...]
    attained: bool = False
    _epsilon_apart: ClassVar[float] = 1e-9  # each δ(ε) is a search of its own

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
        walk = self.walk(direction)
        if side == "lower":
            each = [curve.hockey_sticks(log_gamma, way, side) for curve, way in walk]
            found: FloatArray = np.max([*each, self._reached(log_gamma, direction), trivial * (1 - 4 * EPS)], axis=0)
            return found
        bound = np.ones_like(log_gamma)
        inside = np.isfinite(log_gamma)
        bound[np.isposinf(log_gamma)] = self._roc(np.zeros(1), direction, side)[0]
        above = inside & (log_gamma >= 0)
        if above.any():
            bound[above] = self._searched(log_gamma[above], direction)
        below = inside & (log_gamma < 0)  # H_γ = 1 − γ + γ·H_{1/γ} with the worlds exchanged
        if below.any():
            gamma = np.exp(log_gamma[below])
            value = -np.expm1(log_gamma[below]) + gamma * self._searched(-log_gamma[below], OPPOSITE[direction])
            bound[below] = value * (1 + 8 * EPS)
        return np.clip(bound, trivial, 1.0)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return sum(curve.log_ratio_bound(way, "upper") for curve, way in self.walk(direction)) * (1 + 4 * EPS)

    def _least_log_ratio(self, direction: Direction) -> float:
        known = [curve.log_ratio_bound(way, "lower") for curve, way in self.walk(direction)]
        return sum(known) * (1 - 4 * EPS) if self.attained else max(known)

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the worlds walk along the same curves, in the same directions where these matter."""
        return all(
            one is other and (way == reverse or one.symmetric)
            for (one, way), (other, reverse) in zip(self.walk("remove"), self.walk("add"), strict=True)
        )

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """From sketches or tables of hockey sticks, and there from the tangents at the tests of the tables."""
        found = []
        for way in directions(direction, self.symmetric):
            total, _, heights = self._slopes[way]
            known = heights > 0
            if known.any():
                logs = np.minimum.accumulate(np.log(heights[known]))
                found.append(np.interp(np.log(delta), logs[::-1], total[known][::-1]))
        if not found:
            each = [curve.epsilon_near(delta, direction) for curve, _ in self.links]
            return np.sum([at for at, _ in each], axis=0), np.max([step for _, step in each], axis=0) + 0.1
        near: FloatArray = np.max(found, axis=0)
        if self._quick is self:
            return near, 0.01 * (1 + np.abs(near))

        def about(epsilon: FloatArray) -> FloatArray:
            each = [self._proposed(epsilon, way)[1] for way in directions(direction, self.symmetric)]
            return np.asarray(np.max(each, axis=0))

        _, high = EpsilonSearch(about, _NEAR).bracket(delta, near, 0.01 * (1 + np.abs(near)))
        return np.where(np.isfinite(high), high, near), _NEAR * (1 + np.abs(near))

    def sketch(self) -> Tradeoff:
        """Return the chain of the links' sketches."""
        return self._sketched

    def _bound(self, slopes: FloatArray, walk: tuple[tuple[Tradeoff | TangentTable, Direction], ...]) -> FloatArray:
        """The bound of the class docstring at log slopes of shape (links, points)."""
        total, later = np.zeros(slopes.shape[1]), np.zeros(slopes.shape[1])
        for (curve, way), slope in zip(reversed(walk), slopes[::-1], strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                term = np.exp(later) * curve.hockey_sticks(slope, way, "upper")
            total += np.where(np.isnan(term), np.inf, term)
            later = later + slope
        far = np.abs(slopes).sum(axis=0)
        return np.asarray(total * (1 + (4 * len(walk) + 4 * far) * EPS))

    def _searched(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """The smallest bound found over slopes, for γ ≥ 1: found where that is quick, then on the curves."""
        near, value = self._proposed(log_gamma, direction)
        if self._quick is not self:
            _, value = self._descent(log_gamma, self.walk(direction), [near], _POLISHED, 1)
        return value

    def _proposed(self, log_gamma: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Log slopes and about the bound that they give: that of sketches, or what the tables say."""
        starts = self._starts(log_gamma, direction)
        walk = self._tables[direction] if self._quick is None else self._quick.walk(direction)
        return self._descent(log_gamma, walk, starts, _APART if starts else 0.25, _ROUNDS)

    @cached_property
    def _quick(self) -> ChainTradeoff | None:
        """Closed forms as they are; else sketches, where losses are bounded and curves have kinks that tables miss."""
        if all(isinstance(curve, GaussianTradeoff | ApproximateTradeoff) for curve, _ in self.links):
            return self
        return self._sketched if any(np.isfinite(c.log_ratio_bound(way, "upper")) for c, way in self.links) else None

    @cached_property
    def _tables(self) -> dict[Direction, tuple[tuple[TangentTable, Direction], ...]]:
        """Tables of the links' sketches along the walk in either direction, one for each curve."""
        kept = {id(curve): TangentTable(curve.sketch()) for curve, _ in self.links}
        both: tuple[Direction, ...] = directions("both", False)
        return {way: tuple((kept[id(curve)], turned) for curve, turned in self.walk(way)) for way in both}

    @cached_property
    def _sketched(self) -> ChainTradeoff:
        """The sketch, kept for what it keeps."""
        links = tuple((curve.sketch(), way) for curve, way in self.links)
        same = all(rough is curve for (rough, _), (curve, _) in zip(links, self.links, strict=True))
        return self if same else replace(self, links=links)

    def _descent(
        self,
        log_gamma: FloatArray,
        walk: tuple[tuple[Tradeoff | TangentTable, Direction], ...],
        starts: list[FloatArray],
        apart: float,
        rounds: int,
    ) -> tuple[FloatArray, FloatArray]:
        """Log slopes, and the smallest bound found from ``starts`` on, or from equal slopes."""
        count = len(walk)
        best, value = np.empty((count, log_gamma.size)), np.full(log_gamma.size, np.inf)

        def take(slopes: FloatArray) -> None:
            nonlocal best, value
            slopes = slopes.copy()
            rest = slopes[1:].sum(axis=0)
            slopes[0] = log_gamma - rest
            slopes[0] -= 8 * count * EPS * (np.abs(log_gamma) + np.abs(slopes[1:]).sum(axis=0))  # Π g_j ≤ γ
            found = self._bound(slopes, walk)
            better = found < value
            best, value = np.where(better, slopes, best), np.where(better, found, value)

        for start in [*starts, np.broadcast_to(log_gamma / count, best.shape)]:
            take(start)
        rows = np.arange(log_gamma.size)
        for i in range(1, count):  # the bound is convex in each slope: H is in γ, and so is g·H(γ/g) in g
            radius = apart * (1 + np.abs(best[i]))
            for _ in range(rounds):
                tried = best[:, :, None] + np.zeros(_TRIED.size)
                tried[i] += radius[:, None] * _TRIED
                tried[i - 1] -= radius[:, None] * _TRIED
                tried[0] -= 8 * count * EPS * np.abs(tried).sum(axis=0)
                found = self._bound(tried.reshape(count, -1), walk).reshape(log_gamma.size, -1)
                which = np.argmin(found, axis=1)
                better = found[rows, which] < value
                value = np.where(better, found[rows, which], value)
                best = np.where(better, tried[:, rows, which], best)
                within = np.clip(which, 1, _TRIED.size - 2)
                moved, least = _vertex(*(found[rows, within + k] for k in (-1, 0, 1)))
                slopes = tried[:, rows, within]
                slopes[i] += moved * radius * (_TRIED[1] - _TRIED[0])
                slopes[i - 1] -= moved * radius * (_TRIED[1] - _TRIED[0])
                take(slopes)
                if np.all((within == which) & (value <= least * (1 + _SETTLED))):
                    break
                radius = np.where(within == which, radius / 4, 2 * radius)
        return best, value

    def _starts(self, log_gamma: FloatArray, direction: Direction) -> list[FloatArray]:
        """Slopes to begin with: those of the curves where their product is γ, and those of the kinks of (ε, δ)-DP."""
        starts = []
        total, slopes, _ = self._slopes[directions(direction, self.symmetric)[0]]
        if total.size:
            starts.append(np.array([np.interp(log_gamma, total, slope) for slope in slopes]))
        kinks = [curve.guaranteed_epsilon for curve, _ in self.links if isinstance(curve, ApproximateTradeoff)]
        if len(kinks) == len(self.links):
            for order in (range(len(kinks)), range(len(kinks) - 1, -1, -1)):
                for fill in ("all", "some", "none"):
                    start, rest = np.empty((len(kinks), log_gamma.size)), log_gamma.copy()
                    for j in order:
                        start[j] = (
                            np.minimum(rest, kinks[j]) if fill == "some" else kinks[j] * (2 * (fill == "all") - 1)
                        )
                        rest = rest - start[j]
                    start[order[-1]] += rest
                    starts.append(start)
        return starts

    @cached_property
    def _slopes(self) -> dict[Direction, tuple[FloatArray, FloatArray, FloatArray]]:
        """By direction, or for both, by growing sum: log slopes of all links at a test, their tangent's height."""
        found: dict[Direction, tuple[FloatArray, FloatArray, FloatArray]] = {}
        for direction in directions("both", self.symmetric):
            stacked, first, last = self._ladder(direction) if self._quick else self._tabulated(direction)
            total = stacked.sum(axis=0)
            order = np.argsort(total, kind="stable")
            with np.errstate(over="ignore", invalid="ignore"):
                heights = (last - np.exp(total) * first)[order]
            found[direction] = total[order], stacked[:, order], np.nan_to_num(heights, nan=0.0, posinf=0.0, neginf=0.0)
        return found

    def _ladder(self, direction: Direction) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log slopes of the links between a ladder's tests, their false positive and the last true positive rates."""
        rates, slopes = [_LADDER], []
        for curve, way in self.walk(direction):
            rates.append(curve.sketch().rates(rates[-1], way, "upper"))
            with np.errstate(divide="ignore", invalid="ignore"):
                slopes.append(np.log(np.diff(rates[-1]) / np.diff(rates[-2])))
        stacked = np.array(slopes)[:, ::-1]
        fine = np.isfinite(stacked).all(axis=0)
        return stacked[:, fine], _LADDER[1:][::-1][fine], rates[-1][1:][::-1][fine]

    def _tabulated(self, direction: Direction) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same from tables, at the tests of the first link's."""
        tests = [table.tests(way) for table, way in self._tables[direction]]
        if not all(slope.size for slope, _, _ in tests):  # nothing to see in a table
            return np.empty((len(tests), 0)), np.empty(0), np.empty(0)
        logits, slopes = [tests[0][1]], []
        for slope, fpr, tpr in tests:  # both rates fall while the slope grows
            slopes.append(np.interp(-logits[-1], -fpr, slope))
            logits.append(np.interp(logits[-1], fpr[::-1], tpr[::-1]))
        return np.array(slopes), expit(logits[0]), expit(logits[-1])

    def _reached(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """What the composed lower sides reach at the tests of the ladder and at kinks, if they are attained."""
        if not self.attained:
            return np.zeros_like(log_gamma)
        tests = np.concatenate([[0.0], _LADDER, self._kinks(direction), [1.0]])
        hits = self._roc(tests, direction, "lower")
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(log_gamma)[:, None]
            value = hits - np.where(tests > 0, gamma * tests, 0.0)
            value = value - 4 * EPS * (1 + np.where(tests > 0, gamma * tests, 0.0))
        return np.asarray(np.nan_to_num(value, nan=0.0, neginf=0.0).max(axis=1).clip(0.0, 1.0))

    def _kinks(self, direction: Direction) -> FloatArray:
        """False positive rates at which a composition of (ε, δ)-DP curves bends."""
        walk = self.walk(direction)
        bends: list[float] = []
        for j, (curve, _) in enumerate(walk):
            if not isinstance(curve, ApproximateTradeoff):
                continue
            rate = (1 - curve.guaranteed_delta) / (1 + np.exp(curve.guaranteed_epsilon))
            for earlier, _ in reversed(walk[:j]):  # TPR⁻¹(y) = 1 − TPR of the exchanged worlds at 1 − y, symmetric here
                rate = 1 - float(earlier.rates(np.array([1 - rate]), "remove", "lower")[0])
            bends.append(min(max(rate, 0.0), 1.0))
        return np.array(bends)


def _vertex(before: FloatArray, middle: FloatArray, after: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where the parabola through three values a step apart is least, in steps from the middle, and how much it is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = before - 2 * middle + after
        at = np.where(bend > 0, (before - after) / (2 * bend), 0.0)
    at = np.clip(np.nan_to_num(at), -1.0, 1.0)
    return at, middle - 0.25 * at * (before - after)
