"""Rows as one array that need not fit into memory: a file that the operating system maps."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from deniable._check import FloatArray, InputError
from deniable._files import Spill
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
    """Write some rows after the others, in one pass, into a file that goes when the last array of it does."""
    spill = Spill()
    made = np.memmap(spill.path, dtype=np.float64, mode="w+", shape=table.shape)
    weakref.finalize(made.base, spill.close)
    at = 0
    for batch in table.batches():
        rows = made[at : at + len(batch[0])]
        for place, name in enumerate(table.names):
            rows[:, place] = _numbers(table, name, batch[place].infer_objects(), at)
        at += len(rows)
    return made


def _numbers(table: ColumnsOnDisk, name: Any, column: pd.Series[Any], at: int) -> FloatArray:
    """Return some cells of a column, from row ``at`` on, as finite numbers."""
    if not is_numeric_dtype(column):
        raise InputError(f"column {name!r} must hold numbers, {table.place_of(at)} does not")
    values = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        place = table.place_of(at + row)
        raise InputError(f"column {name!r} must be finite, {place} has {values[row]}; drop or impute")
    return values
