"""What must hold for every mechanism: one check a configuration, drawn at random, a question or two of the library."""

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
from faults import faults_shown
from fuzz import inside, lattice
from fuzz.attacks import DIGITS, SMALLEST, Attack, attacks, told_the_batches
from fuzz.laws import parts_of
from fuzz.samplers import BALL_SAMPLER, random_mechanism, sampler_of

_EPS = float(np.finfo(np.float64).eps)
BALL = "configurations asked of ball arithmetic"
_EPSILON_SHARE = 0.25  # of the draws of one question: ε is the slowest
_LATTICES_SHARE = 0.02  # of the comparisons of engines inside
_SHARES = {
    "attack": 0.36, "one question": 0.2, "two questions": 0.15, "every question": 0.05, "δ(ε)": 0.04,
    "engines inside": 0.07, "complement": 0.05, "another order": 0.06, "lattice": 0.02,
}  # fmt: skip
CHECKS = tuple(_SHARES)
_PAIRS = (("delta remove", "delta add"), ("tpr", "delta remove"), ("even", "delta remove"), ("removed", "delta add"))
_NAMES = {"even": "advantage at even prior", "removed": "tpr of a removed record"}


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
            "delta remove": lambda side: t.delta(self.epsilon, "remove", side),
            "delta add": lambda side: t.delta(-self.epsilon[::-1], "add", side),
            "advantage": lambda side: t.advantage(self.prior, side),
            "even": lambda side: np.array([t.advantage(side=side)]),
            "epsilon": lambda side: t.epsilon(self.delta, side=side),
        }
        return _both(asked[name])

    def answers(self, ledger: Ledger, *names: str) -> None:
        """Ask in this order; check each answer and what holds between them."""
        found = {}
        for name in names:
            told = _NAMES.get(name, name)
            found[told] = self.answer(name)
            _sane(ledger, told, found[told], self.fpr if name in ("tpr", "removed") else None)
        _curves(ledger, found, self.fpr, self.epsilon)
        if "delta remove" in found:
            _told(ledger, self.mechanism, found["delta remove"], self.epsilon)


def check(seed: int, mechanism: dn.mechanisms.Mechanism | None = None, name: str = "", *, ball: bool = True) -> Ledger:
    """Put a check (that of ``seed``, or ``name``) to a mechanism (that of ``seed``); engines that fail raise.

    A hundredth of the mechanisms are drawn for ball arithmetic and compared with it where ``ball`` allows.
    """
    warnings.simplefilter("error")
    ledger = Ledger()
    with faults_shown():
        drawn, rng = _drawn(seed)
        asked = Asked(random_mechanism(seed) if mechanism is None else mechanism, rng)
        if name == BALL_SAMPLER or (not name and ball and mechanism is None and sampler_of(seed) == BALL_SAMPLER):
            _ball(ledger, asked)
        else:
            _ASKED[name or drawn](ledger, asked)
    return ledger


def _ball(ledger: Ledger, asked: Asked) -> None:
    """Ball arithmetic meets the curve; mechanisms that it refuses are counted: some only when it sums."""
    found = {one: asked.answer(one) for one in ("tpr", "delta remove", "delta add", "even")}
    try:
        other = dn.proof.enclosure(asked.mechanism)
        for name, known in found.items():
            second = asked.answer(name, other)
            ledger.expect("the proof meets the curve", _meet(known, second), f"proof, {name}", known, second)
        ledger.counts[BALL] += 1
    except InputError:
        ledger.counts["proof refused"] += 1


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
    remove, dual = found.get("delta remove"), found.get("delta add")  # the latter at −ε, in descending order of −ε
    if remove is not None and dual is not None:
        mirrored = Bracket(1 - gamma + gamma * dual.low[::-1], 1 - gamma + gamma * dual.high[::-1])
        slack = 8 * _EPS * (1 + gamma) + 4 * _EPS * np.abs(epsilon) * gamma  # of this line's own arithmetic
        meets = (mirrored.low - slack <= remove.high) & (remove.low <= mirrored.high + slack)
        ledger.expect("H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P)", meets, f"ε={epsilon!r}", remove, mirrored)
        ledger.expect("H_γ ≥ 1 − γ", remove.high >= 1 - gamma - slack, f"ε={epsilon!r}", remove.high)
    for rates, hockey_sticks, way in (
        (found.get("tpr"), remove, "remove"),
        (found.get("tpr of a removed record"), dual, "add"),
    ):
        factor = gamma if way == "remove" else np.exp(-epsilon[::-1])
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
    if even is not None and remove is not None:
        one = int(np.flatnonzero(epsilon == 0)[0])
        same = (even.low[0] <= remove.high[one]) & (remove.low[one] <= even.high[0])
        ledger.expect("advantage = H_1", same, "ε=0", even, remove)


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
    for way in ("remove", "add"):
        level = epsilon if way == "remove" else -epsilon
        bound = np.asarray(t.delta(level, way))
        for point, eps, limit in zip(chosen, level, bound, strict=True):
            hit, false = (point.tpr, point.fpr) if way == "remove" else (1 - point.fpr, 1 - point.tpr)
            gain = hit - mp.exp(mp.mpf(float(eps))) * false
            asked = f"{point.name}, delta({float(eps)!r}, {way!r})"
            ledger.expect("attack, δ", gain <= mp.mpf(limit), asked, limit, mp.nstr(gain, 20))


