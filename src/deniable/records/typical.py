"""Every record's exposure by typical models: exact where the law is known, sampled with confidence bands elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.curves import (
    ApproximateTradeoff,
    BracketTradeoff,
    EnvelopeTradeoff,
    Side,
    Tradeoff,
)
from deniable.laws import LossLaw, in_chunks

_AT_A_TIME = 1_000_000  # records per block, to bound the memory


@dataclass(frozen=True, eq=False)
class ExactTypical:
    """Output noise: record i's curve is that of a known law at ρ_i, which the certificate confines to an interval."""

    law: LossLaw
    rate: float
    distance: FloatArray
    error: FloatArray

    def rho(self, side: Side) -> FloatArray:
        """rate·distance, moved to the safe side by the certified error."""
        sign = 1 if side == "upper" else -1
        return np.maximum(self.rate * (self.distance + sign * self.error) * (1 + sign * 1e-14), 0.0)

    def advantage(self, side: Side) -> FloatArray:
        """Exact at the upper or lower end of ρ_i."""
        return self._safely(side, 1.0, lambda r: self.law.advantages(r, side))

    def tpr(self, fpr: float, side: Side) -> FloatArray:
        """Exact at the upper or lower end of ρ_i."""
        return self._safely(side, 1.0, lambda r: self.law.rates(r, fpr, side))

    def epsilon(self, delta: float, side: Side) -> FloatArray:
        """Exact at the upper or lower end of ρ_i."""
        return self._safely(side, np.inf, lambda r: self.law.epsilon(r, delta, side))

    def mean_loss(self) -> FloatArray:
        """At the computed distances."""
        return self._mean(self.law.mean_loss)

    def mean_size(self) -> FloatArray:
        """At the computed distances."""
        return self._mean(self.law.mean_size)

    def _mean(self, law: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Beyond the computed law, ρ times its last E cos θ, which is within about d/ρ of 1 and stays there."""
        rho = self.rate * self.distance
        known = np.minimum(rho, self.law.largest)
        return in_chunks(law, known) * np.where(rho > known, rho / self.law.largest, 1.0)

    def _safely(self, side: Side, trivial: float, law: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Evaluate the law where possible; beyond, ``trivial`` above and the last value below (all grow with ρ)."""

        def bounds(distance: FloatArray, error: FloatArray) -> FloatArray:
            rho = ExactTypical(self.law, self.rate, distance, error).rho(side)
            known = law(np.minimum(rho, self.law.largest))
            return known if side == "lower" else np.where(rho <= self.law.largest, known, trivial)

        return in_chunks(bounds, self.distance, self.error, rows=_AT_A_TIME)

    def tradeoff(self, record: int) -> Tradeoff:
        """The law's trade-off at both ends of ρ_i."""
        high, low = float(self.rho("upper")[record]), float(self.rho("lower")[record])
        above = self.law.tradeoff(high) if high <= self.law.largest else ApproximateTradeoff(float("inf"), 0.0)
        return BracketTradeoff(
            above,
            self.law.tradeoff(min(low, self.law.largest)),
            method="exact law of the privacy loss at a certified leave-one-out optimum",
        )


@dataclass(frozen=True, eq=False)
class SampledTypical:
    """Privacy losses at drawn models: H_γ = E(1 − γe^{−l})₊, with a confidence band for all γ at once.

    For every γ the integrand grows with l from 0 to 1, so its mean is within ε = √(log(1/(1−confidence))/(2·draws))
    of the sample's, on the chosen side, with the stated probability for each record (Dvoretzky–Kiefer–Wolfowitz with
    Massart's constant). Lower sides other than the advantage's are the trivial ones.

    ``losses`` is sorted along its first axis, (draws, records).
    """

    losses: FloatArray
    confidence: float

    @property
    def band(self) -> float:
        """Half-width ε of the confidence band."""
        return float(np.sqrt(np.log(1 / (1 - self.confidence)) / (2 * len(self.losses))))

    def advantage(self, side: Side) -> FloatArray:
        """Mean of (1 − e^{−l})₊ plus or minus the band."""
        found = np.mean(np.maximum(-np.expm1(-self.losses), 0.0), axis=0)
        return np.asarray(found + (self.band if side == "upper" else -self.band)).clip(0.0, 1.0)

    def tpr(self, fpr: float, side: Side) -> FloatArray:
        """Smallest of H_γ + band + γ·fpr over γ = 0 and the sampled e^l, where the convex bound has its minimum."""
        if side == "lower":
            return np.full(self.losses.shape[1], fpr)
        bound = np.min(self._hockey_sticks() + _times_exponential(fpr, self.losses), axis=0) + self.band
        return np.asarray(bound).clip(fpr, 1.0)

    def epsilon(self, delta: float, side: Side) -> FloatArray:
        """Raise: the band is wider than any useful δ."""
        raise InputError(
            f"epsilon at delta={delta:g} cannot be read from {len(self.losses)} drawn models; use advantage, tpr or"
            " privacy_loss, or a mechanism whose law is known (OutputPerturbation)"
        )

    def mean_loss(self) -> FloatArray:
        """Sample mean."""
        return np.asarray(self.losses.mean(axis=0))

    def mean_size(self) -> FloatArray:
        """Sample mean."""
        return np.asarray(np.abs(self.losses).mean(axis=0))

    def tradeoff(self, record: int) -> Tradeoff:
        """The band as an envelope."""
        points, first = np.unique(self.losses[:, record], return_index=True)
        return EnvelopeTradeoff(
            points,
            np.minimum(self._hockey_sticks()[first, record] + self.band, 1.0),
            np.ones(points.size),  # the out-world was not sampled
            method=f"privacy loss at {len(self.losses)} drawn models",
            confidence=self.confidence,
        )

    def _hockey_sticks(self) -> FloatArray:
        """Mean of (1 − γe^{−l})₊ at each γ = e^{l_k}, by running sums from the largest loss."""
        growing = self.losses[::-1]
        with np.errstate(over="ignore", invalid="ignore"):
            less = np.cumsum(np.exp(growing[:1] - growing), axis=0) * np.exp(growing - growing[:1])
        less = np.where(np.isfinite(less), less, 0.0)  # an overflow drops only what would be subtracted: the safe side
        count = np.arange(1, len(growing) + 1)[:, None]
        return np.asarray(np.maximum(count - less, 0.0)[::-1] / len(growing))


Typical = ExactTypical | SampledTypical  # the attack curves of all records over models drawn from the in-world


def _times_exponential(fpr: float, exponent: FloatArray) -> FloatArray:
    """fpr·e^exponent, infinite on overflow."""
    with np.errstate(over="ignore"):
        return fpr * np.exp(exponent) if fpr > 0 else np.zeros_like(exponent)
