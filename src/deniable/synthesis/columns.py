"""A column of a table that is made up: its fine cells with noisy counts, groups of them for pairs, and draws.

The cells of a column are numbers (in order), words, other words, and missing ones, in this order. One histogram serves
the domain and the 1-way marginal: what a column may hold costs nothing besides. A record is in one cell, so it moves
each histogram by 1 (Dong, Roth & Su 2022, Theorem 2.7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import CELLS, CLEAR, ColumnKind, Queries, cell_ends, find_range
from deniable.synthesis.junction import draw_stratified
from deniable.tables import DATE, MISSING, NUMBER, ColumnCells
from deniable.training import Encoder, Listed, Thermometer

OTHER = "(other)"
_FEW = 70.0  # records in units of a column's noise below which octaves are all that is asked of its numbers
_SINGLE, _DAYS = 256, 400  # whole numbers, and days, that have a cell each
_UNIFORM, _HALVES, _FINER = 64, 24, 256  # cells of a first histogram; parts of one in the second at most
_HEAVY = 5.0  # standard deviations by which each part of a cell that is cut stands out
_RANGE = 0.25  # of the μ² of a column of numbers: where they lie
_STEPS = np.array([1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5])  # that round numbers are multiples of
_OF_DAYS = np.array([1 / 1440, 1 / 24, 1.0])  # minutes, hours, days
_EXACT = 1e-7  # of a step, by which a multiple of it may be missed
_ROUND_CELLS = 60  # cells of numbers from which on a column is asked for round numbers

_EMPTY = np.zeros(0)


@dataclass(frozen=True, eq=False)
class MadeColumn:
    """What was released of a column, and how its cells are grouped.

    Attributes
    ----------
    name, holds
        Its name, and the kinds of its cells.
    bounds
        Edges of the cells of numbers, or of dates in days since 1970: [a, b) each.
    words
        The words that have a cell, :data:`OTHER` last; none in a column without words.
    counts, sds
        Noisy counts of the cells as released, and their standard deviations.
    unseen
        How many records a word may have that was not found, but for the noise.
    mass
        Counts that are not negative and sum to the number of units, what is not clear of the noise left out.
    groups
        The group of each cell; pairs of columns are counted by groups.
    steps
        Noisy counts of numbers that are multiples of nothing round, of ever larger steps, and of zeros; empty if not
        asked for.
    """

    name: Any
    holds: ColumnKind
    bounds: FloatArray = field(default_factory=lambda: _EMPTY)
    words: tuple[str, ...] = ()
    flags: bool = False
    counts: FloatArray = field(default_factory=lambda: _EMPTY)
    sds: FloatArray = field(default_factory=lambda: _EMPTY)
    unseen: float = 0.0
    mass: FloatArray = field(default_factory=lambda: _EMPTY)
    groups: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    steps: FloatArray = field(default_factory=lambda: _EMPTY)
    steps_sd: float = 0.0

    @property
    def dates(self) -> bool:
        """Whether its numbers are days."""
        return self.holds.axis == "date"

    @property
    def numbers(self) -> int:
        """How many cells of numbers it has."""
        return max(len(self.bounds) - 1, 0)

    @property
    def single(self) -> bool:
        """Whether each cell is one whole number or one day."""
        return bool((self.holds.whole or self.dates) and self.numbers and np.ptp(self.bounds) == self.numbers)

    @property
    def size(self) -> int:
        """How many groups there are."""
        return int(self.groups.max()) + 1

    @property
    def shares(self) -> FloatArray:
        """The share of the mass in each group."""
        found = np.bincount(self.groups, self.mass, minlength=self.size)
        return np.asarray(found / found.sum())

    def codes(self, cells: ColumnCells) -> IntArray:
        """Return the cell of each record, by itself; numbers beyond the ends count at the ends."""
        number = Thermometer(self.name, self.bounds[1:-1], -math.inf, math.inf, 0.0) if self.numbers else None
        word = Listed(self.name, self.words[:-1], self.flags) if self.words else None
        return Encoder(number, word, DATE if self.dates else NUMBER).codes(cells).astype(np.int64)

    def grouped(self, most: int, least: float) -> MadeColumn:
        """Return the column with at most about ``most`` groups of numbers and of words; one of ``least`` has its own.

        Numbers: groups of equal mass, a heavy cell alone. Words: the heaviest alone, the others together.
        """
        share = self.mass / self.mass.sum()
        groups = np.zeros(len(share), dtype=np.int64)
        if self.numbers:
            groups[: self.numbers] = _equal(share[: self.numbers], most)
        used = groups[: self.numbers].max(initial=-1) + 1
        if self.words:
            words = share[self.numbers : -1]
            order = np.argsort(-words, kind="stable")
            crowd = len(words) > most or np.sum(words < least) > 1
            own = [i for i in order[: most - crowd] if words[i] >= least or (not crowd and i < len(words) - 1)]
            at = np.full(len(words), used + len(own))
            at[own] = used + np.arange(len(own))
            if not crowd and own:  # where nobody has another word there is no group for it
                at[-1] = min(at[-1], at[own[-1]])
            groups[self.numbers : -1] = at
            used = at.max() + 1
        groups[-1] = used if share[-1] >= least or not len(share[:-1]) else groups[np.argmax(share[:-1])]
        return replace(self, groups=np.unique(groups, return_inverse=True)[1])

    def drawn(self, groups: IntArray, rng: np.random.Generator) -> IntArray:
        """Return a cell of each group."""
        laws = np.zeros((self.size, len(self.mass)))
        laws[self.groups, np.arange(len(self.mass))] = self.mass
        return draw_stratified(laws, groups, rng)

    def values(self, cells: IntArray, rng: np.random.Generator) -> tuple[FloatArray, Any]:
        """Return a number within each cell of numbers, NaN elsewhere; and the words, None elsewhere."""
        number, on = np.full(len(cells), np.nan), cells < self.numbers
        if self.numbers:
            low, high = self.bounds[cells[on]], self.bounds[cells[on] + 1]
            found = low + (high - low) * rng.random(len(low))
            found = np.floor(found) if self.holds.whole or self.single else found
            number[on] = self._snap(found, low, high, rng) if self.steps.size else found
        words = np.array([*self.words, None], dtype=object)[np.maximum(cells - self.numbers, 0)]
        words[on] = None
        return number, words

    def _snap(self, values: FloatArray, low: FloatArray, high: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the values with round numbers as frequent as released, inside the cell of each."""
        counts = np.where(self.steps < CLEAR * self.steps_sd, 0.0, self.steps)
        zeros, counts = (0.0, counts) if self.dates else (float(counts[-1]), counts[:-1])
        steps, out = _OF_DAYS if self.dates else _STEPS, values.copy()
        if counts.sum() > 0:
            step = rng.choice(len(counts), size=len(values), p=counts / counts.sum())
            for _ in counts:  # a step that has no multiple in the cell: the next finer one
                width = steps[np.maximum(step - 1, 0)]
                first, last = (np.ceil(end / width - 1e-9) for end in (low, high))
                step = np.where((last > first) | (step == 0), step, step - 1)
            at = first + np.floor(rng.random(len(values)) * np.maximum(last - first, 1))
            divided = at / np.rint(1 / np.minimum(width, 1))  # 307/10 is 30.7
            out = np.where(step > 0, np.where(width < 1, divided, at * width), values)
        holds_zero = (low <= 0) & (high > 0)
        if zeros > 0 and holds_zero.any():
            share = zeros / max(float(self.mass[: self.numbers].sum()), 1.0) / float(holds_zero.mean())
            out[holds_zero & (rng.random(len(values)) < share)] = 0.0
        return np.asarray(out)


