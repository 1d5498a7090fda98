"""``deniable examples`` writes programs that run."""

import contextlib
import runpy

import pytest

from deniable.cli._app import run
from deniable.cli.example_files import SCRIPTS


def test_writes_every_script_once(tmp_path, capsys):
    folder = tmp_path / "first"
    assert run(["examples", "--out", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {path.name for path in SCRIPTS.glob("*.py")}
    assert run(["examples", "--out", str(folder)]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(SystemExit):
        runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
