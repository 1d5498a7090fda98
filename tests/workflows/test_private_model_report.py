"""The report of a private model: the model's own numbers, other risks, usefulness, and an alert where there is none."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import r2_score, roc_auc_score

import deniable as dn
import deniable.report
from deniable.workflows import usefulness
from deniable.workflows.usefulness import (
    Score,
    Unprotected,
    Usefulness,
    _parts_of_r2,
    _placements,
    _score_lost,
    measure,
)

SCHEMA = json.loads((Path(deniable.report.__file__).parent / "schema.json").read_text())


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.uniform(size=n), "town": rng.choice(["a", "b"], n)})
    return frame, (frame["x"] + (frame["town"] == "a") + rng.normal(0, 0.3, n) > 0.5).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model():
    X, y = data()
    return dn.PrivateClassifier(advantage=0.4, ranges={"x": (-4, 4), "z": (0, 1)}).fit(X, y)


def test_numbers_are_the_models(model):
    made = dn.assess(model)
    numbers = made.numbers
    assert numbers["bound.advantage"].value == model.tradeoff_.advantage() <= 0.4
    assert numbers["risk.replacing"].value == model.replacement_tradeoff_.advantage()
    assert numbers["risk.reconstruction@baseline=0.001"].value == model.tradeoff_.reconstruction(0.001)
    assert numbers["risk.group2"].value == model.tradeoff_.group(2).advantage()
    assert made.alert == ""
    jsonschema.validate(json.loads(made.to_json()), SCHEMA)
    rows = made.section("account").grids[0].rows
    assert any("coefficients" in row[1] for row in rows)
    assert sum(row[-1] ** 2 for row in rows) == pytest.approx(model.certificate_.mu**2, rel=1e-9)
    assert len(made.section("columns") or made.section("shapes").grids[0].rows) == 3
    assert not any(key.startswith("use.") for key in numbers)


def test_held_out_records_add_usefulness_that_is_not_protected(model):
    X, y = data(seed=1)
    made = dn.assess(model, X, y)
    assert made.numbers["use.accuracy.private"].value == pytest.approx(model.score(X, y))
    assert made.numbers["use.accuracy.guess"].value == pytest.approx(max(y.mean(), 1 - y.mean()))
    assert "guarantee does not cover" in made.warnings[0]
    assert "What the model does with each column" in made.to_html()
    jsonschema.validate(json.loads(made.to_json()), SCHEMA)
    with pytest.raises(dn.InputError, match="same records"):
        dn.assess(model, X, y[:-1])


def test_only_fitted_private_models_take_records():
    X, y = data()
    with pytest.raises(dn.InputError, match="X and y go with"):
        dn.assess(dn.PureDP(1.0), X, y)
    with pytest.raises(dn.InputError, match="must be fitted first"):
        dn.assess(dn.PrivateClassifier())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_regression_and_several_classes():
    X, _ = data()
    regression = dn.PrivateRegressor(advantage=0.5, ranges={"x": (-4, 4), "z": (0, 1)}, target_range=(-6, 6))
    made = dn.assess(regression.fit(X, X["x"]), X, X["x"])
    assert made.numbers["use.r2.private"].value > 0.2
    assert made.numbers["use.r2.guess"].value == 0
    three = dn.PrivateClassifier(advantage=0.5).fit(X, np.digitize(X["x"], [-0.5, 0.5]))
    assert "of class 2" in dn.assess(three).section("shapes").summary


def useful(private, guess=0.7, auc=0.5, classification=True):
    return Usefulness(classification, 100, Score(private, auc), None, Score(guess, 0.5), 0.1)


def test_alert_only_where_nothing_beats_guessing():
    assert "do not use it" in useful(0.7).alert
    assert "more records" in useful(0.7).alert
    assert useful(0.78).alert  # within two standard errors of the majority on 100 records
    assert useful(0.8).alert == ""
    assert useful(0.6, auc=0.8).alert == ""  # ranks well, though it is never surer than the majority
    assert useful(-0.1, classification=False).alert.startswith(
        "This model is no better than always predicting the mean"
    )
    assert useful(0.5, classification=False).alert == ""
    assert useful(float("nan"), auc=None, classification=False).useless


def test_an_alert_stands_first_everywhere(model):
    X, y = data(seed=1)
    made = dn.assess(model, X, 1 - y)  # wrong in nearly every case
    assert made.alert
    assert made.to_text().index("no better than") < made.to_text().index("Provable upper bound")
    page = made.to_html()
    assert page.index('id="alert"') < page.index('id="verdict"')
    rng = np.random.default_rng(0)
    attack = dn.assess(dn.audit_scores(rng.normal(size=500), rng.normal(size=500)))
    assert made.alert in (made + attack).alert
    assert made.alert in (attack + made).alert


def test_a_model_of_no_use_meets_no_policy_that_asks_for_use_and_is_never_green(model):
    X, y = data(seed=1)
    good, useless = dn.assess(model, X, y), dn.assess(model, X, 1 - y)
    lenient = dn.Policy([dn.Limit(advantage=1.0)])
    assert (good.decide(lenient).decision.outcome, good.decide(lenient).tone) == ("meets", "good")
    decided = useless.decide(lenient)
    assert (decided.decision.outcome, decided.decision.decided_by, decided.tone) == (
        "does not meet", "utility_loss", "bad",
    )  # fmt: skip
    assert "no better than guessing" in decided.decision.reason
    assert any(change.startswith("Usefulness: ") for change in decided.decision.changes)
    unasked = useless.decide(dn.Policy([dn.Limit(advantage=1.0)], utility_loss=None))
    assert (unasked.decision.outcome, unasked.tone) == ("meets", "open")
    assert 'class="card open" id="verdict"' in unasked.to_html()


def unprotected(X, y, model):
    return Unprotected(X, np.ones(len(y), dtype=bool), y, model, classification=True)


def test_the_unprotected_model_is_fitted_to_a_part_of_many_records_and_says_so(model, monkeypatch):
    X, y = data()
    at_most, seen, fit = 100, [], HistGradientBoostingClassifier.fit
    monkeypatch.setattr(usefulness, "_MOST_RECORDS", at_most)
    monkeypatch.setattr(
        HistGradientBoostingClassifier, "fit", lambda trees, X, y: seen.append(len(X)) or fit(trees, X, y)
    )
    plain = unprotected(X, y, model)
    assert seen == [at_most]
    assert measure(model, X, y, plain=plain).plain.first > 0.8  # targets go with their records
    assert "100 at most" in dn.assess(model, usefulness=measure(model, X, y, plain=plain)).to_json()


def test_what_is_lost_is_decided_by_an_interval(model):
    """Met, missed or not decided by where the interval lies."""
    X, y = data(seed=1)
    use = measure(model, X, y, plain=unprotected(X, y, model))
    assert use.loss is not None
    assert use.loss.of == "AUC"
    assert use.loss.low < use.loss.estimate < use.loss.high
    outcomes = {}
    for low, high in ((-0.01, 0.01), (0.01, 0.03), (0.03, 0.05)):
        made = dn.assess(model, usefulness=replace(use, loss=replace(use.loss, low=low, high=high)))
        outcomes[high] = next(rule.outcome for rule in made.decision.rules if rule.key == "utility_loss")
    assert outcomes == {0.01: "met", 0.03: "not decided", 0.05: "missed"}


def drawn(rng, n):
    """Truth, the values that two models predict, ranked and not."""
    truth = rng.random(n) < 0.4
    return truth, *(np.round(0.8 * truth + rng.normal(size=n), 1) for _ in range(2))


def test_the_parts_of_a_score_have_it_as_their_mean():
    truth, found, _ = drawn(np.random.default_rng(0), 300)
    placed = _placements(found, truth)
    assert placed[truth].mean() == pytest.approx(roc_auc_score(truth, found), abs=1e-12)
    assert placed[~truth].mean() == pytest.approx(roc_auc_score(truth, found), abs=1e-12)
    assert _parts_of_r2(found, truth.astype(float)).mean() == pytest.approx(r2_score(truth, found), abs=1e-12)


@pytest.mark.parametrize("of", ["AUC", "R²"])
def test_the_interval_of_what_is_lost_covers(of):
    """Two models that are as good: 0 lies in the interval in about 95 % of samples; scores apart are told apart."""
    rng, inside, n_samples = np.random.default_rng(1), 0, 400
    for _ in range(n_samples):
        truth, one, other = drawn(rng, 200)
        groups = truth if of == "AUC" else np.zeros(200, dtype=bool)
        parts = [_placements(m, truth) if of == "AUC" else _parts_of_r2(m, truth * 1.0) for m in (one, other)]
        lost = _score_lost(of, parts[1] - parts[0], groups)
        inside += lost.low is None or lost.low <= 0 <= lost.high
    assert 0.91 <= inside / n_samples <= 0.98
    worse = _score_lost("AUC", _placements(truth + 0.1 * one, truth) - _placements(one, truth), truth)
    assert worse.low > 0


def normal(of, apart, groups):
    """The interval as it was: a control."""
    parts = [part for part in (apart[groups], apart[~groups]) if part.size]
    error = 1.96 * np.sqrt(sum(part.var(ddof=1) / part.size for part in parts))
    return parts[0].mean() - error, parts[0].mean() + error


@pytest.mark.parametrize(("inside", "outside"), [(10, 10), (10, 40), (15, 15), (20, 200)])
def test_of_few_records_the_interval_covers_too_and_a_normal_one_does_not(inside, outside):
    """Two good models, of which one is a little better: few records tell them apart."""
    rng, truth, n_samples = np.random.default_rng(3), np.repeat([True, False], [inside, outside]), 400
    difference = norm.cdf(3 / 2**0.5) - norm.cdf(2.5 / 2**0.5)
    covered = dict.fromkeys(["now", "control"], 0)
    for _ in range(n_samples):
        shared = 0.8 * rng.normal(size=truth.size)
        one, other = (shared + 0.6 * rng.normal(size=truth.size) + apart * truth for apart in (2.5, 3.0))
        apart = _placements(other, truth) - _placements(one, truth)
        lost, (low, high) = _score_lost("AUC", apart, truth), normal("AUC", apart, truth)
        covered["now"] += lost.low <= difference <= lost.high
        covered["control"] += low <= difference <= high
    assert covered["control"] / n_samples < 0.92 < 0.945 <= covered["now"] / n_samples


@pytest.mark.parametrize("n", [10, 20, 40, 100])
@pytest.mark.parametrize(("better", "worse"), [(0.01, 0.06), (0.4, 0.02), (0.3, 0.3)])
def test_an_interval_of_accuracy_covers(n, better, worse):
    rng, none = np.random.default_rng(4), np.zeros(n, dtype=bool)
    parts = rng.choice([1.0, -1.0, 0.0], p=[better, worse, 1 - better - worse], size=(600, n))
    found = [_score_lost("Accuracy", part, none) for part in parts]
    assert np.mean([one.low <= better - worse + 1e-12 and better - worse - 1e-12 <= one.high for one in found]) >= 0.93


@pytest.mark.parametrize("n", [10, 40, 100])
def test_r2_of_a_heavy_tail_is_not_decided_by_the_few_records_that_have_it(n):
    """Where one record has most of the spread, a normal interval misses every third time."""

    def records(n):
        x = rng.normal(size=n)
        truth, *models = (np.exp(x + noise * rng.normal(size=n)) for noise in (0.5, 1.0, 0.8))
        return _parts_of_r2(models[1], truth) - _parts_of_r2(models[0], truth)

    rng, none = np.random.default_rng(5), np.zeros(n, dtype=bool)
    whole, covered, control = records(1_000_000).mean(), 0, 0
    for _ in range(300):
        apart = records(n)
        lost, (low, high) = _score_lost("R²", apart, none), normal("R²", apart, none)
        covered += lost.low is None or lost.low <= whole <= lost.high
        control += low <= whole <= high
    assert control / 300 < 0.8 < 0.93 <= covered / 300


@pytest.mark.parametrize(("of", "inside", "outside"), [("AUC", 9, 500), ("AUC", 500, 9), ("Accuracy", 0, 9)])
def test_fewer_than_ten_records_of_a_group_decide_nothing(of, inside, outside, model):
    groups = np.repeat([True, False], [inside, outside])
    lost = _score_lost(of, np.full(groups.size, 0.001), groups)
    assert (lost.low, lost.high) == (None, None)
    X, y = data(seed=1)
    use = measure(model, X, y, plain=unprotected(X, y, model))
    made = dn.assess(model, usefulness=replace(use, loss=lost))
    rule = next(rule for rule in made.decision.rules if rule.key == "utility_loss")
    assert (rule.outcome, made.numbers["use.loss"].shown) == ("not decided", "not resolvable")
    assert "too few records" in rule.why


def test_more_records_are_advised_only_where_an_unprotected_model_finds_something():
    """Nothing to find in the columns: what would help is not said to be more of them; else it is."""
    nothing = Usefulness(True, 100, Score(0.7, 0.5), Score(0.7, 0.52), Score(0.7, 0.5), 0.1)
    something = replace(nothing, plain=Score(0.9, 0.95))
    assert "unprotected model finds nothing in these columns either" in nothing.alert
    assert "more records" not in nothing.alert
    assert "more records" in something.alert
    flat = Usefulness(False, 100, Score(0.0, 1.0), Score(0.05, 1.0), Score(0.0, 1.0), 0.2)
    assert "either" in flat.alert
    assert "more records" in replace(flat, plain=Score(0.5, 1.0)).alert


def test_a_decision_does_not_advise_more_records_where_nothing_is_to_be_found(model):
    nothing = Usefulness(True, 100, Score(0.7, 0.5), Score(0.7, 0.52), Score(0.7, 0.5), 0.1)
    for use, said in ((nothing, "other columns"), (replace(nothing, plain=Score(0.9, 0.95)), "more records")):
        made = dn.assess(model, usefulness=use)
        (change,) = (line for line in made.decision.changes if line.startswith("Usefulness"))
        assert said in change
        assert ("more records" in made.to_text()) == (said == "more records")
