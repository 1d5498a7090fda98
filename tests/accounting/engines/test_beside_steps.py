"""Sharp steps in cells: against closed forms, the direct convolution, integrals in 20 digits and ball arithmetic."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting.engines.beside_steps import BesideStepsTradeoff, beside_steps
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.engines.step_cells import shown
from deniable.accounting.transform.composed import PrivacyLoss

FPR = np.array([0.5, 0.05, 1e-3, 1e-5, 1e-7, 1e-9])
SIDES = ("upper", "lower")
DIRECTIONS = ("add", "remove")


def cells(*mechanisms) -> BesideStepsTradeoff:
    found = beside_steps(InvertedTradeoff(PrivacyLoss.of(mechanisms)))
    assert found is not None
    return found


def alone(sigma, rate, steps, start) -> FiniteTradeoff:
    return FiniteTradeoff(*(shown(sigma, rate, steps, start, side).law() for side in SIDES))


def meets(t, other, width, rates=FPR):
    """Both brackets hold the same truth, and the first is narrow for records that are added."""
    for direction in DIRECTIONS:
        for name, points in (("_rates", rates), ("_hockey_sticks", np.array([-0.5, 0.0, 0.3, 2.0, 9.0]))):
            low, high = (getattr(t, name)(points, direction, side) for side in ("lower", "upper"))
            below, above = (getattr(other, name)(points, direction, side) for side in ("lower", "upper"))
            assert np.all(low <= above), (direction, name, low, above)
            assert np.all(below <= high), (direction, name, below, high)
            assert direction == "remove" or np.all(high - low <= width * high + 1e-12), (name, high / low - 1)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.05, 0.3), st.floats(-8, -1.5), st.floats(0.5, 3.0))
def test_cells_of_one_step_bracket_its_closed_form(sigma, log_rate, start):
    rate = 10**log_rate
    meets(alone(sigma, rate, 1, start), dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1)), 1.0)


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(0.3, 1e-3, 3)])
def test_cells_of_several_steps_meet_the_direct_convolution(sigma, rate, steps):
    direct = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps), engine="direct")
    meets(alone(sigma, rate, steps, 2.0), direct, 2e-2)
    both = shown(sigma, rate, 2, 2.0, "upper").beside(shown(sigma, rate, steps - 2, 2.0, "upper"), "upper")
    below = shown(sigma, rate, 2, 2.0, "lower").beside(shown(sigma, rate, steps - 2, 2.0, "lower"), "lower")
    meets(FiniteTradeoff(both.law(), below.law()), direct, 2e-2)  # the same steps as two phases


def exact(sigma, rate, mu, log_gamma):
    """H of one step beside N(μ, 1): an integral over what the step shows."""
    sigma, rate, mu, log_gamma = (mp.mpf(x) for x in (sigma, rate, mu, log_gamma))

    def at(u):
        ratio = 1 - rate + rate * mp.exp((u - 1 / (2 * sigma)) / sigma)
        level = log_gamma - mp.log(ratio)
        return mp.npdf(u) * ratio * (mp.ncdf(mu / 2 - level / mu) - mp.exp(level) * mp.ncdf(-mu / 2 - level / mu))

    crossing = sigma * mp.log(1 / rate) + 1 / (2 * sigma)
    edges = sorted({mp.mpf(-9), mp.mpf(0), *(crossing + mp.mpf(k) / 4 for k in range(-4, 5)), 1 / sigma, 1 / sigma + 9})
    return mp.quad(at, [x for x in edges if x >= -9])


@pytest.mark.parametrize(("sigma", "rate", "mu"), [(0.12, 1e-5, 0.1)])
def test_brackets_hold_an_integral_in_20_digits(sigma, rate, mu):
    t = cells(dn.SubsampledGaussian(sigma, rate, 1), dn.GaussianDP(mu))
    assert len(t.above.p) > 1000
    with mp.workdps(20):
        for log_gamma in (-0.2, 0.3, 9.0):
            truth = exact(sigma, rate, mu, log_gamma)
            low, high = (float(t._hockey_sticks(np.array([log_gamma]), "add", side)[0]) for side in ("lower", "upper"))
            assert low <= truth <= high
            assert high - low <= 2e-6 * high


def test_rates_meet_ball_arithmetic():
    pytest.importorskip("flint")
    mechanisms = dn.SubsampledGaussian(0.2, 1e-3, 2), dn.GaussianDP(0.4)
    t, ball = cells(*mechanisms), dn.tradeoff(dn.Composition(mechanisms), engine="ball")
    fpr = np.array([0.3, 1e-3, 1e-6])
    for curve, oracle in ((t, ball), (t.inverse(), ball.inverse())):
        low, high = curve.tpr(fpr, "lower"), curve.tpr(fpr)
        assert np.all(low <= oracle.tpr(fpr))
        assert np.all(oracle.tpr(fpr, "lower") <= high)
        assert np.all(high - low <= 1e-5 * high)


TWO = (
    dn.SubsampledGaussian(0.1037, 5e-7, 2),
    dn.SubsampledGaussian(0.15, 1e-6, 40),
    dn.SubsampledGaussian(20.0, 0.01, 40_000),
)


def test_rates_are_narrow_where_the_bulk_ends_and_jumps_begin():
    t = cells(*TWO)
    meets(t, dn.tradeoff(dn.Composition(TWO), engine="inversion"), 5e-6, FPR[[1, 3]])
    asked = dn.tradeoff(dn.Composition(TWO))
    rates = asked.tpr(FPR[::2])
    assert np.all(rates <= asked.tpr(FPR[::2], "lower") * (1 + 2e-6))
    assert "cells" in asked.explain(fpr=1e-7).engine
    assert t._rates(np.array([0.0, 1.0]), "add", "lower").tolist() == [0, 1]


@pytest.mark.parametrize(
    "mechanisms",
    [
        (dn.SubsampledGaussian(0.12, 1e-6, 10),),  # nothing beside it
        (dn.SubsampledGaussian(0.12, 1e-6, 10), dn.SubsampledGaussian(1.0, 0.1, 3)),  # few steps beside it
        (dn.SubsampledGaussian(0.25, 1e-6, 40_000), dn.GaussianDP(0.1)),  # thousands show something by chance
        (dn.SubsampledGaussian(1.0, 0.01, 500), dn.GaussianDP(0.1)),  # nothing sharp
    ],
)
def test_others_are_left_to_other_engines(mechanisms):
    assert beside_steps(InvertedTradeoff(PrivacyLoss.of(mechanisms))) is None
