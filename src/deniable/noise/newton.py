"""Newton's method that knows how far it still is from the minimum, for one training set or for many swaps at once.

The objective is F(θ) = Σ l(yᵢ, xᵢᵀθ) + ½ Σ rⱼθⱼ². Everything is measured in the norm of the Hessian H at the last
iterate: with q = maxⱼ‖xⱼ‖_{H⁻¹}·‖∇F‖_{H⁻¹} < 1 the minimum is within (1 + ``step_error(q)``)·‖∇F‖_{H⁻¹} of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray, Indices
from deniable._floats import EPS
from deniable.noise.evidence import ReleaseError

TOLERANCE = 1e-8  # τ: every fit has ‖∇F‖_{H⁻¹} ≤ τ(1 + ‖θ‖_H), rounding included
_CLOSE = 0.01  # … and q below this, so the Hessian at the minimum is the one at the fit within 1 %
CONDITION = 1e14  # of the Hessian scaled to a unit diagonal, above which a fit is refused
_STEPS = 200  # after which a fit counts as not converging
_SWAP_STEPS = 40  # the same for a swap, which starts close to its minimum
_SWAP_PRECISION = 1e-4  # a swap is done when ‖∇F‖_{H⁻¹} is this share of its change
_AT_ONCE = 4_000_000  # numbers in one temporary array of a batch of swaps
_MOST_WORK = 1e11  # operations of one Newton step of all swaps, above which none is solved
_REMEDY = "standardise the columns, drop those that depend on others, or raise the penalty"


class Objective(ABC):
    """What Newton's method needs to know of a penalised generalised linear model."""

    @property
    @abstractmethod
    def quadratic(self) -> bool:
        """Whether one Newton step is exact."""

    @abstractmethod
    def penalties(self, dimension: int) -> FloatArray:
        """Return r, one for each coefficient."""

    @abstractmethod
    def curve(self, y: FloatArray, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return first and second derivative of the loss in the linear predictor."""

    @abstractmethod
    def step_error(self, ratio: FloatArray) -> FloatArray:
        """Return the relative error of a full Newton step, in the norm of H, given q; infinite where q ≥ 1."""


@dataclass(frozen=True, eq=False)
class NewtonFit:
    """A minimum: θ, the Hessian there and its inverse.

    Attributes
    ----------
    condition
        Condition number of the Hessian scaled to a unit diagonal.
    uncertainty
        Bound on the relative error, in the norm of the Hessian, of the Hessian as it was summed and of its inverse.
    strain
        Share of the rounding at which the fit would have been refused.
    """

    theta: FloatArray
    hessian: FloatArray
    inverse: FloatArray
    condition: float
    uncertainty: float = 0.0
    strain: float = 0.0

    @property
    def size(self) -> float:
        """‖θ‖ in the norm of the Hessian."""
        return float(np.sqrt(self.theta @ self.hessian @ self.theta))


def minimise(objective: Objective, X: FloatArray, y: FloatArray) -> NewtonFit:
    """Return the minimum, or raise if there is none that floating point can tell from others."""
    penalty = objective.penalties(X.shape[1])
    theta = np.zeros(X.shape[1])
    for _ in range(_STEPS):
        slope, weight = objective.curve(y, X @ theta)
        gradient = X.T @ slope + penalty * theta
        fit = _fit_at(theta, X.T @ (weight[:, None] * X) + np.diag(penalty))
        step = fit.inverse @ gradient
        decrement = float(np.sqrt(max(float(gradient @ step), 0.0)))
        allowed = TOLERANCE * (1 + fit.size)
        if decrement <= allowed / 2 and not objective.quadratic:
            reach = float(np.sqrt(np.max(np.einsum("nd,nd->n", X @ fit.inverse, X))))
            allowed = min(allowed, _CLOSE / max(reach, 1e-300))
        if decrement <= allowed / 2:
            error = _gradient_rounding(X, slope[:, None], weight[:, None], theta[None], penalty)[0]
            strain = float(np.sqrt(error @ np.abs(fit.inverse) @ error)) / (allowed / 2)
            if not strain <= 1:
                raise ReleaseError(f"the regression is too badly conditioned on a training set; {_REMEDY}")
            inverted = 4 * len(theta) * EPS * fit.condition
            return replace(fit, uncertainty=inverted + _hessian_rounding(X, weight, fit), strain=strain)
        theta = theta - _damping(objective, np.abs(X @ step).max()) * step
    raise ReleaseError(f"the regression did not converge on a training set; {_REMEDY}")


@dataclass(frozen=True, eq=False)
class SwappedFits:
    """Minima after swaps: θ (swaps, d), the inverse Hessians there (swaps, d, d), and radii around them in its norm.

    The radius bounds the distance to the exact minimum, and ``size`` is ‖θ‖; both are infinite where nothing is known,
    which is so wherever :func:`minimise` might raise.
    """

    theta: FloatArray
    inverse: FloatArray
    radius: FloatArray
    size: FloatArray


def minimise_swapped(
    objective: Objective,
    X: FloatArray,
    y: FloatArray,
    newcomers: tuple[FloatArray, FloatArray],
    leaving: Indices,
    start: FloatArray,
) -> SwappedFits:
    """Minimise, for each swap m, over the rows of (X, y) without row ``leaving[m]`` and with newcomer m."""
    if len(leaving) * X.size * X.shape[1] > _MOST_WORK:
        return _unknown(np.tile(start, (len(leaving), 1)))
    at_once = max(1, _AT_ONCE // (len(X) + X.shape[1] ** 2))
    parts = [
        _minimise_batch(objective, X, y, (newcomers[0][some], newcomers[1][some]), leaving[some], start)
        for some in np.array_split(np.arange(len(leaving)), -(-len(leaving) // at_once))
    ]
    return SwappedFits(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in SwappedFits.__dataclass_fields__)
    )


def _minimise_batch(
    objective: Objective,
    X: FloatArray,
    y: FloatArray,
    newcomers: tuple[FloatArray, FloatArray],
    leaving: Indices,
    start: FloatArray,
) -> SwappedFits:
    outer = (X[:, :, None] * X[:, None, :]).reshape(len(X), -1) if X.size * X.shape[1] <= _AT_ONCE else None
    theta = np.tile(start, (len(leaving), 1))
    going = np.arange(len(leaving))
    try:
        for _ in range(_SWAP_STEPS):
            own = newcomers[0][going], newcomers[1][going]
            state = _newton_step(objective, X, y, own, leaving[going], theta[going], outer)
            moved = theta[going] - start
            change = np.sqrt(np.maximum(np.einsum("mi,mij,mj->m", moved, state.hessian, moved, optimize=True), 0.0))
            far = ~(state.decrement <= _SWAP_PRECISION * change)
            if not np.any(far):
                break
            going, step = going[far], state.step[far]
            longest = np.maximum(np.abs(X @ step.T).max(axis=0), np.abs(np.sum(newcomers[0][going] * step, axis=1)))
            theta[going] -= _damping(objective, longest)[:, None] * step
        state = _newton_step(objective, X, y, newcomers, leaving, theta, outer)
        root = np.sqrt(np.einsum("mii->mi", state.hessian))
        condition = np.linalg.cond(state.hessian / (root[:, :, None] * root[:, None, :]))
    except np.linalg.LinAlgError:
        return _unknown(theta)
    own_leverage = np.einsum("mi,mij,mj->m", newcomers[0], state.inverse, newcomers[0], optimize=True)
    leverage = np.maximum(_quadratic_forms(X, state.inverse, outer).max(axis=0), own_leverage)
    ratio = np.sqrt(np.maximum(leverage, 0.0)) * state.decrement
    radius = state.decrement * (1 + objective.step_error(ratio))
    size = np.sqrt(np.maximum(np.einsum("mi,mij,mj->m", theta, state.hessian, theta, optimize=True), 0.0))
    solved = np.abs(state.hessian @ state.inverse - np.eye(X.shape[1])).max(axis=(1, 2)) < 1e-6
    fitted = (4 * state.rounding <= TOLERANCE * (1 + size)) & (4 * condition < CONDITION)
    known = solved & fitted & (ratio < 0.5) & np.isfinite(radius)  # where there is no minimum the ratio is 1
    return SwappedFits(theta, state.inverse, np.where(known, 1.01 * radius, np.inf), np.where(known, size, np.inf))


@dataclass(frozen=True, eq=False)
class _NewtonStep:
    step: FloatArray
    decrement: FloatArray
    hessian: FloatArray
    inverse: FloatArray
    rounding: FloatArray


def _newton_step(
    objective: Objective,
    X: FloatArray,
    y: FloatArray,
    newcomers: tuple[FloatArray, FloatArray],
    leaving: Indices,
    theta: FloatArray,
    outer: FloatArray | None,
) -> _NewtonStep:
    """One Newton step of each swap's objective at its own row of ``theta``; ‖∇F‖_{H⁻¹} is the decrement."""
    entering, label = newcomers
    penalty = objective.penalties(X.shape[1])
    slope, weight = objective.curve(y[:, None], X @ theta.T)
    slope[leaving, np.arange(len(leaving))] = 0.0
    weight[leaving, np.arange(len(leaving))] = 0.0
    own_slope, own_weight = objective.curve(label, np.sum(entering * theta, axis=1))
    gradient = slope.T @ X + own_slope[:, None] * entering + penalty * theta
    hessian = _grams(X, weight, outer) + np.diag(penalty)
    hessian += own_weight[:, None, None] * entering[:, :, None] * entering[:, None, :]
    inverse = np.asarray(np.linalg.inv(hessian), dtype=np.float64)
    step = np.einsum("mij,mj->mi", inverse, gradient)
    decrement = np.sqrt(np.maximum(np.sum(gradient * step, axis=1), 0.0))
    own_margin = (X.shape[1] + 2) * EPS * np.sum(np.abs(entering * theta), axis=1)
    own_error = own_weight * own_margin * (1 + _CLOSE) + (len(X) / 2 + 8) * EPS * np.abs(own_slope)
    own_error += 4 * EPS * np.maximum(own_weight, 1.0)
    error = _gradient_rounding(X, slope, weight, theta, penalty) + own_error[:, None] * np.abs(entering)
    rounding = np.sqrt(np.einsum("mi,mij,mj->m", error, np.abs(inverse), error, optimize=True))
    return _NewtonStep(step, decrement, hessian, inverse, rounding)


def _unknown(theta: FloatArray) -> SwappedFits:
    swaps, d = theta.shape
    nothing = np.full(swaps, np.inf)
    return SwappedFits(theta, np.zeros((swaps, d, d)), nothing, nothing)


def _fit_at(theta: FloatArray, hessian: FloatArray) -> NewtonFit:
    """Invert the Hessian, scaled to a unit diagonal."""
    root = np.sqrt(np.diag(hessian))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = hessian / np.outer(root, root)
    if not np.all(np.isfinite(scaled)):
        raise ReleaseError(f"the regression has no unique solution on a training set; {_REMEDY}")
    values, vectors = np.linalg.eigh(scaled)
    if values[0] * CONDITION <= values[-1]:
        raise ReleaseError(f"the regression has no unique solution on a training set; {_REMEDY}")
    inverse: FloatArray = (vectors / values) @ vectors.T / np.outer(root, root)
    return NewtonFit(theta, hessian, inverse, float(values[-1] / values[0]))


def _gradient_rounding(
    X: FloatArray, slope: FloatArray, weight: FloatArray, theta: FloatArray, penalty: FloatArray
) -> FloatArray:
    """Bound the error of the computed gradient at each row of ``theta``, (swaps, d), given slopes (rows, swaps).

    Sums of m terms err by less than (m + 1)·(eps/2)·Σ|terms|.
    """
    X, theta = np.abs(X), np.abs(theta)
    margin = (X.shape[1] + 2) * EPS * (X @ theta.T)
    each = weight * margin * (1 + _CLOSE) + (len(X) / 2 + 8) * EPS * np.abs(slope)
    each += 4 * EPS * np.maximum(weight, 1.0)  # of the mean that the slope is the distance from
    return np.asarray(each.T @ X + 4 * EPS * penalty * theta)


def _hessian_rounding(X: FloatArray, weight: FloatArray, fit: NewtonFit) -> float:
    """Bound ‖H^{−½}·error of the summed Hessian·H^{−½}‖ by the Perron root of |H⁻¹|·(bound on the error)."""
    X = np.abs(X)
    error = (len(X) / 2 + 8) * EPS * (X.T @ (weight[:, None] * X))
    return float(np.abs(np.linalg.eigvals(np.abs(fit.inverse) @ error)).max())


def _damping(objective: Objective, length: FloatArray) -> FloatArray:
    """Share of the step to take: with t the largest change of a margin, log(1 + t)/t always decreases F (Bach 2010)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where((length < 0.5) | objective.quadratic, 1.0, np.log1p(length) / length))


def _grams(X: FloatArray, weight: FloatArray, outer: FloatArray | None) -> FloatArray:
    """Xᵀ diag(w) X for every column w of ``weight``, (swaps, d, d)."""
    d = X.shape[1]
    if outer is not None:
        return np.asarray(weight.T @ outer).reshape(-1, d, d)
    return np.stack([X.T @ (w[:, None] * X) for w in weight.T])


def _quadratic_forms(X: FloatArray, matrices: FloatArray, outer: FloatArray | None) -> FloatArray:
    """xᵀMx for every row x and matrix M, (rows, swaps)."""
    if outer is not None:
        return np.asarray(outer @ matrices.reshape(len(matrices), -1).T)
    return np.stack([np.einsum("nd,nd->n", X @ matrix, X) for matrix in matrices], axis=1)
