"""The fuzz in short: a few seeds and mechanisms; and proof that it notices what it is there to notice."""

import json
import signal
import sys
import time
from importlib.util import find_spec

import mpmath as mp
import numpy as np
import pytest

import deniable as dn
from fuzz import checks, inside, lattice
from fuzz.__main__ import configurations, main
from fuzz.attacks import attacks, told_the_batches
from fuzz.checks import CHECKS, Ledger, check, check_of
from fuzz.isolated import isolated
from fuzz.laws import KINDS, at_least, events
from fuzz.mechanisms import shown
from fuzz.samplers import BALL_SAMPLER, SAMPLERS, laws_of, random_mechanism, sampler_of

QUICK = (
    dn.SubsampledGaussian(1.0, 0.01, 100),
    dn.SubsampledGaussian(2.0, 0.3, 1),
    dn.ApproximateDP(0.3, 1e-5),
    dn.GaussianDP(0.5) + dn.ApproximateDP(0.3, 1e-5),
    dn.SubsampledGaussian(5.0, 1.0, 50) + dn.GaussianDP(1.0),
    dn.RandomizedResponse(1.0, 3, 4),
    dn.mechanisms.FinitePair((0.5, 0.3, 0.2), (0.2, 0.3, 0.5), 3),
    dn.Laplace(1.5),
)
ONE_STEP = QUICK[1]
SEEDS = range(60_000_000, 60_000_150)
unix = pytest.mark.skipif(sys.platform == "win32", reason="children are forked")


@pytest.mark.parametrize("mechanism", QUICK, ids=shown)
def test_nothing_is_violated(mechanism):
    counts = 0
    for name in CHECKS:
        found = check(1, mechanism, name)
        assert not found.violations, found.violations
        counts += found.counts.total()
    assert counts > 30


@pytest.mark.skipif(not find_spec("flint"), reason="ball arithmetic needs python-flint")
@pytest.mark.parametrize("mechanism", QUICK[:5], ids=shown)
def test_ball_arithmetic_meets_every_answer(mechanism):
    found = check(1, mechanism, BALL_SAMPLER)
    assert not found.violations, found.violations
    assert found.counts["the proof meets the curve"] == 4


@unix
def test_the_command_writes_a_summary(tmp_path, capsys):
    out = tmp_path / "fuzz.json"
    assert main(["--configs", "3", "--seed", "372", "--jobs", "1", "--out", str(out)]) == 0
    assert "3 configurations from seed 372: 3 done; 0 violated" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert (found["configurations"], found["violations"]) == (3, [])


def test_every_law_sampler_and_check_is_drawn_and_can_be_typed_in_again():
    seeds = range(900)
    laws = {name for seed in seeds for name in laws_of(random_mechanism(seed))}
    assert len(KINDS) + 4 == len(laws) == 14, sorted(laws)  # also steps of single records, Gaussian, pure and so on
    assert {sampler_of(seed) for seed in seeds} == set(SAMPLERS)
    assert {check_of(seed) for seed in seeds} == set(CHECKS)
    for seed in range(60):
        assert random_mechanism(seed) == eval(shown(random_mechanism(seed)), {"dn": dn})


def _bent(bend):
    """A product whose answers pass through ``bend(method, side, value)``."""
    true = dn.tradeoff

    class Bent:
        def __init__(self, of):
            self.of = of

        def inverse(self):
            return Bent(self.of.inverse())

        def __getattr__(self, name):
            known = getattr(self.of, name)

            def ask(*args, **kwargs):
                sides = [a for a in (*args, *kwargs.values()) if isinstance(a, str) and a in ("upper", "lower")]
                bent = bend(name, (sides or ["upper"])[0], np.asarray(known(*args, **kwargs)))
                return bent if np.ndim(bent) else float(bent)

            return ask if callable(known) else known

    return lambda mechanism, **options: Bent(true(mechanism, **options))


@pytest.mark.parametrize("name", ["attack", "two questions", "one question"])
def test_bounds_lowered_by_a_billionth_are_found(name, monkeypatch):
    """Both sides alike, so that lower ≤ upper does not tell: within the closed forms among 150 configurations."""
    quick = ("Gaussian, pure and approximate parts", "few outcomes")
    seeds = [seed for seed in SEEDS if sampler_of(seed) in quick and check_of(seed) == name]
    assert not any(check(seed).violations for seed in seeds)
    less = _bent(lambda name, side, x: x * (1 - 1e-9) if name in ("tpr", "delta", "advantage") else x)
    monkeypatch.setattr(dn, "tradeoff", less)
    assert any(check(seed).violations for seed in seeds)


