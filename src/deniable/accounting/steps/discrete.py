"""Laws on countably many outcomes: randomised response, discrete noise, two probability vectors."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.sizes import MOST, UNDERFLOW
from deniable.accounting.steps.base import Step, log_moment
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.outcomes import REACH, ListedOutcomes
from deniable.accounting.steps.ratios import sampled_losses
from deniable.curves import ApproximateTradeoff, Direction, Tradeoff, randomized_response_divergence

_ALIKE = 1e-12  # in units of a lattice: nearer than that, losses lie on it


class Outcomes(NamedTuple):
    """Outcomes that both laws can produce, losses increasing, or all of them but ``lost``."""

    loss: FloatArray
    p: FloatArray
    q: FloatArray
    shift: float  # bound on the error of losses
    relative_error: float  # of masses
    lost: tuple[float, float]


@dataclass(frozen=True)
class DiscreteStep(Step):
    """A step whose outcomes can be listed."""

    attained = True

    @abstractmethod
    def outcomes(self) -> Outcomes:
        """Return the outcomes that matter."""

    def pieces(self) -> tuple[ListedOutcomes, ...]:
        found = self.outcomes()
        seen = (found.p > 0) & (found.q > 0)
        masses = found.loss[seen], found.p[seen], found.q[seen]
        return (ListedOutcomes(*masses, found.shift, found.relative_error),)

    @property
    def lost(self) -> tuple[float, float]:
        return self.outcomes().lost

    misplaced = (0.0, 0.0)  # what is lost are whole outcomes

    @property
    def lowest(self) -> float:
        return float(np.min(self.outcomes().loss))

    @property
    def highest(self) -> float:
        return float(np.max(self.outcomes().loss))

    @property
    def even(self) -> bool:
        return self.pitch > 0

    def support(self, count: int) -> FiniteLaw | None:
        found = self.outcomes()
        reach = self.highest, -self.lowest
        one = FiniteLaw(found.loss, found.p, found.q, found.relative_error, found.shift, (0.0, 0.0), found.lost, reach)
        return one.times(count)


@dataclass(frozen=True)
class FinitePairStep(DiscreteStep):
    """Two probability vectors, taken as exact."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    @property
    def law(self) -> FiniteLaw:
        """The sorted law, with what only one of the two can produce."""
        return _finite_law(self.p, self.q)

    @property
    def only(self) -> tuple[float, float]:
        return self.law.only

    def outcomes(self) -> Outcomes:
        law = self.law
        if law.p.size == 0:  # the two have nothing in common
            return Outcomes(np.zeros(1), np.zeros(1), np.full(1, 1e-320), 0.0, 0.0, (0.0, 0.0))
        shift = law.shift + _ALIKE * self.pitch
        return Outcomes(law.log_ratio, law.p, law.q, shift, law.relative_error, (0.0, 0.0))

    @property
    def pitch(self) -> float:
        losses = self.law.log_ratio
        if losses.size == 0 or losses[0] == losses[-1]:
            return 1.0
        rise, apart = losses - losses[0], np.diff(losses)
        unit = float(np.max(apart)) if losses.size == 2 else float(np.min(apart[apart > 1e-9 * rise[-1]]))
        places = rise / unit
        return unit if np.all(np.abs(places - np.rint(places)) < _ALIKE) else 0.0

    def support(self, count: int) -> FiniteLaw | None:
        return self.law.times(count)


@lru_cache(maxsize=64)
def _finite_law(p: tuple[float, ...], q: tuple[float, ...]) -> FiniteLaw:
    return FiniteLaw.of(p, q)


