"""The file of a ledger: SQLite, made in one step, opened only if it is one; what goes wrong is said in words.

An entry's content is a text; its head is the digest of that text and of the head before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from deniable._check import InputError
from deniable._files import check_writable
from deniable.accounting import tradeoff
from deniable.mechanisms import Mechanism, from_plain, to_plain

StoredLine = tuple[int, str, str]  # of the file: number, content, head
_IS_LEDGER, _FORMAT = 0x64656E79, 1  # SQLite's application_id ("deny") and user_version
_PATIENCE = 60  # seconds that a writer waits for others
_TABLES = f"""
PRAGMA application_id = {_IS_LEDGER}; PRAGMA user_version = {_FORMAT};
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, head TEXT NOT NULL);
"""


class LedgerError(InputError):
    """The ledger does not take an entry, or cannot be read or written: what was to be released must not be."""


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

    @classmethod
    def read(cls, row: StoredLine) -> Entry:
        """Return the entry of a row of the file."""
        _, content, head = row
        told = json.loads(content)
        mechanism = None if told["mechanism"] is None else from_plain(told["mechanism"])
        return cls(**(told | {"mechanism": mechanism}), head=head)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python types."""
        plain = None if self.mechanism is None else to_plain(self.mechanism)
        return asdict(replace(self, mechanism=None)) | {"mechanism": plain}

    @property
    def content(self) -> str:
        """What the file holds of it, besides the head."""
        kept = {name: value for name, value in self.to_dict().items() if name != "head"}
        return json.dumps(kept, sort_keys=True, ensure_ascii=False, allow_nan=False)

    @cached_property
    def advantage(self) -> float | None:
        """The largest advantage from this release alone; None of one that does not add up with others."""
        return None if self.mechanism is None else tradeoff(self.mechanism).advantage()


def create(path: Path, made: dict[str, Any]) -> None:
    """Make the file of a ledger that was ``made`` with this, in one step: others find all of it or nothing."""
    check_writable("ledger", path)
    refuse_network(path)
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with in_words(path), closing(sqlite3.connect(temporary, isolation_level=None)) as file:
            file.executescript(_TABLES)
            file.executemany(
                "INSERT INTO about VALUES (?, ?)",
                [(key, json.dumps(value)) for key, value in (made | {"head": first_head(made)}).items()],
            )
        os.link(temporary, path)
    except FileExistsError:
        pass  # somebody else made it: it keeps what it was made with
    except OSError as error:
        raise LedgerError(f"ledger {str(path)!r} cannot be made there: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def opened(path: Path, *, write: bool = False) -> Iterator[tuple[sqlite3.Connection, dict[str, Any], list[StoredLine]]]:
    """Open the file that is there; yield it, what the ledger was made with, and its rows, locked if ``write``.

    A fault becomes an error in words, and what was not committed is gone.
    """
    if not path.is_file():
        found = "is a folder; name a file" if path.is_dir() else "does not exist; make it: deniable ledger new"
        raise LedgerError(f"ledger {str(path)!r} {found}")
    refuse_network(path)
    address = f"{path.resolve().as_uri()}?mode=rw"
    with in_words(path), closing(sqlite3.connect(address, _PATIENCE, uri=True, isolation_level=None)) as file:
        file.execute("PRAGMA synchronous = EXTRA")
        if file.execute("PRAGMA application_id").fetchone()[0] != _IS_LEDGER:
            raise LedgerError(f"{str(path)!r} is no ledger of deniable; name another file")
        if file.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
            raise LedgerError(f"ledger {str(path)!r} was made by a newer deniable: update it")
        if write:
            file.execute("BEGIN IMMEDIATE")
        made = {name: json.loads(value) for name, value in file.execute("SELECT * FROM about ORDER BY name")}
        yield file, made, list(file.execute("SELECT number, content, head FROM entries ORDER BY number"))


def first_head(made: dict[str, Any]) -> str:
    """Return the head of a chain without entries: of what the ledger was made with."""
    return next_head("", json.dumps({name: made[name] for name in made if name != "head"}, sort_keys=True))


def next_head(before: str, content: str) -> str:
    """Return the head behind one more entry."""
    return hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()


@contextmanager
def in_words(path: Path) -> Iterator[None]:
    """Say in words what SQLite could not do."""
    try:
        yield
    except LedgerError:
        raise
    except (sqlite3.Error, ValueError, LookupError, TypeError, AttributeError) as error:  # the others: changed by hand
        what = "is no ledger of deniable" if "not a database" in str(error) else f"cannot be used ({error!r})"
        way = "wait for the process that holds it" if "locked" in str(error) else "name or restore the right file"
        raise LedgerError(f"{str(path)!r} {what}; nothing entered, release nothing; {way}") from None


def refuse_network(path: Path) -> None:
    """Refuse a folder that another machine serves: its locks cannot be relied on (Linux; elsewhere nobody can tell)."""
    mounts, place = Path("/proc/mounts"), str(path.resolve())
    if mounts.exists():
        rows = [line.split()[1:3] for line in mounts.read_text().splitlines()]
        inside = [(len(at), kind) for at, kind in rows if place.startswith(at.rstrip("/") + "/")]
        if inside and max(inside)[1].startswith(("nfs", "cifs", "smb", "9p", "fuse.sshfs", "ceph", "afs")):
            raise LedgerError(f"ledger {str(path)!r} lies in a network folder, where locks fail: use a local disk")
