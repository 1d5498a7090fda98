"""Parquet files: one file or a folder of them, checked to hold the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from deniable._check import InputError
from deniable._optional import require

_DAY = 86_400e9  # nanoseconds


@dataclass(frozen=True, eq=False)
class ParquetFile:
    """One file: what stands in its footer."""

    path: Path
    names: tuple[str, ...]
    rows: int
    index: tuple[str, ...]  # columns that pandas wrote as the index, which are left out of ``names``


def parquet_files(path: Path) -> list[ParquetFile]:
    """Return the file, or all files below a folder in the order of their names; only their footers are read.

    Raises
    ------
    InputError
        If there is none, one is broken, or they differ in their columns: with the file and the column.
    """
    require("pyarrow", purpose="Reading Parquet")
    paths = sorted(p for p in path.rglob("*.parquet") if p.is_file()) if path.is_dir() else [path]
    if not paths or not paths[0].is_file():
        raise InputError(f"data file {str(path)!r} does not exist, or is a folder without .parquet files")
    files = [_opened(one) for one in paths]
    for one in files[1:]:
        if one.names != files[0].names:
            difference = _difference(files[0].names, one.names)
            raise InputError(f"{one.path} must have the columns of {files[0].path}: {difference}")
    return files


def _opened(path: Path) -> ParquetFile:
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as opened:
            meta, schema = opened.metadata, opened.schema_arrow
    except Exception as error:
        raise InputError(f"{path} could not be read: {fault(error)}; is the Parquet file complete?") from None
    names = schema.names
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise InputError(f"{path} must have columns of different names, got {twice[0]!r} twice")
    index = index_columns(schema)
    return ParquetFile(path, tuple(name for name in names if name not in index), meta.num_rows, index)


def index_columns(schema: Any) -> tuple[str, ...]:
    """Return the names of columns that pandas wrote as the index."""
    known = (schema.pandas_metadata or {}).get("index_columns", [])
    return tuple(name for name in known if isinstance(name, str) and name in schema.names)


def as_series(column: Any) -> pd.Series[Any]:
    """Return a column of Arrow as one of pandas, in which no whole number is rounded for the gaps next to it."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind):
        return pd.Series(column.to_pylist(), dtype=object)
    if str(kind) == "month_day_nano_interval":  # days, a month as 30 of them
        spans = [None if span is None else (span[0] * 30 + span[1], span[2] / _DAY) for span in column.to_pylist()]
        return pd.Series([None if span is None else sum(span) for span in spans], dtype="float64")
    if pa.types.is_integer(kind) and column.null_count:
        return pd.Series(column.to_pylist(), dtype="Int64" if pa.types.is_signed_integer(kind) else "UInt64")
    found: pd.Series[Any] = column.to_pandas()
    return found


def frame_of(table: Any) -> pd.DataFrame:
    """Return a table of Arrow as a data frame, each column by :func:`as_series`."""
    series = [as_series(table.column(i)) for i in range(table.num_columns)]
    frame = pd.DataFrame(dict(enumerate(series)), index=range(table.num_rows))
    return frame.set_axis(list(table.column_names), axis=1)


def _difference(known: Sequence[str], found: Sequence[str]) -> str:
    missing, new = set(known) - set(found), set(found) - set(known)
    if missing:
        return f"column {min(missing)!r} is missing"
    return f"column {min(new)!r} is new" if new else "their order differs"


def target_among(names: Sequence[str], target: str | None, where: Any) -> str:
    """Return the name of the target, which must be given and be a column."""
    if target is None:
        raise InputError("target must name the column to predict when the data are a file or a Dask frame")
    if target not in names:
        raise InputError(f"target must be a column of {where}, got {target!r}; known are {few(names)}")
    return target


def few(names: Sequence[Any]) -> str:
    """Return some names in a row."""
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")


def fault(error: Exception) -> str:
    """Return what kind of error it was. Its own text may quote a cell: it is shown by ``--debug`` alone."""
    return getattr(error, "strerror", None) or type(error).__name__
