"""Mechanisms that may fail completely with a small probability: the δ of (ε, δ)-DP parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.curves import AnyDirection, ApproximateTradeoff, Charged, Direction, Question, Side, Tradeoff


@dataclass(frozen=True)
class FailureTradeoff(Tradeoff):
    """With probability ``failure`` the world is revealed, otherwise the pair is that of ``of``.

    The worst pair of an (ε, δ)-DP mechanism is this with randomised response; composition keeps the form, with
    1 − failure = Π(1 − δ). Hence H_γ = failure + (1 − failure)·H_γ(of), and since a revealing outcome is never a false
    positive, TPR(α) = failure + (1 − failure)·TPR_of(α/(1 − failure)).
    """

    of: Tradeoff
    failure: float

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        inner = self.of._hockey_sticks(log_gamma, direction, side)
        return self._outward(self.failure + (1 - self.failure) * inner, side)

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return np.full(order.shape, np.inf)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        nudged = fpr / (1 - self.failure) * (1 + (4 if side == "upper" else -4) * EPS)
        inner = self.of._rates(np.clip(nudged, 0.0, 1.0), direction, side)
        return np.clip(self._outward(self.failure + (1 - self.failure) * inner, side), fpr, 1.0)

    def _epsilon_bracket(self, delta: FloatArray, direction: AnyDirection, side: Side) -> tuple[FloatArray, FloatArray]:
        """No ε will do for a δ below the probability of failure, which every H_γ exceeds."""
        low, high = np.full_like(delta, np.inf), np.full_like(delta, np.inf)
        enough = ~(delta < self.failure * (1 - 16 * EPS))
        if enough.any():
            low[enough], high[enough] = super()._epsilon_bracket(delta[enough], direction, side)
        return low, high

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Where the rest has (δ − failure)/(1 − failure)."""
        left = np.clip((delta - self.failure) / (1 - self.failure), 1e-300, 1.0)
        return self.of._epsilon_near(left, direction)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        left = 1 - self.failure
        inner = self.of._charged(question, at if question == "hockey stick" else min(at / left, 1.0), direction)
        return inner.scaled(left, f"; fails with probability {self.failure:.3g}")

    @staticmethod
    def _outward(value: FloatArray, side: Side) -> FloatArray:
        moved: FloatArray = np.clip(value * (1 + (8 if side == "upper" else -8) * EPS), 0.0, 1.0)
        return moved


def with_failure(tradeoff: Tradeoff, failure: float, exact: bool = False) -> Tradeoff:
    """Return the trade-off of a mechanism that is ``tradeoff``'s but for failures of this probability.

    ``exact`` says that the probability is a δ as it was given; others are charged 8 roundings.
    """
    if failure == 0:
        return tradeoff
    if exact and isinstance(tradeoff, ApproximateTradeoff):
        return ApproximateTradeoff(tradeoff.guaranteed_epsilon, failure)
    return FailureTradeoff(tradeoff, failure, method=tradeoff.method, confidence=tradeoff.confidence)
