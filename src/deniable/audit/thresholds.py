"""Where to test: thresholds chosen on a pilot part of the scores, before the rest is looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv, expit, logit

from deniable._check import FloatArray, IntArray
from deniable.audit.families import EpsilonDelta, Shift
from deniable.audit.intervals import Ranking

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
    if not pilot.n or not pilot.m:
        return [n // 2 + 1 for _ in families]
    fpr = ranks / (n + 1)
    hits = guessed_roc(pilot, fpr)
    others, members = (pilot.n + n) / 2, (pilot.m + m) / 2
    x = np.maximum(hits * members, 1e-12)
    low_tpr = np.where(hits > 0, betaincinv(x, members - x + 1, _CAUTION), 0.0)
    high_fpr = betaincinv(fpr * (others + 1), (1 - fpr) * (others + 1), 1 - _CAUTION)
    return [
        int(ranks[_last_of_the_best(family.through(np.asarray(high_fpr, np.float64), low_tpr))]) for family in families
    ]


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
    """Return the smallest score to accuse, for the largest TPR − FPR in the sample; ties go to the most hits."""
    if not len(member) or not len(nonmember):
        return 0.0
    values = np.unique(np.concatenate([member, nonmember]))
    missed = np.searchsorted(np.sort(member), values) / len(member)
    cleared = np.searchsorted(np.sort(nonmember), values) / len(nonmember)
    return float(values[np.argmax(cleared - missed)])


def _last_of_the_best(values: FloatArray) -> int:
    return int(np.flatnonzero(values >= values.max() * (1 - 1e-9))[-1])
