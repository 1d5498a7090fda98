"""The exposure of each record in one fit: for the owner of the data, never part of a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deniable import testing
from deniable._check import FloatArray, InputError, integer
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff, with_assumptions
from deniable.mechanisms import GaussianDP


@dataclass(frozen=True, eq=False)
class RecordTradeoffs:
    """Each unit's own Gaussian DP parameter along the path that this fit took.

    The sums of a full-batch fit change by exactly what the record contributes, so its own curve is the one of
    N(0, 1) against N(μ_i, 1) with μ_i² = Σ_steps ‖its contribution‖²/noise² plus what counting and bins cost.
    **An assessment, not a guarantee, and itself about the data**: keep it with the data, never publish it.

    Attributes
    ----------
    mu, bound
        One number per record (or person), and what they are at most: the certificate's μ.
    labels
        The persons in the order of ``mu``, or None for records in the order of the rows.

    Examples
    --------
    See ``PrivateClassifier``.
    """

    mu: FloatArray
    bound: float
    labels: tuple[Any, ...] | None = None
    insecure: bool = field(default_factory=testing.insecure)

    def __len__(self) -> int:
        return int(self.mu.size)

    def tradeoff(self, index: int) -> Tradeoff:
        """Return the curve of one record (by position)."""
        place = integer("index", index, at_least=0)
        if place >= self.mu.size:
            raise InputError(f"index must be below the number of records {self.mu.size}, got {place}")
        note = "one record's own curve along the path of this fit: an assessment for the owner, not a guarantee"
        notes = testing.marked((note,), self.insecure)
        own = with_assumptions(tradeoff(GaussianDP(float(self.mu[place]))), notes=notes)
        return replace(own, holds_for="one record along the path of one fit")

    def advantage(self) -> FloatArray:
        """Return each record's membership advantage at prior ½: 2·Φ(μ/2) − 1, rounded up."""
        from scipy.special import erf

        return np.asarray(np.minimum(erf(self.mu / np.sqrt(8)) * (1 + 1e-14), 1.0))

    def most_exposed(self, k: int = 10) -> list[tuple[Any, float]]:
        """Return the ``k`` records (row number or person) with the largest advantage, the largest first."""
        order = np.argsort(-self.mu, kind="stable")[: integer("k", k, at_least=1)]
        advantage = self.advantage()
        return [(int(i) if self.labels is None else self.labels[i], float(advantage[i])) for i in order]
