"""From private queries on single columns to their encoders (ranges, bins, categories) and the masses of their cells.

Noise has to cover the length of a record's row. What all rows have in common adds to that length and carries nothing
that the intercept does not, so it is subtracted: the mean row of each column under the masses of its cells. The masses
come from the bins where these are well known; for other columns one noisy sum is paid for, one number (the mean
place between the ends) for a column of numbers, the counts for categories. Rows of ordinary records are then shorter
than the longest possible one; the noise is made for rows of the root mean square length and longer rows are scaled
down to it (:meth:`deniable.training.fitting.Task.descend`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from scipy.optimize import brentq

from deniable._check import FloatArray, InputError, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import CLEAR, KINDS_SHARE, ColumnKind, Queries, ask_kinds, find_range
from deniable.tables import ColumnCells
from deniable.training import bins
from deniable.training.encoders import LEVELS, PAIR_LEVELS, Encoder, Hashed, Levels, Listed, Pair, Thermometer
from deniable.training.features import Declared, FeatureColumn, FeatureTable
from deniable.training.losses import EXACT, RESIDUAL, ClippedLoss

BINS_SHARE = 0.09  # of μ²: ranges and bins of all numeric columns together, where records are many
MOST_BINS = 0.30  # of μ²: the same where records are few, since coefficients are useless in a wrong range
FOUND = 20.0  # records in units of a column's noise for which more than BINS_SHARE is spent, if need be
CLOSER = 3  # how many closer looks may follow, each for half of a column's μ²
ONLY_ZEROS = 2.0**-19  # width of the range of a column in which only zeros stand out
HASH = 255  # cells of the public hash of words
BINS = 32  # of a numeric column in the additive model
LINE, LEAST_LINE, MOST_LINE = 25.0, 0.2, 0.8  # share of a column's linear term: falls with the records
_BINS = "bins of equally many values"
_CLOSER = "closer queries, where a column's values lie close together and far from zero"
INFORMATIVE = 70.0  # records in units of a column's noise above which finer looks tell more than a library of shapes
CENTRES_SHARE = 0.03  # of μ²: the masses of columns that no other look provides
_MOST = 0.998  # farthest mean place, as a share of the way from the middle to an end
_STEEPEST = 1e4  # largest |θ| of :func:`tilted`; the mean place _MOST needs at most 1/(1 − _MOST) = 500


def kinds(
    look: Queries, table: FeatureTable, declared: Declared, target: ColumnCells | None = None
) -> tuple[float, ColumnKind]:
    """Ask what all undeclared columns hold, note it in the table, and return about how many units there are.

    Nearly unique words and what is empty are left out. A ``target`` is one more column: what it holds is returned.
    """
    known = [declared.column(column) for column in table.columns]
    asked = (table.cells(column) for column, found in zip(table.columns, known, strict=True) if found is None)
    every = chain(asked, () if target is None else (target,))
    n, told = ask_kinds(look, every, table.n_rows, look.ledger.mu * math.sqrt(KINDS_SHARE))
    found = iter(told)
    columns = [
        replace(column, **vars(next(found))) if one is None else one
        for column, one in zip(table.columns, known, strict=True)
    ]
    left = {"unique": "nearly unique words", "": "nothing"}
    why = {c.name: left[c.words] for c in columns if not c.axis and c.words in left}
    if len(why) == len(columns):  # all that there is
        columns, why = [replace(c, words="many") for c in columns], {}
    table.columns, table.left_out = tuple(c for c in columns if c.name not in why), why
    return n, ColumnKind() if target is None else told[-1]


@dataclass(frozen=True, eq=False)
class Task:
    """What is fitted: a table, its target, a loss, about how many units there are."""

    look: Queries
    n: float
    table: FeatureTable
    target: FloatArray
    loss: ClippedLoss

    def columns(self, declared: Declared, model: str) -> Columns:
        """Look at the columns; the ledger may have been charged for the count and the target already."""
        look, rows = self.look, self.table.n_rows
        if not look.units.total(rows) * max(self.loss.clip, 1.0) * RESIDUAL < EXACT:
            raise InputError(f"X must have few enough rows for exact sums in double precision, got {rows}")
        return centre_columns(self, encoders_for(self, declared, model), look.ledger.mu * math.sqrt(CENTRES_SHARE))


def bins_mu(task: Task, declared: Declared) -> float:
    """Return what ranges and bins may cost: enough for ranges to be found, between 9 % and 30 % of μ²."""
    mu = task.look.ledger.mu
    unknown = sum(column.measured and column.name not in declared.ranges for column in task.table.columns)
    return mu * math.sqrt(min(max(unknown * (FOUND / (task.n * mu)) ** 2, BINS_SHARE), MOST_BINS))


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """The numbers of a column of about ``n`` units, the rows in which they stand, and what queries of them may cost."""

    look: Queries
    name: Any
    rows: IntArray
    numbers: FloatArray
    mu: float
    n: float

    @classmethod
    def of(cls, look: Queries, name: Any, values: FloatArray, mu: float, n: float) -> NumberColumn:
        """Return a column without the rows in which it is NaN."""
        rows = np.flatnonzero(~np.isnan(values))
        return cls(look, name, rows, values[rows], mu, n)

    def between(self, low: float, high: float) -> NumberColumn:
        """Return the column without the rows in which it is below ``low``, or not below ``high``."""
        inside = (self.numbers >= low) & (self.numbers < high)
        return replace(self, rows=self.rows[inside], numbers=self.numbers[inside])

    def cells(self, span: tuple[float, float] | None) -> bins.NoisyCells:
        """Return noisy cells, from queries that cost ``mu``, or more if need be; ``span`` is a declared range.

        Without one: where the units are few in terms of the noise, one histogram over octaves and the shapes that fit
        it; otherwise half of μ² for the octaves and a quarter for each of two finer looks. Where the values turn out to
        lie close together and far from zero, up to :data:`CLOSER` times another half of μ² is spent on finer looks; the
        ledger refuses what the budget does not cover. Where only zeros stand out, shapes are fitted to the octaves.
        """
        if span is None and not self.n * self.mu >= INFORMATIVE:
            return self.from_octaves(self.octaves(self.mu)[0])
        each = self.mu * (0.5 if span is None else math.sqrt(0.5))
        if span is None:
            part = self.mu * math.sqrt(0.5)
            counts, span = self.octaves(part)
            if span[1] - span[0] <= ONLY_ZEROS:
                library = bins.octave_library()
                return library.mixture(library.posterior(counts, 1 / part, self.n))
        found = self.two_histograms(f"bins of {self.name},", _BINS, each, span)
        for closer in range(1, CLOSER + 1):
            window = bins.crowded(found.bounds, found.mass, 1 / each)
            if window is None:
                break
            label = f"inside a cell of {self.name}, {closer},"
            finer = self.between(*window).two_histograms(label, _CLOSER, self.mu * 0.5, window)
            found = bins.with_inside(found, finer)
        return found

    def octaves(self, mu: float) -> tuple[FloatArray, tuple[float, float]]:
        """Return the noisy counts of the octaves in which the numbers lie, and their range."""
        label, purpose = f"range of {self.name}", "ranges: in which octaves a column lies"
        return find_range(self.look, label, purpose, mu, self.rows, self.numbers)

    def from_octaves(self, counts: FloatArray, prior: FloatArray | None = None) -> bins.NoisyCells:
        """Return cells under the shapes that fit noisy ``counts`` of octaves, paid with ``mu``, of a few units.

        Where nearly all values lie in two octaves: from finer and finer histograms of a window, each for half of μ².
        """
        library, part = bins.octave_library(), self.mu * math.sqrt(0.5)
        posterior = library.posterior(counts, 1 / self.mu, self.n, prior)
        found, window = library.mixture(posterior), library.crowded(posterior)
        for closer in range(1, CLOSER + 1):
            if window is None:
                break
            (low, high), inside = window, self.between(*window)
            parts = np.minimum((inside.numbers - low) / (high - low) * bins.WINDOW, bins.WINDOW - 1).astype(np.int64)
            label = f"inside two cells of {self.name}, query {closer}"
            counts = self.look.histogram(label, _CLOSER, part, inside.rows, parts, bins.WINDOW)
            library = bins.window_library(low, high)
            posterior = library.posterior(counts, 1 / part, self.n)
            if not posterior[: bins.NARROW].sum() > bins.SURE:  # the values may as well be spread over the window
                break
            found, window = library.mixture(posterior), library.crowded(posterior)
        return found

    def two_histograms(self, label: str, purpose: str, each: float, span: tuple[float, float]) -> bins.NoisyCells:
        """Return the noisy cells of a range, from two queries for ``each``."""

        def counts(turn: str, edges: FloatArray) -> FloatArray:
            cells = np.searchsorted(edges, self.numbers, side="right")
            return self.look.histogram(f"{label} {turn} query", purpose, each, self.rows, cells, edges.size + 1)

        return bins.look_twice(*span, counts, 1 / each)


def encoders_for(task: Task, declared: Declared, model: str) -> tuple[Encoder, ...]:
    """Return one encoder per column; the more scores a record has, the fewer records tell about each."""
    look, table = task.look, task.table
    sought = [c for c in table.columns if c.name in declared.discover and c.words == "many"]
    measured = [c for c in table.columns if c.measured]
    each = bins_mu(task, declared) / math.sqrt(max(len(measured) + len(sought), 1)) * (1 - MANY_ROUNDINGS)
    known, cells = task.n * each >= INFORMATIVE, _cells(task, declared, measured, each)
    line = min(max(LINE * task.loss.outputs / (task.n * each), LEAST_LINE), MOST_LINE)
    out: list[Encoder] = []
    for column in table.columns:
        word: Listed | Hashed | None = None
        if column in sought:
            delta = declared.discovery_delta / len(sought) * (1 - MANY_ROUNDINGS)
            word = Listed(column.name, tuple(look.words(column.name, table.cells(column).spelled, each, delta)))
        elif column.words == "flags":
            word = Listed(column.name, ("no", "yes"), flags=True)
        elif column.name in declared.categories:
            word = Listed(column.name, declared.categories[column.name])
        elif column.words == "many":
            word = Hashed(column.name, HASH)
        span = declared.ranges.get(column.name)
        number = _number_encoder(column, next(cells), model, span, line, known=known) if column.measured else None
        out.append(Encoder(number, word, column.binned))
    return tuple(out)


def _cells(task: Task, declared: Declared, measured: Sequence[FeatureColumn], mu: float) -> Iterator[bins.NoisyCells]:
    """Yield the noisy cells of each column of numbers, for ``mu`` each; the way is chosen once, by the records.

    Where they are many: two histograms. Where they are few: a declared range as it is, or one histogram over octaves,
    read with the other columns' in view (:mod:`deniable.training.bins`).
    """

    n = task.n

    def numbers(column: FeatureColumn) -> NumberColumn:
        return NumberColumn.of(task.look, column.name, task.table.numbers(column), mu, n)

    many, spans = n * mu >= INFORMATIVE, [declared.ranges.get(column.name) for column in measured]
    unknown = [] if many else [c for c, span in zip(measured, spans, strict=True) if span is None]
    seen = [numbers(column).octaves(mu)[0] for column in unknown]
    octaves = iter(zip(seen, bins.shared_priors(seen, 1 / mu, n) if seen else (), strict=True))
    for column, span in zip(measured, spans, strict=True):
        if many:
            yield numbers(column).cells(span)
        elif span is None:
            yield numbers(column).from_octaves(*next(octaves))
        else:
            yield bins.NoisyCells(*span, np.linspace(*span, BINS + 1)[1:-1], np.ones(BINS))


def _number_encoder(
    column: FeatureColumn, cells: bins.NoisyCells, model: str, span: Any, line: float, *, known: bool
) -> Thermometer | Levels:
    """Return the bins of a column, or the levels of a linear model; ``known``: the cells' masses are."""
    if model == "additive":
        edges = bins.equal_mass_edges(cells, BINS)
        edges = np.unique(np.ceil(edges) - 0.5) if column.whole else edges  # between whole numbers
        mass = bins.mass_between(cells, edges) if known else None
        return Thermometer(column.name, edges, cells.low, cells.high, line, mass, ranked=mass is None and span is None)
    low, high = span or (bins.quantile(cells, 0.01), bins.quantile(cells, 0.99))
    low, high = (low, high) if low < high else (cells.low, cells.high)
    return Levels(column.name, low, high, bins.mass_between(cells, Levels.edges(low, high)) if known else None)


