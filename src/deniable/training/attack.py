"""The strongest possible attack on a private fit: the likelihood ratio of everything that it released.

A fit is a deterministic function of the data and of the answers that its noisy channels gave. An attacker who knows
all other records and sees the answers can therefore follow the fit step by step: along the recorded history, what one
record adds to each sum is found by running the fit on that record alone. With Gaussian noise the log-likelihood ratio
of the history is then Σ d·(2x − d)/(2·sd²), where d is what the record adds and x the answer minus the other records'
part. No other attack on the history, nor on the model made from it, has a higher ROC for that record.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable import testing
from deniable._check import FloatArray, InputError, IntArray, choice, integer, number
from deniable._notebook import Textual
from deniable._parallel import in_order
from deniable.audit import AttackScores, Verdict, ratio_advantage
from deniable.curves import Tradeoff, with_assumptions
from deniable.noise.queries import Channel, NoiseSource, SumNoise
from deniable.tables.persons import persons_of
from deniable.tables.schema import as_schema
from deniable.training.features import FeatureColumn, FeatureTable

_CANDIDATES = 1000  # rows among which the worst canary is sought
_FAR = 10.0  # how far outside the targets a regression canary lies, in their standard deviations


@dataclass(frozen=True, eq=False)
class PrivateAttack(Textual):
    """What attacks on one record of a private fit measured, next to the proven bound.

    Attributes
    ----------
    transcript
        Scores of the optimal attack on everything the fit released: exact log-likelihood ratios.
    final
        Scores of an attack that sees the final model only: how well it fits the record.
    promise
        The model's ``tradeoff_``.
    canary
        Which record was attacked.
    path_mu
        The Gaussian DP parameter that the record needed along each simulated fit, at most the certificate's.
    bound_mu
        The certificate's Gaussian DP parameter.
    confidence
        Confidence level of the verdicts.
    """

    transcript: AttackScores
    final: AttackScores
    promise: Tradeoff
    canary: str
    path_mu: FloatArray = field(repr=False)
    bound_mu: float
    confidence: float

    def verdict(self, seen: Literal["transcript", "final"] = "transcript") -> Verdict:
        """Judge the promise by the scores of an attacker who sees the whole history, or the final model."""
        choice("seen", seen, ("transcript", "final"))
        scores = self.transcript if seen == "transcript" else self.final
        return scores.audit(self.confidence).compare(self.promise)

    def advantage(self) -> tuple[float, float]:
        """Return the transcript attack's advantage and its standard error, from the ratios themselves.

        Only for fits with the noise that was promised: otherwise the ratios are not those of the simulated worlds.
        """
        return ratio_advantage(self.transcript)

    def __str__(self) -> str:
        lines = [f"attacked: {self.canary}; {len(self.transcript.member_scores):,} trainings with it, as many without"]
        lines += [f"proven:     advantage at most {self.promise.advantage():.4g}"]
        if self.transcript.details["exact_ratio"]:
            lines += ["transcript: advantage {:.4g} ± {:.2g} (standard error)".format(*self.advantage())]
        lines += [f"transcript: {100 * float(self.path_mu.mean()) / self.bound_mu:.4g} % of the proven μ was needed"]
        for name, scores in (("transcript", self.transcript), ("final model", self.final)):
            lines += [f"{name}: {scores.audit(self.confidence).advantage()}"]
        lines += [
            f"verdict on the transcript: {self.verdict()}",
            f"verdict on the final model: {self.verdict('final')}",
        ]
        return "\n  ".join(lines)


class Recorded:
    """Records the standard deviations, sums and answers of another source of noise, channel by channel."""

    def __init__(self, source: NoiseSource, share: float = 1.0) -> None:
        self._source, self._share = source, share
        self.channels: list[tuple[str, FloatArray, list[IntArray], list[IntArray]]] = []
        self.tossed: dict[str, NDArray[np.bool_]] = {}

    def channel(self, label: str, sd: FloatArray, times: int) -> Channel:
        """Open a channel with ``share`` of the requested noise."""
        inner = self._source.channel(label, sd * self._share, times)
        sums_seen: list[IntArray] = []
        answers: list[IntArray] = []
        self.channels.append((label, np.asarray(sd, np.float64), sums_seen, answers))

        def answer(sums: IntArray) -> IntArray:
            released = inner(sums)
            sums_seen.append(sums.copy())
            answers.append(released)
            return released

        return answer

    def coins(self, label: str, n: int, chance: float) -> NDArray[np.bool_]:
        """Toss the other source's coins."""
        self.tossed[label] = self._source.coins(label, n, chance)
        return self.tossed[label]


