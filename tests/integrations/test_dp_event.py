"""DpEvent trees become mechanisms exactly, or are refused by name."""

import math
import subprocess
import sys

import pytest

import deniable as dn

dp = pytest.importorskip("dp_accounting")
dp_event = pytest.importorskip("dp_accounting.dp_event")
rdp = pytest.importorskip("dp_accounting.rdp")

GAUSS = dp.GaussianDpEvent(1.5)
STEP = dp.PoissonSampledDpEvent(0.04, GAUSS)


def test_the_known_shapes():
    assert dn.from_dp_event(GAUSS) == dn.SubsampledGaussian(1.5, 1.0, 1)
    assert dn.from_dp_event(STEP) == dn.SubsampledGaussian(1.5, 0.04, 1)
    assert dn.from_dp_event(dp.SelfComposedDpEvent(STEP, 2250)) == dn.SubsampledGaussian(1.5, 0.04, 2250)
    tree = dp.ComposedDpEvent([dp.SelfComposedDpEvent(STEP, 10), GAUSS, dp.PoissonSampledDpEvent(0.1, GAUSS)])
    assert dn.from_dp_event(tree) == dn.Composition(
        [dn.SubsampledGaussian(1.5, 0.04, 10), dn.SubsampledGaussian(1.5, 1.0, 1), dn.SubsampledGaussian(1.5, 0.1, 1)]
    )


def test_nesting_multiplies_and_equal_releases_merge():
    inner = dp.ComposedDpEvent([STEP, dp.SelfComposedDpEvent(GAUSS, 3), STEP])
    tree = dp.SelfComposedDpEvent(dp.ComposedDpEvent([inner, STEP, dp.ComposedDpEvent([])]), 10**6)
    assert dn.from_dp_event(tree) == dn.Composition(
        [dn.SubsampledGaussian(1.5, 0.04, 3 * 10**6), dn.SubsampledGaussian(1.5, 1.0, 3 * 10**6)]
    )


def test_a_deep_tree():
    tree = STEP
    for _ in range(5000):
        tree = dp.ComposedDpEvent([tree])
    assert dn.from_dp_event(tree) == dn.SubsampledGaussian(1.5, 0.04, 1)


def test_several_releases_from_one_sample_are_one():
    """Same Rényi curve as dp-accounting gives the tree, and σ on the safe side."""
    tree = dp.PoissonSampledDpEvent(
        0.1, dp.ComposedDpEvent([dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 3), dp.GaussianDpEvent(4.0)])
    )
    ours = dn.from_dp_event(tree)
    exact = 1 / math.sqrt(3 / 4 + 1 / 16)
    assert exact * (1 - 1e-14) < ours.noise_multiplier <= exact
    assert (ours.sample_rate, ours.steps) == (0.1, 1)
    same = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(ours.noise_multiplier))
    epsilons = [rdp.RdpAccountant().compose(event).get_epsilon(1e-5) for event in (tree, same)]
    assert epsilons[0] == pytest.approx(epsilons[1], rel=1e-10)


def test_it_is_not_composition_of_the_sampled_releases():
    """Negative control: sampling afresh for each release is a different, more private mechanism."""
    once = dp.PoissonSampledDpEvent(0.1, dp.SelfComposedDpEvent(GAUSS, 2))
    afresh = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, GAUSS), 2)
    assert dn.from_dp_event(once) != dn.from_dp_event(afresh)


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (dp.LaplaceDpEvent(1.0), "LaplaceDpEvent"),
        (dp.NoOpDpEvent(), "NoOpDpEvent"),
        (dp.NonPrivateDpEvent(), "NonPrivateDpEvent"),
        (dp.UnsupportedDpEvent(), "UnsupportedDpEvent"),
        (dp.ZCDpEvent(0.1), "ZCDpEvent"),
        (dp.SampledWithoutReplacementDpEvent(100, 10, GAUSS), "SampledWithoutReplacementDpEvent"),
        (dp.SampledWithReplacementDpEvent(100, 10, GAUSS), "SampledWithReplacementDpEvent"),
        (dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0), "TruncatedSubsampledGaussianDpEvent"),
        (dp.SingleEpochTreeAggregationDpEvent(1.0, 4), "SingleEpochTreeAggregationDpEvent"),
        (dp_event.MixtureOfGaussiansDpEvent(1.0, [0, 1], [0.5, 0.5]), "MixtureOfGaussiansDpEvent"),
        (dp_event.RepeatAndSelectDpEvent(GAUSS, 2, 1), "RepeatAndSelectDpEvent"),
        (dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0)), "LaplaceDpEvent inside PoissonSampledDpEvent"),
        (dp.PoissonSampledDpEvent(0.1, STEP), "PoissonSampledDpEvent inside PoissonSampledDpEvent"),
        (
            dp.PoissonSampledDpEvent(0.1, dp.ComposedDpEvent([GAUSS, STEP])),
            "PoissonSampledDpEvent inside PoissonSampledDpEvent",
        ),
        (dp.ComposedDpEvent([STEP, dp.SelfComposedDpEvent(dp.LaplaceDpEvent(1.0), 3)]), "LaplaceDpEvent"),
        (3.0, "builtins.float"),
    ],
)
def test_everything_else_is_refused_by_name(event, named):
    with pytest.raises(dn.InputError, match=f"got {named};"):
        dn.from_dp_event(event)


def test_a_subclass_may_mean_something_else():
    class GaussianDpEvent(dp.GaussianDpEvent):
        pass

    with pytest.raises(dn.InputError, match=r"test_dp_event\.GaussianDpEvent"):
        dn.from_dp_event(GaussianDpEvent(1.0))


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (dp.GaussianDpEvent(0.0), "noise_multiplier must be above 0"),
        (dp.GaussianDpEvent(math.nan), "noise_multiplier must be above 0"),
        (dp.GaussianDpEvent(math.inf), "noise_multiplier must be above 0 and below inf"),
        (dp.PoissonSampledDpEvent(0.0, GAUSS), "sampling_probability must be above 0"),
        (dp.PoissonSampledDpEvent(1.5, GAUSS), "sampling_probability must be above 0"),
        (dp.PoissonSampledDpEvent(0.5, dp.ComposedDpEvent([])), "PoissonSampledDpEvent must contain"),
        (dp.SelfComposedDpEvent(STEP, 0), "count must be at least 1"),
        (dp.SelfComposedDpEvent(STEP, 2.5), "count must be a whole number"),
        (dp.ComposedDpEvent([]), "at least one Gaussian release"),
    ],
)
def test_bad_parameters(event, message):
    with pytest.raises(dn.InputError, match=message):
        dn.from_dp_event(event)


def test_dp_accounting_is_not_imported():
    code = "import sys, deniable; deniable.from_dp_event; assert not any('dp_accounting' == m for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
