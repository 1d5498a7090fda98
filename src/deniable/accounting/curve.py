"""Trade-offs of composed losses: transform inversion, helped by other engines where it converges too slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.engines.beside_steps import BesideStepsTradeoff, beside_steps, lines_take_long
from deniable.accounting.engines.few_steps import DirectTradeoff
from deniable.accounting.engines.inverted import SKETCHED, InvertedTradeoff
from deniable.accounting.engines.known_batches import known_batches
from deniable.accounting.engines.likelihood import LikelihoodRatioTradeoff, Tails
from deniable.accounting.engines.lines import Effort
from deniable.accounting.pld.curve import MultiScaleTradeoff
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import AnyDirection, Charged, Direction, Question, Side, Tradeoff
from deniable.curves.answer import bound_of
from deniable.curves.safe import FAILURES, excuse

Bracket = tuple[FloatArray, FloatArray]
_Bracketing = LikelihoodRatioTradeoff
_SIDES: tuple[Side, ...] = ("upper", "lower")
_ORDER = _SIDES[::-1]
_WIDE_HOCKEY_STICK, _WIDE_RATE = 1e-8, 1e-6  # brackets that lattices are asked to improve: absolute, relative
_MOST_PARTS = 64  # that lattices are asked about
_FEW_PHASES = 32  # phases up to which a line may take no more terms
_VERY_FEW = 8  # steps up to which the direct convolution is quicker than telling jumps from the bulk
_ALMOST_ALL = 0.99  # advantages from which the bulk tells the worlds apart, whatever sharp steps show
_WIDE_FEW = 1e-7  # relative: that the direct convolution is asked to improve
_WIDE_QUICK = 1e-9  # relative: of a quick direct convolution, that inversion is asked to improve
_NEGLIGIBLE = 1e-30  # hockey sticks below this need no relative accuracy


@dataclass(frozen=True)
class ComposedTradeoff(Tradeoff):
    """Transform inversion, intersected with the other engines wherever its error bound is not small.

    All are brackets of the same truth, so the smallest upper and the largest lower bound hold: first that of the
    direct convolution, if the loss is made of few steps (and before inversion, if of so few that it is quicker), then
    a multi-scale privacy loss distribution's. Where no engine can work in double precision, an attacker who is told
    the batches bounds the real one from above.
    """

    inverted: InvertedTradeoff
    direct: DirectTradeoff | None
    lattices: MultiScaleTradeoff | None

    @classmethod
    def asking(
        cls, inverted: InvertedTradeoff, direct: DirectTradeoff | None, lattices: MultiScaleTradeoff | None
    ) -> ComposedTradeoff:
        """These engines; the method names them."""
        others = ", ".join(engine.method for engine in (direct, lattices) if engine is not None)
        return cls(inverted, direct, lattices, method=f"{inverted.method}; where that is not sharp: {others}")

    @classmethod
    def of(cls, loss: PrivacyLoss, tolerance: float, effort: Effort | None = None) -> ComposedTradeoff:
        """All engines for a loss made of sampled Gaussian steps, a Gaussian and randomised responses."""
        effort = effort or Effort()
        direct = DirectTradeoff.of(loss, most_terms=effort.convolution)
        lattices = MultiScaleTradeoff.of(loss, most=effort.cells) if loss.summands <= _MOST_PARTS else None
        if direct is not None and loss.steps[0] <= _VERY_FEW:
            effort = replace(effort, jumps=0.0)
        # a line that is given up has cost much of what it would have taken, and what is asked then takes longer
        effort = replace(effort, terms=effort.terms * max(1.0, loss.steps.size / _FEW_PHASES))
        return cls.asking(InvertedTradeoff(loss, tolerance, effort), direct, lattices)

    @cached_property
    def _known_batches(self) -> Tradeoff | None:
        loss = self.inverted.loss
        return known_batches(loss, attacks=True) if isinstance(loss, PrivacyLoss) else None

    @cached_property
    def _cells(self) -> BesideStepsTradeoff | None:
        return beside_steps(self.inverted)

    @cached_property
    def _lines_take_long(self) -> bool:
        return lines_take_long(self.inverted)

    @cached_property
    def _cells_first(self) -> bool:
        """Whether sharp steps in cells are asked before lines, which would take longer."""
        return self._lines_take_long and self._most_advantage < _ALMOST_ALL and self._cells is not None

    @cached_property
    def _most_advantage(self) -> float:
        return float((self._quick or self.inverted)._hockey_stick_bracket(np.zeros(1), "add")[1][0])

    @property
    def _sharp(self) -> float:
        """Relative width from which inversion is asked as well."""
        return _WIDE_QUICK if self.inverted.loss.fades else _WIDE_RATE

    @cached_property
    def _quick(self) -> DirectTradeoff | None:
        """The direct convolution, if it takes less time than inversion."""
        direct = self.direct if isinstance(self.direct, DirectTradeoff) else None
        return direct if direct is not None and (direct.quick or self._lines_take_long) else None

    def _begun(
        self, ask: Callable[[_Bracketing, FloatArray], Bracket], points: FloatArray, both: NDArray[np.bool_]
    ) -> Bracket:
        """The bracket of inversion, or of what is asked before it, and of both where that is slow or not sharp."""
        first = self._quick if self.inverted.loss.fades else self.direct
        if first is None:
            return ask(self.inverted, points)
        low, high = ask(first, points)
        wide = high - low > np.maximum(self._sharp * low, _NEGLIGIBLE)
        if self._quick is None:
            wide |= both
        if wide.any():
            _intersect(low, high, wide, *ask(self.inverted, points[wide]))
        return low, high

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        # inversion has a sum for even priors, whatever fades
        low, high = self._begun(lambda t, x: t._hockey_stick_bracket(x, direction), log_gamma, log_gamma == 0)
        high = np.minimum(high, self._hockey_stick_at_most(log_gamma))
        wide = high - low > _WIDE_HOCKEY_STICK
        if wide.any() and self.direct is not None and self._quick is None:
            _intersect(low, high, wide, *self.direct._hockey_stick_bracket(log_gamma[wide], direction))
            wide = high - low > _WIDE_HOCKEY_STICK
        if wide.any():
            self._otherwise(low, high, wide, side, lambda t: t._hockey_stick(log_gamma[wide], direction, side))
        return high if side == "upper" else low

    def _hockey_stick_at_most(self, log_gamma: FloatArray) -> FloatArray:
        """H_γ ≤ H_1 for γ ≥ 1, as H falls, and H_γ ≤ 1 − γ + γ·H_1 below, as H is convex and H_0 = 1."""
        below = np.minimum(log_gamma, 0.0)
        bound: FloatArray = (np.exp(below) * self._most_advantage - np.expm1(below)) * (1 + 8 * EPS)
        return np.minimum(bound, 1.0)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        low, high, wide = fpr.copy(), np.ones_like(fpr), np.ones(fpr.shape, dtype=np.bool_)
        few = max(_WIDE_FEW, self._sharp)
        if self._cells_first:
            self._seen_in_cells(low, high, wide, fpr, direction)
            wide = high - low > _WIDE_RATE * low
        if wide.any():
            nowhere = np.zeros(np.count_nonzero(wide), dtype=np.bool_)
            _intersect(low, high, wide, *self._begun(lambda t, x: t._roc_bracket(x, direction), fpr[wide], nowhere))
            wide = high - low > few * low
        if wide.any() and self.direct is not None and self._quick is None:
            _intersect(low, high, wide, *self.direct._roc_bracket(fpr[wide], direction))
            wide = high - low > few * low
        if wide.any():
            high[wide] = np.minimum(high[wide], self._roc_at_most(fpr[wide], direction))
        wide = high - low > _WIDE_RATE * low
        if wide.any() and not self._cells_first:
            self._seen_in_cells(low, high, wide, fpr, direction)
            wide = high - low > _WIDE_RATE * low
        if wide.any():
            self._otherwise(low, high, wide, side, lambda t: t._roc(fpr[wide], direction, side))
        return high if side == "upper" else low

    def _seen_in_cells(
        self, low: FloatArray, high: FloatArray, wide: NDArray[np.bool_], fpr: FloatArray, direction: Direction
    ) -> None:
        if self._most_advantage < _ALMOST_ALL and self._cells is not None:
            _intersect(low, high, wide, *(self._cells._rates(fpr[wide], direction, one) for one in _ORDER))

    def _cheap_rates(self, fpr: FloatArray, direction: Direction) -> FloatArray:
        return self.inverted._cheap_rates(fpr, direction)

    def _tests(self, alpha: FloatArray, direction: Direction) -> Tails:
        """Likelihood ratio tests near false positive rates, of the engine that knows more of them."""
        found = self.inverted._tests(alpha, direction)
        near = np.abs(found.log_odds(direction) - np.log(alpha) + np.log1p(-alpha)) < 1
        if isinstance(self.direct, DirectTradeoff) and not near.all():
            return self.direct._tests(alpha, direction)
        return found

    def _roc_at_most(self, fpr: FloatArray, direction: Direction) -> FloatArray:
        """Bound TPR ≤ γ·FPR + H_γ at γ = 1 and wherever Chernoff's inequality bounds H_γ."""
        advantage = self._hockey_stick(np.zeros(1), direction, "upper")[0]
        log_gamma = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 200) * self.inverted._landmarks[3]])
        log_gamma = log_gamma[log_gamma < MOST_EXPONENT]
        hockey_sticks = np.minimum(self.inverted._chernoff.hockey_stick(log_gamma, direction), advantage)
        bound: FloatArray = np.min(np.multiply.outer(fpr, np.exp(log_gamma)) + hockey_sticks, axis=1) * (1 + 16 * EPS)
        return np.clip(bound, fpr, 1.0)

    def _otherwise(
        self,
        low: FloatArray,
        high: FloatArray,
        wide: NDArray[np.bool_],
        side: Side,
        ask: Callable[[Tradeoff], FloatArray],
    ) -> None:
        """The lattices' bound on one side, and that of an attacker who is told the batches, or sees a bit of each."""
        below, above = low[wide], high[wide]
        if self._known_batches is not None:
            known = ask(self._known_batches)
            below, above = (below, np.minimum(above, known)) if side == "upper" else (np.maximum(below, known), above)
        found = above if side == "upper" else below
        if self.lattices is not None:
            try:
                found = ask(self.lattices)
            except FAILURES as failure:
                excuse(failure)
        if side == "upper":
            above = np.minimum(above, found)
        else:
            below = np.maximum(below, found)
        _intersect(low, high, wide, below, above)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        """The cheapest engine whose bound is the one that was returned, on either side."""
        high, low = (bound_of(self, question, at, direction, side) for side in _SIDES)
        above = next(self._suppliers(question, at, direction, "upper", high))
        below = next(self._suppliers(question, at, direction, "lower", low))
        return above.with_lower(below)

    def _suppliers(
        self, question: Question, at: float, direction: Direction, side: Side, bound: float
    ) -> Iterator[Charged]:
        def those(*engines: Tradeoff | None) -> Iterator[Charged]:
            for engine in engines:
                if engine is not None and bound_of(engine, question, at, direction, side) == bound:
                    yield engine._charged(question, at, direction)

        yield from those(self._quick, self.inverted, self.direct, self._cells if question == "roc" else None)
        if question == "roc" and float(self._roc_at_most(np.array([at]), direction)[0]) == bound:
            yield Charged("Chernoff's bound, and TPR ≤ FPR + advantage")
        yield from those(self._known_batches, self.lattices)
        yield Charged("trivial bound: no engine is in reach")

    @property
    def _symmetric(self) -> bool:
        return self.inverted._symmetric

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.inverted._largest_log_ratio(direction)

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.inverted._least_log_ratio(direction)

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return self.inverted._renyi(order, direction)

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        return super()._epsilon_near(delta, direction) if self._quick else self.inverted._epsilon_near(delta, direction)

    def sketch(self) -> Tradeoff:
        """Return inversion alone, content with 0.1 %, with the same lines, or what is quicker, or known better."""
        return self._sketched

    @cached_property
    def _sketched(self) -> Tradeoff:
        """The sketch, which holds for the same worlds; engines know of none."""
        return replace(
            self._roughest(), assumptions=self.assumptions, confidence=self.confidence, holds_for=self.holds_for
        )

    def _roughest(self) -> Tradeoff:
        if isinstance(self.direct, DirectTradeoff) and self.inverted.effort.jumps == 0:
            return self.direct
        return self._quick or replace(self.inverted, good=SKETCHED)

    def _delta(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        if direction != "both" or self._symmetric:
            return super()._delta(epsilon, direction, side)
        found = self._hockey_sticks(epsilon, "add", side)
        open_ = np.flatnonzero(self.inverted._chernoff.hockey_stick(epsilon, "remove") > found)
        if open_.size:
            found[open_] = np.maximum(found[open_], self._hockey_sticks(epsilon[open_], "remove", side))
        return found


def _intersect(
    low: FloatArray, high: FloatArray, where: NDArray[np.bool_], below: FloatArray, above: FloatArray
) -> None:
    low[where], high[where] = np.maximum(low[where], below), np.minimum(high[where], above)
