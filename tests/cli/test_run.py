"""A run is one argument: every mechanism of the library, files, persons and tuning, in every command that takes one."""

import json
import math

import numpy as np
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.cli.run import NAMES, PREFIXES, _kinds, read_run
from deniable.mechanisms import BoundedRange, DiscreteLaplace, FinitePair, Grouped, tuned

WRITTEN = {
    "dpsgd,2,0.1,10": dn.SubsampledGaussian(2.0, 0.1, 10),
    "dpsgd,2,0.1,10,records-per-person=3": dn.SubsampledGaussian(2.0, 0.1, 10, 3),
    "truncated,2,0.1,10,30,200": dn.TruncatedPoisson(2.0, 0.1, 10, 30, 200),
    "without-replacement,2,20,200,10": dn.WithoutReplacement(2.0, 20, 200, 10),
    "shuffled,2,10,3": dn.ShuffledBatches(2.0, 10, 3),
    "allocation,2,10,epochs=3": dn.RandomAllocation(2.0, 10, 3),
    "gradient-descent,20,100,0.05,1,0.5": dn.NoisyGradientDescent(20.0, 100, 0.05, 1.0, 0.5),
    "laplace,2,steps=10": dn.Laplace(2.0, steps=10),
    "discrete-laplace,20,3": DiscreteLaplace(20.0, 3),
    "discrete-gaussian,10,2,5,0.1": dn.DiscreteGaussian(10.0, 2, 5, 0.1),
    "randomized-response,1,categories=4": dn.RandomizedResponse(1.0, 4),
    "bounded-range,0.5,20": BoundedRange(0.5, 20),
    "finite-pair,p=0.25:0.75,q=0.75:0.25": FinitePair((0.25, 0.75), (0.75, 0.25)),
    "epsilon,1,1e-5": dn.ApproximateDP(1.0, 1e-5),
    "gaussian,mu=0.5": dn.GaussianDP(0.5),
    "renyi,orders=2:4:8,epsilons=0.02:0.04:0.1": dn.RenyiDP([2, 4, 8], [0.02, 0.04, 0.1]),
    "zero-concentrated,0.1": dn.ZeroConcentratedDP(0.1),
}
TOGETHER = {
    "epsilon,1": dn.PureDP(1.0),
    " laplace, 2 , steps=1e+1 + gaussian,0.1 ": dn.Laplace(2.0, steps=10) + dn.GaussianDP(0.1),
    "laplace,2+gaussian,0.1": dn.Laplace(2.0) + dn.GaussianDP(0.1),
    "person,3: dpsgd,2,0.5,1": dn.SubsampledGaussian(2.0, 0.5, 1, 3),
    "person,1:dpsgd,2,0.5,1": dn.SubsampledGaussian(2.0, 0.5, 1),
    "person,2: dpsgd,2,0.5,1 + dpsgd,3,0.5,1": dn.SubsampledGaussian(2.0, 0.5, 1, 2)
    + dn.SubsampledGaussian(3, 0.5, 1, 2),
    "person,3: shuffled,9,5": Grouped(dn.ShuffledBatches(9.0, 5), 3),
    "tuned,5: gaussian,0.1": tuned(dn.GaussianDP(0.1), trials=5),
    "person,3: tuned,5: gaussian,0.1": Grouped(tuned(dn.GaussianDP(0.1), trials=5), 3),
    "tuned,5: person,3: dpsgd,2,0.5,1": tuned(dn.SubsampledGaussian(2.0, 0.5, 1, 3), trials=5),
}


