"""Tasks run by joblib, here or on a cluster: results in the order of the tasks, and dead workers replaced."""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from deniable._check import InputError, integer
from deniable._optional import require

T = TypeVar("T")
R = TypeVar("R")

_ATTEMPTS = 3
# what joblib's own processes, and Dask's, raise when a worker is gone; named, so that neither need be installed
_BROKEN = "CommClosedError"  # Dask's, when a connection to a worker or to the scheduler is gone
_DEATHS = (
    "TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "CancelledError", "FutureCancelledError", _BROKEN,
)  # fmt: skip
_NOTICED = 5.0  # seconds in which a client notices that its scheduler is gone


class WorkerWarning(UserWarning):
    """A worker died and its tasks are run again."""


def in_order(call: Callable[..., R], tasks: Sequence[T], n_jobs: int | None = None, *shared: Any) -> Iterator[R]:
    """Yield ``call(*shared, task)`` for each task, in their order, whichever worker is done first.

    Workers are joblib's (``n_jobs``, or what ``joblib.parallel_config`` or :func:`cluster` say). What tasks share is
    sent to each worker once. Tasks lost with a worker are run again, at most ``_ATTEMPTS`` times in all, with a
    :class:`WorkerWarning` that tells the cause: they must be functions of the task alone. What a task itself raises is
    raised; a scheduler that is gone is a ``ConnectionError``.
    """
    joblib = require("joblib", purpose="Running tasks")
    checked_jobs(n_jobs)
    if joblib.effective_n_jobs(n_jobs) == 1 or len(tasks) < 2:
        yield from (call(*shared, task) for task in tasks)
        return
    client = getattr(joblib.parallel.get_active_backend()[0], "client", None)
    done = attempt = 0
    while done < len(tasks):
        left = tasks[done:]
        running = _by_joblib(call, left, n_jobs, shared) if client is None else _by_dask(client, call, left, shared)
        try:
            for result in running:
                yield result
                done += 1
        except Exception as error:
            if client is not None and _scheduler_gone(client, error):
                raise ConnectionError("the cluster's scheduler is gone; start another and call again") from error
            attempt += 1
            if not any(kind.__name__ in _DEATHS for kind in type(error).__mro__) or attempt == _ATTEMPTS:
                raise
            cause = (str(error).strip() or type(error).__name__).splitlines()[0]
            warnings.warn(f"a worker died; its tasks are run again: {cause}", WorkerWarning, stacklevel=2)


def checked_jobs(n_jobs: int | None) -> None:
    """Refuse a number of workers that joblib does not know."""
    if n_jobs is not None and integer("n_jobs", n_jobs) == 0:
        raise InputError("n_jobs must be a number of workers, -1 for all processors or None, got 0")


def _scheduler_gone(client: Any, error: Exception) -> bool:
    """Whether it is the scheduler that is gone: after a broken connection the client may notice a moment later."""
    broken = any(kind.__name__ == _BROKEN for kind in type(error).__mro__)
    until = time.monotonic() + (_NOTICED if broken else 0.0)
    while (status := getattr(client, "status", "running")) == "running" and time.monotonic() < until:
        time.sleep(0.05)
    return status not in ("running", "connecting") or (broken and status == "connecting")


def _by_joblib(call: Callable[..., R], tasks: Sequence[Any], n_jobs: int | None, shared: Sequence[Any]) -> Iterator[R]:
    joblib = require("joblib", purpose="Running tasks")
    jobs = (joblib.delayed(call)(*shared, task) for task in tasks)
    if not getattr(joblib.parallel.get_active_backend()[0], "supports_return_generator", True):  # Ray's
        yield from joblib.Parallel(n_jobs=n_jobs)(jobs)
        return
    results = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    try:
        for result in results:  # noqa: UP028  (closed below, not by this generator)
            yield result
    finally:
        with warnings.catch_warnings(action="ignore"):  # joblib warns of results that nobody took
            results.close()


