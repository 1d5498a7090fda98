"""Individual accounting against the exact composition of each record's own steps, always on the safe side."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting import NormRecorder
from deniable.accounting.gradient_norms import WEAKER

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


def _steps(run):
    return run.steps if hasattr(run, "steps") else run.batches * run.epochs


SAMPLED = [dn.RandomAllocation(1.0, 4), dn.ShuffledBatches(2.0, 4, 3)]


@pytest.mark.parametrize("run", SAMPLED, ids=lambda run: type(run).__name__)
def test_other_samplers_take_the_largest_norm(run):
    norms = np.full((3, _steps(run)), 0.1)
    norms[1, -1] = 0.5  # once
    norms[2, 3] = np.nan  # unknown: the clip
    own = dn.accounting.individual_tradeoffs(norms, 1.0, run)
    advantage, whole = own.advantage(), dn.tradeoff(run).advantage()
    assert advantage[0] < advantage[1] < advantage[2]
    assert whole <= advantage[2] * (1 + 1e-6) + 1e-9
    assert advantage[2] <= whole + 2e-3
    assert own[0].assumptions.adjacency == dn.tradeoff(run).assumptions.adjacency
    # small norms elsewhere are not forgotten: half the norm is a run with twice the noise, and no better
    assert own.tpr(0.01)[1] <= dn.tradeoff(run).tpr(0.01)


def test_a_record_of_half_the_norm_in_random_allocation_reaches_its_own_curve_and_no_less():
    run, half = dn.RandomAllocation(1.0, 5), dn.tradeoff(dn.RandomAllocation(2.0, 5))
    own = dn.accounting.individual_tradeoffs(np.full((1, 5), 0.5), 1.0, run)[0]
    assert half.advantage(side="lower") <= own.advantage() <= half.advantage() + 1e-3
    rng, n = np.random.default_rng(3), 40_000
    absent, present = rng.standard_normal((2, n, 5))
    present[np.arange(n), rng.integers(5, size=n)] += 0.5  # what its gradients add, at noise 1
    scores = [np.exp(x / 2).mean(axis=1) for x in (absent, present)]
    threshold = np.median(scores[0])
    reached = np.mean(scores[1] > threshold) - np.mean(scores[0] > threshold)
    assert reached <= own.advantage() + 4 / math.sqrt(n)
    assert reached > 0.5 * own.advantage()


def test_a_truncated_step_of_a_smaller_norm_by_quadrature():
    run = dn.TruncatedPoisson(1.0, 0.2, 1, 3, 10)
    own = dn.tradeoff(WEAKER[type(run)](run, 0.4, 1))
    full = 1 - sum(math.comb(9, j) * 0.2**j * 0.8 ** (9 - j) for j in range(3))
    over = 1 - sum(math.comb(10, j) * 0.2**j * 0.8 ** (10 - j) for j in range(4))
    taken = 3 / 10 * over / full
    x = np.linspace(-12, 14, 200_001)
    density = lambda m: np.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    tv = sum(
        p * q * np.sum(np.abs(density(m) - density(0))) / 2 * (x[1] - x[0])
        for p, q, m in ((1 - full, 0.2, 0.4), (full, taken, 1.4))
    )
    assert tv <= own.advantage() * (1 + 1e-6)
    assert own.advantage() <= tv + 1e-6
    # with the shifts that a record of full norm has the bound would be larger, with its own alone too small
    alone = (1 - full) * 0.2 * (2 * 0.5793 - 1) + full * taken * (2 * 0.5793 - 1)
    assert alone < tv < dn.tradeoff(run).advantage()


def test_a_replaced_record_counts_with_its_own_norm_and_the_largest_of_another():
    run = dn.WithoutReplacement(2.0, 5, 100, 6)
    assert WEAKER[type(run)](run, 0.5, 6).noise_multiplier == pytest.approx(8 / 3)
    assert WEAKER[type(run)](run, 0.0, 6).noise_multiplier == pytest.approx(4.0)
