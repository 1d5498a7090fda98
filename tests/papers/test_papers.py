"""Every figure script at its reduced size agrees with the numbers read off its paper, and says so when it does not."""

import json
import re
import subprocess
import sys
from pathlib import Path

import _common
import matplotlib.pyplot as plt
import pytest

PAPERS = Path(__file__).resolve().parents[2] / "papers"

SCRIPTS = _common.scripts()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_figure_agrees_with_the_paper(script):
    try:
        _, numbers = _common.loaded(script)(True)
    except _common.Skip as why:
        pytest.skip(str(why))
    finally:
        plt.close("all")
    assert not _common.compare(script, numbers, reduced=True)


def test_scripts_are_short_and_use_public_names_only():
    for script in SCRIPTS:
        text = script.read_text()
        parts = [part for line in text.splitlines() if "deniable" in line for part in line.split(".")]
        private = "dn._" in text or any(part.startswith("_") for part in parts)
        assert (text.count("\n") < 100, private) == (True, False), script


def test_every_expected_number_says_where_it_comes_from():
    for path in sorted(PAPERS.glob("*/expected.json")):
        figures = json.loads(path.read_text())
        assert set(figures) <= {p.stem for p in path.parent.glob("*.py")}
        for name, entry in ((n, e) for numbers in figures.values() for n, e in numbers.items()):
            assert entry.get("source"), name
            assert ("between" in entry) != ({"value", "tolerance"} <= set(entry)), name


def test_runs_alone_and_writes_its_figure(tmp_path):
    command = [sys.executable, PAPERS / "reproduce.py", "thudi2022/fig2", "--reduced", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "thudi2022-fig2.svg").read_text().startswith("<?xml")
    assert re.search(r"^ours_at_1 +0\.731", done.stdout, re.M)
    assert re.search(r"^thudi2022-fig2: .* 0 disagreements$", done.stdout, re.M)


def test_a_wrong_number_is_reported(tmp_path):
    script = tmp_path / "fig1.py"
    entries = {"a": {"value": 1.0, "tolerance": 0.1, "source": "text"}, "b": {"between": [None, 0], "source": "text"}}
    (tmp_path / "expected.json").write_text(json.dumps({"fig1": entries}))
    assert not _common.compare(script, {"a": 1.05, "b": -3.0}, reduced=True)
    assert len(_common.compare(script, {"a": 1.2, "b": float("nan")}, reduced=True)) == 2
    assert len(_common.compare(script, {"a": 1.0, "extra": 1.0}, reduced=True)) == 2


def test_absent_data_skips_and_says_where_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("DENIABLE_DATA", str(tmp_path))
    with pytest.raises(_common.Skip, match=r"DENIABLE_DATA.*archive\.ics\.uci\.edu"):
        _common.dataset("adult.parquet")
