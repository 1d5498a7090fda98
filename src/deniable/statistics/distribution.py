"""Distribution functions from noisy trees: quantiles, trimmed means, the distribution function itself."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import isotonic_regression

from deniable._check import FloatArray
from deniable.statistics.estimates import FEW, TOO_FEW, Limits, QueryAnswer, withheld
from deniable.statistics.grammar import ColumnScale
from deniable.statistics.queries import DEPTH
from deniable.statistics.released import Row

_LEAVES = 2**DEPTH


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

    def noise_of(self, weights: FloatArray) -> float:
        """Standard deviation of Σ weights_j·F(edge_j), the noise of the total included."""
        leaves = np.cumsum(weights[:0:-1])[::-1] - weights @ self.values  # Σ_{edges right of a leaf} − Σ w·F
        return math.sqrt(max(float(leaves @ self._covariance @ leaves), 0.0)) / self.total

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
        """Return the edges outside of which F differs from p by more than z standard errors."""
        variance = self.errors**2 + (p * (1 - p) / self.total if sampling else 0.0)
        reach = z * np.sqrt(variance)
        below = np.flatnonzero(self.values < p - reach)
        above = np.flatnonzero(self.values > p + reach)
        low = self.edges[below[-1]] if below.size else self.edges[0]
        high = self.edges[above[0]] if above.size else self.edges[-1]
        return float(low), float(high)


def quantiles(answer: QueryAnswer, scale: ColumnScale, probabilities: tuple[float, ...], limits: Limits) -> list[Row]:
    """Return the quantiles; a standard error from a tree is half the interval over z, since the interval is uneven."""
    rows = []
    for place, (group, curve) in enumerate(_curves(answer, scale)):
        for p in probabilities:
            item = f"{p:g}"
            if not curve.usable:
                rows.append(withheld(group, item, FEW))
                continue
            near, far = curve.limits(p, limits.z, False), curve.limits(p, limits.z, True)
            if p in answer.chosen:
                value = scale.centre + scale.half * float(answer.chosen[p][place])
                rows.append(_chosen(group, p, value, answer.rank_noise[p] / curve.total, curve, near, far))
                continue
            noise, whole = ((high - low) / (2 * limits.z) for low, high in (near, far))
            sampling = math.sqrt(max(whole**2 - noise**2, 0.0))
            rows.append(Row(group, item, curve.quantile(p), noise, sampling, *near, *far))
    return rows


def _chosen(
    group: tuple[str, ...],
    p: float,
    value: float,
    rank: float,
    curve: Distribution,
    near: tuple[float, float],
    far: tuple[float, float],
) -> Row:
    """Return a chosen quantile: errors of its rank times the slope of the tree's quantiles, limits from the tree.

    Over less than two standard errors of the tree a slope is noise.
    """
    reach = max(rank, 2 * float(np.interp(p, curve.values, curve.errors)))
    above, below = min(p + reach, 1.0), max(p - reach, 0.0)
    slope = (curve.quantile(above) - curve.quantile(below)) / (above - below)
    sampling = math.sqrt(p * (1 - p) / curve.total) * slope
    low, high, low_all, high_all = min(near[0], value), max(near[1], value), min(far[0], value), max(far[1], value)
    return Row(group, f"{p:g}", value, rank * slope, sampling, low, high, low_all, high_all)


def distribution_function(answer: QueryAnswer, scale: ColumnScale, points: int, limits: Limits) -> list[Row]:
    """Return F at ``points`` + 1 even points of the range, both ends included."""
    rows = []
    for group, curve in _curves(answer, scale):
        errors = curve.errors if curve.usable else np.empty(0)
        for j in range(0, _LEAVES + 1, _LEAVES // points):
            item = scale.written(float(curve.edges[j]))
            if not curve.usable:
                rows.append(withheld(group, item, FEW))
                continue
            value = float(curve.values[j])
            sampling = math.sqrt(value * (1 - value) / curve.total)
            rows.append(limits.row(group, item, value, float(errors[j]), sampling, within=(0.0, 1.0)))
    return rows


def trimmed_means(answer: QueryAnswer, scale: ColumnScale, cut: float, limits: Limits) -> list[Row]:
    """Return the mean of what lies between the quantiles ``cut`` and 1 − ``cut``.

    To first order it changes by −∫ dF(x) dx/(1 − 2·cut) over the values in between, so its errors are those of a sum of
    F at the edges there. Values within a leaf, a 256th of the range, count as spread over it evenly.
    """
    rows = []
    for group, curve in _curves(answer, scale):
        if not curve.usable:
            rows.append(withheld(group, "", FEW))
            continue
        F = curve.values
        low, high = np.clip(F[:-1], cut, 1 - cut), np.clip(F[1:], cut, 1 - cut)  # the mass that each leaf keeps
        width = curve.edges[1] - curve.edges[0]
        whole = np.where(F[1:] > F[:-1], F[1:] - F[:-1], 1.0)
        middle = curve.edges[:-1] + width * ((low + high) / 2 - F[:-1]) / whole
        value = float(np.sum((high - low) * middle) / (1 - 2 * cut))
        weights = np.where((cut < F) & (cut < 1 - F), -width / (1 - 2 * cut), 0.0)
        smaller = np.minimum.outer(F, F) - np.outer(F, F)
        sampling = math.sqrt(max(float(weights @ smaller @ weights), 0.0) / curve.total)
        rows.append(limits.row(group, "", value, curve.noise_of(weights), sampling, within=(scale.low, scale.high)))
    return rows


def _curves(answer: QueryAnswer, scale: ColumnScale) -> list[tuple[tuple[str, ...], Distribution]]:
    noise = float(answer.noise[-1])
    return [(group, Distribution(nodes, noise, scale)) for group, nodes in zip(answer.labels, answer.sums, strict=True)]
