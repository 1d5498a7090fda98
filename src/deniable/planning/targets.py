"""Targets: the one place where what somebody asks for is checked, measured on a curve and put into words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, assert_never

import numpy as np
from numpy.typing import ArrayLike

from deniable import risks
from deniable._check import InputError, integer, number
from deniable.curves import Tradeoff

Kind = Literal["advantage", "tpr", "accuracy", "epsilon", "reconstruction", "singling_out", "attribute"]

_ARGUMENTS: dict[Kind, tuple[str, ...]] = {
    "advantage": ("advantage",),
    "tpr": ("tpr", "fpr"),
    "accuracy": ("accuracy",),
    "epsilon": ("epsilon", "delta"),
    "reconstruction": ("reconstruction", "baseline"),
    "singling_out": ("singling_out", "n", "weight"),
    "attribute": ("attribute",),
}
_PRIOR: tuple[Kind, ...] = ("advantage", "accuracy", "attribute")  # with a prior: of membership, or of the values


class TargetArguments(TypedDict, total=False):
    """The arguments of a target, as :func:`deniable.calibrate` documents them."""

    advantage: float | None
    tpr: float | None
    fpr: float | None
    accuracy: float | None
    prior: ArrayLike | None
    epsilon: float | None
    delta: float | None
    reconstruction: float | None
    baseline: float | None
    singling_out: float | None
    n: int | None
    weight: float | None
    attribute: float | None


NAMES = tuple(TargetArguments.__annotations__)


@dataclass(frozen=True)
class Target:
    """A leakage that must not exceed ``limit``; ``at`` is what it is asked at, in the order of the arguments.

    ``group_size`` is the number of records that are in or out together. Equal targets are equal objects, so that what
    was found for one can be kept.
    """

    kind: Kind
    limit: float
    at: tuple[float, ...]
    group_size: int = 1

    def leakage(self, curve: Tradeoff) -> float:
        """Return how much a mechanism of this ``curve`` leaks, by its upper bound."""
        t, x = curve.group(self.group_size), self.at[0]
        match self.kind:
            case "advantage":
                return t.advantage(x)
            case "accuracy":
                return t.accuracy(x)
            case "tpr":
                return t.tpr(x)
            case "reconstruction" | "attribute":
                return t.reconstruction(x)
            case "singling_out":
                return t.singling_out(x, self.at[1])
            case "epsilon":  # δ(ε) = 0 can underflow; ε at δ = 0 is the supremum of the loss, which cannot
                return t.epsilon(0.0) if self._pure else t.delta(x)
            case _:
                assert_never(self.kind)

    @property
    def allowed(self) -> float:
        """The largest leakage that meets the target; ``limit``, but for pure differential privacy."""
        return self.at[0] if self._pure else self.limit

    @property
    def floor(self) -> float:
        """The leakage of a mechanism that leaks nothing."""
        match self.kind:
            case "accuracy":
                return max(self.at[0], 1 - self.at[0])
            case "tpr" | "reconstruction" | "attribute":
                return self.at[0]
            case "singling_out":
                return min(math.prod(self.at), 1.0)
            case _:
                return 0.0

    @property
    def name(self) -> str:
        """What is measured, in a few words."""
        match self.kind:
            case "tpr":
                return f"TPR at FPR {self.at[0]:g}"
            case "epsilon":
                return "epsilon at delta 0" if self._pure else f"delta at epsilon {self.at[0]:g}"
            case "reconstruction":
                return f"reconstruction at baseline {self.at[0]:g}"
            case "singling_out":
                return f"singling out one of {self.at[0]:,.0f} records"
            case "attribute":
                return f"inference of an attribute whose best guess is right with chance {self.at[0]:g}"
            case _:
                return self.kind

    def words(self, unit: str = "record") -> str:
        """Return the whole promise, as certificates state it, for a ``unit`` that is in or out."""
        together = f", for any {self.group_size} {unit}s in or out together" if self.group_size > 1 else ""
        return self._promise(unit) + together

    def _promise(self, unit: str) -> str:
        limit, x = f"at most {self.limit:g}", self.at[0]
        game = f" (prior {x:g})" if x != 0.5 else ""
        match self.kind:
            case "advantage":
                return f"membership advantage of every attacker {limit}{game}"
            case "accuracy":
                return f"accuracy of every membership attacker {limit}{game}"
            case "tpr":
                return f"true positive rate {limit} at a false positive rate of {x:g}"
            case "epsilon":
                return f"(ε, δ) = ({x:g}, {self.limit:g}) differential privacy"
            case "reconstruction":
                return f"reconstruction succeeds with probability {limit} (blind guessing: {x:g})"
            case "attribute":
                return f"an attribute is inferred with probability {limit} (best guess: {x:g})"
            case "singling_out":
                return (
                    f"one of {x:,.0f} {unit}s is singled out with probability {limit} (predicates of weight "
                    f"{self.at[1]:g})"
                )
            case _:
                assert_never(self.kind)

    @property
    def _pure(self) -> bool:
        return self.kind == "epsilon" and self.limit == 0


def target_arguments(of: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a function's arguments (its ``locals()``) that are arguments of a target and were given."""
    return {name: of[name] for name in NAMES if of[name] is not None}


