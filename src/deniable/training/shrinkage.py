"""Shape functions shrunk towards smooth ones and towards zero, by as much as the known noise calls for.

A fit with one strength of regularisation for all columns keeps noise in columns that tell nothing and distorts smooth
ones. The size of the noise is known: that of privacy exactly, that of sampling from the number of records. Empirical
Bayes: in each column the principal directions are treated one by one, their coefficients have a normal prior of unknown
variance and smoothness; both are averaged over, weighted by the likelihood of what the fit found and by how often the
other columns have them. All of it is post-processing of noised numbers and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable.training.centres import Columns
from deniable.training.descent import DescentPlan
from deniable.training.design import Basis
from deniable.training.losses import ClippedLoss

_VARIANCES = np.concatenate(([0.0], np.logspace(-4, 3, 36)))  # prior variances of coefficients, wider than what occurs
_SMOOTHNESS = (0.0, 1.0)  # powers of the curvature by which rough directions are rarer
_ROUNDS = 20  # of expectation–maximisation, after which the laws' frequencies hardly change
_FLAT = 1e-9  # share of the largest curvature below which a direction is ignored


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

    Columns whose bins lie where the records are only (``ColumnEncoder.placed``): the others, categories and pairs stay.

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
