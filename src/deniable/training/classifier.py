"""``PrivateClassifier``: a classifier that bounds what any attacker can infer about membership in its training data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from deniable._check import FloatArray, InputError, choice
from deniable._floats import MANY_ROUNDINGS
from deniable.tables import MISSING, NUMBER, ColumnCells, ColumnSchema, read_cell, read_cells, spelled
from deniable.training import levels
from deniable.training.base import PrivateModel, estimator
from deniable.training.fits import ModelFit
from deniable.training.losses import ClippedLogistic, ClippedLoss, ClippedSoftmax

CLASSES_SHARE, MOST_CLASSES = 0.05, 0.30  # of μ²: which classes there are, where they are to be discovered


class ClassifierFit(ModelFit):
    """One fit of a :class:`PrivateClassifier`: its classes are listed, discovered, or those that y has."""

    @staticmethod
    def aim(model: Any) -> ColumnSchema:
        """Return what is declared of the target, the list ``classes`` included."""
        aim = ModelFit.aim(model)
        if model.classes is None or isinstance(model.classes, str):
            return aim
        try:
            listed = tuple(model.classes)
        except TypeError:
            raise InputError(f"classes must list values of y, got {model.classes!r}") from None
        kind = aim.kind if aim.kind == "code" or listed == aim.classes else "category"
        return replace(aim, kind=kind, range=None, categories=listed)

    @classmethod
    def declares_target(cls, model: Any) -> bool:
        """Return whether classes are listed or discovered: a record with another label weighs nothing."""
        return bool(model.classes is not None or cls.aim(model).classes)

    @staticmethod
    def discovers(model: Any) -> int:
        """Return among how many parts the δ of discovery is shared: categories, classes."""
        return ModelFit.discovers(model) + (model.classes == "discover" if isinstance(model.classes, str) else 0)

    def target(self, y: Any) -> tuple[NDArray[Any], FloatArray] | ColumnCells:
        """Return the classes and each record's; the cells where classes are to be discovered."""
        classes, declared = self.model.classes, self.declares_target(self.model)
        if declared:
            aim = self.aim(self.model)
            cells = y if isinstance(y, ColumnCells) else aim.read(y)
            if not isinstance(classes, str):
                return self.listed(cells, aim.classes)
            choice("classes", classes, ("discover",))
            return cells
        cells, labels = read_cells(y), y.to_numpy()
        self.refuse_cells(cells, cells.kind == MISSING, "a class", "drop its record, or list the classes (classes=)")
        try:
            if labels.dtype.kind in "mM":
                raise TypeError  # as days and durations are that NumPy has no type for
            check_classification_targets(labels)
            found, codes = np.unique(labels + 0.0 if labels.dtype.kind == "f" else labels, return_inverse=True)  # no −0
        except (TypeError, ValueError):
            raise InputError(
                "Unknown label type: y must hold classes, all of them truth values, whole numbers or texts, got "
                f"{pd.api.types.infer_dtype(y)}; convert y to texts, or predict numbers by a PrivateRegressor"
            ) from None
        return found, codes.astype(np.float64)

    def listed(self, cells: ColumnCells, listed: Any) -> tuple[NDArray[Any], FloatArray]:
        """Return the listed classes and each record's; one with another label weighs nothing."""
        try:
            classes = np.unique(np.asarray(listed))
        except TypeError:
            raise InputError(f"classes must list values of y, got {listed!r}") from None
        form = self.aim(self.model).form
        place = {spelled(*read_cell(label, form)): code for code, label in enumerate(classes.tolist())}
        if len(place) < len(classes) or None in place:
            raise InputError(f"classes must list different values, none of them missing, got {listed!r}")
        for same in (False, True, 0, 1):  # True is 1, as in Python, whichever of them is listed
            place.setdefault(spelled(*read_cell(same, form)), next(iter(np.flatnonzero(classes == same).tolist()), -1))
        codes = np.array([place.get(text, -1) for text in cells.spelled], dtype=np.int64)
        self.look.units = self.look.units.only(codes >= 0)
        return classes, np.maximum(codes, 0.0)

    def discover_labels(self, cells: ColumnCells) -> dict[str, float]:
        """Return the labels that are frequent with their noisy counts.

        Where records are few, as much is spent as finds a class that a quarter of them have, within limits.
        """
        whole, delta = self.look.ledger.mu, self.model.discovery_delta / self.discovers(self.model)
        needed = (4 * (1 - float(ndtri(delta))) / (self.n * whole)) ** 2
        mu = whole * math.sqrt(min(max(needed, CLASSES_SHARE), MOST_CLASSES))
        return self.look.words("the target", cells.spelled, mu, delta * (1 - MANY_ROUNDINGS))

    def learn(self, target: Any) -> Any:
        """Spend the budget and return the classifier, fitted."""
        classes, declared = self.model.classes, self.declares_target(self.model)
        public = () if isinstance(classes, str) else ("the list of classes" + ", as y has it" * (not declared),)
        if isinstance(target, ColumnCells):
            target = self.listed(target, labels_of(self.discover_labels(target), self.aim(self.model)))
        found, codes = target
        if len(found) < 2:
            lost = " that stand out of the noise: list them (classes=, --classes)" * isinstance(classes, str)
            raise InputError(f"y must have at least two classes{lost or ', got one class'}")
        loss: ClippedLoss = ClippedLogistic() if len(found) == 2 else ClippedSoftmax(outputs=len(found))
        told = len(found) == 2 and levels.tells(self.n * self.look.ledger.mu)
        level = (levels.CLASSES_LEVEL_SHARE, levels.calibrate_scores) if told else None
        return self.finished(codes, loss, public, level, classes_=found)


