"""Finite laws, composed exactly: randomised response, discrete mechanisms, worst pairs.

A support that grows too large is brought onto a lattice, twice: from above by splitting every outcome onto its
neighbours so that both masses are kept (merging them again would undo it), from below by merging neighbours, which is a
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.renyi import Divergences
from deniable.accounting.sizes import BLOCK, MOST
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.curves import Charged, Direction, Question, Side, Tradeoff


@dataclass(frozen=True, eq=False)
class FiniteTradeoff(Tradeoff):
    """Trade-off of a finite law: ``above`` answers from above and ``below`` from below.

    The two are the same law unless its support was too large.
    """

    above: FiniteLaw
    below: FiniteLaw
    divergences: Divergences | None = None
    method: str = field(default="finite law, composed exactly", kw_only=True)

    @classmethod
    def of(cls, laws: Sequence[FiniteLaw], coarse: bool = False) -> FiniteTradeoff:
        """Return the trade-off of a composition; products that would be too large are made coarser on request.

        Raises
        ------
        MemoryError
            If a product is too large otherwise.
        """
        laws = sorted(laws, key=lambda law: law.p.size)
        if not coarse or math.prod(law.p.size for law in laws) <= BLOCK:
            exact = reduce(FiniteLaw.composed, laws)
            return cls(exact, exact)
        above, below = (reduce(lambda law, other: _compose(law, other, side), laws) for side in ("upper", "lower"))
        return cls(above, below, method="finite law, its outcomes split and merged on a lattice")

    def _law(self, direction: Direction, side: Side) -> FiniteLaw:
        """The law that bounds a side, as seen from the first world of a direction."""
        law = self.above if side == "upper" else self.below
        return law if direction == "remove" else law.swapped

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._law(direction, side).hockey_stick(log_gamma, side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return np.where(fpr == 1, 1.0, self._law(direction, side).rate(fpr, side))

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        law = self.above if side == "upper" else self.below
        slack = law.shift + (4 * EPS * max(x for x in (*law.reach, 0.0) if x < math.inf) if law.shift > 0 else 0.0)
        return law.reach[direction == "add"] + (slack if side == "upper" else -slack)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        if self.divergences is None:
            return super().renyi_divergences(order, direction)
        return self.divergences(order, direction)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method, exact=self.above is self.below)


def _compose(law: FiniteLaw, other: FiniteLaw, side: Side) -> FiniteLaw:
    """Compose two laws, made coarser where the product would be too large."""
    if law.p.size > other.p.size:
        law, other = other, law
    if law.p.size * other.p.size > MOST:
        law = law.coarse(min(law.p.size, math.isqrt(MOST)), side)
        other = other.coarse(MOST // max(law.p.size, 1), side)
    return law.composed(other).coarse(BLOCK, side)
