"""Correlated noise: matrix mechanisms (DP-FTRL, banded, tree aggregation)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, finite, integer, number
from deniable.mechanisms.core import Mechanism

_LARGEST = 2000  # rows of a strategy whose patterns of participation are searched


@dataclass(frozen=True, eq=False)
class MatrixMechanism(Mechanism):
    """Training with correlated noise: C·G + N(0, σ²) is released, row t of G being the clipped sum of step t.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the independent noise divided by the clipping norm, **before** any scaling by the
        strategy's sensitivity; above 0 and finite.
    strategy
        The matrix C, shape (steps, steps), lower triangular where steps are adaptive (the noise of the gradients is
        C⁻¹ times the independent one). Its sensitivity is computed.
    sensitivity
        Instead of ``strategy``: the largest ‖C·(what one record contributes)‖, for clipping norm 1.
    participations, separation
        Without sampling: a record takes part in at most this many steps, any two at least ``separation`` apart.
    sample_rate
        Below 1: cyclic Poisson sampling. Records are split into b groups **independently of the data**, where b is the
        number of bands of C; step t samples each record of group t mod b with this probability (expected batch · b /
        records).

    Notes
    -----
    *Without sampling* the release is one Gaussian mechanism whatever was chosen adaptively (Denisov et al. 2022), μ =
    sensitivity/σ. The worlds differ in what one record contributes (``"zero-out"``): the order of steps stays.

    *With cyclic sampling* C must be lower triangular, with C[i, j] = 0 for i ≥ j + b. The steps of one group lie b
    apart, so that columns of its steps have no row in common: a record contributes to ⌈steps/b⌉ disjoint blocks, each
    time with probability ``sample_rate`` and along a vector of at most the column's norm: a Poisson-subsampled
    Gaussian (Choquette-Choo et al. 2023, arXiv:2306.08153), add or remove.

    *Sensitivity.* For steps π and contributions of norm at most 1, ‖Σ_{i∈π} C_i x_iᵀ‖² ≤ Σ_{i,j∈π} |⟨C_i, C_j⟩|. The
    largest such sum over all patterns is bounded by dynamic programming: at most Σ_{i∈π} u_i, u_i the largest
    Σ_{j∈π′} |⟨C_i, C_j⟩| over patterns with i. One participation: the largest column norm, exactly.
    """

    noise_multiplier: float
    strategy: FloatArray | None = None
    sensitivity: float | None = None
    participations: int = 1
    separation: int = 1
    sample_rate: float = 1.0

    def __init__(
        self,
        noise_multiplier: float,
        strategy: ArrayLike | None = None,
        *,
        sensitivity: float | None = None,
        participations: int = 1,
        separation: int = 1,
        sample_rate: float = 1.0,
    ) -> None:
        if (strategy is None) == (sensitivity is None):
            raise InputError("MatrixMechanism needs either strategy or sensitivity")
        sigma = number("noise_multiplier", noise_multiplier, above=0.0, below=math.inf)
        rate = number("sample_rate", sample_rate, above=0.0, at_most=1.0)
        matrix = None if strategy is None else _checked(strategy)
        if sensitivity is not None:
            sensitivity = number("sensitivity", sensitivity, at_least=0.0, below=math.inf)
            if rate < 1:
                raise InputError("sample_rate needs the strategy: how much sampling amplifies depends on its bands")
            if (participations, separation) != (1, 1):
                raise InputError("participations and separation go with strategy; sensitivity already includes them")
        if matrix is not None and rate < 1:
            if (participations, separation) != (1, 1):
                raise InputError(
                    "participations and separation are not used with sample_rate: the sampling groups determine them"
                )
            if bands(matrix) == len(matrix) > 1:
                raise InputError(
                    "strategy must be lower triangular with fewer bands than steps for cyclic sampling (BandMF); "
                    "without sampling leave out sample_rate"
                )
        object.__setattr__(self, "noise_multiplier", sigma)
        object.__setattr__(self, "strategy", matrix)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "participations", integer("participations", participations, at_least=1))
        object.__setattr__(self, "separation", integer("separation", separation, at_least=1))
        object.__setattr__(self, "sample_rate", rate)

    @property
    def adjacency(self) -> str:  # type: ignore[override]
        """Add or remove with cyclic sampling, else what one record contributes."""
        return "add-remove" if self.sample_rate < 1 else "zero-out"


def bands(strategy: FloatArray) -> int:
    """Return the least b with C[i, j] = 0 wherever i ≥ j + b; the size of C if something lies above the diagonal."""
    rows, columns = np.nonzero(strategy)
    if np.any(rows < columns):
        return len(strategy)
    return int(np.max(rows - columns)) + 1


def _checked(strategy: ArrayLike) -> FloatArray:
    matrix = finite("strategy", strategy)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise InputError(f"strategy must be a square matrix, one row per step, got shape {matrix.shape}")
    if len(matrix) > _LARGEST:
        raise InputError(
            f"strategy must have at most {_LARGEST} rows, got {len(matrix)}; compute its sensitivity and give that"
        )
    if not np.any(matrix):
        raise InputError("strategy must not be 0")
    matrix = matrix.copy()
    matrix.flags.writeable = False
    return matrix
