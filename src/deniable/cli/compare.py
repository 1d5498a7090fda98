"""``deniable compare``: runs side by side."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import plain, read_json, to_json
from deniable.cli import _options as options
from deniable.cli._app import FINE, again, command, suggest
from deniable.cli.run import read_run


@command(
    "deniable compare dpsgd,1,0.01,5000 dpsgd,2,0.05,1000 --plot roc.svg",
    "deniable compare dpsgd,1,0.01,500 shuffled,1,100,5 allocation,1,100,5",
    "deniable compare before.json after.json --json",
)
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Two or more runs, as bound takes them (dpsgd,1,0.01,5000), or saved reports (.json)."),
    ],
    prior: options.PriorOption = 0.5,
    plot: options.PlotOption = None,
    *,
    pages: Annotated[options.Pages, "policy", "as_json"],
) -> int:
    """Put two or more runs or saved reports side by side."""
    from deniable.report import Assessment
    from deniable.workflows import alike, compare as put_together

    if not 2 <= len(runs) <= len(ascii_uppercase):
        raise InputError(f"runs must be between 2 and {len(ascii_uppercase)} to stand side by side, got {len(runs)}")
    limits = pages.decisive[0]
    read = [_report_or_mechanism(run) for run in runs]  # all of them, before anything is computed
    saved = all(isinstance(run, Assessment) for run in read)
    options.refuse("does not go with saved reports alone, which have their own", prior=saved and prior != 0.5)
    decided = [run.decide(limits) if isinstance(run, Assessment) and limits is not None else run for run in read]
    made = alike(decided, prior=prior, policy=limits)
    found = put_together(*made)
    worst = max(options.code(one, limits) for one in made)
    options.draw(found, plot)
    if pages.as_json:
        print(to_json(found) if limits is None else to_json({**plain(found), "met": worst == FINE}))
        return worst
    from rich.console import Console

    from deniable.report import side_by_side

    Console().print(side_by_side(found))
    if plot is None:
        suggest(*again("--plot", "roc.svg"))
    return worst


def _report_or_mechanism(run: str) -> Any:
    """Return the saved report or the mechanism that a word names."""
    saved = None
    if run.lower().endswith(".json") and Path(run).is_file():
        with suppress(ValueError):  # what it is instead is said where a run is read
            saved = read_json(run)
    return options.saved_report(run) if isinstance(saved, dict) and "schema_version" in saved else read_run(run)
