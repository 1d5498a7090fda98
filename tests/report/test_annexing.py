"""Annexes: every document has fields, what is filled comes from the numbers, and nothing private is published."""

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.report import NOT_COVERED
from deniable.report.annexing import FILLERS, KINDS, PUBLISHED, TO_FILL, document


@pytest.fixture(scope="module")
def report(whole):
    return whole


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_filled_from_numbers_or_left_to_a_person(report, kind):
    layout = document(kind)
    assert all(field.get("fill", "title") in FILLERS for field in layout["field"])
    assert {"title", "document", "url", "checked"} <= set(layout)
    text = report.annex(kind, owner=True).replace("\u00a0", " ")
    assert TO_FILL in text
    assert "46.22 %" in text  # the proven advantage
    for field in layout["field"]:
        assert field["name"] in text


@pytest.mark.parametrize("kind", ["model-card", "dp-registry"])
def test_what_is_published_holds_nothing_that_was_computed_without_noise(report, kind):
    text = report.annex(kind)
    assert document(kind)["public"]
    for key, number in report.numbers.items():
        if not key.startswith(("bound", "risk")) and len(number.shown) > 5 and number.kind != "exact":
            assert number.shown not in text, key
    assert set(PUBLISHED) <= set(FILLERS)


def test_the_card_has_a_metadata_block(report):
    assert report.annex("model-card").startswith("---\ntags:\n- membership-privacy\n- differential-privacy\n---\n")


def test_what_no_noise_protects_enters_a_document_only_if_asked(report):
    with pytest.raises(dn.InputError, match="from its public page"):
        report.annex("dpia")


def test_an_attack_alone_proves_nothing_in_an_annex():
    rng = np.random.default_rng(0)
    text = dn.assess(dn.audit_scores(rng.normal(1, 1, 300), rng.normal(0, 1, 300))).annex("dpia", owner=True)
    assert "Nothing is proven" in text
    assert "differential-privacy" not in text


def test_the_command(tmp_path, capsys):
    path, meta = tmp_path / "a.json", tmp_path / "meta.toml"
    dn.assess(dn.GaussianDP(0.2)).to_json(path)
    meta.write_text('signed_by = "the board"\n')
    assert run(["annex", str(path), "--kind", "ico", "--meta", str(meta), "--out", str(tmp_path / "a.md")]) == 0
    assert "the board" in (tmp_path / "a.md").read_text()
    assert run(["annex", str(path), "--kind", "dp-registry"]) == 0
    assert "\ndeployment:\n" in capsys.readouterr().out
    assert run(["annex", str(path), "--kind", "dpai"]) == 2
    assert run(["annex", "nowhere.json", "--kind", "dpia"]) == 2
    with pytest.raises(dn.InputError, match="kind must be one of"):
        dn.assess(dn.PureDP(1.0)).annex("gdpr")


def test_what_is_not_part_of_a_report_is_not_said_never_to_have_been_done():
    made = dn.assess(dn.PureDP(1.0))
    for text in (made.annex("dpia"), made.to_html(), made.to_json(), str(made)):
        assert "attack was run" not in text
    assert "No attack is part of this report." in made.annex("dpia")
    asked = made.decide(dn.Policy([dn.Limit(advantage=1.0)], require=("attack",)))
    assert "none is part of this report" in asked.decision.reason


ONLY_A_PERSON = {  # what no number says, of each document: these stay blank
    "dpia": ("Purposes", "Advice of the data protection officer", "Views of the persons"),
    "edpb": ("0.1", "0.2", "0.4", "1.1.b", "Legal basis", "Severity", "Advice", "Approved"),
    "cnil": ("Purposes", "Legal basis", "Validation: signature"),
    "ico": ("Context and purposes", "Consultation", "Sign off"),
    "nist-800-226": ("Bias",),
    "sacro": ("Researcher", "Decision of the output checker"),
    "model-card": ("Developed by", "Intended use"),
}
BLANKS_BEFORE = {"dpia": 6, "cnil": 9, "ico": 7, "nist-800-226": 4, "sacro": 4, "model-card": 5}


@pytest.fixture(scope="module")
def trained():
    from deniable.workflows.train import train_table

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(size=600), "y": rng.choice(["u", "v"], 600)})
    return train_table(table, target="y", advantage=0.1, meta={"date": "2026-11-28"})


@pytest.mark.parametrize("kind", ONLY_A_PERSON)
def test_only_what_a_person_knows_is_left_blank(trained, kind):
    made = (trained.public if document(kind).get("public") else trained.assessment).annex(kind, owner=True)
    blank = [part.splitlines()[0] for part in made.split("### ")[1:] if f"**{TO_FILL}**" in part]
    assert len(blank) == len(ONLY_A_PERSON[kind])
    assert all(found.startswith(name) for found, name in zip(blank, ONLY_A_PERSON[kind], strict=True))
    assert len(blank) <= BLANKS_BEFORE.get(kind, 16) / 2


def test_six_kinds_of_attack_are_covered_or_out_of_scope(trained):
    text = trained.public.annex("edpb")
    for kind in ("Membership", "Attribute", "Reconstruction", "inversion", "Regurgitation", "Exfiltration"):
        assert kind in text
    assert "covered by the proven bound" in text
    rng = np.random.default_rng(0)
    alone = dn.assess(dn.audit_scores(rng.normal(1, 1, 300), rng.normal(0, 1, 300))).annex("edpb", owner=True)
    assert "covered by the proven bound" not in alone
    assert "covered, as a secret" in text
    assert "covered, as a secret" not in alone


def test_an_entry_of_a_ledger_is_where_other_releases_stand(tmp_path):
    alone = dn.assess(dn.GaussianDP(0.1))
    assert "None is counted here" in alone.annex("nist-800-226")
    ledger = dn.Ledger(tmp_path / "people.ledger")
    fitted = dn.PrivateClassifier(ledger=ledger).fit(np.arange(300.0)[:, None], np.arange(300) > 150)
    assert f"Entry 1 of a ledger, head of its chain {ledger.head}" in dn.assess(fitted).annex("nist-800-226")


def test_what_is_tested_of_fits_stands_on_pages_of_fits_alone():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(200, 1)), rng.integers(0, 2, 200)
    model = dn.assess(dn.PrivateClassifier(advantage=0.2, ranges={0: (0, 1)}, classes=[0, 1]).fit(X, y))
    table = dn.assess(
        dn.release_statistics(pd.DataFrame({"a": X[:, 0]}), "mean(a)", advantage=0.2, ranges={"a": (0, 1)})
    )
    half = dn.assess(dn.release(lambda rows: rows.mean(axis=0), X, advantage=0.9, rng=0))
    for made in (dn.assess(dn.SubsampledGaussian(2.0, 0.01, 100)), table, half):
        assert "retrainings" not in made.annex("edpb")
    assert "retrainings" in model.annex("edpb")
    assert "rounded Gaussians" not in half.annex("edpb")
    assert "rounded Gaussians" in table.annex("edpb")
    assert "real-valued noise" in dn.assess(dn.GaussianDP(0.1)).annex("edpb")


def test_what_is_not_covered_is_picked_by_name():
    rng = np.random.default_rng(0)
    model = dn.PrivateClassifier(advantage=0.2, ranges={0: (0, 1)}, classes=[0, 1])
    made = dn.assess(model.fit(rng.uniform(size=(200, 1)), rng.integers(0, 2, 200)))
    assert NOT_COVERED.running in made.not_covered  # the noise of a fit is exact, its time is not covered
    assert NOT_COVERED.mistakes not in made.not_covered
    assert NOT_COVERED.choices in made.not_covered