def _told(ledger: Ledger, mechanism: dn.mechanisms.Mechanism, found: Bracket, epsilon: np.ndarray) -> None:
    for eps, low in zip(epsilon, found.low, strict=True):
        known = told_the_batches(mechanism, float(eps))
        if known is not None:
            fine = mp.mpf(low) <= known
            ledger.expect(
                "lower ≤ told the batches", fine, f"delta({float(eps)!r}, 'remove', 'lower')", low, mp.nstr(known, 20)
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
    found = _both(lambda side: t.delta(epsilon, "remove", side))
    fine = (found.low <= above + error) & (above - error <= found.high)
    ledger.expect("lattice meets auto", fine, f"delta({epsilon!r}, 'remove')", found, above, error)


def _engines_meet(
    ledger: Ledger, t: dn.Tradeoff, fpr: np.ndarray, epsilon: np.ndarray, rng: np.random.Generator
) -> None:
    """Every engine inside answers in numbers, and no two of their brackets miss each other."""
    way = "remove" if rng.random() < 0.5 else "add"
    for question, at in (("H", epsilon if way == "remove" else -epsilon[::-1]), ("ROC", fpr[(fpr > 0) & (fpr < 1)])):
        low, high, who = np.full(at.shape, -np.inf), np.full(at.shape, np.inf), ""
        for name, engine in inside.engines(t):
            if name == inside.LATTICES and rng.random() > _LATTICES_SHARE:
                continue
            below, above = inside.bracket(engine, question, at, way)
            asked = f"{name}{who}: {question} at {at!r}, {way}"
            ledger.expect("no NaN inside", ~np.isnan(below) & ~np.isnan(above), asked, below, above)
            below, above = np.where(np.isnan(below), 0.0, below), np.where(np.isnan(above), 1.0, above)
            meets = (below <= above) & (below <= high) & (low <= above)
            ledger.expect("engines inside meet", meets, asked, below, above, low, high)
            low, high, who = np.maximum(low, below), np.minimum(high, above), f" beside {name}{who}"


def _meet(one: Bracket, other: Bracket) -> np.ndarray:
    return (one.low <= other.high) & (other.low <= one.high)


def _up(value: mp.mpf) -> float:
    """The float next above a probability."""
    near = float(value)
    return min(max(near if mp.mpf(near) >= value else math.nextafter(near, 2.0), 0.0), 1.0)


def _attacked(ledger: Ledger, asked: Asked) -> None:
    rng = asked.rng
    points = attacks(asked.mechanism, rng, 3)
    chosen = [points[k] for k in rng.permutation(len(points))[:4]]
    if not chosen:
        ledger.counts["no attack known"] += 1
        return
    with mp.workdps(DIGITS):
        ways = (_attacked_rates, _attacked_complements, _attacked_hockey_sticks)
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
    names = ["tpr", "removed", "delta remove", "delta add", "advantage", "even"]
    names += ["epsilon"] if asked.rng.random() < _EPSILON_SHARE else []
    asked.answers(ledger, names[int(asked.rng.integers(len(names)))])


def _every(ledger: Ledger, asked: Asked) -> None:
    names = ["tpr", "removed", "delta remove", "delta add", "advantage", "even", "epsilon"]
    asked.answers(ledger, *(names[k] for k in asked.rng.permutation(len(names))))


def _two(ledger: Ledger, asked: Asked) -> None:
    pair = _PAIRS[int(asked.rng.integers(len(_PAIRS)))]
    asked.answers(ledger, *(pair if asked.rng.random() < 0.5 else pair[::-1]))


def _kept(ledger: Ledger, asked: Asked) -> None:
    found = asked.answer("epsilon")
    _sane(ledger, "epsilon", found, None)
    _epsilons(ledger, asked.t, asked.mechanism, found, asked.delta)


def _inside(ledger: Ledger, asked: Asked) -> None:
    _engines_meet(ledger, asked.t, asked.fpr, asked.epsilon, asked.rng)


def _complement(ledger: Ledger, asked: Asked) -> None:
    found = asked.answer("tpr")
    _sane(ledger, "tpr", found, asked.fpr)
    _complements(ledger, found, asked.inverse, asked.fpr)


def _another_order(ledger: Ledger, asked: Asked) -> None:
    """Another object that is asked for something else before: brackets of one truth meet."""
    names = ["tpr", "delta remove", "delta add", "even"]
    first, second = (names[k] for k in asked.rng.permutation(len(names))[:2])
    fresh = dn.tradeoff(asked.mechanism)
    one = asked.answer(first)
    asked.answer(second, fresh)
    other = asked.answer(first, fresh)
    ledger.expect("another order of questions meets", _meet(one, other), f"{first} after {second}", one, other)


def _on_a_lattice(ledger: Ledger, asked: Asked) -> None:
    _lattice(ledger, asked.mechanism, asked.t, asked.rng)


_ASKED: dict[str, Callable[[Ledger, Asked], None]] = {
    "attack": _attacked,
    "one question": _one,
    "two questions": _two,
    "every question": _every,
    "δ(ε)": _kept,
    "engines inside": _inside,
    "complement": _complement,
    "another order": _another_order,
    "lattice": _on_a_lattice,
}
