"""Rényi divergences of single steps against 40 digits: sums for whole orders, quadrature, and every outcome."""

import math
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting.renyi import step_divergence
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.discrete import DiscreteGaussianStep, DiscreteLaplaceStep, FinitePairStep
from deniable.accounting.steps.gaussian_mixture import several_records, truncated_poisson
from deniable.accounting.steps.laplace import LaplaceStep
from deniable.accounting.steps.outcomes import ListedOutcomes
from deniable.mechanisms import FinitePair


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(40):
        yield


def asked(step, order, direction):
    return float(step_divergence(step, np.array([float(order)]), direction)[0])


def mixture_moment(step, c):
    """E r^c under N(0, 1) by the trapezoid rule, all cases together."""
    total = mp.mpf(0)
    for case in step.cases:
        slopes, weights = ([mp.mpf(x) for x in xs] for xs in (case.records, case.weight))
        slopes = [s / mp.mpf(step.noise) for s in slopes]
        weights[0] = 1 - sum(weights[1:])
        h, low, high = mp.mpf(1) / 16 / max(slopes[-1], 1), -14, 14 + max(c, 1) * slopes[-1]
        for k in range(int(low / h), int(high / h) + 1):
            u = k * h
            r = sum(w * mp.exp(s * u - s * s / 2) for s, w in zip(slopes, weights, strict=True))
            total += case.probability * h * mp.npdf(u) * r**c
    return total


def test_mixtures_against_dense_sums():
    wrong = []
    for run in (
        dn.SubsampledGaussian(0.8, 0.02, 1, records_per_person=4),
        dn.SubsampledGaussian(2.0, 0.3, 1, records_per_person=3),
        dn.TruncatedPoisson(1.0, 0.02, 1, 30, 1000),
    ):
        step = truncated_poisson(run) if isinstance(run, dn.TruncatedPoisson) else several_records(run)
        for order, direction in ((1.5, "remove"), (4.2, "remove"), (1.2, "add"), (6.5, "add")):
            c = order if direction == "remove" else 1 - order
            truth, found = float(mp.log(mixture_moment(step, c)) / (order - 1)), asked(step, order, direction)
            if not truth * (1 - 1e-12) <= found <= truth * (1 + 1e-6):
                wrong.append((run, order, direction, truth, found))
    assert not wrong


def test_divergences_see_records_that_are_hardly_ever_drawn_together():
    """All 50 records in one batch, 1e-100 likely, make the second moment e^164: it was stated as e^41."""
    step = several_records(dn.SubsampledGaussian(2.0, 0.01, 1, records_per_person=50))
    (case,) = step.cases
    pairs = [(mp.mpf(j) / 2, mp.mpf(w)) for j, w in zip(case.records, case.weight, strict=True)]
    truth = float(mp.log(sum(v * w * mp.exp(s * t) for s, v in pairs for t, w in pairs)))
    assert truth > 164
    assert truth <= asked(step, 2.0, "remove") <= truth * (1 + 1e-9)
    assert math.isinf(asked(step, math.inf, "remove"))
    assert asked(step, math.inf, "add") <= -50 * math.log1p(-0.01) * (1 + 1e-12)


def discrete_gaussian(sigma, moved, rate, c):
    weight = {x: mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)) for x in range(-600, 900)}
    total = sum(weight.values())
    ratio = {
        x: 1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp(moved * (2 * mp.mpf(x) - moved) / (2 * mp.mpf(sigma) ** 2))
        for x in weight
    }
    return sum(weight[x] / total * ratio[x] ** c for x in weight)


def laplace(eps, rate, c):
    eps, rate = mp.mpf(eps), mp.mpf(rate)

    def r(x):
        return (1 - rate + rate * mp.exp(x)) ** c

    between = mp.quad(lambda x: mp.exp(-(eps + x) / 2) / 4 * r(x), mp.linspace(-eps, eps, 9))
    return r(-eps) / 2 + r(eps) * mp.exp(-eps) / 2 + between


def test_discrete_and_laplace_noise_sampled():
    wrong = []
    for step, moment in (
        (DiscreteGaussianStep(2.0, 1, 0.01), lambda c: discrete_gaussian(2.0, 1, 0.01, c)),
        (DiscreteGaussianStep(5.0, 3, 0.3), lambda c: discrete_gaussian(5.0, 3, 0.3, c)),
        (LaplaceStep(1.0, 0.01), lambda c: laplace(1.0, 0.01, c)),
        (LaplaceStep(3.0, 0.1), lambda c: laplace(3.0, 0.1, c)),
        (LaplaceStep(0.05, 0.5), lambda c: laplace(0.05, 0.5, c)),
    ):
        for order, direction in ((1.01, "remove"), (2.5, "remove"), (20.0, "remove"), (1.5, "add"), (30.0, "add")):
            truth = float(mp.log(moment(order if direction == "remove" else 1 - order)) / (order - 1))
            found = asked(step, order, direction)
            if not truth * (1 - 1e-12) <= found <= truth * (1 + 1e-5):
                wrong.append((step, order, direction, truth, found))
    assert not wrong