@unix
def test_a_batch_stops_and_goes_on_behind_what_dies():
    def ask(seed):
        ledger = Ledger()
        ledger.expect("odd seeds", seed != 3, "the seed", seed)
        if seed == 1:
            end = time.process_time() + 20
            while time.process_time() < end:
                pass
        if seed == 2:
            raise ValueError("an engine failed")
        if seed == 4:
            signal.raise_signal(signal.SIGKILL)
        return ledger

    rows = configurations(range(6), 0.1, ask)
    assert [row["seed"] for row in rows] == list(range(6))
    assert [row["status"] for row in rows] == ["done", "stopped", "raised", "done", "died", "done"]
    assert [bool(row["violations"]) for row in rows] == [False, False, True, True, True, False]
    assert rows[3]["alone"] == "repeated"


@pytest.mark.parametrize(
    "mechanism",
    [dn.SubsampledGaussian(0.12, 1e-6, 300), dn.SubsampledGaussian(0.2, 1e-5, 100) + dn.GaussianDP(0.3)],
    ids=shown,
)
def test_engines_inside_and_a_lattice_of_losses_meet(mechanism, monkeypatch):
    monkeypatch.setattr(checks, "_LATTICES_SHARE", 1.0)
    found = check(1, mechanism, "engines inside"), check(1, mechanism, "lattice")
    assert not found[0].violations + found[1].violations
    assert found[0].counts["engines inside meet"] > 2
    assert found[1].counts["lattice meets auto"] == 1


def test_a_lattice_of_losses_is_right_and_sharp():
    epsilon = np.array([-1.0, 0.0, 2.0])
    for phases, t in (
        ([lattice.Phase(0.4, 1e-3, 1)], dn.tradeoff(dn.SubsampledGaussian(0.4, 1e-3, 1))),
        ([lattice.Phase(2.0, 1.0, 3), lattice.Phase(1.0, 1.0, 1)], dn.tradeoff(dn.GaussianDP(1.75**0.5))),
    ):
        above, error = lattice.hockey_stick(phases, epsilon)
        assert np.all(np.abs(above - t.delta(epsilon, "remove")) <= error)
        assert np.all(error < 1e-4 * above)


def test_engines_inside_that_disagree_are_caught(monkeypatch):
    true = inside.bracket

    def bent(engine, question, at, direction):
        low, high = true(engine, question, at, direction)
        return (low, high) if type(engine).__name__ == "InvertedTradeoff" else (low * 0.9, high * 0.9)

    monkeypatch.setattr(inside, "bracket", bent)
    monkeypatch.setattr(checks, "_LATTICES_SHARE", 1.0)
    found = check(1, dn.SubsampledGaussian(2.0, 0.2, 4), "engines inside")
    assert {name for name, *_ in found.violations} == {"engines inside meet"}


def test_every_law_has_an_event_that_tells_the_worlds_apart():
    rng, best = np.random.default_rng(5), {}
    with mp.workdps(60):
        for kind in KINDS * 5:
            part = kind(rng)
            gains = [hit - out for (out, hit), _ in filter(None, (events(part, rng) for _ in range(12)))]
            assert all(-1 <= gain <= 1 for gain in gains), part
            best[type(part)] = max([*gains, best.get(type(part), 0)])
    assert len(best) == 10
    assert all(gain > 0 for gain in best.values()), best


def test_counted_events_are_binomial():
    event = mp.mpf("0.2"), mp.mpf("0.5")
    out, hit = at_least(event, 3, 2)
    assert float(out) == pytest.approx(3 * 0.04 * 0.8 + 0.008, rel=1e-14)
    assert float(hit) == pytest.approx(0.5, rel=1e-14)
    assert float(at_least(event, 3, 1)[0]) == pytest.approx(1 - 0.8**3, rel=1e-14)


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
    assert caught in {name for name, *_ in check(3, ONE_STEP, "every question").violations}


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


def test_told_batches_bound_the_truth_from_above():
    mechanism = dn.SubsampledGaussian(0.2, 1e-3, 20)
    known = told_the_batches(mechanism, 0.5)
    assert dn.tradeoff(mechanism).delta(0.5, "remove", "lower") <= known <= 1 - 0.999**20


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
