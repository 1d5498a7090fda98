"""Laplace noise; and without its two atoms the worst pair of every bounded-range mechanism.

Multiplied by e^{ℓ/2}, the law under Q of a Laplace loss ℓ is flat between −ε and ε, with equal atoms at the ends:

    Q(L = −ε) = ½,   Q(L = ε) = ½·e^{−ε},   density ¼·e^{−(ε + ℓ)/2} between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import Cut, ListedOutcomes, OutcomeLine, Piece
from deniable.accounting.steps.ratios import plain_losses, sampled_error, sampled_losses
from deniable.accounting.steps.sampled import SampledTradeoff
from deniable.curves import Direction, Side, Tradeoff, randomized_response_divergence


@dataclass(frozen=True)
class LaplaceStep(Step):
    """Laplace(0, b) against Laplace(Δ, b), ε = Δ/b; with ``rate`` q, the second one only with probability q."""

    epsilon: float
    rate: float

    attained = True

    @property
    def lowest(self) -> float:
        return sampled(-self.epsilon, self.rate)

    @property
    def highest(self) -> float:
        return sampled(self.epsilon, self.rate)

    @property
    def symmetric(self) -> bool:
        return self.rate == 1

    @property
    def pitch(self) -> float:
        return self.highest - self.lowest

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        return laplace_divergence(self.epsilon, order) if self.rate == 1 else super().divergence(order, direction)

    def pieces(self) -> tuple[Piece, ...]:
        ends = np.array([self.lowest, self.highest])
        q = np.array([0.5, math.exp(-self.epsilon) / 2])
        p = (1 - self.rate) * q + self.rate * q[::-1]
        wrong = sampled_error(np.array([-self.epsilon, self.epsilon]), np.zeros(2), self.rate)
        atoms = ListedOutcomes(ends, p, q, float(wrong.max()), 8 * EPS * (1 + self.epsilon))
        return atoms, FlatOutcomes.of(self.epsilon, self.rate, 1.0)

    def one_step(self) -> Tradeoff | None:
        every = LaplaceTradeoff(self.epsilon)
        return every if self.rate == 1 else SampledTradeoff(every, self.rate, self.divergence)


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatOutcomes(OutcomeLine):
    """Outcomes ℓ between −ε and ε: under Q a density ``scale``·¼·e^{−(ε + ℓ)/2}, under P r = 1 − q + q·e^ℓ times it.

    Between x and y, Q has ½·scale·e^{−(ε + x)/2}·(1 − e^{−(y − x)/2}), and P/Q is r((x + y)/2), as e^ℓ has the mean
    e^{(x + y)/2} there: no cell needs a quadrature. ``mirrored``: outcomes are −ℓ, and P and Q are exchanged.
    """

    epsilon: float
    rate: float
    scale: float
    mirrored: bool = False

    @classmethod
    def of(cls, epsilon: float, rate: float, scale: float) -> FlatOutcomes:
        return cls(
            loss=partial(sampled_losses, rate=rate),
            wrong=lambda x: sampled_error(x, 2 * EPS * np.abs(x), rate),
            low=-epsilon,
            high=epsilon,
            outcome=partial(plain_losses, rate=rate),
            epsilon=epsilon,
            rate=rate,
            scale=scale,
        )

    def swapped(self) -> FlatOutcomes:
        return replace(super().swapped(), mirrored=not self.mirrored)

    def sampled(self, rate: float) -> FlatOutcomes:
        return FlatOutcomes.of(self.epsilon, self.rate * rate, self.scale)

    def _density(self, u: FloatArray) -> FloatArray:
        x = -u if self.mirrored else u
        out = self.scale / 4 * np.exp(-(self.epsilon + x) / 2)
        return out if self.mirrored else out * np.exp(sampled_losses(x, self.rate))

    def cut(self, edges: FloatArray, blur: FloatArray) -> Cut:
        u, gap, wrong = self._outcomes_below(edges, blur)
        x = -u[1:] if self.mirrored else u[:-1]
        out = self.scale / 2 * np.exp(-(self.epsilon + x) / 2) * -np.expm1(-np.diff(u) / 2)
        centre = self.loss((u[1:] + u[:-1]) / 2)  # log P/Q of the cell, of the two as they are here
        p = out if self.mirrored else out * np.exp(centre)
        known = 32 * EPS * (1 + self.epsilon)
        slack = gap[:-1] + np.maximum(wrong[1:], wrong[:-1]) + known
        fall = edges[:-1] - centre
        least, most = p * (1 - known), p * (1 + known)
        rise = (np.maximum(-np.expm1(fall), 0.0) + slack) * most
        return Cut(least, most, np.minimum(rise, most), p * np.exp(fall) * (1 + known + 2 * slack))


def sampled(loss: float, rate: float) -> float:
    """Loss of a step that takes the record with probability ``rate``: log(1 − q + q·e^ℓ)."""
    if rate == 1:
        return loss
    return float(sampled_losses(np.array(loss), rate))


def epsilon_of(sensitivity: float, scale: float) -> float:
    """Return ε = Δ/b, rounded up."""
    found = sensitivity / scale
    exact = math.isinf(found) or Fraction(found) * Fraction(scale) >= Fraction(sensitivity)
    return found if exact else math.nextafter(found, math.inf)


def laplace_divergence(epsilon: float, order: FloatArray) -> FloatArray:
    """D_α = log(α·e^{(α−1)ε}/(2α − 1) + (α − 1)·e^{−αε}/(2α − 1))/(α − 1), rounded up (Mironov 2017, Table II).

    Written as ε minus what lies below it; of tiny ε randomised response knows more digits.
    """
    finite = np.minimum(order, 1e300)  # at ∞ it is ε, which is no more than this with its charge for rounding
    missed = (finite - 1) / (2 * finite - 1) * np.expm1((1 - 2 * finite) * epsilon)
    exact = epsilon + np.log1p(missed) / (finite - 1) + 32 * EPS * (1 + epsilon)
    return np.asarray(np.minimum(exact, randomized_response_divergence(epsilon, order)))


@dataclass(frozen=True)
class LaplaceTradeoff(Tradeoff):
    """Laplace(0, b) against Laplace(Δ, b), ε = Δ/b, in closed form.

    H_γ = 1 − √(γ·e^{−ε}) for e^{−ε} ≤ γ ≤ e^ε; the ROC is e^ε·α, then 1 − e^{−ε}/(4α), then 1 − e^{−ε}·(1 − α)
    (Dong, Roth & Su 2022, example of canonical noise). The pair is symmetric.
    """

    distance: float  # Δ/b

    _closed = True

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        eps = self.distance
        sign = 1.0 if side == "upper" else -1.0
        value = -np.expm1(np.minimum((log_gamma - eps) / 2, 0.0))
        value = np.where(log_gamma < -eps, -np.expm1(np.minimum(log_gamma, 0.0)), value)
        slack = 8 * EPS * (value + np.where(value > 0, np.abs(np.clip(log_gamma, -eps, eps)) + eps, 0.0))
        return np.asarray(value + sign * slack)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        eps = self.distance
        shrink = math.exp(-eps)
        with np.errstate(divide="ignore", over="ignore"):
            steep = np.exp(eps + np.log(fpr))
            middle = 1 - shrink / (4 * np.maximum(fpr, 1e-300))
        flat = -math.expm1(-eps) + shrink * fpr
        value = np.where(fpr <= shrink / 2, steep, np.where(fpr <= 0.5, middle, flat))
        slack = (16 + 4 * eps + 1500) * EPS * value
        found = value + slack if side == "upper" else value - slack
        return np.where(fpr == 0, 0.0, np.where(fpr == 1, 1.0, np.maximum(found, fpr)))

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        # at least Δ/b, and less than two doubles above it
        return self.distance if side == "upper" else self.distance * (1 - 2 * EPS)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return laplace_divergence(self.distance, order)


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

    symmetric = True
    attained = True

    @property
    def lowest(self) -> float:
        return -self.epsilon

    @property
    def highest(self) -> float:
        return self.epsilon

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

    symmetric = True

    _closed = True

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

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        return self.range

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return bounded_range_divergence(self.range, order)


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
        return np.asarray(np.fmin(found / less, epsilon))
