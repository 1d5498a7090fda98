"""Work on processes and on a cluster of two: the same bits for any number of workers, whoever dies on the way."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import CancelledError

import numpy as np
import pytest

import deniable as dn
from deniable import InputError
from deniable._parallel import Parts, WorkerWarning, _same_versions, in_order
from deniable.training import fitting
from guarantees.replay import Tape


class Counted:
    """Data that count how often they are sent."""

    sent = 0

    def __init__(self, value: float) -> None:
        self.value = value

    def __reduce__(self):
        Counted.sent += 1
        return Counted, (self.value,)


def _times(shared: Counted, factor: float) -> float:
    time.sleep(0.02)
    return shared.value * factor


def _dies_once(flag: str, factor: int) -> int:
    if factor == 3 and not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * factor


def _always_dies(factor: int) -> int:
    if factor == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return factor


def _fails(factor: int) -> int:
    raise ValueError(f"task {factor} is wrong")


@pytest.fixture(scope="module")
def two_workers():
    distributed = pytest.importorskip("distributed")
    import dask

    settings = {"distributed.scheduler.allowed-failures": 10, "logging.distributed": "critical"}
    with (
        dask.config.set(settings),
        warnings.catch_warnings(action="ignore"),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
    ):
        yield cluster


def test_results_come_in_the_order_of_the_tasks():
    assert list(in_order(_times, [3, 1, 2], 1, Counted(2.0))) == [6.0, 2.0, 4.0]
    assert list(in_order(_times, [3, 1, 2], 2, Counted(2.0))) == [6.0, 2.0, 4.0]


@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs")
def test_a_process_that_dies_is_replaced_and_its_tasks_are_run_again(tmp_path):
    with pytest.warns(WorkerWarning, match="a worker died; its tasks are run again"):
        assert list(in_order(_dies_once, range(6), 2, str(tmp_path / "died"))) == [0, 2, 4, 6, 8, 10]


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_kills_every_worker_is_not_run_for_ever():
    with pytest.raises(Exception, match=r"worker|terminated"):
        list(in_order(_always_dies, range(3), 2))


def test_what_a_task_raises_is_raised():
    with pytest.raises(ValueError, match="is wrong"):
        list(in_order(_fails, range(3), 2))


def _mean(data: np.ndarray, start: int) -> tuple[float, np.ndarray]:
    return float(data[start::3].mean()), data[start::3]


def test_sums_have_the_same_bits_wherever_an_array_comes_to_lie(two_workers):
    data = np.random.default_rng(0).normal(size=100_000)
    with dn.records.cluster(two_workers):
        found = list(in_order(_mean, list(range(8)), None, data))
    assert [mean for mean, _ in found] == [_mean(data, start)[0] for start in range(8)]
    assert [part.mean() for _, part in found] == [_mean(data, start)[1].copy().mean() for start in range(8)]


def test_a_scheduler_that_is_gone_is_told(monkeypatch):
    import joblib

    class Future:
        def result(self):
            raise CancelledError("cancelled for reason: scheduler-connection-lost")

    class Client:
        def submit(self, *call, **options):
            return Future()

        def cancel(self, futures):
            assert len(futures) == 2

    class Backend(joblib.parallel.SequentialBackend):
        client = Client()

    monkeypatch.setattr(joblib, "effective_n_jobs", lambda n_jobs: 2)
    monkeypatch.setattr(joblib.parallel, "get_active_backend", lambda: (Backend(), 2))
    with pytest.raises(ConnectionError, match=r"scheduler-connection-lost; start another"):
        list(in_order(_times, [1, 2], None, Counted(1.0)))


def test_data_are_sent_to_each_worker_once(two_workers):
    with dn.records.cluster(two_workers):
        Counted.sent = 0
        found = list(in_order(_times, list(range(24)), None, Counted(2.0)))
    assert found == [2.0 * i for i in range(24)]
    assert Counted.sent <= 2


def test_a_profile_on_a_cluster_is_that_of_one_process(two_workers, tmp_path):
    rng = np.random.default_rng(0)
    pytest.importorskip("pyarrow")
    import pandas as pd

    X = rng.normal(size=(400, 3)) / 10
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=rng.integers(0, 2, 400))
    for i in range(4):
        frame[100 * i : 100 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet")
    options = {"target": "y", "regularization": 1e-2, "mechanism": dn.OutputPerturbation(epsilon=1.0), "rng": 0}
    alone = dn.privacy_profile(tmp_path, **options)
    with dn.records.cluster(two_workers), _killing(two_workers, after=0.3):
        there = dn.privacy_profile(tmp_path, **options)
    np.testing.assert_array_equal(there.distance, alone.distance)
    np.testing.assert_array_equal(there.privacy_loss(), alone.privacy_loss())


def test_blocks_and_partitions_travel_to_workers_that_see_no_file_of_this_process(two_workers):
    import pandas as pd

    from deniable.tables import as_source

    frames = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)) / 10, columns=["a", "b", "c"]).assign(y=rng.integers(0, 2, 300))
    dask = frames.from_pandas(frame, npartitions=3)
    options = {"target": "y", "regularization": 1e-2, "rng": 0}
    alone = dn.privacy_profile([frame], **options)
    with dn.records.cluster(two_workers):
        for data in (dask, [frame[:100], frame[100:]], iter([frame[:7], frame[7:7], frame[7:]])):
            there = dn.privacy_profile(data, **options)
            np.testing.assert_allclose(there.distance, alone.distance, rtol=1e-9)
        bad = frames.from_pandas(frame.assign(b=frame["b"].mask(frame.index == 250)), npartitions=3)
        with pytest.raises(InputError, match=r"column 'b' must be finite, partition 2 row 50 has nan"):
            dn.privacy_profile(bad, **options)
        parts = as_source([frame[:100], frame[100:]], "y").tasks
        assert {type(one) for part in parts for chunk in part.table.parts for one in chunk.columns} == {bytes}


class _Killer(Tape):
    """Noise that can be repeated; while the fifth sum of gradients is answered, one of the workers is killed."""

    sums = 0
    process: int | None = None

    def answer(self, label, sums, sd):
        self.sums += label.startswith("coefficients")
        if self.sums == 5 and self.process is not None:
            os.kill(self.process, signal.SIGKILL)
            self.process = None
        return super().answer(label, sums, sd)


def _people(n=4000):
    import pandas as pd

    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=["a", "b", "c", "d"]).assign(
        town=rng.choice(["Ulm", "Rome", None], n), person=rng.integers(0, n // 2, n)
    )
    score = frame["a"] + 2 * frame["b"] * frame["c"] + rng.logistic(size=n)
    return frame, score


KINDS = {
    "two classes": (dn.PrivateClassifier, lambda s: s > 0, {"limit": dn.GaussianDP(3.0)}),
    "three classes": (dn.PrivateClassifier, lambda s: np.digitize(s, [-1, 1]), {"limit": dn.GaussianDP(1.0)}),
    "a regression by persons": (
        dn.PrivateRegressor, lambda s: s.to_numpy(), {"limit": dn.GaussianDP(3.0), "group": "person"}
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_private_model_on_a_cluster_is_that_of_one_process_whoever_dies(two_workers, kind, monkeypatch):
    """Coefficients, certificate and each record's exposure, which the dead worker had added up in part."""
    monkeypatch.setattr(fitting, "STEPS", 40)
    monkeypatch.setattr(fitting, "STABLE", 0.1)  # with so few records the steps adapt to what they see, too
    make, target, options = KINDS[kind]
    X, score = _people()
    X = X if "group" in options else X.drop(columns="person")
    alone, quiet, deadly = (make(**options) for _ in range(3))
    alone._fit(X, target(score), _Killer(3))
    with dn.records.cluster(two_workers) as client:
        quiet._fit(X, target(score), _Killer(3))
        source = _Killer(3)
        source.process = next(iter(client.run(os.getpid).values()))
        deadly._fit(X, target(score), source)
        assert source.process is None
    assert alone.model_.pairs  # two walks, at least, with descents of their own
    for found in (quiet, deadly):
        np.testing.assert_array_equal(found.model_.coefficients, alone.model_.coefficients)
        np.testing.assert_array_equal(found.record_tradeoffs_.mu, alone.record_tradeoffs_.mu)
        assert str(found.certificate_) == str(alone.certificate_)


