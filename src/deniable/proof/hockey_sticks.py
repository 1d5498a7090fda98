"""Hockey sticks enclosed in ball arithmetic: closed forms, finite laws, and the inverted transform of a composition.

Each class gives ``hockey_sticks(x, direction)``: a lower and an upper bound on H at γ = e^x, as exact balls. They share
no code with engines in double precision.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

from flint import acb, acb_mat, arb, ctx

from deniable._check import InputError
from deniable._kept import Kept
from deniable._search import bisect
from deniable.curves import Direction
from deniable.proof.transform import BLOCK, BallStep, normal_tail, powers, top

Bounds = tuple[arb, arb]
PRECISION = 220  # bits
_TARGET = math.log(math.sqrt(2.0**PRECISION))  # −log of the absolute errors aimed at, 8e-34: half of the bits
_MOST_PRODUCTS = 6e7  # nodes × values of t: some seconds


class HockeySticks(ABC):
    """A pair of laws known through its hockey sticks."""

    @abstractmethod
    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        """Lower and upper bound on H at γ = e^x."""

    def guess(self, x: arb, direction: Direction) -> arb:
        """A value near H, cheap and unproven: for searches."""
        return self.hockey_sticks(x, direction)[0]

    @property
    @abstractmethod
    def scale(self) -> float:
        """A length of the loss over which H bends, to place thresholds."""


def clip_to_possible(low: arb, high: arb, x: arb) -> Bounds:
    """Intersect with what always holds: 0 ≤ H ≤ 1 and H ≥ 1 − γ."""
    least = (1 - x.exp()).lower()
    low = low.lower().max(least).max(arb(0))
    return low, high.upper().min(arb(1)).max(low)


@dataclass(frozen=True)
class GaussianHockeySticks(HockeySticks):
    """N(0, 1) against N(μ, 1), both directions alike: H = Φ(μ/2 − x/μ) − e^x·Φ(−μ/2 − x/μ)."""

    squared: arb

    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        mu = self.squared.sqrt()
        if not mu > 0:
            return clip_to_possible(arb(0), (1 - x.exp()).max(arb(0)), x)
        value = normal_tail(x / mu - mu / 2) - x.exp() * normal_tail(x / mu + mu / 2)
        return clip_to_possible(value, value, x)

    @property
    def scale(self) -> float:
        return max(float(self.squared.sqrt()), 1e-14)


@dataclass(frozen=True)
class OneStepHockeySticks(HockeySticks):
    """One subsampled step: the likelihood ratio rises with u, so that tests are half-lines.

    Above u with r(u) = γ: out Φ(−u), in (1 − q)·Φ(−u) + q·Φ(1/σ − u) (Mahloujifar et al., Theorem 6 with one step).
    """

    step: BallStep

    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        if direction == "add":  # H_γ(Q‖P) = 1 − γ + γ·H_{1/γ}(P‖Q)
            low, high = self.hockey_sticks(-x, "remove")
            gamma = x.exp()
            return clip_to_possible(1 - gamma + gamma * low, 1 - gamma + gamma * high, x)
        sigma, q, gamma = arb(self.step.sigma), arb(self.step.rate), x.exp()
        over = gamma - 1 + q
        if not over > 0:  # every outcome is above the threshold, or it cannot be told
            value = 1 - gamma
            return clip_to_possible(value, value if over < 0 else value + q, x)
        u = sigma * (over / q).log() + 1 / (2 * sigma)
        out, hit = normal_tail(u), normal_tail(u - 1 / sigma)
        value = q * hit - over * out
        return clip_to_possible(value, value, x)

    @property
    def scale(self) -> float:
        sigma, q = self.step.sigma, self.step.rate
        return min(q / sigma, 1.0)


@dataclass(frozen=True)
class FiniteHockeySticks(HockeySticks):
    """Randomised responses alone, the worst pairs of pure DP: every outcome and its two probabilities."""

    outcomes: tuple[tuple[arb, arb], ...]  # (loss, probability under "in"); under "out" it is e^{−loss} times that

    @classmethod
    def of(cls, randomized_responses: tuple[tuple[float, int], ...]) -> FiniteHockeySticks:
        """All sums of losses: ε·(n − 2k) has probability C(n, k)·p^{n−k}(1 − p)^k under "in", p = e^ε/(1 + e^ε)."""
        size = math.prod(count + 1 for _, count in randomized_responses)
        if size > BLOCK:
            raise InputError(
                f"ball arithmetic enumerates compositions of PureDP and ApproximateDP up to {BLOCK} outcomes, "
                f"got {size}; use deniable.tradeoff"
            )
        with ctx.workprec(PRECISION):
            law = [(arb(0), arb(1))]
            for epsilon, count in randomized_responses:
                eps = arb(epsilon)
                right, wrong = 1 / (1 + (-eps).exp()), 1 / (1 + eps.exp())
                one = [(eps * (count - 2 * k), arb(count).bin(k) * right ** (count - k) * wrong**k)
                       for k in range(count + 1)]  # fmt: skip
                law = [(a + b, p * r) for a, p in law for b, r in one]
        return cls(tuple(law))

    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        total = arb(0)  # the law is symmetric: both directions are alike
        for loss, mass in self.outcomes:
            total += mass * (-(x - loss).expm1()).max(arb(0))
        return clip_to_possible(total, total, x)

    @property
    def scale(self) -> float:
        return max(1e-3 * max(float(loss.mid()) for loss, _ in self.outcomes), 1e-12)


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
class InvertedHockeySticks(HockeySticks):
    """The inverted transform of any composition of steps, a Gaussian and randomised responses.

    With F(t) = E_out[e^{(½+it)L}] and A(x) = E min(in, e^x·out) = 1 − H_{e^x}(in‖out), B(x) = e^{−x/2}·A(x) has the
    Fourier transform F(t)/(¼ + t²), and by Poisson's formula with period P

        Σ_n B(x + nP) = (1/P)·Σ_k F(t_k)/(¼ + t_k²)·e^{−i·t_k·x},  t_k = 2πk/P.

    B is known one period away but for hockey sticks that Chernoff's bound makes negligible: B(y) = e^{−y/2}·(1 − H(y))
    on the right and e^{y/2}·(1 − H_out‖in(−y)) on the left. Further samples are bounded by :meth:`BallStep.decay`.
    """

    steps: tuple[tuple[BallStep, int], ...]
    squared: arb  # μ² of the Gaussian parts
    randomized_responses: tuple[tuple[float, int], ...]
    _lines: Kept[int, BallLine] = field(default_factory=Kept, init=False, repr=False)

    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        with ctx.workprec(self._bits):
            value = self._value(x, direction)
            low, high = clip_to_possible(value, value, x)
            return low, high.min(self._tail(x, direction))

    def _tail(self, x: arb, direction: Direction) -> arb:
        """Chernoff's bound on the mass above γ, which a hockey stick is at most: searches end by it."""
        found = arb(1)
        for order, growth in self._moments[1 if direction == "remove" else -1]:
            found = found.min((top(growth) - order * x).exp().upper())
        return found

    def guess(self, x: arb, direction: Direction) -> arb:
        with ctx.workprec(self._bits):
            return self._value(x, direction).mid()

    @property
    def scale(self) -> float:
        return self._loss_sd

    def _value(self, x: arb, direction: Direction) -> arb:
        if direction == "add":  # H_γ(Q‖P) = 1 − γ·A(−x)
            return 1 - x.exp() * self._least(-x)
        return 1 - self._least(x)

    def _least(self, x: arb) -> arb:
        """A(x) = E min(in, e^x·out)."""
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
            best = math.sqrt(2 * _TARGET) / self._loss_sd
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
                        "ball arithmetic finds no exponential moment of the loss that it can enclose; "
                        "use deniable.tradeoff"
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
    def _loss_sd(self) -> float:
        """Standard deviation of the loss without its rare large values, roughly: log r to first order below u = 3."""
        variance = float(self.squared.mid()) + sum(count * eps**2 for eps, count in self.randomized_responses)
        for step, count in self.steps:
            variance += count * step.bulk_variance
        return max(math.sqrt(variance), 1e-14)

    @cached_property
    def _last(self) -> float:
        """Largest t of the samples, in double precision: from it the bounds are proven.

        Raises
        ------
        InputError
            Where what is cut off would be more than the loss spreads by.
        """
        nodes = sum(step.count(150.0) for step, _ in self.steps) or 1.0
        period = self._near_period
        most = max(min(_MOST_PRODUCTS / nodes, BLOCK) * 2 * math.pi / period, 40 / period)
        goal = -_TARGET - 2
        if self._log_decay_guess(most) > math.log(self._loss_sd):
            raise InputError(
                f"ball arithmetic would need more than {_MOST_PRODUCTS:.0e} products for this mechanism: its loss "
                f"spreads by {self._loss_sd:.1g} but for rare values up to {self._near_period / 2:.1g}, and its "
                "transform does not decay within reach (a few steps, or a few rare ones, at these noise multipliers "
                "and sample rates); use deniable.tradeoff"
            )
        if self._log_decay_guess(most) > goal:
            return most
        low, high = 1e-3 * most, most
        for _ in range(12):  # where nearly everything leaks, the transform is small from the start
            if self._log_decay_guess(low) > goal:
                break
            low, high = low / 10, low
        end, _ = bisect(
            lambda x: self._log_decay_guess(math.exp(x)) <= goal, math.log(high), math.log(low), halvings=30
        )
        return math.exp(end)

    def _log_decay_guess(self, t: float) -> float:
        found = -float(self.squared.mid()) * t * t / 2 - math.log(t)
        return found + sum(count * step.decay_guess(t)[1] for step, count in self.steps)

    def _line(self, widest: float) -> BallLine:
        """The line of the first rung of a ladder of thresholds that is at least ``widest``."""
        rung, place = 0, 0.4 * self._near_period
        while place < widest:
            rung, place = rung + 1, 1.5 * place
        return self._lines(rung, lambda: self._lay(place))

    def _lay(self, widest: float) -> BallLine:
        orders = self._orders(widest)
        period = arb(1.01 * max(order[1] for order in orders))
        late = arb(0)
        for (order, _), side in zip(orders, (1, -1), strict=True):
            growth = next(g for o, g in self._moments[side] if o == order)
            theta = arb(order)
            late = late.max(top((growth - theta * (period - arb(widest))).exp()))
        spacing = 2 * arb.pi() / period
        count = math.ceil(self._last / float(spacing.mid())) + 1
        values = self._samples(spacing, count)
        end = spacing * (count - 1)
        missing = self._decay(end) / (arb.pi() * end)
        small = math.isqrt(count - 1) + 1
        large = -(-count // small)
        values += [acb(0)] * (small * large - count)
        rows = acb_mat([[values[a + small * b] for b in range(large)] for a in range(small)])
        return BallLine(widest, period, rows, small, values[0].real, missing, late)

    def _samples(self, spacing: arb, count: int) -> list[acb]:
        values = [acb(1)] * count
        for step, times in self.steps:
            found = step.transform(spacing, count, self._digits)
            values = [v * m**times for v, m in zip(values, found, strict=True)]
        for k in range(count):
            t = spacing * k
            factor = (-self.squared * (t * t + 0.25) / 2).exp() / (t * t + 0.25)
            for epsilon, times in self.randomized_responses:
                eps = arb(epsilon)
                factor *= ((eps * t).cos() / (eps / 2).cosh()) ** times
            values[k] = values[k] * factor
        return values

    def _decay(self, end: arb) -> arb:
        """Bound on |F(t)| for every t ≥ ``end``."""
        bound = (-self.squared * end * end / 2).exp()
        for step, count in self.steps:
            shift, _ = step.decay_guess(float(end.mid()))
            bound *= step.decay(shift, end.lower()) ** count
        return top(bound)