@dataclass(frozen=True)
class ResponseStep(DiscreteStep):
    """Randomised response over k ≥ 2 categories: the true one with odds e^ε against each other one.

    Of two inputs, one answer has loss ε, one −ε, and the other k − 2 are the same in both worlds.
    """

    epsilon: float
    categories: int

    symmetric = True

    def outcomes(self) -> Outcomes:
        small = math.exp(-self.epsilon)
        total = 1 + (self.categories - 1) * small
        loss = np.array([-self.epsilon, 0.0, self.epsilon])
        p = np.array([small, (self.categories - 2) * small, 1.0]) / total
        keep = p > 0
        return Outcomes(loss[keep], p[keep], p[::-1][keep], 0.0, 8 * EPS, (0.0, 0.0))

    @property
    def pitch(self) -> float:
        return self.epsilon if self.categories > 2 else 2 * self.epsilon

    def one_step(self) -> Tradeoff | None:
        return ApproximateTradeoff(self.epsilon, 0.0) if self.categories == 2 else None

    def support(self, count: int) -> FiniteLaw | None:
        two = self.categories == 2
        return FiniteLaw.randomized_responses(self.epsilon, count) if two else super().support(count)

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """That of two categories with the probability that either of the two inputs is the answer, else nothing."""
        small = math.exp(-self.epsilon)
        share, exponent = (1 + small) / (1 + (self.categories - 1) * small), order - 1
        two = randomized_response_divergence(self.epsilon, order)
        if self.categories == 2:
            return two
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.log1p(share * np.expm1(np.minimum(exponent * two, MOST_EXPONENT)))
            far = np.log(share) + exponent * two + (1 - share) / share * math.exp(-MOST_EXPONENT)
            found = np.where(exponent * two < MOST_EXPONENT, grown, far) / exponent * (1 + 16 * EPS)
        return np.fmin(found, two)


def _subsample(found: Outcomes, rate: float) -> Outcomes:
    """The same step made with probability ``rate``, else Q: the likelihood ratio becomes 1 − q + q·r."""
    if rate == 1:
        return found
    loss = sampled_losses(found.loss, rate)
    p = (1 - rate) * found.q + rate * found.p
    shift = found.shift + 8 * EPS * (1 + float(np.max(np.abs(loss))))
    return found._replace(loss=loss, p=p, shift=shift, relative_error=found.relative_error + 4 * EPS)


@dataclass(frozen=True)
class DiscreteLaplaceStep(DiscreteStep):
    """Noise with masses proportional to a^{|x|}, a = e^{−1/b}, on the integers, moved by a whole number Δ.

    All x ≤ 0 have loss −Δ/b and all x ≥ Δ have Δ/b; between, x has (2x − Δ)/b.
    """

    scale: float
    sensitivity: int
    rate: float

    def outcomes(self) -> Outcomes:
        moved, b = self.sensitivity, self.scale
        x = np.arange(moved + 1, dtype=np.float64)
        q = np.exp(-x / b) * (math.tanh(1 / (2 * b)))  # (1 − a)/(1 + a)
        ends = 1 / (1 + math.exp(-1 / b))
        q[0], q[-1] = ends, ends * math.exp(-moved / b)
        loss = (2 * x - moved) / b
        found = Outcomes(loss, q[::-1].copy(), q, 4 * EPS * moved / b, 8 * EPS * (1 + moved / b), (0.0, 0.0))
        return _subsample(found, self.rate)

    @property
    def symmetric(self) -> bool:
        return self.rate == 1

    @property
    def pitch(self) -> float:
        if self.rate == 1:
            return 2 / self.scale
        return self.highest - self.lowest if self.sensitivity == 1 else 0.0


