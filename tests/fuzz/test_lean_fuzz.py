"""``--laws lean`` reaches every law and check, counts what it stops, and finds bounds that are a little too low."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pytest

import deniable as dn
from fuzz import batch, menu
from fuzz.__main__ import main
from fuzz.checks import Ledger
from fuzz.laws import KINDS
from fuzz.lean import SAMPLERS, laws_of, lean_mechanism, sampler_of
from fuzz.mechanisms import shown

unix = pytest.mark.skipif(sys.platform == "win32", reason="children are forked")
SEEDS = range(60_000_000, 60_000_150)


class Lowered:
    """A curve all of whose answers, upper and lower, are too small by 1e-9 of themselves."""

    def __init__(self, of):
        self.of = of

    def __getattr__(self, name):
        return getattr(self.of, name)

    def inverse(self):
        return Lowered(self.of.inverse())

    def tpr(self, fpr, side="upper"):
        return np.asarray(self.of.tpr(fpr, side=side)) * (1 - 1e-9)

    def delta(self, epsilon, direction="both", side="upper"):
        return np.asarray(self.of.delta(epsilon, direction, side)) * (1 - 1e-9)

    def advantage(self, prior=0.5, side="upper"):
        return np.asarray(self.of.advantage(prior, side)) * (1 - 1e-9)


def test_every_law_sampler_and_check_is_drawn():
    seeds = range(900)
    laws = {name for seed in seeds for name in laws_of(lean_mechanism(seed))}
    assert len(laws) == 14, sorted(laws)
    assert len(KINDS) + 4 == len(laws)  # also steps of single records, Gaussian, pure and approximate parts
    assert {sampler_of(seed) for seed in seeds} == set(SAMPLERS)
    assert {menu.check_of(seed) for seed in seeds} == set(menu.CHECKS)
    for seed in range(60):
        assert lean_mechanism(seed) == eval(shown(lean_mechanism(seed)), {"dn": dn})


def _quick(seeds):
    names = ("Gaussian, pure and approximate parts", "few outcomes")
    return [seed for seed in seeds if sampler_of(seed) in names]


@pytest.mark.parametrize("check", ["attack", "two questions", "one question"])
def test_bounds_lowered_by_a_billionth_are_found(check, monkeypatch):
    """Both sides alike, so that lower ≤ upper does not tell: within the closed forms among 150 configurations."""
    seeds = [seed for seed in _quick(SEEDS) if menu.check_of(seed) == check]
    assert not any(menu.lean_check(seed, lambda _: None).violations for seed in seeds)
    true = dn.tradeoff
    monkeypatch.setattr(menu.dn, "tradeoff", lambda mechanism: Lowered(true(mechanism)))
    assert any(menu.lean_check(seed, lambda _: None).violations for seed in seeds)


@unix
def test_a_batch_stops_and_goes_on_behind_what_dies(monkeypatch):
    def ask(seed, report):
        ledger = Ledger()
        ledger.expect("odd seeds", seed != 3, "the seed", seed)
        if seed == 1:
            end = time.process_time() + 20
            while time.process_time() < end:
                pass
        if seed == 2:
            raise ValueError("an engine failed")
        if seed == 4:
            batch.signal.raise_signal(batch.signal.SIGKILL)
        return ledger

    rows = batch.configurations(range(6), 0.1, ask)
    assert [row["seed"] for row in rows] == list(range(6))
    assert [row["status"] for row in rows] == ["done", "stopped", "raised", "done", "died", "done"]
    assert [bool(row["violations"]) for row in rows] == [False, False, True, True, True, False]
    assert rows[3]["alone"] == "repeated"


@unix
def test_a_tally_counts_by_law_and_is_resumed(tmp_path, capsys):
    out = tmp_path / "fuzz.json"
    seed = _quick(SEEDS)[0]
    given = ["--laws", "lean", "--configs", "1", "--seed", str(seed), "--limit", "20", "--out", str(out)]
    assert main(given) == 0
    first = json.loads(out.read_text())
    assert (first["configurations"], first["statuses"], first["next_seed"]) == (1, {"done": 1}, seed + 1)
    assert first["by"]["sampler"] == {sampler_of(seed): {"done": 1}}
    assert batch.Tally.of(out).as_dict() == first
    resumed = batch.Tally.of(out)
    resumed.add({"seed": seed + 1, "status": "stopped", "seconds": 0.5, "counts": {}, "violations": []})
    found = resumed.as_dict()
    assert (found["configurations"], found["statuses"]["stopped"], found["next_seed"]) == (2, 1, seed + 2)
    assert "1 finished" in capsys.readouterr().out
