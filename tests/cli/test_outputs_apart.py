"""No file that a command writes may be, or lie in, what it reads: refused before anything is read or written."""

import json
from pathlib import Path

import numpy as np
import pytest

from deniable.cli import _app
from deniable.cli._app import run

HISTORY = {"noise": 1.0, "batch": 10, "epochs": 1, "n": 1000}
READ = {  # parameters that are paths and are read, or read and added to, or a folder whose files are kept
    *("scores", "members", "nonmembers", "reference", "schema", "meta", "ledger", "file", "model", "data"),
    *("examples.out", "annex.report", "verify.report"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("hist.json").write_text(json.dumps(HISTORY))
    Path("people.csv").write_text("age,ill\n" + "40,yes\n50,no\n" * 20)
    Path("rows").mkdir()
    Path("rows/each.csv").write_text("age,ill\n1,0\n")
    Path("policy.json").write_text("advantage = 0.1\n")
    Path("meta.toml").write_text('model_file = "model.json"\n')
    Path("rows/meta.toml").write_text('[meta]\nmodel_file = "../model.json"\n')
    Path("card.toml").write_text('model_file = "card.md"\n')
    Path("model.json").write_text("{}")
    Path("card.md").write_text("A model")
    Path("link.html").symlink_to("hist.json")
    np.savetxt("strategy.csv", np.eye(3), delimiter=",")
    assert run(["ledger", "new", "people.json", "--advantage", "0.5"]) == 0
    return tmp_path


COMMANDS = [
    ["ledger", "export", "people.json", "people.json"],
    ["ledger", "export", "people.json", "./rows/../people.json"],
    ["assess", "hist.json + gaussian,0.1", "--report", "hist.json"],
    ["assess", "person,2: hist.json", "--report", "hist.json"],
    ["assess", "person,2: hist.json + gaussian,0.1", "--report", "./hist.json"],
    ["assess", "gaussian,0.1", "--ledger", "people.json", "--report", "people.json"],
    ["assess", "gaussian,0.1", "--policy", "policy.json", "--report", "policy.json"],
    ["assess", "gaussian,0.1", "--report", "policy.json"],  # that of the project
    ["assess", "hist.json", "--report", "link.html"],
    ["publish", "people.csv", "--statistic", "count()", "--limit", "hist.json", "--report", "hist.json"],
    ["publish", "people.csv", "--statistic", "count()", "--out", "people.csv"],
    ["publish", "people.csv", "--statistic", "count()", "--out", "a.json", "--certificate", "a.json"],
    ["profile", "rows", "--epsilon", "1", "--in-blocks", "--out", "rows/new.csv"],
    ["predict", "model.skops", "rows", "--out", "rows/each.csv"],
    ["assess", "gaussian,0.1", "--meta", "meta.toml", "--report", "model.json"],
    ["assess", "gaussian,0.1", "--meta", "rows/meta.toml", "--report", "./model.json"],
    ["annex", "page.json", "--kind", "edpb", "--meta", "card.toml", "--out", "card.md"],
    ["annex", "page.md", "--kind", "edpb", "--out", "page.md"],
    ["check", "people.csv", "--schema", "schema.toml", "--schema-out", "schema.toml"],
    ["audit", "people.csv", "hist.json", "--owner-report", "hist.json"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_is_read_is_never_replaced(folder, words, capsys, monkeypatch):
    monkeypatch.setenv("DENIABLE_POLICY", "policy.json")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert run(words) == 2
    assert "name the same f" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_names_that_are_alike_are_no_files(folder):
    """A column, or a folder that is not read, may be called as the output's folder is."""
    Path("ill").mkdir()
    words = ["publish", "people.csv", "--statistic", "count() by ill", "--advantage", "0.9", "--out", "ill/counts.csv"]
    assert run(words) == 0
    assert run(["bound", "matrix,8,strategy=strategy.csv", "--plot", "rows/roc.svg"]) == 0
    assert run(["train", "people.csv", "--target", "ill", "--schema", "ill", "--out", "ill/model.skops"]) == 2


def test_a_meta_file_without_a_model_names_none(folder, capsys):
    for text in ('author = "A"\n', '[meta]\nauthor = "A"\n'):
        Path("meta.toml").write_text(text)
        assert run(["assess", "gaussian,0.1", "--meta", "meta.toml", "--report", "model.json"]) == 0
    Path("meta.toml").write_text("meta = 1\n")
    assert run(["assess", "gaussian,0.1", "--meta", "meta.toml", "--report", "model.json"]) == 2
    assert "meta 'meta.toml' has no 'meta'" in capsys.readouterr().err
    assert run(["assess", "gaussian,0.1", "--meta", "none.toml", "--report", "model.json"]) == 2


def test_each_path_of_each_command_is_checked_or_read():
    """A new option for a file is made by ``options.file``, or belongs to what is read."""
    commands = dict(_app._parser().commands)
    commands |= {f"ledger {name}": one for name, one in commands.pop("ledger").commands.items()}
    for name, command in commands.items():
        for one in command.params:
            known = one.name in READ or f"{name}.{one.name}" in READ
            assert one.bare_type is not Path or (one.callback is not None) != known, (name, one.name)
