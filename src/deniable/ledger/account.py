"""One account for everything that is released about the same people: entries first, noise afterwards.

The file is SQLite and holds no data: names, times, mechanisms, and a chain of digests of its own entries. An entry is
on disk before any noise is drawn, so a crash may waste budget and never loses an entry.

With a limit it is a privacy filter (Smith & Thakurta 2022, arXiv:2210.17520; Koskela, Tobaben & Honkela 2022,
arXiv:2209.15596). *Proof.* Let R be the reserve, fixed when the ledger is made, and μ* what is left beside it, with the
Gaussian parts of R. Each entry is, given everything before it, μ_i-Gaussian DP, another part of R, or fails with
probability δ_i; Σμ_i² ≤ μ*² and Σδ_i ≤ δ* always, and other parts of R are used up once. Whoever is given the pair of
R's other parts and a Brownian motion up to time μ*², without drift or with drift 1, can play all entries in turn, with
the increment of length μ_i² for the i-th: its kernel is post-processing, whatever it was chosen from. So the whole is
no easier to attack than what was left beside R, as GDP, composed with R. ∎
Fewer steps than reserved, more noise (add noise) and a smaller sampling rate (redraw without the record) are
post-processing of what was reserved.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from deniable import testing
from deniable._check import Caution
from deniable._files import to_json
from deniable._kept import Kept
from deniable._shown import shown
from deniable.accounting import tradeoff
from deniable.curves import FIXED_BEFOREHAND, Tradeoff, with_assumptions
from deniable.ledger.admission import Remainder, adds_up, beside, described, for_unit, hidden_by, remainder
from deniable.ledger.file import Entry, LedgerError, StoredLine, create, first_head, next_head, opened
from deniable.limits import Limit
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism, Receipt, from_plain, to_plain
from deniable.planning import largest_mu

_CURVES = 16  # of everything up to an entry that a list of all entries computes, at least: each takes a moment
_DEFAULT_FAILURE = 1e-5  # δ* of a ledger with a limit: ten fits that find categories
FILTER = "Releases may be chosen from what earlier ones show: whatever is admitted keeps the limit (a privacy filter)."
CONDITION = "the sum of what was entered or is planned holds if no release was planned by looking at an earlier one"


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
        failure probabilities. If not given, 1e-5 of these, at most half of what the limit allows.

    Raises
    ------
    LedgerError
        For a file that is no ledger, and one made with another unit, limit or reserve.
    InputError
        For a limit that no entry could keep, or that next to no noise meets; ``LedgerError`` is one of these.

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
        self.path, unit = Path(path), None if unit is None else hidden_by(unit)
        self.labels = dict.fromkeys(("name", "purpose", "source"), "")  # the words of the next entries
        self._known: Kept[StoredLine, Entry] = Kept()
        if not self.path.exists():
            create(self.path, _new_about(unit, limit, reserve))
        with opened(self.path) as (_, made, _):
            self.unit: str = made["unit"]
            self.limit = None if made["limit"] is None else Limit(**made["limit"])
            self.reserve = None if made["reserve"] is None else from_plain(made["reserve"])
            self._promise = None if self.reserve is None else beside(float(made["mu"]), self.reserve)
            self._born: str = made.get("head", first_head(made))
        self._whom, column = ("record", "") if self.unit == "record" else ("person", f" ({self.unit!r})")
        self._limit = "no limit" if self.limit is None else self.limit.words(self._whom)
        self._condition = f"{'no limit was fixed beforehand: ' if self.limit is None else ''}{CONDITION}"
        self._title = f"ledger of {self._whom}s{column}: {self._limit}"
        for name, value in {"unit": unit, "limit": limit, "reserve": reserve}.items():
            kept = getattr(self, name)
            if value is not None and value != kept:
                raise LedgerError(
                    f"{name} of {str(path)!r} is {kept!r} and cannot be changed, got {value!r}; leave it out"
                )

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, unit={self.unit!r}, limit={self.limit!r})"

    def named(self, name: str, purpose: str = "", source: str = "") -> Ledger:
        """Return this ledger with the words of the next entries, as ``ledger=l.named("churn model")`` of a fit."""
        other = copy.copy(self)
        other.labels = {"name": name, "purpose": purpose, "source": source}
        return other

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, the first first."""
        with self._file() as (_, entries):
            return entries

    @property
    def head(self) -> str:
        """The chain's digest: of the last entry, or of the empty ledger."""
        return self._head(self.entries)

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
        said = {"name": name, "purpose": purpose, "source": source}
        words = self.labels | {key: text for key, text in said.items() if text}
        for key, text in words.items():
            if not isinstance(text, str) or text.encode("utf-8", "ignore").decode() != text:
                raise LedgerError(f"{key} must be a text, got {text!r}")
        mechanism, apart = described(release)
        if mechanism is not None:
            mechanism = for_unit(self.unit, mechanism, unit, records_per_person)
        with self._file(write=True) as (file, entries):
            if mechanism is not None:
                self._admit(_composed(entries) + mechanism)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            new = Entry(len(entries) + 1, now, **words, mechanism=mechanism, apart=apart)
            if entries and now < entries[-1].time:
                when = f"the clock was set back: entry {len(entries)} is of {entries[-1].time}"
                warnings.warn(when, Caution, stacklevel=2)
            new = replace(new, head=next_head(self._head(entries), new.content))
            file.execute("INSERT INTO entries VALUES (?, ?, ?)", (new.number, new.content, new.head))
            file.execute("COMMIT")
        return new

    def charge(self, release: Any, *, unit: str | None, what: str) -> Receipt:
        """Enter a release that is about to be made, for ``ledger=`` of fits; return what is published of the entry."""
        entry = self.add(release, unit=unit, name=self.labels["name"] or what)
        return entry.number, entry.head, f"{self._title}; {self._standing(self.entries[: entry.number])[1]}"

    def mechanism(self) -> Mechanism:
        """Return everything that was entered, composed; its notes say when this sum holds."""
        return _composed(self.entries).with_notes((self._condition,), self.unit)

    def tradeoff(self) -> Tradeoff:
        """Return the curve of everything: with a limit of all that it will ever admit, else of what was entered."""
        if self._promise is None:
            return tradeoff(self.mechanism())
        curve = tradeoff(self._promise.with_notes(_composed(self.entries).notes, self.unit))
        notes = tuple(FILTER if note == FIXED_BEFOREHAND else note for note in curve.assumptions.notes)
        return with_assumptions(curve, notes=notes)

    def plan(self, release: Any, *, unit: str | None = None, records_per_person: int | None = None) -> Tradeoff:
        """Return the curve of what was entered and ``release`` together, entering nothing; raises as :meth:`add`."""
        mechanism, _ = described(release)
        if mechanism is None:
            raise LedgerError("a release that protects a secret half does not add up with others")
        every = _composed(self.entries) + for_unit(self.unit, mechanism, unit, records_per_person)
        self._admit(every)
        return tradeoff(every.with_notes((self._condition,), self.unit))

    def remaining(self, advantage: float | None = None, limit: Limit | None = None) -> float:
        """Return the largest μ that is left; with a limit, how many more Gaussian releases that each keep it.

        Raises ``LedgerError`` where no limit was fixed: then nothing stops.
        """
        left = self._admit(self.mechanism())
        if left is None:
            raise LedgerError(f"{str(self.path)!r} has no limit, so nothing remains or runs out; see tradeoff()")
        if advantage is None and limit is None:
            return left.mu
        return left.releases(Limit(advantage=advantage) if limit is None else limit)

    def verify(self, head: str | None = None) -> LedgerCheck:
        """Compute the chain and the limit anew; ``head`` is that of a page or certificate, to be found in the chain."""
        with opened(self.path) as (_, made, rows):
            entries = [Entry.read(row) for row in rows]
        faults, heads, before = list[str](), [made.get("head", first_head(made))], ""
        if heads[0] != first_head(made):
            faults.append("what the ledger was made with (unit, limit, reserve) was changed")
        for place, ((number, content, stated), entry) in enumerate(zip(rows, entries, strict=True), 1):
            if number != place or entry.number != place:
                faults.append(f"entry {place} is missing, or its number was changed")
            if stated != next_head(heads[-1], content):
                faults.append(f"entry {place} ({entry.name or 'unnamed'}) or one before it was changed")
            if entry.time < before:
                faults.append(f"entry {place} is dated before the one before it: a clock was set back")
            heads.append(stated)
            before = max(before, entry.time)
        if head is not None and not any(one.startswith(head) for one in heads if len(head) >= 12):
            faults.append(f"no entry has the head {head!r}: entries were cut off, or the chain was computed anew")
        try:
            self._admit(_composed(entries))
        except LedgerError as error:
            faults.append(str(error))
        if self.limit and self._promise and not self.limit.is_met(tradeoff(self._promise)):
            faults.append("what the file admits passes the limit that it states")
        return LedgerCheck(tuple(faults), len(rows), heads[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python types: what the ledger was made with, its entries, what they add up to.

        Of each entry the ``advantage`` of it alone and, as of this entry, the μ that remains under a limit; without
        one the advantage of all ``together``, or of those and a few later ones where entries are many.
        """
        entries = self.entries
        few = 1 if self.limit is not None else max(len(entries) // _CURVES, 1)
        ends = [min(-(-entry.number // few) * few, len(entries)) for entry in entries]
        standing = {end: self._standing(entries[:end])[0] for end in set(ends)}
        return {
            "unit": self.unit,
            "limit": None if self.limit is None else self._limit,
            "reserve": None if self.reserve is None else to_plain(self.reserve),
            "head": self._head(entries),
            "advantage": self.tradeoff().advantage(),
            "remaining_mu": None if self.limit is None else self.remaining(),
            "entries": [
                entry.to_dict() | {"advantage": entry.advantage} | standing[end]
                for entry, end in zip(entries, ends, strict=True)
            ],
        }

    def lines(self) -> list[str]:
        """Return in words what the ledger is of, what was entered, what it adds up to, and what remains."""
        entries = self.entries
        said = [*testing.marked((), testing.INSECURE in _composed(entries).notes), f"L{self._title[1:]}."]
        for entry in entries:
            alone = "apart" if entry.advantage is None else f"≤ {shown(entry.advantage, 'rate', 'upper')}"
            said.append(f"  {entry.number:4}  {entry.time[:10]}  {alone:>9}  {entry.name} {entry.purpose}".rstrip())
        _, standing = self._standing(entries)
        return [*said, f"{standing[0].upper()}{standing[1:]}."]

    def to_json(self) -> str:
        """Return the ledger as JSON."""
        return to_json(self.to_dict())

    def to_csv(self) -> str:
        """Return one line an entry as CSV."""
        text = io.StringIO()
        stands = "together" if self.limit is None else "remaining_mu"
        columns = ("number", "time", "name", "purpose", "source", "advantage", stands, "apart", "mechanism", "head")
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        for row in self.to_dict()["entries"]:
            row["mechanism"] = json.dumps(row["mechanism"])
            writer.writerow({key: _safe(value) for key, value in row.items()})
        return text.getvalue()

    def _admit(self, every: Mechanism) -> Remainder | None:
        """Return what everything together leaves, None without a limit; refuse what the limit does not cover."""
        if self.limit is None or self._promise is None:
            return None
        return remainder(self._promise, every, self._limit)

    def _standing(self, entries: Sequence[Entry]) -> tuple[dict[str, float], str]:
        """Return what these took together, or what they left, as a number by its name and in words."""
        every = _composed(entries)
        if (left := self._admit(every)) is None:
            together = tradeoff(every).advantage()
            words = f"together: advantage at even odds at most {shown(together, 'rate', 'upper')}; {self._condition}"
            return {"together": together}, words
        unused = "".join(f"; still reserved: {part!r}" for part in left.reserve)
        mu, whole, delta = (shown(one, "number", "lower") for one in (left.mu, left.whole, left.failure))
        many = left.releases(Limit(advantage=0.1))
        more = f"as for {many} release{'s' * (many != 1)} of advantage 0.1; δ {delta} to find categories{unused}"
        return {"remaining_mu": left.mu}, f"remaining: μ {mu} of {whole}, {more}"

    @contextmanager
    def _file(self, *, write: bool = False) -> Iterator[tuple[sqlite3.Connection, tuple[Entry, ...]]]:
        """Open the file, if it is still this ledger and its chain holds; an entry is read once."""
        with opened(self.path, write=write) as (file, made, rows):
            heads = [first_head(made), *(head for *_, head in rows)]
            broken = any(next_head(heads[i], row[1]) != row[2] for i, row in enumerate(rows))
            if broken or heads[0] != self._born:
                raise LedgerError(f"{str(self.path)!r} was changed or became another ledger: verify it, open it anew")
            yield file, tuple(self._known(row, partial(Entry.read, row)) for row in rows)

    def _head(self, entries: Sequence[Entry]) -> str:
        return entries[-1].head if entries else self._born


def _new_about(unit: str | None, limit: Limit | None, reserve: Mechanism | None) -> dict[str, Any]:
    """What a ledger is made with; μ* is the largest that keeps the limit beside the reserve."""
    made = {"unit": unit or "record", "limit": None, "reserve": None, "mu": None, "salt": os.urandom(16).hex()}
    if limit is None and reserve is None:
        return made
    if not isinstance(limit, Limit):
        raise LedgerError(f"reserve goes with a limit, as Limit(advantage=0.2) or --advantage 0.2; got limit={limit!r}")
    failure = min(_DEFAULT_FAILURE, (limit.most - limit.floor) / 2 / limit.group_size)
    kept = ApproximateDP(0.0, failure) if reserve is None else reserve
    if not isinstance(kept, Mechanism) or not adds_up(kept):
        raise LedgerError(f"reserve must be a mechanism for adding or removing, got {reserve!r}")
    most = largest_mu(limit, lambda mu: beside(mu, kept), " beside what is reserved (reserve less)")
    return made | {"limit": limit.arguments, "reserve": to_plain(kept), "mu": most}


def _composed(entries: Iterable[Entry]) -> Mechanism:
    """What ran in those entries that add up."""
    return Composition([GaussianDP(0.0), *(entry.mechanism for entry in entries if entry.mechanism is not None)])


def _safe(value: Any) -> Any:
    """A text that a spreadsheet takes for a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value
