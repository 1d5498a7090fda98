"""``deniable calibrate``: the smallest noise that meets a target."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deniable._check import InputError, integer
from deniable._files import to_json
from deniable._progress import stage
from deniable.cli._app import JsonFlag, app, examples, suggest
from deniable.cli._run import PERSON, PersonOption, person


@app.command(
    epilog=examples(
        "deniable calibrate --sample-rate 0.01 --steps 5000 --advantage 0.1",
        "deniable calibrate --sample-rate 0.01 --steps 5000 --tpr 1e-4 --fpr 1e-5 --json",
        "deniable calibrate --sample-rate 0.01 --steps 5000 --reconstruction 0.01 --baseline 0.001",
        "deniable calibrate --sample-rate 0.01 --steps 500 --advantage 0.1 --records-per-person 4",
    )
)
def calibrate(
    sample_rate: Annotated[float, typer.Option(help="Probability with which a record enters a step, in (0, 1].")],
    steps: Annotated[float, typer.Option(help="Number of DP-SGD steps.")],
    records_per_person: PersonOption = None,
    advantage: Annotated[float | None, typer.Option(help="Target: advantage at a prior of one half.")] = None,
    tpr: Annotated[float | None, typer.Option(help="Target: true positive rate at --fpr.")] = None,
    fpr: Annotated[float | None, typer.Option(help="False positive rate at which --tpr is asked for.")] = None,
    accuracy: Annotated[float | None, typer.Option(help="Target: accuracy of the best attacker at --prior.")] = None,
    prior: Annotated[float | None, typer.Option(help="Prior at which --accuracy is asked for.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Target: ε at --delta.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ at which --epsilon is asked for.")] = None,
    reconstruction: Annotated[
        float | None, typer.Option(help="Target: chance of guessing a record's secret, see --baseline.")
    ] = None,
    baseline: Annotated[
        float | None, typer.Option(help="Chance of guessing that secret blindly: 0.001 for one of 1,000 values.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Protect against replacing a record, not adding or removing it.")
    ] = False,
    low: Annotated[float, typer.Option(help="Smallest noise multiplier to try.")] = 0.2,
    high: Annotated[float, typer.Option(help="Largest noise multiplier to try.")] = 200.0,
    as_json: JsonFlag = False,
) -> None:
    """Find the smallest noise multiplier of a DP-SGD run that meets a target, rounded to the safe side."""
    import deniable as dn

    asked = {
        "advantage": advantage, "tpr": tpr, "fpr": fpr, "accuracy": accuracy, "prior": prior,
        "epsilon": epsilon, "delta": delta, "reconstruction": reconstruction, "baseline": baseline,
    }  # fmt: skip
    target: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if not target:
        raise InputError(
            "no target given; add --advantage, --tpr with --fpr, --accuracy with --prior, --epsilon with --delta, or "
            "--reconstruction with --baseline"
        )
    n_steps, records = integer("steps", steps, at_least=1), person(records_per_person)
    adjacency = "replace" if replace else "add-remove"
    with stage(f"looking for the noise of {n_steps:,} steps"):
        noise = dn.calibrate(
            lambda sigma: dn.SubsampledGaussian(sigma, sample_rate, n_steps, records),
            bracket=(low, high),
            adjacency=adjacency,
            **target,
        )
        reached = dn.tradeoff(dn.SubsampledGaussian(noise, sample_rate, n_steps, records), adjacency=adjacency)
        facts = _reached(reached, target)
    if as_json:
        found = {"noise_multiplier": noise, "advantage": reached.advantage(), "target": target}
        print(to_json(found | {"reached": {name: value for name, _, value in facts}, "adjacency": adjacency}))
    else:
        from deniable._shown import shown

        leaks = "; ".join(
            f"{words} at most {shown(value, 'number' if name == 'epsilon' else 'rate', 'upper')}"
            for name, words, value in facts
        )
        enough = shown(noise, "number", "upper", 7)
        print(f"noise multiplier {enough}: {leaks}")
        given = ("--noise-multiplier", enough, "--sample-rate", repr(float(sample_rate)), "--steps", str(n_steps))
        persons = () if records == 1 else (PERSON, str(records))
        if not replace:
            suggest("assess", *given, *persons, "--out", "report.html")


def _reached(curve: Any, target: dict[str, Any]) -> list[tuple[str, str, float]]:
    """The target's number as reached, with its name and words, and the advantage at even odds."""
    even = ("advantage", "advantage at a prior of 50\u00a0%", curve.advantage())
    match target:
        case {"reconstruction": _, "baseline": blind}:
            words = f"a secret guessed blindly with chance {blind:g} found with chance"
            return [("reconstruction", words, curve.reconstruction(blind)), even]
        case {"tpr": _, "fpr": fpr}:
            return [("tpr", f"TPR at FPR {fpr:g}", curve.tpr(fpr)), even]
        case {"accuracy": _, "prior": prior}:
            return [("accuracy", f"accuracy at prior {prior:g}", curve.accuracy(prior)), even]
        case {"epsilon": _, "delta": delta}:
            return [("epsilon", f"ε at δ = {delta:g}", curve.epsilon(delta)), even]
        case {"advantage": _, "prior": prior}:
            return [("advantage", f"advantage at prior {prior:g}", curve.advantage(prior)), even]
        case _:
            return [even]
