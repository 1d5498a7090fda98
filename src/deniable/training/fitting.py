"""One fit from a table to coefficients: bins, gradients, pairs; each query is paid for before it happens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import MANY_ROUNDINGS
from deniable.noise.queries import Paid, Queries
from deniable.training.descent import (
    Contributions,
    DescentPlan,
    Weighted,
    descend,
    products,
    products_noise,
    residuals_at,
    shrunk_coefficients,
    strongest,
)
from deniable.training.design import Basis, Design, design_of
from deniable.training.encoders import Codes, Encoder, Pair, levels_of
from deniable.training.features import Declared, FeatureTable
from deniable.training.looks import CENTRES_SHARE, Columns, bins_mu, centred, encoders_for
from deniable.training.losses import RESIDUAL, ClippedLoss

STEPS = 400  # sums of gradients in a descent; matters for convergence only (:func:`plan_for`)
MOMENTUM = 0.95  # weight of the past in the velocity
MAINS_SHARE = 0.30  # of μ², with pairs: the first fit, whose residuals show what is missing
CHOICE_SHARE = 0.10  # of μ²: the noisy release that chooses the pairs
_EXACT = 2**53  # whole numbers below are exact in double precision
_LARGEST_NOISE = 2.0**36  # lattice points: above it the sampler is slow
_STABLE = 3.5  # largest step·n·curvature: from 2·(1 + momentum) on the steps would oscillate


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
        cells, starts = self.cell_scores(), self.basis.starts
        out = np.zeros((table.n_rows, cells.shape[1]))
        for start, codes in zip(starts, all_codes(table, self.encoders, self.pairs), strict=True):
            out += cells[start + codes.astype(np.int64)]
        return out


def plan_for(loss: ClippedLoss, mu: float, n: float, usual: float = 1.0) -> DescentPlan:
    """Return the number and length of the steps from the gradients' budget and the noisy number of records.

    One over step·T/(1 − momentum) is an implicit ridge; T matters for convergence only. ``usual`` is the length of a
    usual row before scaling: the path is as long as without scaling, and the noise smaller by this factor.
    """
    reach = min(loss.travel * mu, loss.reach) * usual
    return DescentPlan(STEPS, min(reach * (1 - MOMENTUM) / STEPS, _STABLE / (loss.curvature * n)), MOMENTUM)


def gradient_noise(basis: Basis, loss: ClippedLoss, plan: DescentPlan, mu: float, unit: float) -> FloatArray:
    """Return the standard deviations, (coordinates, outputs), that make ``plan.steps`` sums μ-GDP with μ ≤ ``mu``.

    A record's part of a sum is r·z: r has norm ≤ clip, z one basis row per block. In units of the noise its square is
    at most (clip·unit)²·:func:`longest_row`, the same in each step; ``unit`` is the number of lattice points of a
    residual of size 1.
    """
    shape = 1 / basis.scale  # after scaling, every coordinate has the same noise
    at_one = plan.steps * (loss.clip * unit) ** 2 * longest_row(basis, shape)
    sd = shape * (math.sqrt(at_one) / mu * (1 + MANY_ROUNDINGS))
    return np.repeat(sd[:, None], loss.outputs, axis=1)


def longest_row(basis: Basis, sd: FloatArray) -> float:
    """Return the largest Σ (entry/sd)² that counts in full: that of a scaled row of norm 1, or of the longest row.

    A longer row's residuals are scaled down (:func:`shares`): noise for usual rows, of mean square norm 1, is enough.
    """
    return min(1 / float(np.square(basis.scale * sd).max()), basis.largest_squared_norm(sd))


def shares(squares: FloatArray, longest: float) -> FloatArray:
    """Return the factors that keep rows with these Σ (entry/sd)² within ``longest``, rounded down."""
    return np.asarray(np.minimum(np.sqrt(longest / np.maximum(squares, longest)), 1.0) * (1 - MANY_ROUNDINGS))


def gradient_mu(basis: Basis, loss: ClippedLoss, plan: DescentPlan, sd: FloatArray, unit: float) -> float:
    """Return the Gaussian DP parameter of the sums, from the noise that they get, rounded up."""
    worst = plan.steps * (loss.clip * unit) ** 2 * longest_row(basis, sd[:, 0])
    return math.sqrt(worst) * (1 + MANY_ROUNDINGS / 32)  # the noise was enlarged by MANY_ROUNDINGS


def all_codes(table: FeatureTable, encoders: tuple[Encoder, ...], pairs: tuple[Pair, ...] = ()) -> Iterator[Codes]:
    """Return each block's cells in turn: columns, pairs, the intercept."""
    for column, encoder in zip(table.columns, encoders, strict=True):
        yield encoder.codes(table.cells(column))
    for pair in pairs:
        first, second = (encoders[j].codes(table.cells(table.columns[j])) for j in (pair.first, pair.second))
        yield pair.codes(first, second)
    yield np.zeros(table.n_rows, dtype=np.uint16)


