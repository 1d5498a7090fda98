"""Ctrl-C while a command works: exit code 130, one line, no traceback, no half file.

Each command is a process of its own in a session of its own, as in a terminal, where the signal reaches its workers
too. A line on stderr says that the long part has begun; the work itself is the real one.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGINT is sent to a process group as on POSIX systems")

SCRIPT = """
import importlib, sys
from deniable.cli import main
module, name = {place!r}.split(":")
holder = importlib.import_module(module)
work = getattr(holder, name)
def announced(*args, **kwargs):
    setattr(holder, name, work)  # once: the work may come in many short parts
    print("WORKING", file=sys.stderr, flush=True)
    return work(*args, **kwargs)
setattr(holder, name, announced)
sys.argv = ["deniable", *{arguments!r}]
main()
"""
ATTACK = ["attack", "breast-cancer", "--model", "forest", "--seed", "0"]
LONG = {
    "train": (
        ["train", "adult", "--target", "y", "--out", "model.skops", "--report", "report.html"],
        "deniable.workflows.train:train_table",
    ),
    "attack-parallel": (
        [*ATTACK, "--shadows", "400", "--jobs", "2", "--owner-report", "a.html", "--out", "s.npz"],
        "deniable:attack_estimator",
    ),
    "audit": (["audit", "scores.npz", "epsilon,1", "--owner-report", "audit.html"], "deniable:audit_scores"),
    "compare": (
        ["compare", *(f"dpsgd,{0.3 + i / 100},0.003,10" for i in range(26)), "--plot", "roc.svg"],
        "deniable.workflows:alike",
    ),
}


def started(folder, arguments, place):
    command = [sys.executable, "-c", SCRIPT.format(place=place, arguments=arguments)]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def interrupted(process):
    """Wait until the long part has begun, and press Ctrl-C; return (exit code, stdout, stderr)."""
    try:
        assert select.select([process.stderr], [], [], 60)[0]
        first = process.stderr.readline()
        assert first == "WORKING\n", first + process.stderr.read()
        time.sleep(0.2)
        assert process.poll() is None, "the work was over before it could be interrupted"
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    for _ in range(50):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return process.returncode, out, err
        time.sleep(0.1)
    pytest.fail("a worker has outlived the command")


@pytest.fixture(autouse=True, scope="module")
def heard():
    """Commands hear Ctrl-C even if this run does not: a script's ``&`` and ``nohup`` ignore it for all that follows."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def folder(tmp_path):
    """A folder with what the commands read."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "scores.npz", member=rng.normal(1, 1, 400_000), nonmember=rng.normal(0, 1, 400_000))
    return tmp_path


@pytest.mark.parametrize("name", LONG)
def test_nothing_is_left_behind(name, folder):
    arguments, place = LONG[name]
    if name == "train":
        rng = np.random.default_rng(0)
        rows = np.column_stack([rng.normal(size=(20_000, 20)), rng.integers(0, 2, 20_000)])
        header = ",".join([*(f"x{i}" for i in range(20)), "y"])
        np.savetxt(folder / "adult.csv", rows, delimiter=",", header=header, comments="", fmt="%.6g")
        arguments = [word.replace("adult", "adult.csv") for word in arguments]
    before = sorted(folder.iterdir())
    code, out, err = interrupted(started(folder, arguments, place))
    assert (code, out) == (130, ""), err
    assert err.strip() == "interrupted; no file was left half written", err
    assert sorted(folder.iterdir()) == before


SWALLOWED = """
import deniable, signal, sys, time
from deniable.cli import main
class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def work(*args, **kwargs):
    kept = Dropped()
    del kept  # Python drops what a destructor raises
    print("WORKING", file=sys.stderr, flush=True)
    time.sleep(60)
deniable.audit_scores = work
sys.argv = ["deniable", "audit", "scores.npz", "epsilon,1"]
main()
"""


def test_a_signal_that_falls_into_a_destructor_is_not_lost(folder):
    """As when Dask forgets a result: it came in ``Future.__del__``, and the command went on."""
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED], cwd=folder, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 130
    assert done.stderr == "WORKING\ninterrupted; no file was left half written\n"


def test_the_local_page_ends_quietly(tmp_path):
    pytest.importorskip("streamlit", reason="the page needs the extra: pip install 'deniable[app]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deniable", "app", "--no-browser", "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).close()
                break
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, out
    assert "Traceback" not in out
    assert list(tmp_path.iterdir()) == []
