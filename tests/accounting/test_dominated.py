"""Mechanisms of which only a dominating pair is proven: lower sides are what attacks on enumerated data sets reach."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import deniable as dn
from deniable.accounting.steps.gaussian_mixture import truncated_poisson
from deniable.curves import BracketTradeoff

X = np.linspace(-12, 12, 2401)
SPACING = float(X[1] - X[0])
FPR = np.array([1e-3, 0.02, 0.2, 0.5])
GAMMA = np.exp([-0.5, 0.0, 0.4, 1.5])


def sticks(inside, out):
    """H at GAMMA of two laws on a grid, in both orders."""
    return np.array([[np.maximum(a - g * b, 0).sum() for g in GAMMA] for a, b in ((inside, out), (out, inside))])


def rates(inside, out):
    """The largest true positive rates at FPR, in both orders."""
    found = []
    for p, q in ((inside, out), (out, inside)):
        order = np.argsort(-p / np.maximum(q, 1e-300), axis=None)
        found.append(np.interp(FPR, np.cumsum(q.ravel()[order]), np.cumsum(p.ravel()[order])))
    return np.array(found)


def asked(curve, side):
    return (
        np.array([curve.hockey_stick(GAMMA, way, side) for way in ("remove", "add")]),
        np.array([one.tpr(FPR, side) for one in (curve, curve.inverse())]),
    )


def check(curve, pairs, wrong=1e-6):
    """Lower sides are reached on some data set, upper ones on none; whether the upper ones taken as lower ones fail."""
    reached = [np.max([measure(*pair) for pair in pairs], axis=0) for measure in (sticks, rates)]
    low, high = asked(curve, "lower"), asked(curve, "upper")
    for truth, below, above in zip(reached, low, high, strict=True):
        assert np.all(below <= truth + wrong)
        assert np.all(truth <= above + wrong)
    return any(np.any(above > truth + 30 * wrong) for truth, above in zip(reached, high, strict=True))


def fixed_batch(values, batch, sigma):
    drawn = list(itertools.combinations(values, batch))
    return sum(norm.pdf(X, sum(values), sigma) for values in drawn) * (SPACING / len(drawn))


@pytest.mark.parametrize("steps", [1, 2])
def test_batches_without_replacement(steps):
    pairs = []
    for others in itertools.combinations_with_replacement((-1, 0, 1), 3):
        one = [fixed_batch((mine, *others), 2, 1.0) for mine in (1, -1)]
        pairs += [one, one[::-1]]
    if steps == 2:  # the others may change from step to step
        coarse = [[4 * law[::4] for law in pair] for pair in pairs]
        both = itertools.product(coarse[:8], coarse[:8])
        pairs = [[np.outer(a, b) for a, b in zip(*two, strict=True)] for two in both]
    assert check(dn.tradeoff(dn.WithoutReplacement(1.0, 2, 4, steps)), pairs, 1e-4 if steps == 2 else 1e-5)


def cut_batch(values, rate, most, sigma):
    """Masses of the noisy sum of a Poisson batch of which more than ``most`` records are cut at random."""
    sums: dict[float, float] = {}
    for size in range(len(values) + 1):
        for drawn in itertools.combinations(values, size):
            chance = rate**size * (1 - rate) ** (len(values) - size)
            kept = list(itertools.combinations(drawn, min(size, most)))
            for some in kept:
                sums[sum(some)] = sums.get(sum(some), 0.0) + chance / len(kept)
    return sum(share * norm.pdf(X, total, sigma) for total, share in sums.items()) * SPACING


def test_truncated_batches():
    pairs = []
    for others in itertools.combinations_with_replacement((-1, 0, 1), 5):
        pairs.append([cut_batch(values, 0.5, 2, 1.0) for values in ((1, *others), others)])
    run = dn.TruncatedPoisson(1.0, 0.5, 1, 2, 6)
    t = dn.tradeoff(run)
    assert check(t, pairs)
    # where the others contribute nothing, the record's own share is all that is seen
    own = sum(binom.pmf(k, 6, 0.5) * min(k, 2) for k in range(7)) / 6
    same = dn.tradeoff(dn.SubsampledGaussian(1.0, own, 1))
    assert t.advantage(side="lower") == pytest.approx(same.advantage(), rel=1e-9)
    replaced = dn.tradeoff(run, adjacency="replace")
    assert t.advantage(side="lower") <= replaced.advantage(side="lower") < t.advantage() < replaced.advantage()


@pytest.mark.parametrize(("rate", "most", "sigma"), [(0.5, 1, 0.6), (0.2, 1, 0.4), (0.8, 3, 1.0), (0.05, 2, 0.3)])
def test_truncated_batches_of_which_the_size_is_told(rate, most, sigma):
    """Every such pair bounds them alone, whatever share of a record stays with batches that are nearly full."""
    pairs = []
    for others in itertools.combinations_with_replacement((-1, 0, 1), 4):
        pairs.append([cut_batch(values, rate, most, sigma) for values in ((1, *others), others)])
    run = dn.TruncatedPoisson(sigma, rate, 1, most, 5)
    for kept in (0.5, 0.98):
        step = truncated_poisson(run, kept)
        assert math.fsum(case.probability * case.odds for case in step.cases) == pytest.approx(1, rel=1e-14)
        curve = dn.tradeoff(step)
        above = [curve.hockey_stick(GAMMA, way) for way in ("remove", "add")]
        assert np.all(np.max([sticks(*pair) for pair in pairs], axis=0) <= np.array(above) + 1e-9)


def test_batches_that_are_hardly_or_nearly_always_cut():
    """A batch that is cut once in 30,000 steps costs next to nothing: ε was 1.878 where the worst record had 1.8282."""
    seldom = dn.tradeoff(dn.TruncatedPoisson(1.0, 0.01, 1000, 700, 60_000))
    assert 1.8282 < seldom.epsilon(1e-5, side="lower") < seldom.epsilon(1e-5) < 1.8294
    sometimes = dn.tradeoff(dn.TruncatedPoisson(1.0, 0.01, 1000, 650, 60_000))
    assert 1.8275 < sometimes.epsilon(1e-5, side="lower") < sometimes.epsilon(1e-5) < 2.75
    always = dn.tradeoff(dn.TruncatedPoisson(1.0, 0.5, 10, 1, 1000))  # no batch has room
    one_of_all = dn.tradeoff(dn.SubsampledGaussian(0.5, 1e-3 * (1 + 1e-12), 10))
    assert always.advantage() == pytest.approx(one_of_all.advantage(), rel=1e-6)


def test_patterns_of_participation():
    rng, loose = np.random.default_rng(1), 0
    for positive in (True, False, False, False):
        strategy = np.tril(rng.normal(size=(7, 7)))
        strategy = np.abs(strategy) if positive else strategy
        curve = dn.tradeoff(dn.MatrixMechanism(2.0, strategy, participations=2, separation=3))
        # of two contributions the best are equal or opposite: the square is linear in their inner product
        truth = max(
            float(np.linalg.norm(strategy[:, i] + sign * strategy[:, j]))
            for i, j in itertools.combinations(range(7), 2)
            if j - i >= 3
            for sign in (1, -1)
        )
        truth = max(truth, float(np.linalg.norm(strategy, axis=0).max()))
        exact = dn.tradeoff(dn.GaussianDP(truth / 2.0))
        loose += curve.advantage() > exact.advantage() * (1 + 1e-6)
        for low, true, high in (
            (curve.advantage(side="lower"), exact.advantage(), curve.advantage()),
            (curve.tpr(0.01, "lower"), exact.tpr(0.01), curve.tpr(0.01)),
            (curve.epsilon(1e-5, side="lower"), exact.epsilon(1e-5), curve.epsilon(1e-5)),
        ):
            assert low <= true * (1 + 1e-9)
            assert true <= high * (1 + 1e-9)
    assert loose  # negative control: the dominating pair's own curve is above what a record can do


def test_columns_of_different_norms_with_cyclic_sampling():
    sigma, rate = 1.0, 0.2
    strategy = np.eye(6) + np.diag([1.0, 0.9, 0.5, 0.8, 0.2], -1)
    t = dn.tradeoff(dn.MatrixMechanism(sigma, strategy, sample_rate=rate))
    norms = np.linalg.norm(strategy, axis=0)
    groups = [
        dn.tradeoff(dn.Composition([dn.SubsampledGaussian(sigma / c, rate, 1) for c in norms[start::2]]))
        for start in (0, 1)
    ]
    truth = max(curve.advantage() for curve in groups)
    assert t.advantage(side="lower") <= truth < t.advantage() * (1 - 1e-3)
    even = dn.tradeoff(dn.MatrixMechanism(sigma, strategy / norms, sample_rate=rate))
    assert even.advantage() - even.advantage(side="lower") < 1e-7


def test_bounded_range_is_reached_by_one_step_only():
    """All log-ratios lie in [t − ε, t]: two outcomes, and t may follow the first step's."""
    epsilon, grid = 1.0, np.linspace(0.0, 1.0, 41)

    def pair(t):
        p = (1 - math.exp(t - epsilon)) / -math.expm1(-epsilon)
        return np.array([p, 1 - p]), np.array([p * math.exp(-t), 1 - p * math.exp(-t)])

    one, two = dn.tradeoff(dn.mechanisms.BoundedRange(epsilon)), dn.tradeoff(dn.mechanisms.BoundedRange(epsilon, 2))
    single = [np.maximum(p - q, 0).sum() for p, q in map(pair, grid)]
    assert max(single) == pytest.approx(one.advantage(side="lower"), abs=1e-3)
    best = 0.0
    for first in grid:
        p, q = pair(first)
        second = [
            max(np.maximum(a * x - b * y, 0).sum() for x, y in map(pair, grid)) for a, b in zip(p, q, strict=True)
        ]
        best = max(best, sum(second))
    assert two.advantage(side="lower") <= best < two.advantage() - 1e-3


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 8.0])
def test_divergences_of_bounded_range_are_those_of_its_worst_pair_of_two_outcomes(epsilon):
    order = np.array([1.0001, 1.5, 2.0, 10.0, 200.0])
    t = np.linspace(0.0, epsilon, 20_001)[1:-1, None]
    p = np.expm1(t - epsilon) / math.expm1(-epsilon)
    q = p * np.exp(-t)
    either = np.logaddexp(
        order * np.log(p) + (1 - order) * np.log(q), order * np.log1p(-p) + (1 - order) * np.log1p(-q)
    )
    truth = np.max(either, axis=0) / (order - 1)
    found = dn.tradeoff(dn.mechanisms.BoundedRange(epsilon)).renyi(order)
    assert np.all(found >= truth * (1 - 1e-9) - 1e-11)
    assert np.all(found <= truth * (1 + 1e-4) + 1e-8)
    if epsilon == 1.0:  # the pair that dominates all of them has more
        assert found[2] < 0.248 < 0.309


def test_parts_beside_others_keep_their_mark():
    both = dn.tradeoff(dn.TruncatedPoisson(1.0, 0.5, 1, 2, 6) + dn.GaussianDP(0.5))
    share = sum(binom.pmf(k, 6, 0.5) * min(k, 2) for k in range(7)) / 6
    known = dn.tradeoff(dn.SubsampledGaussian(1.0, share, 1) + dn.GaussianDP(0.5))
    assert isinstance(both, BracketTradeoff)
    assert both.advantage(side="lower") == pytest.approx(known.advantage(), rel=1e-7)
    assert both.advantage() > known.advantage()
