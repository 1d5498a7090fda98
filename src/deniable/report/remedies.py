"""What would change a decision: sentences for what is missing, and computed settings of what ran."""

from __future__ import annotations

from collections.abc import Callable

from deniable.report.decision import Decision
from deniable.report.policy import Policy

# from limits (tpr with fpr, advantage) to sentences: settings of what ran that meet them; None: none are known
Remedies = Callable[[list[dict[str, float]]], "list[str] | None"]
_HOPELESS = ("No setting of a single parameter of this mechanism meets the policy within a factor of 10,000.",)


def changes(decision: Decision, policy: Policy, remedies: Remedies | None, *, broken: bool = False) -> tuple[str, ...]:
    """Return what would turn a missed or open decision, each sentence on its own enough for the proven rules.

    ``remedies`` computes settings of what ran that meet all of the missed limits; None where nothing is known to have
    run. ``broken`` says that an attack was provably above the bound.
    """
    missed = {rule.key for rule in decision.rules if rule.outcome == "missed"}
    said: list[str] = []
    targets = [target for key, target in _targets(policy).items() if key in missed]
    if targets and remedies is not None:
        found = remedies(targets)
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
    unknown = {rule.key for rule in decision.rules if rule.outcome == "cannot be told"}
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


def _targets(policy: Policy) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    if policy.advantage is not None:
        found["advantage"] = {"advantage": policy.advantage}
    if policy.tpr is not None:
        found["tpr"] = {"tpr": policy.tpr, "fpr": policy.fpr}
    if policy.reconstruction is not None:
        found["reconstruction"] = {"tpr": policy.reconstruction, "fpr": policy.baseline}  # success ≤ TPR(baseline)
    return found
