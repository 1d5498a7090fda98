"""One set of tests for every claim, so that no two answers of an audit can contradict each other.

The tests are fixed before the scores that they test are seen, and each is monotone: a ROC ceiling that lies above a
rejected one may survive, one that lies below a rejected one never does. A ceiling is *refuted* if some test j has
p_j ≤ w_j·error, where the weights w_j sum to 1; by the union bound a true ceiling is refuted with probability at most
``error``. It follows, whatever the scores are:

- the refuted members of a growing family (ε at any δ, μ, the advantage) are exactly those below one value, and that
  value is the family's lower limit;
- a promise below a refuted promise, at every FPR, is refuted;
- a promise that allows less than the lower limit of the advantage is refuted, and so is one that implies an ε or μ
  below its lower limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable._check import FloatArray
from deniable._search import bisect_integers
from deniable._tails import binomial_above
from deniable.audit.families import Promise, Shift
from deniable.audit.intervals import Ranking, clopper_pearson, p_value
from deniable.audit.thresholds import candidate_ranks

WEIGHT_OF_ALL = 0.5  # weight of the advantage's test: its own two-sided interval spends as much on its lower side


@dataclass(frozen=True)
class Ceiling:
    """A promise as the tests see it: its largest TPR at given rates, and its advantage; both upper bounds."""

    tpr: Callable[[FloatArray], FloatArray]
    advantage: float


@dataclass(frozen=True)
class Decisions:
    """How many of equally many members and nonmembers one threshold, fixed beforehand, classifies correctly.

    The right decisions are a sum of two binomials with mean (1 + TPR − FPR)/2 a decision. Above its mean such a sum
    exceeds a value with at most the probability of one binomial with the average rate (Hoeffding 1956, Theorem 4).
    """

    right: int
    made: int
    weight: float

    def p_value(self, ceiling: Ceiling, error: float) -> float:
        """Return the largest probability of so many correct decisions if the advantage is at most the ceiling's."""
        rate = min(1.0, (1 + ceiling.advantage) / 2)
        if self.right == 0 or self.right - 1 < self.made * rate:
            return 1.0
        return float(binomial_above(self.right - 1, self.made, rate))

    def advantage(self, error: float) -> float:
        """Return the largest advantage that is rejected at level ``error`` (0 if none)."""
        if self.made == 0:
            return 0.0
        return max(0.0, 2 * clopper_pearson(self.right, self.made, error)[0] - 1)

    def lower(self, family: Promise, error: float) -> float:
        """Return the largest value of ``family`` that is rejected at level ``error`` (0 if none)."""
        return max(0.0, family.explaining(self.advantage(error)))

    def needed(self, ceiling: Ceiling, error: float) -> float:
        """Return the smallest measured advantage that rejects the ceiling."""

        def survives(right: Any) -> bool:
            return replace(self, right=int(right)).p_value(ceiling, error) > error

        return 2 * int(bisect_integers(survives, self.made // 2, self.made + 1)[1]) / max(self.made, 1) - 1

    def could_reject(self, ceiling: Ceiling, error: float) -> bool:
        """Return whether deciding everything correctly would reject the ceiling."""
        return Decisions(self.made, self.made, 1.0).p_value(ceiling, error) <= error


@dataclass(frozen=True)
class Threshold:
    """Hits above the nonmember of a rank that was fixed beforehand (:mod:`deniable.audit.intervals`)."""

    ranking: Ranking
    rank: int
    weight: float

    @property
    def fpr(self) -> float:
        """The expected false positive rate."""
        return self.rank / (self.ranking.n + 1)

    @property
    def hits(self) -> int:
        """Number of members above the threshold."""
        return self.ranking.hits(self.rank)

    def p_value(self, ceiling: Ceiling, error: float) -> float:
        """Return the largest probability of so many hits below the ceiling."""
        n, m = self.ranking.n, self.ranking.m
        return float(p_value(ceiling.tpr, self.rank, n, self.hits, m, kink=None, error=error))

    def lower(self, family: Promise, error: float) -> float:
        """Return the largest value of ``family`` that is rejected at level ``error`` (0 if none)."""
        return self.ranking.lower_limit(family, self.rank, error)

    def needed(self, ceiling: Ceiling, error: float) -> float:
        """Return the smallest measured TPR − FPR at the threshold that rejects the ceiling."""
        n, m = self.ranking.n, self.ranking.m

        def survives(hits: Any) -> bool:
            return float(p_value(ceiling.tpr, self.rank, n, int(hits), m, kink=None, error=error)) > error

        return int(bisect_integers(survives, 0, m + 1)[1]) / m - self.fpr

    def could_reject(self, ceiling: Ceiling, error: float) -> bool:
        """Return whether hitting every member, at some threshold, would reject the ceiling."""
        n, m = self.ranking.n, self.ranking.m
        return any(
            float(p_value(ceiling.tpr, int(k), n, m, m, kink=None, error=error)) <= error
            for k in candidate_ranks(n)[::4]
        )


@dataclass(frozen=True)
class NestedTests:
    """The tests of an audit; the weights sum to at most 1, and so do those of the tests of the advantage alone."""

    each: tuple[Decisions | Threshold, ...]
    of_advantage: tuple[Decisions | Threshold, ...]

    @classmethod
    def joined(cls, shares: Sequence[tuple[float, NestedTests]]) -> NestedTests:
        """Return all tests of several audits of the same records, each of which has a share of the error."""
        return cls(*(
            tuple(replace(test, weight=test.weight * share) for share, tests in shares for test in getattr(tests, name))
            for name in ("each", "of_advantage")
        ))  # fmt: skip

    def advantage(self, error: float) -> float:
        """Return a lower limit of the advantage, from the tests that are about it."""
        return max(test.lower(Shift(), error * test.weight) for test in self.of_advantage)

    def p_value(self, ceiling: Ceiling, error: float) -> tuple[float, Decisions | Threshold]:
        """Return the p-value of the promise that no attack exceeds ``ceiling``, and the test that it comes from.

        ``error`` is the size at which it will be judged.
        """
        found = [test.p_value(ceiling, error * test.weight) / test.weight for test in self.each]
        best = int(np.argmin(found))
        return min(1.0, found[best]), self.each[best]

    def lower(self, family: Promise, error: float) -> float:
        """Return the value of ``family`` below which, and only below which, all of it is refuted."""
        return max(test.lower(family, error * test.weight) for test in self.each)

    def could_find(self, ceiling: Ceiling, error: float) -> float:
        """Return the advantage at which the first test, that of the advantage, rejects the ceiling every other time."""
        return min(1.0, self.each[0].needed(ceiling, error * self.each[0].weight))

    def could_reject(self, ceiling: Ceiling, error: float) -> bool:
        """Return whether a perfect attack would have been noticed: only then does silence mean anything."""
        return any(test.could_reject(ceiling, error * test.weight) for test in self.each)
