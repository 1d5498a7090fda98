"""Exact limits against independent integration, and the edges of what a sample can say."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate, stats

from deniable.audit.fixed_sample import Decisions, Evidence, NestedTests
from deniable.audit.intervals import (
    EpsilonDelta,
    Gaussian,
    Interval,
    Ranking,
    Tangent,
    advantage_upper,
    clopper_pearson,
    lower_limit,
    p_value,
)


def slow_p_value(ceiling, k, n, hits, m):
    """The definition, by adaptive quadrature: E_U P(Binomial(m, g(U)) ≥ hits), U ~ Beta(k, n − k + 1)."""
    law = stats.beta(k, n - k + 1)
    points = law.ppf(np.linspace(0, 1, 41)[1:-1])
    value, _ = integrate.quad(
        lambda u: law.pdf(u) * stats.binom.sf(hits - 1, m, min(1.0, float(ceiling(np.array(u))))),
        0, 1, points=list(points), limit=400,
    )  # fmt: skip
    return value


@pytest.mark.parametrize(
    ("k", "n", "hits", "m"),
    [(1, 50, 5, 50), (5, 50, 12, 40), (30, 300, 60, 300), (3, 40, 5000, 40_000), (900, 1000, 980, 1000)],
)
@pytest.mark.parametrize(
    "ceiling", [lambda u: EpsilonDelta(0.01).ceiling(u, 0.7), lambda u: Gaussian().ceiling(u, 0.5)]
)
def test_p_value_is_the_integral_it_claims(ceiling, k, n, hits, m):
    got = float(p_value(ceiling, k, n, hits, m, kink=None, error=0.05))
    assert got == pytest.approx(slow_p_value(ceiling, k, n, hits, m), rel=2e-3, abs=3e-6)


def test_p_value_of_no_hits_is_one():
    assert p_value(lambda u: u, 3, 20, 0, 20, kink=None, error=0.05) == pytest.approx(1.0, abs=1e-4)


@given(st.integers(1, 40), st.integers(0, 60))
def test_lower_limits_grow_with_the_hits(k, hits):
    family = EpsilonDelta(0.0)
    assert lower_limit(family, k, 40, hits, 61, 0.05) <= lower_limit(family, k, 40, hits + 1, 61, 0.05)


def test_lower_limit_is_on_the_rejected_side():
    limit = lower_limit(Gaussian(), 20, 200, 90, 200, 0.05)
    p = p_value(lambda u: Gaussian().ceiling(u, limit), 20, 200, 90, 200, kink=None, error=0.05)
    assert 0.0499 < p <= 0.05


@given(st.floats(0.01, 0.5), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_every_concave_roc_lies_below_its_tangent_family(fpr, shape, level):
    # a concave piecewise linear ROC with value v at fpr: (0, a)-(fpr, v)-(1, 1) with a ≤ v
    value = fpr + level * (1 - fpr)
    start = shape * max(0.0, (value - fpr) / (1 - fpr))
    slope = (value - start) / value  # left slope in units of value / fpr
    u = np.linspace(0, 1, 101)
    roc = np.where(u < fpr, start + (value - start) * u / fpr, value + (1 - value) * (u - fpr) / (1 - fpr))
    assert np.all(roc <= Tangent(fpr, slope, slope).ceiling(u, value) + 1e-12)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**31))
def test_ranking_counts_members_above_each_nonmember(m, n, seed):
    rng = np.random.default_rng(seed)
    member, nonmember = rng.normal(size=m), rng.normal(size=n)
    expected = [(member > y).sum() for y in np.sort(nonmember)[::-1]]
    np.testing.assert_array_equal(Ranking.of(member, nonmember, rng).above, expected)


def test_ties_are_broken_at_random_not_in_favour_of_a_side():
    same = np.zeros(500)
    first = [Ranking.of(same, same, np.random.default_rng(seed)).above[249] for seed in range(200)]
    assert np.mean(first) == pytest.approx(250, abs=5)


@pytest.mark.parametrize("h", [3, 20, 60])
def test_upper_limit_of_the_advantage_misses_at_most_as_often_as_it_may(h):
    """Two binomials of h, every outcome enumerated: P(limit < advantage) for a grid of rates."""
    error = 0.025
    x = np.arange(h + 1)
    limit = np.array([_evidence(h, lead).advantage_upper(error) for lead in range(h + 1)])
    seen = limit[np.maximum(x[:, None] - x, 0)]  # of x members and y nonmembers accused
    missed = []
    for tpr in np.linspace(0, 1, 41):
        for fpr in np.linspace(0, tpr, 11):
            chance = np.outer(stats.binom.pmf(x, h, tpr), stats.binom.pmf(x, h, fpr))
            missed.append(float(chance[seen < tpr - fpr - 1e-12].sum()))
    assert max(missed) <= error
    assert h < 20 or max(missed) > error / 2  # not uselessly wide
    # negative control: half a standard error less is too short
    short = seen - 0.5 * np.sqrt(0.5 / h)
    assert h < 20 or stats.binom.pmf(x, h, 0.75) @ (short < 0.5) @ stats.binom.pmf(x, h, 0.25) > error


def _evidence(h, lead):
    some = Ranking(np.zeros(h, dtype=np.int64), h)
    return Evidence(some, NestedTests((Decisions(0, 0, 1.0),), (), ()), h, 0, h + lead)


def test_very_unequal_samples_use_all_scores():
    rng = np.random.default_rng(0)
    few, many = rng.normal(1, 1, 50), rng.normal(0, 1, 5000)
    found = Evidence.of(few, many, rng)
    assert found.advantage_upper(0.025) == advantage_upper(found.full, 0.025)


def test_clopper_pearson_matches_scipy():
    for hits, trials in ((0, 10), (3, 10), (10, 10), (700, 1000)):
        expected = stats.binomtest(hits, trials).proportion_ci(0.9, method="exact")
        assert clopper_pearson(hits, trials, 0.05) == pytest.approx((expected.low, expected.high))


def test_printed_ends_are_rounded_outwards():
    printed = str(Interval(low=0.123456, high=0.654321, estimate=0.5, confidence=0.95, of="TPR"))
    assert "between 0.1234 and 0.6544" in printed