def refused(capsys, *words):
    assert run(list(words)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1  # one line
    return told.err


def answered(capsys, *words):
    assert run([*words, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_words_become_the_mechanism_that_they_name():
    wrong = {text: read_run(text) for text, made in (WRITTEN | TOGETHER).items() if read_run(text) != made}
    assert wrong == {}


def test_every_mechanism_has_a_name_here():
    kinds = {kind.__name__ for kind in dn.Mechanism.__subclasses__() if kind.__module__.startswith("deniable.mech")}
    named = {kind.__name__ for name, kind in _kinds().items() if name not in ("epsilon", *PREFIXES)}
    assert named | {"PureDP", "ApproximateDP"} == kinds - {"Composition", "Tuned", "Grouped"}  # written otherwise
    assert {text.split(",")[0] for text in WRITTEN} == set(NAMES) - {"matrix"}


def test_a_history_is_a_run_and_a_part_of_one(tmp_path, capsys):
    path = tmp_path / "history.json"
    path.write_text("[[40.0, 1.0, 12], [30.0, 1.0, 8]]")
    phases = dn.SubsampledGaussian(40.0, 1.0, 12) + dn.SubsampledGaussian(30.0, 1.0, 8)
    assert read_run(str(path)) == phases
    assert read_run(f"{path} + laplace,2") == dn.Composition([phases, dn.Laplace(2.0)])
    assert [one.records_per_person for one in read_run(f"person,3: {path}").mechanisms] == [3, 3]
    path.write_text('{"title": "no history"}')
    assert "must hold noise_multiplier, sample_rate and steps" in refused(capsys, "bound", str(path))


@pytest.mark.parametrize("suffix", [".csv", ".npy"])
def test_a_strategy_is_read_from_a_file(tmp_path, suffix):
    nodes = np.vstack([np.eye(4), np.kron(np.eye(2), [1, 1]), np.ones((1, 4))])
    path = tmp_path / f"strategy{suffix}"
    if suffix == ".csv":
        np.savetxt(path, nodes, delimiter=",")
    else:
        np.save(path, nodes)
    made = read_run(f"matrix,3,strategy={path},participations=2,separation=2")
    assert dn.tradeoff(made).advantage() == pytest.approx(
        dn.tradeoff(dn.MatrixMechanism(3.0, nodes, participations=2, separation=2)).advantage(), rel=1e-9
    )
    even = dn.tradeoff(read_run("matrix,3,sensitivity=1.5")).advantage()
    assert even == pytest.approx(dn.tradeoff(dn.GaussianDP(0.5)).advantage(), rel=1e-9)


def test_bound_answers_for_any_run(capsys):
    curve = dn.tradeoff(dn.SubsampledGaussian(6.0, 1.0, 4, 3))
    found = answered(capsys, "bound", "person,3: dpsgd,6,1,4", "--prior", "0.1", "--delta", "1e-6")
    expected = {
        "advantage": curve.advantage(), "accuracy": curve.accuracy(0.1), "tpr@fpr=0.1": curve.tpr(0.1),
        "tpr@fpr=0.01": curve.tpr(0.01), "tpr@fpr=0.001": curve.tpr(0.001), "precision": curve.precision(0.001, 0.1),
        "epsilon": curve.epsilon(1e-6), "reconstruction": curve.reconstruction(0.001),
        "prior": 0.1, "fpr": 0.001, "delta": 1e-6, "baseline": 0.001,
        "adjacency": "add or remove one person with all its records", "unit": "person", "batches": "",
    }  # fmt: skip
    assert found == expected


def test_commands_answer_for_the_same_run(capsys, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("score,member\n" + "".join(f"{k * 37 % 101},{k % 2}\n" for k in range(100)))
    assert run(["audit", str(scores), "zero-concentrated,0.1", "--stream"]) == 0
    assert "ZeroConcentratedDP(rho=0.1, xi=0.0)" in capsys.readouterr().out
    answered(capsys, "audit", str(scores), "shuffled,1,5")
    assert "RandomAllocation" in answered(capsys, "assess", "allocation,1,20,2")["title"]
    row = answered(capsys, "compare", "dpsgd,4,0.2,5", "shuffled,4,5", "laplace,2")["rows"][0]["numbers"]
    runs = (dn.SubsampledGaussian(4.0, 0.2, 5), dn.ShuffledBatches(4.0, 5), dn.Laplace(2.0))
    assert [number["value"] for number in row] == pytest.approx(
        [dn.tradeoff(one, adjacency="replace").advantage() for one in runs]
    )
    found = answered(capsys, "assess", "person,3: gaussian,0.1")
    assert found["title"].endswith(", persons of 3 records")


@pytest.mark.parametrize(
    ("words", "name", "make"),
    [
        ("laplace,?", "scale", dn.Laplace),
        ("dpsgd,10,1,?", "steps", lambda x: dn.SubsampledGaussian(10.0, 1.0, int(x))),
        ("dpsgd,2,?,9", "sample_rate", lambda x: dn.SubsampledGaussian(2.0, x, 9)),
        ("gaussian,?", "mu", dn.GaussianDP),
        ("epsilon,?,1e-5", "epsilon", lambda x: dn.ApproximateDP(x, 1e-5)),
        ("discrete-laplace,?,2", "scale", lambda x: DiscreteLaplace(x, 2)),
        (
            "gradient-descent,?,100,0.05,1,0.5",
            "noise_multiplier",
            lambda x: dn.NoisyGradientDescent(x, 100, 0.05, 1, 0.5),
        ),
        ("matrix,?,sensitivity=2", "noise_multiplier", lambda x: dn.MatrixMechanism(x, sensitivity=2.0)),
        ("laplace,? + gaussian,0.1", "scale", lambda x: dn.Laplace(x) + dn.GaussianDP(0.1)),
    ],
)
def test_the_number_that_is_asked_for_is_found_and_printed_on_the_safe_side(capsys, words, name, make):
    order = ["calibrate", words, "--advantage", "0.3"]
    found = answered(capsys, *order)[name]
    assert 0.3 * (1 - 1e-6) < dn.tradeoff(make(found)).advantage() <= 0.3 or name == "steps"
    if name == "steps":
        assert dn.tradeoff(make(found)).advantage() <= 0.3 < dn.tradeoff(make(found + 1)).advantage()
    assert run(order) == 0
    printed = capsys.readouterr()
    shown = float(printed.out.partition(":")[0].split()[-1])
    assert dn.tradeoff(make(shown)).advantage() <= 0.3
    assert math.isclose(shown, found, rel_tol=1e-6)
    assert f"assess {words.replace('?', printed.out.partition(':')[0].split()[-1])}" in printed.err.replace("'", "")


def test_most_records_trials_and_epochs_are_found(capsys):
    made = {
        ("person,?: dpsgd,40,1,20", "records", 0.3): lambda k: dn.SubsampledGaussian(40.0, 1.0, 20, k),
        ("person,?: allocation,3,4", "records", 0.2): lambda k: Grouped(dn.RandomAllocation(3.0, 4), k),
        ("tuned,?: gaussian,0.05", "trials", 0.2): lambda k: tuned(dn.GaussianDP(0.05), trials=k),
        ("shuffled,9,5,?", "epochs", 0.3): lambda k: dn.ShuffledBatches(9.0, 5, k),
    }
    for (words, name, most), make in made.items():
        found = answered(capsys, "calibrate", words, "--advantage", str(most))[name]
        at = [dn.tradeoff(make(k)).advantage() for k in (found, found + 1)]
        assert at[0] <= most < at[1], words


WRONG = [
    ("laplac,2", "did you mean laplace,2?"),
    ("epsilon=1", "did you mean epsilon,1?"),
    ("laplace,2 gaussian,1", "write two runs as A + B"),
    ("1,0.01,5000", "did you mean dpsgd,1,0.01,5000?"),
    ("2", "did you mean epsilon,2?"),
    ("people.csv", "looks like a table"),
    ("", "must begin with a name"),
    ("laplace", "lacks scale; write laplace,SCALE"),
    ("dpsgd,1", "lacks sample_rate, steps"),
    ("laplace,2,1,1,1,1", "has no place"),
    ("laplace,scale=2,3", "'3' has no place"),
    ("laplace,2,scale=3", "'scale=3' has no place"),
    ("laplace,2,sigma=3", "'sigma=3' has no place"),
    ("laplace,x", "scale must be a number, got 'x'"),
    ("laplace,nan", "scale must be"),
    ("laplace,2,steps=1.5", "steps must be"),
    ("laplace,?", "for deniable calibrate"),
    ("renyi,orders=2:a,epsilons=1:2", "or several as 2:4:8"),
    ("matrix,8,strategy=none.csv", "cannot be read"),
    ("matrix,8,strategy=none.txt", ".csv or .npy"),
    ("matrix,8", "either strategy or sensitivity"),
    ("tuned,0.5: laplace,2", "trials must be above 1"),
    ("persn,3: laplace,2", "did you mean person,3: laplace,2?"),
    ("person,3", "person must stand before the whole run"),
    ("laplace,2 + person,3: laplace,2", "person must stand before the whole run"),
    ("nowhere.json", "does not exist"),
    ("nowhere.pt", "does not exist"),
    *((f"person,{number}: dpsgd,2,0.5,1", "records") for number in ("0", "-1", "1.5", "nan", "inf", "one", "1e9")),
]


def test_what_is_wrong_is_said_in_one_line(capsys):
    told = [(text, word, refused(capsys, "bound", text)) for text, word in WRONG]
    assert [(text, said) for text, word, said in told if word not in said] == []
