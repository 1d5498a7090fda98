"""Memory that is free but still held by the process."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


def trim() -> None:
    """Give free pages of the heap back to the system where that is glibc; elsewhere do nothing."""
    call = _malloc_trim()
    if call is not None:
        call(0)


@cache
def _malloc_trim() -> Any:
    if not sys.platform.startswith("linux"):  # pragma: no cover
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # absent from musl
