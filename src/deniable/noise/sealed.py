"""A sealed room for what runs on secret records: nothing that it says leaves, on whatever way it is said."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress

import joblib

_STREAMS = (1, 2)  # file descriptors of what compiled code prints


@contextmanager
def sealed() -> Iterator[None]:
    """Discard warnings, logs, and what is printed by Python or by compiled code, in this process and its workers.

    How often something is said tells of the records as surely as what is said. Workers of joblib would print by
    themselves, so code that asks for them runs in this process. Other threads are silent meanwhile, too. What an
    algorithm writes elsewhere (files, variables that it shares with others) and how long it takes are not hidden.
    """
    with ExitStack() as stack:
        nothing = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        for descriptor in _STREAMS:
            with suppress(OSError):  # closed, as in a service without a console
                stack.callback(_restore, os.dup(descriptor), descriptor)
                _flush()  # what was printed before still appears
                os.dup2(nothing.fileno(), descriptor)
        stack.callback(_flush)  # what is still in a buffer goes nowhere
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)
        stack.enter_context(redirect_stdout(nothing))
        stack.enter_context(redirect_stderr(nothing))
        stack.enter_context(warnings.catch_warnings(record=True))  # also those that a caller records
        warnings.simplefilter("ignore")
        stack.enter_context(joblib.parallel_config(backend="sequential"))
        yield


def _restore(kept: int, descriptor: int) -> None:
    os.dup2(kept, descriptor)
    os.close(kept)


def _flush() -> None:
    """Empty the buffers of Python's streams and of the C library."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):  # none, or closed
            stream.flush()  # type: ignore[union-attr]
    with suppress(ImportError, OSError, AttributeError, TypeError):  # a system whose C library is not found so
        import ctypes

        ctypes.CDLL(None).fflush(None)
