"""A little Gaussian noise beside the loss: the theorem, least values of convex functions, exact compositions."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, ndtr

import deniable as dn
from deniable.accounting.engines.grid import GridTradeoff
from deniable.accounting.engines.softened import SoftenedTradeoff, least_of_convex
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves.combined import BracketTradeoff


def hockey_stick(loss, q, log_gamma, s):
    """Of the pair with these losses, composed with GaussianDP(s): Black and Scholes' value of a call."""
    gap = loss - log_gamma
    if s == 0:
        return float(q @ np.maximum(np.exp(loss) - np.exp(log_gamma), 0))
    return float(q @ (np.exp(loss) * ndtr(gap / s + s / 2) - np.exp(log_gamma) * ndtr(gap / s - s / 2)))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-2, 2), st.floats(0.01, 1)), min_size=1, max_size=6),
    st.floats(-2, 2),
    st.floats(1e-3, 2.0),
)
def test_forgetting_the_gaussian_costs_at_most_what_more_of_it_adds(atoms, log_gamma, s):
    loss, q = np.array(atoms).T
    plain, narrow, wide = (hockey_stick(loss, q, log_gamma, v) for v in (0.0, s, 2 * s))
    assert plain <= narrow + 1e-12
    assert plain >= narrow - math.exp(s**2 / 2) * (wide - narrow) - 1e-12


def test_the_factor_of_the_theorem_is_needed():
    """Negative control: at the money the second s adds a little less than the first."""
    narrow, wide = (hockey_stick(np.zeros(1), np.ones(1), 0.0, v) for v in (1.0, 2.0))
    assert narrow - (wide - narrow) > 0


@settings(max_examples=60, deadline=None)
@given(st.floats(0.5, 3.0), st.floats(0.1, 4.0), st.floats(0, 0.02), st.integers(0, 10**6))
def test_the_least_value_of_a_convex_function_is_above_the_bound(place, steep, slack, seed):
    random = np.random.default_rng(seed)
    x = np.sort(place * np.exp(random.uniform(-0.5, 0.5, 8)))

    def function(y):
        return steep * (y - place) ** 2 + abs(y - place) + 1

    low, high = (function(x) + sign * slack * random.random(8) for sign in (-1, 1))
    bound = least_of_convex(x, low, high)
    assert bound <= 1
    if x[0] < place < x[-1] and slack < 1e-6:
        assert bound > -math.inf


@pytest.mark.parametrize("x", [[0.0, 0.0, 1.0, 2.0], [1.0, math.nan, 2.0, 3.0], [1.0, 1.5, 2.0, math.inf]])
def test_points_that_are_no_points_bound_nothing(x):
    assert least_of_convex(np.array(x), np.array([3.0, 1.0, 1.0, 3.0]), np.array([3.0, 1.0, 1.0, 3.0])) == -math.inf


def exact(p, q, steps):
    """Losses and masses of all compositions of a pair with three outcomes."""
    counts = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)])
    log_many = gammaln(steps + 1) - gammaln(counts + 1).sum(axis=1)
    log_p, log_q = (log_many + counts @ np.log(law) for law in (p, q))
    return log_p - log_q, np.exp(log_q)


P, Q = np.array([0.30, 0.45, 0.25]), np.array([0.33, 0.451, 0.219])
STEPS = 60


@pytest.fixture(scope="module")
def softened():
    """Three outcomes, losses on no lattice: 1,891 atoms after 60 steps, listed by hand."""
    mechanism = dn.FinitePair(tuple(P), tuple(Q / Q.sum()))
    softened = SoftenedTradeoff.of(dn.tradeoff(dn.Composition([mechanism] * STEPS), engine="inversion"))
    return dataclasses.replace(softened, kept=1 << 21)  # atoms this far apart need lines that are not short


@pytest.mark.parametrize("direction", ["add", "remove"])
def test_brackets_hold_every_composition_of_atoms(softened, direction):
    loss, q = exact(P, Q / Q.sum(), STEPS)
    if direction == "remove":
        loss, q = -loss, q * np.exp(loss)
    for log_gamma in (-0.4, 0.0, 1.2):
        truth = float(q @ np.maximum(np.exp(loss) - math.exp(log_gamma), 0))
        low, high = (float(x[0]) for x in softened._hockey_stick_bracket(np.array([log_gamma]), direction))
        assert low - 1e-12 <= truth <= high + 1e-12
        assert high - low < 3e-9
    order = np.argsort(-loss)
    fpr, tpr = np.cumsum(q[order]), np.cumsum((q * np.exp(loss))[order])
    for alpha in (1e-3,):
        truth = float(np.interp(alpha, fpr, tpr))
        low, high = (float(x[0]) for x in softened._roc_bracket(np.array([alpha]), direction))
        assert low * (1 - 1e-11) <= truth <= high * (1 + 1e-11)
        assert high - low < 2e-5 * truth


def test_the_upper_end_alone_is_no_lower_bound(softened):
    """Negative control: what the Gaussian adds is seen at this precision."""
    loss, q = exact(P, Q / Q.sum(), STEPS)
    pair = softened._pair(int(softened.inverted._map.number(np.zeros(1), 0)[0]))
    low = float(pair.bracket(np.zeros(1), "add")[0][0])
    narrow = float(pair.narrow.tails(np.zeros(1)).hockey_stick[0])
    truth = float(q @ np.maximum(np.exp(loss) - 1, 0))
    assert low <= truth < narrow


MECHANISMS = [
    dn.DiscreteGaussian(3.0, 3, steps=300, sample_rate=0.03),
    dn.WithoutReplacement(1.5, 20, 400, 60),
    dn.Laplace(1.0, 1.0, 80, sample_rate=0.05) + dn.PureDP(0.1),
    dn.BoundedRange(0.2, steps=40),
    dn.DiscreteLaplace(10.0, 1, 200, 0.1),  # two outcomes: its middle line serves beyond the middle, too
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_brackets_meet_those_of_cells(mechanism):
    t = dn.tradeoff(mechanism)
    t = t.above if isinstance(t, BracketTradeoff) else t  # both sides of the pair that dominates
    parts = mechanism.mechanisms if isinstance(mechanism, dn.Composition) else (mechanism,)
    grid = GridTradeoff(PrivacyLoss.of(parts), 1 << 13)
    for question in (lambda x, side: x.advantage(side=side), lambda x, side: x.tpr(1e-3, side)):
        (a, b), (c, d) = ([question(x, side) for side in ("lower", "upper")] for x in (t, grid))
        assert a <= d
        assert c <= b
        assert b - a < 1e-8 + 1e-6 * b


def test_sampled_discrete_gaussians_are_not_left_to_cells():
    """Their losses lie on no lattice and reach to infinity: cells alone are several times wider, and slower."""
    run = dn.DiscreteGaussian(4.0, 3, 200, 0.05)
    found, cells = dn.tradeoff(run), dn.tradeoff(run, engine="grid")
    low, high = found.advantage(side="lower"), found.advantage()
    assert high - low < 1e-9 < cells.advantage() - cells.advantage(side="lower")
    assert low <= cells.advantage()
    assert cells.advantage(side="lower") <= high
