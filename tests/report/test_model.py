"""The assessment as data: safe rounding, schema, merging."""

import json
from dataclasses import replace
from fractions import Fraction
from importlib import resources

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable._shown import shown
from deniable.report import Number

SCHEMA = json.loads(resources.files("deniable.report").joinpath("schema.json").read_text())


def read_back(text: str) -> Fraction:
    number = text.replace("\u00a0", "").replace(",", "")
    return Fraction(number.rstrip("%")) / (100 if number.endswith("%") else 1)


@given(st.floats(1e-12, 1.0), st.sampled_from(["rate", "number"]))
def test_shown_numbers_are_rounded_to_their_own_side(value, unit):
    assert read_back(shown(value, unit, "upper")) >= Fraction(repr(value))
    assert read_back(shown(value, unit, "lower")) <= Fraction(repr(value))
    for side in ("upper", "lower", "nearest"):
        assert float(read_back(shown(value, unit, side))) == pytest.approx(value, rel=1e-3)


def test_a_bound_is_never_shown_above_100_percent():
    assert shown(1.0, "rate", "upper") == "100\u00a0%"
    assert shown(np.nextafter(1.0, 0), "rate", "upper") == "100\u00a0%"
    assert shown(0.0, "rate", "upper") == "0\u00a0%"
    assert shown(0.9, "rate", "upper") == shown(0.9, "rate", "lower") == "90\u00a0%"
    assert shown(np.nextafter(0.9, 1), "rate", "upper") == "90.01\u00a0%"
    assert shown(float("inf"), "number", "upper") == "unbounded"


def test_what_cannot_be_said_is_not_shown_as_a_number():
    assert Number("k", "label", None, "meaning").shown == "not resolvable"
    assert Number("k", "label", 0.2, "meaning", low=0.1004, high=0.30009).shown == "10.04\u00a0% to 30.01\u00a0%"


ASSESSMENTS = st.one_of(
    st.builds(dn.PureDP, st.floats(0, 800)),
    st.builds(dn.ApproximateDP, st.floats(0, 50), st.floats(0, 1)),
    st.builds(dn.GaussianDP, st.floats(0, 50)),
).flatmap(lambda m: st.builds(dn.assess, st.just(m), prior=st.floats(1e-6, 1 - 1e-6), delta=st.floats(1e-12, 0.5)))


@settings(max_examples=20)
@given(ASSESSMENTS)
def test_json_is_valid_for_every_mechanism(assessment):
    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    jsonschema.validate(json.loads(assessment.to_json(), parse_constant=refuse), SCHEMA)
    assert assessment.to_text()


def test_assessments_add_up_and_keep_every_number():
    rng = np.random.default_rng(0)
    one, two = (dn.assess(dn.audit_scores(rng.normal(m, 1, 300), rng.normal(0, 1, 300))) for m in (1.0, 2.0))
    both = one + two
    assert both.numbers["attack.advantage"] == one.numbers["attack.advantage"]
    assert both.numbers["attack2.advantage"].low == two.numbers["attack.advantage"].low
    assert len({curve.key for curve in both.curves}) == len(both.curves)
    jsonschema.validate(json.loads(both.to_json()), SCHEMA)


def test_an_attack_that_exceeds_the_proof_on_its_page_is_a_violation():
    """The page said "measured" and met a policy that allows more, with 2 % proven next to 32 % shown."""
    rng, lenient = np.random.default_rng(0), dn.Policy(limits=[dn.Limit(advantage=0.6)], measured=0.6)
    attack = dn.assess(dn.audit_scores(rng.normal(1, 1, 500), rng.normal(0, 1, 500)))
    for both in (dn.assess(dn.GaussianDP(0.05)) + attack, attack + dn.assess(dn.GaussianDP(0.05))):
        assert both.status == "violated"
        assert both.headline.startswith("An attack exceeds the bound proven here")
        assert both.decide(lenient).decision.outcome == "does not meet"
    honest = dn.assess(dn.GaussianDP(1.1)) + attack
    assert (honest.status, honest.decide(lenient).decision.outcome) == ("measured", "meets")


def test_an_unbounded_number_survives_json_and_is_not_called_unresolvable(tmp_path):
    made = dn.assess(dn.ApproximateDP(1.0, 0.1), delta=1e-5)
    assert made.numbers["bound.epsilon@delta=1e-05"].shown == "unbounded"
    assert json.loads(made.to_json(tmp_path / "a.json"))["sections"][0]["numbers"][-1]["value"] is None
    assert dn.Assessment.from_json(tmp_path / "a.json") == made
    assert 'data-value="inf"' not in made.to_html()


