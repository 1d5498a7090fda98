"""Convex order of discretised measures: masses and means stay, potentials lie on their side."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import isotonic_regression

from deniable.accounting.steps.convex_order import Atoms, _convex, _pooled, above, below, first_group, merged


def potential(point, mass, at):
    return np.maximum(np.subtract.outer(at, point) * -1, 0) @ mass


def measure(seed, size, kind):
    rng = np.random.default_rng(seed)
    point = np.sort(rng.uniform(1.0, 2.0, size)) if kind == "even" else np.exp(np.sort(rng.normal(0, 1, size)))
    mass = rng.uniform(0.5, 1.5, size) if kind == "even" else rng.exponential(1.0, size) ** 3
    return Atoms(point, mass / mass.sum())


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(100, 400), st.integers(4, 60), st.sampled_from(["even", "uneven"]), st.booleans()
)
def test_potentials_on_either_side(seed, size, cells, kind, geometric):
    atoms = measure(seed, size, kind)
    low, high = atoms.point[0] * 0.9, atoms.point[-1] * 1.05
    nodes = np.geomspace(low, high, cells) if geometric else np.linspace(low, high, cells)
    at = np.union1d(np.concatenate([nodes, atoms.point]), np.linspace(low / 2, high * 1.1, 500))
    truth = potential(*atoms, at)
    upper, (lower, error) = above(atoms, nodes).mass, below(atoms, nodes)
    if error.sum() >= 1:  # so few nodes that no smaller law exists: nothing is claimed
        assert cells < 40
        lower = upper
        truth = np.maximum(truth, potential(nodes, lower, at))
    assert (upper >= 0).all()
    assert (lower >= 0).all()
    assert np.all(potential(nodes, upper, at) >= potential(*atoms, at) - 1e-13)
    assert np.all(potential(nodes, lower, at) <= truth + 1e-13)
    for mass in (upper, lower):
        assert mass.sum() == pytest.approx(1, abs=1e-12)
        assert mass @ nodes == pytest.approx(atoms.mass @ atoms.point, rel=1e-12)


def test_chords_between_nodes_are_rounded_like_the_masses_between_them():
    rng = np.random.default_rng(7)
    nodes = np.linspace(0.0, 1.0, 4001)
    mass = np.exp(-40 * nodes) * rng.uniform(0.4, 1.6, nodes.size)
    mass[2::3] *= -0.3  # slopes that fall: some must be pooled
    found = _convex(mass, nodes, np.diff(nodes))
    assert (found.mass >= 0).all()
    far = slice(3000, None)
    assert found.error[far].sum() < 1e-12 * np.abs(mass[far]).sum()  # though the slopes there were added up to 1
    at = nodes[::50]
    assert np.all(potential(nodes, found.mass, at) <= potential(nodes, mass, at) + 1e-15)
    assert found.mass.sum() == pytest.approx(mass.sum(), rel=1e-13)


def test_nearly_all_mass_on_the_first_node_leaves_the_tail_as_it_is():
    """Slopes that were all added up from the first node were pooled in the tail: 80 times too much lay above 3e7."""
    k = np.arange(4000)
    atoms = Atoms(np.append(10.0, 1.5e5 + 8e3 * k), np.append(1.0, 2e-13 * (1 + k / 100) ** -4.0))
    nodes = 10.0 + 6e4 * np.arange(700)
    lower, error = below(atoms, nodes)
    for at in (1e5, 1e7, 3e7):
        truth, found = (float(mass @ np.maximum(point - at, 0.0)) for point, mass in (atoms, (nodes, lower)))
        assert 0.99 * truth <= found <= truth * (1 + 1e-12) + float(error @ np.maximum(nodes - at, 0.0))


@pytest.mark.parametrize("seed", range(6))
def test_pooling_where_the_halves_meet_is_the_regression_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    slopes, width = np.cumsum(rng.normal(0.02, 0.1, 60)), rng.uniform(0.5, 2.0, 60)
    total = float(slopes.max() + slopes.min() + 1.0)
    whole = isotonic_regression(slopes, weights=width)
    for half in (0, 1, 30, 59, 60):
        starts, slope, rest = _pooled(slopes[:half], total - slopes[half:], width, total)
        np.testing.assert_array_equal(starts, whole.blocks[:-1])
        np.testing.assert_allclose(slope, whole.x[starts], atol=1e-12)
        np.testing.assert_allclose(rest, total - slope, atol=1e-12)


@pytest.mark.parametrize("side", [above, below])
def test_equal_nodes_are_one_point(side):
    atoms = measure(4, 3000, "uneven")
    nodes = np.linspace(atoms.point[0], atoms.point[-1], 200)
    often = np.repeat(nodes, np.random.default_rng(5).integers(1, 4, nodes.size))
    first = np.searchsorted(often, nodes)
    for found, known in zip(side(atoms, often), side(atoms, nodes), strict=True):
        np.testing.assert_array_equal(found[first], known)
        assert not np.delete(found, first).any()
    alone = side(Atoms(np.ones(3), np.full(3, 0.25)), np.ones(4))
    assert alone.mass.tolist() == [0.75, 0.0, 0.0, 0.0]
    assert not alone.error.any()


def test_the_lower_side_without_depth_would_be_wrong():
    atoms = measure(1, 300, "even")
    nodes = np.linspace(0.9, 2.1, 20)
    split = above(atoms, nodes).mass
    at = np.linspace(0.9, 2.1, 400)
    assert np.max(potential(nodes, split, at) - potential(*atoms, at)) > 1e-4


def test_both_sides_close_in_with_the_square_of_the_cells():
    atoms = measure(2, 200_000, "even")
    widths = []
    for cells in (50, 100):
        nodes = np.linspace(0.9, 2.1, cells)
        at = np.array([1.4])
        upper, lower = (potential(nodes, side(atoms, nodes).mass, at)[0] for side in (above, below))
        widths.append(upper - lower)
    assert widths[1] < 0.35 * widths[0]


def test_a_group_is_merged_into_its_mean():
    atoms = Atoms(np.array([1.0, 1.1, 1.2, 5.0]), np.array([0.2, 0.2, 0.2, 0.4]))
    count, mean = first_group(atoms, 0.5)
    assert count == 3
    assert mean == pytest.approx(1.1)
    together = merged(atoms, count, mean)
    assert together.point.tolist() == [mean, 5.0]
    assert together.mass.tolist() == pytest.approx([0.6, 0.4])