def _equal(share: FloatArray, most: int) -> IntArray:
    """Return groups of neighbours of about equal mass; one that is heavier than a group is alone."""
    if len(share) <= most:
        return np.arange(len(share))
    heavy = share > 1 / most
    light = np.where(heavy, 0.0, share)
    left, whole = max(most - int(heavy.sum()), 1), max(float(light.sum()), 1e-12)
    middle = (np.cumsum(light) - light / 2) / whole * left
    part, after = np.minimum(middle, left - 1e-9).astype(np.int64), np.cumsum(heavy)
    new = heavy[1:] | heavy[:-1] | (np.diff(part) != 0) | (np.diff(after) != 0)
    return np.concatenate(([0], np.cumsum(new)))


def project_to_counts(counts: FloatArray, total: float) -> FloatArray:
    """Return the closest counts that are not negative and sum to ``total``."""
    total = max(total, 1e-6)
    falling = np.sort(counts)[::-1]
    over = np.cumsum(falling) - total
    last = np.flatnonzero(falling - over / np.arange(1, len(falling) + 1) > 0)[-1]
    return np.asarray(np.maximum(counts - over[last] / (last + 1), 0.0) + 1e-9)


def _smoothed(counts: FloatArray, widths: FloatArray, sds: FloatArray, total: float) -> FloatArray:
    """Return counts that sum to ``total``, even where noise explains how halves, quarters, … differ.

    Haar coefficients under the non-negative garrote: each, divided by its noise, is z and becomes z − 1/z, or 0 (Gao
    1998, Journal of Computational and Graphical Statistics 7).
    """
    size, parts = 1 << (len(counts) - 1).bit_length(), list[tuple[FloatArray, FloatArray]]()
    n, width, var = (np.pad(x, (0, size - len(x))) for x in (counts, widths, sds**2))
    while len(n) > 1:
        share = width[::2] / np.maximum(width[::2] + width[1::2], 1e-300)
        more = n[::2] - share * (n[::2] + n[1::2])
        noise = (1 - share) ** 2 * var[::2] + share**2 * var[1::2]
        parts.append((share, more * np.maximum(1 - noise / np.maximum(more**2, 1e-300), 0)))
        n, width, var = (x[::2] + x[1::2] for x in (n, width, var))
    for share, more in reversed(parts):
        n = np.column_stack([share * n + more, (1 - share) * n - more]).ravel()
    return project_to_counts(n[: len(counts)], total)


