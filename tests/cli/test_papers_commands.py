"""What the papers offer, from the command line: inverses, η, other perturbations."""

from __future__ import annotations

import json

import numpy as np
import pytest

import deniable as dn
from deniable.cli._app import run


def told(capsys, *line):
    assert run([*line, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("target", "line", "expected"),
    [
        ("advantage", ["--delta", "1e-5"], lambda: dn.bounds.epsilon_for_advantage(0.6, delta=1e-5)),
        ("accuracy", ["--prior", "0.4"], lambda: dn.bounds.epsilon_for_accuracy(0.6, prior=0.4)),
        ("precision", ["--prior", "0.1"], lambda: dn.bounds.epsilon_for_positive_accuracy(0.6, prior=0.1)),
        ("precision", ["--delta", "1e-5", "--fpr", "0.01"],
         lambda: dn.bounds.epsilon_for_positive_accuracy(0.6, prior=0.5, delta=1e-5, fpr=0.01)),
    ],
)  # fmt: skip
def test_bound_finds_the_largest_epsilon(capsys, target, line, expected):
    found = told(capsys, "bound", "--largest-for", target, "--at-most", "0.6", *line)
    assert found["epsilon"] == expected()
    assert found["epsilon"] > 0


def test_bound_finds_the_largest_epsilon_for_secrets_and_predicates(capsys):
    found = told(capsys, "bound", "--largest-for", "reconstruction", "--at-most", "0.01", "--baseline", "0.001")
    assert found["epsilon"] == pytest.approx(np.log(10), rel=1e-9)  # e^ε·κ
    assert found["reconstruction"] <= 0.01
    line = ["--at-most", "0.1", "--n", "1000", "--weight", "1e-6", "--delta", "1e-5"]
    found = told(capsys, "bound", "--largest-for", "singling-out", *line)
    assert found["epsilon"] == pytest.approx(np.log(90), rel=1e-9)  # n·(e^ε·w + δ)


def test_bound_of_eta_and_back(capsys):
    found = told(capsys, "bound", "--largest-for", "eta", "--at-most", "0.1", "--delta", "1e-5")
    assert found["epsilon"] == dn.bounds.epsilon_for_mip(0.1, delta=1e-5)
    assert found["eta"] == dn.bounds.mip_from_dp(found["epsilon"], delta=1e-5) <= 0.1
    assert run(["bound", "--largest-for", "eta", "--at-most", "0.1"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split() == ["largest", "ε", "0.4054651"]  # ln(1.2/0.8), rounded down
    assert "gain over guessing, η (MIP)   at most 10 %" in printed


def test_bound_says_positive_advantage_and_sablayrolles_is_exact(capsys):
    found = told(capsys, "bound", "--epsilon", "1")
    assert found["positive_advantage"] == dn.bounds.positive_advantage(1.0, prior=0.5)
    assert found["prior_work"]["sablayrolles"] == 0.75
    assert run(["bound", "--epsilon", "1"]) == 0
    assert "Sablayrolles                  75 %\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        ["--epsilon", "1", "--largest-for", "eta", "--at-most", "0.1"],
        ["--largest-for", "eta"],
        ["--at-most", "0.1"],
        ["--largest-for", "eta", "--at-most", "0.6"],
        ["--largest-for", "accuracy", "--at-most", "0.4"],
        ["--largest-for", "singling-out", "--at-most", "0.4", "--n", "10"],
        ["--epsilon", "1", "--n", "10"],
    ],
)
def test_bound_refuses_what_does_not_go_together(capsys, line):
    assert run(["bound", *line]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_profile_with_other_perturbations(capsys):
    line = ["profile", "breast-cancer", "--epsilon", "1", "--seed", "0"]
    output = told(capsys, *line)
    gaussian = told(capsys, *line, "--noise", "gaussian", "--delta", "1e-5")
    assert gaussian["largest_advantage"] != output["largest_advantage"]
    objective = told(capsys, *line, "--perturb", "objective")
    assert objective["transition"] is None
    assert 0 < objective["largest_advantage"] <= 1
    assert run([*line, "--noise", "gaussian"]) == 2
    assert run([*line, "--perturb", "objective", "--delta", "1e-5"]) == 2
