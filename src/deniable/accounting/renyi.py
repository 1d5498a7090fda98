"""Rényi curves: upper bounds on D_α(P‖Q) and D_α(Q‖P) at orders α > 1, which add up under composition.

``direction="remove"`` is D_α(P‖Q), in against out; ``"add"`` exchanges the two worlds. Adaptive composition adds the
curves of the same direction (Mironov 2017, Proposition 1).

Between orders: D_α never falls in α, and (α − 1)·D_α is convex (log E_Q[r^α] is), so that chords bound it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS, LEAST, LEAST_EXPONENT
from deniable.accounting.steps.base import Step, TooSlowError
from deniable.accounting.steps.gaussian_mixture import GaussianMixtureStep
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.line import randomized_responses_rounding
from deniable.curves import Direction, randomized_response_divergence

_ORDERS = 1 + np.geomspace(1e-4, 1e9, 215)  # tried where a curve is known at every order


class RenyiCurve(ABC):
    """An upper bound on the Rényi divergences of a pair of worlds."""

    @abstractmethod
    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Bounds at ``order`` > 1 (inf included), of any shape; inf where nothing is known."""

    @property
    @abstractmethod
    def orders(self) -> FloatArray:
        """Finite orders worth trying, increasing: the best one lies at one of them or near."""

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same bounds."""
        return True

    @property
    def known_between(self) -> bool:
        """Whether orders between those of :attr:`orders` can say more than these."""
        return True


@dataclass(frozen=True, eq=False)
class TabulatedCurve(RenyiCurve):
    """Bounds at some orders, with chords of (α − 1)·D_α between them."""

    known: FloatArray
    remove: FloatArray
    add: FloatArray

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Return the best of the next larger order's bound and the chord."""
        values = self.remove if direction == "remove" else self.add
        values = np.minimum.accumulate(values[::-1])[::-1]  # D never falls in the order
        above = np.searchsorted(self.known, order)
        found = np.append(values, np.inf)[above]
        finite = np.isfinite(self.known) & np.isfinite(values)
        if finite.sum() > 1:
            x, y = self.known[finite], (self.known[finite] - 1) * values[finite]
            inside = (order >= x[0]) & (order <= x[-1])
            with np.errstate(invalid="ignore"):
                chord = np.interp(order, x, y) / (order - 1) * (1 + 8 * EPS)
            found = np.where(inside & ~np.isin(order, x), np.minimum(found, chord), found)
        return np.asarray(found)

    @property
    def orders(self) -> FloatArray:
        """Return the finite orders at which something is known."""
        useful = np.isfinite(self.known) & (np.isfinite(self.remove) | np.isfinite(self.add))
        return self.known[useful]

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same bounds."""
        return bool(np.array_equal(self.remove, self.add))

    @property
    def known_between(self) -> bool:
        """Return False: chords follow from their ends."""
        return False


@dataclass(frozen=True)
class ConcentratedCurve(RenyiCurve):
    """D_α ≤ ξ + ρ·α."""

    rho: float
    xi: float

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Return ξ + ρ·α; at order inf it is ξ where ρ is 0."""
        if self.rho == 0:
            return np.full(order.shape, self.xi)
        return np.asarray((self.xi + self.rho * order) * (1 + 4 * EPS))

    @property
    def orders(self) -> FloatArray:
        """Return orders up to the best one."""
        return _orders(self.rho)


@dataclass(frozen=True)
class PureCurve(RenyiCurve):
    """``count`` randomised responses, each the worst pair of ε-DP."""

    epsilon: float
    count: float

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Return the exact divergence, rounded up."""
        return randomized_response_divergence(self.epsilon, order) * self.count * (1 + EPS)

    @property
    def orders(self) -> FloatArray:
        """Return orders up to where the divergence is ε for practical purposes."""
        return _orders(self.epsilon**2)


@dataclass(frozen=True)
class StepCurve(RenyiCurve):
    """``count`` steps whose divergences are known by a formula."""

    step: Step
    count: float

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Return the sum of the steps' bounds."""
        return self.step.divergence(order, direction) * self.count * (1 + EPS)

    @property
    def orders(self) -> FloatArray:
        """Return orders up to the best one, as if divergences grew like those of a Gaussian."""
        return _orders(float(self.divergence(_ORDERS[:1], "remove")[0]))


