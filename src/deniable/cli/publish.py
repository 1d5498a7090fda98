"""``deniable publish``: statistics of all records, with error bars and a membership guarantee."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import check_writable, write_atomically
from deniable.cli._app import JsonFlag, PlotOption, app, examples, more
from deniable.cli._limit import AdvantageOption, LimitOption, asked_for
from deniable.cli._picture import checked_picture
from deniable.cli._schema import SchemaOption, read_schema


@app.command(
    epilog=examples(
        'deniable publish people.csv --statistic "mean(income) by region" --statistic "count() by region, sex" '
        "--range income=0:200000 --categories region=N,S --advantage 0.2 --out means.csv --plot means.svg",
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
    records: Annotated[
        int | None, more(help="The number of records, if it is public; otherwise it is counted with noise.")
    ] = None,
    suppress_below: Annotated[float, more(help="Withhold counts whose noisy value is below this.")] = 0.0,
    plot: PlotOption = None,
    advantage: AdvantageOption = None,
    limit: LimitOption = None,
    certificate: Annotated[Path | None, typer.Option(help="Where the certificate goes, as JSON.")] = None,
    schema: SchemaOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Publish statistics of a table, with error bars.

    All records are used, under one budget.

    For a model, see deniable train.
    """
    if out is not None:
        check_writable("--out", out, suffixes=(".csv", ".json"))
    if certificate is not None:
        check_writable("--certificate", certificate, suffixes=(".json",))
    checked_picture(plot)
    from deniable.limits import DEFAULT_ADVANTAGE
    from deniable.statistics import release_statistics

    public: dict[str, Any] = dict(_range(text) for text in given_range or ())
    public |= dict(_categories(text) for text in categories or ())
    asked = asked_for(advantage, limit, DEFAULT_ADVANTAGE)
    told = read_schema(schema)
    made = release_statistics(
        data, statistic, limit=asked, schema=told, ranges=public, n=records, suppress_below=suppress_below
    )
    if certificate is not None:  # first: no table may exist without its certificate
        made.certificate.to_json(certificate)
    if plot is not None:
        picture = io.BytesIO()
        made.plot().savefig(picture, format=plot.suffix[1:].lower(), dpi=150)
        write_atomically(plot, picture.getvalue())
    if out is not None:
        made.to_csv(out) if out.suffix.lower() == ".csv" else made.to_json(out)
    print(made.to_json() if as_json else made)


def _range(text: str) -> tuple[str, tuple[float | str, float | str]]:
    name, _, limits = text.rpartition("=")
    low, _, high = limits.partition(":")
    try:
        return _named(name), (_end(low), _end(high))
    except ValueError:
        raise InputError(
            f"--range must be NAME=LOW:HIGH, as in income=0:200000 or admitted=2020-01-01:2024-12-31, got {text!r}"
        ) from None


def _end(text: str) -> float | str:
    return text if text.count("-") == 2 and "e" not in text.lower() else float(text)


def _categories(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, labels = text.partition("=")
    try:
        return _named(name), tuple(label.strip() for label in labels.split(",") if label.strip())
    except ValueError:
        raise InputError(f"--categories must be NAME=LABEL,LABEL, as in region=North,South, got {text!r}") from None


def _named(name: str) -> str:
    if not name:
        raise ValueError
    return name
