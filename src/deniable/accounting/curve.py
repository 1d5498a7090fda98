"""Trade-offs of composed losses: engines made when they are needed, cheapest first, asked where it is still wide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from deniable._check import FloatArray
from deniable.accounting.engines.inversion import GOOD
from deniable.accounting.engines.inverted import APART, ROUGH, InvertedTradeoff
from deniable.accounting.engines.likelihood import trivial_hockey_stick
from deniable.accounting.renyi import LossTradeoff
from deniable.accounting.sizes import NEGLIGIBLE, WIDE
from deniable.accounting.steps.base import Step
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import FAILURES, TINY, AnyDirection, Charged, Direction, Question, Side, Tradeoff, directions
from deniable.mechanisms import GaussianDP, Mechanism, SubsampledGaussian

if TYPE_CHECKING:
    from deniable.accounting.pld.curve import MultiScaleTradeoff

_NEGLIGIBLE: Final[dict[Question, float]] = {"hockey stick": NEGLIGIBLE, "roc": 0.0}  # widths below are not worth it
_MOST_PARTS = 256  # kinds of steps that lattices are asked about
_OTHERS = "multi-scale privacy loss distribution"
_METHOD = "transform inversion; where that is not sharp: multi-scale privacy loss distribution"


@dataclass(frozen=True)
class ComposedTradeoff(LossTradeoff):
    """What every engine that serves a composed loss knows of it: the largest lower and the smallest upper bound.

    A question goes to one engine after the other, and only where the bracket is still wide. ``points`` are those of a
    class of the multi-scale distribution; ``rough`` says that 0.1 % is enough.
    """

    points: int
    rough: bool = False
    otherwise: Tradeoff | None = None  # another curve of the same worlds
    _epsilon_apart: ClassVar[float] = APART

    @classmethod
    def of(cls, loss: PrivacyLoss, points: int) -> ComposedTradeoff:
        """The curve of a loss."""
        return cls(loss, points, method=_METHOD if loss.has_transform else _OTHERS)

    @cached_property
    def inverted(self) -> InvertedTradeoff | None:
        """Transform inversion, where steps have a transform."""
        if not self.loss.has_transform:
            return None
        good = ROUGH if self.rough or not self.loss.decays else GOOD
        return InvertedTradeoff(self.loss, self.points, good, holds_for=self.holds_for)

    @cached_property
    def lattices(self) -> MultiScaleTradeoff | None:
        """The multi-scale distribution, unless there are so many kinds of steps that it takes long."""
        if self.loss.summands > _MOST_PARTS:
            return None
        from deniable.accounting.pld.curve import MultiScaleTradeoff  # most curves need none

        found = MultiScaleTradeoff(self.loss, most=self.points)
        return found.sketch() if self.rough else found

    @property
    def engines(self) -> tuple[Callable[[], Tradeoff | None], ...]:
        """How engines are made, in the order in which they are asked."""
        own = (lambda: self.inverted), (lambda: self.lattices)
        return own if self.otherwise is None else (*own, lambda: self.otherwise)

    @property
    def _first(self) -> Tradeoff | None:
        return self.inverted if self.inverted is not None and self.inverted.in_reach else self.lattices

    def _brackets_by_engine(
        self, question: Question, points: FloatArray, direction: Direction, sides: tuple[Side, ...]
    ) -> Iterator[tuple[Tradeoff | None, FloatArray, FloatArray]]:
        """Ask one engine after the other where the bracket is still wide; yield each with the brackets up to it.

        The last one is asked for these sides only.
        """
        low = points.copy() if question == "roc" else trivial_hockey_stick(points)[0]
        high = np.ones_like(points)
        yield None, low, high
        worth = ROUGH if self.rough else WIDE
        for k, make in enumerate(self.engines):
            wide = high - low > np.maximum(worth * low, _NEGLIGIBLE[question])
            if not wide.any():
                return
            engine = make()
            if engine is None:
                continue
            last = k + 1 == len(self.engines)
            try:
                below, above = _bracket(engine, question, points[wide], direction, sides if last else _SIDES)
            except FAILURES:
                continue
            low, high = low.copy(), high.copy()
            low[wide], high[wide] = np.maximum(low[wide], below), np.minimum(high[wide], above)
            yield engine, low, high

    def _bound(self, question: Question, points: FloatArray, direction: Direction, side: Side) -> FloatArray:
        for _, low, high in self._brackets_by_engine(question, points, direction, (side,)):
            found = high if side == "upper" else low
        return found

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._bound("hockey stick", log_gamma, direction, side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._bound("roc", fpr, direction, side)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        """The engines that moved either side last."""
        low, high, below, above = np.nan, np.nan, None, None
        for engine, lows, highs in self._brackets_by_engine(question, np.array([at]), direction, _SIDES):
            above, high = (engine, highs[0]) if highs[0] != high else (above, high)
            below, low = (engine, lows[0]) if lows[0] != low else (below, low)
        found = [
            Charged("trivial bound: no engine is in reach") if who is None else who.charges(question, at, direction)
            for who in (above, below)
        ]
        return found[0].with_lower(found[1])

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        if self.otherwise is not None:
            return self.otherwise.log_ratio_bound(direction, side)
        return super()._log_ratio(direction, side)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        if self.otherwise is not None:
            return self.otherwise.renyi_divergences(order, direction)
        return super().renyi_divergences(order, direction)

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        if self._first is None:
            return super().epsilon_near(delta, direction)
        return self._first.epsilon_near(delta, direction)

    @cached_property
    def _sketched(self) -> Tradeoff | None:
        """The same from rougher engines, content with 0.1 %."""
        return None if self.rough else replace(self, rough=True)

    def compared(self, epsilon: FloatArray, delta: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        """By lines where these decide: far from ``delta`` the width of a bracket does not matter."""
        first, open_, found = self._first, np.ones(epsilon.shape, dtype=bool), np.zeros((2, epsilon.size))
        if isinstance(first, InvertedTradeoff):
            for way in directions(direction, self.symmetric):
                more = first.chernoff.hockey_stick(epsilon, way) > found[1]
                found[:, more] = np.maximum(found[:, more], first.hockey_stick_bracket(epsilon[more], way))
            open_ = (delta < TINY) | ((found[0] <= delta) & (delta < found[1]))
        bound: FloatArray = found[int(side == "upper")]
        if open_.any():
            bound[open_] = self.deltas(epsilon[open_], direction, side)
        return bound

    def deltas(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        first = self._first
        if direction != "both" or self.symmetric or not isinstance(first, InvertedTradeoff):
            return super().deltas(epsilon, direction, side)
        ways = directions(direction, symmetric=False)
        most = np.stack([first.chernoff.hockey_stick(epsilon, way) for way in ways])
        later, found = most.argmin(axis=0), np.zeros_like(epsilon)
        for turn in (1 - later, later):
            for k, way in enumerate(ways):
                open_ = np.flatnonzero((turn == k) & (most[k] > found))
                if turn is later and open_.size:
                    open_ = open_[first.hockey_stick_bracket(epsilon[open_], way)[1] > found[open_]]
                if open_.size:
                    found[open_] = np.maximum(found[open_], self.hockey_sticks(epsilon[open_], way, side))
        return found


def first_engine(curve: Tradeoff) -> Tradeoff:
    """Return bounds as valid, perhaps wider, without engines that take long: enough far from a limit."""
    return (curve.inverted or curve) if isinstance(curve, ComposedTradeoff) else curve


def replaced_record(mechanisms: Iterable[Mechanism], otherwise: Tradeoff, points: int) -> Tradeoff:
    """Return the curve of replacing a record of Poisson batches with Gaussian noise; of others, ``otherwise``.

    That is another curve of the same worlds. A Gaussian part of μ moves by 2μ, which opposite vectors attain.
    """
    parts = list(mechanisms)
    one = (getattr(part, "records_per_person", 1) == 1 for part in parts)
    if not all(one) or not all(isinstance(part, GaussianDP | SubsampledGaussian) for part in parts):
        return otherwise
    loss = PrivacyLoss.of(parts)
    if not loss.steps.size:
        return otherwise
    from deniable.accounting.steps.sampled_gaussian import ReplacedGaussianStep

    phases = zip(loss.noise.tolist(), loss.rate.tolist(), loss.steps.tolist(), strict=True)
    steps: tuple[tuple[Step, int], ...] = tuple((ReplacedGaussianStep(s, q), round(count)) for s, q, count in phases)
    none = np.empty(0)
    return replace(
        ComposedTradeoff.of(PrivacyLoss(none, none, none, 4 * loss.gaussian, others=steps), points),
        otherwise=otherwise,
        assumptions=otherwise.assumptions,
        confidence=otherwise.confidence,
        holds_for=otherwise.holds_for,
    )


_SIDES: tuple[Side, ...] = ("lower", "upper")


def _bracket(
    engine: Tradeoff, question: Question, points: FloatArray, direction: Direction, sides: tuple[Side, ...]
) -> tuple[FloatArray, FloatArray]:
    """Both sides of what an engine knows; a side that is not asked for is trivial."""
    if isinstance(engine, InvertedTradeoff):
        both = engine.roc_bracket if question == "roc" else engine.hockey_stick_bracket
        return both(points, direction)
    ask = engine.rates if question == "roc" else engine.hockey_sticks
    found = [
        ask(points, direction, side) if side in sides else np.full_like(points, float(side == "upper"))
        for side in _SIDES
    ]
    return found[0], found[1]
