"""One fit from a table to coefficients: count, bins, gradients; each look at the data is paid for before it happens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from deniable._check import FloatArray, InputError
from deniable.training import bins, ranges
from deniable.training.account import Ledger
from deniable.training.columns import Table
from deniable.training.descent import Plan, Weighted, descend
from deniable.training.design import Basis, design_of
from deniable.training.encoders import Codes, Encoder, Hashed, Levels, Listed, Thermometer
from deniable.training.losses import RESIDUAL, Loss
from deniable.training.noise_source import IntArray, NoiseSource

COUNT_SHARE = 0.01  # of μ²: how many records there are, for the length of the steps
BINS_SHARE = 0.09  # of μ²: ranges and bins of all numeric columns together
BINS = 32
INFORMATIVE = 70.0  # records in units of a histogram's noise from which on private bins are as good as declared ones
STEPS = 400
MOMENTUM = 0.95
_EXACT = 2**53  # whole numbers below are exact in double precision
_STABLE = 3.5  # step·n·curvature, below 2·(1 + momentum), from which on the steps would swing


@dataclass(frozen=True)
class Units:
    """Who must be hidden: each record, or each person, whose records' whole-number weights sum to ≤ ``heaviest``."""

    unit: str = "record"
    weights: FloatArray | None = None
    heaviest: int = 1
    owners: IntArray | None = None
    labels: tuple[Any, ...] | None = None

    def total(self, n_rows: int) -> int:
        """Return the sum of all weights."""
        return n_rows if self.weights is None else int(self.weights.sum())


@dataclass(frozen=True)
class Declared:
    """What the caller says is public: ranges of numbers, lists of categories, cells of the hash."""

    ranges: Mapping[Any, tuple[float, float]] = field(default_factory=dict)
    categories: Mapping[Any, tuple[str, ...]] = field(default_factory=dict)
    discover: frozenset[Any] = frozenset()
    discovery_delta: float = 0.0
    hash_cells: int = 255


@dataclass(frozen=True, eq=False)
class Additive:
    """What a fit leaves: encoders and coefficients, nothing else of the data."""

    encoders: tuple[Encoder, ...]
    basis: Basis
    coefficients: FloatArray

    def cell_scores(self) -> FloatArray:
        """Return what each cell adds to the scores, (cells, outputs); the intercept is the last cell."""
        return np.asarray(self.basis.entries @ (self.basis.scale[:, None] * self.coefficients))

    def scores(self, table: Table) -> FloatArray:
        """Return the scores of a table's rows, (rows, outputs)."""
        cells, starts = self.cell_scores(), self.basis.starts
        out = np.tile(cells[-1], (table.n_rows, 1))
        for j, encoder in enumerate(self.encoders):
            block = cells[starts[j] : starts[j] + encoder.size]
            out += block[encoder.codes(table.values(j))]
        return out


@dataclass
class Look:
    """Histograms of weighted records with noise: the only way in which columns are looked at."""

    source: NoiseSource
    ledger: Ledger
    units: Units

    def histogram(self, label: str, purpose: str, mu: float, rows: Any, cells: IntArray, size: int) -> FloatArray:
        """Return noisy counts; each record is in one cell, so a person moves them by at most ``heaviest``."""
        self.ledger.spend(label, purpose, mu)
        weights = None if self.units.weights is None else self.units.weights[rows]
        counts = np.bincount(cells, weights, minlength=size).astype(np.int64)
        sd = self.units.heaviest / mu
        noised = self.source.channel(label, np.full(size, sd), 1)(counts)
        return noised / self.units.heaviest


def count(look: Look, n_rows: int, mu: float) -> float:
    """Return a noisy number of units (records, or persons by their weights), at least 1."""
    look.ledger.spend("count", "how many there are, for the length of the steps", mu)
    sd = np.array([look.units.heaviest / mu])
    noised = look.source.channel("count", sd, 1)(np.array([look.units.total(n_rows)]))
    return max(float(noised[0]) / look.units.heaviest, 1.0)


