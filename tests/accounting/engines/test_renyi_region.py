"""Rényi divergences to the ROC: against 50 digits, against mechanisms that attain it, and against exact curves."""

import mpmath as mp
import numpy as np
import pytest

import deniable as dn

RATES = [1e-12, 1e-5, 0.01, 0.3, 0.7, 0.99]


def coins(x, y, order):
    """D_α(Bern(y)‖Bern(x)) in 50 digits."""
    return mp.log(y**order * x ** (1 - order) + (1 - y) ** order * (1 - x) ** (1 - order)) / (order - 1)


def largest_rate(x, orders, epsilons, grid=None):
    """The largest y whose two coins keep every bound in both directions, by bisection in 50 digits."""
    x = mp.mpf(x)
    low, high = x, mp.mpf(1) - mp.mpf(10) ** (5 - mp.mp.dps)
    for _ in range(int(3.5 * mp.mp.dps)):
        y = (low + high) / 2
        kept = all(
            max(coins(x, y, mp.mpf(a)), coins(y, x, mp.mpf(a))) <= mp.mpf(e)
            for a, e in zip(orders, epsilons, strict=True)
        )
        low, high = (y, high) if kept else (low, y)
    return low


@pytest.mark.parametrize(
    ("orders", "epsilons"),
    [([2.0], [0.3]), ([1.1, 4.0, 64.0], [0.05, 0.2, 1.0]), ([1.5, 300.0], [1e-4, 2e-3]), ([3.0, 10.0], [4.0, 9.0])],
)
def test_the_rate_is_the_largest_that_the_orders_allow(orders, epsilons):
    """Not below the truth in 50 digits, equal to 1e-7 of what can still grow; two coins attain it."""
    mp.mp.dps = 50
    t = dn.tradeoff(dn.RenyiDP(orders, epsilons))
    for x, y in zip(RATES, t.tpr(RATES), strict=True):
        truth = largest_rate(x, orders, epsilons)
        assert truth <= y <= truth + 1e-7 * min(truth, 1 - mp.mpf(x))


def test_a_concentrated_guarantee_is_the_best_of_all_orders():
    mp.mp.dps = 20
    rho = 0.2
    orders = 1 + np.geomspace(0.01, 60, 40)
    for x, y in zip(RATES[2:5], dn.tradeoff(dn.ZeroConcentratedDP(rho)).tpr(RATES[2:5]), strict=True):
        few = largest_rate(x, orders, rho * orders)
        assert y <= few * (1 + 1e-12)  # more orders than these
        assert y >= few * (1 - 0.02)


@pytest.mark.parametrize(
    ("mechanism", "room"),
    [(dn.RenyiDP([2.0, 5.0, 30.0], [0.2, 0.5, 2.0]), 1e-3), (dn.ZeroConcentratedDP(0.5), 3e-5)],  # with kinks; smooth
)
def test_hockey_sticks_are_suprema_over_the_region(mechanism, room):
    t = dn.tradeoff(mechanism)
    x = np.concatenate([np.geomspace(1e-14, 0.01, 1500), np.linspace(0.01, 1, 6000)])
    y = t.tpr(x)
    for epsilon in (-2.0, -0.3, 0.0, 0.4, 1.75, 2.5):
        best = float(np.max(y - np.exp(epsilon) * x))
        for way in ("remove", "add"):  # the guarantee is symmetric
            assert best * (1 - 1e-6) <= t.delta(epsilon, way) <= best + room * max(best, 1e-3)


