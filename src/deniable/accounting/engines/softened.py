"""Laws with atoms, whose transforms do not fade: inversion after a little Gaussian noise is put beside them.

H^s is the hockey stick of a pair composed with GaussianDP(s). Post-processing forgets the Gaussian, so H ≤ H^s, and

    H ≥ H^s − e^{s²/2}·(H^{2s} − H^s).

*Proof.* Given x, the log-ratio over log γ, the hockey stick at volatility v is Black and Scholes' call price, whose
derivative in v is proportional to exp(−x²/(2v²) − v²/8). For s ≤ v ≤ 2s that is at least e^{−s²/2} times its value at
v − s, so that what the second s adds is at least e^{−s²/2} times what the first one added. Take the mean over x. ∎

With s/S = 10⁻⁴, S the spread of the loss, the bracket is as narrow as 10⁻⁸ of its density, and sums end at t = 7/s. One
line serves s and 2s: its coefficients are multiplied by e^{−3s²t²/2}.

Rates come from hockey sticks: TPR(α) is the least value of the convex function γα + H_γ, bounded below between
neighbouring γ by its own chords, continued.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._kept import Kept
from deniable.accounting.engines.guess import threshold_guesses
from deniable.accounting.engines.inversion import Contour, Plan, Region
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.engines.likelihood import hockey_stick_bracket
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.gaussian_mixture import GaussianMixtureStep
from deniable.accounting.steps.ratios import ComplexArray
from deniable.accounting.transform.mixture import MixtureLoss
from deniable.accounting.trapezoid import half_line, nodes_until, poles
from deniable.curves import Charged, Direction, Question, Side, Tradeoff

_SMALL = 1e-7  # s in units of the loss's width, tried first: enough where |M| falls by itself
_CHEAP = 1 << 18  # nodes up to which that is
_BODY = 1e-9  # s² in units of the width, in the middle: then hockey sticks are good to 10⁻⁹ or so
_TAIL = 2.5e-7  # s²·|c(c − 1)| in tails: relative errors are of this size
_TOLERANCE = 1e-12
_NEGLIGIBLE = 1e-3  # of the target: coefficients below are left out, and charged
_LADDER = np.linspace(-1.0, 1.0, 9)  # γ tried at a time
_ROUNDS = 14  # of closing in on the best γ, by a factor of 4 each
_GOOD = 5e-7  # relative width at which that ends
_FINEST = 1e-9  # and distance in log γ
_NEAR = 0.02  # of the spread: how far from the guess is looked first
_MOST_KEPT, _MOST_RATES = 16, 4096  # pairs of lines, and rates


@dataclass(frozen=True, eq=False)
class _Pair:
    """Lines for the pair with GaussianDP(s) beside it, and with GaussianDP(2s)."""

    narrow: Contour
    wide: Contour
    s: float

    def bracket(self, log_gamma: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        low, high = hockey_stick_bracket(lambda at, _: self.narrow.tails(at), log_gamma, direction)
        _, above = hockey_stick_bracket(lambda at, _: self.wide.tails(at), log_gamma, direction)
        excess = np.maximum(above - low, 0.0) * (math.exp(self.s**2 / 2) * (1 + 8 * EPS))
        least = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0) * (1 - 4 * EPS)
        return np.maximum(low - excess, least), high


@dataclass(frozen=True)
class SoftenedTradeoff(Tradeoff):
    """Brackets from inversion with a little Gaussian noise beside the loss, where inversion alone does not converge.

    ``inverted`` says in which cells thresholds lie. A line may take this many ``nodes`` and ``terms``, keep ``kept``
    of its nodes: all others add next to nothing.
    """

    inverted: InvertedTradeoff
    nodes: int = 1 << 21
    terms: float = float(1 << 29)
    kept: int = 1 << 16
    method: str = field(default="transform inversion beside a little Gaussian noise", kw_only=True)
    _pairs: Kept[int, tuple[_Pair | None]] = field(
        default_factory=lambda: Kept(_MOST_KEPT), init=False, repr=False, compare=False
    )
    _brackets: Kept[tuple[float, Direction], tuple[float, float]] = field(
        default_factory=lambda: Kept(_MOST_RATES), init=False, repr=False, compare=False
    )

    @property
    def loss(self) -> MixtureLoss:
        """The composed loss."""
        loss = self.inverted.loss
        assert isinstance(loss, MixtureLoss)  # see :meth:`of`
        return loss

    @property
    def atoms(self) -> bool:
        """Whether there may be atoms: inversion alone then knows little."""
        return any(not isinstance(step, GaussianMixtureStep) for step, _ in self.loss.parts)

    @classmethod
    def of(cls, inverted: InvertedTradeoff, patient: bool = False) -> SoftenedTradeoff | None:
        """Return this engine where it works."""
        if not isinstance(inverted.loss, MixtureLoss):
            return None
        return cls(inverted, 1 << 22, float(1 << 31), 1 << 20) if patient else cls(inverted)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._hockey_stick_bracket(log_gamma, direction)[side == "upper"]

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._roc_bracket(fpr, direction)[side == "upper"]

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.inverted._largest_log_ratio(direction)

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.inverted._least_log_ratio(direction)

    def _hockey_stick_bracket(self, log_gamma: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        low = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0) * (1 - 4 * EPS)
        high = np.where(log_gamma >= self._largest_log_ratio(direction), 0.0, 1.0)
        threshold = log_gamma if direction == "add" else -log_gamma
        inside = np.isfinite(threshold) & (threshold > self.loss.lowest) & (threshold < self.loss.highest)
        places = np.flatnonzero(inside)
        try:
            numbers = self.inverted._map.number(threshold[places], 0)
        except TooSlowError:
            return low, high
        for number in np.unique(numbers):
            pair = self._pair(int(number))
            if pair is not None:
                mine = places[numbers == number]
                low[mine], high[mine] = pair.bracket(log_gamma[mine], direction)
        return low, high

    def _roc_bracket(self, fpr: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        found = np.array([self._rate(float(alpha), direction) for alpha in fpr]).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _rate(self, alpha: float, direction: Direction) -> tuple[float, float]:
        """Close in on the least value of γα + H_γ; every γ that was tried says something about it."""
        if not 0 < alpha < 1:
            return alpha, 1.0
        return self._brackets((alpha, direction), lambda: self._rate_of(alpha, direction))  # both sides are asked

    def _rate_of(self, alpha: float, direction: Direction) -> tuple[float, float]:
        found = self._least(alpha, direction)
        low, high = (alpha, 1.0) if found is None else found[:2]
        return max(low, alpha), min(max(high, alpha), 1.0)

    def _least(self, alpha: float, direction: Direction) -> tuple[float, float, float] | None:
        """Bounds on the least value of γα + H_γ, and log γ near which it is taken; None if no line is in reach."""
        try:
            guess = threshold_guesses(self.loss.truncation, np.array([alpha]), direction)
            reach = _NEAR * self.inverted._landmarks[3]
        except TooSlowError:
            return None
        if guess is None:
            return None
        middle = float(guess[0]) * (1.0 if direction == "add" else -1.0)
        tried: list[FloatArray] = []
        before = math.inf
        for _ in range(_ROUNDS):
            rows = self._tried(middle + reach * _LADDER, alpha, direction)
            if rows is None:
                break
            tried.append(rows)
            log_gamma, low, high = _sorted(tried)
            best, bound = int(np.argmin(high)), least_of_convex(np.exp(log_gamma), low, high)
            middle = float(log_gamma[best])
            gap = float(high[best]) - bound
            if gap <= _GOOD * float(high[best]) or reach < _FINEST or before * 0.9 < gap < math.inf:
                break
            before = gap
            inside = 0 < best < log_gamma.size - 1
            reach = float(max(log_gamma[best + 1] - middle, middle - log_gamma[best - 1])) if inside else 3 * reach
        if not tried:
            return None
        log_gamma, low, high = _sorted(tried)
        best = int(np.argmin(high))
        return least_of_convex(np.exp(log_gamma), low, high), float(high[best]), float(log_gamma[best])

    def _tried(self, log_gamma: FloatArray, alpha: float, direction: Direction) -> FloatArray | None:
        """log γ and the bracket of γα + H_γ, from one pair of lines; None if there is none."""
        sign = 1.0 if direction == "add" else -1.0
        threshold = np.clip(sign * float(log_gamma[log_gamma.size // 2]), *self._inside)
        pair = self._pair(int(self.inverted._map.number(np.array([threshold]), 0)[0]))
        if pair is None:
            return None
        log_gamma = log_gamma[log_gamma < MOST_EXPONENT]
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = pair.bracket(log_gamma, direction)
            paid = np.exp(log_gamma) * alpha
        return np.stack([log_gamma, low + paid * (1 - 8 * EPS), high + paid * (1 + 8 * EPS)])

    @cached_property
    def _inside(self) -> tuple[float, float]:
        """Ends of the range of the loss, a little inside."""
        low, high = self.loss.lowest, self.loss.highest
        margin = 1e-9 * (high - low) if math.isfinite(high - low) else 0.0
        return low + margin, high - margin

    def _pair(self, number: int) -> _Pair | None:
        return self._pairs(number, lambda: (self._laid(self.inverted._map.design(number, 0)),))[0]

    def _laid(self, design: float) -> _Pair | None:
        at_zero, _, at_one, _ = self.inverted._landmarks
        for way in self.inverted._ways(design):
            if way != "jumps":
                try:
                    body = at_zero < design < at_one
                    return pair_of_lines(self.loss, way, design, body, self.nodes, self.terms, self.kept)
                except (TooSlowError, MemoryError):
                    continue
        return None

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        if question == "roc":
            known = self._least(at, direction) if 0 < at < 1 else None
            at = math.nan if known is None else known[2]
        threshold = at if direction == "add" else -at
        if not self.loss.lowest < threshold < self.loss.highest:
            return Charged(self.method)
        pair = self._pair(int(self.inverted._map.number(np.array([threshold]), 0)[0]))
        if pair is None:
            return Charged(f"{self.method}: out of reach")
        found = pair.narrow.sums(np.array([threshold]))
        scale = 1.0 if direction == "add" else math.exp(min(-threshold, MOST_EXPONENT))
        aliasing, truncation, rounding = (float(x[2, 0]) for x in (found.aliasing, found.truncation, found.rounding))
        return Charged(self.method, "", aliasing, truncation, rounding).scaled(scale)


def pair_of_lines(
    loss: MixtureLoss, region: Region, threshold: float, body: bool, nodes: int, terms: float, kept: int
) -> _Pair:
    """Lay a line for thresholds near one, in the body of the law or not, with the least noise that it takes to end it.

    Raises
    ------
    TooSlowError
        If it takes more than this many nodes or terms, or would keep more nodes.
    """
    rough = Plan.of(loss, region, threshold, _TOLERANCE)
    c, width = rough.c, rough.width
    if not rough.nodes <= 4 * kept:
        raise TooSlowError(f"the transform does not fade within {kept} nodes")
    usual = math.sqrt(_BODY * width)
    if not body:
        usual = min(math.sqrt(_TAIL / max(abs(c * (c - 1)), 1e-300)), max(usual, 0.1 * width))
    for s, most in ((min(_SMALL * width, usual), _CHEAP), (usual, nodes)):
        softened = replace(rough.loss, gaussian=rough.loss.gaussian + s**2)
        plan = Plan.of(softened, region, threshold, _TOLERANCE)
        try:
            return _lay(plan, s, most, terms, kept)
        except TooSlowError:
            if most == nodes:
                raise
    raise TooSlowError("no line was laid")


def _lay(plan: Plan, s: float, most: int, terms: float, kept: int) -> _Pair:
    loss, c, period = plan.loss, plan.c, plan.period
    assert isinstance(loss, MixtureLoss)
    spacing, target = 2 * math.pi / period, math.exp(plan.log_target)
    t_end, truncation = loss.envelope(c, plan.width).cut(target, spacing)
    t = nodes_until(t_end, spacing, most)
    line = loss.line(c, float(t[-1]))
    if not t.size * line.loss.size <= terms:
        raise TooSlowError(f"{t.size} nodes of {line.loss.size} terms")
    log_m, error = line.transform(t, spacing)
    more = 3 * s**2
    shift = more * (plan.chernoff[0] * (2 * c + plan.chernoff[0] - 1)) / 2  # of K(θ) − K(c)
    chernoff = np.stack([plan.chernoff[0], plan.chernoff[1] + shift])
    narrow = _contour(plan, t, log_m, error, truncation, target)
    if narrow.size > kept:
        raise TooSlowError(f"{narrow.size} nodes to keep")
    wide = _contour(plan, t, log_m + more * (1j * t * (c - 0.5) - t**2 / 2), error, truncation, target)
    return _Pair(narrow, replace(wide, growth=plan.growth + more * c * (c - 1) / 2, chernoff=chernoff), s)


def _contour(
    plan: Plan, t: FloatArray, log_m: ComplexArray, error: FloatArray, truncation: FloatArray, target: float
) -> Contour:
    """The line without the nodes at its end that add next to nothing."""
    weight = half_line(t.size, plan.period)
    nearest = np.minimum(np.hypot(plan.c, t), np.hypot(plan.c - 1, t))  # no pole is nearer
    with np.errstate(under="ignore"):
        most = weight * (np.exp(log_m.real) + error) / nearest
    rest = np.append(np.cumsum(most[::-1])[::-1], 0.0)
    end = min(int(np.count_nonzero(rest > _NEGLIGIBLE * target)) + 1, t.size)  # rest falls
    t, weight, error = t[:end], weight[:end], error[:end]
    kernel = poles(plan.c + 1j * t)
    coefficients = (weight * np.exp(log_m[:end]))[:, None] * kernel
    sizes = np.abs(coefficients)
    left_out = rest[end] * np.array([1.0, 1.0, 1 / float(nearest[end - 1]), 0.0, 0.0])
    rounding = np.abs(kernel).T @ (weight * error) + 64 * EPS * sizes.sum(axis=0)
    return Contour(
        plan.region, plan.c, plan.threshold, plan.width, plan.growth, plan.period, t, coefficients, plan.chernoff,
        truncation + left_out, rounding, 4 * EPS * (sizes.T @ t), plan.loss.dropped,
    )  # fmt: skip


def _sorted(tried: list[FloatArray]) -> FloatArray:
    """All that was tried, by γ, each once: of neighbours that are nearly the same, the first."""
    rows = np.concatenate(tried, axis=1)
    rows = rows[:, np.argsort(rows[0], kind="stable")]
    return rows[:, np.diff(rows[0], prepend=-np.inf) > _FINEST / 16]


def least_of_convex(x: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Bound from below the least value of a convex function that lies between ``low`` and ``high`` at some x > 0.

    To the right of x_k it lies above its chord from x_{k−1} to x_k, continued; to the left of x_k above that from x_k
    to x_{k+1}. Returns −∞ where these do not show that the least value lies between the first and the last x.
    """
    rise = np.diff(x)
    if not (np.all((rise > 1e-300) & (rise < np.inf)) and np.isfinite(low).all() and np.isfinite(high).all()):
        return -math.inf
    least_slope = (low[1:] - high[:-1]) / rise  # of the chord between neighbours
    most_slope = (high[1:] - low[:-1]) / rise
    known = np.isfinite(least_slope).all() and np.isfinite(most_slope).all()
    if not (known and most_slope[0] <= 0 <= least_slope[-1]):
        return -math.inf
    bound = min(float(low[0]), float(low[-1]))
    for k in range(x.size - 1):
        lines = []
        if k > 0:
            lines.append((float(low[k]), float(least_slope[k - 1])))
        if k + 2 < x.size:
            slope = float(most_slope[k + 1])
            lines.append((float(low[k + 1]) - slope * float(rise[k]), slope))
        bound = min(bound, _lowest(lines, float(rise[k])))
    return bound - 64 * EPS * float(np.max(np.abs(high)))


def _lowest(lines: list[tuple[float, float]], length: float) -> float:
    """Least value, between 0 and ``length``, of the larger of lines a + b·x."""
    places = [0.0, length]
    if len(lines) == 2 and lines[0][1] != lines[1][1]:
        crossing = (lines[1][0] - lines[0][0]) / (lines[0][1] - lines[1][1])
        places.append(min(max(crossing, 0.0), length))
    return min(max(a + b * x for a, b in lines) for x in places)
