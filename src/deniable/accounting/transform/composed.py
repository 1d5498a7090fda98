"""The privacy loss of composed Poisson-subsampled Gaussian steps, known through its transform.

Out of the data a step releases u ~ N(0, 1) (in units of the noise), in it (1−q)·N(0, 1) + q·N(1/σ, 1); the
likelihood ratio r(u) = 1 − q + q·exp(u/σ − 1/(2σ²)) gives the loss L = log r. Losses of composed steps add, so that
everything about T steps is in M(w)^T with M(w) = E_out[r^w]. Under "in" the transform is M(w + 1).

The integrals over u are trapezoid sums over nodes whose error :mod:`deniable.accounting.transform.nodes` bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS
from deniable.accounting.sizes import DIGITS
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.ratios import log_ratio
from deniable.accounting.steps.registry import step_of
from deniable.accounting.transform.line import Line, Phases
from deniable.accounting.transform.mixtures import Mixture
from deniable.accounting.transform.nodes import nodes
from deniable.accounting.transform.terms import StepLaw
from deniable.curves import TINY, Direction, Side
from deniable.mechanisms import GaussianDP, Mechanism, SubsampledGaussian

_MANY = 16  # different laws whose transforms are hardly ever large together again


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """Composition of phases (σ_j, q_j, T_j), other steps and one Gaussian with loss variance μ², with its transform.

    Attributes
    ----------
    noise, rate, steps
        One entry per phase with q < 1; phases with equal noise and rate are merged.
    gaussian
        μ² of everything Gaussian: ``GaussianDP`` and full-batch phases, μ² = Σ T/σ².
    others
        (step, count) of every other law of one step: of pure DP randomised response, its worst pair.
    ceiling
        Largest u of any step that is kept; the mass beyond is what a transform reports as dropped.
    """

    noise: FloatArray
    rate: FloatArray
    steps: FloatArray
    gaussian: float
    others: tuple[tuple[Step, int], ...] = ()
    ceiling: float = math.inf

    @classmethod
    def of(cls, mechanisms: Iterable[Mechanism]) -> Self:
        """Merge equal phases and fold every Gaussian part into one, its μ² within two roundings.

        A μ whose square is no normal number counts as the least one that has: bounds are off by more for its rounding.
        """
        phases: Counter[tuple[float, float]] = Counter()
        others: Counter[Step] = Counter()
        squares: list[float] = []
        for part in mechanisms:
            if isinstance(part, GaussianDP) and part.mu == 0:
                continue  # both laws are the same; as a square it would count as the least one above 0
            if isinstance(part, GaussianDP):
                squares.append(max(part.mu * part.mu, TINY))  # ∞ rather than an OverflowError
            elif isinstance(part, SubsampledGaussian) and (part.records_per_person == 1 or part.sample_rate == 1):
                if part.sample_rate == 1:
                    shift = part.records_per_person / part.noise_multiplier
                    squares.append(max(part.steps * shift * shift, TINY))
                else:
                    phases[part.noise_multiplier, part.sample_rate] += part.steps
            elif (known := step_of(part)) is not None:
                step, count = known
                if step.lowest < step.highest or any(step.only):  # else the two laws are the same
                    others[step] += count
            else:
                raise InputError(
                    f"mechanism must be made of deniable's mechanisms or your own subclasses of Step, got {part!r}"
                )
        keys = np.array(list(phases), dtype=np.float64).reshape(-1, 2)
        return cls(
            keys[:, 0],
            keys[:, 1],
            np.array(list(phases.values()), dtype=np.float64),
            math.inf if math.inf in squares else math.fsum(squares),
            tuple(others.items()),
        )

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the worlds have the same law of the loss: every step is symmetric by itself."""
        return self.steps.size == 0 and all(step.symmetric for step, _ in self.others)

    @property
    def summands(self) -> int:
        """How many logarithms are added up: phases, kinds of other steps, the Gaussian."""
        return self.steps.size + len(self.others) + (self.gaussian > 0)

    @cached_property
    def lowest(self) -> float:
        """Essential infimum of the composed loss: Σ T·log(1 − q), or −∞ with a Gaussian part."""
        bounded = self.steps @ np.log1p(-self.rate) + sum(step.lowest * count for step, count in self.others)
        return -math.inf if self.gaussian > 0 else float(bounded)

    @cached_property
    def highest(self) -> float:
        """Essential supremum: ∞ with any Gaussian part."""
        if self.gaussian > 0 or self.steps.size > 0:
            return math.inf
        return float(sum(step.highest * count for step, count in self.others))

    def largest_log_ratio(self, direction: Direction, side: Side) -> float:
        """Bound the essential supremum of the loss ("add": of minus the loss), a sum of terms of one sign.

        From below it is 0 where a step may not attain its own.
        """
        if side == "lower" and not all(step.attained for step, _ in self.others):
            return 0.0
        found = self.highest if direction == "remove" else -self.lowest
        roundings = 4 + self.steps.size + len(self.others)
        if self.others:  # their own are known to a few dozen
            roundings += 64 if side == "upper" else 256
        return found * (1 + roundings * EPS if side == "upper" else 1 - roundings * EPS)

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

    @property
    def lost_above(self) -> bool:
        """Whether only a ceiling takes mass, in cases that are as likely in both worlds."""
        return not any(self.dropped_below) and all(case.odds == 1 for law, _ in self.mixtures for case in law.cases)

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
