"""``deniable check``: what was understood, in words and as JSON, and the exit code says whether it can be used."""

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


def test_problems_give_code_2(table, capsys):
    assert run(["check", str(table), "--target", "yy", "--drop", "twon"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "did you mean 'y'" in out or "'yy' is not a column" in out
    assert "did you mean 'town'" in out
