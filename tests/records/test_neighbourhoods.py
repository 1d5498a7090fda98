"""Neighbours other than one row out: groups that leave together."""

import numpy as np
import pytest

from deniable.records import OutputPerturbation, privacy_profile
from oracles.refits import optimum

LAX = OutputPerturbation(scale=0.3)


def example(loss, n=50, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    t = 2 * X @ np.array([1.0, -1.0, 0.5])
    if loss in ("logistic", "squared_hinge"):
        return X, np.where(t + rng.logistic(size=n) > 0, 1.0, -1.0)
    return X, rng.poisson(np.exp(t)).astype(float) if loss == "poisson" else t + rng.standard_t(3, size=n)


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber", "poisson"])
@pytest.mark.parametrize("intercept", ["none", "unregularized"])
def test_groups_against_refits(loss, intercept):
    X, y = example(loss)
    groups = np.repeat([f"user {k}" for k in range(10)], 5)
    columns = X if intercept == "none" else np.column_stack([X, np.ones(50)])
    unit = np.full(columns.shape[1], 0.1)
    if intercept == "unregularized":
        unit[-1] = 0.0
    for tolerance in (1e-8, 1e300):
        p = privacy_profile(
            X, y, regularization=0.1, loss=loss, intercept=intercept, group=groups, mechanism=LAX, tolerance=tolerance
        )
        assert len(p) == 10
        assert p.groups[3] == "user 3"
        for g in (0, 3, 9):
            keep = groups != f"user {g}"
            refit = optimum(loss, columns[keep], y[keep], unit * 45)
            error = np.linalg.norm(p.leave_one_out()[g] - refit)
            assert error <= p.radius()[g] + 1e-12
            assert tolerance > 1 or error <= 1e-7 * p.distance[g]


def test_groups_of_one_row_are_the_rows():
    X, y = example("logistic")
    rows = privacy_profile(X, y, regularization=0.1, rng=0)
    groups = privacy_profile(X, y, regularization=0.1, group=np.arange(50), rng=0)
    np.testing.assert_allclose(rows.leave_one_out(), groups.leave_one_out(), atol=1e-9)
    np.testing.assert_allclose(rows.privacy_loss(), groups.privacy_loss(), atol=1e-8)
