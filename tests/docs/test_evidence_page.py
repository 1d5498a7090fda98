"""Figures of README and docs/evidence.md are those of benchmarks/evidence.json, and one that moved is found."""

import json
import re
import sys
from pathlib import Path

import pytest

from oracles.scripts import loaded

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def evidence():
    return loaded("benchmarks/evidence.py")


def test_the_page_is_made_of_the_recorded_figures(evidence):
    rows = json.loads(evidence.ROWS.read_text())
    assert evidence.PAGE.read_text() == evidence.page(rows)
    for row in rows:
        assert (ROOT / row["command"].split()[0]).exists(), row["command"]
        assert re.fullmatch(r"2\d{3}-\d\d-\d\d", row["day"]), row["claim"]
        assert re.fullmatch(r"[0-9a-f]{8}", row["commit"]), row["claim"]
        assert ("cpu_s" in row) == ("numbers" in row), row["claim"]  # what is run again has numbers to compare
        named = set(re.findall(r"\{(\w+):", row["figure"]))
        assert named == set(row.get("numbers", {})), row["claim"]
    assert sum({row["command"]: row.get("cpu_s", 0) for row in rows}.values()) < 1800


def test_figures_of_readme_are_evidence():
    table = re.search(r"## Evidence\n(.*?)\n## ", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    page = (ROOT / "docs" / "evidence.md").read_text()
    figures = re.findall(r"(?<![\w.])(?:\d*\.\d+|\d+(?=e-))(?:e-\d+)?", re.sub(r"`[^`]*`", "", table))
    assert len(figures) > 8
    assert [figure for figure in figures if figure not in page] == []


def test_a_figure_that_moved_is_found(evidence, tmp_path, monkeypatch, capsys):
    assert not evidence.moved({"value": 1e-9, "times": 2}, 1e-12)  # narrower is no loss
    assert evidence.moved({"value": 1e-9, "times": 2}, 3e-9)
    assert evidence.moved({"value": 0.9, "within": 0.01}, 0.92)
    assert evidence.moved({"value": 0.9, "within": 0.01}, float("nan"))
    row = {
        "section": "x",
        "claim": "y",
        "figure": "{n:g}",
        "command": "says.py",
        "day": "2030-01-02",
        "commit": "0" * 8,
    }
    row |= {"cpu_s": 1, "numbers": {"n": {"value": 3.0, "pattern": r"n = ([\d.]+)", "within": 0.5}}}
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "ROWS", tmp_path / "evidence.json")
    monkeypatch.setattr(evidence, "PAGE", tmp_path / "evidence.md")
    monkeypatch.setattr(sys, "argv", ["evidence.py"])
    for said, code in (("n = 1.0\nn = 3.1", 0), ("n = 4.0", 1)):
        (tmp_path / "says.py").write_text(f"print({said!r})")
        evidence.ROWS.write_text(json.dumps([row]))
        assert evidence.main() == code
        assert ("y: n is 4" in capsys.readouterr().out) == bool(code)
    (tmp_path / "says.py").write_text("print('nothing')")
    with pytest.raises(SystemExit, match="printed no n"):
        evidence.main()
