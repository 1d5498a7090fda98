"""``deniable publish``: statistics of all records, with error bars and a membership guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import _options as options
from deniable.cli._app import again, command, suggest, write
from deniable.cli.ledger import LedgerOption, there


@command(
    'deniable publish people.csv --statistic "mean(income) by region" --statistic "count() by region, sex" '
    "--schema schema.toml --advantage 0.2 --out means.csv --report means.html",
    'deniable publish people.csv --statistic "median(age)" --limit tpr=0.01,fpr=0.001 --json',
)
def publish(
    data: options.DataArgument,
    statistic: Annotated[
        list[str],
        typer.Option(
            "--statistic",
            help='What to release: "mean(income) by region"; may be repeated, they share the budget. Functions: count, '
            "share, sum, mean, variance, sd, histogram, median, quantile, ecdf, covariance, correlation, "
            "regression.",
        ),
    ],
    out: Annotated[Path | None, options.file("--out", "Where the statistics go", ".csv", ".json")] = None,
    records: Annotated[
        int | None, options.more(min=1, help="Number of records, if it is public; otherwise it is counted with noise.")
    ] = None,
    suppress_below: Annotated[float, options.more(help="Withhold counts whose noisy value is below this.")] = 0.0,
    group: options.GroupOption = None,
    *,
    asked: options.AskedLimit,
    certificate: Annotated[Path | None, options.file("--certificate", "Where the certificate goes", ".json")] = None,
    reading: options.Reading,
    ledger: LedgerOption = None,
    pages: Annotated[options.Pages, "report", "owner_report", "policy", "meta", "as_json"],
) -> int:
    """Publish statistics of a table, with error bars.

    All records are used, under one budget.

    For a model, see deniable train.
    """
    said = pages.prepared()
    import deniable as dn
    from deniable.limits import DEFAULT_ADVANTAGE
    from deniable.workflows.published import for_owner

    limit = asked.one(DEFAULT_ADVANTAGE)
    table, told = reading.opened(data)
    made = dn.release_statistics(
        table,
        statistic,
        limit=limit,
        schema=told,
        group=group,
        n=records,
        suppress_below=suppress_below,
        ledger=there(ledger, "statistics: " + "; ".join(statistic)),
    )
    page = dn.assess(made, **said)
    files: dict[Path, Any] = {}
    if certificate is not None:  # first: no table may exist without its certificate
        files[certificate] = made.certificate.to_json()
    if out is not None:
        files[out] = made.to_csv() if out.suffix.lower() == ".csv" else made.to_json()
    owners = page if pages.owner_report is None else for_owner(page, table, made, told)
    write(files | pages.files(owners, page))
    print(made.to_json() if pages.as_json else made)
    if not pages.as_json:
        if page.decision is not None:
            print(f"\n{page.decision.verdict} ({page.decision.policy.name}). {page.decision.reason}")
        suggest(*(pages.annex() or (() if pages.report else again("--report", "report.html"))))
    return options.code(page, said["policy"])
