"""Shadow models: design, caching, every kind of estimator, and the known ordering of the attacks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeRegressor

import deniable as dn
from deniable import InputError
from deniable.audit.scoring import METHODS, Shown, score
from deniable.audit.shadow import balanced_design, model_signals, signals

OVERFIT = make_pipeline(StandardScaler(), LogisticRegression(C=100, max_iter=400, tol=1e-3))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    keep = np.random.default_rng(0).permutation(len(y))[:900]
    return X[keep], y[keep]


def test_every_record_is_in_exactly_half_of_the_models():
    member = balanced_design(10, 500, np.random.default_rng(0))
    assert (member.sum(axis=0) == 5).all()
    assert abs(np.corrcoef(member[0], member[1])[0, 1] + 1 / 9) < 0.2  # no two models are complements


def test_signal_is_the_log_odds_of_the_true_class():
    p = np.array([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0]])
    got = signals(lambda X: p, np.array([0, 1, 2]), None, np.array([1, 2, 1]))
    assert got == pytest.approx([0.0, -30.0, 30.0])
    # a class that the model has never seen has probability 0
    assert signals(lambda X: p[:1, :2], np.array([0, 1]), None, np.array([5]))[0] == -30.0


def test_lira_is_the_ratio_of_two_gaussians():
    """Variances of the first record, 2 and ½, are drawn towards those of both records, 1 and ¼, as by 8 more models."""
    sides = [[1.0, 5.0], [3.0, 5.0]], [[-1.0, 2.0], [0.0, 2.0]]
    inside, outside = (Shown.of(np.array(side, dtype=float), "classification") for side in sides)
    target = np.array([1.5, 4.0])
    s_in, s_out = np.sqrt((8 + 2) / 9), np.sqrt((8 / 4 + 1 / 2) / 9)
    expected = -((1.5 - 2) ** 2) / (2 * s_in**2) - np.log(s_in) + (1.5 + 0.5) ** 2 / (2 * s_out**2) + np.log(s_out)
    assert score("lira", target, inside, outside, "classification")[0] == pytest.approx(expected)


def test_loss_then_calibrated_then_lira_on_an_overfitted_model(digits):
    found = {
        m: dn.audit_scores(*dn.attack_estimator(OVERFIT, *digits, method=m, n_shadows=32, rng=1, n_targets=8))
        for m in METHODS
    }
    low_fpr = {m: a.tpr(0.01).estimate for m, a in found.items()}
    assert low_fpr["loss"] < low_fpr["calibrated"] < low_fpr["lira"]
    assert low_fpr["loss"] < low_fpr["rmia"]
    auc = {m: a.auc().estimate for m, a in found.items()}
    assert auc["loss"] < auc["calibrated"] < auc["lira"]
    assert auc["loss"] < auc["lira-offline"]


def test_negative_control_models_that_ignore_the_data_leak_nothing():
    # signals that do not depend on membership: any advantage would be an artefact of the design
    def train(X, y, seed):
        noise = np.random.default_rng(seed).random(2000)
        return lambda Z: noise[: len(Z)]

    y = np.arange(2000) % 2
    for method in METHODS:
        scores = dn.attack_estimator(train, np.zeros((2000, 1)), y, method=method, n_shadows=8, rng=0, n_targets=8)
        assert 0.5 in dn.audit_scores(*scores, 0.9999, direction="larger").auc()


def test_of_several_targets_the_first_is_audited():
    data = load_iris(return_X_y=True)
    one, two = (dn.attack_estimator(GaussianNB(), *data, "loss", 2, rng=0, n_targets=n) for n in (1, 2))
    inside, outside = two.details["members_of_targets"][0], 150 - two.details["members_of_targets"][0]
    assert (len(two.audit().member), len(two.audit().nonmember)) == (inside, outside)
    assert np.array_equal(two.audit().member, two.member_scores[:inside])
    assert len(one.audit().member) == len(one.member_scores)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_on_frames_and_string_labels(method):
    frame = load_iris(as_frame=True)
    names = frame.target.map(dict(enumerate(frame.target_names)))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e3))
    scores = dn.attack_estimator(model, frame.data, names, method=method, n_shadows=8, rng=0)
    member, nonmember = scores
    assert len(member) + len(nonmember) == 150
    assert np.isfinite(np.concatenate([member, nonmember])).all()
    assert set(scores.details["member_records"]).isdisjoint(scores.details["nonmember_records"])


def test_a_class_that_the_model_has_not_seen_is_as_unlikely_as_can_be():
    X, y = load_iris(return_X_y=True)
    for seen in ([0, 1], [0, 2], [1, 2]):
        model = LinearSVC().fit(X[np.isin(y, seen)], y[np.isin(y, seen)])
        unseen = ~np.isin(y, seen)
        told = model_signals(model, X, y, "classification")
        np.testing.assert_allclose(told[unseen], -np.abs(model.decision_function(X[unseen])))
    model = LinearSVC().fit(X, y)
    told = model_signals(model, X, np.where(y == 1, 7, y), "classification")
    margins = model.decision_function(X[y == 1])
    np.testing.assert_allclose(told[y == 1], margins.min(axis=1) - margins.max(axis=1))
    with pytest.raises(InputError, match="decision_function_shape='ovr'"):
        model_signals(
            SVC(decision_function_shape="ovo").fit(*load_digits(return_X_y=True)),
            *load_digits(return_X_y=True),
            "classification",
        )


@pytest.mark.parametrize("method", METHODS)
def test_regressors(method):
    X, y = load_diabetes(return_X_y=True)
    audit = dn.attack_estimator(DecisionTreeRegressor(), X, y, method=method, n_shadows=8, rng=0).audit()
    assert audit.advantage().low > 0.25  # a full tree repeats its training labels
    dn.attack_estimator(Ridge(), pd.DataFrame(X), y, method=method, n_shadows=8, rng=0)


def test_a_train_function_stands_for_any_framework():
    X, y = load_iris(return_X_y=True)
    seen = []

    def train(X, y, seed):
        seen.append(seed)
        return LogisticRegression(C=100, max_iter=500).fit(X, y).predict_proba

    scores = dn.attack_estimator(train, X, y, n_shadows=8, rng=0)
    assert scores.target == "train"
    assert len(set(seen)) == 9  # 8 shadows and the target


def test_seeds_make_it_repeatable_and_jobs_do_not_matter():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=5)
    first = dn.attack_estimator(forest, X, y, n_shadows=6, rng=3)
    again = dn.attack_estimator(forest, X, y, n_shadows=6, rng=3, n_jobs=2)
    other = dn.attack_estimator(forest, X, y, n_shadows=6, rng=4)
    np.testing.assert_array_equal(first.member_scores, again.member_scores)
    assert first.member_scores.shape != other.member_scores.shape or not np.array_equal(
        first.member_scores, other.member_scores
    )
