"""Composition in cells of the loss: widths that were asked for, and rates near the end of a bounded loss."""

from __future__ import annotations

import math

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.engines.cells import log_sum
from deniable.accounting.engines.convolution import _moments, _Tilt, composed, counted
from deniable.accounting.engines.grid import GridTradeoff
from deniable.accounting.engines.lattice import convolved, cumulated
from deniable.accounting.steps.base import TooSlowError, upper_share
from deniable.accounting.transform.composed import PrivacyLoss

RATES = np.array([1e-9, 1e-5, 0.1])


def test_a_bounded_loss_is_known_up_to_its_end():
    # ten steps of ε = 1: above 10 − x nats lies little more than the atom of mass 2^−10·e^−10 = 4.4e-8 at 10
    t = dn.tradeoff(dn.Laplace(1.0, steps=10))
    low, high = (t.tpr(RATES, side=side) for side in ("lower", "upper"))
    assert np.all(low <= high)
    assert np.all(high - low <= 1e-6 * low)
    assert low[0] <= math.exp(10) * 1e-9 <= high[0]  # within the atom
    steep = math.exp(10) * RATES
    assert np.all(high[1:] <= np.minimum(steep[1:], 1.0) * (1 + 1e-12))


def test_rare_large_losses_are_bounded():
    rate, distance, steps = 1e-4, 20.0, 100
    t = dn.tradeoff(dn.Laplace(1 / distance, steps=steps, sample_rate=rate))
    low, high = t.advantage(side="lower"), t.advantage()
    # an attacker who is told which steps the record was in: 1 − (1 − q·TV)^T, TV = 1 − e^{−ε/2}
    told = -math.expm1(steps * math.log1p(rate * math.expm1(-distance / 2)))
    # and one who only asks whether any outcome lay beyond the middle: P(none)
    asks = 1 - math.exp(-distance / 2) / 2
    assert 0 < low <= high <= told
    assert high - low <= 1e-8
    out = asks**steps
    inside = ((1 - rate) * asks + rate * (1 - asks)) ** steps
    assert high >= out - inside


@pytest.mark.parametrize(
    ("mechanism", "most"),
    [(dn.Laplace(10.0, steps=1000), 1e-9), (dn.DiscreteGaussian(20, steps=1000), 2e-9)],
)
def test_widths_of_a_thousand_steps(mechanism, most):
    t = dn.tradeoff(mechanism)
    assert 0 <= t.advantage() - t.advantage(side="lower") <= most
    low, high = (t.tpr(np.array([1e-9, 1e-3]), side=side) for side in ("lower", "upper"))
    assert np.all(high - low <= 1e-6 * low)


def test_patience_buys_width():
    run = dn.SubsampledGaussian(1.0, 0.02, 30, records_per_person=2)
    short, long = (dn.tradeoff(run, patient=patient, engine="grid") for patient in (False, True))
    assert long.points > short.points


@pytest.mark.parametrize(("region", "c"), [("left", -0.7), ("middle", 0.3), ("right", 1.9)])
def test_cumulative_sums_against_sums_that_are_written_out(region, c):
    weight = np.random.default_rng(0).random(1003)
    value = 0.01 * np.arange(weight.size)
    out, inside = cumulated(weight, region, c, 0.01)
    for k in (0, 1, 77, 999, 1002):
        for found, tilt, above in ((out, c, region != "left"), (inside, c - 1, region == "right")):
            seen = slice(k, None) if above else slice(0, k)
            exact = math.fsum(weight[seen] * np.exp(-tilt * (value[seen] - value[k])))
            assert found[k] == pytest.approx(exact, rel=1e-13)


def test_where_atoms_stay_the_grid_is_asked_at_once():
    """Eight in ten of |M| of a Laplace step never fades: ten leave a tenth, a thousand nothing."""
    few, many = (dn.tradeoff(dn.Laplace(scale, steps=steps)) for scale, steps in ((2.0, 10), (10.0, 1000)))
    assert few.explain(fpr=1e-3).engine == "certified grid"
    assert isinstance(few, GridTradeoff)
    assert "inversion" in many.explain(epsilon=3.0).engine


