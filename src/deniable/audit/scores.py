"""What a set of attack scores shows: rates, advantage, ε and μ with exact intervals, and a verdict on a promise."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, Seed, choice, number, numbers, seeded
from deniable._notebook import USUAL_FPRS, Textual
from deniable.audit.fixed_sample import Ceiling, Evidence, NestedTests, Threshold
from deniable.audit.intervals import EpsilonDelta, Gaussian, Interval, Ranking, as_interval, tpr_lower, tpr_upper
from deniable.audit.verdict import Verdict, judge
from deniable.curves import ApproximateTradeoff, Tradeoff
from deniable.mechanisms import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SHARE = 0.2  # of the permitted error: 0.01 of 0.05, while the scores have the other 0.04
_GROWTH = 4  # ranks that are tested: 1, 4, 16, …


@dataclass(frozen=True)
class Copies:
    """How many released rows equal a member, or a nonmember, and how many members and nonmembers equal a released row.

    ``members`` and ``nonmembers`` are the numbers of records that were looked at.
    """

    rows_of_members: int
    rows_of_nonmembers: int
    copied_members: int
    copied_nonmembers: int
    members: int
    nonmembers: int

    def __str__(self) -> str:
        return (
            f"Exact copies: {self.rows_of_members:,} released rows equal a member, {self.rows_of_nonmembers:,} equal a "
            f"non-member ({self.copied_members:,} of {self.members:,} members, {self.copied_nonmembers:,} of "
            f"{self.nonmembers:,} non-members)"
        )

    @property
    def tests(self) -> NestedTests:
        """The rule "accuse whoever equals a released row", at ranks fixed beforehand; equal scores count against it."""
        above = np.where(np.arange(self.nonmembers) < self.copied_nonmembers, 0, self.copied_members)
        ranking = Ranking(above.astype(np.int64), self.members)
        ranks = takewhile(lambda rank: rank <= self.nonmembers, (_GROWTH**j for j in count()))
        each = tuple(Threshold(ranking, rank, 1 / ((j + 1) * (j + 2))) for j, rank in enumerate(ranks))
        return NestedTests(each, each, tuple(replace(test, ranking=ranking.perfect()) for test in each))


ScoreDirection = Literal["larger", "smaller"]
REVERSED = 1e-3  # one-sided error of what is refused as reversed scores
FEW = "So few scores would not show even a perfect attack; collect more."
FAILED = "The attack failed: all scores are equal, and say nothing about anybody."


class ReversedScoresWarning(UserWarning):
    """Members score lower than nonmembers, although the caller had said which scores say "member".

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> import warnings
    >>> rng = np.random.default_rng(0)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     audit = dn.audit_scores(rng.normal(-2, 1, 200), rng.normal(0, 1, 200), direction="larger")
    >>> [one.category for one in said] == [dn.audit.ReversedScoresWarning]
    True
    """


@dataclass(frozen=True, eq=False)
class ScoreAudit(Textual):
    """What an attack's scores show about membership, each number with an exact interval.

    Every interval holds on its own with probability at least ``confidence``, over independent scores drawn from the
    two populations; it needs no assumption about the shape of their laws. Scores of many records under *one* trained
    model are independent only as far as the records are: what they show is about that attack on that population.

    TPR at an FPR is that of the best rule that thresholds the score, at random if need be. ``warnings`` say what speaks
    against the scores; ``copies`` counts the records that a released table holds as they are,
    and ``alone`` holds what the attack that needs no reference counted.

    Examples
    --------
    See ``audit_scores``.
    """

    member: FloatArray = field(repr=False)
    nonmember: FloatArray = field(repr=False)
    confidence: float
    evidence: Evidence = field(repr=False)
    warnings: tuple[str, ...] = ()
    copies: Copies | None = None
    alone: Evidence | None = field(default=None, repr=False)

    def with_shared_error(self, copies: Copies, parts: Sequence[tuple[float, FloatArray, FloatArray]]) -> ScoreAudit:
        """Return the audit in which exact copies, and several attacks on the same records, share the permitted error.

        ``parts`` are shares of the error with the scores of members and of nonmembers.
        """
        found = [Evidence.of(x, y, seeded_by(x, y)) for _, x, y in parts]
        tests = [(part[0], evidence.tests) for part, evidence in zip(parts, found, strict=True)]
        joined = NestedTests.joint([*tests, (SHARE, copies.tests)])
        evidence = replace(self.evidence, tests=joined)
        return _with_silence_warned_of(replace(self, evidence=evidence, copies=copies, alone=found[0]))

    @property
    def failed(self) -> bool:
        """True if all scores are equal: the attack says nothing about anybody."""
        return self.evidence.constant

    @property
    def shows(self) -> bool:
        """True if all tests together exclude guessing: with the stated confidence, something leaks."""
        return max(self.evidence.tests.advantage(self._error / 2), self.epsilon().low, self.mu().low) > 0

    def excluding(self, fpr: Sequence[float] = USUAL_FPRS[::-1]) -> tuple[Interval, ...]:
        """Return the intervals of the TPR at each ``fpr``, and of the AUC, that exclude guessing, each on its own.

        Those of the attack without a reference count, too: whoever knows more could have left it out.
        """
        counted = [self, *([] if self.alone is None else [replace(self, evidence=self.alone, alone=None)])]
        rows = [row for one in counted for row in (*((one.tpr(a), a) for a in fpr), (one.auc(), 0.5))]
        return tuple(row for row, guess in rows if row.resolvable and guess not in row)

    def could_find(self, promise: Tradeoff | None = None) -> float:
        """Return the smallest advantage that would be found, in scores as typical as can be, above that of a promise.

        About half of the samples of an attack with this advantage contradict the promise (by default: guessing). It is
        infinite where even a perfect attack would not.
        """
        at_most = ApproximateTradeoff(0.0, 0.0) if promise is None else promise
        return self.evidence.tests.could_find(Ceiling(at_most.tpr, at_most.advantage()), self._error)

    def tpr(self, fpr: float) -> Interval:
        """Return the two-sided interval of the true positive rate at false positive rate ``fpr``.

        It accounts for the uncertainty of both rates. Where fewer than one nonmember would be accused (n·fpr < 1) the
        sample cannot resolve the rate: the interval is [0, 1] and marked so.
        """
        fpr = number("fpr", fpr, above=0.0, below=1.0, hint="it is a rate, not a percentage")
        name = f"TPR at FPR {100 * fpr:.4g} %"
        if self.evidence.full.n * fpr < 1:
            return Interval(0.0, 1.0, float("nan"), name, self.confidence, resolvable=False)
        side = self._error / 2
        low, high = tpr_lower(self.evidence.full, fpr, side), tpr_upper(self.evidence.full, fpr, side)
        return as_interval(low, high, self.evidence.full.tpr(fpr), name, self.confidence)

    def advantage(self) -> Interval:
        """Return the two-sided interval of sup(TPR − FPR) over all thresholds."""
        ranking, side = self.evidence.full, self._error / 2
        low = self.evidence.tests.advantage(side)
        high = max(low, self.evidence.advantage_upper(side))
        best = max(0.0, float(np.max(ranking.above / ranking.m - np.arange(ranking.n) / ranking.n)))
        return as_interval(low, high, best, "advantage", self.confidence)

    def auc(self) -> Interval:
        """Return the two-sided interval of P(member's score > nonmember's), from random disjoint pairs."""
        low, high = self.evidence.auc(self._error / 2)
        ranking = self.evidence.full
        return as_interval(low, high, float(np.mean(ranking.above) / ranking.m), "AUC", self.confidence)

    def epsilon(self, delta: float = 0.0) -> Interval:
        """Return a one-sided interval: no mechanism that is (ε, ``delta``)-DP with ε < low explains the scores.

        An attack never bounds ε from above; both directions of DP count. Exactly the promises with ε < low are
        *violated* for :meth:`compare`, and (e^ε − 1 + 2δ)/(e^ε + 1) at low is at least ``advantage().low``. The limits
        for all δ, of μ and of the advantage hold together with probability at least ``confidence``.
        """
        delta = number("delta", delta, at_least=0.0, below=1.0)
        low = self.evidence.tests.lower(EpsilonDelta(delta), self._error)
        name = "epsilon" if delta == 0 else f"epsilon at delta {delta:g}"
        return Interval(low, float("inf"), low, name, self.confidence, sides="lower")

    def mu(self) -> Interval:
        """Return the one-sided interval of μ: no μ-GDP mechanism with μ < low explains the scores.

        Exactly the promises with μ < low are *violated* for :meth:`compare`.
        """
        low = self.evidence.tests.lower(Gaussian(), self._error)
        return Interval(low, float("inf"), low, "mu (Gaussian DP)", self.confidence, sides="lower")

    def compare(self, tradeoff: Tradeoff | Mechanism) -> Verdict:
        """Judge the promise that no attack exceeds ``tradeoff`` (its upper side).

        Verdicts are monotone: a curve that lies below a violated one is violated. They come from the tests that give
        :meth:`epsilon`, :meth:`mu` and the lower limit of :meth:`advantage` (:mod:`deniable.audit.fixed_sample`).

        Parameters
        ----------
        tradeoff
            What was promised, a trade-off or a mechanism, for the same game as the scores: H0 = nonmember, H1 = member.
        """
        found = judge(self.evidence, tradeoff, self.confidence)
        return replace(found, outcome="inconclusive") if self.warnings and found.outcome == "consistent" else found

    def _text(self) -> str:
        lines = [*(self.tpr(a) for a in USUAL_FPRS[::-1]), self.advantage(), self.auc(), self.epsilon(), self.mu()]
        head = f"attack scores of {self.evidence.full.m} members and {self.evidence.full.n} nonmembers"
        return "\n  ".join([head, *map(str, lines)])

    def plot(self, ax: Axes | None = None, *, label: str = "measured attack") -> Axes:
        """Draw the measured ROC with its pointwise intervals on log–log axes and return the matplotlib axes."""
        from deniable._plot import draw_rocs

        axes = draw_rocs([lambda fpr: np.array([self.evidence.full.tpr(a) for a in fpr])], [label], ax=ax)
        grid = np.geomspace(min(0.9, 1 / self.evidence.full.n), 0.9, 24)
        limits = [self.tpr(float(a)) for a in grid]
        axes.fill_between(
            100 * grid, [100 * i.low for i in limits], [100 * i.high for i in limits], alpha=0.2, step=None
        )
        return axes

    @property
    def _error(self) -> float:
        return 1 - self.confidence


def audit_scores(
    member_scores: ArrayLike,
    nonmember_scores: ArrayLike,
    confidence: float = 0.95,
    *,
    direction: ScoreDirection | None = None,
    rng: Seed = None,
) -> ScoreAudit:
    """Measure an attack from its scores, with exact intervals.

    Parameters
    ----------
    member_scores, nonmember_scores
        Scores of independent members and nonmembers, one-dimensional; a larger score says "member". Infinities are
        allowed (a likelihood ratio may be infinite), NaN is not.
    confidence
        Probability that each interval holds.
    direction
        Which scores say "member": "larger", or "smaller" (losses, distances). By default larger ones, and scores that
        are clearly reversed are refused; if a direction is given, or if they just seem so, they are warned of.
    rng
        Seed or generator. It decides which scores choose thresholds and which test them, forms pairs and breaks ties.
        By default it is seeded by the scores themselves: equal scores give equal audits, while the coins of different
        data sets are independent (with one fixed seed they would err together).

    Returns
    -------
    ScoreAudit
        Intervals of the advantage, TPR, ε, μ and AUC, and :meth:`ScoreAudit.compare` with a promise.

    Raises
    ------
    InputError
        If a side is empty, not one-dimensional or has a NaN; if the first is 0/1 and the second, as long, is not, as in
        the order of scikit-learn's ``(y_true, y_score)``; if no direction is given and the scores are reversed.

    Warns
    -----
    ReversedScoresWarning
        If the scores seem reversed: the AUC of the reversed ones lies above ½, or they show an ε where these show none
        (together at ``confidence``). Without a direction, what is so at 99.9 % is refused. An audit that warns never
        calls a promise consistent.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> rng = np.random.default_rng(0)
    >>> audit = dn.audit_scores(rng.normal(1, 1, 500), rng.normal(0, 1, 500))
    >>> found = audit.advantage()
    >>> found.low <= found.estimate <= found.high
    True
    >>> verdict = audit.compare(dn.GaussianDP(0.2))
    >>> verdict.outcome
    'violated'
    """
    confidence = number("confidence", confidence, above=0.5, below=1.0, hint="0.95 is usual")
    inside, outside = _scores("member", member_scores), _scores("nonmember", nonmember_scores)
    refuse_labels(inside, outside)
    if direction is not None and choice("direction", direction, ("larger", "smaller")) == "smaller":
        inside, outside = -inside, -outside
    evidence = Evidence.of(inside, outside, seeded_by(inside, outside, rng=rng))
    audit = ScoreAudit(inside, outside, confidence, evidence)
    if _is_reversed(audit, (1 - confidence) / 2):
        asked = direction if _is_reversed(audit, REVERSED) else "larger"
        audit = replace(audit, warnings=(warned_of_reversal(audit.auc().estimate, asked),))
    return _with_silence_warned_of(audit)


def _with_silence_warned_of(audit: ScoreAudit) -> ScoreAudit:
    """Return the audit with a warning if its silence means nothing, and without it otherwise."""
    others = tuple(said for said in audit.warnings if said not in (FAILED, FEW))
    silent = FAILED if audit.failed and not audit.shows else FEW if audit.could_find() > 1 else None
    return replace(audit, warnings=others if silent is None else (*others, silent))


def warned_of_reversal(auc: float, direction: ScoreDirection | None) -> str:
    """Refuse reversed scores, or warn of them if their direction was given, and return the warning."""
    lower = "members score lower than non-members" if auc < 0.5 else "members score lower in a tail of the scores"
    found = f"{lower}: the AUC is {auc:.3f}, and in reverse the scores leak"
    if direction is None:
        raise InputError(
            f"{found}. If a small score says 'member' (a loss, a distance), or 1 means non-member, give --reverse "
            "(direction='smaller'); if the scores are what they should be, direction='larger'"
        )
    warnings.warn(found, ReversedScoresWarning, stacklevel=3)
    return f"{found[0].upper()}{found[1:]}; is the direction right?"


def _is_reversed(audit: ScoreAudit, error: float) -> bool:
    """Return whether the scores say more in reverse: on the whole, or in a tail where they say nothing as they are."""
    if audit.failed or audit.evidence.auc(error)[1] < 0.5:
        return not audit.failed
    if audit.evidence.tests.advantage(1 - audit.confidence) > 0 or audit.epsilon().low > 0:
        return False
    inside, outside = -audit.member, -audit.nonmember
    back = Evidence.of(inside, outside, seeded_by(inside, outside))
    return back.tests.lower(EpsilonDelta(0.0), error) > 0


def refuse_labels(member: FloatArray, nonmember: FloatArray) -> None:
    """Refuse labels and scores of all records where scores of members and of nonmembers are asked for.

    An attacker who sees labels only has scores 0 and 1 on both sides, or infinite ones where he is certain.
    """
    labels = len(member) == len(nonmember) and np.array_equal(np.unique(member), (0.0, 1.0))
    if labels and not np.isin(nonmember, (0.0, 1.0, -np.inf, np.inf)).all():
        raise InputError(
            "member scores must not be 0/1 labels beside nonmember scores that are not: for labels y and scores s of "
            "all records pass s[y == 1], s[y == 0]"
        )


def seeded_by(*scores: FloatArray, rng: Seed = None) -> np.random.Generator:
    """Return a generator seeded by the scores themselves, unless ``rng`` is given."""
    if rng is not None:
        return seeded(rng)
    digest = hashlib.sha256(b"|".join(side.tobytes() for side in scores)).digest()
    return np.random.default_rng(list(digest))


def _scores(name: str, value: ArrayLike) -> FloatArray:
    array = numbers(f"{name} scores", value, hint="drop or repair the records whose score is missing")
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{name} scores must be a non-empty one-dimensional array, got shape {array.shape}; an audit needs both "
            "members and nonmembers"
        )
    return array
