"""Judging a promise by a measurement: consistent, violated or inconclusive, and at what confidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable._check import FloatArray
from deniable.audit.evidence import LOOKED_AT, Evidence
from deniable.audit.intervals import Interval, as_interval, p_value, tpr_lower
from deniable.curves import Tradeoff

Outcome = Literal["consistent", "violated", "inconclusive"]


@dataclass(frozen=True)
class Verdict:
    """Whether a measured attack contradicts a promised bound.

    Attributes
    ----------
    outcome
        "violated": an attack that strong has probability at most 1 − ``confidence`` under the promise.
        "consistent": nothing speaks against the promise (this does not prove it).
        "inconclusive": the sample is too small to contradict the promise even if the attack were perfect, or its
        p-value lies between one and two times 1 − ``confidence``; collect more scores.
    p_value
        Largest probability, under the promise, of evidence this strong.
    confidence
        1 − the permitted probability of a false "violated"; includes what the promise itself leaves open.
    thresholds
        Number of thresholds looked at, on a fifth of the scores; the most telling one was tested on the others.
    fpr, promised, measured
        Where the promise was tested: the false positive rate, the promised largest TPR there, and the measured one,
        whose lower limit of a violation is the promise plus the largest excess that the scores contradict.
    """

    outcome: Outcome
    p_value: float
    confidence: float
    thresholds: int
    fpr: float
    promised: float
    measured: Interval
    promise: str
    command: str | None = None

    @property
    def violated(self) -> bool:
        """True if the promise is contradicted."""
        return self.outcome == "violated"

    def __str__(self) -> str:
        head = (
            f"{self.outcome} at {100 * self.confidence:g} % confidence "
            f"(p = {self.p_value:.2g}; threshold chosen from {self.thresholds} on other scores)"
        )
        if not self.violated:
            return f"{head}; promise: {self.promise}"
        return "\n".join(
            [
                head,
                f"  promised: TPR at most {self.promised:.4g} at FPR {100 * self.fpr:.4g} % ({self.promise})",
                f"  measured: {self.measured}",
                f"  repeat:   {self.command or 'audit_scores(member, nonmember).compare(tradeoff) on the same scores'}",
            ]
        )


def judge(evidence: Evidence, tradeoff: Tradeoff, confidence: float, command: str | None) -> Verdict:
    """Test the promise TPR ≤ ``tradeoff.tpr(FPR)`` on the larger part of the scores.

    Many thresholds are looked at, but on the smaller part: the one tested is chosen without seeing the scores that
    test it, so its p-value needs no correction.
    """
    certain = confidence - (1 - tradeoff.confidence)  # a promise that may itself fail uses up confidence
    rest, allowed = evidence.rest, 1 - confidence
    k = evidence.most_telling(tradeoff.tpr)
    promised: dict[int, FloatArray] = {}  # the promise at the nodes of each rank: composed mechanisms take a while

    def p_value_above(excess: float, hits: int = rest.hits(k), at: int = k) -> float:
        """P-value of ``hits`` at the threshold of rank ``at`` if attacks may exceed the promise by ``excess``."""

        def ceiling(fpr: FloatArray) -> FloatArray:
            if at not in promised:
                promised[at] = tradeoff.tpr(fpr)
            return np.minimum(1.0, promised[at] + excess)

        return float(p_value(ceiling, at, rest.n, [hits], rest.m, kink=None, error=allowed)[0])

    seen = p_value_above(0.0)
    # a perfect attack, at some threshold, would have been noticed: only then does silence mean anything
    could_speak = any(p_value_above(0.0, rest.m, int(at)) <= allowed for at in evidence.ranks(rest)[::4])
    outcome: Outcome = "consistent"
    if seen <= allowed:
        outcome = "violated"
    elif seen <= 2 * allowed or not could_speak:
        outcome = "inconclusive"
    fpr = k / (rest.n + 1)
    limit = tradeoff.tpr(fpr)
    low = limit + _excess(p_value_above, allowed) if outcome == "violated" else tpr_lower(rest, fpr, allowed)
    name = f"TPR at FPR {100 * fpr:.4g} %"
    measured = as_interval(min(low, 1.0), 1.0, rest.hits(k) / rest.m, name, confidence, sides="lower")
    return Verdict(outcome, seen, certain, LOOKED_AT, fpr, limit, measured, _describe(tradeoff), command)


def _excess(p_value_above: Callable[[float], float], allowed: float) -> float:
    """Return the largest excess over the promise that is still contradicted."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value_above(middle) <= allowed else (low, middle)
    return low


def _describe(tradeoff: Tradeoff) -> str:
    return f"{type(tradeoff).__name__}, {tradeoff.method}"