def _within(counts: FloatArray, bounds: FloatArray, parents: IntArray, sd: float, total: float) -> FloatArray:
    """Return smoothed counts of cells, first of those that were cut, then of the parts of each."""
    widths, size = np.diff(bounds / np.abs(bounds).max()), np.bincount(parents)
    spread, ends = sd * np.sqrt(size / (size + 1)), np.cumsum(size)[:-1]
    one, other = (np.asarray(np.bincount(parents, x), np.float64) for x in (counts, widths))
    tops = _smoothed(one, other, spread, total)
    cells = zip(np.split(counts, ends), np.split(widths, ends), tops.tolist(), strict=True)
    return np.concatenate([_smoothed(n, width, np.full(len(n), sd), top) for n, width, top in cells])


def presence_cells(cells: ColumnCells, holds: ColumnKind) -> IntArray:
    """Return for each record whether its cell is a number of the column (0), a word of it (1) or blank (2)."""
    number = (cells.kind == (DATE if holds.axis == "date" else NUMBER)) & holds.measured
    word = (cells.kind != MISSING) & bool(holds.words or not holds.measured)
    return np.where(number, 0, np.where(word, 1, 2))


def presence(counts: FloatArray, sd: float, holds: ColumnKind, n: float) -> FloatArray:
    """Return how many units have a number, a word or a blank, what is not clear of the noise left out."""
    words, blank = np.where(counts[1:] > CLEAR * sd, counts[1:], 0.0)
    if holds.measured and holds.words:
        return project_to_counts(np.array([counts[0], words, blank]), n)
    there = max(n - blank, 1.0)
    return np.array([there, 0.0, blank] if holds.measured else [0.0, there, blank])


