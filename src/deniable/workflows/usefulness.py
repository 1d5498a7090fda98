"""How useful a private model is compared with an unprotected one and with guessing, on records held out from both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest

from deniable._check import FloatArray, InputError
from deniable._shown import Unit, shown
from deniable.report import NOTHING, Number, Section
from deniable.tables import WORD

_RESAMPLES = 400  # of the bootstrap
_PARTS = 10  # of the records, by chance, that calibration is measured in
_LEAST_CHANCE = 1e-15  # that a log loss takes, as scikit-learn's did: a certain mistake costs 35 nats, not infinity
_MOST_CATEGORIES = 200  # per column, below the 255 that scikit-learn's boosted trees take
NOT_PROTECTED = (
    "The figures for usefulness were computed from the records without noise: the guarantee does not cover them. Keep "
    "them with the data; the model does not hold them."
)


@dataclass(frozen=True)
class Score:
    """One model on the held-out records. Classification: accuracy and AUC; regression: R² and mean absolute error.

    ``log_loss`` and ``calibration`` are of a classifier's chances: nats a record, and how far they are off on average.
    """

    first: float
    second: float | None
    log_loss: float | None = None
    calibration: float | None = None

    @property
    def values(self) -> tuple[float | None, ...]:
        """All four, in the order of a report."""
        return self.first, self.second, self.log_loss, self.calibration


@dataclass(frozen=True)
class ScoreLost:
    """What the protection costs: of AUC, accuracy or R², with where the truth lies at 95 % confidence."""

    of: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Usefulness:
    """A private model, an unprotected one (None without training records) and guessing, on the same records."""

    classification: bool
    n: int
    private: Score
    plain: Score | None
    guess: Score
    noise: float
    help: tuple[str, ...] = ()
    loss: ScoreLost | None = None

    @property
    def useless(self) -> bool:
        """Whether the private model is no better than guessing, as far as these records can tell."""
        return self._guesses(self.private)

    def _guesses(self, score: Score) -> bool:
        no_ranking = score.second is None or score.second < 0.5 + self.noise
        if not self.classification:
            return not score.first > self.noise
        chance = 2 * (self.guess.first * (1 - self.guess.first) / self.n) ** 0.5
        return score.first <= self.guess.first + chance and no_ranking

    @property
    def alert(self) -> str:
        """The loud first line where the model is of no use, or nothing."""
        if not self.useless:
            return ""
        what = "always naming the most frequent class" if self.classification else "always predicting the mean"
        where = f"{self.n:,} held-out records (not protected)"
        if self.plain is not None and self._guesses(self.plain):
            return f"This model is no better than {what} on {where}, {NOTHING}: do not use it."
        helps = f" What would help: {'; '.join(self.help)}." if self.help else ""
        return f"This model is no better than {what} on {where}: do not use it.{helps}"

    @property
    def sentence(self) -> str:
        """The comparison in one sentence."""
        if not self.classification:
            beside = f" (unprotected: {_plain(self.plain.first)})" if self.plain else ""
            reached = f"On {self.n:,} held-out records, without noise, R² is {_plain(self.private.first)}{beside}"
            return f"{reached}; predicting the mean reaches 0."
        beside = f"unprotected: {_rate(self.plain.first)}, " if self.plain else ""
        ranking = (
            ""
            if self.private.second is None
            else f", AUC {_plain(self.private.second)}"
            + (f" ({_plain(self.plain.second)})" if self.plain and self.plain.second is not None else "")
        )
        low, high = _wilson(self.private.first, self.n)
        return (
            f"The model predicts {_rate(self.private.first)} of {self.n:,} held-out records correctly "
            f"({_shown(low, high)} at 95\u00a0%; measured without noise; {beside}always the most frequent class: "
            f"{_rate(self.guess.first)}){ranking}."
        )

    def _number(self, kind: str, key: str, label: str, value: float, meaning: str, unit: Unit) -> Number:
        """A score; an accuracy with its 95 % interval."""
        if kind != "accuracy":
            return Number(key, label, value, meaning, "estimate", unit)
        low, high = _wilson(value, self.n)
        meaning = f"{meaning} {_rate(value)} were seen; a 95\u00a0% interval (Wilson)."
        return Number(key, label, value, meaning, "measured interval", unit, low, high)

    def section(self) -> Section:
        """Return the comparison as a part of a report."""
        kinds: tuple[tuple[str, str, Unit], ...] = (("r2", "R²", "number"), ("mae", "Mean absolute error", "number"))
        if self.classification:
            kinds = (
                ("accuracy", "Accuracy", "rate"),
                ("auc", "AUC", "number"),
                ("log_loss", "Log loss in nats", "number"),
                ("calibration", "Calibration error", "rate"),
            )
        rows = [
            ("private", "this model", self.private,
             f"Measured on {self.n:,} records that the model was not fitted to."),
            ("plain", "without protection", self.plain,
             "Gradient boosted trees fitted to the same records without any protection."),
            ("guess", "always the most frequent class" if self.classification else "always the mean", self.guess,
             "What needs no data about anybody but the frequencies."),
        ]  # fmt: skip
        numbers = [
            self._number(kind, f"use.{kind}.{who}", f"{name} (not protected), {words}", value, meaning, unit)
            for place, (kind, name, unit) in enumerate(kinds)
            for who, words, score, meaning in rows
            if score is not None and (value := score.values[place]) is not None
        ]
        if self.loss is not None:
            meaning = "The unprotected model's minus this one's: 95\u00a0% interval of a paired bootstrap."
            low, high = math.floor(1000 * self.loss.low) / 1000, math.ceil(1000 * self.loss.high) / 1000
            label, estimate = f"{self.loss.of} lost by the protection (not protected)", round(self.loss.estimate, 3)
            numbers.insert(0, Number("use.loss", label, estimate, meaning, "measured interval", "number", low, high))
        return Section(
            "use", "What the model is good for", "Measured on held-out records, without noise: not covered by the "
            "guarantee.", tuple(numbers),
            notes=(NOT_PROTECTED,), protected=False,
        )  # fmt: skip


def _wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share of ``n`` (Wilson 1927)."""
    found = binomtest(round(share * n), n).proportion_ci(0.95, "wilson")
    return float(found.low), float(found.high)


