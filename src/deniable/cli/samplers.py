"""``deniable samplers``: which way of drawing batches needs the least noise."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

import typer

from deniable._check import integer
from deniable._files import to_json
from deniable._shown import shown
from deniable.cli._app import MISSED, JsonFlag, PlotOption, app, examples, suggest
from deniable.cli._limit import AdvantageOption, LimitOption, read_limit
from deniable.cli._picture import checked_picture, draw
from deniable.cli._run import PersonOption, person, run_options, typed
from deniable.cli._sampler import MaxBatchOption

_WIDE = 0.01  # of the advantage: bounds that are further apart are reported


@app.command(
    epilog=examples(
        "deniable samplers --n-records 50000 --batch-size 250 --epochs 5 --advantage 0.1",
        "deniable samplers --n-records 20000 --batch-size 100 --records-per-person 3 --advantage 0.2",
        "deniable samplers --n-records 2000 --batch-size 100 --limit tpr=0.01,fpr=0.001 --json",
    )
)
def samplers(
    n_records: Annotated[float, typer.Option(help="Number of records.")],
    batch_size: Annotated[float, typer.Option(help="Average number of records per batch.")],
    epochs: Annotated[float, typer.Option(help="Passes over the data.")] = 1,
    max_batch: MaxBatchOption = None,
    records_per_person: PersonOption = None,
    advantage: AdvantageOption = None,
    limit: LimitOption = None,
    low: Annotated[float, typer.Option(help="Smallest noise multiplier to try.")] = 0.2,
    high: Annotated[float, typer.Option(help="Largest noise multiplier to try.")] = 200.0,
    as_json: JsonFlag = False,
    plot: PlotOption = None,
) -> int:
    """Shuffle or Poisson? The least DP-SGD noise that keeps a limit, for each way of drawing batches.

    Exit code 1: none meets it.
    """
    import deniable as dn
    from deniable.planning.samplers import PROTECTS

    picture = checked_picture(plot)
    found = dn.plan_samplers(
        integer("n_records", n_records),
        integer("batch_size", batch_size),
        integer("epochs", epochs),
        records_per_person=person(records_per_person),
        max_batch=None if max_batch is None else integer("max_batch", max_batch),
        noise_multipliers=(low, high),
        advantage=advantage,
        limit=read_limit(limit),
    )
    if as_json:
        rows = [dataclasses.asdict(row) | {"mechanism": repr(row.mechanism)} for row in found.rows]
        print(to_json({"limit": found.limit.arguments, "rows": rows}))
    else:
        print(f"{found.limit.words()}\n")
        whom = "record" if records_per_person in (None, 1) else "person"
        print(f"{'sampler':<21}{f'protects a {whom}':<20}{'noise':>9}   attackers' advantage")
        for row in found.rows:
            known = row.noise_multiplier < math.inf
            noise = shown(row.noise_multiplier, "number", "upper", 5) if known else f"> {high:g}"
            at_most, at_least = shown(row.advantage, "rate", "upper"), shown(row.attained, "rate", "lower")
            reached = f"at most {at_most}"
            if not row.advantage - row.attained <= _WIDE * row.advantage:
                reached += f", some reach {at_least}: less noise may be enough"
            print(f"{row.sampler:<21}{PROTECTS[row.adjacency]:<20}{noise:>9}   {reached}")
        print("\nRows that protect different things cannot be compared; without-replacement and shuffled have no bound")
        print("for a record added or removed. Use the sampler that really draws the batches: assess --sampler NAME.")
        least = min(found.rows, key=lambda row: row.noise_multiplier)
        if least.noise_multiplier < math.inf and isinstance(least.mechanism, dn.SubsampledGaussian):
            enough = float(shown(least.noise_multiplier, "number", "upper", 7))
            run = run_options(enough, least.mechanism.sample_rate, float(least.mechanism.steps), records_per_person)
            suggest("assess", *typed(run), "--out", "report.html")
    draw(found, picture)
    return 0 if any(row.noise_multiplier < math.inf for row in found.rows) else MISSED
