"""The decision: a policy is met only by what is proven, missed by what is shown, and otherwise not decided."""

import json
from dataclasses import replace
from importlib import resources

import jsonschema
import numpy as np
import pytest
from hypothesis import given, strategies as st

import deniable as dn
from deniable.workflows import settings as remedies

SCHEMA = json.loads(resources.files("deniable.report").joinpath("schema.json").read_text())


def only(advantage, **more):
    """A policy that asks nothing else to be proven, and nothing to be measured."""
    return dn.Policy([dn.Limit(advantage=advantage)], **{"measured": None, "utility_loss": None} | more)


def rules(assessment):
    return {rule.key: rule for rule in assessment.decision.rules}


def audit(shift, n=2000):
    grid = (np.arange(n) + 0.5) / n
    from scipy.special import ndtri

    return dn.audit_scores(ndtri(grid) + shift, ndtri(grid))


SHARES = st.floats(0.00101, 1.0)


@given(st.floats(1e-3, 5.0), SHARES, SHARES, SHARES)
def test_a_mechanism_meets_exactly_what_its_curve_meets(mu, advantage, tpr, secret):
    asked = ({"advantage": advantage}, {"tpr": tpr, "fpr": 0.001}, {"reconstruction": secret, "baseline": 0.001})
    policy = dn.Policy([dn.Limit(**one) for one in asked])
    t, found = dn.tradeoff(dn.GaussianDP(mu)), dn.assess(dn.GaussianDP(mu), policy=policy)
    met = t.advantage() <= advantage and t.tpr(0.001) <= tpr and t.reconstruction(0.001) <= secret
    assert found.decision.outcome == ("meets" if met else "does not meet")
    assert found.decision.met == met
    jsonschema.validate(json.loads(found.to_json()), SCHEMA)


def test_another_policy_later_uses_the_next_larger_rate_which_is_on_the_safe_side():
    found = dn.assess(dn.GaussianDP(1.0), fpr=[0.1, 0.01]).decide(dn.Policy([dn.Limit(tpr=1.0, fpr=0.005)]))
    t = dn.tradeoff(dn.GaussianDP(1.0))
    assert rules(found)["tpr"].found == t.tpr(0.01) >= t.tpr(0.005)
    beyond = found.decide(dn.Policy([dn.Limit(tpr=1.0, fpr=0.5)]))
    assert rules(beyond)["tpr"].outcome == "not decided"


def test_a_rule_on_usefulness_that_was_not_judged_is_said_with_the_verdict():
    """A public page cannot show usefulness; it promised more than the terminal, which knew it missed."""
    unjudged = dn.assess(dn.GaussianDP(0.1), policy=dn.Policy(utility_loss=0.02))
    assert "usefulness was not judged here" in unjudged.decision.verdict
    assert unjudged.decision.verdict in unjudged.to_html().replace("&#39;", "'")
    assert "USEFULNESS WAS NOT JUDGED HERE" in " ".join(unjudged.to_text().split())
    assert dn.assess(dn.GaussianDP(0.1), policy=only(0.1)).decision.verdict == "Meets the policy"
    assert dn.assess(dn.GaussianDP(1.0), policy=dn.Policy()).decision.verdict == "Does not meet the policy"


def test_an_attack_alone_never_meets_and_can_miss():
    weak = dn.assess(audit(0.0))
    assert weak.decision.outcome == "not decided"
    assert any("Proof" in change for change in weak.decision.changes)
    assert not any(change.startswith("Model: ") for change in weak.decision.changes)
    strong = dn.assess(audit(2.0))
    assert strong.decision.outcome == "does not meet"
    assert rules(strong)["advantage"].found == audit(2.0).advantage().low


def test_the_strongest_of_several_attacks_decides_in_any_order():
    weak, strong = dn.assess(audit(0.0)), dn.assess(audit(2.0))
    for both in (weak + strong, strong + weak):
        assert both.decision.outcome == "does not meet"
        assert rules(both)["advantage"].found == audit(2.0).advantage().low


def test_a_violated_bound_meets_nothing():
    found = dn.assess(audit(2.0), bound=dn.GaussianDP(0.01), policy=only(1.0))
    assert found.status == "violated"
    assert found.decision.outcome == "does not meet"
    assert dn.assess(dn.GaussianDP(0.01)).merge(found).decision.outcome == "does not meet"


