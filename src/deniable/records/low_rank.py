"""Neighbouring problems as updates of low rank: what a change of one record does to gradient and Hessian."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.records.fit import Optimum
from deniable.records.problem import UNIT, Part


@dataclass(frozen=True, eq=False)
class Pivot:
    """What all neighbours share: the matrix H; the neighbours' Hessians are low-rank changes of it.

    H holds the penalty that is left when one *typical* record has gone (``typical`` sample weight); for
    records of another weight, the certificate includes the difference.
    """

    fit: Optimum
    typical: float
    penalty: FloatArray
    inverse: FloatArray
    pull: FloatArray = field(repr=False)  # H⁻¹(relief ∘ f)
    drift: FloatArray = field(repr=False)  # H⁻¹∇F(f)
    smallest: float
    largest: float
    matrix_error: float
    inverse_error: float

    @property
    def ridge(self) -> float:
        """Strong convexity that the penalty alone guarantees."""
        return float(self.penalty.min())


@dataclass(frozen=True, eq=False)
class LowRank:
    """The departure of each of some rows: H_i = H − U_i W_i U_iᵀ, where U_i = x_i ⊗ 1 and W_i = s_i·φ''_i."""

    pivot: Pivot
    rows: Part
    margins: FloatArray
    slope: FloatArray  # s_i·φ'_i, (rows, classes)
    curvature: FloatArray  # s_i·φ''_i, (rows, classes, classes)
    solved: FloatArray  # H⁻¹U_i, (rows, classes, parameters)
    leverage: FloatArray  # U_iᵀH⁻¹U_i, (rows, classes, classes)

    @classmethod
    def of(cls, pivot: Pivot, rows: Part) -> LowRank:
        """Solve with H for every row of the block: the one large matrix product of the pass."""
        problem, margins = pivot.fit.problem, pivot.fit.margins(rows)
        d, k = problem.columns, problem.classes
        slope = problem.loss.slope(margins, rows.y) * rows.weights[:, None]
        curvature = problem.loss.curvature(margins, rows.y) * rows.weights[:, None, None]
        solved = (rows.X @ pivot.inverse.reshape(d, k * d * k)).reshape(-1, k, d * k)
        leverage = cls._apply(rows.X, solved.reshape(-1, k, d, k))
        return cls(pivot, rows, margins, slope, curvature, solved, leverage)

    @staticmethod
    def _apply(X: FloatArray, values: FloatArray) -> FloatArray:
        """U_iᵀv_i for each row i of ``values`` (rows, ..., d, classes)."""
        if values.ndim == 3:
            return np.asarray(np.einsum("id,idc->ic", X, values))
        return np.asarray(np.einsum("id,iadc->iac", X, values))

    def shape(self, values: FloatArray) -> FloatArray:
        """See flat parameters as (rows, columns, classes)."""
        return values.reshape(-1, self.rows.X.shape[1], self.slope.shape[1])

    def project(self, values: FloatArray) -> FloatArray:
        """U_iᵀ v_i."""
        return self._apply(self.rows.X, self.shape(values))

    def amplify(self, projected: FloatArray) -> FloatArray:
        """W_i(I − U_iᵀH⁻¹U_i W_i)⁻¹ z, the factor of the low-rank update of an inverse."""
        k = self.slope.shape[1]
        inner = np.eye(k) - self.leverage @ self.curvature
        try:
            return np.asarray((self.curvature @ np.linalg.solve(inner, projected[..., None]))[..., 0])
        except np.linalg.LinAlgError:
            raise InputError(
                "one record alone determines a parameter, so without it there is no optimum; raise regularization"
            ) from None

    def solve(self, values: FloatArray) -> FloatArray:
        """H_i⁻¹ v_i for each row."""
        plain = values @ self.pivot.inverse
        return plain + self._add_subspace(self.amplify(self.project(plain)))

    def newton(self) -> tuple[FloatArray, FloatArray]:
        """δ_i = H_i⁻¹ b_i, with b_i = U_i·slope + s_i·relief∘f − ∇F(f); also the coefficients of H⁻¹U_i."""
        common = self.rows.weights[:, None] * self.pivot.pull - self.pivot.drift
        projected = np.einsum("iac,ic->ia", self.leverage, self.slope) + self.project(common)
        coefficients = self.slope + self.amplify(projected)
        return common + self._add_subspace(coefficients), coefficients

    def pull(self) -> FloatArray:
        """b_i, (rows, parameters)."""
        fit = self.pivot.fit
        own = np.einsum("id,ic->idc", self.rows.X, self.slope).reshape(len(self.slope), -1)
        return np.asarray(own) + self.rows.weights[:, None] * (fit.problem.relief * fit.centre) - fit.gradient

    def largest_pull(self) -> FloatArray:
        """Upper bound of ‖b_i‖."""
        fit = self.pivot.fit
        own = np.linalg.norm(self.slope, axis=1) * np.linalg.norm(self.rows.X, axis=1)
        relief = self.rows.weights * float(np.linalg.norm(fit.problem.relief * fit.centre))
        return np.asarray(own + relief + float(np.linalg.norm(fit.gradient)) + fit.gradient_error) * (1 + 1e-12)

    def energies(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """b_iᵀδ_i = δ_iᵀH_iδ_i, and the penalty's part of it."""
        fit, share = self.pivot.fit, self.rows.weights
        along = step @ np.column_stack([fit.problem.relief * fit.centre, fit.gradient])
        total = np.einsum("ic,ic->i", self.slope, self.project(step)) + share * along[:, 0] - along[:, 1]
        kept = step**2 @ np.column_stack([fit.problem.penalty, fit.problem.relief])
        return total, kept[:, 0] - share * kept[:, 1]

    def slope_error(self) -> FloatArray:
        """Bound ‖x_i‖ times the rounding error of record i's slope at its margins."""
        loss, rows = self.pivot.fit.problem.loss, self.rows
        curved = np.abs(self.curvature).max(axis=(1, 2))
        if loss.self_concordance is None:
            curved = np.maximum(curved, rows.weights * (loss.smoothness or np.inf))
        margins = 1 + np.abs(self.margins).max(axis=1)
        slopes = np.linalg.norm(self.slope, axis=1)
        return np.asarray(8 * UNIT * (slopes + curved * margins) * np.linalg.norm(rows.X, axis=1))

    def left_penalty(self) -> FloatArray:
        """Total penalty in each neighbouring problem, (rows, parameters)."""
        problem = self.pivot.fit.problem
        return problem.penalty - self.rows.weights[:, None] * problem.relief

    def eigenvalue(self) -> FloatArray:
        """Lower bound of λ_min(H_i)."""
        share = np.einsum("iab,iba->i", self.leverage, self.curvature)
        keep: FloatArray = np.maximum(1 - share * (1 + 1e-10) - 1e-12, 0.0)  # H_i ⪰ (1 − ‖W^{1/2}U_iᵀH⁻¹U_iW^{1/2}‖)·H
        return np.maximum(keep * self.pivot.smallest, self.pivot.ridge) - self.weight_gap()

    def ridge(self) -> FloatArray:
        """Strong convexity from the penalty alone, for each neighbouring problem."""
        return np.maximum(self.pivot.ridge - self.weight_gap(), 0.0)

    def weight_gap(self) -> FloatArray:
        """How much penalty a row of another weight than most takes with it, above that of theirs."""
        gap = np.abs(self.rows.weights - self.pivot.typical)
        return gap * float(self.pivot.fit.problem.relief.max())

    def _add_subspace(self, coefficients: FloatArray) -> FloatArray:
        if coefficients.shape[1] == 1:
            return coefficients * self.solved[:, 0]
        return np.asarray(np.einsum("ic,icp->ip", coefficients, self.solved))
