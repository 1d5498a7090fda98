"""What would change a decision: the setting of each parameter of a mechanism with which a policy is just met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from deniable._check import InputError
from deniable._shown import shown
from deniable.accounting import tradeoff
from deniable.curves import FailureTradeoff, GaussianTradeoff, Tradeoff
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


class _Knob(NamedTuple):
    """A parameter that a person can turn, and how a new value of it is said."""

    field: str
    words: str
    more_is_safer: bool = False
    integer: bool = False

    def sentence(self, old: float, new: float) -> str:
        """Return what to do, rounded to the safe side."""
        side = "upper" if self.more_is_safer else "lower"
        return self.words.format(
            old=f"{old:,}" if self.integer else f"{old:g}",
            new=f"{new:,}" if self.integer else shown(new, "number", side),
            times=shown(max(old / new, new / old), "number", "upper", 3),
        )


_MU = _Knob("mu", "μ: at most {new} instead of {old}.")
_KNOBS = (
    _Knob("noise_multiplier", "Noise: multiplier {new} instead of {old} ({times} times the noise).", True),
    _Knob("scale", "Noise: scale {new} instead of {old} ({times} times the noise).", True),
    _Knob("epsilon", "ε: at most {new} instead of {old}."),
    _MU,
    _Knob("rho", "ρ: at most {new} instead of {old}."),
    _Knob(
        "sample_rate",
        "Records: the same batch and steps from {times} times as many records (sample rate {new} instead of {old}).",
    ),
    _Knob("steps", "Steps: at most {new} instead of {old}.", integer=True),
    _Knob("epochs", "Epochs: at most {new} instead of {old}.", integer=True),
    _Knob("records_per_person", "Records of one person: at most {new} instead of {old}.", integer=True),
)


def settings(mechanism: Mechanism, limits: list[Limit]) -> list[str] | None:
    """Return a sentence for each parameter of ``mechanism`` that meets all ``limits`` when it alone is changed.

    None if it has no parameter that could be searched.
    """
    if isinstance(mechanism, Composition):
        return _together(mechanism, limits)
    what: Any = mechanism  # a frozen dataclass, as all are that describe themselves by their parameters
    names = getattr(what, "__dataclass_fields__", ())
    slow = isinstance(mechanism, RandomAllocation | WithoutReplacement)  # curves take a second or more
    knobs = [knob for knob in _KNOBS if knob.field in names][: 1 if slow else None]
    said = []
    for knob in knobs:
        old = getattr(what, knob.field)
        new = _nearest_that_meets(partial(_with, what, knob.field), old, knob, limits, _COARSE if slow else _TOLERANCE)
        if new is not None:
            said.append(knob.sentence(old, new))
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

    factor = _nearest_that_meets(scaled, 1.0, _KNOBS[0], limits)
    return [] if factor is None else [f"Noise: {shown(factor, 'number', 'upper')} times the noise in every phase."]


def fit_again(mu: float, delta: float, limits: list[Limit]) -> list[str]:
    """Return the target with which a private model is to be fitted again: of μ, and failing with probability δ."""

    def fit(mu: float) -> Mechanism:
        return GaussianDP(mu) + ApproximateDP(0.0, delta) if delta > 0 else GaussianDP(mu)

    lower = _nearest_that_meets(fit, mu, _MU, limits)
    if lower is None:
        return []
    goal = shown(tradeoff(fit(lower)).advantage(), "number", "lower", 3)
    return [f"Promise: fit again with advantage={goal} (--advantage {goal}), which takes more noise."]


def _nearest_that_meets(
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


def gaussian_of(curve: Tradeoff) -> Mechanism | None:
    """Return the Gaussian mechanism whose curve this is, which may fail; None for other curves."""
    failure = curve.failure if isinstance(curve, FailureTradeoff) else 0.0
    curve = curve.of if isinstance(curve, FailureTradeoff) else curve
    if not isinstance(curve, GaussianTradeoff):
        return None
    return GaussianDP(curve.mu) + ApproximateDP(0.0, failure) if failure else GaussianDP(curve.mu)
