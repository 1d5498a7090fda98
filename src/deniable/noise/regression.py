"""Ridge and logistic regression whose change under a swap of two records is one Newton step with a proven radius.

Both minimise F(θ) = Σ l(yᵢ, xᵢᵀθ) + ½ Σ rⱼθⱼ² over the training set, the intercept (last coefficient) unpenalised.
Around the minimiser θ of a training set, exchanging record a for record b changes the gradient to g = g_b x_b − g_a x_a
and the Hessian to H' = H − w_a x_a x_aᵀ + w_b x_b x_bᵀ; by Sherman–Morrison–Woodbury every swap costs O(d²).
For the squared loss the step −H'⁻¹g is exact. The logistic loss is generalised self-concordant, |l'''| ≤ l''
(Bach 2010): while |xⱼᵀΔ| ≤ r for all rows, Hessians differ from H' by factors within e^{±r}. With r = maxⱼ |xⱼᵀΔ| at
the exact change Δ this gives 1 − e^{−r} ≤ q = maxⱼ‖xⱼ‖_{H'⁻¹}·‖g‖_{H'⁻¹}, so r ≤ −log(1 − q), and the step errs by at
most (r/(1 − e^{−r}) − 1)·‖g‖_{H'⁻¹} in the norm of H'. Where that is too much, that swap takes more Newton steps, and
the same bound holds around the last of them.

Numerical errors are charged: the gradient that a fit may have left (rounding included), the residual of the equations
of each swap, and the gradient that the fit after the swap may have left. A swap after which the Hessian is singular up
to rounding, or after which there is no fit, counts as distinguished with certainty.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, Indices, InputError, flag, number
from deniable.noise.kinds import ResampledSwap
from deniable.noise.laws import NoiseLaw
from deniable.noise.linear_swaps import LinearisedRidge
from deniable.noise.newton import TOLERANCE, Objective, minimise
from deniable.noise.newton_swaps import swapped_rows
from deniable.noise.resampling import Population
from deniable.noise.statistics import SLACK, finite, swap_partners

Booleans = NDArray[np.bool_]
ROUGH = 0.3  # relative error of the one-step change above which a swap takes more steps


@dataclass(frozen=True)
class PenalisedFit(ResampledSwap):
    """The minimum of a penalised loss on data (X, y), the intercept unpenalised.

    Where there is none because a class is missing from a training set, the value is 0.
    """

    fit_intercept: bool = True

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
        member = np.zeros(population.n_records, dtype=bool)
        member[inside] = True
        leave, enter = swap_partners(member, partners, rng)
        X, y = self._design(population.data)
        before, after = self._lacking(y, inside, leave, enter)
        if before:
            distance, start = np.zeros(leave.shape), np.zeros(self._size(X))
            if not after.all():
                distance[~after] = self._refitted(X, y, inside, leave[~after], enter[~after], start, law, coordinates)
        else:
            distance = self._distances(X, y, inside, leave, enter, law, coordinates)
            if after.any():
                distance[after] = law.distance(self(population.take(inside)).ravel()[coordinates])
        return np.where(np.isnan(distance), np.inf, distance) * SLACK

    @abstractmethod
    def _distances(
        self,
        X: FloatArray,
        y: FloatArray,
        inside: Indices,
        leave: Indices,
        enter: Indices,
        law: NoiseLaw,
        coordinates: Indices,
    ) -> FloatArray:
        """Bound the distances of all swaps, where both fits exist."""

    @abstractmethod
    def _refitted(
        self,
        X: FloatArray,
        y: FloatArray,
        inside: Indices,
        leave: Indices,
        enter: Indices,
        start: FloatArray,
        law: NoiseLaw,
        coordinates: Indices,
    ) -> FloatArray:
        """Upper bounds on the distances of these swaps, (swaps,), from ``start`` by as many steps as they need."""

    def _size(self, X: FloatArray) -> int:
        """Return the number of free parameters."""
        return int(X.shape[1])

    def _lacking(self, y: FloatArray, inside: Indices, leave: Indices, enter: Indices) -> tuple[bool, Booleans]:
        """Return whether a class is missing from the training set, and whether one is after each swap."""
        return False, np.zeros(leave.shape, dtype=bool)

    def _design(self, data: Any) -> tuple[FloatArray, FloatArray]:
        X, y = _columns_of(data)
        return (np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X), y


@dataclass(frozen=True)
class _Regression(PenalisedFit, Objective):
    """A penalised generalised linear model on data (X, y)."""

    @property
    @abstractmethod
    def penalty(self) -> float:
        """The coefficient r of ½‖θ‖², which leaves out the intercept."""

    def __call__(self, data: Any) -> FloatArray:
        """Return the coefficients, the intercept last if there is one, shape (d,)."""
        return minimise(self, *self._design(data)).theta

    def penalties(self, dimension: int) -> FloatArray:
        """Return the penalty of each coefficient."""
        penalties = np.full(dimension, self.penalty)
        if self.fit_intercept:
            penalties[-1] = 0.0
        return penalties

    def _distances(
        self,
        X: FloatArray,
        y: FloatArray,
        inside: Indices,
        leave: Indices,
        enter: Indices,
        law: NoiseLaw,
        coordinates: Indices,
    ) -> FloatArray:
        fit = minimise(self, X[inside], y[inside])
        margin = X @ fit.theta
        slope, weight = self.curve(y, margin)
        Z = X @ fit.inverse  # rows H⁻¹xᵢ
        own = np.einsum("nd,nd->n", X, Z)
        g_aa, g_bb = own[leave], own[enter]
        g_ab = np.einsum("npd,npd->np", X[leave], Z[enter])
        w_a, w_b = -weight[leave], weight[enter]
        c_a, c_b = -slope[leave], slope[enter]
        # H' ≥ H − w_a x_a x_aᵀ ≥ (1 − leverage of a)·H
        left, grown = 1 + w_a * g_aa, 1 + w_b * g_bb
        known, norms = fit.after_swaps(left, grown)
        # H'⁻¹(c_a x_a + c_b x_b) = αz_a + βz_b with [α, β] = (I + SG)⁻¹c, S = diag(w_a, w_b), G the Gram matrix in H⁻¹
        determinant = np.where(known, left * grown - w_a * w_b * g_ab**2, 1.0)
        alpha = (grown * c_a - w_a * g_ab * c_b) / determinant
        beta = (left * c_b - w_b * g_ab * c_a) / determinant
        step = alpha[..., None] * Z[leave] + beta[..., None] * Z[enter]  # the change is −step
        along_a, along_b = (np.einsum("npd,npd->np", X[who], step) for who in (leave, enter))
        decrement = np.sqrt(np.maximum(c_a * along_a + c_b * along_b, 0.0))
        residual = (w_a * along_a - c_a)[..., None] * X[leave] + (w_b * along_b - c_b)[..., None] * X[enter]
        residual += step @ fit.hessian
        unsolved = np.sqrt(np.maximum(np.einsum("npd,npd->np", residual @ fit.inverse, residual), 0.0))
        reach = np.sqrt(np.maximum(own[inside].max(), g_bb))  # ‖xⱼ‖ in H⁻¹ over the rows after the swap, and before it
        entered = w_b * margin[enter] ** 2
        slack, error = fit.swap_slack(norms, reach, decrement, unsolved, entered, quadratic=self.quadratic)
        distance = law.distance(step[..., coordinates])
        distance += norms * reach_of(fit.inverse, law, coordinates) * slack
        rough = ~known | ~(error <= ROUGH)
        if rough.any():
            distance[rough] = self._refitted(X, y, inside, leave[rough], enter[rough], fit.theta, law, coordinates)
        return distance

    def _refitted(
        self,
        X: FloatArray,
        y: FloatArray,
        inside: Indices,
        leave: Indices,
        enter: Indices,
        start: FloatArray,
        law: NoiseLaw,
        coordinates: Indices,
    ) -> FloatArray:
        newcomers, leaving = (X[enter], y[enter]), np.searchsorted(inside, leave)
        swapped = swapped_rows(self, X[inside], y[inside], newcomers, leaving, start)
        moved = law.distance((swapped.theta - start)[:, coordinates])
        known = np.isfinite(swapped.radius)
        slack = np.where(known, swapped.radius + 4 * TOLERANCE * (1 + swapped.size + swapped.radius), 0.0)
        return np.where(known, moved + reach_of(swapped.inverse, law, coordinates) * slack, np.inf)


def _columns_of(data: Any) -> tuple[FloatArray, FloatArray]:
    """Return checked (X, y)."""
    if not isinstance(data, tuple) or len(data) != 2:
        raise InputError("data must be a tuple (X, y) for a regression")
    X, y = finite("X", data[0]), finite("y", data[1])
    if X.ndim != 2 or y.ndim != 1:
        raise InputError(f"data must be (X, y) of shapes (n, d) and (n,), got {X.shape} and {y.shape}")
    return X, y


def reach_of(inverse: FloatArray, law: NoiseLaw, coordinates: Indices) -> FloatArray:
    """Largest distance of a change of norm 1 in H, for one or many inverse Hessians (..., d, d)."""
    white = law.whiten(inverse[..., coordinates[:, None], coordinates])
    white = law.whiten(np.swapaxes(white, -1, -2))
    return np.asarray(np.sqrt(np.linalg.eigvalsh((white + np.swapaxes(white, -1, -2)) / 2)[..., -1]))


@dataclass(frozen=True)
class _PenalisedBy(_Regression):
    """A regression whose penalty is given as it is."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        flag("fit_intercept", self.fit_intercept)
        object.__setattr__(self, "alpha", number("alpha", self.alpha, at_least=0.0, below=np.inf))

    @property
    def penalty(self) -> float:
        """The coefficient r of ½‖θ‖²."""
        return self.alpha


