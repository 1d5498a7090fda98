"""Random allocation against quadrature, played-out attacks, other mechanisms and its own order."""

import math
from functools import cache

import numpy as np
import pytest

import deniable as dn
from deniable._kept import Kept
from deniable.accounting.lattices import power
from deniable.accounting.pld import compose
from deniable.accounting.steps import allocation
from deniable.accounting.steps.allocation import AllocatedStep, SumLaw
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep
from oracles.allocation import hockey_stick, two_of_three, with_gaussian


@cache
def curve(sigma, batches, epochs=1):
    return dn.tradeoff(dn.RandomAllocation(sigma, batches, epochs))


@pytest.mark.parametrize(("sigma", "batches"), [(0.7, 3)])
def test_brackets_contain_quadrature(sigma, batches):
    t = curve(sigma, batches)
    for gamma in (0.7, 1.0, 2.5):
        truth = hockey_stick(sigma, batches, gamma)
        dual = truth - 1 + gamma  # γ·H_{1/γ} with the worlds exchanged
        low, high = (t.hockey_stick(gamma, "remove", side) for side in ("lower", "upper"))
        assert low - 1e-12 <= truth <= high + 1e-12
        assert high - low < 1e-6
        low, high = (gamma * t.hockey_stick(1 / gamma, "add", side) for side in ("lower", "upper"))
        assert low - 1e-12 <= dual <= high + 1e-12


@pytest.mark.parametrize(("sigma", "mu"), [(0.6, 1.5)])
def test_composition_with_a_gaussian(sigma, mu):
    t = dn.tradeoff(dn.RandomAllocation(sigma, 2) + dn.GaussianDP(mu))
    for gamma in (0.5, 3.0):
        low, high = (t.hockey_stick(gamma, "remove", side) for side in ("lower", "upper"))
        assert low - 1e-12 <= with_gaussian(sigma, mu, gamma) <= high + 1e-12
        assert high - low < 1e-5


def log_ratios(rng, sigma, batches, epochs, n, present):
    found = np.zeros(n)
    for _ in range(epochs):
        x = sigma * rng.standard_normal((n, batches))
        if present:
            x[np.arange(n), rng.integers(batches, size=n)] += 1
        found += np.log(np.mean(np.exp((2 * x - 1) / (2 * sigma**2)), axis=1))
    return found


@pytest.mark.parametrize(("sigma", "batches", "epochs"), [(0.6, 20, 3)])
def test_the_attack_played_out_reaches_the_curve_and_half_the_noise_breaks_it(sigma, batches, epochs):
    rng, n = np.random.default_rng(5), 20_000
    absent, present = (log_ratios(rng, sigma, batches, epochs, n, world) for world in (False, True))
    t = curve(sigma, batches, epochs)
    slack = 4 / math.sqrt(n)
    reached = np.mean(present > 0) - np.mean(absent > 0)
    assert t.advantage(side="lower") - slack <= reached <= t.advantage() + slack
    threshold = np.quantile(absent, 0.95)
    assert t.tpr(0.05, "lower") - 2 * slack <= np.mean(present > threshold) <= t.tpr(0.05) + 2 * slack
    absent, present = (log_ratios(rng, sigma / 2, batches, epochs, n, world) for world in (False, True))
    assert np.mean(present > 0) - np.mean(absent > 0) > t.advantage() + 2 * slack


def test_never_worse_than_full_knowledge_nor_better_than_the_sum():
    for sigma, batches, epochs in ((0.6, 20, 3), (2.0, 100, 100)):
        t = curve(sigma, batches, epochs)
        told = dn.tradeoff(dn.GaussianDP(math.sqrt(epochs) / sigma))
        summed = dn.tradeoff(dn.GaussianDP(math.sqrt(epochs / batches) / sigma))
        assert t.advantage() <= told.advantage()
        assert t.advantage(side="lower") >= summed.advantage()


