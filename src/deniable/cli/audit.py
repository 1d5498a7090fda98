"""``deniable audit``: what scores or a synthetic table show, and whether they contradict a promise."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from deniable._check import InputError
from deniable._progress import stage
from deniable.cli import _options as options
from deniable.cli._app import FINE, MISSED, again, command, write
from deniable.cli.run import read_run

_STREAM = "-"
_USED = {  # options, and what they are used for
    ("score", "member", "reverse"): ("a stream", "scores"),
    ("members", "nonmembers", "reference", "method", "schema"): ("a table",),
    ("sheet", "fpr", "seed"): ("scores", "a table"),
    ("plot",): ("a stream",),
}


@command(
    "deniable audit scores.npz epsilon,2 --owner-report audit.html",
    "deniable audit scores.csv dpsgd,1,0.01,5000 --score llr --member is_member",
    "python train_and_attack.py | deniable audit - gaussian,0.5 --plot wealth.svg",
    "deniable audit synthetic.csv --members train.csv --nonmembers holdout.csv --reference survey.csv",
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
    reference: Annotated[Path | None, options.more(help="Further records that the attacker of a table has.")] = None,
    *,
    reading: options.Reading,
    method: Annotated[str, options.more(help="Attack on a table: auto, nearest, density or marginals.")] = "auto",
    confidence: Annotated[float, options.more(help="Probability with which each interval or verdict holds.")] = 0.95,
    fpr: Annotated[list[float] | None, options.more(help="False positive rate to report; may be repeated.")] = None,
    seed: options.SeedOption = None,
    plot: options.PlotOption = None,
    pages: Annotated[options.Pages, "owner_report", "policy", "junit", "sarif", "meta", "full", "as_json"],
) -> int:
    """Measure an attack from its scores, or attack a table.

    Exit code 1 if a promise is violated, or if the audit warns. Of a stream the first line names the columns; each
    further one is a score of a fresh training with the record or without it, the two of a pair next to each other. An
    attack may change between pairs. However often one looks, a true promise is called violated with probability at most
    1 − confidence.
    """
    said = pages.prepared()
    import deniable as dn
    from deniable.audit import read_scores

    promised = None if promise is None else read_run(promise)
    streams = stream or str(scores) == _STREAM
    what = "a stream" if streams else "scores" if members is None and nonmembers is None else "a table"
    asked = {"score": score, "member": member, "reverse": reverse, "fpr": fpr, "plot": plot, **vars(reading)}
    asked |= {"members": members, "nonmembers": nonmembers, "reference": reference, "method": method != "auto"}
    asked["seed"] = seed is not None
    for names, uses in _USED.items():
        if what not in uses:
            why = f"is for {' and '.join(uses)}, and this is an audit of {what}; leave it out"
            options.refuse(why, **{name: asked[name] for name in names})
    columns: dict[str, Any] = {"score": score, "member": member, "decimal": reading.decimal or ""}
    if streams:
        streamed = _sequential(scores, promised, confidence, reverse, columns)
        options.draw(streamed, plot)
        judged = dn.assess(streamed, **said)
        write(pages.files(judged))
        return max(pages.show(judged), MISSED if judged.warnings else FINE)
    if what == "scores":
        inside, outside = read_scores(scores, sheet=reading.sheet, **columns)
        found = dn.audit_scores(inside, outside, confidence, direction="smaller" if reverse else None, rng=seed)
        title = f"Attack scores: {scores.name}"
    elif members is None or nonmembers is None:
        raise InputError("--members and --nonmembers go together; give both")
    else:
        paths = {"synthetic": scores, "members": members, "nonmembers": nonmembers, "reference": reference}
        tables: dict[str, Any] = {name: path and reading.opened(path)[0] for name, path in paths.items()}
        told = reading.declared()
        attack = dn.attack_synthetic(**tables, method=cast("Any", method), schema=told, rng=seed)
        found, title = attack.audit(confidence), f"{attack.method.capitalize()}: {scores.name}"
    rates: dict[str, Any] = {"fpr": tuple(fpr)} if fpr else {}
    with stage("comparing scores"):
        made = dn.assess(found, bound=promised, title=title, **said, **rates)
    write(pages.files(made))
    following = again("--owner-report", "audit.html") if pages.owner_report is None else ()
    return max(pages.show(made, following), MISSED if found.warnings else FINE)


def _sequential(scores: Path, promise: Any, confidence: float, reverse: bool, columns: dict[str, Any]) -> Any:
    """Judge a promise by scores as they come, and stop as soon as it is broken."""
    if promise is None:
        raise InputError("RUN is missing: a stream judges a promise, as deniable audit - epsilon,2")
    import deniable as dn
    from deniable.tables import each_pair

    if str(scores) != _STREAM and not scores.is_file():
        raise InputError(f"score file {str(scores)!r} does not exist; give a .csv file, or - for standard input")
    audit = dn.SequentialAudit(promise, confidence)
    with nullcontext(sys.stdin) if str(scores) == _STREAM else scores.open(newline="") as lines:
        for pair in each_pair(lines, **columns):
            audit.update(*(-score if reverse else score for score in pair))
            if audit.violated:
                break
    return audit
