"""Shape functions pulled towards smooth ones and towards none, by what the noise alone would have made of them.

A fit with one strength of regularisation for all columns keeps noise in columns that tell nothing and bends smooth
ones. How large the noise is, is known: the privacy noise exactly, the sample's from the number of records. Empirical
Bayes: in each column the principal directions are looked at apart, with coefficients that have a normal law beforehand,
of unknown variance and smoothness; both are averaged over, weighted by how likely they make what the fit found. All of
it is post-processing of noised numbers and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from deniable._check import FloatArray
from deniable.training.descent import DescentPlan
from deniable.training.design import Basis
from deniable.training.encoders import Encoder, Thermometer
from deniable.training.losses import ClippedLoss

_VARIANCES = np.concatenate(([0.0], np.logspace(-4, 3, 36)))  # of coefficients, beforehand: all that occur
_SMOOTHNESS = (0.0, 1.0)  # powers of the curvature by which rough directions are rarer
_FLAT = 1e-9  # of the largest curvature, below which a direction is none


def shrunk_coefficients(
    coefficients: FloatArray,
    encoders: Sequence[Encoder],
    basis: Basis,
    loss: ClippedLoss,
    plan: DescentPlan,
    n: float,
    sd: float,
) -> FloatArray:
    """Return the coefficients, (coordinates, outputs), with those of the known columns shrunk.

    Columns whose bins have a known mass only (``Thermometer.mass``): the others, categories and pairs stay.

    Parameters
    ----------
    plan
        Of the descent that found the coefficients.
    n
        About how many records there are.
    sd
        Standard deviation of the noise on each coordinate of a sum of gradients, in the units of the coefficients.
    """
    out = coefficients.copy()
    found = [_directions(block, cell, start, basis) for block, cell, start in _known(encoders, basis)]
    if not found:
        return out
    gain, noise = responses(plan, n * loss.bend * np.concatenate([curvature for _, curvature, _, _ in found]))
    place = 0
    for rows, curvature, axes, middle in found:
        part = slice(place, place + curvature.size)
        place += curvature.size
        seen = axes.T @ out[rows]
        variance = gain[part] ** 2 * n * loss.scatter * curvature + noise[part] * sd**2
        kept = _kept(seen, gain[part] * n * loss.bend * curvature, variance, curvature / curvature.max())
        change = axes @ ((kept - 1)[:, None] * seen)
        out[rows] += change
        out[-1] -= middle @ change / basis.scale[-1]  # the column's mean is the intercept's, which is not shrunk
    return out


def responses(plan: DescentPlan, curvature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what the averaged descent makes of a constant force and of noise, for each curvature of a parabola.

    The answer is linear in what the steps are given: a force of 1 in every step gives ``gain``, independent noise of
    variance 1 in each step gives the variance ``noise``.
    """
    w, velocity = np.zeros_like(curvature), np.ones_like(curvature)
    reached = np.zeros((plan.steps + 1, curvature.size))  # sums of the responses to one push
    for step in range(plan.steps):
        velocity = velocity if step == 0 else plan.momentum * velocity - curvature * w
        w = w + plan.step * velocity
        reached[step + 1] = reached[step] + w
    started, pushed = plan.steps // 2, np.arange(plan.steps)
    weights = (reached[plan.steps - pushed] - reached[np.maximum(started, pushed) - pushed]) / (plan.steps - started)
    return weights.sum(axis=0), np.square(weights).sum(axis=0)


def _known(encoders: Sequence[Encoder], basis: Basis) -> list[tuple[Thermometer, int, int]]:
    """Return the columns with known masses, the first cell and the first coordinate of each."""
    widths = [encoder.basis()[1].size for encoder in encoders]
    starts = np.concatenate(([0], np.cumsum(widths)))
    return [
        (encoder, int(cell), int(start))
        for encoder, cell, start in zip(encoders, basis.starts, starts, strict=False)
        if isinstance(encoder, Thermometer) and encoder.mass is not None
    ]


def _directions(
    block: Thermometer, cell: int, start: int, basis: Basis
) -> tuple[slice, FloatArray, FloatArray, FloatArray]:
    """Return a column's coordinates, and curvatures and axes of its scores' variance; the mean of its rows."""
    rows = slice(start, start + block.basis()[1].size)
    cells = basis.entries[cell : cell + block.size, rows].toarray() * basis.scale[rows]
    mass = np.append(np.asarray(block.mass), 0.0)  # the missing values' cell is a direction of its own, which stays
    middle = mass @ cells
    apart = cells - middle
    curvature, axes = np.linalg.eigh(apart.T @ (mass[:, None] * apart))
    real = curvature > _FLAT * max(float(curvature[-1]), 1e-300)
    return rows, curvature[real], axes[:, real], middle


def _kept(seen: FloatArray, gain: FloatArray, variance: FloatArray, relative: FloatArray) -> FloatArray:
    """Return the share of each direction that is kept, (directions,): posterior means, at most 1.

    ``seen`` = gain·truth + N(0, variance), truth ~ N(0, τ²·relative^p); τ² and p are averaged over their posterior.
    """
    prior = np.array([spread * relative**power for power in _SMOOTHNESS for spread in _VARIANCES])
    expected = gain**2 * prior + variance
    logs = -0.5 * (seen.shape[1] * np.log(expected) + np.square(seen).sum(axis=1) / expected).sum(axis=1)
    weights = np.exp(logs - logsumexp(logs))
    return np.asarray(np.minimum(weights @ np.minimum(gain * prior / expected, 1.0), 1.0))
