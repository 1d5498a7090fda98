"""Audits with a promise of their own: sequential, a checked promise, one run with canaries."""

from __future__ import annotations

from dataclasses import replace

from deniable import testing
from deniable._shown import shown
from deniable.accounting import tradeoff
from deniable.audit import Interval, OneRunAudit, PromiseCheck, SequentialAudit
from deniable.curves import Assumptions, Tradeoff
from deniable.mechanisms import Mechanism
from deniable.report import (
    MEASURED,
    OTHER_ATTACKS,
    Asked,
    Assessment,
    Curve,
    Number,
    Section,
    Status,
    attack_section,
    of_verdict,
    promise_curve,
    sure_of,
)


def curve_of(promise: Tradeoff | Mechanism | None) -> Tradeoff | None:
    """Return the curve that was promised, if there is one."""
    return tradeoff(promise) if isinstance(promise, Mechanism) else promise


def measured_page(
    title: str, outcome: tuple[Status, str], warnings: tuple[str, ...], section: Section, *, promise: Tradeoff | None,
    game: str, adjacency: str, note: str, uncovered: str = "",
) -> Assessment:  # fmt: skip
    """Return the page of what an attack measured; ``outcome`` is the status and the headline."""
    insecure = promise is not None and promise.insecure
    access = "whatever the attack that made the scores was given"
    return Assessment(
        title, *outcome, (section,), Assumptions(game, adjacency, access, testing.marked((note,), insecure)),
        (OTHER_ATTACKS, *filter(None, [uncovered]), *MEASURED), warnings, alert=" ".join(warnings),
    )  # fmt: skip


def assess_sequential(source: SequentialAudit, asked: Asked) -> Assessment:
    """Return what a sequential audit shows by now, its verdict, and the picture of the wealth."""
    return _against_a_promise(source, asked, "Scores as they came", "A sequential audit")


def assess_check(source: PromiseCheck, asked: Asked) -> Assessment:
    """Return what a check of a promise found, and what it could have found."""
    found = _against_a_promise(source.audit, asked, f"Attack: {source.attack}", "A checked promise")
    trials = Number(
        "attack.trials", "Releases of each world", float(source.trials),
        f"Fresh runs with the record, and as many without; {source.pilot:,} of them taught the attack.", "exact",
        unit="count",
    )  # fmt: skip
    power = Number(
        "attack.power", "ε that could have been found", source.could_have_found,
        "A randomised response with this ε or more breaks the promise so clearly that as many releases find it at "
        "least about half of the time.", "estimate", unit="number",
    )  # fmt: skip
    first, *others = found.sections
    numbers = (*first.numbers, trials, *[power] * (not source.verdict.violated))
    return replace(found, sections=(replace(first, numbers=numbers), *others))


