"""Exact copies: how many records are, cell by cell, in a released table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, takewhile

import numpy as np

from deniable.audit.intervals import Ranking
from deniable.audit.nested import NestedTests, Threshold

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
        return NestedTests(each, each)
