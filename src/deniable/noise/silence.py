"""A sealed room for what runs on secret records: nothing that others say in it leaves, on whatever way it is said."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dis import opmap
from typing import Any

import joblib
import numpy as np

_STREAMS = (1, 2)  # file descriptors of what compiled code prints


@contextmanager
def sealed() -> Iterator[None]:
    """Discard warnings, logs, and what is printed by Python or by compiled code, in this process and its workers.

    How often something is said tells of the records as surely as what is said. Workers of joblib would print by
    themselves, so code that asks for them runs in this process. Other threads are silent meanwhile, too. What an
    algorithm writes elsewhere (files, variables that it shares with others) and how long it takes are not hidden.
    """
    with _streams, warnings.catch_warnings(record=True), joblib.parallel_config(backend="sequential"):
        warnings.simplefilter("ignore")  # also those that a caller records
        yield


class _Streams:
    """What is printed and logged goes nowhere while anybody is inside; threads share the streams."""

    def __init__(self) -> None:
        self._lock, self._inside, self._stack = threading.Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._close(self._stack)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._stack.close()

    def _close(self, stack: ExitStack) -> None:
        nothing = stack.enter_context(os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
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


_streams = _Streams()


@contextmanager
def only_our_words(*also: type[Warning]) -> Iterator[None]:
    """Seal a whole call: what leaves are warnings of deniable's kinds and ``also``, which consist of released numbers.

    An error that other code raises leaves as its type: its words may quote a cell. Those of scikit-learn's checks speak
    of shapes and types.
    """
    said: list[Warning | str] = []

    def hear(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if category.__module__.startswith("deniable.") or issubclass(category, also):
            said.append(message)

    with sealed(), np.errstate(all="ignore"):
        warnings.simplefilter("always")
        warnings.showwarning = hear
        try:
            yield
        except (Exception, SystemExit) as error:
            if _raised_by(error) in ("deniable", "sklearn", "contextlib"):
                raise
            raise RuntimeError(f"{type(error).__name__} in other code; its words are withheld") from None
    for one in said:
        warnings.warn(one, stacklevel=4)


def _raised_by(error: BaseException) -> str:
    """Return the package whose statement ``raise`` raised an error; none did where compiled code speaks.

    A call that ``contextlib`` passes on and that does not fit its function fails there: Python names arguments alone.
    """
    at: Any = error.__traceback__
    while at.tb_next is not None:
        at = at.tb_next
    name = str(at.tb_frame.f_globals.get("__name__")).partition(".")[0]
    raised = name == "contextlib" or at.tb_frame.f_code.co_code[at.tb_lasti] == opmap["RAISE_VARARGS"]
    return name if raised else ""


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
