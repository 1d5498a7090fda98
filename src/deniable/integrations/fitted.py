"""Privacy profiles of fitted scikit-learn linear models: the objective is read off the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from deniable._check import FloatArray, InputError, numbers
from deniable.records import ObjectivePerturbation, OutputPerturbation, PrivacyProfile, as_loss, privacy_profile

_PIPELINE_NOTE = (
    "The pipeline's preprocessing was taken as fixed: what it learned from the data (means, scales, categories) is "
    "released with the model and is not part of this profile."
)

_CONVERGED = 1e-2  # largest gradient norm at the fitted parameters, relative to that at 0


@dataclass(frozen=True)
class FittedTraining:
    """What an estimator minimises, in the terms of :func:`deniable.privacy_profile`."""

    loss: str
    regularization: float
    normalization: str
    intercept: str


def profile_estimator(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    mechanism: OutputPerturbation | ObjectivePerturbation,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> PrivacyProfile:
    """Return the privacy profile of a fitted estimator on its training data.

    Maps ``LogisticRegression`` (L2 or no penalty), ``Ridge``, ``LinearSVC`` (squared hinge), ``PoissonRegressor`` and
    ``SGDClassifier`` (log loss, squared hinge), with C or alpha, intercept, class weights and sample weights, alone
    or at the end of a ``Pipeline``. The out-world is the same estimator on the data without one row, so the penalty
    keeps its total where scikit-learn minimises a sum and its share per row where it minimises a mean.

    Parameters
    ----------
    estimator
        A fitted estimator.
    X, y, sample_weight
        The data it was fitted on, in its own format.
    mechanism
        How the parameters are (or would be) released. With an unpenalised intercept, which most of these have, there is
        no sensitivity from which to calibrate: use ``OutputPerturbation(scale=...)`` or fit without intercept.
    options
        Passed on to :func:`deniable.privacy_profile`: ``released``, ``tolerance``, ``n_samples``, ``rng``.

    Returns
    -------
    PrivacyProfile
        An entry per row of ``X``, as from :func:`deniable.privacy_profile`.

    Raises
    ------
    InputError
        For an estimator or setting that cannot be mapped (with the reason), or a fit that did not converge.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(300, 3))
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> model = LogisticRegression(fit_intercept=False).fit(X, y)
    >>> p = dn.profile_estimator(model, X, y, mechanism=dn.OutputPerturbation(epsilon=1.0))
    >>> p.ranking()[:3].shape
    (3,)
    """
    final, rows, notes = _unwrap(estimator, X)
    training = _describe(final)
    check_is_fitted(final)
    targets = np.asarray(y)
    if targets.shape[:1] != rows.shape[:1]:
        raise InputError(f"y must have one target per row of X ({len(rows)}), got shape {targets.shape}")
    weights = _weights(final, targets, sample_weight)
    if isinstance(final, SGDClassifier) and weights is not None:
        raise InputError(
            "SGDClassifier with weights cannot be mapped: its penalty counts rows, not weights; use LogisticRegression"
        )
    _check_converged(final, training, rows, targets, weights)
    profile = privacy_profile(rows, targets, mechanism=mechanism, sample_weight=weights, **asdict(training), **options)
    return replace(profile, notes=profile.notes + notes)


def _unwrap(estimator: Any, X: ArrayLike) -> tuple[Any, FloatArray, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if isinstance(estimator, Pipeline):
        if len(estimator.steps) > 1:
            X, notes = estimator[:-1].transform(X), (_PIPELINE_NOTE,)
        estimator = estimator[-1]
    dense = X.toarray() if hasattr(X, "toarray") else X
    return estimator, np.atleast_2d(numbers("X", dense)), notes


def _describe(estimator: Any) -> FittedTraining:
    for kind, describe in _MAPPED.items():
        if type(estimator) is kind:
            return describe(estimator)
    known = ", ".join(kind.__name__ for kind in _MAPPED)
    raise InputError(f"estimator must be one of {known} or a Pipeline that ends in one, got {type(estimator).__name__}")


def _free(estimator: Any) -> str:
    return "unregularized" if estimator.fit_intercept else "none"


def _logistic(estimator: Any) -> FittedTraining:
    penalty = estimator.penalty
    if penalty not in ("deprecated", "l2", None) or estimator.l1_ratio not in (0, 0.0, None):
        raise InputError("LogisticRegression must have an L2 penalty or none: an L1 penalty has no leave-one-out step")
    if estimator.solver == "liblinear" and estimator.fit_intercept:
        _refuse(estimator.intercept_scaling != 1, "intercept_scaling must be 1: other scales are not mapped")
        intercept = "regularized"
    else:
        intercept = _free(estimator)
    loss = "softmax" if len(estimator.classes_) > 2 else "logistic"
    _refuse(
        loss == "softmax" and estimator.fit_intercept,
        "LogisticRegression of three classes or more must have fit_intercept=False: its intercepts are not unique",
    )
    return FittedTraining(loss, 0.0 if penalty is None else 1 / estimator.C, "sum", intercept)


def _ridge(estimator: Any) -> FittedTraining:
    _refuse(np.ndim(estimator.alpha) > 0 or np.ndim(estimator.coef_) > 1, "Ridge must have one target and one alpha")
    _refuse(estimator.positive, "Ridge must have positive=False: a constrained optimum has no Newton step")
    return FittedTraining("squared", float(estimator.alpha), "sum", _free(estimator))


def _linear_svc(estimator: Any) -> FittedTraining:
    _refuse(
        estimator.loss != "squared_hinge" or estimator.penalty != "l2",
        "LinearSVC must have loss='squared_hinge' and penalty='l2': the hinge and L1 have no second derivative",
    )
    _refuse(len(estimator.classes_) > 2, "LinearSVC must have two classes: one-vs-rest fits are several models")
    _refuse(estimator.fit_intercept and estimator.intercept_scaling != 1, "LinearSVC must have intercept_scaling=1")
    return FittedTraining("squared_hinge", 1 / estimator.C, "sum", "regularized" if estimator.fit_intercept else "none")


def _poisson(estimator: Any) -> FittedTraining:
    return FittedTraining("poisson", float(estimator.alpha), "mean", _free(estimator))


def _sgd(estimator: Any) -> FittedTraining:
    losses = {"log_loss": "logistic", "squared_hinge": "squared_hinge"}
    _refuse(
        estimator.loss not in losses or estimator.penalty != "l2",
        f"SGDClassifier must have penalty='l2' and loss 'log_loss' or 'squared_hinge', got {estimator.loss!r}",
    )
    _refuse(len(estimator.classes_) > 2, "SGDClassifier must have two classes: one-vs-rest fits are several models")
    return FittedTraining(losses[estimator.loss], float(estimator.alpha), "mean", _free(estimator))


_MAPPED: dict[type, Callable[[Any], FittedTraining]] = {
    LogisticRegression: _logistic,
    Ridge: _ridge,
    LinearSVC: _linear_svc,
    PoissonRegressor: _poisson,
    SGDClassifier: _sgd,
}


def _refuse(condition: bool, message: str) -> None:
    if condition:
        raise InputError(message)


def _weights(estimator: Any, y: Any, sample_weight: ArrayLike | None) -> FloatArray | None:
    """Sample weights times class weights; ``None`` if there are neither."""
    given = None if sample_weight is None else numbers("sample_weight", sample_weight)
    if given is not None and given.shape != y.shape[:1]:
        raise InputError(f"sample_weight must have one weight per record ({len(y)}), got shape {given.shape}")
    by_class = getattr(estimator, "class_weight", None)
    if by_class is None:
        return given
    if isinstance(by_class, str):
        raise InputError(
            f"class_weight={by_class!r} cannot be mapped: the weights are counted from the labels, so every weight "
            "changes when a record leaves; give the numbers as a dict"
        )
    factor = np.array([float(by_class.get(label, 1.0)) for label in y.tolist()])
    return factor if given is None else given * factor


def _check_converged(
    estimator: Any, training: FittedTraining, X: FloatArray, y: Any, weights: FloatArray | None
) -> None:
    """Compare the gradient norm at the fitted parameters with that at 0."""
    loss = as_loss(training.loss)
    targets, classes = loss.targets(y)
    s = np.ones(len(X)) if weights is None else weights
    rows = X if training.intercept == "none" else np.column_stack([X, np.ones(len(X))])
    penalised = np.ones(rows.shape[1])
    if training.intercept == "unregularized":
        penalised[-1] = 0.0
    total = training.regularization * (float(s.sum()) if training.normalization == "mean" else 1.0)
    fitted = np.atleast_2d(estimator.coef_).T
    if training.intercept != "none":
        fitted = np.vstack([fitted, np.reshape(estimator.intercept_, (1, -1))])

    def size(F: FloatArray) -> float:
        slope = loss.slope(rows @ F, targets) * s[:, None]
        return float(np.linalg.norm(rows.T @ slope + total * penalised[:, None] * F))

    if fitted.shape != (rows.shape[1], classes):
        raise InputError(f"X must have the {fitted.shape[0]} columns the estimator was fitted on, got {rows.shape[1]}")
    here, start = size(fitted), size(np.zeros_like(fitted))
    if not here <= _CONVERGED * start:
        raise InputError(
            f"the fit has not converged: gradient norm {here:.3g} at the fitted parameters, {start:.3g} at 0; refit "
            "with a smaller tol and more max_iter"
        )
