"""Older bounds for a run: never below the exact curve, save for the approximation that says so."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.planning import comparison

# σ, q, T and the advantage from an independent high-resolution inversion (design reference values)
RUNS = [
    (1.0, 0.01, 5000, 0.3508330355),
    (0.5, 0.001, 10000, 0.2421900607),
    (0.8, 0.02, 2500, 0.6295887512),
    (2.0, 0.05, 1000, 0.3231337531),
    (0.6, 1e-4, 1000000, 0.1529557064),
    (5.0, 1.0, 500, 0.9746526813),
]


def kl_oracle(sigma, rate, direction):
    """KL of one step, straight from the definition at 30 digits."""
    with mpmath.workdps(30):
        s, q = mpmath.mpf(sigma), mpmath.mpf(rate)

        def normal(x, m):
            return mpmath.npdf(x, m, s)

        def integrand(x):
            out, inside = normal(x, 0), (1 - q) * normal(x, 0) + q * normal(x, 1)
            return inside * mpmath.log(inside / out) if direction == "add" else out * mpmath.log(out / inside)

        points = [-14 * s, -6 * s, -2 * s, 0, 0.5, 1, 1 + 2 * s, 2 + 6 * s, 2 + 14 * s]
        return mpmath.quad(integrand, points)


@pytest.mark.parametrize("direction", ["add", "remove"])
@pytest.mark.parametrize(
    ("sigma", "rate"), [(1.0, 0.01), (0.5, 1e-3), (0.6, 1e-4), (2.0, 0.05), (0.3, 0.5), (100.0, 1e-6), (5.0, 0.999)]
)
def test_kl_against_mpmath(sigma, rate, direction):
    truth = kl_oracle(sigma, rate, direction)
    ours = comparison.kl_divergence(dn.SubsampledGaussian(sigma, rate, 1), direction)
    assert truth <= ours <= truth * (1 + 1e-11)


def test_kl_closed_forms():
    assert comparison.kl_divergence(dn.GaussianDP(2.0)) == pytest.approx(2.0, rel=1e-11)
    assert comparison.kl_divergence(dn.SubsampledGaussian(5.0, 1.0, 500)) == pytest.approx(10.0, rel=1e-11)
    p = 1 / (1 + math.exp(-1.5))
    assert comparison.kl_divergence(dn.PureDP(1.5)) == pytest.approx((2 * p - 1) * 1.5, rel=1e-11)
    assert comparison.kl_divergence(dn.ApproximateDP(1.0, 1e-5)) == math.inf
    assert comparison.kl_divergence(dn.ApproximateDP(1.5, 0.0)) == comparison.kl_divergence(dn.PureDP(1.5))


def test_kl_adds():
    phases = [dn.SubsampledGaussian(1.0, 0.01, 10), dn.SubsampledGaussian(2.0, 0.1, 3), dn.GaussianDP(0.5)]
    total = sum(comparison.kl_divergence(phase) for phase in phases)
    assert comparison.kl_divergence(dn.Composition(phases)) == pytest.approx(total, rel=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-4, 100), st.floats(1e-6, 1.0), st.sampled_from(["add", "remove"]))
def test_kl_is_finite_and_below_its_convex_bound(sigma, rate, direction):
    value = comparison.kl_divergence(dn.SubsampledGaussian(sigma, rate, 1), direction)
    assert 0 < value <= rate / (2 * sigma**2) * (1 + 1e-11)


@pytest.mark.parametrize(("sigma", "rate", "steps", "advantage"), RUNS)
def test_pinsker_is_above_the_truth(sigma, rate, steps, advantage):
    assert comparison.pinsker_of(dn.SubsampledGaussian(sigma, rate, steps)) > advantage


def test_pinsker_takes_the_better_direction_and_stops_at_one():
    run = dn.SubsampledGaussian(0.6, 1e-3, 1000)
    divergences = [comparison.kl_divergence(run, way) for way in ("add", "remove")]
    assert divergences[0] > 1.01 * divergences[1]
    assert comparison.pinsker_of(run) == pytest.approx(math.sqrt(divergences[1] / 2), rel=1e-12)
    assert comparison.pinsker_of(dn.SubsampledGaussian(5.0, 1.0, 500)) == 1.0


@settings(max_examples=40, deadline=None)
@given(mu=st.floats(0.01, 4), delta=st.floats(1e-12, 1.0))
def test_humphries_is_never_below_the_advantage(mu, delta):
    advantage = dn.GaussianDP(mu)
    exact = dn.tradeoff(advantage).advantage(side="lower")
    assert comparison.humphries_of(advantage, delta) >= exact


def test_humphries_best_pair_is_the_advantage_itself():
    mechanism = dn.GaussianDP(1.0)
    advantage = dn.tradeoff(mechanism).advantage()
    deltas = np.geomspace(1e-10, 0.9, 200)
    bounds = comparison.humphries_of(mechanism, deltas)
    assert bounds.shape == deltas.shape
    assert advantage <= bounds.min() <= advantage + 0.02
    assert comparison.humphries_of(mechanism) == pytest.approx(advantage, rel=1e-14)
    assert comparison.humphries_of(mechanism, 1e-5) > 2 * advantage  # the pair that is usually quoted


def test_humphries_of_pure_dp_is_tight():
    assert comparison.humphries_of(dn.PureDP(1.0), 0.0) == pytest.approx(math.tanh(0.5), rel=1e-14)


@pytest.mark.parametrize(("sigma", "rate", "steps", "advantage"), RUNS)
def test_on_the_reference_runs(sigma, rate, steps, advantage):
    """Exact ≤ Humphries at δ = 1e-5, exact ≤ Pinsker, and the error of the Gaussian approximation."""
    run = dn.SubsampledGaussian(sigma, rate, steps)
    assert comparison.humphries_of(run) == pytest.approx(advantage, abs=1e-9)
    assert comparison.humphries_of(run, 1e-5) > advantage
    clt = comparison.gdp_clt(run)
    assert clt.mu == pytest.approx(rate * math.sqrt(steps * math.expm1(1 / sigma**2)), rel=1e-13)
    error = 2 * (0.5 + math.erf(clt.mu / 2 / math.sqrt(2)) / 2) - 1 - advantage
    assert clt.advantage_error == pytest.approx(error, abs=1e-9)


def test_the_gaussian_approximation_is_not_a_bound():
    """It understates the attack at low FPR, where membership inference matters (the exact curve is the control)."""
    clt = comparison.gdp_clt(dn.SubsampledGaussian(1.0, 0.01, 5000))
    # TPR at FPR 1e-5 of the exact curve: 4.7042152e-4 (design reference value)
    assert clt.exact.tpr(1e-5) == pytest.approx(4.7042152e-4, rel=1e-6)
    assert clt.tpr_error(1e-5) < 0
    assert clt.tpr_error(np.array([1e-5, 0.1])).shape == (2,)
    assert len(clt.plot().lines) >= 2


def test_gaussian_parts_and_overflow():
    assert comparison.gdp_clt(dn.GaussianDP(0.3) + dn.GaussianDP(0.4)).mu == pytest.approx(0.5)
    assert comparison._clt_square(dn.SubsampledGaussian(0.01, 0.1, 1)) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: comparison.humphries_of(dn.GaussianDP(1.0), -0.1), "delta must be"),
        (lambda: comparison.humphries_of(dn.GaussianDP(1.0), math.nan), "delta must be"),
        (lambda: comparison.kl_divergence(dn.GaussianDP(1.0), "both"), "direction must be one of"),
        (lambda: comparison.kl_divergence(3), "mechanism must be"),
        (lambda: comparison.gdp_clt(dn.PureDP(1.0)), "mechanism must consist of"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(dn.InputError, match=message):
        call()
