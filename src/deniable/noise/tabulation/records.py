"""The records as the queries see them: numbers between −1 and 1 by public ranges, categories by public lists."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, IntArray
from deniable.noise.tabulation.dates import written

LATTICE = 2**20  # a number between −1 and 1 counts in whole steps of 1/LATTICE: a millionth of half its range
_MOST_CELLS = 1_000_000  # of one statistic, to bound the memory
_BLOCK = 2**30  # records of which at most LATTICE steps each are added as floats


@dataclass(frozen=True)
class ColumnScale:
    """What is public about a numeric column: its range, whether any record may lack it, and whether it holds dates."""

    low: float
    high: float
    complete: bool
    dates: bool = False

    @property
    def centre(self) -> float:
        """Middle of the range, which stands for 0."""
        return self.low / 2 + self.high / 2

    def written(self, value: float) -> str:
        """Return a value of the column as people write it: a date, or a number of six digits."""
        return written(value, as_date=self.dates)

    @property
    def half(self) -> float:
        """Half the width of the range, which stands for 1."""
        return self.high / 2 - self.low / 2


@dataclass(frozen=True, eq=False)
class Categories:
    """The labels of a column of categories and each record's label number, −1 where it has none of them."""

    labels: tuple[str, ...]
    codes: IntArray


@dataclass(frozen=True, eq=False)
class Records:
    """The columns that the statistics need; ``n``, scales and labels are public, the rest is not."""

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

    def complete(self, columns: tuple[str, ...]) -> bool:
        """Return whether every record is known to have all these numbers."""
        return all(self.scales[column].complete for column in columns)

    def groups(self, by: tuple[str, ...]) -> Categories:
        """Return the combinations of the categories of ``by``; one group without a label where ``by`` is empty."""
        if not by:
            return Categories(("",), np.zeros(self.n, dtype=np.int64))
        parts = [self.categories[column] for column in by]
        size = math.prod(len(part.labels) for part in parts)
        if size > _MOST_CELLS:
            raise InputError(
                f"the combinations of {', '.join(by)} make {size:,} cells, at most {_MOST_CELLS:,} can be released; "
                "group by fewer columns or merge categories"
            )
        codes = np.zeros(self.n, dtype=np.int64)
        inside = np.ones(self.n, dtype=bool)
        for part in parts:
            codes = codes * len(part.labels) + part.codes
            inside &= part.codes >= 0
        return Categories(tuple(map(str, range(size))), np.where(inside, codes, -1))

    def labels(self, by: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the label of each group, in the order of :meth:`groups`."""
        if not by:
            return [()]
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
