"""``deniable plan``: how much of a pool to hold back, and the noise that then is needed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable._files import to_json
from deniable._progress import stage
from deniable._shown import shown
from deniable.cli._app import MISSED, FprOption, JsonFlag, PlotOption, app, examples
from deniable.cli._picture import checked_picture, draw

if TYPE_CHECKING:
    import pandas as pd


@app.command(
    epilog=examples(
        "deniable plan --pool-size 100000 --precision 0.3 --fpr 0.001 --batch-size 256 --epochs 20 --delta 1e-6",
        "deniable plan --pool-size 5000 --precision 0.2 --fpr 0.01 --batch-size 5000 --rate 0.01 --rate 0.1 --json",
    )
)
def plan(
    pool_size: Annotated[float, typer.Option(help="Number of records held.")],
    precision: Annotated[float, typer.Option(help="Target: largest P(in | attack says in), in (0, 1).")],
    fpr: FprOption,
    batch_size: Annotated[float, typer.Option(help="Expected batch size of DP-SGD.")],
    epochs: Annotated[float, typer.Option(help="Passes over the training set.")] = 1.0,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="Rate at which to thin the pool; may be repeated [default: twelve below the target]."),
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Also state ε at this δ.")] = None,
    low: Annotated[float, typer.Option(help="Smallest noise multiplier to try.")] = 0.3,
    high: Annotated[float, typer.Option(help="Largest noise multiplier to try.")] = 100.0,
    as_json: JsonFlag = False,
    plot: PlotOption = None,
) -> int:
    """Thin the training set: for each rate the least DP-SGD noise that keeps a precision target (exit code 1: none)."""
    import deniable as dn

    picture = checked_picture(plot)
    with stage("looking for the noise at each rate"):
        found = dn.plan_subsampling(
            pool_size,
            precision,
            fpr,
            batch_size=batch_size,
            epochs=epochs,
            rates=rate,
            noise_multipliers=(low, high),
            delta=delta,
        )
    frame = found.to_frame()
    if as_json:
        print(to_json({"precision": precision, "fpr": fpr, "points": frame.to_dict("records")}))
    else:
        print(frame.apply(_cells).to_string(index=False))
    draw(found, picture)
    return 0 if found.feasible.any() else MISSED


_SETTINGS = ("rate", "expected_size", "sample_rate")


def _cells(column: pd.Series[Any]) -> list[str]:
    """Return a column as a person reads it: bounds and noise rounded up, what may be copied as a setting down."""
    if column.name in _SETTINGS:
        return [shown(value, "number", "lower", 6) for value in column]
    if column.name in ("steps", "efficient"):
        return [f"{value:g}" if isinstance(value, float) else str(value) for value in column]
    return [shown(value, "number", "upper") if math.isfinite(value) else "-" for value in column]
