"""Steps of little noise beside quieter ones: an exact sum over what is seen of them, a known curve for the rest.

The loss of a sharp step that takes the record is large and spread over tens of nats, so that no line serves it and the
bulk together. Its law in cells (:mod:`deniable.accounting.engines.step_cells`) is a finite law from above and one from
below; with outcome b of log-ratio l_b beside a loss whose tails are known, H_γ = Σ_b P_b·H(log γ − l_b), and the test
"the whole loss is above λ" has the rates Σ_b Q_b·out(L > λ − l_b) and Σ_b P_b·in(L > λ − l_b).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._kept import Kept
from deniable._search import bisect
from deniable.accounting.engines.beside_finite import BesideFiniteTradeoff, line
from deniable.accounting.engines.guess import threshold_guesses
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.engines.step_cells import first_end, shown
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.finite_law import TINY_MASS, FiniteLaw
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import OPPOSITE, Charged, Direction, Question, Side

_SHARP = 0.3  # noise multipliers below may stand apart
_RARE = 0.05  # so often at most the record takes part in their steps
_MOST_PHASES = 4
_FEW = 64  # other steps, of which lines converge slowly
_LEAST_NOISE = 0.1  # of the others
_NOTHING = 1e-7, 1e-16  # hockey sticks below are bounded by Chernoff's inequality: of rare and of likely outcomes
_LIKELY = 0.01
_NEWTON, _CLOSE = 8, 1e-9  # corrections of λ, and the error of the logarithm of a rate that is near enough
_ROUGH = 1e-3  # errors of rates in the first ones
_HALVINGS, _DEEPEST = 40, 60.0  # of λ, and log-odds of guessed rates
_LADDER = np.geomspace(0.05, 1e4, 240)  # of thresholds, in units of the spread


@dataclass(frozen=True, eq=False)
class BesideStepsTradeoff(BesideFiniteTradeoff):
    """Cells of sharp steps beside a loss whose tails are known."""

    rest: InvertedTradeoff
    method: str = field(default="sharp steps in cells beside others, summed outcome by outcome", kw_only=True)
    _levels: Kept[tuple[Direction, bytes], FloatArray] = field(default_factory=Kept, repr=False)

    @cached_property
    def _far(self) -> tuple[Far, Far]:
        """Where the rest's tails are small, above and below, in the order in which it is asked."""
        inverted = self.rest
        ladder = _LADDER * inverted._landmarks[3]
        ends = (Far.of(inverted, ladder, way) for way in (self.way, OPPOSITE[self.way]))
        return next(ends), next(ends)

    def _near(self, place: FloatArray, law: FiniteLaw) -> NDArray[np.bool_]:
        """What is asked one by one: likely outcomes always, rare ones where the rest's tails are not small."""
        above, below = self._far
        likely = (np.maximum(law.p, law.q) > _LIKELY).astype(np.intp)
        return (place < above.starts[likely]) & (place > -below.starts[likely])

    def _hockey_sticks_of_rest(self, level: FloatArray, side: Side) -> FloatArray:
        above, below = self._far
        found = np.zeros(level.shape)
        near = self._near(level, self.above if side == "upper" else self.below)
        found[near] = self.rest._hockey_sticks(level[near], self.way, side)
        low, high = ~near & (level < 0), ~near & (level > 0)
        sure = -np.expm1(level[low])
        if side == "lower":
            found[low] = sure * (1 - 4 * EPS)
            return found
        found[high] = above.hockey_stick(level[high])
        # H_γ = 1 − γ + γ·H_{1/γ} of the other order
        found[low] = sure * (1 + 4 * EPS) + np.exp(level[low]) * below.hockey_stick(-level[low]) * (1 + 64 * EPS)
        return found

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if direction == "remove":
            return self._swapped._roc(fpr, "add", side)
        inside, bound = (fpr > 0) & (fpr < 1), fpr.copy() if side == "lower" else np.ones_like(fpr)
        if not inside.any():
            return bound
        try:
            level = self._levels((self.way, fpr[inside].tobytes()), lambda: self._refined(fpr[inside]))
            if side == "lower":
                found = self._tested(level, fpr[inside])
            else:
                found = np.minimum(line(level, fpr[inside]) + self._hockey_stick(level, "add", "upper"), 1.0)
        except TooSlowError:  # the rest is out of reach
            return bound
        bound[inside] = found
        return bound

    def _refined(self, alpha: FloatArray) -> FloatArray:
        """About the λ at which the test has these false positive rates: nothing is claimed of it."""
        law, sign = self.below, 1.0 if self.way == "add" else -1.0
        inverted = self.rest
        log_odds = np.linspace(-_DEEPEST, _DEEPEST / 2, 300)
        guess = threshold_guesses(inverted.loss.truncation, expit(log_odds), self.way)
        if guess is None:
            return np.zeros_like(alpha)
        order = np.argsort(sign * guess)
        x, y = sign * guess[order], np.minimum.accumulate(log_odds[order])

        def too_many(level: FloatArray) -> NDArray[np.bool_]:
            rates = expit(np.interp(np.subtract.outer(level, law.log_ratio), x, y, right=-np.inf, left=np.inf))
            return np.asarray(rates @ law.q > alpha)

        low = np.full(alpha.shape, float(x[0] + law.log_ratio[0]))
        level, _ = bisect(too_many, low, float(x[-1] + law.log_ratio[-1]), halvings=_HALVINGS)
        best, nearest = level, np.full(alpha.shape, np.inf)
        low, high = np.full(alpha.shape, -np.inf), np.full(alpha.shape, np.inf)
        for _ in range(_NEWTON):
            rate, _, density = self._rates_at(level, _ROUGH if np.min(nearest) > _ROUGH else 0.0)
            gap = np.log(rate / alpha)
            better = np.abs(gap) < nearest
            best, nearest = np.where(better, level, best), np.where(better, np.abs(gap), nearest)
            if np.all(nearest < _CLOSE):
                break
            low, high = np.where(gap > 0, level, low), np.where(gap > 0, high, level)
            with np.errstate(all="ignore"):
                step = np.clip(gap * rate / density, -1.0, 1.0)
            moved = level + np.where(np.isfinite(step), step, 0.0)
            between = np.where(np.isfinite(high - low), (low + high) / 2, moved)
            level = np.where((moved > low) & (moved < high), moved, between)
        return best

    def _tested(self, level: FloatArray, alpha: FloatArray) -> FloatArray:
        """TPR of the test at λ, mixed with "never accuse" if its false positive rate may exceed α."""
        rate, hit, _ = self._rates_at(level)
        with np.errstate(divide="ignore"):
            share = np.minimum(alpha * (1 - 4 * EPS) / rate, 1.0)
        return share * np.maximum(hit, 0.0)

    def _rates_at(self, level: FloatArray, good: float = 0.0) -> tuple[FloatArray, FloatArray, FloatArray]:
        """False positive rates of the tests at λ, rounded up, true ones, rounded down, and densities."""
        law, (above, below) = self.below, self._far
        sign, wanted = (1.0, "out_above") if self.way == "add" else (-1.0, "in_below")
        place = np.subtract.outer(level, law.log_ratio)
        near = self._near(place, law)
        tails = self.rest._tails(sign * place[near], wanted, good)
        rates, hits, densities = np.zeros((3, *place.shape))
        rate, hit, rate_error, hit_error, _, _ = tails.test(self.way)
        rates[near], hits[near] = np.minimum(rate + rate_error, 1.0), np.maximum(hit - hit_error, 0.0)
        densities[near] = tails.out_density if self.way == "add" else tails.in_density
        low, high = ~near & (place < 0), ~near & (place > 0)
        # what the other order of the worlds takes for false is missed in this one
        rates[low], hits[low], rates[high] = 1.0, 1 - below.false(-place[low]), above.false(place[high])
        error = law.relative_error + 64 * EPS
        return (rates @ law.q) * (1 + error) + TINY_MASS, (hits @ law.p) * (1 - error), densities @ law.q


