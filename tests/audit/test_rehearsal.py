"""Signals that know the model's resolution, and the choice among attacks."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

import deniable as dn
from deniable.audit.rehearsal import LEAST_SHADOWS, Attack, Scale, area_under_log_roc, candidates, rehearse, strongest
from deniable.audit.scoring import METHODS, Shown, half_gap, score, smoothed_log_odds
from deniable.audit.shadow import balanced_design, train_models


def clipped(p):
    with np.errstate(divide="ignore"):
        return np.clip(logit(np.asarray(p, float)), -30, 30)


def test_the_resolution_of_votes_is_half_a_vote():
    votes = clipped(np.random.default_rng(0).integers(0, 101, (4, 300)) / 100)
    assert half_gap(votes) == pytest.approx(0.005)
    assert smoothed_log_odds(clipped([1.0, 0.0, 0.5]), 0.005) == pytest.approx([np.log(201), -np.log(201), 0.0])


def test_models_that_never_tell_0_or_1_are_left_alone():
    rng = np.random.default_rng(0)
    soft = rng.normal(0, 5, (4, 50))
    assert half_gap(soft) == 0.0
    assert smoothed_log_odds(soft, 0.0) is soft
    margins = rng.normal(0, 40, (4, 50))
    assert half_gap(margins) == 0.0
    saturated = np.append(soft.ravel(), [30.0, -30.0])  # a logistic regression that is sure of one record
    np.testing.assert_allclose(
        smoothed_log_odds(saturated, half_gap(saturated))[np.abs(saturated) < 8],
        saturated[np.abs(saturated) < 8], rtol=1e-2, atol=1e-2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def forest(credit):
    """Signals of 16 shadows and 3 targets: forests of 30 trees on half of 400 records."""
    X, y = credit[0][:400], credit[1][:400]
    rng = np.random.default_rng(0)
    shadows, targets = balanced_design(16, 400, rng), rng.random((3, 400)) < 0.5
    member = np.concatenate([shadows, targets])
    model = RandomForestClassifier(n_estimators=30)
    return train_models(model, X, y, "classification", member, list(range(19))), shadows, targets


def test_unanimous_votes_do_not_ruin_lira(forest):
    signal, shadows, targets = forest

    def auc(scale):
        scores = scale.scores(Attack("lira"), signal[16:], signal[:16], shadows)
        return np.mean([roc_auc_score(t, s) for t, s in zip(targets, scores, strict=True)])

    knowing = auc(Scale.of(signal[:16], "classification"))
    assert knowing > 0.88
    assert knowing > auc(Scale("classification", half=0.0)) + 0.05  # a cut at 30, for comparison


def test_the_rehearsal_chooses_an_attack_that_is_near_the_best(forest):
    signal, shadows, targets = forest
    scale = Scale.of(signal[:16], "classification")
    rehearsed = rehearse(signal[:16], shadows, scale)
    assert set(rehearsed) == set(candidates(signal, "classification"))

    def reached(attack):
        each = scale.scores(attack, signal[16:], signal[:16], shadows)
        return np.mean([area_under_log_roc(s[t], s[~t]) for t, s in zip(targets, each, strict=True)])

    chosen = strongest(rehearsed, Attack("lira"))
    assert reached(chosen) > max(reached(attack) for attack in rehearsed) - 0.05
    assert chosen.method != "loss"


@pytest.mark.parametrize("method", METHODS)
def test_no_attack_depends_on_the_unit_of_y(method):
    rng = np.random.default_rng(2)
    shadows, target = balanced_design(8, 300, rng), rng.random(300) < 0.5
    member = np.concatenate([shadows, target[None]])
    signal = rng.normal(size=(9, 300)) * np.where(member, 0.4, 1.0) * rng.uniform(0.3, 2, 300)
    found = []
    for residuals in (signal, signal * 1e4):
        scale = Scale.of(residuals[:8], "regression")
        found.append(scale.scores(Attack(method), residuals[8:], residuals[:8], shadows)[0])
    assert np.corrcoef(*found)[0, 1] == pytest.approx(1, abs=1e-9)
    assert roc_auc_score(target, found[0]) > 0.6


def log_roc_by_sorting(member, nonmember):
    """The same area from all corners of the ROC."""
    scores = np.concatenate([member, nonmember])
    order = np.argsort(-scores)
    last = np.append(scores[order[:-1]] != scores[order[1:]], True)
    hits = np.cumsum(order < len(member))
    tpr, fpr = (
        np.append(0.0, count[last] / n)
        for count, n in ((hits, len(member)), (np.arange(1, len(scores) + 1) - hits, len(nonmember)))
    )
    corners = np.append(np.flatnonzero(np.diff(fpr) > 0), len(fpr) - 1)  # of equal rates the largest TPR
    return np.interp(np.geomspace(max(1e-3, 1 / len(nonmember)), 1.0, 50), fpr[corners], tpr[corners]).mean()


@pytest.mark.parametrize("digits", [0, 1, 12])
def test_the_area_is_that_of_all_corners(digits):
    rng = np.random.default_rng(digits)
    for n, m in ((1, 1), (1, 7), (40, 3), (300, 2500)):
        sides = np.round(rng.normal(0.5, 1, n), digits), np.round(rng.normal(0, 1, m), digits)
        assert area_under_log_roc(*sides) == pytest.approx(log_roc_by_sorting(*sides), rel=1e-9, abs=1e-12)


def rehearsed_by_splitting(signal, member, scale, attack):
    """The others' signals themselves, cut to as many models on both sides of every record."""
    seen, found, half = scale.rescale(attack, signal), [], len(signal) // 2 - 1
    for target in range(len(signal)):
        rest = np.delete(np.arange(len(signal)), target)
        order = rest[np.argsort(~member[rest], axis=0, kind="stable")]
        sides = (Shown.of(np.take_along_axis(seen, p, axis=0), scale.task) for p in (order[:half], order[-half:]))
        scores = score(attack.method, seen[target], *sides, scale.task)
        found.append(area_under_log_roc(scores[member[target]], scores[~member[target]]))
    return np.mean(found)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_moments_without_a_model_are_those_of_the_others(task):
    rng = np.random.default_rng(1)
    member = balanced_design(12, 150, rng)
    signal = rng.normal(size=(12, 150)) + 1.5 * member
    scale = Scale.of(signal, task)
    for attack, strength in rehearse(signal, member, scale).items():
        assert strength == pytest.approx(rehearsed_by_splitting(signal, member, scale, attack), rel=1e-9), attack


def test_a_rehearsal_without_leakage_finds_none():
    rng = np.random.default_rng(0)
    shadows = balanced_design(12, 2000, rng)
    signal = rng.normal(size=(12, 2000))  # knows nothing of the membership: only the design could tell
    rehearsed = rehearse(signal, shadows, Scale.of(signal, "classification"))
    guess = np.mean(np.geomspace(1e-3, 1, 50))
    assert all(abs(found - guess) < 0.02 for found in rehearsed.values())


def test_auto_is_the_default_and_says_what_it_chose(credit):
    X, y = credit[0][:200], credit[1][:200]
    model = RandomForestClassifier(n_estimators=10)
    scores = dn.attack_estimator(model, X, y, n_shadows=8, rng=0)
    rehearsed = scores.details["rehearsed"]
    assert rehearsed[scores.method] >= max(rehearsed.values()) / 1.03
    assert set(METHODS) < set(rehearsed)
    few = dn.attack_estimator(model, X, y, n_shadows=LEAST_SHADOWS - 2, rng=0)
    assert few.method == "lira"
    assert few.details["rehearsed"] == {}
    numbers = dn.attack_estimator(Ridge(), X, X[:, 0], n_shadows=8, rng=0)
    assert numbers.method in METHODS