@dataclass(frozen=True, eq=False)
class Columns:
    """Encoders, and for each the share of the records in each of its cells; NaN: a cell that is not centred."""

    encoders: tuple[Encoder, ...]
    masses: tuple[FloatArray, ...]

    def masses_with(self, pairs: Sequence[Pair]) -> tuple[FloatArray, ...]:
        """Return the masses of the columns and, as if columns were independent, of pairs of them."""
        return (*self.masses, *(self._of_pair(pair) for pair in pairs))

    def _of_pair(self, pair: Pair) -> FloatArray:
        sides = [
            np.bincount(levels[:-1], np.nan_to_num(self.masses[column])[:-1], minlength=PAIR_LEVELS + 1)
            for column, levels in ((pair.first, pair.first_levels), (pair.second, pair.second_levels))
        ]
        joint = np.outer(*sides)
        joint[PAIR_LEVELS, :] = joint[:, PAIR_LEVELS] = np.nan
        return np.asarray(joint.ravel())


def centre_columns(task: Task, encoders: tuple[Encoder, ...], mu: float) -> Columns:
    """Return the columns with the masses of their cells; pays at most ``mu``, nothing if all are known."""
    found = {j: encoder.mass for j, encoder in enumerate(encoders) if encoder.mass is not None}
    unknown = [j for j in range(len(encoders)) if j not in found]
    found |= _ask_masses(task, encoders, unknown, mu) if unknown else {}
    return Columns(encoders, tuple(found[j] for j in range(len(encoders))))


