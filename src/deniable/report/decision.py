"""The decision: whether a report meets a policy, which number decides, and what would change it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deniable import testing
from deniable._shown import percent, shown
from deniable.curves import EVERY_CASE
from deniable.limits import Limit
from deniable.report.policy import Policy

if TYPE_CHECKING:
    from deniable.report.model import Assessment, Number, Section

_HOPELESS = ("No setting of a single parameter of this mechanism meets the policy within a factor of 10,000.",)
NOTHING = "and the unprotected model finds nothing in these columns either"  # what then helps no model is not advised
DecisionOutcome = Literal["meets", "does not meet", "not decided"]
RuleOutcome = Literal["met", "missed", "not decided", "not asked"]


@dataclass(frozen=True)
class Rule:
    """One rule of a policy held against the report.

    Attributes
    ----------
    key
        Its name in :class:`~deniable.Policy`.
    label
        What it asks, in words.
    limit
        What the policy allows.
    outcome
        "met", "missed", "not decided", or "not asked" where the report has nothing to hold against it and the policy
        does not require it.
    found
        The number that was held against the limit; None if there is none.
    number
        Its key in the assessment.
    why
        One sentence.

    Examples
    --------
    See ``Policy``.
    """

    key: str
    label: str
    limit: float | None
    outcome: RuleOutcome
    found: float | None
    number: str | None
    why: str

    @property
    def excess(self) -> float:
        """What was found as a multiple of the limit; the rule with the largest one decides."""
        if self.found is None or self.limit is None:
            return -1.0
        return self.found / self.limit if self.limit > 0 else (math.inf if self.found > 0 else 0.0)


@dataclass(frozen=True)
class Decision:
    """Whether a report meets a policy, and why.

    Attributes
    ----------
    outcome
        "meets", "does not meet" or "not decided". A missed rule decides; if none is missed, one that is not decided.
    policy
        The limits that the report was held against.
    reason
        The decision in one sentence.
    decided_by
        The rule that decides.
    rules
        Every rule with what was found.
    changes
        What would change it: computed settings of the mechanism, where they can be computed.

    Examples
    --------
    See ``Policy``.
    """

    outcome: DecisionOutcome
    policy: Policy
    reason: str
    decided_by: str | None
    rules: tuple[Rule, ...]
    changes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The outcome in words; a policy that is met here, but for a rule on usefulness, is not called met."""
        if self.met and any(rule.key == "utility_loss" and rule.outcome == "not asked" for rule in self.rules):
            return "Meets the policy's limits on leakage; usefulness was not judged here"
        return "Not decided" if self.outcome == "not decided" else f"{self.outcome.capitalize()} the policy"

    @property
    def basis(self) -> str:
        """What stands next to the verdict: whether it rests on scores that no noise protects, too."""
        held_out = any(rule.key == "utility_loss" and rule.outcome != "not asked" for rule in self.rules)
        return " (rests on held-out scores, measured without noise: not protected)" if held_out else ""

    @property
    def met(self) -> bool:
        """Whether the policy is met; False also where it is not decided."""
        return self.outcome == "meets"


def decide(assessment: Assessment, policy: Policy) -> Decision:
    """Hold the numbers of a report against a policy.

    What is asked to be proven is compared with provable upper bounds only, the worst one where there are several; a
    measured attack can miss a limit, it can never meet one.
    """
    rules = tuple(_rules(assessment, policy))
    outcome, reason, decided_by = _outcome(assessment, rules)
    return Decision(outcome, policy, reason, decided_by, rules, ())


