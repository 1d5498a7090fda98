"""``deniable audit``: what scores or a synthetic table show, and whether they contradict a promise."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from deniable._check import InputError
from deniable._progress import stage
from deniable.cli._app import (
    FINE,
    MISSED,
    JsonFlag,
    PlotOption,
    SeedOption,
    again,
    app,
    command_line,
    examples,
    more,
)
from deniable.cli._picture import checked_picture, draw
from deniable.cli._report import (
    FullOption,
    JunitOption,
    MetaOption,
    OwnerReportOption,
    PolicyOption,
    SarifOption,
    prepared,
    show,
)
from deniable.cli._schema import DecimalOption, read_schema
from deniable.cli.run import read_run

_STREAM = "-"


@app.command(
    epilog=examples(
        "deniable audit scores.npz epsilon,2 --owner-report audit.html",
        "deniable audit scores.csv dpsgd,1,0.01,5000 --score llr --member is_member",
        "python train_and_attack.py | deniable audit - gaussian,0.5 --plot wealth.svg",
        "deniable audit synthetic.csv --members train.csv --nonmembers holdout.csv --reference survey.csv",
    )
)
def audit(
    scores: Annotated[
        Path,
        typer.Argument(
            help="Scores of any attack: a .csv, .parquet, .json or .npz file, or - for a stream of lines score,member; "
            "with --members a released table."
        ),
    ],
    promise: Annotated[
        str | None, typer.Argument(metavar="RUN", help="What was promised, as bound takes it: epsilon,2.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="Column of scores.")] = None,
    member: Annotated[str | None, typer.Option(help="Column that says which are members.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="A small score means member.")] = False,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream", help="Read score by score and stop, with exit code 1, as soon as RUN is contradicted."
        ),
    ] = False,
    members: Annotated[Path | None, typer.Option(help="Records that a released table was made from.")] = None,
    nonmembers: Annotated[Path | None, typer.Option(help="Records like them that it was not made from.")] = None,
    reference: Annotated[Path | None, more(help="Further records that the attacker of a table has.")] = None,
    decimal: DecimalOption = None,
    method: Annotated[str, more(help="Attack on a table: auto, nearest, density or marginals.")] = "auto",
    confidence: Annotated[float, more(help="Probability with which each interval or verdict holds.")] = 0.95,
    fpr: Annotated[list[float] | None, more(help="False positive rate to report; may be repeated.")] = None,
    seed: SeedOption = None,
    plot: PlotOption = None,
    owner_report: OwnerReportOption = None,
    policy: PolicyOption = None,
    junit: JunitOption = None,
    sarif: SarifOption = None,
    meta: MetaOption = None,
    full: FullOption = False,
    as_json: JsonFlag = False,
) -> int:
    """Measure an attack from its scores, or attack a table.

    Exit code 1 if a promise is violated, or if the audit warns. Of a stream the first line names the columns; each
    further one is a score of a fresh training with the record or without it, the two of a pair next to each other. An
    attack may change between pairs. However often one looks, a true promise is called violated with probability at most
    1 − confidence.
    """
    ci = (junit, sarif)
    said = prepared(policy, meta, owner_report=owner_report, junit=junit, sarif=sarif)
    import deniable as dn
    from deniable.audit import read_scores

    picture = checked_picture(plot)
    promised = None if promise is None else read_run(promise)
    if stream or str(scores) == _STREAM:
        streamed = _sequential(scores, promised, confidence)
        draw(streamed, picture)
        judged = dn.assess(streamed, **said)
        return max(show(judged, owner_report, as_json, policy, full=full, ci=ci), MISSED if judged.warnings else FINE)
    if picture is not None:
        raise InputError("--plot goes with --stream, whose wealth it draws; for a picture of scores use --owner-report")
    if members is None and nonmembers is None:
        inside, outside = read_scores(scores, score=score, member=member)
        found = dn.audit_scores(
            inside, outside, confidence, direction="smaller" if reverse else None, command=command_line()
        )
        title = f"Attack scores: {scores.name}"
    elif members is None or nonmembers is None:
        raise InputError("--members and --nonmembers go together; give both")
    else:
        told = read_schema(None, decimal)
        attack = dn.attack_synthetic(scores, members, nonmembers, reference, cast("Any", method), schema=told, rng=seed)
        found, title = attack.audit(confidence, command=command_line()), f"{attack.method}: {scores.name}"
    options: dict[str, Any] = {"fpr": tuple(fpr)} if fpr else {}
    with stage("comparing scores"):
        made = dn.assess(found, bound=promised, title=title, **said, **options)
    following = again("--owner-report", "audit.html") if owner_report is None else ()
    said_so = show(made, owner_report, as_json, policy, full=full, following=following, ci=ci)
    return max(said_so, MISSED if found.warnings else FINE)


def _sequential(scores: Path, promise: Any, confidence: float) -> Any:
    """Judge a promise by scores as they come, and stop as soon as it is broken."""
    if promise is None:
        raise InputError("RUN is missing: a stream judges a promise, as deniable audit - epsilon,2")
    import deniable as dn
    from deniable.tables import each_pair

    if str(scores) != _STREAM and not scores.is_file():
        raise InputError(f"score file {str(scores)!r} does not exist; give a .csv file, or - for standard input")
    audit = dn.SequentialAudit(promise, confidence)
    with nullcontext(sys.stdin) if str(scores) == _STREAM else scores.open(newline="") as lines:
        for pair in each_pair(lines):
            audit.update(*pair)
            if audit.violated:
                break
    return audit
