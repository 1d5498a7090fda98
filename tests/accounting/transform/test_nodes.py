"""Sums over few nodes against sums over as many as it takes."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import deniable as dn
from deniable._floats import EPS
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.nodes import nodes
from oracles.dense_transform import transform


def loss_of(sigma: float, rate: float) -> PrivacyLoss:
    return PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 1)])


def assert_exact(sigma: float, rate: float, c: float, t: float) -> None:
    loss = loss_of(sigma, rate)
    line = loss.line(c, t)
    truth = transform(sigma, rate, c, t)
    if truth is None:
        return
    log_mgf, turned = truth
    found = np.exp(line.phases.log_ratios(np.array([t])))[0, 0]
    spread = math.sqrt(loss.cumulants(c)[2])
    allowed = 2 * line.phases.step_rounding[0] * abs(c + 1j * t) + 1e-13 + 120 * EPS * t * spread
    assert abs(found - turned) <= allowed, (sigma, rate, c, t)
    known = [line.cumulants[0], loss.cumulants_at(np.array([c / 7, c, 1.5 * c]))[0][1]]
    assert known == pytest.approx([log_mgf] * 2, abs=1e-12 + 1e-15 * abs(c), rel=1e-12)


@pytest.mark.parametrize(
    ("sigma", "rate", "c", "t"),
    [
        # beyond the window of the real integrand, log|r| and arg r are huge on curves that are smooth within it
        (2.46165725534756, 0.001112471163633523, -312.891, 110_000.0),
        (2.849, 0.0006727, 1.745, 43_662.0),
        (2.933, 0.00018485, 0.965, 492_884.0),
        (2.495, 1.2044e-06, -28290.0, 57_562_824.0),
        # a second mode so far out that neither φ nor r^c can be represented there
        (4.314674563175315, 0.01693147007984244, 150.49511079993349, 400.0),
    ],
)
def test_transforms_that_were_wrong_once(sigma, rate, c, t):
    assert_exact(sigma, rate, c, t)
    assert_exact(sigma, rate, c, t / 30)


@settings(max_examples=75, deadline=None)
@given(
    log_sigma=st.floats(-1, 2),
    log_rate=st.floats(-6, -0.001),
    region=st.sampled_from(["left", "middle", "right"]),
    place=st.floats(0, 1),
    log_turns=st.floats(-0.5, 3),
)
def test_transforms_on_a_sweep(log_sigma, log_rate, region, place, log_turns):
    sigma, rate = 10**log_sigma, 10**log_rate
    spread = math.sqrt(loss_of(sigma, rate).cumulants(0.5)[2])
    c = {"left": -(10 ** (3 * place - 2)) / spread, "middle": place, "right": 1 + 10 ** (4.5 * place - 2)}[region]
    try:
        width = math.sqrt(loss_of(sigma, rate).cumulants(c)[2])
        assume(width > 0)
        assert_exact(sigma, rate, c, 10**log_turns / width)
    except TooSlowError:
        assume(False)


def test_one_grid_serves_many_phases():
    sigma, rate = np.array([0.4, 1.0, 7.0]), np.array([0.3, 1e-3, 0.02])
    every = PrivacyLoss.of([dn.SubsampledGaussian(s, q, 1) for s, q in zip(sigma, rate, strict=True)])
    t = np.array([3.0, 40.0])
    together = every.line(-2.0, 40.0).phases.log_ratios(t)
    for row, s, q in zip(together, sigma, rate, strict=True):
        alone = [np.log(transform(s, q, -2.0, x)[1]) for x in t]
        assert np.exp(row) == pytest.approx(np.exp(alone), abs=1e-13)


def test_no_phases_need_no_nodes():
    assert nodes(np.zeros(0), np.zeros(0), math.inf, 0.5, 0.5, 10.0).spacing == 1


def test_a_law_out_of_reach_is_refused():
    with pytest.raises(TooSlowError, match="wide"):
        loss_of(0.1, 0.5).line(1000.0)


@pytest.mark.parametrize(("sigma", "rate", "ends"), [(0.3, 0.2, (-30.0, 4.0)), (2.0, 1e-3, (-2000.0, 20.0))])
def test_one_grid_serves_all_real_parts_between_two(sigma, rate, ends):
    loss = loss_of(sigma, rate)
    points = np.concatenate([np.linspace(*ends, 9), [0.3, 1.0]])
    truth = [transform(sigma, rate, float(c), 0.0)[0] for c in points]
    k, first, second = loss.cumulants_at(points)
    assert k == pytest.approx(truth, abs=1e-12, rel=1e-12)
    single = np.array([loss.cumulants(float(c))[1:] for c in points])
    assert np.stack([first, second], axis=1) == pytest.approx(single, rel=1e-6)


@pytest.mark.parametrize(("sigma", "rate", "c"), [(1.0, 0.01, 0.5), (0.4, 0.2, -2.0), (6.0, 1e-4, 30.0)])
def test_evenly_spaced_sums_through_tables(sigma, rate, c):
    loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 1000)])
    width = math.sqrt(loss.cumulants(c)[2] / 1000)
    spacing = 0.001 / width
    t = spacing * np.arange(700)
    line = loss.line(c, t[-1])
    plain, tables = line.transform(t)[0] / 1000, line.transform(t, spacing)[0] / 1000
    assert np.exp(tables) == pytest.approx(np.exp(plain), abs=1e-14)
    assert tables[1:20] == pytest.approx(plain[1:20], rel=1e-12)
