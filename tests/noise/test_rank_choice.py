"""Choosing a quantile by rank: its law written out, and the trade-off between any two neighbouring data sets."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtr, ndtri

from deniable import InputError
from deniable.noise.rank_choice import RankWeights, rank_choice
from deniable.testing import insecure_noise

LOW, HIGH = -6, 9


def law(ordered, p, weights, low=LOW, high=HIGH):
    """P(t) for each lattice point, from the definition, point by point."""
    table = weights.table()
    n = len(ordered)
    mass = []
    for t in range(low, high + 1):
        below, upto = sum(x < t for x in ordered), sum(x <= t for x in ordered)
        d = max(0, below - math.floor(p * n), math.ceil(p * n) - upto)
        mass.append(table[min(d, len(table) - 1)])
    return np.array([m / sum(mass) for m in mass])


@pytest.mark.parametrize("values", [[0, 0, 0, 4, 9, 9], [-6, -5, 1, 2, 3, 7, 8], [2] * 5, [-6, 9]])
def test_drawn_points_follow_the_law(values):
    weights, draws = RankWeights(0.8), 1500
    with insecure_noise(np.random.default_rng(4)):
        found = Counter(rank_choice(np.array(values), LOW, HIGH, 0.4, weights) for _ in range(draws))
    expected = law(values, 0.4, weights) * draws
    observed = np.array([found[t] for t in range(LOW, HIGH + 1)])
    assert observed.sum() == draws  # nothing outside of the lattice
    chi = np.sum((observed - expected) ** 2 / expected)
    assert chi < len(expected) + 5 * math.sqrt(2 * len(expected))


@given(
    st.lists(st.integers(LOW, HIGH), min_size=2, max_size=9),
    st.integers(LOW, HIGH),
    st.floats(0, 1),
    st.sampled_from([0.1, 0.5, 1.0, 3.0]),
)
def test_no_test_tells_neighbours_apart_better_than_the_gaussian_mechanism(values, other, p, mu):
    """Every Neyman–Pearson test, from the exact laws; half of μ is too little for some pair below."""
    weights = RankWeights(mu)
    first, second = law(sorted(values), p, weights), law(sorted([other, *values[1:]]), p, weights)
    order = np.argsort(first / second)[::-1]
    tpr, fpr = np.cumsum(first[order])[:-1], np.cumsum(second[order])[:-1]
    assert np.all(tpr <= ndtr(mu + ndtri(np.minimum(fpr, 1.0))) + 1e-12)


def test_the_charge_is_reached():
    """A record that moves across the median of two candidates: the advantage is that of the Gaussian mechanism."""
    weights = RankWeights(1.0)
    first, second = (law([0] * 30 + [x] + [1] * 30, 0.5, weights, 0, 1) for x in (0, 1))
    advantage = 0.5 * np.abs(first - second).sum()
    assert advantage == pytest.approx(2 * ndtr(0.5) - 1, rel=1e-8)
    assert advantage <= 2 * ndtr(0.5) - 1


def test_log_odds_are_worth_most_around_one_half():
    """The step from bounded log-odds to Gaussian DP: Φ⁻¹(σ(x + a)) − Φ⁻¹(σ(x − a)) is largest at x = 0."""
    x = np.linspace(-25, 25, 2001)
    for a in (0.01, 0.3, 1.0, 4.0):
        assert np.all(ndtri(expit(x + a)) - ndtri(expit(x - a)) <= 2 * ndtri(expit(a)) * (1 + 1e-9))


@pytest.mark.parametrize("mu", [1e-3, 0.1, 2.0, 40.0, 1e9])
def test_weights_fall_by_no_more_than_the_ratio(mu):
    weights = RankWeights(mu)
    table = weights.table()
    assert all(b <= a and a << 40 <= b * weights.ratio for a, b in pairwise(table))
    assert table[0] > 2**80 * table[-1]
    if mu < 5:
        assert 2 * ndtri(expit(weights.rate)) <= mu


def test_too_small_a_budget_and_fresh_entropy():
    with pytest.raises(InputError, match="too small"):
        RankWeights(1e-8)
    points = {rank_choice(np.arange(0), LOW, HIGH, 0.5, RankWeights(0.1)) for _ in range(60)}
    assert len(points) > 5  # no records: any point, from the operating system's entropy
    assert all(LOW <= t <= HIGH for t in points)
