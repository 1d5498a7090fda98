"""From results to sections: every sentence that a person reads about a number is written here, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._notebook import USUAL_FPRS
from deniable._shown import percent, plural, shown
from deniable.curves import TUNING_COUNTED, TUNING_PARTLY_COUNTED, Tradeoff
from deniable.report.model import Curve, Number, NumberKind, Section, Status
from deniable.risks import replaced

SMALLEST_FPR = 1e-6  # one wrong accusation in a million: where ROC curves begin
CURVE_POINTS = 181  # 30 per decade from ``SMALLEST_FPR`` to 1, both ends included

OTHER_RISKS = (
    "Attribute inference, reconstruction and leakage about groups of records: this curve says nothing about them."
)


class NotCovered(NamedTuple):
    """What no report covers, each by its name."""

    people: str = "What the result says about people in general, whoever was in the data."
    besides: str = "Anything else that was released: other models, statistics, logs, the data, or a record profile."
    mistakes: str = (
        "Mistakes in the implementation: the bound is for the mechanism as described, with real-valued noise."
    )
    running: str = "Time and memory of a run, files on its owner's disk, and that a run which fails may say why."
    choices: str = (
        "Choices made from the data (hyperparameters, features, stopping times) leak too and are not counted."
    )


NOT_COVERED = NotCovered()
CERTIFIED = NOT_COVERED._replace(mistakes="Mistakes in this package; what is listed as public: it is not protected.")
MEASURED = NOT_COVERED._replace(mistakes="Other runs: another build, machine, setting or record than were attacked.")
NOISE = (
    "Noise is drawn from the operating system's entropy and exact in law: sums of whole numbers get rounded Gaussians, "
    "quantiles of a table are chosen by the exponential mechanism."
)
_OTHER_CHOICES = (
    "Other choices made from the data: features, stopping times or the list of settings, if they were chosen on "
    "the same records, leak too, and are not counted."
)

_ALWAYS = (0.001, 0.01)  # false positive rates that every page of an attack has
_BAND_POINTS = 25  # rates at which a measured ROC is drawn with its interval
POPULATION_GAME = "the attacker is given a record and says whether it was in; its scores were measured on known records"
OTHER_ATTACKS = "Attacks other than this one: a measurement never bounds what others can reach."
OUTCOMES = {
    "violated": "A measured attack exceeds the promised bound: what was promised does not hold.",
    "consistent": "This attack does not contradict the promise.",
    "inconclusive": "This attack cannot contradict the promise yet: what was seen is too little, or just not enough.",
}

TUNING_WARNING = (
    "Hyperparameter tuning on the same data is not included. If several runs were tried and the best one kept, the "
    "guarantee of the whole is weaker than that of the last run."
)
_PARTLY_TUNED = (
    "Hyperparameter tuning on the same data is included for those parts of the composition only that say so. If "
    "another part is the best of several runs, the guarantee of the whole is weaker."
)


@dataclass(frozen=True)
class Asked:
    """Settings that every report has: prior, false positive rates, δ, chances of blind guessing, a title."""

    prior: float
    fpr: tuple[float, ...]
    delta: float
    baselines: tuple[float, ...]
    title: str | None
    command: str | None


def caveats(tradeoff: Tradeoff) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a curve does not cover and what its readers are warned of, by whether it counts tuning in."""
    notes, others = tradeoff.assumptions.notes, () if tradeoff.universal else (OTHER_RISKS,)
    if TUNING_COUNTED in notes:
        return (*others, *NOT_COVERED._replace(choices=_OTHER_CHOICES)), ()
    return (*others, *NOT_COVERED), (_PARTLY_TUNED if TUNING_PARTLY_COUNTED in notes else TUNING_WARNING,)


