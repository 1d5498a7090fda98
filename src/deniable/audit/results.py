"""The scores of an attack, together with what was attacked and how."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable._check import FloatArray
from deniable.audit.scores import ScoreAudit, audit_scores


class RepeatedRecordsWarning(UserWarning):
    """The same records were attacked in several targets: intervals that assume independent scores are too short."""


@dataclass(frozen=True, eq=False)
class AttackScores:
    """Scores of members and of nonmembers; ``member, nonmember = scores`` unpacks them.

    Attributes
    ----------
    member_scores, nonmember_scores
        One score per attacked record or simulated release; larger says "member".
    method
        The attack.
    target
        What was attacked.
    details
        Parameters that are needed to repeat it.
    """

    member_scores: FloatArray = field(repr=False)
    nonmember_scores: FloatArray = field(repr=False)
    method: str
    target: str
    details: dict[str, Any] = field(default_factory=dict)

    def audit(self, confidence: float = 0.95, **options: Any) -> ScoreAudit:
        """Return :func:`deniable.audit_scores` of these scores; warns if the same records return in several targets."""
        if self.details.get("n_targets", 1) > 1:
            warnings.warn(
                "the same records were attacked in several targets, so the scores are not independent: read the "
                "estimates, not the intervals, or use n_targets=1",
                RepeatedRecordsWarning,
                stacklevel=2,
            )
        return audit_scores(self.member_scores, self.nonmember_scores, confidence, **options)

    def advantage_at(self, threshold: float = 0.0) -> float:
        """Return TPR − FPR of accusing above ``threshold``: an estimate, unbiased for a threshold fixed beforehand."""
        return float(np.mean(self.member_scores > threshold) - np.mean(self.nonmember_scores > threshold))

    def __iter__(self) -> Iterator[FloatArray]:
        yield self.member_scores
        yield self.nonmember_scores

    def save(self, path: str) -> None:
        """Write the scores to an ``.npz`` file that ``deniable audit`` and :func:`read_scores` read."""
        np.savez(path, member=self.member_scores, nonmember=self.nonmember_scores)
