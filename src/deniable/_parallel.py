"""Tasks run by joblib, here or on a cluster: results in the order of the tasks, and dead workers replaced."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from deniable._check import InputError, integer
from deniable._optional import require

T = TypeVar("T")
R = TypeVar("R")

_joined: ContextVar[Any] = ContextVar("cluster", default=None)  # the client with whose workers parts of data stay
_ATTEMPTS = 3  # of joblib's processes; Dask runs the tasks of a dead worker again by itself


class WorkerWarning(UserWarning):
    """A worker died and its tasks are run again."""


def in_order(call: Callable[..., R], tasks: Sequence[T], n_jobs: int | None = None, *shared: Any) -> Iterator[R]:
    """Yield ``call(*shared, task)`` for each task, in their order, whichever worker is done first.

    Workers are joblib's (``n_jobs``, or what ``joblib.parallel_config`` or :func:`cluster` say). What tasks share is
    sent to each worker once. Tasks lost with a worker are run again, a few times at most: they must be functions of the
    task alone. What a task itself raises is raised.
    """
    joblib = require("joblib", purpose="Running tasks")
    checked_jobs(n_jobs)
    if joblib.effective_n_jobs(n_jobs) == 1 or len(tasks) < 2:
        yield from (call(*shared, task) for task in tasks)
    elif (client := _client()) is not None:
        yield from _by_dask(client, call, tasks, shared)
    else:
        done = attempt = 0
        while done < len(tasks):
            try:
                for result in _by_joblib(call, tasks[done:], n_jobs, shared):
                    yield result
                    done += 1
            except BrokenProcessPool as error:
                attempt += 1
                if attempt == _ATTEMPTS:
                    raise
                cause = (str(error).strip() or type(error).__name__).splitlines()[0]
                warnings.warn(f"a worker died; its tasks are run again: {cause}", WorkerWarning, stacklevel=2)


def _client() -> Any:
    """Return the client of the cluster that joblib works on, None if it works on none."""
    return getattr(require("joblib", purpose="Running tasks").parallel.get_active_backend()[0], "client", None)


def on_cluster() -> bool:
    """Whether tasks run on a cluster, whose workers need not see the files of this process."""
    return _client() is not None


def checked_jobs(n_jobs: int | None) -> None:
    """Refuse a number of workers that joblib does not know."""
    if n_jobs is not None and integer("n_jobs", n_jobs) == 0:
        raise InputError("n_jobs must be a number of workers, -1 for all processors or None, got 0")


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
        held = client.submit(_hold, _Whole((call, *shared)), pure=False)
    futures = [client.submit(_call, held, _Whole(task), pure=False) for task in tasks]
    try:
        for i, future in enumerate(futures):
            yield future.result().value
            futures[i] = None  # the cluster may forget it
    except CancelledError as error:  # such as "scheduler-connection-lost"
        raise ConnectionError(f"the cluster gave the work up: {error}; start another and call again") from error
    finally:
        client.cancel([future for future in futures if future is not None])


@dataclass(frozen=True)
class Parts:
    """Parts of some data, here or each with a worker of a cluster, to which calls come.

    One that is lost with its worker is made again, from what it was made of.
    """

    parts: Sequence[Any]
    client: Any = None

    @classmethod
    def of(cls, cut: Callable[[int], Sequence[Any]]) -> Parts:
        """Return the parts that ``cut`` makes, at most as many as it is told: one here, or one for each thread."""
        if (client := _joined.get()) is None:
            return cls(cut(1))
        many = max(sum(client.nthreads().values()), 1)
        return cls([client.submit(_hold, _Whole(part), pure=False) for part in cut(many)], client)

    def then(self, call: Callable[[Any], Any]) -> Parts:
        """Return the parts that ``call`` makes of these, each where the one is that it is made of."""
        if self.client is None:
            return Parts([call(part) for part in self.parts])
        task = _Whole((call,))
        return Parts([self.client.submit(_call, task, part, pure=False) for part in self.parts], self.client)

    def each(self, call: Callable[[Any], Any]) -> list[Any]:
        """Return what ``call`` makes of each part."""
        made = self.then(call).parts
        return [*made] if self.client is None else [whole.value for whole in self.client.gather(made)]


class _Whole:
    """A value whose arrays lie in memory as here wherever it is sent.

    Dask gives an array whatever address its bytes come to lie at, and NumPy adds up numbers at odd addresses in another
    order: the last bits of a mean would depend on who computed it.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Callable[[bytes], _Whole], tuple[bytes]]:
        return _unpack, (require("cloudpickle", purpose="A cluster").dumps(self.value),)


def _unpack(content: bytes) -> _Whole:
    return _Whole(pickle.loads(content))


def _hold(values: _Whole) -> _Whole:
    return values


def _call(held: _Whole, task: _Whole) -> _Whole:
    call, *shared = held.value
    return _Whole(call(*shared, task.value))


@contextmanager
def cluster(address: Any) -> Iterator[Any]:
    """Run attacks, releases, profiles and the sums of private models on a Dask cluster while the block lasts.

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

    Examples
    --------
    >>> import deniable as dn
    >>> with dn.records.cluster("tcp://10.0.0.5:8786"):  # doctest: +SKIP
    ...     profile = dn.privacy_profile("/shared/records/", target="income", regularization=1e-3)
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
    before = _joined.get()  # of a block around this one
    try:
        _same_versions(client)
        _joined.set(client)
        with joblib.parallel_config(backend="dask", client=client, n_jobs=-1):
            yield client
    finally:
        _joined.set(before)
        if own:
            client.close()


def _same_versions(client: Any) -> None:
    """Refuse workers of other versions than those on which numbers, or their transport, depend."""
    found = client.get_versions(packages=["deniable", "scipy"])
    if not found["workers"]:
        raise InputError("the cluster has no workers; start some (dask worker ADDRESS)")
    for worker, there in found["workers"].items():
        for name in ("deniable", "numpy", "python", "scipy"):
            mine, theirs = (str(one["packages"].get(name)) for one in (found["client"], there))
            if mine != theirs:
                raise InputError(
                    f"worker {worker} must have the versions of this process: {name} {mine} here, {theirs} there"
                )
