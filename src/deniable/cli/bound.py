"""``deniable bound``: what ε and δ mean for a membership attacker."""

from __future__ import annotations

from typing import Annotated

import typer

from deniable._files import to_json
from deniable.cli._app import JsonFlag, PlotOption, PriorOption, app, examples
from deniable.cli._picture import checked_picture, draw


@app.command(
    epilog=examples(
        "deniable bound --epsilon 2 --delta 1e-5 --prior 0.01 --fpr 0.001",
        "deniable bound --epsilon 1 --json",
        "deniable bound --epsilon 1 --plot precision.svg",
    )
)
def bound(
    epsilon: Annotated[float, typer.Option(help="ε of the differential privacy guarantee.")],
    delta: Annotated[float, typer.Option(help="δ of the guarantee.")] = 0.0,
    prior: PriorOption = 0.5,
    fpr: Annotated[
        float | None,
        typer.Option(help="False positive rate (0.001 means 0.1 %) at which to bound precision; needed if δ > 0."),
    ] = None,
    baseline: Annotated[
        float, typer.Option(help="Chance of guessing a record's secret blindly: 0.001 for one of 1,000 values.")
    ] = 0.001,
    as_json: JsonFlag = False,
    plot: PlotOption = None,
) -> None:
    """Say what an (ε, δ) guarantee means: advantage, accuracy, right accusations, secrets guessed, records replaced."""
    from deniable import bounds

    picture = checked_picture(plot)
    found = bounds.summary(epsilon, delta=delta, prior=prior, fpr=fpr, baseline=baseline)
    print(to_json(found) if as_json else "\n".join(found.lines()))
    draw(found, picture)
