"""What a release adds to a ledger, and whether a limit leaves room for it: see :mod:`deniable.ledger.account`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deniable._check import InputError
from deniable._floats import EPS
from deniable.accounting import tradeoff
from deniable.curves import GaussianTradeoff
from deniable.ledger.file import LedgerError
from deniable.mechanisms import (
    ApproximateDP,
    Composition,
    GaussianDP,
    Mechanism,
    PureDP,
    SubsampledGaussian,
    held,
    parts_of,
    to_plain,
)

if TYPE_CHECKING:
    from deniable.ledger.entry import Entry


ROOM = 1e-11  # of sums against what was fixed, as of GaussianFilter: the promise includes it


def described(release: Any) -> tuple[Mechanism | None, str | None, str]:
    """Return what ran, whom it hides if it says so, and "" or the game of what does not add up.

    Raises ``LedgerError`` for something without a mechanism.
    """
    half = getattr(release, "certificate", release)
    if hasattr(half, "sampler") and hasattr(half, "n_train"):  # a HalfCertificate
        return None, None, half.tradeoff.assumptions.game
    found, unit = held(release)
    return (_foreign(release) if found is None else found), unit, ""


def _foreign(release: Any) -> Mechanism:
    from deniable.integrations import from_dp_event, from_opacus

    read = from_dp_event if type(release).__name__.endswith(("DpEvent", "ExecutionPlanConfig")) else from_opacus
    try:
        return read(release)
    except (InputError, TypeError, AttributeError):
        raise LedgerError(
            f"an entry needs a mechanism: a deniable mechanism, certificate, fitted model or release, an Opacus "
            f"accountant, a DpEvent, or (ε, δ); got {type(release).__name__}"
        ) from None


def mechanisms_of(entries: Sequence[Entry]) -> list[Mechanism]:
    """Return what ran in those entries that add up."""
    return [entry.mechanism for entry in entries if entry.mechanism is not None]


def uses(mechanisms: Sequence[Mechanism]) -> tuple[float, float, list[Mechanism]]:
    """Σμ² of all Gaussian parts, Σδ of all failures, both rounded up, and the other parts."""
    squares, failures, others = [0.0], [0.0], []
    for part in (part for one in mechanisms for part in parts_of(one)):
        if isinstance(part, ApproximateDP) and part.epsilon == 0:
            failures.append(part.delta)
        elif (mu := _gaussian(part)) is not None:
            squares.append(mu**2 * (1 + 8 * EPS))
        else:
            others.append(part)
    return math.fsum(squares), math.fsum(failures), others


def _gaussian(part: Mechanism) -> float | None:
    """μ of a part whose curve is Gaussian."""
    if not isinstance(part, GaussianDP) and getattr(part, "sample_rate", 0.0) < 1:
        return None
    curve = tradeoff(part)
    return curve.mu if isinstance(curve, GaussianTradeoff) else None


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


def reserved(reserve: Mechanism | None) -> tuple[float, list[Mechanism]]:
    """Σδ of the failures that were reserved, and the other parts of the reserve."""
    _, failures, others = uses([] if reserve is None else [reserve])
    return failures, others


def take(part: Mechanism, kept: list[Mechanism]) -> None:
    """Use up what was reserved for ``part``; steps that are left stay reserved."""
    for index, one in enumerate(kept):
        if isinstance(part, SubsampledGaussian) and isinstance(one, SubsampledGaussian):
            covers = one.noise_multiplier <= part.noise_multiplier and one.sample_rate >= part.sample_rate
            if covers and one.records_per_person == part.records_per_person and one.steps >= part.steps:
                left = one.steps - part.steps
                kept[index : index + 1] = [replace(one, steps=left)] if left else []
                return
        elif to_plain(one) == to_plain(part):
            del kept[index]
            return
    raise LedgerError(
        f"{part!r} is not Gaussian and was not reserved when the ledger was made (reserve=); what is left of the "
        f"reserve: {', '.join(map(repr, kept)) or 'nothing'}. Do not make this release"
    )


def composed(mechanisms: Sequence[Mechanism]) -> Mechanism:
    """Return all together; what is Gaussian, and steps that are alike, as one part."""
    squares, failures, others = uses(mechanisms)
    alike: dict[Mechanism, int] = {}
    parts: list[Mechanism] = []
    for part in others:
        if isinstance(part, SubsampledGaussian):
            one = replace(part, steps=1)
            alike[one] = alike.get(one, 0) + part.steps
        else:
            parts.append(part)
    parts += [replace(one, steps=steps) for one, steps in alike.items() if isinstance(one, SubsampledGaussian)]
    gaussian = [GaussianDP(math.sqrt(squares) * (1 + EPS))] if squares or not (parts or failures) else []
    failed = [ApproximateDP(0.0, min(failures * (1 + EPS), 1.0))] if failures else []
    every = [*gaussian, *failed, *parts]
    return every[0] if len(every) == 1 else Composition(every)


def beside(mu: float, reserve: Mechanism | None) -> Mechanism:
    """Return all that a ledger with a limit will ever admit, with the room of sums that are rounded."""
    failures = reserved(reserve)[0] * ROOM
    kept = [] if reserve is None else [reserve]
    return Composition([GaussianDP(mu * (1 + ROOM)), *kept, *[ApproximateDP(0.0, failures)] * (failures > 0)])
