"""Softmax (multinomial logistic) regression whose change under a swap is one Newton step with a proven radius.

The objective is F(Θ) = Σ [log Σ_k exp(θ_kᵀxᵢ) − θ_{yᵢ}ᵀxᵢ] + ‖Θ‖²/(2C) over the training set, Θ of one row per class,
the intercepts (last column) unpenalised. A vector added to all rows changes no probability and only the penalty, so the
minimum is sought among Θ = QU whose rows sum to zero: Q has orthonormal columns, U one row less than Θ. Any Q would do
for what follows; the minimum over U exists and is unique where every class is present or no intercept is free.

With p the probabilities of a record, F has there the gradient (p − e_y)xᵀ and, along V, the second derivative Var_p(Vx)
and the third D³F[V,V,Δ] = E_p[(Vx − E Vx)²(Δx − E Δx)], which is within ±r·Var_p(Vx) if r is the range of Δx over the
classes. So everything that :mod:`deniable.noise.regression` shows for one linear predictor holds for differences
between two of them, with ‖(e_k − e_l) ⊗ x‖ in place of ‖x‖ (:class:`deniable.noise.newton.TrainingObjective`). A swap
changes the Hessian by two terms of rank K − 1, and Woodbury's identity asks for one system of 2(K − 1) equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import helmert

from deniable._check import FloatArray, Indices, InputError, flag, integer, number
from deniable._floats import EPS
from deniable.noise.laws import NoiseLaw
from deniable.noise.newton import TOLERANCE, NewtonFit, minimum
from deniable.noise.newton_swaps import AT_ONCE, SwapBatch, minimise_swapped, outer_products
from deniable.noise.regression import ROUGH, Booleans, PenalisedFit, reach_of
from deniable.noise.softmax_rows import SoftmaxRows, SwappedSoftmax, chances, contrasts, quadratic_forms, roots
from deniable.noise.statistics import SLACK


@dataclass(frozen=True)
class SoftmaxRegression(PenalisedFit):
    """Multinomial logistic regression on labels 0 … ``n_classes`` − 1, Σ log loss + ‖Θ‖²/(2``C``).

    This is what scikit-learn's ``LogisticRegression(C=C)`` minimises for more than two classes. The value has shape
    (n_classes, d), the intercepts in the last column if there are any; the classes' coefficients sum to zero. Where a
    class is missing from a training set and the intercept is free there is no minimum, and the value is 0.
    """

    C: float = 1.0
    n_classes: int = 3

    def __post_init__(self) -> None:
        flag("fit_intercept", self.fit_intercept)
        object.__setattr__(self, "C", number("C", self.C, above=0.0, below=np.inf))
        object.__setattr__(self, "n_classes", integer("n_classes", self.n_classes, at_least=2))

    def __call__(self, data: Any) -> FloatArray:
        """Return the coefficients, shape (n_classes, d)."""
        X, y = self._design(data)
        counts = np.bincount(y.astype(np.intp), minlength=self.n_classes)
        if self.fit_intercept and not counts.all():
            return np.zeros((self.n_classes, X.shape[1]))
        return np.asarray(self._basis @ self._fitted(X, y).theta.reshape(-1, X.shape[1]))

    @property
    def _basis(self) -> FloatArray:
        """Q, (classes, classes − 1)."""
        return np.asarray(helmert(self.n_classes).T)

    def _fitted(self, X: FloatArray, y: FloatArray) -> NewtonFit:
        training = SoftmaxRows(X, y.astype(np.intp), self._basis, self._penalty(X.shape[1]))
        return minimum(training, np.zeros(self._size(X)))

    def _penalty(self, d: int) -> FloatArray:
        penalty = np.full(d, 1 / self.C)
        if self.fit_intercept:
            penalty[-1] = 0.0
        return np.tile(penalty, self.n_classes - 1)

    def _size(self, X: FloatArray) -> int:
        return int((self.n_classes - 1) * X.shape[1])

    def _lacking(self, y: FloatArray, inside: Indices, leave: Indices, enter: Indices) -> tuple[bool, Booleans]:
        counts = np.bincount(y[inside].astype(np.intp), minlength=self.n_classes)
        leaving, entering = (y[who].astype(np.intp) for who in (leave, enter))
        lost = (counts[leaving] == 1) & (leaving != entering)
        missing = np.sum(counts == 0) - (counts[entering] == 0)
        return bool(self.fit_intercept and not counts.all()), (lost | (missing > 0)) & self.fit_intercept

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
        around = _Around.of(X, y.astype(np.intp), inside, self._fitted(X[inside], y[inside]), self._basis)
        size = around.basis.shape[1] ** 2 * X.shape[1] * leave.shape[1]
        chunks = np.array_split(np.arange(len(leave)), -(-len(leave) * size // AT_ONCE))
        parts = [around.swapped(leave[some], enter[some], law, coordinates) for some in chunks]
        distance, rough = (np.concatenate(each) for each in zip(*parts, strict=True))
        if rough.any():
            start = around.fit.theta
            distance[rough] = self._refitted(X, y, inside, leave[rough], enter[rough], start, law, coordinates)
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
        free, basis, penalty = self.n_classes - 1, self._basis, self._penalty(X.shape[1])
        kept, labels = X[inside], y.astype(np.intp)
        leaving, outer = np.searchsorted(inside, leave), outer_products(kept)

        def batch_of(some: Indices) -> SwapBatch:
            newcomers = X[enter[some]], labels[enter[some]]
            return SwappedSoftmax(kept, labels[inside], basis, penalty, newcomers, leaving[some], outer)

        work = kept.size * X.shape[1] * free**2
        swapped = minimise_swapped(batch_of, len(leave), start, len(kept) * self.n_classes**2, work)
        known, theta = np.isfinite(swapped.radius), swapped.theta
        moved = (basis @ (theta - start).reshape(len(leave), free, -1)).reshape(len(leave), -1)[:, coordinates]
        slack = np.where(known, swapped.radius + 4 * TOLERANCE * (1 + swapped.size + swapped.radius), 0.0)
        reach = reach_of(_of_classes(swapped.inverse, basis), law, coordinates)
        unfolded = 2 * _unfolding(np.linalg.norm(theta, axis=1) + np.linalg.norm(start), len(start), law)
        return np.where(known, law.distance(moved) + reach * slack + unfolded, np.inf)

    def _design(self, data: Any) -> tuple[FloatArray, FloatArray]:
        X, y = super()._design(data)
        if not np.all((y >= 0) & (y < self.n_classes) & (y == np.floor(y))):
            raise InputError(f"y must hold the labels 0 to {self.n_classes - 1}")
        return X, y


@dataclass(frozen=True, eq=False)
class _Around:
    """A fit, and each record's derivatives and leverages there."""

    fit: NewtonFit
    basis: FloatArray
    X: FloatArray
    slope: FloatArray  # Qᵀ(p − e_y), (records, classes − 1)
    root: FloatArray  # R with RRᵀ = Qᵀ(diag(p) − ppᵀ)Q
    own: FloatArray  # (I ⊗ x)ᵀH⁻¹(I ⊗ x)
    entered: FloatArray  # (Ux)ᵀRRᵀ(Ux): what the record adds to ‖θ‖²
    leverage: FloatArray  # a bound: RRᵀ ⊗ xxᵀ ≤ leverage·H
    contrast: FloatArray  # the largest ‖(e_k − e_l) ⊗ x‖² in H⁻¹
    largest: float  # of the training set

    @classmethod
    def of(cls, X: FloatArray, y: Indices, inside: Indices, fit: NewtonFit, basis: FloatArray) -> _Around:
        margin = X @ fit.theta.reshape(basis.shape[1], -1).T
        chance, own = chances(margin, basis), quadratic_forms(X, fit.inverse, basis)
        slope, root = (chance - np.eye(len(basis))[y]) @ basis, roots(chance, basis)
        entered = np.sum((np.swapaxes(root, 1, 2) @ margin[..., None])[..., 0] ** 2, axis=1)
        leverage = np.asarray(np.linalg.eigvalsh(np.swapaxes(root, 1, 2) @ own @ root)[:, -1] * SLACK)
        contrast = contrasts(own, basis)
        return cls(fit, basis, X, slope, root, own, entered, leverage, contrast, float(contrast[inside].max()))

    def swapped(
        self, leave: Indices, enter: Indices, law: NoiseLaw, coordinates: Indices
    ) -> tuple[FloatArray, Booleans]:
        """Bound the distances of these swaps, (swaps, partners), and say where the bound is rough or none."""
        fit, basis, left, grown = self.fit, self.basis, 1 - self.leverage[leave], 1 + self.leverage[enter]
        # H' ≥ H − (what record a gives it) ≥ (1 − leverage of a)·H
        known, norms = fit.after_swaps(left, grown)
        step, decrement, unsolved = self._step(leave, enter, known)
        reach = np.sqrt(np.maximum(self.largest, self.contrast[enter]))
        slack, error = fit.swap_slack(norms, reach, decrement, unsolved, self.entered[enter])
        moved = basis @ step.reshape(*leave.shape, basis.shape[1], -1)
        distance = law.distance(moved.reshape(*leave.shape, -1)[..., coordinates])
        distance += norms * reach_of(_of_classes(fit.inverse, basis), law, coordinates) * slack
        lengths = 2 * np.linalg.norm(fit.theta) + np.linalg.norm(step, axis=-1)
        return distance + 2 * _unfolding(lengths, len(fit.theta), law), ~known | ~(error <= ROUGH)

    def _step(self, leave: Indices, enter: Indices, known: Booleans) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return H'⁻¹g, ‖g‖_{H'⁻¹} and the residual of H'·step = g, in the norm of H⁻¹.

        With Z = H⁻¹(I ⊗ x), G = (I ⊗ x)ᵀH⁻¹(I ⊗ x), S = RRᵀ and s the slope of each record, H'⁻¹g = Z_aα + Z_bβ where
        (I − S_aG_aa)α − S_aG_abβ = −s_a and S_bG_baα + (I + S_bG_bb)β = s_b.
        """
        free, d = self.basis.shape[1], self.X.shape[1]
        x_a, x_b, slope_a, slope_b = self.X[leave], self.X[enter], self.slope[leave], self.slope[enter]
        weight_a, weight_b = (self.root[who] @ np.swapaxes(self.root[who], -1, -2) for who in (leave, enter))
        Z_a, Z_b = (np.tensordot(x, self.fit.inverse.reshape(free, d, -1), (-1, 1)) for x in (x_a, x_b))
        cross = np.einsum("npd,nplkd->npkl", x_a, Z_b.reshape(*leave.shape, free, free, d))
        system = np.zeros((*leave.shape, 2 * free, 2 * free))
        system[..., :free, :free] = -weight_a @ self.own[leave]
        system[..., :free, free:] = -weight_a @ cross
        system[..., free:, :free] = weight_b @ np.swapaxes(cross, -1, -2)
        system[..., free:, free:] = weight_b @ self.own[enter]
        system = np.where(known[..., None, None], system, 0.0) + np.eye(2 * free)
        solved = np.linalg.solve(system, np.concatenate([-slope_a, slope_b], axis=-1)[..., None])[..., 0]
        step = np.einsum("npl,nplm->npm", solved[..., :free], Z_a)
        step += np.einsum("npl,nplm->npm", solved[..., free:], Z_b)
        along_a, along_b = (np.einsum("npkd,npd->npk", step.reshape(*leave.shape, free, d), x) for x in (x_a, x_b))
        decrement = np.sqrt(np.maximum(np.sum(slope_b * along_b - slope_a * along_a, axis=-1), 0.0))
        off_a = slope_a - np.einsum("npkl,npl->npk", weight_a, along_a)
        off_b = np.einsum("npkl,npl->npk", weight_b, along_b) - slope_b
        residual = off_a[..., None] * x_a[..., None, :] + off_b[..., None] * x_b[..., None, :]
        residual = residual.reshape(step.shape) + step @ self.fit.hessian
        unsolved = np.einsum("npm,npm->np", residual @ self.fit.inverse, residual)
        return step, decrement, np.sqrt(np.maximum(unsolved, 0.0))


def _of_classes(inverse: FloatArray, basis: FloatArray) -> FloatArray:
    """(Q ⊗ I)H⁻¹(Q ⊗ I)ᵀ: one or many inverse Hessians in the coordinates of Θ."""
    wide = np.kron(basis, np.eye(inverse.shape[-1] // basis.shape[1]))
    return np.asarray(wide @ inverse @ wide.T)


def _unfolding(size: FloatArray, dimension: int, law: NoiseLaw) -> FloatArray:
    """Distance by which the rounding of Θ = QU may move values whose U has this norm."""
    return np.asarray(4 * dimension**1.5 * EPS * law.stretch * size)
