"""An entry of a ledger, and what a check of all entries found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from deniable.mechanisms import Mechanism, from_plain, to_plain


@dataclass(frozen=True)
class Entry:
    """One release: what it is called, when it was entered, what ran.

    Attributes
    ----------
    number, time
        Its place, from 1; the clock's time in UTC, which may have been set wrong.
    name, purpose, source
        As their owner writes them.
    mechanism
        What ran; None for a release that protects a secret half of the records.
    apart
        "" or the game of a release that does not add up with others.
    head
        The chain's digest up to this entry.
    """

    number: int
    time: str
    name: str
    purpose: str
    source: str
    mechanism: Mechanism | None
    apart: str = ""
    head: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python types."""
        return asdict(replace(self, mechanism=None)) | {
            "mechanism": None if self.mechanism is None else to_plain(self.mechanism)
        }


@dataclass(frozen=True)
class LedgerCheck:
    """What :meth:`Ledger.verify` found: ``faults`` is empty where nothing is wrong.

    A tail that was cut off, and a chain that was computed anew, cannot be seen from the file alone: compare ``head``
    with the one on a published page or certificate.
    """

    faults: tuple[str, ...]
    entries: int
    head: str

    @property
    def holds(self) -> bool:
        """Whether no fault was found."""
        return not self.faults


def content_of(entry: Entry) -> str:
    """Return what the file holds of an entry, besides the head."""
    kept = {name: value for name, value in entry.to_dict().items() if name != "head"}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False, allow_nan=False)


def entry_of(number: int, content: str, head: str) -> Entry:
    """Return the entry of a row of the file."""
    said = json.loads(content)
    mechanism = None if said["mechanism"] is None else from_plain(said["mechanism"])
    return Entry(**(said | {"mechanism": mechanism}), head=head)
