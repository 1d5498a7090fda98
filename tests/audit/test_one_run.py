"""One-run auditing: the two theorems against slow oracles, and randomised response at a known ε."""

import numpy as np
import pytest
from scipy import optimize, stats

import deniable as dn
from deniable.audit import OneRunAudit, audit_one_run
from deniable.audit.families import EpsilonDelta
from deniable.audit.guessing import p_value, rejects_f_dp


def slow_steinke(epsilon, delta, m, r, v):
    """Theorem 5.2 term by term."""
    law = stats.binom(r, 1 / (1 + np.exp(-epsilon)))
    alpha = max(sum(law.pmf(j) for j in range(v - i, v) if j >= 0) / i for i in range(1, v + 1))
    return min(1.0, law.sf(v - 1) + 2 * m * delta * alpha)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("m", "r", "v"), [(20, 20, 15), (50, 20, 19), (30, 30, 30), (10, 4, 1)])
@pytest.mark.parametrize("delta", [0.0, 1e-4, 1e-2])
def test_steinke_bound(epsilon, m, r, v, delta):
    assert p_value(epsilon, delta, m, r, v) == pytest.approx(slow_steinke(epsilon, delta, m, r, v), rel=1e-9)


def largest_tail(epsilon, delta, m, r, v):
    """max P(N ≥ v) over all laws of N that meet the theorem's tail inequalities: a linear programme."""
    rows, limits = [], []
    j = np.arange(r + 1)
    for first in range(1, r + 1):
        right = np.where(j >= first, j / m, 0.0)
        wrong = np.where(j >= first - 1, (r - j) / m, 0.0)
        # R ≤ δ + e^ε·H and R ≤ 1 − e^{−ε}(1 − δ − H)
        rows += [right - np.exp(epsilon) * wrong, right - np.exp(-epsilon) * wrong]
        limits += [delta, 1 - np.exp(-epsilon) * (1 - delta)]
    found = optimize.linprog(
        -(j >= v).astype(float), A_ub=np.array(rows), b_ub=limits, A_eq=np.ones((1, r + 1)), b_eq=[1.0], bounds=(0, 1)
    )
    return -found.fun


@pytest.mark.parametrize(("m", "r", "v"), [(12, 12, 9), (30, 12, 11), (25, 25, 18), (40, 10, 10)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.4, 0.0), (1.0, 1e-2), (0.3, 0.05)])
def test_f_dp_recursion_is_the_linear_programme(m, r, v, epsilon, delta):
    tail = largest_tail(epsilon, delta, m, r, v)
    family = EpsilonDelta(delta)
    assert not rejects_f_dp(family, epsilon, m, r, v, tail * 0.999)
    if tail < 0.99:
        assert rejects_f_dp(family, epsilon, m, r, v, tail * 1.001)


def randomised_response(epsilon, m, rng):
    included = rng.random(m) < 0.5
    right = rng.random(m) < 1 / (1 + np.exp(-epsilon))
    return np.where(right, included, ~included).astype(float), included


@pytest.mark.parametrize("bound", ["steinke", "f-dp"])
def test_randomised_response_is_not_overstated_and_not_missed(bound):
    runs, limits = 200, []
    for seed in range(runs):
        scores, included = randomised_response(1.0, 250, np.random.default_rng(seed))
        limits.append(audit_one_run(scores, included, guesses=250).epsilon(bound=bound).low)
    assert np.mean(np.array(limits) > 1.0) <= stats.binom.ppf(1 - 1e-5, runs, 0.05) / runs
    assert np.median(limits) > 0.65


def test_negative_control_the_point_estimate_is_overstated_half_the_time():
    over = []
    for seed in range(200):
        scores, included = randomised_response(1.0, 500, np.random.default_rng(seed))
        right = np.mean((scores > 0.5) == included)
        over.append(np.log(right / (1 - right)) > 1.0)
    assert np.mean(over) > 0.3


def test_abstaining_helps_when_few_canaries_are_telling():
    rng = np.random.default_rng(1)
    included = rng.random(1000) < 0.5
    scores = rng.normal(size=1000) + np.where(rng.random(1000) < 0.1, np.where(included, 10, -10), 0)
    every, few = (audit_one_run(scores, included, guesses=r).epsilon().low for r in (1000, 100))
    assert few > every + 0.5
    assert audit_one_run(scores, included).epsilon().low > every  # tries several, corrected


def test_mu_of_gaussian_canaries():
    rng = np.random.default_rng(2)
    included = rng.random(2000) < 0.5
    scores = rng.normal(size=2000) + included
    assert 0.5 < audit_one_run(scores, included).mu().low < 1.0


def test_delta_weakens_the_claim():
    audit = OneRunAudit(1000, (1000,), (800,))
    assert audit.epsilon(1e-3).low < audit.epsilon(1e-5).low <= audit.epsilon().low
    assert audit.epsilon().method == "one run, f-dp"
    assert "steinke" in audit.epsilon(bound="steinke").method


@pytest.mark.parametrize(
    ("scores", "included", "options", "message"),
    [
        ([1.0, float("nan")], [1, 0], {}, "got nan"),
        ([], [], {}, "not empty"),
        ([1.0, 2.0], [1], {}, "of one length"),
        ([1.0, 2.0], [1, 2], {}, "True or False"),
        ([1.0, 2.0], [1, 0], {"guesses": 3}, "at most the number of canaries"),
        ([1.0, 2.0], [1, 0], {"guesses": 0}, "at least 1"),
        ([1.0, 2.0], [1, 0], {"confidence": 2}, "confidence"),
    ],
)
def test_bad_input(scores, included, options, message):
    with pytest.raises(dn.InputError, match=message):
        audit_one_run(scores, included, **options)


def test_a_fifth_chooses_the_guesses_and_the_others_are_tested():
    rng = np.random.default_rng(0)
    included = rng.random(1000) < 0.5
    telling = np.where(included & (rng.random(1000) < 0.2), 5.0, 0.0) + rng.normal(size=1000)
    run = audit_one_run(telling, included)
    assert (run.canaries, run.pilot) == (800, 200)
    assert max(run.guesses) < 200  # only the top tells anything
    assert run.mu().low > 2 * audit_one_run(telling, included, guesses=(1000, 500, 250, 100)).mu().low
    assert run == audit_one_run(telling, included)  # repeatable
    assert audit_one_run(telling[:49], included[:49]).pilot == 0


def test_what_the_pilot_chooses_is_not_overstated():
    limits = []
    for seed in range(60):
        scores, included = randomised_response(1.0, 200, np.random.default_rng(seed))
        run = audit_one_run(scores + 0.1 * np.random.default_rng(seed).normal(size=200), included)
        limits.append(run.epsilon(bound="steinke").low)
    assert np.mean(np.array(limits) > 1.0) <= stats.binom.ppf(1 - 1e-5, 60, 0.05) / 60
    assert np.median(limits) > 0.4


def test_gaussian_epsilon_is_that_of_mu():
    rng = np.random.default_rng(0)
    included = rng.random(2000) < 0.5
    run = audit_one_run(rng.normal(size=2000) + 2 * included, included)
    curve = dn.tradeoff(dn.GaussianDP(run.mu().low))
    found = run.epsilon(1e-5, bound="gaussian").low
    assert found == pytest.approx(curve.epsilon(1e-5), rel=1e-6)
    assert found <= curve.epsilon(1e-5)
    assert found > run.epsilon(1e-5, bound="f-dp").low
    with pytest.raises(dn.InputError, match="delta must be above 0"):
        run.epsilon(bound="gaussian")
