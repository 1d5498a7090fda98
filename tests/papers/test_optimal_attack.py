"""The optimal attacker by enumeration, against closed forms, a certified bracket and simulated attacks."""

import itertools

import numpy as np
import pytest
from counterexamples import SubsetIndicator
from optimal_attack import exact_membership
from scipy import stats
from scipy.special import ndtr

import deniable as dn
from deniable import bounds
from deniable.noise.laws import GaussianNoise, NormLaplaceNoise


def gaussian(scale: float, d: int = 1) -> GaussianNoise:
    return GaussianNoise(scale, np.ones(d))


def mean(part):
    return np.mean(part, axis=0)


def certified_bracket(values, signs, frozen, slope, curvature, grid):
    """Lower and upper bound on ∫|g|, g = Σ w f(x − θ), from the distribution function alone.

    |ΔG| over a cell is a lower bound, and exact where g keeps its sign. It does if it is too large at the ends for
    its slope, which is at most that of Σ|w|f at the ends plus the cell's width times the curvature of f.
    """
    shifts, width = grid[None, :] - values[:, None], np.diff(grid)
    g, steepness = signs @ frozen.pdf(shifts), np.abs(signs) @ slope(shifts)
    exact, mass = np.abs(np.diff(signs @ frozen.cdf(shifts))), np.diff(np.abs(signs) @ frozen.cdf(shifts))
    steepest = np.maximum(steepness[:-1], steepness[1:]) + curvature * width
    unsure = np.abs(g[:-1]) + np.abs(g[1:]) <= steepest * width
    return exact.sum(), exact.sum() + np.sum(np.minimum(mass, steepest * width**2)[unsure]) + 1e-12


@pytest.mark.parametrize(("n", "k"), [(6, 3), (8, 4), (7, 2), (6, 5)])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_one_dimension_lies_in_a_certified_bracket(n, k, law):
    x, scale = np.random.default_rng(n + k).normal(size=n), 0.3
    if law == "gaussian":
        frozen = stats.norm(0, scale)
        slope, curvature = lambda x: np.abs(x) / scale**2 * frozen.pdf(x), 1 / (np.sqrt(2 * np.pi) * scale**3)
    else:
        frozen = stats.laplace(0, scale)
        slope, curvature = lambda x: frozen.pdf(x) / scale, 1 / (2 * scale**3)
    noise = gaussian(scale) if law == "gaussian" else NormLaplaceNoise(scale, np.ones(1))
    found = exact_membership(mean, x, noise, k)
    assert found.prior == k / n
    assert found.method == "adaptive quadrature"
    assert found.error < 2e-7
    subsets = list(itertools.combinations(range(n), k))
    values = np.array([x[list(s)].mean() for s in subsets])
    grid = np.unique(np.concatenate([np.linspace(values.min() - 9, values.max() + 9, 16_001), values]))
    for record in range(n):
        signs = np.array([1 if record in s else -1 for s in subsets]) / len(subsets)
        low, high = certified_bracket(values, signs, frozen, slope, curvature, grid)
        low, high = (1 + v - 2 * max(k / n, 1 - k / n) for v in (low, high))
        assert low - found.error <= found.advantage[record] <= high + found.error
        assert found.advantage[record] == pytest.approx(low, abs=2e-5)
        assert high - low < 2e-3


def test_two_records_are_two_shifted_laws():
    """n=2, k=1: TV of two shifted laws in closed form; it is the advantage, and Izzo's η half of it (erratum E2)."""
    for distance in (0.01, 1.0, 5.0):
        data = np.array([0.0, distance])
        found = exact_membership(mean, data, gaussian(1.0), 1)
        assert found.advantage == pytest.approx(2 * ndtr(distance / 2) - 1, abs=2e-7)
        eta = bounds.mip_eta(dn.tradeoff(dn.GaussianDP(distance)), game="independent")
        assert found.advantage == pytest.approx(2 * eta, abs=2e-7)
        found = exact_membership(mean, data, NormLaplaceNoise(1.0, np.ones(1)), 1)
        assert found.advantage == pytest.approx(1 - np.exp(-distance / 2), abs=2e-7)


@pytest.mark.parametrize("width", [1e-7, 1e-3, 1e4])
def test_noise_far_narrower_or_wider_than_the_outputs(width):
    """No noise to speak of gives everything away; with a flood of it the advantage is 2·|slope|, like 1/width."""
    x = np.random.default_rng(2).normal(size=8)
    found = exact_membership(mean, x, gaussian(width))
    assert found.error < 2e-6
    if width < 1e-2:
        assert found.worst == pytest.approx(1.0, abs=2e-2)
    else:
        shift = abs(np.array([(x[i] - np.delete(x, i).mean()) / 4 for i in range(8)]))
        assert found.advantage == pytest.approx(2 * ndtr(shift / (2 * width)) - 1, rel=1e-3)


def test_no_noise_is_counted():
    identity = exact_membership(np.sort, np.arange(6.0))  # publishing the training set: the case of erratum E2
    assert identity.method == "counting"
    assert np.all(identity.advantage == 1.0)
    constant = exact_membership(lambda part: 0.0, np.arange(6.0), k=2)
    assert np.all(constant.advantage == 0.0)
    example = SubsetIndicator(8)
    found = exact_membership(example, np.arange(8), k=4)
    assert found.advantage == pytest.approx(2 * example.eta, abs=2e-15)


def test_laws_of_scipy_and_of_deniable_agree():
    x = np.random.default_rng(4).normal(size=6)
    ours = exact_membership(mean, x, gaussian(0.4))
    scipys = exact_membership(mean, x, stats.norm(0, 0.4))
    assert ours.advantage == pytest.approx(scipys.advantage, abs=1e-9)


def test_a_second_coordinate_that_says_nothing_changes_nothing():
    """Monte Carlo against the line, which is exact."""
    x = np.random.default_rng(9).normal(size=(8, 1))
    line = exact_membership(mean, x, gaussian(0.3))
    space = exact_membership(mean, np.hstack([x, 0 * x, 0 * x]), gaussian(0.3, 3), rng=1)
    assert space.method == "Monte Carlo"
    assert space.confidence == 0.99
    assert np.max(np.abs(space.advantage - line.advantage)) <= space.error + line.error


def test_simulated_attacks_reach_the_optimum_and_not_more():
    rng = np.random.default_rng(21)
    x, scale, n, k = rng.normal(size=6), 0.35, 6, 3
    found = exact_membership(mean, x, gaussian(scale), k)
    record = int(np.argmax(found.advantage))
    subsets = np.array(list(itertools.combinations(range(n), k)))
    member = (subsets == record).any(axis=1)
    values = x[subsets].mean(axis=1)
    drawn = rng.integers(len(subsets), size=200_000)
    seen = values[drawn] + scale * rng.normal(size=drawn.size)
    likelihood = np.exp(-((seen[:, None] - values) ** 2) / (2 * scale**2))
    optimal = np.mean((likelihood @ np.where(member, 1, -1) >= 0) == member[drawn])
    above_centre = np.mean((np.sign(x[record]) * (seen - x.mean()) >= 0) == member[drawn])
    margin = 5 * 0.5 / np.sqrt(drawn.size)
    assert optimal - 0.5 == pytest.approx(found.worst / 2, abs=margin)
    assert above_centre - 0.5 <= found.worst / 2 + margin
