"""Noisy full-batch gradient descent with momentum and averaging: all that is released are noised integer sums.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise.queries import Channel
from deniable.training.design import CHUNK, Basis, Design
from deniable.training.looks import Columns
from deniable.training.losses import RESIDUAL, ClippedLoss

_VARIANCES = np.concatenate(([0.0], np.logspace(-4, 3, 36)))  # prior variances of coefficients, wider than what occurs
_SMOOTHNESS = (0.0, 1.0)  # powers of the curvature by which rough directions are rarer
_ROUNDS = 20  # of expectation–maximisation, after which the laws' frequencies hardly change
_SIGNS = np.array([[-1, -1, 1, 1, 0], [1, -1, -1, 1, 0]], dtype=np.int64)  # middle; outer half; 0: missing
_FLAT = 1e-9  # share of the largest curvature below which a direction is ignored


@dataclass(frozen=True)
class DescentPlan:
    """Numbers fixed before the first step, from public and noised quantities only.

    Attributes
    ----------
    steps
        Number of sums that are released.
    step
        Factor on the (momentum-averaged) sum of gradients.
    momentum
        Weight of the past in the velocity.
    """

    steps: int
    step: float
    momentum: float = 0.95


@dataclass(frozen=True, eq=False)
class Weighted:
    """The records' targets and whole-number weights (None: each weighs 1); a unit's weights sum to ≤ ``heaviest``.

    ``coarser``, a power of ½, makes the lattice of the residuals coarser where the noise is so large that fine steps
    would be wasted. ``shares``, at most 1, are factors on the residuals of records whose rows are long.
    """

    target: FloatArray
    weights: FloatArray | None = None
    heaviest: int = 1
    coarser: float = 1.0
    shares: FloatArray | None = None

    @property
    def unit(self) -> float:
        """Lattice points of a residual of size 1 with a unit's whole weight."""
        return RESIDUAL * self.heaviest * self.coarser

    def weighted(self, residuals: list[FloatArray], rows: slice) -> list[FloatArray]:
        """Return the residuals times weights and shares on the coarser lattice, rounded towards zero."""
        if self.weights is not None:
            residuals = [r * self.weights[rows] for r in residuals]
        if self.shares is not None:
            shares = self.shares[rows] * self.coarser
            return [np.trunc(r * shares) for r in residuals]
        return residuals if self.coarser == 1 else [np.trunc(r * self.coarser) for r in residuals]


class Contributions:
    """Adds up each record's squared contribution, in units of the noise.

    Parameters
    ----------
    row_norms
        Each record's Σ (basis entry / noise)² over the coordinates, for a residual of 1.
    lattice
        Factor on the residuals before they are summed.
    """

    def __init__(self, row_norms: FloatArray, lattice: float) -> None:
        self._row = row_norms * lattice**2
        self.squares = np.zeros(row_norms.size)

    def add(self, rows: slice, residuals: list[FloatArray]) -> None:
        """Count what these records contribute to a sum."""
        squares = residuals[0] * residuals[0]
        for r in residuals[1:]:
            squares += r * r
        squares *= self._row[rows]
        self.squares[rows] += squares


def descend(
    design: Design,
    basis: Basis,
    loss: ClippedLoss,
    data: Weighted,
    plan: DescentPlan,
    channel: Channel,
    seen: Contributions,
) -> FloatArray:
    """Return the averaged coefficients, (coordinates, outputs).

    ``channel`` noises sums of shape (coordinates, outputs); ``seen`` counts what each record contributes to them.
    """
    shape = (basis.scale.size, loss.outputs)
    w, velocity, mean = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    started = plan.steps // 2
    scale = basis.scale[:, None]
    for step in range(plan.steps):
        g = channel(gradient(design, basis, loss, data, w, seen)) * (scale / data.unit)
        velocity = plan.momentum * velocity + g
        w = w - plan.step * velocity
        if step >= started:
            mean += w
    return mean / (plan.steps - started)


def gradient(
    design: Design, basis: Basis, loss: ClippedLoss, data: Weighted, w: FloatArray, seen: Contributions
) -> IntArray:
    """Return the sum of residuals times rows, (coordinates, outputs): exact, whatever the order of the records."""
    sums = design.empty(loss.outputs)
    for rows, residuals in _residuals(design, basis, loss, data, w):
        seen.add(rows, residuals)
        design.add(sums, data.weighted(residuals, rows), rows)
    return design.total(sums)


def residuals_at(design: Design, basis: Basis, loss: ClippedLoss, data: Weighted, w: FloatArray) -> list[FloatArray]:
    """Return each record's (weighted) residuals, one array per output."""
    parts = [data.weighted(residuals, rows) for rows, residuals in _residuals(design, basis, loss, data, w)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _residuals(
    design: Design, basis: Basis, loss: ClippedLoss, data: Weighted, w: FloatArray
) -> Iterator[tuple[slice, list[FloatArray]]]:
    prepared = design.prepare(basis.scale[:, None] * w)
    for rows in design.chunks():
        yield rows, loss.residuals(design.scores(prepared, rows), data.target[rows])


def shrunk_coefficients(
    coefficients: FloatArray,
    columns: Columns,
    basis: Basis,
    loss: ClippedLoss,
    plan: DescentPlan,
    n: float,
    sd: float,
) -> FloatArray:
    """Return the coefficients, (coordinates, outputs), with those of the placed columns shrunk.

    Columns whose bins lie where the records are only (``Encoder.placed``): the others, categories and pairs stay.

    Parameters
    ----------
    plan
        Plan of the descent that found the coefficients.
    n
        About how many records there are.
    sd
        Standard deviation of the noise on each coordinate of a sum of gradients, in the units of the coefficients.
    """
    out = coefficients.copy()
    found = [_directions(mass, cell, start, basis) for mass, cell, start in _placed(columns, basis)]
    found = [one for one in found if one[1].size]  # not those whose records are all in one bin
    if not found:
        return out
    gain, noise = responses(plan, n * loss.bend * np.concatenate([curvature for _, curvature, _, _ in found]))
    cuts = np.cumsum([curvature.size for _, curvature, _, _ in found])[:-1]
    seen = []
    for (rows, curvature, axes, _), g, v in zip(found, np.split(gain, cuts), np.split(noise, cuts), strict=True):
        variance = g**2 * n * loss.scatter * curvature + v * sd**2
        seen.append(Seen(axes.T @ out[rows], g * n * loss.bend * curvature, variance, curvature / curvature.max()))
    for (rows, _, axes, middle), column, kept in zip(found, seen, kept_shares(seen), strict=True):
        change = axes @ ((kept - 1)[:, None] * column.values)
        out[rows] += change
        out[-1] -= middle @ change / basis.scale[-1]  # the column's mean is the intercept's, which is not shrunk
    return out


def responses(plan: DescentPlan, curvature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (gain, noise): how the averaged descent on a parabola responds to a constant gradient and to noise.

    It is linear in the gradients: a constant 1 in every step gives ``gain``, independent noise of variance 1 in each
    step gives the variance ``noise``; both have the shape of ``curvature``.
    """
    w, velocity = np.zeros_like(curvature), np.ones_like(curvature)
    reached = np.zeros((plan.steps + 1, curvature.size))  # sums of the responses to one impulse
    for step in range(plan.steps):
        velocity = velocity if step == 0 else plan.momentum * velocity - curvature * w
        w = w + plan.step * velocity
        reached[step + 1] = reached[step] + w
    started, pushed = plan.steps // 2, np.arange(plan.steps)
    weights = (reached[plan.steps - pushed] - reached[np.maximum(started, pushed) - pushed]) / (plan.steps - started)
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
