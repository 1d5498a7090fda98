"""What is asked of the records: sums of whole numbers, group by group, and how far one record can move them.

Every statistic is computed from such sums alone. A query gives each record a vector φ in one group. Its noise has
standard deviation s·w_j in coordinate j, with weights w fixed beforehand; adding or removing a record then costs μ =
max ‖φ/w‖/s, replacing it by any other max ‖(φ − φ′)/w‖/s, where records in different groups count with both: ‖φ/w‖² +
‖φ′/w‖². Numbers are between −1 and 1 (u below) and are rounded to the lattice, by which a record that is added, and a
difference of two, moves by at most one step in each coordinate: charged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.statistics.grammar import Statistic
from deniable.statistics.records import LATTICE, ColumnScale, Records, group_sums

OF_TREE = 0.2  # share of μ² of chosen quantiles that goes to the tree behind their error bars
MOST_RANKS = 9  # quantiles of a column that are chosen one by one; a tree answers all of them at once
DEPTH = 8  # of the trees behind distribution functions: 2⁸ leaves
CANDIDATES = 2**15  # for chosen quantiles, in half a range: more would blur a value that many records share
_BINS = {"histogram": 10.0, "survival": 20.0}
_ABSENT = 0.75  # relative noise of the count of missing cells beside moments, at which it costs nothing
_EXACT = 11 / 4  # 1/w² of squares that matter, which costs nothing where a record is replaced: see Moments.squares


@dataclass(frozen=True)
class Query(ABC):
    """Sums that several statistics may share; equal queries are asked once."""

    by: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Numeric columns that are needed."""
        return ()

    @property
    def unit(self) -> int:
        """Whole steps that stand for 1."""
        return 1

    def answers(self, other: Query) -> bool:
        """Whether these sums hold those of ``other``."""
        return False

    @abstractmethod
    def weights(self) -> FloatArray:
        """Return the relative noise of each coordinate."""

    @abstractmethod
    def squares(self) -> tuple[float, float]:
        """Return the largest ‖φ/w‖² of a record, and ‖(φ − φ′)/w‖² of any two, before rounding to the lattice."""

    @abstractmethod
    def sums(self, records: Records) -> IntArray:
        """Return the sums (groups, coordinates), whole steps."""

    def lengths(self) -> tuple[float, float]:
        """Return how far adding or removing a record moves the sums over w, and replacing one, rounded up."""
        steps = float(np.sqrt(np.sum(self.weights() ** -2.0))) / self.unit if self.unit > 1 else 0.0
        added, replaced = ((math.sqrt(square) + steps) * (1 + MANY_ROUNDINGS) for square in self.squares())
        return added, replaced

    def _counts(self, records: Records, kept: NDArray[np.bool_]) -> tuple[IntArray, IntArray, int]:
        """Return the groups of the records that are ``kept`` (−1: others), their counts, how many groups there are."""
        codes, size = records.groups(self.by)
        codes = np.where(kept, codes, -1)
        return codes, np.bincount(codes[codes >= 0], minlength=size).astype(np.int64), size

    def __str__(self) -> str:
        what = f"{type(self).__name__.lower()}({', '.join(self.columns)})"
        return f"{what} by {', '.join(self.by)}" if self.by else what


