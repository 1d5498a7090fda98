"""What the fields of mechanisms may hold, one type a kind of field."""

from __future__ import annotations

import math
from typing import Annotated, Any

from deniable._check import InputError, number
from deniable._checked import real, whole
from deniable._floats import MOST_EXPONENT


def _noise(name: str, value: Any) -> float:
    sigma = number(name, value, above=0.0, hint="training without noise has no membership bound")
    if sigma == math.inf:
        raise InputError(f"{name} must be finite, got inf; a release of pure noise reveals nothing and needs no bound")
    return sigma


NoiseScale = Annotated[float, _noise]
Positive = Annotated[float, real(above=0.0, below=math.inf)]
NotNegative = Annotated[float, real(at_least=0.0)]
# nats of a single step: beyond, its likelihood ratio is no double
LargestLoss = Annotated[float, real(above=0.0, at_most=MOST_EXPONENT)]
Rate = Annotated[
    float,
    real(
        above=0.0,
        at_most=1.0,
        hint="it is the probability with which a record enters a step: batch size divided by number of records",
    ),
]
Count = Annotated[int, whole()]
