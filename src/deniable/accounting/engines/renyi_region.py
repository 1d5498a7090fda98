"""From Rényi divergences to the ROC: a test turns two worlds into two coins, and these obey every order.

A test with false positive rate x and true positive rate y turns P and Q into Bern(y) and Bern(x), and a divergence
never grows by processing. So for every order α > 1 with D_α(P‖Q) ≤ ρ, and with D_α(Q‖P) ≤ ρ′,

    y^α·x^{1−α} + (1 − y)^α·(1 − x)^{1−α} ≤ e^{(α−1)ρ},    x^α·y^{1−α} + (1 − x)^α·(1 − y)^{1−α} ≤ e^{(α−1)ρ′}.

Each left side g is jointly convex in (x, y), so the feasible points are a convex set, and from any point (x₀, y₀) with
g_y > 0 the tangent plane gives a half-plane that contains it:

    y ≤ y₀ + (c − g(x₀, y₀))/g_y + s·(x − x₀),   s = −g_x/g_y.

At x = x₀ that is the bound on the TPR; its intercept bounds H_s, and as H is convex in γ, chords between two slopes
bound it between them. Whatever x₀, y₀ and α are, the bounds hold: the searches for good ones prove nothing. *No bound
at one false positive rate can be smaller*: the two coins are themselves a mechanism with this guarantee. A curve that
one mechanism attains everywhere need not exist, so nothing is claimed from below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._search import bisect
from deniable._special import expit, logit
from deniable.accounting.renyi import RenyiCurve
from deniable.accounting.sizes import BLOCK, ROUNDS
from deniable.curves import OPPOSITE, AnyDirection, Charged, Direction, Question, Side, Tradeoff

_NARROWED = 3  # rounds in which better orders are looked for between neighbours,
_TRIED = 7  # this many per round


# false positive rates from 1e-304 to nearly 1, from which the search for the best test starts
_LADDER = np.concatenate([np.exp(-np.geomspace(700.0, 5.0, 60)), expit(np.linspace(-4.9, 6.0, 60))])


class _Lines(NamedTuple):
    """At false positive rates x: y, a bound on the TPR there, and the slope of the tangent with its relative error."""

    y: FloatArray
    slope: FloatArray
    error: FloatArray


@dataclass(frozen=True, eq=False)
class RenyiRegionTradeoff(Tradeoff):
    """The ROC region that Rényi divergences leave, all orders and both directions intersected.

    Attributes
    ----------
    curve
        The bounds on the divergences.
    below
        A trade-off of which only the lower side is used: that of parts whose exact law is known, since an attacker may
        ignore the others. None: the trivial bound.
    """

    curve: RenyiCurve
    below: Tradeoff | None = None
    method: str = field(default="Rényi divergences of every order, intersected", kw_only=True)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        plain = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
        if side == "lower":
            return plain if self.below is None else self.below.hockey_sticks(log_gamma, direction, side)
        found = np.ones_like(log_gamma)
        found[np.isposinf(log_gamma)] = 0.0  # a finite divergence: nothing happens under P alone
        if not self._orders.size and not np.isfinite(self.log_ratio_bound(direction, "upper")):
            return np.ones_like(log_gamma)
        above = (log_gamma >= 0) & np.isfinite(log_gamma)
        if above.any():
            found[above] = self._hockey_stick_above(log_gamma[above], direction)
        below = (log_gamma < 0) & np.isfinite(log_gamma)
        if below.any():  # H_γ = 1 − γ + γ·H_{1/γ} with the worlds exchanged
            gamma = np.exp(log_gamma[below])
            mirrored = gamma * self._hockey_stick_above(-log_gamma[below], OPPOSITE[direction])
            found[below] = (plain[below] + mirrored) * (1 + 8 * EPS)
        return found

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "lower":
            return fpr.copy() if self.below is None else self.below.rates(fpr, direction, side)
        found = np.where(fpr == 1, 1.0, 0.0)
        if not self._orders.size:
            found = np.where((fpr == 0) & ~np.isfinite(self.log_ratio_bound(direction, "upper")), 1.0, found)
        inside = (fpr > 0) & (fpr < 1)
        if inside.any():
            found[inside] = self._lines(fpr[inside], direction).y
        return found

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        if self.below is None:
            return Charged(self.method, "trivial bound")
        known = self.below.charges(question, at, direction)
        return Charged(self.method, known.lower_engine or known.engine)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        if side == "upper":
            return float(self.curve.divergence(np.array([np.inf]), direction)[0])
        return 0.0 if self.below is None else self.below.log_ratio_bound(direction, side)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return self.curve.divergence(order, direction)

    def deltas(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        one = side == "upper" and direction == "both" and self.curve.symmetric
        return super().deltas(epsilon, "remove" if one else direction, side)

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """From the hockey sticks of the ladder's tangents."""
        near = np.full(delta.shape, -np.inf)
        ways: tuple[Direction, ...] = ("remove", "add") if direction == "both" else (direction,)
        for way in ways:
            lines = self._ladders[way]
            height = lines.y - lines.slope * _LADDER
            with np.errstate(divide="ignore", invalid="ignore"):
                x, y = np.log(height), np.log(lines.slope)
            known = np.isfinite(x) & np.isfinite(y)
            if known.any():
                order = np.argsort(x[known])
                near = np.maximum(near, np.interp(np.log(delta), x[known][order], y[known][order]))
        return np.where(np.isfinite(near), near, 0.0), np.full(delta.shape, 0.01) * (1 + np.abs(near))

    @cached_property
    def _orders(self) -> FloatArray:
        return self.curve.orders

    @cached_property
    def _ladders(self) -> dict[Direction, _Lines]:
        """Lines at the tests of the ladder, from which searches start."""
        return {way: self._lines(_LADDER, way) for way in ("remove", "add")}

    def _lines(self, x: FloatArray, direction: Direction) -> _Lines:
        """The best line at every x, from all orders."""
        rows = max(1, BLOCK // max(self._orders.size, _TRIED, 1))
        if x.size > rows:
            blocks = [self._lines(x[k : k + rows], direction) for k in range(0, x.size, rows)]
            return _Lines(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
        near = np.broadcast_to(self._orders, (x.size, self._orders.size))
        best = self._ratio_lines(x, direction)
        for backward, way in enumerate((direction, OPPOSITE[direction]) if near.size else ()):
            best = self._improve_lines(x, near, way, bool(backward), best)
        return best

    def _improve_lines(self, x: FloatArray, near: FloatArray, way: Direction, backward: bool, best: _Lines) -> _Lines:
        """Improve the best lines with those of orders near the given ones."""
        rows = np.arange(x.size)
        for _ in range(1 + _NARROWED * self.curve.known_between):
            log_c = (near - 1) * self.curve.divergence(near, way)
            y, slope, error = _tangents(x[:, None], near, log_c, backward)
            which = np.argmin(y, axis=1)
            found = _Lines(y[rows, which], slope[rows, which], error[rows, which])
            better = found.y < best.y
            best = _Lines(*(np.where(better, new, old) for new, old in zip(found, best, strict=True)))
            if near.shape[1] < 2:
                break
            low = near[rows, np.maximum(which - 1, 0)]
            high = near[rows, np.minimum(which + 1, near.shape[1] - 1)]
            between = np.linspace(0, 1, _TRIED + 2)
            near = 1 + np.exp(np.outer(np.log(low - 1), 1 - between) + np.outer(np.log(high - 1), between))
        return best

    def _ratio_lines(self, x: FloatArray, direction: Direction) -> _Lines:
        """Lines of order inf, pure DP: y ≤ e^ε·x, and 1 − y ≥ e^{−ε′}·(1 − x) with the ε′ of the other direction."""
        ratio, other_ratio = (self.log_ratio_bound(way, "upper") for way in (direction, OPPOSITE[direction]))
        with np.errstate(over="ignore"):
            rising = np.exp(np.minimum(ratio + np.log(x), 1.0)) * (1 + 2 * EPS * (ratio + 750 if ratio < 1e4 else 2))
            falling = (np.exp(-other_ratio) * x - np.expm1(-other_ratio)) * (1 + 8 * EPS)
            steep = np.exp(ratio)
        lower, none = np.minimum(rising, falling), np.minimum(rising, falling) >= 1
        slope = np.where(none, 0.0, np.where(rising <= falling, steep, np.exp(-other_ratio)))
        error = np.full(x.size, 4 * EPS * (1 + min(ratio, other_ratio)))
        return _Lines(np.where(none, 1.0, lower), slope, error)

    def _hockey_stick_above(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """H_γ for γ ≥ 1: the test at which the ROC has the slope γ, from both sides."""
        gamma = np.exp(log_gamma) * (1 - 4 * EPS)  # H falls in γ
        ladder = self._ladders[direction]
        place = np.clip(np.sum(ladder.slope[None, :] >= gamma[:, None], axis=1), 1, _LADDER.size - 1)
        low, high = _LADDER[place - 1], _LADDER[place]
        steep, flat = bisect(
            lambda z: self._lines(expit(z), direction).slope >= gamma, logit(low), logit(high), halvings=ROUNDS
        )
        ends = (np.clip(expit(z), low, high) for z in (steep, flat))
        return _chord(gamma, *((x, self._lines(x, direction)) for x in ends))


def _tangents(
    x: FloatArray, order: FloatArray, log_c: FloatArray, backward: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The boundary of one order at x, (y, slope, relative error of the slope), with y rounded up; 1 where useless."""
    log_x, log_1x = np.log(x), np.log1p(-x)
    one_less = order - 1

    def terms(y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The two summands of g/c and bounds on their relative errors."""
        log_y, log_1y = np.log(y), np.log1p(-y)
        if backward:
            a, b = order * log_x - one_less * log_y - log_c, order * log_1x - one_less * log_1y - log_c
        else:
            a, b = order * log_y - one_less * log_x - log_c, order * log_1y - one_less * log_1x - log_c
        wrong_a = 4 * EPS * (order * (np.abs(log_y) + np.abs(log_x)) + np.abs(log_c) + 1)
        wrong_b = 4 * EPS * (order * (np.abs(log_1y) + np.abs(log_1x)) + np.abs(log_c) + 1)
        return np.exp(np.minimum(a, MOST_EXPONENT)), np.exp(np.minimum(b, MOST_EXPONENT)), wrong_a, wrong_b

    with np.errstate(all="ignore"):
        if backward:  # the second summand alone is at most 1
            y = -np.expm1(np.minimum((order * log_1x - log_c) / one_less, 0.0))
        else:  # the first is
            y = np.exp(np.minimum((log_c + one_less * log_x) / order, 0.0))
        top = 1 - EPS / 2
        y = np.clip(y, x, top)
        up, down = (-one_less, order) if backward else (order, -one_less)  # exponents of y and of x
        low, high, step = np.broadcast_to(x, y.shape), y, 2 * y
        for _ in range(ROUNDS):
            a, b, _, _ = terms(y)
            above = np.log(a + b)  # of the boundary
            low, high = np.where(above > 0, low, y), np.where(above > 0, y, high)
            newton = y - above * (a + b) / (up * (a / y - b / (1 - y)))
            settled = (newton - y) ** 2 <= EPS * np.minimum(y, 1 - y) ** 2  # tangents are good to second order
            if np.all(settled | ~np.isfinite(log_c) | (log_c == 0) | ((y >= top) & (above < 0))):  # or of no use
                break
            near_1 = 1 - np.sqrt(1 - low) * np.sqrt(1 - high)
            middle = np.where(1 - low > 10 * (1 - high), near_1, (low + high) / 2)
            middle = np.where(high > 10 * low, np.sqrt(low) * np.sqrt(high), middle)
            quick = (newton > low) & (newton < high) & (2 * np.abs(newton - y) <= step)
            last, y = y, np.clip(np.where(settled | quick, newton, middle), x, top)
            step = np.abs(y - last)
        a, b, wrong_a, wrong_b = terms(y)
        g_y, g_x = up * (a / y - b / (1 - y)), down * (a / x - b / (1 - x))
        wrong_y = np.abs(up) * (a / y * (wrong_a + 4 * EPS) + b / (1 - y) * (wrong_b + 4 * EPS))
        wrong_x = np.abs(down) * (a / x * (wrong_a + 4 * EPS) + b / (1 - x) * (wrong_b + 4 * EPS))
        missing = 1 - a - b + a * wrong_a + b * wrong_b + 4 * EPS
        # dividing by a smaller g_y enlarges a positive difference, by a larger one shrinks a negative one
        bound = y + np.where(missing > 0, missing / (g_y - wrong_y), missing / (g_y + wrong_y))
        bound = bound * (1 + 4 * EPS)
        slope, error = -g_x / g_y, wrong_y / g_y + wrong_x / np.abs(g_x) + 4 * EPS
        useful = np.isfinite(log_c) & (g_y > 2 * wrong_y) & (bound < 1) & (slope >= 0) & (error < 0.5)
        useful &= np.isfinite(bound)
        certain = log_c == 0  # equal laws
    y = np.where(certain, x, np.where(useful, bound, 1.0))
    slope = np.where(certain, 1.0, np.where(useful, slope, 0.0))
    return y, slope, np.where(certain | ~useful, 0.0, error)


def _chord(gamma: FloatArray, first: tuple[FloatArray, _Lines], second: tuple[FloatArray, _Lines]) -> FloatArray:
    """sup y − γx from two half-planes, one with a slope of at least γ and one with at most γ.

    A slope s known up to a factor 1 ± η becomes s·(1 + η), for which the half-plane through (x₀, y₀) holds right of x₀
    and 2ηs·x₀ higher everywhere.
    """
    with np.errstate(all="ignore"):
        ends = []
        for x, line in (first, second):
            steep = line.slope * (1 + 2 * line.error)
            height = line.y - steep * x
            slack = 4 * line.error * line.slope * x + 4 * EPS * (line.y + steep * x)
            ends.append((steep, np.maximum(height, 0.0) + slack))
        (s_left, b_left), (s_right, b_right) = ends
        # y − γx ≤ b where the slope is at most γ; elsewhere at most b + (s − γ)
        each = [b + np.maximum(s - gamma, 0.0) for s, b in ends]
        gap = s_left - s_right
        share = (s_left - gamma + 8 * EPS * s_left) / gap
        mixed = b_left + share * (b_right - b_left)
        mixed = np.where((gap > 0) & (share >= 0) & (share <= 1), mixed * (1 + 4 * EPS), np.inf)
        bound = np.fmin(np.fmin(each[0], each[1]), mixed)
    return np.where(np.isnan(bound), 1.0, np.clip(bound, 0.0, 1.0))
