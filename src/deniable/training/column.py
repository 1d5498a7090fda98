"""A target that stands in a table: a classification or a regression, as declarations or noisy counts say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deniable._check import InputError
from deniable.noise import SumNoise, Units
from deniable.tables import DATE, MISSING, NUMBER, ColumnCells
from deniable.training.classifier import ClassifierFit, PrivateClassifier, labels_of
from deniable.training.features import declared_kind
from deniable.training.regressor import PrivateRegressor, RegressorFit

TaskChoice = Literal["auto", "classification", "regression"]
_FEW_VALUES = 20  # a target of whole numbers, most of which are at most this many different ones, is of classes


def fit_column(
    task: TaskChoice, classifier: PrivateClassifier, regressor: PrivateRegressor, X: Any, cells: ColumnCells, unit: str
) -> Any:
    """Fit one of two estimators, which differ in nothing but their task, and return it.

    Declared classes, a declared range or a declared kind of the target say what it is. Otherwise it is counted with the
    other columns: a regression where fractions or dates stand out, a classification where words do or where a
    few values are most of the whole numbers. Classes are found by noisy counts. A cell that does not fit has no weight.

    Parameters
    ----------
    task
        "classification", "regression", or "auto": as said above.
    classifier, regressor
        The estimators; the classifier has ``classes="discover"`` unless classes are declared.
    X, cells
        The columns, and the target's cells, each read alone.
    unit
        What a row is, in a word: "record", or "line of the file".

    Raises
    ------
    InputError
        If the target cannot be of the task, or nothing of it stands out of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> from deniable.tables import read_cells
    >>> from deniable.training import fit_column, labels_of
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = np.where(X[:, 0] > 0, "ill", "well")
    >>> models = dn.PrivateClassifier(classes="discover"), dn.PrivateRegressor()
    >>> model = fit_column("auto", *models, X, read_cells(y), "record")
    >>> [str(label) for label in model.classes_], labels_of(["1", "2"], dn.tables.ColumnSchema())
    (['ill', 'well'], [1, 2])
    """
    declared, source = ClassifierFit.aim(classifier), SumNoise()
    if declared.range is not None and task != "classification":
        return RegressorFit.begin(regressor, X, source, Units(unit)).complete(cells)
    fit = ClassifierFit.begin(classifier, X, source, Units(unit))
    if declared.classes and task != "regression":
        return fit.complete(cells)
    aim = fit.count(None if declared.kind else cells)
    aim = declared_kind(declared.kind) if declared.kind else aim
    fractions = aim.axis == "date" or (aim.axis == "number" and not aim.whole)
    if task == "regression" and aim.words and not aim.axis:
        raise InputError("task 'regression' needs a numeric target; this one holds texts")
    if task == "classification" and fractions and not aim.words and not declared.kind:
        raise InputError("task 'classification' needs classes, this target holds fractions; use task 'regression'")
    if task == "classification" or (task == "auto" and (aim.words or not fractions)):
        found = fit.discover_labels(cells)
        most = len(found) <= _FEW_VALUES and sum(found.values()) > fit.n / 2
        if task == "classification" or (aim.words and not aim.axis) or (len(found) > 1 and most):
            return fit.learn(fit.listed(cells, labels_of(found, declared)))
        if aim.words or not aim.axis:
            raise InputError(
                "what the target holds is lost in the noise with so few records: list its classes (--classes "
                "no,yes), or say that it is a number (--task regression)"
            )
    if aim.axis == "date" and not declared.kind:  # in days
        kind = np.where(cells.kind == DATE, NUMBER, np.where(cells.kind == NUMBER, MISSING, cells.kind))
        cells = replace(cells, kind=kind.astype(np.uint8))
    regression = RegressorFit(**{**vars(fit), "model": regressor})
    return regression.learn(regression.target(cells))
