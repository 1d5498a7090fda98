"""Sharp steps on their own, in cells: against the engines that are asked otherwise."""

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.engines.steps_alone import StepsAloneTradeoff

FPR = np.array([0.5, 0.05, 1e-3, 1e-5, 1e-7, 1e-10])
FEWER, LOG_GAMMA = FPR[[1, 3]], np.array([-0.5, 3.0])
SIDES = ("lower", "upper")


def cells_of(mechanism) -> StepsAloneTradeoff:
    found = dn.tradeoff(mechanism)
    while not isinstance(found, StepsAloneTradeoff):
        found = found.of
    return found


def meet(one, other):
    """Both hold the same truth."""
    for direction in ("add", "remove"):
        for name, points in (("_rates", FEWER), ("_hockey_sticks", LOG_GAMMA)):
            low, high = (getattr(one, name)(points, direction, side) for side in SIDES)
            below, above = (getattr(other, name)(points, direction, side) for side in SIDES)
            assert np.all(low <= above), (direction, name, low, above)
            assert np.all(below <= high), (direction, name, below, high)


@pytest.mark.parametrize(
    "parts",
    [
        (dn.SubsampledGaussian(0.1436, 2.2e-6, 14),),
        (dn.SubsampledGaussian(0.1305, 3.7e-7, 40), dn.ApproximateDP(0.06, 1e-9)),
        (dn.SubsampledGaussian(0.08651, 1.5e-6, 76),),  # batches all but visible
        (dn.SubsampledGaussian(0.12, 1e-6, 9), dn.SubsampledGaussian(0.05, 1e-6, 20), dn.PureDP(0.3)),
    ],
)
def test_rates_are_narrow(parts):
    found = dn.tradeoff(dn.Composition(parts))
    assert np.all(found.tpr(FPR) <= found.tpr(FPR, "lower") * (1 + 2e-6))
    if len(parts) == 1:
        answer = found.explain(fpr=1e-7)
        assert "cells" in answer.engine + answer.lower_engine


@pytest.mark.parametrize("step", [dn.SubsampledGaussian(0.1436, 2.2e-6, 14), dn.SubsampledGaussian(0.0865, 1.5e-6, 76)])
def test_cells_meet_the_other_engine(step):
    alone = cells_of(step)
    meet(alone._cells, alone.otherwise)
    low, high = (alone.delta(1.0, "add", side) for side in SIDES)
    assert high <= low * (1 + 5e-6) + 1e-7


def test_an_engine_that_is_wide_is_helped_by_the_other():
    alone = cells_of(dn.SubsampledGaussian(0.13, 2.5e-8, 8021))
    other = dn.tradeoff(dn.PureDP(1e-4))  # of anything else: what is asked is who answers
    both = StepsAloneTradeoff(alone.loss, alone.starts, other, 0.0)
    for side, better in (("upper", np.minimum), ("lower", np.maximum)):
        parts = [part._rates(FEWER, "add", side) for part in (both._cells, other)]
        assert np.array_equal(both._rates(FEWER, "add", side), better(*parts))
    assert cells_of_patient(dn.SubsampledGaussian(0.13, 2.5e-8, 8021)).width < alone.width


def cells_of_patient(mechanism) -> StepsAloneTradeoff:
    found = dn.tradeoff(mechanism, patient=True)
    assert isinstance(found, StepsAloneTradeoff)
    return found


@pytest.mark.parametrize(
    "mechanism",
    [
        dn.SubsampledGaussian(0.23, 2e-3, 315),  # the record takes part often
        dn.SubsampledGaussian(0.17, 1e-6, 40_000),  # thousands show something by chance
        dn.SubsampledGaussian(0.02, 1e-6, 5),  # cells end before the jump
        dn.SubsampledGaussian(1.0, 0.01, 500),
        dn.Composition([dn.SubsampledGaussian(0.12, 1e-6, 10), dn.GaussianDP(0.1)]),
    ],
)
def test_others_are_left_to_other_engines(mechanism):
    assert not isinstance(dn.tradeoff(mechanism), StepsAloneTradeoff)