@dataclass(frozen=True)
class Ridge(_PenalisedBy):
    """Linear regression minimising ½Σ(yᵢ − xᵢᵀθ)² + ½·``alpha``·‖θ‖² (scikit-learn's ``Ridge(alpha)``)."""

    @property
    def quadratic(self) -> bool:
        """True: one Newton step is exact."""
        return True

    def linearised(self, population: Population) -> LinearisedRidge:
        """Return the fit whose swaps are bounded around the one to all records."""
        X, y = _columns_of(population.data)
        return LinearisedRidge.of(X, y, self.penalties(X.shape[1] + self.fit_intercept), population)

    def curve(self, y: FloatArray, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return residuals and ones."""
        return margin - y, np.ones_like(margin)


@dataclass(frozen=True)
class LogisticRegression(_Regression):
    """Logistic regression on labels 0 and 1 minimising Σ log loss + ‖θ‖²/(2``C``) (scikit-learn's default loss).

    Where all labels are equal and the intercept is free there is no minimum, and the value is 0.
    """

    C: float = 1.0

    def __post_init__(self) -> None:
        flag("fit_intercept", self.fit_intercept)
        object.__setattr__(self, "C", number("C", self.C, above=0.0, below=np.inf))

    @property
    def penalty(self) -> float:
        """The coefficient r of ½‖θ‖²."""
        return 1 / self.C

    def curve(self, y: FloatArray, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p − y and p(1 − p)."""
        small = np.exp(-np.abs(margin))
        chance = np.where(margin >= 0, 1.0, small) / (1 + small)
        return chance - y, small / (1 + small) ** 2

    def _design(self, data: Any) -> tuple[FloatArray, FloatArray]:
        X, y = super()._design(data)
        if not np.all((y == 0) | (y == 1)):
            raise InputError("y must hold the labels 0 and 1")
        return X, y

    def __call__(self, data: Any) -> FloatArray:
        """Return the coefficients, the intercept last if there is one, shape (d,)."""
        X, y = self._design(data)
        return np.zeros(X.shape[1]) if self._of_one_class(y.sum(), len(y)) else minimise(self, X, y).theta

    def _lacking(self, y: FloatArray, inside: Indices, leave: Indices, enter: Indices) -> tuple[bool, Booleans]:
        ones = y[inside].sum()
        after = self._of_one_class(ones - y[leave] + y[enter], len(inside))
        return bool(self._of_one_class(ones, len(inside))), np.asarray(after)

    def _of_one_class(self, ones: Any, size: int) -> Any:
        return self.fit_intercept & ((ones == 0) | (ones == size))


@dataclass(frozen=True)
class PoissonRegression(_PenalisedBy):
    """Poisson regression of counts, minimising Σ(e^m − y·m) + ½·``alpha``·‖θ‖², m = xᵀθ.

    scikit-learn's ``PoissonRegressor(alpha=a)`` on k records minimises the same for ``alpha`` = a·k. Where all counts
    of a training set are 0 and the intercept is free there is no minimum, and the release fails.
    """

    def curve(self, y: FloatArray, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return e^m − y and e^m."""
        with np.errstate(over="ignore"):
            mean = np.exp(margin)
        return mean - y, mean

    def _design(self, data: Any) -> tuple[FloatArray, FloatArray]:
        X, y = super()._design(data)
        if not np.all(y >= 0):
            raise InputError("y must hold counts, none below 0")
        return X, y
