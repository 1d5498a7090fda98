"""The main job: from a table to a private model, how good it is, and the report that goes with it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from deniable._check import InputError, choice, number
from deniable.limits import Limit
from deniable.mechanisms import Mechanism
from deniable.noise import Account, SumNoise, only_our_words
from deniable.report import Assessment
from deniable.tables import (
    ColumnCells,
    Opened,
    Schema,
    as_schema,
    column_among,
    copies_line,
    name_of,
    names_of,
    open_table,
    persons_of,
    read_cell,
    spelled,
)
from deniable.training import (
    PrivateClassifier,
    PrivateRegressor,
    TableReader,
    TaskChoice,
    TrainingWarning,
    fit_column,
    labels_of,
)
from deniable.workflows.assessing import assess
from deniable.workflows.usefulness import Unprotected, Usefulness, measure

_NAME = {"classification": "A private classifier", "regression": "A private regression"}


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training run made.

    Attributes
    ----------
    model
        A scikit-learn pipeline that takes rows as in the table: how cells are read, then the private model. It holds
        noised numbers only, besides what the certificate names as public.
    assessment
        The report for the owner of the table: with usefulness, and how the file was read.
    public
        The same without what no noise protects: declared names and released numbers only; it may be published.
    remarks
        What released counts say of the columns, and other lines that a person has to see. No cell is among them:
        ``deniable check`` tells the owner of the table more.
    """

    model: Any
    assessment: Assessment
    public: Assessment
    remarks: tuple[str, ...]


@only_our_words()
def train_table(
    source: Any,
    *,
    target: str | None = None,
    advantage: float | None = None,
    limit: Limit | Mechanism | None = None,
    task: TaskChoice = "auto",
    model: str = "additive",
    interactions: int | None = None,
    schema: Schema | None = None,
    classes: Sequence[Any] | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
    ledger: Account | None = None,
    holdout: float = 0.25,
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
    source
        The path of a file, a built-in name, or whatever else holds a table. Each cell is read alone
        (:mod:`deniable.tables.cell`): a record decides of no column what it is.
    target, drop
        The column to predict, and those to leave out.
    schema
        A :class:`deniable.Schema`: what everybody knows of columns, the target and its task, persons, dropped columns.
    classes
        The classes of the target; otherwise they are found by noisy counts.
    advantage, limit
        What an attacker may reach, at most one of them, as for the estimators.
    task
        "classification", "regression", or "auto": as noisy counts of the target say.
    model, interactions
        "additive" or "linear"; at most so many pairs of columns: as in :class:`deniable.PrivateClassifier`.
    group
        Column that says whose record it is.
    ledger
        A :class:`deniable.Ledger`, in which the fit is entered before any noise is drawn.
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
    declared = as_schema(schema)
    opened = open_table(source, declared)
    task = cast(TaskChoice, declared.task or "auto") if task == "auto" else task
    group = declared.person if group is None else name_of(group)
    drop = names_of(drop)
    name, (frame, target) = (
        opened.name,
        _cells_and_target(opened, declared.target if target is None else name_of(target)),
    )
    who = () if group is None else (group,)
    for option, asked in (("drop", drop), ("group", who)):
        for column in asked:
            column_among(option, column, [one for one in frame.columns if option != "group" or one != target])
    declared = replace(_declared_of(declared, classes, list(frame.columns), target), person=group)
    left = {target, *drop, *who, *(one for one in frame.columns if declared.kind(one) == "dropped")}
    X = frame[[column for column in frame.columns if column not in left]]
    if target in drop or declared.kind(target) == "dropped" or not len(X.columns):
        raise InputError(f"{name} cannot be used: it has no column besides the target {target!r}")
    declared = declared.only({*X.columns, target, group})
    persons = None if group is None else frame[group]
    whose = None if persons is None else persons_of(persons, declared.column(group))[0]
    train = _training_rows(len(frame), whose, share, SumNoise())
    aim = declared.column(target)
    cells = aim.read(frame[target])
    options: Any = {"advantage": advantage, "limit": limit, "schema": declared}
    options |= {"model": model, "interactions": interactions, "ledger": ledger}
    found = None if aim.classes else "discover"
    estimators = PrivateClassifier(**options, classes=found), PrivateRegressor(**options)
    fitted = X if group is None else X.assign(**{group: persons})  # the person is for the fit alone
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrainingWarning)
        estimator = fit_column(task, *estimators, fitted[train], cells.at(np.flatnonzero(train)), opened.unit)
    felt = [str(w.message) for w in caught if issubclass(w.category, TrainingWarning)]
    kind = "classification" if isinstance(estimator, PrivateClassifier) else "regression"
    useful = _compare_held_out(estimator, X, cells, train)
    pipeline = Pipeline([("read", TableReader([column.name for column in estimator.columns_])), ("model", estimator)])
    facts = {"data": name, "target": target, "task": kind, "model": model, "holdout": share, "columns": len(X.columns)}
    told = tuple(_columns_read(estimator))

    def page(useful: Usefulness | None, read: Sequence[str]) -> Assessment:
        made = assess(
            estimator, usefulness=useful, command=command, policy=policy, meta=meta,
            title=f"{_NAME[kind]} on {name}",
        )  # fmt: skip
        said = (*made.assumptions.notes, *(f"Table: {line}" for line in read))
        return replace(
            made,
            assumptions=replace(made.assumptions, notes=said),
            warnings=(*felt, *made.warnings),
            reproduction={**facts, **made.reproduction},
        )

    copied = () if group is not None else copies_line(chain((X[name] for name in X.columns), [frame[target]]))
    copied = tuple(f"{line}; exact, not protected" for line in copied)
    owners, public = page(useful, (*opened.notes, *copied, *told)), page(None, told)
    remarks = (
        *opened.notes,
        *told,
        f"task: {kind}" + " (from noisy counts of the target; --task overrides it)" * (task == "auto" and not aim.kind),
        *felt,
    )
    return Trained(pipeline, owners, public, remarks)


