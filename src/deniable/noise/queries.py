"""Private queries: each is charged to a ledger, then answered with noise; nobody else draws noise on sums over records.

A query is a Gaussian release of sums, μ = (largest change that one unit makes, in standard deviations of noise). Their
squares add up (Dong, Roth & Su 2022, Corollary 3.3). Finding words in the data adds a probability of failure.

The sums are exact integers, so ``sums + round(N)`` equals ``round(sums + N)``: rounding is post-processing of the
Gaussian mechanism, floating point reveals nothing, and the guarantee is the one of exact Gaussian noise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from deniable import testing
from deniable._check import FloatArray, InputError, IntArray, integer
from deniable._floats import CACHE, MANY_ROUNDINGS
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism
from deniable.noise.rank_choice import (
    RankWeights as RankWeights,  # noqa: PLC0414  others plan with the law
    rank_choice,
)
from deniable.noise.rounding import LARGEST_SCALE, rounded_gaussian

HEAVIEST = 5040  # divisible by 1 … 10: a person's records share it in whole numbers
_ROUNDED = 1 + MANY_ROUNDINGS  # charged on every sum of μ²


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

    Examples
    --------
    See ``PrivateClassifier``.
    """

    name: str
    purpose: str
    mu: float
    delta: float = 0.0


@dataclass
class QueryBudget:
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


Channel = Callable[[IntArray], IntArray]  # returns sums plus fresh rounded Gaussian noise of fixed standard deviations


class NoiseSource(Protocol):
    """Opens channels; :class:`SumNoise` is the one that protects, others replay a transcript, for tests."""

    def channel(self, label: str, sd: FloatArray, times: int) -> Channel:
        """Open a channel for ``times`` questions whose answers get noise N(0, sd²), rounded, element by element."""
        ...


class SumNoise:
    """Rounded Gaussian noise from the operating system's entropy."""

    def channel(self, label: str, sd: FloatArray, times: int) -> Channel:
        """Open a channel; noise is drawn in blocks of many questions, which is quicker."""
        drawn = _noise(np.asarray(sd, dtype=np.float64), times)

        def answer(sums: IntArray) -> IntArray:
            if (noise := next(drawn, None)) is None:
                raise RuntimeError("this noise source has answered every question in its budget")
            return np.asarray(sums + noise)

        return answer

    def coins(self, label: str, n: int, chance: float) -> NDArray[np.bool_]:
        """Toss a coin for each of ``n`` units with the operating system's entropy, so that nobody can repeat them.

        A known seed tells who is where by position, and all others move when one record leaves.
        """
        rng = testing.generator()
        if rng is not None:
            return rng.random(n) < chance
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64) < chance * 2.0**64


