"""Pairs of columns with a joint shape function: chosen by one noisy release, coded as products of thermometers.

After a first fit of the columns alone, what is left of each record (its residual) is summed times products of two signs
per column: above or below the middle, inside or outside the middle half. A pair whose products still correlate with
the residuals is one that the sum of shape functions cannot express.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.training.design import CHUNK
from deniable.training.encoders import Codes, Encoder
from deniable.training.losses import RESIDUAL, ClippedLoss

MAINS_SHARE = 0.30  # of μ²: the first fit, whose residuals show what is missing
CHOICE_SHARE = 0.10  # of μ²: the noisy release that chooses the pairs
LEVELS = 4  # of each column in a pair
_SIGNS = np.array([[-1, -1, 1, 1, 0], [1, -1, -1, 1, 0]], dtype=np.int64)  # middle; outer half; 0: missing


@dataclass(frozen=True, eq=False)
class Pair:
    """Two columns at four levels each (a fifth where one is missing): nine products of thermometer signs."""

    first: int
    second: int
    names: tuple[Any, Any]
    first_levels: NDArray[np.uint16]
    second_levels: NDArray[np.uint16]

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.names[0]} × {self.names[1]}"

    @property
    def size(self) -> int:
        """Number of cells."""
        return (LEVELS + 1) ** 2

    def codes(self, first: Codes, second: Codes) -> Codes:
        """Return the joint cell of the cells of the two columns."""
        return np.asarray(self.first_levels[first] * np.uint16(LEVELS + 1) + self.second_levels[second])

    def basis(self) -> tuple[FloatArray, FloatArray]:
        """Return the whole numbers, (cells, coordinates), and the scale of each coordinate."""
        m = LEVELS - 1
        signs = np.zeros((LEVELS + 1, m))
        signs[:LEVELS] = np.where(np.arange(LEVELS)[:, None] > np.arange(m)[None, :], 1.0, -1.0)
        return np.asarray(np.kron(signs, signs), dtype=np.float64), np.full(m * m, 1.0 / m)


def levels_of(encoder: Encoder, effects: FloatArray) -> NDArray[np.uint16]:
    """Return the level of each cell: bins in order, categories in the order of what the first fit says of them.

    Words beside numbers are on the level of missing cells.
    """
    cells = encoder.bins or encoder.size - 1
    order = np.arange(cells)
    if not encoder.bins:
        order[np.argsort(effects[:cells], kind="stable")] = np.arange(cells)
    return np.append(order * LEVELS // cells, np.full(encoder.size - cells, LEVELS)).astype(np.uint16)


def products(loss: ClippedLoss, residuals: Sequence[FloatArray], levels: Sequence[NDArray[np.uint16]]) -> IntArray:
    """Return Σ residual · sign · sign, (pairs · 4, outputs), exact; ``levels`` has the level of each record."""
    columns, n = len(levels), levels[0].size
    total = np.zeros((loss.outputs, 2 * columns, 2 * columns))
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        signs = np.concatenate([_SIGNS[:, level[rows]] for level in levels]).astype(np.float64)
        for k, r in enumerate(residuals):
            total[k] += (signs * r[rows]) @ signs.T  # whole numbers: exact in any order
    first, second = _pairs(columns)
    blocks = [total[:, 2 * first + a, 2 * second + b] for a in (0, 1) for b in (0, 1)]
    return np.concatenate(blocks, axis=1).T.astype(np.int64)


def products_noise(loss: ClippedLoss, columns: int, mu: float, heaviest: int) -> float:
    """Return the standard deviation for μ-GDP: a record moves each product by at most its residual."""
    count = 4 * math.comb(columns, 2)
    return loss.clip * RESIDUAL * heaviest * math.sqrt(count) / mu * (1 + MANY_ROUNDINGS)


def strongest(released: FloatArray, columns: int, wanted: int) -> list[tuple[int, int]]:
    """Return the ``wanted`` pairs with the largest sum of squared products."""
    first, second = _pairs(columns)
    strength = np.square(released).sum(axis=1).reshape(4, -1).sum(axis=0)
    best = np.argsort(-strength, kind="stable")[:wanted]
    return sorted((int(first[i]), int(second[i])) for i in best)


def _pairs(columns: int) -> tuple[IntArray, IntArray]:
    pairs = np.array(list(combinations(range(columns), 2)), dtype=np.int64)
    return pairs[:, 0], pairs[:, 1]