def bound_section(tradeoff: Tradeoff, asked: Asked, *, comparisons: Mapping[str, Tradeoff] | None = None) -> Section:
    """What any attacker can reach at most, with the ROC and the bounds that other methods give."""
    prior, fpr, delta = asked.prior, asked.fpr, asked.delta
    exact = tradeoff.confidence == 1.0
    sure = "" if exact else f", with confidence {shown(tradeoff.confidence, 'rate', 'lower')}"
    at, guess = percent(prior), max(prior, 1 - prior)
    rows: list[_Row] = [
        ("advantage", "Advantage, prior 50 %", tradeoff.advantage(), 0.0,
         "No attack's true positive rate exceeds its false positive rate by more than this."),
        ("accuracy", "Accuracy, prior 50 %", tradeoff.accuracy(), 0.5,
         "No attacker who sees members and non-members equally often is right more often than this; guessing reaches "
         "50 %."),
        *((f"tpr@fpr={rate:g}", f"TPR at FPR {percent(rate)}", tradeoff.tpr(rate), rate,
           f"An attacker who wrongly accuses at most {percent(rate)} of non-members finds at most this share of "
           "members.") for rate in fpr),
        *((f"precision@fpr={rate:g}", f"Precision at FPR {percent(rate)}, prior {at}",
           tradeoff.precision(rate, prior), prior,
           f"An attacker who wrongly accuses {percent(rate)} of non-members or more is right in at most this share of "
           f"accusations, at a prior of {at}.") for rate in fpr),
    ]  # fmt: skip
    if prior != 0.5:
        rows[2:2] = [
            (f"accuracy@prior={prior:g}", f"Accuracy, prior {at}", tradeoff.accuracy(prior), guess,
             "The same for an attacker who believes beforehand that a record was in with probability "
             f"{at}; guessing reaches {percent(guess)}."),
            (f"advantage@prior={prior:g}", f"Advantage, prior {at}", tradeoff.advantage(prior), 0.0,
             "Twice the accuracy gained over guessing from that prior."),
        ]  # fmt: skip
    epsilon = Number(
        f"bound.epsilon@delta={delta:g}", f"ε at δ = {delta:g}", tradeoff.epsilon(delta),
        "The differential privacy parameter that this guarantee corresponds to, for the two worlds stated below.",
        unit="number", at={"delta": delta},
    )  # fmt: skip
    return Section(
        key="bound",
        title="What any attacker can reach",
        summary=f"Provable upper bound under the assumptions stated{sure}. Method: {tradeoff.method}.",
        numbers=(*_bounds("bound", rows, prior), epsilon),
        curves=(
            roc_curve("bound", "provable upper bound", tradeoff),
            *(roc_curve(f"bound.{name}", name, other) for name, other in (comparisons or {}).items()),
        ),
        holds_for=tradeoff.holds_for,
        confidence=tradeoff.confidence,
    )


_Row = tuple[str, str, float, float, str]  # key, label, upper bound, what blind guessing reaches, meaning


def _bounds(section: str, rows: Sequence[_Row], prior: float = 0.5) -> tuple[Number, ...]:
    return tuple(
        Number(f"{section}.{key}", label, value, meaning, baseline=blind, at=_at(key, prior))
        for key, label, value, blind, meaning in rows
    )


def _at(key: str, prior: float) -> dict[str, float]:
    """The settings that a number is for, as its key names them; precision is at the prior asked for."""
    kind, _, setting = key.partition("@")
    name, _, value = setting.partition("=")
    stated = {"precision": {"prior": prior}, "reconstruction": {}, "tpr": {}}.get(kind, {"prior": 0.5})
    return stated | ({name: float(value)} if setting else {})


def risk_section(curve: Tradeoff, baselines: Sequence[float], *, replacing: Tradeoff | None = None) -> Section:
    """What the curve bounds besides membership: secrets, replaced records, groups.

    ``curve`` has to hold for every record and every data set; ``replacing`` is its curve for replacing a record.
    """
    unit = curve.assumptions.unit
    if replacing is None and curve.assumptions.adjacency.startswith(("add or remove one", "adjacency as its author")):
        replacing = replaced(curve)
    rows: list[_Row] = [
        ("group2", f"Advantage for two {plural(unit)} together", curve.group(2).advantage(), 0.0,
         f"Two {plural(unit)} that are both in or both out, such as "
         f"{'a couple with the same address' if unit == 'person' else 'two of one person'}."),
        *((f"reconstruction@baseline={blind:g}", f"Secret guessed blindly with chance {percent(blind)}",
           curve.reconstruction(blind), blind,
           "An attacker who knows everything else names it at most this often; for instance one of "
           f"{shown(1 / blind, 'count', 'nearest')} equally likely values.") for blind in baselines),
    ]  # fmt: skip
    if replacing is not None:
        meaning = f"Telling which of two contents a {unit} had, both known to the attacker, instead of its presence."
        rows.insert(0, ("replacing", f"Advantage if a {unit} is replaced", replacing.advantage(), 0.0, meaning))
    return Section(
        "risks",
        "Other risks, from the same curve",
        f"Provable upper bounds for every {unit} and every secret in it: reconstruction, attribute inference, linkage, "
        "groups.",
        _bounds("risk", rows),
    )