def _shown(low: float, high: float) -> str:
    return f"{shown(low, 'rate', 'lower', 3)} to {shown(high, 'rate', 'upper', 3)}"


def _rate(value: float) -> str:
    return shown(value, "rate", "nearest", 3)


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def measure(model: Any, X: Any, y: Any, *, plain: Any = None, help: tuple[str, ...] = ()) -> Usefulness:
    """Return how useful ``model`` is on (X, y) compared with the fitted unprotected model ``plain`` and guessing.

    With ``plain``, what the protection costs comes with a 95 % interval: percentiles of a paired bootstrap over the
    records, the same resamples for both models.
    """
    truth = np.asarray(y)
    if len(truth) == 0 or len(truth) != len(X):
        raise InputError(f"X and y must hold the same records, at least one; got {len(X)} and {len(truth)}")
    if not hasattr(model, "classes_"):
        truth = truth.astype(np.float64)
        answers = [np.asarray(one.predict(X), dtype=np.float64) for one in (model, plain) if one is not None]
        private, *others = (_regression(found, truth) for found in answers)
        loss = _loss("R²", answers, truth, _r2) if others else None
        guess, noise = Score(0.0, float(np.abs(truth - truth.mean()).mean())), 2 / float(np.sqrt(truth.size))
        return Usefulness(False, truth.size, private, next(iter(others), None), guess, noise, help, loss)
    classes, counts = np.unique(truth, return_counts=True)
    pairs = counts[0] * counts[-1] if classes.size == 2 else 1
    noise = 2 * float(np.sqrt((truth.size + 1) / (12 * pairs))) if classes.size == 2 else 0.05
    models = [one for one in (model, plain) if one is not None]
    chances = [one.predict_proba(X) for one in models]
    asked = [
        (list(one.classes_), np.asarray(one.classes_)[found.argmax(axis=1)], found)
        for one, found in zip(models, chances, strict=True)
    ]
    private, *others = (_classification(*found, truth) for found in asked)
    loss, beside = None, next(iter(others), None)
    if beside is not None:
        if classes.size == 2 and private.second is not None and beside.second is not None:
            ranks = [chances[:, known.index(classes[1])] for known, _, chances in asked]
            loss = _loss("AUC", ranks, truth == classes[1], _auc)
        else:
            loss = _loss("Accuracy", [predicted for _, predicted, _ in asked], truth, _right)
    guess = Score(float(counts.max() / truth.size), 0.5 if classes.size > 1 else None)
    return Usefulness(True, truth.size, private, beside, guess, noise, help, loss)


def _loss(of: str, answers: Sequence[Any], truth: NDArray[Any], score: Callable[..., Any]) -> ScoreLost:
    """The second model's score minus the first one's, with the percentiles of a paired bootstrap."""
    rng, equal = np.random.default_rng(0), np.full(truth.size, 1 / truth.size)
    drawn = (rng.multinomial(truth.size, equal) for _ in range(_RESAMPLES))  # one at a time: a number a record
    first, second = (score(found, truth) for found in answers)  # each a function of the records' weights
    differences = [second(weights) - first(weights) for weights in drawn]
    low, high = np.quantile(differences, (0.025, 0.975))
    once = np.ones(truth.size)
    return ScoreLost(of, float(second(once) - first(once)), float(low), float(high))


def _right(found: Any, truth: NDArray[Any]) -> Callable[[Any], float]:
    right = np.asarray(found) == truth
    return lambda weights: float(np.average(right, weights=weights))


