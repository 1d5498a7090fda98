"""Hockey sticks enclosed in ball arithmetic by inverting the transform of a composition."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from flint import acb, acb_mat, arb, ctx

from deniable._check import InputError
from deniable._kept import Kept
from deniable._search import bisect
from deniable.accounting.engines.ball_hockey_sticks import PRECISION, Bounds, clipped
from deniable.accounting.engines.ball_transform import BallStep, normal_tail, powers, top
from deniable.curves import Direction

_TARGET = 82.0  # −log of the absolute errors aimed at: 2e-36
_MOST_PRODUCTS = 6e7  # nodes × values of t: some seconds
_MOST_VALUES = 1e5
_WIDEST_SMOOTHING = 0.07
_RELATIVE_SMOOTHING = 0.2  # of the spread of the loss: beyond, little would be known


@dataclass(frozen=True, eq=False)
class BallLine:
    """Samples of the transform and what they leave out, for thresholds |x| ≤ ``widest``."""

    widest: float
    period: arb
    rows: acb_mat  # sample number a + small·b is in row a, column b
    small: int
    first: arb  # sample number 0
    missing: arb  # the sum of all further samples, over the period
    late: arb  # bounds on both hockey sticks one period away


@dataclass(frozen=True, eq=False)
class InvertedHockeySticks:
    """The inverted transform of any composition of steps, a Gaussian and randomised responses.

    With F(t) = E_out[e^{(½+it)L}] and A(x) = E min(in, e^x·out) = 1 − H_{e^x}(in‖out), B(x) = e^{−x/2}·A(x) has the
    Fourier transform F(t)/(¼ + t²), and by Poisson's formula with period P

        Σ_n B(x + nP) = (1/P)·Σ_k F(t_k)/(¼ + t_k²)·e^{−i·t_k·x},  t_k = 2πk/P.

    B is known one period away but for hockey sticks that Chernoff's bound makes negligible: B(y) = e^{−y/2}·(1 − H(y))
    on the right and e^{y/2}·(1 − H_out‖in(−y)) on the left. Further samples are bounded by :meth:`BallStep.decay`.

    Where |F| decays too slowly to be summed, a little Gaussian noise s is composed to the pair, U(γ) = E H(γY) with
    log Y ~ N(−s²/2, s²). As E Y = 1 and H is convex, U ≥ H; and for γ± = γ(1 ± κ) chords give
    U(γ) ≤ (1 − e₊ − e₋)·H(γ) + e₊·H(γ₊) + e₋·H(γ₋) + P(Y < 1 − κ) with e± = E min((Y − 1)±/κ, 1): a lower bound on H.
    """

    steps: tuple[tuple[BallStep, int], ...]
    squared: arb  # μ² of the Gaussian parts
    randomized_responses: tuple[tuple[float, int], ...]
    cut: bool = False  # never smooth: charge what is cut off instead
    _lines: Kept[int, BallLine] = field(default_factory=Kept, init=False, repr=False)

    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        """See :class:`HockeySticks`."""
        with ctx.workprec(self._bits):
            if self.smoothing == 0:
                value = self._smooth(x, direction)
                return clipped(value, value, x)
            s = arb(self.smoothing)
            reach = 12 * s
            places = (x, x + reach.log1p(), x + (-reach).log1p())
            here, above, below = (clipped(v, v, place) for place in places for v in [self._smooth(place, direction)])
            up = (_call(s, arb(0)) - _call(s, reach)) / reach
            down = (_put(s, arb(0)) - _put(s, -reach)) / reach
            beyond = normal_tail(-((-reach).log1p() / s + s / 2))
            low = (here[0] - up * above[1] - down * below[1] - beyond) / (1 - up - down)
            low, high = clipped(low, here[1], x)
            if self._without is None:
                return low, high
            other = self._without.hockey_sticks(x, direction)
            return low.max(other[0]), high.min(other[1])

    @cached_property
    def _without(self) -> InvertedHockeySticks | None:
        """The same without smoothing, where charging what is cut off promises to be the better of the two in places."""
        most, s = self._plan
        cut = math.exp(min(self._log_decay_guess(most), 0.0))
        return replace(self, cut=True) if cut < 2 * s * s / self._spread else None

    def guess(self, x: arb, direction: Direction) -> arb:
        """The stick of the smoothed pair."""
        with ctx.workprec(self._bits):
            return self._smooth(x, direction).mid()

    @property
    def scale(self) -> float:
        """See :class:`HockeySticks`."""
        return self._spread

    def range(self, log_rate: float) -> tuple[float, float]:
        """Chernoff's bound on either side."""
        ends = [
            min((float(growth.mid()) - 2 * log_rate + 1) / order for order, growth in self._moments[side])
            for side in (1, -1)
        ]
        return -ends[1], ends[0]

    def _smooth(self, x: arb, direction: Direction) -> arb:
        """The hockey stick of the pair with its smoothing noise."""
        if direction == "remove":  # H_γ(Q‖P) = 1 − γ·A(−x)
            return 1 - x.exp() * self._least(-x)
        return 1 - self._least(x)

    def _least(self, x: arb) -> arb:
        """A(x) = E min(in, e^x·out) of the smoothed pair."""
        line = self._line(float(abs(x).upper()) * (1 + 1e-12))
        step = 2 * arb.pi() / line.period
        turn = acb(0, -1) * step * x
        large = line.rows.ncols()
        left = acb_mat([[row[0] for row in powers([turn.exp()], line.small)]])
        right = acb_mat([row for row in powers([(line.small * turn).exp()], large)])
        whole = (left * line.rows * right).table()[0][0].real
        error = top(line.missing)
        total = (2 * whole - line.first) / line.period + arb(0, error)
        edge = 1 / (line.period / 2).expm1()
        unknown = top(edge * line.late * (1 + x.exp()))
        return (x / 2).exp() * total - (1 + x.exp()) * edge + arb(unknown / 2, unknown / 2)

    @cached_property
    def _bits(self) -> int:
        """Bits of precision: cancellation by 4/P, and errors that are multiplied by the number of steps."""
        count = sum(count for _, count in self.steps) + sum(count for _, count in self.randomized_responses)
        return PRECISION + round(math.log2(count + 2) + 3 * max(0.0, -math.log2(self._near_period)))

    @cached_property
    def _digits(self) -> float:
        count = sum(count for _, count in self.steps)
        return _TARGET + math.log(count + 1) + max(0.0, math.log(4 / self._near_period)) + 12

    @cached_property
    def smoothing(self) -> float:
        """Standard deviation s of the noise that is composed to the pair; 0 where it is not needed."""
        self._check_cost()
        return self._plan[1]

    @cached_property
    def _near_period(self) -> float:
        """Period for thresholds near 0."""
        return max(order[1] for order in self._orders(0.0))

    def _orders(self, widest: float) -> list[tuple[float, float]]:
        """For either side, the θ and the period P with log E e^{θL} − θ·(P − widest) ≤ −target, the least such P."""
        found = []
        for side in (1, -1):
            candidates = [
                (order, (float(top(growth)) + 1e-9 * abs(float(growth.mid())) + _TARGET + 3) / order + widest)
                for order, growth in self._moments[side]
            ]
            found.append(min(candidates, key=lambda pair: pair[1]))
        return found

    @cached_property
    def _moments(self) -> dict[int, list[tuple[float, arb]]]:
        """θ and upper bounds on log E_in e^{θL} (side 1) and log E_out e^{−θL} (side −1)."""
        with ctx.workprec(128):
            found: dict[int, list[tuple[float, arb]]] = {1: [], -1: []}
            best = math.sqrt(2 * _TARGET) / self._spread
            for side in (1, -1):
                for k in range(60):
                    order = best * 1.5 * 1.6**-k
                    growth = self._log_moment(1 + order if side > 0 else -order)
                    if growth is not None:
                        found[side].append((order, growth))
                    periods = [(float(growth.mid()) + _TARGET) / order for order, growth in found[side]]
                    if len(periods) > 4 and periods[-1] > 2 * min(periods) and periods[-2] > 1.5 * min(periods):
                        break
                    if order < 1e-3 and periods:
                        break
                if not found[side]:
                    raise InputError(
                        "engine 'ball' finds no exponential moment of the loss that it can enclose; use engine='auto'"
                    )
            return found

    def _log_moment(self, c: float) -> arb | None:
        total = self.squared * (arb(c) ** 2 - arb(c)) / 2
        for step, count in self.steps:
            one = step.log_moment(c)
            if one is None:
                return None
            total += count * one
        for epsilon, count in self.randomized_responses:
            eps = arb(epsilon)
            total += count * ((((arb(c) - 1) * eps).exp() + (-arb(c) * eps).exp()) / (1 + (-eps).exp())).log()
        return top(total)

    @cached_property
    def _spread(self) -> float:
        """Standard deviation of the loss without its rare large values, roughly: log r to first order below u = 3."""
        variance = float(self.squared.mid()) + sum(count * eps**2 for eps, count in self.randomized_responses)
        for step, count in self.steps:
            variance += count * step.bulk_variance
        return max(math.sqrt(variance), 1e-14)

    @cached_property
    def _plan(self) -> tuple[float, float]:
        """Largest t of the samples and the smoothing, in double precision: from these the bounds are proven."""
        nodes = sum(step.count(150.0) for step, _ in self.steps) or 1.0
        period = max(order[1] for order in self._orders(0.0))
        most = max(min(_MOST_PRODUCTS / nodes, _MOST_VALUES) * 2 * math.pi / period, 40 / period)
        goal = -_TARGET - 2
        if self._log_decay_guess(most) > goal:
            if self.cut:
                return most, 0.0
            return most, math.sqrt(2 * (self._log_decay_guess(most) - goal)) / most
        low, high = 1e-3 * most, most
        for _ in range(12):  # where nearly everything leaks, the transform is small from the start
            if self._log_decay_guess(low) > goal:
                break
            low, high = low / 10, low
        end, _ = bisect(
            lambda x: self._log_decay_guess(math.exp(x)) <= goal, math.log(high), math.log(low), halvings=30
        )
        return math.exp(end), 0.0

    def _log_decay_guess(self, t: float) -> float:
        found = -float(self.squared.mid()) * t * t / 2 - math.log(t)
        return found + sum(count * step.decay_guess(t)[1] for step, count in self.steps)

    def _check_cost(self) -> None:
        if self._plan[1] > min(_WIDEST_SMOOTHING, _RELATIVE_SMOOTHING * self._spread):
            raise InputError(
                f"engine 'ball' would need more than {_MOST_PRODUCTS:.0e} products for this mechanism: its loss "
                f"spreads by {self._spread:.1g} but for rare values up to {self._near_period / 2:.1g}, and its "
                "transform does not decay within reach (a few steps, or a few rare ones, at these noise multipliers "
                "and sample rates); use engine='auto'"
            )

    def _line(self, widest: float) -> BallLine:
        """The line of the first rung of a ladder of thresholds that is at least ``widest``."""
        rung, place = 0, 0.4 * self._near_period
        while place < widest:
            rung, place = rung + 1, 1.5 * place
        return self._lines(rung, lambda: self._lay(place))

    def _lay(self, widest: float) -> BallLine:
        last, s = self._plan[0], arb(self.smoothing)
        squared = self.squared + s * s
        orders = self._orders(widest)
        period = arb(1.01 * max(order[1] for order in orders) + 14 * self.smoothing)
        late = arb(0)
        for (order, _), side in zip(orders, (1, -1), strict=True):
            growth = next(g for o, g in self._moments[side] if o == order)
            theta = arb(order)
            late = late.max(top((growth + s * s * (theta * theta + theta) / 2 - theta * (period - arb(widest))).exp()))
        spacing = 2 * arb.pi() / period
        count = math.ceil(last / float(spacing.mid())) + 1
        values = self._samples(spacing, count, squared)
        end = spacing * (count - 1)
        missing = self._decay(end, squared) / (arb.pi() * end)
        small = math.isqrt(count - 1) + 1
        large = -(-count // small)
        values += [acb(0)] * (small * large - count)
        rows = acb_mat([[values[a + small * b] for b in range(large)] for a in range(small)])
        return BallLine(widest, period, rows, small, values[0].real, missing, late)

    def _samples(self, spacing: arb, count: int, squared: arb) -> list[acb]:
        values = [acb(1)] * count
        for step, times in self.steps:
            found = step.transform(spacing, count, self._digits)
            values = [v * m**times for v, m in zip(values, found, strict=True)]
        for k in range(count):
            t = spacing * k
            factor = (-squared * (t * t + 0.25) / 2).exp() / (t * t + 0.25)
            for epsilon, times in self.randomized_responses:
                eps = arb(epsilon)
                factor *= ((eps * t).cos() / (eps / 2).cosh()) ** times
            values[k] = values[k] * factor
        return values

    def _decay(self, end: arb, squared: arb) -> arb:
        """Bound on |F(t)| for every t ≥ ``end``."""
        bound = (-squared * end * end / 2).exp()
        for step, count in self.steps:
            shift, _ = step.decay_guess(float(end.mid()))
            bound *= step.decay(shift, end.lower()) ** count
        return top(bound)


def _call(s: arb, k: arb) -> arb:
    """E (Y − 1 − k)₊ for log Y ~ N(−s²/2, s²)."""
    d = -(1 + k).log() / s + s / 2
    return normal_tail(-d) - (1 + k) * normal_tail(s - d)


def _put(s: arb, k: arb) -> arb:
    """E (1 + k − Y)₊ for log Y ~ N(−s²/2, s²)."""
    d = -(1 + k).log() / s + s / 2
    return (1 + k) * normal_tail(d - s) - normal_tail(d)


def phases(merged: Iterable[tuple[float, float, int]]) -> tuple[tuple[BallStep, int], ...]:
    """Steps with their numbers from (σ, q, T)."""
    return tuple((BallStep(sigma, rate), count) for sigma, rate, count in merged)
