"""Evidence in order: the theorem by enumeration of random mechanisms, the sums by enumeration, and its error rate."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import deniable as dn
from deniable.audit import audit_one_run
from deniable.audit.one_run_bounds import Ordered, _crossing, _limits, guesses_in_order

SEQUENCES = np.array(list(product((False, True), repeat=3)))


def probabilities(q):
    return np.prod(np.where(SEQUENCES, q, 1 - q), axis=1)


@pytest.mark.parametrize("seed", range(40))
def test_the_theorem_for_random_mechanisms_orders_and_events(seed):
    rng = np.random.default_rng(seed)
    m, outcomes = 3, 6
    law = rng.dirichlet(np.full(outcomes, rng.choice([0.3, 3.0])), size=8)  # of the output, given the coins
    flipped = [
        int(np.flatnonzero(((s ^ (np.arange(m) == i)) == SEQUENCES).all(axis=1))[0])
        for s in SEQUENCES
        for i in range(m)
    ]
    pairs = law[np.repeat(np.arange(8), m)], law[flipped]
    order = np.array([rng.permutation(m) for _ in range(outcomes)])
    says = rng.random((outcomes, m)) < 0.5
    generators = SEQUENCES[rng.integers(8, size=2)]
    event = np.any(np.all(SEQUENCES[:, None] >= generators, axis=2), axis=1)  # more right guesses never undo it
    happens = 0.0
    for s, row in zip(SEQUENCES, law, strict=True):
        for y in range(outcomes):
            right = (s == says[y])[order[y]]
            happens += row[y] / 8 * event[(right == SEQUENCES).all(axis=1)][0]
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        q = 1 / (1 + np.exp(-epsilon))
        delta = np.max(np.sum(np.maximum(pairs[0] - np.exp(epsilon) * pairs[1], 0), axis=1))
        assert happens <= probabilities(q) @ event + m * delta * (1 - q) + 1e-12


def test_negative_control_the_term_with_delta_is_needed():
    reveals, q = 0.2, 0.5  # everything is told with probability δ = 0.2, ε = 0
    assert reveals + (1 - reveals) * q**3 > q**3
    assert reveals + (1 - reveals) * q**3 <= q**3 + 3 * reveals * (1 - q)


@pytest.mark.parametrize("q", [0.5, 0.73, 0.95])
def test_crossing_by_enumeration(q):
    looks, limits = np.array([3, 5, 9, 12]), np.array([3, 5, 8, 10])
    sequences = np.array(list(product((0, 1), repeat=12)))
    met = (np.cumsum(sequences, axis=1)[:, looks - 1] >= limits).any(axis=1)
    exact = float(np.sum(q ** sequences.sum(axis=1) * (1 - q) ** (12 - sequences.sum(axis=1)) * met))
    assert exact <= _crossing(looks, limits, q) <= exact * (1 + 1e-6)


def test_limits_are_the_least_that_are_rare():
    looks = np.array([8, 40, 300, 5000])
    limits = _limits(looks, 0.7, 0.01)
    assert np.all(stats.binom.sf(limits - 1, looks, 0.7) <= 0.01 * (1 + 2e-6))
    assert np.all(stats.binom.sf(limits - 2, looks, 0.7) > 0.01)


def test_many_looks_agree_with_a_simulation():
    looks, rng = np.array(Ordered.of(np.ones(400, dtype=bool), 400, 1.0).looks), np.random.default_rng(0)
    limits = _limits(looks, 0.7, 0.02)
    counts = np.cumsum(rng.random((10_000, 400)) < 0.7, axis=1, dtype=np.int32)[:, looks - 1]
    share = np.mean((counts >= limits).any(axis=1))
    assert abs(share - _crossing(looks, limits, 0.7)) < 5 * np.sqrt(0.08 / 10_000)
    assert share > 1.5 * 0.02  # negative control: a single look's error is passed


def responses(epsilon, delta, m, rng):
    """Randomised response that also tells the truth about each canary with probability δ; noise breaks ties."""
    included = rng.random(m) < 0.5
    right = rng.random(m) < 1 / (1 + np.exp(-epsilon))
    told = rng.random(m) < delta
    scores = np.where(right | told, 2.0 * included - 1, 1 - 2.0 * included) * np.where(told, 3, 1)
    return scores + 0.1 * rng.normal(size=m), included


@pytest.mark.parametrize(("delta", "m"), [(0.0, 200), (1e-4, 400)])
def test_epsilon_is_not_overstated_and_not_missed(delta, m):
    limits = []
    for seed in range(60):
        scores, included = responses(1.0, delta, m, np.random.default_rng(seed))
        way = guesses_in_order(included[np.argsort(scores)])[1]
        limits.append(Ordered.of(way, m, 1.0).epsilon(delta, 0.05))
    assert np.mean(np.array(limits) > 1.0) <= stats.binom.ppf(1 - 1e-5, 60, 0.05) / 60
    assert np.median(limits) > 0.45


def test_few_memorised_canaries_are_found_without_a_choice_beforehand():
    rng = np.random.default_rng(0)
    included = rng.random(500) < 0.5
    run = audit_one_run(np.where(included & (rng.random(500) < 0.2), 6.0, 0.0) + rng.normal(size=500), included)
    assert run.epsilon().low > 1.8 > 1.2 * audit_one_run(rng.normal(size=500) + included, included).epsilon().low
    assert run.epsilon().method == "one run, ordered"


@pytest.mark.parametrize(("m", "telling"), [(500, 0.2), (120, 1.0), (300, 0.5), (30, 1.0)])
def test_limits_fall_in_delta_and_agree_with_verdicts(m, telling):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        included = rng.random(m) < 0.5
        scores = np.where(included & (rng.random(m) < telling), 2.5, 0.0) + rng.normal(size=m)
        run = audit_one_run(scores, included)
        deltas = np.append(0.0, np.geomspace(1e-7, 0.1, 4))
        lows = [run.epsilon(delta).low for delta in deltas]
        assert np.all(np.diff(lows) <= 0)  # (ε, δ)-DP promises less than (ε, δ/10)-DP
        assert lows[0] > 0
        for low, delta in list(zip(lows, deltas, strict=True))[::2]:
            assert run.compare(dn.ApproximateDP(1.0001 * low + 1e-6, delta)).outcome != "violated"
            if low > 0:
                found = run.compare(dn.ApproximateDP(0.999 * low, delta))
                assert found.violated
                assert found.p_value <= 0.05 + 1e-12
                assert found.measured.low > found.promised


@pytest.mark.parametrize(
    "scores", [np.zeros(80), np.repeat([0.0, 1.0], 40), np.r_[np.full(40, -np.inf), np.full(40, np.inf)]]
)
def test_tied_and_infinite_scores(scores):
    included = np.random.default_rng(0).random(80) < 0.5
    run = audit_one_run(scores, included)
    assert run.epsilon().low == run.mu().low == 0.0
    assert run.compare(dn.GaussianDP(1.0)).outcome != "violated"
    assert audit_one_run(np.where(included, 1.0, 0.0), included).epsilon().low > 1
