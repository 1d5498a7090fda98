"""Passes over the rows of large tables, block by block, so that temporaries stay small."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from deniable._check import FloatArray, Indices

_ROWS = 1 << 15


def blocks(n: int) -> Iterator[slice]:
    """Yield slices that cover n rows."""
    for begin in range(0, n, _ROWS):
        yield slice(begin, min(begin + _ROWS, n))


def column_sums(of: Callable[[FloatArray], FloatArray], table: FloatArray) -> FloatArray:
    """Return Σ of(row) for an element-wise function of the rows of a table (n, d)."""
    total = np.zeros(table.shape[1])
    for rows in blocks(len(table)):
        total += of(table[rows]).sum(axis=0)
    return total


def columns_of(table: FloatArray, wanted: Indices) -> FloatArray:
    """Return the wanted columns, without a copy if these are all of them."""
    return table if np.array_equal(wanted, np.arange(table.shape[1])) else np.asarray(table[:, wanted])