def test_a_record_profile_is_enough_only_where_the_policy_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)) / 10, np.arange(300) % 2
    profile = dn.privacy_profile(X, y, regularization=1.0, mechanism=dn.OutputPerturbation(epsilon=0.5), rng=0)
    limits = only(0.1)
    assert profile.advantage().max() < 0.1
    assert dn.assess(profile, policy=limits).decision.outcome == "not decided"
    assert dn.assess(profile, policy=replace(limits, scope="this data set")).decision.outcome == "meets"
    tight = only(float(profile.advantage().max()) * 0.999, scope="this data set")
    assert dn.assess(profile, policy=tight).decision.outcome == "does not meet"


def test_a_curve_of_one_record_promises_nothing_to_others():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)) / 10, np.arange(300) % 2
    profile = dn.privacy_profile(X, y, regularization=1.0, mechanism=dn.OutputPerturbation(epsilon=0.5), rng=0)
    one = profile.tradeoff(3)
    assert one.advantage() < 0.1
    for scope in ("every data set", "this data set"):
        found = dn.assess(one, policy=only(0.1, scope=scope))
        assert found.decision.outcome == "not decided"


def test_a_certificate_of_a_release_holds_for_its_own_data_and_says_nothing_about_secrets():
    curve = replace(dn.tradeoff(dn.GaussianDP(0.1)), holds_for="a secret half (a release certificate)", confidence=0.99)
    limits = only(0.09)
    assert dn.assess(curve, policy=limits).decision.outcome == "not decided"
    mine = dn.assess(curve, policy=replace(limits, scope="this data set"))
    assert mine.decision.outcome == "meets"
    assert "with confidence 99" in mine.decision.reason
    assert rules(dn.assess(curve))["reconstruction"].outcome == "not decided"


def test_what_is_only_estimated_proves_nothing():
    made = dn.assess(dn.GaussianDP(0.1))
    guessed = replace(
        made,
        sections=tuple(
            replace(section, numbers=tuple(replace(number, kind="estimate") for number in section.numbers))
            for section in made.sections
        ),
    )
    found = guessed.decide(dn.Policy())
    assert rules(found)["advantage"].outcome == rules(found)["reconstruction"].outcome == "not decided"


def test_what_is_required_and_missing_cannot_be_told():
    for word in ("attack", "records", "utility"):
        found = dn.assess(dn.PureDP(0.01), policy=dn.Policy(require=(word,)))
        assert found.decision.outcome == "not decided"
        assert found.decision.changes


@pytest.mark.parametrize(
    "mechanism",
    [
        dn.SubsampledGaussian(1.0, 0.01, 5000),
        dn.PureDP(3.0),
        dn.ApproximateDP(2.0, 1e-6),
        dn.ZeroConcentratedDP(1.0),
        dn.GaussianDP(2.0),
        dn.SubsampledGaussian(1.0, 0.01, 2000) + dn.SubsampledGaussian(2.0, 0.01, 300),
        dn.ShuffledBatches(4.0, 50, 12),
        dn.SubsampledGaussian(30.0, 1.0, 20, records_per_person=4),
    ],
    ids=lambda m: type(m).__name__,
)
def test_what_would_change_it_does(mechanism, monkeypatch):
    """Every setting that is proposed is tried: with it alone the policy is met."""
    tried = []
    original = remedies._nearest_that_meets

    def spy(make, *asked):
        value = original(make, *asked)
        if value is not None:
            tried.append(make(value))
        return value

    monkeypatch.setattr(remedies, "_nearest_that_meets", spy)
    found = dn.assess(mechanism)
    assert found.decision.outcome == "does not meet"
    assert tried
    assert len(tried) == len(found.decision.changes)
    monkeypatch.undo()
    for better in tried:
        assert dn.assess(better).decision.outcome == "meets"


def test_a_private_model_is_fitted_again_with_what_is_proposed():
    proposed = remedies.fit_again(0.5, 0.0, [dn.Limit(advantage=0.05), dn.Limit(tpr=0.002, fpr=0.001)])
    goal = float(proposed[0].split("advantage=")[1].split()[0])
    mu = dn.calibrate(dn.GaussianDP, (1e-6, 1.0), advantage=goal)
    t = dn.tradeoff(dn.GaussianDP(mu))
    assert t.advantage() <= 0.05
    assert t.tpr(0.001) <= 0.002


