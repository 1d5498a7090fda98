"""The Gaussian step to which a record is added with probability q: DP-SGD's, and with q = 1 a plain Gaussian one.

Q = N(0, σ²) and P = (1 − q)·N(0, σ²) + q·N(1, σ²). With u the outcome in units of the noise, the loss
L(u) = log(1 − q + q·e^{u/σ − 1/(2σ²)}) increases, so that cells of the loss are intervals of u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from deniable._check import FloatArray
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import NormalOutcomes
from deniable.accounting.steps.ratios import log_ratio, plain_losses, ratio_error


@dataclass(frozen=True)
class SubsampledGaussianStep(Step):
    """A step of noise multiplier ``noise`` that takes the record with probability ``rate``."""

    noise: float
    rate: float

    @property
    def lowest(self) -> float:
        return math.log1p(-self.rate) if self.rate < 1 else -math.inf

    def losses(self, u: FloatArray) -> FloatArray:
        """L at outcomes in units of the noise."""
        return log_ratio(u, np.array(self.noise), np.array(self.rate))

    def pieces(self) -> tuple[NormalOutcomes]:
        noise, rate, s = self.noise, self.rate, 1 / self.noise
        weights, means = (np.ones(1), np.array([s])) if rate == 1 else (np.array([1 - rate, rate]), np.array([0.0, s]))
        line = NormalOutcomes(
            inside=(weights, means),
            outside=(np.ones(1), np.zeros(1)),
            loss=self.losses,
            wrong=partial(ratio_error, sigma=noise, rate=rate),
            low=-math.inf,
            high=math.inf,
            outcome=lambda x: noise * plain_losses(x, rate) + s / 2,
        )
        return (line,)
