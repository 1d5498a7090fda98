"""The Gaussian step of a Poisson batch in which one record is replaced by another.

The batch holds the record with probability q, with one content g or the other g′, vectors of norm at most 1 (clipped):
P = (1 − q)·N(0) + q·N(g) and Q = (1 − q)·N(0) + q·N(g′). They are dominated by

    P = (1 − q)·N(0, σ²) + q·N(1, σ²)   and   Q = (1 − q)·N(0, σ²) + q·N(−1, σ²),

which opposite vectors attain. *Proof.* For γ ≥ 1, H_γ(P‖Q) = E f(Y), X ~ N(g, σ²I), Y the sum of (γ − 1)(1 − q) times
the density ratio of N(0) to N(g) and γq times that of N(g′), f(y) = (q − y)₊. Either ratio is log-normal with mean 1
under N(g), and the larger in convex order the further its mean from g: at most 1, at most 2. For given laws of the two
a sum is the largest in convex order if they rise and fall together, and it grows with either law then: that is so where
the means lie on one line on the same side of g, at 1, 0 and −1. f is convex, so that H_γ is the largest there. For
γ < 1, H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P), the same with g and g′ exchanged. Steps compose adaptively. ∎

With u the outcome in units of the noise and ℓ the loss of a sampled Gaussian step, L(u) = ℓ(u) − ℓ(−u) increases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import NormalOutcomes
from deniable.accounting.steps.ratios import log_ratio, ratio_error


@dataclass(frozen=True)
class ReplacedGaussianStep(Step):
    """A step of noise multiplier ``noise`` whose batch holds the replaced record with probability ``rate`` < 1."""

    noise: float
    rate: float

    adjacency = "replace"

    @property
    def symmetric(self) -> bool:
        return True

    def pieces(self) -> tuple[NormalOutcomes]:
        weights, s = np.array([1 - self.rate, self.rate]), 1 / self.noise
        line = NormalOutcomes(
            inside=(weights, np.array([0.0, s])),
            outside=(weights, np.array([0.0, -s])),
            loss=self.losses,
            wrong=self._wrong,
            low=-math.inf,
            high=math.inf,
        )
        return (line,)

    def _wrong(self, u: FloatArray) -> FloatArray:
        both = ratio_error(u, self.noise, self.rate) + ratio_error(-u, self.noise, self.rate)
        return np.asarray(both + 2 * EPS * np.abs(self.losses(u)))

    def losses(self, u: FloatArray) -> FloatArray:
        """L at outcomes in units of the noise."""
        noise, rate = np.array(self.noise), np.array(self.rate)
        return log_ratio(u, noise, rate) - log_ratio(-u, noise, rate)
