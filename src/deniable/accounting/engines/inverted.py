"""Trade-offs by transform inversion alone: lines are laid where they are needed, and kept."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._kept import Kept
from deniable.accounting.engines.chernoff import Chernoff, at_an_end, log_affinity, rates_of_affinity
from deniable.accounting.engines.inversion import GOOD, TOLERANCE, Contour, Posts, overlap
from deniable.accounting.engines.likelihood import ERROR_OF, ROWS, Tails, merge, trivial_hockey_stick
from deniable.accounting.renyi import LossTradeoff
from deniable.accounting.sizes import MOST, NEGLIGIBLE, ROUNDS
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.trapezoid import Sum
from deniable.curves import AnyDirection, Charged, Direction, Question, Side, directions

# regions; "far" is right again, with the rarest outcomes, and "damped" left again, further out, where lines are short
Way = Literal["left", "middle", "right", "far", "damped"]
_QUANTITY = {"out_error": 0, "in_error": 1, "hockey_stick_error": 2, "dual_error": 2}  # see Contour
ROUGH = 1e-3  # relative errors of answers that are not near, and where a sketch will do
APART = 1e-12  # between brackets of ε, by 1 + |ε|: nothing beside what those of δ do to them
_ALL_BUT = 1e-9  # true positive rates this close to 1 need not be known better
_CLOSE = math.sqrt(GOOD)  # changes after which the next ones are not worth a round


@dataclass(frozen=True)
class InvertedTradeoff(LossTradeoff):
    """Exact composition up to a stated error: every bound is a transform inversion ± its error bound.

    Lines are laid where they are needed and kept, so that a whole curve or a search over ε costs a few of them. Where
    none converges the bracket is trivial, not wrong.

    Attributes
    ----------
    points
        How many nodes one line may have.
    good
        Relative error at which no further line is laid.
    """

    points: int
    good: float
    method: str = field(default="transform inversion", kw_only=True)
    _posts_on: Kept[Way, Posts] = field(default_factory=Kept, init=False, repr=False, compare=False)
    _lines: Kept[tuple[Way, int], Contour | TooSlowError] = field(
        default_factory=lambda: Kept(MOST, _size), init=False, repr=False, compare=False
    )

    @cached_property
    def in_reach(self) -> bool:
        """Whether the middle of the law is known, around which lines are laid."""
        try:
            return math.isfinite(self.chernoff.landmarks[1])
        except TooSlowError:
            return False

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self.hockey_stick_bracket(log_gamma, direction)[side == "upper"]

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self.roc_bracket(fpr, direction)[side == "upper"]

    def hockey_stick_bracket(self, log_gamma: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        low, high = trivial_hockey_stick(log_gamma)[0], np.ones_like(log_gamma)
        even = log_gamma == 0
        if even.any() and self._even is not None:
            value, error = 1 - self._even.value, self._even.error + 8 * EPS
            low[even], high[even] = np.maximum(value - error, 0.0), np.minimum(value + error, 1.0)
        else:
            even[:] = False
        try:
            if not even.all():
                low[~even], high[~even] = self._hockey_sticks_by_lines(log_gamma[~even], direction)
        except TooSlowError:
            pass
        return low, high

    def roc_bracket(self, fpr: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        low, high = rates_of_affinity(self._log_affinity, fpr), np.ones_like(fpr)
        open_ = low < 1 - _ALL_BUT
        if self.loss.decays and open_.any():  # of laws that jump lines tell hockey sticks alone
            with suppress(TooSlowError):
                low[open_], high[open_] = self._rates_by_tests(fpr[open_], direction)
        return low, high

    def _hockey_sticks_by_lines(self, log_gamma: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds on H_γ from tails at thresholds."""
        # H falls: beyond the largest γ that is multiplied by, its value there is an upper bound
        threshold = log_gamma if direction == "remove" else -np.minimum(log_gamma, MOST_EXPONENT)
        finite = np.isfinite(log_gamma)
        tails = self.tails(np.where(finite, threshold, 0.0), "hockey_stick" if direction == "remove" else "dual")
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if direction == "remove":
                value, error = tails.hockey_stick, tails.hockey_stick_error
            else:  # H_{1/γ}(out‖in) = dual/γ
                scale = np.exp(-threshold)
                value, error = scale * tails.dual, scale * tails.dual_error
            slack = error + 8 * EPS * np.abs(value)
            low, high = value - slack, value + slack
        if direction == "add":
            low = np.where(log_gamma > MOST_EXPONENT, 0.0, low)
        least, least_above = trivial_hockey_stick(log_gamma)
        end = np.where(log_gamma > 0, 0.0, 1.0)
        low = np.where(finite, np.clip(np.where(np.isfinite(low), low, 0.0), least, 1.0), end)
        high = np.where(finite, np.clip(np.where(np.isfinite(high), high, 1.0), least_above, 1.0), end)
        return low, high

    def _rates_by_tests(self, fpr: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Bracket the best true positive rate by the likelihood ratio test at nearby thresholds.

        Upper: TPR ≤ P(S) + γ(α − Q(S)) for every likelihood ratio test S at γ (weak duality). Lower: the test itself,
        mixed with "never accuse" if its false positive rate may exceed α.
        """
        low, high = fpr.copy(), fpr.copy()
        inside = np.flatnonzero((fpr > 0) & (fpr < 1))
        if inside.size:
            alpha = fpr[inside]
            found = self._tests(alpha, direction).test(direction)
            rate, tpr, rate_error, tpr_error, log_gamma, _ = found
            with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
                # γ is that of the test up to the rounding of its threshold, far below 1e-9
                gap = alpha - rate + rate_error + 4 * EPS * (alpha + rate)
                gap += 1e-9 * np.abs(gap)
                # where a gap is negative, a smaller γ is safe
                paid = np.exp(np.minimum(log_gamma, MOST_EXPONENT)) * gap
                paid = np.where((log_gamma > MOST_EXPONENT) & (gap > 0), np.inf, paid)
                above = tpr * (1 + 8 * EPS) + tpr_error + paid
                above += 8 * EPS * np.abs(above)
                share = np.minimum(alpha / (rate + rate_error), 1.0)
                below = share * (tpr - tpr_error) * (1 - 8 * EPS)
            high[inside] = np.clip(np.where(np.isfinite(above), above, 1.0), alpha, 1.0)
            low[inside] = np.clip(np.where(np.isfinite(below), below, alpha), alpha, 1.0)
        return low, high

    @cached_property
    def _even(self) -> Sum | None:
        """∫ min(p, q), if the line Re w = ½ gives the advantage as well as any other."""
        try:
            found = overlap(self.loss, TOLERANCE, self.points >> 3)
        except TooSlowError:
            return None
        return found if np.all(found.error < self.good * (1 - found.value)) else None

    @cached_property
    def _log_affinity(self) -> float:
        return log_affinity(self.loss)

    @cached_property
    def chernoff(self) -> Chernoff:
        return Chernoff.of(self.loss)

    @cached_property
    def _far(self) -> Chernoff:
        return Chernoff.far(self.loss) if self.loss.steps.size and not self.loss.mixtures else self.chernoff

    def _posts(self, way: Way) -> Posts:
        def made() -> Posts:
            if way == "far":
                return Posts(self._far, "right")
            return Posts(self.chernoff, "left" if way == "damped" else way, damped=way == "damped")

        return self._posts_on(way, made)

    def _ways(self, threshold: float) -> tuple[Way, ...]:
        """Regions to try for a threshold, the best first."""
        at_zero, _, at_one, spread = self.chernoff.landmarks
        if threshold >= at_one:  # if the right line is slow the left one is not, and may be all that is needed
            return ("right", "far", "left", "damped", "middle")
        if threshold <= at_zero:
            return ("left", "middle", "right")
        # in between, the left line is the cheapest: rare large losses, which make the others slow, are damped there
        return ("middle", "left", "right") if spread > 2.5 else ("left", "damped", "middle", "right")

    def _line(self, way: Way, place: int) -> Contour | None:
        def lay() -> Contour | TooSlowError:
            try:
                return self._posts(way).contour(place, TOLERANCE, self.points)
            except TooSlowError as failure:
                return failure

        found = self._lines((way, place), lay)
        return None if isinstance(found, TooSlowError) else found

    def tails(self, threshold: FloatArray, wanted: str = "hockey_stick", good: float = 0.0) -> Tails:
        """Tails at thresholds, from lines near enough for the ``wanted`` field to be ``good``, or as good as asked."""
        good = max(good, self.good)
        rows = Tails.below(threshold, np.ones_like(threshold), np.ones_like(threshold)).stacked()
        inside = (threshold > self.loss.lowest) & (threshold < self.loss.highest)
        beyond = ~inside & ~at_an_end(self.loss, threshold)
        if beyond.any():
            rows[:, beyond] = Tails.certain(threshold[beyond], self.loss.lowest).stacked()
        value_row, error_row = ROWS.index(wanted), ROWS.index(ERROR_OF[wanted])
        least = NEGLIGIBLE * np.exp(np.minimum(threshold, MOST_EXPONENT)) ** (wanted == "dual")  # that is γ·H
        least *= wanted in ("hockey_stick", "dual")

        def poor() -> NDArray[np.bool_]:
            error = rows[error_row]
            return np.asarray(~(error <= np.maximum(good * np.abs(rows[value_row]), least)))

        def ask(way: Way, places: NDArray[np.intp]) -> None:
            if not self._posts(way).places.size:
                return
            posts = self._posts(way).nearest(threshold[places])
            for post in np.unique(posts).tolist():
                line, mine = self._line(way, post), places[posts == post]
                if line is not None:
                    merge(rows, mine, line.tails(threshold[mine]).stacked())

        rest = np.flatnonzero(~beyond & poor())
        if not rest.size:
            return Tails(*rows)
        merge(rows, rest, self.chernoff.tails(threshold[rest]).stacked())
        known = self.chernoff
        rare = rest[(threshold > known.landmarks[1])[rest] & (rows[error_row] <= 2 * known.loss.dropped[1])[rest]]
        if rare.size:  # there the outcomes that were left out count
            merge(rows, rare, Tails.below(threshold[rare], *self._far.masses(threshold[rare], 0)).stacked())
        ways = {place: self._ways(float(threshold[place])) for place in rest.tolist()}
        for turn in range(max(map(len, ways.values()))):
            open_, asked = inside & poor(), dict[Way, list[int]]()
            for place, some in ways.items():
                if open_[place] and turn < len(some):
                    asked.setdefault(some[turn], []).append(place)
            for way, places in asked.items():
                ask(way, np.array(places))
        return Tails(*rows)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        """Which line, or else which bound, has the error with which the bracket was made."""
        if question == "hockey stick" and at == 0 and (sums := self._even) is not None:
            aliasing, truncation, rounding = (float(x[0]) for x in (sums.aliasing, sums.truncation, sums.rounding))
            return Charged(self.method, "", aliasing, truncation, rounding)
        if question == "hockey stick":
            threshold, scale = (at, 1.0) if direction == "remove" else (-at, math.exp(min(at, MOST_EXPONENT)))
            wanted = "hockey_stick" if direction == "remove" else "dual"
            return self._source(threshold, wanted, self.tails(np.array([threshold]), wanted)).scaled(scale)
        tails = self._tests(np.array([at]), direction)
        threshold = float(tails.threshold[0])
        rate, tpr = ("out_above", "in_above") if direction == "remove" else ("in_below", "out_below")
        hit, false = self._source(threshold, tpr, tails), self._source(threshold, rate, tails)
        false = false.scaled(math.exp(min(threshold if direction == "remove" else -threshold, MOST_EXPONENT)))
        return hit.plus(false)

    def _source(self, threshold: float, wanted: str, tails: Tails) -> Charged:
        """The line among those that were laid whose error this is, and its charges."""
        if not self.loss.lowest < threshold < self.loss.highest:
            rounded = at_an_end(self.loss, np.array(threshold))
            return Charged("Chernoff's bound") if rounded else Charged("range of the loss", exact=True)
        name, at = ERROR_OF[wanted], np.array([threshold])
        error = float(tails.stacked()[ROWS.index(name), 0])
        for way in self._ways(threshold):
            posts = self._posts(way)
            line = self._line(way, int(posts.nearest(at)[0])) if posts.places.size else None
            if line is not None and float(line.tails(at).stacked()[ROWS.index(name), 0]) == error:
                found, row = line.sums(at), _QUANTITY[name]
                aliasing, truncation = float(found.aliasing[row, 0]), float(found.truncation[row, 0])
                return Charged(self.method, "", aliasing, truncation, max(error - aliasing - truncation, 0.0))
        return Charged("Chernoff's bound")

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Where saddle points put ε, corrected by Newton's method; in the other order of the worlds where it may be."""
        guesses = [(self.chernoff.epsilon_guesses(delta, way), way) for way in directions(direction, self.symmetric)]
        guesses.sort(key=lambda guess: -float(guess[0].max()))
        (first, way), *others = guesses
        near, step = self._epsilon_near_one(delta, way, first)
        for guess, way in others:
            known = self.chernoff.hockey_stick(near, way)
            if np.any(known > delta) and np.any(self.hockey_stick_bracket(near, way)[1] > delta):
                again = self._epsilon_near_one(delta, way, np.maximum(guess, near))
                near, step = np.maximum(near, again[0]), np.maximum(step, again[1])
        return near, step

    def _epsilon_near_one(
        self, delta: FloatArray, direction: Direction, epsilon: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        spread, dual = self.chernoff.landmarks[3], direction == "add"
        moved, blur = np.full_like(delta, spread), np.zeros_like(delta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for _ in range(ROUNDS):
                good = 0.0 if np.all(moved < ROUGH * spread) else ROUGH
                known = self.tails(-epsilon if dual else epsilon, "dual" if dual else "hockey_stick", good)
                mass, hockey_stick = (known.in_below, known.dual) if dual else (known.out_above, known.hockey_stick)
                error, scale = known.dual_error if dual else known.hockey_stick_error, np.exp(epsilon)
                per_mass = 1 / (mass * scale ** (not dual))
                step, blur = np.log(scale**dual * hockey_stick / delta) * hockey_stick * per_mass, error * per_mass
                known_there = error < 0.1 * hockey_stick
                usable = np.isfinite(step) & known_there  # exp(ε) may be beyond doubles
                moved = np.where(usable, np.minimum(np.abs(step), np.maximum(spread, np.abs(epsilon) / 2)), spread)
                epsilon = epsilon + np.where(usable, np.sign(step) * moved, np.where(known_there, 0.0, -epsilon / 2))
                if np.all(moved < _CLOSE * spread):
                    break
        # Newton's method squares what is left; errors of hockey sticks move ε, too
        left = 0.4 * APART * (1 + np.abs(epsilon)) + 2 * np.abs(np.nan_to_num(blur)) + 8 * moved**2 / spread
        return epsilon, np.where(moved < _CLOSE * spread, left, 4 * moved)

    def _tests(self, alpha: FloatArray, direction: Direction) -> Tails:
        """Tests from Newton's method on the log-odds, started where saddle points put them."""
        wanted = "out_above" if direction == "remove" else "in_below"
        sign = 1.0 if direction == "add" else -1.0  # whether log-odds rise with the threshold
        target = np.log(alpha) - np.log1p(-alpha)
        guess = self.chernoff.threshold_guesses(alpha, direction)
        floor, ceiling = (np.full_like(guess, end) for end in (self.chernoff.mean[0], self.chernoff.mean[-1]))
        middle, near = self.chernoff.landmarks[2 if direction == "add" else 0], False
        for _ in range(ROUNDS):
            tails = self.tails(guess, wanted, 0.0 if near else ROUGH)
            gap = target - tails.log_odds(direction)
            if near and np.all(np.abs(gap) < GOOD):
                break
            near = near or bool(np.all(np.abs(gap) < ROUGH))
            floor, ceiling = np.where(sign * gap > 0, guess, floor), np.where(sign * gap < 0, guess, ceiling)
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                newton = guess + gap / tails.test(direction)[5]
            usable = np.isfinite(newton) & (newton >= floor) & (newton <= ceiling)
            moved = np.where(usable, newton, (floor + ceiling) / 2)
            guess = np.where(np.isfinite(gap), moved, (guess + middle) / 2)  # where rates are lost in their errors
        return tails


def _size(line: Contour | TooSlowError) -> float:
    return 1 if isinstance(line, TooSlowError) else line.t.size
