"""Mechanisms whose curve is that of a simpler one, and those of which a theorem only gives a pair that dominates."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray, Indices
from deniable._floats import EPS, SQUARE_EXPONENT
from deniable.accounting.sizes import UNLIKELY
from deniable.accounting.steps.allocation import SHARPEST, AllocatedStep
from deniable.accounting.steps.base import Repeated
from deniable.accounting.steps.discrete import FinitePairStep
from deniable.accounting.steps.gaussian_mixture import GaussianMixtureStep, truncated_poisson
from deniable.accounting.steps.laplace import BoundedRangeStep, BoundedRangeTradeoff
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep, without_replacement
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import TINY, Tradeoff
from deniable.mechanisms import (
    ApproximateDP,
    BoundedRange,
    Composition,
    GaussianDP,
    MatrixMechanism,
    Mechanism,
    NoisyGradientDescent,
    RandomAllocation,
    RandomizedResponse,
    ShuffledBatches,
    SubsampledGaussian,
    TruncatedPoisson,
    WithoutReplacement,
    bands,
)

NO_NOISE = 0.01  # noise multipliers below tell for certain who took part: Φ(−50) is 1e-545


@dataclass(frozen=True)
class Dominated(Mechanism):
    """A mechanism of which only a dominating pair is proven: no data set has it, and lower sides are another's.

    ``above`` dominates, and so does ``or_above``; ``below`` is the pair of one data set, which composes with those of
    other mechanisms. ``alone`` are curves of which each point is reached on some data set, by the mechanism on its own.
    """

    above: Mechanism
    below: Mechanism
    alone: tuple[Tradeoff, ...] = ()
    or_above: Mechanism | None = None

    @property
    def adjacency(self) -> str:  # type: ignore[override]
        """That of the mechanism which dominates."""
        return self.above.adjacency


def reduced(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism with the pair of ``mechanism``, what is known if none has it, or itself."""
    match mechanism:
        case SubsampledGaussian(_, rate, steps, records) if rate < UNLIKELY:
            return Dominated(ApproximateDP(0.0, min(rate * steps * records * (1 + 8 * EPS), 1.0)), GaussianDP(0.0))
        case SubsampledGaussian(sigma, rate, steps, 1) if sigma < NO_NOISE and rate < 1:
            # from above the attacker is told whether the record takes part, from below there is more noise
            told = FinitePairStep((1 - rate, min(rate * (1 + 8 * EPS), 1 - EPS / 2)), (1.0, 0.0))
            return Dominated(Repeated(told, steps), SubsampledGaussian(NO_NOISE, rate, steps))
        case NoisyGradientDescent():
            return GaussianDP(last_iterate_mu(mechanism))
        case MatrixMechanism():
            return _matrix(mechanism)
        case ShuffledBatches():
            return _bounds_of_shuffling(mechanism)
        case RandomAllocation():
            return _bounds_of_allocation(mechanism)
        case WithoutReplacement(sigma, batch, n, steps) if batch == n:
            return GaussianDP(2 * math.sqrt(steps) / sigma * (1 + 4 * EPS))
        case WithoutReplacement(sigma, batch, n, steps):
            # every other record is like one of the two contents: sums move by 2, if the record is drawn
            one = SubsampledGaussian(sigma / 2, batch / n * (1 - EPS), steps)
            return Dominated(Repeated(without_replacement(mechanism), steps), one)
        case TruncatedPoisson(_, _, steps):
            found = truncated(truncated_poisson(mechanism), mechanism, steps)
            return replace(found, or_above=Repeated(truncated_poisson(mechanism, most_kept=0.98), steps))
        case BoundedRange(epsilon, steps):
            middle = RandomizedResponse(epsilon / 2, 2, steps)
            return Dominated(Repeated(BoundedRangeStep(epsilon), steps), middle, (BoundedRangeTradeoff(epsilon),))
        case _:
            return mechanism


def _bounds_of_shuffling(run: ShuffledBatches) -> Mechanism:
    """Between the batches as if they were known, and random allocation.

    From above, for what one record contributes: tell the attacker the permutations. In each epoch the record then
    stands in one known batch, whose sum it moves by at most 1 (the clipping norm): ``epochs`` Gaussian mechanisms,
    whatever is chosen adaptively, hence μ = √E/σ. Hockey sticks are jointly convex, so that a mixture over permutations
    has no larger ones. From below: all other records contribute nothing, and this one the same vector of norm 1.
    """
    known = GaussianDP(_many_shifts(run.epochs, run.noise_multiplier))
    allocated = RandomAllocation(run.noise_multiplier, run.batches, run.epochs)
    return known if run.batches == 1 else Dominated(known, allocated)


