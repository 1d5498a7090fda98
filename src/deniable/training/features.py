"""The columns of a table: names, cells that are each read alone, and what the caller declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from deniable._check import FloatArray, InputError, choice, mapping
from deniable.noise import ColumnKind
from deniable.tables import (
    DATE,
    NUMBER,
    CellFormat,
    ColumnCells,
    ColumnsOnDisk,
    Schema,
    as_table,
    few,
    name_of,
    names_of,
    read_cell,
    spelled,
)

_WORDS = ("hash", "discover")
_KEPT = 1 << 20  # cells of a table in memory up to which numbers are kept as read, at 13 bytes each


@dataclass(frozen=True)
class FeatureColumn(ColumnKind):
    """Name and place of a column, and what it holds."""

    name: Any
    place: int

    @property
    def binned(self) -> int:
        """The kind of the cells that are in bins."""
        return DATE if self.axis == "date" else NUMBER

    def __str__(self) -> str:
        return f"{self.name!r}: {super().__str__()}"


@dataclass(frozen=True)
class Declared:
    """What the caller says is public: the schema with its ranges and categories."""

    schema: Schema = field(default_factory=Schema)
    ranges: Mapping[Any, tuple[float, float]] = field(default_factory=dict, hash=False)
    categories: Mapping[Any, tuple[str, ...]] = field(default_factory=dict, hash=False)
    discover: frozenset[Any] = frozenset()
    discovery_delta: float = 0.0

    def column(self, column: FeatureColumn) -> FeatureColumn | None:
        """Return what a declared column holds, None for the others: those have to be looked at."""
        kind = self.schema.column(column.name).kind
        return replace(column, **vars(declared_kind(kind))) if kind else None


def declared_kind(kind: str) -> ColumnKind:
    """Return what a column of a declared kind holds."""
    axis = {"number": "number", "whole": "number", "date": "date"}.get(kind, "")
    words = "" if axis else "flags" if kind == "yes/no" else "many"
    return ColumnKind(kind=axis or "category", axis=axis, words=words, whole=kind == "whole")


class FeatureTable:
    """The columns of a data frame or of files, read one at a time."""

    def __init__(self, X: Any, schema: Schema, columns: Sequence[FeatureColumn] | None = None) -> None:
        self._X, self._schema, self.n_rows = X, schema, len(X)
        self._read: dict[int, ColumnCells] = {}
        self.left_out: dict[Any, str] = {}  # what columns hold that are left out, by released counts
        names = tuple(X.columns)
        used = [
            column for column in map(FeatureColumn, names, range(len(names))) if schema.kind(column.name) != "dropped"
        ]
        self.columns = tuple(columns or used)

    def cells(self, column: FeatureColumn) -> ColumnCells:
        """Return the cells of a column; texts of a table in memory are read once."""
        place, read = column.place, self._schema.column(column.name).read
        if isinstance(self._X, ColumnsOnDisk):
            return read(self._X.column(place))
        if place in self._read:
            return self._read[place]
        raw = self._X.iloc[:, place]
        found = read(raw)
        if getattr(raw.dtype, "kind", "O") not in "biufmM" or self.n_rows * len(self.columns) <= _KEPT:
            self._read[place] = found
        return found

    def place_of(self, row: int) -> str:
        """Return where a row stands, for messages."""
        return str(getattr(self._X, "place_of", "row {} (the first is 0)".format)(row))

    def numbers(self, column: FeatureColumn) -> FloatArray:
        """Return the numbers of a column, or its days; NaN for other cells."""
        found = self.cells(column)
        return np.where(found.kind == column.binned, found.number, np.nan)


def declare(names: Sequence[Any], schema: Schema, ranges: Any, categories: Any, discovery_delta: float) -> Declared:
    """Return the checked declarations; refuses columns that do not exist. No cell is looked at."""
    if not (categories is None or isinstance(categories, str | Mapping)):
        raise InputError(
            "categories must be 'hash', 'discover' or a mapping of columns to lists, such as "
            f"{{'region': ['N', 'S']}}, got {categories!r}"
        )
    spans = {name_of(name): span for name, span in mapping("ranges", ranges, "{'age': (0, 120)}").items()}
    words = {name_of(name): one for name, one in categories.items()} if isinstance(categories, Mapping) else {}
    told = {
        name: choice(f"categories[{name!r}]", word, _WORDS) for name, word in words.items() if isinstance(word, str)
    }
    lists = {name: _list(name, word, schema.column(name).form) for name, word in words.items() if name not in told}
    if both := [name for name in lists if name in spans]:
        raise InputError(f"column {both[0]!r} must have a range or categories, got both")
    said = {name: {"range": span} for name, span in spans.items()} | {n: {"categories": w} for n, w in lists.items()}
    schema = schema.saying(said)
    schema.check_names(names)
    own = {name: schema.column(name) for name in names if name in schema.columns}
    known = {name: span for name, one in own.items() if one.kind != "yes/no" and (span := one.span) is not None}
    labels = {name: found for name, one in own.items() if one.kind in ("category", "code") and (found := one.labels)}
    every = choice("categories", categories, _WORDS) if isinstance(categories, str) else "hash"
    sought = {name for name in names if told.get(name, every) == "discover"} - known.keys() - labels.keys()
    return Declared(schema, known, labels, frozenset(sought), discovery_delta)


def _list(name: Any, words: Any, form: CellFormat) -> tuple[Any, ...]:
    """Return listed categories once each, without missing cells."""
    kept = {text: word for word in words if (text := spelled(*read_cell(word, form))) is not None}
    if not kept:
        raise InputError(f"categories[{name!r}] must list at least one category, got {words!r}")
    return tuple(kept.values())


def asks_discovery(categories: Any) -> bool:
    """Return whether any column's categories are to be discovered."""
    words = categories.values() if isinstance(categories, Mapping) else [categories]
    return any(isinstance(word, str) and word == "discover" for word in words)


def public_inputs(declared: Declared) -> tuple[str, ...]:
    """Return in words what a certificate takes as known to everybody."""
    lists = {"ranges": declared.ranges, "categories": declared.categories}
    kinds = [name for name in declared.schema.columns if not any(name in names for names in lists.values())]
    said = [(what, names) for what, names in {**lists, "kinds and formats": kinds}.items() if names]
    if declared.schema.decimal or declared.schema.order or declared.schema.missing:
        said.append(("formats", ["all columns"]))
    return ("names and order of the columns", *(f"declared {what}: {', '.join(map(str, n))}" for what, n in said))


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Takes the columns of these names from a table, in this order; the model reads their cells.

    Parameters
    ----------
    columns
        The names.

    Examples
    --------
    >>> import deniable as dn
    >>> import pandas as pd
    >>> reader = dn.training.TableReader(["age"]).fit(None)
    >>> list(reader.transform(pd.DataFrame({"ward": ["A"], "age": [33]})).columns)
    ['age']
    """

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns that the model uses."""
        X = as_table(X)
        names = list(names_of(self.columns))
        if absent := [name for name in names if name not in X.columns]:
            raise InputError(f"the table must have the columns {few(absent)}, which it lacks")
        return X[names]

    def __sklearn_is_fitted__(self) -> bool:
        return True