def _outcome(a: Assessment, rules: Sequence[Rule]) -> tuple[DecisionOutcome, str, str | None]:
    """What rules decide together, why, and the key of the one that does."""
    kinds = ("missed", "not decided", "met", "not asked")
    missed, unknown, met, left = ([rule for rule in rules if rule.outcome == kind] for kind in kinds)
    if a.assumptions.insecure:
        return "not decided", testing.INSECURE, None
    if a.status == "violated":
        reason = "A measured attack is above the bound, beyond its error: nothing that was promised counts as met."
        return "does not meet", reason, "measured"
    if missed:
        first = max(missed, key=lambda rule: (rule.key != "utility_loss", rule.excess))
        others = "" if len(missed) == 1 else f" {len(missed) - 1} more of {len(rules)} rules missed."
        return "does not meet", first.why + others, first.key
    if unknown or not met:
        first = (unknown or rules)[0]
        return "not decided", first.why, first.key
    first = max(met, key=lambda rule: rule.excess)
    rest = f" Not part of this report: {', '.join(_lower(rule.label) for rule in left)}." if left else ""
    return "meets", f"Every rule that applies is met. Closest: {_lower(first.why)}{rest}", first.key


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _rules(a: Assessment, policy: Policy) -> Iterable[Rule]:
    attacked = _shown_by_attacks(a, "advantage")
    if (asked := policy.limit("advantage")) is not None:
        yield _proven(a, policy, asked, "Advantage of every attacker at even odds", attacked)
    if (asked := policy.limit("tpr")) is not None:
        label = f"Members found at {percent(asked.fpr or 0.0)} false accusations"
        yield _proven(a, policy, asked, label, _shown_by_attacks(a, f"tpr@fpr={asked.fpr:g}"))
    if (asked := policy.limit("reconstruction")) is not None:
        yield _secret(a, asked)
    if policy.measured is not None:
        yield _attack(a, policy, attacked, policy.measured)
    elif "attack" in policy.require and not _attacks(a):
        yield _missing("attack", "A measured attack", "The policy requires an attack, and none is part of this report.")
    if "records" in policy.require and not _numbers(a, r"records\.worst\.advantage"):
        yield _missing("records", "A record profile", "The policy requires a record profile, and there is none.")
    if policy.utility_loss is not None or "utility" in policy.require:
        yield _utility(a, policy)


def _attacks(a: Assessment) -> list[Section]:
    return [section for section in a.sections if re.fullmatch(r"attack\d*", section.key)]


def _shown_by_attacks(a: Assessment, name: str) -> list[Number]:
    """What attacks show at least, the largest first; an attack that shows no such thing has no part in it."""
    found = _numbers(a, r"attack\d*\." + re.escape(name))
    return sorted((n for n in found if n.low is not None and n.low >= 0), key=lambda n: -(n.low or 0.0))


def contradicted(a: Assessment) -> bool:
    """Return whether an attack shows a larger advantage than is proven on the same page."""
    proven, shows = _upper(a, "bound", "advantage", None), _shown_by_attacks(a, "advantage")
    return proven is not None and bool(shows) and (shows[0].low or 0.0) > _size(proven)


def _proven(a: Assessment, policy: Policy, asked: Limit, label: str, attacks: list[Number]) -> Rule:
    """A rule on what is proven: the bound of the mechanism, or of this data set if the policy allows it."""
    key, limit, rate = asked.kind, asked.most, asked.fpr
    bound, record = _upper(a, "bound", key, rate), _upper(a, r"records\.worst", key, rate)
    found = record or bound if policy.scope == "this data set" else bound or record
    if attacks and (low := attacks[0].low or 0.0) > limit:
        why = f"{label}: an attack shows at least {shown(low, 'rate', 'lower')}; the policy allows {percent(limit)}."
        return Rule(key, label, limit, "missed", low, attacks[0].key, why)
    if found is None:
        why = f"{label}: nothing is proven in this report; a weak attack does not rule out stronger ones."
        return _missing(key, label, why, limit)
    outcome: RuleOutcome = "met" if _size(found) <= limit else "missed"
    why = f"{label}: at most {found.shown} proven {_for(a, found)}; the policy allows {percent(limit)}."
    if outcome == "met" and not _covers(a, found, policy):
        outcome = "not decided"
        why = f"{label}: at most {found.shown} {_for(a, found)} only; the policy asks for {policy.scope}."
    return Rule(key, label, limit, outcome, _size(found), found.key, why)


