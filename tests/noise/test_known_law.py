"""Known laws against the enumeration of every training set."""

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from deniable.noise import GaussianNoise, Histogram, Quantile, known_law, release
from deniable.noise.known_law import KnownEvidence, count_law, quantile_law
from deniable.noise.resampling import Population

RNG = np.random.default_rng(4)
COLUMN = np.round(RNG.normal(size=10), 1)  # has ties
EDGES = (-2.0, -0.5, 0.5, 1.0)


def games(algorithm, x, k):
    """Membership (sets, n) and outputs (sets, size) of all training sets."""
    sets = list(itertools.combinations(range(len(x)), k))
    member = np.array([np.isin(np.arange(len(x)), one) for one in sets])
    return member, np.array([np.ravel(algorithm(x[list(one)])) for one in sets])


def hockey_sticks(member, parts, gamma):
    """Largest H_γ over the records, both directions, from densities (or chances) of each set, (sets, points)."""
    share = member.mean()
    inside, outside = (m.T.astype(float) @ parts / len(member) for m in (member, ~member))
    p, q = inside / share, outside / (1 - share)
    return max(np.maximum(p - gamma * q, 0).sum(axis=1).max(), np.maximum(q - gamma * p, 0).sum(axis=1).max())


CASES = [(Quantile(0.5), 5), (Quantile(0.3), 4), (Quantile(0.9), 3), (Quantile(0.0), 5), (Quantile(1.0), 5)]
CASES += [(Histogram(EDGES), 5), (Histogram(EDGES), 3), (Histogram((-0.5, 0.5)), 4)]


@pytest.mark.parametrize(("algorithm", "k"), CASES)
def test_without_noise_it_is_the_enumeration(algorithm, k):
    """For tables of the whole vector of counts, not only of the cell of each record."""
    member, outputs = games(algorithm, COLUMN, k)
    _, number = np.unique(outputs, axis=0, return_inverse=True)
    indicator = (number.reshape(-1, 1) == np.arange(number.max() + 1)).astype(float)
    evidence = KnownEvidence(algorithm.known_laws(Population(COLUMN, 10, k)), k / 10)
    for log_gamma in (0.0, 0.4, 2.0):
        expected = hockey_sticks(member, indicator, np.exp(log_gamma))
        assert evidence.curve(None, np.array([log_gamma]))[0] == pytest.approx(min(expected, 1), rel=1e-9, abs=1e-9)
    rare = min(k / 10, 1 - k / 10)
    joint = [np.abs(np.where(member[:, i], 1, -1) @ indicator).sum() / len(member) / 2 for i in range(10)]
    assert evidence.gain(None) == pytest.approx(max(max(joint) + 0.5 - (1 - rare), 0.0), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("algorithm", "k"), [*CASES[:3], CASES[-1]])
@pytest.mark.parametrize("scale", [0.1, 0.8])
def test_with_noise_it_is_the_integral_over_all_sets(algorithm, k, scale):
    member, outputs = games(algorithm, COLUMN, k)
    law = GaussianNoise(scale, np.array([outputs.std()]))
    width = float(law.standard_deviation[0])
    y, step = np.linspace(outputs.min() - 9 * width, outputs.max() + 9 * width, 12001, retstep=True)
    densities = np.exp(-(((y - outputs) / width) ** 2) / 2) / np.sqrt(2 * np.pi) / width * step
    evidence = KnownEvidence(algorithm.known_laws(Population(COLUMN, 10, k)), k / 10)
    for log_gamma in (0.0, 1.0):
        expected, bound = (
            hockey_sticks(member, densities, np.exp(log_gamma)),
            evidence.curve(law, np.array([log_gamma]))[0],
        )
        assert expected - 1e-9 <= bound <= expected + 0.004 * (1 + np.exp(log_gamma))


def test_laws_against_whole_numbers():
    for n, k, counted in ((30, 11, 7), (30, 15, 29), (40, 3, 20), (9, 4, 0)):
        law = count_law(n, k, counted)
        for value, chance in zip(law.values, law.chances, strict=True):
            c = round(value * k)
            exact = Fraction(comb(counted, c) * comb(n - counted, k - c), comb(n, k))
            assert chance == pytest.approx(float(exact), rel=1e-12)
        assert law.chances.sum() == pytest.approx(1, abs=1e-14)
    for n, k, rank in ((30, 11, 4), (30, 15, 15), (25, 3, 1)):
        law = quantile_law(np.arange(1.0, n + 1), k, rank)
        for j, chance in zip(law.values, law.chances, strict=True):
            exact = Fraction(comb(int(j) - 1, rank - 1) * comb(n - int(j), k - rank), comb(n, k))
            assert chance == pytest.approx(float(exact), rel=1e-12)


def test_records_that_share_a_class_are_covered(monkeypatch):
    """Against classes of one record each, which the enumeration above confirms."""
    ordered, prior = np.sort(RNG.normal(size=1000)), 0.5
    shared = KnownEvidence([quantile_law(ordered, 500, 220)], prior)
    monkeypatch.setattr(known_law, "_CLASS_MASS", 1e-30)
    alone = KnownEvidence([quantile_law(ordered, 500, 220)], prior)
    assert len(alone.laws[0].inside) > 1.5 * len(shared.laws[0].inside)
    law = GaussianNoise(1.0, np.array([0.1 * alone.laws[0].spread]))
    for one in (None, law):
        assert alone.gain(one) <= shared.gain(one) <= alone.gain(one) + 0.005


def test_the_law_is_followed_far_enough_for_very_small_parts():
    law = quantile_law(np.arange(5_000.0), 12, 1)  # geometric-like: sd far above √n
    assert law.error < 1e-7
    assert law.mean == pytest.approx(5_001 / 13 - 1, rel=1e-9)


def test_counts_of_many_records_need_no_noise_and_those_of_few_do():
    x = np.repeat([0.5, 1.5, 2.5], [300, 500, 200])
    r = release(Histogram((0.0, 1.0, 2.0, 3.0)), x, advantage=0.2, bound="direct")
    assert r.certificate.kind == "exact"
    assert r.certificate.advantage < 0.1
    assert not r.noise_scale.any()
    assert r.value.sum() == pytest.approx(1)
    assert np.all(np.abs(r.value * 500 - np.round(r.value * 500)) < 1e-9)
    assert r.certificate.tradeoff.tpr(1e-3) < 0.01
    few = release(Histogram((0.0, 1.0)), np.repeat([0.5, 1.5], [3, 997]), advantage=0.2, bound="direct")
    assert few.noise_scale[0] > 0
    assert few.certificate.advantage <= 0.2


def test_a_quantile_that_is_somebodys_value_gets_noise_and_a_shared_one_none():
    own = release(Quantile(), RNG.normal(size=400), advantage=0.4)
    assert own.certificate.bound == "direct"
    assert own.noise_scale[0] > 0
    assert own.certificate.advantage <= 0.4
    shared = release(Quantile(), np.repeat([1.0, 2.0, 3.0], [100, 300, 100]), advantage=0.2)
    assert shared.value[0] == 2
    assert shared.noise_scale[0] == 0