@estimator
class PrivateClassifier(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """Classifier fitted to a membership target: two classes or more, tables of any mix of columns.

    Everything the fit learns comes from noisy sums over all records, so the certificate is exact Gaussian differential
    privacy, for every data set and every record, and counts everything that looked at the data: ranges, bins, the
    number of records, the coefficients. No part of the data is held back.

    Give at most one limit; without one it is ``advantage=0.1``: at even odds, no attacker who knows all other records
    is right about the presence of a record more often than 55 % of the time.

    Parameters
    ----------
    advantage
        Largest membership advantage of any attacker at even odds, in (0, 1): short for ``limit=Limit(advantage=…)``.
    limit
        Another limit, a :class:`deniable.Limit`: ``Limit(tpr=0.01, fpr=0.001)``, ``Limit(epsilon=1, delta=1e-6)``. With
        ``group_size=k`` in it curves and reports remain those of a single record; ``tradeoff_.group(k)`` is the one of
        k. Or what may be spent, as a full-batch Gaussian mechanism, for example ``GaussianDP(0.25)``.
    model
        "additive": a shape function per column (see ``plot``); "linear": one coefficient per numeric column.
    schema
        A :class:`deniable.Schema`: what everybody knows of the columns, the target and the persons. What it declares is
        not looked at; ``ranges``, ``categories``, ``classes`` and ``group`` are short for parts of it.
    ranges
        {column: (low, high)} known to everybody. Columns without one get theirs from a noisy histogram, which costs
        accuracy on small data.
    categories
        {column: list | "hash" | "discover"}, or one word for all: "hash" (the default: a public hash into 255 cells,
        no cost, no trace of the texts) or "discover" (frequent texts, found by noisy counts at ``discovery_delta``).
    discovery_delta
        Failure probability that discovery may add; the target holds with it included.
    classes
        The classes; a record with another label does not count. "discover": those that are frequent, found by noisy
        counts at ``discovery_delta``. Otherwise those of the data are used and are public.
    interactions
        Largest number of pairs of columns that get a joint shape function (additive model); all that stand out of the
        noise unless given, 0 for none. Finding them costs up to 4.5 % of μ², and nothing where records are too few.
    group
        Name (for arrays: index) of the column that says whose record it is. The guarantee is then about persons with
        all their records; the column is not a feature. Spellings of one name (7, "7", " 7.0") are one person, also
        if two people share them (:mod:`deniable.tables.persons`). A record without a person weighs nothing.
    records_per_person
        All records of persons with at most this many count alike; the records of persons with more weigh less.
    ledger
        A :class:`deniable.Ledger`: the fit is entered before any noise is drawn, or refused.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn; public.
    tradeoff_
        The curve of everything that was spent, adding or removing one record (or person).
    replacement_tradeoff_
        The curve for replacing one record by another.
    certificate_
        Every query of the data with its share; ``print`` it.
    record_tradeoffs_
        Each record's own exposure in this fit. For the owner of the data: not pickled.
    model_, columns_, left_out_
        Encoders and coefficients, the columns they belong to, what those hold that are left out; of noisy numbers only.

    Examples
    --------
    >>> import deniable as dn
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = dn.PrivateClassifier(advantage=0.1).fit(X, y)
    >>> model.tradeoff_.advantage() <= 0.1
    True
    """

    classes: Sequence[Any] | str | None = None
    _steps = ClassifierFit

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores: (rows,) for two classes, positive for the second; (rows, classes) otherwise."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, (rows, classes)."""
        scores = self._scores(X)
        if isinstance(self.loss_, ClippedLogistic):
            p = self.loss_.probabilities(scores[:, 0])
            return np.column_stack((1 - p, p))
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # tiny data sets are mostly noise: that is the promise
        return tags


def labels_of(texts: Iterable[str], aim: ColumnSchema) -> list[Any]:
    """Return classes that are known as texts as labels: numbers if all spell one, whole ones if all are; but codes.

    Examples
    --------
    See ``fit_column``.
    """
    if aim.kind == "code":
        return list(texts)
    cells = [read_cell(text) for text in texts]
    if any(kind != NUMBER for kind, _ in cells):
        return [spelled(*cell) for cell in cells]
    return [int(value) if float(value).is_integer() else value for _, value in cells if isinstance(value, float)]
