"""``deniable check``: what was understood, in words and as JSON, and the exit code says whether it can be used."""

import json

import pandas as pd
import pytest

import deniable as dn
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
    assert run(["check", str(table), "--target", "y"]) == 2
    assert "problem: its columns are separated by ';'" in " ".join(capsys.readouterr().out.split())
    assert run(["check", str(table), "--target", "y", "--decimal", "."]) == 0
    out, said = capsys.readouterr()
    assert "--target y --decimal . --report" in said  # the next command is about the same table
    for words in (
        "40 rows",
        "dropped",
        "nearly unique",
        "12 %",
        "public",
    ):
        assert words in " ".join(out.split()), out
    assert "Secret" not in out
    assert "1037" not in out


@pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning", "ignore::deniable.tables.TableWarning")
def test_check_says_which_dropped_columns_train_uses(tmp_path, capsys):
    """A cross or nothing makes two groups; whoever reads "dropped" hears that ``train`` uses it all the same."""
    path, n = tmp_path / "t.csv", 400
    card = [str(10**9 + 7 * i) for i in range(n)]
    cross, one = [["X", ""][i % 2] for i in range(n)], [["1", "", ""][i % 3] for i in range(n)]
    frame = {"name": [f"Secret{i}" for i in range(n)], "card": card, "cross": cross, "one": one, "y": [1, 2] * (n // 2)}
    pd.DataFrame(frame).to_csv(path, index=False)
    assert run(["check", str(path), "--target", "y", "--json"]) == 0
    columns = {one["name"]: one for one in json.loads(capsys.readouterr().out)["columns"]}
    assert {name: one["kind"] for name, one in columns.items()} == {
        "name": "dropped", "card": "dropped", "cross": "category", "one": "number",
    }  # fmt: skip
    assert run(["check", str(path), "--target", "y"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "train uses all but 'name' (nearly unique words, or nothing), also 'card', which profile and at" in out
    model = dn.PrivateClassifier(advantage=0.9).fit(pd.read_csv(path, dtype=str).drop(columns="y"), frame["y"])
    assert [column.name for column in model.columns_] == [name for name, one in columns.items() if one["trained"]]
    assert run(["profile", str(path), "--target", "y", "--epsilon", "1", "--drop", "card"]) == 0


def test_problems_give_code_2(table, capsys):
    assert run(["check", str(table), "--target", "yy", "--drop", "twon"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "did you mean 'y'" in out or "'yy' is not a column" in out
    assert "did you mean 'town'" in out


def test_exact_copies_are_counted_for_the_owner(table, tmp_path, capsys):
    twice = tmp_path / "twice.csv"
    lines = table.read_text().splitlines()
    twice.write_text("\n".join([*lines, *[lines[1]] * 10, lines[2]]) + "\n")
    words = "11 of 51 rows are exact copies of another row: a person with k of them counts as k"
    assert run(["check", str(twice), "--decimal", ".", "--target", "y"]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert run(["check", str(twice), "--decimal", ".", "--target", "y", "--json"]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert run(["check", str(table), "--decimal", ".", "--target", "y"]) == 0
    assert "exact copies" not in capsys.readouterr().out
    schema = tmp_path / "schema.toml"
    schema.write_text('person = "name"\n')
    assert run(["check", str(twice), "--decimal", ".", "--target", "y", "--schema", str(schema)]) == 0
    assert "exact copies" not in capsys.readouterr().out
