"""What a command suggests next can be pasted, is about the same thing, and runs."""

import shlex

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.planning import samplers

RUN = "dpsgd,10,1,10"


@pytest.fixture
def suggested(capsys):
    """Run a command and return the words of the one that it suggests, if any."""

    def after(*words, code=0):
        assert run(list(words)) == code
        lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("next: deniable ")]
        assert len(lines) <= 1
        return shlex.split(lines[0].removeprefix("next: deniable ")) if lines else []

    return after


@pytest.fixture
def people(tmp_path, monkeypatch):
    """The name of a table whose answers are noise, in the folder where the commands run."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 90, 900), "wage": rng.normal(size=900)})
    table.assign(ill=rng.integers(0, 2, 900)).to_csv("the people.csv", index=False)
    return "the people.csv"


def test_a_missed_limit_leads_to_the_noise_that_meets_it(suggested, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("[policy]\nadvantage = 0.1\n")
    follow = suggested("assess", RUN, "--policy", str(policy), code=1)
    assert follow == ["calibrate", "dpsgd,?,1,10", "--advantage", "0.1"]
    follow = suggested(*follow)
    assert follow[0] == "assess"
    follow[follow.index("report.html")] = str(tmp_path / "report.json")
    follow = suggested(*follow, "--policy", str(policy))
    assert follow == ["annex", str(tmp_path / "report.json"), "--kind", "edpb"]
    assert suggested(*follow) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["bound", "epsilon,2"], ["calibrate", "epsilon,?", "--advantage", "0.1"]),
        (["bound", "person,2: dpsgd,1,1,1"], ["calibrate", "person,2: dpsgd,?,1,1", "--advantage", "0.1"]),
        (["bound", "laplace,1 + laplace,1"], []),
        (["bound", "epsilon,0.1"], []),
        (["bound", "dpsgd,1,1,1", "--explain"], ["bound", "dpsgd,1,1,1", "--proof"]),
        (["examples"], ["examples", "--out", "first-steps"]),
    ],
)
def test_what_follows(suggested, words, expected):
    assert suggested(*words)[: len(expected) or None] == expected
    assert suggested(*words, "--json") == []


@pytest.mark.parametrize(
    ("least", "expected"),
    [("poisson", ["assess", "dpsgd,1.5,0.5,2"]), ("allocation", [])],
)
def test_the_least_noise_is_assessed_where_its_batches_are_poisson(suggested, monkeypatch, least, expected):
    def row(name, make):
        return samplers.SamplerNoise(name, "add-remove", make(1.5), 1.5 + (name != least), 0.1, 0.1, 0.1)

    makers = list(samplers._makers(40, 20, 1, None).items())[:3]
    plan = samplers.SamplerPlan(dn.Limit(advantage=0.1), tuple(row(*maker) for maker in makers))
    monkeypatch.setattr("deniable.planning.plan_samplers", lambda *sizes, **options: plan)
    words = ["plan", "dpsgd,?,0.5,2", "--records", "40", "--advantage", "0.1"]
    assert suggested(*words)[: len(expected) or None] == expected
    assert suggested(*words, "--json") == []


def test_what_is_declared_of_a_checked_table_reaches_the_fit(suggested, people, tmp_path):
    (tmp_path / "known.toml").write_text("[columns.age]\nrange = [0, 120]\n")
    words = ["check", people, "--target", "ill", "--schema", "known.toml"]
    assert suggested(*words) == ["train", *words[1:], "--report", "report.html"]
    follow = suggested(*words, "--schema-out", "schema.toml")
    assert follow == ["train", people, "--schema", "schema.toml", "--report", "report.html"]
    assert dn.Schema.read("schema.toml").column("age").range == (0.0, 120.0)
    drafted = (tmp_path / "schema.toml").read_text()
    (tmp_path / "schema.toml").write_text(drafted.split("\n", 1)[1])
    suggested(*follow)
    assert (tmp_path / "report.html").exists()


def test_a_leaking_model_leads_to_a_private_one_and_its_annex(suggested, people):
    words = ["attack", people, "--target", "ill", "--drop", "age", "--shadows", "8", "--seed", "0"]
    follow = suggested(*words, "--model", "tree")
    assert follow == ["train", people, "--target", "ill", "--drop", "age", "--report", "private.html"]
    follow = suggested(*follow[:-1], "private.json")
    assert follow == ["annex", "private.json", "--kind", "edpb"]
    assert suggested(*follow) == []
