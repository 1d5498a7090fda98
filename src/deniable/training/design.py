"""The encoded data and the two passes over them: scores from weights, exact sums from residuals.

Everything here is whole numbers: cell indices, basis entries, residuals on a lattice and weights on a lattice.
A sum of whole numbers below 2⁵³ is exact in double precision in any order, so neither the order of the records nor the
processor's vector units leave a trace, and a record's residual depends on nothing but the record and what was released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, coo_array, csr_matrix

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.training.encoders import Codes, Encoder, Pair
from deniable.training.losses import EXACT, RESIDUAL, SCORE, Scores

_MOST_CELLS = 1 << 16  # of one shared index
_FINE = 64.0  # lattice points of a basis entry ±1, so that means can be subtracted
_SHORTEST = 0.02  # mean square norm per block below which rows are not scaled up any further
_DENSE_ENTRIES = 1 << 27  # records times coordinates up to which a dense matrix takes 256 MiB at most
_AT_ONCE = 1 << 20  # entries of it that are turned into doubles at a time
_SHORT = 6  # coordinates per block up to which it is quicker (measured), if there are at least as many outputs
_SEVERAL = 3  # outputs from which on it is quicker (measured)
_FINER = 2.0**13  # of a dense matrix: weights on a lattice finer than that of the scores
_HIGHEST = 2**30  # of a score: whole numbers of 32 bits
CHUNK = 1 << 17  # records a pass handles at a time: many more than a shared index has cells (measured)


@dataclass(frozen=True, eq=False)
class Basis:
    """All blocks: ``entries`` (cells, coordinates) in whole numbers, ``scale`` per coordinate, rows of norm about 1.

    The last block is the intercept: one cell that every record is in.
    """

    sizes: tuple[int, ...]
    entries: csr_matrix
    scale: FloatArray

    @classmethod
    def of(cls, blocks: Sequence[Encoder | Pair], masses: Sequence[FloatArray]) -> Basis:
        """Return the blocks and the intercept, each block without its mean row under ``masses``.

        A cell whose mass is NaN stays as it is. All is scaled such that rows have mean square norm 1 if the records
        are spread as the masses say (what they leave of 1 counts as rows of norm 1).
        """
        parts, square = [(np.ones((1, 1)), np.ones(1))], 1.0
        for block, mass in zip(blocks, masses, strict=True):
            rows, scale = block.basis()
            fine = np.where(np.abs(rows).max(axis=0) > 1, 1.0, _FINE)
            rows, scale, moved, share = rows * fine, scale / fine, ~np.isnan(mass), np.nan_to_num(mass)
            left = max(1 - float(share.sum()), 0.0)
            middle = np.rint(share @ rows)
            rows[moved] -= middle
            square += left + float(share @ np.square(rows * scale).sum(axis=1))
            parts.insert(-1, (rows, scale))
        length = np.sqrt(max(square, _SHORTEST * len(parts)))
        entries: csr_matrix = csr_matrix(block_diag([coo_array(rows) for rows, _ in parts], format="csr"))
        return cls(tuple(len(rows) for rows, _ in parts), entries, np.concatenate([s for _, s in parts]) / length)

    @property
    def starts(self) -> NDArray[np.int64]:
        """First cell of each block."""
        return np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.int64)

    @property
    def usual(self) -> float:
        """Root mean square length of a row before all were scaled by its inverse."""
        return float(1 / (self.scale[-1] * np.sqrt(len(self.sizes))))

    def squared_norms(self, sd: FloatArray) -> FloatArray:
        """Return Σ (entry / sd)² over the coordinates of each cell."""
        return np.asarray(self.entries.power(2) @ (1 / np.square(sd)), dtype=np.float64)

    def largest_squared_norm(self, sd: FloatArray) -> float:
        """Return the largest Σ (entry / sd)² of any possible record: the worst cell of each block."""
        cells = self.squared_norms(sd)
        return float(np.sum(np.maximum.reduceat(cells, self.starts)))

    def longest_row(self, sd: FloatArray) -> float:
        """Return the largest Σ (entry/sd)² that counts in full: that of a scaled row of norm 1, or of the longest row.

        A longer row's residuals are scaled down (:func:`shares`): noise for usual rows, of mean square norm 1, is
        enough.
        """
        return min(1 / float(np.square(self.scale * sd).max()), self.largest_squared_norm(sd))


def shares(squares: FloatArray, longest: float) -> FloatArray:
    """Return the factors that keep rows with these Σ (entry/sd)² within ``longest``, rounded down."""
    return np.asarray(np.minimum(np.sqrt(longest / np.maximum(squares, longest)), 1.0) * (1 - MANY_ROUNDINGS))


def design_of(codes: Iterator[Codes], basis: Basis, n_rows: int, outputs: int, n: float, heaviest: int) -> Design:
    """Return the records as rows of the basis in the quickest form: a matrix where that is small, or shared indices.

    A dense matrix rounds scores once, the others cell by cell. Which of the two is used shows in the result, so it
    depends on ``n``, the noisy number of records, not on ``n_rows``. ``heaviest`` is the largest weight of a record.
    """
    blocks, coordinates = len(basis.sizes), basis.scale.size
    short = outputs >= _SEVERAL and coordinates <= min(outputs, _SHORT) * blocks
    if short and n * coordinates <= _DENSE_ENTRIES:
        return DenseDesign(codes, basis, n_rows, heaviest)
    return SharedDesign(codes, basis, n_rows)


class _Records:
    """Records as cells of the basis, and slices that cover them: a pass handles ``at_once`` at a time."""

    def __init__(self, basis: Basis, n_rows: int, at_once: int) -> None:
        self._sizes, self._entries, self._n_rows, self._at_once = basis.sizes, basis.entries, n_rows, at_once

    def chunks(self) -> Iterator[slice]:
        """Return slices that cover the records."""
        starts = range(0, self._n_rows, self._at_once)
        return (slice(start, min(start + self._at_once, self._n_rows)) for start in starts)


class DenseDesign(_Records):
    """The rows themselves, without coordinates that no record has: two products of matrices, exact in any order.

    A product of whole numbers is exact while the sizes of its terms sum to less than 2⁵³, whatever the order. Weights
    are clipped so that this holds for the scores, and chunks are short enough that it holds for the sums of residuals.
    """

    def __init__(self, codes: Iterator[Codes], basis: Basis, n_rows: int, heaviest: int) -> None:
        largest = np.maximum(abs(basis.entries).max(axis=0).toarray().ravel(), 1.0)
        self._coordinates = basis.scale.size
        self._most = EXACT / float(largest.sum())
        few = min(int(EXACT / (heaviest * RESIDUAL * float(largest.max()))), _AT_ONCE // largest.size)
        super().__init__(basis, n_rows, max(few, 1))
        rows = np.empty((n_rows, largest.size), dtype=np.int16, order="F")
        used: list[int] = []
        for code, start, size in zip(codes, basis.starts, basis.sizes, strict=True):
            cells = basis.entries[start : start + size]
            for coordinate in np.unique(cells[np.bincount(code, minlength=size) > 0].indices):
                rows[:, len(used)] = cells[:, [coordinate]].toarray().ravel().astype(np.int16)[code]
                used.append(int(coordinate))
        self._used, self._rows = np.array(used, dtype=np.int64), rows[:, : len(used)]

    def prepare(self, weights: FloatArray) -> FloatArray:
        """Return the weights on a lattice finer than that of the scores."""
        whole = np.rint(weights[self._used] * (SCORE * _FINER))
        return np.asarray(np.clip(whole, -self._most, self._most), dtype=np.float64)

    def scores(self, prepared: FloatArray, rows: slice) -> list[Scores]:
        """Return the product of rows and weights, rounded to the lattice of the scores."""
        found = np.rint(prepared.T @ self._rows[rows].astype(np.float64).T / _FINER)
        return list(np.clip(found, -_HIGHEST, _HIGHEST).astype(np.int32))

    def empty(self, outputs: int) -> IntArray:
        """Return sums of zero."""
        return np.zeros((self._used.size, outputs), dtype=np.int64)

    def add(self, sums: IntArray, residuals: list[FloatArray], rows: slice) -> None:
        """Add each record's residuals times its row."""
        found = self._rows[rows].astype(np.float64).T @ np.stack(residuals, axis=1)
        np.add(sums, found.astype(np.int64), out=sums)

    def total(self, sums: IntArray) -> IntArray:
        """Return the sums, (coordinates, outputs); 0 for coordinates that no record has."""
        out = np.zeros((self._coordinates, sums.shape[1]), dtype=np.int64)
        out[self._used] = sums
        return out


