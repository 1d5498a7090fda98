"""Checks and rounding shared by the closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, numbers
from deniable._floats import EPS

_RATE = {"at_least": 0.0, "at_most": 1.0, "hint": "it is a rate, not a percentage"}
_RULES: dict[str, dict[str, Any]] = {
    "epsilon": {"at_least": 0.0, "hint": "it is the ε of a differential privacy guarantee"},  # infinity: no guarantee
    "delta": {"at_least": 0.0, "at_most": 1.0, "hint": "it is a probability"},
    "prior": {"above": 0.0, "below": 1.0, "hint": "a prior of 0 or 1 is certainty: no attack can add anything to it"},
    "eta": {"at_least": 0.0, "at_most": 0.5, "hint": "it is what an attack adds to guessing, ½ at most"},
    "variation": {"at_least": 0.0},
    "scale": {"above": 0.0, "below": np.inf},
    **dict.fromkeys(("fpr", "rate", "recall", "target"), _RATE),
}


def check_named(name: str, value: ArrayLike) -> FloatArray:
    """Return a value after the checks that its name stands for."""
    return numbers(name, value, **_RULES[name])


def together(**values: ArrayLike) -> tuple[FloatArray, ...]:
    """Check the named values and broadcast them against each other."""
    arrays = {name: check_named(name, value) for name, value in values.items()}
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(f"shapes must broadcast against each other, got {shapes}") from None


def plain(value: FloatArray) -> float | FloatArray:
    """Return a float for a zero-dimensional array, the array otherwise."""
    return float(value) if np.ndim(value) == 0 else value


def raise_by(value: FloatArray, slack: FloatArray | float = 8 * EPS, most: float = 1.0) -> FloatArray:
    """Move a non-negative upper bound up by a relative ``slack`` for rounding; 0 stays 0."""
    return np.minimum(value * (1 + slack), most)
