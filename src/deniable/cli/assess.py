"""``deniable assess``: from a training run to one report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from deniable.cli import _options as options
from deniable.cli._app import again, command, write
from deniable.cli.ledger import LedgerOption, UnitOption, there
from deniable.cli.run import RunArgument, read_run, with_unknown


@command(
    "deniable assess dpsgd,1,0.01,5000 --report report.html",
    "deniable assess 'tuned,10: dpsgd,2,0.01,500' --policy default --json",
    "deniable assess matrix,8,strategy=strategy.csv,participations=4,separation=16",
    "deniable assess history.json --policy policy.toml --meta meta.toml --report report.html",
)
def assess(
    run: RunArgument,
    prior: options.PriorOption = 0.5,
    fpr: Annotated[
        list[float] | None,
        options.more(help="False positive rate to report; may be repeated [default: 0.1 0.01 0.001]."),
    ] = None,
    delta: Annotated[float, options.more(help="δ at which the corresponding ε is stated.")] = 1e-5,
    ledger: LedgerOption = None,
    unit: UnitOption = None,
    *,
    pages: Annotated[options.Pages, "report", "policy", "junit", "sarif", "meta", "full", "as_json"],
) -> int:
    """Report what any attacker of a run can reach.

    The report says first whether that meets the policy.
    """
    import deniable as dn
    from deniable.mechanisms import entered, fields_of

    options.refuse("goes with --ledger", unit=ledger is None and unit)
    said = pages.prepared()
    ran = read_run(run)
    entry = None if ledger is None else there(ledger).charge(ran, unit=unit, what=run)
    ran = ran.with_notes(entered(**fields_of(entry)))
    made = dn.assess(ran, prior=prior, delta=delta, fpr=tuple(fpr or (0.1, 0.01, 0.001)), **said)
    following: Sequence[str] = ()
    if pages.report is None:
        missed = made.decision is not None and not made.decision.met
        following = (missed and _enough(run, made.decision)) or again("--report", "report.html")
    write(pages.files(made))
    return pages.show(made, following)


def _enough(run: str, decision: Any) -> tuple[str, ...]:
    """Return the command that finds the noise for the rule that was missed, if it is one that noise can meet."""
    question, limit = with_unknown(run), decision.policy.limit(decision.decided_by)
    if question is None or limit is None:
        return ()
    said = ",".join(f"{name}={value!r}" for name, value in limit.arguments.items())
    option = ("--advantage", said.removeprefix("advantage=")) if limit.kind == "advantage" else ("--limit", said)
    return ("calibrate", question, *option)
