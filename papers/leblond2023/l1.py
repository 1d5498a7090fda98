"""LeBlond et al., §7, “extend to L1” and to forests: why not by the same means.

With an L1 penalty the optimum without a record is a smooth step away only while no coefficient enters or leaves;
nothing in A(x) tells beforehand whether one does, the objective is not strongly convex (Λ = 0: the ball of eq. 18 is
all of space), and the kink of |f| gives no certificate. One Newton step on the coefficients that are not 0, and refits.
A forest is no minimiser of anything smooth: without a record each tree is the same or another one.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import deniable as dn


def lasso_steps(X, y):
    """For L1: per record the error of a Newton step on the support, and whether its removal changes the support."""
    options = {"solver": "liblinear", "l1_ratio": 1, "C": 0.5, "fit_intercept": False, "tol": 1e-10}

    def fit(rows):
        return LogisticRegression(**options, max_iter=10_000, random_state=0).fit(X[rows], y[rows]).coef_[0]

    base, everyone = fit(np.arange(len(y))), np.arange(len(y))
    on = base != 0
    slope = expit(X @ base) - (y > 0)
    H = (X[:, on].T * expit(X @ base) * expit(-X @ base)) @ X[:, on]
    error, moved = np.empty(len(y)), np.empty(len(y), dtype=bool)
    for i in everyone:
        truth, own = fit(everyone != i), X[i, on] * np.sqrt(expit(X[i] @ base) * expit(-X[i] @ base))
        guess = base.copy()
        guess[on] += np.linalg.solve(H - np.outer(own, own), X[i, on] * slope[i])
        error[i], moved[i] = np.linalg.norm(guess - truth) / np.linalg.norm(base - truth), np.any((truth != 0) != on)
    return error, moved


def forest_changes(X, y, others, trees=20):
    """Per record: the share of trees whose answers change without it, and the largest change of a tree's answer."""

    def answers(rows):
        forest = RandomForestClassifier(trees, bootstrap=False, random_state=0).fit(X[rows], y[rows])
        return np.array([tree.predict_proba(others)[:, 1] for tree in forest.estimators_])

    everyone = np.arange(len(y))
    base = answers(everyone)
    change = np.array([np.abs(answers(everyone != i) - base).max(axis=1) for i in everyone])
    return np.mean(change > 0, axis=1), change.max(axis=1)


def make(reduced):
    X, label = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(569)
    X, rows = (X - X.mean(axis=0)) / X.std(axis=0), order[:80]
    others, X = X[order[80:]], X[rows]
    y = 2.0 * label[rows] - 1
    changed, largest = forest_changes(X, y, others, 5 if reduced else 20)
    error, moved = lasso_steps(X, y)
    ridge = dn.privacy_profile(X, y, regularization=1 / len(y), mechanism=dn.OutputPerturbation(scale=1.0))
    certified = ridge.radius() / ridge.distance
    figure, (ax, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    for which, name, style in ((~moved, "L1, same coefficients", "."), (moved, "L1, another support", "x")):
        ax.semilogy(np.flatnonzero(which), error[which], style, label=name)
    ax.semilogy(certified, ".", ms=2, label="L2: our certified error")
    ax.set(xlabel="record", ylabel="error over |A(x) − A(y)|", title="A Newton step without the record")
    ax.legend(fontsize=8)
    right.plot(np.sort(changed), ".", label="share of trees with other answers")
    right.plot(np.sort(largest), "x", ms=4, label="largest change of a tree's answer")
    right.set(xlabel="record, sorted", title="A forest without the record")
    right.legend(fontsize=8)
    return figure, {
        "share_with_another_support": float(moved.mean()),
        "largest_error_with_another_support": float(error[moved].max()),
        "largest_error_with_the_same": float(error[~moved].max()),
        "largest_certified_error_of_l2": float(certified.max()),
        "forest_mean_share_of_trees_with_other_answers": float(changed.mean()),
        "forest_smallest_nonzero_change_of_an_answer": float(largest[largest > 0].min()),
        "forest_share_of_records_that_change_something": float(np.mean(largest > 0)),
    }
