"""Two samples of scores, divided once: a fifth chooses thresholds, the rest tests what was chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from deniable._check import FloatArray
from deniable.audit.families import Promise
from deniable.audit.intervals import Ranking, advantage_upper, clopper_pearson
from deniable.audit.nested import WEIGHT_OF_ALL, Decisions, NestedTests, Threshold
from deniable.audit.thresholds import TAIL, WHOLE, best_threshold, choose_ranks

PILOT = 0.2  # share of the scores on which thresholds are chosen
_VERY_UNEQUAL = 0.1  # ratio of the smaller sample to the larger, below which pointwise limits use more of the scores
_UNEQUAL = 0.5  # the same, below which deciding about equally many of each wastes too much of the larger sample


@dataclass(frozen=True, eq=False)
class Evidence:
    """All counts that an audit uses.

    Attributes
    ----------
    full
        Ranking of all scores, for statements at a threshold that is fixed beforehand.
    tests
        Tests on four fifths of the scores, at thresholds that the others chose. Every verdict, and every lower limit
        that holds for a whole curve, comes from them.
    pairs, pairs_won
        Number of random disjoint (member, nonmember) pairs, and of those in which the member scores higher.
    most_right
        The most of the 2·pairs decisions (about equally many members and nonmembers) that any one threshold gets right.
    constant
        Whether all scores are equal.
    """

    full: Ranking
    tests: NestedTests
    pairs: int
    pairs_won: int
    most_right: int
    constant: bool = False

    @classmethod
    def of(cls, member: FloatArray, nonmember: FloatArray, rng: np.random.Generator) -> Self:
        """Divide and count two samples; ties are broken at random."""
        inside, outside = rng.permutation(member), rng.permutation(nonmember)
        a, b = (int(np.ceil(PILOT * len(side))) if len(side) > 1 else 0 for side in (inside, outside))
        pairs = min(len(inside), len(outside))
        x, y = inside[:pairs], outside[:pairs]
        won = np.sum(x > y) + np.sum((x == y) & (rng.random(pairs) < 0.5))
        full = Ranking.of(inside, outside, rng)
        return cls(
            full=full,
            tests=_tests((inside[:a], inside[a:]), (outside[:b], outside[b:]), rng),
            pairs=pairs,
            pairs_won=int(won),
            most_right=pairs + (full if full.n == full.m else Ranking.of(x, y, rng)).largest_lead(),
            constant=bool(min(member.min(), nonmember.min()) == max(member.max(), nonmember.max())),
        )

    def auc(self, error: float) -> tuple[float, float]:
        """Return limits of P(member scores higher), each with one-sided ``error``."""
        return clopper_pearson(self.pairs_won, self.pairs, error)

    def advantage_upper(self, error: float) -> float:
        """Return an upper limit of sup(TPR − FPR) = 2·accuracy − 1.

        The supremum is taken at one fixed, unknown threshold, which gets at most as many decisions right as the best
        one in the sample. A sum of two binomials is at most some value, its mean less 1 or below, with at most the
        probability of one binomial (Hoeffding 1956, Theorem 4). Pointwise limits use more of very unequal samples.
        """
        if self.pairs < _VERY_UNEQUAL * max(self.full.n, self.full.m):
            return advantage_upper(self.full, error)
        high = clopper_pearson(self.most_right, 2 * self.pairs, error)[1]
        return 2 * high - 1 if self.most_right <= 2 * self.pairs * high - 1 else 1.0

    def lower(self, family: Promise, error: float) -> float:
        """Return the lower limit of a family's parameter: exactly the values below it are refuted."""
        return self.tests.lower(family, error)


def _tests(
    member: tuple[FloatArray, FloatArray], nonmember: tuple[FloatArray, FloatArray], rng: np.random.Generator
) -> NestedTests:
    """Choose thresholds on the first part of each sample and count on the second."""
    pilot, rest = (Ranking.of(x, y, rng) for x, y in zip(member, nonmember, strict=True))
    values = np.concatenate([member[1], nonmember[1]])
    if values.min() == values.max():  # all scores are equal: breaking ties at random must not create evidence
        rest = Ranking(np.zeros(rest.n, dtype=np.int64), rest.m)
    half = min(rest.n, rest.m)
    first: Decisions | Threshold
    if half < _UNEQUAL * max(rest.n, rest.m):
        first = Threshold(rest, choose_ranks(pilot, rest.n, rest.m, (WHOLE,))[0], WEIGHT_OF_ALL)
    else:
        least = best_threshold(member[0], nonmember[0])
        right = np.sum(member[1][:half] >= least) + np.sum(nonmember[1][:half] < least)
        first = Decisions(int(right), 2 * half, WEIGHT_OF_ALL)
    share: dict[int, float] = {}
    for rank in choose_ranks(pilot, rest.n, rest.m, TAIL):
        share[rank] = share.get(rank, 0.0) + (1 - WEIGHT_OF_ALL) / len(TAIL)
    tails = (Threshold(rest, rank, weight) for rank, weight in share.items())
    return NestedTests((first, *tails), (replace(first, weight=1.0),))
