"""First screens: what an attacker gets right of 100, how often the model is right, how honest its chances are."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import deniable as dn
from deniable.workflows.usefulness import measure


@pytest.mark.parametrize(("mu", "right"), [(1e-9, 50), (0.2513, 55), (0.2514, 56), (50.0, 100)])
def test_the_picture_of_people_is_never_below_what_is_proven(mu, right):
    made = dn.assess(dn.GaussianDP(mu))
    html = made.to_html()
    assert html.count('<g class="right"') == right >= 100 * made.numbers["bound.accuracy"].value - 1e-4
    assert html.count('<g class="wrong"') == 100 - right
    assert f"about {right} right at most (proven: {made.numbers['bound.accuracy'].shown})" in html


def test_where_nothing_is_proven_there_are_no_people():
    rng = np.random.default_rng(0)
    scores = dn.audit_scores(rng.normal(0.5, 1, 300), rng.normal(0, 1, 300))
    assert 'id="people"' not in dn.assess(scores).to_html()


def test_a_promise_is_not_called_proven():
    rng = np.random.default_rng(0)
    scores = dn.audit_scores(rng.normal(0.5, 1, 300), rng.normal(0, 1, 300))
    said = "no attack lies above the provable bound"
    assert said not in dn.assess(scores, bound=dn.GaussianDP(1.0)).to_html()
    assert said in dn.assess(dn.GaussianDP(1.0)).to_html()


class Sure:
    """A classifier that says ``chance`` of every record."""

    classes_ = np.array([0, 1])

    def __init__(self, chance):
        self.chance = chance

    def predict_proba(self, X):
        return np.column_stack([np.full(len(X), 1 - self.chance), np.full(len(X), self.chance)])


def test_log_loss_and_calibration_error_of_chances():
    truth = np.repeat([0, 1], [700, 300])
    honest, boastful = (measure(Sure(chance), np.zeros((1000, 1)), truth).private for chance in (0.3, 0.9))
    assert honest.log_loss == pytest.approx(log_loss(truth, Sure(0.3).predict_proba(truth)))
    rng = np.random.default_rng(0)
    mixed = measure(Sure(0.3), np.zeros((1000, 1)), rng.permutation(truth)).private
    assert mixed.calibration < 0.06 < 0.5 < boastful.calibration
    assert boastful.log_loss > honest.log_loss


def test_the_headline_says_whose_guesses_are_right_and_the_page_has_the_same_interval():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(size=900)})
    y = np.where(X["a"] + rng.normal(0, 0.2, 900) > 0.5, 1, 0)
    model = dn.PrivateClassifier(advantage=0.3, ranges={"a": (0, 1)}, classes=[0, 1]).fit(X[:600], y[:600])
    made = dn.assess(model, X[600:], y[600:])
    said = re.search(r"The model predicts ([\d.]+)\xa0% of 300 held-out records correctly \((.*?) at", made.headline)
    number = made.numbers["use.accuracy.private"]
    assert float(said[1]) == pytest.approx(100 * number.value, abs=0.05)
    assert number.low < number.value < number.high
    assert made.headline in made.to_html().replace("&#39;", "'")
    assert {"use.log_loss.private", "use.calibration.private"} <= set(made.numbers)


def test_promises_that_are_merged_are_not_called_proven_and_cut_nothing():
    rng = np.random.default_rng(0)
    scores = dn.audit_scores(rng.normal(0.5, 1, 300), rng.normal(0, 1, 300))
    said = "no attack lies above the provable bound"
    promised = dn.assess(scores, bound=dn.GaussianDP(1.0))
    for merged in (promised + promised, promised + promised + promised):
        assert [curve.kind for curve in merged.curves if "promise" in curve.key] == ["parameter"] * (
            len(merged.curves) // 2
        )
        assert said not in merged.to_html()
    assert said in (dn.assess(dn.GaussianDP(1.0)) + promised).to_html()


def test_no_page_shows_marks_of_code():
    rng = np.random.default_rng(0)
    scores = dn.audit_scores(rng.normal(2, 1, 300), rng.normal(0, 1, 300))
    for made in (dn.assess(scores), dn.assess(dn.GaussianDP(3.0)), dn.assess(scores, bound=dn.GaussianDP(0.1))):
        assert "`" not in made.to_text()
        assert made.decision.changes