def _ask_masses(task: Task, encoders: tuple[Encoder, ...], unknown: list[int], mu: float) -> dict[int, FloatArray]:
    """Return the masses from one noisy sum: each column moves it by at most 1 (in norm), a unit by √columns."""
    rows = [_rows(encoders[j]) for j in unknown]
    paid = task.look.pay("centres", "how the records lie in columns without bins of known mass", mu)
    units, table = task.look.units, task.table
    sums = []
    for j, row in zip(unknown, rows, strict=True):
        codes = encoders[j].codes(table.cells(table.columns[j]))
        counts = np.bincount(codes, units.weights, minlength=encoders[j].size).astype(np.int64)
        sums.append(row.T @ counts)
    sd = math.sqrt(len(unknown)) * LEVELS * units.heaviest / mu * (1 + MANY_ROUNDINGS)
    whole = np.concatenate(sums)
    unit = LEVELS * units.heaviest * task.n
    noised = paid.channel("centres", np.full(whole.size, sd))(whole) / unit
    parts = np.split(noised, np.cumsum([row.shape[1] for row in rows])[:-1])
    felt = sd / unit
    found = {j: _clear(part, felt) for j, part in zip(unknown, parts, strict=True) if part.size > 1}
    lines = {j: row[: encoders[j].in_order, 0] / LEVELS for j, row in zip(unknown, rows, strict=True) if j not in found}
    away = {j: float(part[0] - lines[j].mean()) for j, part in zip(unknown, parts, strict=True) if j in lines}
    signal = max(sum(far**2 for far in away.values()) / max(len(away), 1) - felt**2, 0.0)
    for j, places in lines.items():
        mean = float(places.mean()) + signal / (signal + felt**2) * away[j]
        masses = tilted(places, min(max(mean, -_MOST), _MOST))
        found[j] = np.append(masses, np.full(encoders[j].size - masses.size, np.nan))
    return found


