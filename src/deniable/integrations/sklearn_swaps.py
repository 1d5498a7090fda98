"""scikit-learn estimators whose parameters have a swap bound in closed form, as algorithms of :mod:`deniable.noise`.

What is released is then the exact minimum of the estimator's objective: its solver, tolerance and iteration limit do
not matter, and nothing has to be assumed about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import linear_model
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA

from deniable._check import FloatArray, InputError
from deniable._floats import EPS
from deniable.integrations.sklearn_parameters import Arrays
from deniable.noise import Covariance, LogisticRegression, PoissonRegression, Ridge, SecondMoment, SoftmaxRegression

_BLOCK = 1 << 16  # rows that are decomposed at a time


@dataclass(frozen=True)
class ClosedForm:
    """An algorithm of this library on ``data``, and how its flat value splits into the estimator's arrays."""

    algorithm: Callable[[Any], FloatArray]
    data: Any
    split: Callable[[FloatArray], Arrays]


def closed_form(estimator: Any, X: FloatArray, y: Any, classes: NDArray[Any] | None, n_train: int) -> ClosedForm | str:
    """Return the closed form of an estimator on ``n_train`` rows of (X, y), or the reason why there is none.

    Subclasses may fit something else, so only scikit-learn's own classes are accepted.
    """
    make = _MAKERS.get(type(estimator))
    if make is None:
        return f"{type(estimator).__name__} has no swap bound in closed form"
    return make(estimator, X, y, classes, n_train)


def _ridge(estimator: Any, X: FloatArray, y: Any, _classes: object, n_train: int) -> ClosedForm | str:
    alpha = getattr(estimator, "alpha", 0.0)  # LinearRegression is ridge regression without a penalty
    if estimator.positive:
        return "positive=True has no swap bound in closed form"
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        return "several targets have no swap bound in closed form"
    if not isinstance(alpha, Real):
        return "one alpha per target has no swap bound in closed form"
    if alpha == 0:
        columns = X.shape[1] + bool(estimator.fit_intercept)
        if n_train <= columns or _rank(X, intercept=estimator.fit_intercept) < columns:
            return "without a penalty the swap bound needs independent columns and more training records than columns"
    target, d = np.asarray(y, dtype=np.float64), X.shape[1]
    column = target.shape[1:]  # (1,) for a target of one column, which scikit-learn's Ridge drops from coef_
    coefficients = (d,) if isinstance(estimator, linear_model.Ridge) else (*column, d)
    split = _Coefficients(coefficients, column if estimator.fit_intercept else ())
    return ClosedForm(Ridge(estimator.fit_intercept, float(alpha)), (X, target.ravel()), split)


def _rank(X: FloatArray, *, intercept: bool) -> int:
    """Return the rank of X, beside a column of ones: from the triangle of blocks of rows, so that no copy is made."""
    triangle: FloatArray = np.zeros((0, X.shape[1] + intercept))
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK]
        block = np.column_stack([block, np.ones(len(block))]) if intercept else block
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    values = np.linalg.svd(triangle, compute_uv=False)
    return int(np.sum(values > values.max() * max(len(X), len(triangle.T)) * EPS))


def _poisson(estimator: Any, X: FloatArray, y: Any, _classes: object, n_train: int) -> ClosedForm | str:
    """scikit-learn minimises the mean of the losses, ``noise`` their sum: the penalty grows with the training set."""
    if estimator.alpha == 0:
        return "without a penalty the swap bound of a Poisson regression is not known to exist"
    if not np.all(np.asarray(y) >= 0):
        raise InputError("y must hold counts, none below 0, for PoissonRegressor")
    if estimator.fit_intercept and not np.any(y):
        raise InputError("y must hold a count above 0 for PoissonRegressor with an intercept: all are 0")
    algorithm = PoissonRegression(estimator.fit_intercept, float(estimator.alpha) * n_train)
    return ClosedForm(algorithm, (X, np.asarray(y, dtype=np.float64)), _Coefficients((X.shape[1],), ()))


