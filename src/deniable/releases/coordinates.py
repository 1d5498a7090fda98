"""Which numbers of a released value need noise of their own, and passes over large tables block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from deniable._check import FloatArray, Indices
from deniable._floats import CACHE

_CONSTANT = 1e-12  # relative spread below which a coordinate is a constant of the data set


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The coordinates of the flattened value that need noise of their own; the others are constants or copies."""

    shape: tuple[int, ...]
    free: Indices
    source: Indices  # for each coordinate its place in ``free``, or −1 for a constant
    constants: FloatArray

    @classmethod
    def of(cls, values: FloatArray, shape: tuple[int, ...]) -> Coordinates:
        """Find constants and copies among the columns of (draws, size) outputs of the whole data set."""
        return cls.like(alike([values]), shape, values[0])

    @classmethod
    def like(cls, first: Sequence[int] | Indices, shape: tuple[int, ...], constants: FloatArray) -> Coordinates:
        """Build them from the first coordinate that each one copies, −1 for a constant (as :func:`alike` returns)."""
        of = np.asarray(first, dtype=np.intp)
        free, place = np.unique(of[of >= 0], return_inverse=True)
        source = np.full(of.size, -1, dtype=np.intp)
        source[of >= 0] = place
        return cls(shape, free, source, constants)

    def expand(self, released: FloatArray, fill: FloatArray | float) -> FloatArray:
        """Return the full value from the released coordinates; ``fill`` stands where nothing varies."""
        if self.free.size == 0:
            return np.broadcast_to(fill, self.source.shape).reshape(self.shape).copy()
        return np.where(self.source >= 0, released[self.source], fill).reshape(self.shape)


def alike(parts: Iterable[FloatArray]) -> Indices:
    """Return, for each column of the table of which these are the rows, the first column equal to it; −1: constant."""
    low = high = None
    group: list[object] = []
    for part in parts:
        if low is None or high is None:
            low, high, group = part.min(axis=0), part.max(axis=0), [b""] * part.shape[1]
        low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
        often = Counter(group)  # a column alone in its group has no copy
        shared = [j for j, one in enumerate(group) if often[one] > 1]
        for j in shared:  # + 0.0, as −0 equals 0
            group[j] = (group[j], sha256((part[:, j] + 0.0).tobytes()).digest())
        seen: dict[object, int] = {}
        group = [seen.setdefault(one, j) for j, one in enumerate(group)]
    if low is None or high is None:
        return np.zeros(0, dtype=np.intp)
    constant = high - low <= _CONSTANT * np.maximum(np.abs(low), np.abs(high))
    return np.where(constant, -1, np.array(group, dtype=np.intp))


def blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices that cover n rows of ``width`` numbers."""
    rows = max(CACHE // max(width, 1), 1)
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
