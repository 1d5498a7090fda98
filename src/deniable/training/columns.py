"""Tables in: which columns there are and of which kind. Names and kinds are public; values are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import FloatArray, InputError

_NANOSECONDS_A_DAY = 86_400e9
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("datetime64", "datetime", "date")


@dataclass(frozen=True)
class Column:
    """Name and kind ("number", "yes/no", "date" or "category") of a column."""

    name: Any
    kind: str


class Table:
    """The columns of an array or data frame, read one at a time so that no second copy of the data is made."""

    def __init__(self, X: Any, columns: Sequence[Column] | None = None) -> None:
        self._X = X
        self._frame = isinstance(X, pd.DataFrame)
        self.n_rows = len(X)
        names = list(X.columns) if self._frame else list(range(X.shape[1]))
        self.columns = (
            tuple(columns)
            if columns is not None
            else tuple(Column(n, _kind(self._raw(j))) for j, n in enumerate(names))
        )

    def _raw(self, j: int) -> Any:
        return self._X.iloc[:, j] if self._frame else self._X[:, j]

    def values(self, j: int) -> Any:
        """Return column j: float64 with NaN for numbers and dates (days), texts with None for the others."""
        column, raw = self.columns[j], self._raw(j)
        if column.kind in ("number", "date"):
            return days(raw) if column.kind == "date" else _numbers(column.name, raw)
        return _texts(raw)


def _kind(raw: Any) -> str:
    dtype = raw.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "yes/no"
    if pd.api.types.is_complex_dtype(dtype):
        raise InputError("Complex data not supported: give real numbers")
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return "date"
    if pd.api.types.is_object_dtype(dtype):
        inferred = pd.api.types.infer_dtype(raw, skipna=True)
        if inferred in _NUMBERS or inferred == "empty":
            return "number"
        if inferred == "boolean":
            return "yes/no"
        if inferred in _DATES:
            return "date"
    return "category"


def _numbers(name: Any, raw: Any) -> FloatArray:
    try:
        if isinstance(raw, pd.Series):
            out = raw.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            out = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"column {name!r} held numbers when the model was fitted, but not here") from None
    if np.isinf(out).any():
        raise InputError(f"column {name!r} has infinite values (infinity); make them missing (NaN) or drop those rows")
    return out


def days(raw: Any) -> FloatArray:
    """Return dates as days since 1970 and durations as days; NaN is missing."""
    series = pd.Series(raw)
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        out = series.dt.total_seconds().to_numpy(np.float64) / 86_400
    else:
        stamps = pd.to_datetime(series, utc=True, errors="coerce")
        out = stamps.astype("datetime64[ns, UTC]").astype("int64").to_numpy(np.float64) / _NANOSECONDS_A_DAY
        out[stamps.isna().to_numpy()] = np.nan
    return np.asarray(out, dtype=np.float64)


def _texts(raw: Any) -> Any:
    series = pd.Series(raw)
    missing = series.isna().to_numpy()
    try:
        index, distinct = pd.factorize(series)
    except TypeError as error:
        raise TypeError(
            f"each cell of X (an argument must be a string or a number) must be hashable: {error}"
        ) from None
    words = np.array([*(str(value) for value in distinct), None], dtype=object)
    out = words[index]
    out[missing] = None
    return out
