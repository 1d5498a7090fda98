"""The columns of a table: names, cells that are each read alone, and what the caller declares."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from deniable._check import FloatArray, InputError, choice, mapping
from deniable.noise.column_kinds import ColumnKind
from deniable.tables import DATE, NUMBER, ColumnCells, read_cell, read_cells, spelled
from deniable.tables.cell import span_of
from deniable.tables.columnar import ColumnsOnDisk
from deniable.tables.parquet import few

_MOST_LISTED = 50_000  # cells are 16-bit numbers, of which others and missing take two
_WORDS = ("hash", "discover")


@dataclass(frozen=True)
class FeatureColumn(ColumnKind):
    """Name and place of a column, and what it holds."""

    name: Any
    place: int

    @property
    def axis(self) -> int:
        """The kind of the cells that are in bins."""
        return DATE if self.kind == "date" else NUMBER

    def __str__(self) -> str:
        return f"{self.name!r}: {super().__str__()}"


class Kinds(NamedTuple):
    """About how many units there are, and what the target holds, if it was asked."""

    n: float
    target: ColumnKind


@dataclass(frozen=True)
class Declared:
    """What the caller says is public: ranges of numbers and dates, lists of categories, cells of the hash."""

    ranges: Mapping[Any, tuple[float, float]] = field(default_factory=dict, hash=False)
    categories: Mapping[Any, tuple[str, ...]] = field(default_factory=dict, hash=False)
    discover: frozenset[Any] = frozenset()
    discovery_delta: float = 0.0
    dates: frozenset[Any] = frozenset()  # those of the ranges that are of dates
    hash_cells: int = 255

    def column(self, column: FeatureColumn) -> FeatureColumn | None:
        """Return what a declared column holds, None for the others: those have to be looked at."""
        if column.name in self.ranges:
            return replace(column, kind="date" if column.name in self.dates else "number")
        return replace(column, kind="category", words="many") if column.name in self.categories else None


class FeatureTable:
    """The columns of an array, a data frame or of files, read one at a time."""

    def __init__(self, X: Any, columns: Sequence[FeatureColumn] | None = None) -> None:
        self._X, self.n_rows = X, len(X)
        self._read: dict[int, ColumnCells] = {}
        self.left_out: tuple[Any, ...] = ()  # names of columns of nearly unique words, by released counts
        names = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
        self.columns = tuple(columns or (FeatureColumn(name, place) for place, name in enumerate(names)))

    def __len__(self) -> int:
        return self.n_rows

    def cells(self, column: FeatureColumn) -> ColumnCells:
        """Return the cells of a column; texts of a table in memory are read once."""
        place = column.place
        if isinstance(self._X, ColumnsOnDisk):
            return read_cells(self._X.column(place))
        if place in self._read:
            return self._read[place]
        raw = self._X.iloc[:, place] if hasattr(self._X, "iloc") else self._X[:, place]
        found = read_cells(raw)
        if getattr(raw.dtype, "kind", "O") not in "biufmM":
            self._read[place] = found
        return found

    def numbers(self, column: FeatureColumn) -> FloatArray:
        """Return the numbers of a column, or its days; NaN for other cells."""
        found = self.cells(column)
        return np.where(found.kind == column.axis, found.number, np.nan)


def declare(table: FeatureTable, ranges: Any, categories: Any, discovery_delta: float) -> Declared:
    """Return the checked declarations; refuses columns that do not exist. No cell is looked at."""
    names = {column.name: column for column in table.columns}
    if not (categories is None or isinstance(categories, str | Mapping)):
        raise InputError(
            "categories must be 'hash', 'discover' or a mapping of columns to lists, such as "
            f"{{'region': ['N', 'S']}}, got {categories!r}"
        )
    spans, dates = {}, set()
    for name, span in mapping("ranges", ranges, "{'age': (0, 120)}").items():
        _known("ranges", name, names)
        spans[name], kind = span_of(f"ranges[{name!r}]", span)
        dates |= {name} if kind == DATE else set()
    if categories is None or isinstance(categories, str):
        word = choice("categories", "hash" if categories is None else categories, _WORDS)
        every = frozenset(names) - frozenset(spans)
        return Declared(spans, {}, every if word == "discover" else frozenset(), discovery_delta, frozenset(dates))
    lists: dict[Any, tuple[str, ...]] = {}
    found: set[Any] = set()
    for name, words in categories.items():
        _known("categories", name, names)
        if name in spans:
            raise InputError(f"column {name!r} must have a range or categories, got both")
        if isinstance(words, str):
            found |= {name} if choice(f"categories[{name!r}]", words, _WORDS) == "discover" else set()
            continue
        lists[name] = tuple(dict.fromkeys(text for word in words if (text := spelled(*read_cell(word))) is not None))
        if not 0 < len(lists[name]) <= _MOST_LISTED:
            raise InputError(
                f"categories[{name!r}] must list at least one category and at most {_MOST_LISTED}, "
                f"got {len(lists[name])}"
            )
    return Declared(spans, lists, frozenset(found), discovery_delta, frozenset(dates))


def asks_discovery(categories: Any) -> bool:
    """Return whether any column's categories are to be discovered."""
    words = categories.values() if isinstance(categories, Mapping) else [categories]
    return any(isinstance(word, str) and word == "discover" for word in words)


def public_inputs(declared: Declared) -> tuple[str, ...]:
    """Return in words what a certificate takes as known to everybody."""
    lines = ["names and order of the columns"]
    if declared.ranges:
        lines.append(f"declared ranges: {', '.join(map(str, declared.ranges))}")
    if declared.categories:
        lines.append(f"declared categories: {', '.join(map(str, declared.categories))}")
    return tuple(lines)


def _known(option: str, name: Any, names: Mapping[Any, FeatureColumn]) -> None:
    if name not in names:
        near = difflib.get_close_matches(str(name), [str(n) for n in names], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"{option} names the column {name!r}, which X does not have{hint}")


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Takes the columns of these names from a table, in this order; the model reads their cells.

    Parameters
    ----------
    columns
        The names.
    """

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that the model knows."""
        if absent := [name for name in self.columns if name not in X.columns]:
            raise InputError(f"the table must have the columns {few(absent)}, which it lacks")
        return X[list(self.columns)]

    def __sklearn_is_fitted__(self) -> bool:
        return True
