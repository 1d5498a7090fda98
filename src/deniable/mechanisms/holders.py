"""Things that hold a mechanism: certificates, fitted models, released statistics, recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable._check import InputError
from deniable.mechanisms.core import ApproximateDP, Composition, GaussianDP, Mechanism

_HOLDERS = ("certificate_", "certificate", "private_run", "mechanism")  # attributes, the outermost first
Receipt = tuple[int, str, str]  # of an entry in a ledger: its number, the head of its chain, what was spent by then
_SAME = {"line of the file": "record"}


def held(release: Any) -> tuple[Mechanism | None, str | None]:
    """Return the mechanism that ``release`` is or holds, or None, and whom it hides, if it says so."""
    unit = None
    for name in _HOLDERS:
        if isinstance(release, Mechanism):
            break
        release = getattr(release, name, release)
        unit = getattr(release, "person", "") or getattr(release, "unit", unit)  # a column says more
    if isinstance(release, tuple) and len(release) == 2 and all(isinstance(one, int | float) for one in release):
        release = ApproximateDP(*release)
    if isinstance(release, GaussianDP):
        release = GaussianDP(release.mu)  # without what a subclass says besides
    unit = _SAME.get(unit, unit) if isinstance(unit, str) else None
    return (release if isinstance(release, Mechanism) else None), unit


def together(releases: Sequence[Any]) -> tuple[Mechanism, str | None]:
    """Return the composition of several releases about the same people, mechanisms or what holds one, and the unit.

    Raises ``InputError`` where one holds none, or where they hide different units.
    """
    found = [held(one) for one in releases]
    for release, (mechanism, _) in zip(releases, found, strict=True):
        if mechanism is None:
            raise InputError(
                f"{type(release).__name__} holds no mechanism: what protects a secret half is another game and never "
                "added; of other tools: dn.from_opacus, dn.from_dp_event, or (ε, δ)"
            )
    units = {unit for _, unit in found if unit is not None}
    if len(units) > 1:
        raise InputError(f"releases must hide the same unit to be added, got {' and '.join(sorted(units))}")
    return Composition([mechanism for mechanism, _ in found if mechanism is not None]), next(iter(units), None)


def fields_of(receipt: Receipt | None) -> dict[str, Any]:
    """Return what is published of an entry, as the fields of a certificate or a run; nothing without one."""
    return {} if receipt is None else {"entry": receipt[:2], "standing": receipt[2]}


def entered(entry: tuple[int, str] | None = None, standing: str = "") -> tuple[str, ...]:
    """Return the line that names an entry in a ledger and what was spent by then; nothing without one."""
    return () if entry is None else (f"entry {entry[0]} of a ledger, head of its chain {entry[1]}; {standing}",)
