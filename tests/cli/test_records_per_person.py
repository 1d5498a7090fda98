"""``--records-per-person``: every command that takes a DP-SGD run answers for persons, or says why it does not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.workflows.settings import settings

RUN = ["--noise-multiplier", "40", "--sample-rate", "1", "--steps", "20"]  # full batches: curves are fast
SAMPLED = ["--noise-multiplier", "2", "--sample-rate", "0.5", "--steps", "1"]
PERSON = ["--records-per-person", "3"]
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
    for words in (RUN, ["--history", history]):
        report = answered(capsys, "assess", *words, *PERSON)
        assert advantage(report) == pytest.approx(expected, rel=1e-9)
        assert "persons of" in report["title"]
        assert "A record stands for a person" in json.dumps(report["assumptions"])
    alone = answered(capsys, "assess", *RUN)
    assert "A record stands for a person" not in json.dumps(alone["assumptions"])


def test_a_sampled_run_reaches_the_library_as_it_was_typed():
    from deniable.cli._run import run_options
    from deniable.cli._sampler import described

    assert described(run_options(2.0, 0.5, 1.0, 3.0)) == THREE_SAMPLED
    assert described(run_options(2.0, 0.5, 1.0, None)) == dn.SubsampledGaussian(2.0, 0.5, 1)


def test_a_recorded_run_that_is_not_poisson_sampled_is_grouped():
    from deniable.cli._run import of_persons

    shuffled = dn.ShuffledBatches(2.0, 20)
    assert of_persons(shuffled, None) == of_persons(shuffled, 1) == shuffled
    assert of_persons(shuffled, 2) == dn.Grouped(shuffled, 2)


@pytest.mark.parametrize(
    ("words", "mechanism"),
    [
        (["--sampler", "shuffled", "--noise-multiplier", "9", "--batches", "5"], dn.ShuffledBatches(9.0, 5)),
        (["--mechanism", "gaussian,0.1"], dn.GaussianDP(0.1)),
        (["--trials", "2", "--mechanism", "zero-concentrated,0.001"], dn.tuned(dn.ZeroConcentratedDP(0.001), trials=2)),
    ],
)
def test_any_other_run_is_grouped(words, mechanism, capsys):
    found = answered(capsys, "assess", *words, *PERSON)
    assert found["title"].endswith(", persons of 3 records")
    curve = dn.tradeoff(dn.Grouped(mechanism, 3))
    assert found["sections"][0]["numbers"][0]["value"] == pytest.approx(curve.advantage(), rel=1e-9)
    assert "group of 3 records" in found["assumptions"]["adjacency"] or "3 times" in found["assumptions"]["adjacency"]


def test_the_most_records_of_a_person_are_found_under_any_sampler(capsys):
    words = ["--sampler", "allocation", "--noise-multiplier", "3", "--batches", "4", "--advantage", "0.2"]
    most = answered(capsys, "calibrate", "--find", "records-per-person", *words)["records_per_person"]
    at = [dn.tradeoff(dn.Grouped(dn.RandomAllocation(3.0, 4), k)).advantage() for k in (most, most + 1)]
    assert at[0] <= 0.2 < at[1]


def test_calibrate_and_plan_find_the_noise_of_persons(capsys):
    found = answered(capsys, "calibrate", "--sample-rate", "1", "--steps", "20", "--advantage", "0.1", *PERSON)
    noise = found["noise_multiplier"]
    assert 0.0999 < dn.tradeoff(dn.SubsampledGaussian(noise, 1.0, 20, 3)).advantage() <= 0.1
    words = ["--pool-size", "1000", "--precision", "0.3", "--fpr", "0.01", "--batch-size", "100", "--rate", "0.1"]
    (one,) = answered(capsys, "plan", *words)["points"]
    (three,) = answered(capsys, "plan", *words, *PERSON)["points"]
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
    loud = ["--noise-multiplier", "1", "--sample-rate", "1", "--steps", "1"]
    for command in ("audit", "sequential"):
        assert run([command, str(path), *loud]) == 1  # a record alone: N(1, 1)
        assert run([command, str(path), *loud, *PERSON]) == 0  # a person of three: N(3, 1)
        assert run([command, str(path), "--mu", "1"]) == 1
        assert run([command, str(path), "--mu", "1", *PERSON]) == 0
        capsys.readouterr()
        assert "give one promise" in refused(capsys, command, str(path), "--epsilon", "1", *loud, *PERSON)


def test_compare_puts_persons_side_by_side(capsys, tmp_path):
    capsys.readouterr()
    found = answered(capsys, "compare", "40,1,20", "80,1,20", *PERSON)
    assert all("persons of 3 records" in title for title in found["titles"])
    saved = tmp_path / "saved.json"
    saved.write_text(dn.assess(OF_THREE).to_json())
    assert "goes with runs given as numbers" in refused(capsys, "compare", "40,1,20", str(saved), *PERSON)


def test_a_proof_serves_full_batches_and_refuses_the_rest(capsys):
    pytest.importorskip("flint", reason="python-flint is in the extra 'proof'")
    told = refused(capsys, "bound", "--proof", *SAMPLED, *PERSON)
    assert "records_per_person must be 1 where sample_rate is below 1, got 3" in told
    full = ["--noise-multiplier", "6", "--sample-rate", "1", "--steps", "4"]
    found = answered(capsys, "bound", "--proof", *full, *PERSON)
    assert found["agrees"]
    assert found["proof"]["advantage"]["upper"] == pytest.approx(dn.tradeoff(dn.GaussianDP(1.0)).advantage(), rel=1e-9)
    assert "need --explain or --proof" in refused(capsys, "bound", "--epsilon", "1", *PERSON)


@pytest.mark.parametrize("records", ["0", "-1", "1.5", "nan", "inf", "one", "1e9"])
def test_no_number_of_records_is_one_line(records, capsys, history):
    for words in (
        ["assess", *RUN],
        ["assess", "--history", history],
        ["calibrate", "--sample-rate", ".1", "--steps", "10", "--advantage", ".1"],
        ["plan", "--pool-size", "100", "--precision", ".3", "--fpr", ".1", "--batch-size", "10"],
        ["compare", "1,0.1,10", "2,0.1,10"],
    ):
        told = refused(capsys, *words, "--records-per-person", records)
        assert "records" in told


@pytest.mark.parametrize(
    "refuses",
    [
        lambda run: dn.individual_tradeoffs(np.ones((2, 1)), 1.0, run),
        lambda run: dn.audit.attack_transcript(run, n=10, rng=0),
    ],
    ids=["individual", "transcript"],
)
def test_what_knows_one_record_only_says_so(refuses):
    refuses(dn.SubsampledGaussian(2.0, 0.5, 1))
    with pytest.raises(dn.InputError, match=r"(one|single) record.*records_per_person=3"):
        refuses(THREE_SAMPLED)


@pytest.mark.parametrize("run_of", [OF_THREE, OF_THREE + dn.SubsampledGaussian(30.0, 1.0, 5, 2), THREE_SAMPLED])
def test_what_would_change_a_decision_keeps_the_persons(run_of, monkeypatch):
    seen = []

    def watched(mechanism):
        seen.append(mechanism)
        return dn.tradeoff(mechanism)

    monkeypatch.setattr("deniable.workflows.settings.tradeoff", watched)
    said = settings(run_of, [{"advantage": 0.1}])
    assert said
    assert said[0].startswith("Noise")
    parts = [part for m in seen for part in getattr(m, "mechanisms", (m,))]
    persons = [part.records_per_person for part in getattr(run_of, "mechanisms", (run_of,))]
    tried = {part.records_per_person for part in parts}  # fewer are a remedy of their own
    assert set(persons) <= tried
    assert max(tried) == max(persons)


def test_explain_prints_what_the_curve_explains(capsys):
    full = ["--noise-multiplier", "6", "--sample-rate", "1", "--steps", "4"]
    curve = dn.tradeoff(dn.GaussianDP(1.0))
    found = answered(capsys, "bound", "--explain", *full, *PERSON, "--fpr", "0.01", "--delta", "1e-6")
    assert [answer["engine"] for answer in found] == ["closed form"] * 3
    assert [answer["high"] for answer in found[:2]] == [curve.advantage(), curve.tpr(0.01)]
    assert found[2]["high"] == pytest.approx(1e-6, rel=1e-9)
    assert "--explain and --proof" in refused(capsys, "bound", "--explain", "--proof", "--epsilon", "1")
    assert "needs either --epsilon" in refused(capsys, "bound", "--explain")
    assert "even priors" in refused(capsys, "bound", "--explain", "--epsilon", "1", "--prior", "0.1")
    assert run(["bound", "--explain", "--epsilon", "1", "--delta", "1e-5"]) == 0
    assert capsys.readouterr().out.count("answered by: closed form") == 3
