"""``PrivateClassifier``: a classifier that bounds what any attacker can infer about membership in its training data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from deniable._check import FloatArray, InputError, choice, nearest_names
from deniable.limits import Limit
from deniable.mechanisms import Mechanism
from deniable.noise.queries import Queries
from deniable.planning.gaussian import Budget
from deniable.training.base import PrivateModel
from deniable.training.columns import FeatureTable
from deniable.training.looks import COUNT_SHARE, Declared
from deniable.training.losses import ClippedLogistic, ClippedLoss, ClippedSoftmax


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
    loss
        "auto", "logistic" (two classes) or "softmax". Residuals are clipped at norm ½, which makes the losses
        Huber-like.
    ranges
        {column: (low, high)} known to everybody. Columns without one get theirs from a noisy histogram, which costs
        accuracy on small data.
    categories
        {column: list | "hash" | "discover"}, or one word for all: "hash" (the default: a public hash into 255 cells,
        no cost, no trace of the texts) or "discover" (frequent texts, found by noisy counts at ``discovery_delta``).
    discovery_delta
        Failure probability that discovery may add; the target holds with it included.
    classes
        The classes; a record with another label does not count. Otherwise those of the data are used and are public.
    interactions
        Number of pairs of columns that get a joint shape function (additive model). Half of μ² is then spent on finding
        and choosing them, which pays where columns interact and there are many records.
    individual_filter
        True: a record takes part in the sums of gradients until its own budget is spent, so the noise is that of 80 %
        of the steps at the same guarantee. Records that the model keeps getting wrong drop out first. Gains where the
        noise is felt, costs a little where records are many (docs/training.md has figures).
    tune
        True: the additive model, one with five pairs and the linear one are tried, scored on records that they did not
        see, and the best is fitted to all. Three tenths of μ² pay for the trials (with too few records none is made);
        ``trials_`` has their noisy scores.
    group
        Name (for arrays: index) of the column that says whose record it is. The guarantee is then about persons with
        all their records; the column is not a feature. Spellings of one name (7, "7", " 7.0") are one person.
    records_per_person
        All records of persons with at most this many count alike; the records of persons with more weigh less.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn; public.
    tradeoff_
        The curve of everything that was spent, adding or removing one record (or person).
    replacement_tradeoff_
        The curve for replacing one record by another.
    certificate_
        Every look at the data with its share; ``print`` it.
    record_tradeoffs_
        Each record's own exposure in this fit. For the owner of the data: not pickled.
    trials_
        With ``tune=True``: what was tried, each with its noisy mean error on held-out records; empty if the records
        were too few.
    model_, columns_
        Encoders and coefficients, and the columns they belong to; made from noisy numbers only.

    Examples
    --------
    >>> import deniable as dn
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = dn.PrivateClassifier(advantage=0.1).fit(X, y)
    >>> model.tradeoff_.advantage() <= 0.1
    True
    """

    @nearest_names
    def __init__(
        self,
        *,
        advantage: float | None = None,
        limit: Limit | Mechanism | None = None,
        model: str = "additive",
        loss: str = "auto",
        ranges: Mapping[Any, tuple[Any, Any]] | None = None,
        categories: Mapping[Any, Any] | str | None = None,
        discovery_delta: float = 1e-6,
        interactions: int = 0,
        individual_filter: bool = False,
        tune: bool = False,
        classes: Sequence[Any] | None = None,
        group: Any = None,
        records_per_person: int = 1,
    ) -> None:
        self.advantage = advantage
        self.limit = limit
        self.model = model
        self.loss = loss
        self.ranges = ranges
        self.categories = categories
        self.discovery_delta = discovery_delta
        self.interactions = interactions
        self.individual_filter = individual_filter
        self.tune = tune
        self.classes = classes
        self.group = group
        self.records_per_person = records_per_person

    def _learn(
        self, table: FeatureTable, y: Any, look: Queries, declared: Declared, allowance: Budget
    ) -> dict[str, Any]:
        classes, codes = self._classes(y)
        if self.classes is not None:
            look.units, codes = look.units.only(codes >= 0), np.maximum(codes, 0.0)
        loss = self._loss(len(classes))
        n = look.count(table.n_rows, look.ledger.mu * math.sqrt(COUNT_SHARE))
        self._advise(n, table, declared, allowance)
        public = ("the list of classes",)
        fitted = self._common(table, codes, loss, look, n, declared, allowance, public)
        return fitted | {"classes_": classes, "loss_": loss}

    def _classes(self, y: Any) -> tuple[NDArray[Any], FloatArray]:
        """Return the classes and each record's, −1 for a label that ``classes`` does not list."""
        labels = column_or_1d(y, warn=True)
        if self.classes is None:
            check_classification_targets(labels)
            classes, codes = np.unique(labels, return_inverse=True)
        else:
            try:
                classes = np.unique(np.asarray(self.classes))
                place = {label: code for code, label in enumerate(classes.tolist())}
            except TypeError:
                raise InputError(f"classes must list values of y, got {self.classes!r}") from None
            codes = np.array([place.get(label, -1) for label in labels.tolist()])
        if len(classes) < 2:
            raise InputError("y must have at least two classes, got one class")
        return classes, codes.astype(np.float64)

    def _loss(self, k: int) -> ClippedLoss:
        choice("loss", self.loss, ("auto", "logistic", "softmax"))
        if self.loss == "logistic" and k > 2:
            raise InputError(f"loss='logistic' is for two classes, got {k}; use loss='softmax'")
        return ClippedLogistic() if k == 2 and self.loss != "softmax" else ClippedSoftmax(k)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores: (rows,) for two classes, positive for the second; (rows, classes) otherwise."""
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        return scores

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
        scores = self._scores(X)
        if isinstance(self.loss_, ClippedLogistic):
            with np.errstate(divide="ignore"):
                return np.log(self.predict_proba(X))
        return np.asarray(log_softmax(scores, axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # tiny data sets are mostly noise: that is the promise
        return tags
