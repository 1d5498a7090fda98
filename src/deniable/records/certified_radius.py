"""How far from a Newton step the true optimum can be.

With f, b_i, δ_i and H_i as in :mod:`deniable.records.neighbours`, a certificate bounds the distance from f + δ_i to the
exact optimum f_i*. With r = M·R·‖δ_i‖ (M the loss's self-concordance, R the largest row norm) every row's curvature
stays within exp(±r) along the step, so

    ∇F_i(f + δ_i) = Σ_j x_j φ''_j c_j (x_jᵀδ_i),   |c_j| ≤ χ(r) = (e^r − 1 − r)/r,

and with the ridge λ (the smallest penalty), S² = Σ_{j≠i} φ''_j (x_jᵀδ_i)² and ‖(A + λ)⁻¹A^{1/2}‖ ≤ 1/(2√λ),

    (ridge)    ‖f + δ_i − f_i*‖ ≤ B/(1 − M·R·B/2),      B = χ(r)·e^{r/2}·S/(2√λ);
    (general)  ‖f + δ_i − f_i*‖ ≤ −log(1 − q)/(M·R),    q = M·R·e^r·χ(r)·S/m,   m = λ_min(H_i).

The second needs no ridge (an unpenalised intercept). Losses with kinks in place of self-concordance are quadratic
between them: there the gradient after the step is at most κ·Σ_j ‖x_j‖·(‖x_j‖‖δ_i‖ − kink_j)₊, and strong convexity
turns it into a distance. All rounding errors are bounded and added.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray
from deniable.records.low_rank import LowRank, Pivot
from deniable.records.problem import UNIT

_FAR = 500.0  # cap on M·R·‖δ‖: e^500 is beyond what any certificate allows, and its products are still finite doubles


@dataclass(frozen=True, eq=False)
class RadiusCertificate:
    """Radii from what all records share: the loss's constants, row norms and sorted kinks."""

    pivot: Pivot
    reach: float  # M·R
    kinks: FloatArray = field(repr=False)  # kink_j/‖x_j‖, increasing
    mass: FloatArray = field(repr=False)  # running Σ s_j‖x_j‖² and Σ s_j‖x_j‖²·kink_j/‖x_j‖
    moment: FloatArray = field(repr=False)

    @classmethod
    def of(cls, pivot: Pivot) -> RadiusCertificate:
        """Sort the kinks once, or note the self-concordance."""
        problem, loss = pivot.fit.problem, pivot.fit.problem.loss
        concordance = loss.self_concordance
        found = [(np.empty(0), np.empty(0))]
        for part in problem.parts() if concordance is None else ():
            distance = loss.kink(pivot.fit.margins(part), part.y)
            with np.errstate(divide="ignore", invalid="ignore"):
                at = np.where(part.norms > 0, distance / part.norms, np.inf)
            found.append((at, part.weights * part.norms**2))
        kinks, weight = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(kinks)
        kinks, weight = kinks[order], weight[order]
        return cls(
            pivot,
            (concordance or 0.0) * problem.norm_bound,
            kinks,
            np.append(0.0, np.cumsum(weight)),
            np.append(0.0, np.cumsum(weight * np.where(np.isfinite(kinks), kinks, 0.0))),
        )

    def after_newton(self, block: LowRank, step: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Radius around f + δ_i after one Newton step."""
        fit = self.pivot.fit
        length = np.sqrt(np.einsum("ij,ij->i", step, step))
        rounding = self.newton_rounding(block, coefficients, length)
        lam, m = block.ridge(), block.eigenvalue()
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if fit.problem.loss.self_concordance is None:
                radius = (self._kinked_gradient(length) + rounding) / lam
            else:
                energy, penalised = block.energies(step)
                slack = 1e-12 * np.abs(energy) + rounding * length
                spread = np.sqrt(np.maximum(energy - penalised, 0.0) + slack)
                radius = newton_radius(self.reach, length, spread, rounding, lam, m)
            radius = np.fmin(radius, block.largest_pull() / lam + length)  # strong convexity at f itself
        radius = np.where(np.isnan(radius), np.inf, radius)
        return radius * (1 + 1e-10) + 4 * UNIT * float(np.linalg.norm(fit.centre))

    def after_gradient(self, block: LowRank, length: FloatArray, gradient_norm: FloatArray) -> FloatArray:
        """Radius around f + step with known gradient, by strong convexity, or by self-concordance without a ridge."""
        lam, m = block.ridge(), block.eigenvalue()
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            radius = np.where(lam > 0, gradient_norm / lam, np.inf)
            if self.pivot.fit.problem.loss.self_concordance is not None:
                radius = np.fmin(radius, gradient_radius(self.reach, length, gradient_norm, m))
        return radius * (1 + 1e-10) + 4 * UNIT * float(np.linalg.norm(self.pivot.fit.centre))

    def _kinked_gradient(self, length: FloatArray) -> FloatArray:
        """κ·Σ_j s_j‖x_j‖²·(‖δ‖ − kink_j/‖x_j‖)₊ from the sorted kinks."""
        crossed = np.searchsorted(self.kinks, length)
        rounding = 1e-12 * length * self.mass[crossed]
        smoothness = self.pivot.fit.problem.loss.smoothness or np.inf
        return np.asarray(smoothness * (length * self.mass[crossed] - self.moment[crossed] + rounding))

    def newton_rounding(self, block: LowRank, coefficients: FloatArray, length: FloatArray) -> FloatArray:
        """Bound ‖H_i δ_i − b_i‖ as computed: errors of H, of its inverse, of b_i, and other sample weights."""
        pivot, fit = self.pivot, self.pivot.fit
        norms = np.sqrt(np.einsum("ij,ij->i", block.rows.X, block.rows.X))
        share = np.abs(block.rows.weights) * float(np.linalg.norm(fit.problem.relief * fit.centre))
        used = np.linalg.norm(coefficients, axis=1) * norms + share + float(np.linalg.norm(fit.gradient))
        with np.errstate(divide="ignore"):
            amplified = 1 + np.einsum("iab,iba->i", np.abs(block.leverage), np.abs(block.curvature)) / np.maximum(
                1 - np.einsum("iab,iba->i", block.leverage, block.curvature), UNIT
            )
        inverse = (4 * pivot.inverse_error + 64 * UNIT * amplified) * used * amplified + block.slope_error()
        return np.asarray(inverse + (pivot.matrix_error + block.weight_gap()) * length + fit.gradient_error)


def newton_radius(
    reach: float, length: FloatArray, spread: FloatArray, rounding: FloatArray, ridge: FloatArray, m: FloatArray
) -> FloatArray:
    """The two certificates of the module docstring for Newton steps of norm ``length``; ``spread`` is S.

    ``rounding`` bounds ‖H_iδ_i − b_i‖ as computed. Infinite (or NaN) where neither applies.
    """
    r = np.minimum(reach * length, _FAR)
    chi = _chi(r)
    bent = chi * np.exp(r / 2) * spread / (2 * np.sqrt(ridge))
    by_ridge = np.where(reach * bent < 2, (bent + rounding / ridge) / (1 - reach * bent / 2), np.inf)
    return np.asarray(np.fmin(by_ridge, gradient_radius(reach, length, chi * spread * np.sqrt(m) + rounding, m)))


def gradient_radius(reach: float, length: FloatArray, gradient_norm: FloatArray, m: FloatArray) -> FloatArray:
    """−log(1 − q)/(M·R), q = M·R·e^r·‖∇F_i‖/m, at distance ``length`` from where λ_min is m; ‖∇F_i‖/m if M = 0."""
    tilted = np.exp(np.minimum(reach * length, _FAR)) * gradient_norm / m
    if reach == 0:
        return np.where(m > 0, tilted, np.inf)
    q = reach * tilted
    return np.where((q < 1) & (m > 0), -np.log1p(-np.minimum(q, 1)) / reach, np.inf)


def _chi(r: FloatArray) -> FloatArray:
    """(e^r − 1 − r)/r, at least r/2."""
    series = r / 2 * (1 + r / 3 * (1 + r / 4 * (1 + r / 5 * (1 + r / 6))))
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (np.expm1(r) - r) / r
    return np.where(r < 1e-2, series * (1 + 1e-10), exact * (1 + 1e-10))
