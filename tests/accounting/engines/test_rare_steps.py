"""Tails made by rare jumps, against closed forms and against the plain inversion."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import deniable as dn
from deniable.accounting.engines.inversion import contour
from deniable.accounting.engines.rare_steps import Ladder, jump_contour
from deniable.accounting.engines.windowed import Split
from deniable.accounting.pld.curve import MultiScaleTradeoff
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from oracles.composed_losses import one_step


def loss_of(*phase) -> PrivacyLoss:
    return PrivacyLoss.of([dn.SubsampledGaussian(*phase)])


@pytest.mark.parametrize(("phase", "threshold"), [((1.0, 0.01, 1), 2.0), ((0.3, 1e-6, 1), 2.0), ((1.0, 0.01, 1), 0.5)])
def test_one_step_closed_form(phase, threshold):
    """One step is the hardest case for a transform: the law of the loss has an edge."""
    exact = one_step(*phase[:2], threshold)
    tails = jump_contour(loss_of(*phase), threshold, 1e-13, 1 << 13).tails(np.array([threshold, 1.2 * threshold]))
    for value, error, truth in (
        (tails.out_above, tails.out_error, exact.out),
        (tails.in_above, tails.in_error, exact.inside),
        (tails.hockey_stick, tails.hockey_stick_error, exact.hockey_stick),
    ):
        assert abs(value[0] - float(truth)) <= error[0] <= 1e-7 * value[0]
    further = one_step(*phase[:2], 1.2 * threshold)
    assert abs(tails.out_above[1] - float(further.out)) <= tails.out_error[1]


@pytest.mark.parametrize(("phase", "threshold"), [((0.41, 6.28e-5, 1937), 2.0), ((1.41, 1.7e-3, 2407), 2.0)])
def test_agrees_with_plain_inversion_where_both_converge(phase, threshold):
    at = np.array([threshold])
    mine = jump_contour(loss_of(*phase), threshold, 1e-13, 1 << 13).tails(at)
    plain = contour(loss_of(*phase), "right", threshold, 1e-11, 1 << 15).tails(at)
    assert abs(mine.out_above - plain.out_above) <= mine.out_error + plain.out_error
    assert abs(mine.hockey_stick - plain.hockey_stick) <= mine.hockey_stick_error + plain.hockey_stick_error
    assert mine.out_error < 1e-5 * mine.out_above


@pytest.mark.parametrize("threshold", [0.0, -1.0])
def test_no_jump_makes_a_loss_negative(threshold):
    with pytest.raises(TooSlowError):
        jump_contour(loss_of(1.03, 4.16e-5, 31), threshold, 1e-13, 1 << 13)


@pytest.mark.parametrize(
    ("phase", "threshold"),
    [
        ((1.0, 1e-6, 1_000_000), 0.00791),
        ((1.3, 3.5e-6, 25_372), 0.00307),
        ((1.28, 3.22e-6, 162), 0.000299),
        ((1.58, 0.00469, 168), 0.3177),
    ],
)
def test_wherever_the_windows_end_the_sum_is_the_same(phase, threshold):
    """Bulk and jumps of every size have very different shares in these sums."""
    ladder = Ladder(loss_of(*phase), threshold, 1e-13, 1 << 13)
    found = []
    for low in ladder.lowest():
        try:
            found.append(ladder.contour(low))
        except TooSlowError:
            continue
    assert len(found) > 2
    assert any(line.besides for line in found)
    for field, error in (("out_above", "out_error"), ("in_above", "in_error"), ("hockey_stick", "hockey_stick_error")):
        tails = [line.tails(np.array([threshold])) for line in found]
        low = max(float((getattr(t, field) - getattr(t, error))[0]) for t in tails)
        high = min(float((getattr(t, field) + getattr(t, error))[0]) for t in tails)
        assert low <= high
        if field != "hockey_stick":
            assert high - low < 1e-7 * high


@pytest.mark.parametrize(("phase", "threshold"), [((3.32, 0.00108, 3), 0.00486), ((0.61, 2.97e-5, 20), 0.3)])
def test_agrees_with_lattices(phase, threshold):
    loss = loss_of(*phase)
    mine = jump_contour(loss, threshold, 1e-13, 1 << 13).tails(np.array([threshold]))
    other = MultiScaleTradeoff.of(loss)
    low, high = (float(other._hockey_sticks(np.array([threshold]), "add", side)[0]) for side in ("lower", "upper"))
    assert low <= mine.hockey_stick + mine.hockey_stick_error
    assert mine.hockey_stick - mine.hockey_stick_error <= high < 1.0001 * low


def test_the_tail_of_a_million_rare_steps_is_known_at_tiny_false_positive_rates():
    found = dn.tradeoff(dn.SubsampledGaussian(1.0, 1e-6, 1_000_000))
    fpr = np.array([1e-3, 1e-6, 1e-9])
    assert np.all(found.tpr(fpr) <= found.tpr(fpr, side="lower") * (1 + 1e-6))


def one_step_tails(sigma, rate, y):
    """out(L > y) and in(L > y) of one subsampled step."""
    if mp.exp(y) <= 1 - rate:
        return mp.mpf(1), mp.mpf(1)
    u = sigma * mp.log((mp.exp(y) - (1 - rate)) / rate) + 1 / (2 * sigma)
    return mp.ncdf(-u), (1 - rate) * mp.ncdf(-u) + rate * mp.ncdf(1 / sigma - u)


def beside(sigma, rate, tails, threshold):
    """The same of one step beside another law: an integral over the step's outcome."""
    sigma, rate = mp.mpf(sigma), mp.mpf(rate)

    def loss(u):
        return mp.log1p(rate * mp.expm1((2 * u * sigma - 1) / (2 * sigma**2)))

    crossing = sigma * mp.log(1 + mp.expm1(threshold) / rate) + 1 / (2 * sigma)
    near = [crossing + x for x in (-1, -0.3, -0.1, -0.03, 0, 0.03, 0.1, 0.3, 1)]
    ends = sorted([mp.mpf(x) for x in (-12, -4, 0, 4)] + near + [crossing + 4, 1 / sigma + 12])
    scale = mp.npdf(crossing)  # quad stops at absolute errors
    out = scale * mp.quad(lambda u: mp.npdf(u) / scale * tails(threshold - loss(u))[0], ends)
    inside = scale * mp.quad(lambda u: mp.npdf(u) / scale * mp.exp(loss(u)) * tails(threshold - loss(u))[1], ends)
    return out, inside


