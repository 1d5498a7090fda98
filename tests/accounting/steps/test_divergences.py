"""Rényi divergences of single steps against 40 digits: sums for whole orders, quadrature, and every outcome."""

import math

import mpmath as mp
import numpy as np
import pytest

import deniable as dn
from deniable.accounting.renyi import step_divergence
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.discrete import DiscreteGaussianStep, DiscreteLaplaceStep, FinitePairStep
from deniable.accounting.steps.gaussian_mixture import several_records, truncated_poisson
from deniable.accounting.steps.laplace import LaplaceStep


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
