"""--policy and --meta on every command that makes a report; exit code 1 unless it is met."""

import json
from datetime import date

import numpy as np
import pytest

from deniable.cli._app import run

RUN = "dpsgd,1,0.01,5000"


@pytest.fixture
def policy(tmp_path):
    def write(text):
        path = tmp_path / "policy.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "scores.npz"
    np.savez(path, member=rng.normal(2, 1, 400), nonmember=rng.normal(0, 1, 400))
    return str(path)


@pytest.mark.parametrize(("limit", "code"), [(0.5, 0), (0.3, 1)])
def test_a_run_and_saved_reports(policy, tmp_path, limit, code, capsys):
    given = ["--policy", policy(f"advantage = {limit}")]
    out = tmp_path / "a.json"
    assert run(["assess", RUN, *given, "--report", str(out)]) == code
    text = " ".join(capsys.readouterr().out.split())
    assert ("MEETS THE POLICY (policy)" in text) == (code == 0)
    assert json.loads(out.read_text())["decision"]["policy"]["limits"] == [{"advantage": limit}]
    if code:
        assert run(["assess", RUN]) == 0  # the default policy is shown, not enforced
    assert run(["compare", str(out), str(out), *given]) == code
    assert run(["compare", str(out), "dpsgd,3,0.001,100", "--json", *given]) == code


def test_train_and_profile(policy, capsys):
    met = ["--policy", policy("advantage = 0.2\nmeasured = 0.2")]
    train = ["train", "breast-cancer", "--advantage", "0.2", "--json"]
    assert run([*train, *met]) == 0
    assert json.loads(capsys.readouterr().out)["decision"]["outcome"] == "meets"
    assert run([*train, "--policy", policy("advantage = 0.1")]) == 1
    capsys.readouterr()
    profile = ["profile", "breast-cancer", "--epsilon", "1", "--json"]
    assert run([*profile, *met]) == 1  # for every data set nothing is proven by a profile
    assert run([*profile, "--policy", policy("advantage = 0.2\nscope = 'this data set'")]) == 0


def test_scores_can_miss_and_never_meet(policy, scores, capsys):
    assert run(["audit", scores, "--policy", policy("measured = 0.1\nadvantage = 0.9")]) == 1
    assert run(["audit", scores, "--policy", policy("advantage = 0.999")]) == 1  # not decided
    assert "NOT DECIDED" in capsys.readouterr().out
    assert run(["audit", scores]) == 0


COMMANDS = [
    ["assess", RUN],
    ["audit", "x.npz"],
    ["train", "breast-cancer"],
    ["profile", "breast-cancer", "--epsilon", "1"],
    ["compare", "dpsgd,1,0.01,9", "dpsgd,2,0.01,9"],
    ["attack", "breast-cancer", "--model", "linear"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_bad_policy_stops_every_command_before_the_work(command, policy, capsys):
    assert run([*command, "--policy", policy("advantag = 0.1")]) == 2
    assert "did you mean 'advantage'" in capsys.readouterr().err
    assert run([*command, "--policy", "nowhere.toml"]) == 2


def test_meta_and_the_day_of_making(tmp_path, capsys):
    meta, page = tmp_path / "meta.toml", tmp_path / "a.html"
    meta.write_text('author = "A. Lovelace"\n')
    assert run(["assess", RUN, "--meta", str(meta), "--report", str(page)]) == 0
    assert "A. Lovelace" in page.read_text()
    assert f"<dt>Date</dt><dd>{date.today()}</dd>" in page.read_text()
    capsys.readouterr()
    meta.write_text("date = 2026-01-31\n")
    assert run(["assess", RUN, "--meta", str(meta), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["meta"] == {"date": "2026-01-31"}
