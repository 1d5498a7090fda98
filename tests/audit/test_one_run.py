"""One-run auditing: the f-DP bound against a linear programme, and randomised response at a known ε."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

import deniable as dn
from deniable._check import InputError
from deniable.audit import ReversedScoresWarning, audit_one_run
from deniable.audit.intervals import EpsilonDelta
from deniable.audit.one_run_bounds import largest_rejected, rejects_f_dp


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


def shown_by_all(scores, included):
    """The ε that guesses about all canaries show, by the f-DP bound."""
    right, m = int(np.sum((scores > 0.5) == included)), len(scores)
    return largest_rejected(lambda e: rejects_f_dp(EpsilonDelta(0.0), e, m, m, right, 0.05))


def test_randomised_response_is_not_overstated_and_not_missed():
    runs = 200
    limits = [shown_by_all(*randomised_response(1.0, 250, np.random.default_rng(seed))) for seed in range(runs)]
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
    run = audit_one_run(scores, included)
    assert run.guesses < 400
    for found in (run.epsilon().low, run._low(EpsilonDelta(0.0), 0.05)):
        assert found > shown_by_all(scores, included) + 0.5


def test_a_fifth_chooses_the_guesses_and_the_others_are_tested():
    rng = np.random.default_rng(0)
    included = rng.random(1000) < 0.5
    telling = np.where(included & (rng.random(1000) < 0.2), 5.0, 0.0) + rng.normal(size=1000)
    run = audit_one_run(telling, included)
    assert (run.canaries, run.pilot) == (800, 200)
    assert run.guesses < 200  # only the top tells anything
    every = replace(run, guesses=800, right=int(np.sum((telling > np.median(telling)) == included) * 0.8))
    assert run.mu().low > 2 * every.mu().low
    assert run == audit_one_run(telling, included)  # repeatable
    for m in (1, 4, 9):
        few = audit_one_run(telling[:m], included[:m])
        assert few.canaries + few.pilot == m
        assert few.mu().low < 0.5


def test_what_the_pilot_chooses_is_not_overstated():
    limits = []
    for seed in range(60):
        scores, included = randomised_response(1.0, 200, np.random.default_rng(seed))
        run = audit_one_run(scores + 0.1 * np.random.default_rng(seed).normal(size=200), included)
        limits.append(run._low(EpsilonDelta(0.0), 0.05))
    assert np.mean(np.array(limits) > 1.0) <= stats.binom.ppf(1 - 1e-5, 60, 0.05) / 60
    assert np.median(limits) > 0.4


def test_equal_scores_do_not_show_in_which_order_the_canaries_are_stored():
    """Canaries stored by side, with scores that say nothing: "violated", ε above 5.4."""
    rng, stored = np.random.default_rng(0), np.arange(1000) >= 500
    for scores in (np.zeros(1000), rng.integers(0, 2, 1000)):
        run = audit_one_run(scores, stored)
        assert run.epsilon().low < 0.3
        assert run.compare(dn.PureDP(0.5)).outcome != "violated"
        assert run.failed == (np.ptp(scores) == 0)


def test_false_alarms_of_tied_scores_stored_by_side():
    rng, stored = np.random.default_rng(1), np.arange(300) >= 150
    found = [audit_one_run(rng.normal(size=300).round(), stored).epsilon().low > 0 for _ in range(200)]
    assert np.mean(found) <= stats.binom.ppf(1 - 1e-5, 200, 0.05) / 200


@pytest.mark.parametrize("share", [1.0, 0.0, 0.7])
def test_coins_that_cannot_be_fair_are_refused(share):
    """All canaries in: whoever says "in" is always right, and an ε of 5.7 was shown of scores that say nothing."""
    rng = np.random.default_rng(2)
    with pytest.raises(InputError, match="fair coins"):
        audit_one_run(rng.normal(size=1000), rng.random(1000) < share)


def test_reversed_scores_are_refused_or_warned_of():
    rng = np.random.default_rng(3)
    included = rng.random(400) < 0.5
    losses = rng.normal(size=400) - 2 * included
    with pytest.raises(InputError, match="--reverse"):
        audit_one_run(losses, included)
    assert audit_one_run(losses, included, direction="smaller").epsilon().low > 1
    with pytest.warns(ReversedScoresWarning):
        run = audit_one_run(losses, included, direction="larger")
    assert run.warnings
    assert dn.assess(run).warnings == run.warnings


def test_equal_scores_decide_nothing():
    run = audit_one_run(np.zeros(400), np.random.default_rng(4).random(400) < 0.5)
    assert run.compare(dn.PureDP(0.01)).outcome == "inconclusive"
    assert dn.assess(run).status == "inconclusive"
    assert "the attack failed" in dn.assess(run).headline
    assert dn.assess(run).warnings == run.warnings != ()
