"""Sphere and half-space around every leave-one-out optimum: truth ≤ half-space ≤ sphere."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from spheres import worst_case_sphere

from deniable import InputError
from deniable.records import OutputPerturbation, privacy_profile

LAX = OutputPerturbation(scale=1.0)


def example(loss, rng, n=40, d=3, scale=1.0):
    X = rng.normal(size=(n, d))
    X *= scale / np.linalg.norm(X, axis=1).max()
    t = 3 / scale * X @ rng.normal(size=d)
    if loss == "poisson":
        return X, rng.poisson(np.exp(t / 2)).astype(float)
    if loss == "softmax":
        return X, np.concatenate([[0, 1, 2], np.argmax(rng.gumbel(size=(n - 3, 3)) + t[3:, None] * [-1, 0, 1], axis=1)])
    if loss in ("logistic", "squared_hinge"):
        return X, np.concatenate([[-1.0, 1.0], np.where(t[2:] + rng.logistic(size=n - 2) > 0, 1.0, -1.0)])
    return X, t + rng.standard_t(2, size=n)


@given(
    seed=st.integers(0, 10**6),
    scale=st.floats(0.1, 10.0),
    log_regularization=st.floats(-4, 1),
    loss=st.sampled_from(["logistic", "squared", "squared_hinge", "huber", "poisson", "softmax"]),
)
def test_truth_is_within_the_half_space_within_the_sphere(seed, scale, log_regularization, loss):
    X, y = example(loss, np.random.default_rng(seed), scale=min(scale, 3.0) if loss == "poisson" else scale)
    lam = 10**log_regularization
    found = worst_case_sphere(X, y, regularization=lam, loss=loss)
    p = privacy_profile(X, y, regularization=lam, loss=loss, mechanism=LAX, tolerance=1e-8)
    slack = p.radius() + 1e-13 * np.linalg.norm(p.optimum)
    assert np.all(p.distance <= found.largest_distance + p.distance_error)
    assert np.all(found.largest_distance <= 2 * found.radius)
    assert np.all(np.linalg.norm(p.leave_one_out() - found.centre, axis=1) <= found.radius + slack)
    across = found.worst_case - p.optimum
    along = np.einsum("ij,ij->i", p.leave_one_out() - p.optimum, across)
    length = np.linalg.norm(across, axis=1)
    assert np.all(along <= found.reach * length**2 * (1 + 1e-9) + slack * length)
    if loss in ("squared_hinge", "huber"):
        assert np.all(found.reach == 1)


def test_half_space_is_exact_for_constant_curvature():
    # squared loss: H̄ = H_i, so the optimum lies on the boundary of the half-space
    X, y = example("squared", np.random.default_rng(0))
    found = worst_case_sphere(X, y, regularization=0.01, loss="squared")
    p = privacy_profile(X, y, regularization=0.01, loss="squared", mechanism=LAX)
    across = found.worst_case - p.optimum
    along = np.einsum("ij,ij->i", p.leave_one_out() - p.optimum, across)
    np.testing.assert_allclose(along / np.einsum("ij,ij->i", across, across), found.reach, rtol=1e-6)
    assert found.reach.max() < 0.8  # and it cuts off a good part


def test_half_space_is_what_a_slow_computation_says():
    """κ and bᵀH_i⁻¹b written out for one record of a logistic regression, the bound solved by bisection."""
    X, y = example("logistic", np.random.default_rng(1))
    lam, i = 0.02, 7
    found = worst_case_sphere(X, y, regularization=lam)
    f = privacy_profile(X, y, regularization=lam, mechanism=LAX).optimum
    rest, labels = np.delete(X, i, 0), np.delete(y, i)
    m = lam * len(rest)
    p = 1 / (1 + np.exp(-labels * (rest @ f)))
    b = (labels * (1 - p)) @ rest - m * f
    H = (rest.T * (p * (1 - p))) @ rest + m * np.eye(3)
    energy, reach = b @ np.linalg.solve(H, b), np.linalg.norm(X, axis=1).max()
    low, high = 0.0, np.linalg.norm(b) / m
    for _ in range(100):  # the distance D at which D² = energy/(κ(D)·m)
        D = (low + high) / 2
        a = reach * D
        low, high = (low, D) if energy * a / (1 - np.exp(-a)) / m <= D**2 else (D, high)
    assert found.largest_distance[i] == pytest.approx(D, rel=1e-6)


def test_negative_control_no_curvature_credit_without_kappa():
    # with κ = 1, as if the curvature were constant, some optimum would lie outside
    outside = 0
    for seed in range(40):
        X, y = example("logistic", np.random.default_rng(seed), n=8, scale=10.0)
        found = worst_case_sphere(X, y, regularization=1e-4)
        p = privacy_profile(X, y, regularization=1e-4, mechanism=LAX, tolerance=1e-8)
        pull = np.linalg.norm(found.worst_case - p.optimum, axis=1)
        along = np.einsum("ij,ij->i", p.leave_one_out() - p.optimum, found.worst_case - p.optimum) / pull**2
        naive = naive_reach(X, y, 1e-4, p.optimum)
        outside += np.sum(along > naive * (1 + 1e-6))
        assert np.all(along <= found.reach * (1 + 1e-9) + 1e-9)
    assert outside > 0


def naive_reach(X, y, lam, f):
    m = lam * (len(y) - 1)
    p = 1 / (1 + np.exp(-y * (X @ f)))
    found = []
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        b = (y * (1 - p))[keep] @ X[keep] - m * f
        H = (X[keep].T * (p * (1 - p))[keep]) @ X[keep] + m * np.eye(X.shape[1])
        found.append(b @ np.linalg.solve(H, b) * m / (b @ b))
    return np.array(found)


def test_without_a_ridge_there_is_no_sphere():
    X, y = example("squared", np.random.default_rng(0))
    with pytest.raises(InputError, match="regularization above 0"):
        worst_case_sphere(X, y, regularization=0.0, loss="squared")
