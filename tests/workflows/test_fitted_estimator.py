"""Any fitted model: an attack on its procedure, and nothing proven."""

import json
from importlib import resources

import jsonschema
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import deniable as dn

SCHEMA = json.loads(resources.files("deniable.report").joinpath("schema.json").read_text())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, (X[:, 0] + rng.normal(size=120) > 0).astype(int)


def test_a_full_tree_is_found_out_and_nothing_is_proven(data):
    X, y = data
    found = dn.assess(DecisionTreeClassifier(random_state=0).fit(X, y), X, y, n_shadows=16, rng=0)
    jsonschema.validate(json.loads(found.to_json()), SCHEMA)
    assert found.status == "measured"
    assert "Nothing is proven" in found.headline
    assert found.numbers["attack.advantage"].low > 0.1
    assert found.decision.outcome == "does not meet"
    assert any(change.startswith("Model: fit a private one") for change in found.decision.changes)
    assert found.section("bound") is None
    calm = dn.assess(LogisticRegression(C=1e-4).fit(X, y), X, y, n_shadows=16, rng=0)
    assert calm.decision.outcome == "not decided"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, y: dn.assess(DecisionTreeClassifier(), X, y), ["fitted first"]),
        (lambda X, y: dn.assess(DecisionTreeClassifier().fit(X, y)), ["assess(model, X, y)"]),
        (lambda X, y: dn.assess(DecisionTreeClassifier().fit(X, y), X, y[:-1]), ["same records"]),
        (lambda X, y: dn.assess(StandardScaler().fit(X), X, y), ["cannot predict"]),
        (lambda X, y: dn.assess(DecisionTreeClassifier().fit(X, y), X, y, epsilon=1), ["no 'epsilon'"]),
    ],
)
def test_what_cannot_be_assessed_is_said(data, call, words):
    with pytest.raises(dn.InputError) as error:
        call(*data)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_vulnerable_records_are_those_that_the_attack_finds(data):
    X, y = data
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    found = dn.assess(model, X, y, n_shadows=16, n_targets=24, rng=0)
    grid = found.section("vulnerable").grids[0].rows
    scores = dn.attack_estimator(DecisionTreeClassifier(random_state=0), X, y, n_shadows=16, n_targets=24, rng=0)
    exposed = scores.most_exposed(12)
    assert [int(row[0]) for row in grid] == exposed.record.tolist()
    assert [row[1] for row in grid] == [f"{right} of 24" for right in exposed.right]
    worst = found.numbers["vulnerable.worst"]
    assert worst.low > 0.5
    assert worst.low <= worst.value <= worst.high
    assert found.numbers["vulnerable.records"].value >= 1
    once = dn.assess(model, X, y, n_shadows=16, n_targets=1, rng=0)
    assert once.section("vulnerable") is None
    for name in ("attack.advantage", "attack.tpr@fpr=0.1"):  # the audit is that of the first target alone
        assert found.numbers[name] == once.numbers[name]


def test_nobody_is_vulnerable_in_a_model_that_learns_nothing(data):
    X, y = data
    calm = dn.assess(LogisticRegression(C=1e-9).fit(X, y), X, y, n_shadows=8, n_targets=24, rng=1, method="loss")
    assert calm.numbers["vulnerable.records"].value == 0
    assert calm.numbers["vulnerable.worst"].low <= 0.5
