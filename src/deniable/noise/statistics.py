"""Algorithms whose change under a swap of two records is known, so that the swap bound needs no refitting.

The swap bound pairs a training set that holds a record x* with the same set after x* was exchanged for a random
outsider x'. For a mean the change is (x* − x')/k whatever the rest of the set: the whole law of the distance is
computed and the certificate is exact. For a quantile the change follows from two neighbouring order statistics of
each resample.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from deniable._check import FloatArray, Indices, InputError, integer, number, numbers
from deniable._floats import EPS
from deniable.noise.blocks import blocks, column_sums, columns_of
from deniable.noise.evidence import ExactRows
from deniable.noise.kinds import BoundedStatistic, ExactSwap, ResampledSwap, Sensitivity
from deniable.noise.laws import NoiseLaw
from deniable.noise.resampling import Population

_ENTRIES = 2_000_000  # distances kept for the records that stand out most; the others are bounded together
_SLACK = 1 + 1e-9


class LinearStatistic(ExactSwap):
    """Mean over the records of fixed features of each record."""

    @abstractmethod
    def features(self, data: Any) -> FloatArray:
        """Return the features of each record, shape (n, *shape of the value)."""

    def __call__(self, data: Any) -> FloatArray:
        """Return the mean feature of ``data``."""
        return np.asarray(self.features(data).mean(axis=0))

    def signature(self, data: Any) -> FloatArray:
        """Return the features."""
        features = self.features(data)
        return features.reshape(len(features), -1)

    def influence(self, population: Population) -> FloatArray:
        """Return the centred features."""
        features = self.signature(population.data)
        return np.asarray(features - features.mean(axis=0))

    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return the distances ‖φ(x*) − φ(x')‖/k: exact for the records that stand out, root mean square for the rest.

        Records are ordered by the root mean square distance to the others, O(n) by the parallel axis theorem; as
        mean ≤ root mean square, the first record without a row bounds all records without one.
        """
        n, k = population.n_records, population.n_train
        features = columns_of(self.features(population.data).reshape(n, -1), coordinates)
        rounding = _upper_distance(law, 2 * _rounding(features, k))
        mean = features.mean(axis=0)
        square = np.concatenate([(((law.whiten(features[b] - mean)) / k) ** 2).sum(axis=1) for b in blocks(n)])
        typical = np.sqrt((n * square + square.sum()) / (n - 1))
        order = np.argsort(-typical)
        rows = min(n, max(1, _ENTRIES // n))
        outstanding = law.whiten(features[order[:rows]]) / k
        distances = np.hstack([cdist(outstanding, law.whiten(features[b]) / k) for b in blocks(n)])
        others = np.ones((rows, n), dtype=bool)
        others[np.arange(rows), order[:rows]] = False
        distances = distances[others].reshape(rows, n - 1)
        rest = float(typical[order[rows]]) * _SLACK + float(rounding) if rows < n else 0.0
        # equal records give equal sums only if they stand at the same place: rounding is charged to them, too
        return ExactRows(distances * _SLACK + rounding, rest=rest)


@dataclass(frozen=True)
class Mean(LinearStatistic, BoundedStatistic):
    """Mean of each column (of the single column of one-dimensional data).

    ``bounds`` (low, high), numbers or one for each column, are public limits to which every value is clipped first: an
    outlier then costs no more than the limits allow, and plain differential privacy becomes possible. They must not be
    read off the data.
    """

    bounds: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            object.__setattr__(self, "bounds", public_limits("bounds", self.bounds))

    def features(self, data: Any) -> FloatArray:
        """Return the records themselves, within the bounds."""
        table = _table(data)
        return table if self.bounds is None else np.asarray(np.clip(table, *self._limits(table)))

    def sensitivity(self, data: Any, n: int) -> Sensitivity | None:
        """Each column changes by (high − low)/n at most, so with noise in proportion the distance is √d."""
        if self.bounds is None:
            return None
        table = _table(data)
        low, high = (np.broadcast_to(end, table.shape[1:]).ravel() for end in self._limits(table))
        width = high - low
        relative = 2 * n * (n + 8) * EPS * np.maximum(np.abs(low), np.abs(high)) / width  # rounding of two sums
        distance = float(np.linalg.norm(1 + relative))
        return Sensitivity(table.shape[1:], width / n, distance, width)

    def _limits(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = (np.asarray(end, dtype=np.float64) for end in self.bounds or (-np.inf, np.inf))
        if low.ndim and low.shape != table.shape[1:]:
            raise InputError(f"bounds must be two numbers, or one pair for each column, got {self.bounds!r}")
        return low, high


@dataclass(frozen=True)
class SecondMoment(LinearStatistic):
    """(1/n) Σ x xᵀ, the matrix of Izzo et al. §5.2: the covariance of data known to have mean zero."""

    def features(self, data: Any) -> FloatArray:
        """Return x xᵀ for each record."""
        x = _matrix(data)
        return np.asarray(x[:, :, None] * x[:, None, :])

    def __call__(self, data: Any) -> FloatArray:
        """Return the matrix of second moments."""
        x = _matrix(data)
        return np.asarray(x.T @ x / len(x))


@dataclass(frozen=True)
class Histogram(LinearStatistic, BoundedStatistic):
    """Share of the records in each bin [edge, next edge), the last bin closed; outsiders count in no bin."""

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = numbers("edges", list(self.edges))
        if edges.ndim != 1 or edges.size < 2 or not np.all(np.diff(edges) > 0):
            raise InputError(f"edges must be at least two increasing numbers, got {self.edges!r}")
        object.__setattr__(self, "edges", tuple(edges.tolist()))

    def features(self, data: Any) -> FloatArray:
        """Return the indicator of each bin for each record."""
        x = _column(data)
        edges = np.array(self.edges)
        cell = np.where(x == edges[-1], len(edges) - 2, np.searchsorted(edges, x, side="right") - 1)
        return np.asarray(cell[:, None] == np.arange(len(edges) - 1), dtype=np.float64)

    def units(self, influence: FloatArray) -> FloatArray:
        """All bins count in the same unit, a share of the records."""
        return np.full(influence.shape[1], float(np.sqrt(np.mean(influence**2))))

    def sensitivity(self, data: Any, n: int) -> Sensitivity:
        """A replaced record leaves one bin and enters another: 1/n each, so √2/n in all."""
        bins = len(self.edges) - 1
        distance = float(np.sqrt(min(bins, 2))) * (1 + 4 * n * EPS)  # counts are exact, only the quotient is rounded
        return Sensitivity((bins,), np.full(bins, 1 / n), distance, np.ones(bins))


@dataclass(frozen=True)
class Covariance(ExactSwap):
    """Covariance matrix, divisor n − ``ddof``; with ``with_mean`` the mean, then the matrix row by row, as a vector."""

    ddof: int = 1
    with_mean: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ddof", integer("ddof", self.ddof, at_least=0))

    def __call__(self, data: Any) -> FloatArray:
        """Return the covariance matrix of ``data``."""
        x = _matrix(data)
        if len(x) <= self.ddof:
            raise InputError(f"data must have more records than ddof={self.ddof}, got {len(x)}")
        mean = x.mean(axis=0)
        centred = x - mean
        matrix = np.asarray(centred.T @ centred / (len(x) - self.ddof))
        return np.concatenate([mean, matrix.ravel()]) if self.with_mean else matrix

    def signature(self, data: Any) -> FloatArray:
        """Return uᵢuⱼ + uᵢ + uⱼ where both columns vary, u = x − mean(D), else 0; beside the columns for the mean."""
        u = self._centred(data)
        varies = np.any(u != 0, axis=0)
        both = u[:, :, None] * u[:, None, :] + (u[:, :, None] + u[:, None, :])  # the same bits for (i, j) and (j, i)
        matrix = np.asarray((both * (varies[:, None] & varies)).reshape(len(u), -1))
        if not self.with_mean:
            return matrix
        together = np.hstack([_matrix(data), matrix])
        another = together[:1].copy()  # a row in which no mean is equal to an element of the matrix
        another[0, : len(varies)] += varies * (1 + np.abs(another[0, : len(varies)]))
        return np.vstack([together, another])

    def influence(self, population: Population) -> FloatArray:
        """Return |uᵢuⱼ − mean| plus the part that goes through the mean of the training set."""
        u = self._centred(population.data)
        products = u[:, :, None] * u[:, None, :]
        drift = self._mean_deviation(u, population)
        through_mean = np.abs(u)[:, :, None] * drift + np.abs(u)[:, None, :] * drift[:, None]
        size = (np.abs(products - products.mean(axis=0)) + through_mean).reshape(len(u), -1)
        return np.hstack([np.abs(u), size]) if self.with_mean else np.asarray(size)

    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return bounds on the mean swap distance of each pair.

        With C the k − 1 records that stay, m_C their mean and δ = m_C − mean(D), the change is c·[(uuᵀ − u'u'ᵀ)
        − (vδᵀ + δvᵀ)], u = x* − mean(D), v = x* − x', c = (k−1)/(k(k−ddof)). The first bracket is fixed; the second
        is bounded by its root mean square over C, coordinate by coordinate, from the variance of a sample mean
        without replacement. The mean changes by v/k.
        """
        n, k = population.n_records, population.n_train
        if k <= max(self.ddof, 1):
            raise InputError(f"the covariance of {k} training records is not defined; use more data or fraction")
        c = (k - 1) / (k * (k - self.ddof))
        x = _matrix(population.data)
        u = self._centred(x)
        d = u.shape[1]
        of_matrix = coordinates - d * self.with_mean
        means, of_matrix = coordinates[of_matrix < 0], of_matrix[of_matrix >= 0]  # the coordinates are in order
        a, b = np.unravel_index(of_matrix, (d, d))
        deviation = self._mean_deviation(u, population)
        rounding = _upper_distance(law, 2 * self._rounding(x, u, k)[coordinates + d * (not self.with_mean)])

        def correction(size: FloatArray) -> FloatArray:
            """Bound the distance of c(vδᵀ + δvᵀ) given |u| + |u'|, shape (..., d)."""
            drift = size / (n - 2) + deviation
            through_mean = c * (size[..., a] * drift[..., b] + drift[..., a] * size[..., b])
            return _upper_distance(law, np.concatenate([np.zeros((*size.shape[:-1], len(means))), through_mean], -1))

        white = law.whiten(np.hstack([u[:, means] / k, c * u[:, a] * u[:, b]]))
        typical = _typical_distance(white)
        order = np.argsort(-typical)
        rows = min(n, max(1, _ENTRIES // n))
        distances = np.stack(
            [np.delete(cdist(white[[i]], white)[0] + correction(np.abs(u[i]) + np.abs(u)), i) for i in order[:rows]]
        )
        rest = 0.0
        if rows < n:
            rest = float(typical[order[rows]] + correction(2 * np.abs(u).max(axis=0))) * _SLACK + float(rounding)
        return ExactRows(distances * _SLACK + rounding, rest=rest, averaged=True)

    @staticmethod
    def _centred(data: Any) -> FloatArray:
        x = _matrix(data)
        return np.asarray(x - x.mean(axis=0))

    @staticmethod
    def _mean_deviation(u: FloatArray, population: Population) -> FloatArray:
        """Bound the root mean square of mean(C) − mean(D without x*, x') per column, C of k − 1 of those n − 2."""
        n, k = population.n_records, population.n_train
        return np.asarray(np.sqrt((u**2).sum(axis=0) / (n - 3) * (n - k - 1) / (max(k - 1, 1) * (n - 2))))

    def _rounding(self, x: FloatArray, u: FloatArray, k: int) -> FloatArray:
        """Bound the rounding of the mean (d) and of the matrix (d²) of any k records.

        |x − mean| averages at most 2Σ|u|/k over them, and its square at most Σu²/k.
        """
        mean = _rounding(x, k)
        off = mean + EPS * np.abs(x).max(axis=0)  # of each centred value
        size, square = 2 * np.abs(u).sum(axis=0) / k + off, (u**2).sum(axis=0) / k + off**2
        matrix = size[:, None] * off + off[:, None] * size + (k + 4) * EPS * np.sqrt(np.outer(square, square))
        return np.concatenate([mean, k / (k - self.ddof) * matrix.ravel()])


@dataclass(frozen=True)
class Quantile(ResampledSwap):
    """The ``q``-quantile of one column: the ⌈qn⌉-th smallest value (NumPy's method "inverted_cdf")."""

    q: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", number("q", self.q, at_least=0.0, at_most=1.0))

    def __call__(self, data: Any) -> FloatArray:
        """Return the quantile of ``data``, shape (1,)."""
        x = np.sort(_column(data))
        return x[[self._rank(len(x))]]

    def swap_distances(
        self,
        population: Population,
        inside: Indices,
        law: NoiseLaw,
        coordinates: Indices,
        partners: int,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return swap distances: after one record left, the quantile is the newcomer clamped to its two neighbours."""
        x = _column(population.data)
        n, k = population.n_records, population.n_train
        member = np.zeros(n, dtype=bool)
        member[inside] = True
        leaving, entering = swap_partners(member, partners, rng)
        order = inside[np.argsort(x[inside], kind="stable")]
        position = np.full(n, k)
        position[order] = np.arange(k)
        rank = self._rank(k)
        padded = np.concatenate([[-np.inf], x[order], [np.inf]])  # padded[r + 1] is the r-th smallest, from 0
        gone = position[leaving]
        low = padded[np.where(gone <= rank - 1, rank + 1, rank)]  # neighbours once the leaving record is taken out
        high = padded[np.where(gone <= rank, rank + 2, rank + 1)]
        after, before = np.clip(x[entering], low, high), x[order[rank]]
        rounding = law.distance(2 * EPS * np.abs(x).max(keepdims=True))
        return np.where(after == before, 0.0, law.distance((after - before)[..., None]) + rounding)

    def _rank(self, size: int) -> int:
        return min(max(int(np.ceil(self.q * size - 1e-9)), 1), size) - 1


def public_limits(name: str, pair: Any) -> tuple[Any, Any]:
    """Return (low, high) as numbers or tuples of numbers, with low < high."""
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a pair (low, high), got {pair!r}") from None
    ends = tuple(numbers(name, end) for end in (low, high))
    if not (np.all(np.isfinite(ends[0])) and np.all(np.isfinite(ends[1])) and np.all(ends[0] < ends[1])):
        raise InputError(f"{name} must be finite with low < high, got {pair!r}")
    plain = tuple(float(end) if end.ndim == 0 else tuple(end.ravel().tolist()) for end in ends)
    return plain[0], plain[1]


def finite(name: str, data: Any) -> FloatArray:
    """Return ``data`` as finite floats."""
    array = numbers(name, data)
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} must be finite numbers, got an infinite one; clip it or drop its record")
    return array


def swap_partners(member: Any, partners: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Return (leaving, entering) record numbers of shape (n, partners): row i swaps record i with random partners."""
    n = len(member)
    own = np.broadcast_to(np.arange(n)[:, None], (n, partners))
    inside, outside = np.flatnonzero(member), np.flatnonzero(~member)
    leaving = np.where(member[:, None], own, inside[rng.integers(len(inside), size=(n, partners))])
    entering = np.where(member[:, None], outside[rng.integers(len(outside), size=(n, partners))], own)
    return leaving, entering


def _typical_distance(white: FloatArray) -> FloatArray:
    """Root mean square distance of each row to the other rows."""
    n = len(white)
    square = ((white - white.mean(axis=0)) ** 2).sum(axis=1)
    return np.asarray(np.sqrt((n * square + square.sum()) / (n - 1)))


def _rounding(terms: FloatArray, k: int) -> FloatArray:
    """Bound the rounding of the mean of any k of these terms, and of scaling it, per column: γₖ·Σ|terms|/k."""
    return np.asarray((k + 4) * EPS * column_sums(np.abs, terms) / k)


def _upper_distance(law: NoiseLaw, size: FloatArray) -> FloatArray:
    """Distance of a difference of which only the absolute values of the coordinates are bounded."""
    if law.factor.ndim == 1:
        return law.distance(size)
    return np.asarray(law.stretch * np.linalg.norm(size, axis=-1))


def _table(data: Any) -> FloatArray:
    return finite("data", data)


def _matrix(data: Any) -> FloatArray:
    x = _table(data)
    if x.ndim != 2:
        raise InputError(f"data must be a table (n, d), got shape {x.shape}")
    return x


def _column(data: Any) -> FloatArray:
    x = _table(data)
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.ndim != 1:
        raise InputError(f"data must be one column, got shape {x.shape}")
    return x
