"""Leave-one-out optima against refits, and certificates that must hold."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.datasets import load_breast_cancer

import deniable as dn
from deniable import InputError
from deniable.records import OutputPerturbation, privacy_profile
from oracles.refits import optimum, softmax_optimum

LAX = OutputPerturbation(scale=1.0)  # no calibration: any loss, any rows
ONE_PASS = 1e300


@pytest.fixture(scope="module")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X / np.linalg.norm(X, axis=1).max(), y


def without(array, i):
    return np.delete(array, i, axis=0)


def example(loss, rng, n=60, d=4):
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    t = 3 * X @ rng.normal(size=d)
    if loss == "poisson":
        return X, rng.poisson(np.exp(t / 2)).astype(float)
    if loss in ("logistic", "squared_hinge"):
        return X, np.where(t + rng.logistic(size=n) > 0, 1.0, -1.0)
    return X, t + rng.standard_t(2, size=n)


@pytest.mark.parametrize("regularization", [1.0, 1e-2, 1e-4])
def test_equals_refitting_to_eight_digits_on_breast_cancer(breast_cancer, regularization):
    X, y = breast_cancer
    profile = dn.privacy_profile(
        X, y, regularization=regularization, mechanism=dn.OutputPerturbation(epsilon=1.0), tolerance=1e-8
    )
    signs = np.where(y == y.max(), 1.0, -1.0)
    n, d = X.shape
    hardest = profile.ranking("typical")[:10]
    for i in [*hardest, *range(0, n, 29)]:
        refit = optimum("logistic", without(X, i), without(signs, i), np.full(d, (n - 1) * regularization))
        error = np.linalg.norm(profile.leave_one_out()[i] - refit)
        assert error <= 1e-8 * np.linalg.norm(refit - profile.optimum)
        assert error <= profile.radius()[i] + 1e-13 * np.linalg.norm(refit)
    assert np.all(profile.radius() <= 1e-8 * profile.distance)


@pytest.mark.parametrize("regularization", [1.0, 1e-1, 1e-2, 1e-3, 1e-4])
def test_one_pass_is_within_its_certificate(breast_cancer, regularization):
    X, y = breast_cancer
    rough = privacy_profile(X, y, regularization=regularization, tolerance=ONE_PASS)
    fine = privacy_profile(X, y, regularization=regularization, tolerance=1e-8)
    assert rough.iterations == 0
    error = np.linalg.norm(rough.leave_one_out() - fine.leave_one_out(), axis=1)
    assert np.all(error <= rough.radius() + fine.radius())
    assert np.all(np.isfinite(rough.radius()))
    assert np.all(np.abs(rough.distance - fine.distance) <= rough.distance_error + fine.distance_error)
    assert np.all(rough.advantage("lower") <= fine.advantage())  # what is not known of a distance is no one's gain
    assert np.all(fine.advantage("lower") <= rough.advantage())


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber", "poisson"])
@pytest.mark.parametrize("intercept", ["none", "regularized", "unregularized"])
@pytest.mark.parametrize("normalization", ["mean", "sum"])
def test_every_loss_and_intercept_against_refits(loss, intercept, normalization):
    rng = np.random.default_rng(7)
    X, y = example(loss, rng)
    n = len(y)
    lam = 0.05 if normalization == "mean" else 0.05 * n
    profile = privacy_profile(
        X, y, regularization=lam, loss=loss, intercept=intercept, normalization=normalization, mechanism=LAX
    )
    columns = X if intercept == "none" else np.column_stack([X, np.ones(n)])
    unit = np.full(columns.shape[1], lam)
    if intercept == "unregularized":
        unit[-1] = 0.0
    for i in range(0, n, 6):
        refit = optimum(loss, without(columns, i), without(y, i), unit * (n - 1 if normalization == "mean" else 1))
        error = np.linalg.norm(profile.leave_one_out()[i] - refit)
        assert error <= profile.radius()[i] + 1e-12
        assert error <= 1e-7 * profile.distance[i] + 1e-12
    assert np.all(profile.radius() <= 1e-6 * profile.distance)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber", "poisson"])
def test_sample_weights_against_refits(loss):
    rng = np.random.default_rng(3)
    X, y = example(loss, rng)
    weights = rng.choice([0.5, 1.0, 3.0], size=len(y))
    for tolerance in (1e-8, ONE_PASS):
        profile = privacy_profile(
            X, y, regularization=0.1, loss=loss, sample_weight=weights, mechanism=LAX, tolerance=tolerance
        )
        for i in range(0, len(y), 7):
            left = without(weights, i)
            refit = optimum(loss, without(X, i), without(y, i), np.full(X.shape[1], 0.1 * left.sum()), left)
            error = np.linalg.norm(profile.leave_one_out()[i] - refit)
            assert error <= profile.radius()[i] + 1e-12
            assert tolerance > 1 or error <= 1e-7 * profile.distance[i]


@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_softmax_against_refits(intercept):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(45, 3))
    codes = np.argmax(X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(45, 3)), axis=1)
    labels = np.array(["red", "green", "blue"])[codes]
    order = np.argsort(["red", "green", "blue"]).argsort()
    columns = X if intercept == "none" else np.column_stack([X, np.ones(45)])
    for tolerance in (1e-8, ONE_PASS):
        profile = privacy_profile(
            X, labels, regularization=0.1, loss="softmax", intercept=intercept, mechanism=LAX, tolerance=tolerance
        )
        for i in range(0, 45, 9):
            refit = softmax_optimum(without(columns, i), without(order[codes], i), 3, 44 * 0.1)
            error = np.linalg.norm(profile.leave_one_out()[i] - refit)
            assert error <= profile.radius()[i] + 1e-10
            assert tolerance > 1 or error <= 1e-7 * profile.distance[i]


@given(
    seed=st.integers(0, 10**6),
    scale=st.floats(0.1, 30.0),
    log_regularization=st.floats(-6, 1),
    loss=st.sampled_from(["logistic", "squared", "squared_hinge", "huber", "poisson"]),
    intercept=st.sampled_from(["none", "regularized"]),
)
def test_certificates_hold_far_from_comfort(seed, scale, log_regularization, loss, intercept):
    """Few rows, long rows, hardly any ridge: the one-pass radius must still hold the refined optimum."""
    rng = np.random.default_rng(seed)
    X, y = example(loss, rng, n=12, d=3)
    X = X * min(scale, 3.0 if loss == "poisson" else scale)
    common = {"regularization": 10**log_regularization, "loss": loss, "intercept": intercept, "mechanism": LAX}
    if loss in ("logistic", "squared_hinge") and len(set(y)) < 2:
        return
    rough = privacy_profile(X, y, tolerance=ONE_PASS, **common)
    fine = privacy_profile(X, y, tolerance=1e-6, **common)
    error = np.linalg.norm(rough.leave_one_out() - fine.leave_one_out(), axis=1)
    assert np.all(error <= rough.radius() + fine.radius())


def test_labels_of_any_two_values_and_duplicates():
    rng = np.random.default_rng(0)
    X, y = example("logistic", rng)
    X = np.vstack([X, X[:5]])
    y = np.concatenate([y, y[:5]])
    plain = privacy_profile(X, y, regularization=0.1)
    words = privacy_profile(X, np.where(y > 0, "yes", "no"), regularization=0.1)
    np.testing.assert_array_equal(plain.leave_one_out(), words.leave_one_out())
    np.testing.assert_allclose(plain.leave_one_out()[:5], plain.leave_one_out()[-5:], rtol=1e-12)


def test_long_rows_are_refused_by_name():
    X, y = example("logistic", np.random.default_rng(0))
    X = X.copy()
    X[17] *= 4 / np.linalg.norm(X[17])
    with pytest.raises(InputError, match=r"row 17 has 4;.*row_bound"):
        privacy_profile(X, y, regularization=0.1)
    stated = privacy_profile(X, y, regularization=0.1, mechanism=OutputPerturbation(epsilon=1.0, row_bound=4.0))
    assert stated.rate == pytest.approx(60 * 0.1 / 8)


def test_separable_data_without_regularization_are_refused():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    with pytest.raises(InputError, match="regularization"):
        privacy_profile(X, [0, 0, 1, 1], regularization=0.0, mechanism=LAX)


def test_least_squares_without_regularization():
    rng = np.random.default_rng(1)
    X, y = example("squared", rng)
    profile = privacy_profile(X, y, regularization=0.0, loss="squared", mechanism=LAX)
    for i in range(0, 60, 11):
        refit = np.linalg.lstsq(without(X, i), without(y, i), rcond=None)[0]
        assert np.linalg.norm(profile.leave_one_out()[i] - refit) <= profile.radius()[i] + 1e-13
