"""Rényi curves: upper bounds on D_α(P‖Q) and D_α(Q‖P) at orders α > 1, which add up under composition.

``direction="remove"`` is D_α(P‖Q), in against out; ``"add"`` exchanges the two worlds. Adaptive composition adds the
curves of the same direction (Mironov 2017, Proposition 1).

Between orders: D_α never falls in α, and (α − 1)·D_α is convex (log E_Q[r^α] is), so that chords bound it.

*Weights that mixtures leave out*, λ in all, have slopes of at most K. Ours, which add up to 1 with λ among those of no
record, make r̃, and r is r̃ − λ and λ times a ratio h: as r^c is convex, E r^c is at most λ·E h^c = λ·e^{c(c − 1)K²/2}
and E r̃^c times (1 − λ)^{1 − c} for c > 1, (1 − λ/w_0)^c for c < 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS, LEAST, LEAST_EXPONENT
from deniable.accounting.steps.allocation import AllocatedStep
from deniable.accounting.steps.base import Step, TooSlowError
from deniable.accounting.steps.gaussian_mixture import GaussianMixtureStep
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.laws import mixture_of
from deniable.curves import Direction, Side, Tradeoff

_ORDERS = 1 + np.geomspace(1e-4, 1e9, 215)  # tried where a curve is known at every order
# of random allocation: dense where the best ones lie
_WHOLE = np.concatenate([1 + np.geomspace(0.01, 0.9, 12), np.arange(2.0, 33.0), np.geomspace(34, 512, 20).round()])
Divergences = Callable[[FloatArray, Direction], FloatArray]


@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """Upper bounds on the Rényi divergences of a pair of worlds.

    Attributes
    ----------
    divergence
        Bounds at orders > 1 (inf included), of any shape; inf where nothing is known.
    orders
        Finite orders worth trying, increasing: the best one lies at one of them or near.
    symmetric
        Whether both directions have the same bounds.
    known_between
        Whether orders between those can say more than these.
    """

    divergence: Divergences
    orders: FloatArray
    symmetric: bool = True
    known_between: bool = True


def tabulated(known: FloatArray, remove: FloatArray, add: FloatArray) -> RenyiCurve:
    """Return the curve of bounds at some orders, with chords of (α − 1)·D_α between them."""
    useful = np.isfinite(known) & (np.isfinite(remove) | np.isfinite(add))
    bounds = partial(_between_orders, known, {"remove": remove, "add": add})
    return RenyiCurve(bounds, known[useful], np.array_equal(remove, add), known_between=False)


def concentrated(rho: float, xi: float = 0.0) -> RenyiCurve:
    """Return the curve of D_α ≤ ξ + ρ·α."""
    return RenyiCurve(partial(_growing, rho, xi), _orders(rho))


def composed(curves: Sequence[RenyiCurve]) -> RenyiCurve:
    """Return the curve of an adaptive composition; orders are thinned to a few hundred."""
    if len(curves) == 1:
        return curves[0]
    bounds = partial(_sum_of, tuple(curves))
    union = np.unique(np.concatenate([part.orders for part in curves]))
    union = union[np.isfinite(bounds(union, "remove")) | np.isfinite(bounds(union, "add"))]
    return RenyiCurve(bounds, union[:: 1 + union.size // 400], all(part.symmetric for part in curves))


# divergences are parts of functions of the module, not functions in functions, so that curves can be pickled
def _between_orders(
    known: FloatArray, values: dict[Direction, FloatArray], order: FloatArray, direction: Direction
) -> FloatArray:
    falling = np.minimum.accumulate(values[direction][::-1])[::-1]  # D never falls in the order
    above = np.searchsorted(known, order)
    found = np.append(falling, np.inf)[above]
    finite = np.isfinite(known) & np.isfinite(falling)
    if finite.sum() > 1:
        x, y = known[finite], (known[finite] - 1) * falling[finite]
        inside = (order >= x[0]) & (order <= x[-1])
        with np.errstate(invalid="ignore"):
            chord = np.interp(order, x, y) / (order - 1) * (1 + 8 * EPS)
        found = np.where(inside & ~np.isin(order, x), np.minimum(found, chord), found)
    return np.asarray(found)


def _growing(rho: float, xi: float, order: FloatArray, direction: Direction) -> FloatArray:
    if rho == 0:
        return np.full(order.shape, xi)
    return np.asarray((xi + rho * order) * (1 + 4 * EPS))


def _sum_of(curves: tuple[RenyiCurve, ...], order: FloatArray, direction: Direction) -> FloatArray:
    total: FloatArray = np.sum([part.divergence(order, direction) for part in curves], axis=0)
    return total * (1 + len(curves) * EPS)


def curve_of_loss(loss: PrivacyLoss) -> RenyiCurve:
    """Return the Rényi curve of a composed loss: of Gaussian parts exact, tabulated where each order takes long.

    Raises
    ------
    InputError
        If the loss of a step of which no formula is known is unbounded.
    """
    curves = [_times(*part) for part in loss.others]
    if loss.steps.size:
        rest = replace(loss, others=())
        curves.append(_values_at(partial(loss_divergence, rest), np.append(_orders(_variance(rest)), np.inf)))
    elif loss.gaussian > 0 or not curves:
        curves.append(concentrated(loss.gaussian / 2 * (1 + 2 * EPS)))
    return composed(curves)


def _values_at(divergence: Divergences, orders: FloatArray) -> RenyiCurve:
    return tabulated(orders, divergence(orders, "remove"), divergence(orders, "add"))


def _times(step: Step, count: int) -> RenyiCurve:
    if any(step.only):
        raise InputError(f"divergences of {step!r} are not known here: its privacy loss is unbounded")
    divergence = partial(_often, step, count)
    if isinstance(step, AllocatedStep) and step.noise > 0:
        return _values_at(divergence, _WHOLE)
    orders = _orders(float(divergence(_ORDERS[:1], "remove")[0]))  # as if they grew like those of a Gaussian
    if step.symmetric and type(step).divergence is not Step.divergence:  # a formula
        return RenyiCurve(divergence, orders)
    return _values_at(divergence, np.append(orders, np.inf))


def _often(step: Step, count: int, order: FloatArray, direction: Direction) -> FloatArray:
    return step_divergence(step, order, direction) * count * (1 + EPS)


def loss_divergence(loss: PrivacyLoss, order: FloatArray, direction: Direction) -> FloatArray:
    """Return upper bounds on the Rényi divergences of a composed loss.

    D_α(P‖Q) = K(α)/(α − 1) and D_α(Q‖P) = K(1 − α)/(α − 1) with K(w) = log E_Q[r^w]. K is a trapezoid sum over the
    outcome whose rounding and truncation are charged as for the inversion; inf where the sum would be too long.
    """
    rest = replace(loss, others=())
    found = np.array([_one(rest, float(a), direction) for a in order.ravel()]).reshape(order.shape)
    for step, count in loss.others:
        found = (found + step_divergence(step, order, direction) * count) * (1 + 2 * EPS)
    return found


@dataclass(frozen=True)
class LossTradeoff(Tradeoff):
    """What each engine of a composed loss knows of it without being asked for a point."""

    loss: PrivacyLoss

    @property
    def symmetric(self) -> bool:
        return self.loss.symmetric

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        only = any(step.only[direction == "add"] > 0 for step, _ in self.loss.others)  # outcomes of one world alone
        return math.inf if only else self.loss.largest_log_ratio(direction, side)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return loss_divergence(self.loss, order, direction)


def _one(loss: PrivacyLoss, order: float, direction: Direction) -> float:
    if math.isinf(order):
        return loss.largest_log_ratio(direction, "upper")
    c = order if direction == "remove" else 1 - order
    try:
        line = loss.line(c)
        growth = line.cumulants[0]
        charged = float(loss.steps @ line.phases.real_error) + 64 * EPS * (abs(growth) + loss.gaussian * c * c)
        bound = (growth + charged) / (order - 1) * (1 + 4 * EPS)
    except (TooSlowError, ArithmeticError, MemoryError, ValueError):
        return math.inf
    return max(bound, 0.0) if bound < math.inf else math.inf  # NaN is not below inf


def step_divergence(step: Step, order: FloatArray, direction: Direction) -> FloatArray:
    """Return upper bounds on the Rényi divergences of a step.

    Raises
    ------
    InputError
        If none is known.
    """
    if not isinstance(step, GaussianMixtureStep):
        if not step.bounds_divergence:
            raise InputError(f"divergences of {step!r} are not known here: its privacy loss is unbounded")
        return step.divergence(order.ravel(), direction).reshape(order.shape)
    largest = math.inf if direction == "remove" else -step.lowest * (1 + 8 * EPS)
    powers = order if direction == "remove" else 1 - order
    found = [
        min(_log_moment(step, c) / (a - 1) * (1 + 8 * EPS), largest) if a < math.inf else largest
        for a, c in zip(order.ravel().tolist(), powers.ravel().tolist(), strict=True)
    ]
    return np.maximum(found, 0.0).reshape(order.shape)


def _log_moment(step: GaussianMixtureStep, c: float) -> float:
    """Upper bound on log E r^c under Q; ∞ where the sum would be long."""
    try:
        terms = mixture_of(step).terms(c, c, 0.0, math.inf)
    except TooSlowError:
        return math.inf
    logs = [float(terms.log_mgf[0] + terms.real_error[0]) + 64 * EPS * abs(float(terms.log_mgf[0]))]
    for case in step.cases:
        if case.lost > 0:
            share = case.lost if c > 1 else case.lost / case.weight[0]
            logs[0] += min(1 - c, c) * math.log1p(-share) if share < 0.5 else math.inf
            logs.append(math.log(case.probability * case.lost) + c * (c - 1) * (case.most / step.noise) ** 2 / 2)
    return float(np.logaddexp.reduce(logs))


def _variance(loss: PrivacyLoss) -> float:
    """About twice the ρ of the composed loss near order 1."""
    try:
        return loss.cumulants(0.5)[2]
    except TooSlowError:
        return 1.0


def _orders(rho: float) -> FloatArray:
    """Orders up to the best one for the rarest event, whose log-probability is −ρ·α² or so."""
    return _ORDERS[: np.searchsorted(_ORDERS, 4 * math.sqrt(-2 * LEAST_EXPONENT / max(rho, LEAST)) + 10)]
