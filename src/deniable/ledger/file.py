"""The file of a ledger: SQLite, made in one step, opened only if it is one; what goes wrong is said in words."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from deniable._check import InputError
from deniable._files import check_writable

_IS_LEDGER, _FORMAT = 0x64656E79, 1  # SQLite's application_id ("deny") and user_version
_PATIENCE = 60  # seconds that a writer waits for others
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, head TEXT NOT NULL);
"""


class LedgerError(InputError):
    """The ledger does not take an entry, or cannot be read or written: what was to be released must not be."""


def create(path: Path, made: dict[str, Any]) -> None:
    """Make the file of a ledger that was ``made`` with this, in one step: others find all of it or nothing."""
    check_writable("ledger", path)
    refuse_network(path)
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with in_words(path), closing(sqlite3.connect(temporary, isolation_level=None)) as file:
            file.executescript(_TABLES)
            file.executemany(
                "INSERT INTO about VALUES (?, ?)", [(key, json.dumps(value)) for key, value in made.items()]
            )
            file.execute(f"PRAGMA application_id = {_IS_LEDGER}")
            file.execute(f"PRAGMA user_version = {_FORMAT}")
        os.link(temporary, path)
    except FileExistsError:
        pass  # somebody else made it: it keeps what it was made with
    except OSError as error:
        raise LedgerError(f"ledger {str(path)!r} cannot be made there: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file that is there; a fault becomes an error in words, and what was not committed is gone."""
    if not path.is_file():
        raise LedgerError(f"ledger {str(path)!r} does not exist; make it: deniable ledger new")
    refuse_network(path)
    address = f"{path.resolve().as_uri()}?mode=rw"
    with in_words(path), closing(sqlite3.connect(address, _PATIENCE, uri=True, isolation_level=None)) as file:
        file.execute("PRAGMA synchronous = EXTRA")
        if file.execute("PRAGMA application_id").fetchone()[0] != _IS_LEDGER:
            raise LedgerError(f"{str(path)!r} is no ledger of deniable; name another file")
        if file.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
            raise LedgerError(f"ledger {str(path)!r} was made by a newer deniable: update it")
        yield file


def about(file: sqlite3.Connection) -> dict[str, Any]:
    """Return what the ledger was made with."""
    return {name: json.loads(value) for name, value in file.execute("SELECT * FROM about ORDER BY name")}


def first_head(made: dict[str, Any]) -> str:
    """Return the head of a chain without entries."""
    return next_head("", json.dumps(made, sort_keys=True))


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
        raise LedgerError(
            f"ledger {str(path)!r} cannot be used ({type(error).__name__}: {error}); nothing entered, release nothing"
        ) from None


def refuse_network(path: Path) -> None:
    """Refuse a folder that another machine serves: its locks cannot be relied on (Linux; elsewhere nobody can tell)."""
    mounts, place = Path("/proc/mounts"), str(path.resolve())
    if mounts.exists():
        rows = [line.split()[1:3] for line in mounts.read_text().splitlines()]
        inside = [(len(at), kind) for at, kind in rows if place.startswith(at.rstrip("/") + "/")]
        if inside and max(inside)[1].startswith(("nfs", "cifs", "smb", "9p", "fuse.sshfs", "ceph", "afs")):
            raise LedgerError(f"ledger {str(path)!r} lies in a network folder, where locks fail: use a local disk")
