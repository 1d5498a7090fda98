"""What columns hold, and where their numbers or dates lie: decided by noisy counts, and by nothing else of the cells.

One private query asks for the kinds of all columns. Ranges are found from noisy histograms over octaves (powers of two)
or years; one record counts in one cell. The grid is fixed beforehand: ±2⁻²⁰ … 2⁴⁰ and a cell for exact zeros; 1900 …
2100.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise.queries import Queries, Units

if TYPE_CHECKING:
    from deniable.tables import ColumnCells

KINDS_SHARE = 0.03  # of μ²: how many records there are, and what the columns hold
DISTINCT, TOTAL = 0.5, 0.5  # weights, next to the counts of a column's cells, of its distinct words and of all records
CLEAR = 3.0  # standard deviations of noise by which cells of a kind must stand out
_KINDS = ("missing", "fractional", "date", "word", "flag", "whole")  # in the order of the counts
_PURPOSE = "how many there are, and what the columns hold"
REPLACED = math.sqrt((2 + DISTINCT**2) / (1 + DISTINCT**2 + TOTAL**2))  # times μ: one cell is left, one entered
COUNT_NOISE = math.sqrt((1 + DISTINCT**2 + TOTAL**2) / (1 / len(_KINDS) + TOTAL**2))  # sd of the number, times μ
_SMALLEST, _LARGEST = -20, 40  # 2⁻²⁰ … 2⁴⁰; what lies outside counts in the outermost cells
_OCTAVES = _LARGEST - _SMALLEST
CELLS = 2 * _OCTAVES + 1
_MISTAKEN = 0.02  # probability that noise alone makes an empty column look occupied, before the data speak
_FAR_MISTAKEN = 1e-5  # the same for an octave far beyond the others: it would stretch the range by orders of magnitude
_FAR = 2  # octaves beyond the others that are not far
_WIDEST = 8  # octaves of the widest window tried where no single octave stands out
YEARS = 201  # cells of dates, the outer ones for all before and after
_YEAR, _BEFORE = 365.2425, 70  # days; years from 1900 to 1970, from which days are counted
# where ranges are searched, by whether they are of dates
_SEARCHED = {False: (-(2.0**_LARGEST), 2.0**_LARGEST), True: (-_BEFORE * _YEAR, (YEARS - _BEFORE) * _YEAR)}
_UNUSUAL = 0.05  # standard deviations by which a window must stand out more for each octave away from 1


@dataclass(frozen=True, kw_only=True)
class ColumnKind:
    """What a column holds, by released counts or by declaration.

    Attributes
    ----------
    kind
        "number" or "date" if at least half of its cells are, else "category"; "any" if it is empty or not known.
    axis
        "number" or "date" if some are, whatever most of them are; "" for none.
    words
        The words: "" for none that are worth a cell, "flags" (yes and no), "many", or "unique" (more
        than half of its words and flags are words of their own).
    whole
        Its numbers are whole.
    sure
        Whether any kind stands out of the noise; otherwise it is read as numbers and words.
    most
        What most of its cells are likely to be, "number", "date" or "flag", however few stand out.
    other
        About how many of its cells are filled and of another kind, by noisy counts; 0 where none stand out.
    """

    kind: str = "any"
    axis: str = ""
    words: str = ""
    whole: bool = False
    sure: bool = True
    most: str = field(default="number", compare=False)
    other: float = field(default=0.0, compare=False)

    @property
    def measured(self) -> bool:
        """Whether it has bins."""
        return self.axis != ""

    def __str__(self) -> str:
        words = {"flags": "yes and no", "many": "words", "unique": "nearly unique words", "": ""}[self.words]
        numbers = f"{'whole ' * self.whole}{self.axis}s" if self.measured else ""
        return (" and " if self.sure else " or ").join(part for part in (numbers, words) if part)


def ask_kinds(look: Queries, columns: Iterable[ColumnCells], n_rows: int, mu: float) -> tuple[float, list[ColumnKind]]:
    """Return about how many units there are, and what each column holds, by one query.

    A record is in one cell of each column (missing, part of a whole, whole, date, flag or other word), is at most one
    more distinct word, and is counted once more for all columns: it moves the counts, in units of their noise, by at
    most √(columns·(1 + DISTINCT² + TOTAL²)). So does a person, whose weights sum to at most ``heaviest``: of a word
    min(heaviest, its weights) is counted.
    """
    counts = np.array([_count_kinds(cells, look.units) for cells in columns])
    if not len(counts):
        return look.count(n_rows, mu, _PURPOSE), []
    heaviest, k = look.units.heaviest, len(counts)
    paid = look.pay("kinds", _PURPOSE, mu)
    sd = math.sqrt(k * (1 + DISTINCT**2 + TOTAL**2)) / mu * (1 + MANY_ROUNDINGS)
    each = [*[1.0] * len(_KINDS), 1 / DISTINCT]
    sds = np.array([*each * k, 1 / (TOTAL * math.sqrt(k))]) * sd * heaviest
    noised = paid.channel("kinds", sds)(np.append(counts.ravel(), look.units.total(n_rows))) / heaviest
    rows = noised[:-1].reshape(k, -1)
    mean = float(rows[:, : len(_KINDS)].sum(axis=1).mean())
    n = (mean / len(_KINDS) + TOTAL**2 * float(noised[-1])) / (1 / len(_KINDS) + TOTAL**2)  # by their variances
    return max(n, 1.0), [_kind_of_counts(row, sd) for row in rows]


def _count_kinds(cells: ColumnCells, units: Units) -> list[int]:
    """Count the cells of each of ``_KINDS``, and the distinct words that are no flags."""
    from deniable.tables import NUMBER, WORD  # needs pandas

    whole = cells.number == np.rint(cells.number)
    kind = np.where(~np.isnan(cells.flags), 4, np.where(whole & (cells.kind == NUMBER), 5, cells.kind))
    words = kind == WORD
    weights = units.weights if units.weights is None else units.weights[words]
    distinct = np.minimum(np.bincount(cells.word[words], weights), units.heaviest).sum()
    return [*np.bincount(kind, units.weights, minlength=len(_KINDS)).astype(np.int64).tolist(), int(distinct)]


def _kind_of_counts(noised: FloatArray, sd: float) -> ColumnKind:
    """Return what a column holds by its noisy counts: where neither words nor numbers stand out, or both do, both."""
    missing, part, date, word, flag, whole, distinct = noised.tolist()
    clear, number = CLEAR * sd, part + whole
    sure, some = max(number / math.sqrt(2), date) > clear, (word + flag) / math.sqrt(2) > clear
    words = "many"
    if sure and not some:
        words = ""
    elif flag > clear > word:
        words = "flags"
    elif distinct > (word + flag) / 2 + sd / DISTINCT:
        words = "unique"
    most = max((number, "number"), (date, "date"), (flag, "flag"))[1]
    if some and not sure:
        return ColumnKind(kind="category", words=words, most=most)
    if not (sure or some) and missing > CLEAR * clear and number + date + word + flag < clear:
        return ColumnKind(most=most)
    dates = date > max(number, clear)
    axis, own, less = ("date", date, number) if dates else ("number", number, date)
    other = word + flag + less
    kind = "category" if some and other > own else axis
    other = other if other > clear * math.sqrt(3) else 0.0
    return ColumnKind(
        kind=kind, axis=axis, words=words, whole=not dates and part < clear < whole, sure=sure or some, most=most,
        other=other,
    )  # fmt: skip


def find_range(
    look: Queries, name: str, purpose: str, mu: float, rows: IntArray, values: FloatArray, *, dates: bool = False
) -> tuple[FloatArray, tuple[float, float]]:
    """Return noisy counts of the octaves, or years, in which finite numbers lie, and the range that these show.

    A range that ends where the search does, far off or so close to zero that no octave is smaller, is noted.
    """
    places, size, ends = (year_cells, YEARS, years_from_counts) if dates else (octave_cells, CELLS, range_from_counts)
    counts = look.histogram(name, purpose, mu, rows, places(values), size)
    low, high = ends(counts, 1 / mu)
    (first, last), least = _SEARCHED[dates], 2.0**_SMALLEST
    small = not dates and (least in (low, -high) or least < max(-low, high) <= 2 * least)
    if small or low <= first or high >= last:
        look.notes[name] = f"values may lie beyond the {name}, where the search ends: declare its range"
    return counts, (low, high)


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