def test_divergences_of_known_mechanisms_bound_their_curves():
    run = dn.SubsampledGaussian(0.9, 0.05, 40)
    orders = 1 + np.geomspace(0.05, 60, 40)
    fpr, epsilon = np.array([1e-9, 1e-4, 0.01, 0.3, 0.9]), np.array([-1.0, 0.0, 0.7, 3.0])
    cases = {
        dn.GaussianDP(1.3): dn.ZeroConcentratedDP(1.3**2 / 2),
        run: dn.RenyiDP(orders, dn.tradeoff(run).renyi(orders)),
        run + dn.GaussianDP(0.5): dn.ZeroConcentratedDP(0.125) + run,
        dn.Laplace(2.0, steps=3) + dn.GaussianDP(0.5): dn.ZeroConcentratedDP(0.125) + dn.Laplace(2.0, steps=3),
        dn.PureDP(0.8): dn.RenyiDP(orders, dn.tradeoff(dn.PureDP(0.8)).renyi(orders)),
    }
    for exact, stated in cases.items():
        truth, bound = dn.tradeoff(exact), dn.tradeoff(stated)
        for roc, upper in ((truth, bound), (truth.inverse(), bound.inverse())):
            assert np.all(roc.tpr(fpr, "lower") <= upper.tpr(fpr))
            assert np.all(upper.tpr(fpr[2:]) <= 3 * roc.tpr(fpr[2:]))
            assert np.all(roc.delta(epsilon, "remove", "lower") <= upper.delta(epsilon, "remove"))
        assert truth.epsilon(1e-6) <= bound.epsilon(1e-6) <= truth.epsilon(1e-6) + 0.8


def test_a_divergence_stated_too_small_is_caught():
    """Negative control: at 60 % of its divergence a Gaussian mechanism lies above the curve."""
    truth, wrong = dn.tradeoff(dn.GaussianDP(1.3)), dn.tradeoff(dn.ZeroConcentratedDP(0.6 * 1.3**2 / 2))
    assert truth.advantage() > wrong.advantage() or np.any(truth.tpr([1e-9, 0.3, 0.9]) > wrong.tpr([1e-9, 0.3, 0.9]))


def test_order_infinity_is_pure_privacy_and_zero_is_none():
    pure, stated = dn.tradeoff(dn.PureDP(1.2)), dn.tradeoff(dn.RenyiDP([np.inf], [1.2]))
    fpr = np.array([1e-300, 1e-8, 0.1, 0.5, 1 - 1e-9])
    assert np.all(stated.tpr(fpr) >= pure.tpr(fpr, "lower"))
    assert stated.tpr(fpr) == pytest.approx(pure.tpr(fpr), rel=1e-12)
    assert stated.epsilon(0.0) == 1.2
    assert stated.advantage() == pytest.approx(pure.advantage(), rel=1e-9)
    nothing = dn.tradeoff(dn.ZeroConcentratedDP(0.0))
    assert nothing.tpr(0.3) == 0.3
    assert nothing.advantage() < 1e-13
    assert dn.tradeoff(dn.RenyiDP([2.0], [np.inf])).advantage() == 1


def test_composition_adds_orders_and_the_exact_part_bounds_from_below():
    a, b = dn.RenyiDP([2.0, 8.0], [0.1, 0.4]), dn.RenyiDP([2.0, 8.0], [0.2, 0.5])
    both = dn.tradeoff(a + b)
    assert both.renyi([2.0, 8.0]) == pytest.approx([0.3, 0.9], rel=1e-12)
    assert both.tpr(0.01) == pytest.approx(dn.tradeoff(dn.RenyiDP([2.0, 8.0], [0.3, 0.9])).tpr(0.01), rel=1e-6)
    assert dn.tradeoff(dn.ZeroConcentratedDP(0.1) + dn.ZeroConcentratedDP(0.2)).renyi(3.0) == pytest.approx(0.9)
    run = dn.SubsampledGaussian(1.0, 0.1, 10)
    mixed = dn.tradeoff(a + run)
    assert mixed.advantage(side="lower") == dn.tradeoff(run).advantage(side="lower")
    assert both.advantage(side="lower") == 0
    failing = dn.tradeoff(dn.ApproximateDP(0.5, 0.01) + a)
    assert failing.delta(30.0) == pytest.approx(0.01)
    assert failing.advantage(side="lower") <= dn.tradeoff(dn.ApproximateDP(0.5, 0.01)).advantage()