def test_a_block_inside_another_gives_its_cluster_back(two_workers):
    with dn.records.cluster(two_workers) as outer:
        with dn.records.cluster(two_workers) as inner:
            assert Parts.of(lambda many: [1] * many).client is inner
        assert Parts.of(lambda many: [1] * many).client is outer
    assert Parts.of(lambda many: [1] * many).client is None


def test_a_dask_frame_fits_on_a_cluster_as_here(two_workers, monkeypatch):
    frames = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(fitting, "STEPS", 40)
    X, score = _people(600)
    frame = frames.from_pandas(X.drop(columns="person").assign(y=np.where(score > 0, "ill", "well")), npartitions=3)
    made = []
    for where in (contextlib.nullcontext(), dn.records.cluster(two_workers)):
        with where, dn.testing.insecure_noise(np.random.default_rng(0)):
            made.append(dn.PrivateClassifier(advantage=0.5).fit(frame, target="y"))
    np.testing.assert_array_equal(made[0].model_.coefficients, made[1].model_.coefficients)


class _killing:  # noqa: N801
    """Kill one worker by its process id, in the middle of what runs."""

    def __init__(self, cluster, after: float) -> None:
        self.cluster, self.after, self.killed = cluster, after, 0
        self.thread = threading.Thread(target=self._kill)

    def __enter__(self):
        self.thread.start()
        return self

    def _kill(self) -> None:
        time.sleep(self.after)
        nanny = next(iter(self.cluster.workers.values()))
        self.killed = nanny.pid
        os.kill(nanny.pid, signal.SIGKILL)

    def __exit__(self, *_: object) -> None:
        self.thread.join()
        assert self.killed


