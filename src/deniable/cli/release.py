"""``deniable release``: a model trained on a secret half, or statistics, with a membership guarantee."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deniable._check import InputError, number
from deniable._files import check_writable, to_json, write_atomically
from deniable._optional import require
from deniable.cli._app import JsonFlag, SeedOption, app, examples
from deniable.cli._ranges import RangesOption, read_ranges
from deniable.cli._statistics import release_table
from deniable.cli._workers import ClusterOption, workers

if TYPE_CHECKING:
    from deniable.tables import EncodedRows, Table

Model = Literal["logistic", "linear-svm", "naive-bayes"]
ReleaseBound = Literal["centre", "swap", "auto"]
STATISTICS = "Statistics"
_NOTICED = 0.02  # loss of accuracy by noise, from which on another way of training is named
_ENCODING = (
    "the encoding of the columns and the classes are published with the model: ranges rounded outward to a coarse "
    "grid, texts of at least 3 rows; read off the whole table where --ranges does not give them, they say nothing "
    "about who trained, but they are not hidden"
)
_ACCURACY = (
    "the expected accuracy is that of other random training parts of the whole table: published with the certificate, "
    "it says nothing about who trained"
)


@app.command(
    epilog=examples(
        "deniable release data.csv --target y --model logistic --eta 0.05 --out model.skops --certificate cert.json",
        "deniable release breast-cancer --eta 0.1 --out model.skops --json",
        'deniable release table.csv --statistic "mean(income) by region" --statistic "count() by region, sex" '
        "--range income=0:200000 --categories region=N,S --eta 0.1 --out table.csv --plot table.svg",
    )
)
def release(
    data: Annotated[str, typer.Argument(help="A .csv, .tsv or .parquet file, or breast-cancer or digits-3-8.")],
    out: Annotated[
        Path | None, typer.Option(help="Where the released model (.skops) or the statistics (.csv, .json) go.")
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            "--statistic",
            help='Release this statistic of all records, not a model: "mean(income) by region"; may be repeated, they '
            "share the budget. Functions: count, share, sum, mean, variance, sd, histogram, median, quantile, "
            "trimmed_mean, ecdf, covariance, correlation, regression, survival.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    given_range: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Public range of a column, income=0:200000; may be repeated. Otherwise found privately.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            help="Public categories of a column, region=N,S,E,W; may be repeated. Otherwise found privately.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    suppress_below: Annotated[
        float, typer.Option(help="Withhold counts whose noisy value is below this.", rich_help_panel=STATISTICS)
    ] = 0.0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the statistics: a file ending in .svg or .png.", rich_help_panel=STATISTICS),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column to predict: two to 100 values, its classes.")] = None,
    model: Annotated[Model, typer.Option(help="What to train.")] = "logistic",
    eta: Annotated[float, typer.Option(help="Largest gain of any membership attack over guessing.")] = 0.1,
    regularization: Annotated[
        float, typer.Option("--C", help="Inverse regularisation strength of logistic and SVM models.")
    ] = 1.0,
    fraction: Annotated[float, typer.Option(help="Share of the records used for training.")] = 0.5,
    bound: Annotated[
        ReleaseBound | None,
        typer.Option(
            help="How the noise is bounded: auto (the smaller expected error; the default), centre (any model), swap "
            "(logistic only, less noise)."
        ),
    ] = None,
    n_resamples: Annotated[
        int | None, typer.Option(help="Resamples behind the certificate; by default 256 or more, by eta.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the certificate.")] = 0.99,
    certificate: Annotated[Path | None, typer.Option(help="Where the certificate goes, as JSON.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    ranges: RangesOption = None,
    jobs: Annotated[int | None, typer.Option(help="Number of parallel workers.")] = None,
    cluster: ClusterOption = None,
    seed: SeedOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train on a secret random part of a table and write the model with a certified membership guarantee.

    With --statistic: release statistics of all records instead, with error bars, under one budget.

    A model of more than a few coefficients is nearly always better when it is trained on all records with noise inside
    the training, at the same risk: deniable train. The last line compares what the noise costs here.

    The written model is a scikit-learn pipeline: it takes rows as in the table and encodes them itself. Columns whose
    cells were not taken literally (dates, decimal commas; see the certificate) must be converted in the same way first.
    """
    if statistic:
        if target is not None:
            raise InputError("--target goes with a model, not with --statistic; give one of them")
        return release_table(
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
    for name, given in (("--range", given_range), ("--categories", categories), ("--plot", plot)):
        if given:
            raise InputError(f"{name} goes with --statistic; a model takes its public knowledge from --ranges FILE")
    if out is None:
        raise InputError("--out is missing: where the released model goes, a file ending in .skops")
    check_writable("--out", out, suffixes=(".skops",))
    if certificate is not None:
        check_writable("--certificate", certificate, suffixes=(".json",))
    number("--C", regularization, above=0.0, below=math.inf)
    bound = bound or "auto"
    if bound == "swap" and model != "logistic":
        raise InputError(f"--bound swap covers every record for --model logistic only, got {model}; use --bound centre")
    skops: Any = require("skops.io", purpose="writing a .skops model")
    from sklearn.pipeline import make_pipeline

    from deniable.integrations.sklearn import MembershipPrivate
    from deniable.tables import PUBLIC, encode_rows, read_table
    from deniable.tables.encoding import make_encoder
    from deniable.tables.reading import MOST_CLASSES

    public = read_ranges(ranges)
    table = read_table(data, target, drop=drop or (), ranges=public, most_classes=MOST_CLASSES)
    encoded = encode_rows(table, ranges=public)
    with workers(jobs, cluster):
        fitted = MembershipPrivate(
            _estimator(model, regularization),
            eta=eta,
            bound=bound,
            fraction=fraction,
            n_resamples=n_resamples,
            confidence=confidence,
            random_state=seed,
            progress=None,
            n_jobs=jobs,
        ).fit(encoded.X[:, :-1], table.target.to_numpy())
    promise = fitted.certificate_.to_dict()
    promise["assumptions"] += [_ENCODING, PUBLIC, _ACCURACY]
    promise |= {"model": model, "encoding": _encoding(table, encoded)}
    promise["expected_accuracy"] = _expected_accuracy(fitted, table.target)
    text = to_json(promise)
    if certificate is not None:  # first: no model may exist without its certificate
        write_atomically(certificate, text + "\n")
    write_atomically(out, skops.dumps(make_pipeline(make_encoder(table, encoded.ranges), fitted.estimator_)))
    print(text if as_json else f"{out}: {fitted.certificate_}\nassumes: {_ENCODING}")
    if promise["expected_accuracy"] is not None:
        print(_worth(promise["expected_accuracy"], data, table.target_name, eta), file=sys.stderr if as_json else None)


def _worth(accuracy: dict[str, float], data: str, target: str | None, eta: float) -> str:
    """Say what such a model is worth, and how a better one is had where the noise costs much."""
    noisy, plain, largest = accuracy.values()
    text = (
        f"accuracy of such a model on records that did not train: about {noisy:.3f} (without noise {plain:.3f}, "
        f"always naming the largest class {largest:.3f})"
    )
    if plain - noisy <= _NOTICED:
        return text
    return (
        f"{text}. Training on all records with noise inside the training likely costs less at the same risk: "
        f"deniable train {quote(data)} --target {quote(str(target))} --advantage {2 * eta:g}"
    )


def _expected_accuracy(fitted: Any, target: Any) -> dict[str, float] | None:
    if fitted.expected_score_ is None:
        return None
    with_noise, without = fitted.expected_score_
    return {
        "with_noise": with_noise,
        "without": without,
        "largest_class": float(target.value_counts().max() / len(target)),
    }


def _encoding(table: Table, encoded: EncodedRows) -> dict[str, Any]:
    """What whoever uses the model has to know: the columns, how their cells were read, and the constants."""
    return {
        "columns": list(encoded.columns[:-1]),
        "read_as": {column.name: [column.kind, *column.form.notes] for column in table.columns},
        "ranges": encoded.ranges,
        "read_off_the_data": list(encoded.assumed_public),
    }


def _estimator(model: Model, regularization: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import LinearSVC

    if model == "logistic":
        return LogisticRegression(C=regularization, max_iter=1000)
    return LinearSVC(C=regularization) if model == "linear-svm" else GaussianNB()