def _by_dask(client: Any, call: Callable[..., R], tasks: Sequence[Any], shared: Sequence[Any]) -> Iterator[R]:
    """Through the client itself: joblib scatters what is shared, and waits for ever if the worker that has it dies.

    Here it is the result of a task, which the scheduler can run again.
    """
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
        held = client.submit(_held, _Whole((call, *shared)), pure=False)
    futures = [client.submit(_called, held, _Whole(task), pure=False) for task in tasks]
    try:
        for i, future in enumerate(futures):
            yield future.result().value
            futures[i] = None  # the cluster may forget it
    finally:
        client.cancel([future for future in futures if future is not None])


class _Whole:
    """A value whose arrays lie in memory as here wherever it is sent.

    Dask gives an array whatever address its bytes come to lie at, and NumPy adds up numbers at odd addresses in another
    order: the last bits of a mean would depend on who computed it.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Callable[[bytes], _Whole], tuple[bytes]]:
        return _unpacked, (require("cloudpickle", purpose="A cluster").dumps(self.value),)


def _unpacked(content: bytes) -> _Whole:
    return _Whole(pickle.loads(content))


def _held(values: _Whole) -> _Whole:
    return values


def _called(held: _Whole, task: _Whole) -> _Whole:
    call, *shared = held.value
    return _Whole(call(*shared, task.value))


@contextmanager
def cluster(address: Any) -> Iterator[Any]:
    """Run everything that takes ``n_jobs`` on a Dask cluster while the block lasts: attacks, releases, profiles.

    Each task is seeded by its number, so results do not depend on how many workers there are, nor on which of them die.
    Files that are named must be readable by the workers under the same path.

    Parameters
    ----------
    address
        Of the scheduler, as ``"tcp://10.0.0.5:8786"``, a ``dask.distributed.Client`` or a cluster object that a client
        can connect to. A client that is made here is closed at the end; one that was passed is left open.

    Yields
    ------
    dask.distributed.Client

    Raises
    ------
    InputError
        If no scheduler answers, no worker is there, or a worker has other versions of Python, NumPy or deniable.
    ImportError
        If ``deniable[dask]`` is not installed.
    """
    distributed = require("distributed", purpose="A cluster")
    joblib = require("joblib", purpose="A cluster")
    client, own = address, False
    if not isinstance(address, distributed.Client):
        try:
            if isinstance(address, str) and not address.startswith(("inproc:", "ucx:")):
                distributed.comm.get_address_host_port(address)  # a client made of a bad one complains when it is freed
            client, own = distributed.Client(address, timeout="5s", set_as_default=False), True
        except (OSError, ValueError) as error:
            raise InputError(f"cluster must be the address of a running scheduler, got {address!r}: {error}") from error
    try:
        _same_versions(client)
        with joblib.parallel_config(backend="dask", client=client, n_jobs=-1):
            yield client
    finally:
        if own:
            client.close()


def _versions() -> tuple[str, ...]:
    """Versions on which numbers, or their transport, depend."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = [f"Python {'.'.join(platform.python_version_tuple()[:2])}"]
    for name in ("deniable", "numpy", "scipy"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} (not installed)")
    return tuple(found)


def _asked(client: Any) -> Any:
    """Ask all workers; where one dies meanwhile, those that are left, or its successor, are asked again."""
    for _ in range(2):
        try:
            return client.run(_versions)
        except OSError:
            time.sleep(0.2)
    return client.run(_versions)


def _same_versions(client: Any) -> None:
    ours = _versions()
    try:
        theirs = _asked(client)
    except Exception as error:
        raise InputError(
            f"the workers cannot import deniable ({type(error).__name__}: {error}); install the same version there"
        ) from error
    if not theirs:
        raise InputError("the cluster has no workers; start some (dask worker ADDRESS)")
    for worker, found in theirs.items():
        if tuple(found) != ours:
            different = [f"{a} here, {b} there" for a, b in zip(ours, found, strict=False) if a != b]
            raise InputError(f"worker {worker} must have the versions of this process: {'; '.join(different)}")