class SharedDesign(_Records):
    """A few blocks share an index (their cells multiply): two bytes for two or three columns, fewer passes."""

    def __init__(self, codes: Iterator[Codes], basis: Basis, n_rows: int) -> None:
        super().__init__(basis, n_rows, CHUNK)
        groups = _group_blocks(self._sizes, min(_MOST_CELLS, max(n_rows, 1)))
        self._index: list[Codes] = []
        for group in groups:
            joint = np.zeros(n_rows, dtype=np.uint16)
            for block in group:
                joint *= np.uint16(self._sizes[block] % _MOST_CELLS)
                joint += next(codes)
            self._index.append(joint)
        self._groups = groups
        self._shapes = [tuple(self._sizes[b] for b in group) for group in groups]
        self._starts = np.concatenate(([0], np.cumsum(self._sizes))).astype(np.int64)
        self._transpose = basis.entries.T.astype(np.int64).tocsr()

    def prepare(self, weights: FloatArray) -> list[list[Scores]]:
        """Return for each output and group the sum of its blocks' values at each shared index."""
        most = _HIGHEST // len(self._sizes)
        cells = np.clip(np.rint(self._entries @ weights * SCORE), -most, most).astype(np.int32)
        return [self._tables(cells[:, k]) for k in range(cells.shape[1])]

    def _tables(self, cells: Scores) -> list[Scores]:
        out = []
        for group, shape in zip(self._groups, self._shapes, strict=True):
            table = np.zeros(shape, dtype=np.int32)
            for axis, block in enumerate(group):
                values = cells[self._starts[block] : self._starts[block + 1]]
                table += values.reshape([-1 if a == axis else 1 for a in range(len(shape))])
            out.append(table.ravel())
        return out

    def scores(self, prepared: list[list[Scores]], rows: slice) -> list[Scores]:
        """Return the sum of the tables at the records' indices."""
        out = []
        for tables in prepared:
            total = tables[0].take(self._index[0][rows])
            for table, index in zip(tables[1:], self._index[1:], strict=True):
                total += table.take(index[rows])
            out.append(total)
        return out

    def empty(self, outputs: int) -> list[list[FloatArray]]:
        """Return sums of zero, one array per group and output."""
        return [[np.zeros(int(np.prod(shape))) for shape in self._shapes] for _ in range(outputs)]

    def add(self, sums: list[list[FloatArray]], residuals: list[FloatArray], rows: slice) -> None:
        """Add each record's residual to the cell of each of its groups."""
        for totals, residual in zip(sums, residuals, strict=True):
            for total, index in zip(totals, self._index, strict=True):
                np.add(total, np.bincount(index[rows], residual, minlength=total.size), out=total)

    def total(self, sums: list[list[FloatArray]]) -> IntArray:
        """Return the sums, (coordinates, outputs)."""
        cells = np.stack([self._margins(totals) for totals in sums], axis=1)
        return np.asarray(self._transpose @ cells.astype(np.int64))

    def _margins(self, totals: list[FloatArray]) -> FloatArray:
        parts: dict[int, FloatArray] = {}
        for group, shape, total in zip(self._groups, self._shapes, totals, strict=True):
            cube = total.reshape(shape)
            for axis, block in enumerate(group):
                parts[block] = cube.sum(axis=tuple(a for a in range(len(shape)) if a != axis))
        return np.concatenate([parts[block] for block in range(len(self._sizes))])


Design = DenseDesign | SharedDesign  # each makes two passes over the records: scores, sums of residuals


def _group_blocks(sizes: Sequence[int], most: int) -> list[list[int]]:
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
