"""What dies on the way changes nothing: each case prints what was killed, what was sent, and whether the bits agree.

    python benchmarks/scale/failures.py [CASE ...] [--log]

Cases: wire memory truncated ray; without names all but the last, which needs ``pip install ray``. ``--log``
puts what is printed in place of the lines of these cases in ``benchmarks/scale/results/failures.txt``. Everything runs
here, in own processes.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import deniable as dn
from deniable._parallel import in_order

N, D = 60_000, 20


def folder(at: Path, parts: int = 6) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) / (6 * np.sqrt(D))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(y=rng.integers(0, 2, N))
    at.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(N), parts)):
        frame.iloc[rows].to_parquet(at / f"{i}.parquet", index=False, write_page_checksum=True)
    return at


def profile(data: Path, **more: object) -> dn.PrivacyProfile:
    return dn.privacy_profile(
        data, target="y", regularization=1e-2, mechanism=dn.OutputPerturbation(epsilon=1.0), rng=0, **more
    )


def same(a: dn.PrivacyProfile, b: dn.PrivacyProfile) -> str:
    equal = np.array_equal(a.distance, b.distance) and np.array_equal(a.privacy_loss(), b.privacy_loss())
    return "same bits" if equal else "DIFFERENT"


def local(workers: int = 2, **more: object):
    from distributed import LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50} | more
    return LocalCluster(n_workers=workers, processes=True, **options)


def mean_of(data: np.ndarray, task: int) -> float:
    return float(data[task::7].mean())


@contextlib.contextmanager
def truncated() -> None:
    """A Parquet file that was cut short, and one with other bytes in its middle (it has page checksums)."""
    with tempfile.TemporaryDirectory() as place:
        for what in ("its last third is missing", "200 bytes in its middle are zero"):
            data = folder(Path(place) / what.replace(" ", "-"), 3)
            file = data / "1.parquet"
            content = file.read_bytes()
            middle = len(content) // 2
            whole = content[: 2 * len(content) // 3] if "third" in what else (
                content[:middle] + bytes(200) + content[middle + 200 :]
            )  # fmt: skip
            file.write_bytes(whole)
            try:
                profile(data)
                said = "NOTHING SAID"
            except dn.InputError as error:
                said = str(error).replace(place, "")
            print(f"truncated: a file of which {what}: {said}", flush=True)


def wire() -> None:
    """100 tasks that share 80 MB: what goes over each worker's sockets, counted by the kernel."""
    data = np.random.default_rng(0).normal(size=10_000_000)
    for workers in (2, 4):
        with local(workers) as cluster, dn.cluster(cluster) as client:
            before = received(client)
            found = list(in_order(mean_of, list(range(100)), None, data))
            sent = received(client) - before
        alone = [mean_of(data, i) for i in range(100)]
        print(f"wire: 100 tasks that share {data.nbytes / 1e6:.0f} MB, {workers} worker(s): the workers received "
              f"{sent / 1e6:.0f} MB; {'same bits' if found == alone else 'DIFFERENT'}", flush=True)  # fmt: skip


def received(client) -> int:
    """Bytes that arrived at the open sockets of the workers, as the kernel counts them (TCP_INFO)."""

    def read() -> int:
        import gc
        import socket
        import struct

        from distributed.comm.tcp import TCP

        total = 0
        for one in gc.get_objects():
            if isinstance(one, TCP) and one.stream is not None and one.stream.socket is not None:
                info = one.stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
                total += struct.unpack("Q", info[128:136])[0]
        return total

    return sum(client.run(read).values())


def _hog(flag: str, task: int) -> int:
    """Task 3 takes all the memory of the first worker that has it."""
    if task == 3 and not os.path.exists(flag):
        Path(flag).touch()
        blocks = []
        while True:
            blocks.append(np.ones(5_000_000))
            time.sleep(0.02)
    return task * task


def memory() -> None:
    """A worker that runs out of memory is ended by its nanny; its tasks are run again elsewhere."""
    import dask

    with (
        tempfile.TemporaryDirectory() as place,
        dask.config.set({"distributed.scheduler.allowed-failures": 10}),
        local(2, memory_limit="600MB") as cluster,
        dn.cluster(cluster),
    ):
        pids = {nanny.pid for nanny in cluster.workers.values()}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = list(in_order(_hog, list(range(12)), None, f"{place}/flag"))
        gone = pids - {nanny.pid for nanny in cluster.workers.values()}
    told = [str(w.message) for w in said if "worker" in str(w.message)]
    right = "right" if found == [i * i for i in range(12)] else "WRONG"
    print(f"memory: a task took all of a worker's 600 MB; process {gone or 'none'} ended and was replaced; "
          f"results {right}; warnings: {told or 'none'}", flush=True)  # fmt: skip


def ray() -> None:
    """Ray as joblib's backend."""
    import joblib
    import ray as library
    from ray.util.joblib import register_ray

    library.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    run = lambda: dn.attack_estimator(  # noqa: E731
        DecisionTreeClassifier(random_state=0), X, y, method="lira", n_shadows=16, rng=0
    )
    alone = run()
    with joblib.parallel_config(backend="ray", n_jobs=2):
        there = run()
    equal = np.array_equal(alone.member_scores, there.member_scores)
    print(
        f"ray {library.__version__}: 16 shadow models of an attack: {'same bits' if equal else 'DIFFERENT'}", flush=True
    )
    with tempfile.TemporaryDirectory() as place:
        data = folder(Path(place) / "data")
        alone_profile = profile(data)
        with joblib.parallel_config(backend="ray", n_jobs=2):
            found = profile(data)
    print(f"ray {library.__version__}: a profile of {N:,} × {D}: {same(found, alone_profile)}", flush=True)
    library.shutdown()


class _Both(io.TextIOBase):
    """What is printed goes to the screen and is kept."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def write(self, text: str) -> int:
        self.kept.append(text)
        return sys.__stdout__.write(text)


CASES = {
    "wire": wire, "memory": memory, "truncated": truncated, "ray": ray,
}  # fmt: skip


def main(arguments: list[str]) -> None:
    names = [one for one in arguments if one != "--log"] or list(CASES)[:-1]
    if unknown := set(names) - set(CASES):
        sys.exit(f"unknown cases: {', '.join(sorted(unknown))}; known are {', '.join(CASES)}")
    from importlib.metadata import version

    both = _Both()
    with contextlib.redirect_stdout(both):
        for name in names:
            CASES[name]()
    if "--log" in arguments:
        path = Path(__file__).parent / "results" / "failures.txt"
        known = path.read_text(encoding="utf-8").splitlines()[2:] if path.exists() else []
        kept = [line for line in known if line.split(maxsplit=1)[0].rstrip(":") not in names]
        head = (f"python benchmarks/scale/failures.py [CASE ...] --log   ({os.cpu_count()} cores; Python "
                f"{platform.python_version()}, Dask {version('distributed')}, joblib {version('joblib')})")  # fmt: skip
        lines = [*kept, *"".join(both.kept).splitlines()]
        lines.sort(key=lambda line: list(CASES).index(line.split(maxsplit=1)[0].rstrip(":")))
        path.write_text("\n".join([head, "", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
