"""Where the numbers or dates of a column lie, found from a noisy histogram over octaves (powers of two), or years.

The grid is fixed beforehand: ±2⁻²⁰ … 2⁴⁰ and a cell for exact zeros; 1900 … 2100. One record counts in one cell.
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
YEARS = 201  # cells of dates, the outer ones for all before and after
_YEAR, _BEFORE = 365.2425, 70  # days; years from 1900 to 1970, from which days are counted
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
        size = np.abs(np.abs(np.arange(CELLS) - _OCTAVES) + _SMALLEST)  # octaves away from 1
        first, last = _window(counts, sd, _WIDEST, _UNUSUAL * size)
    low, high = cell_ends(first)[0], cell_ends(last)[1]
    return (low, high) if low < high else (-(2.0**_SMALLEST), 2.0**_SMALLEST)


def year_cells(days: FloatArray) -> IntArray:
    """Return the cell of each date, in days since 1970-01-01."""
    return np.asarray(np.clip(np.floor(days / _YEAR) + _BEFORE, 0, YEARS - 1), dtype=np.int64)


def years_from_counts(counts: FloatArray, sd: float) -> tuple[float, float]:
    """Return the days (low, high) of the years that stand out of the noise, alone or together."""
    clear = np.flatnonzero(counts > sd * ndtri(1 - _MISTAKEN / YEARS))
    years = np.append(clear, _window(counts, sd, YEARS, np.zeros(YEARS)))
    return float(years.min() - _BEFORE) * _YEAR, float(years.max() + 1 - _BEFORE) * _YEAR


def _window(counts: FloatArray, sd: float, widest: int, handicap: FloatArray) -> tuple[int, int]:
    """Return the ends of the adjacent cells with the largest count in units of its own noise."""
    total = np.concatenate(([0.0], np.cumsum(counts)))
    scores = [
        (total[w:] - total[:-w]) / (sd * np.sqrt(w)) - handicap[: counts.size + 1 - w] for w in range(1, widest + 1)
    ]
    width = int(np.argmax([s.max() for s in scores]))
    first = int(np.argmax(scores[width]))
    return first, first + width
