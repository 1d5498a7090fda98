"""``--mechanism`` and ``--trials``: every mechanism of the library, in every command that takes a run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.cli._mechanism import CLASSES, composed
from deniable.cli._sampler import SCHEMES

WRITTEN = {
    "poisson,2,0.1,10": dn.SubsampledGaussian(2.0, 0.1, 10),
    "poisson,2,0.1,10,records-per-person=3": dn.SubsampledGaussian(2.0, 0.1, 10, 3),
    "truncated,2,0.1,10,30,200": dn.TruncatedPoisson(2.0, 0.1, 10, 30, 200),
    "without-replacement,2,20,200,10": dn.WithoutReplacement(2.0, 20, 200, 10),
    "shuffled,2,10,3": dn.ShuffledBatches(2.0, 10, 3),
    "allocation,2,10,epochs=3": dn.RandomAllocation(2.0, 10, 3),
    "gradient-descent,20,100,0.05,1,0.5": dn.NoisyGradientDescent(20.0, 100, 0.05, 1.0, 0.5),
    "laplace,2,steps=10": dn.Laplace(2.0, steps=10),
    "discrete-laplace,20,3": dn.DiscreteLaplace(20.0, 3),
    "discrete-gaussian,10,2,5,0.1": dn.DiscreteGaussian(10.0, 2, 5, 0.1),
    "randomized-response,1,categories=4": dn.RandomizedResponse(1.0, 4),
    "bounded-range,0.5,20": dn.BoundedRange(0.5, 20),
    "finite-pair,p=0.25:0.75,q=0.75:0.25": dn.FinitePair((0.25, 0.75), (0.75, 0.25)),
    "pure,1": dn.PureDP(1.0),
    "approximate,1,1e-5": dn.ApproximateDP(1.0, 1e-5),
    "gaussian,mu=0.5": dn.GaussianDP(0.5),
    "renyi,orders=2:4:8,epsilons=0.02:0.04:0.1": dn.RenyiDP([2, 4, 8], [0.02, 0.04, 0.1]),
    "zero-concentrated,0.1": dn.ZeroConcentratedDP(0.1),
}


def refused(capsys, *words):
    assert run(list(words)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1  # one line
    return told


@pytest.mark.parametrize("text", WRITTEN)
def test_words_become_the_mechanism_that_they_name(text):
    assert composed([text]) == WRITTEN[text]


def test_every_mechanism_has_a_name_here():
    kinds = {
        kind.__name__
        for kind in dn.mechanisms.Mechanism.__subclasses__()
        if kind.__module__.startswith("deniable.mech")
    }
    assert set(CLASSES.values()) == kinds - {"Composition", "Tuned", "Grouped"}  # other options serve these
    assert {text.split(",")[0] for text in WRITTEN} == set(CLASSES) - {"matrix"}
    assert list(SCHEMES) == list(CLASSES)[: len(SCHEMES)]


@pytest.mark.parametrize("suffix", [".csv", ".npy"])
def test_a_strategy_is_read_from_a_file(tmp_path, capsys, suffix):
    nodes = np.vstack([np.eye(4), np.kron(np.eye(2), [1, 1]), np.ones((1, 4))])
    path = tmp_path / f"strategy{suffix}"
    if suffix == ".csv":
        np.savetxt(path, nodes, delimiter=",")
    else:
        np.save(path, nodes)
    words = f"matrix,3,strategy={path},participations=2,separation=2"
    assert run(["bound", "--explain", "--mechanism", words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[0]["high"]
    mechanism = dn.MatrixMechanism(3.0, nodes, participations=2, separation=2)
    assert found == pytest.approx(dn.tradeoff(mechanism).advantage(), rel=1e-9)
    assert run(["bound", "--explain", "--mechanism", "matrix,3,sensitivity=1.5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[0]["high"]
    assert found == pytest.approx(dn.tradeoff(dn.GaussianDP(0.5)).advantage(), rel=1e-9)


def test_several_are_composed_and_tuning_is_counted_in(capsys):
    assert run(["bound", "--explain", "--mechanism", "gaussian,0.3", "--mechanism", "gaussian,0.4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[0]["high"]
    assert found == pytest.approx(dn.tradeoff(dn.GaussianDP(0.5)).advantage(), rel=1e-9)
    assert run(["bound", "--explain", "--mechanism", "gaussian,0.1", "--trials", "5", "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)[0]["high"]
    assert kept == pytest.approx(dn.tradeoff(dn.tuned(dn.GaussianDP(0.1), trials=5)).advantage(), rel=1e-9)
    full = ["--noise-multiplier", "10", "--sample-rate", "1", "--steps", "1"]
    assert run(["bound", "--explain", *full, "--trials", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["high"] == pytest.approx(kept, rel=1e-9)


def test_promises_and_comparisons_take_them(capsys, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("score,member\n" + "2.0,1\n0.5,0\n" * 3)
    assert run(["sequential", str(scores), "--mechanism", "zero-concentrated,0.1"]) == 0
    assert "ZeroConcentratedDP(rho=0.1, xi=0.0)" in capsys.readouterr().out
    assert run(["compare", "laplace,2", "gaussian,0.5", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]["numbers"]
    expected = [dn.tradeoff(one).advantage() for one in (dn.Laplace(2.0), dn.GaussianDP(0.5))]
    assert [number["value"] for number in row] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "name", "make"),
    [
        ("laplace,?", "scale", dn.Laplace),
        ("poisson,10,1,?", "steps", lambda x: dn.SubsampledGaussian(10.0, 1.0, int(x))),
        ("gaussian,?", "mu", dn.GaussianDP),
        ("discrete-laplace,?,2", "scale", lambda x: dn.DiscreteLaplace(x, 2)),
        (
            "gradient-descent,?,100,0.05,1,0.5",
            "noise_multiplier",
            lambda x: dn.NoisyGradientDescent(x, 100, 0.05, 1, 0.5),
        ),
        ("matrix,?,sensitivity=2", "noise_multiplier", lambda x: dn.MatrixMechanism(x, sensitivity=2.0)),
    ],
)
def test_the_number_that_is_asked_for_is_found_and_printed_on_the_safe_side(capsys, words, name, make):
    order = ["calibrate", "--mechanism", words, "--advantage", "0.3"]
    assert run([*order, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[name]
    assert 0.3 * (1 - 1e-6) < dn.tradeoff(make(found)).advantage() <= 0.3 or name == "steps"
    if name == "steps":
        assert dn.tradeoff(make(found)).advantage() <= 0.3 < dn.tradeoff(make(found + 1)).advantage()
    assert run(order) == 0
    printed = capsys.readouterr()
    shown = float(printed.out.partition(":")[0].split()[-1])
    assert dn.tradeoff(make(shown)).advantage() <= 0.3
    assert math.isclose(shown, found, rel_tol=1e-6)
    assert f"--mechanism {words.replace('?', printed.out.partition(':')[0].split()[-1])}" in printed.err.replace(
        "'", ""
    )


def test_the_most_trials_are_found(capsys):
    assert run(["calibrate", "--mechanism", "gaussian,0.05", "--find", "trials", "--advantage", "0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["trials"]
    at = [dn.tradeoff(dn.tuned(dn.GaussianDP(0.05), trials=k)).advantage() for k in (found, found + 1)]
    assert at[0] <= 0.2 < at[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["laplac,2"], "did you mean laplace?"),
        (["laplace"], "lacks scale; laplace takes laplace,scale=…"),
        (["laplace,2,1,1,1,1"], "has no place"),
        (["laplace,scale=2,3"], "'3' has no place"),
        (["laplace,2,scale=3"], "'scale=3' has no place"),
        (["laplace,2,sigma=3"], "'sigma=3' has no place"),
        (["laplace,x"], "scale must be a number, got 'x'"),
        (["laplace,nan"], "scale must be"),
        (["laplace,2,steps=1.5"], "steps must be"),
        (["laplace,?"], "for deniable calibrate"),
        (["renyi,orders=2:a,epsilons=1:2"], "or several as 2:4:8"),
        (["matrix,8,strategy=none.csv"], "cannot be read"),
        (["matrix,8,strategy=none.txt"], ".csv or .npy"),
        (["matrix,8"], "either strategy or sensitivity"),
        (["laplace,2", "--steps", "3"], "--steps does not go with --mechanism"),
        (["laplace,2", "--trials", "0.5"], "trials must be above 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(capsys, words, told):
    assert told in refused(capsys, "bound", "--explain", "--mechanism", *words)


def test_what_calibrate_cannot_find_is_said_in_one_line(capsys):
    order = ["calibrate", "--advantage", "0.1", "--mechanism"]
    assert "needs ? in place" in refused(capsys, *order, "laplace,2")
    assert "may have one ?" in refused(capsys, *order, "laplace,?,steps=?")
    assert "leave out --find" in refused(capsys, *order, "laplace,?", "--find", "steps")
    assert "need --explain or --proof" in refused(capsys, "bound", "--mechanism", "laplace,2")


@pytest.mark.parametrize(
    ("name", "content"), [("s.csv", "a,b\n1,2\n"), ("s.csv", ""), ("s.npy", "no array"), ("s.csv", "1,2\n3\n")]
)
def test_a_file_that_holds_no_matrix_is_refused_in_one_line(capsys, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    told = refused(capsys, "bound", "--explain", "--mechanism", f"matrix,8,strategy={tmp_path / name}")
    assert "strategy" in told