def _cells_and_target(opened: Opened, target: str | None) -> tuple[pd.DataFrame, str]:
    """Return the cells as they stand, and the name of the target."""
    name, frame, target = opened.name, opened.checked().frame, target or opened.target_name
    names = list(frame.columns)
    target = column_among("target", target, names)
    if not len(frame):
        raise InputError(f"{name} cannot be used: it has no rows")
    return frame if isinstance(frame, pd.DataFrame) else pd.DataFrame({n: frame[n] for n in names}), target


def _declared_of(schema: Schema, classes: Sequence[Any] | None, names: Sequence[Any], target: str) -> Schema:
    """Return all that is declared of a table's columns; classes that are texts and spell numbers are numbers."""
    schema.check_names(names)
    said = {} if classes is None else {target: {"categories": tuple(classes)}}
    schema = replace(schema.saying(said), target=target)
    aim = schema.column(target)
    if aim.categories and all(isinstance(label, str) for label in aim.categories):
        schema = schema.saying({target: {"categories": tuple(labels_of(aim.categories, aim))}})
    return schema


def _columns_read(estimator: PrivateClassifier | PrivateRegressor) -> list[str]:
    """What released counts say of the columns: those that were left out, and those of numbers and words."""
    every = estimator.columns_
    both = [str(column) for column in every if column.sure and column.measured and column.words]
    doubt = sum(not column.sure for column in every)
    said = f"too few records to tell numbers from words in {doubt} of {len(every)} columns: both are read (--schema)"
    missed = [
        f"{column.name!r}: about {column.other:,.0f} cells are no {column.axis}s and were not read"
        for column in every
        if column.other and not column.words
    ]
    gone = [f"{name!r}: {held}: dropped" for name, held in estimator.left_out_.items()]
    return [*both, *[said] * bool(doubt), *missed, *gone]


def _compare_held_out(estimator: Any, X: pd.DataFrame, cells: ColumnCells, train: Any) -> Usefulness | None:
    """Compare with an unprotected model on the held-out records whose target fits; None if there are none."""
    classification = isinstance(estimator, PrivateClassifier)
    if classification:
        form = estimator.schema_.column(estimator.schema_.target).form
        labels = {spelled(*read_cell(label, form)): label for label in estimator.classes_.tolist()}
        fits = np.array([text in labels for text in cells.spelled])
        y = np.array([labels[text] for text in cells.spelled[fits]])
    else:
        fits = ~np.isnan(cells.number)
        y = cells.number[fits]
    X, train = X if fits.all() else X[fits], train[fits]  # no copy of a large table that needs none
    if train.all():
        return None
    try:
        plain = Unprotected(X, train, y[train], estimator, classification=classification)
    except ValueError:  # too few records or one class: there is nothing to compare with
        plain = None
    return measure(estimator, X[~train], y[~train], plain=plain)


def _training_rows(n: int, owners: Any, share: float, source: SumNoise) -> Any:
    """Which rows train: each record or person is held out independently with probability ``share``."""
    who, units = (np.arange(n), n) if owners is None else (owners, int(owners.max()) + 1)
    train = ~source.coins("held out", units, share)[who]
    if not train.any():
        raise InputError(f"no record is left to fit to, of {n}; give a smaller holdout or more records")
    return train
