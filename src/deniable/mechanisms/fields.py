"""Frozen dataclasses whose fields say what they may hold: the check stands in the type of the field."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, get_type_hints

from deniable._check import InputError, integer, number
from deniable._floats import MOST_EXPONENT

CheckOf = Callable[[str, Any], Any]  # the name of a field and what was given, to what is kept


class Checked:
    """Base of frozen dataclasses: each value passes the check of its type, then ``_check_together`` sees them all."""

    def __post_init__(self) -> None:
        for name, check in _checks(type(self)).items():  # type: ignore[arg-type]  # mypy asks instances for a hash
            object.__setattr__(self, name, check(name, getattr(self, name)))
        self._check_together()

    def _check_together(self) -> None:
        """Refuse what no single field can tell; nothing by default."""


@cache
def _checks(kind: type) -> dict[str, CheckOf]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}


def real(**rules: Any) -> CheckOf:
    """Return the check "a number within these rules": those of :func:`deniable._check.number`."""
    return lambda name, value: number(name, value, **rules)


def whole(at_least: int = 1, hint: str = "") -> CheckOf:
    """Return the check "a whole number of at least this"."""
    return lambda name, value: integer(name, value, at_least=at_least, hint=hint)


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
