"""Gaussian steps to which a person adds a random number of records: several records, and truncated batches.

Q = N(0, 1) in units of the noise, and P = Σ_j w_j·N(j/σ, 1). The likelihood ratio Σ_j w_j·e^{ju/σ − j²/(2σ²)} is
increasing in u, and its logarithm convex, so that cells of the loss are intervals of u. A label that is the same in
both worlds may be shown with every step: the cells of its cases are added, each with the label's probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable.accounting.sizes import BLOCK, MOST, UNDERFLOW, UNLIKELY
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.finite_law import binomial
from deniable.accounting.steps.outcomes import NormalOutcomes
from deniable.mechanisms import TruncatedPoisson


@dataclass(frozen=True)
class Case:
    """With this probability, P = Σ weight·N(records/σ, 1): ``records`` increase from 0.

    ``lost`` is weight that was left out, of at most ``most`` records.
    """

    probability: float
    records: tuple[float, ...]
    weight: tuple[float, ...]
    lost: float
    most: float

    @classmethod
    def whole(cls, probability: float, records: tuple[float, ...], weight: tuple[float, ...]) -> Case:
        """A case with all of its weights."""
        return cls(probability, records, weight, lost=0.0, most=0.0)

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
        return min(math.log(case.weight[0]) for case in self.cases)

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
            inside=(np.array(case.weight), records),
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
        return np.asarray(found)


class _GroupRun(Protocol):
    noise_multiplier: float
    sample_rate: float
    records_per_person: int


def several_records(run: _GroupRun) -> GaussianMixtureStep:
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


def truncated_poisson(run: TruncatedPoisson) -> GaussianMixtureStep:
    """Return the step of Poisson batches of which more than B records are cut down to B at random.

    *Proof.* Whether at least B of the n − 1 other records were drawn, of probability p = P(Bin(n − 1, q) ≥ B), has the
    same law in both worlds and may be told. If not, nothing is cut: (1 − q)·N(0) + q·N(1). If so, the record enters
    with probability q·E[B/(K + 1) | K ≥ B] = (B/n)·P(Bin(n, q) > B)/p, K being the number of others, and then takes
    another's place, which moves the sum by at most 2. Joint convexity over the batch, and adaptive
    composition, do the rest.
    """
    n, rate, most = run.n_records, run.sample_rate, run.max_batch
    plain = Case.whole(1.0, (0.0, 1.0), (1 - rate, rate))
    others, everybody = (binomial(size, rate, MOST) for size in (n - 1, n))
    full, over = (others.mass[others.successes >= most], everybody.mass[everybody.successes > most])
    error = 8 * (others.relative_error + everybody.relative_error + 16 * EPS)
    if full.sum() < UNLIKELY or over.sum() < UNLIKELY**2:
        lost = math.fsum(full)
        return GaussianMixtureStep(run.noise_multiplier, (Case(1.0, plain.records, plain.weight, lost, 2.0),), error)
    taken = min(most / n * math.fsum(over) / math.fsum(full), 1 - EPS)
    cases = (
        Case.whole(math.fsum(others.mass[others.successes < most]), plain.records, plain.weight),
        Case.whole(math.fsum(full), (0.0, 2 * (1 + 2 * EPS)), (1 - taken, taken)),
    )
    return GaussianMixtureStep(run.noise_multiplier, cases, error)


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
    others = binomial(n, rate, MOST)
    full = math.fsum(others.mass[others.successes >= most])
    error = 8 * (others.relative_error + 16 * EPS)
    if full < UNLIKELY:
        return GaussianMixtureStep(noise, (Case(1.0, (0.0, 1.0), weight, full, 2.0),), error)
    room = Case.whole(math.fsum(others.mass[others.successes < most]), (0.0, 1.0), weight)
    inside = truncated_poisson(TruncatedPoisson(noise, rate, 1, most, n)) if most < n else None
    if inside is None or len(inside.cases) == 1:
        return GaussianMixtureStep(noise, (room, Case.whole(full, far, weight)), error)
    fewer = binomial(n - 1, rate, MOST)
    between = rate * math.fsum(fewer.mass[fewer.successes == most - 1])
    cases = (room, replace(inside.cases[1], records=far), Case.whole(between, far, weight))
    return GaussianMixtureStep(noise, cases, error + inside.error)
