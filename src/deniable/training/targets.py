"""From a target in any supported term to the budget of a fit: a Gaussian DP parameter, and a δ where one is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from deniable._check import InputError, number
from deniable._floats import MANY_ROUNDINGS
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism, SubsampledGaussian
from deniable.mechanisms.core import parts_of
from deniable.planning.calibration import parameter_for
from deniable.planning.targets import Target, read_target

DEFAULT_ADVANTAGE = 0.1  # at even odds, no attacker is right more than 55 % of the time
_BRACKET = (1e-6, 60.0)  # μ: below, the noise on a count exceeds a million; above, nothing is hidden


@dataclass(frozen=True)
class Budget:
    """What a fit may spend: Gaussian DP ``mu`` beside a failure probability ``delta``, and the target in words."""

    mu: float
    delta: float
    words: str


def budget(
    given: Mapping[str, Any],
    mechanism: Mechanism | None = None,
    *,
    group_size: int = 1,
    unit: str = "record",
    failure: float = 0.0,
) -> Budget:
    """Return the budget of exactly one target; none at all means an advantage of 0.1.

    Parameters
    ----------
    given
        The arguments of a target (:func:`deniable.planning.targets.read_target`) or ``noise_multiplier``: those that
        are not None count.
    mechanism
        Instead: what may be spent, full-batch Gaussian mechanisms only.
    group_size
        This many units are in or out together, and the target must hold for them.
    unit
        What is in or out, in words: "record" or "person".
    failure
        Probability with which the discovery of categories may fail; the target holds for both together.

    Raises
    ------
    InputError
        For two targets, one that cannot be met, or one that next to no noise meets.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    sigma = asked.pop("noise_multiplier", None)
    direct = [name for name, value in (("noise_multiplier", sigma), ("mechanism", mechanism)) if value is not None]
    if len(direct) + bool(asked) > 1:
        raise InputError(f"give exactly one target, got {', '.join([*asked, *direct])}")
    if direct and group_size != 1:
        raise InputError(f"group_size goes with a target; {direct[0]} says itself what may be spent")
    if mechanism is not None:
        return _given(mechanism, failure)
    if sigma is not None:
        noise = number("noise_multiplier", sigma, above=0.0)
        return Budget(1 / noise, failure, f"noise multiplier {noise:g} for the whole fit")
    target = read_target(asked or {"advantage": DEFAULT_ADVANTAGE}, group_size=group_size)
    if target.kind == "epsilon":
        number("delta", target.limit, above=0.0, hint="Gaussian noise needs δ > 0")
        number("epsilon", target.at[0], above=0.0)
    else:
        number(target.kind, target.limit, below=1.0, hint="at 1 nothing is promised")
        if target.kind != "advantage":
            number(_AT.get(target.kind, "prior"), target.at[-1], above=0.0, hint="at 0 Gaussian noise leaks nothing")
    return Budget(_largest_mu(failure, target), failure, target.words(unit))


@lru_cache(maxsize=64)
def _largest_mu(failure: float, target: Target) -> float:
    """Return the largest μ that meets a target beside a failure probability; the search takes milliseconds."""
    return parameter_for(target, lambda mu: _spent(mu, failure), _BRACKET)


_AT = {"tpr": "fpr", "reconstruction": "baseline", "singling_out": "weight"}  # what must not be 0


def _spent(mu: float, failure: float) -> Mechanism:
    return Composition((GaussianDP(mu), ApproximateDP(0.0, failure))) if failure else GaussianDP(mu)


def _given(mechanism: Any, failure: float) -> Budget:
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"mechanism must be one of deniable's mechanisms, got {mechanism!r}")
    total = 0.0
    for part in parts_of(mechanism):
        if isinstance(part, GaussianDP):
            total += part.mu**2
        elif isinstance(part, SubsampledGaussian) and part.sample_rate == 1:
            total += part.steps * (part.records_per_person / part.noise_multiplier) ** 2
        else:
            raise InputError(
                "mechanism must be full-batch Gaussian (GaussianDP, SubsampledGaussian with sample_rate 1, or both), "
                f"not {part!r}; give the guarantee that is wanted instead, for example epsilon= and delta="
            )
    mu = math.sqrt(total) * (1 - MANY_ROUNDINGS)
    if not 0 < mu < math.inf:
        raise InputError(f"mechanism must leave a positive, finite budget, got μ = {mu:g}")
    return Budget(mu, failure, f"as hard to attack as {mechanism!r}")