def number_cells(
    look: Look, name: Any, values: FloatArray, mu: float, declared: tuple[float, float] | None
) -> bins.NoisyCells:
    """Return noisy cells of one numeric column, for ``mu`` in all."""
    known = np.flatnonzero(~np.isnan(values))
    numbers = values[known]
    if declared is None:
        part = mu * math.sqrt(0.5)
        cells = ranges.octave_cells(numbers)
        counts = look.histogram(
            f"range of {name}", "ranges: in which octaves a column lies", part, known, cells, ranges.CELLS
        )
        low, high = ranges.range_from_counts(counts, 1 / part)
        each = mu * 0.5
    else:
        low, high = declared
        each = mu * math.sqrt(0.5)
    turn = iter(("first", "second"))

    def counter(cells: IntArray, size: int) -> FloatArray:
        return look.histogram(
            f"bins of {name}, {next(turn)} look", "bins of equally many values", each, known, cells, size
        )

    return bins.look_twice(numbers, low, high, counter, 1 / each)


def discovered(look: Look, name: Any, values: Any, mu: float, declared: Declared) -> tuple[str, ...]:
    """Return the texts whose noisy count passes a threshold that a text of one unit alone passes with probability δ.

    A text that others hold also is a Gaussian release of one count. One that nobody else holds changes the output only
    if it passes: count ≤ 1, so N must exceed threshold − 1; a person can hold as many as its weight has parts.
    """
    units, heaviest = look.units, look.units.heaviest
    delta = declared.discovery_delta / len(declared.discover) * (1 - 2.0**-40)
    look.ledger.spend(f"categories of {name}", "which texts of a column are frequent", mu, delta)
    sd = heaviest / mu
    threshold = math.ceil(heaviest + sd * (1e-6 - float(ndtri(delta / heaviest))))
    index, words = pd.factorize(np.asarray(values, dtype=object))
    known = index >= 0
    weights = None if units.weights is None else units.weights[known]
    counts = np.bincount(index[known], weights, minlength=len(words)).astype(np.int64)
    noised = look.source.channel(f"categories of {name}", np.full(len(words), sd), 1)(counts)
    return tuple(sorted(str(word) for word, passed in zip(words, noised > threshold, strict=True) if passed))


def encoders_for(look: Look, table: Table, declared: Declared, model: str, mu: float, n: float) -> tuple[Encoder, ...]:
    """Return one encoder a column; numeric ones share ``mu`` among them."""
    looked = [c for c in table.columns if c.kind in ("number", "date") or c.name in declared.discover]
    each = mu / math.sqrt(max(len(looked), 1)) * (1 - 2.0**-40)
    out: list[Encoder] = []
    for j, column in enumerate(table.columns):
        name = column.name
        if column.kind == "yes/no":
            out.append(Listed(name, ("False", "True")))
        elif column.kind == "category":
            words = declared.categories.get(name)
            if name in declared.discover:
                out.append(Listed(name, discovered(look, name, table.values(j), each, declared)))
            else:
                out.append(Hashed(name, declared.hash_cells) if words is None else Listed(name, tuple(words)))
        else:
            span = declared.ranges.get(name)
            if span is not None and not n * each >= INFORMATIVE:
                cells = bins.NoisyCells(*span, np.linspace(*span, BINS + 1)[1:-1], np.ones(BINS))
            else:
                cells = number_cells(look, name, table.values(j), each, span)
            out.append(_number_encoder(name, cells, model, span))
    return tuple(out)


def _number_encoder(name: Any, cells: bins.NoisyCells, model: str, span: tuple[float, float] | None) -> Encoder:
    if model == "additive":
        return Thermometer(name, bins.equal_mass_edges(cells, BINS), cells.low, cells.high)
    if span is not None:
        return Levels(name, *span)
    low, high = bins.quantile(cells, 0.01), bins.quantile(cells, 0.99)
    return Levels(name, low, high) if low < high else Levels(name, cells.low, cells.high)


def plan_for(loss: Loss, mu: float, n: float) -> Plan:
    """Return the number and length of the steps from the gradients' budget and the noisy number of records.

    step·T/(1 − momentum) is the implicit ridge, which should grow like n·μ; T matters for convergence only.
    """
    return Plan(STEPS, min(loss.travel * mu * (1 - MOMENTUM) / STEPS, _STABLE / (loss.curvature * n)), MOMENTUM)


