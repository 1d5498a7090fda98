"""The loss of a sampled step and its inverse against 50 digits, where sampling rates are close to 1, too."""

import math

import mpmath as mp
import numpy as np
import pytest

import deniable as dn
from deniable.accounting.steps.discrete import ResponseStep
from deniable.accounting.steps.ratios import plain_losses, sampled_losses
from deniable.accounting.transform.laws import law_of

EPS = float(np.finfo(np.float64).eps)
RATES = (1e-8, 0.3, 0.6, 1 - 1e-6, 1 - 1e-12, 1 - 2.0**-53, 1.0)
PLAIN = np.concatenate([[-60.0, -35.0, -25.0, -15.0], np.linspace(-3, 3, 13), [1e-9, 40.0, 650.0]])


def _exact(a, rate):
    with mp.workdps(50):
        q = mp.mpf(rate)
        return mp.log(1 - q + q * mp.exp(a))


@pytest.mark.parametrize("rate", RATES)
def test_losses_are_exact_to_a_few_roundings_at_every_rate(rate):
    found = sampled_losses(PLAIN, rate)
    for a, loss in zip(PLAIN, found, strict=True):
        exact = _exact(a, rate)
        assert abs(mp.mpf(loss) - exact) <= 8 * EPS * abs(exact), (a, rate)


@pytest.mark.parametrize("rate", RATES)
def test_plain_losses_invert_what_rounding_leaves(rate):
    loss = sampled_losses(PLAIN, rate)
    for a, mixed in zip(plain_losses(loss, rate), loss, strict=True):
        exact = _exact(mp.mpf(a), rate) if np.isfinite(a) else mp.log1p(-mp.mpf(rate))
        assert abs(mp.mpf(mixed) - exact) <= 16 * EPS * (1 + abs(exact)), (a, rate)


def test_a_grid_at_a_rate_of_almost_one_holds_the_truth():
    sigma, rate, epsilon = 0.14, 1 - 1e-12, 20.0
    with mp.workdps(50):
        gamma, s, q = mp.exp(epsilon), mp.mpf(sigma), mp.mpf(rate)
        u = s * mp.log((1 / gamma - (1 - q)) / q) + 1 / (2 * s)
        exact = mp.ncdf(u) - gamma * ((1 - q) * mp.ncdf(u) + q * mp.ncdf(u - 1 / s))
    grid = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1), engine="pld")
    low, high = (mp.mpf(grid.delta(epsilon, "add", side)) for side in ("lower", "upper"))
    assert low <= exact <= high


def test_a_full_batch_of_discrete_noise_beside_others_has_an_answer():
    # outcomes far to the left have losses below −37, where 1 + (e^a − 1) is 0
    mechanism = dn.DiscreteGaussian(0.3984, 1, 7) + dn.SubsampledGaussian(2.0, 0.1, 5)
    t = dn.tradeoff(mechanism)
    low, high = (t.advantage(side=side) for side in ("lower", "upper"))
    assert dn.tradeoff(mechanism.mechanisms[0]).advantage(side="lower") <= high < 1
    assert high - low < 1e-6


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.5, 2.0, 20.0])
def test_transform_of_randomised_response_is_right_up_to_its_errors(epsilon):
    law = law_of(ResponseStep(epsilon, 2))
    with mp.workdps(60):
        half = mp.mpf(epsilon) / 2
        for c in (0.5, 0.3, 1.5, -0.5, 1e-3, 20.0, 1 + 1e-6):
            t = np.array([1e-3, 0.1, 1.0, 1.5707963]) / epsilon
            terms = law.terms(c, c, float(t[-1]), math.inf)
            moment = mp.cosh(epsilon * (mp.mpf(c) - 0.5)) / mp.cosh(half)
            assert abs(terms.log_mgf[0] - mp.log(moment)) <= float(terms.real_error[0]) + 4 * EPS * abs(mp.log(moment))
            slope = mp.tanh(epsilon * (mp.mpf(c) - 0.5))
            errors = terms.step_errors(0, np.hypot(c, t))
            for one, wrong, place in zip(terms.log_ratio_of(0, t), errors, t, strict=True):
                angle = mp.mpf(epsilon) * mp.mpf(float(place))
                truth = mp.cos(angle) + 1j * slope * mp.sin(angle)
                assert abs(mp.exp(mp.mpc(complex(one))) - truth) <= float(wrong) + 8 * EPS


def test_responses_that_give_the_world_away_have_no_transform():
    """M(1/2) = 1/cosh(ε/2) was lost in M(1/2) − 1, with a warning."""
    assert law_of(ResponseStep(600.0, 2)) is None