def _rows(encoder: Encoder) -> np.ndarray:
    """Return what a record in each cell adds: (cells, 1) places on a line, or (cells, cells) ones of categories."""
    if cells := encoder.in_order:
        places = np.rint(np.linspace(-LEVELS, LEVELS, cells)) if cells > 1 else np.zeros(1)
        return np.append(places, np.zeros(encoder.size - cells)).astype(np.int64)[:, None]
    return np.eye(encoder.size, dtype=np.int64) * LEVELS


def _clear(shares: FloatArray, sd: float) -> FloatArray:
    """Return the shares that stand out of the noise, scaled down to sum to at most 1; 0 for the others."""
    out = np.where(shares > CLEAR * sd, shares, 0.0)
    return np.asarray(out / max(float(out.sum()), 1.0))


def tilted(places: FloatArray, mean: float) -> FloatArray:
    """Return masses proportional to exp(θ·place): the law of largest entropy with this mean, |mean| ≤ ``_MOST``."""

    def masses(tilt: float) -> FloatArray:
        weights = np.exp(tilt * places - np.max(tilt * places))
        return np.asarray(weights / weights.sum())

    if not np.ptp(places):
        return masses(0.0)
    return masses(float(brentq(lambda tilt: float(masses(tilt) @ places) - mean, -_STEEPEST, _STEEPEST)))
