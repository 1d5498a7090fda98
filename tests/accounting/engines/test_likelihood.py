"""Hockey sticks formed from differences: what the subtraction loses is charged."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting.engines.likelihood import dual_from, hockey_stick_from, trivial_hockey_stick
from oracles.composed_losses import one_step, two_steps


@given(
    threshold=st.floats(-700, 700).filter(lambda x: x == 0 or abs(x) > 1e-300),
    size=st.floats(-300, 0).map(lambda x: 10.0**x),
)
@settings(max_examples=150, deadline=None)
def test_a_hockey_stick_and_its_dual_differ_by_one_minus_gamma_up_to_the_charge(threshold, size):
    value, error = np.array([size]), np.zeros(1)
    with mp.workdps(60):
        fall = mp.expm1(mp.mpf(threshold))
        dual, dual_error = dual_from(value, error, np.array([threshold]))
        assert abs(mp.mpf(float(dual[0])) - (mp.mpf(size) + fall)) <= float(dual_error[0])
        hockey_stick, other_error = hockey_stick_from(value, error, np.array([threshold]))
        assert abs(mp.mpf(float(hockey_stick[0])) - (mp.mpf(size) - fall)) <= float(other_error[0])
        low, high = trivial_hockey_stick(np.array([threshold]))
        assert low[0] <= min(max(-fall, 0), 1) <= high[0]


@pytest.mark.parametrize("sigma", [0.02, 0.3, 3.0, 100.0])
@pytest.mark.parametrize("rate", [1e-9, 1e-4, 0.3, 0.97])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_one_step_contains_fifty_digit_arithmetic(sigma, rate, direction):
    t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1))
    near = np.concatenate([-np.geomspace(1e-12, 0.999, 14), np.geomspace(1e-12, 8, 14)])
    epsilon = np.concatenate([near, rate * near, [np.log1p(-rate) * (1 + 1e-9), -np.log1p(-rate) * (1 - 1e-9)]])
    low, high = (t.delta(epsilon, direction, side) for side in ("lower", "upper"))
    for x, a, b in zip(epsilon, low, high, strict=True):
        with mp.workdps(60):
            if direction == "remove":
                truth = one_step(sigma, rate, x).hockey_stick
            else:
                truth = 1 - mp.exp(x) + mp.exp(x) * one_step(sigma, rate, -mp.mpf(x)).hockey_stick
        assert a - 1e-45 <= truth <= b + 1e-45  # the oracle's own rounding is 1e-50


@pytest.mark.parametrize("threshold", [1.6666666666666669e-10, -3e-10, 1e-12, -1e-9])
def test_a_difference_that_cancels_is_charged(threshold):
    t = dn.tradeoff(dn.SubsampledGaussian(3.0, 1e-9, 2))
    truth = two_steps(3.0, 1e-9, threshold).hockey_stick
    low, high = (t.delta(threshold, "remove", side) for side in ("lower", "upper"))
    assert low <= truth <= high
    assert high - low <= 1e-8 * high
