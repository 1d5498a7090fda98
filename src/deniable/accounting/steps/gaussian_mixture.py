"""Gaussian steps to which a person adds a random number of records: several records, and truncated batches.

Q = N(0, 1) in units of the noise, and P = Σ_j w_j·N(j/σ, 1). The likelihood ratio Σ_j w_j·e^{ju/σ − j²/(2σ²)} is
increasing in u, and its logarithm convex, so that cells of the loss are intervals of u. A label may be shown with every
step: the cells of its cases are added, each with the label's probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable.accounting.sizes import BLOCK, MOST, UNDERFLOW, UNLIKELY
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.finite_law import Binomial, binomial
from deniable.accounting.steps.outcomes import NormalOutcomes
from deniable.mechanisms import SubsampledGaussian, TruncatedPoisson


@dataclass(frozen=True)
class Case:
    """With this probability, P = Σ weight·N(records/σ, 1): ``records`` increase from 0.

    ``lost`` is weight that was left out, of at most ``most`` records. P has the case ``odds`` times as often as Q.
    """

    probability: float
    records: tuple[float, ...]
    weight: tuple[float, ...]
    lost: float = 0.0
    most: float = 0.0
    odds: float = 1.0

    @property
    def likely(self) -> Case:
        """The same without weights that only divergences see: outcomes are charged for them."""
        kept = sum(w > UNLIKELY for w in self.weight)  # they fall behind the mode, and the first is not so small
        if kept == len(self.weight):
            return self
        lost = self.lost + math.fsum(self.weight[kept:])
        return replace(self, records=self.records[:kept], weight=self.weight[:kept], lost=lost)


@dataclass(frozen=True)
class GaussianMixtureStep(Step):
    """A labelled mixture of Gaussian mixtures; weights and probabilities are known up to a factor 1 ± ``error``."""

    noise: float
    cases: tuple[Case, ...]
    error: float

    @property
    def lowest(self) -> float:
        return min(math.log(case.odds * case.weight[0]) for case in self.cases)

    @property
    def attained(self) -> bool:
        return self.error < 4 * EPS

    @property
    def lost(self) -> tuple[float, float]:
        unseen = math.fsum(case.probability * case.likely.lost for case in self.cases)
        return unseen, unseen

    def pieces(self) -> tuple[NormalOutcomes, ...]:
        return tuple(self._line(case.likely) for case in self.cases)

    def _line(self, case: Case) -> NormalOutcomes:
        records = np.array(case.records) / self.noise
        steepest = float(records[-1])
        return NormalOutcomes(
            inside=(case.odds * np.array(case.weight), records),
            outside=(np.ones(1), np.zeros(1)),
            loss=partial(self.losses_of, case),
            wrong=lambda u: 16 * EPS * (1 + np.abs(u) * steepest + steepest**2) + self.error,
            share=case.probability,
            error=2 * self.error,
        )

    def losses_of(self, case: Case, u: FloatArray) -> FloatArray:
        """L(u), to full relative precision near 0 and wherever the ratio is far from 1."""
        slopes, weight = np.array(case.records) / self.noise, np.array(case.weight)
        exponent = np.multiply.outer(u, slopes) - slopes**2 / 2
        steep = np.clip(u, 0.0, slopes[-1])
        excess = np.maximum(steep * u - steep**2 / 2 - PRODUCT_EXPONENT, 0.0)  # where the largest term would overflow
        if excess.any():
            exponent -= excess[:, None]
        with np.errstate(under="ignore", divide="ignore"):
            rise = np.expm1(exponent) @ weight
            found = np.log1p(rise) + excess
            far = np.flatnonzero((rise < -0.5) | (excess > 0))
            found[far] = np.log(np.exp(exponent[far]) @ weight) + excess[far]
        return np.asarray(found + math.log(case.odds))


def several_records(run: SubsampledGaussian) -> GaussianMixtureStep:
    """Return the step of a person whose k records are drawn independently: w_j = P(Bin(k, q) = j).

    Source: Ganesh 2024 (arXiv:2401.10294): this pair dominates vectors of norm at most 1 per record, both ways.
    """
    law = binomial(run.records_per_person, run.sample_rate, BLOCK)
    keep = law.mass > UNDERFLOW
    if law.first > 0 or not law.mass[0] > UNLIKELY:
        raise InputError(
            f"records_per_person must be smaller at sample_rate {run.sample_rate:g}, got {run.records_per_person}: "
            "such a person takes part in every step; count them as full batches (sample_rate 1)"
        )
    records, weight = law.successes[keep], law.mass[keep]
    lost = float(law.mass[~keep].sum()) + law.unseen
    case = Case(1.0, tuple(map(float, records)), tuple(map(float, weight)), lost, run.records_per_person)
    return GaussianMixtureStep(run.noise_multiplier, (case,), law.relative_error)


def truncated_poisson(run: TruncatedPoisson, most_kept: float = 0.0) -> GaussianMixtureStep:
    """Return a step that bounds Poisson batches of which more than B records are cut down to B at random.

    *Proof.* Of the n − 1 others K were drawn, and k = min(K, B), or B − 1 where the record takes another's place, are
    in the batch: given k, any k of them are equally likely in either world, and may be told. With p = P(K ≥ B),
    m = P(K = B − 1) and q′ = (B/n)·P(Bin(n, q) > B)/p = q·E[B/(K + 1) | K ≥ B] that is for

        k < B − 1    in (1 − q)·N(0) + q·N(1),   out N(0),
        k = B − 1    in m·(1 − q)·N(0) + (mq + pq′)·N(1),   out m·N(0),
        k = B        in p·(1 − q′)·N(0),   out p·N(0).

    Or else K ≥ B alone is told, and another's place is taken at random, which moves the sum by at most 2: then pq′·N(2)
    stands beside k = B instead of pq′·N(1) beside k = B − 1. By joint convexity any share may be counted so: the one
    kept at k = B − 1, up to ``most_kept`` < 1, makes the largest terms of E_out[(in/out)³] least. Adaptive composition
    does the rest.
    """
    rate, most = run.sample_rate, run.max_batch
    others, full, taken, error = _full_batches(run.n_records, rate, most)
    if taken == 0:
        return GaussianMixtureStep(run.noise_multiplier, (Case(1.0, (0.0, 1.0), (1 - rate, rate), full, 2.0),), error)
    near, fall = float(others.mass[others.successes == most - 1].sum()), math.exp(-4.5 / run.noise_multiplier**2)
    moved = full * taken / max(near, UNLIKELY)
    best = (taken - rate * fall) / (taken + moved * fall)
    kept = min(max(best, 0.0), most_kept) if near > UNLIKELY else 0.0
    more, less = 1 + kept * moved, 1 - kept * taken
    cases = (
        Case(math.fsum(others.mass[others.successes < most - (kept > 0)]), (0.0, 1.0), (1 - rate, rate)),
        Case(near * (kept > 0), (0.0, 1.0), ((1 - rate) / more, (rate + kept * moved) / more), odds=more),
        Case(full, (0.0, 2 * (1 + 2 * EPS)), ((1 - taken) / less, (1 - kept) * taken / less), odds=less),
    )
    return GaussianMixtureStep(run.noise_multiplier, tuple(case for case in cases if case.probability > 0), error)


@lru_cache(maxsize=8)  # each pair that is asked for has the same
def _full_batches(n: int, rate: float, most: int) -> tuple[Binomial, float, float, float]:
    """The law of the others that are drawn, P(≥ B of them), the record's rate then (0: hardly ever), their error."""
    others, everybody = (binomial(size, rate, MOST) for size in (n - 1, n))
    full = math.fsum(others.mass[others.successes >= most])
    over = math.fsum(everybody.mass[everybody.successes > most])
    error = 8 * (others.relative_error + everybody.relative_error + 16 * EPS)
    seen = full > UNLIKELY and over > UNLIKELY**2
    return others, full, min(most / n * over / full, 1 - EPS) if seen else 0.0, error