def roc_curve(key: str, label: str, tradeoff: Tradeoff, kind: NumberKind = "provable upper bound") -> Curve:
    """Return the upper ROC as points, from FPR 0.0001 % to 100 %: a picture, of a sketch."""
    fpr = np.geomspace(SMALLEST_FPR, 1.0, CURVE_POINTS)
    tpr: FloatArray = tradeoff.sketch().tpr(fpr)
    return Curve(key, label, kind, fpr.tolist(), tpr.tolist())


def bound_headline(tradeoff: Tradeoff) -> str:
    """Return the one sentence that a bound alone supports."""
    found = shown(tradeoff.tpr(0.01), "rate", "upper")
    accuracy = shown(tradeoff.accuracy(), "rate", "upper")
    sure = "" if tradeoff.confidence == 1 else f" (confidence {shown(tradeoff.confidence, 'rate', 'lower')})"
    unit = tradeoff.assumptions.unit
    what = (
        f"which of two {plural(unit)} was" if "replace" in tradeoff.assumptions.adjacency else f"whether a {unit} was"
    )
    return (
        f"Provable upper bound{sure}: at even odds, no attacker tells {what} in the data with accuracy above "
        f"{accuracy} (guessing: 50 %), or finds more than {found} of the members at a false positive rate of 1 %, "
        "under the assumptions below."
    )


def sure_of(confidence: float) -> str:
    """Return a confidence in words."""
    return f"{100 * confidence:g}\u00a0% confidence"


def attack_section(numbers: Sequence[Number], sure: str, notes: Sequence[str], curves: Sequence[Curve] = ()) -> Section:
    """What an attack showed at least: for the owner of the records."""
    return Section(
        key="attack",
        title="What an attack measured",
        summary=f"Empirical lower bounds, {sure}. An attack never proves safety: it shows at least this.",
        numbers=tuple(numbers),
        curves=tuple(curves),
        notes=tuple(notes),
        protected=False,
    )


def audit_section(
    audit: Any,
    *,
    fpr: Sequence[float],
    attack: str,
    bound: Tradeoff | None = None,
    promise: Any = None,
    command: str | None = None,
) -> tuple[Section, Status, str]:
    """What an attack measured, with exact intervals, the verdict on the bound, if there is one, and a headline.

    ``promise`` is the mechanism whose curve ``bound`` is, if it is known.
    """
    sure, members, others = sure_of(audit.confidence), len(audit.member), len(audit.nonmember)
    rates = sorted({*fpr, *_ALWAYS})

    def promised(value: float) -> str:
        return "" if bound is None else f" Promised: at most {shown(value, 'rate', 'upper')}."

    most = float(bound.advantage()) if bound is not None else 0.0
    meaning = f"Largest TPR − FPR over all thresholds.{promised(most)}"
    numbers = [_interval("attack.advantage", "Advantage", audit.advantage(), meaning)]
    for rate in rates:
        meaning = f"Share of members that the attack found while it accused {percent(rate)} of non-members ({sure})."
        meaning += promised(float(bound.tpr(rate)) if bound is not None else 0.0)
        numbers.append(_interval(f"attack.tpr@fpr={rate:g}", f"TPR at FPR {percent(rate)}", audit.tpr(rate), meaning))
    meaning = "Probability that a member's score is above a non-member's; 50\u00a0% is guessing."
    numbers.append(_interval("attack.auc", "AUC", audit.auc(), meaning))
    epsilon, power = audit.epsilon(), audit.could_find(bound)
    shows = "shows that it is no guessing" if bound is None else "contradicts the promise"
    meaning = f"No mechanism with a smaller ε explains these scores ({sure})."
    numbers += [
        Number("attack.epsilon", "ε shown by the attack", epsilon.low, meaning, "empirical lower bound", "number"),
        Number("attack.power", "Advantage that could have been found", power if power <= 1 else None,
               f"With this advantage or more, in as many scores, an attack {shows} about half of the time: silence "
               "says nothing about weaker ones.", "estimate"),
    ]  # fmt: skip
    notes = [f"{attack}; {members:,} scores of members and {others:,} of non-members; {sure}."]
    if audit.copies is not None:
        notes.insert(0, f"{audit.copies}.")
    headline = leaks_at_least(audit, rates)
    if audit.copies is not None and audit.copies.rows_of_members:
        headline = f"{notes[0]} {headline}"
    status: Status = "inconclusive" if audit.failed else "measured"
    if bound is not None:
        verdict = replace(audit.compare(bound if promise is None else promise), command=command)
        above = [rate for rate in rates if audit.tpr(rate).low > bound.tpr(rate)]
        status = "inconclusive" if above and verdict.outcome == "consistent" else verdict.outcome
        if status != verdict.outcome:
            notes.append(f"The interval of the TPR at FPR {percent(above[0])} alone is above the promise.")
        notes.append(f"Verdict: {verdict}")
        headline = of_verdict(verdict, status) + (headline if status != "violated" else "")
    curves = list(_measured_curves(audit, f"measured attack, {100 * audit.confidence:g}\u00a0% intervals"))
    if bound is not None:
        curves.insert(0, promise_curve(verdict, bound))
    return attack_section(numbers, sure, notes, curves), status, headline.strip()


