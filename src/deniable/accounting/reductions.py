"""Mechanisms whose curve is that of a simpler one: a theorem gives the pair that dominates them."""

from __future__ import annotations

import math

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.mechanisms import (
    GaussianDP,
    MatrixMechanism,
    Mechanism,
    NoisyGradientDescent,
    SubsampledGaussian,
    WithoutReplacement,
)
from deniable.mechanisms.matrix import bands


def reduced(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism whose pair dominates ``mechanism``'s and which one like it attains, or itself."""
    if isinstance(mechanism, NoisyGradientDescent):
        return GaussianDP(last_iterate_mu(mechanism))
    if isinstance(mechanism, MatrixMechanism):
        return _matrix(mechanism)
    if isinstance(mechanism, WithoutReplacement) and mechanism.batch == mechanism.n_records:
        return GaussianDP(2 * math.sqrt(mechanism.steps) / mechanism.noise_multiplier * (1 + 4 * EPS))
    return mechanism


def last_iterate_mu(descent: NoisyGradientDescent) -> float:
    """Return μ of the last iterate, rounded up (Bok, Su & Altschuler 2024: strongly convex, constant step).

    With g = 1 − c the formula is μ² = (s/σ)²·tanh(−t·log(1 − g)/2)·(2 − g)/g, at most t·(s/σ)².
    """
    eta, m, most = descent.step_size, descent.strong_convexity, descent.smoothness
    gap = min(eta * m, 2 - eta * most)  # 1 − max(|1 − ηm|, |1 − ηM|)
    gap = min(gap, 1.0) - 4 * EPS
    if gap <= 0:
        squared = float(descent.steps)
    else:
        contracted = math.tanh(-descent.steps * math.log1p(-gap) / 2) if gap < 1 else 1.0
        squared = min(contracted * (2 - gap) / gap, float(descent.steps))
    return math.sqrt(squared) / descent.noise_multiplier * (1 + 32 * EPS)


def _matrix(mechanism: MatrixMechanism) -> Mechanism:
    sigma = mechanism.noise_multiplier
    if mechanism.strategy is None:
        assert mechanism.sensitivity is not None
        return GaussianDP(mechanism.sensitivity / sigma * (1 + 2 * EPS))
    if mechanism.sample_rate == 1:
        found = matrix_sensitivity(mechanism.strategy, mechanism.participations, mechanism.separation)
        return GaussianDP(found / sigma * (1 + 2 * EPS))
    largest = matrix_sensitivity(mechanism.strategy)
    steps = -(-mechanism.strategy.shape[1] // bands(mechanism.strategy))
    return SubsampledGaussian(sigma / largest * (1 - 2 * EPS), mechanism.sample_rate, steps)


def matrix_sensitivity(strategy: FloatArray, participations: int = 1, separation: int = 1) -> float:
    """Return an upper bound on ‖Σ_{i∈π} C_i x_iᵀ‖ over patterns π and ‖x_i‖ ≤ 1: see :class:`MatrixMechanism`.

    It is exact for one participation, and where columns with positive inner products have the best pattern in common
    (Toeplitz with falling positive entries).
    """
    rows, steps = len(strategy), len(strategy.T)
    gram = np.abs(strategy.T @ strategy)
    gram += 2 * (rows + 1) * EPS * (np.abs(strategy).T @ np.abs(strategy))  # rounding of the products
    if participations == 1 or separation >= steps:
        return math.sqrt(float(np.max(np.diag(gram)))) * (1 + 4 * EPS)
    if separation == 1 and participations >= steps:
        return math.sqrt(float(gram.sum())) * (1 + 4 * steps * EPS)
    index = np.arange(steps)
    apart = np.abs(index[:, None] - index) >= separation
    others = _best_patterns(np.where(apart, gram, 0.0), participations - 1, separation)
    squared = float(_best_patterns((np.diag(gram) + others)[None, :], participations, separation)[0])
    return math.sqrt(squared) * (1 + 4 * steps * EPS)


def _best_patterns(values: FloatArray, count: int, separation: int) -> FloatArray:
    """The largest sum of at most ``count`` entries of each row, any two at least ``separation`` apart."""
    rows, steps = values.shape
    best = np.zeros((rows, steps + 1))  # from column j on
    for _ in range(min(count, -(-steps // separation))):
        one_more = np.zeros_like(best)
        for j in range(steps - 1, -1, -1):
            one_more[:, j] = np.maximum(one_more[:, j + 1], values[:, j] + best[:, min(j + separation, steps)])
        best = one_more
    return np.asarray(best[:, 0])
