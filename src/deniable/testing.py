"""Noise that a test can repeat: everything made with it is marked, and decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from deniable._check import InputError

INSECURE = "INSECURE: made with noise that can be repeated, for tests only; it protects nobody and decides nothing"

_GENERATOR: ContextVar[np.random.Generator | None] = ContextVar("insecure_noise", default=None)


@contextmanager
def insecure_noise(rng: np.random.Generator) -> Iterator[None]:
    """Draw noise, secret halves and coins from ``rng`` while the block lasts, so that a test can repeat them.

    Every certificate, curve and report that is made in the block says INSECURE, for ever, and a report of it decides
    nothing. The generator stands in no result and in no pickle. It is one of the block's own thread: threads and
    processes that are started in it draw real noise and mark nothing, but for the fits of a private model's ``attack``,
    which get seeds drawn from ``rng``.

    Raises
    ------
    InputError
        For anything but a NumPy Generator.
    """
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    token = _GENERATOR.set(rng)
    try:
        yield
    finally:
        _GENERATOR.reset(token)


def generator() -> np.random.Generator | None:
    """Return the generator of the block that is running, or None: then noise comes from the operating system."""
    return _GENERATOR.get()


def insecure() -> bool:
    """Whether what is made now is marked."""
    return _GENERATOR.get() is not None


def marked(notes: tuple[str, ...], mark: bool) -> tuple[str, ...]:
    """Return ``notes`` with :data:`INSECURE` in front where ``mark`` says so, or one of them is it."""
    return (INSECURE, *(note for note in notes if note != INSECURE)) if mark or INSECURE in notes else notes