def _logistic(estimator: Any, X: FloatArray, y: Any, classes: NDArray[Any] | None, _n_train: int) -> ClosedForm | str:
    settings = estimator.get_params()
    assert classes is not None  # a classifier's
    if len(classes) < 2:
        return "one class has no swap bound in closed form"
    if settings["class_weight"] is not None:
        return "class_weight has no swap bound in closed form"
    if settings.get("penalty", "l2") not in ("l2", "deprecated") or settings.get("l1_ratio") not in (None, 0, 0.0):
        return "a penalty other than l2 has no swap bound in closed form"
    several, asked = len(classes) > 2, settings.get("multi_class", "auto")
    if asked == ("ovr" if several else "multinomial"):
        return f"multi_class={asked!r} has no swap bound in closed form"
    if not np.isfinite(estimator.C):
        return "no penalty (C=inf) has no swap bound in closed form"
    if estimator.solver == "liblinear" and several:
        return "solver='liblinear' fits one model per class, which has no swap bound in closed form"
    if estimator.solver == "liblinear" and estimator.fit_intercept:
        return "solver='liblinear' penalises the intercept, which has no swap bound in closed form"
    if several:
        softmax = SoftmaxRegression(estimator.fit_intercept, float(estimator.C), len(classes))
        numbered = np.searchsorted(classes, y).astype(np.float64)
        return ClosedForm(softmax, (X, numbered), _OfClasses(len(classes), X.shape[1]))
    label = np.asarray(y == classes[1], dtype=np.float64)
    algorithm = LogisticRegression(estimator.fit_intercept, float(estimator.C))
    return ClosedForm(algorithm, (X, label), _Coefficients((1, X.shape[1]), (1,)))


def _covariance(estimator: Any, X: FloatArray, *_: object) -> ClosedForm:
    d = X.shape[1]
    if estimator.assume_centered:
        return ClosedForm(SecondMoment(), X, _Moments(d, "covariance_", centred=True))
    return ClosedForm(Covariance(ddof=0, with_mean=True), X, _Moments(d, "covariance_"))


def _components(_estimator: object, X: FloatArray, *_: object) -> ClosedForm:
    return ClosedForm(Covariance(ddof=1, with_mean=True), X, _Moments(X.shape[1], "covariance", mean="mean_"))


_MAKERS: dict[type, Callable[..., ClosedForm | str]] = {
    EmpiricalCovariance: _covariance,
    PCA: _components,
    linear_model.LinearRegression: _ridge,
    linear_model.LogisticRegression: _logistic,
    linear_model.PoissonRegressor: _poisson,
    linear_model.Ridge: _ridge,
}


@dataclass(frozen=True)
class _Coefficients:
    """θ, the intercept last if there is one, as ``coef_`` and ``intercept_`` of these shapes."""

    coefficients: tuple[int, ...]
    intercept: tuple[int, ...]

    def __call__(self, flat: FloatArray) -> Arrays:
        d = self.coefficients[-1]
        intercept = flat[d:] if len(flat) > d else np.zeros(1)
        return {"coef_": flat[:d].reshape(self.coefficients), "intercept_": intercept.reshape(self.intercept)}


@dataclass(frozen=True)
class _OfClasses:
    """Θ of one row per class, the intercepts last if there are any, as ``coef_`` and ``intercept_``."""

    n_classes: int
    n_features: int

    def __call__(self, flat: FloatArray) -> Arrays:
        rows = flat.reshape(self.n_classes, -1)
        intercept = rows[:, -1] if rows.shape[1] > self.n_features else np.zeros(self.n_classes)
        return {"coef_": rows[:, : self.n_features], "intercept_": intercept}


@dataclass(frozen=True)
class _Moments:
    """A mean and a matrix; the mean is zero, and known, if the data are taken as centred."""

    n_features: int
    matrix: str
    mean: str = "location_"
    centred: bool = False

    def __call__(self, flat: FloatArray) -> Arrays:
        d = self.n_features
        mean = np.zeros(d) if self.centred else flat[:d]
        return {self.mean: mean, self.matrix: flat.ravel()[-d * d :].reshape(d, d)}
