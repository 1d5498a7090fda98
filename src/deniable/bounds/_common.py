"""Checks and rounding shared by the closed forms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, numbers
from deniable._floats import EPS


def check_epsilon(epsilon: ArrayLike) -> FloatArray:
    """Return ε ≥ 0; infinity (no guarantee from ε) is allowed."""
    return numbers("epsilon", epsilon, at_least=0.0, hint="it is the ε of a differential privacy guarantee")


def check_delta(delta: ArrayLike) -> FloatArray:
    """Return δ in [0, 1]."""
    return numbers("delta", delta, at_least=0.0, at_most=1.0, hint="it is a probability")


def check_prior(prior: ArrayLike) -> FloatArray:
    """Return P(in) strictly between 0 and 1."""
    hint = "a prior of 0 or 1 is certainty: no attack can add anything to it"
    return numbers("prior", prior, above=0.0, below=1.0, hint=hint)


def check_rate(name: str, rate: ArrayLike) -> FloatArray:
    """Return a rate in [0, 1]."""
    return numbers(name, rate, at_least=0.0, at_most=1.0, hint="it is a rate, not a percentage")


def together(**arrays: FloatArray) -> tuple[FloatArray, ...]:
    """Broadcast the named arrays against each other."""
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(f"shapes must broadcast against each other, got {shapes}") from None


def plain(value: FloatArray) -> float | FloatArray:
    """Return a float for a zero-dimensional array, the array otherwise."""
    return float(value) if np.ndim(value) == 0 else value


def raised(value: FloatArray, slack: FloatArray | float = 8 * EPS, most: float = 1.0) -> FloatArray:
    """Move a non-negative upper bound up by a relative ``slack`` for rounding; 0 stays 0."""
    return np.minimum(value * (1 + slack), most)
