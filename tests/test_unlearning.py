"""Deletion capacity: the chain rule, brute force over mechanisms, and the limits."""

import itertools
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable import unlearning

PRIORS = st.floats(1e-6, 1 - 1e-6)


def worst_out(epsilon: float, prior: float) -> float:
    """Corollary 1 as its own proof gives it."""
    return 1 / (1 + np.exp(epsilon) * prior / (1 - prior))


@given(st.floats(0, 20), PRIORS, st.floats(0.01, 0.999))
def test_capacity_is_the_largest_power_that_keeps_the_confidence(epsilon, prior, confidence):
    m = unlearning.deletion_capacity(epsilon, prior, confidence)
    assert unlearning.guarantee(epsilon, np.full(min(m, 10_000), prior)) >= confidence * (1 - 1e-9)
    if m < 10_000:
        assert worst_out(epsilon, prior) ** (m + 1) < confidence * (1 + 1e-9)


def test_capacity_by_exact_arithmetic():
    """At ε = 0, L = 1 − prior, and powers of two are exact."""
    for m in range(1, 20):
        confidence = Fraction(3, 4) ** m
        assert unlearning.deletion_capacity(0, 0.25, float(confidence)) in (m - 1, m)
        assert unlearning.deletion_capacity(0, 0.25, float(confidence) * 1.0001) == m - 1
        assert unlearning.deletion_capacity(0, 0.25, float(confidence) * 0.9999) == m
    assert unlearning.deletion_capacity(0, 0.5, 0.25) == 2


@given(st.floats(0, 5), st.floats(0, 5), PRIORS, PRIORS, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_capacity_falls_with_epsilon_prior_and_confidence(e1, e2, p1, p2, b1, b2):
    (e1, e2), (p1, p2), (b1, b2) = sorted((e1, e2)), sorted((p1, p2)), sorted((b1, b2))
    assert unlearning.deletion_capacity(e1, p1, b1) >= unlearning.deletion_capacity(e2, p2, b2)


def test_guarantee_holds_for_mechanisms_with_dependent_posteriors():
    """Random ε-DP mechanisms on the subsets of three records: the product bound holds although posteriors depend."""
    rng = np.random.default_rng(3)
    epsilon, priors = 0.8, np.array([0.3, 0.5, 0.1])
    subsets = list(itertools.product((0, 1), repeat=3))
    chance = np.array([np.prod(np.where(s, priors, 1 - priors)) for s in subsets])
    closest, dependence = np.inf, 0.0
    for _ in range(500):
        # log-likelihoods of one output: any function that moves by ≤ ε per record (a rescaled random one), so the
        # output can be completed to an ε-DP mechanism by a scaling that cancels in the posterior
        logs = rng.normal(size=8)
        steps = [abs(logs[i] - logs[j]) for i, a in enumerate(subsets) for j, b in enumerate(subsets)
                 if np.abs(np.subtract(a, b)).sum() == 1]  # fmt: skip
        logs *= epsilon / max(steps)
        posterior = chance * np.exp(logs)
        posterior /= posterior.sum()
        closest = min(closest, posterior[0] - unlearning.guarantee(epsilon, priors))
        out = [sum(p for p, s in zip(posterior, subsets, strict=True) if not s[i]) for i in range(3)]
        dependence = max(dependence, abs(posterior[0] - np.prod(out)))
    assert closest >= 0
    assert dependence > 0.01
    # attained by independent randomised response on each record
    logs = epsilon * np.array([sum(s) for s in subsets])
    posterior = chance * np.exp(logs) / np.sum(chance * np.exp(logs))
    assert posterior[0] == pytest.approx(unlearning.guarantee(epsilon, priors), rel=1e-12)


@given(st.floats(0, 3), st.lists(PRIORS, min_size=1, max_size=8), st.floats(0.05, 0.95))
def test_any_records_within_the_capacity_of_records_are_covered(epsilon, priors, confidence):
    m = unlearning.deletion_capacity_of_records(epsilon, priors, confidence)
    assert 0 <= m <= len(priors)
    for chosen in itertools.combinations(priors, m):
        assert unlearning.guarantee(epsilon, chosen) >= confidence
    if m < len(priors):
        assert unlearning.guarantee(epsilon, sorted(priors)[-(m + 1) :]) < confidence


def test_the_capacity_of_records_meets_the_limit_itself_at_its_very_edge():
    """B was compared with a product in another order and without its rounding: an ulp off."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        epsilon, priors = rng.uniform(0, 2), rng.uniform(0.001, 0.6, rng.integers(1, 9))
        worst, m = np.sort(priors)[::-1], int(rng.integers(1, len(priors) + 1))
        edge = unlearning.guarantee(epsilon, worst[:m])
        assert edge == unlearning.guarantee(epsilon, rng.permutation(worst[:m]))
        assert unlearning.deletion_capacity_of_records(epsilon, priors, edge) == m
        assert unlearning.deletion_capacity_of_records(epsilon, priors, np.nextafter(edge, 1)) == m - 1
    assert unlearning.deletion_capacity_of_records(1, [], 0.5) == 0


def test_one_prior_and_equal_priors_agree():
    assert (
        unlearning.deletion_capacity_of_records(1, [0.01] * 50, 0.8) == unlearning.deletion_capacity(1, 0.01, 0.8) == 8
    )
    assert unlearning.deletion_capacity_of_records(1, [0.01] * 3, 0.8) == 3


def test_shapes_and_limits():
    found = unlearning.deletion_capacity([[0], [1]], [0.001, 0.01, 0.1], 0.8)
    assert found.shape == (2, 3)
    assert found[1, 1] == unlearning.deletion_capacity(1, 0.01, 0.8)
    assert list(unlearning.deletion_capacity([700, np.inf], 0.01, 0.8)) == [0, 0]
    assert unlearning.deletion_capacity(0, 5e-324, 0.5) == 2**62
    assert unlearning.guarantee(1, []) == pytest.approx(1)
    assert unlearning.guarantee(np.inf, [0.1]) == 0


def test_figure_7_corrected():
    """The capacity falls with the training size, where the trend of Sekhari et al. grows."""
    shares = np.array([25, 50, 100, 200]) / 1e4
    capacity = unlearning.deletion_capacity(1.0, shares, 0.8)
    assert list(capacity) == [np.floor(np.log(0.8) / np.log(worst_out(1.0, share))) for share in shares]
    assert np.all(np.diff(capacity) < 0)


def test_the_guarantee_is_rounded_down_where_log_odds_cancel():
    """ε = 600 beside log-odds of −598: each is rounded, and B is the exponential of their sum."""
    rng = np.random.default_rng(3)
    for epsilon in (1.0, 30.0, 600.0):
        for prior in np.exp(rng.uniform(-epsilon - 3, -epsilon + 1, 20)) / 3:
            with mp.workdps(60):
                pi = mp.mpf(float(prior))
                truth = 1 / (1 + mp.exp(mp.mpf(epsilon)) * pi / (1 - pi))
                assert unlearning.guarantee(epsilon, [prior]) <= truth
