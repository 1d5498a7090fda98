"""Bounds without an integral: the attacker is told in which steps the record would take part, or sees a bit per step.

From above: knowing the batches only helps him and makes the composed law Gaussian, N(0, 1) against N(√V, 1) with
V = μ² + Σ_j K_j/σ_j² when phase j takes the record K_j ~ Bin(T_j, q_j) times. By joint convexity H_γ ≤ E H_γ(N(0, 1),
N(√V, 1)), in either direction, and as H grows with V, laws of K are rounded up. Without Gaussian part the law of "never
taken" is that of "out", P = w·Q + (1 − w)·P′, which is exact where joint convexity is not:
H_γ(P‖Q) = (1 − w)·H_γ′(P′‖Q) with γ′ = (γ − w)/(1 − w), and H_γ(Q‖P) = (1 − γw)·H_γ″(Q‖P′) with
γ″ = γ(1 − w)/(1 − γw). For small noise the batches are all but visible, and the bound is nearly attained.

From below: whether a step's outcome exceeds a threshold is a post-processing, so that these bits bound every curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT, PRODUCT_EXPONENT
from deniable._search import bisect
from deniable.accounting.engines.participations import any_above, attacks, cases
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import (
    AnyDirection,
    Charged,
    Direction,
    Question,
    Side,
    Tradeoff,
    gaussian_hockey_stick,
)
from deniable.curves.answer import supplier
from deniable.curves.safe import ALL_BUT, TINY, no_information

_FAR = 1e4  # where ε is looked for first if all that is known is that it may be infinite
_BLOCK = 1 << 11  # thresholds at a time: 4 MB per array
_STEEPEST = 800.0  # |log γ| of tests: e^−745 is the least double
_BISECTIONS = 40  # of log γ for a false positive rate: only the width of the bound depends on how near it comes
_ANY_LIKELIHOODS = (1.5, 6.0, 20.0)  # the same where one such outcome settles the matter
_SIDES: tuple[Side, ...] = ("upper", "lower")
_KNOWN = "an attacker who is told the batches"


@dataclass(frozen=True, eq=False)
class KnownBatchesTradeoff(Tradeoff):
    """Upper bounds from a mixture of Gaussian pairs whose label is told; lower bounds from attacks.

    Attributes
    ----------
    squared, weight
        V of every Gaussian pair and its probability, both rounded up.
    revealed
        Probability of all other labels, which count as giving the record away.
    took
        Probability, rounded up, of the labels above; the rest is "never taken", the same law as "out".
    attacked
        The loss whose outcomes some attackers look at, which bounds the curve from below; without it nothing does.
    """

    squared: FloatArray
    weight: FloatArray
    revealed: float
    took: float = 1.0
    attacked: PrivacyLoss | None = None
    method: str = field(default=_KNOWN, kw_only=True)

    @cached_property
    def attacks(self) -> tuple[Tradeoff, ...]:
        """Trade-offs of what these attackers see."""
        return attacks(self.attacked) if self.attacked is not None else ()

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "lower":
            return _best([a._hockey_sticks(log_gamma, direction, side) for a in self.attacks], np.zeros_like(log_gamma))
        rise = np.expm1(log_gamma)  # γ − 1
        if direction == "add":
            steep = log_gamma - math.log(self.took) - 8 * EPS * np.abs(log_gamma)
            moved = np.log1p(np.maximum(rise / self.took - 8 * EPS * np.abs(rise) / self.took, -1.0))
            bound = self._mixture(np.where(log_gamma > PRODUCT_EXPONENT, steep, moved))
            return np.where(-rise < self.took, bound, -rise * (1 + 4 * EPS))
        scale = self.took * (rise + 1)
        share = scale - rise + 8 * EPS * (scale + np.abs(rise))  # 1 − γw
        moved = log_gamma + math.log(self.took) - np.log(np.maximum(share, 0.0))
        bound = self._mixture(moved - 8 * EPS * (np.abs(log_gamma) + np.abs(moved)))
        bound *= share / self.took * (1 + 8 * EPS)
        lost = (share > 0) & ~np.isfinite(bound)
        if lost.any():
            bound[lost] = self._mixture(log_gamma[lost]) + (1 - self.took) * np.maximum(-rise[lost], 0.0)
        return np.where(share > 0, bound, 0.0)

    def _mixture(self, log_gamma: FloatArray) -> FloatArray:
        """Upper bound on Σ weight·H_γ(N(0, 1), N(√V, 1)) + revealed, in either direction."""
        mu = np.sqrt(self.squared)[:, None] * (1 + 4 * EPS)
        bound = np.full_like(log_gamma, self.revealed)
        for start in range(0, log_gamma.size if mu.size else 0, _BLOCK):
            part = slice(start, start + _BLOCK)
            each = gaussian_hockey_stick(mu, log_gamma[part], "upper")
            terms = self.weight[:, None] * np.where(np.isfinite(each), each, 1.0)
            bound[part] += np.cumsum(terms, axis=0)[-1]  # one after the other, however many γ there are
        return bound * (1 + 4 * EPS * (self.weight.size + 1))

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "lower":
            return _best_rates([attack._rates(fpr, direction, side) for attack in self.attacks], fpr)
        # TPR ≤ γα + H_γ for every γ: best where the likelihood ratio tests of all labels make α together, or at γ = 1
        if fpr.size > _BLOCK:
            parts = np.split(fpr, range(_BLOCK, fpr.size, _BLOCK))
            return np.concatenate([self._roc(part, direction, side) for part in parts])
        never, mu = 1 - self.took, np.sqrt(self.squared)[:, None]

        def above(level: FloatArray) -> NDArray[np.bool_]:
            out, hit = (
                self.weight @ np.where(mu > 0, ndtr(-level / mu + moved), level < 0) for moved in (-mu / 2, mu / 2)
            )
            rate = out / self.took if direction == "add" else out + never * hit / self.took
            return np.asarray(rate > fpr)

        low, high = bisect(above, np.full_like(fpr, -_STEEPEST), _STEEPEST, halvings=_BISECTIONS)
        bound = np.ones_like(fpr)
        for level in (low, high, np.zeros_like(fpr)):
            if direction == "add":  # γ = w + (1 − w)·γ′
                log_gamma = np.logaddexp(math.log(never) if never > 0 else -np.inf, level + math.log(self.took))
            else:
                log_gamma = level - np.logaddexp(math.log(self.took), level + (math.log(never) if never else -np.inf))
            line = np.where(fpr > 0, np.exp(log_gamma) * fpr * (1 + 8 * EPS), 0.0)
            bound = np.fmin(bound, (line + self._hockey_sticks(log_gamma, direction, side)) * (1 + 4 * EPS))
        return np.where(fpr == 1, 1.0, bound)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method, "attackers who see one bit per step" if self.attacks else "trivial bound")

    def _largest_log_ratio(self, direction: Direction) -> float:
        return math.inf if self.attacked is None else self.attacked.largest_log_ratio(direction, "upper")

    def _least_log_ratio(self, direction: Direction) -> float:
        return 0.0 if self.attacked is None else self.attacked.largest_log_ratio(direction, "lower")


@dataclass(frozen=True, eq=False)
class SharpTradeoff(Tradeoff):
    """Phases with next to no noise beside others: one that hardly ever takes the record costs what it leaks, no more.

    From above the smaller of two: all batches are told; or the sharp phases give the record away if they ever take it
    and are the same law as "out" if they do not, H_γ ≤ took + (1 − took)·H_{γ/(1 − took)}(rest) and
    H_γ(Q‖P) ≤ H_{γ(1 − took)}(rest). From below the larger of what the sharp phases and the rest reach alone, and of
    the attacker who accuses at any outcome above a threshold, and else tests the rest.

    Attributes
    ----------
    known_batches
        Bounds from all phases together.
    rest
        The trade-off without the sharp phases.
    took
        Probability that the sharp phases ever take the record, rounded up.
    seen
        For a few thresholds, the probability that a sharp step exceeds it, "in" rounded down and "out" up.
    """

    known_batches: KnownBatchesTradeoff
    rest: Tradeoff
    took: float
    seen: tuple[tuple[float, float], ...]
    method: str = field(default="phases with next to no noise apart from the others", kw_only=True)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        known = self.known_batches._hockey_sticks(log_gamma, direction, side)
        if side == "lower":
            alone = self.rest._hockey_sticks(log_gamma, direction, side)
            return _best([known, alone, *(self._seen(log_gamma, direction, *pair) for pair in self.seen)], known)
        open_ = known > np.maximum(no_information(log_gamma, side), TINY)  # elsewhere the others need not be asked
        if open_.any():
            known[open_] = np.minimum(known[open_], self._apart(log_gamma[open_], direction))
        return known

    def _apart(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """Upper bound from the other phases, where the sharp ones give the record away if they ever take it."""
        if direction == "add" and self.took == 1:
            return np.ones_like(log_gamma)
        never = math.log1p(-self.took) if self.took < 1 else -math.inf
        moved = log_gamma + (-never if direction == "add" else never) - 8 * EPS * (np.abs(log_gamma) + abs(never))
        rest = self.rest._hockey_sticks(moved, direction, "upper")
        return (self.took + (1 - self.took) * rest) * (1 + 8 * EPS) if direction == "add" else rest

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        known = self.known_batches._charged(question, at, direction)
        candidates = (("known", self.known_batches), ("apart", self))
        above, below = (supplier(candidates, question, at, direction, side)[0] for side in _SIDES)
        rest = self.rest._charged(question, at, direction)
        apart = f"phases with next to no noise apart; the others: {rest.engine}"
        lower = f"phases with next to no noise apart; the others: {rest.lower_engine or rest.engine}"
        return Charged(known.engine if above == "known" else apart, known.lower_engine if below == "known" else lower)

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """The smaller of what an attacker has who is told the batches, and what the other phases leak."""
        _, near = self.known_batches._epsilon_bracket(delta, direction, "upper")
        near = np.where(np.isfinite(near), near, _FAR)
        step = 1e-3 + 0.3 * np.abs(near)
        left = (delta - self.took) / max(1 - self.took, EPS) if direction != "remove" else delta
        small = np.flatnonzero(left > 0)
        if small.size:
            try:
                apart, moved = self.rest._epsilon_near(left[small], direction)
            except TooSlowError:
                return near, step
            better = np.isfinite(apart) & (apart < near[small])
            near[small], step[small] = np.where(better, apart, near[small]), np.where(better, moved, step[small])
        return near, step

    def _seen(self, log_gamma: FloatArray, direction: Direction, hit: float, false: float) -> FloatArray:
        """Lower bound: any outcome above the threshold counts as one test, else the rest is looked at."""
        none = math.log1p(-hit) - math.log1p(-false)
        slack = 8 * EPS * (np.abs(log_gamma) + abs(none) + 1)
        gamma = np.exp(np.minimum(log_gamma, MOST_EXPONENT))
        if direction == "add":
            settled = np.where(log_gamma < MOST_EXPONENT, hit - gamma * false * (1 + 4 * EPS), 0.0)
            left = (1 - hit) * self.rest._hockey_sticks(log_gamma - none + slack, direction, "lower")
        else:
            settled = np.zeros_like(gamma)
            left = (1 - false) * self.rest._hockey_sticks(log_gamma + none + slack, direction, "lower")
        return left * (1 - 8 * EPS) + np.maximum(settled, 0.0) * (1 - 8 * EPS)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        known = self.known_batches._rates(fpr, direction, side)
        if side == "lower":
            if direction == "add":  # where any outcome above a threshold settles it, the others need not be asked
                for hit, false in self.seen:
                    known = np.maximum(known, np.where(fpr >= false, hit * (1 - 8 * EPS), 0.0))
                open_ = known < 1 - ALL_BUT
                if not open_.all():
                    if open_.any():
                        known[open_] = self._roc(fpr[open_], direction, side)
                    return known
            bounds = [known, self.rest._rates(fpr, direction, side)]
            for hit, false in self.seen:
                if direction == "add":
                    left = np.clip((fpr - false) / (1 - false) * (1 - 8 * EPS), 0.0, 1.0)
                    found = hit + (1 - hit) * self.rest._rates(left, direction, side)
                    bounds.append(np.where(fpr >= false, found * (1 - 8 * EPS), fpr))
                else:
                    left = np.clip(fpr / (1 - hit) * (1 - 8 * EPS), 0.0, 1.0)
                    bounds.append((1 - false) * self.rest._rates(left, direction, side) * (1 - 8 * EPS))
            return _best_rates(bounds, fpr)
        if direction == "add":
            if self.took >= 1 - ALL_BUT:
                return known
            found = self.took + (1 - self.took) * self.rest._rates(fpr, direction, side)
            return np.minimum(known, found * (1 + 8 * EPS))
        left = np.where(fpr > 0, fpr / (1 - self.took) * (1 + 8 * EPS), 0.0)
        return np.minimum(known, self.rest._rates(np.minimum(left, 1.0), direction, side))

    def _cheap_rates(self, fpr: FloatArray, direction: Direction) -> FloatArray:
        return self.rest._cheap_rates(fpr, direction)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.known_batches._largest_log_ratio(direction)

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.known_batches._least_log_ratio(direction)


def known_batches(loss: PrivacyLoss, attacks: bool = False) -> KnownBatchesTradeoff:
    """Return upper bounds for a composed loss, with ``attacks`` lower ones.

    Randomised responses reveal the record to the one attacker and are not looked at by the others.
    """
    if loss.randomized_responses:
        return KnownBatchesTradeoff(np.zeros(0), np.zeros(0), 1.0, 1.0, loss if attacks else None)
    return KnownBatchesTradeoff(*cases(loss), *_never(loss), loss if attacks else None)


def with_sharp_phases(loss: PrivacyLoss, sharpest: float, rest: Callable[[PrivacyLoss], Tradeoff]) -> Tradeoff:
    """Return the trade-off of a loss with phases of noise below ``sharpest``; ``rest`` gives that of the others."""
    known = known_batches(loss, attacks=True)
    sharp = loss.noise < sharpest
    if sharp.all() and not loss.randomized_responses and loss.gaussian == 0:
        return known
    others, alone = loss.phases(~sharp), replace(loss.phases(sharp), gaussian=0.0, randomized_responses=())
    pairs = (any_above(alone, likelihood) for likelihood in _ANY_LIKELIHOODS)
    seen = tuple(pair for pair in pairs if pair is not None)
    return SharpTradeoff(known, rest(others), _took(alone), seen)


def _best(bounds: Sequence[FloatArray], trivial: FloatArray) -> FloatArray:
    found: FloatArray = np.max([trivial, *bounds], axis=0)
    return found


def _best_rates(bounds: Sequence[FloatArray], fpr: FloatArray) -> FloatArray:
    """The laws have the same null sets, so that nothing is found at FPR 0, where a test's rate may have underflowed."""
    return np.where(fpr > 0, _best(bounds, fpr), 0.0)


def _took(loss: PrivacyLoss) -> float:
    """Probability that the record is ever taken, rounded up."""
    never = math.fsum(t * math.log1p(-q) for t, q in zip(loss.steps, loss.rate, strict=True))
    return min(-math.expm1(never) * (1 + 16 * EPS), 1.0)


def _never(loss: PrivacyLoss) -> tuple[float]:
    return (_took(loss) if loss.gaussian == 0 else 1.0,)
