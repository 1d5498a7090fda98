"""No option is ignored: it is used, or refused by name; and a policy is read once."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.report import Policy

IGNORED = {
    "--schema": ["audit", "scores.csv", "--schema", "schema.toml"],
    "--method": ["audit", "scores.csv", "--method", "nearest"],
    "--reference": ["audit", "scores.csv", "--reference", "scores.csv"],
    "--score": ["audit", "scores.csv", "--members", "scores.csv", "--nonmembers", "scores.csv", "--score", "score"],
    "--fpr": ["audit", "scores.csv", "epsilon,1", "--stream", "--fpr", "0.1"],
    "--seed": ["audit", "scores.csv", "epsilon,1", "--stream", "--seed", "0"],
    "--baseline": ["bound", "gaussian,1", "--explain", "--baseline", "0.5"],
    "--baseline ": ["bound", "gaussian,1", "--proof", "--baseline", "0.5"],
    "--delta": ["plan", "dpsgd,?,0.01,100", "--records", "100", "--advantage", "0.5", "--delta", "1e-5"],
    "--fpr ": ["plan", "dpsgd,?,0.01,100", "--records", "100", "--advantage", "0.5", "--fpr", "0.1"],
    "--advantage": ["plan", "dpsgd,?,0.01,100", "--records", "100", "--advantage", "0.5", "--precision", "0.5"],
    "--unit": ["assess", "gaussian,1", "--unit", "patient"],
    "--prior": ["compare", "a.json", "a.json", "--prior", "0.1"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal():.3f},{i % 2}" for i in range(40)]
    (made / "scores.csv").write_text("\n".join(["score,member", *lines]) + "\n")
    (made / "schema.toml").write_text("[columns.score]\nkind = 'number'\n")
    dn.assess(dn.GaussianDP(0.1)).to_json(made / "a.json")
    return made


@pytest.mark.parametrize("option", IGNORED)
def test_an_option_that_would_be_ignored_is_refused(option, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(IGNORED[option]) == 2
    assert f"error: {option.strip()} " in capsys.readouterr().err


def test_the_annex_of_a_page_for_the_owner_is_suggested_with_owner(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(["audit", "scores.csv", "--owner-report", "own.json"]) in (0, 1)
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("next: deniable annex")]
    assert run(said.split()[2:]) == 0
    assert run(["assess", "gaussian,0.1", "--report", "page.json"]) == 0
    assert "next: deniable annex page.json --kind edpb\n" in capsys.readouterr().err


def test_a_policy_is_read_once(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    Path("policy.toml").write_text("advantage = 0.2\n")
    read, whole = [], Policy.from_toml.__func__
    monkeypatch.setattr(Policy, "from_toml", classmethod(lambda cls, path: read.append(path) or whole(cls, path)))
    for words in (["--policy", "policy.toml"], []):
        monkeypatch.setenv("DENIABLE_POLICY", "policy.toml")
        read.clear()
        assert run(["assess", "gaussian,0.1", *words, "--report", "p.html", "--junit", "p.xml"]) == 0
        assert [str(one) for one in read] == ["policy.toml"]


def test_a_page_without_dates_imports_nothing_that_draws_them():
    script = (
        "import sys, deniable as dn; dn.assess(dn.GaussianDP(0.1)).to_html(); print('matplotlib.dates' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_malformed_report_is_no_run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    content = json.loads(Path("a.json").read_text())
    content["status"] = "fine"
    Path("bad.json").write_text(json.dumps(content))
    assert run(["compare", "a.json", "bad.json"]) == 2
    assert "assessment file 'bad.json' is no assessment: status must be" in capsys.readouterr().err