def test_an_attack_without_a_promise_has_no_verdict(tmp_path):
    rng = np.random.default_rng(0)
    made = dn.assess(dn.audit_scores(rng.normal(2, 1, 500), rng.normal(0, 1, 500)))
    assert made.status == "measured"
    assert made.headline.startswith("Leaks at least this, 95\u00a0% confidence")
    assert "inconclusive" not in made.to_text().lower()
    made.to_json(tmp_path / "a.json")
    assert dn.Assessment.from_json(tmp_path / "a.json").headline == made.headline
    nothing = dn.assess(dn.audit_scores(rng.normal(size=50), rng.normal(size=50)))
    assert nothing.headline.startswith("This attack shows no leakage")


def test_records_of_training_runs_are_taken_as_they_are():
    expected = dn.assess(dn.SubsampledGaussian(5.0, 1.0, 500)).numbers
    history = {"history": [(5.0, 1.0, 300), (5.0, 1.0, 200)], "mechanism": "rdp"}
    assert dn.assess(history).numbers == expected
    events = pytest.importorskip("dp_accounting.dp_event", reason="dp-accounting is in the dev extra")
    event = events.SelfComposedDpEvent(events.PoissonSampledDpEvent(1.0, events.GaussianDpEvent(5.0)), 500)
    assert dn.assess(event).numbers == expected


def test_no_leakage_is_never_said_where_a_row_excludes_guessing():
    rng, said = np.random.default_rng(1), set()
    for _ in range(60):
        made = dn.assess(dn.audit_scores(rng.normal(0.08, 1, 400), rng.normal(0, 1, 400), direction="larger"))
        numbers = {key: number for key, number in made.numbers.items() if number.low is not None}
        guessed = {"attack.advantage": 0.0, "attack.auc": 0.5} | {
            key: float(key[15:]) for key in numbers if "fpr" in key
        }
        alone = any(numbers[key].low > guess for key, guess in guessed.items() if key in numbers)
        alone |= made.numbers["attack.epsilon"].value > 0
        words = made.headline.split()[0]
        said.add(words)
        assert not (alone and "no leakage" in made.headline)
        assert (words == "Leaks") <= alone
    assert said == {"Leaks", "Not", "This"}


def test_a_promise_is_drawn_and_named():
    rng = np.random.default_rng(2)
    audit = dn.audit_scores(rng.normal(1, 1, 500), rng.normal(0, 1, 500))
    made = dn.assess(audit, bound=dn.GaussianDP(1.2))
    assert made.status == "consistent"
    assert "Promised: GaussianDP(mu=1.2)." in made.headline
    assert made.curves[0].label == "promised: GaussianDP(mu=1.2)"
    assert {"attack.auc", "attack.power", "attack.tpr@fpr=0.01", "attack.tpr@fpr=0.001"} <= set(made.numbers)
    assert made.numbers["attack.tpr@fpr=0.001"].shown == "not resolvable"  # 500 non-members
    assert 2 * 0.7257 - 1 < made.numbers["attack.power"].value < 0.6


def test_a_page_holds_one_proof_of_a_kind(tmp_path):
    """Two releases leak more than either; a page that shows both bounds would claim the smaller one."""
    small, large = dn.GaussianDP(0.1), dn.GaussianDP(1.0)
    for a, b in ((small, large), (large, small)):
        with pytest.raises(dn.InputError, match=r"dn\.assess\(\[a, b\]\)"):
            dn.assess(a) + dn.assess(b)
    both = dn.assess([small, large])
    assert both.numbers["bound.advantage"].value >= dn.tradeoff(large + small).advantage(side="lower")
    assert dn.workflows.verify(both).follows
    page = dn.assess(large).to_dict()
    again = {**page["sections"][0], "key": "bound2", "numbers": [], "curves": []}
    (tmp_path / "two.json").write_text(json.dumps(page | {"sections": [*page["sections"], again]}))
    with pytest.raises(dn.InputError, match="one proof"):
        dn.report.Assessment.from_json(tmp_path / "two.json")


def test_a_proof_comes_first_whatever_the_order_and_units_agree():
    bound, rng = dn.assess(dn.GaussianDP(1.0)), np.random.default_rng(0)
    attack = dn.assess(dn.audit_scores(rng.normal(0.1, 1, 500), rng.normal(0, 1, 500)))
    assert attack + bound == bound + attack
    assert (attack + bound).assumptions.game == bound.assumptions.game
    people = replace(bound, assumptions=replace(bound.assumptions, adjacency="add or remove one person"))
    apart = replace(attack, assumptions=replace(attack.assumptions, adjacency="add or remove one record"))
    with pytest.raises(dn.InputError, match="one unit"):
        people + apart
