"""Files: results are checked before the work starts, complete or not at all; what is spilled to disk has no name."""

from __future__ import annotations

import json
import mmap
import os
import secrets
import stat
import tempfile
import tomllib
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from deniable._check import InputError

MODEL_FORMAT = 2  # of the attributes that a saved model holds; another number where a reader would misunderstand them


def stamp(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a model with the format in which it is written and the version that writes it."""
    return {**state, "_format": MODEL_FORMAT, "_written_by": version("deniable")}


def unstamp(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state without its stamp; raise ``InputError`` if this version does not know the format."""
    plain = {name: value for name, value in state.items() if name not in ("_format", "_written_by")}
    if (form := state.get("_format")) != MODEL_FORMAT:
        writer = state.get("_written_by", "0.2.0")  # which wrote no stamp
        raise InputError(
            f"this model has format {form}, and deniable {version('deniable')} reads format {MODEL_FORMAT}; "
            f"the version that wrote it reads it: pip install 'deniable=={writer}'"
        )
    return plain


def check_writable(name: str, path: str | Path, *, suffixes: tuple[str, ...] = ()) -> Path:
    """Return ``path`` if a file with one of ``suffixes`` can be created there; raise ``InputError`` if not."""
    target = Path(path)
    if suffixes and target.suffix.lower() not in suffixes:
        raise InputError(f"{name} must end in {' or '.join(suffixes)}, got {str(path)!r}")
    folder = Path(os.path.realpath(target)).parent  # a link stays, and what it names is written
    if target.is_dir():
        raise InputError(f"{name} must name a file, but {str(path)!r} is a folder")
    if not folder.is_dir():
        raise InputError(f"{name} cannot be written: the folder {str(folder)!r} does not exist; create it first")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise InputError(f"{name} cannot be written: no permission to write {str(path)!r}")
    return target


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write ``content`` to a temporary file beside ``path`` and move it into place: readers never see half a file."""
    with replacing(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` that takes its place when the block ends; an error leaves nothing.

    Who may read a file that is there may read the new one, and nobody else. A link stays; what it names is replaced.
    """
    target = Path(os.path.realpath(path))
    before = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        if before is not None:
            os.chmod(temporary, before)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


class Spill:
    """A temporary file for data that do not fit into memory; on Linux it has no name, and nothing outlives its users.

    ``path`` opens it in this process and in workers of the same user on this machine, as long as this object lives.
    """

    def __init__(self) -> None:
        self._stream: Any = tempfile.TemporaryFile(prefix="deniable-")  # noqa: SIM115  (lives as long as this object)
        self.path = f"/proc/{os.getpid()}/fd/{self._stream.fileno()}"
        if not os.path.exists(self.path):  # pragma: no cover  (no Linux: a folder of our own, removed at the end)
            self._stream.close()
            self._folder = tempfile.TemporaryDirectory(prefix="deniable-")
            self.path = os.path.join(self._folder.name, "spilled")
            self._stream = open(self.path, "w+b")  # noqa: SIM115
        self._gone = weakref.finalize(self, self._stream.close)
        self._size = 0

    def append(self, content: bytes) -> Spilled:
        """Write some bytes behind the others; return where they are."""
        self._stream.write(content)
        self._stream.flush()
        self._size += len(content)
        return Spilled(self.path, self._size - len(content), len(content))

    def close(self) -> None:
        """Give it up; whoever has opened it may go on reading."""
        self._gone()


@dataclass(frozen=True)
class Spilled:
    """Bytes of a :class:`Spill`."""

    path: str
    start: int
    size: int

    def view(self) -> memoryview:
        """Map the bytes into memory: what is not looked at is not read."""
        with open(self.path, "rb") as stream:
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))[self.start :][: self.size]


def plain(value: Any) -> Any:
    """Return ``value`` as JSON types: dataclasses become objects, arrays lists, and non-finite numbers ``None``."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def read_json(path: str | Path) -> Any:
    """Return the content of a JSON file; ``ValueError`` if it is none, nested too deeply included."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_toml(name: str, path: str | Path) -> tuple[dict[str, Any], str]:
    """Return the content of a TOML file and its text, comments and all, or raise ``InputError`` in words."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{name} must be the path of a TOML file (or what it holds), got {path!r}")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        return tomllib.loads(text), text
    except OSError:
        raise InputError(f"{name} {str(path)!r} must be a TOML file, and there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{name} {str(path)!r} is not TOML: {error}") from None


def to_json(value: Any, path: str | Path | None = None) -> str:
    """Return ``value`` as indented JSON that any parser accepts (no NaN, no Infinity), and write it to ``path``."""
    text = json.dumps(plain(value), indent=2, allow_nan=False, ensure_ascii=False)
    if path is not None:
        write_atomically(path, text + "\n")
    return text
