"""``person,3: …``: every command that takes a DP-SGD run answers for persons, or says why it does not."""

import json

import numpy as np
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.workflows.settings import settings

RUN, SAMPLED = "dpsgd,40,1,20", "dpsgd,2,0.5,1"  # full batches: curves are fast
PERSON = "person,3: "
OF_THREE = dn.SubsampledGaussian(40.0, 1.0, 20, records_per_person=3)
THREE_SAMPLED = dn.SubsampledGaussian(2.0, 0.5, 1, records_per_person=3)


def answered(capsys, *words):
    assert run([*words, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys, *words):
    assert run(list(words)) == 2
    told = capsys.readouterr()
    assert not told.out.strip()
    assert "Traceback" not in told.err
    return " ".join(told.err.split())


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "history.json"
    path.write_text(json.dumps([[40.0, 1.0, 12], [40.0, 1.0, 8]]))
    return str(path)


def advantage(report):
    found = [n for s in report["sections"] for n in s["numbers"] if n["label"].startswith("Advantage, prior")]
    return found[0]["value"]


def test_assess_is_about_the_person(capsys, history):
    expected = dn.tradeoff(OF_THREE).advantage()
    assert expected > 1.5 * dn.tradeoff(dn.SubsampledGaussian(40.0, 1.0, 20)).advantage()  # the control
    for words in (RUN, history):
        report = answered(capsys, "assess", PERSON + words)
        assert advantage(report) == pytest.approx(expected, rel=1e-9)
        assert "persons of" in report["title"]
        assert "A record stands for a person" in json.dumps(report["assumptions"])
    alone = answered(capsys, "assess", RUN)
    assert "A record stands for a person" not in json.dumps(alone["assumptions"])


def test_calibrate_and_plan_find_the_noise_of_persons(capsys):
    found = answered(capsys, "calibrate", PERSON + "dpsgd,?,1,20", "--advantage", "0.1")
    noise = found["noise_multiplier"]
    assert 0.0999 < dn.tradeoff(dn.SubsampledGaussian(noise, 1.0, 20, 3)).advantage() <= 0.1
    words = ["--records", "1000", "--precision", "0.3", "--fpr", "0.01", "--rate", "0.1"]
    (one,) = answered(capsys, "plan", "dpsgd,?,0.1,10", *words)["points"]
    (three,) = answered(capsys, "plan", PERSON + "dpsgd,?,0.1,10", *words)["points"]
    assert three["noise_multiplier"] > one["noise_multiplier"]
    kept = dn.SubsampledGaussian(three["noise_multiplier"], three["sample_rate"], int(three["steps"]), 3)
    assert dn.tradeoff(kept).precision(0.01, 0.1) == pytest.approx(three["precision"], rel=1e-9)
    assert three["precision"] <= 0.3 + 1e-9


def test_an_audit_compares_with_the_promise_to_persons(capsys, tmp_path):
    members, others = np.random.default_rng(0).normal(1.5, 1, 4000), np.random.default_rng(1).normal(0, 1, 4000)
    path = tmp_path / "scores.csv"
    rows = [
        f"{v:.6f},{inside}"
        for pair in zip(members, others, strict=True)
        for v, inside in zip(pair, (1, 0), strict=True)
    ]
    path.write_text("score,member\n" + "\n".join(rows) + "\n")
    for more in ([], ["--stream"]):
        for promise in ("dpsgd,1,1,1", "gaussian,1"):
            assert run(["audit", str(path), promise, *more]) == 1  # a record alone: N(1, 1)
            assert run(["audit", str(path), PERSON + promise, *more]) == 0  # a person of three: N(3, 1)


def test_a_proof_serves_full_batches_and_refuses_the_rest(capsys):
    pytest.importorskip("flint", reason="python-flint is in the extra 'proof'")
    told = refused(capsys, "bound", PERSON + SAMPLED, "--proof")
    assert "records_per_person must be 1 where sample_rate is below 1, got 3" in told
    found = answered(capsys, "bound", PERSON + "dpsgd,6,1,4", "--proof")
    assert found["agrees"]
    assert found["proof"]["advantage"]["upper"] == pytest.approx(dn.tradeoff(dn.GaussianDP(1.0)).advantage(), rel=1e-9)


@pytest.mark.parametrize("run_of", [OF_THREE, OF_THREE + dn.SubsampledGaussian(30.0, 1.0, 5, 2), THREE_SAMPLED])
def test_what_would_change_a_decision_keeps_the_persons(run_of, monkeypatch):
    seen = []

    def watched(mechanism):
        seen.append(mechanism)
        return dn.tradeoff(mechanism)

    monkeypatch.setattr("deniable.workflows.settings.tradeoff", watched)
    said = settings(run_of, [dn.Limit(advantage=0.1)])
    assert said
    assert said[0].startswith("Noise")
    parts = [part for m in seen for part in getattr(m, "mechanisms", (m,))]
    persons = [part.records_per_person for part in getattr(run_of, "mechanisms", (run_of,))]
    tried = {part.records_per_person for part in parts}  # fewer are a remedy of their own
    assert set(persons) <= tried
    assert max(tried) == max(persons)
