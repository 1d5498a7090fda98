"""Trade-offs of composed losses: transform inversion, helped by other engines where it converges too slowly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable.accounting.engines.even_prior import advantage_bracket
from deniable.accounting.engines.few_steps import DirectTradeoff
from deniable.accounting.engines.grid import GridTradeoff
from deniable.accounting.engines.inversion import Contour, Region, contour
from deniable.accounting.engines.known_batches import known_batches
from deniable.accounting.engines.likelihood import LikelihoodRatioTradeoff, Tails, back_from, stick_from, trivial_stick
from deniable.accounting.engines.rare_steps import jump_contour
from deniable.accounting.loss import PrivacyLoss
from deniable.accounting.transform.nodes import TooSlowError
from deniable.curves import AnyDirection, Direction, Side, Tradeoff

_MOST_CONTOURS = 200
_REGIONS: tuple[Region, ...] = ("left", "middle", "right")
_NEGLIGIBLE = 1e-30  # hockey sticks below this need no relative accuracy
_EFFORTS = ((1 << 10, 1.0), (1 << 13, 1.0), (1 << 18, 100.0))  # most nodes and tolerance factor: cheap lines first
_WIDE_STICK, _WIDE_RATE = 1e-8, 1e-6  # brackets that the grid is asked to improve: absolute, relative
_WIDE_FEW = 1e-7  # relative: that the direct convolution is asked to improve
_FAIR = 5e-8  # relative errors that are not worth a second line
_ROUNDING_OF_K = 1e-6  # far above the rounding of K at a million steps, and nothing to a Chernoff bound
_ROUGH, _SKETCHED = 1e-2, 1e-3  # relative errors at which no further line is laid: in searches, for pictures


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
    patient
        Whether lines of very many nodes may be laid: there is no other engine that would be quicker.
    good
        Relative error at which no further line is laid.
    """

    loss: PrivacyLoss
    tolerance: float = 1e-13
    patient: bool = True
    good: float = 1e-8
    _contours: list[Contour] = field(default_factory=list, repr=False, compare=False)
    _hopeless: list[float] = field(default_factory=list, repr=False, compare=False)
    _slow: list[tuple[str, int, float]] = field(default_factory=list, repr=False, compare=False)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.loss.highest if direction == "add" else -self.loss.lowest

    @cached_property
    def _even(self) -> tuple[float, float]:
        """Bracket of the advantage at prior ½."""
        return advantage_bracket(self.loss)

    def _stick_bracket(self, log_gamma: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        if log_gamma.size == 1 and log_gamma[0] == 0:
            try:
                low, high = self._even
                return np.array([low]), np.array([high])
            except TooSlowError:
                pass
        try:
            return super()._stick_bracket(log_gamma, direction)
        except TooSlowError:
            return trivial_stick(log_gamma)[0], np.ones_like(log_gamma)

    def _roc_bracket(self, fpr: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        try:
            return super()._roc_bracket(fpr, direction)
        except TooSlowError:
            return fpr.copy(), np.ones_like(fpr)

    @cached_property
    def _landmarks(self) -> tuple[float, float, float, float]:
        """K′ at 0, ½ and 1 (the losses at which the saddle point crosses a pole) and √K″(½)."""
        low, middle, high = (self.loss.body.cumulants(c) for c in (0.0, 0.5, 1.0))
        return low[1], middle[1], high[1], float(np.sqrt(middle[2]))

    def _ways(self, threshold: float) -> tuple[Region | Literal["jumps"], ...]:
        """Regions to try for a threshold, the best first, and where to try bulk and jumps apart."""
        at_zero, _, at_one, spread = self._landmarks
        if threshold >= at_one:  # if the right line is slow the left one is not, and may be all that is needed
            return ("right", "left", "jumps", "middle")
        if threshold <= at_zero:
            return ("left", "middle", "right")
        # in between, the left line is the cheapest: rare large losses, which make the others slow, are damped there
        return ("middle", "left", "right") if spread > 2.5 else ("left", "middle", "right")

    def _lay(self, threshold: float, tried: frozenset[Region] = frozenset()) -> bool:
        """Lay a line for a threshold in a region that has none there; remember it if no line converges."""
        cheap = tried or not self.patient  # so must a line be that has little to add
        for most, slack in _EFFORTS[:2] if cheap else _EFFORTS:
            for way in self._ways(threshold):
                if way in tried or (way == "jumps" and ("right" in tried or most > _EFFORTS[0][0])):
                    continue
                if any(way == slow and most == then and abs(threshold - x) < x / 2 for slow, then, x in self._slow):
                    continue
                try:
                    if way == "jumps":
                        line = jump_contour(self.loss, threshold, self.tolerance, _EFFORTS[1][0])
                    else:
                        line = contour(self.loss, way, threshold, slack * self.tolerance, most)
                except TooSlowError:
                    self._slow.append((way, most, threshold))
                    continue
                self._contours.append(line)
                return True
        self._hopeless.append(threshold)
        return False

    def _tails(self, threshold: FloatArray, wanted: str = "stick", good: float = 0.0) -> Tails:
        """Tails at thresholds, from lines near enough for the ``wanted`` field to be ``good``, or as good as asked."""
        good = max(good, self.good)
        rows = Tails.below(threshold, np.ones_like(threshold), np.ones_like(threshold)).stacked()
        inside = (threshold > self.loss.lowest) & (threshold < self.loss.highest)
        distance = np.where(inside, np.inf, 0.0)
        rows[:, ~inside] = _certain(threshold[~inside], self.loss.lowest).stacked()
        error_of = f"{wanted.partition('_')[0]}_error"
        value_row, error_row = (list(Tails.__dataclass_fields__).index(name) for name in (wanted, error_of))
        if wanted in ("stick", "back"):  # no lines for what Chernoff's bound settles
            bound = self._chernoff(threshold).stacked()
            settled = inside & (bound[error_row] < _NEGLIGIBLE)
            rows[:, settled], distance[settled] = bound[:, settled], 0.0
            inside &= ~settled
        laid = -1
        while laid < len(self._contours):
            laid = len(self._contours)
            tried = self._fill(threshold, inside, distance, rows, "out" if wanted.startswith("out") else "in")
            wide = inside & (rows[error_row] > np.maximum(good * np.abs(rows[value_row]), 1e-300))
            fair = rows[error_row] < max(_FAIR, good) * np.abs(rows[value_row])
            poor = wide & (tried.sum(axis=0) < len(_REGIONS)) & ~(fair & tried.any(axis=0))
            for lost in self._hopeless:
                poor &= np.abs(threshold - lost) > 0.2 * self._landmarks[3]
            while poor.any() and len(self._contours) < _MOST_CONTOURS:
                worst = np.flatnonzero(poor)[np.argmax(distance[poor])]
                known = frozenset(r for r, near in zip(_REGIONS, tried[:, worst], strict=True) if near)
                if self._lay(float(threshold[worst]), known):
                    break
                poor &= np.abs(threshold - threshold[worst]) > 0.2 * self._landmarks[3]
        vague = np.flatnonzero(inside & (rows[error_row] > 1e-6))
        if vague.size:
            bound = self._chernoff(threshold[vague]).stacked()
            better = bound[error_row] < rows[error_row, vague]
            rows[:, vague[better]] = bound[:, better]
        return Tails(*rows)

    def _fill(
        self,
        threshold: FloatArray,
        inside: NDArray[np.bool_],
        distance: FloatArray,
        rows: FloatArray,
        law: Literal["out", "in"],
    ) -> NDArray[np.bool_]:
        """Evaluate every threshold on the line that promises the smallest error; say which regions were tried near."""
        tried = np.zeros((len(_REGIONS), threshold.size), dtype=np.bool_)
        if not self._contours:
            return tried
        apart = np.stack([np.abs(threshold - c.design) / c.width for c in self._contours])
        promise = np.stack([c.log_error(threshold, law) for c in self._contours])
        best = np.argmin(promise, axis=0)
        for k in np.unique(best[inside]):
            mine = np.flatnonzero(inside & (best == k))
            rows[:, mine] = self._contours[k].tails(threshold[mine]).stacked()
            distance[mine] = apart[k, mine]
        for known, d in zip(self._contours, apart, strict=True):
            tried[_REGIONS.index(known.region)] |= d < 0.3
        return tried

    def _chernoff(self, threshold: FloatArray) -> Tails:
        """What is known without a line, from Chernoff's bound on either side of the middle.

        Above: out(L > ℓ) ≤ e^{K(θ) − θℓ} and in(L > ℓ) ≤ e^{K(θ) − (θ − 1)ℓ} for θ ≥ 1. Below: the same expressions
        bound out(L ≤ ℓ) and in(L ≤ ℓ) for θ ≤ 0.
        """
        upper = Tails.below(threshold, *self._chernoff_pair(threshold, 0)).stacked()
        lower = Tails.above(threshold, *self._chernoff_pair(threshold, 1)).stacked()
        return Tails(*np.where(threshold > self._landmarks[1], upper, lower))

    def _chernoff_pair(self, threshold: FloatArray, side: int) -> tuple[FloatArray, FloatArray]:
        points, growth = self._witnesses[side]
        # K is computed, so a little is charged for its rounding; at 0 and 1 it is known to be 0
        slack = np.where((points == 0) | (points == 1), 0.0, _ROUNDING_OF_K)
        growth = np.where((points == 0) | (points == 1), 0.0, growth) + slack
        exponent = growth - np.multiply.outer(threshold, points)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            out, inside = np.exp(exponent.min(axis=1)), np.exp((exponent + threshold[:, None]).min(axis=1))
        return np.nan_to_num(out, nan=1.0), np.nan_to_num(inside, nan=1.0)

    def _stick_at_most(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """Chernoff's bound on the hockey stick: that on the mass above γ in one order of the worlds or the other."""
        pair = self._chernoff_pair(log_gamma, 0) if direction == "add" else self._chernoff_pair(-log_gamma, 1)
        return np.minimum(pair[1 if direction == "add" else 0], 1.0)

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Chernoff's bound solved for ε, corrected as at a saddle point and by Newton's method on rough lines."""
        ways: tuple[Direction, ...] = ("add", "remove") if direction == "both" else (direction,)
        found = [self._epsilon_near_one(delta, way) for way in ways]
        near = np.max([epsilon for epsilon, _ in found], axis=0)
        step = np.max([moved for _, moved in found], axis=0)
        return near, np.clip(4 * step, 1e-3 * self._landmarks[3], 0.1 * self._landmarks[3] + 0.02 * np.abs(near))

    def _epsilon_near_one(self, delta: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        side = 0 if direction == "add" else 1
        points, growth = self._witnesses[side]
        order, growth = np.abs(points[1:] - side), growth[1:]  # θ of the worlds in this order, above 1
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bound = (growth - np.log(delta)[:, None]) / (order - 1)
            best = np.argmin(np.where(np.isfinite(bound), bound, np.inf), axis=1)
            c, epsilon = order[best], bound[np.arange(delta.size), best]
            steep = np.gradient(np.gradient(growth, order), order)[best] if order.size > 2 else np.ones_like(c)
            factor = np.log(c * (c - 1)) + np.log(2 * np.pi * steep) / 2
            epsilon = np.nan_to_num(epsilon - np.nan_to_num(np.maximum(factor, 0.0), posinf=0.0) / (c - 1))
            moved = np.full_like(epsilon, np.inf)
            for _ in range(4):
                known = self._tails(epsilon if side == 0 else -epsilon, "back" if side else "stick", _ROUGH)
                mass, stick = (known.in_below, known.back) if side else (known.out_above, known.stick)
                scale = np.exp(epsilon)
                step = np.log(scale**side * stick / delta) * stick / (mass * scale ** (1 - side))
                error = known.back_error if side else known.stick_error
                step = np.where(np.isfinite(step) & (error < 0.1 * stick), step, 0.0)
                epsilon, moved = epsilon + step, np.where(step == 0, moved, np.abs(step))
                if np.all(moved < 1e-2 * self._landmarks[3]):
                    break
        return epsilon, moved

    @cached_property
    def _witnesses(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Points θ ≥ 1 with K(θ), up to where the rarest outcomes dominate, and points θ ≤ 0."""
        loss, spread = self.loss, self._landmarks[3]
        last = 40 / spread
        left = -np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 60) * last])
        if loss.steps.size:
            sigma = float(loss.noise.min())
            last = min(last, 2 * sigma**2 * (40 - 2 * math.log(float(loss.rate.min()))), 1000 * sigma) + 3
        right = 1 + np.concatenate([[0.0], np.geomspace(min(1e-3, last), last, 40)])
        return loss.log_mgf_known(right), loss.log_mgf_known(left)

    def _tests(self, alpha: FloatArray, direction: Direction) -> Tails:
        return self._tails(self._thresholds(alpha, direction), "out_above" if direction == "add" else "in_below")

    def _thresholds(self, alpha: FloatArray, direction: Direction) -> FloatArray:
        """Newton's method on the log-odds, started from a ladder of thresholds that covers all rates."""
        wanted = "out_above" if direction == "add" else "in_below"
        rising = direction == "remove"
        sign = 1.0 if rising else -1.0
        target = np.log(alpha) - np.log1p(-alpha)
        knots = [self._landmarks[2 if rising else 0]]
        odds = [self._log_odds(np.array(knots), direction, wanted)[0]]
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
        floor, ceiling = x[above - 1], x[np.minimum(above, x.size - 1)]
        guess: FloatArray = np.interp(sign * target, y, x)
        for attempt in range(12):
            good = _ROUGH if attempt < 3 else self.good
            tails = self._tails(guess, wanted, good)
            gap = target - tails.log_odds(direction)
            floor, ceiling = np.where(sign * gap > 0, guess, floor), np.where(sign * gap < 0, guess, ceiling)
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                newton = guess + gap / tails.test(direction)[5]
            usable = np.isfinite(newton) & (newton >= floor) & (newton <= ceiling)
            moved = np.where(usable, newton, (floor + ceiling) / 2)
            moved = np.where(np.isfinite(gap), moved, guess)
            if good == self.good and np.all(np.abs(gap) < 1e-7, where=np.isfinite(gap)):
                return guess
            guess = moved
        return guess

    def _log_odds(self, threshold: FloatArray, direction: Direction, wanted: str) -> FloatArray:
        return self._tails(threshold, wanted, _ROUGH).log_odds(direction)

    def _width_near(self, threshold: float) -> float:
        nearest = min(self._contours, key=lambda c: abs(c.design - threshold), default=None)
        return nearest.width if nearest is not None else self._landmarks[3]