def test_a_policy_from_a_file(tmp_path):
    path = tmp_path / "house.toml"
    path.write_text("[policy]\nadvantage = 0.2\nrequire = 'attack'\n")
    policy = dn.Policy.from_toml(path)
    assert (policy.limits, policy.require, policy.name) == ((dn.Limit(advantage=0.2),), ("attack",), "house")
    path.write_text("advantage = 0.3\ntpr = false\n")
    assert dn.Policy.from_toml(path) == only(0.3, name="house")
    assert dn.Policy.from_toml("default") == dn.Policy()
    path.write_text("tpr = 0.02\nreconstruction = 0.1\nbaseline = 0.05\nutility_loss = 0.1\n")
    asked = dn.Limit(tpr=0.02, fpr=0.001), dn.Limit(reconstruction=0.1, baseline=0.05)
    assert dn.Policy.from_toml(path) == dn.Policy(asked, measured=None, utility_loss=0.1, name="house")


def test_a_policy_has_limits_that_a_report_can_decide():
    undecided = (
        dn.Limit(epsilon=1, delta=1e-6),
        dn.Limit(advantage=0.1, prior=0.2),
        dn.Limit(advantage=0.1, group_size=2),
    )
    for limits in (*([one] for one in undecided), [dn.Limit(tpr=0.1, fpr=f) for f in (0.01, 0.02)], [0.1], 0.1):
        with pytest.raises(dn.InputError, match="limits"):
            dn.Policy(limits)


def test_what_a_person_adds_stands_in_every_form(tmp_path):
    (tmp_path / "model.skops").write_bytes(b"a model")
    meta = tmp_path / "meta.toml"
    meta.write_text('author = "A. Lovelace"\ndate = 2026-01-31\nsigned_by = "B"\nmodel_file = "model.skops"\n')
    found = dn.assess(dn.PureDP(0.1), meta=meta)
    import hashlib

    assert found.meta["model_sha256"] == hashlib.sha256(b"a model").hexdigest()
    for text in (found.to_text(), found.to_html(), found.to_json()):
        assert all(word in text for word in ("A. Lovelace", "2026-01-31", found.meta["model_sha256"]))
    found.to_json(tmp_path / "a.json")
    assert dn.Assessment.from_json(tmp_path / "a.json") == found
    for wrong in ({"autor": "x"}, {"data_file": "people.csv"}, {"data_sha256": "0"}):  # no hash of the data leaves
        with pytest.raises(dn.InputError, match="meta has no"):
            dn.assess(dn.PureDP(0.1), meta=wrong)


@pytest.mark.parametrize("width", [60, 80])
def test_nothing_is_cut_in_a_narrow_terminal(width):
    found = dn.assess(dn.SubsampledGaussian(1.0, 0.01, 5000))
    for text in (found.to_text(full=False, width=width), found.to_text(width=width)):
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
    words = " ".join(found.to_text(full=False, width=width).split())
    for rule in found.decision.rules:
        assert rule.outcome == "not asked" or " ".join(rule.why.split()) in words


def test_an_attack_that_shows_no_advantage_is_an_attack_and_meets_nothing():
    rng = np.random.default_rng(0)
    included = rng.integers(0, 2, 400).astype(bool)
    run = dn.assess(dn.GaussianDP(0.005))
    assert run.decision.met
    one = dn.assess(dn.audit.audit_one_run(rng.normal(size=400) + included, included))
    small = dn.assess(dn.audit_scores(rng.normal(size=900), rng.normal(size=900)))
    large = dn.assess(dn.audit_scores(rng.normal(2, 1, 900), rng.normal(size=900)))
    for both in (run + one, one + run, run + small + one, run + one + small):
        rule = next(rule for rule in both.decision.rules if rule.key == "measured")
        assert rule.outcome == both.decision.outcome == "not decided"
        assert "no attack is part" not in both.to_text().lower()
    assert next(rule for rule in (run + small).decision.rules if rule.key == "measured").outcome == "met"
    for both in (run + one + large, run + large + one):
        assert next(rule for rule in both.decision.rules if rule.key == "measured").outcome == "missed"
    needs = dn.Policy(measured=None, require=["attack"])
    assert (run + one).decide(needs).decision.met
    assert not run.decide(needs).decision.met
