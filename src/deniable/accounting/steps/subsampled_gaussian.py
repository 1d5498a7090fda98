"""The Gaussian step to which a record is added with probability q: DP-SGD's, and with q = 1 a plain Gaussian one.

Q = N(0, σ²) and P = (1 − q)·N(0, σ²) + q·N(1, σ²). With u the outcome in units of the noise, the loss
L(u) = log(1 − q + q·e^{u/σ − 1/(2σ²)}) increases, so that cells of the loss are intervals of u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.base import MOST_CELLS, LossCells, Step, TooSlowError
from deniable.accounting.steps.normal_cells import normal_centres, normal_masses
from deniable.accounting.steps.outcomes import NormalOutcomes
from deniable.accounting.steps.ratios import log_ratio, plain_losses, ratio_error

_BLOCK = 1 << 16  # cells at a time: keeps memory at a few MB
_BEYOND = 13.0  # standard deviations beyond which a law has about 1e-38 of its mass


@dataclass(frozen=True)
class SubsampledGaussianStep(Step):
    """A step of noise multiplier ``noise`` that takes the record with probability ``rate``."""

    noise: float
    rate: float

    @property
    def lowest(self) -> float:
        return math.log1p(-self.rate) if self.rate < 1 else -math.inf

    @property
    def highest(self) -> float:
        return math.inf

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

    def range(self, tilt: float) -> tuple[float, float]:
        top = max(tilt, 1.0) / self.noise + _BEYOND
        bottom = (min(tilt, 0.0) / self.noise - _BEYOND) / self.noise - 1 / (2 * self.noise**2)
        return self.lowest if self.rate < 1 else bottom, float(self.losses(np.array(top)))

    def cells(self, spacing: float, tilt: float) -> LossCells:
        sigma, rate = self.noise, self.rate
        low, high = self.range(tilt)
        if not (high - low) < MOST_CELLS * spacing:
            raise TooSlowError(f"{(high - low) / spacing:.3g} cells")
        count = int((high - low) / spacing) + 1
        p, q, centre = np.empty(count), np.empty(count), np.empty(count)
        ends = (-np.inf, np.inf)
        for k in range(0, count, _BLOCK):
            part = slice(k, min(k + _BLOCK, count))
            edges: FloatArray = low + spacing * np.arange(k, part.stop + 1, dtype=np.float64)
            with np.errstate(divide="ignore", invalid="ignore"):
                u = sigma * plain_losses(edges, rate) + 1 / (2 * sigma)
            if rate < 1 and k == 0:
                u[0] = -np.inf
            ends = (u[0] if k == 0 else ends[0], u[-1])
            q[part] = normal_masses(u)
            p[part] = (1 - rate) * q[part] + rate * normal_masses(u - 1 / sigma)
            centre[part] = normal_centres(self.losses, u, edges, p[part], q[part], spacing, 1 / sigma)
        lost = float(ndtr(-ends[1]) + ndtr(1 / sigma - ends[1]) + (ndtr(ends[0]) if rate == 1 else 0.0))
        wobble = 16 * EPS * (1 + abs(low) + spacing * count)
        return LossCells(low, p, q, centre, centre_error=wobble, lost=(lost, lost))
