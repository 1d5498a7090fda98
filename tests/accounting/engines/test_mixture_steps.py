"""Several records a person and truncated batches: against quadrature, enumeration, and the plain mechanism."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, norm

import deniable as dn
from deniable.accounting.pld.curve import MultiScaleTradeoff
from deniable.accounting.steps.gaussian_mixture import truncated_around, truncated_poisson
from deniable.accounting.transform.composed import PrivacyLoss


def coarse(*mechanisms):
    return MultiScaleTradeoff(PrivacyLoss.of(mechanisms))


def mixture(weights, sigma):
    """Density ratio of Σ w_j N(j, σ²) to N(0, σ²), its inverse, and H of one step in either direction."""
    j = np.arange(len(weights))

    def ratio(x):
        return float(np.sum(weights * np.exp((j * x - j**2 / 2) / sigma**2)))

    def hockey_stick(log_gamma, direction):
        gamma = math.exp(log_gamma)
        if direction == "add":
            return 1 - gamma + gamma * hockey_stick(-log_gamma, "remove")
        if gamma <= weights[0]:
            return 1 - gamma
        x = brentq(lambda x: math.log(ratio(x)) - log_gamma, -60 * sigma, 60 * sigma, xtol=1e-14)
        return float(weights @ norm.sf((x - j) / sigma)) - gamma * norm.sf(x / sigma)

    return ratio, hockey_stick


@pytest.mark.parametrize(("sigma", "rate", "records"), [(1.0, 0.1, 3), (0.7, 0.4, 2), (2.0, 0.05, 8)])
def test_a_person_of_several_records_against_quadrature(sigma, rate, records):
    weights = binom.pmf(np.arange(records + 1), records, rate)
    ratio, one_step = mixture(weights, sigma)
    run = dn.SubsampledGaussian(sigma, rate, 1, records_per_person=records)
    one, two = coarse(run), coarse(run, run)
    for log_gamma, direction in ((0.0, "remove"), (0.3, "remove"), (0.2, "add")):
        truth = one_step(log_gamma, direction)
        assert one.delta(log_gamma, direction, "lower") <= truth + 1e-12
        assert truth <= one.delta(log_gamma, direction) + 1e-12
        sign = 1 if direction == "remove" else -1

        def moved(x, log_gamma=log_gamma, direction=direction, sign=sign):
            weight = norm.pdf(x, scale=sigma) * (ratio(x) if direction == "remove" else 1.0)
            return weight * one_step(log_gamma - sign * math.log(ratio(x)), direction)

        found = quad(moved, -9 * sigma, 9 * sigma + records, limit=200, epsabs=1e-9)[0]
        low, high = (two.delta(log_gamma, direction, side) for side in ("lower", "upper"))
        assert low - 2e-9 <= found <= high + 2e-9
        assert high - low < 1e-4


def test_full_batches_of_a_person_are_one_larger_gaussian():
    found = dn.tradeoff(dn.SubsampledGaussian(5.0, 1.0, 3, records_per_person=4))
    assert found.advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(0.8 * math.sqrt(3))).advantage(), rel=1e-13)


def batches(n, rate, most, values):
    """Sums over a truncated batch of records with these values, and their probabilities, by enumeration."""
    sums: dict[float, float] = {}
    for drawn in itertools.product((0, 1), repeat=n):
        chance = math.prod(rate if d else 1 - rate for d in drawn)
        members = [i for i, d in enumerate(drawn) if d]
        cuts = list(itertools.combinations(members, min(most, len(members))))
        for cut in cuts:
            total = sum(values[i] for i in cut)
            sums[total] = sums.get(total, 0.0) + chance / len(cuts)
    return sums


def attacks(others, rate, most, sigma, log_gamma):
    """Hockey sticks of adding a record of value 1 to others, and of removing it, by enumeration."""
    x = np.linspace(-12, 12, 1601)
    inside, out = (
        sum(w * norm.pdf(x, s, sigma) for s, w in batches(len(world), rate, most, world).items()) * (x[1] - x[0])
        for world in ((1, *others), others)
    )
    gamma = math.exp(log_gamma)
    return [np.maximum(p - gamma * q, 0).sum() for p, q in ((inside, out), (out, inside))]


@pytest.mark.parametrize(
    ("n", "rate", "most", "sigma"), [(4, 0.5, 1, 1.0), (3, 0.3, 2, 0.7), (3, 0.8, 3, 1.5), (1, 0.9, 1, 0.4)]
)
def test_one_step_bounds_a_record_removed_and_one_added(n, rate, most, sigma):
    step = truncated_around(sigma, rate, most, n)
    assert math.fsum(case.probability for case in step.cases) == pytest.approx(1, rel=1e-14)
    t = MultiScaleTradeoff(PrivacyLoss.of([step]))
    for size in (n, n + 1):
        for others in {(0,) * (size - 1), (1,) * (size - 1), (-1,) * (size - 1), (-1, 1, 0, 0)[: size - 1]}:
            for log_gamma in (0.0, 0.6):
                added, removed = attacks(others, rate, most, sigma, log_gamma)
                assert added <= t.delta(log_gamma, "remove") + 1e-9
                assert removed <= t.delta(log_gamma, "add") + 1e-9


@pytest.mark.parametrize(("n", "rate", "most"), [(40, 0.1, 5), (300, 0.5, 40)])
def test_neither_size_bounds_the_other_and_the_step_bounds_both(n, rate, most):
    """Negative control: where batches are seldom cut one record more tells more, where they always are, less."""
    sizes = [coarse(truncated_poisson(dn.TruncatedPoisson(0.5, rate, 1, most, size))) for size in (n, n + 1)]
    both = MultiScaleTradeoff(PrivacyLoss.of([truncated_around(0.5, rate, most, n)]))
    fewer, more = (t.delta(1.0, "remove", "lower") for t in sizes)
    assert (fewer < more) == (n == 40)
    assert max(t.delta(1.0, "remove") for t in sizes) <= both.delta(1.0, "remove") * (1 + 1e-6)
    assert both.delta(1.0, "remove") < 1.03 * max(fewer, more)


def test_a_person_who_is_hardly_ever_drawn_is_answered_without_an_overflow():
    """The far end of the nodes needs e^{>709} where a person of two records is drawn once in 500 runs."""
    bound = dn.tradeoff(dn.SubsampledGaussian(1.0, 1e-5, 100, records_per_person=2)).tpr(1e-6)
    assert 1e-6 < bound < 1.01e-6
