"""One check a configuration, drawn at random: what ``--laws lean`` asks, a question or two of the library each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

import deniable as dn
from deniable.curves.safe import faults_shown
from fuzz import checks
from fuzz.attacks import DIGITS, attacks
from fuzz.broad import is_proven
from fuzz.checks import Bracket, Ledger
from fuzz.lean import lean_mechanism

_EPSILON_SHARE = 0.25  # of the draws of one question: ε is the slowest
_SHARES = {
    "attack": 0.36,
    "one question": 0.2,
    "two questions": 0.2,
    "δ(ε)": 0.04,
    "engines inside": 0.07,
    "complement": 0.05,
    "another order": 0.06,
    "lattice": 0.02,
}
CHECKS = tuple(_SHARES)
_PAIRS = (("delta add", "delta remove"), ("tpr", "delta add"), ("even", "delta add"), ("removed", "delta remove"))
_NAMES = {"even": "advantage at even prior", "removed": "tpr of a removed record"}


def check_of(seed: int) -> str:
    """The name of the check of ``seed``."""
    return _drawn(seed)[0]


def _drawn(seed: int) -> tuple[str, np.random.Generator]:
    rng = np.random.default_rng([seed, 43])
    shares = np.cumsum(list(_SHARES.values()))
    return CHECKS[int(np.searchsorted(shares, rng.random() * shares[-1]))], rng


class Asked:
    """A curve, what it is asked, and the answers so far."""

    def __init__(self, mechanism: dn.mechanisms.Mechanism, rng: np.random.Generator) -> None:
        self.mechanism, self.rng = mechanism, rng
        large = 1 - 10 ** rng.uniform(-6, -0.3, int(rng.random() < 0.3))
        self.fpr = np.sort(np.concatenate([10 ** rng.uniform(-15, 0, 2), large, [0.0, 1.0]]))
        far = rng.uniform(-20, 50, int(rng.random() < 0.5))
        self.epsilon = np.sort(np.concatenate([far, rng.uniform(-2, 4, 2), [0.0]]))
        self.delta = 10 ** rng.uniform(-14, -0.5, 1)
        self.prior = rng.uniform(0.001, 0.999, 1)
        self.t = dn.tradeoff(mechanism)
        self.inverse = self.t.inverse()

    def answer(self, name: str, t: Any = None) -> Bracket:
        t = self.t if t is None else t
        asked: dict[str, Callable[[str], Any]] = {
            "tpr": lambda side: t.tpr(self.fpr, side=side),
            "removed": lambda side: t.inverse().tpr(self.fpr, side=side),
            "delta add": lambda side: t.delta(self.epsilon, "add", side),
            "delta remove": lambda side: t.delta(-self.epsilon[::-1], "remove", side),
            "advantage": lambda side: t.advantage(self.prior, side),
            "even": lambda side: np.array([t.advantage(side=side)]),
            "epsilon": lambda side: t.epsilon(self.delta, side=side),
        }
        return checks._both(asked[name])

    def answers(self, ledger: Ledger, *names: str) -> None:
        """Ask in this order; check each answer and what holds between them."""
        found = {}
        for name in names:
            told = _NAMES.get(name, name)
            found[told] = self.answer(name)
            checks._sane(ledger, told, found[told], self.fpr if name in ("tpr", "removed") else None)
        checks._curves(ledger, found, self.fpr, self.epsilon)
        if "delta add" in found:
            checks._told(ledger, self.mechanism, found["delta add"], self.epsilon)


def lean_check(
    seed: int,
    report: Callable[[Any], None],
    oracle: str = "sometimes",
    mechanism: dn.mechanisms.Mechanism | None = None,
) -> Ledger:
    """Put the check of ``seed`` to its mechanism; a hundredth of the mechanisms are compared with ball arithmetic."""
    warnings.simplefilter("error")
    ledger = Ledger()
    with faults_shown():
        name, rng = _drawn(seed)
        drawn = lean_mechanism(seed) if mechanism is None else mechanism
        asked = Asked(drawn, rng)
        if oracle == "always" or (oracle == "sometimes" and mechanism is None and is_proven(seed, "lean")):
            found = {_NAMES.get(one, one): asked.answer(one) for one in ("tpr", "delta add", "delta remove", "even")}
            checks._engine(ledger, "ball", drawn, found, asked.fpr, asked.epsilon, rng)
        else:
            _ASKED[name](ledger, asked)
    report((ledger, "the end"))
    return ledger


def _attack(ledger: Ledger, asked: Asked) -> None:
    rng = asked.rng
    points = attacks(asked.mechanism, rng, 3)
    chosen = [points[k] for k in rng.permutation(len(points))[:4]]
    if not chosen:
        ledger.counts["no attack known"] += 1
        return
    with mp.workdps(DIGITS):
        ways = (checks._attacked_rates, checks._attacked_complements, checks._attacked_hockey_sticks)
        k = int(rng.integers(4))
        if k < 3:
            ways[k](ledger, chosen, asked.t, asked.inverse, rng)
            return
        even = asked.t.advantage()
        for point in chosen:
            gain = point.tpr - point.fpr
            text = f"{point.name}, advantage()"
            ledger.expect("attack, advantage", gain <= mp.mpf(even), text, even, mp.nstr(gain, 20))


def _one(ledger: Ledger, asked: Asked) -> None:
    names = ["tpr", "removed", "delta add", "delta remove", "advantage", "even"]
    names += ["epsilon"] if asked.rng.random() < _EPSILON_SHARE else []
    asked.answers(ledger, names[int(asked.rng.integers(len(names)))])


def _two(ledger: Ledger, asked: Asked) -> None:
    pair = _PAIRS[int(asked.rng.integers(len(_PAIRS)))]
    asked.answers(ledger, *(pair if asked.rng.random() < 0.5 else pair[::-1]))


def _kept(ledger: Ledger, asked: Asked) -> None:
    found = asked.answer("epsilon")
    checks._sane(ledger, "epsilon", found, None)
    checks._epsilons(ledger, asked.t, asked.mechanism, found, asked.delta)


def _inside(ledger: Ledger, asked: Asked) -> None:
    checks._inside(ledger, asked.t, asked.fpr, asked.epsilon, asked.rng, 0.02)


def _complement(ledger: Ledger, asked: Asked) -> None:
    found = asked.answer("tpr")
    checks._sane(ledger, "tpr", found, asked.fpr)
    checks._complements(ledger, found, asked.inverse, asked.fpr)


def _another_order(ledger: Ledger, asked: Asked) -> None:
    """Another object that is asked for something else before: brackets of one truth meet."""
    names = ["tpr", "delta add", "delta remove", "even"]
    first, second = (names[k] for k in asked.rng.permutation(len(names))[:2])
    fresh = dn.tradeoff(asked.mechanism)
    one = asked.answer(first)
    asked.answer(second, fresh)
    other = asked.answer(first, fresh)
    ledger.expect("another order of questions meets", checks._meet(one, other), f"{first} after {second}", one, other)


def _lattice(ledger: Ledger, asked: Asked) -> None:
    checks._lattice(ledger, asked.mechanism, asked.t, asked.rng)


_ASKED: dict[str, Callable[[Ledger, Asked], None]] = {
    "attack": _attack,
    "one question": _one,
    "two questions": _two,
    "δ(ε)": _kept,
    "engines inside": _inside,
    "complement": _complement,
    "another order": _another_order,
    "lattice": _lattice,
}
