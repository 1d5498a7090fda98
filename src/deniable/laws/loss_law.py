"""The law of the privacy loss between two shifted copies of one noise: what every such law can tell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, choice, number, numbers
from deniable._search import bisect
from deniable.curves import LEAST_RATE, Side, Tradeoff

FEW = 2048  # records for which a grid of ρ, or a table, does not pay


class LossLaw(ABC):
    """What an attacker can do, as a function of the distance ρ ≥ 0 of the centres in units of the noise.

    The public methods take anything array-like of any shape, broadcast it and return float64 of that shape; the laws
    give the primitives with an underscore, on float64 arrays of one dimension and equal length.
    """

    @abstractmethod
    def tradeoff(self, rho: float) -> Tradeoff:
        """The trade-off of one pair of worlds."""

    def hockey_stick(self, rho: ArrayLike, log_gamma: ArrayLike, side: Side) -> FloatArray:
        """H_γ for each ρ (the two directions agree)."""
        return _each(lambda r, s: self.hockey_sticks(r, s, _side(side)), _rho(rho), numbers("log_gamma", log_gamma))

    def tpr(self, rho: ArrayLike, fpr: ArrayLike, side: Side) -> FloatArray:
        """Largest true positive rate for each ρ at each FPR (element by element)."""
        rates = numbers("fpr", fpr, at_least=0.0, at_most=1.0)
        return _each(lambda r, a: self._normal_tpr(r, a, _side(side)), _rho(rho), rates)

    def mean_loss(self, rho: ArrayLike) -> FloatArray:
        """E l over models of the in-world: the Kullback–Leibler divergence."""
        return _each(self._mean_loss, _rho(rho))

    def mean_size(self, rho: ArrayLike) -> FloatArray:
        """E|l| over models of the in-world."""
        return _each(self._mean_size, _rho(rho))

    def advantage(self, rho: ArrayLike, side: Side) -> FloatArray:
        """Total variation distance for each ρ."""
        return _each(lambda r: self._advantage(r, _side(side)), _rho(rho))

    def advantages(self, rho: FloatArray, side: Side) -> FloatArray:
        """:meth:`advantage` of any number of records, (n,): from a table where that pays, rounded to the side."""
        return in_chunks(lambda r: self.advantage(r, side), rho)

    def rates(self, rho: FloatArray, fpr: float, side: Side) -> FloatArray:
        """:meth:`tpr` of any number of records at one FPR, (n,): from a table where that pays, rounded to the side."""
        return in_chunks(lambda r: self.tpr(r, fpr, side), rho)

    def epsilon(self, rho: ArrayLike, delta: float, side: Side) -> FloatArray:
        """Smallest ε ≥ 0 with H_{e^ε} ≤ δ for each ρ, by bisection; the end on the safe side.

        Many records share a fine geometric grid of ρ, rounded to the safe side (ε is non-decreasing in ρ).
        """
        d = number("delta", delta, at_least=0.0, at_most=1.0)
        return _each(lambda r: self._epsilon(r, d, _side(side)), _rho(rho))

    @abstractmethod
    def hockey_sticks(self, rho: FloatArray, log_gamma: FloatArray, side: Side) -> FloatArray:
        """H_γ at γ = exp(``log_gamma``), entry by entry; the arrays are as long."""

    @abstractmethod
    def true_positive_rates(self, rho: FloatArray, fpr: FloatArray, side: Side) -> FloatArray:
        """Largest true positive rates, entry by entry, of normal false positive rates."""

    def _normal_tpr(self, rho: FloatArray, fpr: FloatArray, side: Side) -> FloatArray:
        """:meth:`tpr`; among denormal rates, which have few digits, the bound of a normal one or the trivial one."""
        denormal = (fpr > 0) & (fpr < LEAST_RATE)
        found = self.true_positive_rates(rho, np.where(denormal, LEAST_RATE, fpr), side)
        return found if side == "upper" else np.where(denormal, fpr, found)

    @abstractmethod
    def _mean_loss(self, rho: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _mean_size(self, rho: FloatArray) -> FloatArray: ...

    def _advantage(self, rho: FloatArray, side: Side) -> FloatArray:
        return self.hockey_sticks(rho, np.zeros_like(rho), side)

    def _epsilon(self, rho: FloatArray, delta: float, side: Side) -> FloatArray:
        positive = rho[rho > 0]
        if positive.size <= FEW:
            return self._bisect_epsilon(rho, delta, side)
        grid = np.concatenate([[0.0], np.geomspace(positive.min(), positive.max(), FEW - 1)])
        grid[[1, -1]] = positive.min(), positive.max()
        index = np.searchsorted(grid, rho, side="left") if side == "upper" else np.searchsorted(grid, rho, "right") - 1
        return self._bisect_epsilon(grid, delta, side)[index]

    def _bisect_epsilon(self, rho: FloatArray, delta: float, side: Side) -> FloatArray:
        enough, zero = self._largest_loss(rho), np.zeros_like(rho)
        high, low = bisect(lambda epsilon: self.hockey_sticks(rho, epsilon, side) <= delta, enough, zero)
        return np.where(self.hockey_sticks(rho, zero, side) <= delta, 0.0, high if side == "upper" else low)

    @abstractmethod
    def draws(self, size: int, dimension: int, rng: np.random.Generator) -> FloatArray:
        """Draws of the noise at scale 1, (size, dimension), from NumPy: for simulations, never for a release."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """ρ beyond which the law is not computed: upper sides are the trivial ones there."""

    @abstractmethod
    def _largest_loss(self, rho: FloatArray) -> FloatArray:
        """Where the bisection for ε may start."""


def _rho(rho: ArrayLike) -> FloatArray:
    return numbers("rho", rho, at_least=0.0)


def _side(side: str) -> Side:
    return cast(Side, choice("side", side, ("upper", "lower")))


def _each(primitive: Callable[..., FloatArray], *arrays: FloatArray) -> FloatArray:
    """Apply a primitive to arrays of any shapes that broadcast; the result has their common shape."""
    try:
        shaped = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InputError(f"rho and what goes with it must have shapes that broadcast, got {shapes}") from None
    flat = [np.array(array, dtype=np.float64).ravel() for array in shaped]  # copies: callers' arrays stay as they are
    if not flat[0].size:
        return np.zeros(shaped[0].shape)
    return np.asarray(primitive(*flat), dtype=np.float64).reshape(shaped[0].shape)


def in_chunks(function: Callable[..., FloatArray], *arrays: FloatArray, rows: int = 2048) -> FloatArray:
    """Apply a row-wise function in chunks, to bound its memory."""
    count = len(arrays[0])
    return np.concatenate(
        [function(*(a[i : i + rows] for a in arrays)) for i in range(0, count, rows)] or [np.empty(0)]
    )
