"""Two samples of scores, divided once and for all: a fifth to choose thresholds, the rest to test what was chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betaincinv, expit, logit

from deniable._check import FloatArray
from deniable.audit.families import Family
from deniable.audit.intervals import IntArray, Ranking, advantage_upper, clopper_pearson, p_value

PILOT = 0.2  # share of the scores on which thresholds are chosen
LOOKED_AT = 40  # thresholds compared there


@dataclass(frozen=True, eq=False)
class Evidence:
    """All counts that an audit uses.

    Attributes
    ----------
    full
        Ranking of all scores, for statements at a threshold that is fixed beforehand.
    pilot, rest
        Rankings of a random fifth and of the other scores. Only ``rest`` enters a guarantee.
    pairs, pairs_won
        Random disjoint (member, nonmember) pairs of all scores, and those in which the member scores higher.
    most_right
        Of the 2·pairs decisions about as many members as nonmembers, the most that any threshold gets right.
    decisions, decisions_right
        Equally many members and nonmembers of ``rest``, and how many of them the pilot's best threshold gets right.
    """

    full: Ranking
    pilot: Ranking
    rest: Ranking
    pairs: int
    pairs_won: int
    most_right: int
    decisions: int
    decisions_right: int

    @classmethod
    def of(cls, member: FloatArray, nonmember: FloatArray, rng: np.random.Generator) -> Self:
        """Divide and count two samples; ties are decided by coins."""
        inside, outside = rng.permutation(member), rng.permutation(nonmember)
        a, b = (int(np.ceil(PILOT * len(side))) if len(side) > 1 else 0 for side in (inside, outside))
        pairs = min(len(inside), len(outside))
        x, y = inside[:pairs], outside[:pairs]
        won = np.sum(x > y) + np.sum((x == y) & (rng.random(pairs) < 0.5))
        half = min(len(inside) - a, len(outside) - b)
        threshold = _best_threshold(inside[:a], outside[:b])
        right = np.sum(inside[a : a + half] >= threshold) + np.sum(outside[b : b + half] < threshold)
        full = Ranking.of(inside, outside, rng)
        pilot, rest = Ranking.of(inside[:a], outside[:b], rng), Ranking.of(inside[a:], outside[b:], rng)
        return cls(
            full=full,
            pilot=pilot,
            rest=rest,
            pairs=pairs,
            pairs_won=int(won),
            most_right=pairs + (full if full.n == full.m else Ranking.of(x, y, rng)).largest_lead(),
            decisions=2 * half,
            decisions_right=int(right),
        )

    def auc(self, error: float) -> tuple[float, float]:
        """Return limits of P(member scores higher), each with one-sided ``error``."""
        return clopper_pearson(self.pairs_won, self.pairs, error)

    def advantage_lower(self, error: float) -> float:
        """Return a lower limit of sup(TPR − FPR) = 2·accuracy − 1 of equally many members and nonmembers.

        The right decisions are a sum of two binomials; above its mean such a sum exceeds a value with at most the
        probability of one binomial with the average rate (Hoeffding 1956, Theorem 4), so Clopper–Pearson applies.
        """
        return max(0.0, 2 * clopper_pearson(self.decisions_right, self.decisions, error)[0] - 1)

    def advantage_upper(self, error: float) -> float:
        """Return an upper limit of sup(TPR − FPR) = 2·accuracy − 1.

        The supremum sits at one fixed, unknown threshold, which gets at most as many decisions right as the best one
        in the sample. Of a sum of two binomials, values of at most its mean less 1 have at most the probability that
        one binomial gives them (Hoeffding 1956, Theorem 4). Of very unequal samples, pointwise limits use more.
        """
        if self.pairs < 0.1 * max(self.full.n, self.full.m):
            return advantage_upper(self.full, error)
        high = clopper_pearson(self.most_right, 2 * self.pairs, error)[1]
        return 2 * high - 1 if self.most_right <= 2 * self.pairs * high - 1 else 1.0

    def lower(self, family: Family, error: float) -> float:
        """Return a lower limit of a family's parameter, at the threshold that looks best on the pilot."""
        u, p = self._pilot_limits()
        low, high = np.zeros(len(u)), np.full(len(u), family.largest)
        for _ in range(40):
            middle = (low + high) / 2
            below = family.ceiling(u, middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return self.rest.lower_limit(family, int(self.ranks(self.rest)[np.argmax(low)]), error)

    def most_telling(self, ceiling: Callable[[FloatArray], FloatArray]) -> int:
        """Return the rank in ``rest`` of the threshold that speaks loudest on the pilot against a ceiling."""
        n, m = self.pilot.n, self.pilot.m
        if not n or not m:
            return self.rest.n // 2 + 1
        end = logit(min(0.4, 1e-3 / n))
        grid = expit(np.linspace(end, -end, 600))
        values = ceiling(grid)
        found = [
            p_value(lambda u: np.interp(u, grid, values), int(k), n, self.pilot.hits(int(k)), m, kink=None, error=0.1)
            for k in self.ranks(self.pilot)
        ]
        return int(self.ranks(self.rest)[np.argmin(found)])

    def ranks(self, part: Ranking) -> IntArray:
        """Return the ranks of the thresholds looked at, evenly spaced in logit(FPR)."""
        end = logit(min(0.4, 1 / self.rest.n))
        fpr = expit(np.linspace(end, -end, LOOKED_AT))
        return np.clip(np.rint(part.n * fpr), 1, max(part.n, 1)).astype(np.int64)

    def _pilot_limits(self) -> tuple[FloatArray, FloatArray]:
        """Cautious rates of each threshold on the pilot: 98 % limits, FPR from above and TPR from below."""
        ranks, n, m = self.ranks(self.pilot), self.pilot.n, self.pilot.m
        if not n or not m:
            return np.full(len(ranks), 0.5), np.full(len(ranks), 0.5)
        hits = self.pilot.above[ranks - 1]
        tpr = np.where(hits > 0, betaincinv(np.maximum(hits, 1), m - hits + 1, 0.02), 0.0)
        return np.asarray(betaincinv(ranks, n - ranks + 1, 0.98)), tpr


def _best_threshold(member: FloatArray, nonmember: FloatArray) -> float:
    """Return the smallest score to accuse, for the largest TPR − FPR in the sample."""
    if not len(member) or not len(nonmember):
        return 0.0
    values = np.unique(np.concatenate([member, nonmember]))
    missed = np.searchsorted(np.sort(member), values) / len(member)
    cleared = np.searchsorted(np.sort(nonmember), values) / len(nonmember)
    return float(values[np.argmax(cleared - missed)])
