"""Which steps besides sampled Gaussian ones have a transform that is known along lines, and it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.sizes import DIGITS, POINTS
from deniable.accounting.steps.base import Step, TooSlowError
from deniable.accounting.steps.discrete import DiscreteGaussianStep, DiscreteStep
from deniable.accounting.steps.gaussian_mixture import GaussianMixtureStep
from deniable.accounting.steps.laplace import BoundedRangeStep, LaplaceStep
from deniable.accounting.steps.ratios import sampled_losses
from deniable.accounting.steps.sampled_gaussian import ReplacedGaussianStep
from deniable.accounting.transform.mixtures import Bells, LabelledPair, Mixture
from deniable.accounting.transform.terms import StepLaw, StepTerms

_STRETCHED = np.array([1.3, 1.6, 2.0, 3.0, 5.0, 9.0, 20.0])  # ellipses of Bernstein that are tried
_APART = 1e-12  # Σ √(pq) below which outcomes tell the worlds apart


@dataclass(frozen=True, eq=False)
class Atoms(StepLaw):
    """Outcomes one by one; losses are known to ``shift``, masses to a share, and to what is left out."""

    loss: FloatArray
    q: FloatArray
    shift: float
    relative: float

    def terms(self, least: float, most: float, t_max: float, ceiling: float) -> StepTerms:
        moved, none = 8 * np.abs(self.loss) + self.shift / EPS, np.zeros(0)
        rows = self.loss[None], np.log(self.q)[None], 1.0, self.q[None]
        return StepTerms(least, *rows, moved, self.relative, (none, none, none))

    def farthest(self, ceiling: float) -> tuple[float, float]:
        return max(-float(self.loss.min()), 0.0), max(float(self.loss.max()), 0.0)


@dataclass(frozen=True, eq=False)
class Flat(StepLaw):
    """Losses ℓ of density ``scale``·¼·e^{−(ε + ℓ)/2} under Q for |ℓ| < ε, the rest in atoms at the ends, then sampled.

    *Quadrature.* On an ellipse of Bernstein with parameter ρ around [−ε, ε] Re ℓ is at most εR, R = (ρ + 1/ρ)/2, and
    Im ℓ at most η = ε(ρ − 1/ρ)/2 in size. The integrand e^{−ℓ/2}·r^w, r = 1 − q + q·e^ℓ, is analytic there (η < π, or
    q = 1), |arg r| ≤ η, r(Re ℓ) ≥ |r| ≥ r(Re ℓ)·cos(η/2), and |log r(Re ℓ)| ≤ εR: it is at most
    e^{εR(½ + |c|) + tη}·cos(η/2)^{min(c, 0)}, and n nodes of Gauss and Legendre err by ε·(64/15) times that and
    ρ^{2 − 2n}/(1 − ρ^{−2}) (see :mod:`deniable.accounting.steps.outcomes`). M(c) is at least e^{−ε}.
    """

    epsilon: float
    rate: float
    scale: float

    def terms(self, least: float, most: float, t_max: float, ceiling: float) -> StepTerms:
        eps, rho = self.epsilon, _STRETCHED
        wide, high = eps * (rho + 1 / rho) / 2, eps * (rho - 1 / rho) / 2
        size = wide * (0.5 + max(abs(least), abs(most))) + t_max * high
        if self.rate < 1:
            allowed = high < 3
            size = np.where(allowed, size - max(-least, 0.0) * np.log(np.cos(np.where(allowed, high, 0.0) / 2)), np.inf)
        size = size + DIGITS + eps + np.log1p(eps) + 2 - np.log1p(-1 / rho**2)
        count = 1 + math.ceil(float((size / (2 * np.log(rho))).min())) if np.isfinite(size).any() else POINTS
        if not count < POINTS >> 3:
            raise TooSlowError(f"{count} nodes")
        x, weight = _gauss(max(4, math.ceil(math.log2(count))))
        loss, q = eps * x, self.scale / 4 * eps * weight * np.exp(-eps * (1 + x) / 2)
        if self.scale == 1:
            ends = np.array([0.5, math.exp(-eps) / 2])
            loss, q = np.append(loss, [-eps, eps]), np.append(q, ends)
        atoms = Atoms(sampled_losses(loss, self.rate), q, 4 * EPS * eps, 64 * EPS * (1 + eps))
        return atoms.terms(least, most, t_max, ceiling)

    def farthest(self, ceiling: float) -> tuple[float, float]:
        return self.epsilon, self.epsilon


@dataclass(frozen=True, eq=False)
class Rounded(StepLaw):
    """Discrete Gaussian noise, σ > 2, on every record: sums over multiples of m, times m, instead of all integers.

    With losses ℓ_k = Δ(2k − Δ)/(2σ²), w = c + it and s_j = 2πjσ/m Poisson's formula makes Σ e^{wℓ_k − k²/(2σ²)} over
    multiples of m, times m, the integral and for every j ≠ 0 another term, of e^{−(s_j − tΔ/σ)²/2} relative to that at
    t = 0; m = 1 is exact, and the sum at t = 0 and √(2π)σ are the integrals but for e^{1 − 2π²σ²}. With s_1 − tΔ/σ as
    large as √(2·DIGITS + 2), which is also how many deviations beyond all that c moves to are listed, both errors
    together are below :data:`MISSED`, which is charged to every sum.
    """

    sigma: float
    moved: int

    def terms(self, least: float, most: float, t_max: float, ceiling: float) -> StepTerms:
        sigma, moved, far = self.sigma, self.moved, math.sqrt(2 * DIGITS + 2)
        m = max(math.floor(2 * math.pi * sigma / (far + t_max * moved / sigma)), 1)
        low, high = min(least, 0.0) * moved - far * sigma, max(most, 1.0) * moved + far * sigma
        if not high - low < m * POINTS:
            raise TooSlowError(f"{(high - low) / m:g} outcomes")
        k = m * np.arange(math.floor(low / m), math.ceil(high / m) + 1, dtype=np.float64)
        square = (k / sigma) ** 2
        loss, log_q = (
            moved * (2 * k - moved) / (2 * sigma**2),
            math.log(m / sigma / math.sqrt(2 * math.pi)) - square / 2,
        )
        none, relative = np.zeros(0), EPS * (16 + 4 * float(square.max()))
        rows = loss[None], log_q[None], 1.0, np.exp(log_q)[None]
        return StepTerms(least, *rows, 12 * np.abs(loss), relative, (none, none, none))

    def farthest(self, ceiling: float) -> tuple[float, float]:
        end = self.moved / self.sigma * (self.moved / (2 * self.sigma) + math.sqrt(2 * DIGITS + 2))
        return end, end


@lru_cache(maxsize=16)
def _gauss(power: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights, from Newton's method on P_n(cos θ): those of SciPy err by up to 8·n² roundings at the ends.

    The recurrence is that of differences P_{k+1} − P_k, in which nothing cancels near θ = 0, and a weight is 2 over
    the square of the derivative in θ: 54 roundings of itself at most up to n = 1,024 (against ball arithmetic).
    """
    n = 1 << power
    angle = math.pi * (4 * np.arange(1, n // 2 + 1) - 1) / (4 * n + 2)
    angle += 1 / (8 * n * n * np.tan(angle))
    for _ in range(4):
        fall, value, rise = 2 * np.sin(angle / 2) ** 2, np.ones_like(angle), np.zeros_like(angle)
        for k in range(n):
            rise = (k * rise - (2 * k + 1) * fall * value) / (k + 1)
            value = value + rise
        slope = n * (rise - fall * value) / np.sin(angle)
        x, weight = np.cos(angle), 2 / slope**2
        angle = angle - value / slope
    return np.concatenate([-x, x[::-1]]), np.concatenate([weight, weight[::-1]])


@lru_cache(maxsize=1024)
def law_of(step: Step) -> StepLaw | None:
    """Return the law of a step whose transform is known; None of others, and of outcomes of one world alone."""
    if any(step.only):
        return None
    match step:
        case GaussianMixtureStep():
            if any(len(case.likely.weight) < 2 for case in step.cases):
                return None  # hardly ever anything, of which lattices know how little
            return mixture_of(replace(step, cases=tuple(case.likely for case in step.cases)))
        case ReplacedGaussianStep(noise, rate):
            bells = Bells(np.array([1 - rate, rate]), np.array([0.0, 1 / noise]), 0.0)
            return Mixture((LabelledPair(1.0, bells, bells),), 0.0, 0.0)
        case DiscreteGaussianStep(sigma, moved, 1.0) if sigma > 2:
            return Rounded(sigma, moved)
        case DiscreteStep():
            found = step.outcomes()
            seen = (found.p > 0) & (found.q > 0)
            apart = np.sqrt(found.p * found.q).sum() < _APART  # M(½) would be lost in that of M(c) − 1
            if not 0 < np.count_nonzero(seen) < POINTS or apart:
                return None
            return Atoms(found.loss[seen], found.q[seen], found.shift, found.relative_error + found.lost[1])
        case LaplaceStep(epsilon, rate):
            return Flat(epsilon, rate, 1.0)
        case BoundedRangeStep(epsilon):
            return Flat(epsilon, 1.0, 2 / -math.expm1(-epsilon))
        case _:
            return None


def mixture_of(step: GaussianMixtureStep) -> Mixture:
    """Return the law of all that the cases of a step have; what they left out counts as unseen."""
    none = Bells(np.ones(1), np.zeros(1), 0.0)
    probability = [case.probability for case in step.cases]
    often = probability.index(max(probability))
    probability[often] = 1 - math.fsum(probability[:often] + probability[often + 1 :])
    cases = tuple(
        LabelledPair(
            share, Bells(np.array(case.weight), np.array(case.records) / step.noise, step.error), none, case.odds
        )
        for share, case in zip(probability, step.cases, strict=True)
    )
    return Mixture(cases, step.error if len(cases) > 1 else 0.0, step.lost[0])
