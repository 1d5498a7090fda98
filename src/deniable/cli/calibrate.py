"""``deniable calibrate``: the smallest noise that keeps a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deniable._check import InputError
from deniable._files import to_json
from deniable._progress import stage
from deniable.cli._app import JsonFlag, app, examples, suggest
from deniable.cli._limit import AdvantageOption, LimitOption, read_limit
from deniable.cli._mechanism import (
    MECHANISM,
    SOUGHT,
    TRIALS,
    MechanismOption,
    TrialsOption,
    filled,
    parameter_sought,
)
from deniable.cli._run import PersonOption, run_options, typed
from deniable.cli._sampler import (
    NOISE,
    PERSON,
    BatchesOption,
    BatchSizeOption,
    EpochsOption,
    MaxBatchOption,
    PerRecordOption,
    RecordsOption,
    SamplerOption,
    described,
)

if TYPE_CHECKING:
    from deniable.curves import Tradeoff
    from deniable.limits import Limit
    from deniable.planning import AsTellingAs


@app.command(
    epilog=examples(
        "deniable calibrate --sample-rate 0.01 --steps 5000 --advantage 0.1",
        "deniable calibrate --sample-rate 0.01 --steps 5000 --limit tpr=1e-4,fpr=1e-5 --json",
        "deniable calibrate --sample-rate 0.01 --steps 5000 --limit reconstruction=0.01,baseline=0.001",
        "deniable calibrate --sample-rate 0.01 --steps 5000 --limit attribute=0.75,prior=[0.7,0.2,0.1]",
        "deniable calibrate --sample-rate 0.01 --steps 500 --advantage 0.1 --records-per-person 4",
        "deniable calibrate --sampler allocation --batches 100 --epochs 5 --advantage 0.1",
        "deniable calibrate --find records-per-person --noise-multiplier 2 --sample-rate 0.1 --steps 9 --advantage 0.5",
        "deniable calibrate --mechanism laplace,?,steps=100 --advantage 0.1",
        "deniable calibrate --mechanism gradient-descent,100,100,0.05,1,0.5 --find trials --advantage 0.2",
    )
)
def calibrate(
    sample_rate: Annotated[
        float | None, typer.Option(help="Probability with which a record enters a step, in (0, 1].")
    ] = None,
    steps: Annotated[float | None, typer.Option(help="Number of DP-SGD steps.")] = None,
    mechanism: MechanismOption = None,
    trials: TrialsOption = None,
    records_per_person: PersonOption = None,
    find: Annotated[
        Literal["noise", "steps", "epochs", "records-per-person", "trials"] | None,
        typer.Option(
            help="What to find: the least noise or, with the noise given, the largest value of another option. "
            f"[default: noise, or the number written {SOUGHT} in {MECHANISM}]"
        ),
    ] = None,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Noise multiplier, when --find names something else.")
    ] = None,
    sampler: SamplerOption = None,
    batches: BatchesOption = None,
    epochs: EpochsOption = None,
    batches_per_record: PerRecordOption = None,
    batch_size: BatchSizeOption = None,
    max_batch: MaxBatchOption = None,
    n_records: RecordsOption = None,
    advantage: AdvantageOption = None,
    limit: LimitOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Protect against replacing a record, not adding or removing it.")
    ] = False,
    low: Annotated[
        float | None, typer.Option(help="Smallest number to try. [default: 0.2 for noise, 1 otherwise]")
    ] = None,
    high: Annotated[
        float | None,
        typer.Option(help="Largest number to try. [default: 200 for noise, 64 records, 100,000 steps, 1,000 epochs]"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Find the smallest noise multiplier of a DP-SGD run that keeps a limit, rounded to the safe side.

    With --find, the most steps, epochs, records of one person, or trials that a given noise affords. With --mechanism,
    the number of any mechanism that is written ?.
    """
    import deniable as dn
    from deniable.planning.limit import as_limit

    given = read_limit(limit)
    asked = as_limit(advantage, given)
    run = run_options(
        noise_multiplier, sample_rate, steps, records_per_person, sampler=sampler, batches=batches, epochs=epochs,
        batches_per_record=batches_per_record, batch_size=batch_size, max_batch=max_batch, n_records=n_records,
        mechanism=mechanism, trials=trials,
    )  # fmt: skip
    marked = parameter_sought(mechanism or [])
    if marked is not None and find is not None:
        raise InputError(f"{SOUGHT} in {MECHANISM} marks what to find; leave out --find")
    if marked is None and mechanism and find != "trials":
        raise InputError(f"{MECHANISM} needs {SOUGHT} in place of the number to find, as laplace,{SOUGHT},steps=10")
    sought, (least, most), whole = _SOUGHT[find or "noise"] if marked is None else _marked(*marked)
    if marked is None and run[sought] is not None:
        raise InputError(f"{sought} is what --find looks for; leave it out, or choose another --find")

    def make(value: float) -> Any:
        return described(run, value) if marked is not None else described(run | {sought: value})

    low, high = least if low is None else low, most if high is None else high
    adjacency = "replace" if replace else make(low).adjacency
    name = sought.lstrip("-").replace("-", "_")
    with stage(f"looking for {name}"):
        found = dn.calibrate(make, (low, high), advantage=advantage, limit=given, adjacency=adjacency, integer=whole)
        reached = _curve(make(found), adjacency)
        facts = _reached(reached, asked)
    if as_json:
        answer = {
            name: found,
            "advantage": facts[-1][-1],
            "limit": asked.arguments,
        }
        print(to_json(answer | {"reached": {name: value for name, _, value in facts}, "adjacency": adjacency}))
    else:
        from deniable._shown import shown

        leaks = "; ".join(
            f"{words} at most {shown(value, 'number' if name in _NO_RATES else 'rate', 'upper')}"
            for name, words, value in facts
        )
        enough = f"{found:.0f}" if whole else shown(found, "number", "upper", 7)
        if marked is not None and not whole and not asked.is_met(_curve(make(float(enough)), adjacency)):
            enough = shown(found, "number", "lower", 7)  # less of it is more private
        print(f"{name.replace('_', ' ')} {enough}: {leaks}")
        if not replace and asked.group_size == 1:
            safe = run | {MECHANISM: filled(mechanism or [], enough)} if marked is not None else run | {sought: enough}
            suggest("assess", *typed(safe), "--out", "report.html")


