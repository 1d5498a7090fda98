"""Residuals on a lattice: the only thing that a step takes from a record besides its cells.

A score is a whole number of 2⁻¹²; a residual is a whole number of 2⁻¹⁵ whose size (for several outputs: Euclidean
norm) is at most ``clip``, for every record. Tables and single correctly rounded operations are used throughout, so that
equal scores give equal residuals wherever in the data the record stands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deniable._check import FloatArray
from deniable._floats import MANY_ROUNDINGS

SCORE = 1 << 12  # lattice points per unit of score
RESIDUAL = 1 << 15  # lattice points per unit of residual
EXACT = 2.0**53  # sums of whole numbers below are exact in double precision, in any order
CLIP = 0.5  # of residuals, unless a target has a long tail
_FARTHEST = 16  # scores are clipped to ± this
_COARSE = 4  # adjacent scores that share an entry of a table

Scores = NDArray[np.int32]


@dataclass(frozen=True)
class Bend:
    """What the length of the steps and shrinkage need to know of a loss.

    Attributes
    ----------
    largest, usual
        Second derivative, at most and for scores near 0.
    scatter
        Usual mean square of a residual.
    travel
        How far the coefficients may go, in units of μ: one over the implicit ridge against the noise.
    reach
        How far they may go at most, however large μ is: one over the ridge against overfitting.
    """

    largest: float
    usual: float
    scatter: float
    travel: float
    reach: float


@dataclass(frozen=True)
class ClippedLoss(ABC):
    """The gradient of a loss with respect to the ``outputs`` scores, clipped at size ``clip``, rounded towards zero."""

    clip: float = CLIP
    outputs: int = 1
    link: float = 0.0  # of two classes: how far probabilities are those of the plain loss
    first: float | None = None  # the clip of the first steps, where it was another one
    by_size: ClassVar[bool] = False  # whether the clip is chosen by the size of the residuals

    @property
    @abstractmethod
    def bend(self) -> Bend:
        """Second derivatives and the sizes that follow from them."""

    @property
    def table(self) -> FloatArray:
        """What residuals are looked up in: made once, as another processor's exponentials may differ in a last bit."""
        return _exponential_table()

    @abstractmethod
    def residuals(self, scores: list[Scores], target: FloatArray, table: FloatArray) -> list[FloatArray]:
        """Return one array of whole numbers per output; ``target`` holds one number per record."""


def _position(scores: Scores) -> NDArray[np.int32]:
    """Index into a table over ±16 in steps of 2⁻¹⁰."""
    end = _FARTHEST * SCORE
    return (np.clip(scores, -end, end - 1) + end) // _COARSE


