"""What is composed: phases of subsampled Gaussians, Gaussian parts, other laws of one step. No numerics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.registry import step_of
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep
from deniable.curves import TINY, Direction, Side
from deniable.mechanisms import GaussianDP, Mechanism, SubsampledGaussian


@dataclass(frozen=True, eq=False)
class ComposedLoss:
    """Composition of different phases (σ_j, q_j, T_j) and one Gaussian with loss variance μ².

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
        """Merge equal phases and fold every Gaussian part into one; of (ε, δ)-DP parts, the δ is left to the caller."""
        phases: Counter[tuple[float, float]] = Counter()
        others: Counter[Step] = Counter()
        squares: list[float] = []
        for part in mechanisms:
            if isinstance(part, GaussianDP) and part.mu == 0:
                continue
            if isinstance(part, GaussianDP):
                squares.append(part.mu * part.mu)  # ∞ rather than an OverflowError
            elif isinstance(part, SubsampledGaussian) and (part.records_per_person == 1 or part.sample_rate == 1):
                if part.sample_rate == 1:
                    shift = part.records_per_person / part.noise_multiplier
                    squares.append(part.steps * shift * shift)
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
            sum_of_squares(squares),
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

    @property
    def gaussian_steps(self) -> list[tuple[SubsampledGaussianStep, float]]:
        """The step of every phase and how often it is made; everything Gaussian as one more, of rate 1."""
        phases = zip(self.noise.tolist(), self.rate.tolist(), self.steps.tolist(), strict=True)
        found = [(SubsampledGaussianStep(noise, rate), count) for noise, rate, count in phases]
        if self.gaussian > 0:
            found.append((SubsampledGaussianStep(1 / math.sqrt(self.gaussian), 1.0), 1.0))
        return found

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


def sum_of_squares(squares: list[float]) -> float:
    """μ² of all parts within two roundings, however many there are, and never 0 where some μ is not.

    A μ whose square is no normal number counts as the least one that has: every bound is off by more for its rounding.
    """
    normal = [max(square, TINY) for square in squares]
    return math.inf if math.inf in normal else math.fsum(normal)
