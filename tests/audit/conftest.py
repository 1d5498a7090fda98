"""A table like those of lenders: numbers and categories of mixed use, and a label that nothing predicts fully."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import deniable as dn


def credit_table(n=1000, seed=0):
    """Return (X, y): seven numbers, three categories as indicators, a label with noise."""
    rng = np.random.default_rng(seed)
    age = rng.integers(19, 75, n)
    amount = np.round(rng.lognormal(7.8, 0.8, n))
    months = rng.choice([6, 9, 12, 15, 18, 24, 30, 36, 48, 60], n)
    rate, held, loans, dependants = (rng.integers(1, top, n) for top in (5, 5, 4, 3))
    account, purpose, savings = rng.integers(0, 4, n), rng.integers(0, 8, n), rng.integers(0, 5, n)
    logit = 0.9 * (account - 1.5) - 0.025 * (months - 20) - 0.3 * np.log(amount / 2500) + 0.02 * (age - 35)
    y = (rng.random(n) < 1 / (1 + np.exp(-(logit + 0.3 * (savings - 2) + 0.7)))).astype(int)
    numbers = np.column_stack([age, amount, months, rate, held, loans, dependants]).astype(float)
    indicators = [np.eye(k)[c] for k, c in ((4, account), (8, purpose), (5, savings))]
    return np.hstack([numbers, *indicators]), y


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
