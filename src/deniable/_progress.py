"""Progress on stderr: shown to a person at a terminal, silent for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stage(description: str, *, shown: bool = True) -> Iterator[None]:
    """Show a spinner with ``description`` while the block runs, if ``shown`` and stderr is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(description):
        yield
