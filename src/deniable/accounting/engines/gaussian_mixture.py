"""A Gaussian pair beside a law on finitely many outcomes: an exact sum over the outcomes.

With outcome b of log-ratio l_b and masses P_b, Q_b beside N(μ, 1) against N(0, 1),
H_γ = Σ_b P_b·H^G(log γ − l_b), H^G the Gaussian hockey stick; outcomes that only P produces add their mass, those that
only Q produces nothing. The best test accepts in outcome b where the Gaussian loss exceeds λ − l_b: its false positive
rates a_b give TPR = Σ_b P_b·TPR^G(a_b). From below any a_b with Σ Q_b·a_b ≤ FPR will do; from above every line
γ·FPR + H_γ holds, and that at γ = e^λ is the best. λ is only ever searched in floating point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._search import bisect
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.curves import AnyDirection, Direction, GaussianTradeoff, Side, Tradeoff

_MOST = 1 << 13  # outcomes kept: more are split, or merged, onto a lattice
_ENTRIES = 1 << 20  # evaluated at a time
_BISECTIONS = 80  # of λ: only the width depends on how near it comes


@dataclass(frozen=True, eq=False)
class GaussianMixtureTradeoff(Tradeoff):
    """Trade-off of a finite law beside a Gaussian pair; ``above`` answers from above and ``below`` from below."""

    above: FiniteLaw
    below: FiniteLaw
    mu: float
    method: str = field(default="finite law beside a Gaussian, summed outcome by outcome", kw_only=True)

    @classmethod
    def of(cls, finite: FiniteTradeoff, mu: float) -> GaussianMixtureTradeoff:
        """Put a Gaussian pair beside a finite law."""
        above, below = finite.above.coarse(_MOST, "upper"), finite.below.coarse(_MOST, "lower")
        return cls(above, below, mu)

    @cached_property
    def _swapped(self) -> GaussianMixtureTradeoff:
        return GaussianMixtureTradeoff(self.above.swapped(), self.below.swapped(), self.mu)

    @cached_property
    def _gaussian(self) -> GaussianTradeoff:
        return GaussianTradeoff(self.mu)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if direction == "remove":
            return self._swapped._hockey_stick(log_gamma, "add", side)
        law = self.above if side == "upper" else self.below
        sign = 1 if side == "upper" else -1
        found = np.empty(log_gamma.shape)
        rows = max(1, _ENTRIES // max(law.p.size, 1))
        for k in range(0, log_gamma.size, rows):
            part = log_gamma[k : k + rows]
            level = np.subtract.outer(part, law.log_ratio)
            # log-ratios, and the difference, are rounded: H falls with γ
            level -= sign * (2 * law.shift + 4 * EPS * (np.abs(part)[:, None] + np.abs(law.log_ratio)))
            sticks = self._gaussian._hockey_sticks(level.ravel(), "add", side).reshape(level.shape)
            found[k : k + rows] = np.sum(sticks * law.p, axis=1)
        error = law.relative_error + 64 * EPS
        extra = law.only[0] * (1 + sign * 8 * EPS) + (law.lost[0] if side == "upper" else 0.0)
        found = found * (1 + sign * error) + extra
        return np.nextafter(found, np.inf) if side == "upper" else found  # products may have underflowed

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if direction == "remove":
            return self._swapped._roc(fpr, "add", side)
        inside = (fpr > 0) & (fpr < 1)
        bound = np.where(fpr < 1, 0.0 if side == "lower" else 1.0, 1.0)
        if side == "upper":
            bound[fpr == 0] = self.above.only[0] * (1 + 8 * EPS) + self.above.lost[0]
            alpha = fpr[inside]
            level = self._thresholds(self.above, alpha)
            with np.errstate(over="ignore", under="ignore"):
                line = np.exp(level + np.log(alpha)) * (1 + 8 * EPS * (1 + np.abs(level) + np.abs(np.log(alpha))))
            bound[inside] = np.minimum(line + self._hockey_stick(level, "add", "upper"), 1.0)
            return bound
        bound[fpr == 0] = self.below.only[0] * (1 - 8 * EPS)
        for k in np.flatnonzero(inside):
            bound[k] = self._reached(float(fpr[k]))
        return bound

    def _reached(self, alpha: float) -> float:
        """TPR of a test with a false positive rate of at most ``alpha``."""
        law = self.below
        rates = self._rates_of(law, self._thresholds(law, np.array([alpha])))[0]
        total = float(np.sum(rates * law.q)) * (1 + law.relative_error + 64 * EPS)
        rates = np.minimum(rates * min(1.0, alpha / max(total, 1e-300)) * (1 - 4 * EPS), 1.0)
        hits = self._gaussian._rates(rates, "add", "lower")
        return float(np.sum(hits * law.p)) * (1 - law.relative_error - 64 * EPS) + law.only[0] * (1 - 8 * EPS)

    def _rates_of(self, law: FiniteLaw, level: FloatArray) -> FloatArray:
        """About the false positive rate of the Gaussian test in every outcome: loss above λ − l_b."""
        found: FloatArray = ndtr(-np.subtract.outer(level, law.log_ratio) / self.mu - self.mu / 2)
        return found

    def _thresholds(self, law: FiniteLaw, alpha: FloatArray) -> FloatArray:
        """About the λ at which the best test has each false positive rate."""
        reach = self.mu * (40 + self.mu)
        low = np.full(alpha.shape, float(law.log_ratio.min(initial=0.0)) - reach)
        high = np.full(alpha.shape, float(law.log_ratio.max(initial=0.0)) + reach)
        rows = max(1, _ENTRIES // max(law.p.size, 1))
        for k in range(0, alpha.size, rows):
            part = slice(k, k + rows)
            high[part], _ = bisect(
                lambda x, part=part: self._rates_of(law, x) @ law.q <= alpha[part],  # type: ignore[misc]
                high[part], low[part], halvings=_BISECTIONS,
            )  # fmt: skip
        return high

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Divergences of independent pairs add up."""
        finite = FiniteTradeoff(self.above, self.below, method=self.method)
        return (finite._renyi(order, direction) + self._gaussian._renyi(order, direction)) * (1 + 4 * EPS)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return float("inf")

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        near, step = self._gaussian._epsilon_near(delta, direction)
        law = self.above
        spread = float(np.max(np.abs(law.log_ratio), initial=0.0))
        return near + spread / 2, step + spread / 2
