"""The direct convolution of a few steps: against quadrature, against the other engines, and its own error bounds."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting.engines import density
from deniable.accounting.engines.few_steps import DirectTradeoff
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.transform.composed import PrivacyLoss
from oracles.composed_losses import two_steps

FPR = np.array([0.9, 0.5, 0.1, 1e-2, 1e-3, 1e-6, 1e-9])


def of(sigma: float, rate: float, steps: int) -> DirectTradeoff:
    found = DirectTradeoff.of(PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, steps)]))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sigma", "rate", "threshold"),
    [(0.5, 0.1, 1.3), (0.5, 0.01, -0.0199), (0.3, 0.01, 2.0), (2.46, 0.0011, 0.00623), (0.3, 0.9, -2.0)],
)
def test_two_steps_against_quadrature(sigma, rate, threshold):
    truth, found = two_steps(sigma, rate, threshold), of(sigma, rate, 2)._tails(np.array([threshold]))
    upper = found.out_above[0] < 0.5
    for value, error, exact in (
        (found.out_above, found.out_error, truth.out),
        (found.in_above, found.in_error, truth.inside),
        (found.hockey_stick, found.hockey_stick_error, truth.hockey_stick),
    ):
        assert abs(value[0] - float(exact)) <= error[0] + 1e-14
        assert error[0] < 1e-8 * (float(exact) if upper else 1.0)


@pytest.mark.parametrize("phase", [(0.3, 0.1, 3), (0.5, 0.9, 7), (1.0, 0.1, 10), (0.3, 1e-6, 20), (0.4, 1e-3, 60)])
def test_both_laws_have_mass_one(phase):
    """Under "in" that is a statement about the whole composition: ∫ f·(1 − q)^T·(1 + ρ) = 1."""
    out, _, inside = of(*phase)._laws
    for law in (out, inside):
        mass, error = law._sums[0][:, 0]
        assert abs(mass - 1) <= error
        assert error < 1e-7


@settings(max_examples=6, deadline=None)
@given(st.floats(-0.5, 0.7), st.floats(-5.0, -0.1), st.integers(2, 12))
def test_direct_and_inversion_bracket_the_same_truth(log_sigma, log_rate, steps):
    phase = 10**log_sigma, 10**log_rate, steps
    mine, other = of(*phase), InvertedTradeoff(PrivacyLoss.of([dn.SubsampledGaussian(*phase)]))
    log_gamma = np.array([-3.0, -0.1, 0.0, 0.01, 0.3, 2.0])
    for way in ("add", "remove"):
        for bracket, points in (("_roc_bracket", FPR), ("_hockey_stick_bracket", log_gamma)):
            low, high = getattr(mine, bracket)(points, way)
            other_low, other_high = getattr(other, bracket)(points, way)
            assert np.all(low <= other_high * (1 + 1e-14))
            assert np.all(other_low <= high * (1 + 1e-14))


def test_the_error_of_a_coarse_sum_is_real_and_charged(monkeypatch):
    """With few nodes in s the error can be seen, and the bound must cover it."""
    z = np.linspace(-2.0, 6.0, 41)
    truth, small, _ = of(0.4, 0.02, 6)._laws[0].tail(z, True)
    monkeypatch.setattr(density, "_DIGITS", 5.0)
    mine, error, _ = of(0.4, 0.02, 6)._laws[0].tail(z, True)
    assert np.all(np.abs(mine - truth) <= error + small)
    assert np.max(np.abs(mine - truth) / small) > 3


def test_the_error_of_a_coarse_interpolation_is_real_and_charged(monkeypatch):
    """The normal density on nodes 0.44 apart: the polynomials are wrong by 1e-6, and say so."""
    monkeypatch.setattr(density, "DISC", 9)
    grid = density.DensityGrid(5.0, 0.1, 2, -13.0, 4.0 / 9, 60, 4.0)
    normal = density._single(grid)
    cell = np.arange(10, 45)
    for position in (-0.4, 0.0, 0.3):
        z = grid.first + grid.spacing * (cell + 0.5 + position)
        wrong = np.abs(normal.at(cell, np.full(cell.size, position)) - np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi))
        assert np.all(wrong <= normal.cell_errors[cell])
        assert wrong.max() > 1e-7


@pytest.mark.parametrize("phase", [(0.3, 0.01, 10), (0.3, 1e-3, 20), (0.3, 0.9, 5), (3.0, 1e-3, 3)])
def test_few_steps_at_little_noise_are_known_to_1e_7(phase):
    found = dn.tradeoff(dn.SubsampledGaussian(*phase))
    assert found.advantage() - found.advantage(side="lower") < 1e-9
    for one in (found, found.inverse()):
        assert np.all(one.tpr(FPR) <= one.tpr(FPR, side="lower") * (1 + 1e-7))


def test_left_of_everything_and_right_of_everything():
    found = of(0.5, 0.1, 3)
    ends = found.loss.lowest + np.array([-1.0, 0.0, 1e-18, 200.0])
    tails = found._tails(ends)
    assert np.all(tails.hockey_stick - tails.hockey_stick_error <= np.array([1.0, 1.0, 1.0, 1e-12]))
    assert np.all(tails.hockey_stick + tails.hockey_stick_error >= np.maximum(-np.expm1(ends), 0.0) - 1e-15)
    assert found.tpr(0.0) >= 0.0
    assert math.isclose(found.tpr(1.0), 1.0)


def test_it_is_refused_for_other_mechanisms():
    for mechanism in (
        dn.SubsampledGaussian(1.0, 0.1, 1000),
        dn.Composition([dn.SubsampledGaussian(1.0, 0.1, 3), dn.SubsampledGaussian(1.0, 0.2, 3)]),
        dn.GaussianDP(1.0),
    ):
        with pytest.raises(ValueError, match="engine 'direct' works for 2 to 64 equal"):
            dn.tradeoff(mechanism, engine="direct")


@pytest.mark.parametrize(("sigma", "rate"), [(0.1, 0.01), (0.5, 0.01), (3.0, 1e-3)])
def test_rounding_of_odds_is_charged_where_they_weigh_a_density(sigma, rate):
    """At a noise of 0.1 odds near 1 were off by up to 100 roundings, and 64 to 70 were charged."""
    grid = of(sigma, rate, 2).grid
    factor = grid.log_odds(grid.z)
    one = np.ones(grid.size)
    weighed = density.Density(grid, one, 0 * one, one[1:], 0.0).times(factor)
    with mp.workdps(40):
        middle = 1 / (2 * mp.mpf(sigma)) + mp.mpf(sigma) * mp.log((1 - mp.mpf(rate)) / mp.mpf(rate))
        for k in np.flatnonzero(np.abs(factor) < 4)[::3]:
            odds = mp.exp((mp.mpf(grid.first) + mp.mpf(grid.spacing) * int(k) - middle) / sigma)
            assert abs(odds - weighed.values[k]) <= weighed.errors[k]
