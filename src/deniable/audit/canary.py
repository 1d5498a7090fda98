"""Canaries: records that independent coins put into a training set or leave out, to audit a run that is made anyway."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import mannwhitneyu

from deniable._check import FloatArray, InputError, Seed, choice, integer, refuse_sparse, seeded
from deniable.audit.one_run import OneRunAudit, audit_one_run
from deniable.audit.scoring import loss_of
from deniable.audit.shadow import LearningTask, model_signals, rows_of

CanaryKind = Literal["mislabelled", "extreme"]
_SEEN = 0.01  # error of the test that shows that canaries were trained on


@dataclass(frozen=True, eq=False)
class Canaries:
    """A training set with canaries in it.

    Attributes
    ----------
    X, y
        The records to train on: the given ones and the canaries whose coin said "in", in random order.
    records, labels
        All canaries, in or out, shape (k, ...) and (k,).
    included
        Whether each canary is in, shape (k,): the secret that an attack guesses.
    kind
        How they were made.
    repetitions
        How often each canary that is in stands among the records.

    Examples
    --------
    See ``canaries``.
    """

    X: Any = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    records: Any = field(repr=False)
    labels: NDArray[Any] = field(repr=False)
    included: NDArray[np.bool_] = field(repr=False)
    kind: CanaryKind
    repetitions: int = 1

    def scores(self, model: Any) -> FloatArray:
        """Return one score per canary, larger for "in": minus the loss of ``model`` on it.

        ``model`` is what was fitted on ``X`` and ``y``: an estimator, or a prediction function (probabilities or
        numbers).
        """
        numbers = self.labels.dtype.kind == "f" and not hasattr(model, "predict_proba")  # classes may be floats
        task: LearningTask = "regression" if numbers else "classification"
        return -loss_of(model_signals(model, self.records, self.labels, task, np.unique(self.y)), task)

    def audit(self, model: Any, *, confidence: float = 0.95, trained: bool = False) -> OneRunAudit:
        """Audit the one model that was trained; for the parameters see :meth:`scores` and :func:`audit_one_run`.

        Scores of another attack (inner products of gradients with a canary's, for example) go to
        :func:`audit_one_run`, with ``included``. ``trained`` says that you saw to it that the model was trained on
        :attr:`X`: of a model with much noise nothing else may show it.

        Raises
        ------
        InputError
            If the canaries that are in have no smaller losses than the others (rank test, 1 %), unless ``trained``; if
            a loss is not finite, or all are equal. A canary that was not trained on speaks for every promise.
        """
        scores, inside = self.scores(model), self.included
        if not np.isfinite(scores).all() or np.ptp(scores) == 0:
            raise InputError("model must have a finite loss on every canary, and not one for all: it proves nothing")
        seen = mannwhitneyu(scores[inside], scores[~inside], alternative="greater").pvalue if inside.any() else 1.0
        if not trained and not seen <= _SEEN:
            raise InputError(
                "nothing shows that the model was trained on the canaries: its losses on those that are in are not "
                "smaller. Train on canaries.X, canaries.y; if you did, say trained=True"
            )
        return replace(
            audit_one_run(scores, inside, confidence=confidence, direction="larger"), repetitions=self.repetitions
        )


def canaries(
    X: Any, y: ArrayLike, k: int = 200, kind: CanaryKind = "mislabelled", *, repetitions: int = 1, rng: Seed = None
) -> Canaries:
    """Make ``k`` canaries from the data; an independent fair coin decides for each whether it enters the training set.

    Train once on the returned ``X`` and ``y``, as you would have anyway, and let the attack guess the coins:
    ``canaries(...).audit(model)`` gives lower limits of ε and μ, and judges promises. Works for any estimator, and for
    PyTorch and Opacus runs (arrays in, arrays out).

    Parameters
    ----------
    X, y
        The records, an array or DataFrame, and their labels (for regression: floats).
    k
        Number of canaries; about half of them will be in. More canaries reveal more and harm the model more.
    kind
        "mislabelled": records of the data with another class (regression: with a target at the far end of the range),
        which only a model that saw them predicts; "extreme": mislabelled, with every number at an end of its column's
        range, for the largest gradients.
    repetitions
        How often each canary that is in is put in. A canary that is seen more often shows more; the limits are then
        those for one record, by group privacy.
    rng
        Seed or generator; by default the operating system's entropy. Whoever scores the canaries must not know it.

    Returns
    -------
    Canaries
        The training set with canaries, ``X`` and ``y``, and ``included``, booleans of shape (k,).

    Raises
    ------
    InputError
        For labels of one class, lengths that differ, or too few records.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    >>> made = dn.audit.canaries(X, y, 100, rng=0)                  # train on made.X, made.y
    >>> isinstance(made, dn.audit.Canaries), made.included.shape
    (True, (100,))
    >>> scores = rng.normal(size=100) + 3 * made.included
    >>> found = dn.audit.audit_one_run(scores, made.included, rng=0)
    >>> isinstance(found, dn.audit.OneRunAudit), found.epsilon(0.0).low > 0
    (True, True)
    """
    k, repetitions = integer("k", k, at_least=10), integer("repetitions", repetitions, at_least=1)
    choice("kind", kind, ("mislabelled", "extreme"))
    refuse_sparse("X", X)
    labels = np.asarray(y)
    if not hasattr(X, "iloc"):
        X = np.asarray(X)
    if not X.shape:
        raise InputError(f"X must be an array or a data frame of records, got {X!r}")
    if labels.ndim != 1 or len(labels) != len(X) or len(labels) < 2:
        raise InputError(f"y must have one label per row of X ({len(X)}, at least 2), got shape {labels.shape}")
    if len(np.unique(labels)) < 2:
        raise InputError("y must hold at least two different values, got one; there is nothing to learn")
    generator = seeded(rng)
    place = generator.permutation(np.arange(max(k, len(labels))) % len(labels))[:k]
    canary_X, canary_y = rows_of(X, place), _other_labels(labels, labels[place], generator)
    if kind == "extreme":
        canary_X = _extreme(X, canary_X, generator)
    included = generator.random(k) < 0.5
    inside = np.repeat(np.flatnonzero(included), repetitions)
    order = generator.permutation(len(labels) + len(inside))
    together = _stack(X, rows_of(canary_X, inside))
    return Canaries(
        rows_of(together, order),
        np.concatenate([labels, canary_y[inside]])[order],
        canary_X,
        canary_y,
        included,
        kind,
        repetitions,
    )


def _other_labels(all_labels: NDArray[Any], own: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return a wrong label for each record: another class, or the farther end of the range."""
    if all_labels.dtype.kind == "f":
        low, high = all_labels.min(), all_labels.max()
        return np.asarray(np.where(own - low > high - own, low, high))
    classes = np.unique(all_labels)
    shift = rng.integers(1, len(classes), size=len(own))
    return np.asarray(classes[(np.searchsorted(classes, own) + shift) % len(classes)])


def _extreme(X: Any, made: Any, rng: np.random.Generator) -> Any:
    """Move every number to a random end of its column's range."""
    if not hasattr(X, "iloc"):
        if X.dtype.kind not in "iuf":
            raise InputError("kind 'extreme' needs numbers in X; give a DataFrame if some columns are text")
        return np.where(rng.random(made.shape) < 0.5, X.min(axis=0), X.max(axis=0))
    made = made.copy()
    for name in X.select_dtypes("number").columns:
        made[name] = np.where(rng.random(len(made)) < 0.5, X[name].min(), X[name].max())
    return made


def _stack(first: Any, second: Any) -> Any:
    if not hasattr(first, "iloc"):
        return np.concatenate([first, second])
    import pandas as pd

    return pd.concat([first, second], ignore_index=True)
