"""A DP-SGD run named by three options, and the number of records that a person has in it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deniable._check import integer
from deniable.cli._app import RUN_PANEL
from deniable.cli._mechanism import MECHANISM, TRIALS
from deniable.cli._sampler import NOISE, PERSON

RunOptions = dict[str, Any]
PersonOption = Annotated[
    float | None,
    typer.Option(
        PERSON,
        help="Records of one person, added or removed together: exact for Poisson sampling, where each is drawn "
        "independently, a bound for all else. [default: 1]",
        rich_help_panel=RUN_PANEL,
    ),
]


def run_options(
    noise_multiplier: float | None,
    sample_rate: float | None,
    steps: float | None,
    records_per_person: float | None,
    *,
    sampler: str | None = None,
    mechanism: list[str] | None = None,
    trials: float | None = None,
    **sampling: float | None,
) -> RunOptions:
    """Return the options by the names that a person typed; ``sampling`` holds those that a sampler needs."""
    return {
        MECHANISM: mechanism or None,
        TRIALS: trials,
        NOISE: noise_multiplier,
        "--sample-rate": sample_rate,
        "--steps": steps,
        PERSON: records_per_person,
        "--sampler": sampler,
        **{f"--{name.replace('_', '-')}": value for name, value in sampling.items()},
    }


def typed(run: RunOptions) -> tuple[str, ...]:
    """Return the options that were given as they may be typed again."""

    def of(value: Any) -> str:
        return repr(int(value)) if isinstance(value, float) and value.is_integer() and value >= 2 else str(value)

    given = [(name, value if isinstance(value, list) else [value]) for name, value in run.items() if value is not None]
    return tuple(word for name, values in given for value in values for word in (name, of(value)))


def is_given(run: RunOptions) -> bool:
    """Return whether any of the options was given."""
    return any(value is not None for value in run.values())


def person(records: float | None) -> int:
    """Return the number of records of a person, 1 if none was given."""
    return 1 if records is None else integer("records_per_person", records, at_least=1)


def of_persons(recorded: Any, records: float | None) -> Any:
    """Return a run that was read from a file for persons of this many records."""
    import deniable as dn

    count = person(records)
    if count == 1:
        return recorded
    parts: Any = recorded.mechanisms if isinstance(recorded, dn.Composition) else (recorded,)
    if not all(isinstance(part, dn.SubsampledGaussian) for part in parts):
        return dn.Grouped(recorded, count)
    phases = [dn.SubsampledGaussian(p.noise_multiplier, p.sample_rate, p.steps, count) for p in parts]
    return phases[0] if len(phases) == 1 else dn.Composition(phases)
