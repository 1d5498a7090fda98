"""Fast bounds beside proven ones: the table, the verdict, and the command that prints them."""

import json
import sys
from dataclasses import replace

import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.planning import prove

pytest.importorskip("flint", reason="python-flint is in the extra 'proof'")
RUN = "dpsgd,1,0.01,5000"


def test_the_fast_brackets_meet_what_is_proven():
    found = prove(dn.SubsampledGaussian(1.0, 0.01, 5000), prior=0.3, fpr=1e-5, delta=1e-6)
    assert found.agrees
    assert found.tpr.proven_lower <= found.tpr.proven_upper <= found.tpr.proven_lower * (1 + 1e-13)
    t = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 5000))
    assert found.tpr.upper == pytest.approx(t.tpr(1e-5), rel=1e-8)
    assert found.advantage.lower == pytest.approx(t.advantage(0.3, "lower"), rel=1e-8)
    assert "they intersect" in found.lines()[1]


def test_a_disagreement_is_shown():
    found = prove(dn.GaussianDP(1.0))
    wrong = replace(found, tpr=replace(found.tpr, upper=found.tpr.proven_lower / 2, lower=0.0))
    assert not wrong.agrees
    assert "DO NOT INTERSECT" in wrong.lines()[2]


def test_the_command_prints_both(capsys):
    assert run(["bound", RUN, "--proof", "--fpr", "1e-5"]) == 0
    printed = capsys.readouterr().out
    assert "0.0004704215225252857" in printed
    assert printed.count("they intersect") == 3
    assert run(["bound", "epsilon,1,1e-6", "--proof", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] is True
    assert found["proof"]["advantage"]["proven_upper"] == pytest.approx(0.46211738, abs=1e-6)


def test_what_cannot_be_proven_is_one_line(capsys):
    wrong = []
    for words, message in (
        (["--proof"], "Missing argument 'RUN'"),
        ([RUN, "--proof", "--plot", "a.svg"], "--plot does not go with --proof"),
        ([RUN, "--proof", "--explain"], "leave one of them out"),
        (["laplace,1,steps=3", "--proof"], "engine 'ball' serves"),
        (["dpsgd,.3,1e-6,20", "--proof"], "use engine='auto'"),
    ):
        code, printed = run(["bound", *words]), capsys.readouterr()
        wrong += [] if code == 2 and message in printed.err and not printed.out else [(words, code, printed)]
    assert wrong == []


def test_without_flint_the_install_line_is_printed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "flint", None)  # as if it were not installed
    assert run(["bound", RUN, "--proof"]) == 2
    assert "pip install 'deniable[proof]'" in capsys.readouterr().err