@dataclass(frozen=True, eq=False)
class Descent:
    """A fitted model with what later looks at the same records need: their cells, and what they contributed."""

    model: Additive
    design: Design
    squares: FloatArray


@dataclass(frozen=True, eq=False)
class Task:
    """What is fitted: a table, its target, a loss, about how many units there are.

    Nothing here is paid for: the caller spends ``mu`` beforehand.
    """

    look: Queries
    n: float
    table: FeatureTable
    target: FloatArray
    loss: ClippedLoss

    @property
    def data(self) -> Weighted:
        """Targets and weights of the records."""
        return Weighted(self.target, self.look.units.weights, self.look.units.heaviest)

    def descend(self, name: str, paid: Paid, columns: Columns, pairs: tuple[Pair, ...]) -> Descent:
        """Fit the coefficients of these blocks: sums of gradients that are together ``paid.mu``-GDP."""
        table, loss, units, encoders, mu = self.table, self.loss, self.look.units, columns.encoders, paid.mu
        basis = Basis.of((*encoders, *pairs), columns.masses_with(pairs))
        blocks = all_codes(table, encoders, pairs)
        design = design_of(blocks, basis, table.n_rows, loss.outputs, self.n, units.heaviest)
        plan, data = plan_for(loss, mu, self.n, basis.usual), self.data
        largest = float(gradient_noise(basis, loss, plan, mu, data.unit).max())
        data = replace(data, coarser=2.0 ** -max(math.ceil(math.log2(largest / _LARGEST_NOISE)), 0))
        sd = gradient_noise(basis, loss, plan, mu, data.unit)
        if not gradient_mu(basis, loss, plan, sd, data.unit) <= mu:
            raise RuntimeError("the noise of a descent does not cover its budget")
        norms, row = basis.squared_norms(sd[:, 0]), np.zeros(table.n_rows)
        for start, codes in zip(basis.starts, all_codes(table, encoders, pairs), strict=True):
            row += norms[start + codes.astype(np.int64)]
        counted = shares(row, longest_row(basis, sd[:, 0]))
        data, row = replace(data, shares=counted), row * np.square(counted)
        seen = Contributions(row, data.coarser)
        channel = paid.channel(name, sd, plan.steps)
        coefficients = descend(design, basis, loss, data, plan, channel, seen)
        felt = float(sd[0, 0] * basis.scale[0]) / data.unit
        coefficients = shrunk_coefficients(coefficients, columns, basis, loss, plan, self.n, felt)
        return Descent(Additive(encoders, pairs, basis, coefficients), design, seen.squares)

    def residuals(self, descent: Descent, data: Weighted) -> list[FloatArray]:
        """Return each record's weighted residuals under a fitted model: one array per output."""
        model = descent.model
        return residuals_at(descent.design, model.basis, self.loss, data, model.coefficients)

    def choose(self, name: str, paid: Paid, mains: Descent, wanted: int) -> tuple[Pair, ...]:
        """Return the pairs that the residuals of a first fit suggest, by one query that is paid for."""
        look, model, encoders = self.look, mains.model, mains.model.encoders
        cells, starts = model.cell_scores(), model.basis.starts
        levels = [
            levels_of(encoder, cells[start : start + encoder.size].mean(axis=1))
            for encoder, start in zip(encoders, starts, strict=False)
        ]
        residuals = self.residuals(mains, self.data)
        of_records = [level[codes] for level, codes in zip(levels, all_codes(self.table, encoders), strict=False)]
        sums = products(self.loss, residuals, of_records)
        sd = products_noise(self.loss, len(encoders), paid.mu, look.units.heaviest)
        released = paid.channel(name, np.full(sums.shape, sd))(sums)
        chosen = strongest(released.astype(np.float64), len(encoders), wanted)
        return tuple(Pair(a, b, (encoders[a].name, encoders[b].name), levels[a], levels[b]) for a, b in chosen)

    def pay_and_descend(self, name: str, mu: float, columns: Columns, pairs: tuple[Pair, ...] = ()) -> Descent:
        """Pay ``mu`` for a descent and run it."""
        paid = self.look.pay(name, f"{STEPS} sums of gradients for the {name}", mu)
        return self.descend(name, paid, columns, pairs)


