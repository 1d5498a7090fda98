"""``deniable ledger`` and ``--ledger``: whom a release hides is read off its certificate, or said, and never both."""

import json
from pathlib import Path

import pytest

import deniable as dn
from deniable.cli._app import run


@pytest.fixture
def certificate(tmp_path):
    """A certificate of persons by the column ``doctor``, as a file."""
    rows = [{"doctor": i // 2, "a": i % 7} for i in range(400)]
    table = {name: [row[name] for row in rows] for name in ("doctor", "a")}
    made = dn.release_statistics(table, ["mean(a)"], advantage=0.1, ranges={"a": (0, 6)}, group="doctor")
    made.certificate.to_json(tmp_path / "c.json")
    return str(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("unit", "said", "fault"),
    [
        ("doctor", [], None),
        ("patient", [], "hides doctor"),
        ("patient", ["--unit", "patient"], "unit must be what the release hides, 'doctor'"),
        ("record", [], "the release hides 'doctor'"),
    ],
)
@pytest.mark.parametrize("command", ["add", "plan", "assess"])
def test_a_certificate_enters_only_the_ledger_of_its_persons(certificate, tmp_path, capsys, unit, said, fault, command):
    path = str(tmp_path / "people.ledger")
    dn.Ledger(path, unit=unit)
    words = ["assess", certificate, "--ledger", path] if command == "assess" else ["ledger", command, path, certificate]
    code = run([*words, *said])
    shown = capsys.readouterr()
    assert (fault or "") in shown.err
    assert (code in (0, 1)) == (fault is None), shown.err
    assert len(dn.Ledger(path).entries) == (fault is None and command != "plan")


def test_assess_says_of_whom_the_ledger_is(tmp_path, capsys):
    path = str(tmp_path / "people.ledger")
    dn.Ledger(path, unit="patient")
    words = ["assess", "gaussian,0.1", "--ledger", path]
    assert run(words) == 2
    assert "give unit='patient'" in capsys.readouterr().err
    assert run([*words, "--unit", "patient", "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["assumptions"]["notes"]
    assert any("entry 1 of a ledger" in note for note in notes)
    assert any("'patient'" in note and "together: advantage" in note for note in notes)


def test_runs_that_hide_different_persons_do_not_add_up(certificate, tmp_path, capsys):
    other = tmp_path / "d.json"
    other.write_text(json.dumps(json.loads(Path(certificate).read_text()) | {"person": "patient"}))
    for words in (f"{certificate} + {other}", f"{certificate} + gaussian,0.1"):
        assert run(["bound", words]) == 2
        assert "do not add up" in capsys.readouterr().err
    assert run(["bound", f"{certificate} + {certificate}"]) == 0
