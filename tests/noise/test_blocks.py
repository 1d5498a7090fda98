"""Large tables pass through memory block by block; what comes out does not depend on the blocks."""

import numpy as np
import pytest

from deniable.noise import Histogram, Mean, blocks
from deniable.noise.laws import GaussianNoise
from deniable.noise.plans import Coordinates
from deniable.noise.resampling import Population

RNG = np.random.default_rng(2)
TABLE = RNG.lognormal(size=(53, 3))


@pytest.mark.parametrize(("algorithm", "data"), [(Mean(), TABLE), (Histogram((0.0, 0.5, 1.0, 99.0)), TABLE[:, 0])])
def test_distances_do_not_depend_on_the_blocks(algorithm, data, monkeypatch):
    law, coordinates = GaussianNoise(1.0, np.array([1.0, 0.5, 2.0])), np.arange(3)
    whole = algorithm.swap_rows(Population.of(data, 0.5), law, coordinates)
    monkeypatch.setattr(blocks, "_ROWS", 7)
    parts = algorithm.swap_rows(Population.of(data, 0.5), law, coordinates)
    features = algorithm.features(data)
    white = features / law.factor / 26
    expected = np.linalg.norm(white[:, None] - white, axis=2)[~np.eye(53, dtype=bool)].reshape(53, 52)
    for rows in (whole, parts):
        assert rows.rest == 0.0
        for whole_row in (np.sum, np.max):
            found = np.sort(whole_row(rows.distances, axis=1))
            np.testing.assert_allclose(found, np.sort(whole_row(expected, axis=1)), rtol=1e-7, atol=1e-11)
        np.testing.assert_allclose(np.sort(rows.distances.ravel()), np.sort(expected.ravel()), rtol=1e-7, atol=1e-11)


def test_columns_and_sums(monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS", 7)
    np.testing.assert_allclose(blocks.column_sums(np.square, TABLE), (TABLE**2).sum(axis=0), rtol=1e-14)
    assert blocks.columns_of(TABLE, np.arange(3)) is TABLE
    np.testing.assert_array_equal(blocks.columns_of(TABLE, np.array([2, 0])), TABLE[:, [2, 0]])


def test_copies_and_constants_are_found_whatever_their_ends():
    a, b = RNG.permutation(20.0 * np.arange(5)), RNG.permutation(20.0 * np.arange(5))  # the same least and largest
    values = np.stack([a, b, a, np.full(5, 3.0), -a, a + 0.5, a], axis=1)
    found = Coordinates.of(values, (7,))
    assert found.source[0] == found.source[2] == found.source[6]
    assert found.source[3] == -1
    assert len(found.free) == (3 if np.array_equal(a, b) else 4)


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
