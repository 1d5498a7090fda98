"""Swaps of a ridge regression around the fit to all records, against fits to random training sets."""

import numpy as np
import pytest

from deniable import InputError
from deniable.noise import Ridge, known_swaps, linear_swaps, plans, release
from deniable.noise.evidence import ExactRows
from deniable.noise.laws import GaussianNoise
from deniable.noise.resampling import Population
from deniable.noise.shaping import Shaper

N = 5000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)) * [1.0, 100.0] + [3.0, 0.0]
Y = X @ [1.0, 0.02] + RNG.normal(size=N)
Y[0], X[1, 1], Y[2] = 60.0, 150.0, -9.0
LAW = GaussianNoise(1.0, np.array([0.02, 0.0002, 0.06]))
EVERYTHING = np.arange(3)
PENALTY = 5.0


def made(fraction=0.5, X=X, Y=Y):
    population = Population.of((X, Y), fraction)
    return population, Ridge(alpha=PENALTY).linearised(population)


def mean_distance(population, one, other, draws):
    """Mean distance between fits to random sets with either of two records."""
    rest = np.setdiff1d(np.arange(N), [one, other])
    rng, fit, found = np.random.default_rng(1), Ridge(alpha=PENALTY), []
    for _ in range(draws):
        stay = rng.permutation(rest)[: population.n_train - 1]
        with_one, with_other = (fit(population.take(np.sort(np.append(stay, i)))) for i in (one, other))
        found.append(LAW.distance(with_one, with_other))
    return float(np.mean(found))


@pytest.mark.parametrize("fraction", [0.4, 0.5, 0.7])
def test_entries_bound_the_mean_distance_of_a_pair_and_first_order_alone_does_not(fraction, monkeypatch):
    monkeypatch.setattr("deniable.noise.statistics._ENTRIES", 3 * N)  # three rows
    population, algorithm = made(fraction)
    rows = algorithm.swap_rows(population, LAW, EVERYTHING)
    monkeypatch.setattr(linear_swaps.LinearisedRidge, "_left_out", lambda *_: (np.zeros(N), 0.0))
    first_order = algorithm.swap_rows(population, LAW, EVERYTHING)
    assert rows.averaged
    assert rows.failure == linear_swaps.FAILURE
    assert len(rows.distances) == 3
    beyond = 0
    for other in (1, 50, 4000):
        measured = mean_distance(population, 0, other, 6)
        entry = rows.distances[0, other - 1]  # record 0 stands out most, and has no distance to itself
        assert measured <= entry <= 1.8 * measured
        assert first_order.distances[0, other - 1] == pytest.approx(measured, rel=0.15)
        beyond += measured > first_order.distances[0, other - 1]
    assert beyond


def test_the_rest_bounds_everybody_without_a_row(monkeypatch):
    monkeypatch.setattr("deniable.noise.statistics._ENTRIES", 3 * N)
    population, algorithm = made()
    rest = algorithm.swap_rows(population, LAW, EVERYTHING).rest
    monkeypatch.setattr("deniable.noise.statistics._ENTRIES", 40 * N)
    entries = algorithm.swap_rows(population, LAW, EVERYTHING).distances
    assert np.sort(entries.mean(axis=1))[-4] <= rest < entries.mean(axis=1).max()


def test_training_sets_are_as_alike_as_the_bound_says():
    """The least eigenvalue of TᵀAT over random sets stays above 1 − a, and a is not far from what is seen."""
    population, algorithm = made()
    root, k = algorithm.around.root, population.n_train
    seen = []
    for seed in range(20):
        inside = np.random.default_rng(seed).permutation(N)[: k - 1]
        z = np.column_stack([X[inside], np.ones(k - 1)]) @ root
        seen.append(1 - np.linalg.eigvalsh(z.T @ z + algorithm._penalty)[0])
    away = away_of(algorithm, population)
    assert max(seen) < away < 10 * max(seen)