@dataclass(frozen=True)
class SummedCurve(RenyiCurve):
    """Adaptive composition: divergences of the same order and direction add up (Mironov 2017, Proposition 1)."""

    parts: tuple[RenyiCurve, ...]

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Return the sum of the parts' bounds."""
        total: FloatArray = np.sum([part.divergence(order, direction) for part in self.parts], axis=0)
        return total * (1 + len(self.parts) * EPS)

    @property
    def orders(self) -> FloatArray:
        """Return the union of the parts' orders where the sum is finite, thinned to a few hundred."""
        union = np.unique(np.concatenate([part.orders for part in self.parts]))
        finite = np.isfinite(self.divergence(union, "remove")) | np.isfinite(self.divergence(union, "add"))
        union = union[finite]
        return union[:: 1 + union.size // 400] if union.size else union

    @property
    def symmetric(self) -> bool:
        """Whether both directions of all parts have the same bounds."""
        return all(part.symmetric for part in self.parts)


def composed(curves: Sequence[RenyiCurve]) -> RenyiCurve:
    """Return the curve of the composition: ρ's add up, then everything else."""
    lines = [curve for curve in curves if isinstance(curve, ConcentratedCurve)]
    others = [curve for curve in curves if not isinstance(curve, ConcentratedCurve)]
    if lines:
        one_up = 1 + len(lines) * EPS
        others.append(
            ConcentratedCurve(math.fsum(c.rho for c in lines) * one_up, math.fsum(c.xi for c in lines) * one_up)
        )
    return others[0] if len(others) == 1 else SummedCurve(tuple(others))


def curve_of_loss(loss: PrivacyLoss) -> RenyiCurve:
    """Return the Rényi curve of a composed loss: exact for Gaussian and pure parts, tabulated for sampled ones.

    Steps of another law enter by their formula, or as pure DP.

    Raises
    ------
    InputError
        If the loss of such a step is unbounded.
    """
    if loss.others:
        return composed([curve_of_loss(replace(loss, others=())), *(_curve(*part) for part in loss.others)])
    if loss.steps.size == 0:
        parts: list[RenyiCurve] = [PureCurve(epsilon, count) for epsilon, count in loss.randomized_responses]
        if loss.gaussian > 0 or not parts:
            parts.append(ConcentratedCurve(loss.gaussian / 2 * (1 + 2 * EPS), 0.0))
        return composed(parts)
    return _tabulated(loss)


def _curve(step: Step, count: int) -> RenyiCurve:
    if not step.bounds_divergence:
        return PureCurve(_bounded(step), count)
    curve = StepCurve(step, count)
    if not isinstance(step, GaussianMixtureStep):
        return curve
    orders = np.append(curve.orders, np.inf)  # each takes milliseconds
    return TabulatedCurve(orders, curve.divergence(orders, "remove"), curve.divergence(orders, "add"))


def _tabulated(loss: PrivacyLoss) -> RenyiCurve:
    orders = np.append(_orders(_variance(loss)), np.inf)
    return TabulatedCurve(orders, loss_divergence(loss, orders, "remove"), loss_divergence(loss, orders, "add"))


def _bounded(step: Step) -> float:
    epsilon = max(step.highest, -step.lowest, 0.0)
    if not epsilon < math.inf or max(step.only) > 0:
        raise InputError(f"divergences of {step!r} are not known here: its privacy loss is unbounded")
    return epsilon


def loss_divergence(loss: PrivacyLoss, order: FloatArray, direction: Direction) -> FloatArray:
    """Return upper bounds on the Rényi divergences of a composed loss.

    D_α(P‖Q) = K(α)/(α − 1) and D_α(Q‖P) = K(1 − α)/(α − 1) with K(w) = log E_Q[r^w]. K is a trapezoid sum over the
    outcome whose rounding and truncation are charged as for the inversion; inf where the sum would be too long.
    """
    if loss.others:
        parts = [
            (StepCurve(step, count) if step.bounds_divergence else PureCurve(_bounded(step), count))
            for step, count in loss.others
        ]
        rest = loss_divergence(replace(loss, others=()), order, direction)
        return (rest + composed(parts).divergence(order, direction)) * (1 + EPS)
    return np.array([_one(loss, float(a), direction) for a in order.ravel()]).reshape(order.shape)


def _one(loss: PrivacyLoss, order: float, direction: Direction) -> float:
    if math.isinf(order):
        return loss.largest_log_ratio(direction, "upper")
    c = order if direction == "remove" else 1 - order
    try:
        line = loss.line(c)
        growth = line.cumulants[0]
        charged = float(loss.steps @ line.phases.real_error) + 64 * EPS * (abs(growth) + loss.gaussian * c * c)
        charged += float(randomized_responses_rounding(loss.randomized_responses, c, np.array(abs(c))))
        bound = (growth + charged) / (order - 1) * (1 + 4 * EPS)
    except (TooSlowError, ArithmeticError, MemoryError, ValueError):
        return math.inf
    return max(bound, 0.0) if bound < math.inf else math.inf  # NaN is not below inf


def _variance(loss: PrivacyLoss) -> float:
    """About twice the ρ of the composed loss near order 1."""
    try:
        return loss.cumulants(0.5)[2]
    except TooSlowError:
        return 1.0


def _orders(rho: float) -> FloatArray:
    """Orders up to the best one for the rarest event, whose log-probability is −ρ·α² or so."""
    return _ORDERS[: np.searchsorted(_ORDERS, 4 * math.sqrt(-2 * LEAST_EXPONENT / max(rho, LEAST)) + 10)]
