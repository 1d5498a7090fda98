"""``--sampler``: runs whose batches were not drawn record by record, in every command that takes them."""

from __future__ import annotations

import json

import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.cli._sampler import SCHEMES, described

ALLOCATION = ["--sampler", "allocation", "--noise-multiplier", "1", "--batches", "20", "--epochs", "2"]
RUNS = {
    "poisson": ({"--sample-rate": 0.1, "--steps": 10}, dn.SubsampledGaussian(2.0, 0.1, 10)),
    "truncated": (
        {"--sample-rate": 0.1, "--steps": 10, "--max-batch": 30, "--n-records": 200},
        dn.TruncatedPoisson(2.0, 0.1, 10, 30, 200),
    ),
    "without-replacement": (
        {"--batch-size": 20, "--n-records": 200, "--steps": 10},
        dn.WithoutReplacement(2.0, 20, 200, 10),
    ),
    "shuffled": ({"--batches": 10.0, "--epochs": 3.0}, dn.ShuffledBatches(2.0, 10, 3)),
    "allocation": (
        {"--batches": 10, "--epochs": 3, "--batches-per-record": 2},
        dn.RandomAllocation(2.0, 10, 3, 2),
    ),
}


def refused(capsys, *words):
    assert run(list(words)) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", SCHEMES)
def test_options_become_the_mechanism_that_they_name(name):
    options, mechanism = RUNS[name]
    assert described({"--sampler": name, "--noise-multiplier": 2.0, **options}) == mechanism


@pytest.mark.parametrize("name", SCHEMES)
def test_what_is_missing_is_named(capsys, name):
    options, _ = RUNS[name]
    first = next(iter(SCHEMES[name].options))
    words = [str(word) for pair in options.items() if pair[0] != first for word in pair]
    assert f"missing: {first}" in refused(capsys, "assess", "--sampler", name, "--noise-multiplier", "2", *words)


def test_an_option_of_another_sampler_is_refused(capsys):
    told = refused(capsys, "assess", *ALLOCATION, "--sample-rate", "0.1")
    assert "--sample-rate does not go with --sampler allocation" in told
    assert "poisson, truncated" in told
    assert "--batches does not go with --sampler poisson" in refused(capsys, "assess", "--batches", "3")


def test_commands_answer_for_allocation(capsys):
    expected = dn.tradeoff(dn.RandomAllocation(1.0, 20, 2))
    assert run(["bound", "--explain", *ALLOCATION, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["high"] == pytest.approx(expected.advantage(), rel=1e-9)
    assert run(["assess", *ALLOCATION, "--json"]) == 0
    assert "RandomAllocation" in json.loads(capsys.readouterr().out)["title"]


def test_audits_judge_a_promise_of_shuffled_batches(capsys, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("score,member\n" + "2.0,1\n0.5,0\n" * 3)
    shuffled = ["--sampler", "shuffled", "--noise-multiplier", "1", "--batches", "5"]
    assert run(["sequential", str(scores), *shuffled]) == 0
    assert "ShuffledBatches(noise_multiplier=1.0, batches=5, epochs=1)" in capsys.readouterr().out
    assert run(["audit", str(scores), *shuffled, "--json"]) == 0
    assert "--epochs does not go with" in refused(capsys, "audit", str(scores), "--epochs", "2", *shuffled[2:4])


def test_runs_of_several_samplers_stand_side_by_side(capsys):
    # runs that meet the usual policy: no other noise is searched
    assert run(["compare", "4.0,0.2,5", "shuffled,4.0,5", "allocation,4.0,5", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]["numbers"]
    runs = (dn.SubsampledGaussian(4.0, 0.2, 5), dn.ShuffledBatches(4.0, 5), dn.RandomAllocation(4.0, 5))
    assert [number["value"] for number in row] == pytest.approx([dn.tradeoff(one).advantage() for one in runs])
    assert "shuffled,noise-multiplier,batches,epochs" in refused(capsys, "compare", "1.0,0.2", "shuffled,1.0,5")


def test_noise_steps_and_records_are_looked_for(capsys):
    shuffled = ["--sampler", "shuffled", "--batches", "20", "--advantage", "0.1", "--json"]
    assert run(["calibrate", *shuffled]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["adjacency"] == "zero-out"
    assert dn.tradeoff(dn.ShuffledBatches(found["noise_multiplier"], 20)).advantage() <= 0.1
    full = ["--noise-multiplier", "40", "--sample-rate", "1", "--advantage", "0.3", "--json"]
    assert run(["calibrate", "--find", "records-per-person", "--steps", "20", *full]) == 0
    most = json.loads(capsys.readouterr().out)["records_per_person"]
    at = [dn.tradeoff(dn.SubsampledGaussian(40.0, 1.0, 20, k)).advantage() for k in (most, most + 1)]
    assert at[0] <= 0.3 < at[1]
    assert run(["calibrate", "--find", "steps", *full]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert dn.tradeoff(dn.SubsampledGaussian(40.0, 1.0, steps)).advantage() <= 0.3
    shuffled = ["--sampler", "shuffled", "--noise-multiplier", "9", "--batches", "5", "--advantage", "0.3", "--json"]
    assert run(["calibrate", "--find", "epochs", *shuffled]) == 0
    epochs = json.loads(capsys.readouterr().out)["epochs"]
    at = [dn.tradeoff(dn.ShuffledBatches(9.0, 5, k)).advantage() for k in (epochs, epochs + 1)]
    assert at[0] <= 0.3 < at[1]
    told = refused(capsys, "calibrate", "--find", "steps", "--steps", "3", *full[:-1])
    assert "--steps is what --find looks for" in told
