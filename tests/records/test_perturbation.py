"""Output and objective perturbation: calibration, closed-form losses, simulated releases."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import deniable as dn
from deniable import InputError
from deniable.records import ObjectivePerturbation, OutputPerturbation, privacy_profile


def small(d, n=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1, -1)
    y[:2] = 1, -1
    return X, y


@pytest.mark.parametrize("noise", ["norm-laplace", "gaussian"])
def test_ex_post_loss_is_the_log_ratio_of_densities(noise):
    X, y = small(3)
    M = np.array([0.3, -0.1, 0.7])
    mechanism = OutputPerturbation(epsilon=1.0, noise=noise, delta=1e-5 if noise == "gaussian" else None)
    p = privacy_profile(X, y, regularization=0.2, mechanism=mechanism, released=M)
    away, near = np.linalg.norm(M - p.leave_one_out(), axis=1), np.linalg.norm(M - p.optimum)
    if noise == "norm-laplace":
        assert p.rate == 8 * 0.2 * 1.0 / 2
        expected = p.rate * (away - near)
    else:
        expected = p.rate**2 * (away**2 - near**2) / 2
    np.testing.assert_allclose(p.privacy_loss(), expected, rtol=1e-9, atol=1e-12)
    assert np.all(p.loss_errors <= 1e-6)
    assert list(p.ranking()) == sorted(range(8), key=lambda i: -abs(p.privacy_loss()[i]))


def test_calibration_is_that_of_the_papers():
    X, y = small(3)
    laplace = privacy_profile(X, y, regularization=0.2, mechanism=OutputPerturbation(epsilon=1.5))
    assert laplace.rate == pytest.approx(8 * 0.2 * 1.5 / 2)  # β = nΛε/2
    assert np.all(laplace.rate * laplace.distance <= 1.5)  # the pure-DP guarantee bounds every record's loss
    gaussian = OutputPerturbation(epsilon=1.5, noise="gaussian", delta=1e-5)
    mu = gaussian.guarantee().mu
    assert dn.tradeoff(dn.GaussianDP(mu)).delta(1.5) <= 1e-5
    exact = norm.cdf(-1.5 / mu + mu / 2) - np.exp(1.5) * norm.cdf(-1.5 / mu - mu / 2)  # Balle & Wang 2018
    assert exact == pytest.approx(1e-5, rel=1e-6)
    profile = privacy_profile(X, y, regularization=0.2, mechanism=gaussian)
    assert profile.rate == pytest.approx(mu * 8 * 0.2 / 2)
    widened = privacy_profile(X, y, regularization=0.2, intercept="regularized")
    assert widened.rate == pytest.approx(8 * 0.2 / (2 * np.sqrt(2)))


@pytest.mark.parametrize("noise", ["norm-laplace", "gaussian"])
def test_a_draw_has_the_stated_law(noise):
    mechanism = OutputPerturbation(scale=0.5, noise=noise)
    rng = np.random.default_rng(0)
    draws = np.array([mechanism.sample(np.ones(3), 2.0, rng=rng) for _ in range(20_000)]) - 1
    size = np.linalg.norm(draws, axis=1)
    mean = 3 * 0.5 if noise == "norm-laplace" else 0.5 * np.sqrt(8 / np.pi)
    assert size.mean() == pytest.approx(mean, rel=0.02)
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=0.03)


def test_fresh_draws_differ_and_seeds_repeat():
    X, y = small(2)
    first, second = (privacy_profile(X, y, regularization=0.2).released for _ in range(2))
    assert not np.array_equal(first, second)
    first, second = (privacy_profile(X, y, regularization=0.2, rng=4).released for _ in range(2))
    np.testing.assert_array_equal(first, second)


def perturbed_optima(X, y, penalty, rate, count, rng):
    """Solve Σ log(1 + e^{−y xᵀf}) + penalty‖f‖²/2 + bᵀf for many b at once, by Newton steps in NumPy."""
    d = X.shape[1]
    direction = rng.standard_normal((count, d))
    b = direction * (rng.gamma(d, 1 / rate, size=count) / np.linalg.norm(direction, axis=1))[:, None]
    f = np.zeros((count, d))
    for _ in range(9):
        t = f @ X.T
        gradient = (-y * expit(-y * t)) @ X + penalty * f + b
        H = ((expit(t) * expit(-t)) @ (X[:, :, None] * X[:, None]).reshape(len(X), -1)).reshape(
            -1, d, d
        ) + penalty * np.eye(d)
        f = f - np.linalg.solve(H, gradient[..., None])[..., 0]
    assert np.abs(gradient).max() < 1e-6
    return f


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("normalization", ["mean", "sum"])
def test_objective_perturbation_agrees_with_histograms_of_releases(dimension, normalization):
    """Counts of simulated releases in the two worlds, box by box, against e^{l_i} at the boxes' centres."""
    X, y = small(dimension, n=5, seed=3)
    n, i, count = 5, 2, 120_000
    lam = 0.2 if normalization == "mean" else 1.0
    mechanism = ObjectivePerturbation(scale=0.2)
    rng = np.random.default_rng(11)
    left = np.delete(X, i, 0), np.delete(y, i)
    inside = perturbed_optima(X, y, lam * n if normalization == "mean" else lam, 5.0, count, rng)
    outside = perturbed_optima(*left, lam * (n - 1) if normalization == "mean" else lam, 5.0, count, rng)
    edges = [np.quantile(inside[:, k], np.linspace(0.2, 0.8, 13 if dimension == 1 else 6)) for k in range(dimension)]
    counts = np.histogramdd(inside, edges)[0], np.histogramdd(outside, edges)[0]
    centres = np.stack(np.meshgrid(*[(e[1:] + e[:-1]) / 2 for e in edges], indexing="ij"), axis=-1).reshape(
        -1, dimension
    )
    losses = np.array(
        [
            privacy_profile(
                X, y, regularization=lam, normalization=normalization, mechanism=mechanism, released=M
            ).privacy_loss()[i]
            for M in centres
        ]
    )
    measured = np.log(counts[0] / counts[1]).ravel()
    noise = np.sqrt(1 / counts[0] + 1 / counts[1]).ravel()
    assert np.abs(losses).max() > 0.2
    assert np.all(np.abs(measured - losses) <= 4.5 * noise + 0.01)
    assert not np.all(np.abs(measured + losses) <= 4.5 * noise + 0.01)  # negative control: the other sign fails


