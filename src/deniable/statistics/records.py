"""The records as the queries see them: each cell read alone, numbers between −1 and 1, categories by lists."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, IntArray
from deniable.statistics.grammar import Day, Statistic, nearest, written
from deniable.tables.cell import DATE, NUMBER, WORD, ColumnCells, flag_of
from deniable.tables.files import open_table
from deniable.tables.schema import Schema, as_schema, shorthand

LATTICE = 2**20  # a number between −1 and 1 counts in whole steps of 1/LATTICE: a millionth of half its range
OTHER, ABSENT = "(other)", "(missing)"  # categories that every column has
_MOST_CELLS = 1_000_000  # of one statistic, to bound the memory
_BLOCK = 2**30  # records of which at most LATTICE steps each are added as floats
_FLAGS = {"yes": 1.0, "no": 0.0, "": math.nan}  # words that are numbers where numbers are asked for


@dataclass(frozen=True)
class ColumnScale:
    """What is public about a numeric column: its range, and whether it holds dates (days since 1970-01-01)."""

    low: float
    high: float
    dates: bool = False

    @property
    def centre(self) -> float:
        """Middle of the range, which stands for 0."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half the width of the range, which stands for 1."""
        return self.high / 2 - self.low / 2

    @property
    def farthest(self) -> float:
        """Distance from 0 of the farther end."""
        return max(abs(self.low), abs(self.high))

    def written(self, value: float) -> str:
        """Return a value of the column as people write it: a date, or a number of six digits."""
        return written(value, as_date=self.dates)

    @property
    def ends(self) -> tuple[Any, Any]:
        """The range as people write it."""
        return (str(Day(self.low)), str(Day(self.high))) if self.dates else (self.low, self.high)


@dataclass(frozen=True, eq=False)
class Given:
    """The columns that the statistics need, with what is declared of them; the data have no part in it.

    Attributes
    ----------
    numbers, groups
        Columns of numbers, and those whose categories make groups.
    scales, labels
        Declared ranges and categories. A column of numbers whose range does not matter (it is cut at given edges, or
        is an event) needs none.
    ranged
        Columns of numbers whose range matters.
    """

    numbers: tuple[str, ...]
    groups: tuple[str, ...]
    scales: Mapping[str, ColumnScale]
    labels: Mapping[str, tuple[str, ...]]
    ranged: frozenset[str]

    @property
    def unknown(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Columns of numbers without a range, and of categories without a list."""
        return (
            tuple(column for column in self.numbers if column not in self.scales),
            tuple(column for column in self.groups if column not in self.labels),
        )

    @classmethod
    def of(cls, statistics: Sequence[Statistic], schema: Schema) -> Given:
        """Collect the columns of all statistics and check what is declared of them."""
        numbers: dict[str, None] = {}
        groups: dict[str, None] = {}
        ranged: set[str] = set()
        cut_at_dates: set[str] = set()
        for one in statistics:
            shared = one.function == "share"
            groups |= dict.fromkeys(one.grouped)
            numbers |= dict.fromkeys(() if shared else one.columns)
            edges = one.option("edges", ())
            if edges or shared:
                cut_at_dates |= {one.columns[0]} if edges and all(isinstance(edge, Day) for edge in edges) else set()
            else:
                ranged |= set(one.columns[: 1 if one.function == "survival" else None])
        for name in (*numbers, *groups):
            kind = schema.kind(name)
            if kind == "dropped" or (name in numbers and kind in ("category", "code")):
                raise InputError(f"column {name!r} is declared as {kind!r}, so it has no numbers to release")
        own = {name: schema.column(name) for name in (*numbers, *groups)}
        labels = {name: own[name].labels for name in groups if own[name].labels}
        for name, found in labels.items():
            if {OTHER, ABSENT} & set(found):
                raise InputError(f"the categories of {name!r} must not be {OTHER} or {ABSENT}, which every column has")
        spans = {name: span for name in numbers if (span := own[name].span) is not None}
        scales = {name: ColumnScale(*span, own[name].kind == "date") for name, span in spans.items()}
        free = {name: ColumnScale(0.0, 1.0, name in cut_at_dates) for name in numbers if name not in ranged}
        for one in statistics:
            if one.function == "sum" and one.columns[0] in scales and scales[one.columns[0]].dates:
                raise InputError(f"{one}: dates have no sum; ask for mean({one.columns[0]})")
        return cls(tuple(numbers), tuple(groups), free | scales, labels, frozenset(ranged))


def declared(schema: Any, ranges: Any, statistics: Iterable[Statistic]) -> Schema:
    """Return a schema with what ``ranges`` declare: of a column that makes groups its categories."""
    said = shorthand(ranges)
    groups = {name for one in statistics for name in one.grouped}
    numbers = {name for one in statistics for name in one.columns} - groups
    for name in said.keys() & (groups | numbers):
        (value,) = said[name].values()
        said[name] = {"range": value} if name in numbers else said[name] | {"categories": value}
    return as_schema(schema).saying(said)


def read_columns(source: Any, needed: Collection[str], schema: Schema) -> tuple[int, dict[str, ColumnCells]]:
    """Return how many records there are, and the cells of the columns that are needed, each read alone.

    Raises
    ------
    InputError
        For a source that cannot be opened, and for columns that the header does not name, or names twice.
    """
    frame = open_table(source).checked().frame
    names = [str(name) for name in frame.columns]
    for name in (*needed, *schema.columns):
        if names.count(name) != 1:
            fault = "has no column" if name not in names else "has more than one column"
            raise InputError(f"the table {fault} {name!r}{nearest(name, names) if name not in names else ''}")
    return len(frame), {name: schema.column(name).read(frame[name]) for name in needed}


def numbers_of(cells: ColumnCells, dates: bool) -> FloatArray:
    """Return the dates of a column in days, or its numbers, yes and no among them as 1 and 0; NaN for other cells."""
    out = np.where(cells.kind == (DATE if dates else NUMBER), cells.number, np.nan)
    return out if dates else np.where(cells.kind == WORD, _flags(cells), out)


def _flags(cells: ColumnCells) -> FloatArray:
    """Return 1 and 0 for yes and no, NaN for all other cells."""
    return np.array([*(_FLAGS[flag_of(word)] for word in cells.words), np.nan])[cells.word]


def number_kinds(cells: ColumnCells) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which cells are numbers, dates, yes or no."""
    return cells.kind == NUMBER, cells.kind == DATE, ~np.isnan(_flags(cells))


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
