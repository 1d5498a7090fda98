"""Algorithms whose change under a swap of two records is known, so the swap bound needs no refitting.

The swap bound pairs a training set that holds a record x* with the same set after x* was exchanged for a random
outsider x'. For a mean the change is (x* − x')/k whatever the rest of the set: the whole law of the distance is
computed and the certificate is exact. For a quantile the change follows from two neighbouring order statistics of
each resample.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from deniable._check import FloatArray, Indices, InputError, number, numbers
from deniable._floats import EPS
from deniable.noise.blocks import Summary, blocks
from deniable.noise.coordinates import alike
from deniable.noise.evidence import ExactRows
from deniable.noise.kinds import ExactSwap
from deniable.noise.known_law import HasKnownLaw, KnownLaw, count_law, quantile_law
from deniable.noise.laws import NoiseLaw
from deniable.noise.resampling import Population

_ENTRIES = 2_000_000  # distances kept (16 MB) for the records that stand out most; the others are bounded together
_ALL_IN_ORDER = 100_000  # records above which only those that stand out are sorted
SLACK = 1 + 1e-9  # on distances and norms: far above their rounding error


class LinearStatistic(ExactSwap):
    """Mean over the records of fixed features of each record."""

    @abstractmethod
    def features(self, data: Any) -> FloatArray:
        """Return the features of each record, shape (n, *shape of the value)."""

    def records(self, data: Any) -> FloatArray:
        """Return the data as checked numbers."""
        return records_of(data)

    def __call__(self, data: Any) -> FloatArray:
        """Return the mean feature of ``data``."""
        x = self.records(data)
        one = self.features(x[:1])
        total = sum(self.features(x[rows]).sum(axis=0) for rows in blocks(len(x), one.size))
        return np.asarray(total / len(x)).reshape(one.shape[1:])

    def alike(self, data: Any) -> Indices:
        """Compare the features."""
        return alike(self._features(self.records(data)))

    def influence(self, population: Population, coordinates: Indices) -> Summary:
        """Return a summary of the centred features."""
        x = self.records(population.data)
        mean = self._mean(x)[coordinates]
        return Summary.of(part[:, coordinates] - mean for part in self._features(x))

    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return the distances ‖φ(x*) − φ(x')‖/k: exact for the records that stand out, root mean square for the rest.

        Records are ordered by the root mean square distance to the others, O(n) by the parallel axis theorem; as
        mean ≤ root mean square, the first record without a row bounds all records without one.
        """
        n, k = population.n_records, population.n_train
        x = self.records(population.data)
        mean = self._mean(x)[coordinates]
        size, square = np.zeros(len(coordinates)), []
        for part in self._features(x, coordinates):
            size += np.abs(part).sum(axis=0)
            square.append(np.sum((law.whiten(part - mean) / k) ** 2, axis=1))
        rounding = upper_distance(law, 2 * rounding_of_means(size, k))
        typical = typical_distance(np.concatenate(square))
        order, rows = outstanding(typical)
        first = np.concatenate([next(self._features(x[[i]], coordinates)) for i in order[:rows]])
        distances = distances_to_all(
            law.whiten(first) / k, (law.whiten(part) / k for part in self._features(x, coordinates))
        )
        rest = float(typical[order[rows]]) * SLACK + float(rounding) if rows < n else 0.0
        # equal records give equal sums only if they stand at the same place: rounding is charged to them, too
        return ExactRows(without_own(distances, order[:rows]) * SLACK + rounding, rest=rest)

    def _features(self, x: FloatArray, coordinates: Indices | None = None) -> Iterator[FloatArray]:
        """The features, flattened, (rows, coordinates), block by block."""
        for rows in blocks(len(x), self.features(x[:1]).size):
            part = self.features(x[rows]).reshape(rows.stop - rows.start, -1)
            whole = coordinates is None or len(coordinates) == part.shape[1]  # coordinates are in order
            yield part if whole else part[:, coordinates]

    def _mean(self, x: FloatArray) -> FloatArray:
        return np.asarray(sum(part.sum(axis=0) for part in self._features(x)) / len(x))


