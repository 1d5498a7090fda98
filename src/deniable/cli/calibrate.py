"""``deniable calibrate``: the smallest noise that meets a target."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deniable._check import InputError, integer
from deniable._files import to_json
from deniable._progress import stage
from deniable.cli._app import JsonFlag, app, examples


@app.command(
    epilog=examples(
        "deniable calibrate --sample-rate 0.01 --steps 5000 --advantage 0.1",
        "deniable calibrate --sample-rate 0.01 --steps 5000 --tpr 1e-4 --fpr 1e-5 --json",
    )
)
def calibrate(
    sample_rate: Annotated[float, typer.Option(help="Probability with which a record enters a step, in (0, 1].")],
    steps: Annotated[float, typer.Option(help="Number of DP-SGD steps.")],
    advantage: Annotated[float | None, typer.Option(help="Target: advantage at a prior of one half.")] = None,
    tpr: Annotated[float | None, typer.Option(help="Target: true positive rate at --fpr.")] = None,
    fpr: Annotated[float | None, typer.Option(help="False positive rate at which --tpr is asked for.")] = None,
    accuracy: Annotated[float | None, typer.Option(help="Target: accuracy of the best attacker at --prior.")] = None,
    prior: Annotated[float | None, typer.Option(help="Prior at which --accuracy is asked for.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Target: ε at --delta.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ at which --epsilon is asked for.")] = None,
    low: Annotated[float, typer.Option(help="Smallest noise multiplier to try.")] = 0.2,
    high: Annotated[float, typer.Option(help="Largest noise multiplier to try.")] = 200.0,
    as_json: JsonFlag = False,
) -> None:
    """Find the smallest noise multiplier of a DP-SGD run that meets a target, rounded to the safe side."""
    import deniable as dn

    asked = {
        "advantage": advantage, "tpr": tpr, "fpr": fpr, "accuracy": accuracy, "prior": prior,
        "epsilon": epsilon, "delta": delta,
    }  # fmt: skip
    target: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if not target:
        raise InputError("no target given; add --advantage, --tpr with --fpr, --accuracy with --prior, or --epsilon")
    n_steps = integer("steps", steps, at_least=1)
    with stage(f"looking for the noise of {n_steps:,} steps"):
        noise = dn.calibrate(
            lambda sigma: dn.SubsampledGaussian(sigma, sample_rate, n_steps), bracket=(low, high), **target
        )
        reached = dn.tradeoff(dn.SubsampledGaussian(noise, sample_rate, n_steps))
    if as_json:
        print(to_json({"noise_multiplier": noise, "advantage": reached.advantage(), "target": target}))
    else:
        from deniable._shown import shown

        leak = shown(reached.advantage(), "rate", "upper")
        print(
            f"noise multiplier {shown(noise, 'number', 'upper', 7)}: advantage at most {leak} at a prior of 50\u00a0%"
        )
