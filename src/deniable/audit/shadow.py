"""Shadow models: train many models on random halves and record how each treats every record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, Indices, InputError
from deniable._parallel import in_order
from deniable._progress import track

LearningTask = Literal["classification", "regression"]
BoolArray = NDArray[np.bool_]
Predict = Callable[[Any], Any]

LARGEST_LOGIT = 30.0  # probabilities are trusted to 1e-13


def balanced_design(n_models: int, n_records: int, rng: np.random.Generator) -> BoolArray:
    """Return memberships, shape (n_models, n_records): each record in exactly half of the models, independently."""
    shuffled = np.argsort(rng.random((n_models, n_records)), axis=0)
    return shuffled < n_models // 2


def with_every_class(member: BoolArray, y: NDArray[Any]) -> BoolArray:
    """Return the design with every class in every model, after as few exchanges as possible; ``y`` is one column.

    A model without a rare class exchanges a record with the model that has most of that class, so that each record
    stays in exactly half of the models. Classes with one record are left alone: half of the models lack them.
    """
    member = member.copy()
    for name in np.unique(y):
        records = np.flatnonzero(y == name)
        if len(records) < 2:
            continue
        while not (present := member[:, records].sum(axis=1)).all():
            poor, rich = int(np.argmin(present)), int(np.argmax(present))
            moved = records[np.flatnonzero(member[rich, records])[0]]
            member[rich, moved], member[poor, moved] = False, True
    return member


def train_models(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    task: LearningTask,
    member: BoolArray,
    seeds: list[int],
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> FloatArray:
    """Train one model per row of ``member`` and return its signals on all records, shape (n_models, n_records).

    The signal is the log-odds of the true class (classification) or the residual prediction − y (regression).
    """
    if task == "classification" and any(len(np.unique(y[row])) == 1 for row in member):
        raise InputError("y must hold two classes in every half; one has a single class: add records of the rare one")
    _refuse_frozen(estimator)
    jobs = list(zip(member, seeds, strict=True))
    finished = in_order(_one_model, jobs, n_jobs, estimator, X, y, task)
    return np.stack(list(track(finished, "shadow models", len(member), shown=progress)))


def split_signals(signal: FloatArray, member: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the signals of the models with each record and of those without it, half of all models each."""
    order, half = np.argsort(~member, axis=0, kind="stable"), len(signal) // 2
    return np.take_along_axis(signal, order[:half], axis=0), np.take_along_axis(signal, order[half:], axis=0)


def signals(predict: Predict, classes: NDArray[Any] | None, X: Any, y: NDArray[Any]) -> FloatArray:
    """Return the signal of one model on all records; ``classes`` is None for regression.

    ``predict`` returns probabilities, shape (n, n_classes), in the order of ``classes``, or predictions, shape (n,); as
    an array or a tensor.
    """
    output = np.asarray(plain(predict(X)), dtype=np.float64)
    if classes is None:
        return np.asarray(output.reshape(len(y)) - y.astype(np.float64))
    if output.ndim == 1:  # probability of the second class
        output = np.stack([1 - output, output], axis=1)
    if output.shape != (len(y), len(classes)):
        raise InputError(f"predictions must have shape {(len(y), len(classes))}, got {output.shape}")
    is_own = classes == y[:, None]  # in the model's order, which need not be sorted
    own = np.where(is_own, output, 0.0).sum(axis=1)
    others = np.where(is_own.any(axis=1), output.sum(axis=1) - own, 1.0)
    if np.isnan(own).any():
        raise InputError("the model predicts NaN; an attack needs finite predictions")
    return _clipped_logit(own, others)


def plain(output: Any) -> Any:
    """A tensor (of PyTorch) without its graph and on the CPU; anything else as it is."""
    return output.detach().cpu() if hasattr(output, "detach") else output


def rows_of(X: Any, rows: Indices) -> Any:
    """Return some rows of an array, a sparse matrix or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _one_model(estimator: Any, X: Any, y: NDArray[Any], task: LearningTask, job: tuple[BoolArray, int]) -> FloatArray:
    """Train one model, given a row of memberships and a seed."""
    row, seed = job
    rows = np.flatnonzero(row)
    part = rows_of(X, rows)
    if not hasattr(estimator, "fit"):  # a train function
        return model_signals(estimator(part, y[rows], seed), X, y, task)
    return model_signals(_clone_with_seed(estimator, seed).fit(part, y[rows]), X, y, task)


def model_signals(
    model: Any, X: Any, y: NDArray[Any], task: LearningTask, classes: NDArray[Any] | None = None
) -> FloatArray:
    """Return the signals of a fitted estimator, or of a prediction function for ``classes``, on all records."""
    if not hasattr(model, "predict"):
        if not callable(model):
            raise InputError(f"model must be a fitted estimator or a prediction function, got {model!r}")
        known = np.unique(y) if classes is None else classes
        return signals(model, known if task == "classification" else None, X, y)
    if task == "regression":
        return signals(model.predict, None, X, y)
    if hasattr(model, "predict_proba"):
        return signals(model.predict_proba, model.classes_, X, y)
    return _margin(model, X, y)


def _margin(model: Any, X: Any, y: NDArray[Any]) -> FloatArray:
    """Use the decision function of a classifier without probabilities in place of log-odds."""
    if not hasattr(model, "decision_function"):
        raise InputError(
            f"{type(model).__name__} has neither predict_proba nor decision_function; an attack needs one of them"
        )
    margin = np.asarray(model.decision_function(X), dtype=np.float64)
    if margin.ndim == 1:
        margin = np.stack([-margin, margin], axis=1) / 2
    if margin.shape != (len(y), len(model.classes_)):
        raise InputError(
            f"decision_function of {type(model).__name__} must have one column per class "
            f"({len(model.classes_)}), got shape {margin.shape}; set decision_function_shape='ovr'"
        )
    is_own = model.classes_ == y[:, None]
    others = np.where(is_own, -np.inf, margin).max(axis=1)
    own = np.where(is_own, margin, -np.inf).max(axis=1)
    # a class that the model has not seen lies as far below the others as the worst of its own
    return np.asarray(np.where(is_own.any(axis=1), own - others, margin.min(axis=1) - margin.max(axis=1)))


def _clone_with_seed(estimator: Any, seed: int) -> Any:
    """Clone an estimator and give every random_state in it, also inside a Pipeline, the seed."""
    from sklearn.base import clone

    model = clone(estimator)
    names = [name for name in model.get_params() if name == "random_state" or name.endswith("__random_state")]
    return model.set_params(**dict.fromkeys(names, seed))


def _refuse_frozen(estimator: Any) -> None:
    """Refuse what stays as it was fitted in each clone: no shadow model would be without its records."""
    from sklearn.base import clone

    for part in (estimator, *estimator.get_params().values()) if hasattr(estimator, "get_params") else ():
        if hasattr(part, "get_params") and not isinstance(part, type) and clone(part) is part:
            raise InputError(f"estimator must be fitted anew, its {type(part).__name__} never is: give what it holds")


def _clipped_logit(own: FloatArray, others: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        odds = np.log(np.maximum(own, 0.0)) - np.log(np.maximum(others, 0.0))
    return np.asarray(np.clip(odds, -LARGEST_LOGIT, LARGEST_LOGIT))
