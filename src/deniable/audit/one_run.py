"""Auditing with one training run: many canaries, each included by a coin toss.

Instead of thousands of runs with and without one record, insert m canaries independently with probability one half and
guess for each whether it was in. The canaries' memberships are independent, so one run gives m pieces of evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest, mannwhitneyu

from deniable._check import FloatArray, InputError, Seed, choice, number, numbers
from deniable._search import bisect, bisect_integers
from deniable.audit.fixed_sample import PILOT
from deniable.audit.intervals import EpsilonDelta, Family, Gaussian, Interval, Shift
from deniable.audit.one_run_bounds import (
    SHARES,
    Ordered,
    PromisedFamily,
    guesses_in_order,
    largest_rejected,
    rejects_f_dp,
)
from deniable.audit.scores import FAILED, FEW, REVERSED, ScoreDirection, seeded_by, warned_of_reversal
from deniable.audit.verdict import Outcome, Verdict, in_words, promised_curve
from deniable.curves import ApproximateTradeoff, Tradeoff
from deniable.mechanisms import Mechanism

_CONTROLS = 20  # tosses of other coins
# shares of the pilot above the thresholds tried
_TRIED = (0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.11, 0.12, 0.14, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5)
_COARSE = 200  # guesses: this many are enough to compare thresholds
_HUGE = 1e300  # scores are clipped to ± this, so that their differences are finite
_MOST_LOG = 31.0  # 1 − log of a p-value: below e⁻³⁰ they are not distinguished


@dataclass(frozen=True)
class OneRunAudit:
    """How many of the confident guesses about randomly included canaries were right, and what that proves.

    The limits hold for the run that was made, with probability ``confidence`` over the coins and the training.
    ``canaries`` are those that were tested, ``guesses`` the number of guesses about them, of which ``right`` were;
    ``pilot`` others chose which of them to guess. ``ordered`` holds the guesses about all of them, in the order of
    confidence; ``controls`` the same for coins that were tossed anew. A canary stood in the data ``repetitions`` times:
    limits and promises are for one record, those of as many by group privacy. The attack ``failed`` if all scores are
    equal; ``warnings`` say what speaks against them.

    Examples
    --------
    See ``canaries``.
    """

    canaries: int
    guesses: int
    right: int
    confidence: float
    pilot: int
    ordered: tuple[Ordered, ...] = ()
    controls: tuple[tuple[Ordered, ...], ...] = field(default=(), repr=False)
    repetitions: int = 1
    failed: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def false_alarms(self) -> float:
        """The share of negative controls (the same scores, coins tossed anew) that show an ε."""
        error = 1 - self.confidence
        shown = [max(part.epsilon(0.0, error) for part in control) > 0 for control in self.controls]
        return float(np.mean(shown)) if shown else 0.0

    def epsilon(self, delta: float = 0.0) -> Interval:
        """Return the one-sided interval of ε at ``delta``.

        It is that of the guesses in order (every number of guesses at once, all canaries, no choice beforehand; proof
        in :mod:`deniable.audit.one_run_bounds`); where δ times the number of canaries is above (1 − confidence)/2, that
        of the f-DP bound, and never more than what is shown at a smaller δ. It falls in δ, and :meth:`compare` calls
        exactly the promises of (ε, δ)-DP with ε below it violated.
        """
        delta = number("delta", delta, at_least=0.0, below=1.0)
        name = "epsilon" if delta == 0 else f"epsilon at delta {delta:g}"
        low, method = self._epsilon(delta, 1 - self.confidence)
        if self.repetitions > 1:

            def is_refuted(value: Any) -> bool:
                group = delta * float(np.sum(np.exp(value * np.arange(self.repetitions))))
                return bool(self._epsilon(min(group, 1.0), 1 - self.confidence)[0] > self.repetitions * value)

            low = float(bisect(is_refuted, 0.0, low, relative=1e-6)[0]) if is_refuted(0.0) else 0.0
        return Interval(low, math.inf, low, name, self.confidence, sides="lower", method=f"one run, {method}")

    def _epsilon(self, delta: float, error: float) -> tuple[float, str]:
        """Return the limit of ε, which falls in δ, and the bound that it comes from."""
        few = (1 - self.confidence) / 2 / (self.canaries + self.pilot)  # the δ that takes half of the permitted error
        in_order = max(part.epsilon(min(delta, few), error) for part in self.ordered)
        other = self._low(EpsilonDelta(delta), error) if delta > few else math.inf
        return (in_order, "ordered") if in_order < other else (other, "f-dp")

    def mu(self) -> Interval:
        """Return the one-sided interval of μ (Gaussian DP), from the f-DP bound."""
        return self._limit(Gaussian(), "mu (Gaussian DP)", math.inf)

    def advantage(self) -> Interval:
        """Return the one-sided interval of the advantage, from the f-DP bound.

        Its limit stays near 1 − ``confidence`` however good the guesses are: a mechanism that with that probability
        leaks everything about all of them at once promises as small an advantage for each.
        """
        return self._limit(Shift(), "advantage", 1.0)

    def _limit(self, family: Family, name: str, most: float) -> Interval:
        low = self._low(family, 1 - self.confidence) / self.repetitions
        return Interval(low, most, low, name, self.confidence, sides="lower", method="one run, f-dp")

    def compare(self, tradeoff: Tradeoff | Mechanism) -> Verdict:
        """Judge any promised curve, by the f-DP bound with the curve's symmetric hull.

        A promise of (ε, δ)-DP (``PureDP``, ``ApproximateDP``) is judged by :meth:`epsilon`: it is violated if its ε is
        below the limit. The limits of ε and of μ come from different bounds, and each holds on its own.

        "inconclusive": the promise would stand even if all guesses had been right, or the p-value lies between one and
        two times the permitted error.

        Parameters
        ----------
        tradeoff
            The promise for each record, a mechanism or a trade-off.
        """
        curve, allowed = promised_curve(tradeoff), 1 - self.confidence
        if self.repetitions > 1:
            curve = curve.group(self.repetitions)
        epsilon = delta = 0.0
        if isinstance(curve, ApproximateTradeoff):
            epsilon, delta = curve.guaranteed_epsilon, curve.guaranteed_delta
        family = PromisedFamily.of(curve)

        outcome: Outcome

        def is_refuted(run: OneRunAudit, error: float) -> bool:
            if epsilon > 0:
                return run._epsilon(delta, error)[0] > epsilon
            return rejects_f_dp(family, 0.0, run.canaries, run.guesses, run.right, error)

        smallest = bisect(lambda x: is_refuted(self, float(np.exp(1 - x))), 1.0, _MOST_LOG, relative=1e-2)[0]
        p_value, outcome = float(np.exp(1 - smallest)), "consistent"
        if is_refuted(self, allowed):
            outcome, p_value = "violated", min(p_value, allowed)
        elif self.failed or p_value <= 2 * allowed or not is_refuted(self.perfect(), allowed):
            outcome, p_value = "inconclusive", max(p_value, allowed)
        if epsilon > 0:
            promised, measured = epsilon, self.epsilon(delta)
        else:
            promised, measured = self._most_right(family, allowed) / max(self.guesses, 1), self._share_right()
        certain = self.confidence - (1 - curve.confidence)  # a promise that may itself fail uses up confidence
        tests = len(self.ordered) if epsilon > 0 else 1
        return Verdict(outcome, p_value, certain, tests, None, promised, measured, in_words(tradeoff))

    def perfect(self) -> OneRunAudit:
        """Return the same audit with all guesses right."""
        in_order = tuple(replace(part, right=part.looks) for part in self.ordered)
        return replace(self, right=self.guesses, ordered=in_order)

    def _share_right(self) -> Interval:
        share, name = self.right / max(self.guesses, 1), f"share of right guesses among {self.guesses}"
        return Interval(share, share, share, name, self.confidence, sides="lower", method="one run, f-dp")

    def _most_right(self, family: Family, error: float) -> int:
        """Return the largest number of right guesses that does not contradict the promise."""
        m, r = self.canaries, self.guesses
        return int(bisect_integers(lambda v: not rejects_f_dp(family, 0.0, m, r, int(v), error), 0, r + 1)[0])

    def _low(self, family: Family, error: float) -> float:
        """Return the largest value of a family that the f-DP bound refutes."""
        return largest_rejected(
            lambda value: rejects_f_dp(family, value, self.canaries, self.guesses, self.right, error)
        )


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    confidence: float = 0.95,
    direction: ScoreDirection | None = None,
    rng: Seed = None,
) -> OneRunAudit:
    """Audit one training run into which canaries were inserted by independent fair coins.

    Parameters
    ----------
    scores
        One score per canary, shape (m,); larger says "in".
    included
        Whether each canary was in, shape (m,). The coins must be fair and independent, and tossed before training;
        a fixed number of included canaries is another game.
    confidence
        Probability with which each limit holds, in (0, 1).
    direction
        Which scores say "in", as for :func:`deniable.audit_scores`.
    rng
        Seed or generator that draws a fifth of the canaries; by default seeded by the scores. The fifth chooses the
        scores above which, and below which, to guess about the others, for μ, the advantage and curves; ε uses all
        canaries in their order.

    Returns
    -------
    OneRunAudit
        Lower limits of ε, μ and the advantage, each with the stated confidence.

    Raises
    ------
    InputError
        If shapes differ or a score is NaN; if no fair coins toss as many canaries in or out, or if no direction is
        given and the scores are reversed (both: rank or binomial test, 0.1 %).

    Examples
    --------
    See ``canaries``.
    """
    values = numbers("scores", scores, hint="drop the canaries whose score is missing")
    inside = np.asarray(included)
    if values.ndim != 1 or values.size == 0 or inside.shape != values.shape:
        raise InputError(
            f"scores and included must be one-dimensional, of one length and not empty, got {values.shape} and "
            f"{inside.shape}"
        )
    if not np.isin(inside, (0, 1)).all():
        raise InputError("included must hold True or False for every canary")
    confidence = number("confidence", confidence, above=0.5, below=1.0, hint="0.95 is usual")
    truth = inside.astype(bool)
    if binomtest(int(truth.sum()), len(truth)).pvalue <= REVERSED:
        raise InputError(
            f"included must come from fair coins, one a canary, and {truth.sum():,} of {len(truth):,} are in: whoever "
            "guesses the likelier side is right too often. Give all canaries, those that stayed out as well"
        )
    if direction is not None and choice("direction", direction, ("larger", "smaller")) == "smaller":
        values = -values
    coins = seeded_by(values, rng=rng)
    found = _with_pilot(values, truth, confidence, coins)
    anew = coins.random((_CONTROLS, len(truth))) < 0.5
    order = np.lexsort((coins.random(len(values)), values))  # whoever stores the canaries by side must not show by ties
    found = replace(
        found,
        ordered=_in_order(truth[order]),
        controls=tuple(_in_order(toss) for toss in anew),
        failed=bool(values.min() == values.max()),
    )
    ranked = mannwhitneyu(values[truth], values[~truth], alternative="less") if 0 < truth.sum() < len(truth) else None
    silent = (FAILED,) if found.failed else (FEW,) * (not found.perfect().epsilon().low > 0)
    if ranked is None or found.failed or ranked.pvalue > REVERSED:
        return replace(found, warnings=silent)
    auc = float(ranked.statistic) / int(truth.sum() * (~truth).sum())
    return replace(found, warnings=(warned_of_reversal(auc, direction), *silent))


def _in_order(inside: NDArray[np.bool_]) -> tuple[Ordered, ...]:
    ways = zip(guesses_in_order(inside), SHARES, strict=True)
    return tuple(Ordered.of(way, len(inside), share) for way, share in ways)


def _with_pilot(
    scores: FloatArray, inside: NDArray[np.bool_], confidence: float, rng: np.random.Generator
) -> OneRunAudit:
    """Let a random fifth of the canaries choose the scores above and below which the others are guessed.

    Given the coins of the fifth, those of the others are still fair and independent, and the promise holds for them;
    how many of the others are guessed follows from the scores.
    """
    values = np.clip(scores, -_HUGE, _HUGE)
    order = rng.permutation(len(values))
    chosen = int(PILOT * len(order))
    pilot, tested = order[:chosen], order[chosen:]
    m, family, error = len(tested), Gaussian(), 1 - confidence

    def count_guesses(part: NDArray[np.int_], ends: tuple[float, float]) -> tuple[int, int]:
        """Return the number of guesses and of correct ones."""
        top, bottom = values[part] > ends[0], values[part] < ends[1]
        return int(top.sum() + bottom.sum()), int(inside[part][top].sum() + (~inside[part][bottom]).sum())

    def promising(ends: tuple[float, float]) -> float:
        """Return the μ that would be shown if the others were guessed as well as the pilot, on a smaller sample."""
        seen, right = count_guesses(pilot, ends)
        r = count_guesses(tested, ends)[0]
        scale = max(1.0, r / _COARSE)
        sizes = int(m / scale), int(r / scale), int((right + 0.25) / (seen + 0.5) * r / scale)
        return largest_rejected(lambda mu: rejects_f_dp(family, mu, *sizes, error)) if r else -1.0

    best = max(_thresholds(values[pilot]), key=promising)
    r, v = count_guesses(tested, best)
    return OneRunAudit(m, r, v, confidence, len(pilot))


def _thresholds(pilot: FloatArray) -> list[tuple[float, float]]:
    """Return scores above which to guess "in" and below which to guess "out", from a pilot's scores.

    Each lies midway between two neighbouring scores; the lower one is −∞ where only the top is guessed.
    """
    levels, counts = np.unique(pilot, return_counts=True)
    between, above = levels[:-1] + np.diff(levels) / 2, len(pilot) - np.cumsum(counts)[:-1]
    everybody = (-np.inf, -np.inf)  # is guessed to be in
    if between.size == 0:
        return [everybody]

    def splitting(share: float) -> float:
        """Return the threshold that has nearest to this share of the pilot above it."""
        return float(between[np.argmin(np.abs(above - share * len(pilot)))])

    top = [(splitting(share), -np.inf) for share in _TRIED]
    return list(dict.fromkeys(top + [(splitting(share), splitting(1 - share)) for share in _TRIED] + [everybody]))
