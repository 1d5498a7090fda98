"""An attack on a fitted model without shadow models: it learns how well records of this kind are fitted unseen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError
from deniable.audit.scoring import joint
from deniable.audit.shadow import BoolArray, LearningTask

_LEAST = 50  # fewest nonmembers from which the usual fit can be learned
_DIRECTIONS = 50  # singular directions of a sparse matrix from which the usual fit is learned


def score_without_shadows(
    X: Any, y: NDArray[Any], member: BoolArray, task: LearningTask, signal: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, BoolArray]:
    """Return how far each record's fit lies above what its features and label predict; and which may be used.

    Mean and spread of the fit of unseen records are learned from half of the nonmembers by boosted trees (Bertran et
    al. 2023, with a Gaussian in place of separate quantiles).
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    teaching = ~member & (rng.random(len(y)) < 0.5)
    if teaching.sum() < _LEAST:
        raise InputError(
            f"method 'quantile' needs at least {2 * _LEAST} nonmembers, half of which teach, got {int((~member).sum())}"
        )
    if signal.ndim == 2:  # several outputs
        signal = joint(signal, task)
    fit, features = signal if task == "classification" else -np.abs(signal), _features(X, y)
    centre = HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=10, random_state=0)
    spread = HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=10, random_state=0)
    usual = centre.fit(features[teaching], fit[teaching]).predict(features)
    wide = spread.fit(features[teaching], np.abs(fit - usual)[teaching]).predict(features)
    return np.asarray((fit - usual) / np.maximum(wide, 1e-3 * np.std(fit[teaching]) + 1e-12)), ~teaching


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