@pytest.mark.parametrize(("most", "width"), [(10, 3.0), (1000, 40.0), (1, 1e-9)])
def test_moments_are_bounded_from_above_by_as_little_as_is_said(most, width):
    rng = np.random.default_rng(4)
    value = -2.0 + 1e-4 * np.arange(40_000)
    with np.errstate(divide="ignore"):
        exponent = np.log(rng.random((2, value.size)) * (rng.random(value.size) < 0.9)) - value
    exponent[:, :3000] = -np.inf  # whole blocks without any mass
    tilt = _Tilt(0.5, width, most, "add", "upper", 1 << 16)
    found = _moments(exponent, value, tilt, 1e-4)
    truth = np.array([[log_sum(row + offset * value) for offset in tilt.offsets] for row in exponent])
    assert np.all(found >= truth - 1e-9)
    assert np.all(found <= truth + np.abs(tilt.offsets) * 0.2 * width / most + 1e-9)


def test_what_only_one_world_produces_counts_however_rare():
    """1e-17 was 1 − (1 − 1e-17) = 0: δ(5) was 0, ε(1e-18) 0.9 and the TPR at 1e-300 no more than 2.5e-300."""
    rare = 1e-17
    t = dn.tradeoff(dn.mechanisms.FinitePair([0.6, 0.4, rare], [0.4, 0.6, 0.0]) + dn.Laplace(2.0))
    assert rare * (1 - 1e-12) <= t.delta(5.0, "add", "lower") <= rare <= t.delta(5.0, "add") <= rare * (1 + 1e-12)
    assert t.delta(5.0, "remove") < 1e-300
    assert t.epsilon(1e-18) == math.inf
    assert rare <= t.tpr(1e-300) <= rare * (1 + 1e-12)


def test_tilts_that_are_stopped_keep_weights_below_1():
    loss = PrivacyLoss.of([dn.Laplace(0.003, steps=200)])  # spread 2,700: a tilt of 1 would be too steep
    at_one = loss.cumulants(1.0)[1]
    for direction, threshold in (("add", at_one), ("remove", -at_one), ("add", -at_one)):
        found = convolved(loss, threshold, direction, "upper", 1 << 12)
        assert found.region == "middle"
        assert 0 < found.c < 1
        assert found.above_in.max() <= 1 + 1e-9


def test_errors_of_both_merged_laws_are_in_units_of_either():
    loss = PrivacyLoss.of([dn.Laplace(1.0, steps=300)])
    width = math.sqrt(loss.cumulants(0.5)[2])
    lattice = convolved(loss, 0.0, "add", "lower", 1 << 10)
    law = composed(counted(loss), lattice.c, lattice.width, 20 * width, "add", "lower", 1 << 10).law
    assert law.log_size[1] - law.log_size[0] > 1
    assert lattice.error >= law.error * math.exp(law.log_size[1] - law.log_size[0]) * (1 - 1e-6)


@pytest.mark.parametrize("beside", [dn.GaussianDP(0.5), dn.Laplace(2.0)])
def test_what_only_lies_where_the_other_law_is_below_all_doubles_counts(beside):
    """Nobody draws 35 standard deviations by chance: persons of two records are seen whenever one is in the batch.

    At σ = 0.026 that is at u = 38, where the masses under Q underflow; those under P were lost with them.
    """
    taken = 1 - (1 - 1e-4) ** 2
    mechanism = dn.SubsampledGaussian(0.026, 1e-4, 1, records_per_person=2) + beside
    bound = float(dn.tradeoff(mechanism).tpr(1e-12))
    assert taken * (1 - 1e-6) <= bound <= 1.5 * taken


def test_cells_longer_than_doubles_are_refused():
    with pytest.raises(TooSlowError, match="too long"):
        upper_share(np.array([1.0, 800.0]), 1200.0)
    centre = np.array([0.0, 1e-9, 3.0, 650.0])
    share, spacing = upper_share(centre, 650.0), 650.0
    assert np.allclose(share, np.expm1(centre) / np.expm1(spacing), rtol=1e-12)
