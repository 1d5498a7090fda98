"""The two options that say what an attacker may reach, the same for every command that looks for noise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Annotated

import typer

from deniable._check import InputError
from deniable.cli.run import is_run, read_run

if TYPE_CHECKING:
    from deniable.limits import Limit
    from deniable.mechanisms import Mechanism

AdvantageOption = Annotated[
    float | None,
    typer.Option(
        "--advantage",
        help="Membership advantage; 0.1: at even odds, nobody is right more than 55 % of the time.",
    ),
]
LimitOption = Annotated[
    str | None,
    typer.Option(
        "--limit",
        help="In place of --advantage: tpr=0.01,fpr=0.001; epsilon=1,delta=1e-6; "
        "accuracy=0.6,prior=0.5; reconstruction=0.01,baseline=0.001 (blind guessing); singling_out=0.1,n=1000,"
        "weight=1e-6; attribute=0.75,prior=[0.7,0.2,0.1] (of its values). With group_size=3 it holds for three records "
        "in or out together. Or a run, as gaussian,0.25: at most as telling as this one.",
    ),
]


def read_limit(text: str) -> Limit | Mechanism:
    """Return what ``--limit`` says."""
    from deniable.limits import limit_from

    if is_run(text):
        return read_run(text)
    try:
        call = ast.parse(f"Limit({text})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        given = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        if len(given) < len(call.keywords):
            raise ValueError
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise InputError(
            f"--limit must be numbers by name, as tpr=0.01,fpr=0.001, or a run, as gaussian,0.25; got {text!r}"
        ) from None
    return limit_from("--limit", given)


def searched(low: float, high: float) -> tuple[float, float]:
    """Return where a number is looked for."""
    if not low < high:
        raise InputError(f"--low must be below --high, got {low:g} and {high:g}")
    return low, high


def asked_for(advantage: float | None, limit: str | None, default: float | None = None) -> Limit | Mechanism:
    """Return the one limit that the two options ask for; without them that of the ``default`` advantage."""
    from deniable.limits import Limit

    given = default if advantage is None and limit is None else advantage
    if (given is None) == (limit is None):
        got = "neither" if limit is None else "both"
        raise InputError(f"give --advantage 0.1 or another limit, as --limit tpr=0.01,fpr=0.001; got {got}")
    return Limit(advantage=given) if limit is None else read_limit(limit)


def limit_option(limit: Limit) -> tuple[str, str]:
    """Return the option that asks for this limit, and its value."""
    said = limit.arguments
    if list(said) == ["advantage"]:
        return "--advantage", f"{limit.advantage!r}"
    return "--limit", ",".join(f"{name}={value!r}" for name, value in said.items())
