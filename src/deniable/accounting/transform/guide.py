"""K, K′ and K″ on nodes that nothing is proven about: they choose lines and starting points, and no bound uses them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import log_ratio

_LOW, _HIGH = -16.0, 40.0  # range of u, in which e^{−u²/2} of the other side is nothing; 1/σ is added above
_FINE, _FINER = 0.4, 0.5  # spacing, and that in units of the noise: sums of φ·r^c are then good to ten digits
_MOST = 1 << 17  # nodes of all phases
_NOTHING = 32.0  # logarithm of what may be cut off at an end, below the largest
_LARGEST = 1e5  # exponents


@dataclass(frozen=True, eq=False)
class Guide:
    """The tilted laws of single steps on common nodes, one row per phase."""

    steps: FloatArray
    loss: FloatArray
    log_weight: FloatArray
    ceiling: float
    largest: float  # c beyond which there may be more to the right

    @classmethod
    def of(cls, noise: FloatArray, rate: FloatArray, steps: FloatArray, ceiling: float) -> Guide:
        """Lay the nodes.

        Raises
        ------
        TooSlowError
            If they would be many.
        """
        narrow = float(noise.min())
        high, spacing = min(ceiling, _HIGH + 1 / narrow), min(_FINE, _FINER * narrow)
        count = math.ceil((high - _LOW) / spacing)
        if not 0 < count * noise.size <= _MOST:
            raise TooSlowError("too many nodes for a guess")
        u: FloatArray = high - spacing * (np.arange(count, 0.0, -1.0) - 0.5)
        log_weight = np.broadcast_to(-(u**2) / 2, (noise.size, count))
        log_weight = log_weight + math.log(spacing / math.sqrt(2 * math.pi))
        largest = narrow * high if math.isinf(ceiling) else math.inf  # there L′ ≤ 1/σ is u
        return cls(steps, log_ratio(u, noise[:, None], rate[:, None]), log_weight, ceiling, largest)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Σ T·log M(c) and its first two derivatives.

        Raises
        ------
        TooSlowError
            If the tilted law is not within the nodes.
        """
        exponent, top = self._tilted(c)
        mass = np.exp(exponent - top)
        total = mass.sum(axis=1)
        first = (mass * self.loss).sum(axis=1) / total
        second = (mass * (self.loss - first[:, None]) ** 2).sum(axis=1) / total
        log_m = top[:, 0] + np.log(total)
        return float(self.steps @ log_m), float(self.steps @ first), float(self.steps @ second)

    def edge(self, c: float) -> float:
        """Density left at a ceiling, relative to its largest value or that without tilt."""
        if math.isinf(self.ceiling):
            return 0.0
        top = np.max(np.maximum(c * self.loss, 0) + self.log_weight, axis=1)
        return float(np.exp(np.max(c * self.loss[:, -1] + self.log_weight[:, -1] - top)))

    def _tilted(self, c: float) -> tuple[FloatArray, FloatArray]:
        if not (c < self.largest and abs(c) * float(np.abs(self.loss[:, -1]).max()) < _LARGEST):
            raise TooSlowError(f"the law tilted by {c:g} is far out")
        exponent = c * self.loss + self.log_weight
        top = exponent.max(axis=1, keepdims=True)
        ends = exponent[:, 0] if math.isfinite(self.ceiling) else exponent[:, [0, -1]].max(axis=1)
        if not np.all(ends < top[:, 0] - _NOTHING):
            raise TooSlowError(f"the law tilted by {c:g} is far out")
        return exponent, top
