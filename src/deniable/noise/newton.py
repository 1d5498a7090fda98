"""Newton's method with a proven distance to the minimum, for one training set or for many swaps at once.

The objective is F(θ) = Σ l(yᵢ, xᵢᵀθ) + ½ Σ rⱼθⱼ². Everything is measured in the norm of the Hessian H at the last
iterate: with q = maxⱼ‖xⱼ‖_{H⁻¹}·‖∇F‖_{H⁻¹} < 1 the minimum is within 1 + ``self_concordant_error(q)`` times
‖∇F‖_{H⁻¹} of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.noise.evidence import ReleaseError

TOLERANCE = 1e-8  # τ: every fit has ‖∇F‖_{H⁻¹} ≤ τ(1 + ‖θ‖_H), rounding included
CLOSE = 0.01  # … and q below this, so the Hessian at the minimum is the one at the fit within 1 %
CONDITION = 1e14  # condition number of the Hessian, scaled to a unit diagonal, above which a fit is refused
_EVERY, _MANY = 8, 20  # a fit to an eighth of the rows, if these are 20 a coefficient or more, starts the fit to all
_STEPS = 200  # steps after which a fit counts as not converging
_OWN_ROUNDING = 1.01  # on what is charged beside a Newton step: far above the rounding of the charges themselves
_REMEDY = "standardise the columns, drop those that depend on others, or raise the penalty"


class Objective(ABC):
    """What Newton's method needs from a penalised generalised linear model."""

    @property
    def quadratic(self) -> bool:
        """Whether one Newton step is exact; if not, |l'''| ≤ l'' in the linear predictor (logistic, Poisson)."""
        return False

    @abstractmethod
    def penalties(self, dimension: int) -> FloatArray:
        """Return the penalties r, one per coefficient."""

    @abstractmethod
    def curve(self, y: FloatArray, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return first and second derivative of the loss in the linear predictor."""


def self_concordant_error(ratio: FloatArray) -> FloatArray:
    """Return r/(1 − e^{−r}) − 1 at r = −log(1 − q), the relative error of a Newton step; infinite at q ≥ 1.

    With g and H gradient and Hessian where the step starts, Δ the exact change and r = r(Δ), the Hessians on the way
    are within e^{±tr} of H (:class:`TrainingObjective`), so ‖Δ‖_H·(1 − e^{−r})/r ≤ ‖g‖_{H⁻¹} by 0 = Δᵀg + ∫ΔᵀH_tΔ dt.
    As r ≤ M·‖Δ‖_H with M the largest r of a step of norm 1, 1 − e^{−r} ≤ M·‖g‖_{H⁻¹} = q. The mean Hessian on the way
    is between (1 − e^{−r})/r and (e^r − 1)/r times H, so Δ is within (r/(1 − e^{−r}) − 1)·‖g‖_{H⁻¹} of −H⁻¹g.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = -np.log1p(-np.minimum(ratio, 1.0))
        relative = np.where(ratio > 0, radius / np.minimum(ratio, 1.0) - 1, 0.0)
    return np.where(ratio < 1, relative, np.inf)


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

    def after_swaps(self, left: FloatArray, grown: FloatArray) -> tuple[NDArray[np.bool_], FloatArray]:
        """Return after which swaps a fit is known, and there the largest ratio of a norm in H'⁻¹ to the one in H⁻¹.

        ``left`` is a bound on the share of H that the record that leaves does not take: H' ≥ ``left``·H. The one that
        enters adds at most (``grown`` − 1)·H. H' is then at most d·grown/left times worse conditioned than H (a unit
        diagonal is within d of the best scaling), and at the fit, whose r is below 0.65, e^{2r} < 4 times that: where
        that fit may be refused nothing is known.
        """
        refused = 4 * len(self.theta) * self.condition * grown > CONDITION * left
        known = (left > 1000 * self.uncertainty) & (left > 4 * self.strain * grown) & ~refused
        return known, 1 / np.sqrt(np.where(known, left, 1.0))

    def swap_slack(
        self,
        norms: FloatArray,
        reach: FloatArray,
        decrement: FloatArray,
        unsolved: FloatArray,
        entered: FloatArray,
        *,
        quadratic: bool = False,
    ) -> tuple[FloatArray, FloatArray]:
        """Bound the distance of a fit after a swap from one Newton step, in the norm of H'; and the step's own error.

        The gradient that this fit may have left, the residual of the step's equations, the higher derivatives and the
        gradient that the fit after the swap may have left are in it.

        Parameters
        ----------
        norms
            Largest ratio of a norm in H'⁻¹ to the one in H⁻¹, from :meth:`after_swaps`.
        reach
            Largest r(Δ) of a step of norm 1 in H (:class:`TrainingObjective`), before and after the swap.
        decrement
            Norm of the change of the gradient in H'⁻¹.
        unsolved
            Norm of the residual of the step's equations in H⁻¹.
        entered
            What the record that enters adds to ‖θ‖²_H.
        """
        unsolved = norms * (unsolved + self.uncertainty * decrement)
        before = norms * TOLERANCE * (1 + self.size)
        moved = decrement + before
        error = np.zeros_like(moved) if quadratic else self_concordant_error(reach * norms * moved)
        # the Hessian of the fit after the swap is within e^{±r} of H', r < 0.65 where this error is at most 0.3
        after = 2 * TOLERANCE * (1 + np.sqrt(self.size**2 + entered) + 2 * moved)
        return (error * moved + before + unsolved + after) * _OWN_ROUNDING, error


class TrainingObjective(ABC):
    """The convex objective F of one training set, whose third derivative D³F[v,v,Δ] is within ±r(Δ)·D²F[v,v].

    r(Δ) is the largest change of a linear predictor, or of the difference between two of them, by the step Δ.
    """

    @property
    @abstractmethod
    def quadratic(self) -> bool:
        """Whether one Newton step is exact."""

    @abstractmethod
    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian at θ."""

    @abstractmethod
    def rounding(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bound the errors of what ``derivatives`` computed, element by element."""

    @abstractmethod
    def reach(self, inverse: FloatArray) -> float:
        """Return the largest r(Δ) of a step of norm 1 in the Hessian."""

    @abstractmethod
    def change(self, step: FloatArray) -> float:
        """Return r(Δ)."""


def minimise(objective: Objective, X: FloatArray, y: FloatArray) -> NewtonFit:
    """Return the minimum over the rows of (X, y), or raise if there is none that floating point can tell."""
    return minimum(_Rows(objective, X, y), _start(objective, X, y))


def _start(objective: Objective, X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the minimum over every eighth of many rows, which saves most of the steps; else 0."""
    if not objective.quadratic and len(X) >= _MANY * _EVERY * X.shape[1]:
        with suppress(ReleaseError):
            return minimise(objective, X[::_EVERY], y[::_EVERY]).theta
    return np.zeros(X.shape[1])


def minimum(training: TrainingObjective, start: FloatArray) -> NewtonFit:
    """Return the minimum, searched from ``start``, or raise if there is none that floating point can tell."""
    theta = start
    for _ in range(_STEPS):
        gradient, hessian = training.derivatives(theta)
        fit = _fit_at(theta, hessian)
        step = fit.inverse @ gradient
        decrement = float(np.sqrt(max(float(gradient @ step), 0.0)))
        allowed = TOLERANCE * (1 + fit.size)
        if decrement <= allowed / 2 and not training.quadratic:
            allowed = min(allowed, CLOSE / max(training.reach(fit.inverse), 1e-300))
        if decrement <= allowed / 2:
            error, hessian_error = training.rounding(theta)
            strain = float(np.sqrt(error @ np.abs(fit.inverse) @ error)) / (allowed / 2)
            if not strain <= 1:
                raise ReleaseError(f"the regression is too badly conditioned on a training set; {_REMEDY}")
            # ‖H^{−½}·error of the summed Hessian·H^{−½}‖ is at most the Perron root of |H⁻¹|·(bound on the error)
            summed = float(np.abs(np.linalg.eigvals(np.abs(fit.inverse) @ hessian_error)).max())
            inverted = 4 * len(theta) * EPS * fit.condition
            return replace(fit, uncertainty=inverted + summed, strain=strain)
        theta = theta - damping(training.quadratic, np.asarray(training.change(step))) * step
    raise ReleaseError(f"the regression did not converge on a training set; {_REMEDY}")


@dataclass(frozen=True, eq=False)
class _Rows(TrainingObjective):
    """A penalised generalised linear model on the rows of (X, y)."""

    objective: Objective
    X: FloatArray
    y: FloatArray

    @property
    def quadratic(self) -> bool:
        """Whether one Newton step is exact."""
        return self.objective.quadratic

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian."""
        slope, weight = self.objective.curve(self.y, self.X @ theta)
        penalty = self.objective.penalties(len(theta))
        hessian = self.X.T @ (weight[:, None] * self.X) + np.diag(penalty)
        return self.X.T @ slope + penalty * theta, hessian

    def rounding(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bound the errors of both sums."""
        slope, weight = self.objective.curve(self.y, self.X @ theta)
        penalty, X = self.objective.penalties(len(theta)), np.abs(self.X)
        gradient = gradient_rounding(self.X, slope[:, None], weight[:, None], theta[None], penalty)[0]
        return gradient, (len(X) / 2 + 8) * EPS * (X.T @ (weight[:, None] * X))

    def reach(self, inverse: FloatArray) -> float:
        """Return max ‖xⱼ‖ in the inverse Hessian."""
        return float(np.sqrt(np.max(np.einsum("nd,nd->n", self.X @ inverse, self.X))))

    def change(self, step: FloatArray) -> float:
        """Return max |xⱼᵀΔ|."""
        return float(np.abs(self.X @ step).max())


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


def gradient_rounding(
    X: FloatArray, slope: FloatArray, weight: FloatArray, theta: FloatArray, penalty: FloatArray
) -> FloatArray:
    """Bound the error of the computed gradient at each row of ``theta``, (swaps, d), given slopes (rows, swaps).

    Sums of m terms err by less than (m + 1)·(eps/2)·Σ|terms|.
    """
    X, theta = np.abs(X), np.abs(theta)
    margin = (X.shape[1] + 2) * EPS * (X @ theta.T)
    each = weight * margin * (1 + CLOSE) + (len(X) / 2 + 8) * EPS * np.abs(slope)
    each += 4 * EPS * np.maximum(weight, 1.0)  # rounding error of the mean, of which the slope is the distance
    return np.asarray(each.T @ X + 4 * EPS * penalty * theta)


def damping(quadratic: bool, length: FloatArray) -> FloatArray:
    """Share of the step to take: with t the largest change of a margin, log(1 + t)/t always decreases F (Bach 2010)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where((length < 0.5) | quadratic, 1.0, np.log1p(length) / length))
