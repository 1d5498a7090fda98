"""Checks of the caller's inputs, and the problem built from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, number, numbers
from deniable.records.losses import Loss
from deniable.records.mechanisms import OutputPerturbation, Training
from deniable.records.problem import Problem

Intercept = Literal["none", "regularized", "unregularized"]


def make_problem(
    X: ArrayLike,
    y: ArrayLike,
    regularization: float,
    loss: Loss,
    intercept: str,
    sample_weight: ArrayLike | None,
    normalization: str,
) -> Problem:
    """Check the rows and state the total objective."""
    rows = numbers("X", X)
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
        raise InputError(f"X must be a table of at least two rows, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        at = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(f"X must be finite, row {at[0]} column {at[1]} is not; drop or impute it")
    target, classes = loss.targets(y)
    if target.shape != (len(rows),):
        raise InputError(f"y must have one entry per row of X, got shape {target.shape} for {len(rows)} rows")
    if not np.isfinite(target).all():
        raise InputError(f"y must be finite, row {int(np.flatnonzero(~np.isfinite(target))[0])} is not")
    if intercept != "none":
        rows = np.column_stack([rows, np.ones(len(rows))])
    weights = np.ones(len(rows)) if sample_weight is None else _weights(sample_weight, len(rows))
    penalty, relief = penalties(rows.shape[1], classes, float(weights.sum()), regularization, intercept, normalization)
    return Problem(
        loss=loss,
        X=np.ascontiguousarray(rows),
        y=target,
        weights=weights,
        penalty=penalty,
        relief=relief,
        classes=classes,
    )


def penalties(
    columns: int, classes: int, weight: float, regularization: float, intercept: str, normalization: str
) -> tuple[FloatArray, FloatArray]:
    """Return the total penalty of each parameter, and how much of it leaves with one unit of the total ``weight``."""
    if classes > 1 and intercept == "unregularized":
        raise InputError(
            "intercept='unregularized' has no unique optimum with loss='softmax' (adding a constant to every class"
            " changes nothing); use intercept='regularized'"
        )
    penalised = np.ones((columns, classes))
    if intercept == "unregularized":
        penalised[-1] = 0.0
    unit = number("regularization", regularization, at_least=0.0, below=float("inf")) * penalised.ravel()
    return (unit * weight, unit) if normalization == "mean" else (unit, np.zeros_like(unit))


def _weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    weights = numbers("sample_weight", sample_weight, above=0.0, below=float("inf"), hint="drop rows of weight 0")
    if weights.shape != (n,):
        raise InputError(f"sample_weight must have one entry per row of X, got shape {weights.shape} for {n} rows")
    return weights


def released_model(released: ArrayLike, parameters: int) -> FloatArray:
    """Check a released parameter vector."""
    model = numbers("released", released)
    if model.shape != (parameters,) or not np.isfinite(model).all():
        raise InputError(
            f"released must be {parameters} finite parameters (the columns of X, then the intercept if any), "
            f"got shape {model.shape}"
        )
    return model


def candidates(
    training: Training, y: ArrayLike, added: tuple[ArrayLike, ArrayLike], mechanism: OutputPerturbation
) -> tuple[FloatArray, FloatArray]:
    """Check rows that may join; return them with the intercept column, and their encoded targets."""
    problem = training.problem
    if not isinstance(added, tuple | list) or len(added) != 2:
        raise InputError(f"added must be a pair (rows, targets), got {added!r}")
    rows = numbers("added", added[0])
    columns = problem.X.shape[1] - (training.intercept != "none")
    if rows.ndim != 2 or rows.shape[1] != columns or not np.isfinite(rows).all() or len(rows) == 0:
        raise InputError(f"added must hold finite rows of {columns} columns, got shape {rows.shape}")
    if not np.all(problem.weights == 1):
        raise InputError("added does not go with sample_weight")
    known, new = np.asarray(y), np.asarray(added[1])
    if problem.loss.name in ("logistic", "squared_hinge", "softmax") and not np.isin(new, known).all():
        raise InputError(f"added must have labels that y has, got {new[~np.isin(new, known)][0]!r}")
    targets = problem.loss.targets(np.concatenate([known, new]))[0][len(known) :]
    if targets.shape != (len(rows),):
        raise InputError(f"added must have one label per row, got {targets.shape} for {len(rows)} rows")
    if training.intercept != "none":
        rows = np.column_stack([rows, np.ones(len(rows))])
    if mechanism.epsilon is not None:
        mechanism.sensitivity(
            replace(training, problem=replace(problem, X=rows, y=targets, weights=np.ones(len(rows))))
        )
    return np.ascontiguousarray(rows), targets
