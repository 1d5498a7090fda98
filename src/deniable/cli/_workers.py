"""Worker processes that leave Ctrl-C to the command that started them."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

from deniable._check import InputError
from deniable.cli._app import more

ClusterOption = Annotated[
    str | None,
    more("--cluster", help="Work on a Dask cluster: the address of its scheduler, tcp://HOST:PORT."),
]


def workers(jobs: int | None, cluster: str | None = None) -> AbstractContextManager[Any]:
    """Return what to run the work in: a cluster, or processes of this machine, which are started here."""
    if cluster is not None:
        if jobs is not None:
            raise InputError("--jobs goes with processes of this machine and not with --cluster; leave one of them out")
        from deniable._parallel import cluster as connected

        return connected(cluster)
    start_workers(jobs)
    return nullcontext()


def start_workers(jobs: int | None) -> None:
    """Start joblib's processes while Ctrl-C is ignored, which they inherit: the command ends them, in silence.

    joblib keeps them for the work that follows. Nothing is done for one job.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    if jobs == 0:
        raise InputError("--jobs must be a number of workers, or -1 for all processors, got 0")
    if jobs is None or effective_n_jobs(jobs) == 1:
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        Parallel(n_jobs=jobs)(delayed(int)() for _ in range(effective_n_jobs(jobs)))
    finally:
        signal.signal(signal.SIGINT, before)
