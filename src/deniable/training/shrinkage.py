"""What a descent found, shrunk towards smooth shape functions and towards zero: post-processing of noised numbers.

By as much as the known noise calls for: that of privacy exactly, that of sampling from the number of records. Empirical
Bayes: in each column the principal directions are treated one by one, their coefficients have a normal prior of unknown
variance and smoothness; both are averaged over, weighted by the likelihood of what the fit found and by how often the
other columns have them. Pairs of columns are treated in the same way, apart from the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray, IntArray
from deniable.training.design import Basis
from deniable.training.losses import ClippedLoss

_VARIANCES = np.concatenate(([0.0], np.logspace(-4, 3, 36)))  # prior variances of coefficients, wider than what occurs
_SMOOTHNESS = (0.0, 1.0)  # powers of the curvature by which rough directions are rarer
_ROUNDS = 20  # of expectation–maximisation, after which the laws' frequencies hardly change
_FLAT = 1e-9  # share of the largest curvature below which a direction is ignored


@dataclass(frozen=True, eq=False)
class Response:
    """How the average of a descent's coefficients responds to what its sums of gradients hold.

    Attributes
    ----------
    length, momentum
        Of the steps.
    started
        The step from which on coefficients are averaged.
    noise
        Standard deviation, per step, of the noise on each coordinate of a sum of gradients, in units of coefficients.
    """

    length: float
    momentum: float
    started: int
    noise: FloatArray

    def to(self, curvature: FloatArray, born: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return (gain, variance) of coefficients on a parabola that step ``born`` is the first to move.

        The response is linear: a constant gradient of 1 gives ``gain``, and noise gives ``variance``. ``curvature`` is
        the second derivative in each direction.
        """
        steps = self.noise.size
        w, velocity = np.zeros_like(curvature), np.ones_like(curvature)
        reached = np.zeros((steps + 1, curvature.size))  # sums of the responses to one impulse
        for step in range(steps):
            velocity = velocity if step == 0 else self.momentum * velocity - curvature * w
            w = w + self.length * velocity
            reached[step + 1] = reached[step] + w
        pushed = np.arange(steps)
        weights = reached[steps - pushed] - reached[np.maximum(self.started, pushed) - pushed]
        weights *= (pushed[:, None] >= born) / (steps - self.started)
        return weights.sum(axis=0), np.square(weights * self.noise[:, None]).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Directions:
    """A block's coordinates, the curvatures and axes of its scores' variance, the mean of its rows; when it was added.

    The cell of missing values has no mass: it is a direction of its own, which stays.
    """

    rows: slice
    curvature: FloatArray
    axes: FloatArray
    middle: FloatArray
    born: int

    @classmethod
    def of(cls, basis: Basis, cell: int, rows: slice, mass: FloatArray, born: int) -> Directions:
        """Return those of a block: its first cell, its coordinates, the masses of its cells."""
        mass = np.nan_to_num(mass)
        cells = basis.entries[cell : cell + mass.size, rows].toarray() * basis.scale[rows]
        middle = mass @ cells
        apart = cells - middle
        curvature, axes = np.linalg.eigh(apart.T @ (mass[:, None] * apart))
        real = curvature > _FLAT * max(float(curvature[-1]), 1e-300)
        return cls(rows, curvature[real], axes[:, real], middle, born)


def shrunk_coefficients(
    coefficients: FloatArray,
    groups: Iterable[Sequence[Directions]],
    basis: Basis,
    loss: ClippedLoss,
    n: float,
    response: Response,
) -> FloatArray:
    """Return the coefficients, (coordinates, outputs), with those of the blocks of each group shrunk.

    ``n`` is about how many records there are. Blocks of a group are taken to be alike.
    """
    out = coefficients.copy()
    found = [[one for one in group if one.curvature.size] for group in groups]
    every = [one for group in found for one in group]  # not those whose records are all in one bin
    if not every:
        return out
    bent = n * loss.bend.usual * np.concatenate([one.curvature for one in every])
    gain, noise = response.to(bent, np.concatenate([np.full(one.curvature.size, one.born) for one in every]))
    variance = gain**2 * bent * (loss.bend.scatter / loss.bend.usual) + noise
    cuts = np.cumsum([one.curvature.size for one in every])[:-1]
    parts = iter(zip(np.split(gain * bent, cuts), np.split(variance, cuts), strict=True))
    for group in found:
        seen = [Seen(a.axes.T @ out[a.rows], *next(parts), a.curvature / a.curvature.max()) for a in group]
        for one, saw, kept in zip(group, seen, kept_shares(seen), strict=True):
            change = one.axes @ ((kept - 1)[:, None] * saw.values)
            out[one.rows] += change
            out[-1] -= one.middle @ change / basis.scale[-1]  # a block's mean is the intercept's, which is not shrunk
    return out


@dataclass(frozen=True, eq=False)
class Seen:
    """One column's directions: ``values`` = gain·truth + N(0, variance), truth ~ N(0, τ²·relative^p).

    ``values`` has shape (directions, outputs), the others (directions,).
    """

    values: FloatArray
    gain: FloatArray
    variance: FloatArray
    relative: FloatArray

    def expected_variances(self) -> tuple[FloatArray, FloatArray]:
        """Return the variance of the signal and of what is seen, (laws, directions), under each prior law."""
        prior = np.array([spread * self.relative**power for power in _SMOOTHNESS for spread in _VARIANCES])
        return self.gain * prior, self.gain**2 * prior + self.variance

    def log_likelihood(self) -> FloatArray:
        """Return the log likelihood of each law, (laws,)."""
        _, total = self.expected_variances()
        outputs, squares = self.values.shape[1], np.square(self.values).sum(axis=1)
        return np.asarray(-0.5 * (outputs * np.log(total) + squares / total).sum(axis=1))


def kept_shares(columns: Sequence[Seen]) -> list[FloatArray]:
    """Return the share of each direction that is kept, (directions,) per column: posterior means, at most 1.

    How often columns have each law (τ² and p) is unknown: a uniform prior, which counts as one column, is updated by
    the other columns (expectation–maximisation).
    """
    if not columns:
        return []
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
        signal, total = column.expected_variances()
        out.append(np.minimum(law @ np.minimum(signal / total, 1.0), 1.0))
    return out
