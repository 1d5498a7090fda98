"""What the attacker reaches who looks at the largest of all outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._search import bisect
from deniable._special import ndtr
from deniable.accounting.sizes import FAR, UNDERFLOW
from deniable.curves import Direction, Side, Tradeoff

_TESTS = np.linspace(-8.0, 38.0, 1500)  # thresholds of the largest outcome that are tried for hockey sticks


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
        never = FAR if direction == "remove" else -FAR
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
        if direction == "remove":  # accuse above the threshold
            below_out = _log_power(u, many, "lower")
            below_in = _log_power(u, many - few, "upper") + _log_power(apart, few, "upper")
            return -np.expm1(below_out) * (1 + 8 * EPS) + UNDERFLOW, -np.expm1(below_in) * (1 - 8 * EPS)
        below_in = _log_power(u, many - few, "upper") + _log_power(apart, few, "upper")
        return np.exp(below_in) * (1 + 8 * EPS) + UNDERFLOW, np.exp(_log_power(u, many, "lower")) * (1 - 8 * EPS)


def _log_power(u: FloatArray, count: int, side: Side) -> FloatArray:
    """A bound on count·log Φ(u), at most 0."""
    if count == 0:
        return np.zeros_like(u)
    tail, wrong = ndtr(-u), 64 * EPS * (1 + u**2)
    tail = np.minimum(tail * (1 + wrong) if side == "lower" else tail * (1 - wrong), 1.0)
    with np.errstate(divide="ignore"):
        found = count * np.log1p(-np.maximum(tail, 0.0)) * (1 + 4 * EPS if side == "lower" else 1 - 4 * EPS)
    return np.asarray(np.minimum(found, 0.0))
