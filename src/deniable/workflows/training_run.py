"""The main job: from a table to a private model, how good it is, and the report that goes with it."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from deniable._check import InputError, choice, number
from deniable._progress import stage
from deniable.limits import Limit
from deniable.mechanisms import Mechanism
from deniable.noise.queries import NoiseSource, SumNoise
from deniable.report.model import Assessment
from deniable.report.usefulness import Usefulness
from deniable.tables import PUBLIC
from deniable.tables.files import as_opened
from deniable.tables.persons import persons_of
from deniable.tables.reading import understand_any
from deniable.tables.understanding import Ranges, Understood
from deniable.training import PrivateClassifier, PrivateRegressor, TrainingWarning
from deniable.training.published import FLAG, TableReader, with_flags
from deniable.workflows.assessing import assess
from deniable.workflows.usefulness import measure, unprotected

TaskChoice = Literal["auto", "classification", "regression"]
_FEW_VALUES = 20  # a numeric target with at most this many different values is taken as classes


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training run made.

    Attributes
    ----------
    model
        A scikit-learn pipeline that takes rows as in the table: how cells are read, then the private model. It holds
        noised numbers only, besides what the certificate names as public.
    usefulness
        The private model beside an unprotected one, on held-out records: not protected. None if none were held out.
    assessment
        The report.
    remarks
        How the table was read, by what the model keeps of it (names, kinds, forms), and other lines that a person has
        to see. No count and no cell is among them: ``deniable check`` tells these to the owner of the table.
    """

    model: Any
    usefulness: Usefulness | None
    assessment: Assessment
    remarks: tuple[str, ...]

    @property
    def private(self) -> PrivateClassifier | PrivateRegressor:
        """The fitted private model inside the pipeline."""
        found: PrivateClassifier | PrivateRegressor = self.model[-1]
        return found


def train_table(
    source: str | Path | pd.DataFrame,
    *,
    target: str | None = None,
    advantage: float | None = None,
    limit: Limit | Mechanism | None = None,
    task: TaskChoice = "auto",
    model: str = "additive",
    tune: bool = False,
    ranges: Ranges | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
    holdout: float = 0.25,
    progress: bool = False,
    title: str | None = None,
    command: str | None = None,
    policy: Any = None,
    meta: Any = None,
) -> Trained:
    """Fit a private model to a table and measure on held-out records what the protection costs.

    Each record (with ``group=`` each person) is held out with probability ``holdout`` by a coin of its own from the
    operating system, which nobody can repeat: adding or removing one changes nothing for the others, and the model's
    guarantee covers all records of the table.

    Parameters
    ----------
    source, target, drop, ranges
        The table and how it is read: see :func:`deniable.tables.understand`.
    advantage, limit
        What an attacker may reach, at most one of them, as for the estimators.
    task
        "classification", "regression", or "auto": regression for a numeric target with fractions or with more than 20
        different values.
    model, tune
        "additive" or "linear", or ``tune=True``: as in :class:`deniable.PrivateClassifier`.
    group
        Column that says whose record it is.
    holdout
        Probability of being held out, in [0, 1); 0 fits to all records and measures nothing.
    policy, meta
        See :func:`deniable.assess`.

    Raises
    ------
    InputError
        If the table cannot be used, a target cannot be met, or no record is left to fit to.
    """
    choice("task", task, ("auto", "classification", "regression"))
    share = number("holdout", holdout, at_least=0.0, below=1.0)
    persons = None if group is None else _persons(source, group, target)
    left_out = tuple(drop) if group is None or group in drop else (*drop, group)
    table = understand_any(source, target, drop=left_out, ranges=ranges, strict=False)
    aim = _checked(table)
    kind = _task(task, aim)
    goal = {"advantage": advantage, "limit": limit, "tune": tune}
    estimator = _estimator(kind, model, table, ranges, group, goal)
    train = _kept(len(aim), persons, share, SumNoise())
    y = aim.to_numpy()
    X = with_flags(table.frame, [column.name for column in table.kept if column.kind == FLAG])
    fitted = X if persons is None else X.assign(**{str(group): persons})  # the person is for the fit alone
    if kind == "classification":
        y = y if pd.api.types.is_numeric_dtype(aim) else y.astype(str)
        estimator.set_params(classes=np.unique(y).tolist())  # public, and all records of one may be held out
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrainingWarning)
        with stage("fitting", shown=progress):
            estimator.fit(fitted[train], y[train])
    felt = [str(w.message) for w in caught if issubclass(w.category, TrainingWarning)]
    useful = None
    if not train.all():
        features = table.frame
        with stage("measuring on held-out records", shown=progress), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # others' words on records
            try:
                plain = unprotected(features[train], y[train], classification=kind == "classification")
            except ValueError:  # too few records or one class: there is nothing to compare with
                plain = None
            useful = _useful(estimator, plain, X[~train], y[~train], features, ranges)
    pipeline = _published(table, estimator)
    with stage("writing the report", shown=progress):
        made = assess(
            estimator, usefulness=useful, command=command, policy=policy, meta=meta,
            title=title or f"{_name(kind)} on {table.name}: {estimator.certificate_.target}",
        )  # fmt: skip
    read = (*table.notes, *_read(table))
    remarks = (
        *read,
        f"task: {kind}" + (" (inferred from the target; --task overrides it)" if task == "auto" else ""),
        *felt,
    )
    notes = (*made.assumptions.notes, PUBLIC, *(f"Table: {line}" for line in read))
    made = replace(
        made,
        assumptions=replace(made.assumptions, notes=notes),
        warnings=(*felt, *made.warnings),
        reproduction={**_facts(table, kind, model, share), **made.reproduction},
    )
    return Trained(pipeline, useful, made, remarks)


