"""Gaussian noise: the law of the privacy loss between two shifted copies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf, ndtr, ndtri

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.curves import GaussianTradeoff, Side, Tradeoff, gaussian_hockey_stick, outward
from deniable.laws.loss_law import LossLaw


@dataclass(frozen=True)
class GaussianLaw(LossLaw):
    """Gaussian noise of standard deviation s in every coordinate: ρ = Δ/s, and the law is that of N(ρ²/2, ρ²)."""

    def tradeoff(self, rho: float) -> Tradeoff:
        """μ-Gaussian-DP with μ = ρ."""
        return GaussianTradeoff(rho)

    def hockey_sticks(self, rho: FloatArray, log_gamma: FloatArray, side: Side) -> FloatArray:
        """That of the Gaussian trade-off with μ = ρ."""
        return np.where(np.isinf(rho), 1.0, gaussian_hockey_stick(rho, log_gamma, side))

    def _advantage(self, rho: FloatArray, side: Side) -> FloatArray:
        """2Φ(ρ/2) − 1."""
        return np.asarray(erf(rho / np.sqrt(8)) * (1 + (8e-16 if side == "upper" else -8e-16))).clip(0.0, 1.0)

    def true_positive_rates(self, rho: FloatArray, fpr: FloatArray, side: Side) -> FloatArray:
        """Φ(Φ⁻¹(FPR) + ρ)."""
        quantile = ndtri(fpr)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ at FPR 0 and 1, which are known
            nudge = 2e-15 * (1 + np.abs(quantile) + rho) * (1 if side == "upper" else -1)
            inner = ndtr(quantile + rho + nudge)
        inner = outward(inner, 4 * EPS * inner, side)
        return np.clip(np.where(np.isfinite(quantile), inner, fpr), fpr, 1.0)

    def _epsilon(self, rho: FloatArray, delta: float, side: Side) -> FloatArray:
        """As for every law, but infinite at δ = 0: the loss has no largest value."""
        return super()._epsilon(rho, delta, side) if delta > 0 else np.where(rho > 0, np.inf, 0.0)

    def _mean_loss(self, rho: FloatArray) -> FloatArray:
        """ρ²/2."""
        return rho**2 / 2

    def _mean_size(self, rho: FloatArray) -> FloatArray:
        """Mean of a folded normal."""
        return np.asarray(rho * np.sqrt(2 / np.pi) * np.exp(-(rho**2) / 8) + rho**2 / 2 * erf(rho / np.sqrt(8)))

    def draws(self, size: int, dimension: int, rng: np.random.Generator) -> FloatArray:
        """Independent standard normal coordinates."""
        return rng.standard_normal((size, dimension))

    @property
    def largest(self) -> float:
        """Any finite ρ whose square is finite."""
        return 1e100

    def _largest_loss(self, rho: FloatArray) -> FloatArray:
        return rho**2 / 2 + 40 * rho
