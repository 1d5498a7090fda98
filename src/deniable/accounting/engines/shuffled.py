"""Shuffled batches: between an attack that is known and a cap that is proven."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._search import bisect
from deniable.accounting.transform.line import TINY
from deniable.curves import Direction, Side, Tradeoff
from deniable.mechanisms import GaussianDP, ShuffledBatches

_FARTHEST = 40.0  # spreads of the noise: nothing is beyond
_TESTS = np.linspace(-8.0, 38.0, 1500)  # thresholds tried for hockey sticks


def shuffled_cap(mechanism: ShuffledBatches) -> GaussianDP:
    """Return the cap, for what one record contributes.

    Tell the attacker the permutations. In each epoch the record then stands in one known batch, whose sum it moves by
    at most 1 (the clipping norm): ``epochs`` Gaussian mechanisms, whatever is chosen adaptively, hence μ = √E/σ. Hockey
    sticks are jointly convex, so that a mixture over permutations has no larger ones.
    """
    return GaussianDP(math.sqrt(mechanism.epochs) / mechanism.noise_multiplier * (1 + 4 * EPS))


def shuffled_total(mechanism: ShuffledBatches) -> GaussianDP:
    """Return what is seen of the sum of all outcomes, when every other record contributes nothing.

    The record contributes the same vector of norm 1 in every epoch. The sum along it is N(0, 1) against N(√(E/t)/σ, 1)
    in units of its deviation. A better attack, on these batches alone, is :class:`LargestOutcomeTradeoff`.
    """
    share = math.sqrt(mechanism.epochs / mechanism.batches)
    return GaussianDP(share / mechanism.noise_multiplier * (1 - 4 * EPS))


@dataclass(frozen=True)
class LargestOutcomeTradeoff(Tradeoff):
    """What the test "the largest of all outcomes exceeds a threshold" reaches, from below; the upper side is trivial.

    One record in one uniformly drawn batch of each epoch, nothing else: with n = batches·epochs and u the threshold in
    units of the noise, out(max ≤ u) = Φ(u)ⁿ and in(max ≤ u) = Φ(u)^{n − E}·Φ(u − 1/σ)^E.
    """

    noise_multiplier: float
    batches: int
    epochs: int
    method: str = field(default="a test of the largest outcome", kw_only=True)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "upper":
            return np.ones_like(log_gamma)
        false, true = self._test(_TESTS, direction)
        with np.errstate(over="ignore", invalid="ignore"):
            cost = np.multiply.outer(np.exp(log_gamma), false) * (1 + 4 * EPS)
        value = true - cost - 4 * EPS
        return np.asarray(np.max(np.nan_to_num(value, nan=0.0, neginf=0.0), axis=1).clip(0.0, 1.0))

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "upper":
            return np.ones_like(fpr)
        never = _FARTHEST if direction == "add" else -_FARTHEST
        ends = np.full(fpr.shape, never)
        u, _ = bisect(lambda u: self._test(u, direction)[0] <= fpr, ends, -ends, relative=1e-14)
        false, true = self._test(u, direction)
        return np.where(false <= fpr, np.maximum(true, fpr), fpr)

    def _least_log_ratio(self, direction: Direction) -> float:
        return 0.0

    def _test(self, u: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """An upper bound on the false, a lower bound on the true positive rate."""
        apart = u - 1 / self.noise_multiplier
        many, few = self.batches * self.epochs, self.epochs
        if direction == "add":  # accuse above the threshold
            below_out = _log_power(u, many, "lower")
            below_in = _log_power(u, many - few, "upper") + _log_power(apart, few, "upper")
            return -np.expm1(below_out) * (1 + 8 * EPS) + TINY, -np.expm1(below_in) * (1 - 8 * EPS)
        below_in = _log_power(u, many - few, "upper") + _log_power(apart, few, "upper")
        return np.exp(below_in) * (1 + 8 * EPS) + TINY, np.exp(_log_power(u, many, "lower")) * (1 - 8 * EPS)


def _log_power(u: FloatArray, count: int, side: Side) -> FloatArray:
    """A bound on count·log Φ(u), at most 0."""
    if count == 0:
        return np.zeros_like(u)
    tail, wrong = ndtr(-u), 64 * EPS * (1 + u**2)
    tail = np.minimum(tail * (1 + wrong) if side == "lower" else tail * (1 - wrong), 1.0)
    with np.errstate(divide="ignore"):
        found = count * np.log1p(-np.maximum(tail, 0.0)) * (1 + 4 * EPS if side == "lower" else 1 - 4 * EPS)
    return np.asarray(np.minimum(found, 0.0))
