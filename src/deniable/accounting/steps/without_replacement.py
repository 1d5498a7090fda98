"""Batches of a fixed size drawn without replacement, one record replaced: the sampled Gaussian pair made symmetric.

Dong, Roth & Su 2022 (subsampling theorem): if a step on a full batch has trade-off f, then on a uniformly drawn share q
of the records it has at least C_q(f) = min{f_q, f_q⁻¹}**, f_q = q·f + (1 − q)·Id. Replacing a record moves a sum of
clipped gradients by at most 2, hence f = G_μ with μ = 2/σ. In hockey sticks C_q is the larger of the two directions of
Q₀ = N(0, 1), P₀ = (1 − q)·N(0, 1) + q·N(μ, 1): for γ ≥ 1 that of P₀ against Q₀, whose loss ℓ(u) is positive for
u > μ/2. The symmetric pair with these hockey sticks has

    at ℓ > 0 the masses of P₀ and Q₀,   at −ℓ those of Q₀ and P₀,   and at 0 the rest, (1 − q)·(Φ(μ/2) − Φ(−μ/2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import erf

from deniable._floats import EPS
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import ListedOutcomes, Piece
from deniable.accounting.steps.subsampled_gaussian import SubsampledGaussianStep
from deniable.mechanisms import WithoutReplacement


@dataclass(frozen=True)
class ReplacedStep(Step):
    """One step on a share ``rate`` < 1 of the records; ``noise`` is σ/2, in units of what a replacement moves."""

    noise: float
    rate: float

    adjacency = "replace"

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def unchanged(self) -> float:
        """Mass of the atom at loss 0."""
        return (1 - self.rate) * float(erf(1 / (2 * self.noise) / math.sqrt(2)))

    def pieces(self) -> tuple[Piece, ...]:
        """The sampled pair from loss 0 on, its mirror image, and what no replacement changes."""
        above = replace(SubsampledGaussianStep(self.noise, self.rate).pieces()[0], low=1 / (2 * self.noise))
        middle = np.array([self.unchanged])
        return above.swapped(), ListedOutcomes(np.zeros(1), middle, middle, 0.0, 64 * EPS), above


def without_replacement(run: WithoutReplacement) -> ReplacedStep:
    """Return the step of batches of a fixed size; of full batches, see :func:`deniable.accounting.reductions.reduced`.

    The quotient batch/n_records is rounded, by less than the cells' own errors say.
    """
    return ReplacedStep(run.noise_multiplier / 2, run.batch / run.n_records)
