"""What correct guesses about canaries prove: the largest probability of so many under a promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._search import bisect
from deniable.audit.betting import GAMMAS
from deniable.audit.families import Family
from deniable.curves import Tradeoff


def rejects_f_dp(family: Family, value: float, m: int, r: int, v: int, error: float) -> bool:
    """Return whether P(at least v of r guesses right) ≤ ``error`` under a symmetric f-DP guarantee.

    Let p_j be the probability of j right guesses, R_j = Σ_{i≥j} i·p_i/m and H_j = Σ_{i≥j} (r−i)·p_i/m. Flipping the
    coin of one canary turns "right, j in all" into "wrong, j−1 in all"; by f-DP for each canary and concavity
    R_j ≤ f̄(H_{j−1}) with f̄ = 1 − f (Mahloujifar, Melis & Chaudhuri 2024, Theorem 9). Were the probability above
    ``error``, following the least H and R down to j = 0 could use no more than all probability, R_0 + H_0 = r/m.
    """
    if v == 0:
        return False
    R, H = error * v / m, error * (r - v) / m
    for j in range(v, 0, -1):
        # f̄⁻¹(R) = 1 − f̄(1 − R) for a symmetric trade-off
        needed = max(H, 1 - float(family.ceiling(np.asarray(1 - R), value)))
        used = needed > H
        R += (j - 1) / (r - j + 1) * (needed - H)
        H = needed
        if r / m < R + H:
            return True
        if not used:  # nothing changes further down either
            return False
    return False


@dataclass(frozen=True, eq=False)
class PromisedFamily(Family):
    """One promised curve, made symmetric: TPR ≤ min over γ of H_γ + γ·FPR, H the larger of both directions."""

    hockey_sticks: FloatArray

    @classmethod
    def of(cls, curve: Tradeoff) -> PromisedFamily:
        """Return the symmetric hull of a curve, from its hockey sticks at the slopes of :data:`GAMMAS`."""
        return cls(np.maximum(curve.hockey_stick(GAMMAS), curve.hockey_stick(GAMMAS, "add")))

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the hull: concave, as a minimum of lines, and at least the promise; ``value`` is not used."""
        lines = self.hockey_sticks + GAMMAS * np.asarray(fpr)[..., None]
        return np.asarray(np.minimum(1.0, lines.min(axis=-1) * (1 + 1e-14)))


def largest_rejected(rejects: Callable[[float], bool]) -> float:
    """Return the largest rejected parameter, rounded down (0 if none)."""
    if not rejects(0.0):
        return 0.0
    return float(bisect(lambda value: rejects(float(value)), 0.0, Family.largest, relative=1e-6)[0])
