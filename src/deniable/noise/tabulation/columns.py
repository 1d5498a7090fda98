"""Which columns the statistics need, of which kind they are, and what is publicly known of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.noise.tabulation.dates import refuse_sums
from deniable.noise.tabulation.grammar import Day, Statistic, nearest
from deniable.noise.tabulation.records import Categories, ColumnScale

if TYPE_CHECKING:
    from deniable.tables import Understood

MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class Given:
    """The columns that are needed, with what is known of them without the data.

    Attributes
    ----------
    numbers, groups
        Numeric columns, and those whose categories make groups.
    limits, labels
        Ranges and categories that were given (0 and 1, no and yes, of a yes/no column).
    yes
        For a yes/no column its labels in the order 0, 1.
    ranged
        Numeric columns whose range matters; the others are cut at given edges, or are events.
    dates
        Those of the numeric columns that hold dates.
    """

    numbers: tuple[str, ...]
    groups: tuple[str, ...]
    limits: Mapping[str, tuple[float, float]]
    labels: Mapping[str, tuple[str, ...]]
    yes: Mapping[str, tuple[str, str]]
    ranged: frozenset[str]
    dates: frozenset[str] = frozenset()

    @property
    def unknown_numbers(self) -> tuple[str, ...]:
        """Numeric columns without a range."""
        return tuple(column for column in self.numbers if column not in self.limits)

    @property
    def unknown_categories(self) -> tuple[str, ...]:
        """Grouping columns without categories."""
        return tuple(column for column in self.groups if column not in self.labels)

    @classmethod
    def of(cls, table: Understood, statistics: Sequence[Statistic], ranges: Mapping[str, Sequence[Any]]) -> Given:
        """Collect the columns of all statistics and check their kinds."""
        kinds = {column.name: column for column in table.columns}
        numbers: dict[str, None] = {}
        groups: dict[str, None] = {}
        limits: dict[str, tuple[float, float]] = {}
        labels: dict[str, tuple[str, ...]] = {}
        yes: dict[str, tuple[str, str]] = {}
        ranged: set[str] = set()
        for statistic in statistics:
            categorical = statistic.columns if statistic.function == "share" else ()
            for name in (*statistic.columns, *statistic.by):
                grouping = name in statistic.by or name in categorical
                if name not in kinds:
                    raise InputError(f"{statistic}: the table has no column {name!r}{nearest(name, kinds)}")
                column = kinds[name]
                if column.kind == "dropped":
                    raise InputError(
                        f"{statistic}: column {name!r} is not used: {column.reason}; if its values are known publicly, "
                        "give them as its range or categories"
                    )
                _check_kind(statistic, name, column.kind, grouping)
                (groups if grouping else numbers)[name] = None
                if column.kind == "yes/no":
                    yes[name] = ("no", "yes")
                    labels[name], limits[name] = yes[name], (0.0, 1.0)
                elif name in ranges:
                    if grouping:
                        labels[name] = _labels(name, ranges[name])
                    else:
                        limits[name] = _limits(name, ranges[name])
            refuse_sums(statistic, [name for name in statistic.columns if kinds[name].kind == "date"])
            needed = statistic.columns[: 1 if statistic.function == "survival" else None]
            ranged |= set() if categorical or statistic.option("edges", ()) else set(needed)
        free = {name: (0.0, 1.0) for name in numbers if name not in ranged and name not in limits}
        dates = frozenset(name for name in numbers if kinds[name].kind == "date")
        return cls(tuple(numbers), tuple(groups), limits | free, labels, yes, frozenset(ranged), dates)

    def shown_ranges(self, scales: Mapping[str, ColumnScale]) -> dict[str, tuple[Any, ...]]:
        """Return the public ranges of the columns whose range matters; those of dates as dates."""
        ends = {name: (s.low, s.high) for name, s in scales.items() if name in self.ranged}
        return {n: tuple(map(str, map(Day, pair))) if n in self.dates else pair for n, pair in ends.items()}


def _check_kind(statistic: Statistic, name: str, kind: str, grouping: bool) -> None:
    if grouping and kind in ("number", "date"):
        raise InputError(
            f"{statistic}: column {name!r} holds {kind}s; to group by it, list its categories as texts, as in "
            f"ranges={{{name!r}: ['1', '2']}}, or cut it with histogram({name})"
        )
    if not grouping and kind == "category":
        raise InputError(f"{statistic}: column {name!r} holds categories, not numbers; use it after 'by' or in share()")


def _limits(name: str, pair: Sequence[Any]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise InputError(f"the range of {name!r} must be two numbers (low, high), got {pair!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"the range of {name!r} must be finite with low < high, got {pair!r}")
    return low, high


def _labels(name: str, values: Sequence[Any]) -> tuple[str, ...]:
    labels = tuple(str(value) for value in values)
    if isinstance(values, str) or not labels or len(set(labels)) < len(labels):
        raise InputError(f"the categories of {name!r} must be a list of different texts, got {values!r}")
    return labels


def numeric(column: Any) -> FloatArray:
    """Return a column of numbers; missing cells are NaN."""
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def labelled(column: Any, labels: tuple[str, ...], yes: tuple[str, str] | None, found: bool) -> Categories:
    """Return the records' categories; (missing) is one where the column has missing cells, which is public.

    A cell has the category that is written like it, else one of the same canonical text (1 is "1.0").
    Where the categories were ``found``, the last of them takes the records of all other categories.
    """
    from deniable.tables.persons import person

    absent = column.isna().to_numpy()
    if yes is not None:
        codes = np.where(absent, -1, np.nan_to_num(numeric(column)) > 0).astype(np.int64)
    else:
        exact = {label: place for place, label in enumerate(labels)}
        alike = {person(label): place for label, place in exact.items()}
        rest = len(labels) - 1 if found else -1
        code = {text: exact.get(text, alike.get(person(text), rest)) for text in set(column)}
        codes = np.array([code.get(text, -1) for text in column], dtype=np.int64)
    if absent.any():
        codes[absent] = len(labels)
        labels = (*labels, MISSING)
    return Categories(labels, codes)
