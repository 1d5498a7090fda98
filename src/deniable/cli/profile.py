"""``deniable profile``: who is exposed, record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from deniable._files import check_writable
from deniable._progress import stage
from deniable.cli._app import FprOption, JsonFlag, SeedOption, again, app, examples, more, write, wrote
from deniable.cli._report import (
    MetaOption,
    OwnerReportOption,
    PolicyOption,
    prepared,
    show,
)
from deniable.cli._schema import DecimalOption, SchemaOption, opened
from deniable.cli._workers import ClusterOption, workers

ProfileNoise = Literal["norm-laplace", "gaussian"]


@app.command(
    epilog=examples(
        "deniable profile breast-cancer --epsilon 1 --regularization 1e-2 --owner-report profile.html",
        "deniable profile adult.parquet --target income --drop split --epsilon 1 --by race --json",
        "deniable profile breast-cancer --epsilon 1 --noise gaussian --delta 1e-5",
        "deniable profile records/ --target y --epsilon 1 --in-blocks --jobs 4 --out each.parquet",
    )
)
def profile(
    data: Annotated[
        str, typer.Argument(help="A .csv or .parquet file, or a built-in name: breast-cancer, digits-3-8.")
    ],
    epsilon: Annotated[float, typer.Option(help="ε of the perturbation that releases the model.")],
    target: Annotated[str | None, typer.Option(help="Column to predict; it has two values.")] = None,
    regularization: Annotated[float, typer.Option(help="Λ in mean loss + Λ/2‖f‖²; larger means less noise.")] = 1e-2,
    noise: Annotated[ProfileNoise, more(help="Law of the noise; gaussian needs --delta.")] = "norm-laplace",
    delta: Annotated[float | None, more(help="δ of Gaussian noise.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    by: Annotated[str | None, typer.Option(help="Column by whose values exposure is summarised.")] = None,
    schema: SchemaOption = None,
    decimal: DecimalOption = None,
    fpr: FprOption = 0.001,
    seed: SeedOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the whole table here, a row a record: .csv or .parquet."),
    ] = None,
    owner_report: OwnerReportOption = None,
    in_blocks: Annotated[
        bool,
        more(
            "--in-blocks",
            help="Read a Parquet file or folder in blocks; numbers are taken as they are, so scale them beforehand.",
        ),
    ] = False,
    row_bound: Annotated[float, more(help="Public bound of the rows' norms, with --in-blocks.")] = 1.0,
    jobs: Annotated[int | None, more(help="Number of parallel workers.")] = None,
    cluster: ClusterOption = None,
    policy: PolicyOption = None,
    meta: MetaOption = None,
    as_json: JsonFlag = False,
) -> int:
    """Say who is exposed by a logistic regression.

    Every training record is profiled: its privacy loss and attack rates.

    The result is as sensitive as the data: keep it with them, never publish it with the model.
    """
    if out is not None:
        check_writable("--out", out, suffixes=(".csv", ".parquet"))
    said = prepared(policy, meta, owner_report=owner_report)
    import deniable as dn
    from deniable.noise import only_our_words
    from deniable.tables import encode, understand

    options: dict[str, Any] = {
        "regularization": regularization,
        "mechanism": dn.OutputPerturbation(epsilon=epsilon, noise=noise, delta=delta, row_bound=row_bound),
        "rng": seed,
        "n_jobs": jobs,
    }
    table = None
    if in_blocks:
        for name, given in (("--drop", drop), ("--by", by), ("--schema", schema), ("--decimal", decimal)):
            if given:
                raise dn.InputError(f"{name} does not go with --in-blocks, which takes the columns as they are")
        with workers(jobs, cluster), stage(f"leaving each record of {data} out"):
            found = dn.privacy_profile(Path(data), target=target, **options)
    else:
        for name, wanted in (("--jobs", jobs), ("--cluster", cluster)):
            if wanted is not None:
                raise dn.InputError(f"{name} goes with --in-blocks")
        if row_bound != 1:
            raise dn.InputError("--row-bound goes with --in-blocks: without it rows are scaled to norm 1")
        source, told = opened(data, schema, decimal)
        with only_our_words():
            table = understand(source, target, drop=tuple(drop or ()), schema=told)
        if by is not None and by not in table.frame.columns:
            raise dn.InputError(f"--by {by!r} is not a column; known are {', '.join(map(str, table.frame.columns))}")
        encoded = encode(table)
        with stage(f"leaving each of {len(encoded.y):,} records out"):
            found = dn.privacy_profile(encoded.X, encoded.y, **options)
    if out is not None and out.suffix == ".csv":
        write(out, found.to_frame(fpr).to_csv(index=False))
    if out is not None and out.suffix == ".parquet":
        found.to_parquet(out, fpr)
        wrote(out)
    rates = (0.1, 0.01, fpr) if fpr not in (0.1, 0.01) else (0.1, 0.01)
    group = None if by is None or table is None else (by, table.frame[by].to_numpy())
    made = dn.assess(found, fpr=rates, group=group, **said)
    again_for_page = again("--owner-report", "profile.html") if owner_report is None else ()
    return show(made, owner_report, as_json, policy, full=True, following=again_for_page)
