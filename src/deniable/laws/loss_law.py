"""The law of the privacy loss between two shifted copies of one noise: what every such law can tell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from deniable._check import FloatArray
from deniable._search import bisect
from deniable.curves import Side, Tradeoff

_MANY = 1024  # more records than this share a grid of ρ


class LossLaw(ABC):
    """What an attacker can do, as a function of the distance of the centres in units of the noise."""

    @abstractmethod
    def tradeoff(self, rho: float) -> Tradeoff:
        """The trade-off of one pair of worlds."""

    @abstractmethod
    def hockey_stick(self, rho: FloatArray, log_gamma: FloatArray, side: Side) -> FloatArray:
        """H_γ for each ρ (the two directions agree)."""

    @abstractmethod
    def tpr(self, rho: FloatArray, fpr: FloatArray, side: Side) -> FloatArray:
        """Largest true positive rate for each ρ at each FPR (element by element)."""

    @abstractmethod
    def mean_loss(self, rho: FloatArray) -> FloatArray:
        """E l over models of the in-world: the Kullback–Leibler divergence."""

    @abstractmethod
    def mean_size(self, rho: FloatArray) -> FloatArray:
        """E|l| over models of the in-world."""

    def advantage(self, rho: FloatArray, side: Side) -> FloatArray:
        """Total variation distance for each ρ."""
        return self.hockey_stick(rho, np.zeros_like(rho), side)

    def epsilon(self, rho: FloatArray, delta: float, side: Side) -> FloatArray:
        """Smallest ε ≥ 0 with H_{e^ε} ≤ δ for each ρ, by bisection; the end on the safe side.

        Many records share a fine geometric grid of ρ, rounded to the safe side (ε is non-decreasing in ρ).
        """
        positive = rho[rho > 0]
        if positive.size <= 2 * _MANY:
            return self._bisect_epsilon(rho, delta, side)
        grid = np.concatenate([[0.0], np.geomspace(positive.min(), positive.max(), 2 * _MANY - 1)])
        grid[[1, -1]] = positive.min(), positive.max()
        index = np.searchsorted(grid, rho, side="left") if side == "upper" else np.searchsorted(grid, rho, "right") - 1
        return self._bisect_epsilon(grid, delta, side)[index]

    def _bisect_epsilon(self, rho: FloatArray, delta: float, side: Side) -> FloatArray:
        enough, zero = self._largest_loss(rho), np.zeros_like(rho)
        high, low = bisect(lambda epsilon: self.hockey_stick(rho, epsilon, side) <= delta, enough, zero)
        return np.where(self.hockey_stick(rho, zero, side) <= delta, 0.0, high if side == "upper" else low)

    @property
    @abstractmethod
    def largest(self) -> float:
        """ρ beyond which the law is not computed: upper sides are the trivial ones there."""

    @abstractmethod
    def _largest_loss(self, rho: FloatArray) -> FloatArray:
        """Where the bisection for ε may start."""


def in_chunks(function: Callable[..., FloatArray], *arrays: FloatArray, rows: int = 2048) -> FloatArray:
    """Apply a row-wise function in chunks, to bound its memory."""
    count = len(arrays[0])
    return np.concatenate(
        [function(*(a[i : i + rows] for a in arrays)) for i in range(0, count, rows)] or [np.empty(0)]
    )