@dataclass(frozen=True)
class Mean(LinearStatistic):
    """Mean of each column (of the single column of one-dimensional data).

    ``bounds`` (low, high), numbers or one for each column, are public limits to which every value is clipped first: an
    outlier then costs no more than the limits allow. They must not be read off the data.
    """

    bounds: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            object.__setattr__(self, "bounds", public_limits("bounds", self.bounds))

    def features(self, data: Any) -> FloatArray:
        """Return the records themselves, within the bounds."""
        table = records_of(data)
        return table if self.bounds is None else np.asarray(np.clip(table, *self._limits(table)))

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
        x = matrix_of(data)
        return np.asarray(x[:, :, None] * x[:, None, :])

    def records(self, data: Any) -> FloatArray:
        """Return the data as a checked table."""
        return matrix_of(data)

    def alike(self, data: Any) -> Indices:
        """Compare the columns: elements are alike where both their columns are, constant where both are constant."""
        x = matrix_of(data)
        return alike_products(alike(x[rows] for rows in blocks(len(x), x.shape[1])), any_constant=False)

    def __call__(self, data: Any) -> FloatArray:
        """Return the matrix of second moments."""
        x = matrix_of(data)
        return np.asarray(x.T @ x / len(x))


@dataclass(frozen=True)
class Histogram(ExactSwap, HasKnownLaw):
    """Share of the records in each bin [edge, next edge), the last bin closed; outsiders count in no bin."""

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = numbers("edges", self.edges if np.ndim(self.edges) == 0 else list(self.edges))
        if edges.ndim != 1 or edges.size < 2 or not np.all(np.diff(edges) > 0):
            raise InputError(f"edges must be at least two increasing numbers, got {self.edges!r}")
        object.__setattr__(self, "edges", tuple(edges.tolist()))

    def __call__(self, data: Any) -> FloatArray:
        """Return the share of the records in each bin."""
        x = column_of(data)
        return np.asarray(self._counts(x)[:-1] / len(x))

    def alike(self, data: Any) -> Indices:
        """No two bins agree on every training part unless they are empty; an empty or a full bin is constant."""
        counts = self._counts(column_of(data))
        constant = (counts == 0) | (counts == counts.sum())
        return np.where(constant, -1, np.arange(counts.size))[:-1]

    def influence(self, population: Population, coordinates: Indices) -> Summary:
        """Indicators have mean p: 2p(1−p), max(p, 1−p) and p(1−p)."""
        share = self(population.data)[coordinates]
        spread = share * (1 - share)
        return Summary(2 * spread, np.maximum(share, 1 - share), spread)

    def units(self, influence: Summary) -> FloatArray:
        """All bins count in the same unit, a share of the records."""
        return np.full(influence.square.size, float(np.sqrt(np.mean(influence.square))))

    def known_laws(self, population: Population) -> list[KnownLaw]:
        """Counts over random training parts are hypergeometric: one law for each bin that varies."""
        n, k = population.n_records, population.n_train
        counts = self._counts(column_of(population.data))
        if counts.size == 2:
            return [count_law(n, k, int(counts[0]))]
        return [count_law(n, k, int(count)) for count in np.unique(counts[counts > 0])]

    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return the law of the distance for a record of each bin, and for one in none: partners by their bins."""
        n, k = population.n_records, population.n_train
        counts = self._counts(column_of(population.data))
        some = np.flatnonzero(counts)  # the last place is "in no bin"
        white = law.whiten(np.eye(counts.size)[some][:, coordinates]) / k
        rounding = upper_distance(law, 4 * EPS * np.ones(len(coordinates)))  # counts are exact, quotients are not
        chances = (counts[some] - np.eye(some.size)) / (n - 1)
        return ExactRows(cdist(white, white) * SLACK + rounding, weights=chances)

    def _counts(self, x: FloatArray) -> FloatArray:
        """Number of records in each bin, then in none."""
        edges = np.array(self.edges)
        bins = edges.size - 1
        total = np.zeros(bins + 1)
        for rows in blocks(len(x), 1):
            part = x[rows]
            cell = np.where(part == edges[-1], bins - 1, np.searchsorted(edges, part, side="right") - 1)
            total += np.bincount(np.where(cell < 0, bins, cell), minlength=bins + 1)
        return total


@dataclass(frozen=True)
class Quantile(HasKnownLaw):
    """The ``q``-quantile of one column: the ⌈qn⌉-th smallest value (NumPy's method "inverted_cdf")."""

    q: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", number("q", self.q, at_least=0.0, at_most=1.0))

    def __call__(self, data: Any) -> FloatArray:
        """Return the quantile of ``data``, shape (1,)."""
        x = np.sort(column_of(data))
        return x[[self._rank(len(x))]]

    def known_laws(self, population: Population) -> list[KnownLaw]:
        """Return the law of the record that is the quantile of a random training part."""
        k = population.n_train
        return [quantile_law(np.sort(column_of(population.data)), k, self._rank(k) + 1)]

    def alike(self, data: Any) -> Indices:
        """Constant only where all records are equal."""
        return alike([column_of(data)[:, None]])

    def _rank(self, size: int) -> int:
        place = self.q * size - 1e-9  # 0.07·100 is 7.000000000000001 in doubles, and the rank is 7
        return min(max(int(np.ceil(place)), 1), size) - 1


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
    hint = "drop its record, or use release_statistics, which knows missing cells"
    array = numbers(name, data, hint=hint)
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} must be finite numbers, got an infinite one; clip it or drop its record")
    return array