MU = mp.mpf(0.05)
BESIDE = {
    "a Gaussian part": (
        dn.GaussianDP(0.05),
        lambda y: (mp.ncdf(-y / MU - MU / 2), mp.ncdf(-y / MU + MU / 2)),
    ),
    "a phase of much noise": (
        dn.SubsampledGaussian(30.0, 0.5, 1),
        lambda y: one_step_tails(mp.mpf(30), mp.mpf(0.5), y),
    ),
}


@pytest.mark.parametrize("other", BESIDE)
@pytest.mark.parametrize(
    ("phase", "threshold"), [((0.12, 1e-6), 2.0), ((0.12, 1e-6), 12.0), ((0.6, 1e-4), 2.0), ((0.6, 1e-4), 12.0)]
)
def test_jumps_below_around_and_far_above_the_threshold_beside_another_law(phase, threshold, other):
    mechanism, tails = BESIDE[other]
    loss = PrivacyLoss.of([dn.SubsampledGaussian(*phase, 1), mechanism])
    found = jump_contour(loss, threshold, 1e-13, 1 << 13).tails(np.array([threshold]))
    with mp.workdps(20):
        out, inside = beside(*phase, tails, mp.mpf(threshold))
        stick = inside - mp.exp(threshold) * out
    for value, error, truth in (
        (found.out_above[0], found.out_error[0], out),
        (found.in_above[0], found.in_error[0], inside),
        (found.hockey_stick[0], found.hockey_stick_error[0], stick),
    ):
        assert abs(value - truth) <= error
        assert error <= 1e-6 * value


def test_lines_far_left_of_the_poles_keep_every_node_that_matters():
    """There r^c outweighs the window's fall for many widths; cut at eleven of them, in(L > 5) came out at 7.0e-4."""
    phase, threshold = (0.15885700808434175, 0.00013276595566728976, 28), np.array([5.0])
    inverted = dn.tradeoff(dn.SubsampledGaussian(*phase), engine="inversion")
    tails = inverted._tails(threshold, "dual")
    grid = dn.tradeoff(dn.SubsampledGaussian(*phase), engine="pld")
    for direction in ("add", "remove"):
        at = threshold if direction == "add" else -threshold
        low, high = (float(inverted._hockey_sticks(at, direction, side)[0]) for side in ("lower", "upper"))
        assert low <= float(grid._hockey_sticks(at, direction, "upper")[0])
        assert float(grid._hockey_sticks(at, direction, "lower")[0]) <= high
    # "adding" is answered by a line right of the poles
    assert abs(tails.hockey_stick[0] - 0.0028910441) <= tails.hockey_stick_error[0] + 1e-9


@pytest.mark.parametrize("c", [-90.0, -40.0, -3.0, 0.5, 3.0])
def test_nodes_left_out_below_a_window_are_charged(c):
    """Against the sum over all nodes; with fewer nodes than are kept, too, the bound holds."""
    split = Split(0.159, 1.3e-4, 5.4, 6.1, 20.0)
    _, log_weight, loss = split.real
    first = split.first(c)
    terms = log_weight + c * loss
    assert first > 0
    assert np.logaddexp.reduce(terms[:first]) <= split.before(c)
    assert split.before(c) <= np.logaddexp.reduce(terms) - 40
    weight, complex_loss = split.large(c)
    for t in (0.0, 2.0, 30.0):
        sums = [np.sum(x * np.exp((c + 1j * t) * y)) for x, y in ((weight, complex_loss),)]
        assert abs(sums[0]) <= np.exp(np.logaddexp.reduce(terms) + 1e-9)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 1 - 1e-12), (10.0, 0.9), (0.3, 0.5), (3.0, 0.1)])
def test_real_transforms_under_a_window_are_bounded_from_above_left_of_the_nodes_too(sigma, rate):
    """At rates near 1 and θ far below 0 most of E r^θ lies at u < −10.5: the sum over nodes was e^−48 of it."""
    split = Split(sigma, rate, 3.0, 6.0, 9.0)
    for theta in (-100.0, -20.0, -3.0, -0.02, 0.5, 2.0):
        with mp.workdps(20):

            def summand(u, power=theta):
                ratio = 1 + rate * mp.expm1(u / sigma - 1 / (2 * mp.mpf(sigma) ** 2))
                return mp.npdf(u) * ratio**power * mp.ncdf((split.low - u) / split.window)

            truth = float(mp.log(mp.quad(summand, [-200, -110, -60, -40, -20, -10, -5, 0, 2, 3, 5])))
        found = float(split.small(np.array([theta]))[0])
        assert found >= truth - 1e-11 * (1 + abs(truth))
        assert found <= truth + 1e-9 or theta < -10
