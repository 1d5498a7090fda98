"""Gaussian steps to which a person adds a random number of records: several records, and truncated batches.

Q = N(0, 1) in units of the noise, and P = Σ_j w_j·N(j/σ, 1). The likelihood ratio Σ_j w_j·e^{ju/σ − j²/(2σ²)} is
increasing in u, and its logarithm convex, so that cells of the loss are intervals of u. A label that is the same in
both worlds may be shown with every step: the cells of its cases are added, each with the label's probability.

*Moments* under Q make Rényi divergences. With r = Σ w_j·e^{s_j·u − s_j²/2}, slopes s_j = j/σ, and E r = 1, what M(c) =
E r^c exceeds 1 by is the mean of g = r^c − 1 − c·(r − 1) ≥ 0, for c > 1 and for c < 0: a sum of terms ≥ 0.

*Trapezoid rule* of step h in u. Up to a height |y| ≤ a = 1/S, S the largest slope, no term of r turns by more than 1:
cos(1)·r(x) ≤ Re r and |r| ≤ r(x). So φ·r^c is analytic there, and its integral over Im u = y is at most
e^{a²/2}·cos(1)^{min(c, 0)} times M(c): the rule errs by a relative 2·e^{a²/2}·cos(1)^{min(c, 0)}/(e^{2πa/h} − 1)
(Trefethen and Weideman 2014, Theorem 5.1), below 3·e^{−55} here; for φ and φ·r likewise.

*What is left out.* With L = log r, F = c·L − u²/2 is known at coarse points d apart. L is convex. For c > 1 so is
F + u²/2, and F is at most d²/8 above its chords; for c < 0, F is concave and below its chords, continued. The same
bounds hold for L − u²/2. Cells in which F, L − u²/2 and −u²/2 all are far below their largest values are bounded and
not summed. Beyond the last point B = 40 + max(c, 1)·S, F and L − u²/2 fall by at least 40 a unit; before the first,
−40, r is at most 1 and at least w_0.

*Weights that were left out*, λ in all, have slopes of at most K: as r^c is convex, E r^c is at most
(1 − λ)^{min(1 − c, 0)} times that of the others plus λ·e^{c(c − 1)K²/2}.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS, MOST_EXPONENT, PRODUCT_EXPONENT
from deniable.accounting.sizes import BLOCK, DIGITS, FAR, MOST, UNDERFLOW, UNLIKELY
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.finite_law import binomial
from deniable.accounting.steps.outcomes import NormalOutcomes
from deniable.curves import Direction
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

    @property
    def bounds_divergence(self) -> bool:
        return True

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        c = order if direction == "remove" else 1 - order
        largest = self.highest if direction == "remove" else -self.lowest
        found = [
            self._log_moment(power) / (a - 1) * (1 + 8 * EPS) if a < math.inf else largest
            for a, power in zip(order.tolist(), c.tolist(), strict=True)
        ]
        return np.array(found)

    def _log_moment(self, c: float) -> float:
        """Upper bound on the logarithm of E r^c under Q."""
        logs = []
        for case in self.cases:
            steepest = case.records[-1] / self.noise
            excess = log_excess(partial(self.losses_of, case), steepest, case.weight[0], c)
            share = math.log(case.probability)
            if case.lost > 0:
                grown = min(1 - c, 0.0) * math.log1p(-case.lost)
                hidden = math.log(case.lost) + c * (c - 1) * (case.most / self.noise) ** 2 / 2
                logs += [share + math.log(math.expm1(grown)) if grown > 0 else -math.inf, share + hidden]
                excess += grown
            logs.append(share + excess)
        total = float(np.logaddexp.reduce(logs))
        rounding = 4 * (1 + abs(c)) * (self.error + EPS)  # of weights and probabilities
        return rounding + (float(np.logaddexp(0.0, total)) if total > 0 else math.log1p(math.exp(total)))


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


def truncated_poisson(run: TruncatedPoisson, norm: float = 1.0) -> GaussianMixtureStep:
    """Return the step of Poisson batches of which more than B records are cut down to B at random.

    ``norm`` is the record's own, as a share of the clipping norm; that of others is at most 1.

    *Proof.* Whether at least B of the n − 1 other records were drawn, of probability p = P(Bin(n − 1, q) ≥ B), has the
    same law in both worlds and may be told. If not, nothing is cut: (1 − q)·N(0) + q·N(1). If so, the record enters
    with probability q·E[B/(K + 1) | K ≥ B] = (B/n)·P(Bin(n, q) > B)/p, K being the number of others, and then takes
    another's place, which moves the sum by at most 2 (1 + ``norm``). Joint convexity over the batch, and adaptive
    composition, do the rest.
    """
    n, rate, most = run.n_records, run.sample_rate, run.max_batch
    plain = Case.whole(1.0, (0.0, norm), (1 - rate, rate))
    others, everybody = (binomial(size, rate, MOST) for size in (n - 1, n))
    full, over = (others.mass[others.successes >= most], everybody.mass[everybody.successes > most])
    error = 8 * (others.relative_error + everybody.relative_error + 16 * EPS)
    if full.sum() < UNLIKELY or over.sum() < UNLIKELY**2:
        lost = math.fsum(full)
        return GaussianMixtureStep(
            run.noise_multiplier, (Case(1.0, plain.records, plain.weight, lost, 1 + norm),), error
        )
    taken = min(most / n * math.fsum(over) / math.fsum(full), 1 - EPS)
    cases = (
        Case.whole(math.fsum(others.mass[others.successes < most]), plain.records, plain.weight),
        Case.whole(math.fsum(full), (0.0, (1 + norm) * (1 + 2 * EPS)), (1 - taken, taken)),
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


_COARSE = 0.125  # d


def log_excess(loss: Callable[[FloatArray], FloatArray], steepest: float, least: float, c: float) -> float:
    """Return an upper bound on log(M(c) − 1), c > 1 or c < 0; ∞ where the sum would be long.

    ``loss`` is L, ``steepest`` S and ``least`` w_0 of weights that add up to 1. Exponents err by a few roundings of
    S·|u| + S², which moves L by at most the share 1 − w_0/r of terms that have some.
    """
    height, turned = 1 / steepest, math.log(math.cos(1.0)) * min(c, 0.0)
    h = 2 * math.pi * height / (DIGITS + height**2 / 2 + turned)
    size = math.ceil((2 * FAR + max(c, 1.0) * steepest) / _COARSE)
    if not size < MOST:
        return math.inf
    edges: FloatArray = -FAR + _COARSE * np.arange(size + 1, dtype=np.float64)
    known, powers = loss(edges), (c, 1.0, 0.0)
    bounds = [_cells(power, power * known - edges**2 / 2) for power in powers]
    seen = np.any([bound > bound.max() - DIGITS for bound in bounds], axis=0)
    if not np.count_nonzero(seen) * _COARSE < MOST * h:
        return math.inf
    first, end = np.ceil(edges[:-1][seen] / h), np.ceil(edges[1:][seen] / h)
    counts = (end - first).astype(np.intp)
    u = np.asarray(h * (np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())), np.float64)
    top, scale = max(float(bounds[0].max()), 0.0), h / math.sqrt(2 * math.pi)
    with np.errstate(over="ignore", under="ignore"):
        x = loss(u)
        whole, hit, out = (scale * np.exp(power * x - u**2 / 2 - top) for power in powers)
        near = np.abs(c * x) < 1
        some = np.where(near, x, 0.0)
        rise = np.where(near, out * (np.expm1(c * some) - c * np.expm1(some)), whole - out - c * (hit - out))
        off = EPS * (16 * (np.abs(u) + steepest) * steepest * -np.expm1(np.minimum(math.log(least) - x, 0.0)))
        off += 8 * EPS * np.abs(x)
        wrong = abs(c) * off * np.where(near, np.abs(whole - hit) + off * (whole + hit), whole + hit)
        wrong += 16 * EPS * np.where(near, np.abs(c * x) * out, (1 + u**2) * (whole + (1 + abs(c)) * (hit + out)))
        left_out = [float(np.sum(np.exp(np.minimum(bound[~seen] - top, MOST_EXPONENT)))) for bound in bounds]
    others = 1 + abs(c)
    rest = (_COARSE + h) * (left_out[0] + others * (left_out[1] + left_out[2]))
    last = max(power * float(known[-1]) - float(edges[-1]) ** 2 / 2 for power in powers)
    tails = 2 * others * math.exp(min(last - top, 0.0))
    tails += others * math.exp(min(min(c, 0.0) * math.log(least) - FAR**2 / 2 - top, 0.0))
    aliased = 8 * math.exp(-DIGITS) * (float(whole.sum()) + others * math.exp(-top))
    total = float(np.sum(np.maximum(rise, 0.0) + wrong)) * (1 + u.size * EPS) + rest + tails + aliased
    return math.log(total) + top


def _cells(c: float, values: FloatArray) -> FloatArray:
    """Bounds on F in every cell, by its values at the ends of cells."""
    low, high = values[:-1], values[1:]
    if c >= 0:
        return np.maximum(low, high) + _COARSE**2 / 8
    rise = np.diff(values)
    before, after = np.concatenate([[np.inf], rise[:-1]]), np.concatenate([rise[1:], [-np.inf]])
    return np.asarray(np.minimum(np.maximum(low, low + before), np.maximum(high, high - after)))
