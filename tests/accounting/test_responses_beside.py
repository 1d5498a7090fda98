"""Pure and approximate parts beside others: against mpmath, a played-out test and their own limits."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from faults import faults_shown
from oracles.composed_losses import one_step

SIDES = ("upper", "lower")


def exact(mu, epsilon, gamma):
    """H_γ of N(0, 1) against N(μ, 1) beside randomised response, to 40 digits."""
    with mp.workdps(40):
        mu, epsilon, gamma = (mp.mpf(x) for x in (mu, epsilon, gamma))
        total = mp.mpf(0)
        for sign in (1, -1):
            mass, level = 1 / (1 + mp.exp(-sign * epsilon)), mp.log(gamma) - sign * epsilon
            total += mass * (mp.ncdf(mu / 2 - level / mu) - mp.exp(level) * mp.ncdf(-mu / 2 - level / mu))
        return total


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 8), st.floats(0.01, 6), st.floats(-6, 8))
def test_brackets_hold_to_forty_digits(mu, epsilon, log_gamma):
    t = dn.tradeoff(dn.GaussianDP(mu) + dn.PureDP(epsilon))
    gamma = math.exp(log_gamma)
    truth = exact(mu, epsilon, gamma)
    for direction in ("remove", "add"):
        low, high = (t.hockey_stick(gamma, direction, side) for side in ("lower", "upper"))
        assert low <= truth <= high
        assert high - low <= 1e-4 * high + 1e-12


def test_the_best_test_played_out():
    rng, n, mu, epsilon = np.random.default_rng(3), 200_000, 0.8, 1.0
    likely = 1 / (1 + math.exp(-epsilon))
    losses = []
    for present in (False, True):
        x = rng.standard_normal(n) + mu * present
        bit = np.where(rng.random(n) < (likely if present else 1 - likely), 1, -1)
        losses.append(mu * x - mu**2 / 2 + epsilon * bit)
    reached = np.mean(losses[1] > 0) - np.mean(losses[0] > 0)
    t = dn.tradeoff(dn.GaussianDP(mu) + dn.PureDP(epsilon))
    assert reached == pytest.approx(t.advantage(), abs=4 / math.sqrt(n))
    assert reached > dn.tradeoff(dn.GaussianDP(mu)).advantage() + 0.05  # the Gaussian alone tells less


def test_failures_and_finite_laws_beside():
    failing = dn.tradeoff(dn.GaussianDP(1) + dn.ApproximateDP(0.5, 1e-3))
    sound = dn.tradeoff(dn.GaussianDP(1) + dn.PureDP(0.5))
    assert failing.advantage() == pytest.approx(1e-3 + (1 - 1e-3) * sound.advantage(), rel=1e-6)
    categories = dn.tradeoff(dn.GaussianDP(1) + dn.RandomizedResponse(0.5, 2))
    assert categories.advantage() == pytest.approx(sound.advantage(), rel=1e-4)


@pytest.mark.parametrize("mechanism", [dn.GaussianDP(150), dn.GaussianDP(150) + dn.PureDP(1)])
def test_large_epsilons_are_found(mechanism):
    t = dn.tradeoff(mechanism)
    epsilon = t.epsilon(1e-5)
    assert 11_000 < epsilon < 13_000
    assert t.delta(epsilon) <= 1e-5
    assert t.delta(epsilon * (1 - 1e-9)) > 1e-5


def one_step_beside(sigma, rate, epsilon, gamma):
    """H_γ of one sampled Gaussian step beside randomised response, to 40 digits."""
    with mp.workdps(40):
        moved = [(1 / (1 + mp.exp(-loss)), mp.log(gamma) - loss) for loss in (mp.mpf(epsilon), -mp.mpf(epsilon))]
        return mp.fsum(mass * one_step(sigma, rate, level).hockey_stick for mass, level in moved)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.3, 30), st.floats(-5, -1.5), st.floats(0.1, 3), st.floats(-1, 1))
def test_steps_that_leak_less_than_a_response_beside_them(sigma, log_rate, epsilon, place):
    rate = 10.0**log_rate
    t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1) + dn.PureDP(epsilon))
    gamma = math.exp(epsilon * place)
    truth = one_step_beside(sigma, rate, epsilon, gamma)
    low, high = (t.hockey_stick(gamma, "remove", side) for side in ("lower", "upper"))
    assert low <= truth <= high <= low + 1e-9
    low, high = t.tpr(0.01, "lower"), t.tpr(0.01)
    slopes = [mp.exp(epsilon * x / 8) for x in range(-8, 9)]
    assert low <= min(slope * mp.mpf("0.01") + one_step_beside(sigma, rate, epsilon, slope) for slope in slopes)
    assert low <= high <= 1.01 * low


def test_a_sharp_phase_and_a_response_have_a_finite_epsilon():
    t = dn.tradeoff(dn.SubsampledGaussian(0.0865, 1.5e-6, 76) + dn.PureDP(0.1))
    assert 0.1 <= t.epsilon(1e-5, side="lower") <= t.epsilon(1e-5) < 200


def test_a_run_that_gives_the_record_away_has_a_lower_bound_that_says_so():
    """Ten thousand chances of an outcome that nobody makes by accident: who counts one of them is hardly ever wrong."""
    t = dn.tradeoff(dn.SubsampledGaussian(0.1379, 0.02, 12_000) + dn.SubsampledGaussian(10.0, 0.004, 4))
    assert t.tpr(1e-10, "lower") > 0.999999


def test_no_epsilon_serves_a_delta_below_the_probability_of_failure():
    t = dn.tradeoff(dn.ApproximateDP(0.5, 1e-3) + dn.SubsampledGaussian(1.0, 0.01, 100))
    found = [t.epsilon(np.array([1e-4, 2e-3]), direction, side) for direction in ("remove", "both") for side in SIDES]
    for epsilon in found:
        assert epsilon[0] == math.inf
        assert 0 < epsilon[1] < 5
    assert t.delta(t.epsilon(2e-3)) <= 2e-3


def test_a_curve_asked_at_its_ends_only():
    t = dn.tradeoff(dn.SubsampledGaussian(50.0, 0.01, 300) + dn.PureDP(0.7))
    with faults_shown():
        for curve in (t, t.inverse()):
            assert curve.tpr([0.0, 1.0]).tolist() == curve.tpr([0.0, 1.0], "lower").tolist() == [0, 1]
