"""What must hold for every mechanism: the checks of one configuration."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath as mp
import numpy as np

import deniable as dn
from deniable import InputError
from deniable.curves.safe import faults_shown
from fuzz import inside, lattice
from fuzz.attacks import DIGITS, SMALLEST, Attack, attacks, told_the_batches
from fuzz.broad import BALL_SHARE, broad_mechanism, is_proven
from fuzz.laws import parts_of, random_law
from fuzz.lean import lean_mechanism
from fuzz.mechanisms import random_mechanism

_EPS = float(np.finfo(np.float64).eps)
ENGINES = ("inversion", "direct", "grid")
DRAWN: dict[str, Callable[[int], dn.mechanisms.Mechanism]] = {
    "gaussian": random_mechanism,
    "newer": random_law,
    "broad": broad_mechanism,
    "lean": lean_mechanism,
}
BALL = "configurations asked of ball arithmetic"


@dataclass(frozen=True)
class Plan:
    """How much one configuration is asked.

    Numbers of random false positive rates, thresholds ε, priors and δ; of questions (None: all), of attacks and of
    quantities that they are compared by; shares of configurations for which answers are asked for again (the other way
    round, from another object), and other engines, engines inside (all of them, the grid) and the lattice are asked.
    """

    rates: tuple[int, int]  # small, close to 1
    epsilons: tuple[int, int, int]
    priors: int
    deltas: int
    questions: int | None
    attacks: int
    ways: int
    again: float
    engines: float
    inside: float = 0.0
    grid: float = 0.0
    lattice: float = 0.0


FULL = Plan((5, 1), (3, 2, 1), 2, 2, None, 12, 3, again=1.0, engines=0.02)
BROAD = Plan((2, 1), (1, 2, 0), 1, 1, 3, 3, 1, again=0.25, engines=0.0, inside=0.5, grid=0.02, lattice=0.2)
LEAN = Plan((2, 1), (1, 2, 0), 1, 1, 2, 2, 1, again=0.1, engines=0.0, inside=0.1, lattice=0.02)
PLANS = {"gaussian": FULL, "newer": FULL, "broad": BROAD, "lean": LEAN}


@dataclass
class Ledger:
    """Counts of checks, and what failed: (check, what was asked, what came out)."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[str, str, str]] = field(default_factory=list)

    def expect(self, name: str, fine: Any, asked: str, *found: Any) -> None:
        self.counts[name] += 1
        if not bool(np.all(fine)):
            self.violations.append((name, asked, ", ".join(repr(x) for x in found)))


@dataclass(frozen=True)
class Bracket:
    """Lower and upper bounds at some points."""

    low: np.ndarray
    high: np.ndarray


def check(
    seed: int,
    report: Callable[[Any], None],
    oracle: str = "sometimes",
    mechanism: dn.mechanisms.Mechanism | None = None,
    laws: str = "gaussian",
) -> Ledger:
    """Ask a mechanism (that of ``seed``) for everything, in an order that depends on the seed; report between parts.

    An engine that fails raises here, where it would answer with the trivial bound.

    ``laws``: which mechanisms seeds stand for.
    ``oracle``: whether the ball engine is asked: "sometimes" (one seed in a hundred), "always" or "never".
    """
    warnings.simplefilter("error")
    with faults_shown():
        return _checked(seed, report, oracle, mechanism, laws)


