"""The short form of ``make fuzz``: a few seeds; and proof that the fuzz notices what it is there to notice."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec

import mpmath as mp
import numpy as np
import pytest

import deniable as dn
from fuzz import checks, inside, lattice
from fuzz.__main__ import lines, main, summary
from fuzz.attacks import attacks, told_the_batches
from fuzz.broad import broad_mechanism, is_proven
from fuzz.isolated import isolated
from fuzz.laws import at_least, events, is_newer, parts_of, random_law
from fuzz.mechanisms import random_mechanism, shown

QUICK = (
    dn.SubsampledGaussian(1.0, 0.01, 100),
    dn.SubsampledGaussian(2.0, 0.3, 1),
    dn.ApproximateDP(0.3, 1e-5),
    dn.GaussianDP(0.5) + dn.ApproximateDP(0.3, 1e-5),
    dn.SubsampledGaussian(5.0, 1.0, 50) + dn.GaussianDP(1.0),
)
QUICK_LAWS = (
    dn.RandomizedResponse(1.0, 3, 4),
    dn.FinitePair((0.5, 0.3, 0.2), (0.2, 0.3, 0.5), 3),
    dn.Laplace(1.5),
)
ONE_STEP = QUICK[1]
unix = pytest.mark.skipif(sys.platform == "win32", reason="children are forked")


@pytest.mark.parametrize("mechanism", QUICK, ids=shown)
def test_nothing_is_violated(mechanism):
    oracle = "always" if find_spec("flint") else "never"
    found = checks.check(1, lambda _: None, oracle, mechanism)
    assert not found.violations, found.violations
    assert oracle == "never" or found.counts["engine ball meets auto"] == 4
    assert found.counts["attack, advantage"] > 0


@pytest.mark.parametrize("mechanism", QUICK_LAWS, ids=shown)
def test_nothing_is_violated_for_other_laws(mechanism):
    found = checks.check(1, lambda _: None, "never", mechanism)
    assert not found.violations, found.violations
    assert found.counts["attack, advantage"] > 0


@unix
def test_the_command_writes_a_summary(tmp_path, capsys):
    out = tmp_path / "fuzz.json"
    assert main(["--configs", "1", "--seed", "372", "--jobs", "1", "--oracle", "never", "--out", str(out)]) == 0
    assert "1 configurations from seed 372: 1 finished" in capsys.readouterr().out
    assert '"violations": []' in out.read_text()


BROAD = checks.Plan((2, 1), (1, 2, 0), 1, 1, None, 3, 3, again=1.0, engines=0.0, inside=1.0, lattice=1.0)


@pytest.mark.parametrize(
    "mechanism",
    [
        dn.SubsampledGaussian(0.12, 1e-6, 300),
        dn.SubsampledGaussian(0.2, 1e-5, 100) + dn.GaussianDP(0.3),
    ],
    ids=shown,
)
def test_engines_inside_and_a_lattice_of_losses_meet(mechanism, monkeypatch):
    monkeypatch.setitem(checks.PLANS, "gaussian", BROAD)
    found = checks.check(1, lambda _: None, "never", mechanism)
    assert not found.violations, found.violations
    assert found.counts["engines inside meet"] > 2
    assert found.counts["lattice meets auto"] == 1


def test_a_lattice_of_losses_is_right_and_sharp():
    epsilon = np.array([-1.0, 0.0, 2.0])
    for phases, t in (
        ([lattice.Phase(0.4, 1e-3, 1)], dn.tradeoff(dn.SubsampledGaussian(0.4, 1e-3, 1))),
        ([lattice.Phase(2.0, 1.0, 3), lattice.Phase(1.0, 1.0, 1)], dn.tradeoff(dn.GaussianDP(1.75**0.5))),
    ):
        above, error = lattice.hockey_stick(phases, epsilon)
        assert np.all(np.abs(above - t.delta(epsilon, "add")) <= error)
        assert np.all(error < 1e-4 * above)


def test_engines_inside_that_disagree_are_caught(monkeypatch):
    true = inside.bracket

    def bent(engine, question, at, direction):
        low, high = true(engine, question, at, direction)
        return (low, high) if type(engine).__name__ == "InvertedTradeoff" else (low * 0.9, high * 0.9)

    monkeypatch.setattr(inside, "bracket", bent)
    monkeypatch.setitem(checks.PLANS, "gaussian", BROAD)
    found = checks.check(1, lambda _: None, "never", dn.SubsampledGaussian(2.0, 0.2, 4))
    assert {name for name, *_ in found.violations} == {"engines inside meet"}


def test_mechanisms_depend_on_the_seed_only_and_can_be_typed_in_again():
    for seed in range(40):
        mechanism = broad_mechanism(seed)
        assert mechanism == broad_mechanism(seed) == eval(shown(mechanism), {"dn": dn})
        mechanism = random_mechanism(seed)
        assert mechanism == random_mechanism(seed) == eval(shown(mechanism), {"dn": dn})
        mechanism = random_law(seed)
        assert mechanism == random_law(seed) == eval(shown(mechanism), {"dn": dn})
        assert is_newer(mechanism)


def test_every_law_has_an_event_that_tells_the_worlds_apart():
    rng = np.random.default_rng(5)
    seen = set()
    with mp.workdps(60):
        for seed in range(60):
            for part in parts_of(random_law(seed)):
                gains = [hit - out for (out, hit), _ in filter(None, (events(part, rng) for _ in range(12)))]
                if gains:
                    assert all(-1 <= gain <= 1 for gain in gains)
                    assert max(gains) > 0
                    seen.add(type(part))
    assert len(seen) == 10


def test_counted_events_are_binomial():
    event = mp.mpf("0.2"), mp.mpf("0.5")
    out, hit = at_least(event, 3, 2)
    assert float(out) == pytest.approx(3 * 0.04 * 0.8 + 0.008, rel=1e-14)
    assert float(hit) == pytest.approx(0.5, rel=1e-14)
    assert float(at_least(event, 3, 1)[0]) == pytest.approx(1 - 0.8**3, rel=1e-14)


def _bent(bend):
    """A product whose answers pass through ``bend(method, side, value)``."""
    true = dn.tradeoff

    def tradeoff(mechanism, **options):
        t = true(mechanism, **options)

        class Bent:
            def __getattr__(self, name):
                if name == "inverse":
                    return t.inverse

                def ask(*args, **kwargs):
                    sides = [a for a in (*args, *kwargs.values()) if isinstance(a, str) and a in ("upper", "lower")]
                    bent = bend(name, (sides or ["upper"])[0], np.asarray(getattr(t, name)(*args, **kwargs)))
                    return bent if np.ndim(bent) else float(bent)

                return ask

        return Bent()

    return tradeoff


@pytest.mark.parametrize(
    ("bend", "caught"),
    [
        (lambda name, side, x: x * 0.9 if side == "upper" and name == "delta" else x, "lower ≤ upper"),
        (lambda name, side, x: x * np.nan if name == "advantage" else x, "no NaN"),
        (lambda name, side, x: x**1.5 if name == "tpr" else x, "TPR ≥ FPR"),
        (lambda name, side, x: np.minimum(x * 1.01, 1) if name == "delta" else x, "H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P)"),
        (lambda name, side, x: x + (side == "upper") if name == "advantage" else x, "in range"),
    ],
)
def test_wrong_answers_are_caught(monkeypatch, bend, caught):
    monkeypatch.setattr(dn, "tradeoff", _bent(bend))
    assert caught in {name for name, *_ in checks.check(3, lambda _: None, "never", ONE_STEP).violations}


def test_attacks_catch_a_bound_that_is_slightly_too_low():
    # one step: the attack "u is large" is optimal, so that a loss of 1e-9 must show
    t = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 1))
    rng = np.random.default_rng(0)
    points = [p for p in attacks(dn.SubsampledGaussian(1.0, 0.1, 1), rng, 40) if 1e-9 < p.fpr < 0.5]
    assert len(points) > 5
    for point in points:
        bound = t.tpr(checks._up(point.fpr))
        assert point.tpr <= mp.mpf(bound)
        assert point.tpr > mp.mpf(bound) * (1 - mp.mpf(10) ** -9)


@pytest.mark.parametrize(
    "mechanism", [dn.Laplace(1.5), dn.RandomizedResponse(1.0, 3), dn.Laplace(0.8, sample_rate=0.3)], ids=shown
)
def test_events_catch_a_bound_of_another_law_that_is_slightly_too_low(mechanism):
    t = dn.tradeoff(mechanism)
    with mp.workdps(60):
        points = [p for p in attacks(mechanism, np.random.default_rng(0), 40) if 1e-9 < p.fpr < 0.99]
        assert len(points) > 5
        reached = [float(p.tpr / mp.mpf(t.tpr(checks._up(p.fpr)))) for p in points]
    assert max(reached) <= 1 + 1e-15
    assert min(reached) > 1 - 1e-6


def test_known_batches_bound_the_truth_from_above():
    mechanism = dn.SubsampledGaussian(0.2, 1e-3, 20)
    known = told_the_batches(mechanism, 0.5)
    assert dn.tradeoff(mechanism).delta(0.5, "add", "lower") <= known <= 1 - 0.999**20


@unix
def test_children_are_measured_and_ended():
    def wait(report):
        report("begun")
        end = time.process_time() + 30
        while time.process_time() < end:
            pass

    slow = isolated(wait, 0.5)
    assert (slow.status, slow.partial) == ("slow", ["begun"])
    large = isolated(lambda report: np.ones(40_000_000).sum(), 10)
    assert large.status == "done"
    assert large.peak_bytes > 300e6
    broken = isolated(lambda report: 1 // 0, 10)
    assert broken.status == "raised"
    assert "ZeroDivisionError" in broken.value


def test_a_summary_counts_and_reproduces():
    row = {"seed": 3, "status": "slow", "place": "after tpr", "seconds": 21.0, "mb": 90, "counts": {"no NaN": 4}}
    found = summary([row | {"violations": [["no NaN", "tpr", "nan"]]}], 3, 20.0)
    assert found["checks"]["no NaN"] == {"run": 4, "violated": 1}
    assert "--seed 3" in found["violations"][0]["reproduce"]
    assert found["slow_seeds"] == [[3, "after tpr"]]
    assert any("no NaN" in line for line in lines(found))


@pytest.mark.skipif(not find_spec("flint"), reason="ball arithmetic needs python-flint")
def test_a_hundredth_of_broad_configurations_is_asked_of_ball_arithmetic():
    chosen = [seed for seed in range(7_000_000, 7_003_000) if is_proven(seed, "broad")]
    assert 15 <= len(chosen) <= 45
    seed = chosen[1]
    found = checks.check(seed, lambda _: None, laws="broad")
    assert not found.violations
    assert found.counts[checks.BALL] == 1
    row = {"seed": seed, "status": "done", "place": "the end", "seconds": 0.1, "mb": 1, "violations": []}
    shown_as = lines(summary([row | {"counts": dict(found.counts)}], seed, 4.0, "broad"))
    assert "1 asked of ball arithmetic" in shown_as[0]
