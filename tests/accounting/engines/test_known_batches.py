"""The bound for an attacker who is told the batches: above the truth everywhere, near it where noise is small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.accounting.engines.known_batches import known_batches
from deniable.accounting.loss import PrivacyLoss

FPR = np.array([1e-9, 1e-5, 1e-3, 0.1, 0.5])
EPSILON = np.array([-2.0, -0.1, 0.0, 0.3, 2.0, 10.0])


def told(*mechanisms):
    return known_batches(PrivacyLoss.of(mechanisms))


@settings(max_examples=15)
@given(st.floats(0.4, 5.0), st.floats(1e-3, 0.9), st.integers(25, 2000))
def test_never_below_the_exact_curve(sigma, rate, steps):
    run = dn.SubsampledGaussian(sigma, rate, steps)
    bound, exact = told(run), dn.tradeoff(run)
    for direction in ("add", "remove"):
        assert np.all(bound.delta(EPSILON, direction) >= exact.delta(EPSILON, direction, side="lower"))
    assert np.all(bound.tpr(FPR) >= exact.tpr(FPR, side="lower"))
    assert np.all(bound.inverse().tpr(FPR) >= exact.inverse().tpr(FPR, side="lower"))


def test_several_phases_count_as_full_batches():
    run = dn.SubsampledGaussian(1.0, 0.1, 40) + dn.SubsampledGaussian(2.0, 0.2, 40) + dn.GaussianDP(0.5)
    assert told(*run.mechanisms).advantage() >= dn.tradeoff(run).advantage(side="lower")


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(0.02, 0.01, 1000), (0.05, 0.01, 1000), (0.08, 1e-4, 100)])
def test_tiny_noise_is_bounded_by_whether_the_record_took_part(sigma, rate, steps):
    """With next to no noise the record is recognised if it took part in any step, and only then."""
    t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps))
    took_part = -np.expm1(steps * np.log1p(-rate))
    assert t.advantage() == pytest.approx(took_part, rel=1e-8)  # the modes overlap by Φ(−6.25) at σ = 0.08
    assert t.advantage(side="lower") == 0
    assert np.all(t.tpr(FPR[FPR >= 1e-3]) >= took_part * (1 - 1e-8))


def test_played_out_at_tiny_noise():
    sigma, rate, steps, n = 0.08, 0.003, 100, 20_000
    rng = np.random.default_rng(0)
    hits = rng.binomial(steps, rate, n)
    largest_in = np.where(hits > 0, 1.0, 0.0) + sigma * rng.standard_normal((n, steps)).max(axis=1)
    largest_out = sigma * rng.standard_normal((n, steps)).max(axis=1)
    measured = np.mean(largest_in > 0.5) - np.mean(largest_out > 0.5)
    assert measured <= dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps)).advantage() + 4 / np.sqrt(n)


def test_the_engines_refuse_what_they_cannot_resolve():
    for engine in ("inversion", "grid"):
        with pytest.raises(dn.InputError, match=r"at least 0\.1, got 0\.02"):
            dn.tradeoff(dn.SubsampledGaussian(0.02, 0.01, 1000), engine=engine)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"), [(0.11, 0.5, 100), (100.0, 1e-6, 20), (0.5, 1e-6, 5), (0.1, 0.9, 3)]
)
def test_corners_give_a_bracket_and_no_warning(sigma, rate, steps):
    t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps))
    for upper, lower in (
        (t.advantage(), t.advantage(side="lower")),
        (t.tpr(FPR), t.tpr(FPR, side="lower")),
        (t.inverse().tpr(FPR), t.inverse().tpr(FPR, side="lower")),
        (t.delta(EPSILON), t.delta(EPSILON, side="lower")),
    ):
        assert np.all(np.asarray(lower) <= np.asarray(upper))
        assert np.all(np.asarray(upper) <= 1)
