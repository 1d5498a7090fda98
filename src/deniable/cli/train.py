"""``deniable train``: from a table to a private model, and what the protection costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from deniable._optional import require
from deniable._progress import stage
from deniable.cli import _options as options
from deniable.cli._app import again, command, write
from deniable.cli.ledger import LedgerOption, there


@command(
    "deniable train data.csv --target y --advantage 0.1 --out model.skops --report report.html",
    "deniable train data.parquet --target y --limit tpr=0.01,fpr=0.001 --schema schema.toml --json",
    "deniable train visits.csv --target cost --task regression --group patient --limit epsilon=1,delta=1e-6",
)
def train(
    data: options.DataArgument,
    target: options.TargetOption = None,
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(help="What to predict; otherwise noisy counts of the target say."),
    ] = "auto",
    model: Annotated[
        Literal["additive", "linear"],
        options.more("--model", help="One shape function per column (additive) or one coefficient (linear)."),
    ] = "additive",
    interactions: Annotated[
        int | None,
        options.more(help="At most so many pairs of columns with a joint shape; all that stand out unless given."),
    ] = None,
    *,
    asked: options.AskedLimit,
    classes: Annotated[
        str | None,
        typer.Option(help="Classes of the target, such as no,yes; otherwise frequent ones are found with noise."),
    ] = None,
    reading: options.Reading,
    drop: options.DropOption = None,
    group: options.GroupOption = None,
    holdout: Annotated[
        float, options.more(help="Probability that each record is held out to measure usefulness; 0: use all.")
    ] = 0.25,
    out: Annotated[Path | None, options.file("--out", "Write the model here", ".skops")] = None,
    ledger: LedgerOption = None,
    pages: Annotated[options.Pages, "report", "owner_report", "policy", "meta", "full", "as_json"],
) -> int:
    """Fit a private model and say what the protection costs.

    The guarantee covers every query of the data. The comparison with an unprotected model is measured on held-out
    records and is not protected: it is for the owner of the data.
    """
    skops: Any = out and require("skops.io", purpose="writing a .skops model")
    said = pages.prepared()
    from deniable.workflows.train import train_table

    with stage("fitting and measuring"):
        table, told = reading.opened(data)
        made = train_table(
            table,
            target=target,
            limit=asked.one(0.1),
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
    files: dict[Path, Any] = {**pages.files(made.assessment, made.public)}
    if out is not None:
        files[out] = skops.dumps(made.model)
    write(files)
    lines = [f"{line} (why: deniable check)" if line.endswith(": dropped") else line for line in made.remarks]
    if not pages.full:
        lines = [line for line in lines if line in made.assessment.warnings or line.endswith("check)")]
    public, own = (one.decision and one.decision.verdict for one in (made.public, made.assessment))
    lines += [f"{pages.report} says: {public}"] * (pages.report is not None and public != own)
    return pages.show(made.assessment, () if files else again("--out", "model.skops", "--report", "report.html"), lines)
