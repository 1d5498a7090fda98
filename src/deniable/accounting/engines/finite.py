"""Finite laws, composed exactly: randomised response, discrete mechanisms, worst pairs.

A support that grows too large is brought onto a lattice, twice: from above by splitting every outcome onto its
neighbours so that both masses are kept (merging them again would undo it), from below by merging neighbours, which is a
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.renyi import RenyiCurve
from deniable.accounting.sizes import BLOCK, MOST, UNDERFLOW
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.curves import Charged, Direction, Question, Side, Tradeoff

_SIDES: tuple[Side, ...] = ("upper", "lower")


@dataclass(frozen=True, eq=False)
class FiniteTradeoff(Tradeoff):
    """Trade-off of a finite law, composed exactly: ``above`` answers from above and ``below`` from below.

    The two are the same law unless its support was too large.
    """

    above: FiniteLaw
    below: FiniteLaw
    divergences: RenyiCurve | None = None  # known of the law, in either direction, where outcomes are left out
    method: str = field(default="finite law, composed exactly", kw_only=True)

    @classmethod
    def of(cls, law: FiniteLaw, method: str = "finite law, composed exactly") -> FiniteTradeoff:
        """Return the trade-off of one law."""
        return cls(law, law, method=method)

    @classmethod
    def randomized_responses(cls, counts: Iterable[tuple[float, float]]) -> FiniteTradeoff:
        """Return the composition of pure-DP parts, (ε, how many), each through its worst pair."""
        parts = [(e, round(n)) for e, n in counts]
        above, below = (_all(parts, side) for side in _SIDES)
        exact = above.p.size == below.p.size and np.array_equal(above.log_ratio, below.log_ratio)
        method = "finite law, composed exactly" if exact else "finite law, its outcomes split and merged on a lattice"
        return cls(above, above if exact else below, method=method)

    @cached_property
    def _swapped(self) -> FiniteTradeoff:
        return FiniteTradeoff(self.above.swapped(), self.below.swapped())

    def _law(self, direction: Direction, side: Side) -> FiniteLaw:
        """The law that bounds a side, as seen from the first world of a direction."""
        of = self if direction == "remove" else self._swapped
        return of.above if side == "upper" else of.below

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._law(direction, side).hockey_stick(log_gamma, side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return np.where(fpr == 1, 1.0, self._law(direction, side).rate(fpr, side))

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.above.reach[0 if direction == "remove" else 1] + self._slack(self.above)

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.below.reach[0 if direction == "remove" else 1] - self._slack(self.below)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        found = self._of_outcomes(self._law(direction, "upper"), order)
        return found if self.divergences is None else np.minimum(found, self.divergences.divergence(order, direction))

    def _of_outcomes(self, law: FiniteLaw, order: FloatArray) -> FloatArray:
        """log E_P[r^{α−1}]/(α − 1), what was left out under P at the largest ratio."""
        if law.only[0] > 0:
            return np.full(order.shape, np.inf)
        power = order[:, None] - 1
        largest = law.reach[0] + self._slack(law)
        exponent = np.where(
            law.p > 0, power * (law.log_ratio + law.shift) + np.log(np.maximum(law.p, UNDERFLOW)), -np.inf
        )
        lost = power * largest + np.log(law.lost[0]) if law.lost[0] > 0 else np.full(power.shape, -np.inf)
        total = np.logaddexp.reduce(np.concatenate([exponent, lost], axis=1), axis=1)
        rounding = law.relative_error + EPS * (64 + 4 * power[:, 0] * np.max(np.abs(law.log_ratio), initial=0.0))
        return np.asarray(np.minimum((total + rounding) / power[:, 0] * (1 + 4 * EPS), largest))

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method, exact=self.above is self.below)

    @staticmethod
    def _slack(law: FiniteLaw) -> float:
        return law.shift + (4 * EPS * max(x for x in (*law.reach, 0.0) if x < math.inf) if law.shift > 0 else 0.0)


def _all(parts: list[tuple[float, int]], side: Side) -> FiniteLaw:
    """Compose randomised responses, (ε, how many), small supports first."""
    laws = sorted((FiniteLaw.randomized_responses(e, n, side) for e, n in parts), key=lambda law: law.p.size)
    return reduce(lambda law, other: _composed(law, other, side), laws)


def _composed(law: FiniteLaw, other: FiniteLaw, side: Side) -> FiniteLaw:
    """Compose two laws, made coarser where the product would be too large."""
    if law.p.size > other.p.size:
        law, other = other, law
    if law.p.size * other.p.size > MOST:
        law = law.coarse(min(law.p.size, math.isqrt(MOST)), side)
        other = other.coarse(MOST // max(law.p.size, 1), side)
    return law.composed(other).coarse(BLOCK, side)
