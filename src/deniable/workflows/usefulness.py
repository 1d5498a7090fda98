"""How useful a private model is compared with an unprotected one and with guessing, on records held out from both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata, t as student

from deniable._check import FloatArray, InputError, IntArray
from deniable._shown import Unit, shown
from deniable.report import NOTHING, Number, Section
from deniable.tables import WORD

_FEW = 10  # records of a group: of fewer no interval covers as often as it says
_PARTS = 10  # of the records, by chance, that calibration is measured in
_LEAST_CHANCE = 1e-15  # that a log loss takes, as scikit-learn's did: a certain mistake costs 35 nats, not infinity
_MOST_CATEGORIES = 200  # per column, below the 255 that scikit-learn's boosted trees take
_MOST_RECORDS = 50_000  # that the unprotected model is fitted to: its scores hardly rise beyond
_HELPS = (
    "What would help: a weaker target (for example twice the advantage), more records, fewer columns, which share the "
    "budget, or a schema with their public ranges."
)
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


@dataclass(frozen=True)
class ScoreLost:
    """What the protection costs, of AUC, accuracy or R², and where the truth lies at 95 %; None: not known."""

    of: str
    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Usefulness:
    """A private model, an unprotected one (None without training records) and guessing, on the same records."""

    classification: bool
    n: int
    private: Score
    plain: Score | None
    guess: Score
    noise: float
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
        return f"This model is no better than {what} on {where}: do not use it. {_HELPS}"

    @property
    def sentence(self) -> str:
        """The comparison in one sentence."""
        if not self.classification:
            beside = f" (unprotected: {_plain(self.plain.first)})" if self.plain else ""
            reached = f"On {self.n:,} held-out records, without noise, R² is {_plain(self.private.first)}{beside}"
            return f"{reached}; predicting the mean reaches 0."
        beside = f"unprotected: {_rate(self.plain.first)}, " if self.plain else ""
        ranking = "" if self.private.second is None else f", AUC {_plain(self.private.second)}"
        if ranking and self.plain and self.plain.second is not None:
            ranking += f" (unprotected: {_plain(self.plain.second)})"
        low, high = _wilson(self.private.first, self.n)
        return (
            f"The model predicts {_rate(self.private.first)} of {self.n:,} held-out records correctly "
            f"({shown(low, 'rate', 'lower', 3)} to {shown(high, 'rate', 'upper', 3)} at 95\u00a0%; measured without "
            f"noise; {beside}always the most frequent class: {_rate(self.guess.first)}){ranking}."
        )

    def section(self) -> Section:
        """Return the comparison as a part of a report."""
        kinds: list[tuple[str, str, str, Unit]] = [
            ("first", "r2", "R²", "number"), ("second", "mae", "Mean absolute error", "number"),
        ]  # fmt: skip
        if self.classification:
            kinds = [
                ("first", "accuracy", "Accuracy", "rate"), ("second", "auc", "AUC", "number"),
                ("log_loss", "log_loss", "Log loss in nats", "number"),
                ("calibration", "calibration", "Calibration error", "rate"),
            ]  # fmt: skip
        rows = [
            ("private", "this model", self.private,
             f"Measured on {self.n:,} records that the model was not fitted to."),
            ("plain", "without protection", self.plain,
             f"Gradient boosted trees fitted to the same records, {_MOST_RECORDS:,} at most, without any protection."),
            ("guess", "always the most frequent class" if self.classification else "always the mean", self.guess,
             "What needs no data about anybody but the frequencies."),
        ]  # fmt: skip
        numbers = []
        for field, kind, name, unit in kinds:
            for who, words, score, meaning in rows:
                value: float | None = getattr(score, field, None)
                if value is None:
                    continue
                value = value if kind == "accuracy" else float(f"{value:.3g}")
                number = Number(
                    f"use.{kind}.{who}", f"{name} (not protected), {words}", value, meaning, "estimate", unit
                )
                if kind == "accuracy":
                    low, high = _wilson(value, self.n)
                    seen = f"{meaning} {_rate(value)} were seen; a 95\u00a0% interval (Wilson)."
                    number = replace(number, meaning=seen, kind="measured interval", low=low, high=high)
                numbers.append(number)
        if self.loss is not None:
            meaning = "The unprotected model's minus this one's: 95\u00a0% interval, from the same records."
            lost = Number("use.loss", f"{self.loss.of} lost by the protection (not protected)", None,
                          f"{meaning} They are too few to tell.", "measured interval", "number")  # fmt: skip
            if self.loss.low is not None and self.loss.high is not None:
                low, high = math.floor(1000 * self.loss.low) / 1000, math.ceil(1000 * self.loss.high) / 1000
                lost = replace(lost, value=round(self.loss.estimate, 3), meaning=meaning, low=low, high=high)
            numbers.insert(0, lost)
        return Section(
            "use", "What the model is good for", "Measured on held-out records, without noise: not covered by the "
            "guarantee.", tuple(numbers),
            notes=(NOT_PROTECTED,), protected=False,
        )  # fmt: skip


def _wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share of ``n`` (Wilson 1927), rounded outwards to tenths of a percent."""
    found = binomtest(round(share * n), n).proportion_ci(0.95, "wilson")
    return math.floor(1000 * found.low) / 1000, math.ceil(1000 * found.high) / 1000