def columns_of(task: Task, declared: Declared, models: Sequence[str]) -> list[Columns]:
    """Look at the columns; the ledger may have been charged for the count and the target already."""
    look, table = task.look, task.table
    if not look.units.total(table.n_rows) * RESIDUAL < _EXACT:
        raise InputError(f"X must have few enough rows for exact sums in double precision, got {table.n_rows}")
    share = bins_mu(look, table, declared, task.n)
    found = encoders_for(look, table, declared, models, share, task.n, task.loss.outputs)
    mu = look.ledger.mu * math.sqrt(CENTRES_SHARE / len(models)) * (1 - MANY_ROUNDINGS)
    names = ["centres", *(f"centres for {model}" for model in models[1:])]
    return [centred(look, name, table, encoders, mu, task.n) for name, encoders in zip(names, found, strict=True)]


def fit_table(task: Task, declared: Declared, model: str, pairs: int) -> tuple[Additive, FloatArray]:
    """Fit ``model`` with ``pairs`` joint shape functions; return it, and each unit's own Gaussian DP parameter."""
    ledger = task.look.ledger
    (columns,) = columns_of(task, declared, (model,))
    if not pairs:
        last = task.pay_and_descend("coefficients", ledger.left, columns)
        return last.model, exposures(task.look, {"coefficients": last.squares})
    first, mu = ledger.parts(MAINS_SHARE, CHOICE_SHARE)
    mains = task.pay_and_descend("first fit", first, columns)
    paid = task.look.pay("pairs", "which pairs of columns act together", mu)
    chosen = task.choose("pairs", paid, mains, pairs)
    last = task.pay_and_descend("coefficients", ledger.left, columns, chosen)
    return last.model, exposures(task.look, {"first fit": mains.squares, "coefficients": last.squares})


def exposures(look: Queries, squares: Mapping[str, FloatArray]) -> FloatArray:
    """Return each unit's μ: gradients (by the names of their uses) along this fit's path, all else at its full price.

    A person's is at most the weighted sum of its records' (Minkowski's inequality over the steps).
    """
    units, whole = look.units, np.sum(list(squares.values()), axis=0)
    beside = math.fsum(use.mu**2 for use in look.ledger.uses if use.name not in squares)
    if units.weights is None or units.owners is None:
        return np.asarray(np.sqrt(whole + beside))
    per_person = np.bincount(units.owners, units.weights * np.sqrt(whole))
    return np.asarray(np.sqrt(per_person**2 + beside))