@dataclass(frozen=True)
class CellCounts(Query):
    """Counts of records: in each group, or in each interval [edge, next edge) of a column, the last one closed.

    With ``event`` (0 or 1) the column holds times and each interval, now (edge, next edge], has two cells: without and
    with the event. Times beyond the last edge are censored there; those up to the first edge are in the first interval.
    """

    column: str | None = None
    edges: tuple[float, ...] = ()
    event: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that is cut into intervals, and the event."""
        return tuple(name for name in (self.column, self.event) if name is not None)

    def weights(self) -> FloatArray:
        """All cells alike."""
        return np.ones(max(len(self.edges) - 1, 1) * (1 if self.event is None else 2))

    def squares(self) -> tuple[float, float]:
        """A record is in one cell at most; a replaced one leaves one and enters another, unless there is but one."""
        return 1.0, 0.0 if self == CellCounts(()) else 2.0

    def sums(self, records: Records) -> IntArray:
        """Return the counts."""
        codes, size = records.groups(self.by)
        cells = len(self.weights())
        if self.column is not None:
            place, inside = self._place(records.numbers[self.column])
            if self.event is not None:
                happened = (records.numbers[self.event] > 0) & (records.numbers[self.column] <= self.edges[-1])
                place = 2 * place + happened
            codes = np.where(inside & records.present(self.columns), codes * cells + place, -1)
        return np.bincount(codes[codes >= 0], minlength=size * cells).astype(np.int64).reshape(-1, cells)

    def _place(self, values: FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
        """Return the interval of each value, and whether it is in one."""
        edges = np.array(self.edges)
        if self.event is not None:
            place = np.searchsorted(edges, values, side="left") - 1
            return np.clip(place, 0, len(edges) - 2), ~np.isnan(values)
        place = np.where(values == edges[-1], len(edges) - 2, np.searchsorted(edges, values, side="right") - 1)
        return place, (values >= edges[0]) & (values <= edges[-1])


@dataclass(frozen=True)
class Moments(Query):
    """(1, u, u² − ½) of one column, and a count of missing cells; ``exact`` asks for the most exact squares."""

    column: str = ""
    exact: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def unit(self) -> int:
        """Numbers between −1 and 1 count in steps of the lattice."""
        return LATTICE

    def answers(self, other: Query) -> bool:
        """Moments count the records of each group, too, and add them up; exact squares answer for others."""
        totals = [Totals(self.by, self.column, signed) for signed in (False, True)]
        return other in (CellCounts(self.by), Moments(self.by, self.column), *totals) and other != self

    def weights(self) -> FloatArray:
        """The squares get twice the noise unless they matter."""
        return np.array([1.0, 1.0, _EXACT**-0.5 if self.exact else 2.0, _ABSENT])

    def squares(self) -> tuple[float, float]:
        """Bound ‖φ/w‖² and, with a = |u − u′|, b = |u + u′| ≤ 2 − a, so (u² − u′²)² = a²b², the distance of two.

        ‖φ/w‖² is convex in u², so at most max(1 + c/4, 2 + c/4) with c = 1/w₃², more than the 16/9 of a missing cell;
        two groups cost twice that. Within one group a² + c·a²b² is at most 4 for c ≤ 11/4, as 2 + a − (11/4)·a²(2 − a)
        ≥ 0.02 on [0, 2] (its minimum is at a = 1.235); where one of the two is missing it is ‖φ/w‖² + 16/9.
        """
        alone = 2 + 0.25 / float(self.weights()[2]) ** 2
        return alone, 2 * alone if self.by else max(4.0, alone + _ABSENT**-2.0)

    def sums(self, records: Records) -> IntArray:
        """Return the four sums of each group."""
        present = records.present(self.columns)
        codes, counts, size = self._counts(records, present)
        absent = self._counts(records, ~present)[1]
        steps = records.steps(self.column)
        squares = _divided(steps * steps) - LATTICE // 2
        sums = group_sums(steps, codes, size), group_sums(squares, codes, size)
        return np.stack([counts * LATTICE, *sums, absent * LATTICE], axis=1)


@dataclass(frozen=True)
class Totals(Query):
    """Sums of one column, in units of the end of its range that is farther from 0; ``signed`` if 0 lies within."""

    column: str = ""
    signed: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def unit(self) -> int:
        """Numbers between −1 and 1 count in steps of the lattice."""
        return LATTICE

    def weights(self) -> FloatArray:
        """One sum."""
        return np.ones(1)

    def squares(self) -> tuple[float, float]:
        """A record is at most 1 from 0; two in a group are at most 1 or, on both sides of 0, 2 from one another."""
        return 1.0, 4.0 if self.signed else 2.0 if self.by else 1.0

    def sums(self, records: Records) -> IntArray:
        """Return the sum of each group."""
        codes, _, size = self._counts(records, records.present(self.columns))
        scale = records.scales[self.column]
        values = np.clip(np.nan_to_num(records.numbers[self.column]), scale.low, scale.high) / scale.farthest
        return group_sums(np.rint(values * LATTICE).astype(np.int64), codes, size)[:, None]


@dataclass(frozen=True)
class Tree(Query):
    """Counts in a binary tree over the range of a column: 2⁸ equal leaves and all nodes above them, root first.

    Node k has the children 2k + 1 and 2k + 2. Values beyond the range count at its ends.
    """

    column: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def weights(self) -> FloatArray:
        """All nodes alike."""
        return np.ones(2 ** (DEPTH + 1) - 1)

    def squares(self) -> tuple[float, float]:
        """A record counts in one node of each level; in one group two share the root, or one counts nowhere."""
        levels = DEPTH + 1
        return levels, 2 * levels if self.by else 2 * DEPTH

    def sums(self, records: Records) -> IntArray:
        """Return the counts of each group's tree."""
        leaves = 2**DEPTH
        place = np.minimum((records.steps(self.column) + LATTICE) * leaves // (2 * LATTICE), leaves - 1)
        codes, size = records.groups(self.by)
        flat = (codes * leaves + place)[records.present(self.columns)]
        level = np.bincount(flat, minlength=size * leaves).astype(np.int64).reshape(-1, leaves)
        levels = [level]
        for _ in range(DEPTH):
            level = level.reshape(len(level), -1, 2).sum(axis=2)
            levels.append(level)
        return np.concatenate(levels[::-1], axis=1)


@dataclass(frozen=True)
class Ranks(Tree):
    """A few quantiles of a column, each chosen by its rank among the lattice points; a tree says how sure they are.

    Only without groups. Choosing a point needs far less budget than a whole tree, so the tree, from which only the
    error bars come, gets a fifth of μ² (``OF_TREE``) and the choices share the rest.
    """

    probabilities: tuple[float, ...] = ()

    def ordered(self, records: Records) -> IntArray:
        """Return the numbers of the column as candidates, sorted."""
        step = LATTICE // CANDIDATES
        return np.sort((records.steps(self.column)[records.present(self.columns)] + step // 2) // step)


@dataclass(frozen=True)
class Products(Query):
    """(1, u, uuᵀ) of d columns: what covariances, correlations and least squares need.

    Coordinates: the count, the d sums, then the products u_i·u_j for i ≤ j, row by row; squares as u_i² − ½.
    """

    variables: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""
        return self.variables

    @property
    def unit(self) -> int:
        """Numbers between −1 and 1 count in steps of the lattice."""
        return LATTICE

    def weights(self) -> FloatArray:
        """All alike."""
        d = len(self.variables)
        return np.ones(1 + d + d * (d + 1) // 2)

    def squares(self) -> tuple[float, float]:
        """1 + 5d/4 + d(d − 1)/2 alone; 4·⌊(d + 1)²/4⌋ within a group, between two twice the former, if that is more.

        Alone: ‖φ‖² is convex in each u_i², so at most that of u = (1, …, 1).
        Within: with a_i = |u_i − u_i′|, b_i = |u_i + u_i′| ≤ 2 − a_i and p_i = a_i/2, sums and squares change by
        a_i²(1 + b_i²) ≤ 2a_i = 4p_i, as 2 − a(1 + (2 − a)²) = (a − 1)²(2 − a) ≥ 0, and u_i·u_j by at most
        (a_i·b_j + b_i·a_j)/2 ≤ 2(p_i + p_j − 2p_i·p_j). Σ 4p_i + Σ 4(p_i + p_j − 2p_i·p_j)² is convex in each p_i, so
        largest where all are 0 or 1: 4t + 4t(d − t) for t ones. Where one of the two is missing: as alone.
        """
        d = len(self.variables)
        within, alone = 4 * ((d + 1) ** 2 // 4), 1 + 1.25 * d + d * (d - 1) / 2
        return alone, max(within, 2 * alone if self.by else alone)

    def sums(self, records: Records) -> IntArray:
        """Return the sums of each group."""
        codes, counts, size = self._counts(records, records.present(self.columns))
        steps = [records.steps(column) for column in self.variables]
        sums = [counts * LATTICE, *(group_sums(step, codes, size) for step in steps)]
        for i, first in enumerate(steps):
            for j, second in enumerate(steps[i:]):
                sums.append(group_sums(_divided(first * second) - (0 if j else LATTICE // 2), codes, size))
        return np.stack(sums, axis=1)


def _divided(products: IntArray) -> IntArray:
    """Return products of two lattice numbers in steps of the lattice, rounded to the nearest."""
    return (products + LATTICE // 2) // LATTICE


def query_of(statistic: Statistic, scales: Mapping[str, ColumnScale]) -> Query:
    """Return the sums from which the statistic is computed."""
    function, columns, by = statistic.function, statistic.columns, statistic.by
    if function == "count":
        return CellCounts(by)
    if function == "share":
        return CellCounts((*by, columns[0]))
    if function in ("histogram", "survival"):
        event = columns[1] if function == "survival" else None
        return CellCounts(by, columns[0], edges_of(statistic, scales[columns[0]]), event)
    if function == "sum":
        return Totals(by, columns[0], scales[columns[0]].low < 0 < scales[columns[0]].high)
    if function in ("mean", "variance", "sd"):
        return Moments(by, columns[0], function in ("variance", "sd"))
    if function in ("covariance", "correlation", "regression"):
        return Products(by, tuple(sorted(columns)))
    if function in ("median", "quantile") and not by:
        wanted = tuple(sorted(set(probabilities(statistic))))
        if len(wanted) <= MOST_RANKS:
            return Ranks(by, columns[0], wanted)
    return Tree(by, columns[0])


def probabilities(statistic: Statistic) -> tuple[float, ...]:
    """Return the probabilities of a median or of quantiles."""
    return statistic.numbers or (0.5,)


def edges_of(statistic: Statistic, scale: ColumnScale) -> tuple[float, ...]:
    """Return the edges that were given, or those of the requested number of equal bins of the range."""
    given = statistic.option("edges", ())
    if given:
        return given
    bins = int(statistic.option("bins", (_BINS[statistic.function],))[0])
    return tuple(np.linspace(scale.low, scale.high, bins + 1).tolist())


def intervals(statistic: Statistic, scale: ColumnScale) -> tuple[str, ...]:
    """Return what the intervals of a histogram are called."""
    return tuple(f"{scale.written(a)} to {scale.written(b)}" for a, b in pairwise(edges_of(statistic, scale)))


def shared(queries: list[Query]) -> list[Query]:
    """Replace each query by a wider one that answers it, if there is one; quantiles of a column are chosen together."""
    ranks: dict[str, set[float]] = {}
    for query in queries:
        if isinstance(query, Ranks):
            ranks.setdefault(query.column, set()).update(query.probabilities)
    queries = [
        replace(query, probabilities=tuple(sorted(ranks[query.column]))) if isinstance(query, Ranks) else query
        for query in queries
    ]

    def widest(query: Query) -> Query:
        wide = next((other for other in queries if other.answers(query)), None)
        return query if wide is None else widest(wide)

    return [widest(query) for query in queries]
