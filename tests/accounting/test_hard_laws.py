"""Laws with a sharp edge or a far second mode, which are hard on transforms and on grids."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.engines.chernoff import Chernoff
from deniable.accounting.engines.inversion import Posts
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from oracles.composed_losses import two_steps


def contour(loss, region, threshold, tolerance):
    posts = Posts(Chernoff.of(loss), region)
    return posts.contour(int(posts.nearest(np.array([threshold]))[0]), tolerance, 1 << 14)


@pytest.mark.parametrize(
    ("sigma", "rate", "threshold"),
    [
        (2.46165725534756, 0.001112471163633523, -2.2e-7),
        (2.46165725534756, 0.001112471163633523, 0.00623),
        (0.5, 0.1, 1.3),
        (30.0, 1e-4, 2e-6),
    ],
)
def test_two_steps(sigma, rate, threshold):
    truth, found = two_steps(sigma, rate, threshold), dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 2))
    low, high = (found.hockey_stick(math.exp(threshold), "remove", side) for side in ("lower", "upper"))
    assert low - 1e-14 <= float(truth.hockey_stick) <= high + 1e-14
    assert high - low < 1e-4 * high


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


@pytest.mark.parametrize("design", [0.0014, 0.004685, 0.007492])
def test_every_line_cuts_at_the_same_place(design):
    """Beyond the valley between the modes r^c grows by e^20 from node to node."""
    loss = PrivacyLoss.of([dn.SubsampledGaussian(2.237241301779409, 4.510186722105904e-05, 2577)])
    at = np.array([0.0014, 0.005])
    plain = contour(loss, "left", 0.0014, 1e-13).tails(at)
    try:
        cut = contour(loss, "right", design, 1e-13).tails(at)
    except TooSlowError:
        return
    assert np.all(np.abs(cut.out_above - plain.out_above) <= cut.out_error + plain.out_error)
    assert np.all(np.abs(cut.in_above - plain.in_above) <= cut.in_error + plain.in_error)


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
