"""One door from a mechanism to what an attacker can do against it."""

from __future__ import annotations

import math

from deniable._check import InputError
from deniable.accounting.composed import InvertedTradeoff
from deniable.accounting.loss import PrivacyLoss
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism, PureDP, SubsampledGaussian
from deniable.tradeoff import ApproximateTradeoff, GaussianTradeoff, Tradeoff


def tradeoff(mechanism: Mechanism) -> Tradeoff:
    """Return the trade-off of ``mechanism``: bounds on every membership attack against it."""
    match mechanism:
        case PureDP(epsilon):
            return ApproximateTradeoff(epsilon, 0.0)
        case ApproximateDP(epsilon, delta):
            return ApproximateTradeoff(epsilon, delta)
        case GaussianDP(mu):
            return GaussianTradeoff(mu)
        case SubsampledGaussian() | Composition():
            parts = mechanism.mechanisms if isinstance(mechanism, Composition) else (mechanism,)
            loss = PrivacyLoss.of(parts)
            if loss.steps.size == 0:
                return GaussianTradeoff(math.sqrt(loss.gaussian))
            return InvertedTradeoff(loss, method="transform inversion")
        case _:
            raise InputError(f"mechanism must be one of deniable's mechanisms, got {mechanism!r}")
