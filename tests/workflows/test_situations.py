"""What ran, what stood before it, whose presence is bounded, how batches were drawn: the words that must appear."""

import html
import json
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import deniable as dn
import deniable.report
from deniable.cli._app import run
from deniable.mechanisms import tuned
from deniable.records import ObjectivePerturbation
from deniable.training.features import TableReader
from deniable.workflows.assessing import _unwrap

SCHEMA = json.loads((Path(deniable.report.__file__).parent / "schema.json").read_text())
RECORD = "record (add or remove one record)"
PERSON = "person (add or remove one person with all its records)"
REPLACED, ZEROED = "record (replace one record)", "record (the contribution of one record becomes 0"
GROUP = "group (add or remove a group of 3 records)"
POISSON = "each record joins a batch by its own coin (Poisson); a shuffled loader is another run"
ALLOCATED = "each record joins batches of an epoch drawn for it alone (allocation); a shuffled loader is another run"
SHUFFLED = "the records are shuffled in each epoch and cut into batches; Poisson batches are another run"
DRAWN = "each batch is drawn afresh, of one size, without replacement; Poisson and shuffled batches are other runs"
SAMPLERS = (POISSON, ALLOCATED, SHUFFLED, DRAWN)
GIVEN = "the columns as they were given; what prepared them is not covered"
FITTED = "was fitted to the records without noise; give the private model the raw table, it reads it itself"

DPSGD = dn.SubsampledGaussian(4.0, 0.1, 5)
RUNS = {  # a run as the command line takes it: what must be said of it
    "dpsgd,4,0.1,5": (RECORD, POISSON),
    "dpsgd,2,1,4": (RECORD,),
    "person,3: dpsgd,4,0.1,5": (PERSON, POISSON),
    "person,3: dpsgd,6,1,4": (PERSON,),
    "person,3: laplace,9": (GROUP,),
    "laplace,2": (RECORD,),
    "laplace,2,sample_rate=0.1": (RECORD, POISSON),
    "discrete-laplace,2,sample_rate=0.1": (RECORD, POISSON),
    "discrete-gaussian,2,sample_rate=0.1": (RECORD, POISSON),
    "allocation,4,10,1": (RECORD, ALLOCATED),
    "person,3: allocation,4,10,1": (GROUP, ALLOCATED),
    "shuffled,4,10,1": (ZEROED, SHUFFLED),
    "without-replacement,9,10,100,2": (REPLACED, DRAWN),
    "gradient-descent,20,100,0.05,1,0.5": (RECORD,),
    "epsilon,1": (RECORD,),
    "epsilon,1,1e-6": (RECORD,),
    "gaussian,0.5": (RECORD,),
    "dpsgd,4,0.1,5 + dpsgd,5,0.2,2": (RECORD, POISSON),
    "dpsgd,4,0.1,5 + laplace,3": (RECORD, POISSON),
    "tuned,10: dpsgd,4,0.1,5": (RECORD, POISSON),
}


