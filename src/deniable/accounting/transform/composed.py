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
from deniable.accounting.sizes import DIGITS
from deniable.accounting.steps.ratios import log_ratio
from deniable.accounting.transform.line import Line, Phases
from deniable.accounting.transform.mixtures import Mixture
from deniable.accounting.transform.nodes import nodes
from deniable.accounting.transform.terms import StepLaw

_MANY = 16  # different laws whose transforms are hardly ever large together again


@dataclass(frozen=True, eq=False)
class PrivacyLoss(ComposedLoss):
    """A composed loss with its transform: lines of nodes, cumulants, and what a ceiling leaves out."""

    def phases(self, which: NDArray[np.bool_ | np.intp]) -> PrivacyLoss:
        """The same with some of the subsampled phases only."""
        return replace(self, noise=self.noise[which], rate=self.rate[which], steps=self.steps[which])

    @cached_property
    def laws(self) -> tuple[tuple[StepLaw, int], ...]:
        """The laws of other steps, and how often they are made."""
        if not self.others:
            return ()
        from deniable.accounting.transform.laws import law_of

        found = [(law_of(step), count) for step, count in self.others]
        return tuple((law, count) for law, count in found if law is not None)

    @cached_property
    def mixtures(self) -> list[tuple[Mixture, int]]:
        """Those laws whose transforms decay."""
        return [(law, count) for law, count in self.laws if isinstance(law, Mixture)]

    @property
    def decays(self) -> bool:
        """Whether the transform of some part decays."""
        return self.gaussian > 0 or self.steps.size > 0 or bool(self.mixtures)

    @property
    def has_transform(self) -> bool:
        """Whether every part has a transform, and that of some decays, or there are so many that all hardly return."""
        known = len(self.laws) == len(self.others)
        return not self.others or (known and (self.decays or self.summands > _MANY))

    @cached_property
    def truncation(self) -> PrivacyLoss:
        """The same without outcomes so rare (about 5e-26) that they only make real transforms at large c explode."""
        steepest = [*(1 / self.noise), *(law.steepest for law, _ in self.mixtures)]
        return replace(self, ceiling=math.sqrt(2 * DIGITS) + float(max(steepest))) if steepest else self

    @cached_property
    def dropped(self) -> tuple[float, float]:
        """Mass that the ceiling, and laws themselves, take from the composed law under "out" and under "in"."""
        more = 1 + 1e-9  # for the rounding of these functions
        out, *hit = (more * math.erfc(x / math.sqrt(2)) / 2 for x in (self.ceiling, *(self.ceiling - 1 / self.noise)))
        both = np.array([np.sum(self.steps * out), self.steps @ ((1 - self.rate) * out + self.rate * np.array(hit))])
        for (step, count), (law, _) in zip(self.others, self.laws, strict=True):
            both += count * np.array(law.dropped(self.ceiling) if isinstance(law, Mixture) else step.lost[::-1])
        return float(both[0]), float(both[1])

    @cached_property
    def dropped_below(self) -> tuple[float, float]:
        """That mass where some of it may have the lowest losses; nothing where only a ceiling above cuts."""
        both_ends = [
            law.slopes[1] > 0 if isinstance(law, Mixture) else any(step.lost)
            for (step, _), (law, _) in zip(self.others, self.laws, strict=True)
        ]
        return self.dropped if any(both_ends) else (0.0, 0.0)

    @cached_property
    def unseen(self) -> float:
        """Mass that "in" has, and its laws lack."""
        return sum(count * law.unseen for law, count in self.mixtures)

    @property
    def farthest(self) -> tuple[float, float]:
        """Bounds on −L and on L of any single step below the ceiling."""
        found = [law.farthest(self.ceiling) for law, _ in self.laws]
        if self.steps.size:
            right = log_ratio(np.array(self.ceiling), self.noise, self.rate).max()
            found.append((float(np.max(-np.log1p(-self.rate))), float(right)))
        return max((left for left, _ in found), default=0.0), max((right for _, right in found), default=0.0)

    def at_ceiling(self, points: FloatArray) -> FloatArray:
        """About the height of tilted densities where the ceiling cuts: a guide to where lines may stand."""
        tilt = np.multiply.outer(points, log_ratio(np.array(self.ceiling), self.noise, self.rate))
        found: FloatArray = np.exp(np.minimum(tilt - self.ceiling**2 / 2, 0.0)) @ self.steps
        for law, count in self.mixtures:
            terms = law.terms(float(points.min()), float(points.max()), 0.0, self.ceiling)
            found += count * terms.at_ceiling(points)[0] / (2 * terms.unit)
        return found

    def line(self, c: float, t_max: float = 0.0) -> Line:
        """Prepare evaluations at w = c + it for 0 ≤ t ≤ ``t_max``."""
        return self._line(c, c, t_max)

    def _line(self, least: float, most: float, t_max: float) -> Line:
        phases = Phases.on(self, least, nodes(self.noise, self.rate, self.ceiling, least, most, t_max))
        others = [(law, law.terms(least, most, t_max, self.ceiling), count) for law, count in self.laws]
        return Line(self, least, phases, tuple(others))

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K(c), K′(c) and K″(c) of the composed loss under "out", for real c."""
        return self.line(c).cumulants

    def cumulants_at(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """K, from above but for rounding, K′ and K″ at several real points."""
        line = self._line(float(points.min()), float(points.max()), 0.0)
        k, first = self.gaussian * points * (points - 1) / 2, self.gaussian * (points - 0.5)
        second = np.full_like(points, self.gaussian)
        for terms, row, steps in line.rows:
            found = terms.cumulants_at(row, points)
            k, first, second = (a + steps * b for a, b in zip((k, first, second), found, strict=True))
        return k, first, second
