"""Families of ROC ceilings, each growing with one parameter: the claims that scores can contradict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from deniable._check import FloatArray


class Family(ABC):
    """ROC ceilings g(u; value) that grow with ``value``; hashable, so that solved limits can be remembered."""

    largest: ClassVar[float] = 64.0  # upper end of the values searched

    @property
    def kink(self) -> float | None:
        """A false positive rate at which the ceiling is not smooth."""
        return None

    def ranks(self, n: int) -> tuple[int, ...]:
        """Return the ranks k among n nonmember scores at which the family is tested."""
        return thresholds(n)

    @abstractmethod
    def ceiling(self, fpr: FloatArray, value: float) -> FloatArray:
        """Return the largest true positive rate at each ``fpr``."""


@dataclass(frozen=True)
class Gap(Family):
    """Advantage at most ``value``: TPR ≤ FPR + value."""

    largest = 1.0

    def ranks(self, n: int) -> tuple[int, ...]:
        """Return ranks that are densest at small rates, where a strong attack has its largest advantage."""
        return _unique(n * np.linspace(0, 0.95, 16) ** 2, n)

    def ceiling(self, fpr: FloatArray, value: float) -> FloatArray:
        """Return min(1, fpr + value)."""
        return np.minimum(1.0, fpr + value)


@dataclass(frozen=True)
class EpsilonDelta(Family):
    """(``value``, delta)-DP: TPR ≤ min(δ + e^ε·FPR, 1 − e^{−ε}(1 − δ − FPR)) (Kairouz, Oh & Viswanath 2015)."""

    delta: float

    def ceiling(self, fpr: FloatArray, value: float) -> FloatArray:
        """Return the trade-off curve of (value, delta)-DP."""
        rising = self.delta + np.exp(value) * fpr
        falling = 1 - np.exp(-value) * np.maximum(1 - self.delta - fpr, 0.0)
        found: FloatArray = np.minimum(np.minimum(rising, falling), 1.0)
        return found


@dataclass(frozen=True)
class Gaussian(Family):
    """``value``-GDP: TPR ≤ Φ(Φ⁻¹(FPR) + μ) (Dong, Roth & Su 2022)."""

    def ceiling(self, fpr: FloatArray, value: float) -> FloatArray:
        """Return the ROC of N(0, 1) against N(value, 1)."""
        return np.asarray(ndtr(ndtri(fpr) + value), dtype=np.float64)


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

    def ranks(self, n: int) -> tuple[int, ...]:
        """Return one rank at or left of the bend: the steeper the tangents, the lower they are further left."""
        shift = min(0.4, 2 * self.steep**0.7 / np.sqrt(n * self.fpr))
        return (min(n, max(1, round(n * self.fpr * (1 - shift)))),)

    def ceiling(self, fpr: FloatArray, value: float) -> FloatArray:
        """Return the bent line, capped at 1."""
        distance = fpr / self.fpr - 1
        found: FloatArray = np.minimum(1.0, value * (1 + np.where(distance < 0, self.flat, self.steep) * distance))
        return found


def thresholds(n: int, count: int = 24) -> tuple[int, ...]:
    """Return the ranks k at which statements about the whole ROC look: k = 1, then evenly spaced in logit(FPR)."""
    if n < 12:
        return tuple(range(1, n + 1))
    end = logit(4 / n)
    return _unique(np.append(n * expit(np.linspace(end, -end, count - 1)), 1), n)


def _unique(ranks: FloatArray, n: int) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unique(np.clip(np.rint(ranks), 1, n)))
