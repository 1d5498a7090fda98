"""Attacks on a fitted model that train no shadow models: quantile regression, and predicted classes alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError
from deniable.audit.scoring import joint
from deniable.audit.shadow import BoolArray, LearningTask, plain

WITHOUT_SHADOWS = ("quantile", "label-only")

_LEAST = 50  # fewest nonmembers from which the usual fit can be learned
_COPIES = 20  # noisy copies of each record
_DIRECTIONS = 50  # singular directions of a sparse matrix from which the usual fit is learned
_NOISE = 0.1  # noise of the copies, as a share of each column's standard deviation


def score_without_shadows(
    method: str,
    model: Any,
    X: Any,
    y: NDArray[Any],
    member: BoolArray,
    task: LearningTask,
    signal: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, BoolArray]:
    """Return scores of all records, and which of them may be used."""
    if method == "label-only":
        if task != "classification":
            raise InputError("method 'label-only' is about predicted classes; use 'quantile' for regression")
        return _label_only(model, X, y, rng), np.ones(len(y), dtype=bool)
    teaching = ~member & (rng.random(len(y)) < 0.5)
    if teaching.sum() < _LEAST:
        raise InputError(
            f"method 'quantile' needs at least {2 * _LEAST} nonmembers, half of which teach, got {int((~member).sum())}"
        )
    if signal.ndim == 2:  # several outputs
        signal = joint(signal, task)
    return _quantile(X, y, signal if task == "classification" else -np.abs(signal), teaching), ~teaching


def _quantile(X: Any, y: NDArray[Any], fit: FloatArray, teaching: BoolArray) -> FloatArray:
    """Return how far a record's fit lies above what its features and label predict, in predicted deviations.

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
    """Return records and labels as numbers; categories become codes, which trees can separate."""
    if hasattr(X, "tocsr"):
        columns = [*_directions(X).T]
    else:
        frame = hasattr(X, "iloc")
        columns = [X.iloc[:, i].to_numpy() for i in range(X.shape[1])] if frame else [*X.reshape(len(X), -1).T]
    columns += [y] if y.ndim == 1 else [*y.T]
    coded = [c if c.dtype.kind in "biuf" else np.unique(c.astype(str), return_inverse=True)[1] for c in columns]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in coded])


def _directions(X: Any) -> FloatArray:
    """Return the leading singular directions of a sparse matrix, as dense columns."""
    from sklearn.decomposition import TruncatedSVD

    count = min(_DIRECTIONS, min(X.shape) - 1)
    if count < 1:
        return np.asarray(X.toarray(), dtype=np.float64)
    return np.asarray(TruncatedSVD(count, random_state=0).fit_transform(X))


def _sparse_copies(X: Any, rng: np.random.Generator) -> Any:
    """Return a copy of a sparse matrix with noise on the entries that are not zero."""
    rows = X.tocsr().astype(np.float64)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(np.asarray(rows.multiply(rows).mean(axis=0)).ravel() - mean**2, 0.0))
    rows.data = rows.data + _NOISE * spread[rows.indices] * rng.standard_normal(len(rows.data))
    return rows


def _frame_copy(X: Any, rng: np.random.Generator) -> Any:
    """Return a copy of a data frame with noise on its numbers; of other columns one cell in ten is another row's."""
    moved = X.copy()
    for i in range(X.shape[1]):
        column = X.iloc[:, i]
        if column.dtype.kind in "iuf":
            numbers = column.astype("float64")
            moved.isetitem(i, numbers + _NOISE * numbers.std(ddof=0) * rng.standard_normal(len(X)))
        else:
            swapped = np.where(rng.random(len(X)) < _NOISE, rng.integers(len(X), size=len(X)), np.arange(len(X)))
            moved.isetitem(i, column.take(swapped).set_axis(X.index))
    return moved


def _classes(model: Any, X: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Return the classes predicted by a fitted estimator, or by a function that returns classes or probabilities."""
    if hasattr(model, "predict"):
        return np.asarray(model.predict(X))
    predicted, known = np.asarray(plain(model(X))), np.unique(y)
    if predicted.shape == y.shape and (predicted.dtype.kind != "f" or np.isin(predicted, known).all()):
        return predicted
    if y.ndim == 1 and predicted.shape == (len(y), len(known)):
        return np.asarray(known[predicted.argmax(axis=1)])
    if predicted.shape == y.shape and len(known) == 2:  # probability of the second class
        return np.asarray(known[(predicted > 0.5).astype(int)])
    raise InputError(
        f"model must return classes, shape {y.shape}, or probabilities of {len(known)} classes, "
        f"got shape {predicted.shape}"
    )


def _label_only(model: Any, X: Any, y: NDArray[Any], rng: np.random.Generator) -> FloatArray:
    """Return the share of right classes among the record and its noisy copies (Choquette-Choo et al. 2021).

    The record itself counts as much as all copies together.
    """

    def agrees(moved: Any) -> FloatArray:
        hits = np.asarray(_classes(model, moved, y) == y, dtype=np.float64)
        return hits if hits.ndim == 1 else np.asarray(hits.mean(axis=1))

    if hasattr(X, "tocsr"):
        near = [agrees(_sparse_copies(X, rng)) for _ in range(_COPIES)]
        return np.asarray(agrees(X) + np.mean(near, axis=0), dtype=np.float64)
    if hasattr(X, "iloc"):
        near = [agrees(_frame_copy(X, rng)) for _ in range(_COPIES)]
        return np.asarray(agrees(X) + np.mean(near, axis=0), dtype=np.float64)
    if X.dtype.kind not in "biuf":
        raise InputError("method 'label-only' adds noise to numbers, but X holds something else; give a DataFrame")
    rows = X.astype(np.float64)
    spread = _NOISE * rows.std(axis=0)
    copies = [agrees(rows + spread * rng.standard_normal(rows.shape)) for _ in range(_COPIES)]
    return np.asarray(agrees(rows) + np.mean(copies, axis=0), dtype=np.float64)