def ask_column(
    look: Queries,
    column: MadeColumn,
    cells: ColumnCells,
    kinds: tuple[FloatArray, float],
    mu: float,
    delta: float,
    span: tuple[float, float] | None,
    labels: tuple[str, ...],
    n: float,
) -> MadeColumn:
    """Ask for the counts of all cells of a column, for ``mu`` and, where its words are to be found, ``delta``.

    A column of numbers and words is two histograms, each for half of ``mu``². ``kinds`` are the noisy counts of its
    numbers, words and blanks, and their standard deviation; ``span`` and ``labels`` are declared.
    """
    holds, (asked, kinds_sd) = column.holds, kinds
    there = presence(asked, kinds_sd, holds, n)
    each = mu * math.sqrt(0.5) * (1 - MANY_ROUNDINGS) if holds.measured and holds.words else mu
    masses, counts, sds = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    if holds.measured:
        number = np.where(cells.kind == (DATE if column.dates else NUMBER), cells.number, np.nan)
        bounds, found, sd, parents = _number_counts(look, column, number, each, span, n)
        at = used = np.arange(len(found))
        if np.ptp(bounds) > len(found) and not parents.any():  # octaves
            used = np.flatnonzero(found >= min(CLEAR * sd, found.max()))  # what else is at the ends may be noise
        first, after = int(used[0]), int(used[-1]) + 1
        size = np.bincount(np.clip(at, first, after - 1) - first)  # numbers beyond the ends count at the ends
        counts, sds = [np.add.reduceat(found, np.cumsum(size) - size)], [sd * np.sqrt(size)]
        column = replace(column, bounds=bounds[first : after + 1])
        masses = [_within(found[first:after], column.bounds, parents[first:after], sd, there[0])]
    if holds.words or not holds.measured:
        column, found = _word_counts(look, column, cells, each, delta, labels, n)
        spread = np.full(len(found), 1 / each)
        if column.unseen:  # those that were not found are what is left of all words
            found[-1], spread[-1] = asked[1] - found[:-1].sum(), math.hypot(kinds_sd, math.sqrt(len(found)) / each)
        clear = found[-1] > CLEAR * spread[-1] or len(found) == 1
        mass = project_to_counts(np.append(found[:-1], found[-1] if clear else 0.0), there[1])
        mass[-1] = mass[-1] if clear else 1e-9
        counts, sds, masses = [*counts, found], [*sds, spread], [*masses, mass]
    counts, sds = [*counts, asked[2:]], [*sds, np.array([kinds_sd])]
    mass = np.append(np.concatenate(masses), there[2] + 1e-9)
    return replace(column, counts=np.concatenate(counts), sds=np.concatenate(sds), mass=mass)


def _word_counts(
    look: Queries,
    column: MadeColumn,
    cells: ColumnCells,
    mu: float,
    delta: float,
    labels: tuple[str, ...],
    n: float,
) -> tuple[MadeColumn, FloatArray]:
    """Return the column with its words and their counts, that of others last; 0 where words were to be found."""
    name, on = column.name, presence_cells(cells, column.holds) == 1
    least = 1 - float(ndtri(delta / look.units.heaviest)) / mu if delta else math.inf
    if labels or (column.holds.words == "flags" and least > n / 20):
        known = replace(column, words=(*(labels or ("no", "yes")), OTHER), flags=not labels, bounds=_EMPTY)
        codes, why = known.codes(cells.at(np.flatnonzero(on))), "1-way counts of listed words"
        found = look.histogram(f"words of {name}", why, mu, np.flatnonzero(on), codes, len(known.words))
        return replace(known, bounds=column.bounds), found
    texts = (text if here else None for text, here in zip(cells.spelled.tolist(), on.tolist(), strict=True))
    heard = look.words(name, texts, mu, delta)
    return replace(column, words=(*heard, OTHER), unseen=least), np.array([*heard.values(), 0.0])


def _number_counts(
    look: Queries, column: MadeColumn, values: FloatArray, mu: float, span: tuple[float, float] | None, n: float
) -> tuple[FloatArray, FloatArray, float, IntArray]:
    """Return edges of the cells of numbers, their counts, the standard deviation of each and what it is a part of."""
    known = np.flatnonzero(~np.isnan(values))
    x, name, whole = values[known], column.name, column.holds.whole or column.dates

    purpose = "1-way counts of numbers, and where they lie"

    def histogram(what: str, mu: float, bounds: FloatArray) -> FloatArray:
        cells = np.clip(np.searchsorted(bounds, x, side="right") - 1, 0, len(bounds) - 2)
        return look.histogram(f"{what} of {name}", purpose, mu, known, cells, len(bounds) - 1)

    if span is None:
        if not (column.dates or n * mu >= _FEW):
            grid = _octave_edges(whole)
            return grid, histogram("octaves", mu, grid), 1 / mu, np.zeros(len(grid) - 1, dtype=np.int64)
        label = f"{'years' if column.dates else 'octaves'} of {name}"
        _, span = find_range(look, label, purpose, mu * math.sqrt(_RANGE), known, x, dates=column.dates)
        mu *= math.sqrt(1 - _RANGE) * (1 - MANY_ROUNDINGS)
        if column.holds.whole:  # octaves lack the end that is farther from 0
            first = math.floor(span[0]) + int(span[0] < 0)
            span = first, max(math.ceil(span[1]) - int(span[1] > 0), first + 1)
    low, high = (math.floor(span[0]), math.ceil(span[1])) if whole else span
    if whole and high - low <= (_DAYS if column.dates else _SINGLE):
        bounds = np.arange(low, high + 2, dtype=np.float64)
        return bounds, histogram("values", mu, bounds), 1 / mu, np.zeros(len(bounds) - 1, dtype=np.int64)
    return _counted_twice(histogram, mu * math.sqrt(0.5) * (1 - MANY_ROUNDINGS), low, high, whole)


