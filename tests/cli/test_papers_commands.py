"""What the papers offer, from the command line: inverses, other perturbations."""

import json

import numpy as np
import pytest

import deniable as dn
from deniable.cli._app import run


def told(capsys, *line):
    assert run([*line, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_largest_epsilon_of_a_target(capsys):
    found = told(capsys, "calibrate", "epsilon,?,1e-5", "--advantage", "0.6")["epsilon"]
    assert found == pytest.approx(dn.bounds.epsilon_for_advantage(0.6, delta=1e-5), rel=1e-6)
    found = told(capsys, "calibrate", "epsilon,?", "--limit", "reconstruction=0.01,baseline=0.001")["epsilon"]
    assert found == pytest.approx(np.log(10), rel=1e-6)  # e^ε·κ
    goal = ["--limit", "singling_out=0.1,n=1000,weight=1e-6"]
    found = told(capsys, "calibrate", "epsilon,?,1e-5", *goal)["epsilon"]
    assert found == pytest.approx(np.log(90), rel=1e-6)  # n·(e^ε·w + δ)


def test_bound_says_positive_advantage_and_sablayrolles_is_exact(capsys):
    found = told(capsys, "bound", "epsilon,1")
    assert found["positive_advantage"] == dn.bounds.positive_advantage(1.0, prior=0.5)
    assert found["prior_work"]["sablayrolles"] == 0.75
    assert run(["bound", "epsilon,1"]) == 0
    assert "Sablayrolles                  75 %\n" in capsys.readouterr().out


def test_profile_with_other_perturbations(capsys):
    line = ["profile", "breast-cancer", "--epsilon", "1", "--seed", "0"]
    output = told(capsys, *line)
    gaussian = told(capsys, *line, "--noise", "gaussian", "--delta", "1e-5")
    assert gaussian["largest_advantage"] != output["largest_advantage"]
    assert run([*line, "--noise", "gaussian"]) == 2