def _certain(threshold: FloatArray, lowest: float) -> Tails:
    """Tails beyond the range of the loss: everything lies on one side."""
    above = (threshold <= lowest).astype(np.float64)
    zero = np.zeros_like(above)
    stick, stick_error = (np.where(above > 0, x, 0.0) for x in stick_from(zero, zero, threshold))
    back, back_error = (np.where(above > 0, 0.0, x) for x in back_from(zero, zero, threshold))
    return Tails(
        threshold, above, 1 - above, zero, zero, above, 1 - above, zero, zero, stick, back, stick_error, back_error
    )


@dataclass(frozen=True)
class ComposedTradeoff(Tradeoff):
    """Transform inversion, intersected with the other engines wherever its error bound is not small.

    All are brackets of the same truth, so the smallest upper and the largest lower bound hold: first that of the
    direct convolution, if the loss is made of few steps, then the certified grid's. Where no engine can work in double
    precision, an attacker who is told the batches bounds the real one from above.
    """

    inverted: InvertedTradeoff
    direct: DirectTradeoff | None
    grid: GridTradeoff

    @classmethod
    def of(cls, loss: PrivacyLoss, tolerance: float, method: str) -> ComposedTradeoff:
        """All engines for a loss."""
        direct = DirectTradeoff.of(loss)
        return cls(InvertedTradeoff(loss, tolerance, patient=direct is None), direct, GridTradeoff(loss), method=method)

    @cached_property
    def _told(self) -> Tradeoff:
        return known_batches(self.inverted.loss)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        low, high = self.inverted._stick_bracket(log_gamma, direction)
        wide = high - low > _WIDE_STICK
        if wide.any() and self.direct is not None:
            _intersect(low, high, wide, *self.direct._stick_bracket(log_gamma[wide], direction))
            wide = high - low > _WIDE_STICK
        if wide.any():
            self._otherwise(low, high, wide, "_hockey_stick", log_gamma, direction, side)
        return high if side == "upper" else low

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        low, high = self.inverted._roc_bracket(fpr, direction)
        wide = high - low > _WIDE_FEW * low
        if wide.any() and self.direct is not None:
            _intersect(low, high, wide, *self.direct._roc_bracket(fpr[wide], direction))
        wide = high - low > _WIDE_RATE * low
        if wide.any():
            self._otherwise(low, high, wide, "_roc", fpr, direction, side)
        return high if side == "upper" else low

    def _otherwise(
        self,
        low: FloatArray,
        high: FloatArray,
        wide: NDArray[np.bool_],
        method: str,
        points: FloatArray,
        direction: Direction,
        side: Side,
    ) -> None:
        """The grid's bound on one side, and from above that of an attacker who is told the batches."""
        below, above = low[wide], high[wide]
        if side == "upper":
            above = getattr(self._told, method)(points[wide], direction, side)
        try:
            found = getattr(self.grid, method)(points[wide], direction, side)
        except MemoryError:
            found = above if side == "upper" else below
        if side == "upper":
            above = np.minimum(above, found)
        else:
            below = found
        _intersect(low, high, wide, below, above)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.inverted._largest_log_ratio(direction)

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        return self.inverted._epsilon_near(delta, direction)

    def sketch(self) -> Tradeoff:
        """Return inversion alone, content with 0.1 %; the two share the lines that are laid."""
        return replace(self.inverted, good=_SKETCHED)

    def _delta(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        if direction != "both":
            return super()._delta(epsilon, direction, side)
        found = self._sticks(epsilon, "add", side)
        open_ = np.flatnonzero(self.inverted._stick_at_most(epsilon, "remove") > found)
        if open_.size:
            found[open_] = np.maximum(found[open_], self._sticks(epsilon[open_], "remove", side))
        return found


def _intersect(
    low: FloatArray, high: FloatArray, where: NDArray[np.bool_], below: FloatArray, above: FloatArray
) -> None:
    low[where], high[where] = np.maximum(low[where], below), np.minimum(high[where], above)
