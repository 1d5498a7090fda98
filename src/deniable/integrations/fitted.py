"""Privacy profiles of fitted scikit-learn linear models: the objective is read off the estimator."""

from __future__ import annotations

from dataclasses import replace
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
    targets = np.asarray(y)
    if targets.shape[:1] != rows.shape[:1]:
        raise InputError(f"y must have one target per row of X ({len(rows)}), got shape {targets.shape}")
    weights = _weights(final, targets, sample_weight)
    if isinstance(final, SGDClassifier) and weights is not None:
        raise InputError(
            "SGDClassifier with weights cannot be mapped: its penalty counts rows, not weights; use LogisticRegression"
        )
    _check_converged(final, training, rows, targets, weights)
    profile = privacy_profile(rows, targets, mechanism=mechanism, sample_weight=weights, **training, **options)
    return replace(profile, notes=profile.notes + notes)


def _unwrap(estimator: Any, X: ArrayLike) -> tuple[Any, FloatArray, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if isinstance(estimator, Pipeline):
        if len(estimator.steps) > 1:
            X, notes = estimator[:-1].transform(X), (_PIPELINE_NOTE,)
        estimator = estimator[-1]
    dense = X.toarray() if hasattr(X, "toarray") else X
    return estimator, np.atleast_2d(numbers("X", dense)), notes


def _describe(estimator: Any) -> dict[str, Any]:
    """Return what an estimator minimises, in the terms of :func:`deniable.privacy_profile`."""
    kind = type(estimator)
    if kind not in _SETTINGS:
        known = ", ".join(one.__name__ for one in _SETTINGS)
        raise InputError(f"estimator must be one of {known} or a Pipeline that ends in one, got {kind.__name__}")
    check_is_fitted(estimator)
    scaled = kind is LinearSVC or getattr(estimator, "solver", "") == "liblinear"  # the intercept is a penalised column
    settings = _SETTINGS[kind] | ({"intercept_scaling": (1,)} if scaled and estimator.fit_intercept else {})
    for name, mapped in settings.items():
        if (got := getattr(estimator, name)) not in mapped:
            raise InputError(
                f"{kind.__name__} must have {name}={mapped[0]!r}{''.join(f' or {one!r}' for one in mapped[1:])}, got "
                f"{got!r}, of which no leave-one-out step is known here (as of an L1 penalty, a hinge or a constraint)"
            )
    several = len(getattr(estimator, "classes_", ())) > 2
    if several and (kind is not LogisticRegression or estimator.fit_intercept):
        raise InputError(
            f"{kind.__name__} must have two classes, or be LogisticRegression(fit_intercept=False): one-vs-rest fits "
            "are several models, and intercepts of three classes are not unique"
        )
    if kind is Ridge and (np.ndim(estimator.alpha) > 0 or np.ndim(estimator.coef_) > 1):
        raise InputError("Ridge must have one target and one alpha")
    loss = {Ridge: "squared", LinearSVC: "squared_hinge", PoissonRegressor: "poisson"}.get(kind, "logistic")
    if several or getattr(estimator, "loss", "") == "squared_hinge":
        loss = "softmax" if several else "squared_hinge"
    penalty = estimator.alpha if hasattr(estimator, "alpha") else 1 / estimator.C
    penalty = 0.0 if getattr(estimator, "penalty", "l2") is None else float(penalty)
    intercept = "none" if not estimator.fit_intercept else "regularized" if scaled else "unregularized"
    over = "mean" if kind in (PoissonRegressor, SGDClassifier) else "sum"
    return {"loss": loss, "regularization": penalty, "normalization": over, "intercept": intercept}


# kind of estimator → settings that are mapped
_SETTINGS: dict[type, dict[str, tuple[Any, ...]]] = {
    LogisticRegression: {"penalty": ("l2", "deprecated", None), "l1_ratio": (0, None)},
    Ridge: {"positive": (False,)},
    LinearSVC: {"loss": ("squared_hinge",), "penalty": ("l2",)},
    PoissonRegressor: {},
    SGDClassifier: {"loss": ("log_loss", "squared_hinge"), "penalty": ("l2",)},
}


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
    estimator: Any, training: dict[str, Any], X: FloatArray, y: Any, weights: FloatArray | None
) -> None:
    """Compare the gradient norm at the fitted parameters with that at 0."""
    loss = as_loss(training["loss"])
    targets, classes = loss.targets(y)
    s = np.ones(len(X)) if weights is None else weights
    rows = X if training["intercept"] == "none" else np.column_stack([X, np.ones(len(X))])
    penalised = np.ones(rows.shape[1])
    if training["intercept"] == "unregularized":
        penalised[-1] = 0.0
    total = training["regularization"] * (float(s.sum()) if training["normalization"] == "mean" else 1.0)
    fitted = np.atleast_2d(estimator.coef_).T
    if training["intercept"] != "none":
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
