"""Several records at once: the ball of LeBlond et al.'s equations 14 to 16 against refits; their typical coverage."""

import numpy as np
import pytest
from black_boxes import typical_self_coverage
from changed_spheres import changed_sphere
from hypothesis import given, strategies as st
from spheres import worst_case_sphere

from deniable.laws.norm_laplace import NormLaplaceLaw
from oracles.refits import optimum


def example(seed, n=30, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    return X, np.where(X @ rng.normal(size=d) + rng.logistic(size=n) / 2 > 0, 1.0, -1.0), rng


@given(st.integers(0, 10**6), st.integers(0, 6), st.integers(0, 6), st.floats(-3, 1))
def test_the_new_optimum_lies_in_the_ball_and_the_base_on_its_surface(seed, n_removed, n_added, log_regularization):
    X, y, rng = example(seed)
    if n_removed + n_added == 0 or len(np.unique(y)) < 2:
        return
    lam, n = 10**log_regularization, len(y)
    removed, extra = rng.choice(n, n_removed, replace=False), rng.normal(size=(n_added, 3)) / 2
    labels = rng.choice([-1.0, 1.0], size=n_added)
    ball = changed_sphere(X, y, regularization=lam, removed=removed, added=(extra, labels))
    keep = np.delete(np.arange(n), removed)
    X1, y1 = np.concatenate([X[keep], extra]), np.concatenate([y[keep], labels])
    base, new = (optimum("logistic", rows, t, np.full(3, lam * len(t))) for rows, t in ((X, y), (X1, y1)))
    assert np.linalg.norm(new - ball.centre[0]) <= ball.radius[0] * (1 + 1e-9) + 1e-12
    assert np.linalg.norm(base - ball.centre[0]) == pytest.approx(ball.radius[0], rel=1e-6, abs=1e-11)

    def slope(rows, t):
        return -(t / (1 + np.exp(t * (rows @ base)))) @ rows

    change, n1 = slope(extra, labels) - slope(X[removed], y[removed]), len(y1)  # (n_A + n_S)·Δs, equation 16
    centre = (n + n1) / (2 * n1) * base - change / (2 * lam * n1)  # equation 14
    radius = np.linalg.norm((n_added - n_removed) / (2 * n1) * base + change / (2 * lam * n1))  # equation 15
    np.testing.assert_allclose(ball.centre[0], centre, rtol=1e-6, atol=1e-10)
    assert ball.radius[0] == pytest.approx(radius, rel=1e-6, abs=1e-11)


def test_one_removed_record_has_the_sphere_of_equations_17_and_18():
    X, y, _ = example(3)
    all_ = worst_case_sphere(X, y, regularization=0.1)
    for i in (0, 7):
        one = changed_sphere(X, y, regularization=0.1, removed=[i])
        np.testing.assert_allclose(one.centre[0], all_.centre[i], rtol=1e-9, atol=1e-12)
        assert one.radius[0] == pytest.approx(all_.radius[i], rel=1e-8)
        np.testing.assert_allclose(one.worst_case[0], all_.worst_case[i], rtol=1e-9, atol=1e-12)


def test_limits_of_equation_15():
    """r → |n_A − n_S|/(2n₁)·|A(x)| only where Λ leaves A(x) alone; with A(x) itself, r falls like 1/Λ."""
    X, y, _ = example(4)
    small, large = (changed_sphere(X, y, regularization=v, removed=[0, 1, 2]).radius[0] for v in (1e3, 1e4))
    assert small / large == pytest.approx(10, rel=0.01)
    # a record that does not pull and one that leaves: only the shrinking is left, 1/(2·29)·|A(x)|
    base = optimum("logistic", X, y, np.full(3, 0.5 * len(y)))
    silent = np.vstack([X, np.zeros(3)]), np.append(y, 1.0)
    moved = changed_sphere(*silent, regularization=0.5 * 30 / 31, removed=[30])
    assert moved.radius[0] == pytest.approx(np.linalg.norm(base) / (2 * 30), rel=1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_typical_coverage_in_closed_form_against_draws(dimension):
    beta, rng, count = 1.7, np.random.default_rng(dimension), 400_000
    radius = rng.gamma(dimension, 1 / beta, count)
    mean, log_mean = typical_self_coverage(dimension, beta)
    from scipy.special import gammaln

    log_density = (
        dimension * np.log(beta) + gammaln(dimension / 2) - np.log(2) - dimension / 2 * np.log(np.pi)
        - gammaln(dimension) - beta * radius
    )  # fmt: skip
    assert np.exp(log_density).mean() == pytest.approx(mean, rel=0.02)
    assert log_density.mean() == pytest.approx(log_mean, abs=0.02)
    printed = dimension * 0 + np.log(beta / 2) - dimension  # E log of (β/2)e^{−β|b|}, §3.2
    assert (abs(printed - log_mean) < 1e-12) == (dimension == 1)  # erratum E12


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_peak_of_a_neighbours_typical_coverage(dimension):
    """As the noise grows E log C(y, M) rises to a peak where β·d(E l)/dβ = d, then decays beside E log C(x, M)."""
    law, beta = NormLaplaceLaw(dimension), np.geomspace(1e-2, 1e3, 1501)
    mean_loss = np.array([float(law.mean_loss(b)) for b in beta[::10]])  # at distance 1
    own = typical_self_coverage(dimension, beta[::10])[1]
    other = own - mean_loss
    peak = int(np.argmax(other))
    assert 0 < peak < len(other) - 1
    slope = np.gradient(mean_loss, np.log(beta[::10]))
    assert slope[peak] == pytest.approx(dimension, rel=0.1)
    assert other[0] - own[0] == pytest.approx(0, abs=1e-4)  # identical decay once the noise is large
