"""What a command suggests next can be pasted, is about the same thing, and runs."""

import shlex

import pytest

import deniable as dn
from deniable.cli._app import again, run, suggest
from deniable.planning import samplers

RUN = ["--noise-multiplier", "10", "--sample-rate", "1", "--steps", "10"]


@pytest.fixture
def suggested(capsys):
    """Run a command and return the words of the one that it suggests, if any."""

    def after(*words, code=0):
        assert run(list(words)) == code
        lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("next: deniable ")]
        assert len(lines) <= 1
        return shlex.split(lines[0].removeprefix("next: deniable ")) if lines else []

    return after


def test_words_are_quoted_and_nothing_is_said_without_words(capsys):
    suggest("check", "my people.csv")
    suggest()
    assert capsys.readouterr().err == "next: deniable check 'my people.csv'\n"


def test_again_is_the_command_that_runs(suggested, tmp_path):
    words = ["unlearn", "--epsilon", "1", "--pool-size", "1000", "--confidence", "0.8", "--training-size", "9"]
    assert suggested(*words) == list(again("--plot", "capacity.svg")) == [*words, "--plot", "capacity.svg"]
    assert suggested(*words, "--plot", str(tmp_path / "c.svg")) == []


def test_a_missed_limit_leads_to_the_noise_that_meets_it(suggested, tmp_path):
    follow = suggested("assess", *RUN, "--max-advantage", "0.1", code=1)
    assert follow == ["calibrate", "--sample-rate", "1.0", "--steps", "10", "--advantage", "0.1"]
    follow = suggested(*follow)
    assert follow[0] == "assess"
    follow[follow.index("report.html")] = str(tmp_path / "report.json")
    follow = suggested(*follow, "--max-advantage", "0.1")
    assert follow == ["annex", str(tmp_path / "report.json"), "--kind", "dpia"]
    assert suggested(*follow) == []


def test_the_rule_that_decides_is_the_target(suggested, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("[policy]\ntpr = 0.002\nfpr = 0.001\n")
    follow = suggested("assess", *RUN, "--policy", str(policy), code=1)
    assert follow == ["calibrate", "--sample-rate", "1.0", "--steps", "10", "--tpr", "0.002", "--fpr", "0.001"]
    policy.write_text("[policy]\nadvantage = 0.9\n")
    met = ["assess", *RUN, "--policy", str(policy)]
    assert suggested(*met) == [*met, "--out", "report.html"]
    assert suggested(*met, "--out", str(tmp_path / "report.html")) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["bound", "--epsilon", "2"], ["bound", "--largest-for", "advantage", "--at-most", "0.1"]),
        (["bound", "--epsilon", "0.1"], []),
        (["bound", "--largest-for", "advantage", "--at-most", "0.1"], []),
        (["bound", "--explain", "--epsilon", "1"], ["bound", "--proof", "--epsilon", "1"]),
        (["compare", "1.0,1.0,1", "2.0,1.0,1"], ["compare", "1.0,1.0,1", "2.0,1.0,1", "--plot", "roc.svg"]),
        (["examples"], ["examples", "--out", "first-steps"]),
        (["sphere", "breast-cancer"], ["profile", "breast-cancer", "--regularization", "0.01", "--epsilon", "1"]),
        (
            ["game", "--noise-multiplier", "1", "--sample-rate", "1", "--steps", "2", "--games", "100", "--seed", "0"],
            ["assess", "--noise-multiplier", "1.0", "--sample-rate", "1.0", "--steps", "2", "--out", "report.html"],
        ),
    ],
)
def test_what_follows(suggested, words, expected):
    assert suggested(*words)[: len(expected) or None] == expected
    assert suggested(*words, "--json") == []


@pytest.mark.parametrize(
    ("least", "expected"),
    [("poisson", ["assess", "--noise-multiplier", "1.5", "--sample-rate", "0.5", "--steps", "2"]), ("allocation", [])],
)
def test_the_least_noise_is_assessed_where_its_batches_are_poisson(suggested, monkeypatch, least, expected):
    def row(name, make):
        return samplers.SamplerNoise(name, "add-remove", make(1.5), 1.5 + (name != least), 0.1, 0.1, 0.1)

    makers = list(samplers._makers(40, 20, 1, None).items())[:3]
    plan = samplers.SamplerPlan("advantage at most 0.1", tuple(row(*maker) for maker in makers))
    monkeypatch.setattr(dn, "plan_samplers", lambda *sizes, **options: plan)
    words = ["samplers", "--n-records", "40", "--batch-size", "20", "--advantage", "0.1"]
    assert suggested(*words)[: len(expected) or None] == expected
    assert suggested(*words, "--json") == []