def _checked(
    seed: int, report: Callable[[Any], None], oracle: str, mechanism: dn.mechanisms.Mechanism | None, laws: str
) -> Ledger:
    rng = np.random.default_rng([seed, 41])
    mechanism = DRAWN[laws](seed) if mechanism is None else mechanism
    ledger, plan = Ledger(), PLANS[laws]
    small, large = plan.rates
    fpr = np.sort(
        np.concatenate([10 ** rng.uniform(-15, 0, small), 1 - 10 ** rng.uniform(-6, -0.3, large), [0.0, 0.5, 1.0]])
    )
    far, near, tiny = plan.epsilons
    epsilon = np.sort(
        np.concatenate([rng.uniform(-20, 50, far), rng.uniform(-2, 4, near), 10 ** rng.uniform(-9, 0, tiny), [0.0]])
    )
    prior = np.sort(rng.uniform(0.001, 0.999, plan.priors))
    delta = 10 ** rng.uniform(-14, -0.5, plan.deltas)
    t = dn.tradeoff(mechanism)
    inverse = t.inverse()
    asked: dict[str, Callable[[], Bracket]] = {
        "tpr": lambda: _both(lambda side: t.tpr(fpr, side=side)),
        "tpr of a removed record": lambda: _both(lambda side: inverse.tpr(fpr, side=side)),
        "delta add": lambda: _both(lambda side: t.delta(epsilon, "add", side)),
        "delta remove": lambda: _both(lambda side: t.delta(-epsilon[::-1], "remove", side)),
        "advantage": lambda: _both(lambda side: t.advantage(prior, side)),
        "advantage at even prior": lambda: _both(lambda side: np.array([t.advantage(side=side)])),
        "epsilon": lambda: _both(lambda side: t.epsilon(delta, side=side)),
    }
    proven = oracle == "sometimes" and laws == "broad" and is_proven(seed, laws)
    names = list(asked)
    found: dict[str, Bracket] = {}
    for k in rng.permutation(len(names))[: None if proven else plan.questions]:
        name = names[k]
        found[name] = asked[name]()
        _sane(ledger, name, found[name], fpr if name.startswith("tpr") else None)
        report((ledger, f"after {name}"))
    _curves(ledger, found, fpr, epsilon)
    again = rng.random() < plan.again
    if again and "tpr" in found:
        _complements(ledger, found["tpr"], inverse, fpr)
    if again and "epsilon" in found:
        _epsilons(ledger, t, mechanism, found["epsilon"], delta)
    report((ledger, "after ε"))
    _attacks(ledger, mechanism, t, inverse, rng, plan)
    if "delta add" in found:
        _told(ledger, mechanism, found["delta add"], epsilon)
    report((ledger, "after attacks"))
    if rng.random() < plan.lattice:
        _lattice(ledger, mechanism, t, rng)
        report((ledger, "after the lattice"))
    if rng.random() < plan.inside:
        _inside(ledger, t, fpr, epsilon, rng, plan.grid)
        report((ledger, "after engines inside"))
    others = [name for name in ENGINES if rng.random() < plan.engines]
    sometimes = oracle == "sometimes" and laws != "broad" and rng.random() < BALL_SHARE
    if oracle == "always" or proven or sometimes:
        others.append("ball")
    for engine in others:
        _engine(ledger, engine, mechanism, found, fpr, epsilon, rng)
        report((ledger, f"after engine {engine}"))
    return ledger


def _both(ask: Callable[[str], Any]) -> Bracket:
    return Bracket(np.asarray(ask("lower"), dtype=float), np.asarray(ask("upper"), dtype=float))


def _sane(ledger: Ledger, name: str, found: Bracket, fpr: np.ndarray | None) -> None:
    ledger.expect("no NaN", ~np.isnan(found.low) & ~np.isnan(found.high), name, found.low, found.high)
    ledger.expect("lower ≤ upper", found.low <= found.high, name, found.low, found.high)
    if name != "epsilon":
        ledger.expect("in range", (found.low >= 0) & (found.high <= 1), name, found.low, found.high)
    if fpr is not None:
        ledger.expect("TPR ≥ FPR", found.high >= fpr, name, fpr, found.high)