def _bounds_of_allocation(run: RandomAllocation) -> Mechanism:
    """One of t batches an epoch is a step; k of t lie between two others.

    From above: a random partition of the batches into t mod k groups of ⌊t/k⌋ + 1 and the rest of ⌊t/k⌋, known to the
    attacker, with one batch per group, is a uniform choice of k batches; all partitions give the same curve, and H is
    jointly convex. From below: the sum of an epoch's batches is N(0, tσ²) against N(k, tσ²). Noise so small that terms
    overflow is bounded in the same way, from above by revealing the batches.
    """
    sigma, t, k, epochs = run.noise_multiplier, run.batches, run.batches_per_record, run.epochs
    every = SubsampledGaussianStep(sigma, 1.0)
    if k == t:
        return GaussianDP(_many_shifts(epochs * t, sigma))
    if k == 1 and sigma >= SHARPEST:
        return Repeated(AllocatedStep(every, t), epochs)
    size, larger = divmod(t, k)
    if sigma < SHARPEST:
        above: Mechanism = GaussianDP(_many_shifts(epochs * k, sigma))
    else:
        one = GaussianDP(_many_shifts(epochs * (k - larger), sigma)) if size == 1 else None
        groups = [(size + 1, larger * epochs), (size, (k - larger) * epochs)]
        parts = [Repeated(AllocatedStep(every, terms), count) for terms, count in groups if terms > 1 and count > 0]
        above = Composition([*parts, *([one] if one else [])])
    below = GaussianDP(_many_shifts(epochs * k * (k / t), sigma) * (1 - 16 * EPS))
    return Dominated(above, below)


def _many_shifts(count: float, sigma: float) -> float:
    """μ of so many shifts by 1/σ, at most one whose square is a double: nothing is left to hide."""
    return min(math.sqrt(count) / sigma * (1 + 4 * EPS), math.sqrt(1 / TINY))


def truncated(step: GaussianMixtureStep, run: TruncatedPoisson, steps: int) -> Dominated:
    """Return ``steps`` that ``step`` dominates, with the pair in which the other records contribute nothing.

    The record then moves a sum by 1 with the probability that it is drawn and not cut.
    """
    own = truncated_poisson(run)
    rate = (1 - 2 * own.error - 4 * EPS) * math.fsum(c.probability * c.odds * c.weight[1] for c in own.cases)
    return Dominated(Repeated(step, steps), SubsampledGaussian(run.noise_multiplier, rate, steps))


def last_iterate_mu(descent: NoisyGradientDescent) -> float:
    """Return μ of the last iterate, rounded up (Bok, Su & Altschuler 2024: strongly convex, constant step).

    With g = 1 − c the formula is μ² = (s/σ)²·tanh(−t·log(1 − g)/2)·(2 − g)/g, at most t·(s/σ)².
    """
    eta, m, most = descent.step_size, descent.strong_convexity, descent.smoothness
    gap = min(eta * m, 2 - eta * most)  # 1 − max(|1 − ηm|, |1 − ηM|)
    gap = min(gap, 1.0) - 4 * EPS
    if gap <= 0:
        squared = float(descent.steps)
    else:
        contracted = math.tanh(-descent.steps * math.log1p(-gap) / 2) if gap < 1 else 1.0
        squared = min(contracted * (2 - gap) / gap, float(descent.steps))
    return math.sqrt(squared) / descent.noise_multiplier * (1 + 32 * EPS)


