"""A private model measured beside an unprotected one, on records held out from both: not protected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError
from deniable.report.usefulness import Score, Usefulness

_MOST_CATEGORIES = 200  # per column, below the 255 that scikit-learn's boosted trees take


def measure(model: Any, X: Any, y: Any, *, plain: Any = None, help: tuple[str, ...] = ()) -> Usefulness:
    """Return how useful ``model`` is on (X, y) beside the fitted unprotected model ``plain`` and guessing."""
    truth = np.asarray(y)
    if len(truth) == 0 or len(truth) != len(X):
        raise InputError(f"X and y must hold the same records, at least one; got {len(X)} and {len(truth)}")
    classification = hasattr(model, "classes_")
    if not classification:
        values = truth.astype(np.float64)
        spread = float(np.abs(values - values.mean()).mean())
        n = values.size
        return Usefulness(
            False, n, _regression(model.predict(X), values),
            None if plain is None else _regression(plain.predict(X), values),
            Score(0.0, spread), noise=2 / np.sqrt(n), help=help,
        )  # fmt: skip
    classes, counts = np.unique(truth, return_counts=True)
    pairs = counts[0] * counts[-1] if classes.size == 2 else 1
    noise = 2 * float(np.sqrt((truth.size + 1) / (12 * pairs))) if classes.size == 2 else 0.05
    return Usefulness(
        True, truth.size, _classification(model, X, truth),
        None if plain is None else _classification(plain, X, truth),
        Score(float(counts.max() / truth.size), 0.5 if classes.size > 1 else None), noise=noise, help=help,
    )  # fmt: skip


def unprotected(X: pd.DataFrame, y: Any, *, classification: bool) -> Any:
    """Return gradient boosted trees fitted without any protection, for comparison only."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classification else HistGradientBoostingRegressor
    texts = [str(name) for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    trees = kind(categorical_features=[list(X.columns).index(name) for name in texts] or None, random_state=0)
    return _OfTexts(trees, texts, X, np.asarray(y))


class _OfTexts:
    """The unprotected model: texts become small whole numbers, rare and unseen ones are missing."""

    def __init__(self, trees: Any, texts: list[str], X: pd.DataFrame, y: NDArray[Any]) -> None:
        frequent = {name: X[name].value_counts().index[:_MOST_CATEGORIES] for name in texts}
        self._known = {name: {value: i for i, value in enumerate(values)} for name, values in frequent.items()}
        self._trees = trees.fit(self._coded(X), y)
        self.classes_ = getattr(trees, "classes_", None)

    def predict(self, X: pd.DataFrame) -> Any:
        return self._trees.predict(self._coded(X))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self._trees.predict_proba(self._coded(X))

    def _coded(self, X: pd.DataFrame) -> FloatArray:
        known = self._known
        coded = {str(name): X[name].map(known[name]) if name in known else X[name] for name in X.columns}
        return pd.DataFrame(coded).to_numpy(dtype=np.float64, na_value=np.nan)


def _classification(model: Any, X: Any, truth: Any) -> Score:
    from sklearn.metrics import roc_auc_score

    accuracy = float(np.mean(np.asarray(model.predict(X)) == truth))
    classes = list(model.classes_)
    present = set(np.unique(truth).tolist())
    if len(present) < 2 or not present <= set(classes) or (len(classes) > 2 and present != set(classes)):
        return Score(accuracy, None)
    chances = model.predict_proba(X)
    if len(classes) == 2:
        return Score(accuracy, float(roc_auc_score(truth == classes[1], chances[:, 1])))
    return Score(accuracy, float(roc_auc_score(truth, chances, multi_class="ovr", labels=classes)))


def _regression(found: Any, truth: FloatArray) -> Score:
    error = np.asarray(found, dtype=np.float64) - truth
    total = float(np.sum((truth - truth.mean()) ** 2))
    return Score(1 - float(np.sum(error**2)) / total if total > 0 else 0.0, float(np.abs(error).mean()))
