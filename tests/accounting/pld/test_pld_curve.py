"""Whole curves: against inversion, finite laws and closed forms, both orders and both sides."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import deniable as dn
from deniable.accounting.pld.curve import MultiScaleTradeoff
from deniable.accounting.steps.base import Repeated
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep
from deniable.accounting.transform.composed import PrivacyLoss
from faults import faults_shown
from oracles.composed_losses import two_steps

LEVELS = np.array([-1.0, 0.0, 0.5, 2.0])
RATES = np.array([1e-5, 1e-3, 0.05, 0.5])


def curve(*parts, most=1 << 12):
    return MultiScaleTradeoff(PrivacyLoss.of([Repeated(step, count) for step, count in parts]), most=most)


def meets(ours, other, width):
    """Brackets of the same truth meet, and ours is this narrow where it is not small."""
    with faults_shown():
        for direction in ("remove", "add"):
            for ask, points in (("hockey_sticks", LEVELS), ("rates", RATES)):
                low, high = (getattr(ours, ask)(points, direction, side) for side in ("lower", "upper"))
                least, most = (getattr(other, ask)(points, direction, side) for side in ("lower", "upper"))
                assert np.all(low <= most), (direction, ask, low, most)
                assert np.all(high >= least), (direction, ask, high, least)
                assert np.all(low <= high)
                assert np.all((high - low <= width * high) | (high < 1e-8)), (direction, ask, low, high)


@pytest.mark.parametrize(
    "phases",
    [
        [(1.0, 0.01, 1000)],
        [(0.7, 0.3, 20)],
        [(2.0, 0.05, 300)],
        [(0.5, 0.001, 2000)],
        [(1.0, 1.0, 3)],
        [(1.2, 0.02, 100), (0.8, 0.01, 50)],
        [(5.0, 0.9, 40), (1.0, 1.0, 1)],
    ],
    ids=repr,
)
def test_sampled_gaussians_as_inversion_has_them(phases):
    mechanism = dn.Composition([dn.SubsampledGaussian(*phase) for phase in phases])
    parts = [(SubsampledGaussianStep(sigma, rate), count) for sigma, rate, count in phases]
    meets(curve(*parts), dn.tradeoff(mechanism, engine="inversion"), 1e-3)


def test_one_step_as_its_closed_form_has_it():
    for sigma, rate in ((1.0, 0.1), (0.2, 0.01), (0.05, 1e-4), (10.0, 0.5)):
        meets(curve((SubsampledGaussianStep(sigma, rate), 1)), dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1)), 1e-3)


def test_a_tail_keeps_its_accuracy():
    ours, known = curve((SubsampledGaussianStep(1.0, 1.0), 4)), dn.tradeoff(dn.GaussianDP(2.0))
    for epsilon in (10.0, 20.0):
        low, high = ours.delta(epsilon, side="lower"), ours.delta(epsilon)
        assert low <= known.delta(epsilon) <= high * (1 + 1e-9)
        assert high - low < 0.03 * high
    assert known.delta(20.0) < 1e-15


def test_wrong_masses_would_be_noticed():
    """A law of a little less noise is not within the bracket: it is not so wide as to say nothing."""
    ours = curve((SubsampledGaussianStep(1.0, 0.01), 500))
    less = dn.tradeoff(dn.SubsampledGaussian(0.999, 0.01, 500))
    assert ours.advantage() < less.advantage(side="lower")
    assert ours.inverse().tpr(1e-3) < less.inverse().tpr(1e-3, side="lower")


def _replaced_once(sigma, rate, level):
    """The hockey stick of one replaced record by quadrature."""
    x = np.linspace(-14 - 14 * sigma, 14 + 14 * sigma, 2_000_001) / 1.0
    density = [(1 - rate) * norm.pdf(x, 0, sigma) + rate * norm.pdf(x, sign, sigma) for sign in (1, -1)]
    return float(np.maximum(density[0] - math.exp(level) * density[1], 0).sum() * (x[1] - x[0]))


def test_a_replaced_record_is_composed_step_by_step():
    for sigma, rate in ((1.0, 0.3), (0.5, 0.01), (3.0, 0.9)):
        one = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1), adjacency="replace")
        for level in (0.0, 0.5):
            truth = _replaced_once(sigma, rate, level)
            assert one.delta(level, side="lower") <= truth * (1 + 1e-6)
            assert one.delta(level) >= truth * (1 - 1e-6)
            assert one.delta(level) == pytest.approx(truth, rel=1e-4)
    run = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 1000), adjacency="replace")
    low, high = run.epsilon(1e-6, side="lower"), run.epsilon(1e-6)
    assert low <= 3.214244  # an independent prototype, without proof, has 3.214223 to 3.214244
    assert high >= 3.214223
    lattices = run.lattices
    assert lattices.epsilon(1e-6, side="lower") <= low < high <= lattices.epsilon(1e-6)
    assert high - low < 1e-8
    assert run.assumptions.adjacency == "replace one record"
    assert run.universal
    # symmetric: either content may be the one that is there
    assert run.tpr(1e-3) == run.inverse().tpr(1e-3)


def test_records_of_unlike_directions_tell_no_more_than_opposite_ones():
    """The pair is attained by g′ = −g; records at right angles, played out in the plane, stay below."""
    sigma, rate, level = 0.8, 0.2, 0.4
    x, y = np.meshgrid(np.linspace(-6, 7, 1301), np.linspace(-6, 7, 1301))
    centre = norm.pdf(x, 0, sigma) * norm.pdf(y, 0, sigma)
    p = (1 - rate) * centre + rate * norm.pdf(x, 1, sigma) * norm.pdf(y, 0, sigma)
    q = (1 - rate) * centre + rate * norm.pdf(x, 0, sigma) * norm.pdf(y, 1, sigma)
    reached = np.maximum(p - math.exp(level) * q, 0).sum() * 0.01**2
    bound = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1), adjacency="replace").delta(level)
    assert 0.3 * bound < reached < bound
    adding = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1)).delta(level)
    assert adding < bound


def test_a_full_batch_beside_sampled_steps_moves_by_two():
    mixed = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 50) + dn.GaussianDP(0.5), adjacency="replace")
    alone = dn.tradeoff(dn.GaussianDP(0.5), adjacency="replace")
    assert mixed.advantage(side="lower") >= alone.advantage() * (1 - 1e-9)
    assert (
        mixed.advantage()
        < alone.advantage() + dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 50), adjacency="replace").advantage()
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.15])
def test_a_thousand_laplace_steps_as_an_integral_has_them(epsilon):
    """M(½ + it) = e^{−ε/2}·(cos tε + sin(tε)/(2t)) of Laplace noise, integrated by mpmath."""
    mpmath = pytest.importorskip("mpmath")
    steps, mp = 1000, mpmath.mp
    with mp.workdps(30):
        eps = mp.mpf(epsilon)

        def term(t):
            return (mp.exp(-eps / 2) * (mp.cos(t * eps) + mp.sinc(t * eps) * eps / 2)) ** steps / (t * t + 0.25)

        truth = float(1 - mp.quad(term, [0, 0.5, 1, 1.5, 2, 3, 5]) / mp.pi)
    t = dn.tradeoff(dn.Laplace(1 / epsilon, steps=steps))
    assert t.advantage(side="lower") <= truth <= t.advantage() <= truth + 2e-6


@pytest.mark.parametrize(
    ("sigma", "rate", "threshold"),
    [(0.5, 0.1, 1.3), (0.5, 0.01, -0.0199), (0.3, 0.01, 2.0), (2.46, 0.0011, 0.00623), (0.3, 0.9, -2.0)],
)
def test_two_steps_against_quadrature(sigma, rate, threshold):
    truth = float(two_steps(sigma, rate, threshold).hockey_stick)
    for engine in ("auto", "pld"):
        t = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 2), engine=engine)
        low, high = (float(t.hockey_sticks(np.array([threshold]), "remove", side)[0]) for side in ("lower", "upper"))
        assert low <= truth <= high <= truth + 1e-5 * truth


def test_masses_beyond_all_doubles_leave_no_test_and_no_nan():
    t = dn.tradeoff(dn.Laplace(1.0, steps=10**9)).sketch()
    with faults_shown(), np.errstate(all="ignore"):
        assert np.all(t._roc(RATES, "remove", "lower") >= RATES)