class Followed:
    """Replays recorded answers to a fit on one record and accumulates the log-likelihood ratio of its presence."""

    def __init__(self, recorded: Recorded, inside: bool, kinds: IntArray | None = None) -> None:
        self._kinds = kinds  # what the record adds to the counts of kinds (:func:`kinds_added`)
        self._left = iter(recorded.channels)
        self._tossed = recorded.tossed
        self._inside = inside
        self._fresh = SumNoise()
        self.log_ratio = 0.0
        self.squared_mu = 0.0

    def channel(self, label: str, sd: FloatArray, times: int) -> Channel:
        """Open the channel that was opened at this place."""
        known, spread, sums_seen, answers = next(self._left)
        if known != label or not np.array_equal(spread, sd):
            raise RuntimeError(f"the fit asks for {label!r} where the recorded one asked for {known!r}")
        history = zip(sums_seen, answers, strict=True)

        def answer(sums: IntArray) -> IntArray:
            all_sums, released = next(history)
            sums = self._kinds if known == "kinds" and self._kinds is not None else sums
            left = released - all_sums + (sums if self._inside else 0)
            self.log_ratio += float(np.sum(sums * (2.0 * left - sums) / (2 * spread**2)))
            self.squared_mu += float(np.sum((sums / spread) ** 2))
            return released

        return answer

    def coins(self, label: str, n: int, chance: float) -> NDArray[np.bool_]:
        """Return the coin that was tossed for the record, which stands last, or fresh ones if it was not there."""
        return self._tossed[label][-n:] if self._inside else self._fresh.coins(label, n, chance)


def attack_private(
    model: Any,
    X: Any,
    y: Any,
    *,
    record: Literal["worst"] | int = "worst",
    n_trainings: int = 100,
    noise_share: float = 1.0,
    confidence: float = 0.95,
    n_jobs: int | None = None,
) -> PrivateAttack:
    """Train on two neighbouring data sets, many times, and attack each fit: see :meth:`PrivateModel.attack`."""
    integer("n_trainings", n_trainings, at_least=20)
    number("noise_share", noise_share, above=0.0)
    number("confidence", confidence, above=0.5, below=1.0)
    if asked := [use.name for use in model.certificate_.uses if use.delta > 0]:
        raise InputError(f"the attack follows Gaussian sums only, not the discovery of categories ({asked[0]})")
    plan = _Plan(_knowing(model), tuple(model.columns_), noise_share)
    promise, mu, model = model.tradeoff_, model.certificate_.mu, plan.model
    if model.group is not None and not isinstance(X, pd.DataFrame):
        raise InputError("with group=, X must be a data frame whose column names the person")
    y = np.asarray(y)
    if record == "worst":
        rest, canary = (X, y), _worst(plan, X, y)
        like = f"like record {canary.place}" if canary.place >= 0 else "every number at an end of its column"
        words = f"a canary, {like}, with target {canary.y[0]}"
    else:
        place = integer("record", record, at_least=0)
        if place >= len(y):
            raise InputError(f"record must be below the number of records, {len(y)}, got {place}")
        who = np.arange(len(y)) if model.group is None else persons_of(X[model.group])[0]
        own = who == who[place]
        rest, canary = (_rows(X, ~own), y[~own]), _Canary(_rows(X, own), y[own], place)
        words = f"record {place}" if model.group is None else f"the person of record {place}"
    both = _joined(rest[0], canary.X), np.concatenate([rest[1], canary.y])
    plan = replace(plan, kinds=kinds_added(plan.fit, both, rest))

    rng = testing.generator()  # workers do not know of it: each fit gets a seed of its own
    seeds = [None] * 2 * n_trainings if rng is None else rng.integers(2**63, size=2 * n_trainings).tolist()
    jobs = [(i < n_trainings, seed) for i, seed in enumerate(seeds)]
    found = np.array(list(in_order(_one_fit, jobs, n_jobs, plan, both, rest, canary))).reshape(2, n_trainings, 3)
    name = type(model).__name__
    details = {"exact_ratio": noise_share == 1.0, "n_trainings": n_trainings, "canary": words}
    return PrivateAttack(
        AttackScores(found[0, :, 0], found[1, :, 0], "likelihood ratio of the transcript", name, details),
        AttackScores(found[0, :, 1], found[1, :, 1], "fit of the final model", name, details | {"exact_ratio": False}),
        with_assumptions(promise),  # made here, so marked where this attack is
        words,
        np.sqrt(found[:, :, 2].ravel()),
        mu,
        confidence,
    )


def kinds_added(fit: Callable[[Any, Any, NoiseSource], Any], both: Any, rest: Any) -> IntArray | None:
    """Return what a record adds to the counts of kinds: those of distinct words are no sums over records."""
    seen = []
    for X, y in (both, rest):
        recorded = Recorded(SumNoise())
        fit(X, y, recorded)
        seen += [sums[0] for label, _, sums, _ in recorded.channels if label == "kinds"]
    return seen[0] - seen[1] if seen else None


@dataclass(frozen=True, eq=False)
class _Canary:
    X: Any
    y: Any
    place: int


