"""An audit that may be stopped at any time: a bettor against the promise, whose gains are the evidence.

A test for a fixed sample size holds for that size only: whoever looks at the verdict after every hundred trainings and
stops at the first "violated" is wrong far more often than promised. Here the evidence is the capital of a bettor who
starts with 1 and whose bets gain nothing on average if the promise is true (:mod:`deniable.audit.supermartingale`). The
capital then ever reaches 1/(1 − confidence) with probability at most 1 − confidence, however often one looks and
whatever the reason for stopping.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import binom

from deniable._check import FloatArray, InputError, Seed, number, numbers, seeded
from deniable._floats import MOST_EXPONENT
from deniable._notebook import Textual
from deniable._search import bisect
from deniable._shown import shown
from deniable.audit.intervals import Interval
from deniable.audit.scores import FAILED, FEW, REVERSED, seeded_by
from deniable.audit.supermartingale import GAMMAS, ROUNDING, Capital
from deniable.audit.verdict import Outcome, in_words, promised_curve
from deniable.curves import ApproximateTradeoff, GaussianTradeoff, Tradeoff
from deniable.mechanisms import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_GOLDEN = (math.sqrt(5) - 1) / 2  # golden ratio − 1: its multiples modulo 1 are spread evenly, however many there are
_STRONGEST = 20.0  # largest ε for which the power is reported


@dataclass(frozen=True)
class SequentialVerdict(Textual):
    """Whether the scores so far contradict a promise.

    Attributes
    ----------
    outcome
        "violated": the capital once reached 1/(1 − confidence); whatever comes later, this stays.
        "inconclusive": even a perfect attack could not have contradicted the promise in so many pairs, all scores are
        equal, or the p-value lies between one and two times the permitted error. "consistent": nothing speaks against
        the promise (this does not prove it).
    p_value
        1 over the largest capital so far: valid whenever it is read.
    confidence
        1 − the permitted probability of ever calling a true promise violated; that includes the promise's own failure.
    pairs
        Pairs of a member's and a nonmember's score that were used.
    wealth, largest_wealth
        The capital now, and the largest at any time; the bettor started with 1.
    violated_at
        Pairs after which the promise was contradicted, if it was.
    promise
        The promise in words.

    Examples
    --------
    See ``SequentialAudit``.
    """

    outcome: Outcome
    p_value: float
    confidence: float
    pairs: int
    wealth: float
    largest_wealth: float
    violated_at: int | None
    promise: str
    warnings: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """True if the promise is contradicted."""
        return self.outcome == "violated"

    def _text(self) -> str:
        after = (
            f" after {self.violated_at:,} of {self.pairs:,} pairs"
            if self.violated_at
            else f" after {self.pairs:,} pairs"
        )
        return (
            f"{self.outcome} at {100 * self.confidence:g} % confidence{after}, at any time "
            f"(wealth {shown(self.wealth, 'number', 'lower')}, p = {self.p_value:.2g}); promise: {self.promise}"
            + "".join(f"; {said}" for said in self.warnings)
        )


class SequentialAudit(Textual):
    """Judge a promise by scores as they arrive; you may stop at any time.

    ``update`` takes scores of fresh trainings; ``verdict`` may be asked after each. The probability that a true promise
    is *ever* called violated is at most 1 − ``confidence``, for every stopping rule, even one that looks at all scores,
    and even if the attack is improved along the way using earlier scores.

    Parameters
    ----------
    promise
        A mechanism or a :class:`~deniable.Tradeoff`: no attack has a higher TPR at any FPR.
    confidence
        1 − the permitted probability of ever being wrong.
    rng
        Seed or generator that puts the scores of one call in random order (a sorted sample would look like one that
        changes over time); by default seeded by the scores.

    Notes
    -----
    *Why it holds.* Scores come in pairs of a member's and a nonmember's, both of one attack: were one of them made by
    another, no promise would say anything about the pair. Before each pair, thresholds and stakes are fixed from
    earlier pairs alone. Given these, a bet's payoff has mean at most 1 for any rates (FPR, TPR) under the promised
    curve (proof: :mod:`deniable.audit.supermartingale`; both scores must be independent given the past). The capital,
    spread over three thresholds for each of some tuned bettors (half of it for the promise itself, the rest for known
    curves), is a sum of such products: a nonnegative supermartingale that starts at 1, and Ville's inequality bounds
    the chance that it ever reaches 1/(1 − confidence).

    *All claims hold together.* Bets do not depend on the promise that they are evaluated under, and they gain less
    under a promise that allows more. Hence ``epsilon``, ``mu``, ``advantage`` and the verdicts on any promise are valid
    at all times with the same probability, and cannot contradict each other: exactly the promises of ε below
    ``epsilon().low`` are violated, and so is every promise below a violated one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = SequentialAudit(GaussianTradeoff(1.0), confidence=0.95)
    >>> while not q.violated:
    ...     q.update(rng.normal(2, 1, 10), rng.normal(0, 1, 10))  # ten trainings in each world: twice the promised μ
    >>> q.pairs < 200
    True
    """

    def __init__(self, promise: Mechanism | Tradeoff, confidence: float = 0.95, *, rng: Seed = None) -> None:
        self.confidence = number("confidence", confidence, above=0.5, below=1.0, hint="0.95 is usual")
        self.promise = promised_curve(promise, "promise")
        self._words = in_words(promise)
        self._own = self.promise.hockey_stick(GAMMAS)
        self._rng = None if rng is None else seeded(rng)
        self._needed = -float(np.log1p(-self.confidence)) + ROUNDING
        self._capital, self._perfect = (Capital(self._own, self._needed) for _ in range(2))

    def _text(self) -> str:
        return str(self.verdict())

    @property
    def pairs(self) -> int:
        """Pairs of scores used so far."""
        return self._capital.pairs

    def update(self, member_scores: ArrayLike, nonmember_scores: ArrayLike) -> None:
        """Take more scores: two numbers or one-dimensional arrays of one length; larger says "member".

        They must come from fresh trainings (or records), independent of all earlier ones, and all scores of a call from
        one attack. It may have been changed because of the scores of earlier calls; the mechanism may not.
        """
        sides = [
            np.atleast_1d(numbers(f"{name} scores", value, hint="drop or repair the scores that are missing"))
            for name, value in (("member", member_scores), ("nonmember", nonmember_scores))
        ]
        if any(side.ndim != 1 for side in sides):
            raise InputError(f"scores must be one-dimensional, got shapes {sides[0].shape} and {sides[1].shape}")
        if len(sides[0]) != len(sides[1]):
            raise InputError(
                f"member and nonmember scores must be of one length, got {len(sides[0])} and {len(sides[1])}: both "
                "scores of a pair come from one attack, hence in one call; drop the scores without a partner, at random"
            )
        coins = self._rng if self._rng is not None else seeded_by(*sides)
        self._capital.take(*(coins.permutation(side) for side in sides))

    def path(self) -> FloatArray:
        """Return the capital after 0, 1, 2, … pairs, shape (pairs + 1,)."""
        return np.exp(np.minimum(np.concatenate(self._capital.path), MOST_EXPONENT))

    @property
    def violated(self) -> bool:
        """True once the promise is contradicted: what ``verdict().violated`` says, at no cost."""
        return self._capital.violates

    def verdict(self) -> SequentialVerdict:
        """Judge the promise by the scores so far."""
        return self._judge(self.promise, self._own, self._words)

    def compare(self, promise: Mechanism | Tradeoff) -> SequentialVerdict:
        """Judge any promise by the scores so far; all verdicts hold together (see Notes)."""
        curve = promised_curve(promise, "promise")
        return self._judge(curve, curve.hockey_stick(GAMMAS), in_words(promise))

    def _judge(self, curve: Tradeoff, delta: FloatArray, words: str) -> SequentialVerdict:
        wealth, pairs = self._capital.against(delta), self._capital.times
        largest, needed = float(wealth.max()), self._needed
        p_value = float(np.exp(-max(largest - ROUNDING, 0.0)))
        at: int | None = None
        outcome: Outcome = "consistent"
        higher, lower = self._capital.higher_lower
        backwards = bool(binom.cdf(higher, higher + lower, 0.5) <= REVERSED * (1 - self.confidence))
        said = (f"members score lower in {lower:,} of {self.pairs:,} pairs: is the direction right?",) * backwards
        said += (FAILED,) * self._capital.constant
        if largest >= needed:
            outcome, at = "violated", int(pairs[np.argmax(wealth >= needed)])
        elif not self._could_refute(delta):
            outcome, said = "inconclusive", (*said, FEW)
        elif said or largest >= needed - np.log(2):
            outcome = "inconclusive"
        certain = self.confidence - (1 - curve.confidence)  # a promise that may itself fail uses up confidence
        now, most = (float(np.exp(min(value, MOST_EXPONENT))) for value in (wealth[-1], max(largest, 0.0)))
        return SequentialVerdict(outcome, p_value, certain, self.pairs, now, most, at, words, said)

    def epsilon(self, delta: float = 0.0) -> Interval:
        """Return a one-sided interval: no (ε, ``delta``)-DP mechanism with ε < low explains the scores so far."""
        delta = number("delta", delta, at_least=0.0, below=1.0)
        name = "epsilon" if delta == 0 else f"epsilon at delta {delta:g}"
        return self._lower(lambda value: ApproximateTradeoff(value, delta), 0.0, 64.0, name, float("inf"))

    def mu(self) -> Interval:
        """Return a one-sided interval: no μ-GDP mechanism with μ < low explains the scores so far."""
        return self._lower(GaussianTradeoff, 0.0, 64.0, "mu (Gaussian DP)", float("inf"))

    def advantage(self) -> Interval:
        """Return a one-sided interval of sup(TPR − FPR)."""
        return self._lower(lambda value: ApproximateTradeoff(0.0, value), 0.0, 1.0, "advantage", 1.0)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the capital over the pairs, with the line at which the promise is violated; return the axes."""
        from deniable._plot import marked, new_axes

        axes = ax if ax is not None else new_axes()
        wealth = self.path()
        axes.semilogy(np.arange(len(wealth)), np.maximum(wealth, 1e-6), label="wealth")
        axes.axhline(1 / (1 - self.confidence), linestyle="--", color="firebrick", label="promise violated")
        axes.axhline(1.0, linestyle=":", color="grey", label="start")
        axes.set(xlabel="pairs of scores", ylabel="wealth of a bettor against the promise")
        axes.legend()
        return marked(axes, self.insecure)

    def _lower(
        self, family: Callable[[float], Tradeoff], least: float, most: float, name: str, high: float
    ) -> Interval:
        """Return the value of a growing family below which all of it is refuted."""

        def is_refuted(value: FloatArray) -> bool:
            return bool(self._capital.against(family(float(value)).hockey_stick(GAMMAS)).max() >= self._needed)

        low = float(bisect(is_refuted, least, most, relative=1e-6)[0])
        return Interval(low, high, low, name, self.confidence, sides="lower", method="betting, at any time")

    def _could_refute(self, delta: FloatArray) -> bool:
        """Return whether a perfect attack would have contradicted the promise in as many pairs."""
        more = self.pairs - self._perfect.pairs
        self._perfect.take(np.ones(more), np.zeros(more))
        return bool(self._perfect.against(delta).max() >= self._needed)

    def could_find(self) -> float | None:
        """Return the smallest ε, to 5 %, of a randomised response whose typical scores in as many pairs give it away.

        None if not even ε = 20 would be found, or if there are no pairs.
        """

        def finds(epsilon: Any) -> bool:
            capital, even = Capital(self._own, self._needed), (np.arange(self.pairs) * _GOLDEN) % 1
            capital.take((even < expit(epsilon)).astype(float), ((even + 0.5) % 1 > expit(epsilon)).astype(float))
            return capital.violates

        return float(bisect(finds, _STRONGEST, 0.0, relative=0.05)[0]) if finds(_STRONGEST) else None
