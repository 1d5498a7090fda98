"""A law's bounds for millions of ρ: from a table whose nodes are certified, and between which nothing is guessed.

Let T(ρ) be the largest of the functions g(ρ) = ∫ φ(z)·p(z − ρu) dz + const over a family of tests 0 ≤ φ ≤ 1, p the
noise and u a direction: a true positive rate at a given FPR is that, and so is the total variation. As ∫ ∂²p = 0,

    g'' ≥ −∫ (∂²p)₋ = −½ ∫ |∂²p| ≥ −c,    hence T(ρ) + c·ρ²/2 is convex, as a maximum of convex functions.

So T lies below its chord plus c/2·(ρ − ρ_k)(ρ_{k+1} − ρ) in a cell, and above what the chords of the two cells next to
it become when they are prolonged into this one. T is non-decreasing as well, so the value at the upper (lower) node
bounds it too. Nodes stand at fixed places, so that what is read for one ρ does not depend on the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._kept import Kept
from deniable.curves import Side
from deniable.laws.loss_law import in_chunks

_STEP = 2.0**-10  # relative distance of two nodes: (step·ρ)²/(8d) is 1e-6 at ρ = 3√d, where the curves bend most
_TOGETHER = 512  # nodes that are computed at a time, aligned: a node's value is the same whoever asks
_READ = 65_536  # ρ that are read at a time, to bound the memory
_ROUNDING = 1e-13  # of the few operations between nodes, relative to numbers of at most 1


class NodeValues(Protocol):
    """Certified values of T at many ρ."""

    def __call__(self, rho: FloatArray, side: Side) -> FloatArray: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class TabulatedBound:
    """Bounds of a non-decreasing T(ρ) in [0, 1], from ``values`` at nodes that are computed when first needed.

    ``bend`` is c of the module's text; ``largest`` the ρ beyond which ``values`` is not asked.
    """

    values: NodeValues
    bend: float
    largest: float
    _known: Kept[tuple[int, Side], FloatArray] = field(default_factory=Kept)

    def __call__(self, rho: FloatArray, side: Side) -> FloatArray:
        """Bounds of T at each ρ > 0, at most ``largest``; (n,)."""
        return in_chunks(lambda some: self._interpolate(some, side), rho, rows=_READ)

    def _interpolate(self, rho: FloatArray, side: Side) -> FloatArray:
        cell = np.floor(np.log(rho) / _STEP).astype(np.int64)
        cell = np.where(_node(cell) > rho, cell - 1, np.where(_node(cell + 1) < rho, cell + 1, cell))
        first = int(cell.min()) - 1
        last = int(cell.max()) + 2
        at = cell - first
        place = _node(np.arange(first, last + 1))
        left, right = place[at], place[at + 1]
        upper = self._nodes(first, last, "upper")
        if side == "upper":
            share = (rho - left) / (right - left)
            found = upper[at] + share * (upper[at + 1] - upper[at]) + self.bend / 2 * (rho - left) * (right - rho)
            return np.asarray(np.minimum(np.minimum(found * (1 + _ROUNDING), upper[at + 1]), 1.0))
        lower = self._nodes(first, last, "lower")
        found = lower[at]
        for near, far in ((at, at - 1), (at + 1, at + 2)):
            ahead, behind = rho - place[near], rho - place[far]
            share = ahead / (place[near] - place[far])
            line = lower[near] + share * (lower[near] - upper[far]) - self.bend / 2 * ahead * behind
            found = np.maximum(found, line - _ROUNDING * (lower[near] + np.abs(share) * upper[far]))
        return np.asarray(np.maximum(found, 0.0))

    def _nodes(self, first: int, last: int, side: Side) -> FloatArray:
        """Values at the nodes ``first`` … ``last``."""
        parts = range(first // _TOGETHER, last // _TOGETHER + 1)
        known = np.concatenate([self._part(part, side) for part in parts])
        start = parts[0] * _TOGETHER
        return known[first - start : last + 1 - start]

    def _part(self, part: int, side: Side) -> FloatArray:
        return self._known((part, side), lambda: self._compute_nodes(part, side))

    def _compute_nodes(self, part: int, side: Side) -> FloatArray:
        rho = _node(np.arange(part * _TOGETHER, (part + 1) * _TOGETHER))
        value = self.values(np.minimum(rho, self.largest), side)
        return np.where(rho > self.largest, 1.0, value) if side == "upper" else value


def _node(number: NDArray[np.int64]) -> FloatArray:
    return np.asarray(np.exp(number * _STEP))
