"""Canaries: fair coins, models that remember are found, mechanisms with a known ε are not overstated."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import deniable as dn
from deniable.audit import audit_one_run


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    return X, (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)


@pytest.mark.parametrize("kind", ["mislabelled", "extreme"])
def test_canaries_are_put_in_by_their_coins(data, kind):
    X, y = data
    made = dn.audit.canaries(X, y, 60, kind, rng=1)
    assert made.records.shape == (60, 6)
    assert len(made.X) == len(made.y) == 400 + made.included.sum()
    rows = {(*row, label) for row, label in zip(made.X.tolist(), made.y.tolist(), strict=True)}
    inside = [(*row, label) in rows for row, label in zip(made.records.tolist(), made.labels.tolist(), strict=True)]
    assert np.all(np.array(inside)[made.included])
    if kind != "extreme":  # corners are few: one that is out may have a twin that is in
        np.testing.assert_array_equal(inside, made.included)
    assert {(*row, label) for row, label in zip(X.tolist(), y.tolist(), strict=True)} <= rows  # nobody is left out


def test_the_coins_are_fair_and_independent():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    included = np.stack([dn.audit.canaries(X, y, 10, rng=seed).included for seed in range(2000)])
    assert np.abs(included.mean(axis=0) - 0.5).max() < 0.06
    assert np.abs(np.corrcoef(included.T) - np.eye(10)).max() < 0.12
    totals = included.sum(axis=1)
    assert stats.chisquare(np.bincount(totals, minlength=11), 2000 * stats.binom.pmf(range(11), 10, 0.5)).pvalue > 1e-4


def test_mislabelled_means_another_class(data):
    X, y = data
    made = dn.audit.canaries(X, y, 100, rng=2)
    truth = {tuple(row): label for row, label in zip(X.tolist(), y, strict=True)}
    assert all(truth[tuple(row)] != label for row, label in zip(made.records.tolist(), made.labels, strict=True))


def test_extremes_are_at_the_ends(data):
    X, y = data
    made = dn.audit.canaries(X, y, 30, "extreme", rng=3)
    assert np.all((made.records == X.min(axis=0)) | (made.records == X.max(axis=0)))


def test_a_model_that_remembers_is_found(data):
    X, y = data
    made = dn.audit.canaries(X, y, 300, rng=4)
    found = made.audit(DecisionTreeClassifier(random_state=0).fit(made.X, made.y))
    assert found.epsilon().low > 2
    assert found.mu().low > 1
    assert found.compare(dn.PureDP(1.0)).violated
    assert not found.compare(dn.PureDP(found.epsilon().low * 1.01)).violated


def test_a_model_that_saw_no_canary_shows_nothing(data):
    X, y = data
    low = [
        made.audit(LogisticRegression().fit(X, y), confidence=0.9, trained=True).epsilon().low
        for made in (dn.audit.canaries(X, y, 100, rng=seed) for seed in range(40))
    ]
    assert np.mean(np.array(low) > 0) <= stats.binom.ppf(1 - 1e-4, 40, 0.1) / 40


def test_curves_are_judged_like_their_parameters():
    """The symmetric hull of a family's curve refutes what the family's own recursion refutes, but for its grid."""
    rng = np.random.default_rng(6)
    included = rng.random(800) < 0.5
    found = audit_one_run(rng.normal(size=800) + 2 * included, included)
    mu, epsilon = found.mu().low, found.epsilon(1e-3).low
    assert found.compare(dn.GaussianDP(0.98 * mu)).violated
    assert not found.compare(dn.GaussianDP(1.001 * mu)).violated
    assert found.compare(dn.ApproximateDP(0.97 * epsilon, 1e-3)).violated
    assert not found.compare(dn.ApproximateDP(1.001 * epsilon, 1e-3)).violated
    assert found.compare(dn.GaussianDP(1.5)).outcome == "consistent"
    few = audit_one_run(np.arange(4.0), np.array([0, 0, 1, 1]))
    assert few.compare(dn.PureDP(1.0)).outcome == "inconclusive"


def test_an_asymmetric_promise_is_made_symmetric():
    curve = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.2, 5))
    included = np.random.default_rng(7).random(300) < 0.5
    perfect = audit_one_run(included.astype(float), included)
    assert perfect.compare(curve).violated
    verdict = perfect.compare(curve)
    assert verdict.promised < verdict.measured.low == 1
    assert "share of right guesses" in str(verdict)


def test_canaries_that_were_not_trained_on_prove_nothing(data):
    """An audit of canaries that never reached the training "showed no leakage"."""
    X, y = data
    made = dn.audit.canaries(X, y, 200, rng=11)
    with pytest.raises(dn.InputError, match=r"nothing shows that the model was trained.*trained=True"):
        made.audit(LogisticRegression().fit(X, y))
    with pytest.raises(dn.InputError, match="a finite loss on every canary"):
        made.audit(lambda rows: np.full((len(rows), 2), 0.5), trained=True)


def test_a_negative_control_stands_beside(data):
    X, y = data
    made = dn.audit.canaries(X, y, 300, rng=4)
    found = made.audit(DecisionTreeClassifier(random_state=0).fit(made.X, made.y))
    assert len(found.controls) == 20
    assert found.false_alarms <= 0.2
    assert "attack.control" in dn.assess(found).numbers


def test_repetitions_are_a_group(data):
    X, y = data
    made = dn.audit.canaries(X, y, 300, repetitions=3, rng=12)
    assert len(made.X) == 400 + 3 * made.included.sum()
    thrice = made.audit(DecisionTreeClassifier(random_state=0).fit(made.X, made.y))
    once = replace(thrice, repetitions=1)
    assert thrice.epsilon().low == pytest.approx(once.epsilon().low / 3)
    assert thrice.mu().low == pytest.approx(once.mu().low / 3)
    low = thrice.epsilon(1e-4).low
    assert low < once.epsilon(1e-4).low / 3
    assert (
        thrice.compare(dn.PureDP(0.99 * thrice.epsilon().low)).violated
        == once.compare(dn.tradeoff(dn.PureDP(0.99 * thrice.epsilon().low)).group(3)).violated
    )