@dataclass(frozen=True, eq=False)
class Far:
    """Chernoff's bounds on what lies above thresholds, on a ladder: none of them rises."""

    starts: FloatArray  # of what is asked of rare outcomes, and of likely ones
    ladder: FloatArray
    hockey_sticks: FloatArray
    rates: FloatArray

    @classmethod
    def of(cls, inverted: InvertedTradeoff, ladder: FloatArray, way: Direction) -> Far:
        """From where on hockey sticks are small; never, if they are not on the ladder."""
        chernoff = inverted._chernoff
        hockey_sticks = np.minimum.accumulate(chernoff.hockey_stick(ladder, way))
        out, _ = chernoff.masses(ladder, 0) if way == "add" else chernoff.masses(-ladder, 1)[::-1]
        first = [np.flatnonzero(hockey_sticks < nothing) for nothing in _NOTHING]
        starts = np.array([ladder[small[0]] if small.size else np.inf for small in first])
        return cls(starts, ladder, hockey_sticks, np.minimum.accumulate(np.minimum(out, 1.0)))

    def hockey_stick(self, level: FloatArray) -> FloatArray:
        """Of γ beyond the start, one order of the worlds."""
        return self.hockey_sticks[np.searchsorted(self.ladder, level, side="right") - 1]

    def false(self, level: FloatArray) -> FloatArray:
        """The rate of false positives there."""
        return self.rates[np.searchsorted(self.ladder, level, side="right") - 1]


def beside_steps(of: InvertedTradeoff) -> BesideStepsTradeoff | None:
    """Return rare sharp phases in cells beside the others; None if nothing parts them or too much is left."""
    loss = of.loss
    if not isinstance(loss, PrivacyLoss) or loss.others:
        return None
    sharp = (loss.noise < _SHARP) & (loss.noise > 1 / 32) & (loss.steps * loss.rate < _RARE)
    if not sharp.any() or (loss.steps[~sharp].sum() < _FEW and loss.gaussian == 0):
        return None
    starts = np.full(sharp.size, np.nan)
    try:
        variance = loss.phases(~sharp).truncation.cumulants(0.5)[2]
    except TooSlowError:
        return None
    for k in np.flatnonzero(sharp):
        starts[k] = first_end(float(loss.noise[k]), float(loss.rate[k]), float(loss.steps[k]), variance)
    sharp = np.isfinite(starts)
    if not 0 < sharp.sum() <= _MOST_PHASES or loss.noise[~sharp].min(initial=1.0) < _LEAST_NOISE:
        return None
    sides: tuple[Side, ...] = ("upper", "lower")
    laws = []
    for side in sides:
        parts = [
            shown(float(loss.noise[k]), float(loss.rate[k]), round(float(loss.steps[k])), float(starts[k]), side)
            for k in np.flatnonzero(sharp)
        ]
        laws.append(reduce(lambda a, b, side=side: a.beside(b, side), parts).law())  # type: ignore[misc]
    return BesideStepsTradeoff(laws[0], laws[1], InvertedTradeoff(loss.phases(~sharp), of.tolerance, of.effort))
