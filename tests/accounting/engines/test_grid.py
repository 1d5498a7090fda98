"""The certified grid against closed forms, the inversion and direct enumeration."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting.engines.cells import Cells, above, all_cells, below, log_sum
from deniable.accounting.engines.grid import GridTradeoff
from deniable.accounting.transform.composed import PrivacyLoss
from oracles.composed_losses import inversion, two_steps

FPR = np.array([0.5, 0.1, 1e-3, 1e-6])


def grid(*phases: tuple[float, float, int], points: int = 1 << 15) -> GridTradeoff:
    return GridTradeoff(PrivacyLoss.of([dn.SubsampledGaussian(*phase) for phase in phases]), points)


@settings(max_examples=6)
@given(
    log_sigma=st.floats(-0.7, 1.5), log_rate=st.floats(-6, -0.02), log_steps=st.floats(0.3, 5), epsilon=st.floats(-2, 3)
)
def test_grid_and_inversion_bracket_the_same_truth(log_sigma, log_rate, log_steps, epsilon):
    phase = 10**log_sigma, 10**log_rate, round(10**log_steps)
    other, mine = dn.tradeoff(dn.SubsampledGaussian(*phase), engine="inversion"), grid(phase)
    for direction in ("add", "remove"):
        assert mine.delta(epsilon, direction, side="lower") <= other.delta(epsilon, direction)
        assert other.delta(epsilon, direction, side="lower") <= mine.delta(epsilon, direction)
    for a, b in ((mine, other), (mine.inverse(), other.inverse())):
        assert np.all(a.tpr(FPR, side="lower") <= b.tpr(FPR))
        assert np.all(b.tpr(FPR, side="lower") <= a.tpr(FPR))


@pytest.mark.parametrize("points", [2, 8, 32, 512])
@pytest.mark.parametrize("phase", [(1.0, 0.01, 5000), (5.0, 0.3, 200), (0.3, 0.2, 50)])
def test_hopelessly_wide_cells_say_little_and_nothing_false(points, phase):
    exact = dn.tradeoff(dn.SubsampledGaussian(*phase), engine="inversion")
    mine = grid(phase, points=points)
    for a, b in ((mine, exact), (mine.inverse(), exact.inverse())):
        assert np.all(a.tpr(FPR, side="lower") <= b.tpr(FPR))
        assert np.all(b.tpr(FPR, side="lower") <= a.tpr(FPR))
        assert a.advantage(side="lower") <= b.advantage()
        assert b.advantage(side="lower") <= a.advantage()


@pytest.mark.parametrize("threshold", [-0.05, 0.0, 0.2])
def test_two_steps_by_convolution(threshold):
    exact = float(two_steps(1.0, 0.05, threshold).hockey_stick)
    trade = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.05, 2))
    low, high = (trade.hockey_stick(math.exp(threshold), side=side) for side in ("lower", "upper"))
    assert low <= exact <= high
    assert high - exact <= 1e-7


def test_rounding_of_long_sums_is_charged():
    """A threshold at which out(L > ℓ) is ½ to 14 digits, and the true positive rate there, from 50-digit arithmetic."""
    phase, threshold = (41.901645516503564, 0.009261179092205425, 3), -2.68691694831682e-06
    truth = inversion((phase,), threshold, -2000)
    assert float(truth.out) == pytest.approx(0.5, abs=1e-13)
    trade = grid(phase)
    assert trade.tpr(0.5, side="lower") <= float(truth.inside) + 1e-13
    assert float(truth.inside) - 1e-13 <= trade.tpr(0.5)


def test_finer_grids_narrow_the_bracket():
    widths = []
    for points in (1 << 12, 1 << 15, 1 << 18):
        trade = grid((1.0, 0.2, 10), points=points)
        widths.append(trade.advantage() - trade.advantage(side="lower"))
    assert widths[0] > 4 * widths[1] > 16 * widths[2] > 0


def test_split_keeps_and_merge_keeps_masses():
    (cells,) = all_cells(PrivacyLoss.of([dn.SubsampledGaussian(1.0, 0.1, 1)]), 1e-3, 1.0)
    upper, (lower, paid) = above(cells, 1e-3), below(cells, 1e-3)
    values = upper.values(1e-3)
    assert np.exp(upper.log_mass).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.exp(upper.log_mass + values).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.exp(lower.log_mass + lower.values(1e-3)).sum() == pytest.approx(1.0, abs=1e-12)
    assert 0 <= paid <= 0.5e-3


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_composed_randomised_response_by_enumeration(epsilon):
    """k answers of randomised response: the binomial law of the loss, enumerated (Kairouz, Oh & Viswanath 2015)."""
    k, p = 6, 1 / (1 + math.exp(-epsilon))
    trade = dn.tradeoff(dn.Composition([dn.PureDP(epsilon)] * k))
    for level in (0.0, 0.7 * epsilon, 3 * epsilon):
        exact = sum(
            math.comb(k, j) * max(p**j * (1 - p) ** (k - j) - math.exp(level) * p ** (k - j) * (1 - p) ** j, 0.0)
            for j in range(k + 1)
        )
        assert trade.delta(level, side="lower") <= exact * (1 + 1e-12)
        assert exact <= trade.delta(level) <= exact + 1e-4


def test_delta_parts_reveal_with_their_probability():
    trade = dn.tradeoff(dn.Composition([dn.ApproximateDP(0.5, 1e-3), dn.SubsampledGaussian(1.0, 0.1, 50)]))
    alone = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 50))
    assert trade.tpr(0.0) == pytest.approx(1e-3)
    assert trade.advantage(side="lower") > alone.advantage()
    assert trade.delta(60.0) == pytest.approx(1e-3)
    worst = dn.tradeoff(dn.ApproximateDP(0.5, 1e-3)).advantage() + alone.advantage()
    assert trade.advantage() <= worst


def test_a_sketch_is_as_sound_and_nearly_as_narrow():
    t = GridTradeoff(PrivacyLoss.of([dn.SubsampledGaussian(1.0, 0.02, 40)]))
    sketch = t.sketch()
    for fpr in (1e-6, 0.1):
        low, high = sketch.tpr(fpr, side="lower"), sketch.tpr(fpr)
        assert low <= t.tpr(fpr)
        assert high >= t.tpr(fpr, side="lower")
        assert high - low < 0.01 * high
    assert sketch.sketch() is sketch


@pytest.mark.parametrize("alpha", [0.06, 0.5, 0.9, 0.999])
def test_rates_at_an_atom_at_the_end_of_the_losses(alpha):
    # TPR of a sampled step: (1 − q)·α + q·TPR without sampling. Lattices at the lower end were laid in circles
    t = dn.tradeoff(dn.Laplace(0.8, sample_rate=0.3))
    exact = 0.7 * alpha + 0.3 * dn.tradeoff(dn.Laplace(0.8)).tpr(alpha)
    low, high = t.tpr(alpha, side="lower"), t.tpr(alpha)
    assert low <= exact * (1 + 1e-11)
    assert high >= exact * (1 - 1e-11)
    assert high - low < 1e-9


def test_a_small_failure_does_not_lay_lattices_in_its_gap():
    t = dn.tradeoff(dn.ApproximateDP(0.02227, 1.28e-06) + dn.SubsampledGaussian(120.0, 4.909e-07, 7))
    assert t.tpr(0.5) - t.tpr(0.5, side="lower") < 1e-5


def test_exponents_of_steep_tilts_are_charged():
    # the tilt is 5e5 and its exponents 2e6: uncharged, the bound fell to the false positive rate itself
    phases = [dn.PureDP(2.59), dn.PureDP(1.397), dn.PureDP(0.1096), dn.SubsampledGaussian(202.4, 0.003368, 1)]
    t = dn.tradeoff(dn.Composition([*phases, dn.PureDP(0.003455)]))
    for fpr in (1.185889952487425e-53, 3.43637576718787e-54, 1e-45, 1.9393664155778262e-286):
        assert t.tpr(fpr, side="lower") <= t.tpr(fpr)
        assert t.tpr(fpr) > 1.0002 * fpr  # a step's likelihood ratio alone


def test_losses_that_nearly_all_end_before_the_largest_one():
    run = dn.TruncatedPoisson(1.0, 0.01, 100, 200, 10_000)
    curve = replace(dn.tradeoff(run, engine="grid").above, points=1 << 16)
    largest = curve.epsilon(0.0, direction="remove")  # 100 steps without the record all show its absence
    assert largest > 1.005
    assert curve.delta(1.0, direction="remove") < 1e-20


def test_a_lattice_that_overflows_reaches_no_rate():
    # far from the threshold e^{-cv} overflows: a rate of NaN was taken for one below any other
    loss = PrivacyLoss.of([dn.PureDP(1.121), dn.SubsampledGaussian(0.2317, 3.755e-07, 167896)])
    grid, rate = GridTradeoff(loss, 1 << 17), np.array([1 - 3.41131471e-06])
    assert grid._rates(rate, "remove", "lower") <= grid._rates(rate, "remove", "upper")


def test_rates_beside_the_last_atom_are_read_off_the_lattice_that_holds_both():
    """Thirty answers: FPR 1e-9 lies between that of all thirty and that of twenty-nine."""
    kept, turned = (1 / (1 + np.exp(sign * 0.1)) for sign in (-1, 1))
    t = dn.tradeoff(dn.RandomizedResponse(0.1, 2, 30), engine="grid")
    for fpr in (1e-3, 1e-6, 1e-9, 1e-12):
        false = true = 0.0
        for j in range(30, -1, -1):
            more = math.comb(30, j) * turned**j * kept ** (30 - j)
            hit = math.comb(30, j) * kept**j * turned ** (30 - j)
            if false + more > fpr:
                break
            false, true = false + more, true + hit
        truth = true + hit * (fpr - false) / more
        low, high = t.tpr(fpr, "lower"), t.tpr(fpr)
        assert low <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= high <= low * (1 + 1e-8)


def test_mass_beside_which_the_other_is_below_all_doubles_is_not_lost():
    """It is in the law, whose masses are those of the denominator, or charged beside it.

    Of the second cell most goes to its lower end; the share of the upper one is below all doubles, though not under P.
    """
    first, spacing = math.log(0.5), 460.0
    numerator, denominator = np.array([0.5, 0.3, 0.2]), np.array([1 - 1e-200, 1e-200, 0.0])
    centre = np.array([0.0, math.log(0.3) + 200 * math.log(10) - (first + spacing), 3.0])
    law = above(Cells(first, numerator, denominator, centre, 1.0, 0.0, 0.0), spacing)
    in_law = math.exp(log_sum(law.log_mass + law.values(spacing)))
    assert in_law < 0.799
    assert in_law + law.hidden >= 1 - 1e-12