def away_of(algorithm, population):
    found = {}
    original = linear_swaps._FARTHEST

    class Watching(float):
        def __ge__(self, other):
            found["a"] = other
            return float(self) >= other

    linear_swaps._FARTHEST = Watching(original)
    try:
        algorithm._left_out(population, LAW, EVERYTHING, LAW.whiten(algorithm.around.root.T))
    finally:
        linear_swaps._FARTHEST = original
    return found["a"]


def test_the_fit_is_that_of_ridge_regression_and_there_is_always_one():
    population, algorithm = made()
    part = population.take(np.arange(0, N, 2))
    assert np.allclose(algorithm(part), Ridge(alpha=PENALTY)(part), rtol=1e-9, atol=1e-12)
    around = linear_swaps.Around(algorithm.around.theta, algorithm.around.root, np.zeros(3))
    nothing = linear_swaps.LinearisedRidge(around, X, Y)
    assert np.array_equal(nothing((np.zeros((4, 2)), np.full(4, np.inf))), nothing.around.theta)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_the_noise_is_little_more_than_first_order_needs(covariance, monkeypatch):
    monkeypatch.setattr("deniable.noise.statistics._ENTRIES", 3 * N)
    population, algorithm = made()
    game = plans.CouplingGame(population, 0.1, "swap", 0.99)
    law, evidence = planned(algorithm, game, covariance)
    scale = evidence.least_scale(law, game.level, 0.0)
    monkeypatch.setattr(linear_swaps.LinearisedRidge, "_left_out", lambda *_: (np.zeros(N), 0.0))
    least = planned(algorithm, game, covariance)[1].least_scale(law, game.level, 0.0)
    assert least < scale < 1.4 * least


def planned(algorithm, game, covariance):
    plan = plans.plan_from_closed_form(algorithm, game, Shaper("gaussian", covariance))
    return plan.law, plan.evidence


def test_many_records_are_released_by_the_swap_bound(monkeypatch):
    monkeypatch.setattr(known_swaps, "_MOST_DISTANCES", 0)
    monkeypatch.setattr("deniable.noise.statistics._ENTRIES", 3 * N)
    monkeypatch.setattr("deniable.noise.mechanism._LOG_GAMMAS", np.array([0.0, 1.0]))
    found = release(Ridge(alpha=PENALTY), (X, Y), eta=0.1, bound="swap")
    assert (found.certificate.bound, found.certificate.kind) == ("swap", "exact")
    assert 0.0999 < found.certificate.eta <= 0.1
    assert "around the fit to all records" in found.certificate.coupling
    assert np.all(np.abs(found.value - Ridge(alpha=PENALTY)((X, Y))) < 8 * found.standard_error)


@pytest.mark.parametrize(
    ("X", "Y", "says"),
    [
        (np.vstack([[1e4, 0.0], X[1:]]), Y, "single records weigh too much"),
        (np.column_stack([X[:, 0], X[:, 0]]), Y, "depend on one another"),
        (X, np.zeros(N), "residuals or columns that are not all 0"),
        (X * 0, Y, "residuals or columns that are not all 0"),
    ],
)
def test_what_cannot_be_bounded_is_refused(X, Y, says, monkeypatch):
    monkeypatch.setattr(known_swaps, "_MOST_DISTANCES", 0)
    with pytest.raises(InputError, match=says):
        release(Ridge(alpha=1e-12), (X, Y), eta=0.1, bound="swap")


def test_the_failure_is_part_of_every_bound():
    law, gammas = LAW.with_scale(1.0), np.array([0.0, 1.0, 30.0])
    rows = np.array([[1.0, 2.0, 0.5]])
    safe, risky = (ExactRows(rows, rest=1.0, averaged=True, failure=f) for f in (0.0, 0.01))
    assert np.allclose(risky.curve(law, gammas), safe.curve(law, gammas) + 0.01)
    assert risky.worst(law, 0.0) == pytest.approx(safe.worst(law, 0.0) + 0.01)
    assert risky.least_scale(law, 0.1, 0.0) == pytest.approx(safe.least_scale(law, 0.09, 0.0), rel=1e-6)