def _curves(ledger: Ledger, found: dict[str, Bracket], fpr: np.ndarray, epsilon: np.ndarray) -> None:
    """What holds between the answers that were asked for."""
    gamma = np.exp(epsilon)
    add, dual = found.get("delta add"), found.get("delta remove")  # the latter at −ε, in descending order of −ε
    if add is not None and dual is not None:
        mirrored = Bracket(1 - gamma + gamma * dual.low[::-1], 1 - gamma + gamma * dual.high[::-1])
        slack = 8 * _EPS * (1 + gamma) + 4 * _EPS * np.abs(epsilon) * gamma  # of this line's own arithmetic
        meets = (mirrored.low - slack <= add.high) & (add.low <= mirrored.high + slack)
        ledger.expect("H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P)", meets, f"ε={epsilon!r}", add, mirrored)
        ledger.expect("H_γ ≥ 1 − γ", add.high >= 1 - gamma - slack, f"ε={epsilon!r}", add.high)
    for rates, hockey_sticks, way in (
        (found.get("tpr"), add, "add"),
        (found.get("tpr of a removed record"), dual, "remove"),
    ):
        factor = gamma if way == "add" else np.exp(-epsilon[::-1])
        if rates is not None:
            ledger.expect("concave ROC", _concave(fpr, rates), f"{way}, fpr={fpr!r}", rates.low, rates.high)
            ledger.expect("rising ROC", np.maximum.accumulate(rates.low) <= rates.high, f"{way}, fpr={fpr!r}", rates)
        if hockey_sticks is not None:
            _falling(ledger, hockey_sticks, factor, way)
        if rates is not None and hockey_sticks is not None:
            line = np.multiply.outer(fpr, factor) + hockey_sticks.high
            fine = rates.low[:, None] <= line * (1 + 8 * _EPS)
            asked = f"{way}, fpr={fpr!r}, ε={epsilon!r}"
            ledger.expect("TPR(α) ≤ γα + H_γ", fine, asked, rates.low, hockey_sticks.high)
    even = found.get("advantage at even prior")
    if even is not None and add is not None:
        one = int(np.flatnonzero(epsilon == 0)[0])
        same = (even.low[0] <= add.high[one]) & (add.low[one] <= even.high[0])
        ledger.expect("advantage = H_1", same, "ε=0", even, add)


def _falling(ledger: Ledger, hockey_sticks: Bracket, gamma: np.ndarray, way: str) -> None:
    turned = Bracket(-hockey_sticks.high, -hockey_sticks.low)
    asked = f"{way}, γ={gamma!r}"
    ledger.expect("convex H", _concave(gamma, turned), asked, hockey_sticks.low, hockey_sticks.high)
    falls = np.maximum.accumulate(hockey_sticks.low[::-1])[::-1] <= hockey_sticks.high
    ledger.expect("falling H", falls, asked, hockey_sticks.low, hockey_sticks.high)


def _concave(x: np.ndarray, y: Bracket) -> bool:
    """No upper bound lies below a chord of lower bounds."""
    for i in range(len(x)):
        for k in range(i + 2, len(x)):
            if not x[k] > x[i]:
                continue
            share = (x[i + 1 : k] - x[i]) / (x[k] - x[i])
            chord = y.low[i] * (1 - share) + y.low[k] * share
            if np.any(chord > y.high[i + 1 : k] + 16 * _EPS * (abs(y.low[i]) + abs(y.low[k]))):
                return False
    return True


def _complements(ledger: Ledger, rates: Bracket, inverse: dn.Tradeoff, fpr: np.ndarray) -> None:
    """The complement of a test of one direction is a test of the other."""
    missed = np.clip(np.nextafter(1 - rates.low, 2), 0, 1)
    reached = np.asarray(inverse.tpr(missed))
    fine = reached >= 1 - fpr - 4 * _EPS
    ledger.expect("complement of a test, upper", fine, f"inverse().tpr({missed!r})", reached, 1 - fpr)
    open_ = rates.high < 1
    missed = np.clip(np.nextafter(1 - rates.high[open_], -1), 0, 1)
    reached = np.asarray(inverse.tpr(missed, side="lower"))
    fine = reached <= 1 - fpr[open_] + 4 * _EPS
    ledger.expect("complement of a test, lower", fine, f"inverse().tpr({missed!r}, 'lower')", reached, 1 - fpr[open_])


def _epsilons(
    ledger: Ledger, t: dn.Tradeoff, mechanism: dn.mechanisms.Mechanism, found: Bracket, delta: np.ndarray
) -> None:
    fresh = dn.tradeoff(mechanism)
    for low, high, wanted in zip(found.low, found.high, delta, strict=True):
        if math.isfinite(high):
            kept = float(t.delta(high))
            ledger.expect("delta(epsilon(δ)) ≤ δ, same object", kept <= wanted, f"epsilon({wanted!r})", high, kept)
            again = float(fresh.delta(high, side="lower"))
            ledger.expect("δ at ε, another object, lower side", again <= wanted, f"epsilon({wanted!r})", high, again)
        if 0 < low < math.inf:  # ε is at least 0, whatever lies below
            again = float(fresh.delta(np.nextafter(low, -np.inf)))
            fine = again >= wanted
            ledger.expect("δ below ε, another object, upper side", fine, f"epsilon({wanted!r}, 'lower')", low, again)


