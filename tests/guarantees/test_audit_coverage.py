"""Promise: each interval of an audit holds the truth at least as often as it says, and is not uselessly wide.

Reduced to 120 simulations a case (benchmarks/audit/coverage.py runs 2,000 on the full grid). A case fails if fewer
hold than the 1-in-100,000 quantile of a binomial at the nominal rate.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

import deniable as dn
from deniable.audit.fixed_sample import Ceiling, Threshold, candidate_ranks
from deniable.audit.intervals import clopper_pearson

SIMULATIONS = 120
NOMINAL = 0.95
ENOUGH = stats.binom.ppf(1e-5, SIMULATIONS, NOMINAL) / SIMULATIONS  # 0.87


def gaussian(mu):
    return lambda rng, n: (rng.normal(mu, 1, n), rng.normal(0, 1, n))


def randomised_response(rng, n):  # epsilon 1
    p = 1 / (1 + np.exp(-1))
    return (rng.random(n) < p).astype(float), (rng.random(n) < 1 - p).astype(float)


def few_exposed(rng, n):
    return rng.normal(0, 1, n) + 100 * (rng.random(n) < 0.03), rng.normal(0, 1, n)


CASES = {  # scores, ROC, advantage, AUC
    "nothing leaks": (gaussian(0), lambda a: a, 0.0, 0.5),
    "Gaussian": (gaussian(1), lambda a: ndtr(ndtri(a) + 1), 2 * ndtr(0.5) - 1, ndtr(1 / np.sqrt(2))),
    "randomised response": (
        randomised_response,
        lambda a: min(np.e * a, 1 - (1 - a) / np.e),
        np.tanh(0.5),
        1 / (1 + np.exp(-1)),
    ),
    "a few exposed": (few_exposed, lambda a: 0.03 + 0.97 * a, 0.03, 0.515),
}


def share(sample, n, held):
    results = [held(*sample(np.random.default_rng([seed, n]), n)) for seed in range(SIMULATIONS)]
    return np.mean(results, axis=0)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("n", "fpr"), [(50, 0.1), (2000, 0.001)])
@pytest.mark.filterwarnings("ignore::deniable.audit.ReversedScoresWarning")
def test_intervals_cover(name, n, fpr):
    sample, roc, advantage, auc = CASES[name]

    def held(member, nonmember):
        # of the null samples one in 1,000 looks reversed
        audit = dn.audit_scores(member, nonmember, NOMINAL, direction="larger")
        return roc(fpr) in audit.tpr(fpr), advantage in audit.advantage(), auc in audit.auc()

    assert np.all(share(sample, n, held) >= ENOUGH)


@pytest.mark.parametrize("n", [100, 2000])
def test_lower_limits_of_epsilon_and_mu_hold(n):
    gdp = dn.tradeoff(dn.GaussianDP(1.0)).epsilon(0.01)
    epsilon = share(randomised_response, n, lambda x, y: dn.audit_scores(x, y).epsilon().low <= 1.0)
    both = share(gaussian(1), n, lambda x, y: _limits_hold(dn.audit_scores(x, y), gdp))
    assert epsilon >= ENOUGH
    assert np.all(both >= ENOUGH)


def _limits_hold(audit, epsilon_at_delta):
    return audit.mu().low <= 1.0, audit.epsilon(0.01).low <= epsilon_at_delta


def test_limits_are_not_uselessly_wide():
    # at n = 1,000 some simulations must miss (coverage ≤ 0.995), and limits must come near the truth
    misses = 1 - share(gaussian(1), 1000, lambda x, y: _all_hold(dn.audit_scores(x, y)))
    assert np.all(misses > 0)
    audit = dn.audit_scores(*randomised_response(np.random.default_rng(0), 5000))
    assert audit.epsilon().low > 0.8
    audit = dn.audit_scores(*gaussian(1)(np.random.default_rng(0), 5000))
    assert audit.mu().low > 0.85
    assert audit.tpr(0.1).high - audit.tpr(0.1).low < 0.08


def _all_hold(audit):
    return ndtr(ndtri(0.1) + 1) in audit.tpr(0.1), ndtr(1 / np.sqrt(2)) in audit.auc()


def test_negative_control_intervals_that_forget_the_fpr_miss_too_often():
    # the usual practice: a binomial interval at the empirical threshold, as if its FPR were known
    def held(member, nonmember):
        hits = int((member > np.quantile(nonmember, 0.99)).sum())
        low, high = clopper_pearson(hits, len(member), 0.025)
        return low <= ndtr(ndtri(0.01) + 1) <= high

    assert share(gaussian(1), 1000, held) < ENOUGH


@pytest.mark.filterwarnings("ignore::deniable.audit.ReversedScoresWarning")
def test_negative_control_the_best_looking_threshold_overstates_epsilon():
    # quoting the largest of many uncorrected lower limits
    def held(member, nonmember):
        audit = dn.audit_scores(member, nonmember)
        ranking = audit.evidence.full
        from deniable.audit.intervals import EpsilonDelta

        return max(ranking.lower_limit(EpsilonDelta(0.0), k, 0.05) for k in (2, 5, 10, 20, 50, 100, 150)) <= 0.0

    assert share(gaussian(0), 200, held) < ENOUGH


def ordinal(rng, n):
    """Four tied values; the likelihood ratios e^{±1}, e^{±0.3} attain (1, 0)-DP at the ends only."""
    p = np.array([0.1, 0.2, 0.3, 0.4])
    q = p * np.exp([1.0, 0.3, -0.3, -1.0])
    p, q = p / p.sum(), q / q.sum()
    return rng.choice(4, n, p=p).astype(float), rng.choice(4, n, p=q).astype(float)


def ordinal_ceiling():
    p = np.array([0.1, 0.2, 0.3, 0.4])
    q = p * np.exp([1.0, 0.3, -0.3, -1.0])
    return dn.PureDP(float(np.max(np.abs(np.log((p / p.sum()) / (q / q.sum()))))))


def approximate(rng, n):
    """The worst pair of (1, 0.05)-DP: a few recognised with certainty, randomised response for the others."""
    seen, p = rng.random((2, n)) < 0.05, 1 / (1 + np.exp(-1))
    inside, outside = (rng.random(n) < p).astype(float), (rng.random(n) < 1 - p).astype(float)
    return np.where(seen[0], np.inf, inside), np.where(seen[1], -np.inf, outside)


KEPT = {  # scores that attain the promise: the hardest case
    "Gaussian": (gaussian(1), dn.GaussianDP(1.0)),
    "randomised response": (randomised_response, dn.PureDP(1.0)),
    "approximate": (approximate, dn.ApproximateDP(1.0, 0.05)),
    "ordinal": (ordinal, ordinal_ceiling()),
    "nothing leaks, tied": (lambda rng, n: (rng.integers(0, 3, n) * 1.0, rng.integers(0, 3, n) * 1.0), dn.PureDP(0.0)),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("n", [50, 500])
@pytest.mark.filterwarnings("ignore::deniable.audit.ReversedScoresWarning")
def test_a_kept_promise_is_rarely_called_violated(name, n):
    sample, promise = KEPT[name]
    curve = dn.tradeoff(promise)
    assert share(sample, n, lambda x, y: dn.audit_scores(x, y).compare(curve).violated) <= 1 - ENOUGH


def test_the_limits_of_whole_curves_hold_together():
    curve = dn.tradeoff(dn.GaussianDP(1.0))
    truth = {delta: curve.epsilon(delta) for delta in (1e-4, 0.01, 0.1)}

    def held(member, nonmember):
        audit = dn.audit_scores(member, nonmember)
        return (
            audit.mu().low <= 1
            and audit.advantage().low <= curve.advantage()
            and all(audit.epsilon(delta).low <= epsilon for delta, epsilon in truth.items())
        )

    assert share(gaussian(1), 500, held) >= ENOUGH


def test_negative_control_tests_that_are_not_paid_for_accuse_too_often():
    # every candidate threshold at the full level, instead of the chosen ones at theirs
    curve = dn.tradeoff(dn.GaussianDP(1.0))
    ceiling = Ceiling(curve.tpr, curve.advantage())

    def accused(member, nonmember):
        ranking = dn.audit_scores(member, nonmember).evidence.full
        tests = [Threshold(ranking, int(k), 1.0) for k in candidate_ranks(ranking.n)]
        return min(test.p_value(ceiling, 0.05) for test in tests) <= 0.05

    assert share(gaussian(1), 500, accused) > 1 - ENOUGH


def test_a_broken_promise_is_found():
    promise = dn.tradeoff(dn.GaussianDP(0.5))
    assert share(gaussian(1), 500, lambda x, y: dn.audit_scores(x, y).compare(promise).violated) > 0.8
