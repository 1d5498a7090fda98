"""A call in a forked child: its CPU time, its peak memory, and an end to it when it takes too long. Unix only."""

import os
import pickle
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import deniable as dn

_ADDRESSES = 6 << 30  # bytes a child may reserve: far above what is allowed, so that the excess can be measured


@dataclass(frozen=True)
class Outcome:
    """What became of a call.

    ``status`` is "done", "slow" (ended at the CPU limit), "raised" (``value`` is the traceback) or "died".
    ``partial`` holds what the call had reported by then, ``peak_bytes`` what it needed beyond what the parent held.
    """

    status: str
    value: Any
    partial: list[Any]
    cpu_seconds: float
    peak_bytes: int


def isolated(call: Callable[[Callable[[Any], None]], Any], cpu_limit: float) -> Outcome:
    """Run ``call(report)`` in a child; whatever it passes to ``report`` survives its end."""
    _imported()
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = _child(call, cpu_limit, file)
            finally:
                os._exit(code)
        _, status, usage = os.wait4(child, 0)
        file.seek(0)
        reported = list(_records(file))
    before = next((value for kind, value in reported if kind == "start"), 0)
    unit = 1 if sys.platform == "darwin" else 1024
    seconds, peak = usage.ru_utime + usage.ru_stime, max(usage.ru_maxrss - before, 0) * unit
    partial = [value for kind, value in reported if kind == "partial"]
    if reported and reported[-1][0] in ("done", "raised"):
        return Outcome(*reported[-1], partial, seconds, peak)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    slow = ended == signal.SIGXCPU or (ended == signal.SIGKILL and seconds >= cpu_limit)
    return Outcome("slow" if slow else "died", f"wait status {status}", partial, seconds, peak)


@cache
def _imported() -> None:
    """Import what the library imports when it is first used, so that no child is charged for it."""
    for mechanism in (dn.SubsampledGaussian(1.0, 0.01, 10), dn.SubsampledGaussian(0.05, 0.01, 2), dn.PureDP(0.1)):
        dn.tradeoff(mechanism).advantage()


def _child(call: Callable[[Callable[[Any], None]], Any], cpu_limit: float, file: Any) -> int:
    def write(kind: str, value: Any) -> None:
        pickle.dump((kind, value), file)
        file.flush()

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(cpu_limit + used.ru_utime + used.ru_stime) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    write("start", used.ru_maxrss)
    try:
        write("done", call(lambda value: write("partial", value)))
    except BaseException:
        write("raised", traceback.format_exc(limit=-8))
    return 0


def _records(file: Any) -> Any:
    while True:
        try:
            yield pickle.load(file)
        except (EOFError, pickle.UnpicklingError):
            return
