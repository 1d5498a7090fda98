"""The arguments ``advantage`` and ``limit``: which limit a call asks for, and a mechanism as a limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.accounting.door import tradeoff
from deniable.curves import Tradeoff
from deniable.limits import Limit
from deniable.mechanisms import Mechanism

COMPARED_RATES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.25, 0.5)


@dataclass(frozen=True)
class AsTellingAs:
    """A mechanism as a limit: at each of ``COMPARED_RATES`` no attacker finds more than the best one finds under it.

    Its own adjacency counts. What is measured is the largest ratio, over these false positive rates, of what is found
    above guessing; it is compared with the lower bounds of the mechanism.
    """

    mechanism: Mechanism
    kind = "mechanism"
    most = 1.0
    floor = 0.0
    group_size = 1
    name = "what is found above guessing, as a multiple of what the limit allows,"

    @property
    def arguments(self) -> dict[str, Any]:
        """What was asked for, in plain types."""
        return {"mechanism": repr(self.mechanism)}

    def leakage(self, curve: Tradeoff) -> float:
        """Return how much a mechanism of this ``curve`` leaks, by its upper bound."""
        rates = np.array(COMPARED_RATES)
        found, allowed = curve.tpr(rates) - rates, _found_under(self.mechanism)
        ratios = np.where(found <= allowed, 1.0, np.inf)  # where the mechanism is not known to tell anything
        np.divide(found, allowed, out=ratios, where=allowed > 0)
        return float(np.max(ratios))

    def is_met(self, curve: Tradeoff) -> bool:
        """Whether a mechanism of this ``curve`` is proven to meet the limit."""
        return self.leakage(curve) <= self.most

    def words(self, unit: str = "record") -> str:
        """Return the whole promise, as certificates state it."""
        rates = ", ".join(f"{rate:g}" for rate in COMPARED_RATES)
        return f"at false positive rates of {rates} no attacker finds more {unit}s than under {self.mechanism!r}"


def as_limit(
    advantage: float | None, limit: Limit | Mechanism | None, default: float | None = None
) -> Limit | AsTellingAs:
    """Return the one limit that a call asks for: ``advantage`` is short for ``Limit(advantage=…)``."""
    if advantage is not None and limit is not None:
        raise InputError(f"give advantage or limit, not both; got advantage={advantage!r} and limit={limit!r}")
    if limit is None:
        if advantage is None and default is None:
            raise InputError("give advantage=0.1 or another limit, such as limit=Limit(tpr=0.01, fpr=0.001); got none")
        return Limit(advantage=default if advantage is None else advantage)
    if isinstance(limit, Mechanism):
        return AsTellingAs(limit)
    if not isinstance(limit, Limit):
        raise InputError(f"limit must be a Limit, such as Limit(tpr=0.01, fpr=0.001), or a mechanism, got {limit!r}")
    return limit


@lru_cache(maxsize=64)
def _found_under(mechanism: Mechanism) -> FloatArray:
    """At least how much more than guessing an attacker finds at each of the rates that are compared."""
    rates = np.array(COMPARED_RATES)
    found: FloatArray = tradeoff(mechanism).tpr(rates, side="lower") - rates
    return found
