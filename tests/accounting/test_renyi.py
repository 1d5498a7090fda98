"""Rényi divergences out of curves: closed forms, quadrature in 40 digits, dp-accounting, enumeration."""

import math

import mpmath as mp
import numpy as np
import pytest

import deniable as dn
from deniable.accounting.renyi import tabulated
from deniable.accounting.steps.discrete import ResponseStep
from deniable.accounting.steps.laplace import laplace_divergence


def quadrature(sigma, rate, order):
    """D_α(P‖Q) and D_α(Q‖P) of one step by quadrature in 40 digits."""
    mp.mp.dps = 40
    s, q, a = mp.mpf(sigma), mp.mpf(rate), mp.mpf(order)

    def moment(power):
        def f(x):
            ratio = 1 - q + q * mp.exp((2 * x - 1) / (2 * s**2))
            return mp.npdf(x, 0, s) * ratio**power

        return mp.quad(f, [-30 * s, -3, -1, 0, 0.5, 1, 2, order, order + 3, order + 30 * s])

    return mp.log(moment(a)) / (a - 1), mp.log(moment(1 - a)) / (a - 1)


@pytest.mark.parametrize(("sigma", "rate", "order"), [(1.0, 0.01, 1.5), (0.7, 0.3, 1.05), (2.0, 0.05, 7.25)])
def test_sampled_gaussian_against_quadrature(sigma, rate, order):
    remove, add = quadrature(sigma, rate, order)
    for steps in (1, 300):
        t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps))
        for way, truth in (("remove", remove * steps), ("add", add * steps)):
            assert truth <= t.renyi(order, way) <= truth * (1 + 1e-6) + 1e-12 * steps
        assert t.renyi(order) == max(t.renyi(order, "remove"), t.renyi(order, "add"))
        assert t.inverse().renyi(order, "remove") == t.renyi(order, "add")


def test_the_figures_of_dp_accounting_at_whole_orders():
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    orders = [2.0, 3.0, 8.0, 32.0]
    accountant = rdp.RdpAccountant(orders)
    accountant.compose(dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.02, dp.GaussianDpEvent(1.1)), 500))
    ours = dn.tradeoff(dn.SubsampledGaussian(1.1, 0.02, 500)).renyi(orders)
    assert ours == pytest.approx(accountant._rdp, rel=1e-9)
    assert ours.shape == (4,)


def test_closed_forms():
    assert dn.tradeoff(dn.GaussianDP(0.8)).renyi(5.0) == pytest.approx(5 * 0.32, rel=1e-14)
    p = math.exp(0.7) / (1 + math.exp(0.7))
    order = np.array([1.01, 2.0, 30.0])
    enumerated = np.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (order - 1)
    one, many = dn.tradeoff(dn.PureDP(0.7)), dn.tradeoff(dn.Composition([dn.PureDP(0.7)] * 5))
    for t, times in ((one, 1), (many, 5)):
        assert np.all(t.renyi(order) >= times * enumerated * (1 - 1e-12))
        assert t.renyi(order) == pytest.approx(times * enumerated, rel=1e-10)
        assert t.renyi(np.inf) == pytest.approx(0.7 * times, rel=1e-12)
    assert dn.tradeoff(dn.ApproximateDP(0.7, 1e-9)).renyi(2.0) == math.inf
    assert dn.tradeoff(dn.ApproximateDP(0.7, 1e-9) + dn.GaussianDP(1.0)).renyi(2.0) == math.inf


def test_at_infinite_order_it_is_the_largest_loss_of_laplace_noise():
    for epsilon in (1e-9, 0.3, 40.0):
        (found,) = laplace_divergence(epsilon, np.array([np.inf]))
        assert epsilon * (1 - 1e-15) <= found <= epsilon


@pytest.mark.parametrize(("sigma", "moved", "steps"), [(0.6, 1, 1), (3.0, 2, 1), (2.0, 1, 40)])
def test_discrete_gaussians_have_the_bound_of_gaussians(sigma, moved, steps):
    x = np.arange(-200, 201)
    log_q, log_p = (-((x - shift) ** 2) / (2 * sigma**2) for shift in (0, moved))
    size = np.logaddexp.reduce(log_q)
    t = dn.tradeoff(dn.DiscreteGaussian(sigma, moved, steps))
    beside = dn.tradeoff(dn.DiscreteGaussian(sigma, moved, steps) + dn.GaussianDP(0.5))
    for order in (1.5, 4.0):
        truth = steps * np.logaddexp.reduce(order * log_p + (1 - order) * log_q - size) / (order - 1)
        assert truth * (1 - 1e-12) <= t.renyi(order) <= order * steps * (moved / sigma) ** 2 / 2 * (1 + 1e-12)
        assert beside.renyi(order) == pytest.approx(t.renyi(order) + order / 8, rel=1e-9)
    kept = dn.tradeoff(dn.mechanisms.tuned(dn.DiscreteGaussian(10 * sigma, moved, steps), trials=3))
    assert dn.tradeoff(dn.DiscreteGaussian(10 * sigma, moved, steps)).advantage() < kept.advantage() < 1


def test_what_is_tabulated_holds_between_the_orders():
    """Chords of (α − 1)·D_α lie above it, and beyond the last order nothing is known."""
    known = np.array([1.5, 2.0, 6.0, 20.0])
    curve = tabulated(known, known * 0.5, known * 0.5)  # ρ = ½
    order = np.array([1.1, 1.5, 1.7, 3.0, 6.0, 19.0, 20.5, np.inf])
    found = curve.divergence(order, "remove")
    assert np.all(found >= order * 0.5)
    assert np.all(found[:6] <= np.array([0.75, 0.75, 1.0, 3.0, 3.0, 10.0]))
    assert np.all(np.isinf(found[6:]))


@pytest.mark.parametrize(
    "mechanism",
    [dn.mechanisms.FinitePair([0.9, 0.1], [0.6, 0.4]), dn.RandomizedResponse(1.0, 4), dn.Laplace(1.0, sample_rate=0.1)],
)
def test_any_step_composes_with_a_guarantee_in_divergences(mechanism):
    """Orders in two dimensions were refused by all steps without a formula; and one direction stood for both."""
    t, alone = dn.tradeoff(mechanism + dn.ZeroConcentratedDP(1e-3)), dn.tradeoff(mechanism)
    assert t.renyi(3.0) == pytest.approx(alone.renyi(3.0) + 3e-3, rel=5e-3)  # of chords between orders
    for epsilon in (0.0, 0.3, 0.8):
        either = [t.delta(epsilon, direction) for direction in ("remove", "add")]
        assert alone.delta(epsilon) <= t.delta(epsilon) == pytest.approx(max(either), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "categories"), [(1e-6, 3), (0.5, 2), (1.0, 4), (3.0, 1000), (600.0, 3)])
def test_responses_over_categories_by_their_outcomes(epsilon, categories):
    orders = np.array([1.001, 2.0, 7.5, 90.0])
    with mp.workdps(50):
        e, total = mp.exp(mp.mpf(epsilon)), mp.exp(mp.mpf(epsilon)) + categories - 1
        for order, found in zip(orders, ResponseStep(epsilon, categories).divergence(orders, "remove"), strict=True):
            moment = (e ** mp.mpf(order) + e ** (1 - mp.mpf(order)) + categories - 2) / total
            truth = mp.log(moment) / (mp.mpf(order) - 1)
            assert truth * (1 - mp.mpf(10) ** -13) <= found <= truth * (1 + mp.mpf(10) ** -8)
    assert ResponseStep(epsilon, categories).divergence(np.array([math.inf]), "add")[0] == pytest.approx(epsilon)
