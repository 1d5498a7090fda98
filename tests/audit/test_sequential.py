"""The sequential audit: nobody gains under the promise, every claim is nested, and looking often costs nothing."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

import deniable as dn
from deniable.audit.supermartingale import GAMMAS, choose, log_gain, reference_curves
from deniable.curves import ApproximateTradeoff, GaussianTradeoff

CURVES = [GaussianTradeoff(1.0), ApproximateTradeoff(1.0, 0.0), ApproximateTradeoff(0.5, 0.05), GaussianTradeoff(0.2)]


def sticks(curve):
    return curve.hockey_stick(GAMMAS)


def mean_payoff(bets, curve, tpr, fpr):
    """E[S] for each strategy, by enumeration of the four outcomes of a pair."""
    total = 0.0
    for hit, false in product((0, 1), repeat=2):
        chance = (tpr if hit else 1 - tpr) * (fpr if false else 1 - fpr)
        hits, falses = np.full(bets.stake.shape, hit), np.full(bets.stake.shape, false)
        total = total + chance * np.exp(log_gain(bets, hits, falses, 1, sticks(curve)))
    return total


@pytest.fixture(scope="module")
def chosen():
    rng = np.random.default_rng(0)
    sizes = [(5, 3.0), (40, 1.5), (500, 1.0), (500, 0.2)]
    return [choose(np.sort(rng.normal(mu, 1, n)), np.sort(rng.normal(0, 1, n)), reference_curves()) for n, mu in sizes]


@pytest.mark.parametrize("curve", CURVES, ids=["gaussian", "pure", "approximate", "small"])
def test_nobody_gains_on_average_under_any_promise(chosen, curve):
    for bets in chosen:
        for fpr in np.concatenate([np.linspace(0, 1, 21), [1e-4, 0.003, 0.999]]):
            most = curve.tpr(float(fpr), side="lower")
            for tpr in (most, 0.7 * most, 0.0):
                assert mean_payoff(bets, curve, tpr, fpr).max() <= 1 + 1e-12
        assert mean_payoff(bets, curve, 0.95, 0.05).max() > 1.01  # negative control: beyond the promise there is gain


def test_whoever_is_promised_more_gains_less(chosen):
    rng = np.random.default_rng(1)
    weaker = [sticks(GaussianTradeoff(mu)) for mu in (0.2, 0.5, 1.0, 2.0, 4.0)]
    for bets in chosen:
        hits, false = rng.integers(0, 21, size=(2, *bets.stake.shape))
        gains = np.stack([log_gain(bets, hits, false, 20, delta) for delta in weaker])
        assert np.all(gains[1:] <= gains[:-1] + 1e-12)


def test_the_capital_is_the_product_of_the_payoffs():
    """An oracle that follows every strategy pair by pair, from the bets that were used."""
    rng = np.random.default_rng(2)
    member, nonmember = rng.normal(1.5, 1, 60), rng.normal(0, 1, 60)
    promise = GaussianTradeoff(1.0)
    q = dn.SequentialAudit(promise)
    q._capital.take(member, nonmember)
    delta, used = sticks(promise), iter(q._capital._used)
    bets, _, _, left = next(used)
    capital = np.exp(q._capital._log_share)
    wealth = [1.0]
    for x, y in zip(member, nonmember, strict=True):
        if left == 0:
            bets, _, _, left = next(used)
        left -= 1
        for k in range(len(capital)):
            gamma = GAMMAS[bets.gamma[k]]
            p0 = delta[bets.gamma[k]] + gamma * bets.q0[k]
            factor = (1 + bets.stake[k] * ((x > bets.threshold[k]) - p0)) if bets.stake[k] * p0 < 1 else 0.0
            capital[k] *= factor * (1 - bets.stake[k] * gamma * ((y > bets.threshold[k]) - bets.q0[k]))
        wealth.append(capital.sum())
    np.testing.assert_allclose(q.path(), wealth, rtol=1e-9)
    assert q.path()[-1] == pytest.approx(wealth[-1])
    assert q.verdict().largest_wealth == pytest.approx(max(wealth), rel=1e-6)


def test_bets_are_made_before_the_scores_are_seen():
    """The future changes nothing that was decided: the capital after n pairs depends on n pairs alone."""
    rng = np.random.default_rng(3)
    member, nonmember = rng.normal(1.5, 1, 200), rng.normal(0, 1, 200)
    whole, part, one_by_one = (dn.SequentialAudit(dn.PureDP(0.5)) for _ in range(3))
    whole._capital.take(member, nonmember)
    part._capital.take(member[:37], nonmember[:37])
    for x, y in zip(member, nonmember, strict=True):
        one_by_one.update(x, y)
    np.testing.assert_array_equal(whole.path()[:38], part.path())
    np.testing.assert_allclose(whole.path(), one_by_one.path(), rtol=1e-12)
    assert one_by_one.verdict().largest_wealth == pytest.approx(whole.verdict().largest_wealth)
    assert one_by_one.verdict().violated_at == whole.verdict().violated_at is not None
    assert one_by_one.epsilon().low == pytest.approx(whole.epsilon().low, rel=0.2)


def sampled(kind, rng, n):
    if kind == "gaussian":
        return rng.normal(1, 1, n), rng.normal(0, 1, n)
    honest = np.exp(1) / (1 + np.exp(1))
    return (rng.random(n) < honest).astype(float), (rng.random(n) > honest).astype(float)


@pytest.mark.parametrize(("kind", "promise"), [("gaussian", dn.GaussianDP(1)), ("response", dn.PureDP(1))])
def test_the_worst_rule_of_stopping_errs_no_more_than_promised(kind, promise):
    """Stopping at the first violation, looking after every pair; the full count is benchmarks/audit/sequential.py."""
    rng, wrong, fixed, runs = np.random.default_rng(4), 0, 0, 60
    curve = dn.tradeoff(promise)
    for _ in range(runs):
        member, nonmember = sampled(kind, rng, 100)
        q = dn.SequentialAudit(curve)
        q.update(member, nonmember)
        wrong += q.verdict().violated
        fixed += naive_p_values(member, nonmember, curve).min() <= 0.05
    assert wrong <= 0.05 * runs + 3 * np.sqrt(0.05 * 0.95 * runs)
    assert fixed > 0.13 * runs  # negative control: an exact test for one look, asked after every pair


def naive_p_values(member, nonmember, curve):
    """After each pair, exact for one look: right decisions at the threshold ½ against the promised advantage."""
    right = np.cumsum((member > 0.5).astype(int) + (nonmember <= 0.5))
    return binom.sf(right - 1, 2 * np.arange(1, len(member) + 1), (1 + curve.advantage()) / 2)


def test_a_broken_promise_is_found_in_a_few_dozen_trainings():
    rng, needed = np.random.default_rng(5), []
    for _ in range(20):
        q = dn.SequentialAudit(dn.GaussianDP(1.0))
        q.update(rng.normal(2, 1, 300), rng.normal(0, 1, 300))
        assert q.verdict().violated
        needed.append(q.verdict().violated_at)
    assert np.median(needed) < 80


@pytest.fixture(scope="module")
def halfway():
    rng = np.random.default_rng(6)
    q = dn.SequentialAudit(dn.PureDP(1.0))
    for size in (3, 50, 200, 400):
        q.update(rng.normal(1.5, 1, size), rng.normal(0, 1, size))
    return q


def test_limits_and_verdicts_cannot_disagree(halfway):
    q = halfway
    epsilon, mu, advantage = q.epsilon().low, q.mu().low, q.advantage().low
    assert 1 < epsilon < 6
    assert 0.8 < mu < 1.5
    assert 0.25 < advantage < 2 * 0.7734 - 1
    for make, limit in ((dn.PureDP, epsilon), (dn.GaussianDP, mu)):
        assert q.compare(make(limit * 0.999)).violated
        assert not q.compare(make(limit * 1.001)).violated
    assert q.compare(dn.ApproximateDP(0, advantage * 0.999)).violated
    assert q.epsilon(0.01).low <= epsilon
    assert epsilon >= np.log((1 + advantage) / (1 - advantage)) - 1e-5
    assert q.compare(dn.GaussianDP(0.1)).violated  # below a violated one


def test_a_violation_stays():
    rng = np.random.default_rng(9)
    q = dn.SequentialAudit(dn.GaussianDP(1.0))
    while not q.verdict().violated:
        q.update(rng.normal(2, 1), rng.normal(0, 1))
    before = q.verdict()
    q.update(np.zeros(30), np.ones(30))  # evidence for the promise
    assert q.path()[-1] < 20 <= before.wealth
    assert q.verdict().outcome == "violated"
    assert q.verdict().violated_at == before.pairs == before.violated_at


def test_silence_means_something_only_if_a_perfect_attack_had_been_heard():
    rng = np.random.default_rng(7)
    q = dn.SequentialAudit(dn.PureDP(1.0))
    assert q.verdict().outcome == "inconclusive"
    assert q.path()[-1] == 1
    q.update(rng.normal(size=5), rng.normal(size=5))
    assert q.verdict().outcome == "inconclusive"
    q.update(rng.normal(size=200), rng.normal(size=200))
    assert q.verdict().outcome == "consistent"
    assert q.epsilon().low == 0
    assert q.compare(dn.PureDP(12.0)).outcome == "inconclusive"


def test_a_sorted_sample_is_shuffled():
    rng = np.random.default_rng(8)
    member, nonmember = np.sort(rng.normal(size=400)), np.sort(rng.normal(size=400))[::-1]
    q = dn.SequentialAudit(dn.PureDP(0.2))
    q.update(member, nonmember)
    assert not q.verdict().violated


def test_a_promise_with_less_than_certainty_uses_up_confidence():
    curve = GaussianTradeoff(1.0, confidence=0.99)
    assert dn.SequentialAudit(curve).verdict().confidence == pytest.approx(0.94)


def test_the_scores_of_a_pair_come_in_one_call():
    """Scores that waited for a partner of a later call, made by another attack, refuted every promise."""
    q = dn.SequentialAudit(dn.PureDP(1.0))
    for sides in ((np.ones(200), []), ([], np.zeros(200)), ([1.0, 2.0], 0.0)):
        with pytest.raises(dn.InputError, match="of one length, got"):
            q.update(*sides)
    assert q.pairs == 0
    assert q.verdict().outcome == "inconclusive"


@pytest.mark.parametrize("size", [1, 7, 40])
def test_an_attack_that_changes_between_calls_errs_no_more_than_promised(size):
    rng, wrong, runs = np.random.default_rng(11), 0, 40
    for _ in range(runs):
        q = dn.SequentialAudit(dn.GaussianDP(1.0))
        for shift in rng.normal(0, 100, 200 // size):
            q.update(rng.normal(1, 1, size) + shift, rng.normal(0, 1, size) + shift)
        wrong += q.violated
    assert wrong <= 0.05 * runs + 3 * np.sqrt(0.05 * 0.95 * runs)


def test_an_attack_without_any_difference_is_not_consistent():
    q = dn.SequentialAudit(dn.PureDP(0.5))
    q.update(np.full(300, 0.5), np.full(300, 0.5))
    assert q.verdict().outcome == "inconclusive"
    q.update(0.25, 0.5)
    assert q.verdict().outcome == "consistent"


def test_reversed_scores_speak_for_no_promise():
    """Losses in place of scores: "consistent", and no word of it."""
    rng = np.random.default_rng(11)
    q = dn.SequentialAudit(dn.GaussianDP(1.0))
    q.update(rng.normal(0, 1, 300), rng.normal(1, 1, 300))
    verdict = q.verdict()
    assert verdict.outcome == "inconclusive"
    assert "is the direction right?" in str(verdict)
    assert dn.assess(q).warnings == verdict.warnings
    q.update(rng.normal(9, 1, 300), rng.normal(0, 1, 300))  # a contradiction is one, whatever came before
    assert q.verdict().violated
