"""Results of finished tasks in a folder: a run that was interrupted goes on, and two runs do not share one."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import InputError
from deniable._files import kept_whole, write_atomically


class Checkpoint:
    """A folder of named arrays that belong to one run.

    Parameters
    ----------
    folder
        It is created. One run at a time can have it: the operating system frees it when that run ends or dies.
    label
        What the run computes, from what; a folder with another label is refused.
    name
        What the caller calls the folder, for messages.

    Raises
    ------
    InputError
        If another run has the folder, or it holds results of something else, or it cannot be written.
    """

    def __init__(self, folder: str | Path, label: str, name: str = "checkpoint") -> None:
        self.folder = Path(folder)
        self._lock = claimed(self.folder, name)
        known = self.folder / "label.json"
        if known.exists() and json.loads(known.read_text(encoding="utf-8")) != label:
            self.close()
            raise InputError(f"{name}={str(folder)!r} holds results for other data or options; use an empty folder")
        write_atomically(known, json.dumps(label))

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has(self, name: str) -> bool:
        """Whether something is stored under this name."""
        return (self.folder / f"{name}.npz").exists()

    def load(self, name: str) -> dict[str, NDArray[Any]] | None:
        """The arrays under this name, or ``None`` if there are none that are whole."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as found:
                return {key: found[key] for key in found.files}
        except (OSError, ValueError, EOFError, KeyError):  # cut short by a copy: compute it again
            return None

    def save(self, name: str, **arrays: Any) -> None:
        """Store arrays: all of them, or on a full disk none, with an error that says so."""
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        with kept_whole(name, self.folder):
            write_atomically(self.folder / f"{name}.npz", buffer.getvalue())

    def close(self) -> None:
        """Give the folder free."""
        self._lock.close()


def claimed(folder: Path, name: str, lock: str = "lock") -> IO[str]:
    """Create a folder and lock a file in it: who has the lock is the only one, until it is closed or he dies.

    Raises
    ------
    InputError
        If another run has it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _locked(folder / lock)
    except OSError as error:
        raise InputError(f"{name}={str(folder)!r} cannot be used: {error.strerror or error}") from error


def _locked(path: Path) -> IO[str]:
    """Open a file that no other process can lock as long as this one has it open."""
    handle = path.open("a+", encoding="utf-8")
    try:
        if os.name == "nt":  # pragma: no cover
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.seek(0)
        who = handle.read().strip() or "unknown"
        handle.close()
        raise InputError(
            f"{str(path.parent)!r} is in use by another run (process {who}); wait, or give another"
        ) from None
    handle.truncate(0)
    handle.write(str(os.getpid()))
    handle.flush()
    return handle
