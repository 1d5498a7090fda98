"""What would change a decision: sentences for what is missing, and computed settings of what ran."""

from __future__ import annotations

from collections.abc import Callable

from deniable.limits import Limit
from deniable.report.decision import Decision
from deniable.report.policy import Policy

# from limits to sentences: settings of what ran that meet them; None: none are known
Remedies = Callable[[list[Limit]], "list[str] | None"]
_HOPELESS = ("No setting of a single parameter of this mechanism meets the policy within a factor of 10,000.",)


def changes(decision: Decision, policy: Policy, remedies: Remedies | None, *, broken: bool = False) -> tuple[str, ...]:
    """Return what would turn a missed or open decision, each sentence on its own enough for the proven rules.

    ``remedies`` computes settings of what ran that meet all of the missed limits; None where nothing is known to have
    run. ``broken`` says that an attack was provably above the bound.
    """
    missed = {rule.key for rule in decision.rules if rule.outcome == "missed"}
    said: list[str] = []
    limits = [limit for kind in sorted(missed) if (limit := policy.limit(kind)) is not None]
    if limits and remedies is not None:
        found = remedies(limits)
        said += found or (_HOPELESS if found is not None else ())
    if "utility_loss" in missed:
        said.append("Usefulness: more records, fewer columns, public ranges of the columns, or a weaker promise.")
    attacked = any((rule.number or "").startswith("attack") for rule in decision.rules if rule.outcome == "missed")
    if broken:
        said.append("Implementation: what ran is not what was promised; find the difference before anything else.")
    elif attacked and remedies is None:
        said.append(
            "Model: fit a private one, for example `deniable train`, or one that follows its records less closely."
        )
    unknown = {rule.key for rule in decision.rules if rule.outcome == "not decided"}
    if unknown & {"advantage", "tpr"}:
        said.append("Proof: add what ran, for example dn.assess(mechanism) + this report; attacks prove nothing safe.")
    if unknown & {"attack", "measured"}:
        said.append("Attack: run one, for example `deniable attack`, and add its report to this one.")
    if "records" in unknown:
        said.append("Records: profile them, for example `deniable profile`, and add that report to this one.")
    if "utility_loss" in unknown:
        measured = any(rule.key == "utility_loss" and rule.found is not None for rule in decision.rules)
        said.append("Usefulness: hold out more records." if measured else "Usefulness: give held-out records.")
    return tuple(said)