def _matrix(mechanism: MatrixMechanism) -> Mechanism:
    sigma, strategy = mechanism.noise_multiplier, mechanism.strategy
    if strategy is None:
        assert mechanism.sensitivity is not None
        return GaussianDP(mechanism.sensitivity / sigma * (1 + 2 * EPS))
    largest = matrix_sensitivity(strategy)
    if mechanism.sample_rate < 1:
        steps = -(-strategy.shape[1] // bands(strategy))
        norm, often = _alike(strategy)
        rate, down = mechanism.sample_rate, 1 + 8 * len(strategy) * EPS
        return Dominated(
            SubsampledGaussian(sigma / largest * (1 - 2 * EPS), rate, steps),
            SubsampledGaussian(sigma / norm * down, rate, often),
        )
    if mechanism.participations == 1:
        return GaussianDP(largest / sigma * (1 + 2 * EPS))
    most = matrix_sensitivity(strategy, mechanism.participations, mechanism.separation)
    reached = _even_pattern(strategy, mechanism.participations, mechanism.separation)
    return Dominated(GaussianDP(most / sigma * (1 + 2 * EPS)), GaussianDP(reached / sigma))


def _alike(strategy: FloatArray) -> tuple[float, int]:
    """A norm and how many columns of one group have at least it: their blocks are sampled Gaussian steps."""
    norms, width = np.linalg.norm(strategy, axis=0), bands(strategy)
    found = []
    for group in range(min(width, norms.size)):
        falling = np.sort(norms[group::width])[::-1]
        best = int(np.argmax(np.arange(1, falling.size + 1) * falling**2))
        found.append((float(falling[best]), best + 1))
    return max(found, key=lambda one: float(one[1] * one[0] ** 2))


def _even_pattern(strategy: FloatArray, participations: int, separation: int) -> float:
    """A lower bound on the sensitivity: evenly spaced steps with equal or with orthogonal contributions."""
    best = 0.0
    for start in range(strategy.shape[1]):
        columns = strategy[:, start::separation][:, :participations]
        best = max(best, float(np.linalg.norm(columns.sum(axis=1))), float(np.linalg.norm(columns)))
    return best * (1 - 4 * sum(strategy.shape) * EPS)


def matrix_sensitivity(strategy: FloatArray, participations: int = 1, separation: int = 1) -> float:
    """Return an upper bound on ‖Σ_{i∈π} C_i x_iᵀ‖ over patterns π and ‖x_i‖ ≤ 1: see :class:`MatrixMechanism`.

    It is exact for one participation, and where columns with positive inner products have the best pattern in common
    (Toeplitz with falling positive entries).
    """
    steps, gram = len(strategy.T), np.abs(strategy.T @ strategy)
    gram += 2 * (len(strategy) + 1) * EPS * (np.abs(strategy).T @ np.abs(strategy))  # inner products, rounded up
    if participations == 1 or separation >= steps:
        return math.sqrt(float(np.max(np.diag(gram)))) * (1 + 4 * EPS)
    if separation == 1 and participations >= steps:
        return math.sqrt(float(gram.sum())) * (1 + 4 * steps * EPS)
    index = np.arange(steps)
    apart = np.abs(index[:, None] - index) >= separation
    others = _best_patterns(np.where(apart, gram, 0.0), participations - 1, separation)
    squared = float(_best_patterns((np.diag(gram) + others)[None, :], participations, separation)[0])
    return math.sqrt(squared) * (1 + 4 * steps * EPS)


def _best_patterns(values: FloatArray, count: int, separation: int) -> FloatArray:
    """The largest sum of at most ``count`` entries of each row, any two at least ``separation`` apart."""
    rows, steps = values.shape
    best = np.zeros((rows, steps + 1))  # from column j on
    for _ in range(min(count, -(-steps // separation))):
        one_more = np.zeros_like(best)
        for j in range(steps - 1, -1, -1):
            one_more[:, j] = np.maximum(one_more[:, j + 1], values[:, j] + best[:, min(j + separation, steps)])
        best = one_more
    return np.asarray(best[:, 0])


def merged(loss: PrivacyLoss, most: int) -> tuple[PrivacyLoss, PrivacyLoss]:
    """Return runs of at most ``most`` different phases that reveal no less, and no more, than this one.

    A step with noise σ′ > σ is one with σ whose output got further Gaussian noise. A step with rate q′ < q is one with
    q whose output is replaced, with probability 1 − q′/q, by a fresh draw of the world without the record: that turns
    (1 − q)N(0, σ²) + qN(1, σ²) into the same with q′, and leaves N(0, σ²) what it is. Neither needs to know the world,
    so by the data processing inequality no hockey stick of the composition grows, in either direction. Phases that are
    near each other are therefore replaced from above by the least noise and the largest rate among them, and from below
    by the opposite.
    """
    noise, rate = loss.noise, loss.rate
    place = np.column_stack([np.log(noise), np.log(rate)])
    slope = np.minimum(1 / noise**2, SQUARE_EXPONENT)
    steepness = np.column_stack([2 + 2 * slope, np.full_like(rate, 2.0)])  # of what a step leaks, about
    leak = loss.steps * rate**2 * np.expm1(slope)

    def cell(some: Indices) -> tuple[float, int, Indices, int]:
        extent = np.ptp(place[some], axis=0) * steepness[some].max(axis=0)
        axis = int(np.argmax(extent))
        return -float(extent[axis] * leak[some].sum()), int(some[0]), some, axis

    cells = [cell(np.arange(noise.size))]
    while len(cells) < most and cells[0][0] < 0:
        _, _, some, axis = heapq.heappop(cells)
        ends = place[some, axis]
        left = ends - ends.min() <= np.ptp(ends) / 2
        for part in (some[left], some[~left]):
            heapq.heappush(cells, cell(part))

    def run(sigma: Callable[[FloatArray], float], q: Callable[[FloatArray], float]) -> PrivacyLoss:
        phases: Counter[tuple[float, float]] = Counter()
        for _, _, some, _ in cells:
            phases[float(sigma(noise[some])), float(q(rate[some]))] += int(loss.steps[some].sum())
        keys = np.array(list(phases), dtype=np.float64).reshape(-1, 2)
        return replace(loss, noise=keys[:, 0], rate=keys[:, 1], steps=np.array(list(phases.values()), dtype=np.float64))

    return run(np.min, np.max), run(np.max, np.min)