def assess_one_run(source: OneRunAudit, asked: Asked, *, bound: Tradeoff | Mechanism | None = None) -> Assessment:
    """Return what the canaries of one training run show; ``bound`` is the promise that they are compared with."""
    sure = sure_of(source.confidence)
    numbers = (
        *_lower_bounds(source, asked.delta, sure),
        Number("attack.right", "Right guesses", source.right / max(source.guesses, 1),
               f"{source.right:,} of {source.guesses:,}; 50\u00a0% is guessing.", "exact"),
        Number("attack.canaries", "Canaries", float(source.canaries),
               "Records put into the training set by the toss of a fair coin each.", "exact", unit="count"),
        Number("attack.control", "Negative controls that show an ε", source.false_alarms,
               f"Of {len(source.controls)} times that the same scores guessed coins tossed anew. By chance each shows "
               f"one with probability {100 * (1 - source.confidence):.2g}\u00a0% at most.", "exact"),
    )  # fmt: skip
    status: Status = "inconclusive" if source.failed else "measured"
    notes = [f"{source.canaries:,} canaries; {sure}. {source.pilot:,} others chose which of them to guess."]
    low = source.epsilon().low
    headline = (
        f"Leaks at least this, {sure}: no ε below {shown(low, 'number', 'lower')} explains that many right guesses."
        if low > 0
        else f"The guesses about {source.canaries:,} canaries show no leakage ({sure}). Other canaries may. These "
        "numbers do not show that the canaries were trained on."
    )
    if source.warnings and low <= 0:
        headline = f"Not decided: {source.warnings[0][0].lower()}{source.warnings[0][1:]}"
    if source.repetitions > 1:
        notes.append(f"A canary stood {source.repetitions} times in the data; the limits are for one record.")
    curves: tuple[Curve, ...] = ()
    if (promise := curve_of(bound)) is not None and bound is not None:
        verdict = source.compare(bound)
        status, headline = verdict.outcome, of_verdict(verdict, verdict.outcome).strip()
        notes.append(f"Verdict: {verdict}")
        curves = (promise_curve(verdict, promise),)
    return measured_page(
        asked.title or "An audit of one training run", (status, headline), source.warnings,
        attack_section(numbers, sure, notes, curves), promise=promise,
        game="each canary is in by a fair coin tossed before the one training; the attacker guesses the coins",
        adjacency="add or remove one canary",
        note="The coins are fair, independent, and not known to whoever scores the canaries.",
        uncovered="Rare disasters: a mechanism that seldom leaks everything about all records at once promises a small "
        "advantage for each, and one run cannot tell it from a harmless one.",
    )  # fmt: skip


def _against_a_promise(audit: SequentialAudit, asked: Asked, attack: str, title: str) -> Assessment:
    verdict, sure = audit.verdict(), sure_of(audit.confidence)
    numbers = (
        *_lower_bounds(audit, asked.delta, sure),
        Number("attack.p", "p-value, valid at any time", verdict.p_value,
               "Under the promise, the probability that it is ever as small as this is at most this.", "exact",
               unit="number"),
        Number("attack.pairs", "Pairs of scores", float(verdict.pairs),
               "Of a member's and a nonmember's score, each of a fresh training.", "exact", unit="count"),
    )  # fmt: skip
    return measured_page(
        asked.title or title, (verdict.outcome, of_verdict(verdict, verdict.outcome).strip()), verdict.warnings,
        attack_section(
            numbers, sure, [f"{attack}; {sure}.", f"Verdict: {verdict}"], [promise_curve(verdict, audit.promise)]
        ),
        promise=audit.promise,
        game="two neighbouring inputs are fixed; the attacker is given a fresh release of one and says of which",
        adjacency="the two neighbouring inputs that were run, and no others",
        note="Every release is a fresh run, independent of all others.",
        uncovered="Other neighbouring inputs: a promise covers all of them.",
    )  # fmt: skip


def _lower_bounds(audit: SequentialAudit | OneRunAudit, delta: float, sure: str) -> list[Number]:
    """Return lower bounds, what no mechanism that explains the scores stays below; one run shows no advantage."""
    rows: list[tuple[str, str, Interval, str]] = [
        ("epsilon", "ε shown by the attack", audit.epsilon(), "mechanism with a smaller ε"),
        (f"epsilon@delta={delta:g}", f"ε shown at δ = {delta:g}", audit.epsilon(delta),
         f"(ε, {delta:g})-DP mechanism with a smaller ε"),
        ("mu", "μ shown by the attack", audit.mu(), "Gaussian DP mechanism with a smaller μ"),
    ]  # fmt: skip
    exceeded = [
        Number(f"attack.{key}", label, found.low, f"No {what} explains these scores ({sure}).", "empirical lower bound",
               "number")
        for key, label, found, what in rows
    ]  # fmt: skip
    low, why = None, "Not shown: a mechanism that seldom leaks everything about all records promises a small one, too."
    if isinstance(audit, SequentialAudit):
        low, why = audit.advantage().low, f"No mechanism with a smaller advantage explains these scores ({sure})."
    name = "Advantage shown by the attack"
    return [Number("attack.advantage", name, low, why, "empirical lower bound", low=low), *exceeded]
