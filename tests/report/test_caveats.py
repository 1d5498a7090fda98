"""What a report warns of follows from whether the curve counts tuning in."""

import numpy as np
import pytest

import deniable as dn
from deniable._shown import shown
from deniable.report.sections import NOT_COVERED, TUNING_WARNING, caveats

RUN = dn.GaussianDP(0.1)
KEPT = dn.mechanisms.tuned(RUN, trials=5)


@pytest.mark.parametrize("source", [KEPT, dn.tradeoff(KEPT)])
def test_tuning_that_is_counted_is_not_said_to_be_left_out(source):
    report = dn.assess(source)
    assert report.warnings == ()
    assert not any("hyperparameters" in line for line in report.not_covered)
    assert any(line.startswith("Other choices made from the data") for line in report.not_covered)
    assert any(note.startswith("Tuning is counted in: a random number of runs") for note in report.assumptions.notes)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_of_a_composition_the_part_that_is_not_tuned_is_warned_of(adjacency):
    assert caveats(dn.tradeoff(KEPT, adjacency=adjacency))[1] == ()
    assert caveats(dn.tradeoff(KEPT + KEPT, adjacency=adjacency))[1] == ()
    not_covered, (warning,) = caveats(dn.tradeoff(KEPT + RUN, adjacency=adjacency))
    assert warning.startswith("Hyperparameter tuning on the same data is included for those parts")
    assert not_covered == NOT_COVERED


@pytest.mark.parametrize("source", [RUN, dn.tradeoff(RUN)])
def test_other_curves_warn_that_tuning_is_not_included(source):
    assert dn.assess(source).warnings == (TUNING_WARNING,)


def test_a_verdict_that_rests_on_unprotected_scores_says_so_beside_the_word():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    model = dn.PrivateClassifier(advantage=0.3, ranges={0: (-4, 4), 1: (-4, 4)}).fit(X, X[:, 0] > 0)
    found = dn.assess(model, X, X[:, 0] < 0, policy=dn.Policy(utility_loss=0.5))  # no better than guessing
    for made, rests in ((found, True), (dn.assess(dn.PureDP(0.1)), False)):
        page = made.to_html().partition("<script")[0]
        for text in (page, " ".join(made.to_text(full=False).split())):
            assert ("rests on held-out scores, measured without noise: not protected" in text) is rests


def test_only_a_page_with_a_bound_that_holds_says_that_no_attack_lies_above_it():
    scores = dn.audit_scores(np.arange(200.0) + 20, np.arange(200.0))
    above = "no attack lies above"
    assert above in dn.assess(dn.PureDP(0.1)).to_html()
    assert above not in dn.assess(scores).to_html()
    assert above not in dn.assess(scores, bound=dn.GaussianDP(1e-3)).to_html()


def test_a_bound_that_was_rounded_up_from_one_is_not_above_100_percent():
    assert shown(1 + 4e-16, "rate", "upper") == "100\u00a0%"
    assert shown(1.8, "rate", "upper") == "180\u00a0%"


def test_a_precision_is_said_of_those_who_accuse_no_more_rarely_than_it_holds_for():
    """Rarer accusations are right more often: what holds at a false positive rate holds at every higher one."""
    run = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 500))
    rates = np.geomspace(1e-5, 1, 60)
    assert np.all(np.diff(run.precision(rates)) <= 1e-12)
    found = dn.assess(run).numbers["bound.precision@fpr=0.01"]
    assert found.meaning.startswith("An attacker who wrongly accuses 1\u00a0% of non-members or more is right")
