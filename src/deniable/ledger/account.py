"""One account for everything that is released about the same people: entries first, noise afterwards.

The file is SQLite and holds no data: names, times, mechanisms, and a chain of digests of its own entries. An entry is
on disk before any noise is drawn, so a crash may waste budget and never loses an entry.

With a limit it is a privacy filter (Smith & Thakurta 2022, arXiv:2210.17520; Koskela, Tobaben & Honkela 2022,
arXiv:2209.15596). *Proof.* Let R be the reserve, fixed when the ledger is made, and μ* what is left beside it. Each
entry is, given everything before it, μ_i-Gaussian DP, a part of R, or fails with probability δ_i; Σμ_i² ≤ μ*² and
Σδ_i ≤ δ* always, and parts of R are used up once. Whoever is given the pair of R and a Brownian motion up to time μ*²,
without drift or with drift 1, can play all entries in turn, with the increment of length μ_i² for the i-th: its kernel
is post-processing, whatever it was chosen from. So the whole is no easier to attack than GDP(μ*) composed with R. ∎
Fewer steps than reserved, more noise (add noise) and a smaller sampling rate (redraw without the record) are
post-processing of what was reserved.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deniable._check import integer
from deniable._files import to_json, write_atomically
from deniable._shown import shown
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff, of_persons, with_assumptions
from deniable.ledger.admission import ROOM, beside, composed, described, mechanisms_of, of_person, reserved, take, uses
from deniable.ledger.entry import Entry, LedgerCheck, content_of, entry_of
from deniable.ledger.file import LedgerError, about, create, first_head, next_head, opened
from deniable.limits import Limit
from deniable.mechanisms import (
    ApproximateDP,
    Composition,
    Mechanism,
    from_plain,
    parts_of,
    to_plain,
)
from deniable.planning import budget, search

_LARGEST = 60.0  # μ that hides nothing
_MOST_RECORDS = 1000  # of a person, as of DP-SGD
_DEFAULT_FAILURE = 1e-5  # δ* of a ledger with a limit: ten fits that find categories
ODOMETER = "no limit was fixed beforehand: the sum holds if no release was planned by looking at an earlier one"


class Ledger:
    """One file that adds up everything that is released about the same people.

    Guarantee: with ``limit``, everything that was admitted together keeps the limit, whatever was chosen from earlier
    releases. Without one :meth:`tradeoff` is the sum of what was entered: it holds for releases whose parameters were
    fixed beforehand. Two ledgers about the same people know nothing of each other.

    Parameters
    ----------
    path
        The file; it is made if there is none. A file that is there keeps what it was made with.
    unit
        "record", or the name of the column of persons: whose presence each entry hides.
    limit
        What an attacker may reach from everything together: a :class:`deniable.Limit`.
    reserve
        With ``limit``: a mechanism that holds what may be released besides Gaussian noise, part by part (DP-SGD, (ε, δ)
        of other tools, Laplace noise), each of which can be used once; ``ApproximateDP(0, δ)`` is the sum of all
        failure probabilities. If not given, 1e-5 of these.

    Raises
    ------
    LedgerError
        For a file that is no ledger, one made with another unit or limit, and a limit that no entry could keep.

    Examples
    --------
    >>> import tempfile, deniable as dn
    >>> folder = tempfile.mkdtemp()
    >>> ledger = dn.Ledger(f"{folder}/people.ledger", limit=dn.Limit(advantage=0.2))
    >>> ledger.add(dn.GaussianDP(0.25), name="survey").number
    1
    >>> ledger.remaining(advantage=0.1)
    3
    >>> ledger.verify().holds
    True
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        unit: str | None = None,
        limit: Limit | None = None,
        reserve: Mechanism | None = None,
    ) -> None:
        self.path = Path(path)
        self.labels: dict[str, str] = {}  # the words of the next entries
        if not self.path.exists():
            create(self.path, _new_about(unit, limit, reserve))
        with opened(self.path) as file:
            made = about(file)
            self.unit: str = made["unit"]
            self.limit = None if made["limit"] is None else Limit(**made["limit"])
            self.reserve = None if made["reserve"] is None else from_plain(made["reserve"])
            self._most = float(made["mu"] or 0)
            self._born = first_head(made)
        for name, asked, kept in (("unit", unit, self.unit), ("limit", limit, self.limit)):
            if asked is not None and asked != kept:
                raise LedgerError(
                    f"{name} of {str(path)!r} is {kept!r} and cannot be changed, got {asked!r}; leave it out"
                )
        if reserve is not None and (self.reserve is None or to_plain(reserve) != to_plain(self.reserve)):
            raise LedgerError(f"reserve of {str(path)!r} is {self.reserve!r} and cannot be changed; leave it out")

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, unit={self.unit!r}, limit={self.limit!r})"

    def named(self, name: str, purpose: str = "", source: str = "") -> Ledger:
        """Return this ledger with the words of the next entries, as ``ledger=l.named("churn model")`` of a fit."""
        other = Ledger(self.path)
        other.labels = {"name": name, "purpose": purpose, "source": source}
        return other

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, the first first."""
        with self._file() as file:
            return tuple(entry_of(*row) for row in file.execute("SELECT * FROM entries ORDER BY number"))

    @property
    def head(self) -> str:
        """The chain's digest: of the last entry, or of the empty ledger."""
        with self._file() as file:
            return _head(file)

    def add(
        self,
        release: Any,
        *,
        name: str = "",
        purpose: str = "",
        source: str = "",
        unit: str | None = None,
        records_per_person: int | None = None,
    ) -> Entry:
        """Enter a release **before** it is made, or one that was made elsewhere; return the entry once it is on disk.

        Parameters
        ----------
        release
            Anything with a mechanism: a mechanism, a certificate, a fitted model, released statistics, a run of Opacus,
            a DpEvent, (ε, δ). A release that protects a secret half is listed apart and never added.
        name, purpose, source
            What it is called, what for, from which data: as they may be published.
        unit
            Whom the release hides, if it does not say so itself: "record" or the column of persons.
        records_per_person
            In a ledger of persons: how many records one has at most, for a release that hides records.

        Raises
        ------
        LedgerError
            If it has no mechanism, hides another unit, or does not fit into the limit. Nothing is written then.
        """
        said = self.labels | {k: v for k, v in (("name", name), ("purpose", purpose), ("source", source)) if v}
        mechanism, hidden, apart = described(release)
        if mechanism is not None:
            mechanism = self._fitting(mechanism, hidden, unit, records_per_person)
        words = {key: said.get(key, "") for key in ("name", "purpose", "source")}
        for key, text in words.items():
            if not isinstance(text, str) or text.encode("utf-8", "ignore").decode() != text:
                raise LedgerError(f"{key} must be a text, got {text!r}")
        with self._file() as file:
            file.execute("BEGIN IMMEDIATE")
            rows = list(file.execute("SELECT * FROM entries ORDER BY number"))
            if mechanism is not None and self.limit is not None:
                self._admit([*mechanisms_of([entry_of(*row) for row in rows]), mechanism])
            now = datetime.now(UTC).isoformat(timespec="seconds")
            new = Entry(len(rows) + 1, now, **words, mechanism=mechanism, apart=apart)
            content = content_of(new)
            new = replace(new, head=next_head(_head(file), content))
            file.execute("INSERT INTO entries VALUES (?, ?, ?)", (new.number, content, new.head))
            file.execute("COMMIT")
        return new

    def charge(self, mechanism: Mechanism, *, unit: str, what: str) -> tuple[int, str]:
        """Enter a release that is about to be made, for ``ledger=`` of fits; return its number and the chain's head."""
        entry = self.add(mechanism, unit=unit, name=self.labels.get("name") or what)
        return entry.number, entry.head

    def mechanism(self) -> Mechanism:
        """Return everything that was entered, composed: equal parts together."""
        return composed(mechanisms_of(self.entries))

    def tradeoff(self) -> Tradeoff:
        """Return the curve of everything: with a limit of all that it will ever admit, else of what was entered."""
        if self.limit is None:
            return with_assumptions(self._of_all(self.mechanism()), notes=(ODOMETER,))
        return self._of_all(beside(self._most, self.reserve))

    def plan(self, release: Any, *, unit: str | None = None, records_per_person: int | None = None) -> Tradeoff:
        """Return the curve of what was entered and ``release`` together, entering nothing; raises as :meth:`add`."""
        mechanism, hidden, _ = described(release)
        if mechanism is None:
            raise LedgerError("a release that protects a secret half does not add up with others")
        every = [*mechanisms_of(self.entries), self._fitting(mechanism, hidden, unit, records_per_person)]
        self._admit(every)
        return self._of_all(composed(every))

    def remaining(self, advantage: float | None = None, limit: Limit | None = None) -> float:
        """Return the largest μ that is left; with a limit, how many more Gaussian releases that each keep it.

        Raises ``LedgerError`` where no limit was fixed: then nothing stops.
        """
        if self.limit is None:
            raise LedgerError(f"{str(self.path)!r} has no limit, so nothing remains or runs out; see tradeoff()")
        squares, _, _ = uses(mechanisms_of(self.entries))
        left = math.sqrt(max(self._most**2 - squares, 0.0))
        if advantage is None and limit is None:
            return left
        each = budget(Limit(advantage=advantage) if limit is None else limit).mu
        return math.floor(left**2 / each**2 * (1 + ROOM / 2))

    def verify(self, head: str | None = None) -> LedgerCheck:
        """Compute the chain and the limit anew; ``head`` is that of a page or certificate, to be found in the chain."""
        faults = []
        with opened(self.path) as file:
            rows, heads = list(file.execute("SELECT * FROM entries ORDER BY number")), [first_head(about(file))]
            entries = [entry_of(*row) for row in rows]
        before = ""
        for place, ((number, content, stated), entry) in enumerate(zip(rows, entries, strict=True), 1):
            heads.append(next_head(heads[-1], content))
            if number != place or entry.number != place:
                faults.append(f"entry {place} is missing, or its number was changed")
            if stated != heads[-1]:
                faults.append(f"entry {place} ({entry.name or 'unnamed'}) or one before it was changed")
                heads[-1] = stated
            if entry.time < before:
                faults.append(f"entry {place} is dated before the one before it: a clock was set back")
            before = max(before, entry.time)
        if head is not None and not any(one.startswith(head) for one in heads if len(head) >= 12):
            faults.append(f"no entry has the head {head!r}: entries were cut off, or the chain was computed anew")
        try:
            self._admit(mechanisms_of(entries))
        except LedgerError as error:
            faults.append(str(error))
        if self.limit is not None and not self.limit.is_met(self.tradeoff()):
            faults.append(f"what the file admits (μ = {self._most:.4g} beside the reserve) passes the limit it states")
        return LedgerCheck(tuple(faults), len(rows), heads[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python types: what the ledger was made with, its entries, what they add up to."""
        curve = self.tradeoff() if self.limit is not None or self.entries else None
        return {
            "unit": self.unit,
            "limit": None if self.limit is None else self.limit.words(self._whom),
            "reserve": None if self.reserve is None else to_plain(self.reserve),
            "head": self.head,
            "advantage": None if curve is None else curve.advantage(),
            "remaining_mu": None if self.limit is None else self.remaining(),
            "entries": [entry.to_dict() for entry in self.entries],
        }

    def lines(self) -> list[str]:
        """Return in words what the ledger is of, what was entered, what it adds up to, and what remains."""
        limit = "no limit" if self.limit is None else self.limit.words(self._whom)
        said = [f"Ledger of {self._whom}s{'' if self.unit == 'record' else f' ({self.unit!r})'}: {limit}."]
        for entry in self.entries:
            alone = (
                "apart"
                if entry.mechanism is None
                else f"≤ {shown(tradeoff(entry.mechanism).advantage(), 'rate', 'upper')}"
            )
            said.append(f"  {entry.number:4}  {entry.time[:10]}  {alone:>9}  {entry.name} {entry.purpose}".rstrip())
        if self.limit is not None:
            said.append(
                f"Remaining: μ {self.remaining():.4g} of {self._most:.4g}, as for {self.remaining(0.1)} releases "
                "of advantage 0.1."
            )
        elif mechanisms_of(self.entries):
            said.append(
                f"Together: advantage at even odds at most {shown(self.tradeoff().advantage(), 'rate', 'upper')}; "
                f"{ODOMETER}."
            )
        return said

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the ledger as JSON and, if ``path`` is given, write it there."""
        return to_json(self.to_dict(), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return one line an entry as CSV and, if ``path`` is given, write it there."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["number", "time", "name", "purpose", "source", "advantage", "apart", "mechanism", "head"])
        for entry in self.entries:
            curve = None if entry.mechanism is None else tradeoff(entry.mechanism)
            row = (entry.number, entry.time, entry.name, entry.purpose, entry.source)
            told = "" if curve is None else curve.advantage()
            writer.writerow([*map(_safe, row), told, entry.apart, json.dumps(entry.to_dict()["mechanism"]), entry.head])
        if path is not None:
            write_atomically(path, text.getvalue())
        return text.getvalue()

    def _fitting(self, mechanism: Mechanism, told: str | None, unit: str | None, records: int | None) -> Mechanism:
        """Return the mechanism for the ledger's unit; refused where the release hides another, or says another."""
        unit = "record" if unit == "line of the file" else unit
        if None not in (told, unit) and told != unit and (told != "person" or unit == "record"):
            raise LedgerError(f"unit must be what the release hides, {told!r}, got {unit!r}")
        hidden = unit or told  # "person" where a certificate does not say by which column
        if records is not None and (self.unit == "record" or hidden not in (None, "record")):
            raise LedgerError(
                f"records_per_person converts a release that hides records for a ledger of persons; the ledger is of "
                f"{self.unit!r}, the release hides {hidden or 'records'!r}: leave out what does not hold"
            )
        Composition([mechanism])  # refuses what could be added to nothing
        if "add-remove" not in (mechanism.adjacency, *mechanism.also):
            raise LedgerError(
                f"a ledger adds up what holds for adding or removing, got adjacency {mechanism.adjacency!r}"
            )
        persons = self.unit != "record"
        if not persons and hidden not in (None, "record"):
            raise LedgerError(f"the ledger is of records, and the release hides {hidden!r}: enter it in one of persons")
        if persons and unit != self.unit:
            if records is None:
                raise LedgerError(
                    f"the ledger is of persons ({self.unit!r}), and the release hides {hidden or 'nobody says whom'}: "
                    f"give unit={self.unit!r} if it hides whole persons, or records_per_person=k if it hides records"
                )
            if (count := integer("records_per_person", records, at_least=1)) > _MOST_RECORDS:
                raise LedgerError(f"records_per_person must be at most {_MOST_RECORDS}: beyond, nothing is hidden")
            return composed([of_person(part, count) for part in parts_of(mechanism)])
        return mechanism

    def _admit(self, mechanisms: Sequence[Mechanism]) -> None:
        """Refuse what the limit does not cover."""
        if self.limit is None:
            return
        squares, failures, others = uses(mechanisms)
        kept_failures, kept = reserved(self.reserve)
        if not squares <= self._most**2 * (1 + ROOM):
            raise LedgerError(
                f"the ledger's limit ({self.limit.words(self._whom)}) leaves {self.remaining():.4g} of μ = "
                f"{self._most:.4g}, too little for this release: do not make it"
            )
        if not failures <= kept_failures * (1 + ROOM):
            raise LedgerError(
                f"the failure probabilities would sum to {failures:.3g}, and {kept_failures:.3g} was reserved; declare "
                "classes and categories, so that none has to be found"
            )
        for part in others:
            take(part, kept)

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        """Open the file, if it is still the ledger that this object was made from."""
        with opened(self.path) as file:
            if first_head(about(file)) != self._born:
                raise LedgerError(f"{str(self.path)!r} became another ledger since it was opened: open it anew")
            yield file

    def _of_all(self, mechanism: Mechanism) -> Tradeoff:
        curve = tradeoff(mechanism)
        return curve if self.unit == "record" else of_persons(curve, f"person ({self.unit!r})")

    @property
    def _whom(self) -> str:
        return "record" if self.unit == "record" else "person"


def _new_about(unit: str | None, limit: Limit | None, reserve: Mechanism | None) -> dict[str, Any]:
    """What a ledger is made with; μ* is the largest that keeps the limit beside the reserve."""
    if unit is not None and (not isinstance(unit, str) or not unit.strip()):
        raise LedgerError(f"unit must be 'record' or the name of the column of persons, got {unit!r}")
    if limit is None:
        if reserve is not None:
            raise LedgerError("reserve goes with a limit: without one everything is taken")
        return {"unit": unit or "record", "limit": None, "reserve": None, "mu": None, "salt": os.urandom(16).hex()}
    if not isinstance(limit, Limit):
        raise LedgerError(f"limit must be a Limit, such as Limit(advantage=0.2), got {limit!r}")
    kept = ApproximateDP(0.0, _DEFAULT_FAILURE) if reserve is None else reserve
    if not isinstance(kept, Mechanism) or "add-remove" not in (kept.adjacency, *kept.also):
        raise LedgerError(f"reserve must be a mechanism for adding or removing, got {reserve!r}")
    found = search(limit, lambda mu: beside(mu, kept), (1e-6, _LARGEST))
    if found.score > 0:
        raise LedgerError(f"no entry could meet the limit {limit.words()} beside the reserve {kept!r}: reserve less")
    if limit.is_met(tradeoff(beside(_LARGEST, kept))):
        raise LedgerError(f"the limit {limit.words()} promises nothing: next to no noise meets it")
    return {
        "unit": unit or "record", "limit": limit.arguments, "reserve": to_plain(kept), "mu": found.parameter,
        "salt": os.urandom(16).hex(),
    }  # fmt: skip


def _head(file: sqlite3.Connection) -> str:
    last = file.execute("SELECT head FROM entries ORDER BY number DESC LIMIT 1").fetchone()
    return str(last[0]) if last else first_head(about(file))


def _safe(value: Any) -> Any:
    """A text that a spreadsheet takes for a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value
