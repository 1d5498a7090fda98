"""Swap distances against the definition: take a training set, swap, run the algorithm again."""

import itertools

import numpy as np
import pytest

from deniable.noise import (
    Covariance,
    Histogram,
    Mean,
    Quantile,
    SecondMoment,
    release,
    statistics,
)
from deniable.noise.laws import GaussianNoise
from deniable.noise.resampling import Population

RNG = np.random.default_rng(0)
TABLE = RNG.gamma(1.0, size=(9, 3)) * [1.0, 10.0, 0.1]
COLUMN = TABLE[:, 0]


def all_swaps(algorithm, population, law, coordinates):
    """Mean distance over everything that stays, by enumeration: (record, partner) → mean distance."""
    n, k = population.n_records, population.n_train
    found = {}
    for i, j in itertools.permutations(range(n), 2):
        others = [r for r in range(n) if r not in (i, j)]
        distances = []
        for rest in itertools.combinations(others, k - 1):
            with_i, with_j = (algorithm(population.take(np.sort([*rest, r]))).ravel()[coordinates] for r in (i, j))
            distances.append(float(law.distance(with_i, with_j)))
        found[i, j] = np.array(distances)
    return found


@pytest.mark.parametrize(
    ("algorithm", "data"),
    [(Mean(), TABLE), (Mean(), COLUMN), (SecondMoment(), TABLE)],
)
@pytest.mark.parametrize("fraction", [0.3, 0.5])
def test_linear_swap_rows_are_exact(algorithm, data, fraction):
    population = Population.of(data, fraction)
    coordinates = np.arange(algorithm(data).size)
    law = GaussianNoise(1.0, 1.0 + coordinates)
    rows = algorithm.swap_rows(population, law, coordinates)
    swaps = all_swaps(algorithm, population, law, coordinates)
    assert rows.rest == 0.0
    expected = sorted(tuple(sorted(swaps[i, j][0] for j in range(9) if j != i)) for i in range(9))
    assert all(np.ptp(values) < 1e-12 for values in swaps.values())
    np.testing.assert_allclose(sorted(map(tuple, np.sort(rows.distances, axis=1))), expected, rtol=1e-6, atol=1e-12)


def test_linear_records_without_a_row_are_bounded(monkeypatch):
    population, law = Population.of(TABLE, 0.5), GaussianNoise(1.0, np.ones(3))
    full = Mean().swap_rows(population, law, np.arange(3))
    monkeypatch.setattr(statistics, "_ENTRIES", 30)
    short = Mean().swap_rows(population, law, np.arange(3))
    assert len(short.distances) == 3
    assert short.rest >= np.sort(full.distances.mean(axis=1))[-4]
    assert short.least_scale(law, 0.2, 0.0) >= full.least_scale(law, 0.2, 0.0)


@pytest.mark.parametrize("with_mean", [False, True])
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("full", [False, True])
def test_covariance_swap_rows_bound_the_mean_distance(ddof, full, with_mean):
    population, algorithm = Population.of(TABLE / [1, 10, 0.1], 0.5), Covariance(ddof, with_mean)
    coordinates = np.arange(12) if with_mean else np.arange(9)
    size = len(coordinates)
    law = GaussianNoise(1.0, np.linalg.cholesky(np.eye(size) + 0.3) if full else np.linspace(1, 2, size))
    rows = algorithm.swap_rows(population, law, coordinates)
    assert rows.averaged
    swaps = all_swaps(algorithm, population, law, coordinates)
    expected = np.array([[swaps[i, j].mean() for j in range(9) if j != i] for i in range(9)])
    bound = np.sort(rows.distances.mean(axis=1))
    assert np.all(bound >= np.sort(expected.mean(axis=1)))
    assert bound[-1] < 3 * expected.mean(axis=1).max()


def test_some_coordinates_of_mean_and_covariance():
    population, law = Population.of(TABLE / [1, 10, 0.1], 0.5), GaussianNoise(1.0, np.ones(4))
    some = np.array([0, 2, 3, 8])
    swaps = all_swaps(Covariance(0, with_mean=True), population, law, some)
    expected = [np.mean([swaps[i, j].mean() for j in range(9) if j != i]) for i in range(9)]
    rows = Covariance(0, with_mean=True).swap_rows(population, law, some)
    assert np.all(np.sort(rows.distances.mean(axis=1)) >= np.sort(expected))


def test_means_are_never_taken_for_elements_of_the_matrix():
    """u is 0.5 or −1.5 with mean 0 and x = u + 0.75 = u² + 2u: mean and variance would look like copies."""
    u = np.repeat([0.5, -1.5], [60, 20])
    data = np.column_stack([u + 0.75, RNG.normal(size=80)])
    r = release(Covariance(0, with_mean=True), data, advantage=0.6, bound="swap")
    assert len(np.unique(r.value)) == 5  # two means, three elements
    assert r.value[3] == r.value[4]
    assert len(np.unique(release(Covariance(), data, advantage=0.6, bound="swap").value)) == 3


@pytest.mark.parametrize("algorithm", [Mean(), SecondMoment(), Covariance(), Covariance(0, with_mean=True)])
def test_rounding_of_far_away_data_is_charged(algorithm):
    """Far from the origin the order of the sum shows in the result; noise must cover that, too."""
    data = 1e9 + np.arange(30.0)[:, None] * 1e-7
    size = algorithm(data).size
    rows = algorithm.swap_rows(Population.of(data, 0.5), GaussianNoise(1.0, np.ones(size)), np.arange(size))
    half = data[:15]
    off = [np.abs(algorithm(half[np.random.default_rng(i).permutation(15)]) - algorithm(half)).max() for i in range(20)]
    assert max(off) > 0
    assert rows.distances.min() >= 2 * max(off)


def test_covariance_bound_is_tight_for_many_records(monkeypatch):
    """For large n the part that goes through the mean of the training set vanishes like 1/√k."""
    data = RNG.normal(size=(1200, 2))
    population, law, coordinates = Population.of(data, 0.5), GaussianNoise(1.0, np.ones(4)), np.arange(4)
    rows = Covariance().swap_rows(population, law, coordinates)
    linear = SecondMoment().swap_rows(Population.of(data - data.mean(axis=0), 0.5), law, coordinates)
    assert rows.distances.mean(axis=1).max() < 1.15 * linear.distances.mean(axis=1).max()
    monkeypatch.setattr(statistics, "_ENTRIES", 12_000)
    short = Covariance().swap_rows(population, law, coordinates)
    assert len(short.distances) == 10
    assert short.rest >= np.sort(rows.distances.mean(axis=1))[-11]


def test_values_are_the_usual_ones():
    np.testing.assert_allclose(Mean()(TABLE), TABLE.mean(axis=0))
    np.testing.assert_allclose(Covariance()(TABLE), np.cov(TABLE.T))
    np.testing.assert_allclose(SecondMoment()(TABLE), np.einsum("ni,nj->ij", TABLE, TABLE) / 9)
    x = np.append(COLUMN, [0.0, 1.0, 2.0])
    counts = np.histogram(x, bins=[0.0, 0.5, 1.0, 2.0])[0]
    np.testing.assert_allclose(Histogram((0.0, 0.5, 1.0, 2.0))(x), counts / len(x))
    for q in (0.0, 0.1, 0.5, 0.77, 1.0):
        assert Quantile(q)(COLUMN)[0] == np.quantile(COLUMN, q, method="inverted_cdf")
