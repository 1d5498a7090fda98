"""A fitted model: what each cell of each column, and of each pair of columns, adds to the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray, IntArray
from deniable.training.design import Basis
from deniable.training.encoders import Codes, Encoder, Pair, with_pairs
from deniable.training.features import FeatureTable


@dataclass(frozen=True, eq=False)
class Additive:
    """Result of a fit: encoders, pairs and coefficients; it holds nothing else of the data."""

    encoders: tuple[Encoder, ...]
    pairs: tuple[Pair, ...]
    basis: Basis
    coefficients: FloatArray

    @property
    def blocks(self) -> tuple[Encoder | Pair, ...]:
        """Columns, then pairs: one block of the basis each."""
        return (*self.encoders, *self.pairs)

    def cell_scores(self) -> FloatArray:
        """Return what each cell adds to the scores, (cells, outputs); the intercept is the last cell."""
        return np.asarray(self.basis.entries @ (self.basis.scale[:, None] * self.coefficients))

    def scores(self, table: FeatureTable) -> FloatArray:
        """Return the scores of a table's rows, (rows, outputs)."""
        return self.sum_scores(codes_of(table, self.encoders))

    def sum_scores(self, codes: Sequence[Codes]) -> FloatArray:
        """Return the scores of records in these cells, of the columns and of the intercept, (rows, outputs)."""
        cells, starts = self.cell_scores(), self.basis.starts
        out = np.zeros((codes[-1].size, cells.shape[1]))
        for start, block in zip(starts, with_pairs(codes, self.pairs), strict=True):
            out += cells[start + block.astype(np.int64)]
        return out

    def block(self, j: int) -> FloatArray:
        """Return what each cell of block j adds to the scores, centred over its :meth:`occupied` cells."""
        start = int(self.basis.starts[j])
        values = self.cell_scores()[start : start + self.blocks[j].size]
        return np.asarray(values - values[self.occupied(j)].mean(axis=0))

    def spread(self, j: int) -> float:
        """Return how far block j moves the score, of several the last one, between two records."""
        values = self.block(j)[self.occupied(j), -1]
        return float(np.ptp(values)) if values.size else 0.0

    def occupied(self, j: int) -> IntArray:
        """Return the cells of block j that records are known to be in: of numbers all, but for the missing values' one.

        So of lists of two values; of pairs all cells with both. Of other categories those whose noisy count stood out
        and is 1/128 of all or more (the basis' mean row shows it), or all but the missing one; of mixed ones none.
        """
        encoder = self.blocks[j]
        if isinstance(encoder, Pair):
            return encoder.grid(np.arange(encoder.size)).ravel()
        if encoder.in_order:
            return np.arange(encoder.in_order)
        start, coordinate = int(self.basis.starts[j]), sum(b.basis()[1].size for b in self.blocks[:j])
        rows = self.basis.entries[start : start + encoder.size, coordinate : coordinate + encoder.size]
        lowest = rows.toarray().min(axis=0)
        return np.flatnonzero(lowest < 0) if (lowest < 0).any() else np.arange(encoder.size - 1)


def codes_of(table: FeatureTable, encoders: Sequence[Encoder]) -> list[Codes]:
    """Return the cells of each column, and of the intercept."""
    codes = [encoder.codes(table.cells(column)) for column, encoder in zip(table.columns, encoders, strict=True)]
    return [*codes, np.zeros(table.n_rows, dtype=np.uint16)]
