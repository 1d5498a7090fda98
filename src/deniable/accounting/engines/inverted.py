"""Trade-offs by transform inversion alone: lines are laid where they are needed, and kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._kept import Kept
from deniable.accounting.engines.chernoff import Chernoff, at_an_end, log_affinity, rates_of_affinity
from deniable.accounting.engines.even_prior import EvenPrior, advantage_bracket
from deniable.accounting.engines.guess import epsilon_guesses, threshold_guesses
from deniable.accounting.engines.inversion import Region
from deniable.accounting.engines.likelihood import (
    ERROR_OF,
    ROWS,
    LikelihoodRatioTradeoff,
    Tails,
    merge,
    trivial_hockey_stick,
)
from deniable.accounting.engines.lines import Cell, CellMap, Effort
from deniable.accounting.renyi import loss_divergence
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import AnyDirection, Charged, Direction, Question
from deniable.curves.safe import directions

_REGIONS: tuple[Region, ...] = ("left", "middle", "right")
_NEGLIGIBLE = 1e-30  # hockey sticks below this need no relative accuracy
_FAIR = 5e-8  # relative errors that are not worth a second line
_ROUGH, SKETCHED = 1e-2, 1e-3  # relative errors at which no further line is laid: in searches, for pictures
_WORTH = 0.1  # of the error here must that of the middle of a cell be at most for a nearer line to be laid
_BESIDE, _GUESSED, _NEAR = 0.3, 1.0, 1e-2  # log-odds: asked for at the ends, errors of good guesses, and of near ones
_TAIL = 1e-2  # rates below are looked for where Chernoff's bound has them
_QUANTITY = {"out_error": 0, "in_error": 1, "hockey_stick_error": 2, "dual_error": 2}  # see Contour
_LEVELS = 5  # times that cells are halved where the law is narrow
_MOST_KEPT = 1 << 20  # nodes of all lines kept, 160 bytes each


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
    effort
        How much one line may take.
    good
        Relative error at which no further line is laid.
    """

    loss: PrivacyLoss
    tolerance: float = 1e-13
    effort: Effort = field(default_factory=Effort)
    good: float = 1e-8
    method: str = field(default="transform inversion", kw_only=True)
    _cells: Kept[tuple[int, int], Cell] = field(
        default_factory=lambda: Kept(_MOST_KEPT, attrgetter("size")), repr=False, compare=False
    )

    @property
    def in_reach(self) -> bool:
        """Whether the middle of the law is known, around which lines are laid."""
        try:
            return math.isfinite(self._landmarks[1])
        except TooSlowError:
            return False

    @property
    def _symmetric(self) -> bool:
        return self.loss.symmetric

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.loss.largest_log_ratio(direction, "upper")

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.loss.largest_log_ratio(direction, "lower")

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        whole = self.loss if isinstance(self.loss, PrivacyLoss) else self.loss.whole
        return loss_divergence(whole, order, direction)

    @cached_property
    def _even(self) -> EvenPrior | None:
        """Bracket of the advantage at prior ½, and what was charged; None if its sum would be long."""
        try:
            return advantage_bracket(self.loss)
        except TooSlowError:
            return None

    def _hockey_stick_bracket(self, log_gamma: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        even = log_gamma == 0
        if even.any() and self._even is not None:
            low, high = (np.where(even, bound, np.nan) for bound in self._even[:2])
            if not even.all():
                low[~even], high[~even] = self._hockey_stick_bracket(log_gamma[~even], direction)
            return low, high
        try:
            return super()._hockey_stick_bracket(log_gamma, direction)
        except TooSlowError:
            return trivial_hockey_stick(log_gamma)[0], np.ones_like(log_gamma)

    def _roc_bracket(self, fpr: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        try:
            return super()._roc_bracket(fpr, direction)
        except TooSlowError:
            return fpr.copy(), np.ones_like(fpr)

    def _cheap_rates(self, fpr: FloatArray, direction: Direction) -> FloatArray:
        return rates_of_affinity(self._log_affinity, fpr)

    @cached_property
    def _log_affinity(self) -> float:
        return log_affinity(self.loss)

    @cached_property
    def _map(self) -> CellMap:
        _, middle, _, spread = self._landmarks
        return CellMap(middle, spread, self.loss.lowest)

    @cached_property
    def _chernoff(self) -> Chernoff:
        return Chernoff(self.loss, self._landmarks[1], self._landmarks[3])

    @cached_property
    def _landmarks(self) -> tuple[float, float, float, float]:
        """K′ at 0, ½ and 1 (the losses at which the saddle point crosses a pole) and √K″(½)."""
        low, middle, high = (self.loss.truncation.cumulants(c) for c in (0.0, 0.5, 1.0))
        return low[1], middle[1], high[1], float(np.sqrt(middle[2]))

    def _ways(self, threshold: float) -> tuple[Region, ...]:
        """Regions to try for a threshold, the best first."""
        at_zero, _, at_one, spread = self._landmarks
        if threshold >= at_one:  # if the right line is slow the left one is not, and may be all that is needed
            return ("right", "left", "middle")
        if threshold <= at_zero:
            return ("left", "middle", "right")
        # in between, the left line is the cheapest: rare large losses, which make the others slow, are damped there
        return ("middle", "left", "right") if spread > 2.5 else ("left", "middle", "right")

    def _cell(self, number: int, level: int) -> Cell:
        while level > 0 and number % 2 == 0:  # the same middle as a larger cell
            number, level = number // 2, level - 1
        at = self._map.design(number, level)
        return self._cells((level, number), lambda: Cell(self.loss, at, self._ways(at), self.tolerance, self.effort))

    def _tails(self, threshold: FloatArray, wanted: str = "hockey_stick", good: float = 0.0) -> Tails:
        """Tails at thresholds, from lines near enough for the ``wanted`` field to be ``good``, or as good as asked."""
        good = max(good, self.good)
        rows = Tails.below(threshold, np.ones_like(threshold), np.ones_like(threshold)).stacked()
        inside = (threshold > self.loss.lowest) & (threshold < self.loss.highest)
        beyond = ~inside & ~at_an_end(self.loss, threshold)
        rows[:, beyond] = Tails.certain(threshold[beyond], self.loss.lowest).stacked()
        value_row, error_row = ROWS.index(wanted), ROWS.index(ERROR_OF[wanted])
        if wanted in ("hockey_stick", "dual") and not beyond.all():  # no lines for what Chernoff's bound settles
            merge(rows, np.flatnonzero(~beyond), self._chernoff.tails(threshold[~beyond]).stacked())
        poor = self._poor(rows[value_row], rows[error_row], wanted, good) & inside
        for level in range(_LEVELS):
            places = np.flatnonzero(poor)
            numbers = self._map.number(threshold[places], level)
            apart = np.zeros(threshold.shape, dtype=np.bool_)
            for number in np.unique(numbers):
                mine = places[numbers == number]
                cell = self._cell(int(number), level)
                apart[mine] = self._evaluate(cell, threshold, mine, rows, (value_row, error_row), wanted, good)
            poor = self._poor(rows[value_row], rows[error_row], wanted, max(good, _FAIR)) & apart
            if not poor.any():
                break
        vague = np.flatnonzero(~beyond & (rows[error_row] > 1e-2 * np.abs(rows[value_row])))
        if vague.size and wanted not in ("hockey_stick", "dual"):
            merge(rows, vague, self._chernoff.tails(threshold[vague]).stacked())
        return Tails(*rows)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        """Which line, or else which bound, has the error with which the bracket was made."""
        if question == "hockey stick":
            if at == 0 and self._even is not None:
                return Charged(f"{self.method}, one sum on the line Re w = 1/2", "", *self._even[2:])
            threshold, scale = (at, 1.0) if direction == "add" else (-at, math.exp(min(at, MOST_EXPONENT)))
            wanted = "hockey_stick" if direction == "add" else "dual"
            return self._source(threshold, wanted, self._tails(np.array([threshold]), wanted)).scaled(scale)
        tails = self._tests(np.array([at]), direction)
        threshold = float(tails.threshold[0])
        rate, tpr = ("out_above", "in_above") if direction == "add" else ("in_below", "out_below")
        hit, false = self._source(threshold, tpr, tails), self._source(threshold, rate, tails)
        false = false.scaled(math.exp(min(threshold if direction == "add" else -threshold, MOST_EXPONENT)))
        return hit.plus(false)

    def _source(self, threshold: float, wanted: str, tails: Tails) -> Charged:
        """The line among those that were laid whose error this is, and its charges."""
        if not self.loss.lowest < threshold < self.loss.highest:
            rounded = at_an_end(self.loss, np.array(threshold))
            return Charged("Chernoff's bound") if rounded else Charged("range of the loss", exact=True)
        name = ERROR_OF[wanted]
        error, at = float(tails.stacked()[ROWS.index(name), 0]), np.array([threshold])
        for level in range(_LEVELS):
            cell = self._cells.get((level, int(self._map.number(at, level)[0])))
            for line in cell.laid if cell is not None else ():
                if float(line.tails(at).stacked()[ROWS.index(name), 0]) == error:
                    found, row = line.sums(at), _QUANTITY[name]
                    aliasing, truncation = float(found.aliasing[row, 0]), float(found.truncation[row, 0])
                    return Charged(self.method, "", aliasing, truncation, max(error - aliasing - truncation, 0.0))
        return Charged("Chernoff's bound")

    def _poor(self, value: FloatArray, error: FloatArray, wanted: str, good: float) -> NDArray[np.bool_]:
        """Whether an error is too large."""
        least = _NEGLIGIBLE if wanted in ("hockey_stick", "dual") else 1e-300
        return np.asarray(~(error <= np.maximum(good * np.abs(value), least)))

    def _evaluate(
        self,
        cell: Cell,
        threshold: FloatArray,
        places: NDArray[np.intp],
        rows: FloatArray,
        value_and_error: tuple[int, int],
        wanted: str,
        good: float,
    ) -> NDArray[np.bool_]:
        """Evaluate thresholds on a cell's lines until they are good enough; say where a line nearer by may be better.

        It may if the threshold lies far from the middle of the cell, where these lines have a much smaller error.
        """
        value_row, error_row = value_and_error
        open_, width = places, math.inf
        middle = np.full((rows.shape[0], 1), np.inf)
        for k in range(len(_REGIONS)):
            line = cell.line(k)
            if line is None:
                break
            width = min(width, line.width)
            merge(rows, open_, line.tails(threshold[open_]).stacked())
            still = self._poor(rows[value_row, open_], rows[error_row, open_], wanted, max(good, _FAIR))
            open_ = open_[still]
            if not open_.size:
                break
            merge(middle, np.zeros(1, dtype=np.intp), line.tails(np.array([cell.design])).stacked())
        far = np.abs(threshold[places] - cell.design) > 0.3 * width
        with np.errstate(invalid="ignore", divide="ignore"):
            here = rows[error_row, places] / np.abs(rows[value_row, places])
            there = middle[error_row] / np.abs(middle[value_row])
        better: NDArray[np.bool_] = far & ~(there > _WORTH * here)
        return better

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Chernoff's bound solved for ε, corrected as at a saddle point and by Newton's method on rough lines."""
        advantage = float(self._hockey_stick_bracket(np.zeros(1), "add")[1][0])
        large = delta >= advantage
        # 1 − γ ≤ H_γ ≤ 1 − γ·(1 − H_1) for γ ≤ 1, since H is convex
        with np.errstate(divide="ignore"):
            least = np.log1p(-np.minimum(delta, 1.0))
            most = np.where(advantage < 1, least - np.log1p(-min(advantage, 1 - EPS)), 0.0)
        near, step = np.where(large, (least + most) / 2, 0.0), np.where(large, (most - least) * 0.51, 1.0)
        small = np.flatnonzero(~large)
        if small.size:
            near[small], step[small] = self._epsilon_above(delta[small], direction)
        return np.where(np.isfinite(near), near, 0.0), np.where(np.isfinite(step), np.maximum(step, 1e-300), 1.0)

    def _epsilon_above(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        found = [self._epsilon_near_one(delta, way) for way in directions(direction, self._symmetric)]
        near = np.max([epsilon for epsilon, _ in found], axis=0)
        step = np.max([moved for _, moved in found], axis=0)
        return near, np.clip(4 * step, 1e-3 * self._landmarks[3], 0.1 * self._landmarks[3] + 0.02 * np.abs(near))

    def _epsilon_near_one(self, delta: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        side, epsilon = 0 if direction == "add" else 1, self._chernoff.epsilon_guesses(delta, direction)
        if np.isinf(epsilon).any():  # the transform is out of reach
            return np.zeros_like(delta), epsilon
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            guess = epsilon_guesses(self.loss.truncation, delta, direction)
            epsilon = epsilon if guess is None else np.minimum(epsilon, guess)
            moved = np.full_like(epsilon, np.inf)
            for _ in range(4):
                known = self._tails(epsilon if side == 0 else -epsilon, "dual" if side else "hockey_stick", _ROUGH)
                mass, hockey_stick = (known.in_below, known.dual) if side else (known.out_above, known.hockey_stick)
                scale = np.exp(epsilon)
                step = np.log(scale**side * hockey_stick / delta) * hockey_stick / (mass * scale ** (1 - side))
                error = known.dual_error if side else known.hockey_stick_error
                step = np.where(np.isfinite(step) & (error < 0.1 * hockey_stick), step, 0.0)
                epsilon, moved = epsilon + step, np.where(step == 0, moved, np.abs(step))
                if np.all(moved < 1e-2 * self._landmarks[3]):
                    break
        return epsilon, moved

    def _tests(self, alpha: FloatArray, direction: Direction) -> Tails:
        return self._tails(self._thresholds(alpha, direction), "out_above" if direction == "add" else "in_below")

    def _thresholds(self, alpha: FloatArray, direction: Direction) -> FloatArray:
        """Newton's method on the log-odds, started from guesses or a ladder of thresholds that covers all rates."""
        wanted = "out_above" if direction == "add" else "in_below"
        rising = direction == "remove"
        sign = 1.0 if rising else -1.0
        target = np.log(alpha) - np.log1p(-alpha)
        knots, odds = self._guessed_knots(target, direction, wanted)
        for up in (True, False):  # widen until every rate is covered
            end, step = (-1 if up else 0), self._width_near(knots[0])
            goal = float(target.max() if up == rising else target.min())
            edge = self.loss.highest if up else self.loss.lowest
            for _ in range(60):
                if (odds[end] >= goal if up == rising else odds[end] <= goal) or step < 1e-6 * self._landmarks[3]:
                    break
                new = knots[end] + (step if up else -step)
                if math.isfinite(edge) and abs(new - knots[end]) > 0.7 * abs(edge - knots[end]):
                    new = edge + 0.3 * (knots[end] - edge)
                found = float(self._log_odds(np.array([new]), direction, wanted)[0])
                if not np.isfinite(found):  # lost in the error: nearer
                    step *= 0.4
                    continue
                place = len(knots) if up else 0
                knots.insert(place, new)
                odds.insert(place, found)
                step *= 1.4
        known = np.isfinite(odds)
        x, y = np.array(knots)[known], sign * np.array(odds)[known]
        if x.size == 0:
            return np.full(alpha.shape, knots[0])
        above = np.clip(np.searchsorted(y, sign * target), 1, max(x.size - 1, 1))
        floor, ceiling = x[np.maximum(above - 2, 0)], x[np.minimum(above + 1, x.size - 1)]  # knots are rough
        guess: FloatArray = np.interp(sign * target, y, x)
        near = False
        for attempt in range(12):
            good = _ROUGH if attempt < 3 and not near else self.good
            tails = self._tails(guess, wanted, good)
            gap = target - tails.log_odds(direction)
            sure = 0.0 if good == self.good else 5 * _ROUGH
            floor, ceiling = np.where(sign * gap > sure, guess, floor), np.where(sign * gap < -sure, guess, ceiling)
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                newton = guess + gap / tails.test(direction)[5]
            usable = np.isfinite(newton) & (newton >= floor) & (newton <= ceiling)
            moved = np.where(usable, newton, (floor + ceiling) / 2)
            moved = np.where(np.isfinite(gap), moved, guess)
            enough = 1e-9 if attempt < 6 else 1e-7
            if good == self.good and np.all(np.abs(gap) < enough, where=np.isfinite(gap)):
                return guess
            near = bool(np.all(np.abs(gap) < _NEAR))
            guess = moved
        return guess

    def _guessed_knots(self, target: FloatArray, direction: Direction, wanted: str) -> tuple[list[float], list[float]]:
        """Thresholds near the wanted log-odds, from the middle outwards while guesses are good, and their odds."""
        middle = self._landmarks[2 if direction == "remove" else 0]
        wide = np.unique(np.concatenate([target, [target.min() - _BESIDE, target.max() + _BESIDE]]))
        guess = threshold_guesses(self.loss.truncation, expit(wide), direction)
        knots: list[float] = []
        odds: list[float] = []
        if guess is not None:
            order = np.argsort(np.abs(guess - middle))
            places = self._map.number(guess[order], 0)
            for group in np.split(order, np.flatnonzero(np.diff(places)) + 1):
                found = self._log_odds(guess[group], direction, wanted)
                good = np.abs(found - wide[group]) < _GUESSED
                knots += guess[group][good].tolist()
                odds += found[good].tolist()
                if not good.all():
                    break
        if not knots:
            return self._first_knots(expit(target), direction, wanted, middle)
        order = np.argsort(knots)
        return [knots[k] for k in order], [odds[k] for k in order]

    def _first_knots(
        self, alpha: FloatArray, direction: Direction, wanted: str, middle: float
    ) -> tuple[list[float], list[float]]:
        """The middle of the law or, where nothing is known there, thresholds at which Chernoff's bound is the rate."""
        odds = self._log_odds(np.array([middle]), direction, wanted)
        if np.isfinite(odds[0]):
            return [middle], odds.tolist()
        knots = self._chernoff.threshold_guesses(alpha[alpha < _TAIL], direction)
        if not knots.size:
            return [middle], odds.tolist()
        odds = self._log_odds(knots, direction, wanted)
        known = np.isfinite(odds)
        return (knots[known].tolist(), odds[known].tolist()) if known.any() else ([middle], [math.nan])

    def _log_odds(self, threshold: FloatArray, direction: Direction, wanted: str) -> FloatArray:
        return self._tails(threshold, wanted, _ROUGH).log_odds(direction)

    def _width_near(self, threshold: float) -> float:
        line = self._cell(int(self._map.number(np.array(threshold), 0)), 0).line(0)
        return line.width if line is not None else self._landmarks[3]
