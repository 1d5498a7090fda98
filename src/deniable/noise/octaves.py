"""Where the numbers of a column lie, found from a noisy histogram over octaves (powers of two).

The grid is fixed beforehand: ±2⁻²⁰ … 2⁴⁰ and a cell for exact zeros. One record counts in one cell.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from deniable._check import FloatArray, IntArray

_SMALLEST, _LARGEST = -20, 40  # 2⁻²⁰ … 2⁴⁰; what lies outside counts in the outermost cells
_OCTAVES = _LARGEST - _SMALLEST
CELLS = 2 * _OCTAVES + 1
_MISTAKEN = 0.02  # probability that noise alone makes an empty column look occupied, before the data speak
_FAR_MISTAKEN = 1e-5  # the same for an octave far beyond the others: it would stretch the range by orders of magnitude
_FAR = 2  # octaves beyond the others that are not far
_WIDEST = 8  # octaves of the widest window tried where no single octave stands out
_UNUSUAL = 0.05  # standard deviations by which a window must stand out more for each octave away from 1


def octave_cells(values: FloatArray) -> IntArray:
    """Return the cell of each finite number: negative octaves from the largest, zero, positive octaves."""
    _, exponent = np.frexp(values)
    octave = np.clip(exponent - 1 - _SMALLEST, 0, _OCTAVES - 1)
    sign = np.sign(values).astype(np.int64)
    return np.where(sign == 0, _OCTAVES, _OCTAVES + sign * (octave + 1)).astype(np.int64)


def cell_ends(cell: int) -> tuple[float, float]:
    """Return the interval that a cell stands for."""
    octave = abs(cell - _OCTAVES) - 1 + _SMALLEST
    if cell == _OCTAVES:
        return 0.0, 0.0
    low, high = 2.0**octave, 2.0 ** (octave + 1)
    return (low, high) if cell > _OCTAVES else (-high, -low)


def standing_out(counts: FloatArray, sd: float) -> float:
    """Return how many records are in cells above what noise alone makes of an empty column, but with chance 2 %."""
    return float(counts[counts > sd * ndtri(1 - _MISTAKEN / CELLS)].sum())


def range_from_counts(counts: FloatArray, sd: float) -> tuple[float, float]:
    """Return (low, high) with low < high: the hull of the octaves that stand out of the noise.

    An octave far beyond the others must stand out clearly: chance alone would else set the scale of everything. Where
    no octave stands out, the window of adjacent ones with the largest count in units of its own noise, a little in
    favour of numbers of ordinary size.
    """
    occupied = np.flatnonzero(counts > sd * ndtri(1 - _MISTAKEN / CELLS))
    if occupied.size:
        octave = np.abs(occupied - _OCTAVES)
        sure = counts[occupied] > sd * ndtri(1 - _FAR_MISTAKEN / CELLS)
        sure[np.argmax(counts[occupied])] = True
        reach = int(octave[sure].max())
        for step in np.sort(octave):
            reach = max(reach, int(step)) if step <= reach + _FAR else reach
        occupied = occupied[octave <= reach]
        first, last = int(occupied[0]), int(occupied[-1])
    else:
        total = np.concatenate(([0.0], np.cumsum(counts)))
        size = np.abs(np.abs(np.arange(CELLS) - _OCTAVES) + _SMALLEST)  # octaves away from 1
        scores = [
            (total[w:] - total[:-w]) / (sd * np.sqrt(w)) - _UNUSUAL * size[: CELLS + 1 - w]
            for w in range(1, _WIDEST + 1)
        ]
        width = int(np.argmax([s.max() for s in scores]))
        first = int(np.argmax(scores[width]))
        last = first + width
    low, high = cell_ends(first)[0], cell_ends(last)[1]
    return (low, high) if low < high else (-(2.0**_SMALLEST), 2.0**_SMALLEST)
