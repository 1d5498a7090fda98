"""What is asked of the records: sums of whole numbers, group by group, and how far one record can move them.

Each cell is read alone; numbers lie between −1 and 1, categories are places in lists.

Every statistic is computed from such sums alone. A query gives each record a vector φ in one group. Its noise has
standard deviation s·w_j in coordinate j, with weights w fixed beforehand; adding or removing a record then costs μ =
max ‖φ/w‖/s, replacing it by any other max ‖(φ − φ′)/w‖/s, where records in different groups count with both: ‖φ/w‖² +
‖φ′/w‖². Numbers are between −1 and 1 (u below) and are rounded to the lattice, by which a record that is added, and a
difference of two, moves by at most one step in each coordinate: charged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import Units
from deniable.statistics.grammar import ABSENT, OTHER, ColumnScale
from deniable.tables import ColumnCells

LATTICE = 2**20  # a number between −1 and 1 counts in whole steps of 1/LATTICE: a millionth of half its range
_MOST_CELLS = 1_000_000  # of one statistic, to bound the memory
_BLOCK = 2**20  # records of which at most LATTICE·HEAVIEST steps each are added as floats
MOST_RANKS = 9  # quantiles of a column that are chosen one by one; a tree answers all of them at once
DEPTH = 8  # of the trees behind distribution functions: 2⁸ leaves
CANDIDATES = 2**15  # for chosen quantiles, in half a range: more would blur a value that many records share
_ABSENT = 0.75  # relative noise of the count of records without a number next to moments: there it costs nothing
_EXACT = 11 / 4  # 1/w² of squares that matter, which costs nothing where a record is replaced: see Moments.squares


@dataclass(frozen=True, eq=False)
class Categories:
    """The labels of a column of categories, the last two for other and missing cells, and each record's label."""

    labels: tuple[str, ...]
    codes: IntArray

    @classmethod
    def of(cls, cells: ColumnCells, labels: tuple[str, ...]) -> Categories:
        """Return the records' categories: a cell has the one that is spelled as it is."""
        place = {label: i for i, label in enumerate(labels)}
        codes, texts = cells.coded
        found = [*(place.get(text, len(labels)) for text in texts), len(labels) + 1]
        return cls((*labels, OTHER, ABSENT), np.array(found, dtype=np.int64)[codes])


