"""Figures that dp-accounting's own tests state, for every law they state some for: our brackets agree with them.

Source: github.com/google/differential-privacy, python/dp_accounting/dp_accounting/pld, commit b5b0286 (August 2026) and
version 0.6.0; the name of the test in pld_privacy_accountant_test.py, or its file, stands on the line of each figure.
The figures are rounded, or upper bounds.
"""

import math

import pytest

import deniable as dn


def bracket(method, *at):
    return method(*at, side="lower"), method(*at, side="upper")


DELTAS = {
    "test_gaussian_basic": (dn.GaussianDP(1.0), 1.0, 0.126936, 1e-6),  # cut after six digits
    "test_poisson_subsampled_gaussian": (dn.SubsampledGaussian(0.5, 0.2, 3), 1.0, 0.15594, 1e-5),
    "test_epsilon_delta_basic": (dn.ApproximateDP(1.0, 0.1) + dn.ApproximateDP(2.0, 0.2), 3.0, 0.28, 1e-9),
}


@pytest.mark.parametrize("name", DELTAS)
def test_deltas(name):
    mechanism, epsilon, stated, rounded = DELTAS[name]
    low, high = bracket(dn.tradeoff(mechanism).delta, epsilon)
    assert low - rounded <= stated <= high + rounded


RATES = {
    "test_epsilon_basic": (dn.PureDP(1.0) + dn.PureDP(2.0), 0.8286),
    "test_epsilon_delta_basic": (dn.ApproximateDP(1.0, 0.1) + dn.ApproximateDP(2.0, 0.2), 0.91938),
    "test_gaussian_basic": (dn.GaussianDP(1.0), 0.38914),
}


@pytest.mark.parametrize("name", RATES)
def test_true_positive_rates_at_a_tenth(name):
    mechanism, stated = RATES[name]
    low, high = bracket(dn.tradeoff(mechanism).tpr, 0.1)
    assert low - 1e-3 <= stated <= high + 1e-3  # the tolerance of the source


BOUNDED = {
    "test_laplace_basic": (dn.Laplace(1.0, steps=3) + dn.Laplace(2.0, steps=2), 4.0, 1e-12),
    "test_poisson_subsampled_laplace": (dn.Laplace(0.5, steps=3, sample_rate=0.2), 2.46964, 5e-6),
    "test_discrete_laplace_basic": (
        dn.mechanisms.DiscreteLaplace(1.0, steps=3) + dn.mechanisms.DiscreteLaplace(2.0, steps=2),
        4.0,
        1e-12,
    ),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_largest_losses(name):
    mechanism, largest, rounded = BOUNDED[name]
    t = dn.tradeoff(mechanism)
    assert t.epsilon(0.0) == pytest.approx(largest, abs=rounded)
    assert t.delta(largest + rounded) <= 1e-9


def test_mixtures_of_gaussians():  # test_mixture_of_gaussians_basic
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    dp = pytest.importorskip("dp_accounting")
    first = dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2])
    second = dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 2.0, 3.0], [0.33, 0.34, 0.33])
    events = [dp.SelfComposedDpEvent(first, 3), dp.SelfComposedDpEvent(second, 2)]
    t = dn.tradeoff(dn.from_dp_event(dp.ComposedDpEvent(events)))
    # dp-accounting rounds losses up to a grid of 1e-4: 17.193115 at δ = 1e-6 may lie above the truth, not below
    assert t.delta(17.193115 + 1e-6, "remove", side="lower") <= 1e-6 <= t.delta(17.193115 - 5e-4)


def test_truncated_batches_are_no_worse_than_stated():  # test_truncated_subsampled_gaussian_basic
    runs = [dn.TruncatedPoisson(1.0, 0.5, 3, 2, 4), dn.TruncatedPoisson(1.0, 0.5, 2, 2, 3)]
    assert dn.tradeoff(runs[0] + runs[1]).delta(17.904330) <= 1e-6


@pytest.mark.parametrize(("queries", "scale"), [(20, 13.6), (500, 71.0)])  # accountant_test.py, smallest Laplace noise
def test_smallest_laplace_noise(queries, scale):
    more, less = (dn.tradeoff(dn.Laplace(scale + step, steps=queries)) for step in (0.1, -0.1))
    assert more.delta(1.0) <= 1e-4 <= less.delta(1.0, side="lower")


@pytest.mark.parametrize(
    ("queries", "rate", "multiplier"), [(1, 0.01, 0.67379294682), (25, 0.001, 3.20956502598 / 6)]
)  # accountant_test.py, smallest subsampled Gaussian noise
def test_smallest_sampled_gaussian_noise(queries, rate, multiplier):
    t = dn.tradeoff(dn.SubsampledGaussian(multiplier, rate, queries))
    low, high = bracket(t.delta, 1.0)
    assert low <= 1e-5 * (1 + 1e-6)
    assert high >= 1e-5 * (1 - 2e-3)  # their grid rounds losses up


def test_randomised_response():  # test_randomized_response
    for p, k, epsilon in [(4 / (3 + math.e), 4, 1.0), (0.5, 2, math.log(3))]:
        response = dn.RandomizedResponse(math.log1p(k * (1 - p) / p), k)
        assert dn.tradeoff(response).delta(epsilon) == pytest.approx(0.0, abs=1e-12)
