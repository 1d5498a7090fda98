"""Fitted scikit-learn models: the profile's leave-one-out rows are what the estimator itself refits to."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Lasso, LogisticRegression, PoissonRegressor, Ridge, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import deniable as dn
from deniable import InputError

NOISE = dn.OutputPerturbation(scale=0.1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    t = X @ np.array([1.0, -0.5, 0.2, 0.0]) + 0.3
    return X, t, rng


def parameters(model):
    coef = np.atleast_2d(model.coef_).T
    return np.vstack([coef, np.reshape(model.intercept_, (1, -1))]).ravel() if model.fit_intercept else coef.ravel()


CASES = [
    LogisticRegression(C=0.3, tol=1e-12, solver="newton-cholesky"),
    LogisticRegression(C=5.0, fit_intercept=False, tol=1e-10, max_iter=10_000),
    LogisticRegression(C=0.3, solver="liblinear", tol=1e-12, max_iter=10_000),
    LogisticRegression(C=0.3, tol=1e-12, solver="newton-cholesky", class_weight={0: 3.0, 1: 0.5}),
    LinearSVC(C=0.2, dual=False, tol=1e-12, max_iter=100_000),
    LinearSVC(C=0.2, dual=False, tol=1e-12, max_iter=100_000, fit_intercept=False),
    Ridge(alpha=2.0),
    Ridge(alpha=0.5, fit_intercept=False),
    PoissonRegressor(alpha=0.1, tol=1e-12, solver="newton-cholesky"),
]


@pytest.mark.parametrize("estimator", CASES, ids=lambda e: f"{e}"[:60])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_what_the_estimator_refits_to(data, estimator, weighted):
    X, t, _ = data
    rng = np.random.default_rng(1)
    y = {"Ridge": t + rng.normal(size=80), "PoissonRegressor": rng.poisson(np.exp(t))}.get(
        type(estimator).__name__, (t + rng.logistic(size=80) > 0).astype(int)
    )
    weights = rng.uniform(0.5, 2.0, 80) if weighted else np.ones(80)
    fitted = clone(estimator).fit(X, y, sample_weight=weights)
    profile = dn.profile_estimator(
        fitted, X, y, sample_weight=weights if weighted else None, mechanism=NOISE, tolerance=1e-8
    )
    np.testing.assert_allclose(profile.optimum, parameters(fitted), atol=1e-5)
    for i in (0, 17, 60):
        keep = np.arange(80) != i
        refit = parameters(clone(estimator).fit(X[keep], y[keep], sample_weight=weights[keep]))
        assert np.linalg.norm(profile.leave_one_out()[i] - refit) <= 1e-5 + 0.01 * profile.distance[i]


def test_softmax_without_intercept(data):
    X, t, _ = data
    y = np.digitize(t + np.random.default_rng(2).logistic(size=80), [-0.5, 0.8])
    model = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    profile = dn.profile_estimator(model, X, y, mechanism=NOISE)
    keep = np.arange(80) != 5
    refit = clone(model).fit(X[keep], y[keep])
    assert np.linalg.norm(profile.leave_one_out()[5] - refit.coef_.T.ravel()) <= 1e-6 + 0.001 * profile.distance[5]


def test_sgd_and_pipelines():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(
        StandardScaler(), SGDClassifier(loss="log_loss", alpha=0.05, max_iter=5000, tol=1e-8, random_state=0)
    ).fit(X, y)
    profile = dn.profile_estimator(model, X, y, mechanism=NOISE)
    assert len(profile) == len(y)
    assert "preprocessing" in profile.notes[0]
    assert np.linalg.norm(profile.optimum - parameters(model[-1])) <= 0.05 * np.linalg.norm(profile.optimum)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Lasso(), "must be one of LogisticRegression"),
        (LogisticRegression(l1_ratio=1.0, solver="saga", max_iter=5000), "L1 penalty"),
        (LogisticRegression(class_weight="balanced"), "counted from the labels"),
        (LogisticRegression(solver="liblinear", intercept_scaling=2.0), "intercept_scaling"),
        (LinearSVC(loss="hinge", max_iter=100_000), "squared_hinge"),
        (Ridge(positive=True), "positive=False"),
        (SGDClassifier(loss="hinge"), "log_loss"),
        (SGDClassifier(loss="log_loss", class_weight={0: 2.0}), "counts rows, not weights"),
    ],
    ids=str,
)
def test_what_cannot_be_mapped_is_refused_with_its_reason(data, estimator, message):
    X, t, _ = data
    y = (t > 0.2).astype(int)
    with pytest.raises(InputError, match=message):
        dn.profile_estimator(estimator.fit(X, y), X, y, mechanism=NOISE)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_a_fit_that_has_not_converged_is_found_by_its_gradient(data):
    X, t, _ = data
    y = (t + np.random.default_rng(3).logistic(size=80) > 0).astype(int)
    unfinished = LogisticRegression(C=100.0, max_iter=1).fit(X, y)
    with pytest.raises(InputError, match="has not converged: gradient norm"):
        dn.profile_estimator(unfinished, X, y, mechanism=NOISE)
