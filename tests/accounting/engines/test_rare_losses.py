"""Rare large losses one by one: against a step by quadrature, and against engines for single records."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

import deniable as dn
from deniable.accounting.engines.loss_points import PointPlan, SmallLosses
from deniable.accounting.engines.rare_losses import rare_losses
from deniable.accounting.reductions import Dominated, reduced
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.mixture import MixtureLoss

FPR = np.array([0.5, 1e-3, 1e-6, 1e-9])
WAYS, SIDES = ("add", "remove"), ("lower", "upper")


def engine(mechanism):
    pair = reduced(mechanism)
    pair = pair.above if isinstance(pair, Dominated) else pair
    return rare_losses(MixtureLoss.of(PrivacyLoss.of([pair])))


def bracket(t, question, points, way):
    return (getattr(t, question)(points, way, side) for side in SIDES)


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(1.0, 1e-5, 40), (0.7, 2e-4, 9), (1.2, 1e-3, 20)])
def test_single_records_are_known_from_other_engines(sigma, rate, steps):
    run = dn.SubsampledGaussian(sigma, rate, steps)
    ours, known = engine(run), dn.tradeoff(run)
    spread = math.sqrt(steps * rate**2 * math.expm1(1 / sigma**2))
    for way in WAYS:
        for question, points in (("_rates", FPR), ("_hockey_sticks", spread * np.array([-2.0, 0.0, 1.0, 4.0]))):
            low, high = bracket(ours, question, points, way)
            least, most = bracket(known, question, points, way)
            assert np.all(low <= most)
            assert np.all(least <= high)
            if question == "_rates":
                assert np.all(high <= low * (1 + 3e-6))  # so that a larger error would have been seen


def _ratio(u, sigma, weights):
    return sum(w * math.exp(j * u / sigma - j**2 / (2 * sigma**2)) for j, w in enumerate(weights))


def _two_steps(log_gamma, sigma, weights):
    """H of two steps of a person, by quadrature over the first and in closed form over the second."""

    def one(gamma):
        low, high = -40.0, 60.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if _ratio(middle, sigma, weights) > gamma else (middle, high)
        if low <= -39.9:
            return 1 - gamma
        hit = sum(w * ndtr(j / sigma - low) for j, w in enumerate(weights))
        return hit - gamma * ndtr(-low)

    def integrand(u):
        r = _ratio(u, sigma, weights)
        return math.exp(-(u**2) / 2) / math.sqrt(2 * math.pi) * r * one(math.exp(log_gamma) / r)

    parts = [quad(integrand, a, a + 1.0, epsabs=1e-16, epsrel=1e-10)[0] for a in np.arange(-9.0, 14.0)]
    return math.fsum(parts)


@pytest.mark.parametrize("log_gamma", [0.0, 0.05, 1.0])
def test_two_steps_of_a_person_by_quadrature(log_gamma):
    sigma, rate = 0.9, 0.003
    truth = _two_steps(log_gamma, sigma, [(1 - rate) ** 2, 2 * rate * (1 - rate), rate**2])
    ours = engine(dn.SubsampledGaussian(sigma, rate, 2, records_per_person=2))
    low, high = bracket(ours, "_hockey_sticks", np.array([log_gamma]), "add")
    assert low[0] <= truth * (1 + 1e-8)
    assert truth * (1 - 1e-8) <= high[0]
    assert high[0] <= low[0] * (1 + 1e-5)


@pytest.mark.parametrize("log_gamma", [-0.5, 0.0, 0.05, 1.0, 4.0])
def test_losses_beyond_the_last_point_of_several_large_steps_are_charged(log_gamma, monkeypatch):
    """As if e^6 were next to the largest double: what lies above counts as giving the person away, or as e^6."""
    monkeypatch.setattr("deniable.accounting.engines.rare_losses._MOST_SUM", 6.0)
    sigma, rate = 0.6, 0.02
    truth = _two_steps(log_gamma, sigma, [(1 - rate) ** 2, 2 * rate * (1 - rate), rate**2])
    ours = engine(dn.SubsampledGaussian(sigma, rate, 2, records_per_person=2))
    assert ours.above[2].large.only[0] > 1e-7
    low, high = bracket(ours, "_hockey_sticks", np.array([log_gamma]), "add")
    assert low[0] <= truth * (1 + 1e-8)
    assert truth * (1 - 1e-8) <= high[0]
    removed = math.exp(-log_gamma) * truth - (math.exp(-log_gamma) - 1)  # H at 1/γ, the worlds exchanged
    low, high = bracket(ours, "_hockey_sticks", np.array([-log_gamma]), "remove")
    assert low[0] <= removed * (1 + 1e-7) + 1e-15
    assert removed * (1 - 1e-7) - 1e-15 <= high[0]


@pytest.mark.parametrize(
    ("run", "width"), [((0.17, 3e-5, 4, 3), 1e-6), ((0.289, 0.0216, 5, 4), 1e-4), ((0.128, 1.1e-4, 263, 2), math.inf)]
)
def test_persons_beside_little_noise_have_losses_whose_sums_are_no_doubles(run, width):
    """Three losses of 300 add up to more than 709, and a law of small losses may be a single point."""
    *step, records = run
    ours = engine(dn.SubsampledGaussian(*step, records_per_person=records))
    for way in WAYS:
        low, high = bracket(ours, "_rates", FPR, way)
        assert np.all(low <= high)
    low, high = bracket(ours, "_rates", FPR[:3], "add")
    assert np.all(high <= low * (1 + width))


@pytest.mark.parametrize(
    ("run", "width"),
    [
        (dn.TruncatedPoisson(1.0, 1e-3, max_batch=20, n_records=10_000, steps=12), 1e-5),
        (dn.TruncatedPoisson(0.6643, 0.01314, max_batch=1, n_records=11, steps=8), 1e-4),  # cells of equal ends
    ],
)
def test_truncated_batches_meet_inversion(run, width):
    ours, known = engine(run), dn.tradeoff(run, engine="inversion").above
    for way in WAYS:
        low, high = bracket(ours, "_rates", FPR, way)
        least, most = bracket(known, "_rates", FPR, way)
        assert np.all(low <= most)
        assert np.all(least <= high)
        assert np.all(high <= low * (1 + width))


@pytest.mark.parametrize("run", [(1.0, 1e-5, 100, 2)])
def test_persons_are_known_down_to_small_rates(run):
    *step, records = run
    found = dn.tradeoff(dn.SubsampledGaussian(*step, records_per_person=records))
    for roc in (found, found.inverse()):
        assert np.all(roc.tpr(FPR) <= roc.tpr(FPR, "lower") * (1 + 2e-6))
    assert "one by one" in found.explain(fpr=1e-9).engine


def test_coarser_lattices_bracket_in_convex_order():
    rng = np.random.default_rng(3)
    mass = np.exp(-((np.arange(-60, 61) / 15) ** 2) / 2) * rng.uniform(0.5, 1.5, 121)
    mass /= mass.sum()
    law = SmallLosses(mass, 7, 1e-3, 1, -0.1, 0.0, 0.0)
    levels = np.exp(law.value)[::5]
    calls = [(np.clip(np.subtract.outer(levels, np.exp(x.value)), None, 0) * -1) @ x.mass for x in
             (law.coarser("lower"), law, law.coarser("upper"))]  # fmt: skip
    assert np.all(calls[0] <= calls[1] * (1 + 1e-12) + 1e-15)
    assert np.all(calls[1] <= calls[2] * (1 + 1e-12) + 1e-15)
    assert np.any(calls[0] < calls[2] * (1 - 1e-4))
    for coarse in (law.coarser("lower"), law.coarser("upper")):
        assert coarse.mass @ np.exp(coarse.value) == pytest.approx(law.mass @ np.exp(law.value), rel=1e-12)


def test_convolutions_are_those_of_numpy():
    rng = np.random.default_rng(4)
    first, second = (
        SmallLosses(rng.uniform(size=n), start, 1e-4, 1, -0.1, 0.0, 0.0) for n, start in ((900, 3), (1300, 5))
    )
    found = first.times(second)
    assert found.start == 8
    assert found.steps == 2
    np.testing.assert_allclose(found.mass, np.convolve(first.mass, second.mass), rtol=found.error)


@pytest.mark.parametrize("run", [dn.SubsampledGaussian(1.0, 1e-7, 10**6), dn.SubsampledGaussian(0.05, 0.01, 50)])
def test_what_is_out_of_reach_is_left_to_others(run):
    loss = MixtureLoss.of(PrivacyLoss.of([reduced(run)]))
    ((step, count),) = loss.parts
    assert PointPlan.of(step, count) is None
    assert rare_losses(loss) is None
