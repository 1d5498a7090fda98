"""``deniable synthesize``: a table of made-up rows with a membership guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable._files import check_writable, write_atomically
from deniable._progress import stage
from deniable.cli._app import JsonFlag, app, examples
from deniable.cli._limit import AdvantageOption, LimitOption, asked_for
from deniable.cli._report import FullOption, PolicyOption, ReportOption, prepared, show
from deniable.cli._schema import SchemaOption, read_schema
from deniable.cli.ledger import LedgerOption, there


@app.command(
    epilog=examples(
        "deniable synthesize people.csv --advantage 0.1 --target ill --out made_up.csv --report page.html",
        "deniable synthesize visits.parquet --group patient --limit epsilon=1,delta=1e-6 --rows 5000",
    )
)
def synthesize(
    data: Annotated[str, typer.Argument(help="A .csv, .tsv, .parquet, .feather or .xlsx file, or a built-in name.")],
    out: Annotated[Path | None, typer.Option(help="Where the made-up rows go (.csv).")] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="A column that somebody will want to predict; may be repeated.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="How many; otherwise the noisy number of records.")] = None,
    advantage: AdvantageOption = None,
    limit: LimitOption = None,
    schema: SchemaOption = None,
    group: Annotated[
        str | None, typer.Option(help="Column that names the person: whole persons are hidden then.")
    ] = None,
    report: ReportOption = None,
    ledger: LedgerOption = None,
    policy: PolicyOption = None,
    full: FullOption = False,
    as_json: JsonFlag = False,
) -> int:
    """Make up a table that is like yours, and bound what it reveals about who is in yours.

    Rows are draws from a model, about nobody. Everything that is written or printed may be published.
    """
    if out is not None:
        check_writable("--out", out, suffixes=(".csv",))
    said = prepared(policy, report=report)
    from deniable.limits import DEFAULT_ADVANTAGE
    from deniable.synthesis import PrivateSynthesizer
    from deniable.workflows import assess

    asked = asked_for(advantage, limit, DEFAULT_ADVANTAGE)
    model = PrivateSynthesizer(
        limit=asked, targets=tuple(target or ()), schema=read_schema(schema), group=group,
        ledger=there(ledger, f"made-up rows: {Path(data).name}"),
    )  # fmt: skip
    with stage("counting and fitting"):
        made = model.fit(data)
        table = made.sample(rows)
    page = assess(made, title=f"Made-up rows of {Path(data).name}: {made.certificate_.target}", **said)
    found = show(page, report, as_json, policy, full=full)  # first: no rows without their page
    if out is not None:
        write_atomically(out, table.to_csv(index=False))
    return found
