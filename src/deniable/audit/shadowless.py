"""Attacks on a fitted model that train no shadow models: quantile regression, and predicted classes alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, refuse_sparse
from deniable.audit.shadow import BoolArray, Task

WITHOUT_SHADOWS = ("quantile", "label-only")

_LEAST = 50  # nonmembers from which the usual fit can be learned
_COPIES = 20  # of each record, with noise
_NOISE = 0.1  # their noise, as a share of each column's standard deviation


def score_without_shadows(
    method: str,
    model: Any,
    X: Any,
    y: NDArray[Any],
    member: BoolArray,
    task: Task,
    signal: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, BoolArray]:
    """Return scores of all records, and which of them may be used."""
    if method == "label-only":
        if task != "classification":
            raise InputError("method 'label-only' is about predicted classes; use 'quantile' for regression")
        refuse_sparse("X", X)
        return _label_only(model, X, y, rng), np.ones(len(y), dtype=bool)
    refuse_sparse("X", X)
    teaching = ~member & (rng.random(len(y)) < 0.5)
    if teaching.sum() < _LEAST:
        raise InputError(
            f"method 'quantile' needs at least {2 * _LEAST} nonmembers, half of which teach, got {int((~member).sum())}"
        )
    return _quantile(X, y, signal if task == "classification" else -np.abs(signal), teaching), ~teaching


def _quantile(X: Any, y: NDArray[Any], fit: FloatArray, teaching: BoolArray) -> FloatArray:
    """Return how far a record's fit lies above what its features and label promise, in deviations like its own.

    Mean and spread of the fit of unseen records are learned by boosted trees (Bertran et al. 2023, with a Gaussian in
    place of separate quantiles).
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    features = _features(X, y)
    centre = HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=10, random_state=0)
    spread = HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=10, random_state=0)
    usual = centre.fit(features[teaching], fit[teaching]).predict(features)
    wide = spread.fit(features[teaching], np.abs(fit - usual)[teaching]).predict(features)
    return np.asarray((fit - usual) / np.maximum(wide, 1e-3 * np.std(fit[teaching]) + 1e-12))


def _features(X: Any, y: NDArray[Any]) -> FloatArray:
    """Return records and labels as numbers; categories are numbered, which trees can split again."""
    columns = [X.iloc[:, i].to_numpy() for i in range(X.shape[1])] if hasattr(X, "iloc") else [*X.reshape(len(X), -1).T]
    coded = [c if c.dtype.kind in "biuf" else np.unique(c.astype(str), return_inverse=True)[1] for c in [*columns, y]]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in coded])


def _label_only(model: Any, X: Any, y: NDArray[Any], rng: np.random.Generator) -> FloatArray:
    """Return the share of right classes among the record and its noisy copies (Choquette-Choo et al. 2021).

    The record itself counts as much as all copies together.
    """
    table = X.to_numpy() if hasattr(X, "iloc") else X
    if table.dtype.kind not in "biuf":
        raise InputError("method 'label-only' adds noise to numbers; X holds something else. Use another method")
    rows = table.astype(np.float64)
    spread = _NOISE * rows.std(axis=0)

    def right(moved: FloatArray) -> FloatArray:
        named = type(X)(moved, columns=X.columns) if hasattr(X, "iloc") else moved
        return np.asarray(model.predict(named) == y, dtype=np.float64)

    copies = [right(rows + spread * rng.standard_normal(rows.shape)) for _ in range(_COPIES)]
    return np.asarray(right(rows) + np.mean(copies, axis=0), dtype=np.float64)
