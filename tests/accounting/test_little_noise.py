"""Steps of little noise: attacks on single outcomes in 50 digits, what shows for certain, and runs beside them."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn

FPR = np.array([1e-9, 1e-5, 1e-3, 0.1, 0.5])


def largest_outcome(sigma, rate, steps, threshold):
    """In and out probability that some outcome (in units of the noise) exceeds a threshold, in 50 digits."""
    with mp.workdps(50):
        out = mp.erfc(mp.mpf(threshold) / mp.sqrt(2)) / 2
        hit = mp.erfc((mp.mpf(threshold) - 1 / mp.mpf(sigma)) / mp.sqrt(2)) / 2
        inside = (1 - mp.mpf(rate)) * out + mp.mpf(rate) * hit
        return 1 - (1 - inside) ** steps, 1 - (1 - out) ** steps


@settings(max_examples=20)
@given(
    sigma=st.floats(0.01, 0.0999),
    log_rate=st.floats(-12, -0.01),
    log_steps=st.floats(0, 9),
    spread=st.floats(-3, 6),
    gamma=st.floats(0.01, 100),
)
def test_no_attack_on_the_largest_outcome_beats_the_bound(sigma, log_rate, log_steps, spread, gamma):
    rate, steps = 10**log_rate, round(10**log_steps)
    inside, out = largest_outcome(sigma, rate, steps, 0.5 / sigma + spread)
    t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps))
    assert inside - out <= t.advantage()
    assert inside - gamma * out <= t.hockey_stick(gamma)
    assert 1 - out - gamma * (1 - inside) <= t.hockey_stick(gamma, "add")
    if 1e-300 < out < 1:
        assert inside <= t.tpr(float(out) * (1 + 1e-15))
    if inside < 1:
        assert 1 - out <= t.inverse().tpr(min(float(1 - inside) * (1 + 1e-15) + 1e-16, 1.0))


def test_a_sharp_phase_costs_what_it_leaks():
    # the advantage was 1.0, and .161 without the second phase
    run = dn.SubsampledGaussian(1.0, 0.01, 1000)
    alone, both = dn.tradeoff(run), dn.tradeoff(run + dn.SubsampledGaussian(0.09, 1e-6, 1))
    assert alone.advantage() <= both.advantage() <= alone.advantage() + 1e-6
    assert both.advantage() - both.advantage(side="lower") < 1e-9
    assert np.all(both.tpr(FPR) <= alone.tpr(FPR) + 1e-6)
    assert np.all(both.tpr(FPR, "lower") >= alone.tpr(FPR, "lower"))
    with_answer = dn.tradeoff(dn.PureDP(1.0) + dn.SubsampledGaussian(0.05, 1e-3, 10))
    assert with_answer.advantage() <= dn.tradeoff(dn.PureDP(1.0)).advantage() + 0.01


def test_more_steps_than_any_window_of_the_binomial_law():
    t = dn.tradeoff(dn.SubsampledGaussian(0.05, 0.5, 10**15))
    assert t.advantage() == 1.0
    assert t.advantage(side="lower") > 0.999


def test_nothing_is_found_without_false_positives():
    # found by the fuzz (seed 3000019): the rate of a test under "in" underflowed, and the lower bound at 0 was 0.99999
    removed = dn.tradeoff(dn.SubsampledGaussian(0.04786, 0.03193, 2992728)).inverse()
    assert removed.tpr(0.0, side="lower") == 0.0


def one_beside(sigma, rate, mu, log_gamma):
    """H of one step beside N(μ, 1): an integral over what the step shows."""
    sigma, rate, mu, log_gamma = (mp.mpf(x) for x in (sigma, rate, mu, log_gamma))

    def at(u):
        ratio = 1 - rate + rate * mp.exp((u - 1 / (2 * sigma)) / sigma)
        level = log_gamma - mp.log(ratio)
        return mp.npdf(u) * ratio * (mp.ncdf(mu / 2 - level / mu) - mp.exp(level) * mp.ncdf(-mu / 2 - level / mu))

    crossing = sigma * mp.log(1 / rate) + 1 / (2 * sigma)
    edges = sorted({mp.mpf(-9), mp.mpf(0), *(crossing + mp.mpf(k) / 4 for k in range(-4, 5)), 1 / sigma, 1 / sigma + 9})
    return mp.quad(at, [x for x in edges if x >= -9])


def test_one_step_beside_a_gaussian_is_an_integral_in_20_digits():
    sigma, rate, mu = 0.12, 1e-5, 0.1
    t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1) + dn.GaussianDP(mu))
    with mp.workdps(20):
        for log_gamma in (-0.2, 0.3, 9.0):
            truth = one_beside(sigma, rate, mu, log_gamma)
            low, high = (
                float(t.hockey_sticks(np.array([log_gamma]), "remove", side)[0]) for side in ("lower", "upper")
            )
            assert low <= truth <= high
            assert high - low <= 2e-5 * high


def test_rates_meet_ball_arithmetic():
    pytest.importorskip("flint")
    run = dn.SubsampledGaussian(0.2, 1e-3, 2) + dn.GaussianDP(0.4)
    ball, fpr = dn.proof.enclosure(run), np.array([0.3, 1e-3, 1e-6])
    for engine in ("auto", "pld"):
        t = dn.tradeoff(run, engine=engine)
        for curve, oracle in ((t, ball), (t.inverse(), ball.inverse())):
            low, high = curve.tpr(fpr, "lower"), curve.tpr(fpr)
            assert np.all(low <= oracle.tpr(fpr))
            assert np.all(oracle.tpr(fpr, "lower") <= high)
            assert np.all(high - low <= 5e-5 * high)


@pytest.mark.parametrize(
    "parts",
    [
        (dn.SubsampledGaussian(0.1436, 2.2e-6, 14),),
        (dn.SubsampledGaussian(0.1305, 3.7e-7, 40), dn.ApproximateDP(0.06, 1e-9)),
        (dn.SubsampledGaussian(0.08651, 1.5e-6, 76),),
        (dn.SubsampledGaussian(0.12, 1e-6, 9), dn.SubsampledGaussian(0.05, 1e-6, 20), dn.PureDP(0.3)),
        (dn.SubsampledGaussian(0.1037, 5e-7, 2), dn.SubsampledGaussian(20.0, 0.01, 40_000)),
    ],
)
def test_rates_are_narrow(parts):
    t, fpr = dn.tradeoff(dn.Composition(parts)), np.array([0.5, 0.05, 1e-3, 1e-5, 1e-7, 1e-10])
    assert np.all(t.tpr(fpr) <= t.tpr(fpr, "lower") * (1 + 5e-5))


def _delta_of_told_steps(epsilon, sigma, rate, steps):
    """δ(ε) if the attacker is told which steps drew the record: with so little noise he sees it anyway."""
    total = 0.0
    for k in range(1, steps + 1):
        chance = math.comb(steps, k) * rate**k * (1 - rate) ** (steps - k)
        shift = k * math.log(rate) + (steps - k) * math.log1p(-rate)
        level = epsilon - shift  # of the loss of k full batches
        mu = math.sqrt(k) / sigma
        above = 0.5 * math.erfc((level / mu - mu / 2) / math.sqrt(2))
        far = 0.5 * math.exp(level + log_erfc(level / mu + mu / 2))
        total += chance * (above - far)
    return total


def log_erfc(x):
    """log erfc(x/√2) for large x."""
    return math.log(math.erfc(x / math.sqrt(2))) if x < 30 else -x * x / 2 - math.log(x * math.sqrt(math.pi / 2))


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "delta"), [(0.022, 0.1, 10, 1e-7), (0.025, 0.02, 30, 1e-7), (0.015, 0.1, 4, 1e-6)]
)
def test_epsilon_is_finite_however_large_it_is(sigma, rate, steps, delta):
    t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps))
    low, high = t.epsilon(delta, side="lower"), t.epsilon(delta)
    assert 5e3 < low <= high < low * (1 + 1e-3)
    assert t.delta(high) <= delta
    assert _delta_of_told_steps(low, sigma, rate, steps) >= delta * (1 - 1e-4)
    assert _delta_of_told_steps(high, sigma, rate, steps) <= delta * (1 + 1e-4)
    less = dn.tradeoff(dn.SubsampledGaussian(sigma / 1.2, rate, steps)).epsilon(delta)
    assert high < less < math.inf