def _r2(found: FloatArray, truth: FloatArray) -> Callable[[Any], float]:
    def share(weights: Any) -> float:
        total = np.average((truth - np.average(truth, weights=weights)) ** 2, weights=weights)
        return 1 - float(np.average((found - truth) ** 2, weights=weights) / total) if total > 0 else 0.0

    return share


def _auc(found: FloatArray, truth: NDArray[np.bool_]) -> Callable[[Any], float]:
    """The area as a function of weights; records are sorted once, ties count half."""
    order = np.argsort(found, kind="stable")
    starts = np.flatnonzero(np.diff(found[order], prepend=-np.inf))
    positive = truth[order]

    def area(weights: Any) -> float:
        weight = np.asarray(weights, dtype=np.float64)[order]
        of_class, of_others = (np.add.reduceat(np.where(is_in, weight, 0.0), starts) for is_in in (positive, ~positive))
        pairs = of_class.sum() * of_others.sum()
        return float(of_class @ (np.cumsum(of_others) - of_others / 2) / pairs) if pairs > 0 else 0.5

    return area


class Unprotected:
    """Gradient boosted trees without any protection, on a private model's columns: numbers, or texts if these are more.

    Texts become small whole numbers; rare and unseen ones are missing. It is fitted to these ``rows``, one column after
    the other: a table is not copied.
    """

    def __init__(self, X: pd.DataFrame, rows: NDArray[np.bool_], y: Any, private: Any, *, classification: bool) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        self._schema = private.schema_
        self._names = [column.name for column in private.columns_]
        self._known: dict[Any, dict[str, int]] = {}
        made = self._matrix(X, rows)
        kind = HistGradientBoostingClassifier if classification else HistGradientBoostingRegressor
        texts = [place for place, name in enumerate(self._names) if name in self._known]
        self._trees = kind(categorical_features=texts or None, random_state=0).fit(made, np.asarray(y))
        self.classes_ = getattr(self._trees, "classes_", None)

    def predict(self, X: pd.DataFrame) -> Any:
        """Return the predicted values."""
        return self._trees.predict(self._matrix(X))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        """Return the chances of the classes."""
        return self._trees.predict_proba(self._matrix(X))

    def _matrix(self, X: pd.DataFrame, rows: NDArray[np.bool_] | None = None) -> FloatArray:
        made = np.empty((len(X) if rows is None else int(rows.sum()), len(self._names)))
        for place, name in enumerate(self._names):
            cells = self._schema.column(name).read(X[name] if rows is None else X[name][rows])
            if rows is not None and np.sum(cells.kind == WORD) > np.sum(~np.isnan(cells.number)):
                codes, texts = cells.coded
                often = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(texts)), kind="stable")
                self._known[name] = {texts[code]: i for i, code in enumerate(often[:_MOST_CATEGORIES].tolist())}
            if name in self._known:
                codes, texts = cells.coded
                made[:, place] = np.array([*(self._known[name].get(text, np.nan) for text in texts), np.nan])[codes]
            else:
                made[:, place] = cells.number
        return made


def _classification(classes: list[Any], predicted: Any, chances: Any, truth: Any) -> Score:
    from sklearn.metrics import roc_auc_score

    accuracy = float(np.mean(predicted == truth))
    fits = _fits(classes, np.asarray(chances), truth)
    present = set(np.unique(truth).tolist())
    if len(present) < 2 or not present <= set(classes) or (len(classes) > 2 and present != set(classes)):
        return Score(accuracy, None, *fits)
    if len(classes) == 2:
        return Score(accuracy, float(roc_auc_score(truth == classes[1], chances[:, 1])), *fits)
    return Score(accuracy, float(roc_auc_score(truth, chances, multi_class="ovr", labels=classes)), *fits)


def _fits(classes: list[Any], chances: FloatArray, truth: Any) -> tuple[float, float]:
    """Log loss, and calibration error: of the chance of the last class, in ten parts of as many records each.

    The calibration error is the mean distance between what a part's chances say on average and the share that is seen.
    """
    known = {label: place for place, label in enumerate(classes)}
    places = np.array([known.get(label, -1) for label in truth.tolist()])
    of_truth = np.where(places >= 0, chances[np.arange(places.size), places], 0.0)
    last = chances[:, -1]
    parts = [part for part in np.array_split(np.argsort(last, kind="stable"), _PARTS) if part.size]
    off = [part.size * abs(float(last[part].mean() - (places[part] == len(classes) - 1).mean())) for part in parts]
    return float(-np.log(np.maximum(of_truth, _LEAST_CHANCE)).mean()), sum(off) / places.size


def _regression(found: Any, truth: FloatArray) -> Score:
    error = np.asarray(found, dtype=np.float64) - truth
    total = float(np.sum((truth - truth.mean()) ** 2))
    return Score(1 - float(np.sum(error**2)) / total if total > 0 else 0.0, float(np.abs(error).mean()))
