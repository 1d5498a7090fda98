"""The page of published statistics: the same numbers on page, terminal and in the table, with what they mean."""

import csv
import io
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import deniable as dn
from deniable._shown import between, with_error
from deniable.cli._app import run
from deniable.workflows.published import for_owner

ASKED = ["mean(age) by town", "count() by town, ill", "median(age)", "mean(seen)", "share(ill)"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 4000
    frame = pd.DataFrame({"age": rng.uniform(18, 80, n).round(), "town": rng.choice(["a<b", "c"], n)})
    frame["ill"] = rng.choice(["yes", "no"], n, p=[0.1, 0.9])
    frame["seen"] = (pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")).strftime("%Y-%m-%d")
    return frame


@pytest.fixture(scope="module")
def made(table):
    ranges = {"age": (18, 80), "town": ("a<b", "c"), "ill": ("yes", "no"), "seen": ("2021-01-01", "2024-01-01")}
    return dn.release_statistics(table, ASKED, advantage=0.2, ranges=ranges)


def test_every_number_is_the_same_on_page_terminal_and_in_the_table(made):
    page, text, lines = dn.assess(made), str(made), list(csv.DictReader(io.StringIO(made.to_csv())))
    rows = [row for rows in made.rows for row in rows]
    grids = [row for section in page.sections if section.key.startswith("table") for row in section.grids[0].rows]
    assert len(rows) == len(grids) == len(lines)
    for row, cells, line in zip(rows, grids, lines, strict=True):
        assert cells[-3] == row.shown(named=False)  # what it is of stands in a note, once
        assert f": {cells[-3]}" in text
        assert cells[-2] == (row.population or "–")
        assert made.certificate.advantage <= float(line["advantage"]) < made.certificate.advantage + 1e-4
        assert (line["unit"], line["released"]) == ("record", made.released)
        if not math.isnan(row.value):
            assert float(line["value"]) == row.value
            assert cells[-1] == row.note == line["note"]
    html = page.to_html()
    assert "a&lt;b" in html
    assert "a<b" not in html.replace("\\u003c", "&lt;")


def test_noise_without_records_is_marked_and_withheld_numbers_say_why(made):
    counts = {row.group: row for row in made["count() by town, ill"]}
    assert counts["(other)", "(missing)"].note == "may be noise alone"
    assert counts["c", "no"].note == ""
    page = dn.assess(made)
    means = page.section("table1")
    assert any(note.startswith("Withheld: 2 of 4 numbers (too few") for note in means.notes)
    assert any("age are limited to 18 to 80 (declared)" in note for note in means.notes)
    assert "over the noise alone" in means.summary
    assert "noise and sampling together" in means.summary


def test_a_picture_shows_the_largest_first_and_every_limit(made):
    bars = dn.assess(made).section("table2").bars[0]
    assert bars.values == sorted(bars.values, reverse=True)
    assert not any("(other)" in label or "(missing)" in label for label in bars.labels)  # here they may be noise alone
    for value, low, high, below, above in zip(
        bars.values, bars.low, bars.high, bars.wide_low, bars.wide_high, strict=True
    ):
        assert below <= low <= high <= above
        assert low <= max(value, 0.0) <= high
    assert dn.assess(made).section("table4").bars[0].dates


def test_the_policy_decides_a_publication_and_secrets_are_covered(made, tmp_path):
    page = dn.assess(made, policy=dn.Policy([dn.Limit(advantage=0.2), dn.Limit(reconstruction=0.01, baseline=0.001)]))
    assert page.decision.met
    assert page.for_owner == ""
    assert page.numbers["risk.replacing"].value == made.certificate.replacement.advantage()
    page.to_json(tmp_path / "page.json")
    assert dn.Assessment.from_json(tmp_path / "page.json").sections == page.sections


def test_the_owners_page_adds_exact_counts_and_says_so(made, table):
    page = for_owner(dn.assess(made), table, made)
    assert page.numbers["reading.rows"].value == len(table)
    assert "How the file was read" in page.for_owner


def test_the_command_writes_both_pages_and_its_exit_code_is_that_of_the_policy(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table.to_csv("people.csv", index=False)
    words = ["publish", "people.csv", "--statistic", "count() by ill", "--advantage", "0.2", "--out", "t.csv"]
    assert run([*words, "--report", "p.html", "--owner-report", "o.json"]) == 0
    shown = capsys.readouterr()
    assert {f"written: {name}" for name in ("t.csv", "p.html", "o.json")} <= set(shown.err.splitlines())
    assert dn.Assessment.from_json("o.json").for_owner
    for value in re.findall(r": ([−\d,]+ ± \d+)", shown.out):
        assert value in (tmp_path / "p.html").read_text()
    assert run([*words, "--policy", "default"]) == 1


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_digits_fit_the_error_and_an_interval_is_rounded_outwards(value, error):
    near, off = (float(part.replace(",", "")) for part in with_error(value, error).split(" ± "))
    assert error <= off * (1 + 1e-12)
    assert off <= 1.1 * error * (1 + 1e-9)
    assert abs(near - value) <= 0.05 * error * (1 + 1e-9)
    low, high = (float(part.replace(",", "")) for part in between(value - error, value + error).split(" to "))
    assert low <= value - error
    assert high >= value + error


def test_digits_as_people_write_them():
    assert with_error(576.218, 14.9) == "576 ± 15"
    assert with_error(35286.99, 125.4) == "35,290 ± 130"
    assert with_error(0.12346, 0.00321) == "0.1235 ± 0.0033"
    assert with_error(3.0, 0.0) == "3"
    assert between(2.0, 2.0) == "2"


def test_what_is_printed_of_a_file_names_its_line_and_marks_the_noise_of_a_test(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "\n".join(map(str, range(200))))
    with dn.testing.insecure_noise(np.random.default_rng(0)):
        made = dn.release_statistics(path, "mean(a)", advantage=0.4)
    assert repr(made).startswith("INSECURE")
    assert repr(made.certificate).startswith("INSECURE")
    assumed = {row["assumes"] for row in made.records()}
    assert assumed == {"INSECURE; a record is a line of a file"}
    page = dn.assess(made)
    assert "whether a line of the file was in the data" in page.headline
    assert page.assumptions.unit == "line of the file"
    assert "for every line of the file" in page.numbers["release.advantage"].meaning
