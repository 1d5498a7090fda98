"""The certificate of a fit: what it guarantees, and what each query took of the budget; the exposure of each record.

The exposures are for the owner of the data and never part of a model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deniable import testing
from deniable._check import FloatArray, InputError, integer
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff, with_assumptions
from deniable.mechanisms import ApproximateDP, GaussianDP, Mechanism
from deniable.mechanisms.core import parts_of
from deniable.noise.certificate import AS_GIVEN
from deniable.noise.queries import SHARED, Use


@dataclass(frozen=True)
class FitCertificate:
    """What a fit guarantees and what its budget was spent on; ``print`` shows both in words.

    Attributes
    ----------
    target
        The target in words.
    unit
        "record", "person" or "line of the file": whose presence is hidden.
    uses
        Every query of the data.
    public
        What was taken as known to everybody: it is *not* protected.
    mechanism
        The composition of all uses, for adding or removing one unit.
    insecure
        Whether the noise was that of a test (:mod:`deniable.testing`): then nothing is promised.
    """

    target: str
    unit: str
    uses: tuple[Use, ...]
    public: tuple[str, ...]
    mechanism: Mechanism
    insecure: bool = field(default_factory=testing.insecure)

    @property
    def mu(self) -> float:
        """Gaussian DP parameter of all uses together."""
        return next(part.mu for part in parts_of(self.mechanism) if isinstance(part, GaussianDP))

    @property
    def delta(self) -> float:
        """Probability of failure of all uses together."""
        return next((part.delta for part in parts_of(self.mechanism) if isinstance(part, ApproximateDP)), 0.0)

    def shares(self) -> dict[str, float]:
        """Return each use's share of μ²."""
        whole = math.fsum(use.mu**2 for use in self.uses)
        return {use.name: use.mu**2 / whole for use in self.uses}

    def __str__(self) -> str:
        shares: dict[str, float] = {}
        named: dict[str, list[str]] = {}
        for use in self.uses:  # one line per purpose: forty columns are forty looks of one kind
            shares[use.purpose] = shares.get(use.purpose, 0.0) + self.shares()[use.name]
            named.setdefault(use.purpose, []).append(use.name)
        delta = f", and with probability at most {self.delta:.3g} no protection (discovered categories)" * bool(
            self.delta
        )
        lines = [
            f"Target: {self.target}.",
            f"The fitted model hides whether any one {self.unit} was in the data: telling it is no easier than telling "
            f"N(0, 1) from N({self.mu:.6g}, 1){delta}.",
            *[f"{SHARED.capitalize()}."] * (self.unit == "person"),
            f"Every query of the data, with its share of the budget (μ² = {self.mu**2:.6g}):",
            *(f"  {share:7.2%}  {purpose} ({_listed(named[purpose])})" for purpose, share in shares.items()),
            "Taken as public, not protected:",
            *(f"  {line}" for line in self.public),
            f"Covers {AS_GIVEN}.",
        ]
        return "\n".join(testing.marked(tuple(lines), self.insecure))

    def _repr_html_(self) -> str:
        from deniable._notebook import panel

        first, promise, *rest = str(self).splitlines()
        return panel("Certificate of a fit", [], rest, headline=f"{first} {promise}")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} queries, from {names[0]!r} to {names[-1]!r}"


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
