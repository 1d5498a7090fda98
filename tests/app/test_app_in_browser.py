"""The local page end to end: a real server, a real Chromium, the numbers of the library on the page."""

import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import deniable as dn
from deniable._shown import shown

playwright = pytest.importorskip("playwright.sync_api", reason="drives the browser")
pytest.importorskip("streamlit", reason="the page needs the extra: pip install 'deniable[app]'")
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deniable", "app", "--no-browser", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert answers(f"http://127.0.0.1:{port}/_stcore/health")
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def answers(url: str) -> bool:
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=2) as reply:
                return reply.read() == b"ok"
        except OSError:
            time.sleep(0.2)
    return False


@pytest.fixture
def page(browser, address):
    """The loaded page; whatever a test does with it, the console stays silent and nothing leaves the machine."""
    context = browser.new_context(viewport={"width": 1300, "height": 1000}, accept_downloads=True)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda opened: asked.append(opened.url))
    page.goto(f"http://{address}/")
    page.wait_for_selector("img[alt^='ROC']", timeout=60_000)
    settled(page)
    yield page
    context.close()
    assert said == []
    assert [url for url in asked if not re.match(rf"(http|ws)://{address}/|data:|blob:", url)] == []
    assert any(url.startswith("ws://") for url in asked)


def settled(page):
    """Wait until the server has drawn everything that the last change asked for."""
    page.wait_for_timeout(150)
    page.wait_for_function("!document.querySelector('[data-testid=stStatusWidget], [data-stale=true]')", timeout=60_000)


def metrics(page):
    return dict(metric.inner_text().split("\n\n") for metric in page.get_by_test_id("stMetric").all())


def expected(noise, rate=0.01, steps=5000, prior=0.5, fpr=0.01, delta=1e-5):
    t = dn.tradeoff(dn.SubsampledGaussian(noise, rate, steps))
    percent = shown(fpr, "rate", "nearest")
    return {
        "advantage, prior 50\u00a0%": shown(t.advantage(), "rate", "upper"),
        f"accuracy, prior {shown(prior, 'rate', 'nearest')}": shown(t.accuracy(prior), "rate", "upper"),
        f"TPR at FPR {percent}": shown(t.tpr(fpr), "rate", "upper"),
        f"precision at FPR {percent}": shown(t.precision(fpr, prior), "rate", "upper"),
        f"ε at δ = {delta:g}": shown(t.epsilon(delta), "number", "upper"),
    }


def becomes(page, numbers):
    for _ in range(100):
        if metrics(page) == numbers:
            return True
        page.wait_for_timeout(100)
    return metrics(page) == numbers


def test_a_moved_slider_changes_the_numbers(page):
    arguments = {"noise": 1.0}
    labels = {"noise": "noise", "rate": "sampling", "prior": "prior", "fpr": "false positive rate", "delta": "δ"}
    for name, label in labels.items():
        slider = page.get_by_role("slider", name=re.compile(f"^{label}"))
        slider.focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        moved = float(slider.get_attribute("aria-valuetext")) / (100 if name in ("prior", "fpr") else 1)
        before, arguments = arguments, arguments | {name: moved}
        assert expected(**arguments) != expected(**before)
        assert becomes(page, expected(**arguments)), name


def test_a_typed_number_is_taken_exactly(page):
    page.get_by_label("steps").fill("1234")
    page.get_by_label("noise multiplier, exactly").fill("1.2345")
    page.keyboard.press("Enter")
    assert becomes(page, expected(1.2345, steps=1234))


def test_the_downloaded_report_holds_the_same_numbers(page, tmp_path):
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the report").click()
    download.value.save_as(tmp_path / "report.html")
    page_text = (tmp_path / "report.html").read_text()
    embedded = re.search(r'<script type="application/json" id="assessment">(.*?)</script>', page_text)
    (tmp_path / "report.json").write_text(embedded[1])
    made = dn.Assessment.from_json(tmp_path / "report.json")
    known = dn.assess(dn.SubsampledGaussian(1.0, 0.01, 5000), fpr=[0.01]).numbers
    assert {key: n.shown for key, n in made.numbers.items()} == {key: n.shown for key, n in known.items()}


def test_light_dark_and_phone_are_accessible(page, axe_violations):
    for scheme, width in (("light", 1300), ("dark", 1300), ("light", 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        settled(page)
        assert axe_violations(page) == [], scheme
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), width


def test_it_listens_on_this_machine_only(address):
    if not (listening := Path("/proc/net/tcp")).exists():
        pytest.skip("only Linux lists its sockets in /proc")
    port = int(address.split(":")[1])
    lines = [line.split() for line in listening.read_text().splitlines()[1:]]
    local = {fields[1] for fields in lines if fields[3] == "0A" and fields[1].endswith(f":{port:04X}")}
    assert local == {f"0100007F:{port:04X}"}
