"""Worker processes that leave Ctrl-C to the command that started them."""

from __future__ import annotations

import signal

from deniable._check import InputError


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
