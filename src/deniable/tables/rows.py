"""Rows as one array that need not fit into memory: a file that the operating system maps."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from deniable._files import Spill
from deniable.tables.blocks import row_parts
from deniable.tables.columnar import PAIR_TARGET, on_disk


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
    if table is None:
        return data
    spill = Spill()
    made = np.memmap(spill.path, dtype=np.float64, mode="w+", shape=table.shape)
    weakref.finalize(made.base, spill.close)  # the file goes when the last array of it does
    at = 0
    for block in (block for part in row_parts(table) for block in part.blocks()):
        rows = made[at : (at := at + len(block.y))]
        for place, (column, name) in enumerate(zip((*block.columns, block.y), table.names, strict=True)):
            rows[:, place] = block.numeric(column, name)
    return (made[:, :-1], made[:, -1]) if PAIR_TARGET in table.names else made