def _attacks(
    ledger: Ledger,
    mechanism: dn.mechanisms.Mechanism,
    t: dn.Tradeoff,
    inverse: dn.Tradeoff,
    rng: np.random.Generator,
    plan: Plan,
) -> None:
    points = attacks(mechanism, rng, plan.attacks)
    with mp.workdps(DIGITS):
        chosen = [points[k] for k in rng.permutation(len(points))[:8]]
        if not chosen:
            return
        even = mp.mpf(t.advantage())
        for point in points:
            gain = point.tpr - point.fpr
            ledger.expect(
                "attack, advantage", gain <= even, f"{point.name}, advantage()", float(even), mp.nstr(gain, 20)
            )
        ways = (_attacked_rates, _attacked_complements, _attacked_hockey_sticks)
        for k in np.sort(rng.permutation(len(ways))[: plan.ways]):
            ways[k](ledger, chosen, t, inverse, rng)


def _attacked_rates(
    ledger: Ledger, chosen: list[Attack], t: dn.Tradeoff, inverse: dn.Tradeoff, rng: np.random.Generator
) -> None:
    fpr = np.array([_up(point.fpr) for point in chosen])
    bound = np.asarray(t.tpr(fpr))
    for point, rate, limit in zip(chosen, fpr, bound, strict=True):
        ledger.expect(
            "attack, TPR", point.tpr <= mp.mpf(limit), f"{point.name}, tpr({rate!r})", limit, mp.nstr(point.tpr, 20)
        )


def _attacked_complements(
    ledger: Ledger, chosen: list[Attack], t: dn.Tradeoff, inverse: dn.Tradeoff, rng: np.random.Generator
) -> None:
    dual = [point for point in chosen if 1 - point.tpr > SMALLEST]
    missed = np.array([_up(1 - point.tpr) for point in dual])
    bound = np.asarray(inverse.tpr(missed))
    for point, rate, limit in zip(dual, missed, bound, strict=True):
        fine = 1 - point.fpr <= mp.mpf(limit)
        asked, reached = f"{point.name}, inverse().tpr({rate!r})", mp.nstr(1 - point.fpr, 20)
        ledger.expect("attack, TPR of a removed record", fine, asked, limit, reached)


def _attacked_hockey_sticks(
    ledger: Ledger, chosen: list[Attack], t: dn.Tradeoff, inverse: dn.Tradeoff, rng: np.random.Generator
) -> None:
    near = [float(mp.log(max(p.tpr, mp.mpf(10) ** -300) / max(p.fpr, mp.mpf(10) ** -300))) for p in chosen]
    epsilon = np.clip(np.array(near) * rng.uniform(0, 1, len(near)), -20, 50)
    for way in ("add", "remove"):
        level = epsilon if way == "add" else -epsilon
        bound = np.asarray(t.delta(level, way))
        for point, eps, limit in zip(chosen, level, bound, strict=True):
            hit, false = (point.tpr, point.fpr) if way == "add" else (1 - point.fpr, 1 - point.tpr)
            gain = hit - mp.exp(mp.mpf(float(eps))) * false
            asked = f"{point.name}, delta({float(eps)!r}, {way!r})"
            ledger.expect("attack, δ", gain <= mp.mpf(limit), asked, limit, mp.nstr(gain, 20))


def _told(ledger: Ledger, mechanism: dn.mechanisms.Mechanism, found: Bracket, epsilon: np.ndarray) -> None:
    for eps, low in zip(epsilon, found.low, strict=True):
        known = told_the_batches(mechanism, float(eps))
        if known is not None:
            fine = mp.mpf(low) <= known
            ledger.expect(
                "lower ≤ told the batches", fine, f"delta({float(eps)!r}, 'add', 'lower')", low, mp.nstr(known, 20)
            )


