"""``deniable check``: what was understood, in words and as JSON, and the exit code says whether it can be used."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from deniable.cli._app import run


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    frame = pd.DataFrame(
        {
            "name": [f"Secret{i}" for i in range(40)],
            "wage": [f"{1000 + 37 * i}" if i % 8 else "?" for i in range(40)],
            "town": ["a", "b"] * 20,
            "y": [0, 0, 1, 1] * 10,
        }
    )
    frame.to_csv(path, index=False, sep=";")
    return path


def test_a_person_reads_what_was_understood_and_no_cell(table, capsys):
    assert run(["check", str(table), "--target", "y"]) == 0
    out = capsys.readouterr().out
    for words in (
        "40 rows",
        "separator: semicolon",
        "dropped",
        "nearly unique",
        "12 %",
        "public",
    ):
        assert words in " ".join(out.split()), out
    assert "Secret" not in out
    assert "1037" not in out


def test_json_has_the_same(table, capsys):
    assert run(["check", str(table), "--target", "y", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {c["name"]: c["kind"] for c in found["columns"]} == {"name": "dropped", "wage": "number", "town": "category"}
    assert found["target_values"] == 2
    assert found["problems"] == []


def test_problems_give_code_2(table, capsys):
    assert run(["check", str(table), "--target", "yy", "--drop", "twon"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "did you mean 'y'" in out or "'yy' is not a column" in out
    assert "did you mean 'town'" in out


@pytest.mark.parametrize("name", ["breast-cancer", "digits-3-8"])
def test_builtin_data_is_fine(name, capsys):
    assert run(["check", name]) == 0
    assert name in capsys.readouterr().out


def test_the_next_command_is_suggested_and_runs(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a b": rng.normal(size=200), "id": range(200), "ill": rng.integers(0, 2, 200)})
    path = tmp_path / "the people.csv"
    frame.to_csv(path, index=False)
    monkeypatch.chdir(tmp_path)

    def suggested():
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("next: deniable ")]
        return shlex.split(line.removeprefix("next: deniable "))

    assert run(["check", str(path), "--target", "ill", "--drop", "id"]) == 0
    follow = suggested()
    assert follow[:2] == ["train", str(path)]
    follow[follow.index("report.html")] = "report.json"
    assert run(follow) == 0
    assert run(suggested()) == 0  # the annex of that report
    capsys.readouterr()
    assert run(["calibrate", "dpsgd,?,0.0123456789,100", "--advantage", "0.1"]) == 0
    follow = suggested()
    assert run([*follow[: follow.index("--report")], "--policy", "default"]) in (0, 1)
    assert "0.0123456789" in follow[1]
    capsys.readouterr()  # a policy that is met has a next command too
    assert run(["check", str(path), "--target", "nothing"]) == 2
    assert "next:" not in capsys.readouterr().err
