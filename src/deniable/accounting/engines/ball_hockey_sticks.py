"""Hockey sticks enclosed in ball arithmetic: what is asked of a pair of laws, closed forms and finite laws.

Each class gives ``hockey_sticks(x, direction)``: a lower and an upper bound on H at γ = e^x, as exact balls. They share
no code with the engines in double precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from flint import arb, ctx

from deniable._check import InputError
from deniable.accounting.engines.ball_transform import BallStep, normal_tail
from deniable.curves import Direction

Bounds = tuple[arb, arb]
PRECISION = 220  # bits
_LARGEST_FINITE = 100_000


class HockeySticks(Protocol):
    """A pair of laws known through its hockey sticks."""

    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        """Lower and upper bound on H at γ = e^x."""
        ...

    def guess(self, x: arb, direction: Direction) -> arb:
        """A value near H, cheap and unproven: for searches."""
        ...

    @property
    def scale(self) -> float:
        """A length of the loss over which H bends, to place thresholds."""
        ...

    def range(self, log_rate: float) -> tuple[float, float]:
        """Where thresholds of tests lie whose error rates are at least e^{log_rate}; only a search uses it."""
        ...


def clipped(low: arb, high: arb, x: arb) -> Bounds:
    """Intersect with what always holds: 0 ≤ H ≤ 1 and H ≥ 1 − γ."""
    least = (1 - x.exp()).lower()
    low = low.lower().max(least).max(arb(0))
    return low, high.upper().min(arb(1)).max(low)


@dataclass(frozen=True)
class GaussianHockeySticks:
    """N(0, 1) against N(μ, 1), both directions alike: H = Φ(μ/2 − x/μ) − e^x·Φ(−μ/2 − x/μ)."""

    squared: arb

    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        """See :class:`HockeySticks`."""
        mu = self.squared.sqrt()
        if not mu > 0:
            return clipped(arb(0), (1 - x.exp()).max(arb(0)), x)
        value = normal_tail(x / mu - mu / 2) - x.exp() * normal_tail(x / mu + mu / 2)
        return clipped(value, value, x)

    def guess(self, x: arb, direction: Direction) -> arb:
        """See :class:`HockeySticks`."""
        return self.hockey_sticks(x, direction)[0]

    @property
    def scale(self) -> float:
        """See :class:`HockeySticks`."""
        return float(self.squared.sqrt())

    def range(self, log_rate: float) -> tuple[float, float]:
        """See :class:`HockeySticks`."""
        mu = self.scale
        reach = mu * math.sqrt(-2 * log_rate + 10) + mu * mu
        return -reach, reach


@dataclass(frozen=True)
class OneStepHockeySticks:
    """One subsampled step: the likelihood ratio rises with u, so that tests are half-lines.

    Above u with r(u) = γ: out Φ(−u), in (1 − q)·Φ(−u) + q·Φ(1/σ − u) (Mahloujifar et al., Theorem 6 with one step).
    """

    step: BallStep

    def hockey_sticks(self, x: arb, direction: Direction) -> Bounds:
        """See :class:`HockeySticks`."""
        if direction == "remove":  # H_γ(Q‖P) = 1 − γ + γ·H_{1/γ}(P‖Q)
            low, high = self.hockey_sticks(-x, "add")
            gamma = x.exp()
            return clipped(1 - gamma + gamma * low, 1 - gamma + gamma * high, x)
        sigma, q, gamma = arb(self.step.sigma), arb(self.step.rate), x.exp()
        over = gamma - 1 + q
        if not over > 0:  # every outcome is above the threshold, or it cannot be told
            value = 1 - gamma
            return clipped(value, value if over < 0 else value + q, x)
        u = sigma * (over / q).log() + 1 / (2 * sigma)
        out, hit = normal_tail(u), normal_tail(u - 1 / sigma)
        value = q * hit - over * out
        return clipped(value, value, x)

    def guess(self, x: arb, direction: Direction) -> arb:
        """See :class:`HockeySticks`."""
        return self.hockey_sticks(x, direction)[0]

    @property
    def scale(self) -> float:
        """See :class:`HockeySticks`."""
        sigma, q = self.step.sigma, self.step.rate
        return min(q / sigma, 1.0)

    def range(self, log_rate: float) -> tuple[float, float]:
        """See :class:`HockeySticks`."""
        sigma, q = self.step.sigma, self.step.rate
        u = math.sqrt(-2 * log_rate + 10) + 1 / sigma
        with ctx.workprec(PRECISION):
            ends = [math.log1p(-q), *(float(self.step._ratio(arb(v)).log().mid()) for v in (-u, u))]
        return min(ends), max(ends)


@dataclass(frozen=True)
class FiniteHockeySticks:
    """Randomised responses alone, the worst pairs of pure DP: every outcome and its two probabilities."""

    outcomes: tuple[tuple[arb, arb], ...]  # (loss, probability under "in"); under "out" it is e^{−loss} times that

    @classmethod
    def of(cls, randomized_responses: tuple[tuple[float, int], ...]) -> FiniteHockeySticks:
        """All sums of losses: ε·(n − 2k) has probability C(n, k)·p^{n−k}(1 − p)^k under "in", p = e^ε/(1 + e^ε)."""
        size = math.prod(count + 1 for _, count in randomized_responses)
        if size > _LARGEST_FINITE:
            raise InputError(
                f"engine 'ball' enumerates compositions of PureDP and ApproximateDP up to {_LARGEST_FINITE} outcomes, "
                f"got {size}; use engine='auto'"
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
        """See :class:`HockeySticks`."""
        total = arb(0)  # the law is symmetric: both directions are alike
        for loss, mass in self.outcomes:
            total += mass * (-(x - loss).expm1()).max(arb(0))
        return clipped(total, total, x)

    def guess(self, x: arb, direction: Direction) -> arb:
        """See :class:`HockeySticks`."""
        return self.hockey_sticks(x, direction)[0]

    @property
    def scale(self) -> float:
        """See :class:`HockeySticks`."""
        return max(1e-3 * max(float(loss.mid()) for loss, _ in self.outcomes), 1e-12)

    def range(self, log_rate: float) -> tuple[float, float]:
        """See :class:`HockeySticks`."""
        largest = max(float(loss.mid()) for loss, _ in self.outcomes) + 1e-9
        return -largest, largest
