"""The local page: numbers equal the library's, a target gives the noise, a bad upload leaves the page standing."""

import socket
import sys
from pathlib import Path

import pytest

import deniable as dn
from deniable._shown import shown
from deniable.cli._app import run

PAGE = str(Path(dn.__file__).with_name("app.py"))

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def page():
    testing = pytest.importorskip("streamlit.testing.v1", reason="pip install 'deniable[app]'")
    page = testing.AppTest.from_file(PAGE, default_timeout=60).run()
    assert not page.exception
    return page


def metrics(page):
    return {metric.label: metric.value for metric in page.metric}


def test_no_package_of_ours_hides_a_module_of_python(monkeypatch):
    testing = pytest.importorskip("streamlit.testing.v1", reason="pip install 'deniable[app]'")
    monkeypatch.syspath_prepend(str(Path(PAGE).parent))  # as `streamlit run` does
    assert not testing.AppTest.from_file(PAGE, default_timeout=60).run().exception
    assert str(Path(PAGE).parent) not in sys.path


def test_numbers_equal_the_library(page):
    t = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 5000))
    seen = metrics(page)
    assert seen["advantage, prior 50\u00a0%"] == shown(t.advantage(), "rate", "upper")
    assert seen["TPR at FPR 1\u00a0%"] == shown(t.tpr(0.01), "rate", "upper")
    assert seen["ε at δ = 1e-05"] == shown(t.epsilon(1e-5), "number", "upper")


def test_a_target_sets_the_noise_on_the_safe_side(page):
    page.button[0].click().run()
    assert not page.exception
    assert float(metrics(page)["advantage, prior 50\u00a0%"].rstrip("\u00a0%")) <= 10.0
    assert "smallest noise multiplier" in page.info[0].value


@pytest.mark.parametrize(
    ("risk", "leak"),
    [
        ("reconstruction", lambda t: t.reconstruction(0.001) <= 0.01),
        ("singling_out", lambda t: t.singling_out(1000, 1e-5) <= 0.1),
    ],
)
def test_other_risks_set_the_noise(page, risk, leak):
    page.selectbox[0].set_value(risk).run()
    page.button[0].click().run()
    assert not page.exception
    noise = page.number_input(key="noise-field").value
    assert leak(dn.tradeoff(dn.SubsampledGaussian(noise, 0.01, 5000)))


def test_an_impossible_target_is_explained(page):
    page.number_input(key="target-advantage").set_value(0.0).run()
    page.button[0].click().run()
    assert not page.exception
    assert "advantage" in page.info[0].value


def test_a_port_that_is_taken_is_refused_in_one_line(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["app", "--no-browser", "--port", str(port)]) == 2
    assert f"--port {port}" in capsys.readouterr().err
