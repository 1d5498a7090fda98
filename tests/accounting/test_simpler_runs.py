"""Runs that engines can serve: they reveal no less, and no more, than the one that was asked for."""

import math
from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from deniable.accounting import dispatch
from deniable.accounting.reductions import merged, reduced
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.mechanisms import Composition

RNG = np.random.default_rng(4)


def phases(n):
    return [
        dn.SubsampledGaussian(float(sigma), float(rate), int(steps))
        for sigma, rate, steps in zip(
            RNG.uniform(0.8, 4, n), RNG.uniform(1e-3, 0.02, n), RNG.integers(1, 9, n), strict=True
        )
    ]


@pytest.mark.parametrize("most", [1, 2, 7, 40])
def test_rounded_runs_reveal_no_less_and_no_more(most):
    run = phases(40)
    exact = dn.tradeoff(Composition(run))
    above, below = (
        dn.tradeoff(
            Composition([dn.SubsampledGaussian(*one) for one in zip(part.noise, part.rate, part.steps, strict=True)])
        )
        for part in merged(PrivacyLoss.of(run), most)
    )
    for epsilon in (-1.0, 0.0, 0.3, 1.0):
        for direction in ("remove", "add"):
            assert above.delta(epsilon, direction) >= exact.delta(epsilon, direction, "lower")
            assert below.delta(epsilon, direction, "lower") <= exact.delta(epsilon, direction)
    if most == 40:
        assert above.advantage() == pytest.approx(below.advantage(), rel=1e-12)
    else:  # the opposite ends would be no bounds
        assert above.advantage(side="lower") > exact.advantage() > below.advantage()


def test_a_schedule_of_many_phases_is_known_within_a_fifth(monkeypatch):
    monkeypatch.setattr(dispatch, "_MOST_PHASES", 32)
    noise = np.linspace(1.2, 0.8, 64)
    run = Composition([dn.SubsampledGaussian(float(sigma), 0.01, 1) for sigma in noise])
    rounded, exact = dn.tradeoff(run), dn.tradeoff(run, patient=True)
    for low, high, truth in (
        (rounded.tpr(1e-3, "lower"), rounded.tpr(1e-3), exact.tpr(1e-3)),
        (rounded.delta(1.0, side="lower"), rounded.delta(1.0), exact.delta(1.0)),
    ):
        assert low < truth < high < 1.2 * low
    assert "patient=True" in rounded.method
    assert "patient=True" not in exact.method


def test_neighbours_that_differ_in_the_last_bit_are_told_apart():
    rates = np.concatenate([[rate, np.nextafter(rate, 1)] for rate in np.linspace(1e-3, 0.3, 300)])
    run = PrivacyLoss.of([dn.SubsampledGaussian(1.0, float(rate), 1) for rate in rates])
    for most in (299, 512, 600):
        above, below = merged(run, most)
        assert above.steps.sum() == below.steps.sum() == 600
        assert max(above.steps.size, below.steps.size) <= most


@pytest.mark.parametrize("rate", [1e-9, 0.3, 1 - 2**-53])
def test_whether_a_record_takes_part_is_no_more_and_no_less_than_a_step_of_little_noise(rate):
    told = reduced(dn.SubsampledGaussian(0.005, rate, 3))
    assert told.above.count == 3
    assert rate <= Fraction(told.above.step.p[1]) <= Fraction(rate) * (1 + Fraction(1, 10**14))
    assert told.below == dn.SubsampledGaussian(0.01, rate, 3)
    bound = dn.tradeoff(dn.SubsampledGaussian(1e-3, 0.01, 50))
    took = -math.expm1(50 * math.log1p(-0.01))
    for low, high, truth in (
        (bound.advantage(side="lower"), bound.advantage(), took),
        (bound.tpr(1e-3, "lower"), bound.tpr(1e-3), took + (1 - took) * 1e-3),
        (bound.inverse().tpr(1e-3, "lower"), bound.inverse().tpr(1e-3), 1e-3 / (1 - took)),
    ):
        assert low <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= high <= low * (1 + 1e-6)
