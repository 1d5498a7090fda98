"""What is asked of the records: sums of whole numbers, group by group, and how far one replaced record can move them.

Every statistic is computed from such sums alone. A query gives each record a vector φ in one group. Its noise has
standard deviation s·w_j in coordinate j, with weights w fixed beforehand; replacing a record by any other then costs
μ = max ‖(φ − φ′)/w‖/s, where records in different groups count with both: ‖φ/w‖² + ‖φ′/w‖². Numbers are between −1 and
1 (u below) and are rounded to the lattice, which moves a difference by at most one step in each coordinate: charged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise.rank_choice import RankWeights, rank_choice
from deniable.noise.tabulation.records import LATTICE, Records, group_sums

OF_TREE = 0.2  # share of μ² of chosen quantiles that goes to the tree behind their error bars
MOST_RANKS = 9  # quantiles of a column that are chosen one by one; a tree answers all of them at once
DEPTH = 8  # of the trees behind distribution functions: 2⁸ leaves
_CANDIDATES = 2**15  # for chosen quantiles, in half a range: more would blur a value that many records share
_FREE = 11 / 4  # 1/w² at which noise on u² costs nothing beside that on u: see Moments.sensitivity


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

    def fixed(self, records: Records) -> bool:
        """Whether the number of records that count is n, and so public: one group, nothing missing."""
        return not self.by and records.complete(self.columns)

    def answers(self, other: Query, records: Records) -> bool:
        """Whether these sums hold those of ``other``, in the same places."""
        return False

    @abstractmethod
    def weights(self, records: Records) -> FloatArray:
        """Return the relative noise of each coordinate; 0 for what is public."""

    @abstractmethod
    def sensitivity(self, records: Records) -> float:
        """Return the largest ‖(φ − φ′)/w‖ over any two records, rounded up."""

    @abstractmethod
    def sums(self, records: Records) -> IntArray:
        """Return the sums (groups, coordinates), whole steps."""

    def _charged(self, exact: float, weights: FloatArray) -> float:
        """Add one lattice step in each coordinate, for the rounding of the two records, and that of this sum."""
        noisy = weights[weights > 0]
        steps = float(np.sqrt(np.sum(noisy**-2.0))) / self.unit if self.unit > 1 else 0.0
        return (exact + steps) * (1 + MANY_ROUNDINGS)


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

    def weights(self, records: Records) -> FloatArray:
        """All cells alike; none where there is one cell for all n records."""
        cells = max(len(self.edges) - 1, 1) * (1 if self.event is None else 2)
        return np.zeros(1) if self.column is None and self.fixed(records) else np.ones(cells)

    def sensitivity(self, records: Records) -> float:
        """A record is in one cell at most, so a replaced one leaves one and enters another: √2."""
        return self._charged(math.sqrt(2), self.weights(records)) if self.weights(records).any() else 0.0

    def sums(self, records: Records) -> IntArray:
        """Return the counts."""
        groups = records.groups(self.by)
        codes, cells = groups.codes, len(self.weights(records))
        if self.column is not None:
            place, inside = self._place(records.numbers[self.column])
            if self.event is not None:
                happened = (records.numbers[self.event] > 0) & (records.numbers[self.column] <= self.edges[-1])
                place = 2 * place + happened
            inside &= (codes >= 0) & records.present(self.columns)
            codes = np.where(inside, codes * cells + place, -1)
        size = len(groups.labels) * cells
        return np.bincount(codes[codes >= 0], minlength=size).astype(np.int64).reshape(-1, cells)

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
    """(1, u, u² − ½) of one column: counts, sums and squares; ``squares`` asks for the most exact squares."""

    column: str = ""
    squares: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def unit(self) -> int:
        """Numbers between −1 and 1 count in steps of the lattice."""
        return LATTICE

    def answers(self, other: Query, records: Records) -> bool:
        """Moments count the records of each group, too; those with exact squares answer those without."""
        if isinstance(other, CellCounts):
            return other == CellCounts(self.by) and records.complete(self.columns)
        return isinstance(other, Moments) and self != other and self == replace(other, squares=True)

    def weights(self, records: Records) -> FloatArray:
        """Where n is public the squares cost nothing; elsewhere they get half the noise if they matter, else twice."""
        if self.fixed(records):
            return np.array([0.0, 1.0, _FREE**-0.5])
        return np.array([1.0, 1.0, 0.5 if self.squares else 2.0])

    def sensitivity(self, records: Records) -> float:
        """Bound the distance of two records, with a = |u − u′|, b = |u + u′| ≤ 2 − a, so (u² − u′²)² = a²b².

        n public: a² + (11/4)·a²b² ≤ 4, as 2 + a − (11/4)·a²(2 − a) ≥ 0.02 on [0, 2] (its minimum is at a = 1.235).
        Groups: ‖φ/w‖² is convex in u², so at most max(1 + c/4, 2 + c/4) with c = 1/w₃²: 2.0625 or 3; two groups cost
        twice that. Within one group a² + c·a²b² is at most 4 (c = 1/4: increasing in a) or 5.15 (c = 4), which is less.
        """
        weights = self.weights(records)
        if self.fixed(records):
            return self._charged(2.0, weights)
        return self._charged(math.sqrt(2 * (2 + 0.25 / weights[2] ** 2)), weights)

    def sums(self, records: Records) -> IntArray:
        """Return the three sums of each group."""
        groups = records.groups(self.by)
        codes = np.where(records.present(self.columns), groups.codes, -1)
        steps = records.steps(self.column)
        size = len(groups.labels)
        counts = np.bincount(codes[codes >= 0], minlength=size).astype(np.int64) * LATTICE
        squares = _divided(steps * steps) - LATTICE // 2
        return np.stack([counts, group_sums(steps, codes, size), group_sums(squares, codes, size)], axis=1)


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

    def weights(self, records: Records) -> FloatArray:
        """All nodes alike; the root is n where that is public."""
        weights = np.ones(2 ** (DEPTH + 1) - 1)
        weights[0] = 0.0 if self.fixed(records) else 1.0
        return weights

    def sensitivity(self, records: Records) -> float:
        """A record counts in one node of each level, so a replaced one in two: √(2·levels)."""
        levels = DEPTH if self.fixed(records) else DEPTH + 1
        return self._charged(math.sqrt(2 * levels), self.weights(records))

    def sums(self, records: Records) -> IntArray:
        """Return the counts of each group's tree."""
        groups = records.groups(self.by)
        leaves = 2**DEPTH
        place = np.minimum((records.steps(self.column) + LATTICE) * leaves // (2 * LATTICE), leaves - 1)
        kept = records.present(self.columns) & (groups.codes >= 0)
        flat = np.bincount(groups.codes[kept] * leaves + place[kept], minlength=len(groups.labels) * leaves)
        level = flat.astype(np.int64).reshape(-1, leaves)
        levels = [level]
        for _ in range(DEPTH):
            level = level.reshape(len(level), -1, 2).sum(axis=2)
            levels.append(level)
        return np.concatenate(levels[::-1], axis=1)


@dataclass(frozen=True)
class Ranks(Tree):
    """A few quantiles of a column, each chosen by its rank among the lattice points; a tree says how sure they are.

    Only where n is public. Choosing a point needs far less budget than a whole tree, so the tree, from which only
    the error bars come, gets a fifth of μ² (``OF_TREE``) and the choices share the rest.
    """

    probabilities: tuple[float, ...] = ()

    def choice_weights(self, mu: float) -> RankWeights:
        """Return the weights at which all choices together are ``mu``-Gaussian DP."""
        return RankWeights(mu / math.sqrt(len(self.probabilities)) * (1 - 1e-12))

    def chosen(self, records: Records, weights: RankWeights) -> FloatArray:
        """Return the quantiles, between −1 and 1."""
        step = LATTICE // _CANDIDATES
        ordered = np.sort((records.steps(self.column) + step // 2) // step)
        points = [rank_choice(ordered, -_CANDIDATES, _CANDIDATES, p, weights) for p in self.probabilities]
        return np.array(points) / _CANDIDATES


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

    def weights(self, records: Records) -> FloatArray:
        """All alike; the count is public where n is."""
        d = len(self.variables)
        weights = np.ones(1 + d + d * (d + 1) // 2)
        weights[0] = 0.0 if self.fixed(records) else 1.0
        return weights

    def sensitivity(self, records: Records) -> float:
        """2·√⌊(d + 1)²/4⌋ within a group; between two √(2·(1 + 5d/4 + d(d − 1)/2)), whichever is larger.

        Within: with a_i = |u_i − u_i′|, b_i = |u_i + u_i′| ≤ 2 − a_i and p_i = a_i/2, sums and squares change by
        a_i²(1 + b_i²) ≤ 2a_i = 4p_i, as 2 − a(1 + (2 − a)²) = (a − 1)²(2 − a) ≥ 0, and u_i·u_j by at most
        (a_i·b_j + b_i·a_j)/2 ≤ 2(p_i + p_j − 2p_i·p_j). Σ 4p_i + Σ 4(p_i + p_j − 2p_i·p_j)² is convex in each p_i, so
        largest where all are 0 or 1: 4t + 4t(d − t) for t ones. Between: ‖φ‖² is convex in each u_i², so at most that
        of u = (1, …, 1), and two records count.
        """
        d = len(self.variables)
        within, between = 4 * ((d + 1) ** 2 // 4), 2 * (1 + 1.25 * d + d * (d - 1) / 2)
        return self._charged(math.sqrt(within if self.fixed(records) else max(within, between)), self.weights(records))

    def sums(self, records: Records) -> IntArray:
        """Return the sums of each group."""
        groups = records.groups(self.by)
        codes = np.where(records.present(self.columns), groups.codes, -1)
        size = len(groups.labels)
        steps = [records.steps(column) for column in self.variables]
        sums = [np.bincount(codes[codes >= 0], minlength=size).astype(np.int64) * LATTICE]
        sums += [group_sums(step, codes, size) for step in steps]
        for i, first in enumerate(steps):
            for j, second in enumerate(steps[i:]):
                sums.append(group_sums(_divided(first * second) - (0 if j else LATTICE // 2), codes, size))
        return np.stack(sums, axis=1)


def _divided(products: IntArray) -> IntArray:
    """Return products of two lattice numbers in steps of the lattice, rounded to the nearest."""
    return (products + LATTICE // 2) // LATTICE
