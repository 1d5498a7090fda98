"""The encoded data and the two passes over them: scores from weights, exact sums from residuals.

Everything here is whole numbers: cell indices, basis entries, residuals on a lattice and tables of scores on a lattice.
A sum of whole numbers below 2⁵³ is exact in double precision in any order, so neither the order of the records nor the
processor's vector units leave a trace, and a record's residual depends on nothing but the record and what was released.

Several blocks share one index (their cells multiply) so that a pass reads each record fewer times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_matrix

from deniable._check import FloatArray
from deniable.training.encoders import Codes, Encoder

_MOST_CELLS = 1 << 16  # of one shared index
CHUNK = 1 << 15  # records a pass handles at a time: the temporaries stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Basis:
    """All blocks: ``entries`` (cells, coordinates) in whole numbers, ``scale`` per coordinate, rows of norm ≤ 1.

    The last block is the intercept: one cell that every record is in.
    """

    sizes: tuple[int, ...]
    entries: csr_matrix
    scale: FloatArray

    @classmethod
    def of(cls, encoders: Sequence[Encoder]) -> Basis:
        """Return the blocks of the encoders and the intercept, each scaled by 1/√(number of blocks)."""
        parts = [encoder.basis() for encoder in encoders] + [(np.ones((1, 1)), np.ones(1))]
        share = np.sqrt(len(parts))
        entries: csr_matrix = csr_matrix(block_diag([rows for rows, _ in parts], format="csr"))
        return cls(tuple(len(rows) for rows, _ in parts), entries, np.concatenate([s for _, s in parts]) / share)

    @property
    def starts(self) -> NDArray[np.int64]:
        """First cell of each block."""
        return np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.int64)

    def squared_norms(self, sd: FloatArray) -> FloatArray:
        """Return Σ (entry / sd)² over the coordinates of each cell."""
        return np.asarray(self.entries.power(2) @ (1 / np.square(sd)), dtype=np.float64)

    def largest_squared_norm(self, sd: FloatArray) -> float:
        """Return the largest Σ (entry / sd)² of any possible record: the worst cell of each block."""
        cells = self.squared_norms(sd)
        return float(np.sum(np.maximum.reduceat(cells, self.starts)))


class Design:
    """Records as indices of cells, a few blocks sharing an index."""

    def __init__(self, codes: Iterator[Codes], sizes: Sequence[int], n_rows: int) -> None:
        self.n_rows, self.sizes = n_rows, tuple(sizes)
        self.groups = _grouped(self.sizes, min(_MOST_CELLS, max(n_rows, 1)))
        self._index: list[Codes] = []
        for group in self.groups:
            joint = np.zeros(n_rows, dtype=np.uint16)
            for block in group:
                joint *= np.uint16(self.sizes[block]) if self.sizes[block] < _MOST_CELLS else np.uint16(1)
                joint += next(codes)
            self._index.append(joint)
        self._shapes = [tuple(self.sizes[b] for b in group) for group in self.groups]
        self._starts = np.concatenate(([0], np.cumsum(self.sizes))).astype(np.int64)

    def tables(self, cells: FloatArray) -> list[NDArray[np.int32]]:
        """Return for each group the sum of its blocks' cell values (whole numbers) at each shared index."""
        out = []
        for group, shape in zip(self.groups, self._shapes, strict=True):
            table = np.zeros(shape, dtype=np.int32)
            for axis, block in enumerate(group):
                values = cells[self._starts[block] : self._starts[block + 1]].astype(np.int32)
                table += values.reshape([-1 if a == axis else 1 for a in range(len(shape))])
            out.append(table.ravel())
        return out

    def scores(self, tables: Sequence[NDArray[np.int32]], rows: slice) -> NDArray[np.int32]:
        """Return the sum of the tables at the records' indices."""
        total = tables[0].take(self._index[0][rows])
        for table, index in zip(tables[1:], self._index[1:], strict=True):
            total += table.take(index[rows])
        return total

    def empty(self) -> list[FloatArray]:
        """Return sums of zero, one array a group."""
        return [np.zeros(int(np.prod(shape))) for shape in self._shapes]

    def add(self, sums: Sequence[FloatArray], residuals: FloatArray, rows: slice) -> None:
        """Add each record's residual to the cell of each of its groups."""
        for total, index in zip(sums, self._index, strict=True):
            np.add(total, np.bincount(index[rows], residuals, minlength=total.size), out=total)

    def per_cell(self, sums: Sequence[FloatArray]) -> FloatArray:
        """Return the sums by cell of each block."""
        parts: dict[int, FloatArray] = {}
        for group, shape, total in zip(self.groups, self._shapes, sums, strict=True):
            cube = total.reshape(shape)
            for axis, block in enumerate(group):
                parts[block] = cube.sum(axis=tuple(a for a in range(len(shape)) if a != axis))
        return np.concatenate([parts[block] for block in range(len(self.sizes))])

    def chunks(self) -> Iterator[slice]:
        """Return slices that cover the records."""
        return (slice(start, start + CHUNK) for start in range(0, self.n_rows, CHUNK))


def _grouped(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Join adjacent blocks while the product of their sizes stays within ``most``."""
    groups: list[list[int]] = []
    cells = most + 1
    for block, size in enumerate(sizes):
        if cells * size <= most:
            groups[-1].append(block)
            cells *= size
        else:
            groups.append([block])
            cells = size
    return groups