_SOUGHT: dict[str, tuple[str, tuple[float, float], bool]] = {
    "noise": (NOISE, (0.2, 200.0), False),
    "steps": ("--steps", (1, 100_000), True),
    "epochs": ("--epochs", (1, 1000), True),
    "records-per-person": (PERSON, (1, 64), True),
    "trials": (TRIALS, (2, 100_000), True),
}
# where the number written ? is looked for, unless --low and --high say it
_RANGES: dict[str, tuple[float, float]] = {
    "noise_multiplier": (0.2, 200.0),
    "scale": (0.1, 1e4),
    "sigma": (0.2, 1e4),
    "sample_rate": (1e-6, 1.0),
    "records_per_person": (1, 64),
    "batches_per_record": (1, 64),
    "epochs": (1, 1000),
    "categories": (2, 1000),
    "delta": (1e-12, 0.5),
}
_NO_RATES = ("epsilon", "delta", "mechanism")
_WHOLE, _SHARE = (1, 100_000), (1e-4, 20.0)


def _marked(name: str, whole: bool) -> tuple[str, tuple[float, float], bool]:
    """The parameter written ?, where to look for it, and whether it is a whole number."""
    return name, _RANGES.get(name, _WHOLE if whole else _SHARE), whole


def _curve(mechanism: Any, adjacency: str) -> Tradeoff:
    import deniable as dn

    return dn.tradeoff(mechanism, adjacency=adjacency)


def _reached(curve: Tradeoff, limit: Limit | AsTellingAs) -> list[tuple[str, str, float]]:
    """What is limited as it was reached, with its name and words, and the advantage at even odds."""
    even = ("advantage", "advantage at a prior of 50\u00a0%", curve.group(limit.group_size).advantage())
    return [even] if limit.name == "advantage" else [(limit.kind, limit.name, limit.leakage(curve)), even]
