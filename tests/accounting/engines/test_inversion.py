"""Transform inversion against 50-digit arithmetic and against itself on other lines."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting.engines.chernoff import Chernoff, log_affinity, rates_of_affinity
from deniable.accounting.engines.inversion import GOOD, Posts
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from oracles.composed_losses import inversion


def loss_of(*phases: tuple[float, float, int]) -> PrivacyLoss:
    return PrivacyLoss.of([dn.SubsampledGaussian(*phase) for phase in phases])


def contour(loss, region, threshold, tolerance, most_nodes=1 << 14):
    posts = Posts(Chernoff.of(loss), region)
    return posts.contour(int(posts.nearest(np.array([threshold]))[0]), tolerance, most_nodes)


def assert_holds(tails, truth, tight=1e-9):
    for value, error, exact in (
        (tails.out_above, tails.out_error, truth.out),
        (tails.in_above, tails.in_error, truth.inside),
        (tails.hockey_stick, tails.hockey_stick_error, truth.hockey_stick),
    ):
        assert abs(value[0] - float(exact)) <= error[0] + 4e-16 * abs(value[0])
        assert error[0] <= tight


CASES = [
    (((1.0, 0.01, 5000),), 0.0, 0.5),
    (((1.0, 0.01, 5000),), 3.5, 4.0),
    (((1.0, 0.01, 5000),), -2.5, -3.0),
    (((2.0, 0.05, 1000), (1.0, 0.02, 300)), 0.3, 0.5),
    (((0.5, 0.3, 60),), 1.0, 0.5),
    (((3.0, 0.9, 40),), 2.0, 0.5),
]


@pytest.mark.parametrize(("phases", "threshold", "line"), CASES)
def test_all_regions_agree_with_50_digits(phases, threshold, line):
    truth = inversion(phases, threshold, line)
    for region in ("left", "middle", "right"):
        try:
            found = contour(loss_of(*phases), region, threshold, 1e-13)
        except TooSlowError:
            continue
        assert_holds(found.tails(np.array([threshold])), truth)


def test_far_tail_keeps_relative_accuracy():
    phases, threshold = ((1.0, 0.01, 5000),), 7.0
    truth = inversion(phases, threshold, 5.0)
    assert truth.out < 1e-9
    tails = contour(loss_of(*phases), "right", threshold, 1e-13).tails(np.array([threshold]))
    assert tails.out_above[0] == pytest.approx(float(truth.out), rel=1e-9)
    assert tails.out_error[0] < 1e-9 * tails.out_above[0]


@settings(max_examples=6)
@given(
    sigma=st.floats(0.6, 4.0),
    rate=st.floats(0.02, 0.95),
    spread=st.floats(0.5, 4.0),
    threshold=st.floats(-1.5, 1.5),
)
def test_bracket_contains_the_truth_on_a_sweep(sigma, rate, spread, threshold):
    steps = max(25, int((spread * sigma / rate) ** 2))
    truth = inversion([(sigma, rate, steps)], threshold, 0.5)
    trade = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps), engine="inversion")
    low, high = (trade.hockey_stick(math.exp(threshold), side=side) for side in ("lower", "upper"))
    assert low <= truth.hockey_stick <= high
    assert high - low <= 1e-9


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
def test_coarse_sums_are_wrong_by_less_than_they_say(tolerance):
    """Negative control: at a coarse tolerance the error is real, and still covered."""
    phases = ((1.0, 0.05, 400),)
    truth = inversion(phases, 0.5, 0.5)
    for region in ("left", "middle", "right"):
        found = contour(loss_of(*phases), region, 0.5, tolerance)
        value = found.tails(np.array([0.5]))
        wrong = abs(value.hockey_stick[0] - float(truth.hockey_stick))
        assert wrong <= value.hockey_stick_error[0] <= 30 * tolerance
        thinned = replace(found, period=found.period / 3, t=found.t * 3, coefficients=found.coefficients)
        assert (
            thinned.tails(np.array([0.5])).hockey_stick_error[0] > value.hockey_stick_error[0]
        )  # the alias bound sees the period


@given(threshold=st.floats(-4.0, 4.0))
@settings(max_examples=13)
def test_however_short_lines_are_brackets_intersect(threshold):
    mechanism = dn.SubsampledGaussian(1.0, 0.03, 800)
    gamma = math.exp(threshold)
    brackets = [
        (t.hockey_stick(gamma, side="lower"), t.hockey_stick(gamma, side="upper"))
        for t in (InvertedTradeoff(PrivacyLoss.of([mechanism]), 1 << most, GOOD) for most in (8, 10, 13))
    ]
    assert max(low for low, _ in brackets) <= min(high for _, high in brackets)
    assert brackets[-1][1] - brackets[-1][0] <= 1e-7 * brackets[-1][1]


@pytest.mark.parametrize("way", ["remove", "add"])
def test_what_the_affinity_of_the_worlds_settles_lies_below_the_truth(way):
    fpr = np.array([0.9, 0.1, 1e-3, 1e-6])
    for steps in (5, 40, 400):
        t = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.5, steps), engine="inversion")
        cheap, bound = rates_of_affinity(log_affinity(t.loss), fpr), t._rates_by_tests(fpr, way)[1]
        assert np.all(fpr <= cheap)
        assert np.all(cheap <= bound)
    np.testing.assert_allclose(cheap, 1 - np.exp(2 * t.loss.cumulants(0.5)[0]) / fpr, atol=1e-9)  # not trivial
    assert cheap[0] > 1 - 1e-9


def test_one_record_drawn_rarely_beside_little_noise_has_lines_further_left():
    """Lines next to saddle points would be long."""
    wrong = []
    for phase in ((0.388, 1.1e-8, 706_292), (0.4, 1e-7, 10**6)):
        curve = dn.tradeoff(dn.SubsampledGaussian(*phase), engine="inversion")
        low, high = (curve.epsilon(1e-5, side=side) for side in ("lower", "upper"))
        known = dn.tradeoff(dn.SubsampledGaussian(*phase), engine="pld")
        met = known.delta(low, side="lower") <= 1e-5 * (1 + 1e-12) and known.delta(high) >= 1e-5 * (1 - 1e-12)
        if not (high - low < 1e-4 * low and met):
            wrong.append((phase, low, high))
        assert "damped" in {kind for kind, _ in curve._lines._values}
        guess = curve.chernoff.epsilon_guesses(np.array([1e-5]), "remove")
        assert abs(guess[0]) < 1
    assert not wrong


@pytest.mark.parametrize(
    "run",
    [
        dn.SubsampledGaussian(1.0, 0.01, 5000),
        dn.SubsampledGaussian(0.6, 1e-3, 40) + dn.GaussianDP(0.4),
        dn.SubsampledGaussian(2.0, 0.2, 30) + dn.SubsampledGaussian(0.9, 0.01, 300) + dn.PureDP(0.2),
        dn.SubsampledGaussian(8.0, 0.9, 3000),
    ],
)
def test_the_advantage_takes_one_line_and_agrees_with_all_others(run):
    curve = dn.tradeoff(run)
    low, high = curve.advantage(side="lower"), curve.advantage()
    assert high - low < 4e-10 * high
    assert "chernoff" not in vars(curve.inverted)  # no real point but ½ was needed
    for way in ("left", "middle", "right"):
        posts = curve.inverted._posts(way)
        tails = posts.contour(int(posts.nearest(np.zeros(1))[0]), 1e-13, 1 << 13).tails(np.zeros(1))
        assert low - tails.hockey_stick_error[0] <= tails.hockey_stick[0] <= high + tails.hockey_stick_error[0]
    assert curve.delta(0.0) == curve.delta(np.array([1.0, 0.0]))[1] == high


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_chernoffs_bound_of_hockey_sticks_is_one(direction):
    for phase in ((1.0, 0.01, 5000), (0.6, 0.2, 7), (3.0, 0.5, 400)):
        curve = dn.tradeoff(dn.SubsampledGaussian(*phase))
        epsilon = np.linspace(-2.0, 6.0, 33)
        bound = curve.inverted.chernoff.hockey_stick(epsilon, direction)
        truth = curve.delta(epsilon, direction, side="lower")
        assert np.all(bound >= truth)
        assert np.any(bound < 30 * truth)


def test_epsilon_takes_few_hockey_sticks(monkeypatch):
    asked = []
    one = InvertedTradeoff.tails
    monkeypatch.setattr(InvertedTradeoff, "tails", lambda self, *args: asked.append(args) or one(self, *args))
    for phase in ((1.0, 0.01, 5000), (2.0, 0.1, 100), (3.0, 0.001, 1000)):
        asked.clear()
        curve = dn.tradeoff(dn.SubsampledGaussian(*phase))
        assert curve.epsilon(1e-5) - curve.epsilon(1e-5, side="lower") < 1e-9
        assert len(asked) < 24


@pytest.mark.parametrize(
    ("run", "epsilon", "way"),
    [
        # what a ceiling takes is below a threshold only if all other steps are
        (
            dn.SubsampledGaussian(3.68, 0.0037, 1298) + dn.mechanisms.FinitePair((0.5, 0.3, 0.2), (0.3, 0.3, 0.4)),
            1.0,
            "add",
        ),
        # the rarest outcomes of DP-SGD count beside atoms, too
        (dn.SubsampledGaussian(1.05, 0.001, 8571) + dn.Laplace(4.85, sample_rate=0.2, steps=3), 1.0, "remove"),
    ],
)
def test_lines_beside_atoms_are_sharp_where_rarest_outcomes_count(run, epsilon, way):
    t, sketch = dn.tradeoff(run).inverted, dn.tradeoff(run, engine="pld").sketch()
    low, high = (t.delta(epsilon, way, side) for side in ("lower", "upper"))
    assert high - low <= 2e-5 * high
    assert low <= sketch.delta(epsilon, way)
    assert sketch.delta(epsilon, way, "lower") <= high


def test_an_epsilon_of_a_hundred_is_known_by_lines_in_both_orders_of_the_worlds():
    t = dn.tradeoff(dn.SubsampledGaussian(20.0, 0.9, 100_000)).inverted
    for way in ("add", "remove"):
        low, high = (t.delta(161.077, way, side) for side in ("lower", "upper"))
        assert 0 < high - low <= 1e-8 * high, way
