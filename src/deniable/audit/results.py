"""The scores of an attack, together with what was attacked and how; and which records are exposed most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable._check import FloatArray, InputError, IntArray, integer, number
from deniable._tails import binomial_limits
from deniable.audit.fixed_sample import best_threshold
from deniable.audit.scores import Copies, ScoreAudit, audit_scores


@dataclass(frozen=True, eq=False)
class RecordExposure:
    """How often an attack was right about each record, over targets that are trained independently of each other.

    Attributes
    ----------
    record
        Indices of the records, the most exposed first.
    right, targets
        How many targets the attack was right about, and how many there were.
    low, high
        Limits of the chance that it is right about the record in a fresh target (½ is guessing); the limits of *all*
        attacked records hold together with probability ``confidence``, whichever are picked out.
    threshold
        Scores above it accuse. It is the best threshold for the other records.

    Examples
    --------
    See ``attack_estimator``.
    """

    record: IntArray
    right: IntArray
    targets: IntArray
    low: FloatArray
    high: FloatArray
    threshold: float
    confidence: float


@dataclass(frozen=True, eq=False)
class AttackScores:
    """Scores of members and of nonmembers; ``member, nonmember = scores`` unpacks them.

    Attributes
    ----------
    member_scores, nonmember_scores
        One score per attacked record or simulated release; larger says "member".
    method
        Name of the attack.
    target
        What was attacked.
    details
        Parameters that are needed to repeat it.
    copies, parts
        Of a released table: the exact copies in it, and the attacks whose tests share the rest of the permitted error
        (share, members' scores, nonmembers' scores).

    Examples
    --------
    See ``attack_estimator``.
    """

    member_scores: FloatArray = field(repr=False)
    nonmember_scores: FloatArray = field(repr=False)
    method: str
    target: str
    details: dict[str, Any] = field(default_factory=dict)
    copies: Copies | None = None
    parts: tuple[tuple[float, FloatArray, FloatArray], ...] = field(default=(), repr=False)

    def audit(self, confidence: float = 0.95, **options: Any) -> ScoreAudit:
        """Return :func:`deniable.audit_scores` of these scores; of several targets, of the first one's alone.

        The records of one target all differ, so that the intervals hold; over several the same records recur.
        """
        options = {"direction": "larger", "rng": self.details.get("rng")} | options
        member, nonmember = self
        if (targets := self.details.get("n_targets", 1)) > 1:
            inside = self.details["members_of_targets"][0]
            outside = (len(member) + len(nonmember)) // targets - inside
            member, nonmember = member[:inside], nonmember[:outside]
        found = audit_scores(member, nonmember, confidence, **options)
        return found if self.copies is None else found.with_shared_error(self.copies, self.parts)

    def most_exposed(self, k: int = 10, *, confidence: float = 0.95) -> RecordExposure:
        """Return the records about which the attack was right most often, over several targets.

        Whether a record is in a target is a fair coin, so each target is one more independent trial for it
        (given the shadow models, which all targets share: the limits are about attacks with these).

        Parameters
        ----------
        k
            Number of records.
        confidence
            Probability with which the limits of all records hold together.

        Raises
        ------
        InputError
            If there was only one target: attack with ``n_targets`` of 8 or more.
        """
        k = integer("k", k, at_least=1)
        confidence = number("confidence", confidence, above=0.5, below=1.0, hint="0.95 is usual")
        if "member_records" not in self.details or self.details.get("n_targets", 1) < 2:
            raise InputError(
                "most_exposed needs the same records in several targets; attack with n_targets of 8 or "
                "more, a single target says too little about any one record"
            )
        records = np.concatenate([self.details["member_records"], self.details["nonmember_records"]]).astype(np.int64)
        scores, inside = np.concatenate([*self]), np.arange(len(records)) < len(self.member_scores)
        even = records % 2 == 0  # the threshold for either half of the records comes from the other
        halves = {
            half: best_threshold(scores[inside & (even != half)], scores[~inside & (even != half)]) for half in (0, 1)
        }
        accused = scores >= np.where(even, halves[1], halves[0])
        n = int(records.max()) + 1
        right = np.bincount(records, weights=accused == inside, minlength=n).astype(np.int64)
        targets = np.bincount(records, minlength=n)
        known = np.flatnonzero(targets)
        error = (1 - confidence) / (2 * len(known))  # all records and both sides
        low, high = binomial_limits(right[known], targets[known], error)
        order = np.lexsort((known, -right[known] / targets[known], -low))[:k]
        chosen = known[order]
        threshold = float(np.mean(list(halves.values())))
        return RecordExposure(chosen, right[chosen], targets[chosen], low[order], high[order], threshold, confidence)

    def advantage_at(self, threshold: float = 0.0) -> float:
        """Return TPR − FPR of accusing above ``threshold``: an estimate, unbiased for a threshold fixed beforehand."""
        return float(np.mean(self.member_scores > threshold) - np.mean(self.nonmember_scores > threshold))

    def __iter__(self) -> Iterator[FloatArray]:
        yield self.member_scores
        yield self.nonmember_scores

    def save(self, path: str) -> None:
        """Write the scores to an ``.npz`` file that ``deniable audit`` and :func:`read_scores` read."""
        np.savez(path, member=self.member_scores, nonmember=self.nonmember_scores)