@dataclass(frozen=True, eq=False)
class Records:
    """The columns that the statistics need; scales and labels are public, the rest is not."""

    n: int
    numbers: Mapping[str, FloatArray]
    scales: Mapping[str, ColumnScale]
    categories: Mapping[str, Categories]
    units: Units = field(default_factory=Units)

    def adding(self, codes: IntArray, size: int, most: int = 0) -> Callable[[IntArray | int], IntArray]:
        """Return what adds values up over the records of each code; −1 is none, and a whole number is that of a count.

        Of persons, a count is LATTICE, and each adds the mean of her records (or their sum, her sums in all codes
        scaled to a length of at most ``most``), rounded towards 0, so that no length grows.
        """
        owners, persons = self.units.owners, len(self.units.labels or ())
        if owners is None:
            return lambda v: (
                np.bincount(codes[codes >= 0], minlength=size).astype(np.int64) * v
                if isinstance(v, int)
                else group_sums(v, codes, size)
            )
        kept = (codes >= 0) & (owners < persons)
        cells, at = np.unique(owners[kept] * size + codes[kept], return_inverse=True)
        who = cells // size
        records = np.bincount(owners)

        def add(values: IntArray | int) -> IntArray:
            steps = np.full(len(at), LATTICE) if isinstance(values, int) else values[kept]
            hers = group_sums(steps, at, len(cells))
            length = np.sqrt(np.bincount(who, hers.astype(np.float64) ** 2))
            shares = hers * np.minimum(1.0, most / np.maximum(length, 1.0))[who] if most else hers / records[who]
            return group_sums(np.trunc(shares).astype(np.int64), cells % size, size)

        return add

    def steps(self, column: str) -> IntArray:
        """Return the column clipped to its range, in whole steps from −LATTICE to LATTICE; missing cells are 0."""
        scale, values = self.scales[column], self.numbers[column]
        with np.errstate(invalid="ignore"):
            unit = np.clip((values - scale.centre) / scale.half, -1.0, 1.0)
        return np.rint(np.nan_to_num(unit) * LATTICE).astype(np.int64)

    def present(self, columns: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return which records have all these numbers."""
        kept = np.ones(self.n, dtype=bool)
        for column in columns:
            kept &= ~np.isnan(self.numbers[column])
        return kept

    def groups(self, by: tuple[str, ...]) -> tuple[IntArray, int]:
        """Return each record's combination of the categories of ``by``, and how many there are; 1 without ``by``."""
        size = math.prod(len(self.categories[column].labels) for column in by)
        if size > _MOST_CELLS:
            raise InputError(
                f"the combinations of {', '.join(by)} make {size:,} cells, at most {_MOST_CELLS:,} can be released; "
                "group by fewer columns or merge categories"
            )
        codes = np.zeros(self.n, dtype=np.int64)
        for column in by:
            codes = codes * len(self.categories[column].labels) + self.categories[column].codes
        return codes, size

    def labels(self, by: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the label of each group, in the order of :meth:`groups`."""
        shape = [len(self.categories[column].labels) for column in by]
        return [tuple(self.categories[c].labels[i] for c, i in zip(by, at, strict=True)) for at in np.ndindex(*shape)]


def group_sums(values: IntArray, codes: IntArray, groups: int) -> IntArray:
    """Return the exact sum of whole numbers in each group; −1 is in none."""
    if groups == 1:
        return np.array([values[codes == 0].sum(dtype=np.int64)])
    total = np.zeros(groups, dtype=np.int64)
    kept = codes >= 0
    codes, values = codes[kept], values[kept]
    for begin in range(0, len(codes), _BLOCK):  # bincount adds floats: exact while every partial sum is below 2⁵³
        block = slice(begin, begin + _BLOCK)
        total += np.bincount(codes[block], weights=values[block], minlength=groups).astype(np.int64)
    return total


@dataclass(frozen=True)
class Query(ABC):
    """Sums over some columns of numbers that several statistics may share; equal queries are asked once."""

    by: tuple[str, ...]
    columns: tuple[str, ...] = ()
    unit: ClassVar[int] = 1  # whole steps that stand for 1

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

    def __str__(self) -> str:
        what = f"{type(self).__name__.lower()}({', '.join(self.columns)})"
        return f"{what} by {', '.join(self.by)}" if self.by else what


@dataclass(frozen=True)
class CellCounts(Query):
    """Counts of records: in each group, or in each interval [edge, next edge) of a column, the last one closed."""

    edges: tuple[float, ...] = ()

    def weights(self) -> FloatArray:
        """All cells alike."""
        return np.ones(max(len(self.edges) - 1, 1))

    def squares(self) -> tuple[float, float]:
        """A record is in one cell at most; a replaced one leaves one and enters another, unless there is but one."""
        return 1.0, 0.0 if self == CellCounts(()) else 2.0

    def sums(self, records: Records) -> IntArray:
        """Return the counts."""
        codes, size = records.groups(self.by)
        cells = len(self.weights())
        if self.columns:
            values, edges = records.numbers[self.columns[0]], np.array(self.edges)
            place = np.where(values == edges[-1], cells - 1, np.searchsorted(edges, values, side="right") - 1)
            inside = (values >= edges[0]) & (values <= edges[-1])  # NaN is nowhere
            codes = np.where(inside, codes * cells + place, -1)
        return records.adding(codes, size * cells)(1).reshape(-1, cells)


@dataclass(frozen=True)
class Moments(Query):
    """(1, u, uuᵀ) of d columns, and a count of the records that lack one of them.

    Coordinates: the count, the d sums, then the products u_i·u_j for i ≤ j, row by row, squares as u_i² − ½; the count
    of the others. ``exact`` asks for the most exact square of a single column.
    """

    exact: bool = False
    unit: ClassVar[int] = LATTICE  # numbers between −1 and 1 count in steps of it

    def answers(self, other: Query) -> bool:
        """Moments add a column up; exact squares answer for others."""
        totals = [Totals(self.by, self.columns, signed) for signed in (False, True)]
        return other in (Moments(self.by, self.columns), *totals) and other != self

    @property
    def counting(self) -> float:
        """How exact the groups' counts are that follow from these sums: 1/variance at μ = 1."""
        return 1 / (1 + _ABSENT**2) / self.lengths()[0] ** 2

    def weights(self) -> FloatArray:
        """All alike; the square of a single column gets twice the noise unless it matters."""
        d = len(self.columns)
        weights = np.ones(2 + d + d * (d + 1) // 2)
        weights[-1] = _ABSENT
        if d == 1:
            weights[2] = _EXACT**-0.5 if self.exact else 2.0
        return weights

    def squares(self) -> tuple[float, float]:
        """Bound ‖φ/w‖², and the distance of two within a group; between groups twice the former.

        Alone: with c = 1/w² of the squares, ‖φ/w‖² is convex in each u_i², so at most that of u = (1, …, 1): 1 + d +
        c·d/4 + d(d − 1)/2, more than the 16/9 of a record that lacks a number.
        Within a group, of one column: with a = |u − u′|, b = |u + u′| ≤ 2 − a it is a² + c·a²b², at most 4 for c ≤
        11/4, as 2 + a − (11/4)·a²(2 − a) ≥ 0.02 on [0, 2] (its minimum is at a = 1.235).
        Of several: with p_i = |u_i − u_i′|/2, sums and squares change by a_i²(1 + b_i²) ≤ 4p_i, as 2 − a(1 + (2 − a)²)
        = (a − 1)²(2 − a) ≥ 0, and u_i·u_j by at most 2(p_i + p_j − 2p_i·p_j). Σ 4p_i + Σ 4(p_i + p_j − 2p_i·p_j)² is
        convex in each p_i, so largest where all are 0 or 1: 4t + 4t(d − t) for t ones, at most 4·⌊(d + 1)²/4⌋.
        Where one of the two lacks a number: as alone, and 16/9.
        """
        d = len(self.columns)
        alone = 1 + d + d / 4 / float(self.weights()[1 + d]) ** 2 + d * (d - 1) / 2
        within = max(4.0 * ((d + 1) ** 2 // 4), alone + _ABSENT**-2.0)
        return alone, max(within, 2 * alone) if self.by else within

    def sums(self, records: Records) -> IntArray:
        """Return the sums of each group."""
        present = records.present(self.columns)
        groups, size = records.groups(self.by)
        add, absent = (records.adding(np.where(kept, groups, -1), size) for kept in (present, ~present))
        steps = [records.steps(column) for column in self.columns]
        sums = [add(LATTICE), *map(add, steps)]
        for i, first in enumerate(steps):
            for j, second in enumerate(steps[i:]):
                product = (first * second + LATTICE // 2) // LATTICE  # to the nearest step
                sums.append(add(product - (0 if j else LATTICE // 2)))
        return np.stack([*sums, absent(LATTICE)], axis=1)


@dataclass(frozen=True)
class Totals(Query):
    """Sums of a column, in units of the end of its range that is farther from 0; ``signed`` if 0 lies within.

    Of persons, sums of what each one's records add up to, at most ``bound``, which is the unit then.
    """

    signed: bool = False
    bound: float = 0.0
    unit: ClassVar[int] = LATTICE

    def weights(self) -> FloatArray:
        """One sum."""
        return np.ones(1)

    def squares(self) -> tuple[float, float]:
        """A record is at most 1 from 0; two in a group are at most 1 or, on both sides of 0, 2 from one another."""
        return 1.0, 4.0 if self.signed else 2.0 if self.by else 1.0

    def sums(self, records: Records) -> IntArray:
        """Return the sum of each group."""
        (column,), (groups, size) = self.columns, records.groups(self.by)
        scale = records.scales[column]
        values = np.clip(np.nan_to_num(records.numbers[column]), scale.low, scale.high)
        values = np.clip(values / (self.bound or scale.farthest), -1024.0, 1024.0)  # still exact in group_sums
        codes = np.where(records.present(self.columns), groups, -1)
        add = records.adding(codes, size, most=LATTICE)
        return add(np.rint(values * LATTICE).astype(np.int64))[:, None]


@dataclass(frozen=True)
class Tree(Query):
    """Counts in a binary tree over the range of a column: 2⁸ equal leaves and all nodes above them, root first.

    Node k has the children 2k + 1 and 2k + 2. Values beyond the range count at its ends.
    """

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
        place = np.minimum((records.steps(self.columns[0]) + LATTICE) * leaves // (2 * LATTICE), leaves - 1)
        codes, size = records.groups(self.by)
        codes = np.where(records.present(self.columns), codes * leaves + place, -1)
        level = records.adding(codes, size * leaves)(1).reshape(-1, leaves)
        levels = [level]
        for _ in range(DEPTH):
            level = level.reshape(len(level), -1, 2).sum(axis=2)
            levels.append(level)
        return np.concatenate(levels[::-1], axis=1)


@dataclass(frozen=True)
class Ranks(Tree):
    """A few quantiles of a column, each chosen by its rank among the lattice points, for far less than a whole tree."""

    probabilities: tuple[float, ...] = ()

    def sorted_candidates(self, records: Records) -> list[IntArray]:
        """Return the numbers of the column as candidates, sorted, of each group."""
        step, present = LATTICE // CANDIDATES, records.present(self.columns)
        codes, size = records.groups(self.by)
        codes, places = codes[present], (records.steps(self.columns[0])[present] + step // 2) // step
        order = np.lexsort((places, codes))
        return np.split(places[order], np.searchsorted(codes[order], np.arange(1, size)))
