"""Rényi divergences of an epoch of random allocation, against moments of S by quadrature and simulation."""

import math

import numpy as np
import pytest
from numpy.polynomial import hermite_e, polynomial

import deniable as dn
from deniable.accounting.steps.allocation import AllocatedStep
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep


def log_moment(sigma, batches, order):
    """Bound on log E S^order under "out", for an order above 1 or below 0."""
    step, way = AllocatedStep(SubsampledGaussianStep(sigma, 1.0), batches), "remove" if order > 1 else "add"
    a = order if order > 1 else 1 - order
    return float(step.divergence(np.array([a]), way)[0]) * (a - 1)


@pytest.mark.parametrize("sigma", [0.8, 2.0, 8.0])
@pytest.mark.parametrize("order", [-6.5, -1.0, -0.01, 1.2, 2.0, 3.0, 9.0])
def test_two_batches_by_quadrature(sigma, order):
    x, weight = hermite_e.hermegauss(180)
    y = np.exp(x / sigma - 1 / (2 * sigma**2))
    weight = weight / weight.sum()
    excess = weight @ np.expm1(order * np.log(np.add.outer(y, y) / 2)) @ weight
    truth = math.log1p(excess)
    assert truth * (1 - 1e-11) - 1e-15 <= log_moment(sigma, 2, order) <= truth * (1 + 2e-4) + 1e-15


@pytest.mark.parametrize("batches", [3, 7, 20])
def test_whole_moments_by_the_power_of_a_series(batches):
    sigma, most = 1.3, 40
    k = np.arange(most + 1)
    factorial = np.array([math.factorial(int(i)) for i in k], dtype=float)
    power = polynomial.polypow(np.exp(k * (k - 1) / (2 * sigma**2)) / factorial, batches)[: most + 1]
    truth = np.log(power * factorial / float(batches) ** k)
    for order in (2, 4, 10, 25, 40):
        found = log_moment(sigma, batches, float(order))
        assert truth[order] * (1 - 1e-11) <= found <= truth[order] * (1 + (1e-4 if order < 12 else 0.05))


@pytest.mark.parametrize("order", [-2.0, -0.5, 2.0])
def test_many_batches_by_simulation(order):
    rng = np.random.default_rng(5)
    sigma, batches, draws = 1.0, 30, 200_000
    excess = np.concatenate(
        [
            np.expm1(order * np.log(np.exp(rng.normal(size=(20_000, batches)) / sigma - 0.5 / sigma**2).mean(axis=1)))
            for _ in range(draws // 20_000)
        ]
    )
    found = math.expm1(log_moment(sigma, batches, order))
    error = excess.std() / math.sqrt(draws)
    assert abs(excess.mean() - found) < 4 * error
    assert abs(excess.mean() - 1.2 * found) > 4 * error  # a fifth more would be seen


@pytest.mark.parametrize("p", [1.0, 20.0, 150.0])
@pytest.mark.parametrize(("sigma", "batches"), [(0.16, 5), (1.0, 40)])
def test_inverse_moments_are_at_most_those_of_the_geometric_mean_and_at_least_jensens(sigma, batches, p):
    """What lies 14 deviations off decides where p is large; (E S^{-1})^p is a lower bound then."""
    found = log_moment(sigma, batches, -p)
    assert p * log_moment(sigma, batches, -1.0) * (1 - 1e-3) <= found
    assert found <= p * (p / batches + 1) / (2 * sigma**2) * (1 + 1e-12)


@pytest.mark.parametrize("order", [-600.0, -30.0, -0.1, 1.3, 40.0, 600.0])
@pytest.mark.parametrize(("sigma", "batches"), [(0.16, 5), (3.0, 1000)])
def test_no_more_than_a_batch_that_is_revealed(order, sigma, batches):
    revealed = order * (order - 1) / (2 * sigma**2)
    assert 0 < log_moment(sigma, batches, order) <= revealed * (1 + 1e-12)


def test_divergences_of_epochs_and_of_the_rest_add_up():
    run = dn.RandomAllocation(1.0, 50, 3)
    orders = np.array([1.5, 2.0, 8.0])
    single = dn.tradeoff(dn.RandomAllocation(1.0, 50)).renyi(orders)
    assert dn.tradeoff(run).renyi(orders) == pytest.approx(3 * single, rel=1e-12)
    both = dn.tradeoff(run + dn.SubsampledGaussian(2.0, 0.1, 10))
    for way in ("remove", "add"):
        parts = [dn.tradeoff(part).renyi(orders, way) for part in (run, dn.SubsampledGaussian(2.0, 0.1, 10))]
        assert both.renyi(orders, way) == pytest.approx(parts[0] + parts[1], rel=1e-9)
    assert both.renyi(np.inf) == math.inf
    assert dn.tradeoff(run + dn.ApproximateDP(0.1, 1e-9)).renyi(2.0) == math.inf


def test_a_curve_from_the_divergences_lies_above_the_certified_one():
    t = dn.tradeoff(dn.RandomAllocation(0.9, 20, 2))
    orders = np.append(np.geomspace(1.05, 8, 20), [12.0, 16.0, 32.0])
    above = dn.tradeoff(dn.RenyiDP(orders, t.renyi(orders)))
    for fpr in (1e-5, 1e-3, 0.1):
        assert above.tpr(fpr) >= t.tpr(fpr, side="lower")
        assert above.tpr(fpr) <= 4 * t.tpr(fpr)


def test_several_batches_per_record_are_bounded_by_groups_of_batches():
    several = dn.tradeoff(dn.RandomAllocation(1.0, 20, 1, 2)).renyi(3.0)
    assert several == pytest.approx(2 * dn.tradeoff(dn.RandomAllocation(1.0, 10)).renyi(3.0), rel=1e-9)
