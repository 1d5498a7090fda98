"""The short sum for the advantage at even priors, against 50 digits and against the general engine."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import deniable as dn
from deniable.accounting.engines import even_prior
from deniable.accounting.engines.even_prior import advantage_bracket
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.engines.likelihood import LikelihoodRatioTradeoff
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.decay import lifts, shifted
from oracles.composed_losses import inversion


@pytest.mark.parametrize(
    "phases", [((1.0, 0.01, 5000),), ((2.0, 0.05, 1000), (1.0, 0.02, 300)), ((0.5, 0.3, 60),), ((3.0, 0.9, 40),)]
)
def test_fifty_digits(phases):
    truth = float(inversion(phases, 0.0, 0.5).hockey_stick)
    low, high = advantage_bracket(PrivacyLoss.of([dn.SubsampledGaussian(*phase) for phase in phases]))[:2]
    assert low <= truth * (1 + 4e-16)
    assert truth * (1 - 4e-16) <= high
    assert high - low < 1e-11


@settings(max_examples=30, deadline=None)
@given(
    log_sigma=st.floats(-1, 2),
    log_rate=st.floats(-6, -0.001),
    log_steps=st.floats(0.3, 6),
    mu=st.sampled_from([0, 0.7]),
)
def test_the_general_engine_agrees(log_sigma, log_rate, log_steps, mu):
    parts = [dn.SubsampledGaussian(10**log_sigma, 10**log_rate, round(10**log_steps)), dn.GaussianDP(mu)]
    loss = PrivacyLoss.of(parts)
    try:
        low, high = advantage_bracket(loss)[:2]
        other_low, other_high = LikelihoodRatioTradeoff._hockey_stick_bracket(
            InvertedTradeoff(loss), np.zeros(1), "add"
        )
    except TooSlowError:
        assume(False)
    assert low <= high
    assert low <= other_high[0]
    assert other_low[0] <= high


def test_many_gaussian_steps_in_the_limit():
    """Full batches beside a vanishing rate: the closed form 2Φ(μ/2) − 1 is approached from above."""
    mu = 1.0
    low, high = advantage_bracket(PrivacyLoss.of([dn.GaussianDP(mu), dn.SubsampledGaussian(5.0, 1e-6, 50)]))[:2]
    assert 0 <= high - math.erf(mu / 2 / math.sqrt(2)) < 1e-5
    assert high - low < 1e-12


@settings(max_examples=20, deadline=None)
@given(log_sigma=st.floats(-0.12, 1.5), log_rate=st.floats(-5, -0.01), log_steps=st.floats(0.3, 5))
def test_the_bound_on_the_decay_holds_wherever_it_is_sampled(log_sigma, log_rate, log_steps):
    loss = PrivacyLoss.of([dn.SubsampledGaussian(10**log_sigma, 10**log_rate, round(10**log_steps))])
    t = even_prior._EDGES / math.sqrt(loss.cumulants(0.5)[2])
    try:
        line = loss.line(0.5, 2 * float(t[-1]))
    except TooSlowError:
        assume(False)
    bound = loss.steps @ shifted(loss.real_line(0.5), t, lifts(float(loss.steps.sum())))
    assert np.all(np.diff(bound) <= 0)
    for later in (1.0, 1.04, 1.5, 2.0):
        sampled = line.log_transform(later * t).real
        seen = sampled > -25  # beyond, samples are rounding
        assert np.all(sampled[seen] <= bound[seen] + 1e-9)