def _octave_edges(whole: bool) -> FloatArray:
    """Return edges between octaves of either sign, fixed beforehand; the first cell from 0 upwards holds zero."""
    ends = np.array([cell_ends(cell)[0] for cell in range(CELLS // 2, CELLS)] + [cell_ends(CELLS - 1)[1]])
    edges = np.concatenate((-ends[:0:-1], ends))
    return np.unique(np.ceil(edges)) if whole else edges


def _counted_twice(
    histogram: Callable[[str, float, FloatArray], FloatArray], mu: float, low: float, high: float, whole: bool
) -> tuple[FloatArray, FloatArray, float, IntArray]:
    """Return the cells of two histograms, the heavy cells of the first one cut, with the best unbiased counts.

    A first count of a cell and second counts of its k parts, all with noise of one size, are reconciled by adding
    (first − Σ second)/(k + 1) to each part: no sum of cells is less exact than by the second counts alone.
    """
    halves = max(abs(low), abs(high)) * 2.0 ** (-np.arange(1, _HALVES + 1) / 2)
    edges = np.concatenate((np.linspace(low, high, _UNIFORM + 1), halves, -halves, [0.0]))
    edges = np.unique(np.ceil(edges) if whole else edges)
    top = high + 1 if whole else np.nextafter(high, math.inf)
    edges = np.concatenate(([low], edges[(edges > low) & (edges < high)], [top]))
    first = histogram("values", mu, edges)
    cut_into = np.clip(first * mu / _HEAVY, 1, _FINER).astype(np.int64).tolist()
    fine = np.concatenate([np.linspace(a, b, k + 1) for a, b, k in zip(edges, edges[1:], cut_into, strict=False)])
    bounds = np.unique(np.ceil(fine) if whole else fine)
    second = histogram("finer values", mu, bounds)
    parent = np.searchsorted(edges, bounds[:-1], side="right") - 1
    parts = np.bincount(parent, minlength=len(first))
    missed = (first - np.bincount(parent, second, minlength=len(first))) / (parts + 1)
    return bounds, second + missed[parent], 1 / mu, parent


def round_cells(values: FloatArray, dates: bool) -> IntArray:
    """Return which step each number is a multiple of, by itself: 0 none, then ever larger ones; of numbers, last 0."""
    steps = _OF_DAYS if dates else _STEPS
    found = np.zeros(len(values), dtype=np.int64)
    for j, step in enumerate(steps, 1):
        found[np.abs(values / step - np.rint(values / step)) < _EXACT * (10 if dates else 1)] = j
    return found if dates else np.where(values == 0, len(steps) + 1, found)


def ask_round(look: Queries, columns: list[MadeColumn], values: Callable[[int], FloatArray], mu: float) -> None:
    """Ask how many numbers are round in columns of many different ones; all together cost ``mu``; notes it there."""
    wide = [j for j, c in enumerate(columns) if c.numbers > _ROUND_CELLS and (c.dates or not c.single)]
    for j in wide:
        each = mu / math.sqrt(len(wide)) * (1 - MANY_ROUNDINGS)
        column, x = columns[j], values(j)
        known = np.flatnonzero(~np.isnan(x))
        size = len(_OF_DAYS) + 1 if column.dates else len(_STEPS) + 2
        found = look.histogram(
            f"round numbers of {column.name}", "round numbers", each, known, round_cells(x[known], column.dates), size
        )
        columns[j] = replace(column, steps=found, steps_sd=1 / each)
