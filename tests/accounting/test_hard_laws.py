"""Laws with a sharp edge or a far second mode, which are hard on transforms and on grids."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.engines.chernoff import Chernoff
from deniable.accounting.engines.inversion import Posts
from deniable.accounting.transform.composed import PrivacyLoss


def contour(loss, region, threshold, tolerance):
    posts = Posts(Chernoff.of(loss), region)
    return posts.contour(int(posts.nearest(np.array([threshold]))[0]), tolerance, 1 << 14)


@pytest.mark.parametrize(
    ("phase", "threshold"),
    [((2.42, 0.000627, 1335), 0.0615), ((1.81, 9.57e-5, 7440), 0.0214), ((30.8, 0.000962, 10), 0.00068)],
)
def test_a_second_mode_far_out_is_cut_off_and_charged(phase, threshold):
    """Right of 1 these laws have a larger mode at outcomes that never happen; the left line needs no cut."""
    loss = PrivacyLoss.of([dn.SubsampledGaussian(*phase)])
    at = np.array([threshold])
    cut = contour(loss, "right", threshold, 1e-13)
    assert math.isfinite(cut.dropped[0])
    assert cut.dropped[0] > 0
    mine, plain = cut.tails(at), contour(loss, "left", threshold, 1e-13).tails(at)
    assert mine.out_error[0] < 1e-6 * mine.out_above[0]
    assert abs(mine.out_above - plain.out_above) <= mine.out_error + plain.out_error
    assert abs(mine.in_above - plain.in_above) <= mine.in_error + plain.in_error


def test_steps_that_hardly_ever_draw_a_record_cost_no_more_than_that():
    """Their variance underflows: engines divided by it, and the answer was the trivial bound."""
    hardly = dn.SubsampledGaussian(1.0, 1e-300, 10)
    alone = dn.tradeoff(hardly)
    assert 0 < alone.advantage() <= 1.001e-299
    assert alone.tpr(1e-3) == pytest.approx(1e-3, rel=1e-12)
    run = dn.SubsampledGaussian(1.0, 0.01, 50)
    for adjacency, near in ((None, 1e-9), ("replace", 1e-5)):
        both, rest = dn.tradeoff(hardly + run, adjacency=adjacency), dn.tradeoff(run, adjacency=adjacency)
        assert rest.advantage(side="lower") <= both.advantage() <= rest.advantage() * (1 + near)
        assert both.tpr(1e-6) == pytest.approx(rest.tpr(1e-6), rel=near)


def test_outcomes_that_are_left_out_of_a_list_are_in_no_test():
    """Discrete noise beyond 14 deviations has 1e-43: times e^ε that took all of the lower side from ε = 98 on."""
    sharp, k = dn.SubsampledGaussian(0.05, 1e-4, 1), np.arange(-80, 82)
    both, alone = dn.tradeoff(sharp + dn.DiscreteGaussian(5.0)), dn.tradeoff(sharp)
    weight = np.exp(-((k - 1.0) ** 2) / 50)
    for epsilon in (110.0, 190.0):
        truth = float(weight @ alone.delta(epsilon - (2 * k - 1) / 50, "remove")) / weight.sum()
        low, high = (both.delta(epsilon, "remove", side) for side in ("lower", "upper"))
        assert low <= truth * (1 + 1e-9)
        assert truth <= high * (1 + 1e-9)
        assert high - low < 1e-3 * truth
