"""The ledger: what each query costs, counted before it is answered; and the same for each record of a descent.

A query is a Gaussian release of sums, μ = (largest change that one unit makes, in standard deviations of noise). Their
squares add up (Dong, Roth & Su 2022, Corollary 3.3). Finding words in the data adds a probability of failure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import MANY_ROUNDINGS
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism

_ROUNDED = 1 + MANY_ROUNDINGS  # charged on every sum of μ²
_SAFE = 1 - MANY_ROUNDINGS  # of a record's budget: more than the rounding of its sum of squares


@dataclass(frozen=True)
class Use:
    """One query to the data.

    Attributes
    ----------
    name, purpose
        What was asked, and what for.
    mu
        Gaussian DP parameter of this query, for adding or removing one record or person.
    delta
        Probability that this query reveals a record's presence (finding categories only).
    """

    name: str
    purpose: str
    mu: float
    delta: float = 0.0


@dataclass
class Ledger:
    """Collects the uses of one budget and refuses to pass it.

    What a query costs may depend on what earlier ones released (whether bins are worth a second query, for example). A
    budget fixed beforehand that no path can pass, each cost counted before its use, is a valid filter for Gaussian DP
    (Koskela, Tobaben & Honkela, arXiv:2209.15596). The sum along one path is not a bound by itself: the budget is what
    a certificate states.
    """

    mu: float
    delta: float = 0.0
    uses: list[Use] = field(default_factory=list)
    kept: float = 0.0  # μ that is reserved for later queries

    def spend(self, name: str, purpose: str, mu: float, delta: float = 0.0) -> None:
        """Record one use, before it happens."""
        uses = [*self.uses, Use(name, purpose, mu, delta)]
        if not (total_mu(uses) <= self.mu and total_delta(uses) <= self.delta):
            raise InputError(f"the budget μ = {self.mu:g}, δ = {self.delta:g} does not cover {name}")
        self.uses = uses

    @property
    def left(self) -> float:
        """The largest μ that can still be spent, rounded down, excluding the reserve for later queries."""
        spent = math.fsum((self.kept**2, *(use.mu**2 for use in self.uses)))
        return math.sqrt(max(self.mu**2 / _ROUNDED**2 - spent, 0.0)) / _ROUNDED

    def parts(self, *shares: float) -> tuple[float, ...]:
        """Return the μ of ``shares`` of μ², made smaller in proportion so that they cost at most half of what is left.

        Queries to columns take more where records are few and where values lie close together, so that fixed shares
        might not fit.
        """
        fits = min(1.0, self.left**2 / self.mu**2 / (2 * math.fsum(shares)))
        return tuple(self.mu * math.sqrt(share * fits) for share in shares)

    def mechanism(self) -> Mechanism:
        """Return the budget, which no path can exceed."""
        gaussian = GaussianDP(self.mu)
        return Composition((gaussian, ApproximateDP(0.0, self.delta))) if self.delta > 0 else gaussian


def total_mu(uses: Sequence[Use]) -> float:
    """Return √Σμ², rounded up."""
    return math.sqrt(math.fsum(use.mu**2 for use in uses) * _ROUNDED)


def total_delta(uses: Sequence[Use]) -> float:
    """Return Σδ, rounded up: at least 1 − Π(1 − δ)."""
    return math.fsum(use.delta for use in uses) * (1 + MANY_ROUNDINGS / 32) if any(use.delta for use in uses) else 0.0


class RecordLedger:
    """Adds up each record's squared contribution in units of the noise; with a budget, no record passes it.

    **The individual filter** (Feldman & Zrnic, arXiv:2008.11193; for Gaussian DP: Koskela, Tobaben & Honkela,
    arXiv:2209.15596). A step's contribution d_t of a record is a function of the record and of what was released
    before. It is added up before it is used, and from the first step on that would take Σ‖d_t‖² past B² the record
    contributes nothing. Then the whole descent is B-GDP for adding or removing any record, however many steps
    there are:

    *Proof.* Fix two data sets that differ by the record. Given the same released history all other records
    contribute the same, whether they have left or not, because their own filters see themselves and the history only;
    so the released sums differ by d_t, known from the history, in noise of standard deviation 1. Σ‖d_t‖² ≤ B² on
    every path. Let one more release with a shift of √(B² − Σ‖d_t‖²) follow: seeing it can only help an attacker, and
    now Σ‖d_t‖² = B² on every path. Without the record the log-likelihood ratio of the longer history is
    Σ⟨d_t, ξ_t⟩ − B²/2, ξ_t independent standard normal vectors, d_t known before ξ_t is drawn. E[exp(iθ⟨d_t, ξ_t⟩ +
    θ²‖d_t‖²/2) | history] = 1, so the product over t has expectation 1, and since its second factor is the constant
    exp(θ²B²/2), E exp(iθ Σ⟨d_t, ξ_t⟩) = exp(−θ²B²/2): the sum is N(0, B²) exactly. With the record likewise with
    mean + B²/2. These are the ratios of N(0, 1) against N(B, 1). ∎

    For persons (``heaviest`` whole-number parts of weight, shared by their records) each record gets B/heaviest per
    part: by Minkowski's inequality a person's √Σ‖Σ_j w_j d_jt‖² is at most Σ_j w_j·B/heaviest ≤ B.

    Parameters
    ----------
    row_norms
        Each record's Σ (basis entry / noise)² over the coordinates, for a residual of 1.
    lattice
        Factor on the residuals before they are summed.
    budget
        B, for a unit with its whole weight; None: nobody leaves, exposures are only added up.
    heaviest
        Largest sum of the weights of a unit's records.
    """

    def __init__(self, row_norms: FloatArray, lattice: float, budget: float | None = None, heaviest: int = 1) -> None:
        self._row = row_norms * lattice**2
        self._limit = np.inf if budget is None else (budget / heaviest) ** 2 * _SAFE
        self._left = np.zeros(row_norms.size, dtype=bool)
        self.squares = np.zeros(row_norms.size)

    def admit(self, rows: slice, residuals: list[FloatArray]) -> list[FloatArray]:
        """Return what these records may contribute to the next sum, and add it up before it is used."""
        squares = residuals[0] * residuals[0]
        for r in residuals[1:]:
            squares += r * r
        squares *= self._row[rows]
        squares += self.squares[rows]
        if np.isinf(self._limit):
            self.squares[rows] = squares
            return residuals
        left = self._left[rows]
        left |= ~(squares <= self._limit)
        np.copyto(self.squares[rows], squares, where=~left)
        return [np.where(left, 0.0, r) for r in residuals]

    @property
    def gone(self) -> int:
        """Number of records that have left: about the data, never published."""
        return int(self._left.sum())
