"""What errors of steps' laws may add to a lower bound far in a tail, by their moments.

*Theorem.* Let every convex function f ≥ 0 of a step's r = dP/dQ that rises have a mean under the step's pieces of at
most (1 + ρ)·(E f(r) + E′f(r)) + u·sup(f/r), E the true law under Q, E′ a positive measure with E′r^c ≤ A(c), and let
E r^c ≤ M(c) and n steps have R = Π r. Then pieces have, with κ = (c − 1)^{c − 1}/c^c and the hockey stick H of truth,
    Ĥ_γ ≤ (1 + ρ)^n·(H_γ + κ·γ^{1 − c}·M^n·(e^{nA/M} − 1)) + n·u·e^{n(ρ + u + A(1))}
for every c ≥ 1. *Proof.* (R − γ)₊ is convex, rises in every r and is at most κ·γ^{1 − c}·R^c. Pieces are replaced by
E + E′ step by step, which leaves (M + A)^n − M^n ≤ M^n·(e^{nA/M} − 1) (M may be a bound: the left rises with M) beside
E^n, and where a step is in u, R is what is left. ∎ With P and Q exchanged it is (1 − γS)₊, S = Π dP/dQ, that is
convex, falls in every factor and is at most κ·γ^{1 − c}·S^{1 − c}: S^{1 − c} takes the place of R^c, and sup(f) that of
sup(f/r).

Rows have P masses that are lowered by factors 1 − ρ a step, and (1 − ρ)(1 + ρ) < 1: a set of them with masses p̂ and q̂
shows H_γ ≥ p̂ − γq̂ − :meth:`FarCharge.at`.

*Rates.* TPR(α) = inf_γ γα + H_γ. Let g(γ) be γα + p̂ − γq̂ for any set, also one that is mixed of two. If its q̂ is α,
g = p̂ for every γ; if q̂ ≥ α, g falls, and on [a, b] it is at least g(b). The charge falls with γ: on [a, b] it is at
most that at a. So for γ_0 > γ_1 > … > γ_m and any p̂ with q̂ ≤ α
    TPR(α) ≥ min(p̂ − D(γ_0), min_i max(p̂, g_i(γ_i)) − D(γ_{i + 1})), γ_{m + 1} = 0, where D is that of c = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.steps.base import Step
from deniable.curves import Direction

_ORDERS = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64], dtype=np.float64)


class FarCharge(NamedTuple):
    """Orders c, 1 the first, logarithms of charges at γ = 1, and what is charged at every γ."""

    order: FloatArray
    log_charge: FloatArray
    always: float

    @classmethod
    def of(cls, parts: Sequence[tuple[Step, int]], direction: Direction, relative: float) -> FarCharge | None:
        """That of lower steps, made so often, whose masses err by shares that add up to ``relative``."""
        above = _ORDERS[1:]
        log_moment, share, lost = np.zeros(_ORDERS.size), np.zeros(_ORDERS.size), 0.0
        for step, count in parts:
            if not step.bounds_divergence:
                return None
            one = np.append(0.0, (above - 1) * step.divergence(above, direction)) * (1 + 8 * EPS)
            if not np.isfinite(one[-1]):
                return None
            excess, unplaced = step.excess(_ORDERS, one, direction)
            log_moment, share, lost = log_moment + count * one, share + count * excess, lost + count * unplaced
        if not (share[0] + lost < 1 and relative < 1):
            return None
        log_kappa = np.append(0.0, (above - 1) * np.log(above - 1) - above * np.log(above))
        with np.errstate(divide="ignore", over="ignore"):
            grown = np.log(np.expm1(np.minimum(share, MOST_EXPONENT)))
        points = sum(count for _, count in parts) * 64 * EPS  # how far log R may be wrong
        found = log_kappa + log_moment + grown + 2 * relative + _ORDERS * points + 1e-9
        return cls(_ORDERS, found, lost * math.exp(2 * relative + lost + float(share[0]) + 1e-9))

    def at(self, log_gamma: float) -> float:
        """At most what a hockey stick is too large by."""
        least = float(np.min(self.log_charge - (self.order - 1) * log_gamma))
        return math.exp(min(least, MOST_EXPONENT)) * (1 + 1e-9) + self.always

    @property
    def everywhere(self) -> float:
        """The same at every γ: of order 1."""
        return math.exp(min(float(self.log_charge[0]), MOST_EXPONENT)) * (1 + 1e-9) + self.always
