"""A saved report is checked: whatever number, curve, rule or sentence of it is changed, that is found."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.mechanisms import ZeroConcentratedDP
from deniable.report import Curve, Number, Section, Series
from deniable.workflows import verify

RUNS = [
    dn.SubsampledGaussian(1.0, 0.01, 500, 2) + dn.Laplace(3.0),
    dn.GaussianDP(0.2),
    ZeroConcentratedDP(0.01),
    dn.PureDP(float("inf")),
]


@pytest.mark.parametrize("mechanism", RUNS, ids=lambda m: type(m).__name__)
def test_an_untouched_report_follows(mechanism, tmp_path):
    report = dn.assess(mechanism, prior=0.2, fpr=[0.05, 0.003], delta=1e-7)
    assert verify(report).follows
    report.to_json(tmp_path / "report.json")
    found = verify(dn.Assessment.from_json(tmp_path / "report.json"))
    assert found.follows
    assert set(report.numbers) <= set(found.followed)


def changed(report, key, **new):
    sections = tuple(
        replace(section, numbers=tuple(replace(n, **new) if n.key == key else n for n in section.numbers))
        for section in report.sections
    )
    return replace(report, sections=sections)


REPORT = dn.assess(dn.GaussianDP(0.2), prior=0.2)


@pytest.mark.parametrize("key", REPORT.numbers)
def test_each_tampered_number_is_found(key):
    number = REPORT.numbers[key]
    for value, way in (
        (0.999 * number.value - 1e-9, "small"),
        (1.001 * number.value + 1e-9, "large"),
        (float("nan"), ""),
    ):
        faults = verify(changed(REPORT, key, value=value)).faults
        assert any(fault.startswith(f"{key}: ") and way in fault for fault in faults), (key, value)
    others = {"kind": "estimate", "label": "Another", "meaning": "None.", "baseline": 0.123, "at": {"fpr": 0.5}}
    for name, value in others.items():
        assert not verify(changed(REPORT, key, **{name: value})).follows, name
    left = tuple(replace(s, numbers=tuple(n for n in s.numbers if n.key != key)) for s in REPORT.sections)
    kept_rate = key.partition("@")[0] in ("bound.tpr", "risk.reconstruction", "bound.epsilon", "bound.precision")
    assert kept_rate or not verify(replace(REPORT, sections=left)).follows


def test_curves_decisions_headlines_and_scope_are_checked():
    first, *others = REPORT.sections
    bent = replace(first.curves[0], tpr=[0.99 * value for value in first.curves[0].tpr])
    rules = (replace(REPORT.decision.rules[0], found=0.01), *REPORT.decision.rules[1:])
    for tampered in (
        replace(REPORT, sections=(replace(first, curves=(bent, *first.curves[1:])), *others)),
        replace(REPORT, sections=(replace(first, holds_for="one case"), *others)),
        replace(REPORT, sections=(replace(first, confidence=0.5), *others)),
        replace(REPORT, sections=tuple(others)),
        replace(REPORT, headline=REPORT.headline.replace("accuracy above 5", "accuracy above 4")),
        replace(REPORT, headline="Nobody can be found."),
        *(
            replace(REPORT, sections=(replace(first, **{name: words}), *others))
            for name, words in (("title", "Safe"), ("summary", "Nobody is found."), ("notes", ("Nobody is found.",)))
        ),
        replace(REPORT, decision=replace(REPORT.decision, outcome="does not meet")),
        replace(REPORT, decision=replace(REPORT.decision, rules=rules)),
        replace(REPORT, reproduction={**REPORT.reproduction, "source": "GaussianDP(mu=0.1)"}),
    ):
        assert tampered != REPORT
        assert not verify(tampered).follows


@pytest.mark.parametrize("source", ["", "a release", "__import__('os').getcwd()", "GaussianDP(-1)", "Number(key='a')"])
def test_a_report_without_a_known_mechanism_does_not_follow(source):
    found = verify(replace(REPORT, reproduction={"source": source}))
    assert not found.follows
    assert found.followed == ()
    assert set(found.left) == set(REPORT.numbers)


def test_measured_numbers_are_left_and_a_fit_and_a_table_follow():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(400, 2)), rng.integers(0, 2, 400)
    model = dn.PrivateClassifier(advantage=0.2, ranges={0: (0, 1), 1: (0, 1)}, classes=[0, 1]).fit(X, y)
    found = verify(dn.assess(model, X, y))
    assert found.follows
    drawn = {"account (pictures, tables)", "shapes (pictures, tables)", "use (pictures, tables)"}
    words = ("title", "for whom it holds", "what the headline", "notes", "warnings", "not covered", "what would")
    assert all(key.startswith(("use.", *words)) or key in drawn for key in found.left)
    assert "shapes (pictures, tables)" in found.left
    assert {"account.mu", "risk.replacing"} <= set(found.followed)
    assert not verify(changed(dn.assess(model), "account.mu", value=0.1)).follows
    table = dn.assess(
        dn.release_statistics(pd.DataFrame({"a": X[:, 0]}), "mean(a)", advantage=0.2, ranges={"a": (0, 1)})
    )
    assert "release.advantage" in verify(table).followed
    assert not verify(changed(table, "release.advantage", value=0.1)).follows


def test_the_command_tells_a_changed_file(tmp_path, capsys):
    path = tmp_path / "report.json"
    REPORT.to_json(path)
    assert run(["verify", str(path)]) == 0
    content = json.loads(path.read_text())
    content["sections"][0]["numbers"][0]["value"] = 0.01
    path.write_text(json.dumps(content))
    assert run(["verify", str(path)]) == 1
    assert "✗ bound.advantage: 0.01 is too small" in capsys.readouterr().out
    path.write_text("{}")
    assert run(["verify", str(path)]) == 2


def test_whatever_is_drawn_or_called_proven_has_to_follow_wherever_it_stands():
    rng = np.random.default_rng(0)
    scores = dn.audit_scores(rng.normal(0, 1, 300), rng.normal(0, 1, 300))
    forged = Curve("forged", "provable upper bound", "provable upper bound", [0.01, 1.0], [0.01, 1.0])
    vowed = replace(forged, kind="parameter")
    claim = Number("other.advantage", "Advantage", 0.001, "None.")
    picture = Series("forged", "Advantage", "ε", "advantage", [0.0, 1.0], {"advantage": [0.0, 0.1]})
    measured = REPORT + dn.assess(scores)
    for tampered, named in (
        (replace(REPORT, sections=(*REPORT.sections, Section("new", "New", "", curves=(forged,)))), "forged (curve)"),
        (replace(REPORT, sections=(*REPORT.sections, Section("new", "New", "", numbers=(claim,)))), "other.advantage"),
        (replace(REPORT, sections=(replace(REPORT.sections[0], series=(picture,)), *REPORT.sections[1:])), "pictures"),
        (replace(REPORT, sections=(*REPORT.sections, Section("new", "New", "", curves=(vowed,)))), "forged (curve)"),
    ):
        found = verify(tampered)
        assert not found.follows, named
        assert any(named in fault for fault in found.faults), (named, found.faults)
    found = verify(measured)  # an attack's curve is no promise: it is named as not checked, and no fault
    assert found.follows
    assert {"attack (curve)", "attack.advantage"} <= set(found.left)
    promised = REPORT + dn.assess(scores, bound=dn.GaussianDP(0.2))  # it is drawn and follows
    assert "promise (curve)" in verify(promised).followed
    assert "attack.advantage" in verify(promised).left


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("sections", 0, "numbers", 2, "at"), {"fpr": "often"}),
        (("sections", 0, "numbers", 0, "value"), "0.1"),
        (("sections", 0, "numbers", 0, "value"), True),
        (("sections", 0, "numbers"), {}),
        (("sections", 0, "numbers", 0), {"key": "bound.advantage", "kind": "provable upper bound"}),
        (("sections", 0, "curves", 0, "tpr"), [[]]),
        (("sections", 0, "holds_for"), 3),
        (("sections", 0, "kind"), "new"),
        (("decision", "rules", 0, "outcome"), "fine"),
        (("decision", "policy", "limits"), "x"),
        (("decision", "policy", "limits", 0), {"advantage": "x"}),
        (("assumptions",), None),
        (("status",), []),
        (("meta",), {"date": 3}),
        (("reproduction",), []),
    ],
)
def test_a_value_of_another_type_is_one_clear_line(where, value, tmp_path, capsys):
    content = json.loads(REPORT.to_json())
    inner = content
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    path = tmp_path / "report.json"
    path.write_text(json.dumps(content))
    for words in (["verify", str(path)], ["annex", str(path), "--kind", "dpia"], ["compare", str(path), "gaussian,1"]):
        assert run(words) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert f"{path.name}' is no assessment: " in line


def test_words_that_the_mechanism_decides_are_checked_and_others_are_named():
    for tampered in (
        replace(REPORT, warnings=()),
        replace(REPORT, not_covered=REPORT.not_covered[1:]),
        replace(REPORT, status="consistent"),
        replace(REPORT, assumptions=replace(REPORT.assumptions, adjacency="replace one record")),
        replace(REPORT, assumptions=replace(REPORT.assumptions, batches="shuffled")),
    ):
        assert not verify(tampered).follows
    person = replace(
        REPORT, title="Safe", assumptions=replace(REPORT.assumptions, adjacency="add or remove one person")
    )
    left = verify(person).left
    assert "title" in left
    assert any(line.startswith("for whom it holds (add or remove one person") for line in left)


def test_a_ledger_states_its_mechanism_and_an_audit_says_why_it_has_none(tmp_path):
    for limit in (None, dn.Limit(advantage=0.3)):
        ledger = dn.Ledger(tmp_path / f"{limit is None}.ledger", unit="record", limit=limit)
        ledger.add(dn.GaussianDP(0.2))
        assert verify(dn.assess(ledger)).follows
    (why,) = verify(dn.assess(dn.audit_scores(np.arange(30.0), np.arange(30.0)))).faults
    assert "only who has these" in why


def test_a_report_that_does_not_follow_fills_no_document(tmp_path, capsys):
    saved = json.loads(dn.assess(dn.GaussianDP(0.2)).to_json())
    report, out = tmp_path / "report.json", tmp_path / "annex.md"
    order = ["annex", str(report), "--kind", "dpia", "--out", str(out)]

    def code(**changed):
        report.write_text(json.dumps({**saved, **changed}))
        return run(order)

    assert code() == 0
    out.unlink()
    sections = json.loads(
        json.dumps(saved["sections"]).replace(str(saved["sections"][0]["numbers"][0]["value"]), "0.01")
    )
    assert code(sections=sections) == 2
    assert "must follow from the mechanism that it states" in capsys.readouterr().err
    assert run(["compare", str(report), "gaussian,0.2"]) == 2
    assert not out.exists()
    old = {**saved["reproduction"], "deniable": "0.0.1"}
    assert code(headline="Said in other words.", reproduction=old) == 0  # by another version
    assert code(headline="Said in other words.") == code(sections=sections, reproduction=old) == 2
