"""``deniable train``: from a table to a private model, and what the protection costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from deniable._files import check_writable
from deniable._optional import require
from deniable._progress import stage
from deniable.cli._app import JsonFlag, again, app, examples, more, suggest, write
from deniable.cli._limit import AdvantageOption, LimitOption, asked_for
from deniable.cli._report import (
    FullOption,
    MetaOption,
    OwnerReportOption,
    PolicyOption,
    ReportOption,
    annex_of,
    prepared,
    show,
    written,
)
from deniable.cli._schema import DecimalOption, SchemaOption, SheetOption, opened
from deniable.cli.ledger import LedgerOption, there

if TYPE_CHECKING:
    from deniable.workflows.train import Trained

_DROPPED = ": dropped"


@app.command(
    epilog=examples(
        "deniable train data.csv --target y --advantage 0.1 --out model.skops --report report.html",
        "deniable train data.parquet --target y --limit tpr=0.01,fpr=0.001 --schema schema.toml --json",
        "deniable train visits.csv --target cost --task regression --group patient --limit epsilon=1,delta=1e-6",
    )
)
def train(
    data: Annotated[str, typer.Argument(help="A file (.csv, .parquet, .xlsx, .ods, .dta, …), or a built-in name.")],
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(help="What to predict; otherwise noisy counts of the target say."),
    ] = "auto",
    model: Annotated[
        Literal["additive", "linear"],
        more("--model", help="One shape function per column (additive) or one coefficient (linear)."),
    ] = "additive",
    interactions: Annotated[
        int | None, more(help="At most so many pairs of columns with a joint shape; all that stand out unless given.")
    ] = None,
    advantage: AdvantageOption = None,
    limit: LimitOption = None,
    classes: Annotated[
        str | None,
        typer.Option(help="Classes of the target, such as no,yes; otherwise frequent ones are found with noise."),
    ] = None,
    schema: SchemaOption = None,
    decimal: DecimalOption = None,
    sheet: SheetOption = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Column that names the person: the guarantee then covers all records of a person."),
    ] = None,
    holdout: Annotated[
        float, more(help="Probability that each record is held out to measure usefulness; 0: use all.")
    ] = 0.25,
    out: Annotated[Path | None, typer.Option(help="Write the model here (.skops).")] = None,
    ledger: LedgerOption = None,
    report: ReportOption = None,
    owner_report: OwnerReportOption = None,
    policy: PolicyOption = None,
    meta: MetaOption = None,
    full: FullOption = False,
    as_json: JsonFlag = False,
) -> int:
    """Fit a private model and say what the protection costs.

    The guarantee covers every query of the data. The comparison with an unprotected model is measured on held-out
    records and is not protected: it is for the owner of the data.
    """

    if out is not None:
        check_writable("--out", out, suffixes=(".skops",))
        require("skops.io", purpose="writing a .skops model")
    said = prepared(policy, meta, report=report, owner_report=owner_report)
    from deniable.workflows.train import train_table

    with stage("fitting and measuring"):
        table, told = opened(data, schema, decimal, sheet)
        made = train_table(
            table,
            target=target,
            limit=asked_for(advantage, limit, 0.1),
            task=task,
            model=model,
            interactions=interactions,
            classes=None if classes is None else classes.split(","),
            schema=told,
            drop=tuple(drop or ()),
            group=group,
            ledger=there(ledger, f"model of {target or 'the target'}, {data}"),
            holdout=holdout,
            **said,
        )
    return finish(made, out, report, owner_report, as_json, policy, full=full)


def finish(
    made: Trained,
    out: Path | None,
    report: Path | None,
    owner_report: Path | None,
    as_json: bool,
    policy: str | None = None,
    *,
    full: bool = False,
) -> int:
    """Write the files, complete or not at all, print what was reached, and return the exit code."""
    pages = [(page, shown) for page, shown in ((report, made.public), (owner_report, made.assessment)) if page]
    files: list[tuple[Path, str | bytes]] = [(page, written(assessment, page)) for page, assessment in pages]
    if out is not None:
        files.append((out, require("skops.io", purpose="writing a .skops model").dumps(made.model)))
    for path, content in files:
        write(path, content)
    found = show(made.assessment, None, as_json, policy, full=full)
    if as_json:
        return found
    for line in made.remarks:
        if full or line in made.assessment.warnings or line.endswith(_DROPPED):
            print(f"{line} (why: deniable check)" if line.endswith(_DROPPED) else line)
    suggest(*(annex_of(report) or ([] if files else again("--out", "model.skops", "--report", "report.html"))))
    return found
