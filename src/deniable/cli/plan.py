"""``deniable plan``: the sampler that needs the least noise, or how much of a pool to hold back."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from deniable._check import InputError, integer
from deniable._files import to_json
from deniable._progress import stage
from deniable._shown import shown
from deniable.cli import _options as options
from deniable.cli._app import FINE, MISSED, command, suggest
from deniable.cli.run import RunArgument, read_run, unknown

if TYPE_CHECKING:
    from deniable.mechanisms import SubsampledGaussian
    from deniable.planning import SamplerPlan, SubsamplingPlan

_WIDE = 0.01  # of the advantage: bounds that are further apart are reported
_NEAR = 0.01  # share by which batches or passes may differ from whole numbers


@command(
    "deniable plan 'dpsgd,?,0.005,1000' --records 50000 --advantage 0.1",
    "deniable plan 'person,3: dpsgd,?,0.005,200' --records 20000 --advantage 0.2 --json",
    "deniable plan 'dpsgd,?,0.00256,7813' --records 100000 --precision 0.3 --fpr 0.001 --delta 1e-6",
)
def plan(
    run: RunArgument,
    records: Annotated[float, typer.Option(help="Number of records, public: the batches are a share of them.")],
    *,
    asked: options.AskedLimit,
    precision: Annotated[
        float | None,
        typer.Option(help="Thin the pool of records instead: largest P(in | attack says in), at --fpr."),
    ] = None,
    fpr: Annotated[float | None, typer.Option(help="With --precision: false positive rate; 0.001 means 0.1 %.")] = None,
    delta: Annotated[float | None, options.more(help="With --precision: also state ε at this δ.")] = None,
    rate: Annotated[
        list[float] | None,
        options.more(help="With --precision: rate to thin at; may be repeated [default: twelve below the target]."),
    ] = None,
    low: Annotated[float, options.more(help="Smallest noise multiplier to try.")] = 0.01,
    high: Annotated[float, options.more(help="Largest noise multiplier to try.")] = 1e6,
    as_json: options.JsonFlag = False,
) -> int:
    """Find the least noise for each way of drawing batches.

    The noise is the ? of a DP-SGD run.

    With --advantage or --limit the ways of drawing batches are compared; with --precision and --fpr the rates
    at which the training set may be thinned. Exit code 1: none is enough. For other runs see calibrate.
    """
    import deniable as dn

    ran = read_run(run, 1.0)
    if unknown(run)[0] != "noise_multiplier" or not isinstance(ran, dn.SubsampledGaussian):
        raise InputError(f"run must be dpsgd,?,RATE,STEPS, whose noise is to be found, got {run!r}; see calibrate")
    shared: dict[str, Any] = {"records_per_person": ran.records_per_person, "noise_multipliers": (low, high)}
    if precision is None:
        options.refuse("goes with --precision", fpr=fpr is not None, delta=delta is not None, rate=rate)
        goal, count = asked.one(), integer("records", records, at_least=2)
        batch = _whole("RATE·records", ran.sample_rate * count)
        epochs = _whole("RATE·STEPS", ran.sample_rate * ran.steps)
        compared = dn.planning.plan_samplers(count, batch, epochs, limit=goal, **shared)
        if as_json:
            rows = [dataclasses.asdict(row) | {"mechanism": repr(row.mechanism)} for row in compared.rows]
            print(to_json({"limit": compared.limit.arguments, "batch_size": batch, "epochs": epochs, "rows": rows}))
        else:
            print(f"{compared.limit.words()}; batches of {batch:,} of {count:,} records, epochs: {epochs:,}\n")
            _show_samplers(compared, "record" if ran.records_per_person == 1 else "person", high)
        return FINE if any(row.noise_multiplier < math.inf for row in compared.rows) else MISSED
    options.refuse("does not go with --precision, which is the limit", **vars(asked))
    if fpr is None:
        raise InputError("--precision needs --fpr, the false positive rate at which it is promised")
    sizes: dict[str, Any] = {"batch_size": ran.sample_rate * records, "epochs": ran.sample_rate * ran.steps}
    with stage("looking for the noise at each rate"):
        found = dn.planning.plan_subsampling(records, precision, fpr, rates=rate, delta=delta, **sizes, **shared)
    if as_json:
        points = [{name: getattr(found, name)[at].item() for name in _COLUMNS} for at in range(found.rate.size)]
        print(to_json({"precision": precision, "fpr": fpr, "points": points}))
    else:
        _show_rates(found)
        if found.efficient.any():  # of the efficient rates the one with most data
            best = int(np.flatnonzero(found.efficient)[-1])
            settings: Any = {"sample_rate": float(found.sample_rate[best]), "steps": int(found.steps[best])}
            words = _dpsgd(dataclasses.replace(ran, **settings), float(found.noise_multiplier[best]))
            suggest("assess", words, "--prior", f"{found.rate[best]:g}", "--fpr", f"{fpr:g}", "--report", "report.html")
    return FINE if found.feasible.any() else MISSED


def _whole(what: str, value: float) -> int:
    near = max(round(value), 1)
    if abs(near - value) > _NEAR * near:
        raise InputError(f"{what} must be about a whole number (records of a batch, passes), got {value:g}")
    return near


def _show_samplers(found: SamplerPlan, whom: str, high: float) -> None:
    from deniable.mechanisms import SubsampledGaussian
    from deniable.planning import PROTECTS

    print(f"{'sampler':<21}{f'protects a {whom}':<20}{'noise':>9}   attackers' advantage")
    for row in found.rows:
        known = row.noise_multiplier < math.inf
        noise = shown(row.noise_multiplier, "number", "upper", 5) if known else f"> {high:g}"
        at_most, at_least = shown(row.advantage, "rate", "upper"), shown(row.attained, "rate", "lower")
        reached = f"at most {at_most}"
        if not row.limit_decides:
            reached += "; less noise was not tried"
        if not row.advantage - row.attained <= _WIDE * row.advantage:
            reached += f", some reach {at_least}: less noise may be enough"
        print(f"{row.sampler:<21}{PROTECTS[row.adjacency]:<20}{noise:>9}   {reached}")
    print("\nRows that protect different things cannot be compared; without-replacement and shuffled have no bound")
    print("for a record added or removed. Assess the sampler that really draws the batches (dpsgd: Poisson).")
    least = min(found.rows, key=lambda row: row.noise_multiplier)
    if least.noise_multiplier < math.inf and isinstance(least.mechanism, SubsampledGaussian):
        suggest("assess", _dpsgd(least.mechanism, least.noise_multiplier), "--report", "report.html")


def _dpsgd(run: SubsampledGaussian, noise: float) -> str:
    person = "" if run.records_per_person == 1 else f"person,{run.records_per_person}: "
    return f"{person}dpsgd,{shown(noise, 'number', 'upper', 7)},{run.sample_rate!r},{run.steps}"


# bounds and noise are rounded up, what may be copied as a setting down
_COLUMNS = {
    "rate": ("T", "lower", "share of the pool that trains, drawn in secret"),
    "expected_size": ("size", "lower", "expected number of training records"),
    "noise_multiplier": ("noise", "upper", "least noise multiplier that keeps the target"),
    "sample_rate": ("q", "lower", "sampling rate of a step: batch size / size"),
    "steps": ("steps", "lower", "number of steps"),
    "precision": ("right", "upper", "an attack that accuses is right at most this often"),
    "precision_without_thinning": ("even", "upper", "the same, if it was known that every second record was in"),
    "precision_from_dp": ("from_ε", "upper", "what ε at δ alone would promise for the same run"),
    "epsilon": ("ε", "upper", "of the steps at δ, towards the training set"),
    "pool_epsilon": ("pool_ε", "upper", "was the record in the pool? another question, not to be multiplied in"),
    "efficient": ("efficient", "", "no other rate has as much data with less noise"),
}


def _show_rates(found: SubsamplingPlan) -> None:
    """Print a row a rate, with short headings, and what these mean."""
    columns = []
    for name, (short, side, _) in _COLUMNS.items():
        columns.append([short, *(_cell(value, side) for value in getattr(found, name).tolist())])
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        print(" ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    for short, _, words in _COLUMNS.values():
        print(f"{short:<9} {words}")


def _cell(value: float, side: str) -> str:
    if not side:
        return "yes" if value else "no"
    return shown(value, "number", side, 6 if side == "lower" else 4) if math.isfinite(value) else "-"
