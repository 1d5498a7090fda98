"""Progress on stderr: shown to a person at a terminal, silent for programs."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def stage(description: str) -> Iterator[None]:
    """Log ``description``, and show a spinner with it while the block runs, if stderr is a terminal."""
    logging.getLogger("deniable").info(description)
    if not sys.stderr.isatty():
        yield
        return
    try:
        from rich.console import Console
    except ImportError:  # a bare install works in silence
        yield
        return
    with open(os.dup(2), "w", encoding="utf-8") as own, Console(file=own).status(description):  # no seal mutes it
        yield


def track(items: Iterable[Item], description: str, total: int, *, shown: bool | None = None) -> Iterator[Item]:
    """Yield ``items`` behind a bar that counts to ``total``; ``shown=None`` shows it if stderr is a terminal."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield from items
        return
    try:
        from rich.console import Console
        from rich.progress import track as bar
    except ImportError:
        yield from items
        return
    yield from bar(items, description, total=total, console=Console(stderr=True))
