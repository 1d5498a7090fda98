"""What a Gaussian release may spend under a limit: a Gaussian DP parameter, and a δ where one is needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from deniable._check import InputError
from deniable._floats import MANY_ROUNDINGS
from deniable.accounting import tradeoff
from deniable.limits import Limit
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism, SubsampledGaussian, parts_of
from deniable.planning.calibration import AsTellingAs, search

_BRACKET = (1e-6, 60.0)  # μ: below, the noise on a count exceeds a million; above, nothing is hidden


@dataclass(frozen=True)
class Budget:
    """What may be spent: Gaussian DP ``mu`` and a failure probability ``delta``, and the limit in words."""

    mu: float
    delta: float
    words: str

    def mechanism(self) -> Mechanism:
        """Return everything together."""
        return _spent(self.mu, self.delta)


def budget(limit: Limit | AsTellingAs, *, unit: str = "record", failure: float = 0.0) -> Budget:
    """Return the largest budget that keeps a limit; it is rounded down.

    Parameters
    ----------
    limit
        What an attacker may reach; a mechanism must be full-batch Gaussian, for adding or removing a record.
    unit
        What is in or out, in words: "record", "person" or "line of the file".
    failure
        Probability with which the discovery of categories may fail; the limit holds for both together.

    Raises
    ------
    InputError
        For a limit that no Gaussian noise meets, or that next to no noise meets.
    """
    if isinstance(limit, AsTellingAs):
        return _given(limit.mechanism, failure)
    return Budget(_largest_mu(failure, limit), failure, limit.words(unit))


def failure_of(limit: Limit | AsTellingAs) -> float:
    """Return the δ of finding words in the data that a limit has room for: a 20th of what it allows, 1e-6 at most."""
    return min(1e-6, (limit.most - limit.floor) / 20 / limit.group_size)


@lru_cache(maxsize=64)
def _largest_mu(failure: float, limit: Limit) -> float:
    beside = f" with a failure probability of {failure:g}" if failure else ""
    return largest_mu(limit, lambda mu: _spent(mu, failure), beside)


def largest_mu(limit: Limit, spent: Callable[[float], Mechanism], beside: str = "") -> float:
    """Return the largest μ for which what ``spent`` makes of it keeps a limit; the search takes milliseconds.

    Raises ``InputError`` where next to no noise meets the limit, and where none does; ``beside`` says in words what
    else is spent.
    """
    if limit.is_met(tradeoff(spent(_BRACKET[1]))):
        raise InputError(f"the limit, {limit.words()}, promises nothing: next to no noise meets it")
    found = search(limit, spent, _BRACKET)
    if found.score > 0:
        raise InputError(f"no Gaussian noise{beside} meets {limit!r}: with the most, {limit.name} is still "
                         f"{limit.leakage(found.curve):.3g}")  # fmt: skip
    return found.parameter


def squared_mu(part: Mechanism) -> float | None:
    """Return μ² of a full-batch Gaussian mechanism, None of others."""
    if isinstance(part, GaussianDP):
        return part.mu * part.mu  # not **, which raises where it overflows
    if isinstance(part, SubsampledGaussian) and part.sample_rate == 1:
        one = part.records_per_person / part.noise_multiplier
        return part.steps * one * one
    return None


def _spent(mu: float, failure: float) -> Mechanism:
    return Composition((GaussianDP(mu), ApproximateDP(0.0, failure))) if failure else GaussianDP(mu)


def _given(mechanism: Mechanism, failure: float) -> Budget:
    total = 0.0
    for part in parts_of(mechanism):
        if (squared := squared_mu(part)) is None or "add-remove" not in (part.adjacency, *part.also):
            raise InputError(
                "a mechanism as limit must be full-batch Gaussian here (GaussianDP, SubsampledGaussian with "
                f"sample_rate 1, or both), for adding or removing a record, not {part!r} ({part.adjacency}); "
                "say what is wanted instead, as epsilon=1, delta=1e-6"
            )
        total += squared
    mu = math.sqrt(total) * (1 - MANY_ROUNDINGS)
    if not 0 < mu < math.inf:
        raise InputError(f"a mechanism as limit must leave a positive, finite budget, got μ = {mu:g}")
    beside = f", but for a failure probability of {failure:g}" if failure else ""
    return Budget(mu, failure, f"as hard to attack as {mechanism!r}{beside}")
