"""``audit_scores`` and its verdicts: what they say, and what they refuse to say."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import deniable as dn
from deniable.audit import ReversedScoresWarning, Verdict
from deniable.audit.scores import warned_of_reversal


def gaussian(mu, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(mu, 1, n), rng.normal(0, 1, n)


@pytest.fixture(scope="module")
def audit():
    return dn.audit_scores(*gaussian(1.0))


def test_intervals_hold_the_truth_of_a_gaussian_attack(audit):
    for fpr in (0.001, 0.01, 0.1):
        assert ndtr(ndtri(fpr) + 1) in audit.tpr(fpr)
    assert 2 * ndtr(0.5) - 1 in audit.advantage()
    assert ndtr(1 / np.sqrt(2)) in audit.auc()
    assert 0.8 < audit.mu().low < 1.0
    assert audit.epsilon(1e-3).low < dn.tradeoff(dn.GaussianDP(1.0)).epsilon(1e-3)
    assert audit.epsilon().low > 1.5  # pure ε of a Gaussian is infinite: not vacuous


def test_rates_that_the_sample_cannot_resolve_are_not_claimed(audit):
    rate = audit.tpr(1e-4)
    assert not rate.resolvable
    assert (rate.low, rate.high) == (0.0, 1.0)
    assert "not resolvable" in str(rate)


def test_verdicts(audit):
    assert audit.compare(dn.tradeoff(dn.GaussianDP(1.2))).outcome == "consistent"
    broken = audit.compare(dn.tradeoff(dn.PureDP(0.5)))
    assert isinstance(broken, Verdict)
    assert broken.violated
    assert broken.measured.low > broken.promised
    text = str(broken)
    assert "promised" in text
    assert "measured" in text
    assert "audit_scores(member, nonmember).compare(tradeoff)" in text


def test_a_tiny_sample_is_inconclusive_even_if_it_separates_perfectly():
    audit = dn.audit_scores([1.0, 2.0], [-1.0, -2.0])
    assert audit.compare(dn.tradeoff(dn.PureDP(3.0))).outcome == "inconclusive"
    assert audit.epsilon().low == 0.0


def test_perfect_separation_gives_finite_strong_limits():
    audit = dn.audit_scores(np.arange(1, 1001.0), -np.arange(1, 1001.0))
    assert audit.advantage().low > 0.95
    assert audit.advantage().high == 1.0
    assert 4 < audit.epsilon().low < 7
    assert audit.compare(dn.tradeoff(dn.PureDP(3.0))).violated


def test_an_uncertain_promise_costs_confidence(audit):
    from dataclasses import replace

    promise = replace(dn.tradeoff(dn.PureDP(0.5)), confidence=0.99)
    assert audit.compare(promise).confidence == pytest.approx(0.94)


def test_audits_are_repeatable_and_order_does_not_matter_to_rates():
    member, nonmember = gaussian(1.0, 300)
    first, again = dn.audit_scores(member, nonmember), dn.audit_scores(member, nonmember)
    assert str(first) == str(again)
    assert dn.audit_scores(np.sort(member), nonmember).tpr(0.1) == first.tpr(0.1)


def test_reversed_scores_are_refused():
    member, nonmember = gaussian(1.0, 200)
    with pytest.raises(dn.InputError, match=r"members score lower.*--reverse.*direction='larger'"):
        dn.audit_scores(-member, -nonmember)
    with pytest.warns(ReversedScoresWarning, match="members score lower"):
        kept = dn.audit_scores(-member, -nonmember, direction="larger")
    assert "is the direction right?" in kept.warnings[0]
    turned, as_it_was = dn.audit_scores(-member, -nonmember, direction="smaller"), dn.audit_scores(member, nonmember)
    assert turned.tpr(0.1) == as_it_was.tpr(0.1)
    with pytest.raises(dn.InputError, match="direction must be one of"):
        dn.audit_scores(member, nonmember, direction="up")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dn.audit_scores(*gaussian(0.0, 200))


def test_reversed_tails_are_refused_where_the_auc_shows_nothing():
    """Three in a hundred members are recognised, by a small score: the AUC is 0.485."""
    rng = np.random.default_rng(3)
    member, nonmember = rng.normal(size=2000) - 100 * (rng.random(2000) < 0.03), rng.normal(size=2000)
    with pytest.raises(dn.InputError, match="in reverse the scores leak"):
        dn.audit_scores(member, nonmember)
    assert dn.audit_scores(member, nonmember, direction="smaller").shows


@pytest.mark.parametrize(
    ("auc", "where"), [(0.485, "lower than non-members"), (0.525, "lower in a tail of the scores")]
)
def test_a_tail_that_is_reversed_is_not_called_the_whole(auc, where):
    """The AUC was above ½, and members were said to score lower."""
    with pytest.raises(dn.InputError, match=rf"members score {where}: the AUC is {auc}"):
        warned_of_reversal(auc, None)


def test_few_members_with_scores_of_0_and_1_are_no_labels():
    """Of three scores in 0, 1, 2 a fifth were refused as labels; labels of all records are as many as the scores."""
    assert dn.audit_scores([0, 1, 1], np.arange(300) % 3).could_find() <= 1


def test_equal_scores_are_a_failed_attack():
    found = dn.audit_scores(np.ones(500), np.ones(500))
    assert found.failed
    assert not found.shows
    assert found.compare(dn.PureDP(0.1)).outcome == "inconclusive"
    page = dn.assess(found)
    assert page.status == "inconclusive"
    assert page.headline.startswith("Not decided: the attack failed")
    assert page.warnings == found.warnings  # hence exit code 1


@pytest.mark.parametrize(("members", "others"), [(1, 1), (1, 5), (5, 1), (2, 2), (3, 3), (4, 4), (1, 18), (18, 1)])
def test_silence_is_no_finding_where_a_perfect_attack_would_not_show(members, others):
    rng = np.random.default_rng(members)
    perfect = dn.audit_scores(rng.random(members) + 2, rng.random(others))
    assert not perfect.shows
    assert perfect.could_find() > 1
    null = dn.audit_scores(rng.random(members), rng.random(others), direction="larger")
    for found in (perfect, null):
        assert any(warning.startswith("So few scores") for warning in found.warnings)
        assert found.compare(dn.GaussianDP(0.1)).outcome == "inconclusive"
        assert "Not decided" in dn.assess(found).headline


@pytest.mark.parametrize(("members", "others"), [(1, 80), (80, 1), (1, 1000), (20, 20)])
def test_silence_is_a_finding_where_a_perfect_attack_shows(members, others):
    rng = np.random.default_rng(members)
    perfect = dn.audit_scores(rng.random(members) + 2, rng.random(others))
    assert perfect.could_find() <= 1
    assert perfect.warnings == ()
    assert perfect.shows


def test_a_missing_score_is_named():
    with pytest.raises(dn.InputError, match="row 2 "):
        dn.audit_scores([0.1, 0.2, float("nan")], [0.0, 0.3])


def test_labels_and_scores_in_the_order_of_scikit_learn_are_refused():
    """Read as members and nonmembers, labels beside noise would show an epsilon above 1."""
    rng = np.random.default_rng(0)
    labels, noise = rng.integers(0, 2, 2000), rng.random(2000)
    with pytest.raises(dn.InputError, match=r"pass s\[y == 1\], s\[y == 0\]"):
        dn.audit_scores(labels, noise)
    few = dn.SequentialAudit(dn.PureDP(1.0))
    few.update([0.0, 1.0], [0.5, 1.0])  # of shares of votes: a few scores may all be 0 and 1
    assert few.pairs == 2
    assert dn.audit_scores(noise[labels == 1], noise[labels == 0]).epsilon().low < 0.1  # of the same, in our order
    assert dn.audit_scores(labels, rng.integers(0, 2, 2000)).epsilon().low < 0.1  # label-only scores
    assert dn.audit_scores(np.ones(50), noise[:50]).epsilon().low > 1  # a perfect attack