def _read(table: Understood) -> list[str]:
    """How columns are read, of those that are dropped or read otherwise than they are written."""
    return [
        f"{column.name!r}: {'; '.join((column.kind, *column.form.notes))}"
        for column in table.columns
        if column.kind == "dropped" or column.form.notes
    ]


def _persons(source: Any, group: str, target: str | None) -> Any:
    """The column of the person as it stands in the table: whatever its kind, it is not a feature."""
    frame = as_opened(source)[0].frame
    if group not in frame.columns or group == target:
        near = difflib.get_close_matches(group, [str(name) for name in frame.columns if name != target], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"group {group!r} is not a column besides the target{hint}")
    return frame[group].to_numpy()


def _checked(table: Understood) -> Any:
    problems = list(table.problems)
    if table.target_name is None:
        names = [column.name for column in table.columns]
        problems.append(f"target is missing; name the column to predict, one of: {', '.join(names[:20])}")
    if table.target is not None and not table.kept:
        problems.append(f"it has no column that can be used besides the target {table.target_name!r}")
    if problems or table.target is None:
        raise InputError(f"{table.name} cannot be used: {'; '.join(problems)}")
    return table.target  # what was dropped is among the remarks


def _task(task: TaskChoice, aim: Any) -> Literal["classification", "regression"]:
    numeric = pd.api.types.is_numeric_dtype(aim) and not pd.api.types.is_bool_dtype(aim)
    if task == "regression" and not numeric:
        raise InputError("task 'regression' needs a numeric target; this one holds texts")
    if task == "classification" and numeric and not np.array_equal(aim, np.floor(aim)):
        raise InputError("task 'classification' needs classes, this target holds fractions; use task 'regression'")
    if task != "auto":
        return task
    fractions = numeric and not np.array_equal(aim, np.floor(aim))
    return "regression" if fractions or (numeric and aim.nunique() > _FEW_VALUES) else "classification"


def _estimator(
    kind: str,
    model: str,
    table: Understood,
    ranges: Ranges | None,
    group: str | None,
    goal: dict[str, Any],
) -> Any:
    given = dict(ranges or {})
    bounds = given.pop(table.target_name, None) if table.target_name is not None else None
    kinds = {column.name: column.kind for column in table.kept}
    known = {name: value for name, value in given.items() if name in kinds}
    options: dict[str, Any] = {
        "model": model,
        "ranges": {n: (v[0], v[1]) for n, v in known.items() if kinds[n] in ("number", "date") and len(v) == 2} or None,
        "categories": {n: list(v) for n, v in known.items() if kinds[n] == "category"} or None,
        "group": group,
        **goal,
    }
    if kind == "classification":
        return PrivateClassifier(**options)
    return PrivateRegressor(**options, target_range=None if bounds is None else (bounds[0], bounds[1]))


def _kept(n: int, persons: Any, share: float, source: NoiseSource) -> Any:
    """Which rows train: each record or person is held out independently with probability ``share``."""
    who, named = (np.arange(n), range(n)) if persons is None else persons_of(persons)
    train = ~source.coins("held out", len(named), share)[who]
    if not train.any():
        raise InputError(f"no record is left to fit to, of {n}; give a smaller holdout or more records")
    return train


def _useful(estimator: Any, plain: Any, X: Any, y: Any, features: pd.DataFrame, ranges: Ranges | None) -> Usefulness:
    columns = features.shape[1]
    numbers = [c for c in features.columns if pd.api.types.is_numeric_dtype(X[c]) and X[c].dtype != "boolean"]
    unknown = [c for c in numbers if c not in (ranges or {})]
    helps = ["a weaker target (for example twice the advantage)", "more records"]
    if columns > 5:
        helps.append(f"fewer columns ({columns} share the budget; --drop leaves some out)")
    if unknown:
        helps.append(f"public ranges of the columns (--ranges), {len(unknown)} of which were found in the data")
    helps.append("`deniable plan`, if not all records have to be used")
    return measure(estimator, X, y, plain=plain, help=tuple(helps))


def _published(table: Understood, estimator: Any) -> Any:
    from sklearn.pipeline import Pipeline

    return Pipeline([("read", TableReader(table.reader.columns)), ("model", estimator)])


def _facts(table: Understood, kind: str, model: str, share: float) -> dict[str, Any]:
    return {
        "data": table.name, "target": table.target_name, "task": kind, "model": model, "holdout": share,
        "columns": len(table.kept),
    }  # fmt: skip


def _name(kind: str) -> str:
    return "A private classifier" if kind == "classification" else "A private regression"
