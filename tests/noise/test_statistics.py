"""Swap distances against the definition: take a training set, swap, run the algorithm again."""

import itertools

import mpmath
import numpy as np
import pytest
from sklearn import linear_model

from deniable import InputError
from deniable.noise import (
    Covariance,
    Histogram,
    LogisticRegression,
    Mean,
    PoissonRegression,
    Quantile,
    ReleaseError,
    Ridge,
    SecondMoment,
    SoftmaxRegression,
    newton,
    newton_swaps,
    release,
    statistics,
)
from deniable.noise.laws import GaussianNoise
from deniable.noise.resampling import Population
from deniable.noise.softmax_rows import SoftmaxRows

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
    r = release(Covariance(0, with_mean=True), data, eta=0.3, bound="swap")
    assert len(np.unique(r.value)) == 5  # two means, three elements
    assert r.value[3] == r.value[4]
    assert len(np.unique(release(Covariance(), data, eta=0.3, bound="swap").value)) == 3


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


def swap_check(algorithm, population, inside, partners=5):
    """Return (claimed distances, distances by refitting), each (n, partners)."""
    size = np.size(algorithm(population.take(inside)))
    law, coordinates = GaussianNoise(1.0, np.linspace(1.0, 2.0, size)), np.arange(size)
    claimed = algorithm.swap_distances(population, inside, law, coordinates, partners, np.random.default_rng(7))
    member = np.isin(np.arange(population.n_records), inside)
    leave, enter = statistics.swap_partners(member, partners, np.random.default_rng(7))
    assert np.all(member[leave])
    assert not np.any(member[enter])
    before, truth = algorithm(population.take(inside)).ravel(), np.empty(leave.shape)
    for at in np.ndindex(*leave.shape):
        after = np.sort(np.append(inside[inside != leave[at]], enter[at]))
        truth[at] = law.distance(algorithm(population.take(after)).ravel(), before)
    return claimed, truth


