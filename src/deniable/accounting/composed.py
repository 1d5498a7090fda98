"""Trade-offs of composed losses: transform inversion, helped by the certified grid where it converges too slowly."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable.accounting.grid import GridTradeoff
from deniable.accounting.inversion import Contour, Region, contour
from deniable.accounting.likelihood import LikelihoodRatioTradeoff, Tails
from deniable.accounting.loss import PrivacyLoss, TooSlowError
from deniable.tradeoff import Direction, Side, Tradeoff

_REACH = 2.0  # widths from its design within which a contour keeps relative accuracy
_MOST_CONTOURS = 80
_EFFORTS = ((1 << 10, 1.0), (1 << 13, 1.0), (1 << 18, 100.0))  # most nodes and tolerance factor: cheap lines first
_WIDE_STICK, _WIDE_RATE = 1e-9, 1e-6  # brackets that the grid is asked to improve: absolute, relative
_GOOD = 1e-8  # relative error at which no further line is laid


@dataclass(frozen=True)
class InvertedTradeoff(LikelihoodRatioTradeoff):
    """Exact composition up to a stated error: every bound is a transform inversion ± its error bound.

    Lines are laid where they are needed and kept, so that a whole curve or a search over ε costs a few of them. Where
    none converges the bracket is trivial, not wrong.

    Attributes
    ----------
    loss
        The composed privacy loss.
    tolerance
        Truncation and aliasing error aimed at, relative to the natural size of the integrand.
    """

    loss: PrivacyLoss
    tolerance: float = 1e-13
    _contours: list[Contour] = field(default_factory=list, init=False, repr=False, compare=False)
    _hopeless: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.loss.highest if direction == "add" else -self.loss.lowest

    @cached_property
    def _landmarks(self) -> tuple[float, float, float, float]:
        """K′ at 0, ½ and 1 (the losses at which the saddle point crosses a pole) and √K″(½)."""
        low, middle, high = (self.loss.cumulants(c) for c in (0.0, 0.5, 1.0))
        return low[1], middle[1], high[1], float(np.sqrt(middle[2]))

    def _regions(self, threshold: float) -> tuple[Region, ...]:
        """Regions to try for a threshold, the best first."""
        at_zero, at_half, at_one, spread = self._landmarks
        if threshold >= at_one:
            return ("right", "middle", "left")
        if threshold <= at_zero:
            return ("left", "middle", "right")
        if spread > 2.5:
            return ("middle", "left", "right")
        return ("right", "left", "middle") if threshold > at_half else ("left", "right", "middle")

    def _lay(self, threshold: float) -> Contour | None:
        """Lay a line for a threshold, or remember that none converges there."""
        for most, slack in _EFFORTS:
            for region in self._regions(threshold):
                try:
                    made = contour(self.loss, region, threshold, slack * self.tolerance, most)
                except TooSlowError:
                    continue
                self._contours.append(made)
                return made
        self._hopeless.append(threshold)
        return None

    def _tails(self, threshold: FloatArray, wanted: str = "stick") -> Tails:
        """Tails at thresholds, from lines near enough for relative accuracy of the ``wanted`` field."""
        rows = Tails.unknown(threshold).stacked()
        inside = (threshold > self.loss.lowest) & (threshold < self.loss.highest)
        distance = np.where(inside, np.inf, 0.0)
        rows[:, ~inside] = _certain(threshold[~inside], self.loss.lowest).stacked()
        for known in self._contours:
            _offer(known, threshold, distance, rows)
        error_of = "stick_error" if wanted in ("stick", "back") else f"{wanted.partition('_')[0]}_error"
        value_row, error_row = (list(Tails.__dataclass_fields__).index(name) for name in (wanted, error_of))
        while len(self._contours) < _MOST_CONTOURS:
            poor = (distance > _REACH) | (
                (rows[error_row] > _GOOD * np.abs(rows[value_row])) & (rows[error_row] > 1e-300) & (distance > 0.3)
            )
            for lost in self._hopeless:
                poor &= np.abs(threshold - lost) > 0.2 * self._landmarks[3]
            if not poor.any():
                break
            worst = np.flatnonzero(poor)[np.argmax(distance[poor])]
            laid = self._lay(float(threshold[worst]))
            if laid is not None:
                _offer(laid, threshold, distance, rows)
        return Tails(*rows)

    def _thresholds(self, alpha: FloatArray, direction: Direction) -> FloatArray:
        """Newton's method on the log-odds, started from a ladder of thresholds that covers all rates."""
        wanted = "out_above" if direction == "add" else "in_below"
        target = np.log(alpha) - np.log1p(-alpha)
        rising = direction == "remove"
        low_k, high_k = self._landmarks[0], self._landmarks[2]
        knots = np.array([low_k if direction == "add" else high_k])
        odds = self._tails(knots, wanted).log_odds(direction)
        for up in (True, False):
            goal = target.max() if up == rising else target.min()
            for _ in range(_MOST_CONTOURS):
                end = -1 if up else 0
                reached = odds[end] >= goal if up == rising else odds[end] <= goal
                if reached or not np.isfinite(odds[end]):
                    break
                new = knots[end] + (1.0 if up else -1.0) * 0.7 * self._width_near(float(knots[end]))
                edge = self.loss.highest if up else self.loss.lowest
                if np.isfinite(edge) and abs(new - knots[end]) > 0.7 * abs(edge - knots[end]):
                    new = edge + 0.3 * (knots[end] - edge)
                found = self._tails(np.array([new]), wanted).log_odds(direction)
                order = [knots, np.array([new])] if up else [np.array([new]), knots]
                order_odds = [odds, found] if up else [found, odds]
                knots, odds = np.concatenate(order), np.concatenate(order_odds)
        fine = np.isfinite(odds)
        knots, odds = (knots[fine], odds[fine]) if fine.any() else (knots, np.zeros(knots.size))
        odds = odds if rising else -odds
        goal_odds = target if rising else -target
        place = np.clip(np.searchsorted(odds, goal_odds), 1, max(knots.size - 1, 1))
        floor, ceiling = knots[place - 1], knots[np.minimum(place, knots.size - 1)]
        guess = np.interp(goal_odds, odds, knots)
        for _ in range(5):
            tails = self._tails(guess, wanted)
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                step = (target - tails.log_odds(direction)) / tails.test(direction)[5]
            step = np.where(np.isfinite(step), step, 0.0)
            guess = np.clip(guess + step, floor, ceiling)
            if np.all(np.abs(step) <= 1e-9 * (1 + np.abs(guess))):
                break
        return guess

    def _width_near(self, threshold: float) -> float:
        nearest = min(self._contours, key=lambda c: abs(c.design - threshold), default=None)
        return nearest.width if nearest is not None else self._landmarks[3]


