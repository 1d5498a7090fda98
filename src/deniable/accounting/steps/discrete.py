"""Laws on countably many outcomes: randomised response, discrete noise, two probability vectors."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.base import LossCells, Step, TooSlowError, atoms
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.listed import ListedLoss
from deniable.accounting.steps.outcomes import ListedOutcomes
from deniable.accounting.steps.ratios import sampled_losses
from deniable.curves import Direction

_REACH = 13.5  # standard deviations beyond which a discrete Gaussian has less than 1e-39
_FAR = 37.0  # standard deviations at which its mass is below e^{−668} < 1e-290
_MOST_OUTCOMES = 1 << 16  # in a list
_ALIKE = 1e-12  # in units of a lattice: nearer than that, losses lie on it


class Outcomes(NamedTuple):
    """Outcomes that both laws can produce, losses increasing, or all of them but ``lost``."""

    loss: FloatArray
    p: FloatArray
    q: FloatArray
    shift: float  # bound on the error of losses
    relative_error: float  # of masses
    lost: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class DiscreteStep(Step):
    """A step whose outcomes can be listed."""

    @abstractmethod
    def outcomes(self, tilt: float) -> Outcomes:
        """Return the outcomes that matter at a tilt."""

    def pieces(self) -> tuple[ListedOutcomes, ...]:
        found = self.outcomes(0.5)
        seen = (found.p > 0) & (found.q > 0)
        masses = found.loss[seen], found.p[seen], found.q[seen]
        return (ListedOutcomes(*masses, found.shift, found.relative_error),)

    @property
    def lost(self) -> tuple[float, float]:
        return self.outcomes(0.5).lost

    @property
    def lowest(self) -> float:
        return float(np.min(self.outcomes(0.0).loss))

    @property
    def highest(self) -> float:
        return float(np.max(self.outcomes(0.0).loss))

    @property
    def attained(self) -> bool:
        return True

    def range(self, tilt: float) -> tuple[float, float]:
        loss = self.outcomes(tilt).loss
        return float(loss.min()), float(loss.max())

    def support(self) -> FiniteLaw | None:
        found = self.outcomes(0.5)
        reach = self.highest, -self.lowest
        return FiniteLaw(found.loss, found.p, found.q, found.relative_error, found.shift, lost=found.lost, reach=reach)

    def listed(self, c: float, furthest: float) -> ListedLoss | None:
        if any(self.only):
            return None
        found = self.outcomes(c)
        seen = found.q > 0
        return ListedLoss(
            found.loss[seen], np.log(found.q[seen]), shift=found.shift, relative_error=found.relative_error + 8 * EPS
        )

    @property
    def unlisted(self) -> tuple[float, float]:
        return self.outcomes(0.5).lost

    def cells(self, spacing: float, tilt: float) -> LossCells:
        found = self.outcomes(tilt)
        return atoms(
            found.loss,
            found.p,
            found.q,
            spacing,
            lattice=self.lattice,
            shift=found.shift,
            relative_error=found.relative_error + 64 * EPS,
            lost=found.lost,
        )


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

    def outcomes(self, tilt: float) -> Outcomes:
        law = self.law
        if law.p.size == 0:  # the two have nothing in common
            return Outcomes(np.zeros(1), np.zeros(1), np.full(1, 1e-320), 0.0, 0.0)
        shift = law.shift + (0.0 if self.lattice is None else _ALIKE * self.lattice[1])
        return Outcomes(law.log_ratio, law.p, law.q, shift, law.relative_error)

    @property
    def lattice(self) -> tuple[float, float] | None:
        losses = self.law.log_ratio
        if losses.size < 2:
            return None if losses.size == 0 else (float(losses[0]), 1.0)
        rise = losses - losses[0]
        apart = np.diff(rise)
        unit = float(np.max(apart, initial=0.0)) if losses.size == 2 else float(np.min(apart[apart > 1e-9 * rise[-1]]))
        places = rise / unit
        return (float(losses[0]), unit) if np.all(np.abs(places - np.rint(places)) < _ALIKE) else None

    def support(self) -> FiniteLaw | None:
        return self.law


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

    def outcomes(self, tilt: float) -> Outcomes:
        small = math.exp(-self.epsilon)
        total = 1 + (self.categories - 1) * small
        loss = np.array([-self.epsilon, 0.0, self.epsilon])
        p = np.array([small, (self.categories - 2) * small, 1.0]) / total
        keep = p > 0
        return Outcomes(loss[keep], p[keep], p[::-1][keep], 0.0, 8 * EPS)

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def lattice(self) -> tuple[float, float]:
        return -self.epsilon, self.epsilon if self.categories > 2 else 2 * self.epsilon


def _sampled(found: Outcomes, rate: float) -> Outcomes:
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

    def outcomes(self, tilt: float) -> Outcomes:
        moved, b = self.sensitivity, self.scale
        x = np.arange(moved + 1, dtype=np.float64)
        q = np.exp(-x / b) * (math.tanh(1 / (2 * b)))  # (1 − a)/(1 + a)
        ends = 1 / (1 + math.exp(-1 / b))
        q[0], q[-1] = ends, ends * math.exp(-moved / b)
        loss = (2 * x - moved) / b
        found = Outcomes(loss, q[::-1].copy(), q, 4 * EPS * moved / b, 8 * EPS * (1 + moved / b))
        return _sampled(found, self.rate)

    @property
    def symmetric(self) -> bool:
        return self.rate == 1

    @property
    def lattice(self) -> tuple[float, float] | None:
        return (-self.sensitivity / self.scale, 2 / self.scale) if self.rate == 1 else None

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

    @property
    def lowest(self) -> float:
        return math.log1p(-self.rate) if self.rate < 1 else -math.inf

    @property
    def highest(self) -> float:
        return math.inf

    @property
    def bounds_divergence(self) -> bool:
        return self.rate == 1

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """α·Δ²/(2σ²) (Canonne, Kamath & Steinke 2020, Theorem 4), where every record takes part."""
        if self.rate < 1:
            return super().divergence(order, direction)
        return order * ((self.sensitivity / self.sigma) ** 2 / 2 * (1 + 8 * EPS))

    def outcomes(self, tilt: float) -> Outcomes:
        sigma, moved = self.sigma, self.sensitivity
        reach = _REACH * sigma + 2
        far = math.ceil(_FAR * sigma)  # whatever the tilt: beyond, masses are too small to be kept
        low = max(math.floor(min(0.0, tilt * moved) - reach), -far)
        high = min(math.ceil(max(moved, tilt * moved) + reach), moved + far)
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
        seen = (q > 1e-290) & (p > 1e-290) if exact else q > 1e-290
        rest = (float(p[~seen].sum()), float(q[~seen].sum()))
        error = EPS * (16 + 4 * (largest / sigma) ** 2)
        charged = (lost[0] * 1.01 + rest[0] * 1.01, lost[1] * 1.01 + rest[1] * 1.01)
        found = Outcomes(loss[seen], p[seen], q[seen], 4 * EPS * float(np.max(np.abs(loss))), error, charged)
        return _sampled(found, self.rate)

    def listed(self, c: float, furthest: float) -> ListedLoss:
        """All outcomes at which some of the tilts 0, 1 and c has mass, by the logarithms of their masses.

        A sampled step's ratio has an infimum, so that tilts c < 0 move nothing to the left.
        """
        sigma, moved = self.sigma, self.sensitivity
        reach = _REACH * sigma + 2
        left = min(0.0, c * moved) if self.rate == 1 else 0.0
        if not (max(abs(c), 1.0) * moved + reach) < _MOST_OUTCOMES:
            raise TooSlowError(f"the law tilted by {c:g} is far out")
        x = np.arange(math.floor(left - reach), math.ceil(max(moved, c * moved) + reach) + 1, dtype=np.float64)
        plain = moved * (2 * x - moved) / (2 * sigma**2)
        loss = sampled_losses(plain, self.rate)
        log_mass = -(x**2) / (2 * sigma**2) - math.log(_theta(sigma))
        error = EPS * (16 + 2 * (x / sigma) ** 2)
        return ListedLoss(loss, log_mass, 0.0, 8 * EPS * (np.abs(plain) + np.abs(loss)), error)

    @property
    def symmetric(self) -> bool:
        return self.rate == 1

    @property
    def lattice(self) -> tuple[float, float] | None:
        if self.rate < 1:
            return None
        spacing = self.sensitivity / self.sigma**2
        return -self.sensitivity * spacing / 2, spacing

    def cumulants(self, c: float) -> tuple[float, float, float]:
        if self.rate < 1 or self.sigma < 1:
            return super().cumulants(c)
        variance = (self.sensitivity / self.sigma) ** 2  # about that of the Gaussian
        return variance * c * (c - 1) / 2, variance * (c - 0.5), variance

    def log_mgf(self, points: FloatArray) -> FloatArray:
        if self.rate < 1 or self.sigma < 1:
            return super().log_mgf(points)
        found: FloatArray = (self.sensitivity / self.sigma) ** 2 * points * (points - 1) / 2
        return found


def _theta(sigma: float) -> float:
    """Σ e^{−x²/(2σ²)} over the integers."""
    x = np.arange(1, math.ceil(9 * sigma) + 2, dtype=np.float64)
    return 1 + 2 * math.fsum(np.exp(-(x**2) / (2 * sigma**2)))
