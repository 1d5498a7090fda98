"""Large tables pass through memory block by block; what comes out does not depend on the blocks."""

import numpy as np
import pytest

from deniable.noise.laws import GaussianNoise
from deniable.releases import Histogram, Mean
from deniable.releases.coordinates import Coordinates, Summary, alike
from deniable.releases.resampling import Population

RNG = np.random.default_rng(2)
TABLE = RNG.lognormal(size=(53, 3))


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [(Mean(), TABLE.mean(axis=0)), (Mean((0, 2)), TABLE.clip(0, 2).mean(axis=0))],
)
def test_distances_do_not_depend_on_the_blocks(algorithm, value, monkeypatch):
    population, coordinates = Population.of(TABLE, 0.5), np.arange(value.size)
    law = GaussianNoise(1.0, 1.0 + coordinates)

    def found():
        rows = algorithm.swap_rows(population, law, coordinates)
        summary = algorithm.influence(population, coordinates)
        return rows.distances, summary.absolute, summary.largest, summary.square, algorithm(TABLE)

    whole = found()
    monkeypatch.setattr("deniable.releases.coordinates.CACHE", 7)
    for one, other in zip(found(), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(whole[-1], value, rtol=1e-13)


def test_bins_and_their_shares_stand_for_all_pairs_of_records():
    """Against the pairs of indicators themselves, records in no bin included."""
    algorithm, x = Histogram((0.0, 0.5, 1.0, 1.5)), TABLE[:, 0]
    population, law = Population.of(x, 0.5), GaussianNoise(1.0, np.array([1.0, 0.5, 2.0]))
    indicators = ((x[:, None] >= [0.0, 0.5, 1.0]) & (x[:, None] < [0.5, 1.0, 1.5])).astype(float)
    white = indicators / law.factor / 26
    pairs = np.linalg.norm(white[:, None] - white, axis=2)[~np.eye(53, dtype=bool)].reshape(53, 52)
    rows = algorithm.swap_rows(population, law, np.arange(3))
    assert rows.rest == 0.0
    np.testing.assert_allclose(rows.weights.sum(axis=1), 1.0, rtol=1e-14)
    loud = law.with_scale(0.02)
    leaks, expected = rows.leak_of_each(loud, 0.3), loud.leakage(0.3, pairs / 0.02).mean(axis=1)
    np.testing.assert_allclose(np.unique(np.round(leaks, 9)), np.unique(np.round(expected, 9)), atol=1e-8)
    found, centred = algorithm.influence(population, np.arange(3)), indicators - indicators.mean(axis=0)
    expected = Summary.of([centred])
    for name in ("absolute", "largest", "square"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(algorithm.alike(x), [0, 1, 2])
    assert list(Histogram((-2.0, -1.0, 9e9)).alike(x)) == [-1, -1]


def test_copies_and_constants_are_found_whatever_their_ends():
    a, b = RNG.permutation(20.0 * np.arange(5)), RNG.permutation(20.0 * np.arange(5))  # the same least and largest
    values = np.stack([a, b, a, np.full(5, 3.0), -a, a + 0.5, a], axis=1)
    found = Coordinates.of(values, (7,))
    assert found.source[0] == found.source[2] == found.source[6]
    assert found.source[3] == -1
    assert len(found.free) == (3 if np.array_equal(a, b) else 4)
    np.testing.assert_array_equal(alike([values[:2], values[2:3], values[3:]]), alike([values]))


def test_a_secret_part_is_a_uniform_one():
    population = Population(TABLE, 53, 20)
    counts = np.zeros(53)
    pairs = np.zeros((53, 53))
    for _ in range(3000):
        rows = population.secret_subset()
        assert len(rows) == 20
        assert np.all(np.diff(rows) > 0)
        member = np.zeros(53)
        member[rows] = 1
        counts += member
        pairs += np.outer(member, member)
    share, both = 20 / 53, 20 * 19 / (53 * 52)
    assert np.abs(counts / 3000 - share).max() < 5 * np.sqrt(share * (1 - share) / 3000)
    off = pairs[~np.eye(53, dtype=bool)] / 3000
    assert np.abs(off - both).max() < 6 * np.sqrt(both * (1 - both) / 3000)
