"""``deniable compare``: runs side by side."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import plain, to_json
from deniable.cli._app import FINE, JsonFlag, PlotOption, PriorOption, again, app, examples, suggest
from deniable.cli._picture import checked_picture, draw
from deniable.cli._report import PolicyOption, checked_policy, code
from deniable.cli._run import PersonOption
from deniable.cli._sampler import PERSON, described, written


@app.command(
    epilog=examples(
        "deniable compare 1.0,0.01,5000 2.0,0.05,1000",
        "deniable compare before.json after.json --json",
        "deniable compare 1.0,0.01,500 shuffled,1.0,100,5 allocation,1.0,100,5",
        "deniable compare laplace,10,steps=20 discrete-gaussian,15,steps=20",
        "deniable compare 0.8,0.02,2500 1.2,0.02,2500 --plot roc.svg",
    )
)
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Two or more: an assessment's .json, or noise_multiplier,sample_rate,steps, or a sampler's name, the "
            "noise and its other numbers: shuffled,noise,batches,epochs; or a --mechanism: laplace,2."
        ),
    ],
    records_per_person: PersonOption = None,
    prior: PriorOption = 0.5,
    plot: PlotOption = None,
    policy: PolicyOption = None,
    as_json: JsonFlag = False,
) -> int:
    """Put two or more runs or saved assessments side by side."""
    from deniable.workflows import compare as put_together

    picture = checked_picture(plot)
    if len(runs) > len(ascii_uppercase):
        raise InputError(f"at most {len(ascii_uppercase)} runs can be compared side by side, got {len(runs)}")
    limits = checked_policy(policy)
    read = [_read(run, records_per_person) for run in runs]  # all of them, before anything is computed
    made = [_assessment(run, prior, limits) for run in read]
    found = put_together(*made)
    worst = max(code(one, limits) for one in made)
    draw(found, picture)
    if as_json:
        print(to_json(found) if limits is None else to_json({**plain(found), "met": worst == FINE}))
        return worst
    from rich.console import Console

    from deniable.report.text import side_by_side

    Console().print(side_by_side(found))
    if plot is None:
        suggest(*again("--plot", "roc.svg"))
    return worst


def _read(run: str, records_per_person: float | None) -> Any:
    """Return the saved assessment or the mechanism that a word names."""
    import deniable as dn

    if run.endswith(".json"):
        if records_per_person is not None:
            raise InputError(f"{PERSON} goes with runs given as numbers; {run!r} was assessed for persons of its own")
        return dn.Assessment.from_json(run)
    options = written(run)
    if records_per_person is not None:
        options[PERSON] = records_per_person
    return described(options)


def _assessment(run: Any, prior: float, policy: Any) -> Any:
    import deniable as dn

    if isinstance(run, dn.Assessment):
        return run if policy is None else run.decide(policy)
    return dn.assess(run, prior=prior, policy=policy)