def read_target(given: Mapping[str, Any], *, group_size: int = 1) -> Target:
    """Return the one target among ``given`` arguments of :data:`NAMES`, those that are None left out, checked.

    ``prior`` is a number with ``advantage`` and ``accuracy`` (½ unless given). With ``attribute`` it holds P(attribute
    = a | x), shape (situations, values) or (values,), as in :func:`deniable.risks.attribute`.

    Raises
    ------
    InputError
        If not exactly one target is given, an argument of it is missing or no mechanism can meet it.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    kinds = [kind for kind, names in _ARGUMENTS.items() if any(name in asked for name in names)]
    if len(kinds) != 1:
        known = "; ".join(_joined(names) for names in _ARGUMENTS.values())
        got = ", ".join(_joined(_ARGUMENTS[kind]) for kind in kinds) or ("prior alone" if asked else "none")
        raise InputError(f"give exactly one target out of {known} and prior; got {got}")
    (kind,) = kinds
    if "prior" in asked and kind not in _PRIOR:
        raise InputError(f"prior belongs to the targets {_joined(_PRIOR)} only, got {asked['prior']!r}")
    together = integer("group_size", group_size, at_least=1, hint="that many records are in or out together")
    limit, at = _numbers(kind, asked)
    return Target(kind, limit, at, together)


def _numbers(kind: Kind, asked: dict[str, Any]) -> tuple[float, tuple[float, ...]]:
    """The limit of a target and what it is asked at."""
    arguments = _ARGUMENTS[kind]
    hint = f"{_joined(arguments)} go together"
    match kind:
        case "advantage":
            limit = number(
                kind,
                asked[kind],
                above=0.0,
                at_most=1.0,
                hint="0.1: right 55 % of the time at even odds",
            )
            return limit, (_prior(asked),)
        case "accuracy":
            pi = _prior(asked)
            limit = number(
                kind, asked.get(kind), above=max(pi, 1 - pi), at_most=1.0,
                hint="guessing from the prior already reaches that",
            )  # fmt: skip
            return limit, (pi,)
        case "tpr":
            rate = number("fpr", asked.get("fpr"), at_least=0.0, below=1.0, hint=hint)
            reached = "a coin flip already reaches tpr = fpr"
            return number(kind, asked.get(kind), above=rate, at_most=1.0, hint=reached), (rate,)
        case "epsilon":
            eps = number(kind, asked.get(kind), above=-math.inf, below=math.inf, hint=hint)
            return number("delta", asked.get("delta"), at_least=0.0, below=1.0, hint=hint), (eps,)
        case "reconstruction":
            blind = number("baseline", asked.get("baseline"), at_least=0.0, below=1.0, hint=hint)
            reached = "blind guessing already reaches baseline"
            return number(kind, asked.get(kind), above=blind, at_most=1.0, hint=reached), (blind,)
        case "singling_out":
            people = integer("n", asked.get("n"), at_least=1, hint=hint)
            weight = number("weight", asked.get("weight"), at_least=0.0, below=1.0, hint=hint)
            floor = min(people * weight, 1.0)
            reached = f"a curve without any leak gives {floor:g}"
            return number(kind, asked.get(kind), above=floor, at_most=1.0, hint=reached), (float(people), weight)
        case "attribute":
            if "prior" not in asked:
                raise InputError("attribute and prior go together: prior holds the probability of each of its values")
            blind = risks.best_guess(asked["prior"])
            reached = "the best guess from the prior already reaches that"
            return number(kind, asked[kind], above=blind, at_most=1.0, hint=reached), (blind,)
        case _:
            assert_never(kind)


def _prior(asked: dict[str, Any]) -> float:
    prior = asked.get("prior", 0.5)
    if np.ndim(prior):
        raise InputError(f"prior must be a number, the probability of membership, got {prior!r}; see attribute")
    return number("prior", prior, above=0.0, below=1.0)


def _joined(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