def _noise(sd: FloatArray, times: int) -> Iterator[IntArray]:
    while times:
        block = min(times, max(1, CACHE // max(sd.size, 1)))
        yield from rounded_gaussian(sd, (block, *sd.shape))[::-1]
        times -= block


SHARED = (  # how cells are told apart: deniable.tables.persons
    "people who share a label count as one person: each has the bound of a replaced person, twice the μ at most; "
    "a record without a person weighs nothing"
)


@dataclass(frozen=True, eq=False)
class Units:
    """Who must be hidden: each record, or each person, whose records' whole-number weights sum to ≤ ``heaviest``."""

    unit: str = "record"
    weights: FloatArray | None = None
    heaviest: int = 1
    owners: IntArray | None = None
    labels: tuple[Any, ...] | None = None
    person: str = ""  # the column of the persons

    @property
    def whom(self) -> str:
        """Who is hidden, as a ledger names it: the column of the persons, or the unit."""
        return self.person or self.unit

    def only(self, fits: NDArray[np.bool_]) -> Units:
        """Return the units without the records that do not fit what is declared: these weigh nothing."""
        return replace(self, weights=np.where(fits, 1.0 if self.weights is None else self.weights, 0.0))

    def total(self, n_rows: int) -> int:
        """Return the sum of all weights."""
        return n_rows if self.weights is None else int(self.weights.sum())


def units_of(owners: Any, person: Any, records: int = 1, heaviest: int = HEAVIEST, declared: Any = None) -> Units:
    """Return weights with which each person's records count as one.

    A person with m records shares ``heaviest`` among k = max(m, ``records``) places, in whole numbers: each gets
    ⌊``heaviest`` / k⌋, and the first of them one more until nothing is left. So m ≥ ``records`` weigh ``heaviest``
    exactly, and any sum of contributions of norm ≤ 1 changes by at most as much as for one record (triangle
    inequality). A weight depends on her own records' number and order, on nobody else's; of more than ``heaviest`` the
    later ones weigh nothing. ``records`` above 1 lets records of persons with fewer count equally. A record without a
    person weighs nothing. ``declared`` is the schema of the column ``owners``, whose name is ``person``.
    """
    import pandas as pd

    from deniable.tables import persons_of  # needs pandas

    if str(person) in ("record", "line of the file"):
        raise InputError(f"persons must not stand in a column {person!r}, the name of another unit; rename it")
    records = integer("records_per_person", records, at_least=1)
    if records > heaviest:
        raise InputError(f"records_per_person must be at most {heaviest}, got {records}; say how many most have")
    index, labels = persons_of(owners, declared)
    places = np.maximum(np.bincount(index, minlength=1), records)[index]
    turn = pd.Series(index).groupby(index).cumcount().to_numpy()
    weights = np.where(index < len(labels), heaviest // places + (turn < heaviest % places), 0)
    return Units("person", weights.astype(np.float64), heaviest, index, labels, str(person))


@dataclass(frozen=True)
class Paid:
    """What has been charged for: the only way to a channel. Whoever opens one shows that its noise covers ``mu``."""

    mu: float
    source: NoiseSource

    def channel(self, label: str, sd: FloatArray, times: int = 1) -> Channel:
        """Open a channel for ``times`` questions; refused where the noise would be larger than can be drawn."""
        if not np.max(sd, initial=0.0) <= LARGEST_SCALE:
            raise InputError(f"the target leaves too little for {label}: raise it or ask for less")
        return self.source.channel(label, sd, times)


@dataclass
class Queries:
    """The way from records to numbers: a query is charged to the ledger, then answered with noise."""

    ledger: QueryBudget
    source: NoiseSource = field(default_factory=SumNoise)
    units: Units = Units()
    notes: dict[str, str] = field(default_factory=dict)  # on ranges that were released, by what they are called

    def pay(self, name: str, purpose: str, mu: float, delta: float = 0.0) -> Paid:
        """Charge a query and return what answers it; refused if the budget does not cover it."""
        self.ledger.spend(name, purpose, mu, delta)
        return Paid(mu, self.source)

    def count(self, n_rows: int, mu: float, purpose: str) -> float:
        """Return a noisy number of units (records, or persons by their weights), at least 1."""
        sd = np.array([self.units.heaviest / mu])
        noised = self.pay("count", purpose, mu).channel("count", sd)(np.array([self.units.total(n_rows)]))
        return max(float(noised[0]) / self.units.heaviest, 1.0)

    def histogram(self, name: str, purpose: str, mu: float, rows: Any, cells: IntArray, size: int) -> FloatArray:
        """Return noisy counts of ``rows`` in cells, noise 1/``mu``: each is in one, so a person moves them by 1."""
        weights = None if self.units.weights is None else self.units.weights[rows]
        counts = np.bincount(cells, weights, minlength=size).astype(np.int64)
        channel = self.pay(name, purpose, mu).channel(name, np.full(size, self.units.heaviest / mu))
        return channel(counts) / self.units.heaviest

    def words(self, name: Any, values: Iterable[Any], mu: float, delta: float) -> dict[str, float]:
        """Return the texts whose noisy count passes a threshold, with it: a text of one unit alone does with chance δ.

        A text that others hold too is a Gaussian release of one count. One that nobody else holds changes the output
        only if it passes: its count is at most ``heaviest``, so the noise must exceed threshold − ``heaviest``. The δ
        is shared by the texts that one person may hold, at most ``heaviest`` since rows without weight bring none, and
        a millionth of the standard deviation is added for the error of the normal quantile. None is no text.
        """
        heaviest, weights = self.units.heaviest, self.units.weights
        label = f"categories of {name}"
        paid = self.pay(label, "which texts of a column are frequent", mu, delta)
        sd = heaviest / mu
        threshold = math.ceil(heaviest + sd * (1e-6 - float(ndtri(delta / heaviest))))
        counted: dict[str, int] = {}
        for row, word in enumerate(values):
            weight = 1 if weights is None else int(weights[row])
            if word not in (None, "(other)") and weight:  # which is what all texts that are not found are called
                counted[word] = counted.get(word, 0) + weight
        words, counts = sorted(counted), np.array([counted[word] for word in sorted(counted)], dtype=np.int64)
        noised = paid.channel(label, np.full(len(words), sd))(counts)
        found = zip(words, noised.tolist(), strict=True)
        return {word: count / heaviest for word, count in found if count > threshold}

    def quantiles(
        self,
        name: str,
        purpose: str,
        groups: Sequence[IntArray],
        ends: tuple[int, int],
        draws: Sequence[tuple[RankWeights, Sequence[int]]],
    ) -> list[list[int]]:
        """Return for each draw (its law; ranks away from the quantile, a public number a group) points of all groups.

        A group holds sorted whole numbers, one a record; a record is in one group, so all of them cost what one does.
        """
        self.pay(name, purpose, math.hypot(*(law.mu for law, _ in draws)) * (1 + MANY_ROUNDINGS / 4))
        return [
            [rank_choice(ordered, *ends, law, shift) for ordered, shift in zip(groups, shifts, strict=True)]
            for law, shifts in draws
        ]
