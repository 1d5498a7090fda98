"""Finite laws against enumeration in exact arithmetic, closed forms, and the statements that no bound may break."""

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.steps.finite_law import FiniteLaw

FPR = np.array([0.0, 1e-300, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0])


def outcomes(epsilons):
    """Exact (p, q) of every outcome of composed randomised responses, merged by how many of each ε were told."""
    counts = Counter(epsilons)
    with mpmath.workdps(60):
        laws = []
        for epsilon, n in counts.items():
            e = mpmath.exp(mpmath.mpf(epsilon))
            laws.append(
                [
                    (mpmath.binomial(n, k) * e**k / (1 + e) ** n, mpmath.binomial(n, k) * e ** (n - k) / (1 + e) ** n)
                    for k in range(n + 1)
                ]
            )
        return [
            (mpmath.fprod(p for p, _ in combination), mpmath.fprod(q for _, q in combination))
            for combination in itertools.product(*laws)
        ]


def exact_hockey_stick(pairs, gamma):
    with mpmath.workdps(60):
        return mpmath.fsum(max(p - gamma * q, 0) for p, q in pairs)


def exact_rate(pairs, alpha):
    """Neyman and Pearson: the most telling outcomes first, the last one with the probability that is left."""
    with mpmath.workdps(60):
        left, rate = mpmath.mpf(alpha), mpmath.mpf(0)
        for p, q in sorted(pairs, key=lambda pair: pair[1] / pair[0] if pair[0] else mpmath.inf):
            if q > left:
                return rate + p * left / q
            left, rate = left - q, rate + p
        return rate


EPSILONS = st.lists(st.sampled_from([0.01, 0.1, 0.3, 1.0, 1.7, 5.0]), min_size=2, max_size=12)


