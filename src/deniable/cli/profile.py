"""``deniable profile``: who is exposed, record by record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from deniable._progress import stage
from deniable.cli import _options as options
from deniable.cli._app import again, command, write, wrote

ProfileNoise = Literal["norm-laplace", "gaussian"]


@command(
    "deniable profile breast-cancer --epsilon 1 --regularization 1e-2 --owner-report profile.html",
    "deniable profile adult.parquet --target income --drop split --epsilon 1 --by race --json",
    "deniable profile breast-cancer --epsilon 1 --noise gaussian --delta 1e-5",
    "deniable profile records/ --target y --epsilon 1 --in-blocks --jobs 4 --out each.parquet",
)
def profile(
    data: options.DataArgument,
    epsilon: Annotated[float, typer.Option(help="ε of the perturbation that releases the model.")],
    target: Annotated[str | None, typer.Option(help="Column to predict; it has two values.")] = None,
    regularization: Annotated[float, typer.Option(help="Λ in mean loss + Λ/2‖f‖²; larger means less noise.")] = 1e-2,
    noise: Annotated[ProfileNoise, options.more(help="Law of the noise; gaussian needs --delta.")] = "norm-laplace",
    delta: Annotated[float | None, options.more(help="δ of Gaussian noise.")] = None,
    drop: options.DropOption = None,
    by: Annotated[str | None, typer.Option(help="Column by whose values exposure is summarised.")] = None,
    *,
    reading: options.Reading,
    fpr: options.FprOption = 0.001,
    seed: options.SeedOption = None,
    out: Annotated[
        Path | None, options.file("--out", "Write the whole table here, a row a record", ".csv", ".parquet")
    ] = None,
    in_blocks: Annotated[
        bool,
        options.more(
            "--in-blocks",
            help="Read a Parquet file or folder in blocks; numbers are taken as they are, so scale them beforehand.",
        ),
    ] = False,
    row_bound: Annotated[float, options.more(help="Public bound of the rows' norms, with --in-blocks.")] = 1.0,
    workers: options.Workers,
    pages: Annotated[options.Pages, "owner_report", "policy", "meta", "as_json"],
) -> int:
    """Say who is exposed by a logistic regression.

    Every training record is profiled: its privacy loss and attack rates.

    The result is as sensitive as the data: keep it with them, never publish it with the model.
    """
    said = pages.prepared()
    import deniable as dn
    from deniable.noise import only_our_words
    from deniable.tables import column_among, encode, understand

    fit: dict[str, Any] = {
        "regularization": regularization,
        "mechanism": dn.OutputPerturbation(epsilon=epsilon, noise=noise, delta=delta, row_bound=row_bound),
        "rng": seed,
        "n_jobs": workers.jobs,
    }
    table = None
    if in_blocks:
        told = {"drop": drop, "by": by, **vars(reading)}
        options.refuse("does not go with --in-blocks, which takes the columns as they are", **told)
        with workers.start(), stage(f"leaving each record of {data} out"):
            found = dn.privacy_profile(Path(data), target=target, **fit)
    else:
        alone = {"jobs": workers.jobs is not None, "cluster": workers.cluster, "row_bound": row_bound != 1}
        options.refuse("goes with --in-blocks: without it one process scales rows to norm 1", **alone)
        source, schema = reading.opened(data)
        with only_our_words():
            table = understand(source, target, drop=tuple(drop or ()), schema=schema)
        if by is not None:
            by = column_among("--by", by, table.frame.columns)
        X, y = encode(table)
        with stage(f"leaving each of {len(y):,} records out"):
            found = dn.privacy_profile(X, y, **fit)
    if out is not None and out.suffix == ".csv":
        write({out: found.to_frame(fpr).to_csv(index=False)})
    if out is not None and out.suffix == ".parquet":
        found.to_parquet(out, fpr)
        wrote(out)
    group = None if by is None or table is None else (by, table.frame[by].to_numpy())
    made = dn.assess(found, fpr=(0.1, 0.01, fpr), group=group, **said)
    write(pages.files(made))
    return replace(pages, full=True).show(made, () if pages.owner_report else again("--owner-report", "profile.html"))
