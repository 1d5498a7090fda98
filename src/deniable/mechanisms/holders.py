"""Things that hold a mechanism: certificates, fitted models, released statistics, recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable._check import InputError
from deniable.mechanisms.core import ApproximateDP, Composition, Mechanism

_HOLDERS = ("certificate_", "certificate", "private_run", "mechanism")  # attributes, the outermost first
Receipt = tuple[int, str, str]  # of an entry in a ledger: its number, the head of its chain, what was spent by then


def held(release: Any) -> Mechanism | None:
    """Return the mechanism that ``release`` is or holds, with its notes and with whom it hides; None if there is none.

    What may not be used, such as a run of which a step was another one, raises its own error.
    """
    unit = None
    for name in _HOLDERS:
        if isinstance(release, Mechanism):
            break
        release = getattr(release, name, release)
        unit = getattr(release, "person", "") or getattr(release, "unit", None) or unit  # a column says more
    if isinstance(release, tuple) and len(release) == 2 and all(isinstance(one, int | float) for one in release):
        release = ApproximateDP(*release)
    if not isinstance(release, Mechanism):
        return None
    return release.with_notes(unit=unit if isinstance(unit, str) else None)


def together(releases: Sequence[Any]) -> Mechanism:
    """Return the composition of several releases about the same people, mechanisms or what holds one.

    Raises ``InputError`` where one holds none, or where they hide different units.
    """
    found = []
    for release in releases:
        if (mechanism := held(release)) is None:
            raise InputError(
                f"source must be or hold a mechanism, got {type(release).__name__}: what protects a secret half is "
                "another game and never added; of other tools: dn.from_opacus, dn.from_dp_event, or (ε, δ)"
            )
        found.append(mechanism)
    return Composition(found)


def fields_of(receipt: Receipt | None) -> dict[str, Any]:
    """Return what is published of an entry, as the fields of a certificate or a run; nothing without one."""
    return {} if receipt is None else {"entry": receipt[:2], "standing": receipt[2]}


def entered(entry: tuple[int, str] | None = None, standing: str = "") -> tuple[str, ...]:
    """Return the line that names an entry in a ledger and what was spent by then; nothing without one."""
    return () if entry is None else (f"entry {entry[0]} of a ledger, head of its chain {entry[1]}; {standing}",)
