"""``deniable release``: statistics of all records, with error bars and a membership guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli._app import JsonFlag, app, examples
from deniable.cli._ranges import RangesOption
from deniable.cli._statistics import release_table


@app.command(
    epilog=examples(
        'deniable release table.csv --statistic "mean(income) by region" --statistic "count() by region, sex" '
        "--range income=0:200000 --categories region=N,S --eta 0.1 --out table.csv --plot table.svg",
        'deniable release table.csv --statistic "median(age)" --eta 0.05 --json',
    )
)
def release(
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
    given_range: Annotated[
        list[str] | None,
        typer.Option(
            "--range", help="Public range of a column, income=0:200000; may be repeated. Otherwise found privately."
        ),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(help="Public categories of a column, region=N,S,E,W; may be repeated. Otherwise found privately."),
    ] = None,
    suppress_below: Annotated[float, typer.Option(help="Withhold counts whose noisy value is below this.")] = 0.0,
    plot: Annotated[Path | None, typer.Option(help="Draw the statistics: a file ending in .svg or .png.")] = None,
    eta: Annotated[float, typer.Option(help="Largest gain of any membership attack over guessing.")] = 0.1,
    certificate: Annotated[Path | None, typer.Option(help="Where the certificate goes, as JSON.")] = None,
    ranges: RangesOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Release statistics of all records of a table, with error bars, under one budget.

    For a model, see deniable train.
    """
    release_table(
        data,
        statistic,
        eta=eta,
        out=out,
        plot=plot,
        certificate=certificate,
        ranges=ranges,
        given_ranges=given_range or (),
        given_categories=categories or (),
        suppress_below=suppress_below,
        as_json=as_json,
    )