@dataclass(frozen=True)
class DiscreteGaussianStep(DiscreteStep):
    """Noise with masses proportional to e^{−x²/(2σ²)} on the integers, moved by a whole number Δ.

    The loss of x is Δ·(2x − Δ)/(2σ²) (Canonne, Kamath & Steinke 2020).
    """

    sigma: float
    sensitivity: int
    rate: float

    highest = math.inf
    bounds_divergence = True

    @property
    def lowest(self) -> float:
        return math.log1p(-self.rate) if self.rate < 1 else -math.inf

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """α·Δ²/(2σ²) (Canonne, Kamath & Steinke 2020, Theorem 4), where every record takes part; else a sum.

        Left out are outcomes 38 deviations from all that a tilt c moves to. There r^c is at most (2q·r₁)^c + 2^c if
        c > 1, r₁ the ratio of a step with every record, and (1 − q)^c if c < 0.
        """
        plain = order * ((self.sensitivity / self.sigma) ** 2 / 2 * (1 + 8 * EPS))
        if self.rate == 1:
            return plain
        ends = plain if direction == "remove" else np.full(order.shape, -self.lowest)
        powers = order if direction == "remove" else 1 - order
        found = [
            self._log_moment(c) / (a - 1) if a < math.inf else math.inf
            for a, c in zip(order.tolist(), powers.tolist(), strict=True)
        ]
        return np.minimum(found, ends * (1 + 8 * EPS))

    def _log_moment(self, c: float) -> float:
        sigma, moved = self.sigma, self.sensitivity
        reach, last = 38 * sigma + 2, max(c, 1.0) * moved
        if not last + 2 * reach < MOST:
            return math.inf
        x = np.arange(math.floor(-reach), math.ceil(last + reach) + 1, dtype=np.float64)
        loss = sampled_losses(moved * (2 * x - moved) / (2 * sigma**2), self.rate)
        log_q = -(x**2) / (2 * sigma**2) - math.log(_theta(sigma))
        log_outside = float(np.logaddexp(math.log1p(-self.rate) * c, math.log1p(abs(c))))
        if c > 1:
            grown = c * math.log(self.rate) + c * (c - 1) * (moved / sigma) ** 2 / 2
            log_outside = c * math.log(2) + float(np.logaddexp(0.0, grown))
        # 8 roundings of exponents that are as large as these
        size = 8 * EPS * (abs(c) * float(np.max(np.abs(loss))) + float(np.max(-log_q)))
        # a share of what the moment exceeds 1 by is at most that share of its logarithm
        return log_moment(loss, loss + log_q, c, math.exp(min(log_outside - 700, MOST_EXPONENT))) * (1 + size)

    def outcomes(self) -> Outcomes:
        sigma, moved = self.sigma, self.sensitivity
        reach = REACH * sigma + 2
        low, high = math.floor(-reach), math.ceil(moved + reach)
        x = np.arange(low, high + 1, dtype=np.float64)
        size = _theta(sigma)
        with np.errstate(under="ignore"):
            p, q = (np.exp(-(y**2) / (2 * sigma**2)) / size for y in (x - moved, x))
        loss = moved * (2 * x - moved) / (2 * sigma**2)
        largest = max(abs(low), abs(high)) + moved
        # beyond m the masses fall at least geometrically, by e^{−m/σ²}
        lost = [
            sum(math.exp(-(m**2) / (2 * sigma**2)) / (size * -math.expm1(-m / sigma**2)) for m in ends)
            for ends in ((moved - low, high - moved), (-low, high))
        ]
        exact = self.rate == 1
        seen = np.minimum(p, q) > UNDERFLOW if exact else q > UNDERFLOW
        rest = (float(p[~seen].sum()), float(q[~seen].sum()))
        error = EPS * (16 + 4 * (largest / sigma) ** 2)
        charged = (lost[0] * 1.01 + rest[0] * 1.01, lost[1] * 1.01 + rest[1] * 1.01)
        found = Outcomes(loss[seen], p[seen], q[seen], 4 * EPS * float(np.max(np.abs(loss))), error, charged)
        return _subsample(found, self.rate)

    @property
    def symmetric(self) -> bool:
        return self.rate == 1

    @property
    def pitch(self) -> float:
        return self.sensitivity / self.sigma**2 if self.rate == 1 else 0.0


def _theta(sigma: float) -> float:
    """Σ e^{−x²/(2σ²)} over the integers."""
    x = np.arange(1, math.ceil(9 * sigma) + 2, dtype=np.float64)
    return 1 + 2 * math.fsum(np.exp(-(x**2) / (2 * sigma**2)))