@pytest.mark.parametrize("q", [0.0, 0.03, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("n", [4, 15, 40])
def test_quantile_swaps_are_exact(q, n):
    population = Population.of(np.random.default_rng(n).normal(size=n).round(1), 0.5)  # with ties
    inside = population.single_set(np.random.default_rng(1))[0]
    claimed, truth = swap_check(Quantile(q), population, inside)
    np.testing.assert_allclose(claimed, truth, atol=1e-12)


def regression_data(n, d=3):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 2, d)
    X[0] *= 6  # one record stands out
    y = X @ np.arange(1, d + 1) / 3 + rng.normal(size=n)
    return X, y


@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_swaps_are_exact(intercept):
    population = Population.of(regression_data(40), 0.5)
    inside = population.single_set(np.random.default_rng(2))[0]
    claimed, truth = swap_check(Ridge(alpha=0.5, fit_intercept=intercept), population, inside)
    assert np.all(claimed >= truth - 1e-12)
    np.testing.assert_allclose(claimed, truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("C", [0.02, 1.0, 30.0])
@pytest.mark.parametrize("n", [40, 400])
def test_logistic_swaps_are_bounded_from_above(C, n):
    X, y = regression_data(n)
    population = Population.of((X, (y + np.random.default_rng(0).logistic(size=n) > 0).astype(float)), 0.5)
    inside = population.single_set(np.random.default_rng(2))[0]
    claimed, truth = swap_check(LogisticRegression(C=C), population, inside, partners=2)
    assert np.all(claimed >= truth - 1e-12)
    assert claimed.mean() < 1.3 * truth.mean()


@pytest.mark.parametrize(("alpha", "level"), [(0.5, 0.0), (5.0, 0.0), (0.5, 7.0)])
@pytest.mark.parametrize("n", [40, 400])
def test_poisson_swaps_are_bounded_from_above(alpha, level, n):
    """Counts around 1 and around 1,000; the record that stands out has a count far from what is expected of it."""
    X = regression_data(n)[0] / 3
    y = np.random.default_rng(0).poisson(np.exp(np.minimum(X @ [0.5, -0.4, 0.3] + level, 9))).astype(float)
    population = Population.of((X, y), 0.5)
    inside = population.single_set(np.random.default_rng(2))[0]
    claimed, truth = swap_check(PoissonRegression(alpha=alpha), population, inside, partners=2)
    assert np.all(claimed >= truth - 1e-12)
    assert np.median(claimed / np.maximum(truth, 1e-9)) < 1.3


def test_poisson_swaps_after_which_all_counts_are_zero_are_told_apart():
    X, y = regression_data(20)[0], np.zeros(20)
    y[[3, 15]] = 2.0
    law, population = GaussianNoise(1.0, np.ones(4)), Population.of((X, y), 0.5)
    found = PoissonRegression().swap_distances(
        population, np.arange(10), law, np.arange(4), 6, np.random.default_rng(1)
    )
    entering = statistics.swap_partners(np.arange(20) < 10, 6, np.random.default_rng(1))[1]
    assert np.all(np.isinf(found[3][entering[3] != 15]))
    with pytest.raises(ReleaseError, match="regression"):
        PoissonRegression()((X[4:10], y[4:10]))
    some = X[:, :1] / 9, 1.0 + np.arange(20) % 3
    r = release(PoissonRegression(alpha=20.0), some, eta=0.3, bound="swap", rng=0, n_resamples=64)
    assert r.certificate.kind == "sampled"


@pytest.mark.parametrize(("C", "scale"), [(1.0, 5.0), (1e4, 1.0)])
def test_logistic_swaps_on_separable_data_take_more_newton_steps(C, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * scale
    population = Population.of((X, (X[:, 0] > 0) * 1.0), 0.5)
    inside = population.single_set(rng)[0]
    claimed, truth = swap_check(LogisticRegression(C=C), population, inside, partners=2)
    assert np.all(claimed >= truth * (1 - 1e-12) - 1e-12)
    assert np.median(claimed[truth > 0] / truth[truth > 0]) < 1.01
    assert claimed.mean() < 1.1 * truth.mean()


@pytest.mark.parametrize(("algorithm", "size"), [(LogisticRegression(), 3), (SoftmaxRegression(n_classes=2), 6)])
def test_the_batch_of_newton_steps_does_not_depend_on_its_size(algorithm, size, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) * 5
    population, law = Population.of((X, (X[:, 0] > 0) * 1.0), 0.5), GaussianNoise(1.0, np.ones(size))
    arguments = (population, np.arange(20), law, np.arange(size), 2)
    whole = algorithm.swap_distances(*arguments, np.random.default_rng(1))
    monkeypatch.setattr(newton_swaps, "AT_ONCE", 100)  # batches of few swaps, and no table of outer products
    np.testing.assert_allclose(algorithm.swap_distances(*arguments, np.random.default_rng(1)), whole, rtol=1e-6)


def classified(n, n_classes):
    X, y = regression_data(n)
    score = y + np.random.default_rng(0).logistic(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes)).astype(float)


@pytest.mark.parametrize("C", [0.02, 30.0])
@pytest.mark.parametrize(("n", "n_classes", "intercept"), [(40, 3, True), (40, 4, False), (150, 3, True)])
def test_softmax_swaps_are_bounded_from_above(C, n, n_classes, intercept):
    """Some by one Newton step, and where the record that stands out moves, by more."""
    population = Population.of(classified(n, n_classes), 0.5)
    inside = population.single_set(np.random.default_rng(2))[0]
    claimed, truth = swap_check(SoftmaxRegression(intercept, C, n_classes), population, inside, partners=2)
    assert np.all(claimed >= truth - 1e-12)
    assert claimed.mean() < 1.3 * truth.mean()


def test_softmax_of_two_classes_is_logistic_regression_with_half_the_penalty():
    """θ₁ = −θ₀ is half of the one vector of logistic regression, so the penalty on both is half as large."""
    X, y = classified(60, 2)
    both = SoftmaxRegression(C=1.4, n_classes=2)((X, y))
    np.testing.assert_allclose(both[1] - both[0], LogisticRegression(C=2.8)((X, y)), atol=1e-6)
    np.testing.assert_allclose(both.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("rare", [[0], [30], [0, 30], [0, 1]])
def test_training_sets_that_lack_a_class(rare):
    """Before or after a swap one of three classes may be missing; the value is then 0."""
    X, y = classified(40, 2)
    y[rare] = 2
    claimed, truth = swap_check(SoftmaxRegression(C=0.1), Population.of((X, y), 0.5), np.arange(20), partners=8)
    assert np.all(np.isfinite(claimed))
    assert np.all(claimed >= truth - 1e-12)
    assert claimed.mean() <= 1.1 * truth.mean()
    np.testing.assert_array_equal(SoftmaxRegression()((X, 0 * y)), np.zeros((3, 4)))
    assert np.all(SoftmaxRegression(fit_intercept=False)((X, 0 * y)) != 0)


@pytest.mark.parametrize(("C", "level"), [(0.5, 1.0), (1e4, 30.0)])
def test_a_softmax_fit_and_its_rounding_are_what_they_say(C, level):
    """Gradient and Hessian in 50 digits, in the coordinates of all classes."""
    X, y = classified(15, 3)
    algorithm, X = SoftmaxRegression(C=C), np.column_stack([X[:, :1] * level, np.ones(15)])
    fit = algorithm._fitted(X, y)
    training = SoftmaxRows(X, y.astype(int), algorithm._basis, algorithm._penalty(2))
    basis = mpmath.matrix(np.kron(algorithm._basis, np.eye(2)).tolist())
    with mpmath.workdps(50):
        theta = basis * mpmath.matrix(fit.theta.tolist())
        gradient, hessian = mpmath.matrix(6, 1), mpmath.matrix(6, 6)
        for x, label in zip(X.tolist(), y, strict=True):
            score = [sum(theta[2 * k + j] * x[j] for j in range(2)) for k in range(3)]
            chance = [1 / sum(mpmath.exp(s - own) for s in score) for own in score]
            for k, j, m, i in itertools.product(range(3), range(2), range(3), range(2)):
                hessian[2 * k + j, 2 * m + i] += x[j] * x[i] * chance[k] * ((k == m) - chance[m])
            for k, j in itertools.product(range(3), range(2)):
                gradient[2 * k + j] += x[j] * (chance[k] - (k == label))
        gradient, hessian = basis.T * gradient, basis.T * hessian * basis
        for i, penalty in enumerate(training.penalty):
            gradient[i] += mpmath.mpf(penalty) * fit.theta[i]
            hessian[i, i] += penalty
        error = float(mpmath.sqrt((gradient.T * mpmath.lu_solve(hessian, gradient))[0]))
        ours, bound = training.derivatives(fit.theta), training.rounding(fit.theta)
        pairs = zip(ours, (gradient, hessian), strict=True)
        off = [np.array((mpmath.matrix(a.tolist()) - b).tolist(), float) for a, b in pairs]
    assert error <= newton.TOLERANCE * (1 + fit.size)
    assert np.all(np.abs(off[0][:, 0]) <= bound[0])
    assert np.all(np.abs(off[1]) <= bound[1])
    assert np.any(off[1] != 0)


@pytest.mark.parametrize("ones", [[0, 30], [30, 31], [0, 1, 30], range(20)])
def test_training_sets_of_one_class(ones):
    """Before or after a swap all labels may be equal; the value is then 0."""
    X, y = regression_data(40)[0], np.zeros(40)
    y[list(ones)] = 1
    claimed, truth = swap_check(LogisticRegression(C=0.1), Population.of((X, y), 0.5), np.arange(20), partners=8)
    assert np.all(np.isfinite(claimed))
    assert np.all(claimed >= truth - 1e-12)
    assert claimed.mean() < 1.1 * truth.mean()
    np.testing.assert_array_equal(LogisticRegression()((X, np.ones(40))), np.zeros(4))
    assert np.all(LogisticRegression(fit_intercept=False)((X, np.ones(40))) != 0)


def test_a_record_that_alone_determines_a_coefficient_is_told_apart_with_certainty():
    X = RNG.normal(size=(12, 2))
    X[:, 1] = np.arange(12) == 3
    law, population = GaussianNoise(1.0, np.ones(3)), Population.of((X, RNG.normal(size=12)), 0.5)
    found = Ridge(alpha=0.0).swap_distances(population, np.arange(6), law, np.arange(3), 4, RNG)
    assert np.all(np.isinf(found[3]))
    assert np.all(np.isfinite(found[[0, 1, 2, 4, 5]]))
    with pytest.raises(ReleaseError, match="no unique solution"):
        Ridge(alpha=0.0)((X[6:], np.ones(6)))


@pytest.mark.parametrize("exponent", range(-14, 1))
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_a_swap_after_which_the_fit_is_refused_is_never_taken_for_a_small_change(exponent, offset):
    """One column is nearly determined by one record; without it the design is singular or nearly so."""
    rng = np.random.default_rng(exponent + 20)
    X = rng.normal(size=(16, 3)) + offset
    X[:, 1] = X[:, 0] + 10.0**exponent * X[:, 1] + (np.arange(16) == 3)
    population, law = Population.of((X, rng.normal(size=16)), 0.5), GaussianNoise(1.0, np.ones(4))
    try:
        claimed = Ridge(alpha=0.0).swap_distances(
            population, np.arange(8), law, np.arange(4), 4, np.random.default_rng(7)
        )
    except ReleaseError:
        return  # refused before the swap: nothing is released
    leave, enter = statistics.swap_partners(np.arange(16) < 8, 4, np.random.default_rng(7))
    before = Ridge(alpha=0.0)(population.take(np.arange(8)))
    for at in np.ndindex(*claimed.shape):
        rest = np.sort(np.append(np.delete(np.arange(8), leave[at]), enter[at]))
        try:
            after = Ridge(alpha=0.0)(population.take(rest))
        except ReleaseError:
            assert claimed[at] == np.inf
        else:
            assert claimed[at] >= law.distance(after, before)


@pytest.mark.parametrize("algorithm", [Ridge(alpha=0.5), LogisticRegression(C=5.0), PoissonRegression(alpha=0.5)])
def test_a_fit_is_as_close_to_the_minimum_as_it_says(algorithm):
    """Against Newton's method in 50 digits."""
    X, y = regression_data(30)
    y = (y > 0) * 1.0
    theta = algorithm((X, y))
    rows = mpmath.matrix(np.column_stack([X, np.ones(30)]).tolist())
    with mpmath.workdps(50):
        exact = mpmath.matrix(theta.tolist())
        penalty = mpmath.diag([algorithm.penalty] * 3 + [0])
        for _ in range(4):
            margin = rows * exact
            if isinstance(algorithm, Ridge):
                slope, weight = [margin[i] - y[i] for i in range(30)], [mpmath.mpf(1)] * 30
            elif isinstance(algorithm, PoissonRegression):
                weight = [mpmath.exp(margin[i]) for i in range(30)]
                slope = [w - y[i] for i, w in enumerate(weight)]
            else:
                chance = [1 / (1 + mpmath.exp(-margin[i])) for i in range(30)]
                slope, weight = [c - y[i] for i, c in enumerate(chance)], [c * (1 - c) for c in chance]
            hessian = rows.T * mpmath.diag(weight) * rows + penalty
            exact -= mpmath.lu_solve(hessian, rows.T * mpmath.matrix(slope) + penalty * exact)
        off = mpmath.matrix(theta.tolist()) - exact
        error, size = (float(mpmath.sqrt((v.T * hessian * v)[0])) for v in (off, exact))
    assert error <= newton.TOLERANCE * (1 + size) * 1.01


def test_regressions_agree_with_scikit_learn():
    X, y = regression_data(60)
    for intercept in (True, False):
        ours = PoissonRegression(alpha=6.0, fit_intercept=intercept)((X, np.round(np.abs(y))))
        model = linear_model.PoissonRegressor(alpha=0.1, fit_intercept=intercept, tol=1e-12, max_iter=9999)
        np.testing.assert_allclose(ours[:3], model.fit(X, np.round(np.abs(y))).coef_, atol=1e-5)
        ours = Ridge(alpha=0.7, fit_intercept=intercept)((X, y))
        theirs = linear_model.Ridge(alpha=0.7, fit_intercept=intercept).fit(X, y)
        np.testing.assert_allclose(ours[:3], theirs.coef_, rtol=1e-8)
        ours = LogisticRegression(C=0.7, fit_intercept=intercept)((X, (y > 0) * 1.0))
        theirs = linear_model.LogisticRegression(C=0.7, fit_intercept=intercept, tol=1e-10).fit(X, y > 0)
        np.testing.assert_allclose(ours[:3], theirs.coef_[0], rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Histogram((1.0,)), "edges"),
        (lambda: Histogram((1.0, 1.0)), "edges"),
        (lambda: Quantile(1.5), "q must"),
        (lambda: Ridge(alpha=-1.0), "alpha"),
        (lambda: LogisticRegression(C=0.0), "C must"),
        (lambda: Covariance(ddof=-1), "ddof"),
        (lambda: Covariance()(COLUMN), "table"),
        (lambda: Quantile()(TABLE), "one column"),
        (lambda: LogisticRegression()((TABLE, np.arange(9.0))), "labels 0 and 1"),
        (lambda: SoftmaxRegression()((TABLE, np.arange(9.0))), "labels 0 to 2"),
        (lambda: SoftmaxRegression(C=0.0), "C must"),
        (lambda: SoftmaxRegression(n_classes=1), "n_classes"),
        (lambda: Ridge()(TABLE), r"tuple \(X, y\)"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()