def _grid() -> FloatArray:
    """The scores in the middle of each table entry."""
    return (np.arange(2 * _FARTHEST * SCORE // _COARSE) + 0.5) * _COARSE / SCORE - _FARTHEST


def tabulate(scores: FloatArray, *functions: Callable[[FloatArray], FloatArray]) -> list[FloatArray]:
    """Return functions of scores, from tables: equal scores give equal values wherever a record stands."""
    place = _position(np.rint(np.clip(scores, -_FARTHEST, _FARTHEST) * SCORE).astype(np.int32))
    return [function(_grid()).take(place) for function in functions]


@lru_cache(maxsize=4)
def _logistic_table(clip: float) -> FloatArray:
    p = expit(_grid())
    return np.asarray(np.trunc(np.concatenate([np.clip(p - y, -clip, clip) for y in (0, 1)]) * RESIDUAL))


@lru_cache(maxsize=1)
def _exponential_table() -> FloatArray:
    return np.exp(_grid())


class ClippedLogistic(ClippedLoss):
    """Two classes, σ(score) − y clipped at ½: the gradient of a convex, Huberised logistic loss."""

    bend = Bend(largest=0.25, usual=0.25, scatter=0.25, travel=3.0, reach=3.0)

    @property
    def table(self) -> FloatArray:
        """The residuals of both classes."""
        return _logistic_table(self.clip)

    def residuals(self, scores: list[Scores], target: FloatArray, table: FloatArray) -> list[FloatArray]:
        """Return σ(score) − y, clipped, on the lattice."""
        return [table.take(_position(scores[0]) + target.astype(np.int32) * (table.size // 2))]

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return P(y = 1): the inverse link of the clipped loss; ``link`` = 1: that of the plain one."""
        return np.asarray(expit(self.log_odds(scores)))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return log P/(1 − P). Scores that have not come far are those of the plain loss: the clip has not bitten."""
        return np.asarray(scores - (1 - self.link) * link_gap(scores))


def link_gap(scores: FloatArray) -> FloatArray:
    """Return how much farther from 0 log odds are by the plain loss than by the one clipped at ½, up to log 2."""
    return np.asarray(np.sign(scores) * (np.log(2.0) - np.log1p(np.exp(-np.abs(scores)))))


class ClippedSoftmax(ClippedLoss):
    """Several classes: softmax minus indicator, the vector clipped to Euclidean norm ``clip``."""

    @property
    def bend(self) -> Bend:
        """At equal probabilities."""
        usual = (1 - 1 / self.outputs) / self.outputs
        return Bend(0.5, usual, min(usual, self.clip**2 / self.outputs), travel=3.0, reach=3.0)

    def residuals(self, scores: list[Scores], target: FloatArray, table: FloatArray) -> list[FloatArray]:
        """Return the clipped residual vectors, one array per class."""
        largest = scores[0]
        for s in scores[1:]:
            largest = np.maximum(largest, s)
        weights = [table.take(_position(s - largest)) for s in scores]
        total = weights[0].copy()
        for w in weights[1:]:  # in this order for every record: a library's sum may depend on its place in memory
            total += w
        parts = [w / total - (target == k) for k, w in enumerate(weights)]
        square = parts[0] * parts[0]
        for part in parts[1:]:
            square += part * part
        factor = np.minimum(1.0, self.clip / np.sqrt(np.maximum(square, 1e-300))) * (RESIDUAL * (1 - MANY_ROUNDINGS))
        return [np.trunc(part * factor) for part in parts]


def _paths(loss: ClippedLoss) -> dict[str, float]:
    """Return travel and reach of a regression: a wider clip has more noise, and the ridge grows with it."""
    first = loss.first or loss.clip
    slower = min(first / loss.clip, 1.0)
    return {"travel": 2.1 * first * slower, "reach": 0.5 * slower}


class ClippedSquared(ClippedLoss):
    """Prediction minus target, clipped at ``clip`` target units: squared loss near, absolute loss far."""

    by_size = True

    @property
    def bend(self) -> Bend:
        """A residual's mean square is half of the target's variance, or what the clip leaves."""
        return Bend(1.0, 1.0, min(self.clip**2, 0.5), **_paths(self))

    def residuals(self, scores: list[Scores], target: FloatArray, table: FloatArray) -> list[FloatArray]:
        """Return the clipped differences; targets are in the units of the scores."""
        end = self.clip * RESIDUAL
        aimed = np.rint(np.clip(target, -1e4, 1e4) * SCORE)
        return [np.clip(np.trunc((scores[0] - aimed) * (RESIDUAL / SCORE)), -end, end)]


class ClippedPoisson(ClippedLoss):
    """exp(score) minus a count in units of its typical size, clipped at ``clip``."""

    by_size = True

    @property
    def bend(self) -> Bend:
        """At rates near their typical size."""
        return Bend(2.0, 1.0, 0.25, **_paths(self))

    def residuals(self, scores: list[Scores], target: FloatArray, table: FloatArray) -> list[FloatArray]:
        """Return the clipped differences between rate and count."""
        rate = table.take(_position(scores[0]))
        return [np.trunc(np.clip(rate - target, -self.clip, self.clip) * RESIDUAL)]
