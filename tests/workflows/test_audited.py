"""Audits with a promise of their own become pages: their numbers, verdicts and pictures, and they add up."""

import numpy as np
import pytest

import deniable as dn
from deniable.audit import audit_one_run


def sequential(shift=2.0, pairs=100, promise=None):
    rng = np.random.default_rng(0)
    audit = dn.SequentialAudit(dn.GaussianDP(1.0) if promise is None else promise)
    audit.update(rng.normal(shift, 1, pairs), rng.normal(0, 1, pairs))
    return audit


def one_run(shift=2.0, k=600):
    rng = np.random.default_rng(0)
    included = rng.random(k) < 0.5
    return audit_one_run(rng.normal(size=k) + shift * included, included)


def test_a_sequential_audit_on_a_page():
    audit = sequential()
    found = dn.assess(audit, delta=1e-3)
    assert found.status == audit.verdict().outcome == "violated"
    numbers = found.numbers
    assert numbers["attack.epsilon"].value == audit.epsilon().low
    assert numbers["attack.epsilon@delta=0.001"].value == audit.epsilon(1e-3).low
    assert numbers["attack.mu"].value == audit.mu().low > 1
    assert numbers["attack.advantage"].low == audit.advantage().low
    assert numbers["attack.p"].value == audit.verdict().p_value
    assert "what was promised does not hold. Promised: " in found.to_html()
    assert found.section("attack").curves[0].label.startswith("promised: ")


def test_status_follows_the_verdict():
    assert dn.assess(sequential(shift=0.5)).status == "consistent"
    few = dn.assess(sequential(pairs=2))
    assert few.status == "inconclusive"
    assert "cannot contradict" in few.headline
    empty = dn.assess(dn.SequentialAudit(dn.PureDP(1.0)))
    assert empty.status == "inconclusive"
    assert empty.section("attack").series == ()


def test_a_checked_promise_says_what_could_have_been_found():
    rng = np.random.default_rng(0)
    check = dn.audit.check_promise(lambda inside: inside + rng.laplace(), dn.PureDP(1.0), trials=100)
    found = dn.assess(check)
    assert found.status == check.verdict.outcome
    assert found.numbers["attack.power"].value == check.could_have_found
    assert found.numbers["attack.trials"].value == check.trials
    broken = dn.audit.check_promise(lambda inside: inside + rng.laplace() / 10, dn.PureDP(1.0), trials=100)
    assert dn.assess(broken).status == "violated"
    assert "attack.power" not in dn.assess(broken).numbers


def test_one_run_with_and_without_a_promise():
    run = one_run()
    alone = dn.assess(run)
    assert alone.status == "measured"
    assert alone.numbers["attack.epsilon"].value == run.epsilon().low > 2
    assert alone.numbers["attack.advantage"].value is None  # near 5 % however good the guesses are
    broken = dn.assess(run, bound=dn.GaussianDP(0.3))
    assert broken.status == "violated"
    assert {rule.key: rule.outcome for rule in broken.decision.rules}["measured"] == "missed"  # was: "met, decides"
    assert [curve.label for curve in broken.section("attack").curves] == ["promised: GaussianDP(mu=0.3)"]
    assert dn.assess(run, bound=dn.tradeoff(dn.GaussianDP(2.0))).status == run.compare(dn.GaussianDP(2.0)).outcome
    silent = dn.assess(one_run(shift=0.0))
    assert "no leakage" in silent.headline


def test_one_run_never_claims_a_large_advantage():
    """Everything leaks with probability a, else nothing: advantage a for each canary, and all guesses right."""
    rng = np.random.default_rng(1)
    limits = []
    for _ in range(100):
        included = rng.random(50) < 0.5
        scores = included.astype(float) if rng.random() < 0.06 else rng.random(50)
        limits.append(audit_one_run(scores, included).advantage().low)
    assert np.sum(np.array(limits) > 0.06) <= 13  # Binomial(100, 0.05) exceeds it with probability 5e-4
    assert 0 < audit_one_run([1.0] * 50 + [0.0] * 50, [1] * 50 + [0] * 50).advantage().low < 0.05


def test_they_add_up_to_one_page(tmp_path):
    whole = dn.assess(dn.GaussianDP(1.0)) + dn.assess(sequential()) + dn.assess(one_run(), bound=dn.GaussianDP(5.0))
    assert whole.status == "violated"
    assert whole.decision.outcome == "does not meet"
    whole.to_json(tmp_path / "a.json")
    assert dn.report.Assessment.from_json(tmp_path / "a.json") == whole
    with pytest.raises(dn.InputError, match="'bound'"):
        dn.assess(sequential(), bound=dn.PureDP(1.0))