def _offer(known: Contour, threshold: FloatArray, distance: FloatArray, rows: FloatArray) -> None:
    """Fill in the thresholds to which this line is nearer than the lines before it."""
    d = np.abs(threshold - known.design) / known.width
    nearer = np.flatnonzero(d < distance)
    if nearer.size:
        rows[:, nearer] = known.tails(threshold[nearer]).stacked()
        distance[nearer] = d[nearer]


def _certain(threshold: FloatArray, lowest: float) -> Tails:
    """Tails beyond the range of the loss: everything lies on one side."""
    above = (threshold <= lowest).astype(np.float64)
    zero = np.zeros_like(above)
    with np.errstate(over="ignore"):
        fall = np.expm1(threshold)
    stick, back = np.where(above > 0, -fall, 0.0), np.where(above > 0, 0.0, fall)
    return Tails(threshold, above, 1 - above, zero, zero, above, 1 - above, zero, stick, back, zero)


@dataclass(frozen=True)
class ComposedTradeoff(Tradeoff):
    """Transform inversion, intersected with the certified grid wherever its error bound is not small.

    Both are brackets of the same truth, so the smaller upper and the larger lower bound hold.
    """

    inverted: InvertedTradeoff
    grid: GridTradeoff

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        low, high = self.inverted._stick_bracket(log_gamma, direction)
        wide = high - low > _WIDE_STICK
        if wide.any():
            other = self.grid._hockey_stick(log_gamma[wide], direction, side)
            return _intersected(low, high, wide, other, side)
        return high if side == "upper" else low

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        low, high = self.inverted._roc_bracket(fpr, direction)
        wide = high - low > _WIDE_RATE * low
        if wide.any():
            other = self.grid._roc(fpr[wide], direction, side)
            return _intersected(low, high, wide, other, side)
        return high if side == "upper" else low

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.inverted._largest_log_ratio(direction)


def _intersected(
    low: FloatArray, high: FloatArray, wide: NDArray[np.bool_], other: FloatArray, side: Side
) -> FloatArray:
    bound = high if side == "upper" else low
    bound[wide] = np.minimum(bound[wide], other) if side == "upper" else np.maximum(bound[wide], other)
    return bound