def alike_products(first: Indices, *, any_constant: bool) -> Indices:
    """Return what each element of a matrix of products is a copy of, from the same of the columns (−1: constant).

    Products of two constant columns are constant; with ``any_constant``, products with one constant column too.
    """
    d, constant = len(first), first < 0
    of = np.where(constant, np.arange(d), first)
    fixed = (np.logical_or if any_constant else np.logical_and).outer(constant, constant)
    return np.where(fixed, -1, d * np.minimum.outer(of, of) + np.maximum.outer(of, of)).ravel()


def typical_distance(square: FloatArray) -> FloatArray:
    """Root mean square distance of each record to the others, from its squared distance to their mean."""
    n = len(square)
    return np.asarray(np.sqrt((n * square + square.sum()) / (n - 1)))


def outstanding(typical: FloatArray) -> tuple[Indices, int]:
    """Return the records by how far they stand out, farthest first, and how many of them get rows of their own."""
    n = len(typical)
    rows = min(n, max(1, _ENTRIES // n))
    if n > _ALL_IN_ORDER:  # the first few in order, the others as they come
        first = np.argpartition(-typical, rows)[: rows + 1]
        return first[np.argsort(-typical[first])], rows
    return np.argsort(-typical), rows


def distances_to_all(white: FloatArray, parts: Iterable[FloatArray]) -> FloatArray:
    """Distance of each row to each row of the parts."""
    return np.hstack([cdist(white, part) for part in parts])


def without_own(distances: FloatArray, records: Indices) -> FloatArray:
    """Take the distance of each of these records to itself out of its row."""
    others = np.ones(distances.shape, dtype=bool)
    others[np.arange(len(records)), records] = False
    return distances[others].reshape(len(records), -1)


def rounding_of_means(size: FloatArray, k: int) -> FloatArray:
    """Bound the rounding of the mean of any k of some terms, and of scaling it, given Σ|terms|: γₖ·Σ|terms|/k."""
    return np.asarray((k + 4) * EPS * size / k)


def upper_distance(law: NoiseLaw, size: FloatArray) -> FloatArray:
    """Distance of a difference of which only the absolute values of the coordinates are bounded."""
    if law.factor.ndim == 1:
        return law.distance(size)
    return np.asarray(law.stretch * np.linalg.norm(size, axis=-1))


def records_of(data: Any) -> FloatArray:
    """Return the data as finite numbers."""
    return finite("data", data)


def matrix_of(data: Any) -> FloatArray:
    """Return the data as a table (n, d) of finite numbers."""
    x = records_of(data)
    if x.ndim != 2:
        raise InputError(f"data must be a table (n, d), got shape {x.shape}")
    return x


def column_of(data: Any) -> FloatArray:
    """Return the data as one column of finite numbers."""
    x = records_of(data)
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.ndim != 1:
        raise InputError(f"data must be one column, got shape {x.shape}")
    return x
