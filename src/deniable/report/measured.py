"""Sections from what was measured: attack scores against a bound, and the usefulness of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable._shown import shown
from deniable.curves import Tradeoff
from deniable.report.model import Curve, Number, Section, Status
from deniable.report.sections import SMALLEST_FPR

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
    audit: Any, *, fpr: Sequence[float], attack: str, bound: Tradeoff | None = None, command: str | None = None
) -> tuple[Section, Status]:
    """What an attack measured, with exact intervals, and the verdict on the bound, if there is one."""
    sure, members, others = sure_of(audit.confidence), len(audit.member), len(audit.nonmember)
    numbers = [_interval("attack.advantage", "Advantage", audit.advantage(), "Largest TPR − FPR over all thresholds.")]
    for rate in fpr:
        percent = shown(rate, "rate", "nearest")
        meaning = f"Share of members that the attack found while it accused {percent} of non-members ({sure})."
        numbers.append(_interval(f"attack.tpr@fpr={rate:g}", f"TPR at FPR {percent}", audit.tpr(rate), meaning))
    epsilon = audit.epsilon()
    meaning = f"No mechanism with a smaller ε explains these scores ({sure})."
    shows = Number("attack.epsilon", "ε shown by the attack", epsilon.low, meaning, "empirical lower bound", "number")
    notes = [f"{attack}; {members:,} scores of members and {others:,} of non-members; {sure}."]
    if epsilon.low <= 0 and audit.advantage().low <= 0:
        notes.append(f"No leakage detected by this attack at n = {min(members, others):,}; others may do better.")
    status: Status = "measured"  # without a promise there is no verdict
    if bound is not None:
        verdict = audit.compare(bound, command=command)
        status = verdict.outcome
        notes.append(f"Verdict: {verdict}")
    curves = _measured_curves(audit, f"measured attack, {100 * audit.confidence:g}\u00a0% intervals")
    return attack_section([*numbers, shows], sure, notes, curves), status


def _interval(key: str, label: str, interval: Any, meaning: str) -> Number:
    if not interval.resolvable:
        return Number(key, label, None, f"{meaning} Too few non-members to resolve this rate.", "measured interval")
    return Number(key, label, interval.estimate, meaning, "measured interval", low=interval.low, high=interval.high)


def _measured_curves(audit: Any, label: str) -> tuple[Curve, ...]:
    """The measured ROC with its interval at resolvable rates; none if a single nonmember resolves no rate."""
    fpr = np.geomspace(min(0.9, max(SMALLEST_FPR, 1 / len(audit.nonmember))), 0.9, _BAND_POINTS)
    rates = [interval for interval in (audit.tpr(float(rate)) for rate in fpr) if interval.resolvable]
    kept = fpr[len(fpr) - len(rates) :]
    curve = Curve(
        "attack", label, "measured interval", kept.tolist(),
        [i.estimate for i in rates], [i.low for i in rates], [i.high for i in rates],
    )  # fmt: skip
    return (curve,) if rates else ()


def leaks_at_least(audit: Any) -> str:
    """What the attack shows, as a sentence: an interval of its advantage, and ε where it shows one."""
    found, epsilon = audit.advantage(), audit.epsilon().low
    sure = sure_of(audit.confidence)
    between = f"between {shown(found.low, 'rate', 'lower')} and {shown(found.high, 'rate', 'upper')}"
    if max(found.low, epsilon) <= 0:
        return f"This attack shows no leakage: its advantage is {between} ({sure}). Other attacks may do better."
    shows = f"; no ε below {shown(epsilon, 'number', 'lower')} explains its scores" if epsilon > 0 else ""
    return f"Leaks at least this, {sure}: the attack's advantage is {between}{shows}. Other attacks may do better."