def truncated_around(noise: float, rate: float, most: int, n: int) -> GaussianMixtureStep:
    """Return a step that bounds removing one of n records from truncated Poisson batches *and* adding one more.

    ``rate`` is below 1, and ``most``, the largest batch B, at most n.

    Removing is :func:`truncated_poisson` of n records, adding that of n + 1, and neither bounds the other.

    *Proof.* With p_n and q′_n, its probability that a batch is full and the rate of the record then, p_n grows with n,
    and q′_n falls, from at most the rate q. Of three labels, "not full" of probability 1 − p_{n+1} is N(0) beside
    (1 − q)·N(0) + q·N(1); "full" of probability p_n is N(0) beside (1 − q′_n)·N(0) + q′_n·N(2); and "between", with the
    rest, q·P(Bin(n − 1, q) = B − 1), is N(0) beside (1 − q)·N(0) + q·N(2), which bounds both. Hence the worlds of n
    records, in which "between" is not full, and those of n + 1, in which it is full, are bounded label by label.
    """
    weight, far = (1 - rate, rate), (0.0, 2.0)
    others, full, _, error = _full_batches(n + 1, rate, most)
    if full < UNLIKELY:
        return GaussianMixtureStep(noise, (Case(1.0, (0.0, 1.0), weight, full, 2.0),), error)
    room = Case(math.fsum(others.mass[others.successes < most]), (0.0, 1.0), weight)
    fewer, inside, taken, wrong = _full_batches(n, rate, most)
    if taken == 0:
        return GaussianMixtureStep(noise, (room, Case(full, far, weight)), error)
    between = rate * math.fsum(fewer.mass[fewer.successes == most - 1])
    cases = (room, Case(inside, far, (1 - taken, taken)), Case(between, far, weight))
    return GaussianMixtureStep(noise, cases, error + wrong)
