"""The page in a real browser: numbers equal the JSON's, nothing is logged, nothing is requested, anyone can read it."""

import json
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.report.model import Series
from deniable.report.page import _rows
from deniable.workflows.published import for_owner
from deniable.workflows.train import train_table

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(whole):
    return whole


@pytest.fixture(scope="module")
def page_file(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.to_html(path)
    return path


@pytest.fixture(params=["light", "dark", "phone"])
def page(request, browser, page_file):
    width = 390 if request.param == "phone" else 1200
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if request.param == "dark" else "light"
    )
    page.seen = []
    page.on("console", lambda message: page.seen.append(("console", message.text)))
    page.on("pageerror", lambda error: page.seen.append(("error", str(error))))
    page.on("request", lambda sent: page.seen.append(("request", sent.url)))
    page.goto(page_file.as_uri())
    page.wait_for_selector("#verdict")
    yield page
    page.close()


def test_nothing_is_logged_and_nothing_is_requested(page, page_file):
    assert page.seen == [("request", page_file.as_uri())]


def test_numbers_on_the_page_equal_the_json(page, report):
    data = json.loads(page.text_content("#assessment"))
    assert data == json.loads(report.to_json())
    for section in data["sections"]:
        for number in section["numbers"]:
            cell = page.locator(f'[data-key="{number["key"]}"]')
            assert cell.text_content() == report.numbers[number["key"]].shown
            if number["value"] is not None:
                assert float(cell.get_attribute("data-value")) == number["value"]


def test_the_decision_comes_first_and_has_its_colour(page, report):
    assert report.decision.outcome == "does not meet"
    verdict = page.locator("#verdict")
    assert verdict.bounding_box()["y"] < 360
    assert "Does not meet the policy" in verdict.text_content()
    assert "bad" in verdict.get_attribute("class").split()
    assert page.locator("#rules tbody tr").count() == len(report.decision.rules)


def test_the_picture_is_seen_at_once_and_details_are_folded(page):
    box = page.locator("#plot-roc svg").bounding_box()
    assert box["width"] > 250
    assert box["height"] > 150
    part = page.locator("details#bound")
    assert part.get_attribute("open") is None
    page.evaluate("location.hash = '#bound'")
    page.locator("details#bound[open]").wait_for()  # a function to wait for would need eval, which the page forbids


def test_a_page_with_unprotected_figures_says_so_first(page, report):
    assert page.locator("#owner").text_content() == report.for_owner
    assert "Keep this with the data" in report.for_owner
    assert dn.assess(dn.PureDP(1.0)).for_owner == ""
    assert 'id="owner"' not in dn.assess(dn.PureDP(1.0)).to_html()


def test_accessibility(page, axe_violations):
    assert axe_violations(page, every=True) == []
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert axe_violations(page, every=True) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")


def test_paper_is_white_whatever_the_screen(page, axe_violations):
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    title = "document.querySelector('#plot-roc .axis')"
    assert page.evaluate(f"getComputedStyle({title}).fill") == "rgb(0, 0, 0)"
    assert page.locator("details.part:not([open])").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert axe_violations(page, every=True) == []


def test_keyboard_reaches_every_part(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the numbers"
    assert page.locator("main h2").count() >= 4


def published():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(18, 80, 900).round(), "town": rng.choice(["a", "b"], 900)})
    table["seen"] = (pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, 900), "D")).strftime("%Y-%m-%d")
    asked = ["mean(age) by town", "count() by town", "mean(seen)"]
    made = dn.release_statistics(table, asked, advantage=0.2)
    return for_owner(dn.assess(made), table, made)


def trained():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(18, 80, 900), "town": rng.choice(["a", "b", "c"], 900)})
    table["ill"] = np.where(table["age"] + 9 * (table["town"] == "b") > 55, "yes", "no")
    return train_table(table, target="ill", advantage=0.3).assessment


@pytest.mark.parametrize("make", [published, trained])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_pages_of_tables_and_models_can_be_read_by_anyone(make, scheme, width, browser, axe_violations, tmp_path):
    made = make()
    made.to_html(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto((tmp_path / "page.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert axe_violations(page, every=True) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    if width == 1200:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") <= 4
    page.close()


@pytest.mark.parametrize("mu", [0.2513, 0.5066, 1.1])
def test_no_rate_beneath_the_picture_is_rounded_down(mu):
    """It said "≤ 1.899 %" of 1.89921 %: rounded up to six digits, then to the nearest of four."""
    curve = dn.tradeoff(dn.GaussianDP(mu))
    page = dn.assess(curve).to_html()
    told = re.findall(r"<td>([\d.]+) %</td><td>≤ ([\d.e-]+)\s*%</td>", page)
    assert len(told) > 4
    for fpr, bound in told:
        assert Decimal(bound) / 100 >= Decimal(curve.tpr(float(fpr) / 100, side="lower"))


def test_tables_of_pictures_round_bounds_to_the_safe_side():
    """All were rounded to the nearest of four digits."""
    lines = {"at most": [1.23411], "μ that remains": [1.23456], "lower": [1.23456]}
    picture = Series("p", "t", "x", "y", [1.0], lines)
    assert _rows(picture) == [["1", "1.235", "1.234", "1.234"]]