def _section_of(a: Assessment, number: Number) -> Section:
    return next(section for section in a.sections if number in section.numbers)


def _covers(a: Assessment, number: Number, policy: Policy) -> bool:
    """Whether what a number bounds is as much as the policy asks for."""
    if number.key.startswith("records"):
        return policy.scope == "this data set"
    held = _section_of(a, number).holds_for
    return held == EVERY_CASE or (policy.scope == "this data set" and held.endswith(_CERTIFICATE))


_CERTIFICATE = "(a release certificate)"  # ends what a certificate of a release holds for: all records of its data


def _for(a: Assessment, number: Number) -> str:
    """For which data a number holds, and how surely where that is not certain."""
    section = _section_of(a, number)
    sure = "" if section.confidence == 1 else f" with confidence {shown(section.confidence, 'rate', 'lower')}"
    if number.key.startswith("records"):
        return f"for this very model, released with the noise stated, and these records{sure}"
    every = f"every {a.assumptions.unit} of every data set"
    return f"for {every if section.holds_for == EVERY_CASE else section.holds_for or 'one case'}{sure}"


def _secret(a: Assessment, asked: Limit) -> Rule:
    limit, label = asked.most, f"Secret guessed blindly with chance {percent(asked.baseline or 0.0)}"
    found = _upper(a, "risk", "reconstruction", asked.baseline)
    if found is None:
        why = (
            f"{label}: nothing is proven about secrets here; only the curve of a mechanism that covers every "
            "record and data set says something."
        )
        return _missing("reconstruction", label, why, limit)
    why = f"{label}: named with chance {found.shown} at most, proven; the policy allows {percent(limit)}."
    return Rule(asked.kind, label, limit, "met" if _size(found) <= limit else "missed", _size(found), found.key, why)


def _attack(a: Assessment, policy: Policy, shows: list[Number], limit: float) -> Rule:
    """A rule on what attacks show: the largest advantage misses it; one that shows none leaves it open."""
    label = "Advantage shown by an attack"
    low, key, high = next(((n.low, n.key, n.high) for n in shows), (None, None, None))
    if a.status == "violated":
        return Rule("measured", label, limit, "missed", low, key, f"{label}: the attack contradicts the promise.")
    if not _attacks(a):
        if "attack" in policy.require:
            return _missing("measured", label, "The policy requires an attack, and none is part of this report.", limit)
        return Rule("measured", label, limit, "not asked", None, None, f"{label}: no attack is part of this report.")
    if low is None or (low <= limit and len(shows) < len(_attacks(a))):
        why = f"{label}: an attack of this report says nothing about its advantage, small or large."
        return _missing("measured", label, why, limit)
    rest = "" if high is None else f", not excluded up to {shown(high, 'rate', 'upper')}"
    why = f"{label}: at least {shown(low, 'rate', 'lower')}{rest}; the policy allows {percent(limit)} to be shown."
    return Rule("measured", label, limit, "met" if low <= limit else "missed", low, key, why)


def _utility(a: Assessment, policy: Policy) -> Rule:
    limit = policy.utility_loss
    label = "Usefulness lost by the protection"
    # even where guessing cannot be beaten: not worth a release
    if a.alert and limit is not None and any(key.startswith("use.") for key in a.numbers):
        rest = NOTHING if NOTHING in a.alert else "whatever an unprotected one reaches"
        why = f"{label}: the model is no better than guessing on held-out records, {rest}."
        return Rule("utility_loss", label, limit, "missed", None, None, why)
    lost = max(_numbers(a, r"use\d*\.loss"), key=lambda n: math.inf if n.high is None else n.high, default=None)
    if lost is not None and limit is not None:
        low, high = (-math.inf, math.inf) if lost.low is None or lost.high is None else (lost.low, lost.high)
        outcome: RuleOutcome = "met" if high <= limit else "missed" if low > limit else "not decided"
        more = " More held-out records would tell." if outcome == "not decided" else ""
        of = f"{lost.label.partition(' lost')[0]} lost: {low:.3f} to {high:.3f} (95\u00a0%, held-out records)"
        known = "too few records were held out to tell" if lost.low is None else of
        why = f"{label}: {known}; the policy allows {limit:g}.{more}"
        return Rule("utility_loss", label, limit, outcome, lost.value, lost.key, why)
    if "utility" in policy.require and not any(key.startswith("use.") for key in a.numbers):
        return _missing("utility_loss", label, "The policy requires usefulness, and it was not measured.", limit)
    return Rule("utility_loss", label, limit, "not asked", None, None, f"{label}: not measured.")