def test_outcomes_one_by_one_and_closed_forms():
    step, orders = FinitePairStep((0.7, 0.2, 0.1), (0.6, 0.25, 0.15)), np.array([1.001, 1.5, 7.0, 400.0, math.inf])
    for direction, (p, q) in (("remove", (step.p, step.q)), ("add", (step.q, step.p))):
        for order, found in zip(orders.tolist(), step.divergence(orders, direction).tolist(), strict=True):
            ratios = [mp.log(mp.mpf(a) / mp.mpf(b)) for a, b in zip(p, q, strict=True)]
            finite = order if order < math.inf else 2.0
            moment = sum(mp.mpf(a) * mp.exp((finite - 1) * x) for a, x in zip(p, ratios, strict=True))
            truth = float(max(ratios) if math.isinf(order) else mp.log(moment) / (order - 1))
            assert truth * (1 - 1e-9) <= found <= truth * (1 + 1e-6)
    plain = LaplaceStep(0.7, 1.0)
    generic = Step.divergence(plain, orders, "remove")
    np.testing.assert_allclose(generic, plain.divergence(orders, "remove"), rtol=1e-6)
    assert DiscreteLaplaceStep(3.0, 2, 0.2).bounds_divergence
    lacking = FinitePairStep((0.9, 0.1, 0.0), (0.9, 0.0, 0.1))
    assert np.all(np.isinf(lacking.divergence(orders, "remove")))


def enumerated(p, q, order):
    """D_α(p‖q) to 40 digits."""
    pairs = [(mp.mpf(x), mp.mpf(y)) for x, y in zip(p, q, strict=True)]
    if any(x > 0 and y == 0 for x, y in pairs):
        return math.inf
    if math.isinf(order):
        return float(mp.log(max(x / y for x, y in pairs if x > 0)))
    return float(mp.log(mp.fsum(y * (x / y) ** order for x, y in pairs if y > 0)) / (order - 1))


ORDERS = (1.01, 2.0, 9.0, 80.0, math.inf)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_outcomes_of_one_world_count(data):
    """Only the out-world has them where r = 0: they were left out of E r^α, so that bounds were below the truth."""
    size = data.draw(st.integers(2, 5))
    weights = st.lists(st.integers(0, 50), min_size=size, max_size=size).filter(any)
    p, q = (np.array(data.draw(weights), dtype=float) for _ in range(2))
    pair = FinitePair(tuple(p / p.sum()), tuple(q / q.sum()))
    curve = dn.tradeoff(pair)
    for direction, (inside, outside) in (("remove", (pair.p, pair.q)), ("add", (pair.q, pair.p))):
        truth = np.array([enumerated(inside, outside, order) for order in ORDERS])
        found = curve.renyi(np.array(ORDERS), direction)
        assert np.all(truth * (1 - 1e-9) - 1e-12 <= found)
        assert np.all(found <= truth * (1 + 1e-6) + 1e-9)


@pytest.mark.parametrize(("p", "q", "known"), [
    ((0.5, 0.5), (1.0, 0.0), math.log(2)), ((0.4, 0.2, 0.4), (0.9999, 0.0001, 0.0), 0.91609074)
])  # fmt: skip
def test_half_of_the_other_world_is_never_seen(p, q, known):
    pair = FinitePair(p, q)
    assert dn.tradeoff(pair).renyi(2.0, "add") == pytest.approx(known, rel=1e-6)
    assert dn.tradeoff([dn.GaussianDP(0.7), pair]).renyi(2.0, "add") == pytest.approx(known + 0.49, rel=1e-6)
    assert dn.tradeoff([dn.GaussianDP(0.7), pair]).renyi(2.0, "remove") == math.inf


def test_outcomes_of_equal_ratios_are_at_no_distance():
    pair = FinitePair((0.2, 0.2, 0.4, 0.2), (0.25, 0.25, 0.5, 0.0))
    assert dn.tradeoff([dn.GaussianDP(0.7), pair]).advantage() > dn.tradeoff(dn.GaussianDP(0.7)).advantage()


@dataclass(frozen=True)
class Half(Step):
    """Half of the out-world is never seen inside, and a little of either was not looked at."""

    lowest = highest = math.log(2)
    only = (0.0, 0.5)
    lost = (1e-12, 1e-12)

    def pieces(self):
        return (ListedOutcomes(np.array([math.log(2)]), np.ones(1), np.full(1, 0.5), 1e-15, 1e-15),)


def test_a_step_with_losses_and_outcomes_of_one_world_is_bounded_by_its_largest_ratio():
    orders = np.array(ORDERS)
    assert np.all(Half().divergence(orders, "remove") >= math.log(2))
    assert np.all(np.isinf(Half().divergence(orders, "add")))


@dataclass(frozen=True)
class Imprecise(Step):
    """Two outcomes whose losses are known to a ten-thousandth, and too small in size by as much."""

    lowest, highest = -1.0, 1.0

    def pieces(self):
        p = np.array([0.6, 0.4])
        loss = np.log(p / p[::-1])
        return (ListedOutcomes(loss - np.sign(loss) * 1e-4, p, p[::-1], 1e-4, 0.0),)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_errors_of_losses_are_charged_on_both_sides_of_zero(direction):
    """Raised by its error, a negative loss came nearer to 0, and with it all that finite orders tell."""
    orders = np.array([1.1, 2.0, 8.0, math.inf])
    p, q = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    true = [math.log(p**a @ q ** (1 - a)) / (a - 1) if a < math.inf else math.log(1.5) for a in orders.tolist()]
    assert np.all(Imprecise().divergence(orders, direction) >= true)
