"""Rows as one array that need not fit into memory: a file that the operating system maps."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from pandas.api.types import is_numeric_dtype

from deniable._check import FloatArray, InputError
from deniable.tables.columnar import PAIR_TARGET, ColumnsOnDisk, on_disk


def mapped_rows(data: Any) -> Any:
    """Return the rows of a Parquet file or folder, a Dask data frame, or blocks as a mapped array; else ``data``.

    Blocks come from an iterator or a function that returns one. They are data frames of numbers, which become one array
    (n, d), or pairs (X, y), which become a pair of arrays.

    Raises
    ------
    InputError
        For texts, gaps and infinite numbers: with the column and the file or block and row.
    """
    table = on_disk(data)
    return data if table is None else _split(table, _mapped(table))


def _split(table: ColumnsOnDisk, rows: FloatArray) -> Any:
    return (rows[:, :-1], rows[:, -1]) if PAIR_TARGET in table.names else rows


def _mapped(table: ColumnsOnDisk) -> FloatArray:
    """Write one column after the other into a file that goes when the last array of it does."""
    folder = tempfile.mkdtemp(prefix="deniable-rows-")
    made = np.memmap(Path(folder) / "rows", dtype=np.float64, mode="w+", shape=table.shape)
    weakref.finalize(made.base, shutil.rmtree, folder, True)
    for place, name in enumerate(table.names):
        column = table.column(place)
        if not is_numeric_dtype(column):
            raise InputError(f"column {name!r} must hold numbers, {table.place_of(0)} has {column.iloc[0]!r}")
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = ~np.isfinite(values)
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(f"column {name!r} must be finite, {table.place_of(row)} has {values[row]}; drop or impute")
        made[:, place] = values
    return made
