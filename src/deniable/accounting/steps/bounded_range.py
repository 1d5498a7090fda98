"""The worst pair of every bounded-range mechanism: that of Laplace noise without its two atoms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.laplace import FlatOutcomes
from deniable.curves import Charged, Direction, Question, Side, Tradeoff


@dataclass(frozen=True)
class BoundedRangeStep(Step):
    """The worst pair of all mechanisms of range ε (Dong, Durfee & Rogers 2020, arXiv:1909.13830, and below).

    Range ε says that every log-ratio between two neighbours lies in some [t − ε, t], 0 ≤ t ≤ ε. Each such pair is a
    post-processing of the two-point pair with log-ratios t − ε and t, so that H_γ is at most

        sup_t (1 − e^{t − ε} − γ·e^{−t} + γ·e^{−ε})/(1 − e^{−ε}) = (1 − √(γ·e^{−ε}))²/(1 − e^{−ε}),   t = (ε + log γ)/2,

    for e^{−ε} ≤ γ ≤ e^ε. Its second derivative, ½·e^{−ε/2}·γ^{−3/2}/(1 − e^{−ε}), is the law of P/Q under Q of a pair
    that dominates all of them, adaptively chosen t included; one step attains the bound at every γ by some mechanism.
    """

    epsilon: float

    @property
    def lowest(self) -> float:
        return -self.epsilon

    @property
    def highest(self) -> float:
        return self.epsilon

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def attained(self) -> bool:
        return True

    def pieces(self) -> tuple[FlatOutcomes]:
        return (FlatOutcomes.of(self.epsilon, 1.0, 2 / -math.expm1(-self.epsilon)),)

    def one_step(self) -> Tradeoff | None:
        return BoundedRangeTradeoff(self.epsilon)

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        return bounded_range_divergence(self.epsilon, order)


@dataclass(frozen=True)
class BoundedRangeTradeoff(Tradeoff):
    """One step of :class:`BoundedRangeStep` in closed form: odds of a true accusation are e^ε times a false one's.

    From H_γ = (1 − a·√γ)²/(1 − a²), a = e^{−ε/2}: the tangent of slope γ touches at α = a·(1/√γ − a)/(1 − a²) and
    TPR = (1 − a·√γ)/(1 − a²) = α/(α + (1 − α)·e^{−ε}), a test that some mechanism of the class allows. The pair is
    symmetric.
    """

    range: float  # ε

    @property
    def _symmetric(self) -> bool:
        return True

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        eps, whole = self.range, -math.expm1(-self.range)
        below = np.expm1(np.minimum((log_gamma - eps) / 2, 0.0))
        value = below * (below / whole)
        # half of log γ − ε is known to Δ, which moves the value by no more than (2|below| + Δ)·Δ over the whole
        unsure = 4 * EPS * (np.abs(np.clip(log_gamma, -eps, eps)) + eps)
        slack = 16 * EPS * value + (2 * np.abs(below) + unsure) * (unsure / whole)
        found = value + slack if side == "upper" else value - slack
        trivial = -np.expm1(np.minimum(log_gamma, 0.0))
        outside = np.where(log_gamma > 0, 0.0, trivial)
        near = 8 * EPS * eps if side == "upper" else -8 * EPS * eps  # the ends as rounded to either side
        return np.where(np.abs(log_gamma) <= eps + near, np.maximum(found, outside), outside)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        shrink = math.exp(-self.range)
        with np.errstate(invalid="ignore"):
            value = fpr / (fpr + (1 - fpr) * shrink)
        slack = (16 + 4 * self.range) * EPS * value
        found = value + slack if side == "upper" else value - slack
        return np.where(fpr == 0, 0.0, np.where(fpr == 1, 1.0, np.maximum(found, fpr)))

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.range

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.range

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return bounded_range_divergence(self.range, order)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method, exact=True)


def bounded_range_divergence(epsilon: float, order: FloatArray) -> FloatArray:
    """Return the largest Rényi divergence of all pairs of range ε, in either direction, rounded up.

    E_Q[r^α] with r from a to a·e^ε and of mean 1 is at most its value at these two ends, c·a^{α−1} − (c − 1)·a^α with
    c = (e^{αε} − 1)/(e^ε − 1), and largest at a = c·(α − 1)/((c − 1)·α). Exchanged worlds have the same range.
    """

    def log_expm1(x: FloatArray) -> FloatArray:
        return np.asarray(x + np.log(-np.expm1(-x)))

    with np.errstate(all="ignore"):
        whole, less = log_expm1(np.array(epsilon)), order - 1
        log_c, log_rest = log_expm1(order * epsilon) - whole, epsilon + log_expm1(less * epsilon) - whole
        log_moment = log_c - np.log(order) + less * (log_c + np.log(less / order) - log_rest)
        found = log_moment + 64 * EPS * order * (1 + epsilon + np.abs(np.log(epsilon)) + np.abs(np.log(less)))
        return np.asarray(np.minimum(found / less, epsilon))
