"""Judging a promise by a measurement: consistent, violated or inconclusive, and at what confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.audit.families import thresholds
from deniable.audit.intervals import Interval, Ranking, as_interval, p_value, tpr_lower
from deniable.tradeoff import Tradeoff

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
        Largest probability, under the promise, of evidence this strong at any of the ``thresholds`` looked at.
    confidence
        1 − the permitted probability of a false "violated"; includes what the promise itself leaves open.
    fpr, promised, measured
        Where the evidence is strongest: the false positive rate, the promised largest TPR there, and the measured
        one (lower limit corrected for the number of thresholds).
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
            f"(p = {self.p_value:.3g} after correction for {self.thresholds} thresholds)"
        )
        if not self.violated:
            return f"{head}; promise: {self.promise}"
        return "\n".join(
            [
                head,
                f"  promised: TPR at most {self.promised:.4g} at FPR {self.fpr:.4g} ({self.promise})",
                f"  measured: {self.measured}",
                f"  repeat:   {self.command or 'audit_scores(member, nonmember).compare(tradeoff) on the same scores'}",
            ]
        )


def judge(ranking: Ranking, tradeoff: Tradeoff, confidence: float, command: str | None) -> Verdict:
    """Test the promise TPR ≤ ``tradeoff.tpr(FPR)`` at every threshold of :func:`thresholds` (Bonferroni).

    Raises nothing: a sample that is too small gives "inconclusive".
    """
    certain = confidence - (1 - tradeoff.confidence)  # a promise that may itself fail uses up confidence
    n, m = ranking.n, ranking.m
    ks = thresholds(n)
    error = max(1 - certain, 1e-300)
    # for each threshold: what was seen, and what a perfect attack would have shown
    pairs = [
        p_value(tradeoff.tpr, k, n, [ranking.hits(k), m], m, kink=None, error=error / len(ks)) * len(ks) for k in ks
    ]
    seen, perfect = np.array(pairs).T
    worst = int(np.argmin(seen))
    p = min(1.0, float(seen[worst]))
    allowed = 1 - confidence
    outcome: Outcome = "consistent"
    if p <= allowed:
        outcome = "violated"
    elif p <= 2 * allowed or np.min(perfect) > allowed:
        outcome = "inconclusive"
    fpr = ks[worst] / (n + 1)
    measured = as_interval(
        tpr_lower(ranking, fpr, allowed / len(ks)) if n * fpr >= 1 else 0.0,
        1.0,
        ranking.hits(ks[worst]) / m,
        f"TPR at FPR {fpr:.4g}",
        confidence,
        sides="lower",
    )
    return Verdict(outcome, p, certain, len(ks), fpr, tradeoff.tpr(fpr), measured, _describe(tradeoff), command)


def _describe(tradeoff: Tradeoff) -> str:
    return f"{type(tradeoff).__name__}, {tradeoff.method}"
