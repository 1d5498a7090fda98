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
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable.accounting.loss import ComposedLoss
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import randomized_response_cumulants
from deniable.accounting.transform.guide import Guide
from deniable.accounting.transform.line import Line, increments
from deniable.accounting.transform.nodes import Nodes, nodes

_CEILINGS = (10.5, 9.0, 12.0, 13.5, 16.0, 20.0, 26.0)  # Φ(−10.5) is 4e-26; the first is tried first
_DIGITS = 44.0  # −log of the relative error asked of sums over u: far below rounding even after a million steps
_NEAR = 4.0  # real arguments up to which one set of nodes serves


@dataclass(frozen=True, eq=False)
class PrivacyLoss(ComposedLoss):
    """A composed loss with its transform: lines of nodes, cumulants, and what a ceiling leaves out."""

    def phases(self, which: NDArray[np.bool_ | np.intp]) -> PrivacyLoss:
        """The same with some of the subsampled phases only."""
        return replace(self, noise=self.noise[which], rate=self.rate[which], steps=self.steps[which])

    @cached_property
    def truncation(self) -> PrivacyLoss:
        """The same without outcomes so rare (about 1e-25) that they only make real transforms at large c explode."""
        return self.truncations[0]

    @cached_property
    def truncations(self) -> tuple[PrivacyLoss, ...]:
        """Truncations at higher and higher ceilings: less is left out, and smaller c explode."""
        if self.steps.size == 0:
            return (self,)
        return tuple(replace(self, ceiling=height + 1 / float(self.noise.min())) for height in _CEILINGS)

    @cached_property
    def dropped(self) -> tuple[float, float]:
        """Mass that the ceiling takes from the composed law under "out" and under "in" (union bound)."""
        if math.isinf(self.ceiling):
            return 0.0, 0.0
        more = 1 + 1e-9  # for the rounding of these functions
        out, hit = more * ndtr(-self.ceiling), more * ndtr(1 / self.noise - self.ceiling)
        return float(np.sum(self.steps * out)), float(self.steps @ ((1 - self.rate) * out + self.rate * hit))

    def edge(self, c: float) -> float:
        """Density left at the ceiling, relative to its largest value: 0 means that nothing is cut at real part c."""
        return 0.0 if math.isinf(self.ceiling) else self.real_line(c).edge

    @property
    def furthest(self) -> float:
        """Order beyond which real transforms are not worth having."""
        sigma = float(self.noise.min())
        return min(2 * sigma * sigma * (40 - 2 * math.log(float(self.rate.min()))), 1000 * sigma)

    def line(self, c: float, t_max: float = 0.0, digits: float = _DIGITS, lifted: bool = True) -> Line:
        """Prepare evaluations at w = c + it for 0 ≤ t ≤ ``t_max``, to a relative error of e^{−digits}.

        Unless ``lifted``, the nodes stay on the real line.
        """
        return Line.on(self, c, self._nodes((c,), t_max, digits, lifted))

    def real_line(self, *points: float) -> Line:
        """A line for all real arguments between the ``points``; the nodes for those near 0 are kept."""
        outermost = max(points, key=abs)
        if abs(outermost) > _NEAR:
            return Line.on(self, outermost, self._nodes((min(points), max(points))))
        return replace(self._near, c=outermost)

    @cached_property
    def _near(self) -> Line:
        return Line.on(self, 0.0, self._nodes((-_NEAR, _NEAR)))

    def _nodes(
        self, points: tuple[float, ...], t_max: float = 0.0, digits: float = _DIGITS, lifted: bool = True
    ) -> Nodes:
        return nodes(self.noise, self.rate, self.ceiling, points, t_max, digits, lifted)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K(c), K′(c) and K″(c) of the composed loss under "out", for real c."""
        k, first, second = self.real_line(c).cumulants
        return k, first, second

    def guessed_cumulants(self, c: float) -> tuple[float, float, float]:
        """The same, quickly and to about ten digits: to choose a line, never for a bound."""
        if self.guide is None:
            return self.cumulants(c)
        try:
            k, first, second = self.guide.cumulants(c)
        except TooSlowError:
            return self.cumulants(c)
        found = k + self.gaussian * c * (c - 1) / 2, first + self.gaussian * (c - 0.5), second + self.gaussian
        more = [
            (count, *map(float, randomized_response_cumulants(epsilon, np.asarray(c))))
            for epsilon, count in self.randomized_responses
        ]
        for count, *parts in more:
            found = found[0] + count * parts[0], found[1] + count * parts[1], found[2] + count * parts[2]
        return found

    @cached_property
    def guide(self) -> Guide | None:
        """The subsampled steps on a few nodes; None if there are none, or too many."""
        if self.steps.size == 0:
            return None
        try:
            return Guide.of(self.noise, self.rate, self.steps, self.ceiling)
        except TooSlowError:
            return None

    def log_mgf(self, points: FloatArray) -> FloatArray:
        """K at several real points."""
        line = self.real_line(float(points.min()), float(points.max()))
        total = self.gaussian * points * (points - 1) / 2
        for epsilon, count in self.randomized_responses:
            total = total + count * randomized_response_cumulants(epsilon, points)[0]
        cut = line.at_ceiling(points)  # for an upper bound: these are Chernoff's
        for phase in range(self.steps.size):
            exponent, log_weight = np.multiply.outer(points, line.loss[phase]), line.log_weight[phase]
            top = np.max(exponent + log_weight, axis=1)
            rise = increments(exponent, log_weight, line.density_unit).sum(axis=1)
            value = np.log1p(rise + cut[phase])
            for k in np.flatnonzero(top > 30):
                size = np.sum(np.exp(exponent[k] + log_weight - top[k])) * line.density_unit
                value[k] = top[k] + np.log(size + cut[phase, k] * np.exp(-top[k]))
            total = total + self.steps[phase] * value
        return total

    def log_mgf_known(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of ``points`` (near ones first) at which K is small enough to be computed, and K there."""
        while points.size > 1:
            try:
                return points, self.log_mgf(points)
            except TooSlowError:
                points = points[: 7 * points.size // 8]
        return points, self.log_mgf(points)
