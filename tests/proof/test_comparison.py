"""Fast bounds beside proven ones: the table, the verdict, and the command that prints them."""

import json
import math
import sys
from dataclasses import replace

import pytest

import deniable as dn
from deniable import InputError
from deniable.cli._app import run
from deniable.proof import prove

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
        ([RUN, "--proof", "--explain"], "leave one of them out"),
        (["laplace,1,steps=3", "--proof"], "ball arithmetic serves"),
        (["dpsgd,.3,1e-6,20", "--proof"], "use deniable.tradeoff"),
    ):
        code, printed = run(["bound", *words]), capsys.readouterr()
        wrong += [] if code == 2 and message in printed.err and not printed.out else [(words, code, printed)]
    assert wrong == []


def test_without_flint_the_install_line_is_printed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "flint", None)  # as if it were not installed
    assert run(["bound", RUN, "--proof"]) == 2
    assert "pip install 'deniable[proof]'" in capsys.readouterr().err


@pytest.mark.parametrize("mechanism", [dn.PureDP(math.inf), dn.GaussianDP(1.0) + dn.RandomAllocation(1.0, 3), "x"])
def test_what_is_not_enclosed_is_refused(mechanism):
    """Also what the accountant reduces to a Gaussian: the reduction is what somebody may want to check."""
    with pytest.raises(InputError, match=r"must be finite|ball arithmetic serves|one of deniable's mechanisms"):
        dn.proof.enclosure(mechanism)


def test_the_enclosed_curve_says_whose_records_it_is_about():
    run = dn.SubsampledGaussian(2.0, 0.1, 3) + dn.SubsampledGaussian(2.0, 1.0, 3, records_per_person=2)
    assert dn.proof.enclosure(run).assumptions.line == dn.tradeoff(run).assumptions.line
    assert dn.proof.enclosure(run).universal
