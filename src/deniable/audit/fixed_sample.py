"""Tests of a sample of fixed size: one set for every claim, so that no two answers of an audit contradict each other.

The tests are fixed before the scores that they test are seen, and each is monotone: a ROC ceiling that lies above a
rejected one may survive, one that lies below a rejected one never does. A ceiling is *refuted* if some test j has
p_j ≤ w_j·error, where the weights w_j sum to 1; by the union bound a true ceiling is refuted with probability at most
``error``. It follows, whatever the scores are:

- the refuted members of a growing family (ε at any δ, μ, the advantage) are exactly those below one value, and that
  value is the family's lower limit;
- a promise below a refuted promise, at every FPR, is refuted;
- a promise that allows less than the lower limit of the advantage is refuted, and so is one that implies an ε or μ
  below its lower limit.

No score chooses the threshold that it tests. Decisions, one after the other, are made at the best threshold for the
scores before them; for tests of the tail a fifth of the scores chooses ranks, before the rest is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import betaincinv, expit, logit

from deniable._check import FloatArray, IntArray
from deniable._search import bisect_integers
from deniable._tails import binomial_above
from deniable.audit.intervals import EpsilonDelta, Promise, Ranking, Shift, advantage_upper, clopper_pearson, p_value

WEIGHT_OF_ALL = 0.5  # weight of the advantage's test: its own two-sided interval spends as much on its lower side


@dataclass(frozen=True)
class Ceiling:
    """A promise as the tests see it: its largest TPR at given rates, and its advantage; both upper bounds."""

    tpr: Callable[[FloatArray], FloatArray]
    advantage: float


@dataclass(frozen=True)
class Decisions:
    """How many decisions are right, if each is about a member or a nonmember by a fair coin, at a threshold set before.

    Each is right with probability (1 + TPR − FPR)/2 given all before it, so a promise bounds them by a binomial.
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

    def least_that_rejects(self, ceiling: Ceiling, error: float) -> float:
        """Return the smallest measured advantage that rejects the ceiling."""

        def survives(right: Any) -> bool:
            return replace(self, right=int(right)).p_value(ceiling, error) > error

        return 2 * int(bisect_integers(survives, self.made // 2, self.made + 1)[1]) / max(self.made, 1) - 1


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

    def p_value(self, ceiling: Ceiling, error: float, hits: int | None = None) -> float:
        """Return the largest probability of so many hits below the ceiling, or of other ``hits``."""
        hits = self.hits if hits is None else hits
        return float(p_value(ceiling.tpr, self.rank, self.ranking.n, hits, self.ranking.m, kink=None, error=error))

    def lower(self, family: Promise, error: float) -> float:
        """Return the largest value of ``family`` that is rejected at level ``error`` (0 if none)."""
        return self.ranking.lower_limit(family, self.rank, error)

    def least_that_rejects(self, ceiling: Ceiling, error: float) -> float:
        """Return the smallest measured TPR − FPR at the threshold that rejects the ceiling."""

        def survives(hits: Any) -> bool:
            return self.p_value(ceiling, error, int(hits)) > error

        return int(bisect_integers(survives, 0, self.ranking.m + 1)[1]) / self.ranking.m - self.fpr


@dataclass(frozen=True)
class NestedTests:
    """The tests of an audit; the weights sum to at most 1, and so do those of the tests of the advantage alone.

    ``perfect`` are those of an attack on samples of the same sizes that ranks every member above all others.
    """

    each: tuple[Decisions | Threshold, ...]
    of_advantage: tuple[Decisions | Threshold, ...]
    perfect: tuple[Decisions | Threshold, ...]

    @classmethod
    def joint(cls, shares: Sequence[tuple[float, NestedTests]]) -> NestedTests:
        """Return all tests of several audits of the same records, each of which has a share of the error."""
        return cls(*(
            tuple(replace(test, weight=test.weight * share) for share, tests in shares for test in getattr(tests, name))
            for name in ("each", "of_advantage", "perfect")
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
        """Return the advantage at which the first test, that of the advantage, rejects the ceiling every other time.

        It is infinite where no test would reject it, however good the attack.
        """
        if not self.could_reject(ceiling, error):
            return math.inf
        return min(1.0, self.each[0].least_that_rejects(ceiling, error * self.each[0].weight))

    def could_reject(self, ceiling: Ceiling, error: float) -> bool:
        """Return whether a perfect attack would have been noticed: only then does silence mean anything."""
        return any(test.p_value(ceiling, error * test.weight) <= error * test.weight for test in self.perfect)


LOOKED_AT = 40  # thresholds compared, evenly spaced in logit(FPR)
_NEAR = 8  # nonmembers at the top of the pilot from which the ROC beyond them is extrapolated
_CAUTION = 0.05  # one-sided error of the limits by which thresholds are compared

TAIL = (EpsilonDelta(0.0), EpsilonDelta(0.01))  # the threshold for pure ε, and one less extreme
WHOLE = Shift()  # the threshold for the advantage


def candidate_ranks(n: int) -> IntArray:
    """Return distinct ranks k in 1…``n``, evenly spaced in logit(k/n)."""
    end = logit(min(0.4, 1 / n))
    ranks = np.rint(n * expit(np.linspace(end, -end, LOOKED_AT)))
    return np.unique(np.clip(ranks, 1, n)).astype(np.int64)


def choose_ranks(pilot: Ranking, n: int, m: int, families: Sequence[EpsilonDelta | Shift]) -> list[int]:
    """Return, for each family, the rank among ``n`` nonmembers at which the largest lower limit is expected.

    The ROC guessed from the pilot predicts the counts of the larger part (``n`` nonmembers, ``m`` members), and these
    a lower limit of the parameter at every rank, as cautious as if the sample were half-way between the two parts in
    size. Of equally good ranks, the one with the most hits is taken: the larger the counts, the less depends on
    a single score.
    """
    ranks = candidate_ranks(n)
    if not pilot.n or not pilot.m:  # a single member has to lie very high for anybody to notice
        return [max(1, n // 100) for _ in families]
    fpr = ranks / (n + 1)
    hits = guessed_roc(pilot, fpr)
    others, members = (pilot.n + n) / 2, (pilot.m + m) / 2
    x = np.maximum(hits * members, 1e-12)
    low_tpr = np.where(hits > 0, betaincinv(x, members - x + 1, _CAUTION), 0.0)
    high_fpr = betaincinv(fpr * (others + 1), (1 - fpr) * (others + 1), 1 - _CAUTION)
    limits = (family.through(np.asarray(high_fpr, np.float64), low_tpr) for family in families)
    return [int(ranks[limit >= limit.max() * (1 - 1e-9)][-1]) for limit in limits]


def guessed_roc(pilot: Ranking, fpr: FloatArray) -> FloatArray:
    """Return a guess of the TPR at each rate: the pilot's, and below its first nonmember a continuation.

    How fast the hits fall over the first few nonmembers says how they go on to fall: in between a straight line and a
    power of the rate. The guess decides where to test, never the result of a test.
    """
    n, m = pilot.n, pilot.m
    known = np.append(np.arange(1, n + 1) / (n + 1), 1.0)
    found = np.interp(fpr, known, np.append(pilot.above, m) / m)
    beyond = fpr < known[0]
    share = fpr[beyond] / known[0]
    near = min(n, _NEAR)
    first, last = float(pilot.above[0]), float(pilot.above[near - 1])
    power = np.clip(np.log((last + 1) / (first + 1)) / np.log(near), 0.0, 1.0) if near > 1 else 1.0
    line = np.maximum(first - (last - first) / max(near - 1, 1) * (1 - share), first * share)
    found[beyond] = np.sqrt(first * share**power * line) / m
    return np.asarray(found, dtype=np.float64)


def best_threshold(member: FloatArray, nonmember: FloatArray) -> float:
    """Return the score from which to accuse, for the largest TPR − FPR in the sample; ties go to the most hits.

    It lies half-way between the smallest accused and the largest other score.
    """
    if not len(member) or not len(nonmember):
        return 0.0
    values = np.unique(np.concatenate([member, nonmember]))
    missed = np.searchsorted(np.sort(member), values) / len(member)
    cleared = np.searchsorted(np.sort(nonmember), values) / len(nonmember)
    best = int(np.argmax(cleared - missed))
    between = values[max(best - 1, 0)] / 2 + values[best] / 2
    return float(between if np.isfinite(between) else values[best])


PILOT = 0.2  # share of the scores, canaries or trials on which thresholds are chosen: the others decide
_VERY_UNEQUAL = 0.1  # ratio of the smaller sample to the larger, below which pointwise limits use more of the scores
_GROWTH = 1.3  # the threshold of decisions is chosen anew when the scores before it have grown by this factor
_UNEQUAL = 0.5  # the same, below which deciding about equally many of each wastes too much of the larger sample


@dataclass(frozen=True, eq=False)
class Evidence:
    """All counts that an audit uses.

    Attributes
    ----------
    full
        Ranking of all scores, for statements at a threshold that is fixed beforehand.
    tests
        Tests at thresholds that other scores chose. Every verdict, and every lower limit
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


def _decisions(member: FloatArray, nonmember: FloatArray, rng: np.random.Generator) -> tuple[int, int]:
    """Return how many decisions are right, and how many are made: each at the best threshold for the scores before it.

    A fair coin says whether the next score is a member's; what is left when one side is used up is decided by coins.
    """
    half = min(len(member), len(nonmember))
    start = round(math.sqrt(half))  # so few choose the first threshold: those that follow learn from all before them
    made = max(0, 2 * (half - start) - round(math.sqrt(half - start)))
    coins = rng.random(made) < 0.5
    used = start + np.cumsum([coins, ~coins], axis=1)
    there = int(np.sum(used.max(axis=0, initial=0) <= half))
    right, step, before = int(rng.binomial(made - there, 0.5)), 0, np.array((start, start))
    while step < there:
        step = min(there, max(step + 1, round((2 * start + step) * _GROWTH) - 2 * start))
        least, after = best_threshold(member[: before[0]], nonmember[: before[1]]), used[:, step - 1]
        right += int(np.sum(member[before[0] : after[0]] >= least) + np.sum(nonmember[before[1] : after[1]] < least))
        before = after
    return right, made


def _tests(
    member: tuple[FloatArray, FloatArray], nonmember: tuple[FloatArray, FloatArray], rng: np.random.Generator
) -> NestedTests:
    """Count decisions on all scores, and hits in the second part of each sample at thresholds that the first chose."""
    pilot, rest = (Ranking.of(x, y, rng) for x, y in zip(member, nonmember, strict=True))
    values = np.concatenate([member[1], nonmember[1]])
    if values.min() == values.max():  # all scores are equal: breaking ties at random must not create evidence
        rest = Ranking(np.zeros(rest.n, dtype=np.int64), rest.m)
    whole: tuple[Decisions, Decisions] | None = None
    if min(rest.n, rest.m) >= _UNEQUAL * max(rest.n, rest.m):
        right, made = _decisions(np.concatenate(member), np.concatenate(nonmember), rng)
        whole = Decisions(right if rest.above.any() else 0, made, WEIGHT_OF_ALL), Decisions(made, made, WEIGHT_OF_ALL)
    each = _at_chosen_ranks(pilot, rest, whole and whole[0])
    perfect = _at_chosen_ranks(pilot.perfect(), rest.perfect(), whole and whole[1])
    return NestedTests(each, (replace(each[0], weight=1.0),), perfect)


def _at_chosen_ranks(pilot: Ranking, rest: Ranking, whole: Decisions | None) -> tuple[Decisions | Threshold, ...]:
    """Return the test of the advantage, by decisions or at a rank, and those of the tail; the pilot chooses ranks."""
    n, m = rest.n, rest.m
    share: dict[int, float] = {}
    for rank in choose_ranks(pilot, n, m, TAIL):
        share[rank] = share.get(rank, 0.0) + (1 - WEIGHT_OF_ALL) / len(TAIL)
    first = whole or Threshold(rest, choose_ranks(pilot, n, m, (WHOLE,))[0], WEIGHT_OF_ALL)
    return first, *(Threshold(rest, rank, weight) for rank, weight in share.items())
