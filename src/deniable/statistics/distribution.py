"""Quantiles chosen by rank; distribution functions from noisy trees, for other quantiles and themselves.

Of each chosen quantile three points are drawn by rank: itself, and one some ranks below and above it, less exactly.
What lies between these two says how far a rank is, and they are limits for the population. Nothing else is asked but
the noisy number of records in each group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from scipy.optimize import isotonic_regression

from deniable._check import FloatArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import RankWeights
from deniable.statistics.estimates import NO_NUMBERS, TOO_FEW, Limits, QueryAnswer, withheld
from deniable.statistics.grammar import ColumnScale
from deniable.statistics.queries import CANDIDATES, DEPTH
from deniable.statistics.released import Row

_LEAVES = 2**DEPTH
OF_COUNT, _OF_VALUE, _OF_END = 0.02, 0.8, 0.09  # shares of μ²: of the groups' sizes, of a quantile and of each end
_APART = 7.0  # e-folds by which weights must fall before the values end, so that no choice lies beyond them


@dataclass(frozen=True, eq=False)
class Choice:
    """What is drawn for one quantile of each group; ``sizes`` are noisy numbers of records."""

    p: float
    value: RankWeights
    end: RankWeights
    below: FloatArray
    above: FloatArray
    points: FloatArray

    @classmethod
    def plan(cls, p: float, mu: float, sizes: FloatArray, limits: Limits) -> Choice:
        """Return what to draw at a cost of ``mu``: how many ranks away from the quantile the ends are.

        So far that noise and sampling together miss by chance only, and that both are clear of where the values end.
        """
        value, end = (RankWeights(mu * math.sqrt(of) * (1 - MANY_ROUNDINGS), p) for of in (_OF_VALUE, _OF_END))
        n = np.maximum(sizes, 1.0)
        reach = np.hypot(limits.z * np.sqrt(n * p * (1 - p)), -math.log(1 - limits.confidence) / end.rate)
        clear = _APART / end.rate
        below, above = np.minimum(-reach, n * (1 - p) - clear), np.maximum(reach, clear - n * p)
        return cls(p, value, end, np.floor(below), np.ceil(above), np.zeros((3, len(sizes))))

    @property
    def draws(self) -> list[tuple[RankWeights, list[int]]]:
        """The law of each draw, and of each group how many ranks away from the quantile it is aimed."""
        aims = (0 * self.below, self.below, self.above)
        laws = (self.value, self.end, self.end)
        return [(law, aim.astype(int).tolist()) for law, aim in zip(laws, aims, strict=True)]

    def row(self, place: int, n: float, group: tuple[str, ...], scale: ColumnScale, limits: Limits) -> Row:
        """Return the quantile of a group of about ``n`` records.

        A choice is a Laplace variable of ranks away; one more rank is for the unequal gaps between records.
        """
        if not n * self.end.rate > 2 * _APART:
            return withheld(group, f"{self.p:g}", NO_NUMBERS)
        value, low, high = (scale.centre + scale.half * self.points[:, place]).tolist()
        ranks = float(self.above[place] - self.below[place])
        slope = max(high - low, 0.0) / ranks
        away = _laplace(1 - limits.confidence, ranks * self.end.rate) / self.value.rate + 1
        step = scale.half / CANDIDATES  # of the lattice: all that tells values apart where many share one
        reach = away * slope + step
        ends = [value - reach, value + reach]
        if n * min(self.p, 1 - self.p) * self.value.rate < _APART:  # it may lie beyond all values
            ends = [min(ends[0], low), max(ends[1], high)]
        ends += [min(ends[0], low), max(ends[1], high)]
        noise, sampling = (
            max(math.sqrt(2) / self.value.rate * slope, step),
            math.sqrt(self.p * (1 - self.p) * n) * slope,
        )
        least, most, lowest, highest = (min(max(end, scale.low), scale.high) for end in ends)
        return _to_whole(Row(group, f"{self.p:g}", value, noise, sampling, least, most, lowest, highest), scale)


@dataclass(frozen=True, eq=False)
class Ranked(QueryAnswer):
    """Numbers of records in each group, and the choices by probability."""

    chosen: Mapping[float, Choice]


def _laplace(miss: float, away: float) -> float:
    """Return x such that |Laplace| > x·s with chance ``miss``, s = 1 + (A + B)/``away`` for Laplace variables A, B.

    s is a slope from two noisy points that are ``away`` apart; E e^{−x·s} = e^{−x}/(1 − (x/away)²)².
    """
    least = -math.log(miss)
    x = np.linspace(least, min(away, 3 * least), 400, endpoint=False)
    missed = np.exp(-x) / (1 - (x / away) ** 2) ** 2
    return float(x[np.argmax(missed <= miss) if np.any(missed <= miss) else np.argmin(missed)])


@lru_cache(maxsize=1)
def _least_squares() -> tuple[FloatArray, FloatArray]:
    """Return (B, C): leaves = B·nodes is the least-squares fit of a tree to its noisy nodes, C its covariance.

    All nodes have noise of variance 1.
    """
    node = np.arange(2 * _LEAVES - 1)
    level = np.floor(np.log2(node + 1)).astype(int)
    position = node - (2**level - 1)
    below = (np.arange(_LEAVES) >> (DEPTH - level)[:, None]) == position[:, None]  # leaves under each node
    paths = below.astype(np.float64)
    covariance = np.linalg.inv(paths.T @ paths)
    return covariance @ paths.T, covariance


class Distribution:
    """A monotone estimate of a distribution function at the edges of the leaves, with the covariance of its noise."""

    def __init__(self, nodes: FloatArray, noise: float, scale: ColumnScale) -> None:
        fit, covariance = _least_squares()
        raw = np.concatenate([[0.0], np.cumsum(fit @ nodes)])
        self.total = float(raw[-1])
        self._covariance = covariance * noise**2
        self.edges = np.linspace(scale.low, scale.high, _LEAVES + 1)
        self.usable = self.total > TOO_FEW * math.sqrt(self._covariance.sum())
        if self.usable:
            # the sums are unbiased; only from here on they are bent into a distribution function
            self.values = np.clip(isotonic_regression(raw / self.total).x, 0.0, 1.0)
            self.values[0], self.values[-1] = 0.0, 1.0

    @cached_property
    def errors(self) -> FloatArray:
        """Standard deviation of the noise of F at each edge."""
        lower = np.tri(_LEAVES + 1, _LEAVES, -1) - self.values[:, None]
        variances = ((lower @ self._covariance) * lower).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)) / self.total)

    def quantile(self, p: float) -> float:
        """Return where F reaches p, by linear interpolation between edges."""
        at = int(np.clip(np.searchsorted(self.values, p), 1, _LEAVES))
        low, high = self.values[at - 1], self.values[at]
        share = 0.5 if high <= low else (p - low) / (high - low)
        return float(self.edges[at - 1] + np.clip(share, 0.0, 1.0) * (self.edges[at] - self.edges[at - 1]))

    def limits(self, p: float, z: float, sampling: bool) -> tuple[float, float]:
        """Return where F ± z standard errors, linear between edges, reaches p from below and from above."""
        variance = self.errors**2 + (p * (1 - p) / self.total if sampling else 0.0)
        reach = z * np.sqrt(variance)
        upper, lower = self.values + reach, self.values - reach
        i = int(np.flatnonzero(upper < p).max(initial=0))
        j = _LEAVES - int(np.flatnonzero(lower[::-1] > p).max(initial=0))
        low = np.interp(p, upper[i : i + 2], self.edges[i : i + 2])
        high = np.interp(p, lower[j - 1 : j + 1], self.edges[j - 1 : j + 1])
        return float(low), float(high)


def quantiles(answer: QueryAnswer, scale: ColumnScale, probabilities: tuple[float, ...], limits: Limits) -> list[Row]:
    """Return the quantiles; a standard error from a tree is half the interval over z, since the interval is uneven."""
    if isinstance(answer, Ranked):
        drawn, sizes = (answer.chosen[p] for p in probabilities), enumerate(answer.sums[:, 0].tolist())
        return [one.row(i, n, answer.labels[i], scale, limits) for (i, n), one in product(sizes, drawn)]
    rows = []
    for group, curve in _curves(answer, scale):
        for p in probabilities:
            item = f"{p:g}"
            if not curve.usable:
                rows.append(withheld(group, item, NO_NUMBERS))
                continue
            near, far = curve.limits(p, limits.z, False), curve.limits(p, limits.z, True)
            noise, whole = ((high - low) / (2 * limits.z) for low, high in (near, far))
            sampling = math.sqrt(max(whole**2 - noise**2, 0.0))
            rows.append(_to_whole(Row(group, item, curve.quantile(p), noise, sampling, *near, *far), scale))
    return rows


def _to_whole(row: Row, scale: ColumnScale) -> Row:
    """Return limits that reach the next whole numbers where all are whole: chosen values often lie between two."""
    if not scale.whole:
        return row
    near = min(scale.half / CANDIDATES, 0.5)  # as far as a chosen value is from the one that it stands for
    low, least = (math.floor(end + near) for end in (row.low, row.population_low))
    high, most = (math.ceil(end - near) for end in (row.high, row.population_high))
    return replace(row, low=low, high=high, population_low=least, population_high=most)


def distribution_function(answer: QueryAnswer, scale: ColumnScale, points: int, limits: Limits) -> list[Row]:
    """Return F at ``points`` + 1 even points of the range, both ends included."""
    rows = []
    for group, curve in _curves(answer, scale):
        errors = curve.errors if curve.usable else np.empty(0)
        for j in range(0, _LEAVES + 1, _LEAVES // points):
            item = scale.written(float(curve.edges[j]))
            if not curve.usable:
                rows.append(withheld(group, item, NO_NUMBERS))
                continue
            value = float(curve.values[j])
            sampling = math.sqrt(value * (1 - value) / curve.total)
            rows.append(limits.row(group, item, value, float(errors[j]), sampling, within=(0.0, 1.0)))
    return rows


def _curves(answer: QueryAnswer, scale: ColumnScale) -> list[tuple[tuple[str, ...], Distribution]]:
    noise = float(answer.noise[-1])
    return [(group, Distribution(nodes, noise, scale)) for group, nodes in zip(answer.labels, answer.sums, strict=True)]