def test_one_batch_and_all_batches_are_gaussian():
    assert dn.tradeoff(dn.RandomAllocation(2.0, 1, 9)).advantage() == pytest.approx(
        dn.tradeoff(dn.GaussianDP(1.5)).advantage(), rel=1e-13
    )
    assert dn.tradeoff(dn.RandomAllocation(2.0, 4, 9, 4)).advantage() == pytest.approx(
        dn.tradeoff(dn.GaussianDP(3.0)).advantage(), rel=1e-13
    )


@pytest.mark.parametrize("sigma", [0.7])
def test_two_of_three_batches_lie_in_the_bracket(sigma):
    t = dn.tradeoff(dn.RandomAllocation(sigma, 3, 1, 2))
    for gamma in (0.6, 1.0, 2.0):
        truth = two_of_three(sigma, gamma)
        assert t.hockey_stick(gamma, "remove", "lower") <= truth + 1e-5
        assert truth <= t.hockey_stick(gamma, "remove", "upper") + 1e-5


@pytest.mark.parametrize("beside", [[], [dn.Laplace(2.0)]])
def test_a_sharp_phase_of_persons_beside_costs_what_all_their_records_leak(beside):
    """A batch that holds any of four records gives the person away."""
    persons = dn.SubsampledGaussian(0.03, 1e-4, 2, records_per_person=4)
    taken = -math.expm1(8 * math.log1p(-1e-4))
    t = dn.tradeoff(dn.Composition([dn.RandomAllocation(2.0, 10), persons, *beside]))
    assert taken <= t.delta(50.0, "remove") <= 1.01 * taken
    assert taken <= t.tpr(1e-12) <= 1.01 * taken


@pytest.mark.parametrize(("sigma", "batches", "gamma"), [(1.0, 3, 20.0)])
def test_hockey_sticks_far_in_the_tail_contain_quadrature(sigma, batches, gamma):
    truth = hockey_stick(sigma, batches, gamma)
    t = dn.tradeoff(dn.RandomAllocation(sigma, batches))
    low, high = (float(t.hockey_stick(gamma, "remove", side)) for side in ("lower", "upper"))
    assert truth < 1e-4
    assert low * (1 - 1e-9) <= truth <= high * (1 + 1e-9)
    assert high - low < 1e-4 * truth


def test_mass_that_the_laws_of_epochs_miss_raises_no_lower_bound():
    """28 epochs' laws add up to 1 − 2e-12, and δ(−1.13), which is 1 − γ and 3e-14, was stated as 6.6e-13 more."""
    t = dn.tradeoff(dn.RandomAllocation(1.122, 1293, 28))
    epsilon = 1.12897153
    trivial, gamma = -math.expm1(-epsilon), math.exp(-epsilon)
    low, high = (t.delta(-epsilon, "add", side) for side in ("lower", "upper"))
    assert low <= high
    assert low - trivial <= gamma * t.delta(epsilon, "remove") + 4e-16


def test_full_batches_are_added_up_exactly():
    """30,000 summands, a rounding each: the upper advantage was 3e-13 of it below the truth, the lower one above."""
    t = dn.tradeoff(dn.Composition([dn.RandomAllocation(700.0, 7, batches_per_record=7)] * 30_000))
    truth = math.erf(math.sqrt(30_000 * 7 / 8) / 700)
    assert truth * (1 - 1e-13) <= t.advantage(side="lower") <= truth * (1 + 4e-16)
    assert truth * (1 - 4e-16) <= t.advantage() <= truth * (1 + 1e-13)


@pytest.mark.parametrize("sigma", [1e-200, 1e200])
def test_squares_of_the_noise_neither_overflow_nor_underflow(sigma):
    t = dn.tradeoff(dn.RandomAllocation(sigma, 5, batches_per_record=5))
    assert 0 <= t.advantage(side="lower") < t.advantage() <= 1


def sum_law(side, point, mass, count):
    """Points and masses of a sum of few terms on lattices so coarse that the order is seen."""
    law = SumLaw.empty(side, 1.0, 16, True)
    base = np.floor(point).astype(int)
    rows = np.stack([mass, 0 * mass])[: 1 if side == "upper" else 2]
    law.put(0, law.laid(base, point - base, 1.0, 0.0, rows))
    x, _, rows = power(law, count, lambda k: (2 if k > 2 else 0, 3.0 * k), 8).listed()
    seen = rows[0] > 0
    return (x + rows[1:].sum(axis=0) / np.maximum(rows[0], 1e-300))[seen], rows[0, seen]


