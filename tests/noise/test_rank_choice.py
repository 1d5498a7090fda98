"""Choosing a quantile by rank: its law written out, and the trade-off between any two neighbouring data sets."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit, ndtr, ndtri

from deniable import InputError
from deniable.noise.rank_choice import RankWeights, rank_choice
from deniable.testing import insecure_noise

LOW, HIGH = -6, 9


def law(values, weights, low=LOW, high=HIGH, shift=0):
    """P(t) for each lattice point, from the definition in exact fractions, point by point."""
    table = weights.table()
    p = Fraction(round(weights.p * 20 * 2**16), 20 * 2**16)
    mass = []
    for t in range(low, high + 1):
        below, upto = sum(x < t for x in values), sum(x <= t for x in values)
        rank = p * len(values) + shift
        d = max(0, below - rank, rank - upto)
        mass.append(table[min(math.floor(20 * d), len(table) - 1)])
    return np.array([m / sum(mass) for m in mass])


@pytest.mark.parametrize("shift", [0, -2, 40])
@pytest.mark.parametrize("values", [[0, 0, 0, 4, 9, 9], [-6, -5, 1, 2, 3, 7, 8], [2] * 5, [-6, 9]])
def test_drawn_points_follow_the_law(values, shift):
    weights, draws = RankWeights(0.8, 0.4), 1500
    with insecure_noise(np.random.default_rng(4)):
        found = Counter(rank_choice(np.array(values), LOW, HIGH, weights, shift) for _ in range(draws))
    expected = law(values, weights, shift=shift) * draws
    observed = np.array([found[t] for t in range(LOW, HIGH + 1)])
    assert observed.sum() == draws  # nothing outside of the lattice
    chi = np.sum((observed - expected) ** 2 / expected)
    assert chi < len(expected) + 5 * math.sqrt(2 * len(expected))


@given(
    st.lists(st.integers(LOW, HIGH), max_size=9),
    st.integers(LOW, HIGH),
    st.integers(LOW, HIGH),
    st.floats(0, 1),
    st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    st.sampled_from([0, -3, 2, 50]),
)
def test_no_test_tells_neighbours_apart_better_than_the_gaussian_mechanism(values, hers, other, p, mu, shift):
    """Every Neyman–Pearson test, from the exact laws, of a record that is added and of one that is replaced."""
    weights = RankWeights(mu, p)
    tables = values, [*values, hers], [*values, other]
    without, first, second = (law(data, weights, shift=shift) for data in tables)
    for one, two, charged in ((first, without, mu), (without, first, mu), (first, second, weights.replaced)):
        order = np.argsort(one / two)[::-1]
        tpr, fpr = np.cumsum(one[order])[:-1], np.cumsum(two[order])[:-1]
        assert np.all(tpr <= ndtr(charged + ndtri(np.minimum(fpr, 1.0))) + 1e-12)


def test_the_charge_is_reached():
    """Of two gaps beside the median a record at the far end of one brings that nearer, and the other farther."""
    weights, end = RankWeights(1.0, 0.5), 3000
    for own, mu, odds in ((30, weights.mu, 0.5), (29, weights.replaced, 1.0)):
        start = -round(end * math.exp(weights.rate * odds))  # the larger gap is as likely before as the other after
        without = [start] * 30 + [0] * 2 + [end] * 30
        other = [start] * own + [0] * 2 + [end] * 31
        first, second = (law(data, weights, start, end) for data in (other, without))
        advantage = 0.5 * np.abs(first - second).sum()
        assert advantage <= 2 * ndtr(mu / 2) - 1
        assert advantage == pytest.approx(2 * ndtr(mu / 2) - 1, rel=2e-3)
    assert weights.mu < weights.replaced <= 2 * weights.mu


def test_log_odds_are_worth_most_around_one_half():
    """The step from bounded log-odds to Gaussian DP: Φ⁻¹(σ(x + a)) − Φ⁻¹(σ(x − a)) is largest at x = 0."""
    x = np.linspace(-25, 25, 2001)
    for a in (0.01, 0.3, 1.0, 4.0):
        assert np.all(ndtri(expit(x + a)) - ndtri(expit(x - a)) <= 2 * ndtri(expit(a)) * (1 + 1e-9))


@pytest.mark.parametrize("p", [0.5, 0.9, 0.0])
@pytest.mark.parametrize("mu", [3e-3, 0.1, 2.0, 40.0, 1e9])
def test_weights_fall_by_no_more_than_the_ratio(mu, p):
    weights = RankWeights(mu, p)
    table = weights.table()
    assert all(b <= a and a << 40 <= b * weights.ratio for a, b in pairwise(table))
    assert table[0] > 2**80 * table[-1]
    if mu < 5:
        assert 2 * ndtri(expit(weights.rate / 20 * weights.moved)) <= mu
        assert weights.moved == {0.5: 10, 0.9: 18, 0.0: 20}[p]


def test_too_small_a_budget_and_fresh_entropy():
    with pytest.raises(InputError, match="too small"):
        RankWeights(1e-8, 0.5)
    points = {rank_choice(np.arange(0), LOW, HIGH, RankWeights(0.1, 0.5)) for _ in range(60)}
    assert len(points) > 5  # no records: any point, from the operating system's entropy
    assert all(LOW <= t <= HIGH for t in points)
