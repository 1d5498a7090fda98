"""Passes over the rows of large tables, block by block, so that temporaries stay small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray

_ENTRIES = 1 << 17  # numbers in one temporary array: about a processor's cache
_LEAST_ROWS = 256


def blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices that cover n rows of ``width`` numbers."""
    rows = max(_ENTRIES // max(width, 1), _LEAST_ROWS)
    for begin in range(0, n, rows):
        yield slice(begin, min(begin + rows, n))


@dataclass(frozen=True, eq=False)
class Summary:
    """Column moments of a table (n, d).

    Attributes
    ----------
    absolute, largest, square
        Mean |x|, largest |x| and mean x² of each column, (d,).
    """

    absolute: FloatArray
    largest: FloatArray
    square: FloatArray

    @classmethod
    def of(cls, parts: Iterable[FloatArray]) -> Summary:
        """Return the summary of the table of which these are the rows, block by block."""
        n, total = 0, [np.zeros(1)] * 3
        for part in parts:
            size = np.abs(part)
            n += len(part)
            total[0] = total[0] + size.sum(axis=0)
            total[1] = np.maximum(total[1], size.max(axis=0))
            total[2] = total[2] + np.einsum("nd,nd->d", part, part)
        return cls(total[0] / n, total[1], total[2] / n)
