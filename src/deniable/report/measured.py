"""Sections from what was measured: attack scores against a bound, and the usefulness of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deniable._notebook import USUAL_FPRS
from deniable._shown import shown
from deniable.curves import Tradeoff
from deniable.report.model import Curve, Number, Section, Status
from deniable.report.sections import SMALLEST_FPR, roc_curve

_ALWAYS = (0.001, 0.01)  # false positive rates that every page of an attack has
_BAND_POINTS = 25  # rates at which a measured ROC is drawn with its interval
POPULATION_GAME = "the attacker is given a record and says whether it was in; its scores were measured on known records"


OTHER_ATTACKS = "Attacks other than this one: a measurement never bounds what others can reach."
OUTCOMES = {
    "violated": "A measured attack exceeds the promised bound: what was promised does not hold.",
    "consistent": "This attack does not contradict the promise.",
    "inconclusive": "This attack cannot contradict the promise yet: what was seen is too little, or just not enough.",
}


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
        percent = shown(rate, "rate", "nearest")
        meaning = f"Share of members that the attack found while it accused {percent} of non-members ({sure})."
        meaning += promised(float(bound.tpr(rate)) if bound is not None else 0.0)
        numbers.append(_interval(f"attack.tpr@fpr={rate:g}", f"TPR at FPR {percent}", audit.tpr(rate), meaning))
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
            notes.append(
                f"The interval of the TPR at FPR {shown(above[0], 'rate', 'nearest')} alone is above the promise."
            )
        notes += verdict_notes(verdict)
        headline = of_verdict(verdict, status) + (headline if status != "violated" else "")
    curves = list(_measured_curves(audit, f"measured attack, {100 * audit.confidence:g}\u00a0% intervals"))
    if bound is not None:
        curves.insert(0, promise_curve(verdict, bound))
    return attack_section(numbers, sure, notes, curves), status, headline.strip()


def of_verdict(verdict: Any, status: Status) -> str:
    """Return an outcome in a sentence that names the promise."""
    return f"{OUTCOMES[status]} Promised: {verdict.promise}. "


def promise_curve(verdict: Any, bound: Tradeoff) -> Curve:
    """Return the picture of what was promised, named as the verdict names it."""
    return roc_curve("promise", f"promised: {verdict.promise}", bound)


def verdict_notes(verdict: Any) -> list[str]:
    """Return a verdict as remarks, a line each."""
    return [line.strip() for line in f"Verdict: {verdict}".splitlines()]


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
        return f"Leaks at least this, {sure}: the attack's advantage is {between}{shows}. Other attacks may do better."
    if audit.warnings:
        return f"Not decided: {audit.warnings[0][0].lower()}{audit.warnings[0][1:]}"
    if alone := audit.excluding(fpr):
        return f"Not decided: {alone[0]} excludes guessing, but not all tests together. Collect more scores."
    power = shown(audit.could_find(), "rate", "upper")
    return (
        f"This attack shows no leakage: its advantage is {between} ({sure}). It would have found one of {power} every "
        "other time. Other attacks may do better."
    )
