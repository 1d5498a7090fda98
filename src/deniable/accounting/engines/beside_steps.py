"""Steps of little noise beside quieter ones: an exact sum over what is seen of them, a known curve for the rest.

The loss of a sharp step that takes the record is large and spread over tens of nats, so that no line serves it and the
bulk together. Its law in cells (:mod:`deniable.accounting.engines.step_cells`) is a finite law from above and one from
below; with outcome b of log-ratio l_b beside a loss whose tails are known, H_γ = Σ_b P_b·H(log γ − l_b), and the test
"the whole loss is above λ" has the rates Σ_b Q_b·out(L > λ − l_b) and Σ_b P_b·in(L > λ − l_b).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._kept import Kept
from deniable._search import bisect
from deniable.accounting.engines.beside_finite import BesideFiniteTradeoff, line, one_of_two
from deniable.accounting.engines.inversion import Plan
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.engines.likelihood import Tails, hockey_stick_bracket
from deniable.accounting.engines.step_cells import SIDES, composed_cells, first_end
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.finite_law import TINY_MASS, FiniteLaw
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import OPPOSITE, Charged, Direction, Question, Side

_SHARP = 0.3  # noise multipliers below may stand apart
_RARE = 0.05  # so often at most the record takes part in their steps
_MOST_PHASES = 4
_RARELY, _LONG_NODES, _LONG_WORK = 1e-6, 1 << 11, 5e6  # false positive rate of a line, and its nodes and terms
_FEW = 64  # other steps, of which lines converge slowly
_LEAST_NOISE = 0.1  # of the others
_NOTHING = 1e-7  # hockey sticks below are bounded by Chernoff's inequality where outcomes are rare
_TAIL, _FAIR = 1e-3, 1e-5  # and below this one known to this accuracy
_LIKELY = 0.01
_COST = 5e-9  # of a spacing of the table, as a share of what is asked for
_FEWEST_NODES, _MOST_NODES = 20, 1000  # in a spread
_MIDDLE, _GROWTH = 8.0, 0.01  # spreads in which nodes are evenly spaced, and their growth further out
_APART = np.array([2.0, 2.0, 2.0, 0.1, 0.01])  # spacings between two λ: the less, the more of a rate is not off a table
_GROUPS = 400  # of outcomes, where λ is guessed
_HALVINGS = 50  # of that
_LADDER = np.geomspace(0.05, 1e4, 240)  # of thresholds, in units of the spread


@dataclass(frozen=True, eq=False)
class BesideStepsTradeoff(BesideFiniteTradeoff):
    """Cells of sharp steps beside a loss whose tails are known.

    Likely outcomes ask the rest one by one, rare ones read it off a table. From above, H lies below its chords, as it
    is convex in γ. From below, a test may choose its thresholds as it likes: in every rare outcome the nearest one of
    the table, which costs the square of its spacing; between two λ it tosses a coin, so that its rate is the one asked.
    """

    rest: InvertedTradeoff
    method: str = field(default="sharp steps in cells beside others, summed outcome by outcome", kw_only=True)
    _found: Kept[tuple[Direction, bytes], tuple[FloatArray, FloatArray]] = field(default_factory=Kept, repr=False)

    @cached_property
    def _nodes(self) -> TabulatedRest:
        """The rest in this order of the worlds, where its tails are not small."""
        law = self.above
        share = np.where(self._likely(law), 0.0, law.p)
        mean, square = (float(np.average(law.log_ratio**k, weights=share)) for k in (1, 2))
        return TabulatedRest.of(self.rest, self.way, self.rest._landmarks[3], math.sqrt(max(square - mean**2, 0.0)))

    def _likely(self, law: FiniteLaw) -> NDArray[np.bool_]:
        return np.maximum(law.p, law.q) > _LIKELY

    def _hockey_sticks_of_rest(self, level: FloatArray, side: Side) -> FloatArray:
        likely = self._likely(self.above if side == "upper" else self.below)
        found = np.empty(level.shape)
        found[:, likely] = super()._hockey_sticks_of_rest(level[:, likely], side)
        rare = level[:, ~likely]
        if side == "upper":
            found[:, ~likely] = self._nodes.hockey_stick(rare)
            return found
        near = self._nodes.holds(rare)
        least = np.maximum(-np.expm1(np.minimum(rare, 0.0)), 0.0) * (1 - 4 * EPS)
        least[near] = self.rest._hockey_sticks(rare[near], self.way, "lower")
        found[:, ~likely] = least
        return found

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if direction == "remove":
            return self._swapped._roc(fpr, "add", side)
        inside, bound = (fpr > 0) & (fpr < 1), fpr.copy() if side == "lower" else np.ones_like(fpr)
        if not inside.any():
            return bound
        alpha = fpr[inside]
        try:
            level, reached = self._found((self.way, alpha.tobytes()), lambda: self._tests_near(alpha))
            if side == "lower":
                found = reached
            else:
                found = np.minimum(line(level, alpha) + self._hockey_stick(level, "add", "upper"), 1.0)
        except TooSlowError:  # the rest is out of reach
            return bound
        bound[inside] = found
        return bound

    def _tests_near(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """About the λ at which the test has these false positive rates, and true positive rates that tests reach.

        Two tests with rates around α, one of which is taken at random, have a rate of α; of one test with a larger rate
        a share is, the record never being accused otherwise.
        """
        level, reached = self._guessed(alpha), np.zeros_like(alpha)
        low, high = np.full(alpha.shape, -np.inf), np.full(alpha.shape, np.inf)  # where rates are larger, and less
        least = alpha * (1 - 8 * EPS)
        for apart in _APART * self._nodes.spacing:
            (more, hit_more), (less, hit_less) = (self._rates_at(level + move) for move in (-apart, apart))
            with np.errstate(divide="ignore", invalid="ignore"):
                reached = np.fmax(reached, one_of_two(least, (more, hit_more), (less, hit_less)))
                slope = np.log(more / less) / (2 * apart)
                gap = (np.log(np.sqrt(more * less)) - np.log(alpha)) / slope
            low, high = np.where(more > alpha, level - apart, low), np.where(less <= alpha, level + apart, high)
            moved = np.where(np.isfinite(gap), level + np.clip(gap, -1.0, 1.0), level)
            between = np.where(
                np.isfinite(high - low), (low + high) / 2, np.where(np.isfinite(low), level + 0.1, level)
            )
            level = np.where((moved >= low) & (moved <= high), moved, between)
        return level, reached

    def _guessed(self, alpha: FloatArray) -> FloatArray:
        """About the λ at which the test has these false positive rates: nothing is claimed of it."""
        law, table = self.below, self._nodes
        edges = np.append(law.log_ratio[:: max(1, law.p.size // _GROUPS)], law.log_ratio[-1] + 1)
        rare = ~self._likely(law)
        group = np.searchsorted(edges, law.log_ratio[rare], side="right") - 1
        q, moment = (np.bincount(group, mass, edges.size) for mass in (law.q[rare], (law.q * law.log_ratio)[rare]))
        q, moment = q[q > 0], moment[q > 0]
        log_ratio = np.concatenate([moment / q, law.log_ratio[~rare]])
        q = np.concatenate([q, law.q[~rare]])

        def few(level: FloatArray) -> NDArray[np.bool_]:
            return np.asarray(table.log_rate(np.subtract.outer(level, log_ratio)) @ q <= alpha)

        low = np.full(alpha.shape, float(law.log_ratio[0] + 2 * table.x[0]))
        high = np.full(alpha.shape, float(law.log_ratio[-1] + 2 * table.x[-1]))
        return bisect(few, high, low, halvings=_HALVINGS)[0]

    def _rates_at(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """False positive rates of tests at about these λ, rounded up, and true ones, rounded down."""
        law = self.below
        likely = self._likely(law)
        place = np.subtract.outer(level, law.log_ratio)
        rates, hits = np.empty((2, *place.shape))
        rates[:, ~likely], hits[:, ~likely] = self._nodes.nearest(place[:, ~likely])
        found = rates_of(self.rest, place[:, likely].ravel(), self.way)
        rates[:, likely], hits[:, likely] = (one.reshape(level.size, -1) for one in found)
        error = law.relative_error + 64 * EPS
        return (rates @ law.q) * (1 + error) + TINY_MASS, (hits @ law.p) * (1 - error)


def _at_nodes(rest: InvertedTradeoff, x: FloatArray, way: Direction, good: float) -> FloatArray:
    """Hockey sticks, from above, and rates and hits of tests."""

    def tails(threshold: FloatArray, wanted: str) -> Tails:
        return rest._tails(threshold, wanted, good)

    return np.stack([hockey_stick_bracket(tails, x, way)[1], *rates_of(rest, x, way, good)])


def rates_of(
    rest: InvertedTradeoff, level: FloatArray, way: Direction, good: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """False positive rates of the tests "the loss is above ``level``", rounded up, and true ones, rounded down."""
    sign, wanted = (1.0, "out_above") if way == "add" else (-1.0, "in_below")
    rate, hit, rate_error, hit_error, _, _ = rest._tails(sign * level, wanted, good).test(way)
    rates, hits = np.minimum(rate + rate_error, 1.0), np.maximum(hit - hit_error, 0.0)
    return np.where(np.isnan(rates), 1.0, rates), np.where(np.isnan(hits), 0.0, hits)


@dataclass(frozen=True, eq=False)
class TabulatedRest:
    """Hockey sticks of a loss, from above, and its tests, from below, at rising logarithms of γ; ``ends`` beyond."""

    x: FloatArray
    spacing: float
    hockey_sticks: FloatArray
    rates: FloatArray
    hits: FloatArray
    ends: tuple[Far, Far]

    @classmethod
    def of(cls, rest: InvertedTradeoff, way: Direction, spread: float, deviation: float) -> TabulatedRest:
        """Nodes where the tails are not small, given the ``deviation`` of log-ratios.

        What chords and nearest nodes cost is the square of a spacing times the density of the whole loss there.
        """
        ladder = _LADDER * spread
        deviation = max(spread, deviation)
        nothing = min(_NOTHING * deviation / spread, _TAIL / 10)
        above, below = (Far.of(rest, ladder, one, nothing) for one in (way, OPPOSITE[way]))
        spacing = min(max(math.sqrt(8 * _COST * deviation), spread / _MOST_NODES), spread / _FEWEST_NODES)
        side = np.arange(0.0, _MIDDLE * spread, spacing)
        far = _MIDDLE * spread * np.exp(np.arange(0.0, math.log(ladder[-1] / (_MIDDLE * spread)), _GROWTH))
        side = np.concatenate([side, far[far > side[-1]]])
        high, low = (side[: int(np.searchsorted(side, end.start)) + 1] for end in (above, below))
        x = np.concatenate([-low[:0:-1], high])
        far = np.maximum(np.abs(x), ladder[0])
        tail = np.where(x > 0, above.hockey_stick(far), below.hockey_stick(far)) < _TAIL
        found = np.empty((3, x.size))
        for part, good in ((tail, _FAIR), (~tail, 0.0)):
            found[:, part] = _at_nodes(rest, x[part], way, good)
        return cls(x, spacing, found[0], found[1], found[2], (above, below))

    def hockey_stick(self, level: FloatArray) -> FloatArray:
        """From above: chords in γ and, beyond the ends, Chernoff's bounds."""
        x, (above, below) = self.x, self.ends
        k = np.clip(np.searchsorted(x, level, side="right") - 1, 0, x.size - 2)
        first, second = self.hockey_sticks[k], self.hockey_sticks[k + 1]
        # H falls, so that a smaller γ is safe
        moved = np.clip(level - x[k] - 4 * EPS * (np.abs(level) + np.abs(x[k])), 0.0, None)
        share = np.minimum(np.expm1(moved) / np.expm1(x[k + 1] - x[k]), 1.0)
        found = first + share * (second - first) + 32 * EPS * first
        high, low = level > x[-1], level < x[0]
        found[high] = np.minimum(self.hockey_sticks[-1], above.hockey_stick(level[high]))
        # H_γ = 1 − γ + γ·H_{1/γ} of the other order
        other = np.exp(level[low]) * below.hockey_stick(-level[low]) * (1 + 64 * EPS)
        found[low] = np.minimum(-np.expm1(level[low]) * (1 + 4 * EPS) + other, 1.0)
        return found

    def nearest(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rates, from above, and hits, from below, of tests at the nodes nearest to these levels.

        Beyond the ends a test accepts always, or never.
        """
        x = self.x
        k = np.searchsorted((x[1:] + x[:-1]) / 2, level)
        rates, hits = self.rates[k], self.hits[k]
        for outside, sure in ((level > x[-1], 0.0), (level < x[0], 1.0)):
            rates[outside] = hits[outside] = sure
        return rates, hits

    def holds(self, level: FloatArray) -> NDArray[np.bool_]:
        """Whether levels lie between the ends."""
        return np.asarray((level >= self.x[0]) & (level <= self.x[-1]))

    def log_rate(self, level: FloatArray) -> FloatArray:
        """About the rate of the test at a level, between nodes, too."""
        return np.exp(np.interp(level, self.x, self._log_rates, left=0.0, right=-np.inf))

    @cached_property
    def _log_rates(self) -> FloatArray:
        return np.log(np.maximum(self.rates, TINY_MASS))


@dataclass(frozen=True, eq=False)
class Far:
    """Chernoff's bounds on what lies above thresholds, on a ladder: none of them rises."""

    start: float  # from where on they are small
    ladder: FloatArray
    hockey_sticks: FloatArray

    @classmethod
    def of(cls, inverted: InvertedTradeoff, ladder: FloatArray, way: Direction, nothing: float) -> Far:
        """From where on hockey sticks are small: the end of the ladder, if not before."""
        chernoff = inverted._chernoff
        hockey_sticks = np.minimum.accumulate(chernoff.hockey_stick(ladder, way))
        small = np.flatnonzero(hockey_sticks < nothing)
        start = float(ladder[small[0] if small.size else -1])
        return cls(start, ladder, hockey_sticks)

    def hockey_stick(self, level: FloatArray) -> FloatArray:
        """Of γ beyond the start, one order of the worlds."""
        return self.hockey_sticks[np.searchsorted(self.ladder, level, side="right") - 1]


def lines_take_long(of: InvertedTradeoff) -> bool:
    """Whether a line for a rare threshold does, and there are sharp steps: then cells are asked before lines."""
    if not isinstance(of.loss, PrivacyLoss) or not _sharp(of.loss).any():
        return False
    points, growth = of._chernoff.witnesses[0]
    threshold = float(np.min((growth - math.log(_RARELY)) / points))
    try:
        plan = Plan.of(of.loss, "right", threshold, of.tolerance)
    except TooSlowError:
        return True
    return not (plan.nodes < _LONG_NODES and plan.work < _LONG_WORK)


def _sharp(loss: PrivacyLoss) -> NDArray[np.bool_]:
    """Phases that may stand apart."""
    return (loss.noise < _SHARP) & (loss.noise > 1 / 32) & (loss.steps * loss.rate < _RARE)


def beside_steps(of: InvertedTradeoff) -> BesideStepsTradeoff | None:
    """Return rare sharp phases in cells beside the others; None if nothing parts them or too much is left."""
    loss = of.loss
    if not isinstance(loss, PrivacyLoss) or loss.others:
        return None
    sharp = _sharp(loss)
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
    above, below = (composed_cells(loss.phases(sharp), starts[sharp].tolist(), side) for side in SIDES)
    return BesideStepsTradeoff(above, below, InvertedTradeoff(loss.phases(~sharp), of.tolerance, of.effort))
