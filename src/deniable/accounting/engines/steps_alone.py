"""Steps of little noise on their own: their cells are a finite law, which answers at once.

Lines converge slowly there, as the loss is spread over tens of nats. The law from above answers from above, the one
from below from below; where the two are not close, the engine that would be asked otherwise is asked as well. Where the
noise is so little that batches are all but visible, an attacker who is told them is quicker, and cells come second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from deniable._check import FloatArray
from deniable.accounting.engines.beside_steps import lines_take_long
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.engines.lines import Effort
from deniable.accounting.engines.step_cells import SIDES, composed_cells
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Charged, Direction, Question, Side, Tradeoff
from deniable.curves.answer import bound_of

_LEAST_NOISE, _MOST_NOISE = 1 / 32, 0.19
_RARE = 0.05  # so often at most the record takes part
_MOST_PHASES = 3
_MOST_RESPONSES = 2  # randomised responses beside them
_MOST_SHOWN = 0.12  # steps that show something by chance
_HIDDEN, _MOST_HIDDEN = 1.2e-6, 3e-5  # what "none" hides, relative to rates at which it matters: aimed at, and at most
# relative: brackets of rates, of hockey sticks, and of what is quicker, to mend
_WIDE, _FAIR, _NARROW = 3e-5, 5e-6, 1e-6
SHARPEST = 0.1  # noise multipliers below are beyond the reach of lines
_MISSED = 1e-15  # share of steps above which rates may be wide
_NEGLIGIBLE = 1e-30  # hockey sticks below need no relative accuracy


@dataclass(frozen=True, eq=False)
class StepsAloneTradeoff(Tradeoff):
    """Cells of sharp steps and another engine for the same loss, which is asked where their brackets are wide."""

    loss: PrivacyLoss
    starts: tuple[float, ...]
    otherwise: Tradeoff
    width: float = _WIDE
    method: str = field(default="sharp steps in cells, a finite law", kw_only=True)

    @cached_property
    def _cells(self) -> FiniteTradeoff:
        """Cells from above and from below, randomised responses with them."""
        above, below = (composed_cells(self.loss, self.starts, side) for side in SIDES)
        if self.loss.randomized_responses:
            known = FiniteTradeoff.randomized_responses(self.loss.randomized_responses)
            above, below = above.composed(known.above), below.composed(known.below)
        return FiniteTradeoff(above, below, method=self.method)

    @cached_property
    def _parts(self) -> tuple[Tradeoff, Tradeoff]:
        """What is asked first, and what next."""
        return (self.otherwise, self._cells) if self._batches_visible else (self._cells, self.otherwise)

    @property
    def _batches_visible(self) -> bool:
        """Whether batches are all but visible, so that an attacker who is told them settles all but some rates."""
        return float(self.loss.noise.max()) < SHARPEST

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if self._batches_visible:
            return self.otherwise._hockey_sticks(log_gamma, direction, side)
        width = min(self.width, _FAIR)
        return self._asked(lambda t, x, one: t._hockey_sticks(x, direction, one), log_gamma, side, width, _NEGLIGIBLE)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if not self._batches_visible:
            return self._asked(lambda t, x, one: t._rates(x, direction, one), fpr, side, self.width, 0.0)
        # what is open is due to steps that take the record and pass for none, of which there is about this share
        missed = ndtr(-ndtri(fpr / float(self.loss.steps.sum())) - 1 / float(self.loss.noise.max()))
        doubtful = (missed > _MISSED) & (fpr > 0)
        found = np.empty_like(fpr)
        if not doubtful.all():
            found[~doubtful] = self.otherwise._rates(fpr[~doubtful], direction, side)
        if doubtful.any():
            asked = self._asked(lambda t, x, one: t._rates(x, direction, one), fpr[doubtful], side, _NARROW, 0.0)
            found[doubtful] = asked
        return found

    def _asked(
        self,
        ask: Callable[[Tradeoff, FloatArray, Side], FloatArray],
        points: FloatArray,
        side: Side,
        width: float,
        least: float,
    ) -> FloatArray:
        first, second = self._parts
        high, low = (ask(first, points, one) for one in SIDES)
        found, better = (high, np.minimum) if side == "upper" else (low, np.maximum)
        wide = high - low > np.maximum(width * low, least)
        if wide.any():
            found[wide] = better(found[wide], ask(second, points[wide], side))
        return found

    def _cheap_rates(self, fpr: FloatArray, direction: Direction) -> FloatArray:
        return self.otherwise._cheap_rates(fpr, direction)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        above, below = (self._who(question, at, direction, side) for side in SIDES)
        found = above._charged(question, at, direction)
        lower = found if below is above else below._charged(question, at, direction)
        return found.with_lower(lower)

    def _who(self, question: Question, at: float, direction: Direction, side: Side) -> Tradeoff:
        """Whose bound is returned; the second is not asked where the first is narrow."""
        first, second = self._parts
        bound = bound_of(self, question, at, direction, side)
        return first if bound_of(first, question, at, direction, side) == bound else second

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.otherwise._largest_log_ratio(direction)

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.otherwise._least_log_ratio(direction)

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return self.otherwise._renyi(order, direction)

    def sketch(self) -> Tradeoff:
        """Return the curve itself: its cells are as quick as a sketch."""
        return self


def steps_alone(loss: PrivacyLoss, otherwise: Tradeoff, lines: InvertedTradeoff) -> Tradeoff:
    """Return cells of rare sharp steps on their own; ``otherwise`` where they would be wide, or take longer."""
    few = sum(count for _, count in loss.randomized_responses) <= _MOST_RESPONSES
    if loss.others or loss.gaussian > 0 or not few or not 0 < loss.steps.size <= _MOST_PHASES:
        return otherwise
    starts = [_start(*(float(x[k]) for x in (loss.noise, loss.rate, loss.steps))) for k in range(loss.steps.size)]
    if not np.isfinite(starts).all() or (loss.noise.min() >= SHARPEST and not lines_take_long(lines)):
        return otherwise
    width = _NARROW if lines.effort == Effort.patient() else _WIDE
    return StepsAloneTradeoff(loss, tuple(starts), otherwise, width)


def _start(sigma: float, rate: float, steps: float) -> float:
    """Choose where cells of steps begin; only the width of brackets depends on it. NaN if they would be wide.

    "None" hides the record taking part at u below. That concerns the bulk of the law of a step, of which a share lies
    beyond: what is hidden is small beside this share, of which rates above would be wrong relatively as much.
    """
    if not (_LEAST_NOISE <= sigma <= _MOST_NOISE and steps * rate < _RARE):
        return math.nan
    u = np.arange(0.5, 1 / sigma + 1, 0.05)
    hidden = rate * ndtr(u - 1 / sigma) / ndtr(-u)
    fine, few = np.flatnonzero(hidden <= _HIDDEN), np.flatnonzero(steps * ndtr(-u) <= _MOST_SHOWN)
    if not fine.size or not few.size:
        return math.nan
    k = max(int(fine[-1]), int(few[0]))
    return float(u[k]) if hidden[k] <= _MOST_HIDDEN else math.nan
