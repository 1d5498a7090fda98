"""Attack any estimator with shadow models, or a fitted model without any."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, IntArray, Seed, choice, integer, seeded
from deniable.audit.rehearsal import LEAST_SHADOWS, Attack, Scale, rehearse, strongest
from deniable.audit.results import AttackScores
from deniable.audit.scoring import METHODS, NEEDED, Method
from deniable.audit.shadow import (
    BoolArray,
    LearningTask,
    balanced_design,
    model_signals,
    train_models,
    with_every_class,
)
from deniable.audit.synthetic import refuse_shared_records
from deniable.tables import ColumnsOnDisk, Schema, apart, typed_table

_LEAST = 50  # fewest nonmembers from which the usual fit can be learned


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
    fit, features = signal if task == "classification" else -np.abs(signal), _features(X, y)
    centre = HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=10, random_state=0)
    spread = HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=10, random_state=0)
    usual = centre.fit(features[teaching], fit[teaching]).predict(features)
    wide = spread.fit(features[teaching], np.abs(fit - usual)[teaching]).predict(features)
    return np.asarray((fit - usual) / np.maximum(wide, 1e-3 * np.std(fit[teaching]) + 1e-12)), ~teaching


def _features(X: Any, y: NDArray[Any]) -> FloatArray:
    """Return records and labels as numbers; categories become codes, which trees can separate."""
    if hasattr(X, "tocsr"):
        raise InputError("X must be dense for method 'quantile'; reduce its columns, or use another method")
    frame = hasattr(X, "iloc")
    columns = [X.iloc[:, i].to_numpy() for i in range(X.shape[1])] if frame else [*X.reshape(len(X), -1).T]
    columns.append(y)
    coded = [c if c.dtype.kind in "biuf" else np.unique(c.astype(str), return_inverse=True)[1] for c in columns]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in coded])


_TOSSES = 100  # times that a target's coins are tossed until it has two classes


def attack_estimator(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    method: Literal["auto"] | Method = "auto",
    n_shadows: int = 64,
    *,
    target: Any = None,
    schema: Schema | None = None,
    rng: Seed = None,
    n_jobs: int | None = None,
    n_targets: int = 1,
    task: Literal["auto"] | LearningTask = "auto",
    progress: bool | None = None,
) -> AttackScores:
    """Measure how well attacks with shadow models tell the training records of ``estimator`` from others.

    A target is trained on a random half of the records, and ``n_shadows`` models of the attacker on random halves of
    their own, every record in exactly half of them. The target's half is drawn independently of the shadows': if the
    target belonged to one balanced set of models, the missing place of a record alone would reveal it.

    Parameters
    ----------
    estimator
        An unfitted scikit-learn classifier or regressor (Pipelines included), or a function
        ``train(X, y, seed)`` that returns a prediction function: probabilities, shape (n, n_classes) in sorted order
        of the classes, or predictions, shape (n,), for regression; arrays or tensors. Use this for PyTorch models.
    X, y
        The records, and their labels: arrays, a sparse matrix, or whatever holds a table. The estimator gets a frame of
        pandas, or an array, as it is; other tables as a frame of pandas: of files the columns hold what ``deniable
        check`` says (numbers, dates as days, texts), other tables their own types. Blocks may be pairs ``(X, y)``.
    target, schema
        The column of X to predict, where ``y`` is not given; what is declared of how a file is written.
    method
        "loss", "calibrated", "lira" (online), "lira-offline" or "rmia"; "auto" lets the shadow models play the target
        in turn and takes the strongest, LiRA also on the scale arcsin √p, which suits votes (LiRA unless another is
        clearly stronger, or with fewer than 6 shadows). The target itself is not looked at, so the intervals of the
        audit hold as they stand.
    n_shadows
        Number of shadow models, even.
    n_targets
        Number of targets, attacked in turn with the same shadows, for :meth:`AttackScores.most_exposed`; the audit is
        of the first one's scores, whose records all differ.
    task
        "classification", "regression", or "auto": determined by the estimator and its labels.
    n_jobs
        Models trained at a time (joblib); -1 for all cores.
    rng
        Seed or generator of the halves and of the models' seeds; fresh entropy by default.
    progress
        Whether to show a progress bar on stderr; by default if that is a terminal.

    Returns
    -------
    AttackScores
        Member and nonmember scores; ``method`` is the one used, ``details`` holds the records' indices on both sides
        and, under "rehearsed", how strong each attack was against the shadow models (mean TPR over log-spaced FPRs).

    Raises
    ------
    InputError
        If ``y`` has one class or NaN, lengths differ, or there are fewer shadows than the method needs.

    Notes
    -----
    *Rare classes.* Halves of the shadows exchange records until each has every class with two records or more, and a
    target's coins are tossed again if they leave a single class: its records of a class with few of them are then not
    quite independent (two of three records: the chance of that is 1/4; of ten records 0.1 %).

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    >>> s = dn.attack_estimator(DecisionTreeClassifier(random_state=0), X, y, n_shadows=8, rng=0)
    >>> isinstance(s, dn.audit.AttackScores), s.audit().advantage().estimate > 0.5
    (True, True)
    """
    choice("method", method, ("auto", *METHODS))
    choice("task", task, ("auto", "classification", "regression"))
    n_shadows, n_targets = _check_counts(n_shadows, n_targets, method)
    X, labels = _records(X, y, target, schema)
    task = _task(estimator, labels, task)
    design_rng, target_rng, seed_rng = seeded(rng).spawn(3)
    targets = np.stack([_with_two_classes(labels, task, target_rng) for _ in range(n_targets)])
    seeds = [int(seed) for seed in seed_rng.integers(2**31 - 1, size=n_shadows + n_targets)]
    shadows = _design(n_shadows, labels, task, design_rng)
    member = np.concatenate([shadows, targets])
    signal = train_models(estimator, X, labels, task, member, seeds, n_jobs=n_jobs, progress=progress)
    return _score_targets(signal, shadows, targets, method, task, _name(estimator))


def attack_model(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    member: ArrayLike,
    method: Literal["auto", "quantile"] | Method = "auto",
    n_shadows: int = 64,
    *,
    target: Any = None,
    schema: Schema | None = None,
    rng: Seed = None,
    n_jobs: int | None = None,
    estimator: Any = None,
    task: Literal["auto"] | LearningTask = "auto",
    progress: bool | None = None,
) -> AttackScores:
    """Attack a model that is already trained: whose records were in its training data?

    Parameters
    ----------
    model
        The fitted estimator, or a prediction function of probabilities.
    X, y
        The attacked records, in whatever holds a table, and their labels: those it was trained on and others of the
        same population.
    member
        Which of them it was trained on, one boolean per record. The intervals are about membership only if the members
        are a random part of the records: if members and others differ anyway, the attack measures that, too.
    method
        As in :func:`attack_estimator`, with shadow models; or without any: "quantile" learns from a random
        half of the nonmembers how well records like this one are fitted by a model that did not see them (Bertran et
        al. 2023; that half is not scored).
    n_shadows, target, schema, n_jobs, task, progress
        As in :func:`attack_estimator`.
    estimator
        What the shadow models are; by default an unfitted clone of ``model``, if that is an estimator.
    rng
        Seed or generator of the shadows' halves and seeds, or of the half of the nonmembers that teaches.

    Returns
    -------
    AttackScores
        A score per record, membership, and :meth:`AttackScores.audit`, which measures them.

    Raises
    ------
    InputError
        If ``member`` is all true or all false, members and others are the same records, or the method cannot be used
        with the model.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    >>> member = np.arange(200) < 100
    >>> model = DecisionTreeClassifier(random_state=0).fit(X[member], y[member])
    >>> s = dn.attack_model(model, X, y, member, n_shadows=8, rng=0)
    >>> s.audit().advantage().estimate > 0.1
    True
    """
    choice("method", method, ("auto", *METHODS, "quantile"))
    X, labels = _records(X, y, target, schema)
    task = _task(model, labels, task)
    inside = np.asarray(member)
    if inside.shape != labels.shape[:1] or not np.isin(inside, (0, 1)).all() or len(np.unique(inside)) < 2:
        raise InputError("member must say True or False for every record of X, and both must occur")
    inside = inside.astype(bool)
    row, members = _row_codes(X, labels)[np.argsort(~inside, kind="stable")], int(inside.sum())
    refuse_shared_records(row, {"members": slice(members), "nonmembers": slice(members, None)})
    if task == "classification" and not {*labels[inside].tolist()} <= {*np.ravel(getattr(model, "classes_", labels))}:
        raise InputError("y must hold the labels that the model was trained on: it does not know those of some members")
    if method == "quantile":
        coins = seeded(rng).spawn(1)[0]  # a stream of its own: ``rng`` may have drawn the members
        seen = model_signals(model, X, labels, task)
        found, kept = score_without_shadows(X, labels, inside, task, seen, coins)
        used = {"member_records": np.flatnonzero(kept & inside), "nonmember_records": np.flatnonzero(kept & ~inside)}
        return AttackScores(found[kept & inside], found[kept & ~inside], method, _name(model), used)
    if estimator is None and not hasattr(model, "fit"):
        raise InputError(
            f"estimator must be given for method {method!r}: how shadow models are trained, as model is a prediction "
            "function; or use method 'quantile', which trains none"
        )
    n_shadows, _ = _check_counts(integer("n_shadows", n_shadows, at_least=2), 1, method)
    design_rng, seed_rng = seeded(rng).spawn(2)
    shadows = _design(n_shadows, labels, task, design_rng)
    seeds = [int(seed) for seed in seed_rng.integers(2**31 - 1, size=n_shadows)]
    kind = model if estimator is None else estimator
    signal = train_models(kind, X, labels, task, shadows, seeds, n_jobs=n_jobs, progress=progress)
    target = model_signals(model, X, labels, task)
    both = np.concatenate([signal, target[None]])
    return _score_targets(both, shadows, inside[None], cast(Any, method), task, _name(model))


def _score_targets(
    signal: FloatArray,
    shadows: BoolArray,
    targets: BoolArray,
    method: Literal["auto"] | Method,
    task: LearningTask,
    target: str,
) -> AttackScores:
    """Score the last rows of ``signal``, those of ``targets``, with the others, those of ``shadows``."""
    n_shadows = len(shadows)
    shown, scale = signal[:n_shadows], Scale.of(signal[:n_shadows], task)
    rehearsed = rehearse(shown, shadows, scale) if method == "auto" and n_shadows >= LEAST_SHADOWS else {}
    attack = strongest(rehearsed, Attack("lira" if method == "auto" else method))
    scores = scale.scores(attack, signal[n_shadows:], shown, shadows)
    records = np.broadcast_to(np.arange(targets.shape[1]), targets.shape)
    details = {
        "n_shadows": n_shadows,
        "n_targets": len(targets),
        "rehearsed": {str(one): strength for one, strength in rehearsed.items()},
        "members_of_targets": targets.sum(axis=1).tolist(),
        "member_records": records[targets],
        "nonmember_records": records[~targets],
    }
    return AttackScores(scores[targets], scores[~targets], str(attack), target, details)


def _design(n_shadows: int, labels: NDArray[Any], task: LearningTask, rng: np.random.Generator) -> BoolArray:
    """Return the shadows' halves: each record in half of them, every class in each."""
    design = balanced_design(n_shadows, len(labels), rng)
    return with_every_class(design, labels) if task == "classification" else design


