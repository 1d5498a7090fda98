"""``deniable assess``: from a training run to one report."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from deniable.cli._app import JsonFlag, PriorOption, again, app, examples, more
from deniable.cli._limit import limit_option
from deniable.cli._report import (
    FullOption,
    JunitOption,
    MetaOption,
    PolicyOption,
    ReportOption,
    SarifOption,
    prepared,
    show,
)
from deniable.cli.ledger import LedgerOption, there
from deniable.cli.run import RunArgument, read_run, with_unknown


@app.command(
    epilog=examples(
        "deniable assess dpsgd,1,0.01,5000 --report report.html",
        "deniable assess 'tuned,10: dpsgd,2,0.01,500' --policy default --json",
        "deniable assess matrix,8,strategy=strategy.csv,participations=4,separation=16",
        "deniable assess history.json --policy policy.toml --meta meta.toml --report report.html",
    )
)
def assess(
    run: RunArgument,
    prior: PriorOption = 0.5,
    report: ReportOption = None,
    policy: PolicyOption = None,
    junit: JunitOption = None,
    sarif: SarifOption = None,
    fpr: Annotated[
        list[float] | None, more(help="False positive rate to report; may be repeated [default: 0.1 0.01 0.001].")
    ] = None,
    delta: Annotated[float, more(help="δ at which the corresponding ε is stated.")] = 1e-5,
    meta: MetaOption = None,
    ledger: LedgerOption = None,
    full: FullOption = False,
    as_json: JsonFlag = False,
) -> int:
    """Report what any attacker of a run can reach.

    The report says first whether that meets the policy.
    """
    import deniable as dn
    from deniable.mechanisms import entered

    said = prepared(policy, meta, report=report, junit=junit, sarif=sarif)
    ran = read_run(run)
    book = there(ledger, run)
    entry = None if book is None else book.add(ran)
    made = dn.assess(
        ran, prior=prior, delta=delta, fpr=tuple(fpr) if fpr else (0.1, 0.01, 0.001),
        **said,
    )  # fmt: skip
    if entry is not None:
        notes = (*made.assumptions.notes, *entered((entry.number, entry.head)))
        made = replace(made, assumptions=replace(made.assumptions, notes=notes))
    missed = report is None and made.decision is not None and not made.decision.met
    following = _enough(run, made.decision) if missed else ()
    if not following and report is None:
        following = again("--report", "report.html")
    return show(made, report, as_json, policy, full=full, following=following, ci=(junit, sarif))


def _enough(run: str, decision: Any) -> tuple[str, ...]:
    """Return the command that finds the noise for the rule that was missed, if it is one that noise can meet."""
    question, limit = with_unknown(run), decision.policy.limit(decision.decided_by)
    if question is None or limit is None:
        return ()
    return ("calibrate", question, *limit_option(limit))