@dataclass(frozen=True, eq=False)
class _Plan:
    """An unfitted model that knows the classes, which both data sets share, and the columns of the fitted one."""

    model: Any
    columns: tuple[FeatureColumn, ...]
    noise_share: float
    kinds: IntArray | None = None

    def fit(self, X: Any, y: Any, source: NoiseSource) -> Any:
        """Return a copy of the model, fitted with another source of noise."""
        fresh = copy.copy(self.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a data set of one record is intended here
            return fresh._fit(X, y, source)


def _one_fit(
    plan: _Plan, both: tuple[Any, Any], rest: tuple[Any, Any], canary: _Canary, job: tuple[bool, int | None]
) -> tuple[float, float, float]:
    """Fit once, with the canary or without: log-likelihood ratio, fit of the final model to the canary, squared μ."""
    inside, seed = job
    X, y = both if inside else rest
    recorded = Recorded(SumNoise(), plan.noise_share)
    with nullcontext() if seed is None else testing.insecure_noise(np.random.default_rng(seed)):
        fitted = plan.fit(X, y, recorded)
        followed = Followed(recorded, inside, plan.kinds)
        plan.fit(canary.X, canary.y, followed)
    return followed.log_ratio, _fits(fitted, canary), followed.squared_mu


def _fits(fitted: Any, canary: _Canary) -> float:
    """Return how much the model prefers the canary's own targets: log-odds, or minus the absolute errors."""
    if not hasattr(fitted, "classes_"):
        return -float(np.sum(np.abs(fitted.predict(canary.X) - canary.y)))
    scores = fitted.decision_function(canary.X)
    if scores.ndim == 1:
        return float(np.sum(np.where(canary.y == fitted.classes_[1], scores, -scores)))
    own = np.searchsorted(fitted.classes_, canary.y)
    rivals = np.where(np.arange(scores.shape[1]) == own[:, None], -np.inf, scores)
    return float(np.sum(scores[np.arange(len(own)), own] - np.logaddexp.reduce(rivals, axis=1)))


def _worst(plan: _Plan, X: Any, y: Any) -> _Canary:
    """Return the row and target that contributed most to one fit, which is made for this alone.

    Each row of the data (at most 1,000, evenly spaced), and the first one with all numbers at one end of their columns,
    is tried with every class, or with targets far outside: labels that contradict the model keep a contribution at
    its bound. A person is tried with as many records as count in full.
    """
    model = plan.model
    places = np.unique(np.linspace(0, len(y) - 1, min(len(y), _CANDIDATES)).astype(int))
    if hasattr(model, "classes"):
        targets = np.asarray(model.classes)
    else:
        targets = np.array([y.min() - _FAR * y.std(), y.max() + _FAR * y.std()])
        targets = np.maximum(targets, 0.0) if model.loss == "poisson" else targets
    rows = _joined(_rows(X, places), _corners(plan, X))
    place, target = np.repeat([*places, -1, -1], len(targets)), np.tile(targets, len(places) + 2)
    copies = 1 if model.group is None else model.records_per_person
    tried = np.repeat(np.arange(len(rows)), len(targets) * copies)
    tried = _own_persons(_rows(rows, tried), X, model.group, copies)
    recorded = Recorded(SumNoise(), 1.0)
    plan.fit(X, y, recorded)
    followed = Followed(recorded, False)
    exposure = plan.fit(tried, np.repeat(target, copies), followed).record_tradeoffs_.mu
    best = int(np.argmax(exposure))
    part = np.arange(best * copies, (best + 1) * copies)
    return _Canary(_rows(tried, part), np.repeat(target[best], copies), int(place[best]))


def _corners(plan: _Plan, X: Any) -> Any:
    """Return the first row twice, with every number at its column's smallest and at its largest value."""
    corners = _rows(X, np.array([0, 0])).copy()
    features = X if plan.model.group is None else X.drop(columns=plan.model.group)
    table = FeatureTable(features, as_schema(plan.model.schema))
    for column in plan.columns:
        values = table.numbers(column)
        if column.kind != "number" or np.isnan(values).all():
            continue
        ends = [np.nanmin(values), np.nanmax(values)]
        if isinstance(X, pd.DataFrame):
            corners[features.columns[column.place]] = ends
        else:
            corners[:, column.place] = ends
    return corners


def _own_persons(rows: Any, X: Any, group: Any, copies: int) -> Any:
    """Give every ``copies`` rows a new person, absent from the data."""
    if group is None:
        return rows
    labels = np.arange(len(rows)) // copies
    numeric = pd.api.types.is_numeric_dtype(X[group].dtype)
    new = X[group].max() + 1 + labels if numeric else np.array([f"canary {k}" for k in labels], dtype=object)
    out = rows.copy()
    out[group] = new
    return out


def _knowing(model: Any) -> Any:
    """Return an unfitted copy that knows the classes beforehand, as a single record has only one, and the persons."""
    from sklearn.base import clone

    fresh = clone(model)
    if hasattr(model, "classes_"):
        fresh.classes = list(model.classes_)
    fresh.group = model._person
    return fresh


def _rows(X: Any, chosen: Any) -> Any:
    """Return rows by position or by a mask."""
    return X.iloc[np.arange(len(X))[chosen]] if isinstance(X, pd.DataFrame) else np.asarray(X)[chosen]


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, pd.DataFrame):
        return pd.concat([first, second], ignore_index=True)
    return np.concatenate([np.asarray(first), second])