def _rate(value: float) -> str:
    return shown(value, "rate", "nearest", 3)


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def measure(model: Any, X: Any, y: Any, *, plain: Any = None) -> Usefulness:
    """Return how useful ``model`` is on (X, y) compared with the fitted unprotected model ``plain`` and guessing.

    With ``plain``, what the protection costs comes with a 95 % interval: both models are asked about the same records.
    """
    truth = np.asarray(y)
    if len(truth) == 0 or len(truth) != len(X):
        raise InputError(f"X and y must hold the same records, at least one; got {len(X)} and {len(truth)}")
    models = [one for one in (model, plain) if one is not None]
    groups = np.zeros(truth.size, dtype=bool)  # records of a class, where a score compares classes
    if not hasattr(model, "classes_"):
        truth, of = truth.astype(np.float64), "R²"
        answers = [np.asarray(one.predict(X), dtype=np.float64) for one in models]
        parts = [_parts_of_r2(found, truth) for found in answers]
        scores = [Score(float(part.mean()), float(np.abs(found - truth).mean()))
                  for part, found in zip(parts, answers, strict=True)]  # fmt: skip
        guess, noise = Score(0.0, float(np.abs(truth - truth.mean()).mean())), 2 / float(np.sqrt(truth.size))
    else:
        classes, counts = np.unique(truth, return_counts=True)
        pairs = counts[0] * counts[-1] if classes.size == 2 else 1
        noise = 2 * float(np.sqrt((truth.size + 1) / (12 * pairs))) if classes.size == 2 else 0.05
        known = [list(one.classes_) for one in models]
        chances = [np.asarray(one.predict_proba(X)) for one in models]
        asked = list(zip(known, chances, strict=True))
        parts = [(np.asarray(names)[found.argmax(axis=1)] == truth).astype(np.float64) for names, found in asked]
        scores = [
            Score(float(right.mean()), _auc(names, found, truth), *_fits(names, found, truth))
            for right, (names, found) in zip(parts, asked, strict=True)
        ]
        of = "Accuracy"
        if classes.size == 2 and all(score.second is not None for score in scores):
            of, groups = "AUC", truth == classes[1]
            parts = [_placements(found[:, names.index(classes[1])], groups) for names, found in asked]
        guess = Score(float(counts.max() / truth.size), 0.5 if classes.size > 1 else None)
    loss = None if plain is None else _score_lost(of, parts[1] - parts[0], groups)
    beside = None if plain is None else scores[1]
    return Usefulness(hasattr(model, "classes_"), truth.size, scores[0], beside, guess, noise, loss)


