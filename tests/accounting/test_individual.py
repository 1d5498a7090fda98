"""Individual accounting against the exact composition of each record's own steps, always on the safe side."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting import NormRecorder

RUN = dn.SubsampledGaussian(1.0, 0.05, 400)


def own_run(norms, clip=1.0, run=RUN):
    """The record's own composition, step by step."""
    return dn.Composition(
        [dn.SubsampledGaussian(run.noise_multiplier * clip / r, run.sample_rate, 1) for r in norms if r > 0]
    )


def assert_just_above(curve, exact, slack=1e-9):
    assert exact.advantage(side="lower") <= curve.advantage() <= exact.advantage() + slack
    for direction in ("remove", "add"):
        for epsilon in (-0.3, 0.0, 0.1, 0.5, 2.0):
            ours, truth = curve.delta(epsilon, direction), exact.delta(epsilon, direction, side="lower")
            assert truth <= ours <= truth * 1.02 + 1e-3 * exact.advantage()
    for fpr in (1e-5, 1e-3, 0.1):
        assert exact.tpr(fpr, side="lower") <= curve.tpr(fpr) <= exact.tpr(fpr) * 1.02


def test_norms_are_rounded_up():
    """Fewer levels, larger bounds; never below the exact composition of the norms themselves."""
    norms = np.random.default_rng(4).uniform(0.0, 0.6, size=(3, 400))
    exact = [dn.tradeoff(own_run(history)).advantage(side="lower") for history in norms]
    fine, coarse = (dn.accounting.individual_tradeoffs(norms, 1.0, RUN, levels=n).advantage() for n in (64, 4))
    assert np.all(exact <= fine)
    assert np.all(fine <= np.array(exact) * 1.04)
    assert np.all(fine < coarse)


def test_negative_control_norms_rounded_down_are_below_the_truth():
    norms = np.random.default_rng(4).uniform(0.0, 0.6, size=(3, 400))
    exact = [dn.tradeoff(own_run(history)).advantage(side="lower") for history in norms]
    assert np.all(dn.accounting.individual_tradeoffs(np.floor(norms * 16) / 16, 1.0, RUN).advantage() < exact)


@settings(max_examples=12)
@given(
    sigma=st.floats(0.4, 20), rate=st.floats(1e-3, 0.9), shares=st.lists(st.floats(0.05, 1.0), min_size=1, max_size=3)
)
def test_never_below_the_exact_composition(sigma, rate, shares):
    run = dn.SubsampledGaussian(sigma, rate, 300 * len(shares))
    history = np.repeat(shares, 300)
    curve = dn.accounting.individual_tradeoffs(history[None, :], 1.0, run, levels=8)[0]
    exact = dn.tradeoff(dn.Composition([dn.SubsampledGaussian(sigma / share, rate, 300) for share in shares]))
    assert curve.advantage() >= exact.advantage(side="lower")
    assert curve.advantage() <= exact.advantage() * (1 + 1e-6) + 1e-6
    for fpr in (1e-4, 0.1):
        assert curve.tpr(fpr) >= exact.tpr(fpr, side="lower")
    assert curve.delta(0.2, "add") >= exact.delta(0.2, "add", side="lower")


def test_phases_and_full_batches():
    run = dn.Composition(
        [
            dn.SubsampledGaussian(1.0, 0.05, 100),
            dn.SubsampledGaussian(8.0, 1.0, 20),
            dn.SubsampledGaussian(2.0, 0.1, 80),
        ]
    )
    curve = dn.accounting.individual_tradeoffs(np.full((1, 200), 0.25), 0.5, run)[0]
    halved = [dn.SubsampledGaussian(2 * p.noise_multiplier, p.sample_rate, p.steps) for p in run.mechanisms]
    assert_just_above(curve, dn.tradeoff(dn.Composition(halved)))
    only_full = dn.accounting.individual_tradeoffs(np.full((1, 20), 0.25), 0.5, run.mechanisms[1])[0]
    assert_just_above(only_full, dn.tradeoff(halved[1]))