@given(EPSILONS, st.floats(-8.0, 8.0), st.floats(1e-12, 1.0))
def test_composed_pure_dp_is_exact_to_rounding(epsilons, log_gamma, alpha):
    pairs, t = outcomes(epsilons), dn.tradeoff(dn.Composition([dn.PureDP(e) for e in epsilons]))
    with mpmath.workdps(60):
        truth = exact_hockey_stick(pairs, mpmath.exp(mpmath.mpf(log_gamma)))
    for direction in ("remove", "add"):
        low, high = (t.delta(log_gamma, direction, side) for side in ("lower", "upper"))
        assert low <= truth <= high
        assert high - low <= 1e-12
    truth = exact_rate(pairs, alpha)
    for roc in (t, t.inverse()):
        low, high = (roc.tpr(alpha, side) for side in ("lower", "upper"))
        assert low <= truth <= high
        assert high - low <= 1e-11 * high
    low, high = (t.advantage(side=side) for side in ("lower", "upper"))
    assert low <= exact_hockey_stick(pairs, 1) <= high
    assert high - low <= 1e-12 * high + 1e-15


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 10_000), (1.0, 500), (1e-4, 300_000), (3.0, 2_000), (1e-9, 50)])
def test_many_answers_against_the_binomial_law(epsilon, count):
    t = dn.tradeoff(dn.Composition([dn.PureDP(epsilon)] * count))
    with mpmath.workdps(40):
        e = mpmath.exp(mpmath.mpf(epsilon))
        # Binomial upper tails of P and Q above n/2: where the likelihood ratio exceeds 1
        p = mpmath.mpf(0)
        for k in range(count // 2 + 1, count + 1):
            term = mpmath.binomial(count, k) * (e**k - e ** (count - k)) / (1 + e) ** count
            p += term
            if term < p * mpmath.mpf(10) ** -30:
                break
        truth = p
    low, high = t.advantage(side="lower"), t.advantage()
    assert low <= truth <= high
    assert high - low <= 1e-11 * float(truth)


@pytest.mark.parametrize("far", [1.0, 700.0, 1500.0, 1e5])
def test_coarser_laws_bracket_the_exact_one_however_far_their_log_ratios_lie_apart(far):
    """e^1500 is no double: outcomes between log-ratios so far apart were lost from the upper law."""
    log_ratio = far * np.array([0.0, 0.2, 0.6, 1.0])
    p = np.array([0.2, 0.3, 0.4, 0.1])
    q = p * np.exp(-log_ratio)
    log_ratio, q = log_ratio + np.log(q.sum()), q / q.sum()
    law, ends = FiniteLaw(log_ratio, p, q, 0.0, 0.0, (0.0, 0.0), (0.0, 0.0)), log_ratio[[0, -1]]
    above, below = (law.onto(ends, side) for side in ("upper", "lower"))
    assert above.p.sum() >= (1 - 1e-15) * p.sum()
    for log_gamma in far * np.linspace(-0.1, 1.1, 25):
        at = np.array([log_gamma])
        exact = np.maximum(p * -np.expm1(np.minimum(log_gamma - log_ratio, 0.0)), 0.0).sum()
        assert above.hockey_stick(at, "upper")[0] >= exact * (1 - 1e-14)
        assert below.hockey_stick(at, "lower")[0] <= exact * (1 + 1e-14)


@pytest.mark.parametrize("most", [4, 20, 100])
@settings(max_examples=15)
@given(data=st.data())
def test_coarser_laws_bracket_the_exact_one(most, data):
    law = FiniteLaw.randomized_responses(data.draw(st.floats(0.01, 2.0)), 300)
    exact, bracket = FiniteTradeoff.of([law]), FiniteTradeoff(law.coarse(most, "upper"), law.coarse(most, "lower"))
    epsilon = data.draw(st.floats(-10, 30))
    for direction in ("remove", "add"):
        assert bracket.delta(epsilon, direction, "lower") <= exact.delta(epsilon, direction)
        assert exact.delta(epsilon, direction, "lower") <= bracket.delta(epsilon, direction)
    for a, b in ((exact, bracket), (exact.inverse(), bracket.inverse())):
        assert np.all(b.tpr(FPR, "lower") <= a.tpr(FPR))
        assert np.all(a.tpr(FPR, "lower") <= b.tpr(FPR))


def test_approximate_dp_composes_with_its_failure():
    epsilon, delta, count = 0.5, 1e-3, 4
    t = dn.tradeoff(dn.Composition([dn.ApproximateDP(epsilon, delta)] * count))
    with mpmath.workdps(40):
        fail = 1 - (1 - mpmath.mpf(delta)) ** count
        truth = fail + (1 - fail) * exact_hockey_stick(outcomes([epsilon] * count), mpmath.exp(1))
    assert t.delta(1.0, side="lower") <= truth <= t.delta(1.0)
    assert t.delta(1.0) - t.delta(1.0, side="lower") < 1e-13
    assert t.epsilon(0.0) == math.inf


def test_an_epsilon_near_overflow_gives_the_world_away_from_above_only():
    t = dn.tradeoff(dn.PureDP(750.0) + dn.PureDP(1.0))
    assert t.delta(800.0) == 1.0
    assert t.delta(800.0, side="lower") == 0.0
    assert t.advantage(side="lower") > 1 - 1e-12


@pytest.mark.parametrize("total", [742.0, 760.0])
def test_groups_whose_mass_in_one_world_underflows_keep_their_log_ratios(total):
    """One in e^742 has two digits, one in e^760 none: log-ratios of group masses put the lower side above the upper."""
    epsilons = np.random.default_rng(1).uniform(0.2, 1, 18)
    epsilons *= total / epsilons.sum()
    loss, log_p = np.zeros(1), np.zeros(1)
    for epsilon in epsilons:
        likely = -math.log1p(math.exp(-epsilon))
        loss = np.concatenate([loss + epsilon, loss - epsilon])
        log_p = np.concatenate([log_p + likely, log_p + likely - epsilon])
    t = dn.tradeoff([dn.PureDP(float(epsilon)) for epsilon in epsilons])
    for less in (0.1, 1.0, 3.0):
        at = float(epsilons.sum()) - less
        truth = float(np.sum(np.exp(log_p) * -np.expm1(np.minimum(at - loss, 0.0))))
        low, high = (t.delta(at, "remove", side=side) for side in ("lower", "upper"))
        assert low <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= high <= low * (1 + 1e-8)
