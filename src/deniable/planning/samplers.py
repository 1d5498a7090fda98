"""Which way of drawing batches needs the least noise for a target: every sampler that is known, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from deniable._check import InputError, integer, interval
from deniable._progress import track
from deniable.accounting import tradeoff
from deniable.limits import Limit
from deniable.mechanisms import (
    Grouped,
    Mechanism,
    RandomAllocation,
    ShuffledBatches,
    SubsampledGaussian,
    TruncatedPoisson,
    WithoutReplacement,
)
from deniable.planning.calibration import AsTellingAs, as_limit, search

_TOLERANCE = 1e-5
ADJACENCIES = ("add-remove", "replace")


@dataclass(frozen=True)
class SamplerNoise:
    """What one way of drawing batches needs to meet the target.

    Attributes
    ----------
    sampler
        Its name.
    adjacency
        Whom the target protects: a record added or removed, or one replaced by another.
    mechanism
        The run with the noise that was found; with the most noise of the range if that is not enough.
    noise_multiplier
        Least noise multiplier in the range that meets the target, rounded up; ∞ if none does.
    limit_decides
        False if the whole range meets the target: less noise than its low end may be enough.
    leakage
        What the target limits, at this noise: an upper bound on every attack.
    advantage, attained
        Upper and lower bounds on the best attacker's advantage at even odds: far apart where no tight bound is known,
        so that less noise may be enough.

    Examples
    --------
    See ``plan_samplers``.
    """

    sampler: str
    adjacency: str
    mechanism: Mechanism
    noise_multiplier: float
    leakage: float
    advantage: float
    attained: float
    limit_decides: bool = True


@dataclass(frozen=True)
class SamplerPlan:
    """The noise that each way of drawing batches needs to meet one target, the least first.

    Attributes
    ----------
    limit
        What was asked for.
    rows
        One for each sampler and adjacency for which a bound is known.

    Examples
    --------
    See ``plan_samplers``.
    """

    limit: Limit | AsTellingAs
    rows: tuple[SamplerNoise, ...]


PROTECTS = {"add-remove": "added or removed", "replace": "replaced"}


def plan_samplers(
    n_records: int,
    batch_size: int,
    epochs: int = 1,
    *,
    records_per_person: int = 1,
    max_batch: int | None = None,
    noise_multipliers: tuple[float, float] = (0.01, 1e6),
    advantage: float | None = None,
    limit: Limit | Mechanism | None = None,
    progress: bool | None = None,
) -> SamplerPlan:
    """Return, for each way of drawing batches, the least DP-SGD noise that meets a target. Shuffle or Poisson?

    Every row promises what its ``adjacency`` says: rows of different adjacency answer different questions. Replacing
    a record is the only one for which all samplers have a bound. The target is met by the *upper* bound of each curve's
    sketch (``t.sketch()``), in about half the time of the curve itself: the noise is at most about 0.1 % more than
    :func:`deniable.calibrate` finds.

    Parameters
    ----------
    n_records, batch_size, epochs
        Of the run: ⌈n_records/batch_size⌉ batches an epoch. Poisson batches have this size on average.
    records_per_person
        Records that a person has: exact for Poisson sampling, a bound
        (:class:`~deniable.mechanisms.Grouped`) for all others.
    max_batch
        Where truncated Poisson batches are cut; by default six standard deviations above their mean.
    noise_multipliers
        Range (low, high) in which to look.
    advantage, limit
        What an attacker may reach, one of them, as for :func:`deniable.calibrate`.
    progress
        Whether to show a progress bar; None for only on a terminal.

    Returns
    -------
    SamplerPlan
        A row per sampler, least noise first; noise is in multiples of the clipping norm.

    Raises
    ------
    InputError
        If not exactly one limit is given, or a number is out of range.

    Examples
    --------
    >>> import deniable as dn
    >>> plan = dn.planning.plan_samplers(10_000, 100, advantage=0.1)
    >>> sorted((row.sampler, round(row.noise_multiplier, 2)) for row in plan.rows[:2])
    [('poisson', 0.66), ('truncated', 0.66)]
    """
    sought = as_limit(advantage, limit)
    person = integer("records_per_person", records_per_person, at_least=1)
    makers = _makers(n_records, batch_size, epochs, max_batch, person)
    low, high = interval("noise_multipliers", noise_multipliers, above=0.0)
    tasks = [(name, make, adjacency) for name, make in makers.items() for adjacency in _known_adjacencies(make(high))]
    rows: list[SamplerNoise] = []
    near: dict[str, float] = {}  # what another sampler needs is a first guess
    for name, make, adjacency in track(tasks, "samplers", len(tasks), shown=progress):
        rows.append(row := _row(sought, name, make, adjacency, (low, high), near.get(adjacency, 1.0)))
        if row.noise_multiplier < math.inf:
            near[adjacency] = row.noise_multiplier
    return SamplerPlan(sought, tuple(sorted(rows, key=lambda row: (row.adjacency, row.noise_multiplier))))


def _makers(
    n_records: int, batch_size: int, epochs: int, max_batch: int | None, person: int = 1
) -> dict[str, Callable[[float], Mechanism]]:
    """From a noise multiplier to the run, for each sampler."""
    n = integer("n_records", n_records, at_least=2)
    batch, passes = integer("batch_size", batch_size, at_least=1), integer("epochs", epochs, at_least=1)
    if batch > n:
        raise InputError(f"batch_size must be at most n_records, {n}, got {batch}")
    batches, rate = -(-n // batch), batch / n
    steps = batches * passes
    usual = min(math.ceil(batch + 6 * math.sqrt(batch * (1 - rate))), n)
    most = usual if max_batch is None else integer("max_batch", max_batch, at_least=1)
    exact: dict[str, Callable[[float], Mechanism]] = {
        "poisson": lambda noise: SubsampledGaussian(noise, rate, steps, person)
    }
    makers: dict[str, Callable[[float], Mechanism]] = {
        "truncated": lambda noise: TruncatedPoisson(noise, rate, steps, most, n),
        "allocation": lambda noise: RandomAllocation(noise, batches, passes),
        "without-replacement": lambda noise: WithoutReplacement(noise, batch, n, steps),
        "shuffled": lambda noise: ShuffledBatches(noise, batches, passes),
    }
    if rate == 1:  # every batch is all records, and none is cut
        del makers["truncated"]
    if person > 1:
        makers = {name: _for_persons(make, person) for name, make in makers.items()}
    return exact | makers


def _for_persons(make: Callable[[float], Mechanism], person: int) -> Callable[[float], Mechanism]:
    return lambda noise: Grouped(make(noise), person)


def _known_adjacencies(mechanism: Mechanism) -> tuple[str, ...]:
    """The adjacencies, of the two, for which a bound is known."""
    return ADJACENCIES if mechanism.adjacency == "add-remove" else ("replace",)


def _row(
    limit: Limit | AsTellingAs,
    name: str,
    make: Callable[[float], Mechanism],
    adjacency: str,
    ends: tuple[float, float],
    near: float,
) -> SamplerNoise:
    found = search(limit, make, ends, adjacency=adjacency, tolerance=_TOLERANCE, near=near, rough=True)
    enough = found.score <= 0
    noise, curve = found.parameter, found.curve
    if not enough and noise < ends[1]:
        noise, curve = ends[1], tradeoff(make(ends[1]), adjacency=adjacency)
    return SamplerNoise(
        sampler=name,
        adjacency=adjacency,
        mechanism=make(noise),
        noise_multiplier=noise if enough else math.inf,
        leakage=limit.leakage(curve),
        advantage=curve.advantage(),
        attained=curve.advantage(side="lower"),
        limit_decides=found.decided,
    )
