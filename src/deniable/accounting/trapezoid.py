"""The trapezoid rule on a line Re w = c, once for every engine: value ± (aliasing, truncation, rounding).

A sum with spacing h stands for an integral over t ≥ 0 of the real part of a transform. It is wrong by *aliases*
(copies of the law at multiples of the period Λ = 2π/h, by Poisson's formula), by the *truncation* of what follows the
last node, and by *rounding*. Engines bound the three apart, each in its own way; what they share stands here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import MOST_EXPONENT
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import ComplexArray


@dataclass(frozen=True, eq=False)
class Sum:
    """Values, and bounds on the three errors of each, in units of the values."""

    value: FloatArray
    aliasing: FloatArray
    truncation: FloatArray
    rounding: FloatArray

    @property
    def error(self) -> FloatArray:
        """Bound on the whole error."""
        return self.aliasing + self.truncation + self.rounding

    def checked(self) -> Sum:
        """Return the same with nothing claimed where a value or an error is not finite."""
        bad = ~np.isfinite(self.value) | ~np.isfinite(self.error)
        if not bad.any():
            return self
        value, aliasing, truncation = (np.where(bad, 0.0, x) for x in (self.value, self.aliasing, self.truncation))
        return Sum(value, aliasing, truncation, np.where(bad, np.inf, self.rounding))


def nodes_until(end: float, spacing: float, most: int) -> FloatArray:
    """Return t = 0, h, 2h, … up to the first node at or beyond ``end``.

    Raises
    ------
    TooSlowError
        If there are more than ``most``.
    """
    count = math.ceil(end / spacing) + 1 if math.isfinite(end) else math.inf
    if not count <= most:
        raise TooSlowError(f"{count} nodes")
    nodes: FloatArray = spacing * np.arange(count, dtype=np.float64)
    return nodes


def half_line(count: int, period: float) -> FloatArray:
    """Return the weights h/π = 2/Λ of nodes t ≥ 0, the first of which counts half."""
    weight = np.full(count, 2.0 / period)
    weight[0] /= 2
    return weight


def poles(w: NDArray[np.complexfloating[Any, Any]]) -> ComplexArray:
    """Return the kernels of out(L > ℓ), in(L > ℓ) and the hockey stick, and of the two densities, one row per node."""
    columns = [1 / w, 1 / (w - 1), 1 / (w * (w - 1)), np.ones_like(w), np.ones_like(w)]
    return np.stack(columns, axis=1).astype(np.complex128, copy=False)


def even_aliases(period: float, gamma: FloatArray | float = 1.0) -> FloatArray:
    """Return all aliases of ∫ min(p, γq) on the line Re w = ½, but for the hockey sticks that they lack.

    They are ∫ min(p·e^{kΛ/2}, γq·e^{−kΛ/2}) for k ≠ 0: at most (1 + γ)/(e^{Λ/2} − 1) together.
    """
    return np.asarray((1 + np.asarray(gamma)) / math.expm1(min(period / 2, MOST_EXPONENT)))


def falling_rest(edges: FloatArray, height: FloatArray, spacing: float) -> FloatArray:
    """Return bounds on (h/π)·Σ f(t)/t² over the nodes from each edge on, f being at most ``height`` from its edge on.

    A falling summand: its integral and its first term. ``height`` has the edges on its last axis.
    """
    after = np.append(edges[1:], np.inf)
    terms = height * ((1 / edges - 1 / after + spacing / edges**2) / math.pi)
    rest: FloatArray = np.cumsum(terms[..., ::-1], axis=-1)[..., ::-1]
    return rest
