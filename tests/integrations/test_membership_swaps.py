"""``MembershipPrivate(…, bound="swap")``: where the swap is known in closed form the promise covers every record."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.svm import LinearSVC

from deniable import InputError, MembershipPrivate, exact_membership
from deniable.integrations.sklearn_parameters import codec_for
from deniable.integrations.sklearn_swaps import ClosedForm, closed_form
from deniable.noise import GaussianNoise, methods

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 3)) * [1.0, 3.0, 0.5] + [0.0, 2.0, -1.0]
T = X @ [1.0, -0.5, 2.0] + RNG.normal(size=60)
Y = np.where(T + RNG.normal(size=60) > np.median(T), "yes", "no")
N = RNG.poisson(np.exp(T / 8)).astype(float)
THREE = np.digitize(T, np.quantile(T, [0.3, 0.6]))
QUICK = {"eta": 0.2, "bound": "swap", "n_resamples": 64, "random_state": 0}

CLOSED = [
    (Ridge(2.0), T),
    (Ridge(2.0, fit_intercept=False, solver="svd"), T),
    (Ridge(2.0), T[:, None]),
    (LinearRegression(), T),
    (LinearRegression(), T[:, None]),
    (LinearRegression(fit_intercept=False), T[:, None]),
    (LogisticRegression(C=0.5), Y),
    (LogisticRegression(C=0.5, fit_intercept=False, solver="liblinear"), Y),
    (LogisticRegression(C=0.5), np.array(["low", "mid", "high"])[THREE]),
    (LogisticRegression(C=0.5, fit_intercept=False), THREE),
    (PoissonRegressor(alpha=0.3, solver="newton-cholesky"), N),
    (PoissonRegressor(alpha=0.3, fit_intercept=False), N),
    (EmpiricalCovariance(), None),
    (EmpiricalCovariance(assume_centered=True), None),
    (PCA(2), None),
]
CLOSED_NAMES = [repr(estimator) + ("" if target is None else str(target.shape)) for estimator, target in CLOSED]


@pytest.mark.parametrize(("estimator", "target"), CLOSED, ids=CLOSED_NAMES)
def test_the_closed_form_is_what_the_estimator_fits(estimator, target):
    if "tol" in estimator.get_params():
        estimator = clone(estimator).set_params(tol=1e-10)
    classes = np.unique(target) if isinstance(estimator, LogisticRegression) else None
    form = closed_form(estimator, X, target, classes, len(X))
    assert isinstance(form, ClosedForm)
    ours = form.split(form.algorithm(form.data).ravel())
    theirs = codec_for(estimator).learn(estimator, X, target)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        liblinear = getattr(estimator, "solver", None) == "liblinear"  # its intercept is the number 0.0
        assert ours[name].shape == value.shape or liblinear
        np.testing.assert_allclose(ours[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("estimator", "target"), [case for case in CLOSED if case[1] is not THREE])
def test_it_is_a_certificate_with_less_noise_than_the_centre(estimator, target):
    swap = MembershipPrivate(estimator, **QUICK).fit(X, target)
    assert swap.certificate_.kind == ("sampled" if target is not None else "exact")
    assert swap.certificate_.holds
    assert swap.certificate_.records is None
    assert 0.2 * (1 - 1e-6) < swap.certificate_.eta <= 0.2
    centre = MembershipPrivate(estimator, **QUICK | {"bound": "centre"}).fit(X, target)
    for name, scale in swap.noise_scale_.items():
        assert scale.shape == np.shape(getattr(swap.estimator_, name, scale))
        assert np.all(scale <= centre.noise_scale_[name])
    if target is not None:
        assert np.shape(swap.predict(X)) == np.shape(clone(estimator).fit(X, target).predict(X))


def test_the_known_centre_gets_no_noise():
    model = MembershipPrivate(EmpiricalCovariance(assume_centered=True), **QUICK).fit(X)
    np.testing.assert_array_equal(model.estimator_.location_, np.zeros(3))
    np.testing.assert_array_equal(model.noise_scale_["location_"], np.zeros(3))
    assert np.all(model.noise_scale_["covariance_"] > 0)


class MyRidge(Ridge):
    """May fit anything."""


@pytest.mark.parametrize(
    ("estimator", "target", "reason"),
    [
        (Ridge(positive=True), T, "positive=True"),
        (LinearRegression(positive=True), T, "positive=True"),
        (Ridge(), np.column_stack([T, T**2]), "several targets"),
        (Ridge([1.0]), T, "one alpha per target"),
        (PoissonRegressor(alpha=0.0), N, "without a penalty"),
        (LogisticRegression(class_weight="balanced"), Y, "class_weight"),
        (LogisticRegression(l1_ratio=1.0, solver="liblinear"), Y, "other than l2"),
        (LogisticRegression(l1_ratio=0.5, solver="saga", max_iter=5000), Y, "other than l2"),
        (LogisticRegression(C=np.inf), Y, "C=inf"),
        (LogisticRegression(solver="liblinear"), Y, "liblinear"),
        (LinearSVC(), Y, "LinearSVC"),
        (Lasso(), T, "Lasso"),
        (LedoitWolf(), None, "LedoitWolf"),
        (KMeans(2, n_init=1), None, "KMeans"),
    ],
    ids=lambda v: repr(v) if hasattr(v, "fit") else "",
)
def test_everything_else_is_refused_and_says_why(estimator, target, reason):
    model = MembershipPrivate(estimator, **QUICK | {"n_resamples": 24, "eta": 0.4})
    with pytest.raises(InputError, match=rf"use bound='auto'.*here because.*{re.escape(reason)}"):
        model.fit(X, target)
    with pytest.warns(UserWarning, match="no guarantee"):
        model.set_params(allow_estimate=True).fit(X, target)
    assert model.certificate_.kind == "estimate"
    assert np.isnan(model.certificate_.eta)
    assert not model.certificate_.holds
    assert any(reason in text and "not a certificate" in text for text in model.certificate_.assumptions)


@pytest.mark.parametrize("fraction", [0.5, 0.03])
def test_linear_regression_needs_independent_columns_and_enough_records(fraction):
    rows = np.column_stack([X, X[:, 0] + X[:, 1]]) if fraction == 0.5 else X
    form = closed_form(LinearRegression(), rows, T, None, int(60 * fraction))
    assert isinstance(form, str)
    assert "independent columns" in form
    assert isinstance(closed_form(Ridge(), rows, T, None, int(60 * fraction)), ClosedForm)


@pytest.mark.parametrize(
    ("estimator", "target", "message"),
    [
        (PoissonRegressor(), -N, "y must hold counts, none below 0"),
        (PoissonRegressor(), 0 * N, "y must hold a count above 0"),
        (None, T, "estimator must be an unfitted scikit-learn estimator, got None"),
        (Ridge, T, "estimator must be an unfitted"),
    ],
)
def test_what_cannot_be_fitted_is_one_line(estimator, target, message):
    with pytest.raises(InputError, match=message):
        MembershipPrivate(estimator, **QUICK).fit(X, target)


def test_a_subclass_may_fit_something_else():
    assert isinstance(closed_form(MyRidge(), X, T, None, 30), str)


def test_two_functions_are_not_taken_for_the_estimator():
    model = MembershipPrivate(
        Ridge(),
        **QUICK,
        allow_estimate=True,
        get_parameters=lambda fitted: fitted.coef_,
        set_parameters=lambda shell, value: shell.__dict__.update(coef_=value, intercept_=0.0),
    )
    with pytest.warns(UserWarning, match="no guarantee"):
        model.fit(X, T)
    assert model.certificate_.kind == "estimate"
    assert any("two functions" in text for text in model.certificate_.assumptions)


SMALL = np.random.default_rng(8).normal(size=(10, 1))
SMALL_TARGET = SMALL[:, 0] + np.random.default_rng(9).normal(size=10)


@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (LinearRegression(fit_intercept=False), SMALL_TARGET),
        (LogisticRegression(fit_intercept=False), SMALL_TARGET > 0),
        (LogisticRegression(fit_intercept=False), np.argsort(np.argsort(SMALL_TARGET)) * 3 // 10),
        (PoissonRegressor(alpha=0.5, fit_intercept=False), np.arange(10) % 4),
        (EmpiricalCovariance(assume_centered=True), None),
        (EmpiricalCovariance(), None),
    ],
    ids=lambda v: repr(v) if hasattr(v, "fit") else "",
)
def test_the_optimal_attack_stays_below_the_certificate(estimator, target, monkeypatch):
    """The release must not enumerate the training sets here, as it would with so few records; the oracle does."""
    monkeypatch.setattr(methods, "_LARGEST_ENUMERATION", 0)
    eta, rows = 0.2, SMALL if target is not None else SMALL[:8]
    model = MembershipPrivate(estimator, **QUICK | {"eta": eta, "n_resamples": 256}).fit(rows, target)
    assert "closed form" in model.certificate_.coupling
    scale = np.concatenate([np.ravel(value) for value in model.noise_scale_.values()])
    scale = scale[scale > 0]
    classes = np.unique(target) if isinstance(estimator, LogisticRegression) else None
    form = closed_form(estimator, rows, target, classes, len(rows) // 2)

    def best_attack(law):
        return exact_membership(form.algorithm, form.data, law, len(rows) // 2, tolerance=1e-4)

    best = best_attack(GaussianNoise(1.0, scale))
    assert best.worst - best.error <= model.certificate_.eta <= eta
    assert best.worst >= 0.4 * eta
    with_little_noise = best_attack(GaussianNoise(1.0, scale / 3))
    assert with_little_noise.worst - with_little_noise.error > eta  # negative control


def test_rare_classes_are_refused_from_the_whole_data_set():
    """The refusal must not depend on who trains: the same data are refused, or taken, every time."""
    labels = np.zeros(60)
    labels[:3] = 1
    for bound in ("centre", "swap"):
        with pytest.raises(InputError, match=r"class .*1.* has 3 of 60 and is missing from 12% of the parts of 30"):
            MembershipPrivate(LogisticRegression(), **QUICK | {"bound": bound}).fit(X, labels)


@pytest.mark.parametrize("bound", ["centre", "swap"])
def test_a_part_without_a_class_is_no_error(bound):
    """Four records of a class: one part in twenty has none of them; that none of 100 lacks it has a chance of 0.6 %."""
    labels = np.zeros(60)
    labels[[3, 20, 40, 59]] = 1
    settings = QUICK | {"bound": bound, "eta": 0.4, "n_resamples": 100, "random_state": 0}
    model = MembershipPrivate(LogisticRegression(C=0.1), **settings).fit(X, labels)
    assert model.certificate_.holds
    assert list(model.classes_) == [0.0, 1.0]


def test_unset_random_states_are_seeded():
    scales = [
        MembershipPrivate(KMeans(2, n_init=1), eta=0.3, n_resamples=24, random_state=seed).fit(X).noise_scale_
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scales[0]["cluster_centers_"], scales[1]["cluster_centers_"])
    assert not np.array_equal(scales[0]["cluster_centers_"], scales[2]["cluster_centers_"])


def test_public_bounds_keep_one_outlier_from_setting_the_noise():
    far = X.copy()
    far[0] = [60.0, -200.0, 50.0]
    bounds = (X.min(axis=0) - 1, X.max(axis=0) + 1)
    wide = MembershipPrivate(Ridge(2.0), **QUICK).fit(far, T)
    kept = MembershipPrivate(Ridge(2.0), bounds=bounds, **QUICK).fit(far, T)
    assert np.all(kept.noise_scale_["coef_"] < wide.noise_scale_["coef_"])
    np.testing.assert_array_equal(kept.predict(far), kept.predict(np.clip(far, *bounds)))
    for bad, word in (((1.0,), "pair"), ((2.0, 1.0), "low < high"), (([0, 0], [1, 1]), "each of 3 columns")):
        with pytest.raises(InputError, match=word):
            MembershipPrivate(Ridge(2.0), bounds=bad, **QUICK).fit(X, T)


def test_swaps_that_would_take_hours_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"would take about .* clip the columns to public bounds.* bound='centre'"):
        MembershipPrivate(LogisticRegression(), max_seconds=1e-6, **QUICK).fit(X, Y)
