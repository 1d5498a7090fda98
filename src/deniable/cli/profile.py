"""``deniable profile``: who is exposed, record by record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from deniable._files import check_writable, to_json, write_atomically
from deniable._progress import stage
from deniable._shown import shown
from deniable.cli._app import FprOption, JsonFlag, SeedOption, again, app, examples, more, suggest
from deniable.cli._report import (
    MetaOption,
    OwnerReportOption,
    PolicyOption,
    checked_policy,
    checked_report,
    code,
    write,
)
from deniable.cli._schema import SchemaOption, read_schema
from deniable.cli._workers import ClusterOption, workers

if TYPE_CHECKING:
    import pandas as pd

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
    top: Annotated[int, more(help="How many of the most exposed records to print.")] = 10,
    schema: SchemaOption = None,
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
    checked_report(owner_report, "--owner-report")
    import deniable as dn
    from deniable.tables import encode, understand

    limits = checked_policy(policy)
    options: dict[str, Any] = {
        "regularization": regularization,
        "mechanism": dn.OutputPerturbation(epsilon=epsilon, noise=noise, delta=delta, row_bound=row_bound),
        "rng": seed,
        "n_jobs": jobs,
    }
    table = None
    if in_blocks:
        for name, given in (("--drop", drop), ("--by", by), ("--schema", schema)):
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
        table = understand(data, target, drop=tuple(drop or ()), schema=read_schema(schema))
        if by is not None and by not in table.frame.columns:
            raise dn.InputError(f"--by {by!r} is not a column; known are {', '.join(map(str, table.frame.columns))}")
        encoded = encode(table)
        with stage(f"leaving each of {len(encoded.y):,} records out"):
            found = dn.privacy_profile(encoded.X, encoded.y, **options)
    if out is not None and out.suffix == ".csv":
        write_atomically(out, found.to_frame(fpr).to_csv(index=False))
    if out is not None and out.suffix == ".parquet":
        found.to_parquet(out, fpr)
    rates = (0.1, 0.01, fpr) if fpr not in (0.1, 0.01) else (0.1, 0.01)
    made = dn.assess(found, fpr=rates, policy=limits, meta=meta)
    if owner_report is not None:
        write(made, owner_report)
    exposed = found.most_exposed(top, fpr, by="typical").drop(columns="privacy_loss")  # no release was given
    groups = None if by is None or table is None else found.by(table.frame[by].to_numpy(), fpr)
    band = found.transition()
    if as_json:
        facts = {
            "records": len(found),
            "largest_advantage": float(found.advantage().max()),
            "median_advantage": float(np.median(found.advantage())),
            "largest_relative_error": float(np.max(found.radius() / found.distance)),
            "transition": band and {"epsilon_low": band.epsilon_low, "epsilon_high": band.epsilon_high},
            "most_exposed": exposed.to_dict(orient="records"),
            "groups": None if groups is None else groups.reset_index().to_dict(orient="records"),
            "decision": made.decision,
            "warning": found.warning,
        }
        print(to_json(facts))
        return code(made, limits)
    print(f"{len(found):,} records, {found.optimum.size} parameters, ε = {epsilon:g}, Λ = {regularization:g}")
    largest, median = (shown(float(of(found.advantage())), "rate", "upper") for of in (np.max, np.median))
    print(f"largest advantage {largest}, median {median}")
    first, last = (shown(end, "number", "lower", 3) for end in (band.epsilon_low, band.epsilon_high))
    print(f"the worst record's advantage passes 5 % at ε = {first} and 95 % at ε = {last}")
    print("\nmost exposed with this noise (the first row is 0):")
    print(_readable(exposed, fpr).to_string(index=False))
    if groups is not None:
        groups = groups.drop(columns="largest_size_of_privacy_loss")
        print(f"\nby {by}:\n{_readable(groups, fpr).to_string()}")
    print(f"\n{found.warning}")
    if limits is not None and made.decision is not None:
        print(f"\n{made.decision.outcome} ({limits.name}): {made.decision.reason}")
    if owner_report is None and not in_blocks:
        suggest(*again("--owner-report", "profile.html"))
    return code(made, limits)


def _readable(frame: pd.DataFrame, fpr: float) -> pd.DataFrame:
    """Return a table as a person reads it: attack rates are bounds, in percent and rounded up."""
    percent = shown(fpr, "rate", "nearest")
    made: pd.DataFrame = frame.apply(_cells)
    made.columns = [str(name).replace(f"tpr_at_fpr_{fpr:g}", f"TPR at FPR {percent}") for name in frame.columns]
    return made


def _cells(column: pd.Series[Any]) -> list[str]:
    if column.dtype.kind != "f":
        return [str(value) for value in column]
    if "advantage" in str(column.name) or "tpr" in str(column.name):
        return [shown(float(value), "rate", "upper") for value in column]
    return [shown(float(value), "number", "nearest") for value in column]
