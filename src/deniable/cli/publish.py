"""``deniable publish``: statistics of all records, with error bars and a membership guarantee."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer

from deniable._files import check_writable
from deniable.cli._app import JsonFlag, PlotOption, again, app, examples, more, suggest, write
from deniable.cli._limit import AdvantageOption, LimitOption, asked_for
from deniable.cli._picture import checked_picture
from deniable.cli._report import (
    MetaOption,
    OwnerReportOption,
    PolicyOption,
    ReportOption,
    annex_of,
    code,
    prepared,
    written,
)
from deniable.cli._schema import DecimalOption, SchemaOption, SheetOption, opened
from deniable.cli.ledger import LedgerOption, there


@app.command(
    epilog=examples(
        'deniable publish people.csv --statistic "mean(income) by region" --statistic "count() by region, sex" '
        "--schema schema.toml --advantage 0.2 --out means.csv --report means.html",
        'deniable publish people.csv --statistic "median(age)" --limit tpr=0.01,fpr=0.001 --json',
    )
)
def publish(
    data: Annotated[str, typer.Argument(help="A .csv, .tsv or .parquet file, or breast-cancer or digits-3-8.")],
    statistic: Annotated[
        list[str],
        typer.Option(
            "--statistic",
            help='What to release: "mean(income) by region"; may be repeated, they share the budget. Functions: count, '
            "share, sum, mean, variance, sd, histogram, median, quantile, trimmed_mean, ecdf, covariance, correlation, "
            "regression, survival.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Where the statistics go (.csv, .json).")] = None,
    records: Annotated[
        int | None, more(help="The number of records, if it is public; otherwise it is counted with noise.")
    ] = None,
    suppress_below: Annotated[float, more(help="Withhold counts whose noisy value is below this.")] = 0.0,
    plot: PlotOption = None,
    advantage: AdvantageOption = None,
    limit: LimitOption = None,
    certificate: Annotated[Path | None, typer.Option(help="Where the certificate goes, as JSON.")] = None,
    schema: SchemaOption = None,
    ledger: LedgerOption = None,
    report: ReportOption = None,
    owner_report: OwnerReportOption = None,
    policy: PolicyOption = None,
    meta: MetaOption = None,
    decimal: DecimalOption = None,
    sheet: SheetOption = None,
    as_json: JsonFlag = False,
) -> int:
    """Publish statistics of a table, with error bars.

    All records are used, under one budget.

    For a model, see deniable train.
    """
    if out is not None:
        check_writable("--out", out, suffixes=(".csv", ".json"))
    if certificate is not None:
        check_writable("--certificate", certificate, suffixes=(".json",))
    checked_picture(plot)
    said = prepared(policy, meta, report=report, owner_report=owner_report)
    import deniable as dn
    from deniable.limits import DEFAULT_ADVANTAGE

    asked = asked_for(advantage, limit, DEFAULT_ADVANTAGE)
    table, told = opened(data, schema, decimal, sheet)
    made = dn.release_statistics(
        table,
        statistic,
        limit=asked,
        schema=told,
        n=records,
        suppress_below=suppress_below,
        ledger=there(ledger, "statistics: " + "; ".join(statistic)),
    )
    page = dn.assess(made, **said)
    if certificate is not None:  # first: no table may exist without its certificate
        write(certificate, made.certificate.to_json())
    if plot is not None:
        picture = io.BytesIO()
        made.plot().savefig(picture, format=plot.suffix[1:].lower(), dpi=150)
        write(plot, picture.getvalue())
    if out is not None:
        write(out, made.to_csv() if out.suffix.lower() == ".csv" else made.to_json())
    if report is not None:
        write(report, written(page, report))
    if owner_report is not None:
        from deniable.workflows.published import for_owner

        write(owner_report, written(for_owner(page, table, made, told), owner_report))
    print(made.to_json() if as_json else made)
    if not as_json:
        if page.decision is not None:
            print(f"\n{page.decision.verdict} ({page.decision.policy.name}). {page.decision.reason}")
        suggest(*(annex_of(report) or (() if report else again("--report", "report.html"))))
    return code(page, said["policy"])
