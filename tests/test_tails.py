"""Binomial tails and beta quantiles stay on their side of 50-digit values."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deniable._tails import beta_quantile, binomial_above, binomial_limits


def exact_above(successes: int, trials: int, rate: float):
    """P(Bin > successes), the smaller tail summed in 50 digits."""
    with mpmath.workdps(50):
        p, from_above = mpmath.mpf(rate), successes >= trials * rate
        j = successes + 1 if from_above else successes
        term = mpmath.binomial(trials, j) * p**j * (1 - p) ** (trials - j)
        total = mpmath.mpf(0)
        while 0 <= j <= trials and (total == 0 or term > total * mpmath.mpf(10) ** -40):
            total += term
            if from_above:
                term *= (trials - j) * p / ((j + 1) * (1 - p))
                j += 1
            else:
                term *= j * (1 - p) / ((trials - j + 1) * p)
                j -= 1
        return total if from_above else 1 - total


@settings(max_examples=60)
@given(st.floats(0, 7), st.floats(-5, -0.3), st.floats(-5, 5))
def test_binomial_tails_are_upper_bounds(log_trials, log_rate, deviations):
    trials, rate = max(1, round(10**log_trials)), 10**log_rate
    k = math.floor(trials * rate + deviations * math.sqrt(trials * rate))
    k = min(max(k, 0), trials - 1)
    truth, bound = exact_above(k, trials, rate), float(binomial_above(k, trials, rate))
    assert truth <= bound <= float(truth) * (1 + 3e-9)


def test_ends():
    assert binomial_above(-1, 10, 0.3) == 1
    assert binomial_above([10, 12], 10, 0.3).tolist() == [0, 0]
    assert binomial_above(3, 10, 0.0) == 0
    assert binomial_above(3, 10, 1.0) == 1


@pytest.mark.parametrize(("hits", "trials"), [(1, 20), (15, 20), (300, 1000), (40_000, 100_000)])
@pytest.mark.parametrize("error", [0.05, 1e-6])
def test_quantiles_bracket(hits, trials, error):
    low = float(beta_quantile(hits, trials - hits + 1, error, "lower"))
    high = float(beta_quantile(hits + 1, trials - hits, error, "upper"))
    assert exact_above(hits - 1, trials, low) <= error * (1 + 1e-12)
    assert 1 - exact_above(hits, trials, high) <= error * (1 + 1e-9)
    assert np.all(0 < low < hits / trials < high < 1)


@pytest.mark.parametrize("error", [0.025, 1e-6, 1e-10, 1e-15, 1e-30])
def test_upper_limits_of_small_errors_keep_their_digits(error):
    """The quantile at 1 − error was asked for: what is left of 1e-10 there is off by 8e-8, of 1e-17 nothing."""
    for trials in (10, 1000, 10**9):
        with mpmath.workdps(60):
            truth = -mpmath.expm1(mpmath.log(mpmath.mpf(error)) / trials)
            _, high = binomial_limits(0, trials, error)
            assert truth <= mpmath.mpf(float(high)) <= truth * (1 + mpmath.mpf(10) ** -10)