def gradient_noise(basis: Basis, loss: Loss, plan: Plan, mu: float, heaviest: int) -> FloatArray:
    """Return the standard deviations, (coordinates, outputs), that make ``plan.steps`` sums μ-GDP with μ ≤ ``mu``.

    A record's part of a sum is r·z: r has norm ≤ clip, z one basis row per block. In units of the noise its square is
    at most clip²·Σ_blocks max_cells Σ (entry/sd)², the same in each step.
    """
    shape = 1 / basis.scale  # noise grows where a coordinate is scaled down afterwards: equal noise on equal footing
    at_one = plan.steps * (loss.clip * RESIDUAL * heaviest) ** 2 * basis.largest_squared_norm(shape)
    sd = shape * (math.sqrt(at_one) / mu * (1 + 2.0**-40))
    return np.repeat(sd[:, None], loss.outputs, axis=1)


def gradient_mu(basis: Basis, loss: Loss, plan: Plan, sd: FloatArray, heaviest: int) -> float:
    """Return the Gaussian DP parameter of the sums, from the noise that they get."""
    worst = plan.steps * (loss.clip * RESIDUAL * heaviest) ** 2 * basis.largest_squared_norm(sd[:, 0])
    return math.sqrt(worst) * (1 + 2.0**-45)


def all_codes(table: Table, encoders: tuple[Encoder, ...]) -> Iterator[Codes]:
    """Return each column's cells in turn, and the intercept's."""
    for j, encoder in enumerate(encoders):
        yield encoder.codes(table.values(j))
    yield np.zeros(table.n_rows, dtype=np.uint16)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted model and, for the owner of the data only, each unit's own Gaussian DP parameter."""

    model: Additive
    exposure: FloatArray


def fit_table(
    look: Look, n: float, table: Table, target: FloatArray, loss: Loss, declared: Declared, model: str
) -> Outcome:
    """Fit ``model`` to a table with ``n`` (noisy) units; the ledger may have been charged for the target already."""
    ledger, units = look.ledger, look.units
    encoders = encoders_for(look, table, declared, model, ledger.mu * math.sqrt(BINS_SHARE), n)
    basis = Basis.of(encoders)
    if not units.total(table.n_rows) * RESIDUAL < _EXACT:
        raise InputError(f"X must have few enough rows for exact sums in double precision, got {table.n_rows}")
    design = design_of(all_codes(table, encoders), basis.sizes, table.n_rows)
    plan = plan_for(loss, ledger.left, n)
    sd = gradient_noise(basis, loss, plan, ledger.left, units.heaviest)
    spent = gradient_mu(basis, loss, plan, sd, units.heaviest)
    beside = math.fsum(use.mu**2 for use in ledger.uses)
    ledger.spend("gradients", f"the coefficients: {plan.steps} sums of gradients", spent)
    squares = np.zeros(table.n_rows)

    def watch(rows: slice, residuals: list[FloatArray]) -> None:
        for r in residuals:
            squares[rows] += r * r

    channel = look.source.channel("gradient", sd, plan.steps)
    data = Weighted(target, units.weights)
    coefficients = descend(design, basis, loss, data, plan, channel, units.heaviest, watch)
    norms, starts = basis.squared_norms(sd[:, 0]), basis.starts
    row = np.full(table.n_rows, norms[-1])
    for j, codes in zip(range(len(encoders)), all_codes(table, encoders), strict=False):
        row += norms[starts[j] : starts[j] + basis.sizes[j]][codes]
    return Outcome(Additive(encoders, basis, coefficients), _exposures(squares * row, units, beside))


def _exposures(squares: FloatArray, units: Units, beside: float) -> FloatArray:
    """Return each unit's μ: gradients along this fit's path, count and bins at their full price.

    A person's is at most the weighted sum of its records' (Minkowski's inequality over the steps).
    """
    if units.weights is None or units.owners is None:
        return np.sqrt(squares + beside)
    per_person = np.bincount(units.owners, units.weights * np.sqrt(squares))
    return np.asarray(np.sqrt(per_person**2 + beside))