def test_objective_perturbation_keeps_its_promise_and_samples_typical_models():
    X, y = small(2, n=20)
    fixed = {"regularization": 4.0, "normalization": "sum", "mechanism": ObjectivePerturbation(epsilon=1.0), "rng": 0}
    p = privacy_profile(X, y, n_samples=400, **fixed)
    assert np.abs(p.typical.losses).max() <= 0.5  # one record leaves and none comes: half of a replacement
    assert np.all(p.advantage("lower") <= p.advantage())
    assert np.all(p.tpr(0.1) >= 0.1)
    assert p.tradeoff(3).advantage() == pytest.approx(p.advantage()[3])
    assert p.tradeoff(3).tpr(0.1) == pytest.approx(p.tpr(0.1)[3])
    assert p.tradeoff(3).confidence == 0.95
    assert "mean_loss" in p.to_frame()
    with pytest.raises(InputError, match="cannot be read"):
        p.epsilon(1e-5)
    weak = privacy_profile(X, y, regularization=1e-3, mechanism=ObjectivePerturbation(epsilon=0.1))
    assert weak.rate == pytest.approx(0.1 / 2 / 2)  # the stronger-penalty branch
    with pytest.raises(InputError, match="n_samples"):
        _ = privacy_profile(X, y, **fixed).advantage()


def line_densities(x, y, i, lam, rate, grid):
    """Densities of objective perturbation's release in one dimension with and without record i, on a grid."""
    found = []
    for keep in (np.ones(len(y), dtype=bool), np.arange(len(y)) != i):
        t = np.outer(grid, x[keep])
        penalty = lam * keep.sum()
        slope = (-y[keep] * expit(-y[keep] * t)) @ x[keep] + penalty * grid
        curvature = (expit(t) * expit(-t)) @ x[keep] ** 2 + penalty
        found.append(rate / 2 * np.exp(-rate * np.abs(slope)) * curvature)
    return found


@pytest.mark.parametrize("honest", [True, False])
def test_typical_values_of_objective_perturbation_hold_the_integrals_in_one_dimension(honest):
    # b is Laplace and b = −F'(M), so both densities are known; dishonest: the bands of half the noise must miss
    X, y = small(1, n=8, seed=3)
    rate, lam = 2.0, 0.2
    mechanism = ObjectivePerturbation(scale=1 / rate if honest else 0.5 / rate)
    p = privacy_profile(X, y, regularization=lam, mechanism=mechanism, n_samples=1000, rng=1)
    grid = np.linspace(-30, 30, 60_001)
    held = []
    for i in range(8):
        inside, outside = line_densities(X[:, 0], y, i, lam, rate, grid)
        cell = grid[1] - grid[0]
        assert inside.sum() * cell == pytest.approx(1, abs=1e-4)
        advantage = np.abs(inside - outside).sum() * cell / 2
        order = np.argsort(outside / inside, kind="stable")
        tpr = np.interp(0.1, np.cumsum(outside[order]) * cell, np.cumsum(inside[order]) * cell)
        held.append(
            [
                p.advantage("lower")[i] <= advantage <= p.advantage()[i],
                tpr <= p.tpr(0.1)[i] and tpr <= p.tradeoff(i).tpr(0.1),
            ]
        )
    assert np.all(held) == honest