def _missing(key: str, label: str, why: str, limit: float | None = None) -> Rule:
    return Rule(key, label, limit, "not decided", None, None, why)


def _numbers(a: Assessment, pattern: str) -> list[Number]:
    return [number for key, number in a.numbers.items() if re.fullmatch(pattern, key)]


def _upper(a: Assessment, section: str, name: str, rate: float | None) -> Number | None:
    """The proven upper bound; at a rate that a page does not have, that of the next larger one, which is no less.

    True positive rates and chances of guessing grow with the rate, so the bound stays on the safe side.
    """
    pattern = rf"{section}\.{name}" + ("" if rate is None else r"@(?:fpr|baseline)=.+")
    proven = [number for number in _numbers(a, pattern) if number.kind == "provable upper bound"]
    if rate is None:
        return next(iter(proven), None)
    at = {float(number.key.rpartition("=")[2]): number for number in proven}
    return at.get(min((one for one in at if one >= rate or f"{one:g}" == f"{rate:g}"), default=math.nan))


def _size(number: Number) -> float:
    """The value of an upper bound; one that could not be stated is infinite."""
    return math.inf if number.value is None or math.isnan(number.value) else number.value


_PROOF = "Proof: assess the mechanism that ran (deniable assess --help); what is measured proves nothing safe."
_RUN_ONE = "Attack: run one that measures an advantage (deniable attack), and add its report to this one."
_ADVICE = {  # where a rule is not decided
    "advantage": _PROOF,
    "tpr": _PROOF,
    "attack": _RUN_ONE,
    "measured": _RUN_ONE,
    "records": "Records: profile them (deniable profile), and add that report to this one.",
}

# from limits to sentences: settings of what ran that meet them; None: none are known
Remedies = Callable[[list[Limit]], "list[str] | None"]


def changes(decision: Decision, policy: Policy, remedies: Remedies | None, *, broken: bool = False) -> tuple[str, ...]:
    """Return what would turn a missed or open decision, each sentence on its own enough for the proven rules.

    ``remedies`` computes settings of what ran that meet all of the missed limits; None where nothing is known to have
    run. ``broken`` says that an attack was above the bound, beyond its error.
    """
    missed = {rule.key for rule in decision.rules if rule.outcome == "missed"}
    said: list[str] = []
    limits = [limit for kind in sorted(missed) if (limit := policy.limit(kind)) is not None]
    if limits and remedies is not None:
        found = remedies(limits)
        said += found or (_HOPELESS if found is not None else ())
    if "utility_loss" in missed:
        nothing = any(NOTHING in rule.why for rule in decision.rules)
        helps = "other columns" if nothing else "more records, fewer columns, public ranges, or a weaker promise"
        said.append(f"Usefulness: {helps}.")
    attacked = any((rule.number or "").startswith("attack") for rule in decision.rules if rule.outcome == "missed")
    if broken:
        said.append("Implementation: what ran is not what was promised; find the difference before anything else.")
    elif attacked and remedies is None:
        said.append("Model: fit a private one (deniable train), or one that follows its records less closely.")
    unknown = {rule.key for rule in decision.rules if rule.outcome == "not decided"}
    said += dict.fromkeys(advice for key, advice in _ADVICE.items() if key in unknown)
    if "utility_loss" in unknown:
        measured = any(rule.key == "utility_loss" and rule.number is not None for rule in decision.rules)
        said.append("Usefulness: hold out more records." if measured else "Usefulness: give held-out records.")
    return tuple(said)
