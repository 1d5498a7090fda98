"""What was promised, as a curve: audits take a mechanism wherever they take a trade-off."""

from __future__ import annotations

from deniable._check import InputError
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism


def promised_curve(promise: Mechanism | Tradeoff, name: str = "tradeoff") -> Tradeoff:
    """Return a trade-off as it is, and a mechanism's as :func:`deniable.tradeoff` computes it.

    The curve is the claim against which an attack is tested; no score and no measurement depends on it.
    """
    if isinstance(promise, Mechanism):
        return tradeoff(promise)
    if not isinstance(promise, Tradeoff):
        raise InputError(
            f"{name} must be a Tradeoff such as dn.tradeoff(dn.PureDP(1)), or a mechanism such as dn.PureDP(1), "
            f"got {promise!r}"
        )
    return promise


def in_words(promise: Mechanism | Tradeoff) -> str:
    """Return what was promised: a mechanism as it is written, or a curve's kind and method."""
    return repr(promise) if isinstance(promise, Mechanism) else f"{type(promise).__name__}, {promise.method}"
