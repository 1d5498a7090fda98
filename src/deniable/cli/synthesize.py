"""``deniable synthesize``: a table of made-up rows with a membership guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable._progress import stage
from deniable.cli import _options as options
from deniable.cli._app import command, write
from deniable.cli.ledger import LedgerOption, there


@command(
    "deniable synthesize people.csv --advantage 0.1 --target ill --out made_up.csv --report page.html",
    "deniable synthesize visits.parquet --group patient --limit epsilon=1,delta=1e-6 --rows 5000",
)
def synthesize(
    data: options.DataArgument,
    out: Annotated[Path | None, options.file("--out", "Where the made-up rows go", ".csv")] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="A column that somebody will want to predict; may be repeated.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=0, help="How many; otherwise the noisy number of records.")] = None,
    *,
    asked: options.AskedLimit,
    reading: options.Reading,
    group: options.GroupOption = None,
    ledger: LedgerOption = None,
    pages: Annotated[options.Pages, "report", "policy", "full", "as_json"],
) -> int:
    """Make up a table like yours that hardly tells who is in yours.

    Rows are draws from a model, about nobody. Everything that is written or printed may be published.
    """
    said = pages.prepared()
    from deniable.limits import DEFAULT_ADVANTAGE
    from deniable.synthesis import PrivateSynthesizer
    from deniable.workflows import assess

    table, told = reading.opened(data)
    model = PrivateSynthesizer(
        limit=asked.one(DEFAULT_ADVANTAGE), targets=tuple(target or ()), schema=told, group=group,
        ledger=there(ledger, f"made-up rows: {Path(data).name}"),
    )  # fmt: skip
    with stage("counting and fitting"):
        made = model.fit(table)
        drawn = made.sample(rows)
    page = assess(made, title=f"Made-up rows of {Path(data).name}", **said)
    rows_of = {} if out is None else {out: drawn.to_csv(index=False)}
    write(pages.files(page) | rows_of)  # no rows without their page
    return pages.show(page)