def of_verdict(verdict: Any, status: Status) -> str:
    """Return an outcome in a sentence that names the promise."""
    return f"{OUTCOMES[status]} Promised: {verdict.promise}. "


def promise_curve(verdict: Any, bound: Tradeoff) -> Curve:
    """Return the picture of what was promised, named as the verdict names it; a promise is never called proven."""
    return roc_curve("promise", f"promised: {verdict.promise}", bound, "parameter")


def _interval(key: str, label: str, interval: Any, meaning: str) -> Number:
    if not interval.resolvable:
        return Number(key, label, None, f"{meaning} Too few non-members to resolve this rate.", "measured interval")
    return Number(key, label, interval.estimate, meaning, "measured interval", low=interval.low, high=interval.high)


def _measured_curves(audit: Any, label: str) -> tuple[Curve, ...]:
    """The measured ROC with its interval at resolvable rates; none if a single nonmember resolves no rate."""
    fpr = np.geomspace(min(0.9, max(SMALLEST_FPR, 1 / len(audit.nonmember))), 0.9, _BAND_POINTS)
    fpr = np.union1d(fpr, USUAL_FPRS)  # the page's table is of these
    rates = [interval for interval in (audit.tpr(float(rate)) for rate in fpr) if interval.resolvable]
    kept = fpr[len(fpr) - len(rates) :]
    curve = Curve(
        "attack", label, "measured interval", kept.tolist(),
        [i.estimate for i in rates], [i.low for i in rates], [i.high for i in rates],
    )  # fmt: skip
    return (curve,) if rates else ()


def leaks_at_least(audit: Any, fpr: Sequence[float] = _ALWAYS) -> str:
    """What the attack shows, as a sentence that no row contradicts: an interval of its advantage, ε, or its silence."""
    found, epsilon = audit.advantage(), audit.epsilon().low
    sure = sure_of(audit.confidence)
    between = f"between {shown(found.low, 'rate', 'lower')} and {shown(found.high, 'rate', 'upper')}"
    if audit.shows:
        shows = f"; no ε below {shown(epsilon, 'number', 'lower')} explains its scores" if epsilon > 0 else ""
        leak = f"Leaks at least this, {sure}: at even odds the attack's advantage is {between}"
        return f"{leak}{shows}. Other attacks may do better."
    if audit.warnings:
        return f"Not decided: {audit.warnings[0][0].lower()}{audit.warnings[0][1:]}"
    if alone := audit.excluding(fpr):
        return f"Not decided: {alone[0]} excludes guessing, but not all tests together. Collect more scores."
    power = shown(audit.could_find(), "rate", "upper")
    return (
        f"This attack shows no leakage: at even odds its advantage is {between} ({sure}). It would have found one of "
        f"{power} every other time. Other attacks may do better."
    )
