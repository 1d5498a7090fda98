"""Families of ROC ceilings, each growing with one parameter: the claims that scores can contradict."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from deniable._check import FloatArray


class Family(ABC):
    """ROC ceilings g(u; value) that grow with ``value``; hashable, so that limits can be cached."""

    largest: ClassVar[float] = 64.0  # largest value searched

    @property
    def kink(self) -> float | None:
        """A false positive rate at which the ceiling is not smooth."""
        return None

    @abstractmethod
    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the largest true positive rate at each ``fpr``."""


class Promise(Family):
    """A family that a mechanism can promise: its advantage is known, so right decisions count against it too."""

    @abstractmethod
    def explaining(self, advantage: float) -> float:
        """Return the smallest value that allows ``advantage``, below 1."""


@dataclass(frozen=True)
class Shift(Promise):
    """Advantage at most ``value``: TPR ≤ FPR + value."""

    largest = 1.0

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return min(FPR + value, 1)."""
        return np.asarray(np.minimum(1.0, fpr + value), dtype=np.float64)

    def through(self, fpr: FloatArray, tpr: FloatArray) -> FloatArray:
        """Return the value whose ceiling passes through each point (0 below the diagonal), up to rounding."""
        return np.clip(tpr - fpr, 0.0, 1.0)

    def explaining(self, advantage: float) -> float:
        """Return ``advantage``."""
        return advantage


@dataclass(frozen=True)
class EpsilonDelta(Promise):
    """(``value``, delta)-DP: TPR ≤ min(δ + e^ε·FPR, 1 − e^{−ε}(1 − δ − FPR)) (Kairouz, Oh & Viswanath 2015)."""

    delta: float

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the trade-off curve of (value, delta)-DP."""
        rising = self.delta + np.exp(value) * fpr
        falling = 1 - np.exp(-value) * np.maximum(1 - self.delta - fpr, 0.0)
        found: FloatArray = np.minimum(np.minimum(rising, falling), 1.0)
        return found

    def through(self, fpr: FloatArray, tpr: FloatArray) -> FloatArray:
        """Return the ε whose ceiling passes through each point (0 below that of ε = 0), up to rounding."""
        with np.errstate(divide="ignore"):
            rising = np.log(np.maximum(tpr - self.delta, 0.0) / fpr)
            falling = np.log(np.maximum(1 - self.delta - fpr, 0.0) / (1 - tpr))
        return np.clip(np.maximum(rising, falling), 0.0, self.largest)

    def explaining(self, advantage: float) -> float:
        """Return the ε with (e^ε − 1 + 2δ)/(e^ε + 1) = ``advantage``, or 0 (Humphries et al. 2023)."""
        if advantage <= self.delta:
            return 0.0
        return math.log((1 + advantage - 2 * self.delta) / (1 - advantage))


@dataclass(frozen=True)
class Gaussian(Promise):
    """``value``-GDP: TPR ≤ Φ(Φ⁻¹(FPR) + μ) (Dong, Roth & Su 2022)."""

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the ROC of N(0, 1) against N(value, 1)."""
        return np.asarray(ndtr(ndtri(fpr) + value), dtype=np.float64)

    def explaining(self, advantage: float) -> float:
        """Return the μ with 2Φ(μ/2) − 1 = ``advantage``."""
        return 2 * float(ndtri((1 + advantage) / 2))


@dataclass(frozen=True)
class Tangent(Family):
    """Concave ROCs with TPR = ``value`` at ``fpr`` whose tangent there has slope in [flat, steep]·value/fpr.

    Each lies below its tangent, hence below the line that falls with the flattest slope to the left of ``fpr`` and
    rises with the steepest to the right.
    """

    fpr: float
    flat: float
    steep: float

    largest = 1.0

    @property
    def kink(self) -> float:
        """The false positive rate at which the line is bent."""
        return self.fpr

    def rank(self, n: int) -> int:
        """Return the rank k to test, at or left of the bend: the steeper the tangents, the lower they are there."""
        # any rank is valid: the constants only decide how narrow the limit is
        shift = min(0.4, 2 * float(self.steep**0.7) / math.sqrt(n * self.fpr))
        return min(n, max(1, round(n * self.fpr * (1 - shift))))

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the bent line, capped at 1."""
        distance = fpr / self.fpr - 1
        found: FloatArray = np.minimum(1.0, value * (1 + np.where(distance < 0, self.flat, self.steep) * distance))
        return found
