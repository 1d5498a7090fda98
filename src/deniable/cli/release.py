"""``deniable release``: train on a secret half, release the model with a membership guarantee."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from deniable._check import InputError, number
from deniable._files import check_writable, to_json, write_atomically
from deniable._optional import require
from deniable.cli._app import JsonFlag, SeedOption, app, examples
from deniable.cli._workers import start_workers

Model = Literal["logistic", "linear-svm", "naive-bayes"]
Bound = Literal["centre", "swap"]
_ENCODING = (
    "the encoding of the columns (ranges, categories) and the classes are read off the whole table and published with "
    "the model: they say nothing on who trained, but they are not hidden"
)


@app.command(
    epilog=examples(
        "deniable release data.csv --target y --model logistic --eta 0.05 --out model.skops --certificate cert.json",
        "deniable release breast-cancer --eta 0.1 --out model.skops --json",
    )
)
def release(
    data: Annotated[str, typer.Argument(help="A .csv, .tsv or .parquet file, or breast-cancer or digits-3-8.")],
    out: Annotated[Path, typer.Option(help="Where the released model goes: a file ending in .skops.")],
    target: Annotated[str | None, typer.Option(help="Column to predict: exactly two values.")] = None,
    model: Annotated[Model, typer.Option(help="What to train.")] = "logistic",
    eta: Annotated[float, typer.Option(help="Largest gain of any membership attack over guessing.")] = 0.1,
    regularization: Annotated[float, typer.Option("--C", help="Inverse regularisation of logistic and SVM.")] = 1.0,
    fraction: Annotated[float, typer.Option(help="Share of the records that trains.")] = 0.5,
    bound: Annotated[
        Bound, typer.Option(help="How the noise is bounded. centre: any model. swap: logistic only, less noise.")
    ] = "centre",
    n_resamples: Annotated[int, typer.Option(help="Resamples behind the certificate.")] = 256,
    confidence: Annotated[float, typer.Option(help="Confidence of the certificate.")] = 0.99,
    certificate: Annotated[Path | None, typer.Option(help="Where the certificate goes, as JSON.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of parallel workers.")] = None,
    seed: SeedOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train on a secret random part of a table and write the model with a certified membership guarantee.

    The written model is a scikit-learn pipeline: it takes rows as in the table and encodes them itself.
    """
    check_writable("--out", out, suffixes=(".skops",))
    if certificate is not None:
        check_writable("--certificate", certificate, suffixes=(".json",))
    number("--C", regularization, above=0.0, below=math.inf)
    if bound == "swap" and model != "logistic":
        raise InputError(f"--bound swap covers every record for --model logistic only, got {model}; use --bound centre")
    skops: Any = require("skops.io", purpose="writing a .skops model")
    from sklearn.pipeline import make_pipeline

    from deniable.integrations.sklearn import MembershipPrivate
    from deniable.tables.reading import encode, read_table

    table = read_table(data, target, drop=drop or ())
    encoded = encode(table)
    start_workers(jobs)
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
    promise["assumptions"] += [_ENCODING]
    promise |= {"model": model, "encoding": {"columns": list(encoded.columns[:-1]), "ranges": encoded.ranges}}
    text = to_json(promise)
    if certificate is not None:  # first: no model may lie about without its certificate
        write_atomically(certificate, text + "\n")
    write_atomically(out, skops.dumps(make_pipeline(_encoder(table.features, encoded.ranges), fitted.estimator_)))
    print(text if as_json else f"{out}: {fitted.certificate_}\nassumes: {_ENCODING}")


def _encoder(features: Any, ranges: dict[str, list[Any]]) -> Any:
    """Return the encoding of the table as a transformer that has seen nothing but its published constants."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    size = 1 / math.sqrt(features.shape[1] + 1)
    numeric = [c for c in features.columns if pd.api.types.is_numeric_dtype(features[c])]
    textual = [c for c in features.columns if c not in numeric]
    texts = [ranges[str(c)] for c in textual]
    public = pd.DataFrame({c: ranges[str(c)] if c in numeric else ranges[str(c)][:1] * 2 for c in features.columns})
    categories = OneHotEncoder(categories=texts, handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((MinMaxScaler((-size, size), clip=True), numeric), (categories, textual))
    return encoder.set_params(transformer_weights={"onehotencoder": size}).fit(public)


def _estimator(model: Model, regularization: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import LinearSVC

    if model == "logistic":
        return LogisticRegression(C=regularization, max_iter=1000)
    return LinearSVC(C=regularization) if model == "linear-svm" else GaussianNB()
