"""What a release adds to a ledger, and whether a limit leaves room for it: see :mod:`deniable.ledger.account`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from deniable._check import InputError
from deniable._floats import EPS, ROOM
from deniable._shown import shown
from deniable.ledger.file import LedgerError
from deniable.limits import Limit
from deniable.mechanisms import (
    ApproximateDP,
    Composition,
    GaussianDP,
    Grouped,
    Mechanism,
    PureDP,
    SubsampledGaussian,
    held,
    parts_of,
)
from deniable.planning import budget, squared_mu


def described(release: Any) -> tuple[Mechanism | None, str]:
    """Return what ran, with whom it hides if it says so, and "" or the game of what does not add up.

    Raises ``LedgerError`` for something without a mechanism.
    """
    half = getattr(release, "certificate", release)
    if hasattr(half, "sampler") and hasattr(half, "n_train"):  # a HalfCertificate
        return None, half.tradeoff.assumptions.game
    if (found := held(release)) is not None:
        return found, ""
    from deniable.integrations import from_dp_event, from_opacus

    read = from_dp_event if type(release).__name__.endswith(("DpEvent", "ExecutionPlanConfig")) else from_opacus
    try:
        return read(release), ""
    except (InputError, TypeError, AttributeError):
        raise LedgerError(
            f"an entry needs a mechanism: a deniable mechanism, certificate, fitted model or release, an Opacus "
            f"accountant, a DpEvent, or (ε, δ); got {type(release).__name__}"
        ) from None


def adds_up(mechanism: Mechanism) -> bool:
    """Whether its curve holds for adding or removing, as all that a ledger adds up."""
    return "add-remove" in (mechanism.adjacency, *mechanism.also)


def hidden_by(unit: Any) -> str:
    """Return whom a release or a ledger says that it hides; refuses what is nearly "record", and no column either."""
    text = unit.strip() if isinstance(unit, str) else ""
    near = get_close_matches(text.casefold().rstrip("s"), ("record", "row", "line", "line of the file"), 1, 0.9)
    if not text or (near and unit != "record"):
        way = ": write 'record'" * bool(near)
        raise LedgerError(f"unit must be 'record' or the name of the column of persons, got {unit!r}{way}")
    return text


def for_unit(unit: str, mechanism: Mechanism, said: str | None, records: int | None) -> Mechanism:
    """Return the mechanism for a ledger of this unit, with its notes.

    The mechanism may say itself whom it hides ("person" where it does not say by which column); ``said`` is whom its
    owner says, ``records`` how many of them a person has. Refused where they contradict each other or the ledger.
    """
    hidden = mechanism.unit
    if said == "line of the file":
        mechanism, said = mechanism.with_notes(unit=said), "record"
    said = None if said is None else hidden_by(said)
    if None not in (hidden, said) and hidden != said and (hidden != "person" or said == "record"):
        raise LedgerError(f"unit must be what the release hides, {hidden!r}, got {said!r}")
    nameless = hidden == "person" and said is None
    hidden = said or hidden
    if records is not None and (unit == "record" or hidden not in (None, "record")):
        raise LedgerError(
            f"records_per_person converts a release that hides records for a ledger of persons; the ledger is of "
            f"{unit!r}, the release hides {hidden or 'records'!r}: leave out what does not hold"
        )
    Composition([mechanism])  # refuses what could be added to nothing
    if not adds_up(mechanism):
        raise LedgerError(f"a ledger adds up what holds for adding or removing, got adjacency {mechanism.adjacency!r}")
    if records is not None:
        count = Grouped(mechanism, records).records_per_person  # refused if it is none, or too many
        parts = [of_person(part, count) for part in parts_of(mechanism)]
        return (Composition(parts) if len(parts) > 1 else parts[0]).with_notes(mechanism.notes, unit)
    if unit == "record" and hidden not in (None, "record"):
        raise LedgerError(f"the ledger is of records, and the release hides {hidden!r}: enter it in one of persons")
    if nameless or unit not in ("record", hidden):
        whom = "persons, nobody says by which column" if nameless else hidden or "nobody says whom"
        own, many = f"unit={unit!r} if it hides whole persons of {unit!r}", "records_per_person=k if one has at most k"
        ways = {None: f"give {own}, or {many} records", "": f"give {own}", "record": f"give {many}"}
        way = ways.get("" if nameless else hidden, f"enter it in a ledger of {hidden!r}")
        raise LedgerError(f"the ledger is of persons ({unit!r}), and the release hides {whom}: {way}")
    return mechanism.with_notes(unit=unit)


def uses(every: Mechanism) -> tuple[float, float, list[Mechanism]]:
    """Σμ² of all Gaussian parts, Σδ of all failures, both rounded up, and the other parts."""
    squares, failures, others = [0.0], [0.0], []
    for part in parts_of(every):
        if isinstance(part, ApproximateDP) and part.epsilon == 0:
            failures.append(part.delta)
        elif (squared := squared_mu(part)) is not None:
            squares.append(squared * (1 + 16 * EPS))
        else:
            others.append(part)
    return math.fsum(squares), math.fsum(failures), others


def of_person(part: Mechanism, k: int) -> Mechanism:
    """Return the part for k records at once: k steps of group privacy (Dong, Roth & Su 2022, Theorem 2.14)."""
    up = 1 + 8 * EPS
    match part:
        case GaussianDP(mu):
            return GaussianDP(k * mu * up)
        case SubsampledGaussian(records_per_person=1):
            return replace(part, records_per_person=k)
        case PureDP(epsilon):
            return PureDP(k * epsilon * up)
        case ApproximateDP(epsilon, delta):
            grown = (k - 1) * epsilon
            lost = k * delta * math.exp(grown) * up if grown < 700 else float(delta > 0)  # 700: below overflow
            return ApproximateDP(k * epsilon * up, min(lost, 1.0))
    raise LedgerError(f"{part!r} cannot be entered for persons of {k} records: make it hide persons")


@dataclass(frozen=True)
class Remainder:
    """What a ledger with a limit has left for later releases: of ``whole`` the μ, and parts of the reserve."""

    mu: float
    whole: float
    failure: float
    reserve: tuple[Mechanism, ...]

    def releases(self, limit: Limit) -> int:
        """Return how many Gaussian releases fit that each keep a limit."""
        return math.floor(self.mu**2 / budget(limit).mu ** 2 * (1 + ROOM / 2))


def remainder(promise: Mechanism, every: Mechanism, limit: str) -> Remainder:
    """Return what all releases leave of what was promised; raises ``LedgerError`` if they take more."""
    squares, failures, others = uses(every)
    whole, allowed, kept = uses(promise)
    whole /= (1 + ROOM) ** 2
    if not squares <= whole * (1 + ROOM):
        at, needed = shown(math.sqrt(whole), "number", "lower"), shown(math.sqrt(squares), "number", "upper")
        raise LedgerError(
            f"the ledger's limit ({limit}) is reached at μ = {at}, and all would have {needed}: what is left is too "
            "little for this release, do not make it"
        )
    if not failures <= allowed:
        at, needed = shown(allowed, "number", "lower"), shown(failures, "number", "upper")
        raise LedgerError(
            f"the failure probabilities would sum to {needed}, and {at} was reserved when the ledger was made "
            "(--reserve 'dpsgd,4,0.01,1000 + epsilon,0,1e-5' holds 1e-5 besides a run); declare classes and "
            "categories, so that none has to be found"
        )
    for part in others:
        take(part, kept)
    return Remainder(math.sqrt(max(whole - squares, 0.0)), math.sqrt(whole), allowed - failures, tuple(kept))


def take(part: Mechanism, kept: list[Mechanism]) -> None:
    """Use up what was reserved for ``part``; steps that are left stay reserved."""
    for index, one in enumerate(kept):
        if isinstance(part, SubsampledGaussian) and isinstance(one, SubsampledGaussian):
            covers = one.noise_multiplier <= part.noise_multiplier and one.sample_rate >= part.sample_rate
            if covers and one.records_per_person == part.records_per_person and one.steps >= part.steps:
                left = one.steps - part.steps
                kept[index : index + 1] = [replace(one, steps=left)] if left else []
                return
        elif one == part:
            del kept[index]
            return
    raise LedgerError(
        f"{part!r} is not Gaussian and was not reserved when the ledger was made (reserve=); what is left of the "
        f"reserve: {', '.join(map(repr, kept)) or 'nothing'}. Do not make this release"
    )


def beside(mu: float, reserve: Mechanism) -> Mechanism:
    """Return all that a ledger with a limit will ever admit, with the room of sums that are rounded."""
    failures = uses(reserve)[1] * ROOM
    return Composition([GaussianDP(mu * (1 + ROOM)), reserve, *[ApproximateDP(0.0, failures)] * (failures > 0)])