@pytest.mark.parametrize(("name", "words"), RUNS.items(), ids=list(RUNS))
def test_a_run_says_its_unit_and_its_batches_in_text_and_json(capsys, name, words):
    line = f"Unit: {'; '.join(words)}"
    assert run(["bound", name, "--delta", "1e-6", "--prior", "0.3"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[-1].startswith(line) if ZEROED not in words else all(word in said for word in words)
    assert [word for word in SAMPLERS if word in said] == [word for word in words if word in SAMPLERS]
    (precision,) = (line for line in said.splitlines() if "says 'in'" in line)
    assert precision.endswith(("prior 30 %", "a false positive rate is stated"))
    assert run(["bound", name, "--json", "--prior", "0.3", "--fpr", "0.01"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unit"] == words[0].partition(" (")[0]
    assert found["adjacency"].startswith(words[0].partition("(")[2].rstrip(")"))
    assert found["batches"] == "; ".join(words[1:])
    assert (found["prior"], found["fpr"]) == (0.3, 0.01)
    assert found["delta"] == 1e-5
    assert run(["bound", name, "--explain"]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in words)


def people(n=250):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(50, 10, n), "ward": rng.choice(["a", "b"], n)})
    return table.assign(who=np.arange(n) // 2), (table["age"] > 50).to_numpy()


def private(**options):
    table, y = people()
    left = table if "group" in options else table.drop(columns="who")
    return dn.PrivateClassifier(advantage=0.5, ranges={"age": (0, 100)}, **options).fit(left, y)


@pytest.fixture(scope="module")
def model():
    return private()


def profile(mechanism, **options):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    rows /= np.linalg.norm(rows, axis=1).max()
    return dn.privacy_profile(rows, rng.integers(0, 2, 60), regularization=0.1, mechanism=mechanism, rng=0, **options)


def statistics(**options):
    table = people()[0].drop(columns=[] if options else "who")
    return dn.release_statistics(table, ["mean(age)"], advantage=0.5, ranges={"age": (0, 100)}, **options)


SECRET = dn.release(lambda x: x.mean(axis=0), np.random.default_rng(0).uniform(size=(60, 1)), advantage=0.5)
COMPLETE = {  # a source: what its page must say
    "a mechanism": (lambda m: DPSGD, (RECORD, POISSON)),
    "its curve": (lambda m: dn.tradeoff(DPSGD), (RECORD, POISSON)),
    "its curve, a record replaced": (lambda m: dn.tradeoff(DPSGD, adjacency="replace"), (REPLACED, POISSON)),
    "of persons, replaced": (
        lambda m: dn.tradeoff(dn.SubsampledGaussian(4.0, 0.1, 2, 2), adjacency="replace"),
        ("person (replace one person with all its records)", POISSON),
    ),
    "the best of several runs": (lambda m: tuned(DPSGD, trials=5), (RECORD, POISSON)),
    "a truncated sampler": (lambda m: dn.TruncatedPoisson(2.0, 0.01, 10, 30, 1000), (RECORD, POISSON)),
    "correlated noise, cyclic sampling": (
        lambda m: dn.MatrixMechanism(4.0, np.eye(4), sample_rate=0.1), (RECORD, POISSON)
    ),
    "correlated noise, all records": (lambda m: dn.MatrixMechanism(4.0, np.eye(4)), ("record (",)),
    "randomized response": (lambda m: dn.RandomizedResponse(1.0), ("record (",)),
    "a private model of records": (lambda m: m, (RECORD, GIVEN)),
    "a private model of persons": (lambda m: private(group="who"), (PERSON, GIVEN)),
    "a private model, columns read": (lambda m: make_pipeline(TableReader(["age", "ward"]), m), (RECORD, GIVEN)),
    "a private model behind nothing": (lambda m: make_pipeline("passthrough", m), (RECORD, GIVEN)),
    "statistics of records": (lambda m: statistics(), (RECORD, GIVEN)),
    "statistics of persons": (lambda m: statistics(group="who"), (PERSON, GIVEN)),
    "a secret half": (lambda m: SECRET, ("record (",)),
    "a profile": (
        lambda m: profile(dn.OutputPerturbation(epsilon=1.0)),
        (RECORD, GIVEN, "only if it is released with norm-Laplace noise of ε = 1"),
    ),
    "a profile of Gaussian noise": (
        lambda m: profile(dn.OutputPerturbation(scale=0.5, noise="gaussian")),
        (RECORD, GIVEN, "only if it is released with Gaussian noise of scale 0.5"),
    ),
    "a profile of noise in the objective": (
        lambda m: profile(ObjectivePerturbation(epsilon=1.0), n_samples=50),
        (RECORD, GIVEN, "only if it is released with norm-Laplace noise of ε = 1 in its objective"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words"), COMPLETE.values(), ids=list(COMPLETE))
def test_a_page_a_json_and_an_annex_say_what_was_certified(model, make, words):
    made = dn.assess(make(model), prior=0.2, fpr=[0.01], delta=1e-6)
    found = json.loads(made.to_json())
    jsonschema.validate(found, SCHEMA)
    annexes = [made.annex(kind, owner=True) for kind in ("dpia", "cnil", "ico", "nist-800-226", "sacro", "model-card")]
    for text in (str(made.to_text(width=10_000)), html.unescape(made.to_html())):
        for word in words:
            assert word in text
    stated = words[:2] if len(words) > 1 and words[1] in SAMPLERS else words[:1]
    for text in (*annexes, " ".join(str(made).split()), made.annex("dp-registry")):
        assert all(word in text for word in stated)
    assert [word for word in SAMPLERS if word in made.to_text(width=10_000)] == [w for w in words if w in SAMPLERS]
    assert found["assumptions"]["unit"] == words[0].partition(" (")[0]
    at = {n["key"]: n["at"] for section in found["sections"] for n in section["numbers"]}
    if "bound.advantage" in at:
        assert at["bound.advantage"] == {"prior": 0.5}
        assert at["bound.accuracy@prior=0.2"] == {"prior": 0.2}
        assert at["bound.tpr@fpr=0.01"] == {"fpr": 0.01}
        assert at["bound.precision@fpr=0.01"] == {"prior": 0.2, "fpr": 0.01}
        assert at["bound.epsilon@delta=1e-06"] == {"delta": 1e-6}


REFUSED = {
    "a scaler before it": lambda m: make_pipeline(StandardScaler(), m),
    "an encoder before it": lambda m: make_pipeline(make_pipeline(OneHotEncoder(), "passthrough"), m),
    "a stack around it": lambda m: StackingClassifier([("m", m)]),
    "a search around it": lambda m: GridSearchCV(m, {}),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=list(REFUSED))
def test_what_stood_before_and_learnt_is_refused(model, make):
    with pytest.raises(dn.InputError, match=FITTED):
        dn.assess(make(model))


def test_secret_halves_behind_a_scaler_stay_what_they_are():
    X = np.random.default_rng(0).normal(size=(60, 2))
    half = dn.MembershipPrivate(StandardScaler(), advantage=0.5)
    pipeline = make_pipeline(StandardScaler(), half, LogisticRegression()).fit(X, X[:, 0] > 0)
    assert _unwrap(pipeline, X) == (pipeline, X)
    assert dn.assess(pipeline[1].certificate_).status == "bounded"


def row_of(found):
    return next(row for row in found.rows if row.key == "bound.advantage")


def test_what_is_side_by_side_is_for_the_same_two_worlds():
    drawn = dn.WithoutReplacement(9.0, 10, 100, 2)
    found = dn.compare(DPSGD, drawn)
    assert [one.unit for one in found.assumptions] == ["record", "record"]
    assert [stated.adjacency for stated in found.assumptions] == ["replace one record"] * 2
    first = row_of(found).numbers[0]
    assert first.value == dn.tradeoff(DPSGD, adjacency="replace").advantage() > dn.tradeoff(DPSGD).advantage()
    text = " ".join(str(found).split())
    assert REPLACED in text
    assert POISSON in text
    assert DRAWN in text
    curve = row_of(dn.compare(dn.tradeoff(DPSGD), drawn)).numbers[0]
    assert first.value <= curve.value  # the mechanism is composed step by step
    alone = dn.compare(DPSGD, dn.PureDP(1.0))
    assert row_of(alone).numbers[0].value == dn.tradeoff(DPSGD).advantage()


def test_a_private_model_is_compared_with_its_own_curve_for_a_replaced_record(model):
    found = dn.compare(model, dn.WithoutReplacement(9.0, 10, 100, 2))
    assert row_of(found).numbers[0].value == model.replacement_tradeoff_.advantage()


def test_what_cannot_be_converted_is_not_compared(tmp_path, capsys):
    saved = tmp_path / "saved.json"
    dn.assess(DPSGD).to_json(saved)
    for one in (dn.Assessment.from_json(saved), SECRET):
        with pytest.raises(dn.InputError, match="cannot be converted to a replaced record"):
            dn.compare(one, dn.WithoutReplacement(9.0, 10, 100, 2))
    assert run(["compare", str(saved), "without-replacement,9,10,100,2"]) == 2
    assert "sources must be for the same two worlds" in capsys.readouterr().err
    assert run(["compare", str(saved), "dpsgd,4,0.1,5", "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert [stated["adjacency"] for stated in found["assumptions"]] == ["add or remove one record"] * 2
    assert found["rows"][0]["numbers"][0]["at"] == {"prior": 0.5}
