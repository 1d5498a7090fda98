"""The objective of softmax regression, for one training set or for many swaps at once (:mod:`deniable.noise.softmax`).

Everything is a function of U, flattened, with one row less than there are classes; Θ = QU for the ``basis`` Q.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray, Indices
from deniable._floats import EPS
from deniable.noise.newton import CLOSE, TrainingObjective
from deniable.noise.newton_swaps import NewtonStep, SwapBatch, grams


def chances(margin: FloatArray, basis: FloatArray) -> FloatArray:
    """Return the probabilities of the classes, (..., classes), from the linear predictors of U."""
    score = margin @ basis.T
    chance = np.exp(score - score.max(axis=-1, keepdims=True))
    return np.asarray(chance / chance.sum(axis=-1, keepdims=True))


def roots(chance: FloatArray, basis: FloatArray) -> FloatArray:
    """Return R with RRᵀ = Qᵀ(diag(p) − ppᵀ)Q: diag(√p)(I − √p√pᵀ) is a root of diag(p) − ppᵀ."""
    half = np.sqrt(chance)[..., None]
    return np.asarray(basis.T @ (half * (np.eye(len(basis)) - half * np.swapaxes(half, -1, -2))))


def contrasts(forms: FloatArray, basis: FloatArray) -> FloatArray:
    """Return the largest (e_k − e_l)ᵀQGQᵀ(e_k − e_l) of each of the quadratic forms G, (...)."""
    of_classes = basis @ forms @ basis.T
    own = np.einsum("...kk->...k", of_classes)
    return np.asarray((own[..., :, None] + own[..., None, :] - 2 * of_classes).max(axis=(-1, -2)))


def _margin_errors(X: FloatArray, U: FloatArray, basis: FloatArray) -> FloatArray:
    """Bound the error of every θ_kᵀx, (records, 1)."""
    size = np.abs(X) @ np.abs(U).T @ np.abs(basis).T
    return np.asarray((X.shape[1] + len(basis) + 4) * EPS * size.max(axis=1, keepdims=True))


def _slope_errors(
    chance: FloatArray, residual: FloatArray, margin: FloatArray, terms: int, basis: FloatArray
) -> FloatArray:
    """Bound what each record's p − e_y may add to the error of a sum over ``terms`` records.

    An error of at most e in each θ_kᵀx changes p_k by a factor within e^{±2e}; ``exp`` and the sum over K classes are
    within K + 8 units; sums of n terms err by less than (n + 1)·(eps/2)·Σ|terms|.
    """
    K = len(basis)
    relative = 2 * margin * (1 + CLOSE) + (K + 8) * EPS
    each = chance * relative + ((terms / 2 + K + 8) * EPS) * np.abs(residual) + EPS
    return np.asarray(each @ np.abs(basis))


@dataclass(frozen=True, eq=False)
class SoftmaxRows(TrainingObjective):
    """The objective of the rows of (X, y)."""

    X: FloatArray
    y: Indices
    basis: FloatArray
    penalty: FloatArray

    @property
    def quadratic(self) -> bool:
        """False."""
        return False

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian."""
        chance, residual = self._residuals(theta)
        root = roots(chance, self.basis)
        gradient = ((residual @ self.basis).T @ self.X).ravel() + self.penalty * theta
        return gradient, self._summed(self.X, root @ np.swapaxes(root, 1, 2)) + np.diag(self.penalty)

    def rounding(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bound the errors of both sums."""
        X, Q, K, n = np.abs(self.X), np.abs(self.basis), len(self.basis), len(self.X)
        chance, residual = self._residuals(theta)
        margin = _margin_errors(X, theta.reshape(-1, X.shape[1]), self.basis)
        slope = _slope_errors(chance, residual, margin, n, self.basis)
        gradient = (slope.T @ X).ravel() + 4 * EPS * self.penalty * np.abs(theta)
        product = chance[:, :, None] * chance[:, None, :] + np.eye(K) * chance[:, None, :]
        relative = 4 * margin * (1 + CLOSE) + (n / 2 + 4 * K + 32) * EPS
        return gradient, self._summed(X, (Q.T @ product @ Q) * relative[..., None])

    def reach(self, inverse: FloatArray) -> float:
        """Return max ‖(e_k − e_l) ⊗ xⱼ‖ in the inverse Hessian."""
        return float(np.sqrt(contrasts(quadratic_forms(self.X, inverse, self.basis), self.basis).max()))

    def change(self, step: FloatArray) -> float:
        """Return the largest range over the classes."""
        return float(np.ptp(self.X @ step.reshape(-1, self.X.shape[1]).T @ self.basis.T, axis=1).max())

    def _residuals(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        chance = chances(self.X @ theta.reshape(-1, self.X.shape[1]).T, self.basis)
        return chance, chance - np.eye(len(self.basis))[self.y]

    def _summed(self, X: FloatArray, weight: FloatArray) -> FloatArray:
        """Σ Wᵢ ⊗ xᵢxᵢᵀ, (parameters, parameters)."""
        return _by_blocks(weight.shape[1], X.shape[1], lambda k, m: X.T @ (weight[:, k, m, None] * X))


@dataclass(frozen=True, eq=False)
class SwappedSoftmax(SwapBatch):
    """The objective after each swap: without row ``leaving`` of (X, y) and with a newcomer."""

    X: FloatArray
    y: Indices
    basis: FloatArray
    penalty: FloatArray
    newcomers: tuple[FloatArray, Indices]
    leaving: Indices
    outer: FloatArray | None

    @property
    def quadratic(self) -> bool:
        """False."""
        return False

    def step(self, some: Indices, theta: FloatArray) -> NewtonStep:
        """Return one Newton step of each of these swaps."""
        (n, d), (K, free), swaps = self.X.shape, self.basis.shape, np.arange(len(some))
        U, leaving = theta.reshape(len(some), free, d), self.leaving[some]
        entering, label = self.newcomers[0][some], self.newcomers[1][some]
        chance = chances(self.X @ np.swapaxes(U, 1, 2), self.basis)  # (swaps, records, classes)
        residual = chance - np.eye(K)[self.y]
        root = roots(chance, self.basis)
        root[swaps, leaving], residual[swaps, leaving] = 0.0, 0.0
        weight = root @ np.swapaxes(root, -1, -2)
        own_chance = chances(np.einsum("md,mkd->mk", entering, U), self.basis)
        own_residual = own_chance - np.eye(K)[label]
        own_root = roots(own_chance, self.basis)
        own_weight = own_root @ np.swapaxes(own_root, -1, -2)
        product = entering[:, :, None] * entering[:, None, :]
        gradient = np.swapaxes(residual @ self.basis, 1, 2) @ self.X
        gradient += (own_residual @ self.basis)[..., None] * entering[:, None, :]
        hessian = _by_blocks(
            free,
            d,
            lambda k, m: grams(self.X, weight[..., k, m].T, self.outer) + own_weight[:, k, m, None, None] * product,
        )
        largest = np.abs(U).max(axis=0)  # one bound for all of these swaps
        slope = _slope_errors(chance, residual, _margin_errors(self.X, largest, self.basis), n, self.basis)
        own = _slope_errors(own_chance, own_residual, _margin_errors(entering, largest, self.basis), n, self.basis)
        error = np.swapaxes(slope, 1, 2) @ np.abs(self.X) + own[..., None] * np.abs(entering)[:, None, :]
        return NewtonStep.of(
            gradient.reshape(theta.shape) + self.penalty * theta,
            hessian + np.diag(self.penalty),
            error.reshape(theta.shape) + 4 * EPS * self.penalty * np.abs(theta),
        )

    def change(self, some: Indices, step: FloatArray) -> FloatArray:
        """Return the largest range over the classes."""
        U = step.reshape(len(some), self.basis.shape[1], -1)
        rows = np.ptp(self.X @ np.swapaxes(U, 1, 2) @ self.basis.T, axis=2).max(axis=1)
        own = np.ptp(np.einsum("md,mkd->mk", self.newcomers[0][some], U) @ self.basis.T, axis=1)
        return np.asarray(np.maximum(rows, own))

    def reach(self, inverse: FloatArray) -> FloatArray:
        """Return max ‖(e_k − e_l) ⊗ xⱼ‖ in each inverse Hessian."""
        largest = np.empty(len(inverse))
        for swap, (one, entering) in enumerate(zip(inverse, self.newcomers[0], strict=True)):
            rows = np.vstack([self.X, entering])
            largest[swap] = contrasts(quadratic_forms(rows, one, self.basis), self.basis).max()
        return np.sqrt(np.maximum(largest, 0.0))


def _by_blocks(free: int, d: int, block: Callable[[int, int], FloatArray]) -> FloatArray:
    """Assemble a symmetric matrix (..., free·d, free·d) from its blocks (..., d, d), each symmetric."""
    first = block(0, 0)
    total = np.empty((*first.shape[:-2], free, d, free, d))
    for k in range(free):
        for m in range(k + 1):
            total[..., k, :, m, :] = total[..., m, :, k, :] = block(k, m)
    return total.reshape(*first.shape[:-2], free * d, free * d)


def quadratic_forms(X: FloatArray, inverse: FloatArray, basis: FloatArray) -> FloatArray:
    """Return (I ⊗ xⱼ)ᵀH⁻¹(I ⊗ xⱼ) for every row xⱼ, (records, classes − 1, classes − 1)."""
    free, d = basis.shape[1], X.shape[1]
    blocks, forms = inverse.reshape(free, d, free, d), np.empty((len(X), free, free))
    for k in range(free):
        for m in range(free):
            forms[:, k, m] = np.einsum("nd,nd->n", X @ blocks[k, :, m, :], X)
    return forms
