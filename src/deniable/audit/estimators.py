"""Attack any estimator with shadow models."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, choice, integer, number
from deniable.audit.results import AttackScores
from deniable.audit.scoring import METHODS, NEEDED, Method, Variance, score
from deniable.audit.shadow import ShadowModels, Task, balanced_design, train_shadows


def attack_estimator(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    method: Method = "lira",
    n_shadows: int = 64,
    rng: Any = None,
    n_jobs: int | None = None,
    *,
    variance: Literal["auto"] | Variance = "auto",
    gamma: float = 2.0,
    n_targets: int = 1,
    task: Literal["auto"] | Task = "auto",
    cache: str | Path | None = None,
    progress: bool | None = None,
) -> AttackScores:
    """Measure how well shadow models tell the training records of ``estimator`` from others.

    ``n_shadows`` models are trained on random halves, every record in exactly half of them. One of the models (or
    ``n_targets`` of them in turn) is the target; the others are the attacker's. The target itself is never among
    its own shadows, and each record keeps equally many shadows with and without it, so that not even their numbers
    tell on which side the target was.

    Parameters
    ----------
    estimator
        An unfitted scikit-learn classifier or regressor (Pipelines included), or a function
        ``train(X, y, seed)`` that returns a prediction function: probabilities, shape (n, n_classes) in sorted order
        of the classes, or predictions, shape (n,), for regression. PyTorch models come in this way.
    X, y
        The records, an array or DataFrame, and their labels.
    method
        "loss", "calibrated", "lira" (online), "lira-offline" or "rmia".
    n_shadows
        Number of models, even.
    variance
        Of the LiRA fits: "per-example", "fixed" (one for all records), or "auto": per-example from 64 shadows on.
    gamma
        Of RMIA: how much likelier than another record's a record must be.
    n_targets
        Models attacked in turn. With more than one the same records return, and the scores are no longer independent
        as the intervals assume: use it for curves, not for claims.
    cache
        Folder that keeps what each trained model showed; an interrupted run resumes from it. A train function is
        recognised by its name and code: use another folder when what it closes over changes.
    progress
        Progress bar on stderr; by default if that is a terminal.

    Returns
    -------
    AttackScores
        Member and nonmember scores; ``details`` holds the records' indices on both sides.

    Raises
    ------
    InputError
        For one class, NaN labels, lengths that differ, or fewer shadows than the method needs.
    """
    choice("method", method, METHODS)
    choice("variance", variance, ("auto", "fixed", "per-example"))
    choice("task", task, ("auto", "classification", "regression"))
    gamma = number("gamma", gamma, at_least=1.0)
    n_shadows, n_targets = _check_counts(n_shadows, n_targets, method)
    if not hasattr(X, "iloc"):
        X = np.asarray(X)
    labels, task = _check_labels(estimator, X, y, task)
    design_rng, seed_rng, tie_rng = np.random.default_rng(rng).spawn(3)
    member = balanced_design(n_shadows, len(labels), design_rng)
    seeds = [int(seed) for seed in seed_rng.integers(2**31 - 1, size=n_shadows)]
    models = train_shadows(estimator, X, labels, task, member, seeds, n_jobs=n_jobs, cache=cache, progress=progress)
    chosen: Variance = ("per-example" if n_shadows >= 64 else "fixed") if variance == "auto" else variance
    parts = [
        score_target(models, target, method, variance=chosen, gamma=gamma, rng=tie_rng) for target in range(n_targets)
    ]
    scores, inside = np.concatenate(parts), member[:n_targets].ravel()
    records = np.tile(np.arange(len(labels)), n_targets)
    details = {
        "n_shadows": n_shadows,
        "variance": chosen,
        "member_records": records[inside],
        "nonmember_records": records[~inside],
    }
    return AttackScores(scores[inside], scores[~inside], method, _name(estimator), details)


def score_target(
    models: ShadowModels,
    target: int,
    method: Method,
    *,
    variance: Variance,
    gamma: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Score all records against model ``target`` with the other models as shadows, equally many on both sides."""
    rest = np.delete(models.signal, target, axis=0), np.delete(models.member, target, axis=0)
    each = len(models.member) // 2 - 1
    sides = [_pick(rest[0], rest[1] == side, each, rng) for side in (True, False)]
    return score(method, models.signal[target], sides[0], sides[1], models.task, variance=variance, gamma=gamma)


def _pick(signal: FloatArray, wanted: NDArray[np.bool_], each: int, rng: np.random.Generator) -> FloatArray:
    """Return ``each`` random signals per record among the wanted ones, shape (each, n)."""
    order = np.argsort(np.where(wanted, rng.random(wanted.shape), 2.0), axis=0)[:each]
    return np.take_along_axis(signal, order, axis=0)


def _check_counts(n_shadows: int, n_targets: int, method: Method) -> tuple[int, int]:
    least = max(2, 2 * NEEDED[method] + 2)
    n_shadows = integer("n_shadows", n_shadows, at_least=least, hint=f"method {method!r} needs {least} models")
    if n_shadows % 2:
        raise InputError(f"n_shadows must be even, so that every record is in half of the models, got {n_shadows}")
    n_targets = integer("n_targets", n_targets, at_least=1)
    if n_targets > n_shadows:
        raise InputError(f"n_targets must be at most n_shadows, {n_shadows}, got {n_targets}")
    return n_shadows, n_targets


def _check_labels(estimator: Any, X: Any, y: ArrayLike, task: str) -> tuple[NDArray[Any], Task]:
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != len(X) or len(labels) < 4:
        raise InputError(
            f"y must be one-dimensional with one label per row of X ({len(X)}, at least 4), got shape {labels.shape}"
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InputError("y must not hold NaN; drop the records without a label")
    if not hasattr(estimator, "fit") and not callable(estimator):
        raise InputError(f"estimator must have fit or be a train function, got {estimator!r}")
    if task == "auto":
        if hasattr(estimator, "fit"):
            from sklearn.base import is_regressor

            task = "regression" if is_regressor(estimator) else "classification"
        else:
            task = "regression" if labels.dtype.kind == "f" else "classification"
    if task == "classification" and len(np.unique(labels)) < 2:
        raise InputError("y must hold at least two classes, got one; there is nothing to learn from it")
    return labels, cast(Task, task)


def _name(estimator: Any) -> str:
    return getattr(estimator, "__name__", None) or " ".join(repr(estimator).split())