def _score_lost(of: str, apart: FloatArray, groups: NDArray[np.bool_]) -> ScoreLost:
    """The difference of two scores that are means within each group of records, and its 95 % interval (Welch's t).

    Of the AUC the parts are those of DeLong, DeLong and Clarke-Pearson (1988). The squares of a group have one more, as
    Agresti and Min (2005) add half a record on which either model alone is right: few records seldom show one. Without
    ten records in a group, or ten that share the spread of R², which one record may have alone, nothing can be said.
    """
    parts = [part for part in (apart[groups], apart[~groups]) if part.size]
    estimate, sizes = float(parts[0].mean()), np.array([part.size for part in parts])
    squares = [(part - part.mean()) ** 2 for part in parts]
    shared = [one.sum() ** 2 >= _FEW * (one**2).sum() for one in squares]
    if sizes.min() < _FEW or (of == "R²" and not all(shared)):
        return ScoreLost(of, estimate, None, None)
    errors = (np.array([one.sum() for one in squares]) + 1) / (sizes - 1) / sizes
    freedom = errors.sum() ** 2 / (errors**2 / (sizes - 1)).sum()
    error = float(student.ppf(0.975, freedom) * np.sqrt(errors.sum()))
    return ScoreLost(of, estimate, estimate - error, estimate + error)


def _placements(found: FloatArray, positive: NDArray[np.bool_]) -> FloatArray:
    """The share of the other class against which each record is ranked rightly, ties half: means are the AUC."""
    below, placed = rankdata(found), np.empty(found.size)
    for group, right in ((positive, True), (~positive, False)):
        share = (below[group] - rankdata(found[group])) / (~group).sum()
        placed[group] = share if right else 1 - share
    return placed


def _parts_of_r2(found: FloatArray, truth: FloatArray) -> FloatArray:
    """A value a record whose mean is R² and whose spread is that of R² (its influence); 0 where nothing varies."""
    off, spread = (found - truth) ** 2, (truth - truth.mean()) ** 2
    if not spread.any():
        return np.zeros(truth.size)
    left = off.mean() / spread.mean()
    return 1 - left - (off - left * spread) / spread.mean()  # type: ignore[no-any-return]


class Unprotected:
    """Gradient boosted trees without any protection, on a private model's columns: numbers, or texts if these are more.

    Rare and unseen texts are missing. It is fitted to these ``rows``, or to 50,000 of them at equal distances, one
    column after the other: a table is not copied.
    """

    def __init__(self, X: pd.DataFrame, rows: NDArray[np.bool_], y: Any, private: Any, *, classification: bool) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        self._schema = private.schema_
        self._names = [column.name for column in private.columns_]
        self._known: dict[Any, list[str]] = {}
        kind = HistGradientBoostingClassifier if classification else HistGradientBoostingRegressor
        trees = kind(categorical_features="from_dtype", random_state=0)
        places = np.flatnonzero(rows)
        some = np.linspace(0, places.size - 1, min(places.size, _MOST_RECORDS)).astype(np.int64)
        self._trees = trees.fit(self._frame(X, places[some]), np.asarray(y)[some])
        self.classes_ = getattr(self._trees, "classes_", None)

    def predict(self, X: pd.DataFrame) -> Any:
        """Return the predicted values."""
        return self._trees.predict(self._frame(X))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        """Return the chances of the classes."""
        return self._trees.predict_proba(self._frame(X))

    def _frame(self, X: pd.DataFrame, fitted: IntArray | None = None) -> pd.DataFrame:
        made: dict[str, Any] = {}
        for place, name in enumerate(self._names):
            cells = self._schema.column(name).read(X[name] if fitted is None else X[name].iloc[fitted])
            made[str(place)], some = cells.number, fitted is not None
            if name in self._known or (some and np.sum(cells.kind == WORD) > np.sum(~np.isnan(cells.number))):
                codes, texts = cells.coded
                often = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(texts)), kind="stable")
                known = self._known.setdefault(name, [texts[code] for code in often[:_MOST_CATEGORIES]])
                listed = pd.Index(known)
                to_known = np.append(listed.get_indexer(pd.Index(texts, dtype=object)), -1)
                made[str(place)] = pd.Categorical.from_codes(to_known[codes], listed)
        return pd.DataFrame(made)


def _auc(classes: list[Any], chances: FloatArray, truth: Any) -> float | None:
    from sklearn.metrics import roc_auc_score

    present = set(np.unique(truth).tolist())
    if len(present) < 2 or not present <= set(classes) or (len(classes) > 2 and present != set(classes)):
        return None
    if len(classes) == 2:
        return float(roc_auc_score(truth == classes[1], chances[:, 1]))
    return float(roc_auc_score(truth, chances, multi_class="ovr", labels=classes))


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
