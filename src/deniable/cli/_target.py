"""The options that say what an attacker may reach, the same for every command that looks for noise."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from deniable._check import InputError

_PANEL = "Target (one; train: --advantage 0.1 if none is given)"


_option = partial(typer.Option, rich_help_panel=_PANEL)


AdvantageTarget = Annotated[
    float | None,
    _option("--advantage", help="Membership advantage; 0.1: at even odds, nobody is right more than 55 % of the time."),
]
TprTarget = Annotated[float | None, _option("--tpr", help="True positive rate at --fpr.")]
FprTarget = Annotated[float | None, _option("--fpr", help="False positive rate for --tpr.")]
AccuracyTarget = Annotated[float | None, _option("--accuracy", help="Accuracy of the best attacker at --prior.")]
PriorTarget = Annotated[
    str | None,
    _option(
        "--prior",
        help="With --accuracy or --advantage: how likely the record was in. With --attribute: how likely each of its "
        "values is for somebody who knows all the rest, as 0.7,0.2,0.1; several equally likely situations as "
        "0.9,0.1;0.5,0.5.",
    ),
]
EpsilonTarget = Annotated[float | None, _option("--epsilon", help="ε at --delta.")]
DeltaTarget = Annotated[float | None, _option("--delta", help="δ for --epsilon.")]
ReconstructionTarget = Annotated[
    float | None, _option("--reconstruction", help="Chance of guessing a record's secret, see --baseline.")
]
BaselineTarget = Annotated[
    float | None, _option("--baseline", help="Chance of guessing that secret blindly: 0.001 for one of 1,000 values.")
]
SinglingOutTarget = Annotated[
    float | None,
    _option("--singling-out", help="Chance that a predicate matches exactly one of --n persons, see --weight."),
]
PersonsTarget = Annotated[int | None, _option("--n", help="Number of persons from which one could be singled out.")]
WeightTarget = Annotated[
    float | None, _option("--weight", help="Share of the population that such a predicate matches.")
]
AttributeTarget = Annotated[
    float | None, _option("--attribute", help="Chance of naming an attribute of a record, see --prior.")
]


def asked(prior: str | None, **given: Any) -> dict[str, Any]:
    """Return the options of a target that were given, by name."""
    found = {name: value for name, value in given.items() if value is not None}
    return found if prior is None else found | {"prior": _probabilities(prior)}


def _probabilities(text: str) -> float | list[float] | list[list[float]]:
    """Return what --prior says: a number, a row of them, or rows."""
    try:
        rows = [[float(word) for word in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise InputError(
            f"--prior must be a probability, or with --attribute the probabilities of its values as 0.7,0.2,0.1; got "
            f"{text!r}"
        ) from None
    if len({len(row) for row in rows}) > 1:
        raise InputError(f"--prior must give as many probabilities in each situation, got {text!r}")
    if len(rows) > 1:
        return rows
    return rows[0] if len(rows[0]) > 1 else rows[0][0]
