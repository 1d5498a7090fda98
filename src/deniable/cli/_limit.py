"""The two options that say what an attacker may reach, the same for every command that looks for noise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Annotated

import typer

from deniable._check import InputError
from deniable.cli._mechanism import composed, is_named

if TYPE_CHECKING:
    from deniable.limits import Limit
    from deniable.mechanisms import Mechanism

_PANEL = "What an attacker may reach (one of the two)"

AdvantageOption = Annotated[
    float | None,
    typer.Option(
        "--advantage",
        help="Membership advantage; 0.1: at even odds, nobody is right more than 55 % of the time.",
        rich_help_panel=_PANEL,
    ),
]
LimitOption = Annotated[
    str | None,
    typer.Option(
        "--limit",
        help="Another limit, written as the arguments of deniable.Limit: tpr=0.01,fpr=0.001; epsilon=1,delta=1e-6; "
        "accuracy=0.6,prior=0.5; reconstruction=0.01,baseline=0.001 (blind guessing); singling_out=0.1,n=1000,"
        "weight=1e-6; attribute=0.75,prior=[0.7,0.2,0.1] (of its values). With group_size=3 it holds for three records "
        "in or out together. Or a mechanism, as gaussian,0.25: at most as telling as this one.",
        rich_help_panel=_PANEL,
    ),
]


def read_limit(text: str | None) -> Limit | Mechanism | None:
    """Return what ``--limit`` says, None if it was not given."""
    from deniable.limits import limit_from

    if text is None:
        return None
    if is_named(text):
        mechanism: Mechanism = composed([text])
        return mechanism
    try:
        call = ast.parse(f"Limit({text})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        given = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        if len(given) < len(call.keywords):
            raise ValueError
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise InputError(
            f"--limit must be written as the arguments of deniable.Limit, as in tpr=0.01,fpr=0.001, got {text!r}"
        ) from None
    return limit_from("--limit", given)


def limit_option(limit: Limit) -> tuple[str, str]:
    """Return the option that says this limit, and its value."""
    said = limit.arguments
    if list(said) == ["advantage"]:
        return "--advantage", f"{limit.advantage:g}"
    return "--limit", ",".join(f"{name}={value!r}" for name, value in said.items())
