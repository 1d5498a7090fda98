"""One fit from a table to coefficients: bins, noisy gradients, pairs; each query is paid for before it happens.

Noisy full-batch gradient descent with momentum and averaging: all that is released are noised integer sums.

What a descent found is then shrunk towards smooth shape functions and towards zero, by as much as the known noise calls
for: that of privacy exactly, that of sampling from the number of records. Empirical Bayes: in each column the principal
directions are treated one by one, their coefficients have a normal prior of unknown variance and smoothness; both are
averaged over, weighted by the likelihood of what the fit found and by how often the other columns have them. All of it
is post-processing of noised numbers and costs nothing.

The residuals of a first fit choose pairs of columns: summed times products of two signs per column (above or below the
middle, inside or outside the middle half), they show what no sum of shape functions can express.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray, InputError, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import Channel, Queries
from deniable.training.design import Basis, Design, design_of, products, products_noise, shares, strongest
from deniable.training.encoders import PAIR_LEVELS, Codes, Encoder, Pair, levels_of
from deniable.training.features import Declared, FeatureTable
from deniable.training.looks import CENTRES_SHARE, Columns, bins_mu, centred, encoders_for
from deniable.training.losses import RESIDUAL, ClippedLoss

STEPS = 400  # sums of gradients in a descent; matters for convergence only (:func:`length_of_step`)
MOMENTUM = 0.95  # weight of the past in the velocity
MAINS_SHARE = 0.30  # of μ², with pairs: the first fit, whose residuals show what is missing
CHOICE_SHARE = 0.10  # of μ²: the noisy release that chooses the pairs
_EXACT = 2**53  # whole numbers below are exact in double precision
_LARGEST_NOISE = 2.0**36  # lattice points: above it the sampler is slow
_STABLE = 3.5  # largest step·n·curvature: from 2·(1 + momentum) on the steps would oscillate
_VARIANCES = np.concatenate(([0.0], np.logspace(-4, 3, 36)))  # prior variances of coefficients, wider than what occurs
_SMOOTHNESS = (0.0, 1.0)  # powers of the curvature by which rough directions are rarer
_ROUNDS = 20  # of expectation–maximisation, after which the laws' frequencies hardly change
_FLAT = 1e-9  # share of the largest curvature below which a direction is ignored


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

    def block(self, j: int) -> FloatArray:
        """Return what each cell of block j adds to the scores, centred over its :meth:`occupied` cells."""
        start = int(self.basis.starts[j])
        values = self.cell_scores()[start : start + self.blocks[j].size]
        return np.asarray(values - values[self.occupied(j)].mean(axis=0))

    def spread(self, j: int, output: int = -1) -> float:
        """Return how far block j moves the score between two records."""
        values = self.block(j)[self.occupied(j), output]
        return float(np.ptp(values)) if values.size else 0.0

    def occupied(self, j: int) -> IntArray:
        """Return the cells of block j that records are known to be in: of numbers all, but for the missing values' one.

        So of lists of two values; of pairs all cells with both. Of other categories those whose noisy count stood out
        and is 1/128 of all or more (the basis' mean row shows it), or all but the missing one; of mixed ones none.
        """
        encoder = self.blocks[j]
        if isinstance(encoder, Pair):
            return np.arange(encoder.size).reshape(PAIR_LEVELS + 1, -1)[:-1, :-1].ravel()
        if encoder.in_order:
            return np.arange(encoder.in_order)
        start, coordinate = int(self.basis.starts[j]), sum(b.basis()[1].size for b in self.blocks[:j])
        rows = self.basis.entries[start : start + encoder.size, coordinate : coordinate + encoder.size]
        lowest = rows.toarray().min(axis=0)
        return np.flatnonzero(lowest < 0) if (lowest < 0).any() else np.arange(encoder.size - 1)


def length_of_step(loss: ClippedLoss, mu: float, n: float, usual: float = 1.0) -> float:
    """Return the factor on the averaged sums of gradients, from their budget and the noisy number of records.

    One over length·steps/(1 − momentum) is an implicit ridge. ``usual`` is the length of a usual row before scaling:
    the path is as long as without scaling, and the noise smaller by this factor.
    """
    reach = min(loss.bend.travel * mu, loss.bend.reach) * usual
    return min(reach * (1 - MOMENTUM) / STEPS, _STABLE / (loss.bend.largest * n))


def gradient_noise(basis: Basis, clip: float, mu: float) -> FloatArray:
    """Return the standard deviations, (coordinates,), that make :data:`STEPS` sums μ-GDP with μ ≤ ``mu``.

    A record's part of a sum is r·z: r has norm ≤ clip (in lattice points), z one basis row per block. In units of the
    noise its square is at most clip²·:meth:`Basis.longest_row`, the same in each step.
    """
    shape = 1 / basis.scale  # after scaling, every coordinate has the same noise
    return np.asarray(shape * (math.sqrt(STEPS * clip**2 * basis.longest_row(shape)) / mu * (1 + MANY_ROUNDINGS)))


def gradient_mu(basis: Basis, clip: float, sd: FloatArray) -> float:
    """Return the Gaussian DP parameter of the sums, from the noise that they get, rounded up."""
    worst = STEPS * clip**2 * basis.longest_row(sd)
    return math.sqrt(worst) * (1 + MANY_ROUNDINGS / 32)  # the noise was enlarged by MANY_ROUNDINGS


def all_codes(table: FeatureTable, encoders: tuple[Encoder, ...], pairs: tuple[Pair, ...] = ()) -> Iterator[Codes]:
    """Return each block's cells in turn: columns, pairs, the intercept."""
    for column, encoder in zip(table.columns, encoders, strict=True):
        yield encoder.codes(table.cells(column))
    for pair in pairs:
        first, second = (encoders[j].codes(table.cells(table.columns[j])) for j in (pair.first, pair.second))
        yield pair.codes(first, second)
    yield np.zeros(table.n_rows, dtype=np.uint16)


@dataclass(eq=False)
class Descent:
    """What the sums of gradients are made of: records as rows, targets, whole-number weights (None: each weighs 1).

    ``coarser``, a power of ½, makes the lattice of the residuals coarser where the noise is so large that fine steps
    would be wasted. ``shares``, at most 1, are factors on the residuals of records whose rows are long; ``row`` is each
    record's Σ (basis entry / noise)² over the coordinates, for a residual of 1. ``squares`` adds up each record's
    squared contribution in units of the noise.
    """

    design: Design
    basis: Basis
    loss: ClippedLoss
    target: FloatArray
    weights: FloatArray | None
    coarser: float
    shares: FloatArray
    row: FloatArray
    squares: FloatArray = field(init=False)

    def run(self, channel: Channel, unit: float, length: float) -> FloatArray:
        """Return the averaged coefficients, (coordinates, outputs); ``unit``: lattice points of a residual of 1."""
        shape = (self.basis.scale.size, self.loss.outputs)
        w, velocity, mean = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        scale, started = self.basis.scale[:, None] / unit, STEPS // 2
        self.squares = np.zeros(self.row.size)
        for step in range(STEPS):
            velocity = MOMENTUM * velocity + channel(self.gradient(w)) * scale
            w = w - length * velocity
            if step >= started:
                mean += w
        return mean / (STEPS - started)

    def gradient(self, w: FloatArray) -> IntArray:
        """Return the sum of residuals times rows, (coordinates, outputs): exact, whatever the order of the records."""
        sums = self.design.empty(self.loss.outputs)
        for rows, residuals in self._pass(w):
            self.squares[rows] += sum(r * r for r in residuals) * self.row[rows]
            shares = self.shares[rows] * self.coarser
            self.design.add(sums, [np.trunc(r * shares) for r in self._weighted(residuals, rows)], rows)
        return self.design.total(sums)

    def residuals(self, w: FloatArray) -> list[FloatArray]:
        """Return each record's weighted residuals, one array per output."""
        parts = [self._weighted(residuals, rows) for rows, residuals in self._pass(w)]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _pass(self, w: FloatArray) -> Iterator[tuple[slice, list[FloatArray]]]:
        prepared = self.design.prepare(self.basis.scale[:, None] * w)
        for rows in self.design.chunks():
            yield rows, self.loss.residuals(self.design.scores(prepared, rows), self.target[rows])

    def _weighted(self, residuals: list[FloatArray], rows: slice) -> list[FloatArray]:
        return residuals if self.weights is None else [r * self.weights[rows] for r in residuals]


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
        look, table = self.look, self.table
        if not look.units.total(table.n_rows) * max(self.loss.clip, 1.0) * RESIDUAL < _EXACT:
            raise InputError(f"X must have few enough rows for exact sums in double precision, got {table.n_rows}")
        mu = bins_mu(look, table, declared, self.n)
        encoders = encoders_for(look, table, declared, model, mu, self.n, self.loss.outputs)
        return centred(look, table, encoders, look.ledger.mu * math.sqrt(CENTRES_SHARE), self.n)

    def descend(self, name: str, mu: float, columns: Columns, pairs: tuple[Pair, ...] = ()) -> tuple[Additive, Descent]:
        """Pay ``mu`` and fit the coefficients of these blocks: sums of gradients that are together ``mu``-GDP."""
        paid = self.look.pay(name, f"{STEPS} sums of gradients for the {name}", mu)
        table, loss, units, encoders = self.table, self.loss, self.look.units, columns.encoders
        basis = Basis.of((*encoders, *pairs), columns.masses_with(pairs))
        unit = RESIDUAL * float(units.heaviest)
        largest = float(gradient_noise(basis, loss.clip * unit, mu).max())
        coarser = 2.0 ** -max(math.ceil(math.log2(largest / _LARGEST_NOISE)), 0)
        unit *= coarser
        sd = gradient_noise(basis, loss.clip * unit, mu)
        if not gradient_mu(basis, loss.clip * unit, sd) <= mu:
            raise RuntimeError("the noise of a descent does not cover its budget")
        norms, row = basis.squared_norms(sd), np.zeros(table.n_rows)

        def counted() -> Iterator[Codes]:
            for start, codes in zip(basis.starts, all_codes(table, encoders, pairs), strict=True):
                np.add(row, norms[start + codes.astype(np.int64)], out=row)
                yield codes

        design = design_of(counted(), basis, table.n_rows, loss.outputs, self.n, units.heaviest)
        kept = shares(row, basis.longest_row(sd))
        contributed = row * np.square(kept * coarser)
        descent = Descent(design, basis, loss, self.target, units.weights, coarser, kept, contributed)
        length = length_of_step(loss, mu, self.n, basis.usual)
        found = descent.run(paid.channel(name, np.repeat(sd[:, None], loss.outputs, axis=1), STEPS), unit, length)
        found = shrunk_coefficients(found, columns, basis, loss, length, self.n, float(sd[0] * basis.scale[0]) / unit)
        return Additive(encoders, pairs, basis, found), descent

    def choose(self, mu: float, model: Additive, residuals: Sequence[FloatArray], wanted: int) -> tuple[Pair, ...]:
        """Pay ``mu`` and return the pairs that the residuals of a first fit suggest."""
        paid = self.look.pay("pairs", "which pairs of columns act together", mu)
        encoders, cells, starts = model.encoders, model.cell_scores(), model.basis.starts
        levels = [
            levels_of(encoder, cells[start : start + encoder.size].mean(axis=1))
            for encoder, start in zip(encoders, starts, strict=False)
        ]
        of_records = [level[codes] for level, codes in zip(levels, all_codes(self.table, encoders), strict=False)]
        sums = products(residuals, of_records)
        sd = products_noise(self.loss, len(encoders), mu, self.look.units.heaviest)
        released = paid.channel("pairs", np.full(sums.shape, sd))(sums)
        chosen = strongest(released.astype(np.float64), len(encoders), wanted)
        return tuple(Pair(a, b, (encoders[a].name, encoders[b].name), levels[a], levels[b]) for a, b in chosen)


def fit_table(task: Task, declared: Declared, model: str, pairs: int) -> tuple[Additive, FloatArray]:
    """Fit ``model`` with ``pairs`` joint shape functions; return it, and each unit's own Gaussian DP parameter."""
    ledger, columns = task.look.ledger, task.columns(declared, model)
    chosen: tuple[Pair, ...] = ()
    squares = {}
    if pairs:
        first, mu = ledger.parts(MAINS_SHARE, CHOICE_SHARE)
        mains, descent = task.descend("first fit", first, columns)
        squares["first fit"] = descent.squares
        chosen = task.choose(mu, mains, descent.residuals(mains.coefficients), pairs)
    last, descent = task.descend("coefficients", ledger.left, columns, chosen)
    return last, exposures(task.look, squares | {"coefficients": descent.squares})


def exposures(look: Queries, squares: Mapping[str, FloatArray]) -> FloatArray:
    """Return each unit's μ: gradients (by the names of their uses) along this fit's path, all else at its full price.

    A person's is at most the weighted sum of its records' (Minkowski's inequality over the steps).
    """
    units, whole = look.units, np.sum(list(squares.values()), axis=0)
    beside = math.fsum(use.mu**2 for use in look.ledger.uses if use.name not in squares)
    if units.weights is None or units.owners is None or units.labels is None:
        return np.asarray(np.sqrt(whole + beside))
    per_person = np.bincount(units.owners, units.weights * np.sqrt(whole))[: len(units.labels)]
    return np.asarray(np.sqrt(per_person**2 + beside))


def shrunk_coefficients(
    coefficients: FloatArray,
    columns: Columns,
    basis: Basis,
    loss: ClippedLoss,
    length: float,
    n: float,
    sd: float,
) -> FloatArray:
    """Return the coefficients, (coordinates, outputs), with those of the placed columns shrunk.

    Columns whose bins lie where the records are only (``Encoder.placed``): the others, categories and pairs stay.

    ``length`` is that of the steps of the descent, ``n`` about how many records there are, ``sd`` the standard
    deviation of the noise on each coordinate of a sum of gradients, in the units of the coefficients.
    """
    out = coefficients.copy()
    found = [_directions(mass, cell, start, basis) for mass, cell, start in _placed(columns, basis)]
    found = [one for one in found if one[1].size]  # not those whose records are all in one bin
    if not found:
        return out
    bent = n * loss.bend.usual
    gain, noise = responses(length, bent * np.concatenate([curvature for _, curvature, _, _ in found]))
    cuts = np.cumsum([curvature.size for _, curvature, _, _ in found])[:-1]
    seen = []
    for (rows, curvature, axes, _), g, v in zip(found, np.split(gain, cuts), np.split(noise, cuts), strict=True):
        variance = g**2 * n * loss.bend.scatter * curvature + v * sd**2
        seen.append(Seen(axes.T @ out[rows], g * bent * curvature, variance, curvature / curvature.max()))
    for (rows, _, axes, middle), column, kept in zip(found, seen, kept_shares(seen), strict=True):
        change = axes @ ((kept - 1)[:, None] * column.values)
        out[rows] += change
        out[-1] -= middle @ change / basis.scale[-1]  # the column's mean is the intercept's, which is not shrunk
    return out


def responses(length: float, curvature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (gain, noise): how the averaged descent on a parabola responds to a constant gradient and to noise.

    It is linear in the gradients: a constant 1 in every step gives ``gain``, independent noise of variance 1 in each
    step gives the variance ``noise``; both have the shape of ``curvature``.
    """
    w, velocity = np.zeros_like(curvature), np.ones_like(curvature)
    reached = np.zeros((STEPS + 1, curvature.size))  # sums of the responses to one impulse
    for step in range(STEPS):
        velocity = velocity if step == 0 else MOMENTUM * velocity - curvature * w
        w = w + length * velocity
        reached[step + 1] = reached[step] + w
    started, pushed = STEPS // 2, np.arange(STEPS)
    weights = (reached[STEPS - pushed] - reached[np.maximum(started, pushed) - pushed]) / (STEPS - started)
    return weights.sum(axis=0), np.square(weights).sum(axis=0)


def _placed(columns: Columns, basis: Basis) -> list[tuple[FloatArray, int, slice]]:
    """Return the masses, the first cell and the coordinates of the columns whose bins lie where the records are."""
    ends = np.cumsum([encoder.basis()[1].size for encoder in columns.encoders])
    return [
        (np.nan_to_num(mass), int(cell), slice(int(end) - encoder.basis()[1].size, int(end)))
        for encoder, mass, cell, end in zip(columns.encoders, columns.masses, basis.starts, ends, strict=False)
        if encoder.placed
    ]


def _directions(
    mass: FloatArray, cell: int, rows: slice, basis: Basis
) -> tuple[slice, FloatArray, FloatArray, FloatArray]:
    """Return a column's coordinates, and curvatures and axes of its scores' variance; the mean of its rows.

    The missing values' cell has no mass: it is a direction of its own, which stays.
    """
    cells = basis.entries[cell : cell + mass.size, rows].toarray() * basis.scale[rows]
    middle = mass @ cells
    apart = cells - middle
    curvature, axes = np.linalg.eigh(apart.T @ (mass[:, None] * apart))
    real = curvature > _FLAT * max(float(curvature[-1]), 1e-300)
    return rows, curvature[real], axes[:, real], middle


@dataclass(frozen=True, eq=False)
class Seen:
    """One column's directions: ``values`` = gain·truth + N(0, variance), truth ~ N(0, τ²·relative^p).

    ``values`` has shape (directions, outputs), the others (directions,).
    """

    values: FloatArray
    gain: FloatArray
    variance: FloatArray
    relative: FloatArray

    def expected(self) -> tuple[FloatArray, FloatArray]:
        """Return the variance of the signal and of what is seen, (laws, directions), under each prior law."""
        prior = np.array([spread * self.relative**power for power in _SMOOTHNESS for spread in _VARIANCES])
        return self.gain * prior, self.gain**2 * prior + self.variance

    def log_likelihood(self) -> FloatArray:
        """Return the log likelihood of each law, (laws,)."""
        _, total = self.expected()
        outputs, squares = self.values.shape[1], np.square(self.values).sum(axis=1)
        return np.asarray(-0.5 * (outputs * np.log(total) + squares / total).sum(axis=1))


def kept_shares(columns: Sequence[Seen]) -> list[FloatArray]:
    """Return the share of each direction that is kept, (directions,) per column: posterior means, at most 1.

    How often columns have each law (τ² and p) is unknown: a uniform prior, which counts as one column, is updated by
    the other columns (expectation–maximisation).
    """
    logs = np.array([column.log_likelihood() for column in columns])
    flat = np.full(logs.shape[1], 1 / logs.shape[1])
    often = flat
    for _ in range(_ROUNDS):
        laws = logs + np.log(often)
        laws = np.exp(laws - laws.max(axis=1, keepdims=True))
        laws /= laws.sum(axis=1, keepdims=True)
        often = (flat + laws.sum(axis=0)) / (1 + len(columns))
    out = []
    for law, column in zip(laws, columns, strict=True):
        signal, total = column.expected()
        out.append(np.minimum(law @ np.minimum(signal / total, 1.0), 1.0))
    return out
