"""One door from a mechanism to what an attacker can do against it."""

from __future__ import annotations

from deniable._check import InputError
from deniable.mechanisms import ApproximateDP, GaussianDP, Mechanism, PureDP
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
        case _:
            raise InputError(f"mechanism must be one of deniable's mechanisms, got {mechanism!r}")
