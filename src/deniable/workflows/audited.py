"""Audits with a promise of their own: sequential, a checked promise, one run with canaries."""

from __future__ import annotations

from dataclasses import replace

from deniable import testing
from deniable._shown import Unit, shown
from deniable.audit import Interval, OneRunAudit, PromiseCheck, SequentialAudit
from deniable.curves import Assumptions, Tradeoff
from deniable.mechanisms import Mechanism
from deniable.report import (
    NOT_COVERED,
    OTHER_ATTACKS,
    OUTCOMES,
    Asked,
    Assessment,
    Number,
    Status,
    attack_section,
    sure_of,
)
from deniable.workflows.assessing import assesses

_TWO_WORLDS = "two neighbouring inputs are fixed; the attacker is given a fresh release of one and says of which"


@assesses(SequentialAudit, what="a sequential audit")
def assess_sequential(source: SequentialAudit, asked: Asked) -> Assessment:
    """Return what a sequential audit shows by now, its verdict, and the picture of the wealth."""
    return _against_a_promise(source, asked, "Scores as they came", "A sequential audit")


@assesses(PromiseCheck, what="a checked promise")
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


@assesses(OneRunAudit, what="an audit of one run")
def assess_one_run(source: OneRunAudit, asked: Asked, *, bound: Tradeoff | Mechanism | None = None) -> Assessment:
    """Return what the canaries of one training run show; ``bound`` is the promise that they are compared with."""
    sure = sure_of(source.confidence)
    numbers = (
        *_shown(source, asked.delta, sure),
        Number("attack.right", "Right guesses", source.right / max(source.guesses, 1),
               f"{source.right:,} of {source.guesses:,}; ½ is guessing.", "exact"),
        Number("attack.canaries", "Canaries", float(source.canaries),
               "Records put into the training set by the toss of a fair coin each.", "exact", unit="count"),
        Number("attack.control", "Negative controls that show an ε", source.false_alarms,
               f"Of {len(source.controls)}: the same scores, guessing coins that were tossed anew; about "
               f"{100 * (1 - source.confidence):.2g} % or fewer may.", "exact"),
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
    if bound is not None:
        verdict = source.compare(bound)
        status, headline = verdict.outcome, OUTCOMES[verdict.outcome]
        notes.append(f"Verdict: {verdict}")
    return Assessment(
        title=asked.title or "An audit of one training run",
        status=status,
        headline=headline,
        warnings=source.warnings,
        alert=" ".join(source.warnings),
        sections=(attack_section(numbers, sure, notes),),
        assumptions=Assumptions(
            game="each canary is in by a fair coin tossed before the one training; the attacker guesses the coins",
            adjacency="add or remove one canary",
            access="whatever the attack that made the scores was given",
            notes=testing.marked(
                ("The coins are fair, independent, and not known to whoever scores the canaries.",),
                isinstance(bound, Tradeoff) and bound.assumptions.insecure,
            ),
        ),
        not_covered=(
            OTHER_ATTACKS,
            "Rare disasters: a mechanism that seldom leaks everything about all records at once promises a small "
            "advantage for each, and one run cannot tell it from a harmless one. That is why the limit of the "
            "advantage is low.",
            *NOT_COVERED,
        ),
    )


def _against_a_promise(audit: SequentialAudit, asked: Asked, attack: str, title: str) -> Assessment:
    verdict, sure = audit.verdict(), sure_of(audit.confidence)
    numbers = (
        *_shown(audit, asked.delta, sure),
        Number("attack.p", "p-value, valid at any time", verdict.p_value,
               "Under the promise, the probability that it is ever as small as this is at most this.", "exact",
               unit="number"),
        Number("attack.pairs", "Pairs of scores", float(verdict.pairs),
               "Of a member's and a nonmember's score, each of a fresh training.", "exact", unit="count"),
    )  # fmt: skip
    return Assessment(
        title=asked.title or title,
        status=verdict.outcome,
        headline=OUTCOMES[verdict.outcome],
        warnings=verdict.warnings,
        alert=" ".join(verdict.warnings),
        sections=(attack_section(numbers, sure, [f"{attack}; {sure}.", f"Verdict: {verdict}"]),),
        assumptions=Assumptions(
            game=_TWO_WORLDS,
            adjacency="the two neighbouring inputs that were run, and no others",
            access="whatever the attack that made the scores was given",
            notes=testing.marked(
                ("Every release is a fresh run, independent of all others.",), audit.promise.assumptions.insecure
            ),
        ),
        not_covered=(OTHER_ATTACKS, "Other neighbouring inputs: a promise covers all of them.", *NOT_COVERED),
    )


def _shown(audit: SequentialAudit | OneRunAudit, delta: float, sure: str) -> list[Number]:
    """Lower bounds: what no mechanism that explains the scores stays below."""
    rows: list[tuple[str, str, Unit, Interval, str]] = [
        ("advantage", "Advantage shown by the attack", "rate", audit.advantage(), "mechanism with a smaller advantage"),
        ("epsilon", "ε shown by the attack", "number", audit.epsilon(), "mechanism with a smaller ε"),
        (f"epsilon@delta={delta:g}", f"ε shown at δ = {delta:g}", "number", audit.epsilon(delta),
         f"(ε, {delta:g})-DP mechanism with a smaller ε"),
        ("mu", "μ shown by the attack", "number", audit.mu(), "Gaussian DP mechanism with a smaller μ"),
    ]  # fmt: skip
    return [
        Number(f"attack.{key}", label, found.low, f"No {what} explains these scores ({sure}).", "empirical lower bound",
               unit, low=found.low if key == "advantage" else None)
        for key, label, unit, found, what in rows
    ]  # fmt: skip
