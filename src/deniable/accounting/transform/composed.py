"""The privacy loss of composed Poisson-subsampled Gaussian steps, known through its transform.

Out of the data a step releases u ~ N(0, 1) (in units of the noise), in it (1−q)·N(0, 1) + q·N(1/σ, 1); the
likelihood ratio r(u) = 1 − q + q·exp(u/σ − 1/(2σ²)) gives the loss L = log r. Losses of composed steps add, so that
everything about T steps is in M(w)^T with M(w) = E_out[r^w]. Under "in" the transform is M(w + 1).

The integrals over u are trapezoid sums over nodes whose error :mod:`deniable.accounting.transform.nodes` bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable.accounting.loss import ComposedLoss
from deniable.accounting.sizes import DIGITS, FAR
from deniable.accounting.steps.ratios import randomized_response_cumulants
from deniable.accounting.transform.line import Line, increments
from deniable.accounting.transform.nodes import nodes


@dataclass(frozen=True, eq=False)
class PrivacyLoss(ComposedLoss):
    """A composed loss with its transform: lines of nodes, cumulants, and what a ceiling leaves out."""

    def phases(self, which: NDArray[np.bool_ | np.intp]) -> PrivacyLoss:
        """The same with some of the subsampled phases only."""
        return replace(self, noise=self.noise[which], rate=self.rate[which], steps=self.steps[which])

    @cached_property
    def truncation(self) -> PrivacyLoss:
        """The same without outcomes so rare (about 5e-26) that they only make real transforms at large c explode."""
        return replace(self, ceiling=math.sqrt(2 * DIGITS) + 1 / float(self.noise.min())) if self.steps.size else self

    @cached_property
    def dropped(self) -> tuple[float, float]:
        """Mass that the ceiling takes from the composed law under "out" and under "in" (union bound)."""
        if math.isinf(self.ceiling):
            return 0.0, 0.0
        more = 1 + 1e-9  # for the rounding of these functions
        out, *hit = (more * math.erfc(x / math.sqrt(2)) / 2 for x in (self.ceiling, *(self.ceiling - 1 / self.noise)))
        return float(np.sum(self.steps * out)), float(self.steps @ ((1 - self.rate) * out + self.rate * np.array(hit)))

    def line(self, c: float, t_max: float = 0.0) -> Line:
        """Prepare evaluations at w = c + it for 0 ≤ t ≤ ``t_max``."""
        return Line.on(self, c, nodes(self.noise, self.rate, self.ceiling, c, c, t_max))

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K(c), K′(c) and K″(c) of the composed loss under "out", for real c."""
        return self.line(c).cumulants

    def cumulants_at(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """K, from above but for rounding, K′ and K″ at several real points."""
        grid = nodes(self.noise, self.rate, self.ceiling, float(points.min()), float(points.max()))
        line = Line.on(self, float(points.min()), grid)
        k, first = self.gaussian * points * (points - 1) / 2, self.gaussian * (points - 0.5)
        second = np.full_like(points, self.gaussian)
        for epsilon, count in self.randomized_responses:
            parts = randomized_response_cumulants(epsilon, points)
            k, first, second = (a + count * b for a, b in zip((k, first, second), parts, strict=True))
        cut = line.at_ceiling(points)
        for phase, steps in enumerate(self.steps):
            loss, log_weight = line.loss[phase], line.log_weight[phase]
            exponent = np.multiply.outer(points, loss)
            top = np.max(exponent + log_weight, axis=1)
            scale = np.where(top > FAR, top, 0.0)
            rise = increments(exponent, log_weight, line.density_unit)  # free of cancellation
            mass = rise + line.density[phase]
            large = scale > 0
            mass[large] = np.exp(exponent[large] + log_weight - scale[large, None]) * line.density_unit
            rise = np.where(large, 0.0, rise.sum(axis=1))
            total = np.where(large, mass.sum(axis=1), 1 + rise)
            mean = mass @ loss / total
            log_m = np.where(large, np.log(total), np.log1p(rise))
            k = k + steps * (log_m + scale + np.log1p(cut[phase] * np.exp(-scale) / total))
            first = first + steps * mean
            second = second + steps * np.maximum(mass @ loss**2 / total - mean**2, 0.0)
        return k, first, second