def test_no_gradient_no_trace_and_unknown_means_worst():
    norms = np.zeros((4, 400))
    norms[1] = np.nan
    norms[2] = np.inf
    norms[3] = 7.0
    curves = dn.accounting.individual_tradeoffs(norms, 1.0, RUN)
    assert curves.advantage()[0] == 0
    assert curves[0].tpr(0.01) == pytest.approx(0.01, rel=1e-12)
    assert curves[0].delta(-1.0) == pytest.approx(-math.expm1(-1.0))
    assert np.ptp(curves.advantage()[1:]) <= 4 * np.finfo(float).eps  # a matrix product may round each row its own way
    assert_just_above(curves[1], dn.tradeoff(RUN))


def test_a_tiny_gradient():
    curves = dn.accounting.individual_tradeoffs(np.array([[1e-320] * 400, [1e-3] * 400]), 1.0, RUN)
    exact = dn.tradeoff(dn.SubsampledGaussian(1e3, 0.05, 400)).advantage()
    assert 0 < curves.advantage()[0] < curves.advantage()[1]
    assert exact <= curves.advantage()[1] <= exact * 1.001


def test_the_recorder_equals_the_array_with_unknowns():
    rng = np.random.default_rng(5)
    norms = np.where(rng.random((30, 400)) < 0.3, rng.uniform(0, 1.2, (30, 400)), np.nan)
    recorder = NormRecorder(30)
    for column in norms.T:
        seen = np.flatnonzero(~np.isnan(column))
        half = seen.size // 2  # a step may come in several physical batches
        recorder.add(seen[:half], column[seen[:half]])
        recorder.add(seen[half:], column[seen[half:]])
        recorder.end_step()
    assert len(recorder) == 400
    streamed = dn.accounting.individual_tradeoffs(recorder, 1.0, RUN)
    np.testing.assert_array_equal(streamed.advantage(), dn.accounting.individual_tradeoffs(norms, 1.0, RUN).advantage())


def test_all_records_at_once():
    norms = np.random.default_rng(6).uniform(0, 1, size=(7, 400))
    curves = dn.accounting.individual_tradeoffs(norms, 1.0, RUN)
    assert curves.advantage().shape == curves.advantage(prior=0.1).shape == curves.tpr(0.01).shape == (7,)
    assert curves.tpr(0.01)[3] == curves[3].tpr(0.01)
    assert any("not something to publish" in note for note in curves[0].assumptions.notes)


@pytest.mark.parametrize(
    "run",
    [
        dn.Laplace(1.0, steps=400),
        dn.RandomAllocation(1.0, 400),
        dn.GaussianDP(1.0),
        dn.SubsampledGaussian(1.0, 0.05, 400, 2),
        dn.SubsampledGaussian(1.0, 0.05, 399) + dn.Laplace(1.0),
    ],
    ids=lambda run: type(run).__name__,
)
def test_nothing_else_than_gaussian_noise_on_poisson_batches_of_single_records_is_served(run):
    with pytest.raises(dn.InputError, match="mechanism must be a SubsampledGaussian"):
        dn.accounting.individual_tradeoffs(np.full((1, 400), 0.5), 1.0, run)


def test_many_runs_have_the_curves_that_they_have_alone():
    s = dn.SubsampledGaussian
    runs = [s(sigma, 0.01, 5000) for sigma in (0.4, 1.0, 7.0)] + [s(1.0, 0.01, n) for n in (100, 10**9)]
    runs += [s(10.0, 1.0, 50), s(1.0, 0.02, 500) + s(3.0, 1.0, 20), s(0.2, 0.5, 3)]
    every = dn.accounting.tradeoffs(run for run in runs)
    np.testing.assert_array_equal(every.advantage(), [curve.advantage() for curve in every])
    for run, curve in zip(runs[:-1], every, strict=False):
        alone = dn.tradeoff(run)
        assert_just_above(curve, alone)
        assert curve.assumptions == alone.assumptions
    assert every[0].group(2).advantage() >= dn.tradeoff(runs[0]).group(2).advantage(side="lower")
    little = dn.tradeoff(runs[-1]).advantage(side="lower")  # decays slowly: wider
    assert little <= every[-1].advantage() <= little + 0.01
    with pytest.raises(dn.InputError, match="at least one run"):
        dn.accounting.tradeoffs([])
    with pytest.raises(dn.InputError, match=r"many curves.*dn\.tradeoff\(mechanism\) bounds all"):
        dn.accounting.tradeoffs([dn.GaussianDP(1.0)])