def test_the_command_line_on_a_cluster(two_workers, capsys):
    import deniable.cli  # noqa: F401  (registers the commands)
    from deniable.cli._app import run

    line = ["attack", "breast-cancer", "--model", "tree", "--shadows", "8", "--seed", "0", "--json"]
    alone = run(line), capsys.readouterr().out
    there = run([*line, "--cluster", two_workers.scheduler_address]), capsys.readouterr().out
    pick = lambda out: [row for row in out.splitlines() if '"value"' in row]  # noqa: E731
    assert alone[0] == there[0]
    assert pick(alone[1]) == pick(there[1]) != []
    assert run([*line, "--cluster", "tcp://127.0.0.1:9", "--jobs", "2"]) == 2
    assert "not with --cluster" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="SIGINT is sent to a process as on POSIX systems")
def test_ctrl_c_ends_a_command_on_a_cluster_and_leaves_the_cluster(two_workers):
    """The signal reaches the command alone: the workers are elsewhere."""
    line = ["attack", "breast-cancer", "--model", "forest", "--shadows", "400"]
    line += ["--cluster", two_workers.scheduler_address]
    begun = two_workers.scheduler.transition_counter + 50  # tasks have changed their state: it is at work
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a script may have told us to ignore it
    process = subprocess.Popen([sys.executable, "-m", "deniable", *line], stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    try:
        while two_workers.scheduler.transition_counter < begun:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == "interrupted; no file was left half written\n"
    with dn.records.cluster(two_workers):
        assert list(in_order(_times, [1, 2], None, Counted(1.0))) == [1.0, 2.0]


def test_no_scheduler_no_workers_other_versions(two_workers):
    with (
        pytest.raises(InputError, match=r"address of a running scheduler, got 'tcp://127.0.0.1:9'"),
        dn.records.cluster("tcp://127.0.0.1:9"),
    ):
        pass
    for wrong, why in (
        ("nonsense", "missing port"),
        ("tcp://host:port", "invalid literal"),
        ("pigeon://a:1", "unknown"),
    ):
        words = f"address of a running scheduler, got '{wrong}': {why}"
        with pytest.raises(InputError, match=words), dn.records.cluster(wrong):
            pass

    class Client:
        def __init__(self, **workers):
            self.workers = workers

        def get_versions(self, packages):
            mine = dict.fromkeys(("python", "numpy", *packages), "1.0")
            there = {name: {"packages": mine | theirs} for name, theirs in self.workers.items()}
            return {"client": {"packages": mine}, "workers": there}

    _same_versions(Client(a={}, b={"dask": "0.1"}))
    for name, theirs in (("numpy", "0.2"), ("python", "3.9"), ("deniable", None), ("scipy", "1.1")):
        words = f"worker b must have the versions of this process: {name} 1.0 here, {theirs} there"
        with pytest.raises(InputError, match=words):
            _same_versions(Client(a={}, b={name: theirs}))
    with pytest.raises(InputError, match="no workers"):
        _same_versions(Client())