@pytest.mark.parametrize("seed", [0, 1])
def test_laws_of_sums_are_ordered_by_convex_functions(seed):
    """Against all sums of three terms; and labels alone, without the means above them, are no lower law."""
    rng = np.random.default_rng(seed)
    point, mass = np.append(8 * rng.random(40), 30.0), rng.dirichlet(np.ones(41))
    truth, weight = point, mass
    for _ in range(2):
        truth, weight = np.add.outer(truth, point).ravel(), np.multiply.outer(weight, mass).ravel()
    laws = {side: sum_law(side, point, mass, 3) for side in ("lower", "upper")}
    for x, q in laws.values():
        assert q.sum() == pytest.approx(1, rel=1e-13)
        assert q @ x == pytest.approx(3 * mass @ point, rel=1e-13)
    for at in np.linspace(0.0, 95.0, 60):
        low, middle, high = (
            float(q @ np.maximum(x - at, 0)) for x, q in (laws["lower"], (truth, weight), laws["upper"])
        )
        assert low <= middle * (1 + 1e-12) + 1e-14
        assert middle <= high * (1 + 1e-12) + 1e-14
    spread = [float(q @ (x - q @ x) ** 2) for x, q in (laws["lower"], (truth, weight), laws["upper"])]
    assert spread[0] < spread[1] - 1e-3 < spread[2] - 2e-3
    labels = np.floor(laws["lower"][0])
    assert laws["lower"][1] @ np.maximum(24 - labels, 0) > 1.01 * (weight @ np.maximum(24 - truth, 0))


@pytest.mark.parametrize(("sigma", "batches"), [(0.3, 9), (0.5, 150), (1.0, 2000), (6.0, 5000)])
def test_masses_and_moments_lie_between_those_of_either_law(sigma, batches):
    """E Y² = e^{1/σ²} and E Y³ = e^{3/σ²}: those of sums follow, and convex functions keep the order."""
    second, third = math.expm1(1 / sigma**2), math.exp(3 / sigma**2) - 3 * math.exp(1 / sigma**2) + 2
    truth = second / batches, third / batches**2 + 3 * second / batches + 1
    found = {}
    for side, sign in (("lower", -1), ("upper", 1)):
        law = AllocatedStep(SubsampledGaussianStep(sigma, 1.0), batches, side).pieces()[0]
        for mass in (law.p, law.q):
            assert 0 < sign * (mass.sum() - 1) < 1e-8
        s = law.p / law.q
        found[side] = float(law.q @ (s - 1) ** 2), float(law.q @ s**3)
    for low, middle, high in zip(found["lower"], truth, found["upper"], strict=True):
        assert low < middle < high
        assert high - low < 1e-4 * middle


def test_relative_errors_of_sums_are_charged_on_either_side(monkeypatch):
    """Masses that are a share too small, or too large, move no bound to the wrong side if the law says so."""
    run, found = dn.RandomAllocation(3.0, 50, 400), {}
    for wrong in (0.0, 1e-5, -1e-5):
        for said in (True, False):

            def doubtful(*args, wrong=wrong, said=said):
                law = power(*args)
                law.parts = {e: (start, rows * (1 + wrong)) for e, (start, rows) in law.parts.items()}
                law.relative += 2 * abs(wrong) * said
                return law

            monkeypatch.setattr(allocation, "power", doubtful)
            monkeypatch.setattr(compose, "_COMPOSED", Kept(16))  # nothing that was computed without the error
            monkeypatch.setattr(compose, "_CUTTABLE", Kept())
            allocation._allocated.cache_clear()
            t = dn.tradeoff(run)
            found[wrong, said] = t.advantage(side="lower"), t.advantage()
    allocation._allocated.cache_clear()
    low, high = found[0.0, True]
    for wrong in (1e-5, -1e-5):
        assert found[wrong, True][0] <= low < high <= found[wrong, True][1]
    assert found[-1e-5, False][1] < low < high < found[1e-5, False][0]
