"""Lists of points and masses: their sums are the transforms of the laws, within what they charge."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.steps.bounded_range import BoundedRangeStep
from deniable.accounting.steps.discrete import DiscreteGaussianStep
from deniable.accounting.steps.laplace import LaplaceStep
from deniable.accounting.steps.listed import ORDER, WEIGHT_ERROR, product_variation
from deniable.accounting.steps.without_replacement import ReplacedStep
from deniable.accounting.transform.listed import ListedTransform

flint = pytest.importorskip("flint")


def laplace(epsilon):
    def transform(z):  # in closed form
        up, down = ((z - 1) * epsilon).exp(), (-z * epsilon).exp()
        return (z * up + (z - 1) * down) / (2 * z - 1)

    return transform


def sampled_laplace(epsilon, rate):
    def transform(z):
        def power(x, _=None):
            return (z * (1 - rate + rate * x.exp()).log()).exp()

        def density(x, analytic):
            return (-(epsilon + x) / 2).exp() / 4 * power(x)

        ends = power(flint.acb(-epsilon)) / 2 + flint.acb(-epsilon).exp() / 2 * power(flint.acb(epsilon))
        return ends + flint.acb.integral(density, -epsilon, epsilon)

    return transform


def replaced(mu, rate):
    def transform(z):
        def both(u, analytic):
            loss = (1 - rate + rate * (mu * u - mu * mu / 2).exp()).log()
            return (-u * u / 2).exp() * ((z * loss).exp() + ((1 - z) * loss).exp())

        side = flint.acb.integral(both, mu / 2, 30) / flint.acb(2 * flint.arb.pi()).sqrt()
        return side + (1 - rate) * (flint.acb(mu) / flint.acb(8).sqrt()).erf()

    return transform


def bounded_range(epsilon):
    def transform(z):
        return (
            ((z - 0.5) * epsilon).sinh()
            / (z - 0.5)
            * (-flint.acb(epsilon) / 2).exp()
            / (1 - (-flint.acb(epsilon)).exp())
        )

    return transform


CASES = {
    "Laplace": (LaplaceStep(0.1), laplace(0.1)),
    "Laplace, little noise": (LaplaceStep(6.0), laplace(6.0)),
    "sampled Laplace": (LaplaceStep(1.0, 0.125), sampled_laplace(1.0, 0.125)),
    "bounded range": (BoundedRangeStep(0.5), bounded_range(0.5)),
    "without replacement": (ReplacedStep(0.5, 0.0625), replaced(2.0, 0.0625)),
}


@pytest.mark.parametrize("name", CASES)
def test_one_list_serves_smaller_arguments(name):
    step, transform = CASES[name]
    c = np.array([-7.0, -5.0, -1.5, -0.25, 0.0, 0.4375, 1.0, 3.0, 5.0, 8.0])
    truth = [float(transform(flint.acb(float(x) + 1e-30)).real.log()) for x in c]
    assert ListedTransform(step).log_mgf(c) == pytest.approx(truth, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("c", [-1.5, 0.25, 3.0])
@pytest.mark.parametrize("furthest", [4.0, 90.0])
def test_sums_are_the_transform_in_ball_arithmetic(name, c, furthest):
    step, transform = CASES[name]
    found = ListedTransform(step)
    t = furthest * np.array([0.0, 0.3, 1.0])
    table = found.table(c, furthest)
    size = found.real(c).size
    errors = (2 * table.rounding * np.hypot(c, t) + 4 * table.missed) * size + 1e-15
    truth = np.array([complex(transform(flint.acb(c, float(x)))) for x in t])
    assert abs(found.real(c).log_m - math.log(truth[0].real)) < 1e-13
    sums = found.difference(table, c, t, None)
    assert found.real(c).scale == 0
    assert np.all(np.abs(sums - (truth - truth[0])) <= errors)
    assert np.all(errors < 1e-9 * max(size, 1.0))
    stays, fades = step.fading(c)
    assert np.all(np.abs(truth[1:]) <= stays + fades / t[1:])


def test_a_long_table_has_the_same_sums():
    found = ListedTransform(DiscreteGaussianStep(5.0, 5, 0.1))
    t = 0.37 * np.arange(500)
    table = found.table(2.0, float(t[-1]))
    np.testing.assert_allclose(found.difference(table, 2.0, t, 0.37), found.difference(table, 2.0, t, None), atol=1e-13)


def test_tabulated_nodes_have_the_error_that_is_charged():
    points, weights = np.polynomial.legendre.leggauss(ORDER)
    for k, (point, weight) in enumerate(sorted(zip(points, weights, strict=True), reverse=True)):
        true_point, true_weight = flint.arb.legendre_p_root(ORDER, k, weight=True)
        assert abs(float(true_point - flint.arb(point))) < 4e-16
        assert abs(float(true_weight / flint.arb(weight) - 1)) < WEIGHT_ERROR


@pytest.mark.parametrize("c", [-4.0, 0.5, 30.0])
def test_discrete_gaussians_keep_all_that_a_tilt_moves_to(c):
    x = np.arange(-400, 401)
    log_q = -(x**2) / 8 - math.log(math.fsum(np.exp(-(x**2) / 8)))
    loss = np.logaddexp(math.log(0.8), math.log(0.2) + 3 * (2 * x - 3) / 8)
    truth = float(np.logaddexp.reduce(log_q + c * loss))
    assert abs(ListedTransform(DiscreteGaussianStep(2.0, 3, 0.2)).real(c).log_m - truth) < 1e-12 * max(1, abs(truth))


def test_variation_of_a_product():
    x = np.linspace(0, 3, 400)
    falling, rising = np.exp(-2 * x), np.exp(x**2 / 3)
    true = np.abs(np.diff(falling * rising)).sum()
    assert true <= product_variation(falling[::40], rising[::40])


def test_divergences_of_laplace_noise_are_those_of_the_closed_form():
    t = dn.tradeoff(dn.Laplace(10.0, steps=100))
    for order in (1.5, 2.0, 30.0):
        truth = 100 * math.log(complex(laplace(0.1)(flint.acb(order))).real) / (order - 1)
        assert truth * (1 - 1e-12) <= t.renyi(order) <= truth * (1 + 1e-9)


def test_constants_beyond_doubles_say_nothing_and_warn_of_nothing():
    """Where tails fall too steeply for doubles, no decay is claimed; another engine answers."""
    transform = ListedTransform(LaplaceStep(600.0, 1e-3))
    moved, vanishes = transform.decay(0.5, np.array([1.0, 10.0]), 1.0)
    assert np.array_equal(moved, [0.0, 0.0])
    assert vanishes == math.inf
    t = dn.tradeoff(dn.Laplace(1 / 600, steps=2, sample_rate=1e-3) + dn.Laplace(3.0))
    assert 1 - (1 - 1e-3) ** 2 <= t.tpr(1e-12) <= 1.01 * (1 - (1 - 1e-3) ** 2)
