"""Judging a promise by a measurement: consistent, violated or inconclusive, with what confidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from deniable import testing
from deniable._check import FloatArray, InputError
from deniable._notebook import USUAL_FPRS, Textual
from deniable._search import false_position
from deniable._shown import shown
from deniable.accounting import tradeoff
from deniable.audit.fixed_sample import Ceiling, Decisions, Evidence, Threshold
from deniable.audit.intervals import Interval, above, as_interval, tpr_lower
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism


def promised_curve(promise: Mechanism | Tradeoff, name: str = "tradeoff") -> Tradeoff:
    """Return a trade-off as it is, and a mechanism's as :func:`deniable.tradeoff` computes it.

    The curve is the claim against which an attack is tested; no score and no measurement depends on it.
    """
    if isinstance(promise, Mechanism):
        return tradeoff(promise)
    if not isinstance(promise, Tradeoff):
        raise InputError(
            f"{name} must be a Tradeoff such as dn.tradeoff(dn.PureDP(1)), or a mechanism such as dn.PureDP(1), "
            f"got {promise!r}"
        )
    return promise


def in_words(promise: Mechanism | Tradeoff) -> str:
    """Return what was promised: a mechanism as it is written, or a curve's kind and method."""
    words = repr(promise) if isinstance(promise, Mechanism) else f"{type(promise).__name__}, {promise.method}"
    return "; ".join((words, *[testing.INSECURE] * promised_curve(promise).insecure))


Outcome = Literal["consistent", "violated", "inconclusive"]
_CELLS = np.arange(1, 129) / 128  # at their right ends a ROC is above its area


@dataclass(frozen=True)
class Verdict(Textual):
    """Whether a measured attack contradicts a promised bound.

    Attributes
    ----------
    outcome
        "violated": an attack that strong has probability at most 1 − ``confidence`` under the promise.
        "consistent": nothing speaks against the promise (this does not prove it).
        "inconclusive": the sample is too small to contradict the promise even if the attack were perfect, or its
        p-value lies between one and two times 1 − ``confidence``, or the interval of the AUC, or of the TPR at FPR
        0.1, 1 or 10 %, alone lies above the promise, or the audit warns; collect more scores.
    p_value
        Largest probability, under the promise, of evidence this strong; the number of tests is accounted for.
    confidence
        1 − the permitted probability of a false "violated"; includes the promise's own failure probability.
    tests
        Number of tests, at thresholds that other scores chose. ``ScoreAudit.epsilon``, ``mu`` and the lower limit of
        ``advantage`` come from the same tests: a promise is violated exactly if it is below them (ε, μ), and certainly
        if it allows less than that advantage.
    fpr, promised, measured
        What the deciding test was about: the promised largest TPR at the false positive rate ``fpr`` and the measured
        one, or (``fpr`` None) the promised and measured advantage. The lower limit of a violated TPR is the promise
        plus the largest excess that the scores contradict.

    Examples
    --------
    See ``audit_scores``.
    """

    outcome: Outcome
    p_value: float
    confidence: float
    tests: int
    fpr: float | None
    promised: float
    measured: Interval
    promise: str
    command: str | None = None

    @property
    def violated(self) -> bool:
        """True if the promise is contradicted."""
        return self.outcome == "violated"

    @property
    def of_one_run(self) -> bool:
        """True if the guesses about the canaries of one run were judged."""
        return self.measured.method.startswith("one run")

    def _text(self) -> str:
        again = "audit_one_run(scores, included)" if self.of_one_run else "audit_scores(member, nonmember)"
        chosen = "numbers of guesses fixed beforehand" if self.of_one_run else "thresholds chosen on other scores"
        head = (
            f"{self.outcome} at {100 * self.confidence:g} % confidence "
            f"(p = {self.p_value:.2g}; {self.tests} test{'s' * (self.tests != 1)}, {chosen})"
        )
        if not self.violated:
            return f"{head}; promise: {self.promise}"
        return "\n".join(
            [
                head,
                f"  promised: {self.measured.of}: at most {shown(self.promised, 'number', 'upper')} ({self.promise})",
                f"  measured: {self.measured}",
                f"  repeat:   {self.command or f'{again}.compare(tradeoff) on the same scores'}",
            ]
        )


def judge(evidence: Evidence, promise: Tradeoff | Mechanism, confidence: float) -> Verdict:
    """Test the promise that no attack exceeds ``promise`` with the tests of :mod:`deniable.audit.fixed_sample`.

    They are also the tests behind ε, μ and the lower limit of the advantage: verdict and limits cannot disagree.
    """
    tradeoff = promised_curve(promise)
    certain = confidence - (1 - tradeoff.confidence)  # a promise that may itself fail uses up confidence
    allowed = 1 - confidence
    ceiling = Ceiling(_remember(tradeoff.tpr), tradeoff.advantage())
    seen, test = evidence.tests.p_value(ceiling, allowed)
    outcome: Outcome = "consistent"
    if seen <= allowed:
        outcome = "violated"
    elif (
        seen <= 2 * allowed
        or not evidence.tests.could_reject(ceiling, allowed)
        or _an_interval_contradicts(evidence, ceiling, allowed)
    ):
        outcome = "inconclusive"
    if isinstance(test, Decisions):
        fpr, promised, low = None, ceiling.advantage, test.advantage(allowed * test.weight)
        name, estimate = "advantage", 2 * test.right / max(test.made, 1) - 1
    else:
        fpr, estimate = test.fpr, test.hits / test.ranking.m
        promised, name = tradeoff.tpr(test.fpr), f"TPR at FPR {100 * test.fpr:.4g} %"
        low = promised + _excess(test, ceiling, allowed * test.weight)
        if outcome != "violated":
            low = min(promised, tpr_lower(test.ranking, test.fpr, allowed))
    measured = as_interval(min(low, 1.0), 1.0, estimate, name, confidence, sides="lower")
    tests = len(evidence.tests.each)
    return Verdict(outcome, seen, certain, tests, fpr, promised, measured, in_words(promise))


def _an_interval_contradicts(evidence: Evidence, ceiling: Ceiling, allowed: float) -> bool:
    """Return whether a two-sided interval of the AUC, or of the TPR at a usual rate, alone lies above the promise."""
    full, auc = evidence.full, evidence.auc(allowed / 2)[0]
    rates = np.array([fpr for fpr in USUAL_FPRS if full.n * fpr >= 1])
    if auc > (1 + ceiling.advantage) / 2 and auc > np.mean(ceiling.tpr(_CELLS)):  # the former is the less, and quicker
        return True
    return any(tpr_lower(full, fpr, allowed / 2) > most for fpr, most in zip(rates, ceiling.tpr(rates), strict=True))


def _excess(test: Threshold, ceiling: Ceiling, error: float) -> float:
    """Return the largest excess over the promise that is still contradicted."""

    def too_likely(excess: float) -> float:
        raised = Ceiling(lambda fpr: np.minimum(1.0, ceiling.tpr(fpr) + excess), 1.0)
        return above(test.p_value(raised, error), error)

    return false_position(too_likely, 0.0, 1.0, relative=1e-7)[0]


def _remember(tpr: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
    """Ask a curve only once for each set of rates: composed mechanisms are slow."""
    known = cache(lambda rates: tpr(np.frombuffer(rates)))
    return lambda fpr: known(fpr.tobytes())
