"""Shared fixtures: data sets that may be absent, a browser that may be absent, quiet property tests."""

import os
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from zlib import crc32

import matplotlib as mpl
import pytest
from hypothesis import HealthCheck, settings

from entropy import Entropy, replace_entropy
from faults import faults_shown

mpl.use("Agg")
settings.register_profile(
    "deniable", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("deniable")

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "papers"))
ENTROPY = pytest.StashKey[Entropy]()
SLOW = set((ROOT / "tests" / "slow_tests.txt").read_text().splitlines())  # files, and functions of other files
SLOW_FILES = {ROOT / "tests" / name for name in SLOW}


def pytest_ignore_collect(collection_path, config):
    """Where slow tests are left out, as by `make test`, their files are not even read."""
    return True if collection_path in SLOW_FILES and "not slow" in config.option.markexpr else None


def pytest_collection_modifyitems(config, items):
    if part := config.getoption("part"):  # a function's cases stay together: they may share what is slow to make
        number, of = map(int, part.split("/"))
        chosen = [crc32(item.nodeid.split("[")[0].encode()) % of == number for item in items]
        config.hook.pytest_deselected(items=[item for item, own in zip(items, chosen, strict=True) if not own])
        items[:] = [item for item, own in zip(items, chosen, strict=True) if own]
    for item in items:
        if item.path in SLOW_FILES or item.nodeid.split("[")[0].removeprefix("tests/") in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def faults(request):
    """In tests of accounting and contracts, engines that fail raise, and do not answer with the trivial bound."""
    rooms = (ROOT / "tests" / room for room in ("accounting", "contracts"))
    with faults_shown() if any(map(request.path.is_relative_to, rooms)) else nullcontext():
        yield


@pytest.fixture(scope="session")
def dataset():
    """Return a function from a file name to its path in the data folder; skips the test if it is absent."""
    folder = Path(os.environ.get("DENIABLE_DATA", ROOT.parent / "shared" / "datasets"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"{name} is not in {folder}; set DENIABLE_DATA to the folder that holds it")
        return path

    return find


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a Chromium; skips the test if there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium found; install Debian's package chromium to run the browser tests")


@pytest.fixture(scope="session")
def browser(chromium):
    """Return Playwright's handle of one headless Chromium; skips the test if either is missing."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is in the dev extra")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=flags)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def axe_violations():
    """Return a function from a page to the ids of its accessibility violations: serious and critical, or every one."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is in the dev extra")

    def check(page, *, every: bool = False) -> list[str]:
        found = axe.Axe().run(page).response["violations"]
        return [violation["id"] for violation in found if every or violation["impact"] in ("serious", "critical")]

    return check


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-docs", action="store_true", help="run the examples of README and docs")
    parser.addoption("--part", default="", help="one of equal parts of the tests, from 0: 0/3, 1/3 or 2/3")
    parser.addoption("--entropy", type=int, default=0, help="other draws of unseeded noise (a number; default: 0)")


def pytest_configure(config):
    config.stash[ENTROPY] = replace_entropy(config.getoption("entropy"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.config.stash[ENTROPY].begin(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Shared fixtures draw the same whichever test asks first."""
    if fixturedef.scope == "function":
        return (yield)
    with request.config.stash[ENTROPY].of_fixture(f"{fixturedef.baseid} {request.fixturename} {request.param_index}"):
        return (yield)