def _lattice(ledger: Ledger, mechanism: dn.mechanisms.Mechanism, t: dn.Tradeoff, rng: np.random.Generator) -> None:
    """A lattice of losses of its own, for steps of single records and Gaussian parts."""
    phases = []
    for part in parts_of(mechanism):
        if isinstance(part, dn.SubsampledGaussian) and part.records_per_person == 1:
            phases.append(lattice.Phase(part.noise_multiplier, part.sample_rate, part.steps))
        elif isinstance(part, dn.GaussianDP) and 0 < part.mu < 4:
            phases.append(lattice.Phase(1 / part.mu, 1.0, 1))
        else:
            return
    epsilon = rng.uniform(-2, 15, 4)  # not where H bends, in less than a cell
    known = lattice.hockey_stick(phases, epsilon)
    if known is None:
        ledger.counts["lattice refused"] += 1
        return
    above, error = known
    found = _both(lambda side: t.delta(epsilon, "add", side))
    fine = (found.low <= above + error) & (above - error <= found.high)
    ledger.expect("lattice meets auto", fine, f"delta({epsilon!r}, 'add')", found, above, error)


def _inside(
    ledger: Ledger, t: dn.Tradeoff, fpr: np.ndarray, epsilon: np.ndarray, rng: np.random.Generator, grid: float
) -> None:
    """Every engine inside answers in numbers, and no two of their brackets miss each other."""
    way = "add" if rng.random() < 0.5 else "remove"
    for question, at in (("H", epsilon if way == "add" else -epsilon[::-1]), ("ROC", fpr[(fpr > 0) & (fpr < 1)])):
        low, high, who = np.full(at.shape, -np.inf), np.full(at.shape, np.inf), ""
        for name, engine in inside.engines(t):
            if name == inside.GRID and rng.random() > grid:
                continue
            below, above = inside.bracket(engine, question, at, way)
            asked = f"{name}{who}: {question} at {at!r}, {way}"
            ledger.expect("no NaN inside", ~np.isnan(below) & ~np.isnan(above), asked, below, above)
            below, above = np.where(np.isnan(below), 0.0, below), np.where(np.isnan(above), 1.0, above)
            meets = (below <= above) & (below <= high) & (low <= above)
            ledger.expect("engines inside meet", meets, asked, below, above, low, high)
            low, high, who = np.maximum(low, below), np.minimum(high, above), f" beside {name}{who}"


def _engine(
    ledger: Ledger,
    engine: str,
    mechanism: dn.mechanisms.Mechanism,
    found: dict[str, Bracket],
    fpr: np.ndarray,
    epsilon: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Refused mechanisms are counted: by any question, as ball arithmetic sees some only when it sums."""
    try:
        _engine_asked(ledger, engine, mechanism, found, fpr, epsilon, rng)
    except InputError:
        ledger.counts[f"engine {engine} refused"] += 1


def _engine_asked(
    ledger: Ledger,
    engine: str,
    mechanism: dn.mechanisms.Mechanism,
    found: dict[str, Bracket],
    fpr: np.ndarray,
    epsilon: np.ndarray,
    rng: np.random.Generator,
) -> None:
    other = dn.tradeoff(mechanism, engine=engine)

    def meets(known: Bracket, question: str, ask: Callable[[str], Any]) -> None:
        second = _both(ask)
        where = f"engine={engine!r}, {question}"
        ledger.expect(f"engine {engine} meets auto", _meet(known, second), where, known, second)

    some = np.sort(rng.permutation(len(epsilon))[:3])
    for way, place, at in (("add", epsilon[some], some), ("remove", -epsilon[some], len(epsilon) - 1 - some)):
        if f"delta {way}" in found:
            known = _taken(found[f"delta {way}"], at)
            meets(known, f"delta({place!r}, {way!r})", lambda side, way=way, place=place: other.delta(place, way, side))
    if "advantage at even prior" in found:
        meets(found["advantage at even prior"], "advantage()", lambda side: np.array([other.advantage(side=side)]))
    if "tpr" in found:
        some = np.sort(rng.permutation(len(fpr))[:3])
        meets(_taken(found["tpr"], some), f"tpr({fpr[some]!r})", lambda side: other.tpr(fpr[some], side=side))
    if engine == "ball":
        ledger.counts[BALL] += 1


def _taken(found: Bracket, places: np.ndarray) -> Bracket:
    return Bracket(found.low[places], found.high[places])


def _meet(one: Bracket, other: Bracket) -> np.ndarray:
    return (one.low <= other.high) & (other.low <= one.high)


def _up(value: mp.mpf) -> float:
    """The float next above a probability."""
    near = float(value)
    return min(max(near if mp.mpf(near) >= value else math.nextafter(near, 2.0), 0.0), 1.0)
