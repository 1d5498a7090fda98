"""Swap distances against the definition: take a training set, swap, run the algorithm again."""

import itertools

import numpy as np
import pytest

import deniable as dn
from deniable.noise.laws import GaussianNoise
from deniable.releases import Mean, ReleaseError, SecondMoment, statistics
from deniable.releases.resampling import Population

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


@pytest.mark.parametrize("algorithm", [Mean(), SecondMoment()])
def test_rounding_of_far_away_data_is_charged(algorithm):
    """Far from the origin the order of the sum shows in the result; noise must cover that, too."""
    data = 1e9 + np.arange(30.0)[:, None] * 1e-7
    size = algorithm(data).size
    rows = algorithm.swap_rows(Population.of(data, 0.5), GaussianNoise(1.0, np.ones(size)), np.arange(size))
    half = data[:15]
    off = [np.abs(algorithm(half[np.random.default_rng(i).permutation(15)]) - algorithm(half)).max() for i in range(20)]
    assert max(off) > 0
    assert rows.distances.min() >= 2 * max(off)


class Top(Mean):
    """Counts as no mean: one record decides it."""

    def __call__(self, data):
        return np.asarray(data).max(axis=0)


def test_a_subclass_is_any_algorithm():
    """A maximum was certified as a mean, "exact": it was told in 100 of 100 releases."""
    data = np.random.default_rng(0).normal(size=(60, 1))
    data[0] = 50
    with pytest.raises(ReleaseError, match="swap"):
        dn.release(Top(), data, advantage=0.2, bound="swap")
    assert dn.release(Top(), data, advantage=0.2, rng=0).certificate.bound != "swap"