def _with_two_classes(labels: NDArray[Any], task: LearningTask, rng: np.random.Generator) -> BoolArray:
    """Toss a coin for each record, and again if the members would all have one class."""
    for _ in range(_TOSSES):
        member = rng.random(len(labels)) < 0.5
        if task == "regression" or len(np.unique(labels[member])) > 1:
            break
    return member


def _check_counts(n_shadows: int, n_targets: int, method: str) -> tuple[int, int]:
    least = 2 * NEEDED["lira" if method == "auto" else method]
    n_shadows = integer("n_shadows", n_shadows, at_least=least, hint=f"method {method!r} needs {least} models")
    if n_shadows % 2:
        raise InputError(f"n_shadows must be even, so that every record is in half of the models, got {n_shadows}")
    return n_shadows, integer("n_targets", n_targets, at_least=1)


def _records(X: Any, y: ArrayLike | None, target: Any, schema: Schema | None) -> tuple[Any, NDArray[Any]]:
    """Return records whose rows can be taken (a data frame, a sparse matrix by rows, or an array), and their labels."""
    if y is not None and target is not None:
        raise InputError("target names a column of X: give it or y, not both")
    table = X.tocsr() if hasattr(X, "tocsr") else typed_table(X, schema, target)
    if y is None:
        table, y = apart(table, target, table)
    if isinstance(table, ColumnsOnDisk):
        table = pd.DataFrame({name: table[name] for name in table.columns}).infer_objects()
    if not getattr(table, "shape", ()):
        raise InputError(f"X must be an array or a data frame of records, got {X!r}")
    labels = np.asarray(y)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or len(labels) != table.shape[0] or len(labels) < 4:
        one = "; attack one of several outputs at a time" * (labels.ndim == 2)
        raise InputError(f"y must have one label per row of X ({table.shape[0]}, at least 4), got {labels.shape}{one}")
    if pd.isna(labels).any():
        raise InputError("y must not hold NaN; drop the records without a label")
    return table, labels


def _task(estimator: Any, labels: NDArray[Any], task: str) -> LearningTask:
    """Return what the labels are learned as, or refuse an estimator that learns nothing."""
    if not hasattr(estimator, "fit") and not callable(estimator):
        raise InputError(f"estimator must have fit or be a train function, got {estimator!r}")
    if task == "auto":
        from sklearn.base import is_regressor

        numbers = is_regressor(estimator) if hasattr(estimator, "fit") else labels.dtype.kind == "f"
        task = "regression" if numbers else "classification"
    if task == "classification" and len(np.unique(labels)) < 2:
        raise InputError("y must hold at least two classes, got one; there is nothing to learn")
    return cast(LearningTask, task)


def _row_codes(X: Any, y: NDArray[Any]) -> IntArray:
    """Return one number for each record, equal where its features and its label are."""
    if hasattr(X, "tocsr"):
        X = X @ np.random.default_rng(0).random(X.shape[1])  # a number for each row, equal where rows are
    return pd.factorize(pd.Series([row.tobytes() for row in _features(X, y) + 0.0], dtype=object))[0]


def _name(estimator: Any) -> str:
    return getattr(estimator, "__name__", None) or " ".join(repr(estimator).split())
