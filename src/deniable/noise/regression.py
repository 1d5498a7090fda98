"""Ridge and logistic regression whose change under a swap of two records is one Newton step with a proven radius.

Both minimise F(θ) = Σ l(yᵢ, xᵢᵀθ) + ½ Σ rⱼθⱼ² over the training set, the intercept (last coefficient) unpenalised.
Around the minimiser θ of a training set, exchanging record a for record b changes the gradient to g = g_b x_b − g_a x_a
and the Hessian to H' = H − w_a x_a x_aᵀ + w_b x_b x_bᵀ; by Sherman–Morrison–Woodbury every swap costs O(d).
For the squared loss the step −H'⁻¹g is exact. The logistic loss is generalised self-concordant, |l'''| ≤ l''
(Bach 2010): while |xⱼᵀΔ| ≤ r for all rows, Hessians differ from H' by factors within e^{±r}. With r = maxⱼ |xⱼᵀΔ| at
the exact change Δ this gives 1 − e^{−r} ≤ q = maxⱼ‖xⱼ‖_{H'⁻¹}·‖g‖_{H'⁻¹}, so r ≤ −log(1 − q), and the step errs by at
most (r/(1 − e^{−r}) − 1)·‖g‖_{H'⁻¹} in the norm of H'. Where that is too much the swap is fitted again.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from deniable._check import FloatArray, InputError, number
from deniable.noise.evidence import ReleaseError
from deniable.noise.laws import NoiseLaw
from deniable.noise.resampling import Indices, Population
from deniable.noise.statistics import ResampledSwap, swap_partners

_TOLERANCE = 1e-11  # a fit stops at this Newton decrement, relative to 1 + ‖θ‖ in the norm of the Hessian
_ROUGH = 0.3  # relative error of the one-step change above which the swap is fitted again


@dataclass(frozen=True)
class _Regression(ResampledSwap):
    """A penalised generalised linear model on data (X, y)."""

    fit_intercept: bool = True

    @property
    @abstractmethod
    def _penalty(self) -> float:
        """The coefficient r of ½‖θ‖²."""

    @abstractmethod
    def _curve(self, y: FloatArray, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivative of the loss in the linear predictor."""

    @abstractmethod
    def _step_error(self, ratio: FloatArray) -> FloatArray:
        """Relative error of the Newton step, in the norm of H', given q."""

    def __call__(self, data: Any) -> FloatArray:
        """Return the coefficients, the intercept last if there is one, shape (d,)."""
        X, y = self._design(data)
        return self._fit(X, y)[0]

    def swap_distances(
        self,
        population: Population,
        inside: Indices,
        law: NoiseLaw,
        coordinates: Indices,
        partners: int,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return upper bounds on the distance between the fits before and after each swap, shape (n, partners)."""
        X, y = self._design(population.data)
        theta, hessian = self._fit(X[inside], y[inside])
        member = np.zeros(len(X), dtype=bool)
        member[inside] = True
        leave, enter = swap_partners(member, partners, rng)
        slope, weight = self._curve(y, X @ theta)
        Z = cho_solve(cho_factor(hessian), X.T).T  # rows H⁻¹xᵢ
        own = np.einsum("nd,nd->n", X, Z)
        g_aa, g_bb = own[leave], own[enter]
        g_ab = np.einsum("npd,npd->np", X[leave], Z[enter])
        w_a, w_b = -weight[leave], weight[enter]
        c_a, c_b = -slope[leave], slope[enter]
        # H'⁻¹(c_a x_a + c_b x_b) = αz_a + βz_b with [α, β] = (I + SG)⁻¹c, S = diag(w_a, w_b), G the Gram matrix in H⁻¹
        determinant = (1 + w_a * g_aa) * (1 + w_b * g_bb) - w_a * w_b * g_ab**2
        alpha = ((1 + w_b * g_bb) * c_a - w_a * g_ab * c_b) / determinant
        beta = ((1 + w_a * g_aa) * c_b - w_b * g_ab * c_a) / determinant
        step = alpha[..., None] * Z[leave] + beta[..., None] * Z[enter]
        decrement = np.sqrt(np.maximum(c_a * (g_aa * alpha + g_ab * beta) + c_b * (g_ab * alpha + g_bb * beta), 0.0))
        # H' ≥ H − w_a x_a x_aᵀ ≥ (1 − leverage of a)·H bounds every norm in H'⁻¹ by the one in H⁻¹
        kept = 1 / np.sqrt(np.maximum(1 + w_a * g_aa, 1e-300))
        white = law.whiten(law.whiten(np.linalg.inv(hessian)[np.ix_(coordinates, coordinates)]).T)
        to_distance = kept * np.sqrt(np.linalg.eigvalsh((white + white.T) / 2)[-1])
        error = self._step_error(np.sqrt(own.max()) * kept * decrement)
        for i, j in np.argwhere(error > _ROUGH):  # few, and rarer the more records there are: fit again
            after = np.append(inside[inside != leave[i, j]], enter[i, j])
            step[i, j], error[i, j] = self._fit(X[after], y[after], start=theta)[0] - theta, 0.0
        inexact = 8 * _TOLERANCE * (1 + float(np.sqrt(theta @ hessian @ theta)))  # of both fits
        slack = to_distance * (error * decrement + inexact)
        return np.asarray((law.distance(step[..., coordinates]) + slack) * (1 + 1e-9))

    def _fit(self, X: FloatArray, y: FloatArray, start: FloatArray | float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Minimise by damped Newton steps; return θ and the Hessian there."""
        penalty = np.full(X.shape[1], self._penalty)
        if self.fit_intercept:
            penalty[-1] = 0.0
        theta = np.zeros(X.shape[1]) + start
        for _ in range(200):
            slope, weight = self._curve(y, X @ theta)
            gradient = X.T @ slope + penalty * theta
            hessian = X.T @ (weight[:, None] * X) + np.diag(penalty)
            try:
                step = cho_solve(cho_factor(hessian), gradient)
            except np.linalg.LinAlgError:
                raise ReleaseError(
                    "the regression has no unique solution on a subset; increase alpha or lower C"
                ) from None
            decrement = float(np.sqrt(max(float(gradient @ step), 0.0)))
            if decrement <= _TOLERANCE * (1 + float(np.sqrt(theta @ hessian @ theta))):
                return theta, hessian
            # self-concordance: damping by log(1 + t)/t, t = R‖step‖, always decreases F (Bach 2010)
            length = float(np.max(np.abs(X @ step)))
            damping = 1.0 if length < 0.5 or self._quadratic else float(np.log1p(length) / length)
            theta = theta - damping * step
        raise ReleaseError("the regression did not converge on a subset; increase alpha or lower C")

    @property
    def _quadratic(self) -> bool:
        return False

    def _design(self, data: Any) -> tuple[FloatArray, FloatArray]:
        if not isinstance(data, tuple) or len(data) != 2:
            raise InputError("data must be a tuple (X, y) for a regression")
        X, y = np.asarray(data[0], dtype=np.float64), np.asarray(data[1], dtype=np.float64)
        if X.ndim != 2 or y.ndim != 1:
            raise InputError(f"data must be (X, y) of shapes (n, d) and (n,), got {X.shape} and {y.shape}")
        return (np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X), y


@dataclass(frozen=True)
class Ridge(_Regression):
    """Linear regression minimising ½Σ(yᵢ − xᵢᵀθ)² + ½·``alpha``·‖θ‖² (scikit-learn's ``Ridge(alpha)``)."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number("alpha", self.alpha, at_least=0.0, below=np.inf))

    @property
    def _penalty(self) -> float:
        return self.alpha

    @property
    def _quadratic(self) -> bool:
        return True

    def _curve(self, y: FloatArray, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
        return margin - y, np.ones_like(margin)

    def _step_error(self, ratio: FloatArray) -> FloatArray:
        return np.zeros_like(ratio)


@dataclass(frozen=True)
class LogisticRegression(_Regression):
    """Logistic regression on labels 0 and 1 minimising Σ log loss + ‖θ‖²/(2``C``) (scikit-learn's default loss)."""

    C: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "C", number("C", self.C, above=0.0, below=np.inf))

    @property
    def _penalty(self) -> float:
        return 1 / self.C

    def _curve(self, y: FloatArray, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
        chance = expit(margin)
        return chance - y, chance * expit(-margin)

    def _step_error(self, ratio: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = -np.log1p(-np.minimum(ratio, 1.0))
            relative = np.where(ratio > 0, radius / np.minimum(ratio, 1.0) - 1, 0.0)
        return np.where(ratio < 1, relative, np.inf)

    def _design(self, data: Any) -> tuple[FloatArray, FloatArray]:
        X, y = super()._design(data)
        if not np.all((y == 0) | (y == 1)):
            raise InputError("y must hold the labels 0 and 1")
        return X, y
