"""Tables in: which columns there are and of which kind. Names and kinds are public; values are not."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import FloatArray, InputError
from deniable.tables.columnar import ColumnsOnDisk

_MICROSECONDS_A_DAY = 86_400e6
_LAST_DAY = 106_751
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?$")
_MANY = 20  # from this many rows on, a column of mostly distinct texts counts as identifying people
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("datetime64", "datetime", "date")
MEASURED = ("number", "date", "duration")  # kinds of columns whose values have an order and distances


@dataclass(frozen=True)
class FeatureColumn:
    """Name, kind and place of a column in the data.

    Kinds are "number", "yes/no", "date", "duration", "category" and "identifier".
    """

    name: Any
    kind: str
    place: int


class FeatureTable:
    """The columns of an array, a data frame or of files, read one at a time so that no second copy of them is made.

    Without ``columns`` (those of a fitted model) kinds are inferred, and texts that are nearly all different are
    ``left_out``: they identify people and teach nothing. Names in ``keep`` stay.
    """

    def __init__(self, X: Any, columns: Sequence[FeatureColumn] | None = None, keep: Collection[Any] = ()) -> None:
        self._X = X
        self.n_rows = len(X)
        self.left_out: tuple[FeatureColumn, ...] = ()
        if columns is None:
            names = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
            found = [FeatureColumn(name, _kind(self._raw(j)), j) for j, name in enumerate(names)]
            found = [replace(c, kind="category") if c.name in keep and c.kind == "identifier" else c for c in found]
            self.left_out = tuple(c for c in found if c.kind == "identifier")
            columns = [c for c in found if c.kind != "identifier"]
        self.columns = tuple(columns)

    def _raw(self, place: int) -> Any:
        if isinstance(self._X, ColumnsOnDisk):
            return self._X.column(place)
        return self._X.iloc[:, place] if isinstance(self._X, pd.DataFrame) else self._X[:, place]

    def values(self, j: int) -> Any:
        """Return column j: float64 with NaN for numbers and dates (days), texts with None for the others.

        Each cell is read alone. What is not of the column's kind, and infinity, is missing: no record makes a fit fail.
        """
        column = self.columns[j]
        raw = self._raw(column.place)
        if column.kind in MEASURED:
            return days(raw) if column.kind != "number" else self._numbers(column.name, raw)
        return _texts(raw)

    def _numbers(self, name: Any, raw: Any) -> FloatArray:
        try:
            if isinstance(raw, pd.Series):
                out = raw.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                out = np.asarray(raw, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"column {name!r} held numbers when the model was fitted, but not here") from None
        return np.where(np.isinf(out), np.nan, out)


def _kind(raw: Any) -> str:
    dtype = raw.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "yes/no"
    if pd.api.types.is_complex_dtype(dtype):
        raise InputError("Complex data not supported: give real numbers")
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "date"
    if pd.api.types.is_timedelta64_dtype(dtype):
        return "duration"
    if pd.api.types.is_object_dtype(dtype):
        inferred = pd.api.types.infer_dtype(raw, skipna=True)
        if inferred in _NUMBERS or inferred == "empty":
            return "number"
        if inferred == "boolean":
            return "yes/no"
        if inferred in _DATES:
            return "date"
    return _kind_of_texts(pd.Series(raw).dropna())


def _kind_of_texts(texts: Any) -> str:
    """Dates as 2024-12-31, identifiers (most texts occur once), categories."""
    if not len(texts) or not isinstance(texts.iloc[0], str):
        return "category"
    if _ISO_DATE.match(texts.iloc[0]) and texts.astype(str).str.match(_ISO_DATE).all():
        return "date"
    return "identifier" if len(texts) >= _MANY and texts.nunique() > len(texts) / 2 else "category"


def days(raw: Any) -> FloatArray:
    """Return dates as days since 1970 and durations as days; NaN is missing."""
    series = pd.Series(raw)
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        out = series.dt.total_seconds().to_numpy(np.float64) / 86_400
    else:
        form = None if pd.api.types.is_datetime64_any_dtype(series.dtype) else "ISO8601"
        stamps = pd.to_datetime(series, utc=True, errors="coerce", format=form).dt.tz_localize(None)
        out = stamps.to_numpy("datetime64[us]").astype(np.int64) / _MICROSECONDS_A_DAY
        out[np.abs(out) > _LAST_DAY] = np.nan  # of 64 bits of nanoseconds; with it what is no date
    return np.asarray(out, dtype=np.float64)


def text_of(cell: Any) -> str:
    """Return the text of one cell, read alone; a whole number has no point, however its column is stored."""
    try:
        hash(cell)
    except TypeError:
        raise TypeError("each cell of X (an argument must be a string or a number) must hold one value") from None
    whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
    return str(int(cell) if whole else cell)


def _texts(raw: Any) -> Any:
    series = pd.Series(raw)
    cells = zip(series.tolist(), series.isna().tolist(), strict=True)
    out = np.empty(len(series), dtype=object)
    out[:] = [None if missing else cell if type(cell) is str else text_of(cell) for cell, missing in cells]
    return out
