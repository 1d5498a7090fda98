"""Profiles, releases and audits become reports: their numbers are those of the library, their JSON is as documented."""

import json
from importlib import resources

import jsonschema
import numpy as np

import deniable as dn

SCHEMA = json.loads(resources.files("deniable.report").joinpath("schema.json").read_text())


def test_numbers_are_those_of_the_library_and_the_parts_agree(whole):
    t, numbers = dn.tradeoff(dn.PureDP(1.0)), whole.numbers
    assert numbers["bound.accuracy@prior=0.1"].value == t.accuracy(0.1)
    for fpr in (0.1, 0.01, 0.001):
        assert numbers[f"bound.tpr@fpr={fpr:g}"].value == t.tpr(fpr)
    assert numbers["records.median.advantage"].value <= numbers["records.worst.advantage"].value
    assert numbers["records.worst.advantage"].value <= numbers["bound.advantage"].value == t.advantage()
    assert numbers["records.error"].value <= 1e-2
    assert whole.status == "consistent"
    assert numbers["attack.tpr@fpr=0.1"].low <= t.tpr(0.1)
    jsonschema.validate(json.loads(whole.to_json()), SCHEMA)


def test_results_of_other_functions_become_reports():
    rng = np.random.default_rng(0)
    scores = dn.audit_scores(rng.normal(1, 1, 500), rng.normal(0, 1, 500))
    X = rng.normal(size=(40, 2)) * 0.1
    profile = dn.privacy_profile(
        X, X[:, 0] > 0, regularization=0.1, mechanism=dn.OutputPerturbation(epsilon=1.0), rng=0
    )
    groups = ("side", np.where(X[:, 1] > 0, "up", "down"))
    one = dn.assess(scores, bound=dn.tradeoff(dn.GaussianDP(1.0)))
    two = dn.assess(profile, group=groups)
    assert one.status == "consistent"
    assert dn.assess(scores, bound=dn.tradeoff(dn.GaussianDP(0.1))).status == "violated"
    grids = two.section("records").grids
    assert [grid.key for grid in grids] == ["most-exposed", "subgroups"]
    assert [(row[0], int(row[1])) for row in grids[1].rows] == [
        (side, np.sum(groups[1] == side)) for side in ("down", "up")
    ]
    released = dn.release(
        lambda rows: rows.mean(axis=0), rng.normal(size=(60, 2)), advantage=0.2, bound="centre", rng=0
    )
    three = dn.assess(released)
    assert three.numbers["release.advantage"].value == released.certificate.advantage
    assert three.numbers["bound.advantage"].value == released.certificate.tradeoff.advantage()
    for made in (one, two, three, one + two):
        jsonschema.validate(json.loads(made.to_json()), SCHEMA)
