"""Attacks on models with several outputs, sparse records and rare classes."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import deniable as dn
from deniable.audit.shadow import balanced_design, model_signals, with_every_class

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 12))
LABELS = np.column_stack([X[:, 0] + RNG.normal(size=200) > 0, X[:, 1] > 0]).astype(int)
NUMBERS = np.column_stack([X[:, 0] + RNG.normal(size=200), RNG.normal(size=200)])


@pytest.mark.parametrize("method", ["auto", "loss", "lira", "lira-offline", "rmia", "calibrated"])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (DecisionTreeClassifier(max_depth=6), LABELS),
        (MultiOutputClassifier(LogisticRegression(C=1e4)), np.where(LABELS, "b", "a")),
        (RandomForestRegressor(5), NUMBERS),
        (Ridge(1e-6), NUMBERS),
    ],
)
def test_several_outputs(model, y, method):
    scores = dn.attack_estimator(model, X, y, method=method, n_shadows=8, rng=0)
    assert scores.audit().auc().estimate > 0.5


def test_signals_of_several_outputs_are_those_of_each():
    forest = RandomForestClassifier(5, random_state=0).fit(X, LABELS)
    found = model_signals(forest, X, LABELS, "classification")
    assert found.shape == (2, 200)
    chance = forest.predict_proba(X)[1][np.arange(200), LABELS[:, 1]]
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found[1], np.clip(np.log(chance) - np.log(1 - chance), -30, 30), atol=1e-9)
    net = MLPClassifier((4,), max_iter=5, random_state=0)  # one probability per output
    with pytest.warns(ConvergenceWarning):
        net.fit(X, LABELS)
    told = net.predict_proba(X)[:, 1]
    expected = np.where(LABELS[:, 1], told, 1 - told)
    found = model_signals(net, X, LABELS, "classification")[1]
    np.testing.assert_allclose(found, np.log(expected / (1 - expected)), rtol=1e-6)
    with pytest.raises(dn.InputError, match="predict_proba"):
        model_signals(MultiOutputClassifier(LinearSVC()).fit(X, LABELS), X, LABELS, "classification")
    ridge = Ridge().fit(X, NUMBERS)
    np.testing.assert_allclose(model_signals(ridge, X, NUMBERS, "regression"), (ridge.predict(X) - NUMBERS).T)


@pytest.mark.parametrize("rare", [2, 3, 6])
def test_rare_classes_are_in_every_half(rare):
    y = (np.arange(100) < rare).astype(int)
    design = with_every_class(balanced_design(16, 100, np.random.default_rng(0)), y)
    assert (design.sum(axis=0) == 8).all()
    assert all(len(np.unique(y[row])) == 2 for row in design)
    scores = dn.attack_estimator(DecisionTreeClassifier(), X[:100], y, method="lira", n_shadows=16, rng=0)
    assert len(scores.member_scores) + len(scores.nonmember_scores) == 100
