"""The local page: numbers equal the library's, a target gives the noise, a bad upload leaves the page standing."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import deniable as dn
from deniable._shown import shown

testing = pytest.importorskip("streamlit.testing.v1", reason="the page needs the extra: pip install 'deniable[app]'")
PAGE = str(Path(dn.__file__).with_name("app.py"))

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def page():
    page = testing.AppTest.from_file(PAGE, default_timeout=60).run()
    assert not page.exception
    return page


def metrics(page):
    return {metric.label: metric.value for metric in page.metric}


def test_numbers_equal_the_library(page):
    t = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 5000))
    seen = metrics(page)
    assert seen["advantage, prior 50 %"] == shown(t.advantage(), "rate", "upper")
    assert seen["TPR at FPR 1\u00a0%"] == shown(t.tpr(0.01), "rate", "upper")
    assert seen["ε at δ = 1e-05"] == shown(t.epsilon(1e-5), "number", "upper")


def test_more_noise_means_less_leakage(page):
    before = metrics(page)["advantage, prior 50 %"]
    page.slider(key="log_noise").set_value(1.0).run()
    after = metrics(page)["advantage, prior 50 %"]
    assert float(after.rstrip("\u00a0%")) < float(before.rstrip("\u00a0%"))


def test_a_target_sets_the_noise_on_the_safe_side(page):
    page.button[0].click().run()
    assert not page.exception
    assert float(metrics(page)["advantage, prior 50 %"].rstrip("\u00a0%")) <= 10.0
    assert "smallest noise multiplier" in page.info[0].value


def test_an_impossible_target_is_explained(page):
    page.number_input[1].set_value(0.0).run()
    page.button[0].click().run()
    assert not page.exception
    assert "advantage" in page.info[0].value


@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"a,b\n1,2\n", b"y,x\n" + b"1,nan\n0,2\n" * 20])
def test_a_bad_table_is_an_input_error_for_the_page_to_show(content):
    from deniable import app

    upload = io.BytesIO(content)
    upload.name = "people.csv"
    with pytest.raises(dn.InputError):
        app._assess_upload(upload, "y", "", 1.0, 0.01)


def test_a_good_table_gives_a_report():
    from deniable import app

    rows = "".join(f"{i % 2},{i},{i * i % 7}\n" for i in range(40))
    upload = io.BytesIO(("y,a,b\n" + rows).encode())
    upload.name = "people.csv"
    assert app._assess_upload(upload, "y", "", 1.0, 0.1).numbers["records.count"].value == 30


def test_it_listens_on_this_machine_only():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deniable", "app", "--no-browser", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert _answers(f"http://127.0.0.1:{port}/_stcore/health")
        listening = Path("/proc/net/tcp")
        if listening.exists():
            lines = [line.split() for line in listening.read_text().splitlines()[1:]]
            local = {fields[1] for fields in lines if fields[3] == "0A" and fields[1].endswith(f":{port:04X}")}
            assert local == {f"0100007F:{port:04X}"}
    finally:
        server.terminate()
        server.wait(10)


def _answers(url: str) -> bool:
    for _ in range(150):
        try:
            with urllib.request.urlopen(url, timeout=2) as reply:
                return reply.read() == b"ok"
        except OSError:
            time.sleep(0.2)
    return False
