"""The main job: every number comes from the library, the attack stays below the proof, too little noise is caught."""

from __future__ import annotations

import json
from importlib import resources

import jsonschema
import numpy as np
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.records import OutputPerturbation
from deniable.report import data_run
from deniable.tables import TableWarning

SCHEMA = json.loads(resources.files("deniable.report").joinpath("schema.json").read_text())


def outlier_table(n=40):
    """One person far from the rest: exposed even when the others hide."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2)) * 0.1
    y = np.where(X[:, 0] > 0, 1, 0)
    X[0], y[0] = [5.0, -5.0], 0
    return X, y


@pytest.fixture(scope="module")
def report():
    return dn.assess("breast-cancer", epsilon=1.0, prior=0.2, rng=0, n_samples=4000)


def test_the_bound_is_that_of_the_guarantee(report):
    t = dn.tradeoff(dn.PureDP(1.0))
    numbers = report.numbers
    assert numbers["bound.accuracy"].value == t.accuracy() == pytest.approx(np.e / (1 + np.e), rel=1e-12)
    assert numbers["bound.accuracy@prior=0.2"].value == t.accuracy(0.2)
    for fpr in (0.1, 0.01, 0.001):
        assert numbers[f"bound.tpr@fpr={fpr:g}"].value == t.tpr(fpr)


def test_no_record_is_more_exposed_than_the_bound_allows(report):
    numbers = report.numbers
    assert numbers["records.worst.advantage"].value <= numbers["bound.advantage"].value
    assert numbers["records.median.advantage"].value <= numbers["records.worst.advantage"].value
    assert numbers["records.error"].value <= 1e-2


def test_the_measured_interval_lies_below_the_bound(report):
    assert report.status == "consistent"
    for fpr in (0.1, 0.01):
        key = f"tpr@fpr={fpr:g}"
        assert report.numbers[f"attack.{key}"].low <= report.numbers[f"bound.{key}"].value
    assert report.numbers["attack.epsilon"].value <= 1.0


def test_ten_times_too_little_noise_is_caught(monkeypatch):
    honest = OutputPerturbation.sample

    def careless(self, centre, rate, rng):
        return honest(self, centre, 10 * rate, rng=rng)

    arguments = {"epsilon": 1.0, "regularization": 0.1, "rng": 1, "n_samples": 4000}
    assert dn.assess(outlier_table(), **arguments).status == "consistent"
    monkeypatch.setattr(OutputPerturbation, "sample", careless)
    broken = dn.assess(outlier_table(), **arguments)
    assert broken.status == "violated"
    assert "Do not release" in broken.headline


def test_json_is_valid_and_says_how_to_repeat(report):
    made = json.loads(report.to_json())
    jsonschema.validate(made, SCHEMA)
    assert made["reproduction"]["seed"] == 0
    assert made["reproduction"]["training rows"] == 426
    again = dn.assess("breast-cancer", epsilon=1.0, prior=0.2, rng=0, n_samples=4000)
    assert again.numbers["attack.tpr@fpr=0.1"] == report.numbers["attack.tpr@fpr=0.1"]
    assert again.numbers["utility.with"] == report.numbers["utility.with"]


def test_the_report_says_that_scaling_constants_are_assumed_public(report):
    assert any("assumed public" in note for note in report.assumptions.notes)
    X, y = outlier_table()
    given = dn.assess((X, y), epsilon=1.0, ranges={"x0": [-6, 6], "x1": [-6, 6]}, n_samples=200)
    assert not any("assumed public" in note for note in given.assumptions.notes)


def test_subgroups_are_summarised_by_any_column():
    report = dn.assess("digits-3-8", epsilon=1.0, rng=0, n_samples=200, group="target")
    grid = next(g for g in report.section("records").grids if g.key == "subgroups")
    assert [row[0] for row in grid.rows] == ["3", "8"]
    assert sum(int(row[1]) for row in grid.rows) == report.numbers["records.count"].value


def test_less_noise_keeps_more_accuracy():
    low, high = (
        dn.assess("digits-3-8", epsilon=e, regularization=0.1, rng=0, n_samples=200).numbers["utility.with"].value
        for e in (0.5, 20.0)
    )
    assert high > low + 0.1


def test_adult(dataset):
    with pytest.warns(TableWarning, match="'workclass': category; 5.7.% missing; '\\?' read as missing"):
        report = dn.assess(
            dataset("adult.parquet"),
            target="income",
            drop=["split"],
            epsilon=1.0,
            regularization=1e-3,
            rng=0,
            n_samples=500,
        )
    assert report.status == "consistent"
    assert report.numbers["records.count"].value == 36631
    assert report.numbers["utility.with"].value > 0.7


def test_results_of_other_functions_become_reports():
    rng = np.random.default_rng(0)
    scores = dn.audit_scores(rng.normal(1, 1, 500), rng.normal(0, 1, 500))
    X, y = outlier_table()
    profile = dn.privacy_profile(X / 10, y, regularization=0.1, mechanism=dn.OutputPerturbation(epsilon=1.0), rng=0)
    groups = ("side", np.where(X[:, 1] > 0, "up", "down"))
    one = dn.assess(scores, bound=dn.tradeoff(dn.GaussianDP(1.0)))
    two = dn.assess(profile, group=groups)
    assert one.status == "consistent"
    assert dn.assess(scores, bound=dn.tradeoff(dn.GaussianDP(0.1))).status == "violated"
    assert [grid.key for grid in two.section("records").grids] == ["most-exposed", "subgroups"]
    for made in (one, two, one + two):
        jsonschema.validate(json.loads(made.to_json()), SCHEMA)


def test_a_release_becomes_a_report():
    data = np.random.default_rng(0).normal(size=(60, 2))
    released = dn.release(lambda rows: rows.mean(axis=0), data, eta=0.1, bound="centre", rng=0)
    made = dn.assess(released)
    assert made.numbers["release.eta"].value == released.certificate.eta
    assert made.numbers["bound.advantage"].value == released.certificate.tradeoff.advantage()
    jsonschema.validate(json.loads(made.to_json()), SCHEMA)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["epsilon"]),
        ({"epsilon": 0.0}, ["epsilon", "above 0"]),
        ({"epsilon": 1.0, "regularization": 0.0}, ["regularization", "above 0"]),
        ({"epsilon": 1.0, "group": "colour"}, ["group", "colour"]),
        ({"epsilon": 1.0, "n_samples": 5}, ["n_samples", "at least 100"]),
        ({"epsilon": 1.0, "test_fraction": 1.0}, ["test_fraction", "below 1"]),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(dn.InputError) as error:
        dn.assess("breast-cancer", **options)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_worst_record_scores_come_from_the_mechanism():
    X, y = outlier_table()
    profile = dn.privacy_profile(X / 10, y, regularization=0.1, mechanism=dn.OutputPerturbation(epsilon=1.0), rng=0)
    inside, outside = data_run.worst_record_scores(profile, profile.mechanism, 4000, np.random.default_rng(0))
    advantage = dn.audit_scores(inside, outside).advantage()
    worst = profile.ranking("typical")[0]
    assert advantage.low <= profile.advantage()[worst]
    assert profile.advantage("lower")[worst] <= advantage.high


def test_a_useless_release_is_said_first_and_training_is_offered(capsys):
    assert run(["assess", "breast-cancer", "--epsilon", "0.1", "--attack-samples", "200", "--seed", "0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.index("of no use") < out.index("NOT MEET")
    assert "deniable train breast-cancer --target target --advantage 0.05" in out
    assert dn.assess("digits-3-8", epsilon=20.0, regularization=0.1, rng=0, n_samples=200).alert == ""


@pytest.mark.parametrize("values", [1, 3, 30])
def test_a_target_without_two_values_is_refused(values):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(dn.InputError, match=f"must have exactly 2 values, got {values}"):
        dn.assess((X, np.arange(30.0) % values), epsilon=1.0)
