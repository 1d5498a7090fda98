"""Attacks on models whose predictions are coarse, shared by the tests of this folder."""

import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import deniable as dn
from oracles.credit_table import credit_table


@pytest.fixture(scope="session")
def credit():
    return credit_table()


MODELS = {
    "forest": (RandomForestClassifier(n_estimators=50), "lira"),
    "forest, loss": (RandomForestClassifier(n_estimators=50), "loss"),
    "tree": (DecisionTreeClassifier(), "loss"),
    "small tree": (DecisionTreeClassifier(max_depth=3), "calibrated"),
    "boosted trees": (GradientBoostingClassifier(n_estimators=40), "lira"),
}


@pytest.fixture(scope="session")
def attacks_on_trees(credit):
    """Scores of attacks on models whose predictions are coarse, many tied."""
    X, y = credit
    return {
        name: dn.attack_estimator(model, X[:500], y[:500], method=method, n_shadows=8, rng=0)
        for name, (model, method) in MODELS.items()
    }
