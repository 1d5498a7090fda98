"""A private model measured beside an unprotected one, on records held out from both: not protected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError
from deniable.report.usefulness import Score, ScoreLost, Usefulness

_RESAMPLES = 400  # of the bootstrap
_MOST_CATEGORIES = 200  # per column, below the 255 that scikit-learn's boosted trees take


def measure(model: Any, X: Any, y: Any, *, plain: Any = None, help: tuple[str, ...] = ()) -> Usefulness:
    """Return how useful ``model`` is on (X, y) beside the fitted unprotected model ``plain`` and guessing.

    With ``plain``, what the protection costs comes with a 95 % interval: percentiles of a paired bootstrap over the
    records, the same resamples for both models.
    """
    truth = np.asarray(y)
    if len(truth) == 0 or len(truth) != len(X):
        raise InputError(f"X and y must hold the same records, at least one; got {len(X)} and {len(truth)}")
    if not hasattr(model, "classes_"):
        truth = truth.astype(np.float64)
        answers = [np.asarray(one.predict(X), dtype=np.float64) for one in (model, plain) if one is not None]
        private, *others = (_regression(found, truth) for found in answers)
        loss = _loss("R²", answers, truth, _r2) if others else None
        guess, noise = Score(0.0, float(np.abs(truth - truth.mean()).mean())), 2 / float(np.sqrt(truth.size))
        return Usefulness(False, truth.size, private, next(iter(others), None), guess, noise, help, loss)
    classes, counts = np.unique(truth, return_counts=True)
    pairs = counts[0] * counts[-1] if classes.size == 2 else 1
    noise = 2 * float(np.sqrt((truth.size + 1) / (12 * pairs))) if classes.size == 2 else 0.05
    models = [one for one in (model, plain) if one is not None]
    asked = [(list(one.classes_), np.asarray(one.predict(X)), one.predict_proba(X)) for one in models]
    private, *others = (_classification(*found, truth) for found in asked)
    loss, beside = None, next(iter(others), None)
    if beside is not None:
        if classes.size == 2 and private.second is not None and beside.second is not None:
            ranks = [chances[:, known.index(classes[1])] for known, _, chances in asked]
            loss = _loss("AUC", ranks, truth == classes[1], _auc)
        else:
            loss = _loss("Accuracy", [predicted for _, predicted, _ in asked], truth, _right)
    guess = Score(float(counts.max() / truth.size), 0.5 if classes.size > 1 else None)
    return Usefulness(True, truth.size, private, beside, guess, noise, help, loss)


def _loss(of: str, answers: Sequence[Any], truth: NDArray[Any], score: Callable[..., Any]) -> ScoreLost:
    """The second model's score minus the first one's, with the percentiles of a paired bootstrap."""
    rng, equal = np.random.default_rng(0), np.full(truth.size, 1 / truth.size)
    drawn = (rng.multinomial(truth.size, equal) for _ in range(_RESAMPLES))  # one at a time: a number a record
    first, second = (score(found, truth) for found in answers)  # each a function of the records' weights
    differences = [second(weights) - first(weights) for weights in drawn]
    low, high = np.quantile(differences, (0.025, 0.975))
    once = np.ones(truth.size)
    return ScoreLost(of, float(second(once) - first(once)), float(low), float(high))


def _right(found: Any, truth: NDArray[Any]) -> Callable[[Any], float]:
    right = np.asarray(found) == truth
    return lambda weights: float(np.average(right, weights=weights))


def _r2(found: FloatArray, truth: FloatArray) -> Callable[[Any], float]:
    def share(weights: Any) -> float:
        total = np.average((truth - np.average(truth, weights=weights)) ** 2, weights=weights)
        return 1 - float(np.average((found - truth) ** 2, weights=weights) / total) if total > 0 else 0.0

    return share


def _auc(found: FloatArray, truth: NDArray[np.bool_]) -> Callable[[Any], float]:
    """The area as a function of weights; records are sorted once, ties count half."""
    order = np.argsort(found, kind="stable")
    starts = np.flatnonzero(np.diff(found[order], prepend=-np.inf))
    positive = truth[order]

    def area(weights: Any) -> float:
        weight = np.asarray(weights, dtype=np.float64)[order]
        of_class, of_others = (np.add.reduceat(np.where(is_in, weight, 0.0), starts) for is_in in (positive, ~positive))
        pairs = of_class.sum() * of_others.sum()
        return float(of_class @ (np.cumsum(of_others) - of_others / 2) / pairs) if pairs > 0 else 0.5

    return area


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


def _classification(classes: list[Any], predicted: Any, chances: Any, truth: Any) -> Score:
    from sklearn.metrics import roc_auc_score

    accuracy = float(np.mean(predicted == truth))
    present = set(np.unique(truth).tolist())
    if len(present) < 2 or not present <= set(classes) or (len(classes) > 2 and present != set(classes)):
        return Score(accuracy, None)
    if len(classes) == 2:
        return Score(accuracy, float(roc_auc_score(truth == classes[1], chances[:, 1])))
    return Score(accuracy, float(roc_auc_score(truth, chances, multi_class="ovr", labels=classes)))


def _regression(found: Any, truth: FloatArray) -> Score:
    error = np.asarray(found, dtype=np.float64) - truth
    total = float(np.sum((truth - truth.mean()) ** 2))
    return Score(1 - float(np.sum(error**2)) / total if total > 0 else 0.0, float(np.abs(error).mean()))
