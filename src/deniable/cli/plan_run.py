"""``deniable plan-run``: what a profile of many records, or retraining models, will take, before it starts."""

from __future__ import annotations

from typing import Annotated

import typer

from deniable._check import InputError
from deniable._files import to_json
from deniable.cli._app import JsonFlag, app, examples

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))


@app.command(
    name="plan-run",
    epilog=examples(
        "deniable plan-run --rows 10000000 --columns 20",
        "deniable plan-run --rows 1000000000 --columns 100 --workers 64 --json",
        "deniable plan-run --rows 50000 --columns 30 --models 10000 --training 4 --workers 64",
    ),
)
def plan_run(
    rows: Annotated[float, typer.Option(help="Number of records.")],
    columns: Annotated[int, typer.Option(help="Columns; a text column counts once per value.")],
    workers: Annotated[int, typer.Option(help="Number of parallel processes.")] = 1,
    row_group: Annotated[
        int, typer.Option("--row-group", "--group", help="Rows per row group of the Parquet files.")
    ] = 262_144,
    models: Annotated[
        int | None, typer.Option(help="Models to retrain (an attack, resamples) instead of a profile.")
    ] = None,
    training: Annotated[float | None, typer.Option(help="Measured seconds of one training, with --models.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Estimate time, memory and bytes of a record profile from Parquet, or of retraining models.

    Expect half to twice the figures.
    """
    from deniable.records.cost import PASSES, profile_cost, retraining_cost

    if (models is None) != (training is None):
        raise InputError("--models and --training go together: how many, and the seconds that one of them takes")
    if models is not None and training is not None:
        trained = retraining_cost(int(rows), models, training, columns=columns, workers=workers)
        if as_json:
            print(to_json(trained))
            return
        print(
            f"{trained.models:,} models on halves of {trained.rows:,} records × {trained.columns} columns, "
            f"{trained.workers} at a time (half to twice):"
        )
        print(f"time            {_seconds(trained.seconds)} ({_seconds(trained.cpu_seconds)} of all processors)")
        print(f"memory          {_bytes(trained.memory)} here, and in each worker the data and one model")
        print(f"over the wire   {_bytes(trained.wire_bytes)}")
        return
    found = profile_cost(int(rows), columns, workers=workers, row_group=row_group)
    if as_json:
        print(to_json(found))
        return
    print(f"a profile of {found.rows:,} records × {found.columns} columns, {found.workers} at a time (half to twice):")
    print(f"time            {_seconds(found.seconds)} ({_seconds(found.cpu_seconds)} of all processors)")
    print(f"memory          {_bytes(found.memory)} here" + (
        f", {_bytes(found.worker_memory)} in each worker" if workers > 1 else ""
    ))  # fmt: skip
    print(f"read            {_bytes(found.read_bytes)} in {PASSES} passes")
    print(f"over the wire   {_bytes(found.wire_bytes)}")


def _bytes(count: float) -> str:
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e6:.2g} MB"


def _seconds(count: float) -> str:
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if count >= 2 * size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.3g} s"
