"""What would change a decision: the setting of each parameter of a mechanism with which a policy is just met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

from deniable._check import InputError
from deniable._shown import shown
from deniable.accounting import tradeoff
from deniable.limits import Limit
from deniable.mechanisms import (
    ApproximateDP,
    Composition,
    GaussianDP,
    Mechanism,
    RandomAllocation,
    SubsampledGaussian,
    WithoutReplacement,
)
from deniable.planning import calibrate

_TOLERANCE = 1e-4  # relative; what is found is on the side that meets the policy
_COARSE = 0.02  # the same for mechanisms whose curves take seconds each
_FAR = 1e4  # parameters are searched up to this factor away from what ran
_MOST_PHASES = 12  # a composition of more is not searched


@dataclass(frozen=True)
class _Knob:
    """A parameter that a person can turn, and how a new value of it is said."""

    field: str
    more_is_safer: bool
    words: Callable[[Any, Any], str]
    integer: bool = False


def _noise(name: str) -> Callable[[Any, Any], str]:
    def words(old: float, new: float) -> str:
        times = shown(new / old, "number", "upper", 3)
        return f"Noise: {name} {shown(new, 'number', 'upper', 5)} instead of {old:g} ({times} times the noise)."

    return words


def _less(name: str, *, integer: bool = False) -> Callable[[Any, Any], str]:
    if integer:
        return lambda old, new: f"{name}: at most {new:,} instead of {old:,}."
    return lambda old, new: f"{name}: at most {shown(new, 'number', 'lower', 4)} instead of {old:g}."


def _records(old: float, new: float) -> str:
    times = shown(old / new, "number", "upper", 3)
    return (
        f"Records: the same batch and steps from {times} times as many records (sample rate "
        f"{shown(new, 'number', 'lower', 4)} instead of {old:g})."
    )


_MU = _Knob("mu", False, _less("μ"))
_KNOBS = (
    _Knob("noise_multiplier", True, _noise("multiplier")),
    _Knob("scale", True, _noise("scale")),
    _Knob("epsilon", False, _less("ε")),
    _MU,
    _Knob("rho", False, _less("ρ")),
    _Knob("sample_rate", False, _records),
    *(
        _Knob(field, False, _less(name, integer=True), integer=True)
        for field, name in (("steps", "Steps"), ("epochs", "Epochs"), ("records_per_person", "Records of one person"))
    ),
)


@dataclass(frozen=True)
class PrivateFit:
    """A fit of a private model: Gaussian DP ``mu`` and a failure probability ``delta``, in place of a mechanism."""

    mu: float
    delta: float

    def mechanism(self, mu: float) -> Mechanism:
        """Return the mechanism of a fit with another μ."""
        return GaussianDP(mu) + ApproximateDP(0.0, self.delta) if self.delta > 0 else GaussianDP(mu)


def settings(mechanism: Mechanism | PrivateFit, limits: list[Limit]) -> list[str] | None:
    """Return a sentence for each parameter of ``mechanism`` that meets all ``limits`` when it alone is changed.

    None if it has no parameter that could be searched.
    """
    if isinstance(mechanism, PrivateFit):
        return _fit_again(mechanism, limits)
    if isinstance(mechanism, Composition):
        return _together(mechanism, limits)
    what: Any = mechanism  # a frozen dataclass, as all are that describe themselves by their parameters
    names = {field.name for field in fields(what)} if is_dataclass(what) else set()
    slow = isinstance(mechanism, RandomAllocation | WithoutReplacement)  # curves take a second or more
    knobs = [knob for knob in _KNOBS if knob.field in names][: 1 if slow else None]
    said = []
    for knob in knobs:
        old = getattr(what, knob.field)
        new = _met(partial(_with, what, knob.field), old, knob, limits, _COARSE if slow else _TOLERANCE)
        if new is not None:
            said.append(knob.words(old, new))
    return said if knobs else None


def _with(mechanism: Any, name: str, value: Any) -> Mechanism:
    changed: Mechanism = replace(mechanism, **{name: value})
    return changed


def _together(mechanism: Composition, limits: list[Limit]) -> list[str] | None:
    """The factor on the noise of all phases of a DP-SGD run."""
    phases = [part for part in mechanism.mechanisms if isinstance(part, SubsampledGaussian)]
    if not len(phases) == len(mechanism.mechanisms) <= _MOST_PHASES:
        return None

    def scaled(factor: float) -> Mechanism:
        return Composition([replace(part, noise_multiplier=factor * part.noise_multiplier) for part in phases])

    factor = _met(scaled, 1.0, _KNOBS[0], limits)
    return [] if factor is None else [f"Noise: {shown(factor, 'number', 'upper', 5)} times the noise in every phase."]


def _fit_again(fit: PrivateFit, limits: list[Limit]) -> list[str]:
    """The target with which a private model is to be fitted again."""
    mu = _met(fit.mechanism, fit.mu, _MU, limits)
    if mu is None:
        return []
    goal = shown(tradeoff(fit.mechanism(mu)).advantage(), "number", "lower", 3)
    return [f"Promise: fit again with advantage={goal} (--advantage {goal}), which takes more noise."]


def _met(
    make: Callable[[Any], Mechanism], old: Any, knob: _Knob, limits: list[Limit], tolerance: float = _TOLERANCE
) -> Any:
    """The value of a parameter, as near to ``old`` as possible, that meets all limits, or None."""
    if not old > 0 or old == float("inf") or (knob.integer and old <= 1):
        return None
    low: Any = 1 if knob.integer else old / _FAR
    bracket = (old, old * _FAR) if knob.more_is_safer else (low, old)
    try:
        best: Any = old
        for one in limits:
            if not one.is_met(tradeoff(make(best))):
                own = {"adjacency": make(old).adjacency, "integer": knob.integer, "tolerance": tolerance}
                best = calibrate(make, bracket, limit=one, **own)  # type: ignore[arg-type]
                bracket = (best, bracket[1]) if knob.more_is_safer else (bracket[0], best)
        curve = tradeoff(make(best))
        return best if all(one.is_met(curve) for one in limits) else None
    except InputError:
        return None  # no value of this parameter alone is enough
