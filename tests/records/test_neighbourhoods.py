"""Neighbours other than one row out: groups that leave together, rows that join."""

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


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber", "poisson"])
@pytest.mark.parametrize("normalization", ["mean", "sum"])
def test_rows_that_join_against_refits(loss, normalization):
    X, y = example(loss)
    Z, z = example(loss, n=6, seed=9)
    lam = 0.1 if normalization == "mean" else 5.0
    for tolerance in (1e-8, 1e300):
        p = privacy_profile(
            X,
            y,
            regularization=lam,
            loss=loss,
            normalization=normalization,
            added=(3 * Z, z),
            mechanism=LAX,
            tolerance=tolerance,
        )
        for i in range(6):
            penalty = np.full(3, lam * 51 if normalization == "mean" else lam)
            refit = optimum(loss, np.vstack([X, 3 * Z[i]]), np.append(y, z[i]), penalty)
            error = np.linalg.norm(p.leave_one_out()[i] - refit)
            assert error <= p.radius()[i] + 1e-12
            assert tolerance > 1 or error <= 1e-7 * p.distance[i] + 1e-15  # a record that moves nothing leaves rounding


def test_joining_is_leaving_seen_from_the_other_side():
    X, y = example("logistic")
    M = np.array([0.2, 0.1, -0.3])
    leaving = privacy_profile(X, y, regularization=5.0, normalization="sum", released=M, mechanism=LAX)
    joining = privacy_profile(
        X[1:], y[1:], regularization=5.0, normalization="sum", added=(X[:1], y[:1]), released=M, mechanism=LAX
    )
    assert joining.distance[0] == pytest.approx(leaving.distance[0], rel=1e-7)
    assert joining.privacy_loss()[0] == pytest.approx(leaving.privacy_loss()[0], rel=1e-6)
    assert joining.advantage()[0] == pytest.approx(leaving.advantage()[0], rel=1e-6)
