"""Hockey sticks and true positive rates read off composed laws, with every charge.

*Theorem.* Let p̂_j be the rows above at labels x_j, known up to e^{±r} and E (see :mod:`deniable.accounting.lattices`),
and ℓ the P mass that is on no lattice. Then H_γ(P‖Q) ≤ e^r·(Σ p̂_j·(1 − γe^{−x_j})₊ + E) + ℓ. *Proof.* Step by step the
pair above dominates: its P masses are the true ones, outcome by outcome, split so that P and Q are kept, at losses that
were only raised. Domination survives composition, and at most ℓ of P takes part in an outcome that is on no lattice, or
is more than its step says: shown to the attacker, it adds ℓ. H_γ is a sum over outcomes of P mass times a number in
[0, 1]: a mass that is left out adds at most itself, one too many takes nothing away, and factors e^r multiply the
sum. ∎
TPR(α) ≤ γα + H_γ for every γ (weak duality), asked near the best one.
*From below*, rows p̂_j and q̂_j are merged outcomes. Every set S of them is a test, however it was found: it accuses with
chance P(S) ≥ e^{−r}·(p̂(S) − E) + only and Q(S) ≤ e^r·(q̂(S) + E·e^{−x_S}), x_S the least label of S, only P mass that
Q lacks: such outcomes are always accused; what outcomes of a step may have too much of P, or lack of Q, is taken from
P(S) and added to Q(S). H_γ ≥ P(S) − γQ(S), and a true positive rate at α is that of two sets mixed.

*Errors that climb.* What a row misses may be brought onto coarser lattices later; below, where Q masses stand times
e^{label}, each time multiplied by at most e^h, h the spacing it comes to, if that is to the nearest point. It climbs
the classes once, whose spacings add up to 8/7 of the coarsest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MANY_ROUNDINGS, MOST_EXPONENT
from deniable.accounting.pld.compose import ComposedLaw

_NEIGHBOURS = np.array([-64, -8, -1, 0, 1, 8, 64])  # of the best node, tried as well


@dataclass(frozen=True, eq=False)
class Above:
    """Upper bounds from a composed law of split masses."""

    composed: ComposedLaw

    @cached_property
    def _in_order(self) -> tuple[FloatArray, FloatArray]:
        """Labels, falling, and P masses."""
        x, _, rows = self.composed.law.listed()
        order = np.argsort(-x, kind="stable")
        return self.composed.middle + x[order], rows[0, order]

    @cached_property
    def _out(self) -> FloatArray:
        """Q mass at labels from the largest on, about."""
        x, p = self._in_order
        with np.errstate(over="ignore", under="ignore"):
            return np.cumsum(p * np.exp(-np.clip(x, -MOST_EXPONENT, MOST_EXPONENT)))

    @cached_property
    def blur(self) -> float:
        """Bound on the rounding of labels."""
        return 8 * EPS * (self.composed.size + float(np.max(np.abs(self._in_order[0]))))

    def hockey_stick(self, log_gamma: float) -> float:
        """Upper bound on H_γ."""
        x, p = self._in_order
        at = log_gamma - self.blur
        k = int(np.searchsorted(-x, -at, side="left"))
        found = float(np.sum(p[:k] * -np.expm1(at - x[:k]))) if k else 0.0
        factor = math.exp(self.composed.law.relative) * (1 + MANY_ROUNDINGS)
        return (found + self.composed.charged) * factor + self.composed.only * (1 + 64 * EPS)

    def rate(self, alpha: float) -> float:
        """Upper bound on the true positive rate: at the node near the quantile at which it is about the least."""
        x, _ = self._in_order
        near = np.unique(np.clip(int(np.searchsorted(self._out, alpha)) + _NEIGHBOURS, 0, x.size - 1))
        near = near[x[near] < MOST_EXPONENT]
        if not near.size:
            return 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            about = self._inside[near] + np.exp(x[near]) * (alpha - self._out[near])
        at = float(x[near[int(np.argmin(np.where(np.isfinite(about), about, np.inf)))]])
        return min((math.exp(at) * alpha + self.hockey_stick(at)) * (1 + 8 * EPS), 1.0)

    @cached_property
    def _inside(self) -> FloatArray:
        """P mass at labels from the largest on, about."""
        return np.cumsum(self._in_order[1])

    def epsilon(self, delta: FloatArray) -> FloatArray:
        """About the log γ at which the hockey stick is δ."""
        x, _ = self._in_order
        with np.errstate(over="ignore"):
            found = np.maximum.accumulate(self._inside - np.exp(np.minimum(x, MOST_EXPONENT)) * self._out)
        return x[np.clip(np.searchsorted(found, delta), 0, x.size - 1)]


@dataclass(frozen=True, eq=False)
class Below:
    """Lower bounds from a composed law of merged outcomes."""

    composed: ComposedLaw

    @cached_property
    def _in_order(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Ratios as computed, falling and kept within a spacing of labels; labels; P masses; Q masses times e^label."""
        x, half, (p, q) = self.composed.law.listed()
        x = x + self.composed.middle
        with np.errstate(all="ignore"):
            ratio = np.where(p > 0, x + np.log(p) - np.log(q), -np.inf)
        key = np.clip(np.where(np.isnan(ratio), -np.inf, ratio), x - 2 * half, x + 2 * half)
        order = np.argsort(-key, kind="stable")
        return key[order], x[order], p[order], q[order]

    @cached_property
    def _rounding(self) -> float:
        """The factor by which masses, and sums of them, may be off."""
        x = self._in_order[1]
        blur = 8 * EPS * (self.composed.size + float(np.max(np.abs(x))))
        return math.exp(self.composed.law.relative + blur) * (1 + (1 + x.size / 8192) * MANY_ROUNDINGS)

    @property
    def _sure(self) -> float:
        return self.composed.only * (1 - 64 * EPS)

    @cached_property
    def _tests(self) -> tuple[FloatArray, FloatArray]:
        """Nested sets of outcomes, ratios falling: lower bounds on their P and upper bounds on their Q masses."""
        _, x, p, q = self._in_order
        lost = self.composed.lost
        missed, least = self.composed.missed, np.minimum.accumulate(x)
        with np.errstate(over="ignore", invalid="ignore"):  # where Q masses leave the doubles, no test is known
            out = np.cumsum(np.where(q > 0, q * np.exp(-x), 0.0)) + missed * np.exp(-least)
            out = np.where(np.isnan(out), np.inf, out)
            inside = np.cumsum(p) / self._rounding - missed - lost[0]
        sure = np.where(np.isfinite(inside), np.maximum(inside, 0.0), 0.0) + self._sure
        return sure, (out + lost[1]) * self._rounding

    def hockey_stick(self, log_gamma: float) -> float:
        """Lower bound on H_γ."""
        lost = self.composed.lost
        key, x, p, q = self._in_order
        k = int(np.searchsorted(-key, -log_gamma, side="right"))
        if k == 0:
            return self._sure
        missed, least = self.composed.missed, float(np.min(x[:k]))
        hit = float(np.sum(p[:k])) / self._rounding - missed - lost[0]
        paid = float(np.sum(q[:k] * np.exp(log_gamma - x[:k])))
        paid += missed * math.exp(min(log_gamma - least, MOST_EXPONENT))
        paid += lost[1] * math.exp(min(log_gamma, MOST_EXPONENT))
        found = hit - paid * self._rounding * (1 + 8 * EPS)
        return self._sure + (found * (1 - 8 * EPS) if 0 < found < math.inf else 0.0)  # NaN is no bound

    def rate(self, alpha: float) -> float:
        """Lower bound on the true positive rate."""
        inside, out = self._tests
        k = int(np.searchsorted(out, alpha, side="right"))
        low = (float(out[k - 1]), float(inside[k - 1])) if k else (0.0, self._sure)
        if k == out.size:
            return low[1]
        share = (alpha - low[0]) / (float(out[k]) - low[0])
        return (low[1] + share * (float(inside[k]) - low[1])) * (1 - 16 * EPS)
