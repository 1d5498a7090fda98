"""Gaussian steps of sampled batches: with a record added (DP-SGD's), with one replaced, and of a fixed size.

*A record is added* with probability q; with q = 1 the step is a plain Gaussian one. Q = N(0, σ²) and P = (1 − q)·N(0,
σ²) + q·N(1, σ²). With u the outcome in units of the noise, the loss L(u) = log(1 − q + q·e^{u/σ − 1/(2σ²)}) increases,
so that cells of the loss are intervals of u.

*A record of a Poisson batch is replaced.* The batch holds the record with probability q, with one content g or the
other g′, vectors of norm at most 1 (clipped): P = (1 − q)·N(0) + q·N(g) and Q = (1 − q)·N(0) + q·N(g′). They are
dominated by

    P = (1 − q)·N(0, σ²) + q·N(1, σ²)   and   Q = (1 − q)·N(0, σ²) + q·N(−1, σ²),

which opposite vectors attain. *Proof.* For γ ≥ 1, H_γ(P‖Q) = E f(Y), X ~ N(g, σ²I), Y the sum of (γ − 1)(1 − q) times
the density ratio of N(0) to N(g) and γq times that of N(g′), f(y) = (q − y)₊. Either ratio is log-normal with mean 1
under N(g), and the larger in convex order the further its mean from g: at most 1, at most 2. For given laws of the two
a sum is the largest in convex order if they rise and fall together, and it grows with either law then: that is so where
the means lie on one line on the same side of g, at 1, 0 and −1. f is convex, so that H_γ is the largest there. For
γ < 1, H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P), the same with g and g′ exchanged. Steps compose adaptively. ∎

With u the outcome in units of the noise and ℓ the loss of a sampled Gaussian step, L(u) = ℓ(u) − ℓ(−u) increases.

*One of a batch of a fixed size, drawn without replacement, is replaced*: the sampled pair made symmetric. Dong, Roth &
Su 2022 (subsampling theorem): if a step on a full batch has trade-off f, then on a uniformly drawn share q of the
records it has at least C_q(f) = min{f_q, f_q⁻¹}**, f_q = q·f + (1 − q)·Id. Replacing a record moves a sum of clipped
gradients by at most 2, hence f = G_μ with μ = 2/σ. In hockey sticks C_q is the larger of the two directions of Q₀ =
N(0, 1), P₀ = (1 − q)·N(0, 1) + q·N(μ, 1): for γ ≥ 1 that of P₀ against Q₀, whose loss ℓ(u) is positive for u > μ/2. The
symmetric pair with these hockey sticks has

    at ℓ > 0 the masses of P₀ and Q₀,   at −ℓ those of Q₀ and P₀,   and at 0 the rest, (1 − q)·(Φ(μ/2) − Φ(−μ/2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._special import erf
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import ListedOutcomes, NormalOutcomes, Piece
from deniable.accounting.steps.ratios import log_ratio, plain_losses, ratio_error
from deniable.mechanisms import WithoutReplacement


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
            share=1.0,
            error=0.0,
            outcome=lambda x: noise * plain_losses(x, rate) + s / 2,
        )
        return (line,)


@dataclass(frozen=True)
class ReplacedGaussianStep(Step):
    """A step of noise multiplier ``noise`` whose batch holds the replaced record with probability ``rate`` < 1."""

    noise: float
    rate: float

    adjacency = "replace"
    symmetric = True

    def pieces(self) -> tuple[NormalOutcomes]:
        weights, s = np.array([1 - self.rate, self.rate]), 1 / self.noise
        line = NormalOutcomes(
            inside=(weights, np.array([0.0, s])),
            outside=(weights, np.array([0.0, -s])),
            loss=self.losses,
            wrong=self._wrong,
            share=1.0,
            error=0.0,
        )
        return (line,)

    def _wrong(self, u: FloatArray) -> FloatArray:
        both = ratio_error(u, self.noise, self.rate) + ratio_error(-u, self.noise, self.rate)
        return np.asarray(both + 2 * EPS * np.abs(self.losses(u)))

    def losses(self, u: FloatArray) -> FloatArray:
        """L at outcomes in units of the noise."""
        noise, rate = np.array(self.noise), np.array(self.rate)
        return log_ratio(u, noise, rate) - log_ratio(-u, noise, rate)


@dataclass(frozen=True)
class ReplacedStep(Step):
    """One step on a share ``rate`` < 1 of the records; ``noise`` is σ/2, in units of what a replacement moves."""

    noise: float
    rate: float

    adjacency = "replace"
    symmetric = True

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
