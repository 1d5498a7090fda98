"""Algorithms whose change under a swap of two records is known, so the swap bound needs no refitting.

The swap bound pairs a training set that holds a record x* with the same set after x* was exchanged for a random
outsider x'. For a mean the change is (x* − x')/k whatever the rest of the set: the whole law of the distance is
computed and the certificate is exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from scipy.spatial.distance import cdist

from deniable._check import FloatArray, Indices, InputError, numbers
from deniable._floats import EPS
from deniable.noise import NoiseLaw
from deniable.releases.coordinates import Summary, alike, blocks
from deniable.releases.evidence import ExactRows
from deniable.releases.resampling import Population

_ENTRIES = 2_000_000  # distances kept (16 MB) for the records that stand out most; the others are bounded together
SLACK = 1 + 1e-9  # on distances and norms: far above their rounding error


class ExactSwap(ABC):
    """An algorithm whose swap distances are known without any resampling."""

    @abstractmethod
    def __call__(self, data: Any) -> FloatArray:
        """Return the statistic of ``data``."""

    @abstractmethod
    def alike(self, data: Any) -> Indices:
        """Return, for each coordinate of the flattened value, the first one that it is a copy of; −1: a constant."""

    @abstractmethod
    def influence(self, population: Population, coordinates: Indices) -> Summary:
        """Return what the influences of the records on these coordinates are like, to shape the noise by."""

    def units(self, influence: Summary) -> FloatArray:
        """Return the unit in which an error of each coordinate counts: by default its own spread over the records."""
        spread = np.sqrt(influence.square)
        return np.asarray(np.maximum(spread, 1e-9 * spread.max(initial=0.0)))

    @abstractmethod
    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return the swap distances of every record under ``law`` (scale 1), on these coordinates of the value."""


def swaps_known(algorithm: Any) -> TypeGuard[ExactSwap]:
    """Return whether the swap distances are those of a class of this file; a subclass may compute something else."""
    return isinstance(algorithm, ExactSwap) and type(algorithm).__module__ == __name__


class LinearStatistic(ExactSwap):
    """Mean over the records of fixed features of each record."""

    @abstractmethod
    def features(self, data: Any) -> FloatArray:
        """Return the features of each record, shape (n, *shape of the value)."""

    def records(self, data: Any) -> FloatArray:
        """Return the data as checked numbers."""
        return finite("data", data)

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
        rounding = law.distance(2 * (k + 4) * EPS * size / k)  # of the mean of any k: γₖ·Σ|terms|/k
        squares = np.concatenate(square)
        typical = np.sqrt((n * squares + squares.sum()) / (n - 1))
        order, rows = np.argsort(-typical), min(n, max(1, _ENTRIES // n))
        first = np.concatenate([next(self._features(x[[i]], coordinates)) for i in order[:rows]])
        white = law.whiten(first) / k
        distances = np.hstack([cdist(white, law.whiten(part) / k) for part in self._features(x, coordinates)])
        rest = float(typical[order[rows]]) * SLACK + float(rounding) if rows < n else 0.0
        # equal records give equal sums only if they stand at the same place: rounding is charged to them, too
        others = np.ones(distances.shape, dtype=bool)
        others[np.arange(rows), order[:rows]] = False
        return ExactRows(distances[others].reshape(rows, -1) * SLACK + rounding, rest=rest)

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

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> rows = np.random.default_rng(0).normal(size=(500, 2))
    >>> kinds = [dn.releases.Mean(), dn.releases.SecondMoment()]
    >>> [dn.release(kind, rows, advantage=0.2, bound="swap").value.size for kind in kinds]
    [2, 4]
    >>> dn.release(dn.releases.Histogram((-5.0, 0.0, 5.0)), rows[:, :1], advantage=0.2, bound="swap").value.size
    2
    """

    bounds: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            object.__setattr__(self, "bounds", public_limits("bounds", self.bounds))

    def features(self, data: Any) -> FloatArray:
        """Return the records themselves, within the bounds."""
        table = finite("data", data)
        low, high = (np.asarray(end) for end in self.bounds or (-np.inf, np.inf))
        if low.ndim and low.shape != table.shape[1:]:
            raise InputError(f"bounds must be two numbers, or one pair for each column, got {self.bounds!r}")
        return np.asarray(np.clip(table, low, high))


@dataclass(frozen=True)
class SecondMoment(LinearStatistic):
    """(1/n) Σ x xᵀ, the matrix of Izzo et al. §5.2: the covariance of data known to have mean zero.

    Examples
    --------
    See ``Mean``.
    """

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
        first = alike(x[rows] for rows in blocks(len(x), x.shape[1]))
        d, constant = len(first), first < 0
        of = np.where(constant, np.arange(d), first)
        copies = d * np.minimum.outer(of, of) + np.maximum.outer(of, of)
        return np.where(np.logical_and.outer(constant, constant), -1, copies).ravel()

    def __call__(self, data: Any) -> FloatArray:
        """Return the matrix of second moments."""
        x = matrix_of(data)
        return np.asarray(x.T @ x / len(x))


@dataclass(frozen=True)
class Histogram(ExactSwap):
    """Share of the records in each bin [edge, next edge), the last bin closed; outsiders count in no bin.

    Examples
    --------
    See ``Mean``.
    """

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

    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return the law of the distance for a record of each bin, and for one in none: partners by their bins."""
        n, k = population.n_records, population.n_train
        counts = self._counts(column_of(population.data))
        some = np.flatnonzero(counts)  # the last place is "in no bin"
        white = law.whiten(np.eye(counts.size)[some][:, coordinates]) / k
        rounding = law.distance(4 * EPS * np.ones(len(coordinates)))  # counts are exact, quotients are not
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


def matrix_of(data: Any) -> FloatArray:
    """Return the data as a table (n, d) of finite numbers."""
    x = finite("data", data)
    if x.ndim != 2:
        raise InputError(f"data must be a table (n, d), got shape {x.shape}")
    return x


def column_of(data: Any) -> FloatArray:
    """Return the data as one column of finite numbers."""
    x = finite("data", data)
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.ndim != 1:
        raise InputError(f"data must be one column, got shape {x.shape}")
    return x
