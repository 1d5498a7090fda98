"""Laplace noise, and the worst pair of every bounded-range mechanism, which is Laplace's without its two atoms.

Multiplied by e^{ℓ/2}, the law under Q of a Laplace loss ℓ is flat between −ε and ε, with equal atoms at the ends:

    Q(L = −ε) = ½,   Q(L = ε) = ½·e^{−ε},   density ¼·e^{−(ε + ℓ)/2} between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable.accounting.steps.base import LossCells, Step, atoms, joined, tilted_moments
from deniable.curves import Charged, Direction, Question, Side, Tradeoff


@dataclass(frozen=True)
class LaplaceStep(Step):
    """Laplace(0, b) against Laplace(Δ, b), ε = Δ/b; with ``rate`` q, the second one only with probability q."""

    epsilon: float
    rate: float = 1.0

    @property
    def lowest(self) -> float:
        return sampled(-self.epsilon, self.rate)

    @property
    def highest(self) -> float:
        return sampled(self.epsilon, self.rate)

    @property
    def attained(self) -> bool:
        return True

    @property
    def pitch(self) -> float:
        return self.highest - self.lowest

    def cells(self, spacing: float, tilt: float) -> LossCells:
        eps, rate = self.epsilon, self.rate
        ends = np.array([self.lowest, self.highest])
        q = np.array([0.5, math.exp(-eps) / 2])
        p = (1 - rate) * q + rate * q[::-1]
        between = flat_cells(eps, rate, spacing, 1.0)
        # the upper atom lies in the last cell of the density
        return joined(atoms(ends, p, q, spacing, lattice=(self.lowest, self.pitch)), between, spacing)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        if self.rate < 1:
            return super().cumulants(c)
        ends = np.array([-self.epsilon, self.epsilon])
        nodes, weights = _LEGENDRE
        value = np.concatenate([ends, self.epsilon * nodes])
        mass = np.concatenate([[0.5, 0.5], weights * (self.epsilon / 4)]) * math.exp(-self.epsilon / 2)
        return tilted_moments(value, np.log(mass) - value / 2, c)

    def one_step(self) -> Tradeoff | None:
        if self.rate < 1:
            return None
        return LaplaceTradeoff(self.epsilon)


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
    def attained(self) -> bool:
        return True

    def cells(self, spacing: float, tilt: float) -> LossCells:
        return flat_cells(self.epsilon, 1.0, spacing, 2 / -math.expm1(-self.epsilon))

    def cumulants(self, c: float) -> tuple[float, float, float]:
        nodes, weights = _LEGENDRE
        value = self.epsilon * nodes
        log_mass = np.log(weights * (self.epsilon / 4)) - self.epsilon / 2 + math.log(2 / -math.expm1(-self.epsilon))
        return tilted_moments(value, log_mass - value / 2, c)


_LEGENDRE = np.polynomial.legendre.leggauss(64)


def sampled(loss: float, rate: float) -> float:
    """Loss of a step that takes the record with probability ``rate``: log(1 − q + q·e^ℓ)."""
    if rate == 1:
        return loss
    return math.log1p(rate * math.expm1(loss)) if loss < PRODUCT_EXPONENT else loss + math.log(rate)


def flat_cells(epsilon: float, rate: float, spacing: float, scale: float) -> LossCells:
    """Cells of the law with density ``scale``·¼·e^{−(ε + ℓ)/2} in ℓ under Q, between −ε and ε, sampled at a rate.

    With edges x < y in ℓ, Q has ½·scale·e^{−(ε + x)/2}·(1 − e^{−(y − x)/2}), and P/Q of the cell is e^{(x + y)/2}.
    """
    low, high = sampled(-epsilon, rate), sampled(epsilon, rate)
    count = int((high - low) / spacing) + 1
    edges: FloatArray = low + spacing * np.arange(count + 1, dtype=np.float64)
    if rate == 1:
        plain = np.clip(edges, -epsilon, epsilon)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = np.log1p(np.maximum(np.expm1(edges) / rate, -1.0))
        plain = np.clip(np.nan_to_num(plain, nan=-epsilon, neginf=-epsilon), -epsilon, epsilon)
    plain[0], plain[-1] = -epsilon, epsilon
    x, y = plain[:-1], plain[1:]
    q = scale / 2 * np.exp(-(epsilon + x) / 2) * -np.expm1((x - y) / 2)
    ratio = np.exp((x + y) / 2)
    p = ((1 - rate) + rate * ratio) * q
    centre = np.log1p(rate * np.expm1((x + y) / 2)) - edges[:-1]
    wobble = 16 * EPS * (1 + epsilon)  # of edges and centres
    return LossCells(low, p, q, np.clip(centre, 0.0, spacing), 64 * EPS * (1 + epsilon), wobble)


@dataclass(frozen=True)
class LaplaceTradeoff(Tradeoff):
    """Laplace(0, b) against Laplace(Δ, b), ε = Δ/b, in closed form.

    H_γ = 1 − √(γ·e^{−ε}) for e^{−ε} ≤ γ ≤ e^ε; the ROC is e^ε·α, then 1 − e^{−ε}/(4α), then 1 − e^{−ε}·(1 − α)
    (Dong, Roth & Su 2022, example of canonical noise). The pair is symmetric.
    """

    distance: float  # Δ/b

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

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.distance

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method, exact=True)
