"""``deniable plan``: how much of a pool to hold back, and the noise that is then needed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable._files import to_json
from deniable._progress import stage
from deniable._shown import shown
from deniable.cli._app import MISSED, FprOption, JsonFlag, PlotOption, app, examples, suggest
from deniable.cli._picture import checked_picture, draw
from deniable.cli._run import PersonOption, person, run_options, typed

if TYPE_CHECKING:
    import pandas as pd


@app.command(
    epilog=examples(
        "deniable plan --pool-size 100000 --precision 0.3 --fpr 0.001 --batch-size 256 --epochs 20 --delta 1e-6",
        "deniable plan --pool-size 5000 --precision 0.2 --fpr 0.01 --batch-size 5000 --rate 0.01 --rate 0.1 --json",
    )
)
def plan(
    pool_size: Annotated[float, typer.Option(help="Number of records in the pool.")],
    precision: Annotated[float, typer.Option(help="Target: largest P(in | attack says in), in (0, 1).")],
    fpr: FprOption,
    batch_size: Annotated[float, typer.Option(help="Expected batch size of DP-SGD.")],
    epochs: Annotated[float, typer.Option(help="Passes over the training set.")] = 1.0,
    records_per_person: PersonOption = None,
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
    """Thin the training set: for each rate the least DP-SGD noise that keeps a precision target (exit code 1: none).

    Other questions: calibrate finds the noise, steps or records per person of any mechanism (--mechanism NAME,…,?);
    samplers compares Poisson, shuffled, fixed-size and allocated batches.
    """
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
            records_per_person=person(records_per_person),
        )
    frame = found.to_frame()
    if as_json:
        print(to_json({"precision": precision, "fpr": fpr, "points": frame.to_dict("records")}))
    else:
        print(_readable(frame).to_string(index=False))
        print("\n".join(f"{short:<9} {words}" for short, words in _COLUMNS.values()))
        for best in frame[frame["efficient"]].tail(1).itertuples():  # of the efficient rates the one with most data
            run = run_options(best.noise_multiplier, best.sample_rate, best.steps, records_per_person)
            suggest("assess", *typed(run), "--prior", f"{best.rate:g}", "--fpr", f"{fpr:g}", "--out", "report.html")
    draw(found, picture)
    return 0 if found.feasible.any() else MISSED


_COLUMNS = {
    "rate": ("T", "share of the pool that trains, drawn in secret"),
    "expected_size": ("size", "expected number of training records"),
    "noise_multiplier": ("noise", "least noise multiplier that keeps the target"),
    "sample_rate": ("q", "sampling rate of a step: batch size / size"),
    "steps": ("steps", "number of steps"),
    "precision": ("right", "an attack that accuses is right at most this often"),
    "precision_without_thinning": ("even", "the same if it were known beforehand that every second record was in"),
    "precision_from_dp": ("from_ε", "what ε at δ alone would promise for the same run"),
    "epsilon": ("ε", "of the steps at δ, towards the training set"),
    "pool_epsilon": ("pool_ε", "was the record in the pool? another question, not to be multiplied in"),
    "efficient": ("efficient", "no other rate has as much data with less noise"),
}


def _readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table as a person reads it, with short headings; _COLUMNS says what they are."""
    made: pd.DataFrame = frame.apply(_cells)
    made.columns = [_COLUMNS[str(name)][0] for name in frame.columns]
    return made


_SETTINGS = ("rate", "expected_size", "sample_rate")


def _cells(column: pd.Series[Any]) -> list[str]:
    """Return a column as a person reads it: bounds and noise rounded up, what may be copied as a setting down."""
    if column.name in _SETTINGS:
        return [shown(value, "number", "lower", 6) for value in column]
    if column.name == "efficient":
        return ["yes" if value else "no" for value in column]
    if column.name == "steps":
        return [f"{value:g}" if isinstance(value, float) else str(value) for value in column]
    return [shown(value, "number", "upper") if math.isfinite(value) else "-" for value in column]
