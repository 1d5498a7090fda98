"""Closed forms: the worst pair of an (ε, δ) guarantee and the Gaussian pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._special import erfcx, ndtr, ndtri
from deniable.curves.base import Tradeoff
from deniable.curves.safe import AnyDirection, Direction, Side, outward


@dataclass(frozen=True)
class ApproximateTradeoff(Tradeoff):
    """The worst pair of an (ε, δ)-DP mechanism (Kairouz, Oh & Viswanath 2015; Humphries et al.; Izzo Theorem 4).

    P = {δ, (1−δ)e^ε/(1+e^ε), (1−δ)/(1+e^ε), 0} against its mirror image: attained by randomised response, so upper
    and lower coincide as statements about the worst mechanism with that guarantee.

    Examples
    --------
    See ``GaussianTradeoff``.
    """

    guaranteed_epsilon: float
    guaranteed_delta: float

    _closed = True

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        eps = self.guaranteed_epsilon
        log_p = -float(np.log1p(np.exp(-eps)))  # p = e^ε/(1+e^ε), 1 − p = e^{log_p − ε}
        with np.errstate(over="ignore", invalid="ignore"):
            first = -np.exp(log_p) * np.expm1(np.minimum(log_gamma - eps, 0.0))
            second = -np.exp(log_p - eps) * np.expm1(np.minimum(log_gamma + eps, 0.0))
        if np.isinf(eps):
            first, second = np.ones_like(log_gamma), np.zeros_like(log_gamma)
        spread = (1 - self.guaranteed_delta) * (first + second)
        value = self.guaranteed_delta + spread
        open_ = (log_gamma < eps) & (self.guaranteed_delta < 1)  # exactly δ from ε on
        return outward(value, np.where(open_, 8 * EPS * value, 0.0), side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            rising = self.guaranteed_delta + np.exp(self.guaranteed_epsilon + np.log(fpr))
        # 1 − e^{−ε}·(1 − δ − α)₊, written so that small ε + δ + α keep their digits
        shrink = np.exp(-self.guaranteed_epsilon)
        falling = -np.expm1(-self.guaranteed_epsilon) + shrink * np.minimum(self.guaranteed_delta + fpr, 1.0)
        value = np.minimum(np.minimum(rising, falling), 1.0)
        # exp(ε + log α) loses the rounding of its argument, whose size is at most ε + 745
        value = outward(value, (8 + 2 * min(self.guaranteed_epsilon + 745, 1500)) * EPS * value, side)
        return np.maximum(value, fpr)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        return float("inf") if self.guaranteed_delta > 0 else self.guaranteed_epsilon

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        if self.guaranteed_delta > 0:
            return np.full(order.shape, np.inf)
        return randomized_response_divergence(self.guaranteed_epsilon, order)


def gaussian_hockey_stick(mu: FloatArray, log_gamma: FloatArray, side: Side) -> FloatArray:
    """H_γ of N(0, 1) against N(``mu``, 1) for finite ``mu`` ≥ 0, rounded to a side; the two arrays are broadcast.

    The pair is symmetric, so that H_γ = 1 − γ + γ·H_{1/γ}: only γ ≥ 1 needs a formula. There
    H = Φ(a) − γΦ(b) = φ(a)·(m(a) − m(b)) with the Mills ratio m = Φ/φ, which keeps relative precision in tails.
    """
    below = np.minimum(log_gamma, 0.0)
    gamma, rest = np.exp(below), -np.expm1(below)  # of the smaller of γ and 1
    lg = np.minimum(np.abs(log_gamma), 1e300)  # keeps ∞ out of the arithmetic; H underflows to 0 long before
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        a, b = mu / 2 - lg / mu, -mu / 2 - lg / mu
        mass = ndtr(a)
        mills = np.exp(-(a**2) / 2) / 2 * (erfcx(-a / np.sqrt(2)) - erfcx(-b / np.sqrt(2)))
        direct = mass - np.exp(-(a**2) / 2) / 2 * erfcx(-b / np.sqrt(2))  # γ·φ(b) = φ(a), and γ may be no double
        value = np.clip(np.where(a < 5, mills, direct), 0.0, 1.0)
        rounding = 8 + 4 * np.minimum((mu / 2 + lg / mu) ** 2, 1e300)
        slack = EPS * np.where(mass > 0, rounding * mass, 0.0)
        value, slack = gamma * value + rest, gamma * slack
        found = outward(value, slack + np.where(below < 0, 4 * EPS * value, 0.0), side)
        return np.where(mu > 0, found, outward(rest, 4 * EPS * rest, side))  # equal laws


@dataclass(frozen=True)
class GaussianTradeoff(Tradeoff):
    """N(0, 1) against N(μ, 1): TPR = Φ(Φ⁻¹(FPR) + μ), TV = 2Φ(μ/2) − 1 (Dong, Roth & Su 2022).

    Examples
    --------
    >>> import deniable as dn
    >>> curves = [dn.curves.GaussianTradeoff(0.5), dn.curves.ApproximateTradeoff(0.5, 1e-6)]
    >>> [round(curve.tpr(0.01), 4) for curve in curves]
    [0.0339, 0.0165]
    """

    mu: float

    _closed = True

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if np.isinf(self.mu):
            return np.ones_like(log_gamma)
        return gaussian_hockey_stick(np.array(self.mu), log_gamma, side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        quantile = ndtri(fpr)
        with np.errstate(invalid="ignore"):
            nudge = 8 * EPS * (1 + np.abs(quantile) + self.mu) * (1 if side == "upper" else -1)
            value = ndtr(quantile + self.mu + nudge)
        value = outward(value, 4 * EPS * value, side)
        value = np.where(fpr == 0, float(np.isinf(self.mu)), np.where(fpr == 1, 1.0, value))
        return np.maximum(value, fpr)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        return float("inf") if self.mu > 0 else 0.0

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """P(L > ε) = Φ(μ/2 − ε/μ) is about δ, or a little more."""
        if not 0 < self.mu < 1e150:
            return super().epsilon_near(delta, direction)
        near = self.mu * (self.mu / 2 - ndtri(np.clip(delta, 1e-300, 1 - EPS)))
        return near, np.full(delta.shape, max(self.mu, 1e-9))

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return np.asarray(order * (self.mu**2 / 2 * (1 + 4 * EPS)))  # Mironov 2017, Proposition 7


def randomized_response_divergence(epsilon: float, order: FloatArray) -> FloatArray:
    """D_α of randomised response, the worst pair of ε-DP, rounded up: at most ε and ε²α/2 (Bun & Steinke 2016, 3.3).

    D_α = log((e^{αε} + e^{(1−α)ε})/(1 + e^ε))/(α − 1), written as ε minus what lies below it.
    """
    if np.isinf(epsilon):
        return np.full(order.shape, np.inf)
    below = (np.log1p(np.exp(-epsilon)) - np.log1p(np.exp((1 - 2 * order) * epsilon))) / (order - 1)
    exact = epsilon - below + 8 * EPS * (epsilon + 2 / (order - 1))
    return np.asarray(np.minimum(np.minimum(exact, epsilon), epsilon**2 / 2 * order * (1 + 4 * EPS)))
