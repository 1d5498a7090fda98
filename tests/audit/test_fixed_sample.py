"""Promise: ε, μ, the advantage and every verdict of an audit agree with each other, on whatever scores."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.audit.fixed_sample import Ceiling, Decisions
from deniable.audit.intervals import EpsilonDelta, Gaussian, Shift

SAMPLES = {
    "Gaussian": lambda rng, n: (rng.normal(1, 1, n), rng.normal(0, 1, n)),
    "nothing leaks": lambda rng, n: (rng.normal(0, 1, n), rng.normal(0, 1, n)),
    "two values": lambda rng, n: (rng.random(n) < 0.7, rng.random(n) < 0.3),
    "three values": lambda rng, n: (rng.choice(3, n, p=[0.2, 0.3, 0.5]), rng.choice(3, n, p=[0.5, 0.3, 0.2])),
    "a few exposed": lambda rng, n: (rng.normal(0, 1, n) + 100 * (rng.random(n) < 0.05), rng.normal(0, 1, n)),
    "one outlier among nonmembers": lambda rng, n: (rng.normal(2, 1, n), np.append(rng.normal(0, 1, n - 1), 1e9)),
    "infinite": lambda rng, n: (
        np.where(rng.random(n) < 0.3, np.inf, rng.normal(size=n)),
        np.where(rng.random(n) < 0.3, -np.inf, rng.normal(size=n)),
    ),
    "separated": lambda rng, n: (np.ones(n), np.zeros(n)),
    "constant": lambda rng, n: (np.ones(n), np.ones(n)),
    "reversed": lambda rng, n: (rng.normal(0, 1, n), rng.normal(1, 1, n)),
}

CURVES = [
    dn.tradeoff(m) for m in (dn.SubsampledGaussian(1.0, 0.05, 200), dn.ApproximateDP(0.6, 1e-4), dn.GaussianDP(0.7))
]


def assert_consistent(audit):
    """Below every limit violated, above it not; what is below a violated promise is violated."""
    for shown, promise in (
        (audit.epsilon().low, dn.PureDP),
        (audit.epsilon(0.01).low, lambda value: dn.ApproximateDP(value, 0.01)),
        (audit.mu().low, dn.GaussianDP),
    ):
        grid = np.concatenate([np.linspace(0.05, 4, 12), shown * np.array([0.5, 0.9, 1 - 1e-6, 1 + 1e-6, 1.1])])
        for value in grid[grid > 0]:
            verdict = audit.compare(dn.tradeoff(promise(float(value))))
            assert verdict.violated == (value < shown), (promise, value, shown)
            assert verdict.violated == (verdict.p_value <= 1 - audit.confidence)
            if verdict.violated:
                assert verdict.measured.low > verdict.promised
            else:
                assert verdict.measured.low <= verdict.promised
    # what a promise implies about the advantage, ε and μ cannot be contradicted without contradicting the promise
    for curve in CURVES:
        contradicted = (
            curve.advantage() < audit.advantage().low
            or curve.epsilon(1e-3) < audit.epsilon(1e-3).low
            or curve.epsilon(0.01) < audit.epsilon(0.01).low
        )
        verdict = audit.compare(curve)
        assert verdict.violated or not contradicted
        rates = [fpr for fpr in (0.001, 0.01, 0.1) if audit.tpr(fpr).resolvable]
        if any(curve.tpr(fpr) < audit.tpr(fpr).low for fpr in rates):
            assert verdict.outcome != "consistent"
    epsilons = [audit.epsilon(delta).low for delta in (0.0, 1e-5, 1e-3, 0.01, 0.1)]
    assert epsilons == sorted(epsilons, reverse=True)
    # (e^ε − 1)/(e^ε + 1) = tanh(ε/2) is the most that pure DP allows
    assert audit.advantage().low <= np.tanh(audit.epsilon().low / 2) + 1e-9


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("n", [40, 600])
@pytest.mark.filterwarnings("ignore::deniable.audit.ReversedScoresWarning")
def test_verdicts_and_limits_agree(name, n):
    member, nonmember = SAMPLES[name](np.random.default_rng(n), n)
    given = np.asarray(member, float), np.asarray(nonmember, float)
    assert_consistent(dn.audit_scores(*given, direction="larger"))  # reversed ones, too


@pytest.mark.parametrize("sizes", [(40, 900), (900, 40), (1, 200), (3, 3)])
def test_verdicts_and_limits_agree_on_unequal_samples(sizes):
    rng = np.random.default_rng(0)
    assert_consistent(dn.audit_scores(rng.normal(2, 1, sizes[0]), rng.normal(0, 1, sizes[1])))


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_constant_scores_show_nothing(n):
    for seed in range(20):
        audit = dn.audit_scores(np.ones(n), np.ones(n), rng=seed)
        assert audit.epsilon().low == audit.mu().low == audit.advantage().low == 0.0
        assert not audit.compare(dn.tradeoff(dn.PureDP(1e-6))).violated


def test_one_outlier_does_not_decide():
    rng = np.random.default_rng(1)
    member, nonmember = rng.normal(2, 1, 1000), rng.normal(0, 1, 999)
    for outlier in (-5.0, 1e9):
        audit = dn.audit_scores(member, np.append(nonmember, outlier))
        assert audit.epsilon().low > 2
        assert audit.mu().low > 1.7


@settings(max_examples=13, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=8, max_size=60),
    st.lists(st.integers(0, 6), min_size=8, max_size=60),
    st.floats(0.01, 3.0),
    st.floats(0.0, 0.3),
)
@pytest.mark.filterwarnings("ignore::deniable.audit.ReversedScoresWarning")
def test_any_coarse_scores_agree(member, nonmember, value, delta):
    audit = dn.audit_scores(np.array(member, float), np.array(nonmember, float))
    verdict = audit.compare(dn.tradeoff(dn.ApproximateDP(value, delta)))
    shown = audit.epsilon(delta).low
    assert abs(value - shown) < 1e-6 or verdict.violated == (value < shown)
    mu = audit.mu().low
    assert abs(value - mu) < 1e-6 or audit.compare(dn.tradeoff(dn.GaussianDP(value))).violated == (value < mu)


@given(st.integers(0, 200), st.integers(1, 200), st.floats(0.0, 1.0), st.floats(0.001, 0.2))
def test_decisions_reject_exactly_the_advantages_below_their_limit(right, made, advantage, error):
    test = Decisions(min(right, made), made, 1.0)
    limit = test.advantage(error)
    if abs(limit - advantage) > 1e-9:
        p = test.p_value(Ceiling(lambda u: np.minimum(1.0, u + advantage), advantage), error)
        assert (p <= error) == (advantage < limit)


@pytest.mark.parametrize("family", [EpsilonDelta(0.0), EpsilonDelta(0.05), Gaussian(), Shift()])
@pytest.mark.parametrize("value", [0.1, 0.5, 0.9])
def test_explaining_inverts_the_advantage_of_a_ceiling(family, value):
    u = np.linspace(0, 1, 200_001)
    advantage = float(np.max(family.ceiling(u, value) - u))
    assert family.explaining(advantage) == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
@pytest.mark.parametrize("promise", [None, dn.PureDP(1.0), dn.PureDP(2.0)])
def test_silence_about_few_members_means_something_only_where_the_best_attack_is_told(m, promise):
    """At a rank that no test had, a perfect attack would have been found: a middling score was "consistent"."""
    curve = dn.tradeoff(promise or dn.PureDP(1e-9))
    for n in (20, 39, 60, 100, 300, 1000, 5000):
        others = np.random.default_rng([m, n]).normal(size=n)
        perfect, middling = (dn.audit_scores(scores, others, direction="larger") for scores in ([1e9] * m, [0.0] * m))
        told = perfect.compare(curve).violated
        assert (middling.could_find(promise and curve) <= 1) == told
        assert middling.compare(curve).outcome == ("consistent" if told else "inconclusive")
