"""Functions of ``scipy.special``, which is loaded when one of them is first called: it takes longer than NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _later(name: str) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*arguments)

    return function


erf, erfcx, log_ndtr, ndtr, ndtri = map(_later, ("erf", "erfcx", "log_ndtr", "ndtr", "ndtri"))
expit, logit = map(_later, ("expit", "logit"))
