"""Correlated noise: matrix mechanisms (DP-FTRL, banded, tree aggregation)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, finite, integer, number, numbers
from deniable._floats import EPS
from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import Count, Positive, Rate

_LARGEST = 2000  # columns of a strategy whose patterns of participation are searched


def _matrix(name: str, value: ArrayLike | None) -> FloatArray | None:
    if value is None:
        return None
    matrix = finite(name, value)
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"{name} must be a matrix with one column per step, got shape {matrix.shape}")
    if matrix.shape[1] > _LARGEST:
        raise InputError(
            f"{name} must have at most {_LARGEST} columns, got {matrix.shape[1]}; compute its sensitivity and give that"
        )
    if not np.any(matrix):
        raise InputError(f"{name} must not be 0")
    matrix = matrix.copy()
    matrix.flags.writeable = False
    return matrix


def _sensitivity(name: str, value: float | None) -> float | None:
    return None if value is None else number(name, value, at_least=0.0, below=math.inf)


@dataclass(frozen=True, eq=False)
class MatrixMechanism(Mechanism):
    """Training with correlated noise: C·G + N(0, σ²) is released, row t of G being the clipped sum of step t.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the independent noise divided by the clipping norm, **before** any scaling by the
        strategy's sensitivity; above 0 and finite.
    strategy
        The matrix C, shape (rows, steps): one row for each noisy combination of steps that is released. It is square
        and lower triangular for banded and BLT strategies (the noise of the gradients is C⁻¹ times the independent
        one); for tree aggregation it has a row for each node. Its sensitivity is computed.
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
    *Adaptivity.* A row can be released once the last step is over in which it is not 0. What a step computes may
    depend on all rows released before it.

    *Without sampling* the release is one Gaussian mechanism whatever was chosen adaptively, μ = sensitivity/σ, and
    attained. The worlds differ in what one record contributes (``"zero-out"``): the order of steps stays. *Proof.* In
    the order of release, row r moves by Δ_r = Σ_t C[r, t]·x_t, where the contributions x_t, ‖x_t‖ ≤ 1, are fixed by
    rows released earlier. On every path Σ_r ‖Δ_r‖² = ‖Σ_t C_t x_tᵀ‖² ≤ sensitivity². Gaussian mechanisms, chosen
    adaptively, whose μ² add up to at most a fixed budget on every path have the curve of that budget (Koskela,
    Tobaben & Honkela 2022, arXiv:2209.15596). For square lower triangular matrices this is Denisov et al. 2022. ∎

    *With cyclic sampling* b is the width of the widest row: from its first entry that is not 0 to its last one; that
    is the number of bands of a lower triangular matrix. A record contributes to at most ⌈steps/b⌉ disjoint blocks of
    rows, each time with probability ``sample_rate`` and along a vector of at most the column's norm: a Poisson-
    subsampled Gaussian (Choquette-Choo et al. 2023, arXiv:2306.08153), add or remove. *Proof.* The steps of one group
    lie b apart, so that no row contains two of them, and each row that contains step j can be released before step
    j + b. Given all rows before step j, those of its block are, in both worlds and whatever other records do, a
    bijection of N(0, σ²) or of the mixture (1 − q)·N(0, σ²) + q·N(C_j x_jᵀ, σ²), where ‖x_j‖ ≤ 1 is fixed before the
    block: row r minus its part by others, which rows released earlier determine. So the blocks are an adaptive
    composition of sampled Gaussians with μ ≤ max_j ‖C_j‖/σ. Releasing a row later only tells the steps less. ∎

    *Sensitivity.* For steps π and contributions of norm at most 1, ‖Σ_{i∈π} C_i x_iᵀ‖² ≤ Σ_{i,j∈π} |⟨C_i, C_j⟩|: the
    Gram matrix CᵀC is all that matters. The largest such sum over all patterns is bounded by dynamic programming: at
    most Σ_{i∈π} u_i, u_i the largest Σ_{j∈π′} |⟨C_i, C_j⟩| over patterns with i. One participation: the largest column
    norm, exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> strategy = np.tril(np.ones((4, 4)))
    >>> round(dn.tradeoff(dn.MatrixMechanism(10.0, strategy)).advantage(), 4)
    0.0797
    >>> last = dn.NoisyGradientDescent(5.0, steps=1000, strong_convexity=0.5, smoothness=1.0, step_size=0.5)
    >>> round(dn.tradeoff(last).advantage(), 4)
    0.2087
    """

    noise_multiplier: Positive
    strategy: Annotated[FloatArray | None, _matrix] = field(default=None, compare=False)  # by its entries, below
    sensitivity: Annotated[float | None, _sensitivity] = field(default=None, kw_only=True)
    participations: Count = field(default=1, kw_only=True)
    separation: Count = field(default=1, kw_only=True)
    sample_rate: Rate = field(default=1.0, kw_only=True)

    def _check_together(self) -> None:
        if (self.strategy is None) == (self.sensitivity is None):
            raise InputError("MatrixMechanism needs either strategy or sensitivity")
        sampled, limited = self.sample_rate < 1, (self.participations, self.separation) != (1, 1)
        if self.strategy is None and sampled:
            raise InputError("sample_rate needs the strategy: how much sampling amplifies depends on its bands")
        if self.strategy is None and limited:
            raise InputError("participations and separation go with strategy; sensitivity already includes them")
        if sampled and limited:
            raise InputError(
                "participations and separation are not used with sample_rate: the sampling groups determine them"
            )
        if self.strategy is not None and sampled and bands(self.strategy) == self.strategy.shape[1] > 1:
            raise InputError(
                "strategy must have fewer bands than steps for cyclic sampling (BandMF), but one of its rows "
                "reaches from the first step to the last one; without sampling leave out sample_rate"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixMechanism) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        """Class and fields; of the strategy its entries."""
        strategy = None if self.strategy is None else (self.strategy.shape, self.strategy.tobytes())
        return type(self), strategy, *(getattr(self, one.name) for one in fields(self) if one.name != "strategy")

    @property
    def adjacency(self) -> str:  # type: ignore[override]
        """Add or remove with cyclic sampling, else what one record contributes."""
        return "add-remove" if self.sample_rate < 1 else "zero-out"


def bands(strategy: FloatArray) -> int:
    """Return the number of steps from the first entry of a row that is not 0 to the last one, in the widest row."""
    used = strategy[np.any(strategy != 0, axis=1)] != 0
    first, last = np.argmax(used, axis=1), used.shape[1] - 1 - np.argmax(used[:, ::-1], axis=1)
    return int(np.max(last - first)) + 1


def toeplitz_sensitivity(coefficients: ArrayLike, participations: int = 1, separation: int = 1) -> float:
    """Return the sensitivity of a lower triangular Toeplitz strategy of any length, rounded up.

    For DP-λCGD, BISR, BLT and square roots, of as many steps as there are coefficients: pass the result to
    :class:`MatrixMechanism` as ``sensitivity``. It is attained.

    Parameters
    ----------
    coefficients
        First column of the strategy C, at least 0 and never rising: λ^t for DP-λCGD, (1, Σ ω_i θ_i^{t−1}) for BLT, the
        inverse of the band for BISR.
    participations, separation
        A record takes part in at most so many steps, any two at least ``separation`` apart.

    Returns
    -------
    float
        The largest ‖Σ_{i∈π} C_i x_iᵀ‖ over patterns π and contributions of norm at most 1.

    Raises
    ------
    InputError
        If a coefficient is negative or larger than the one before: the pattern below need not be the worst then.

    Notes
    -----
    *Theorem.* The worst pattern starts at the first step and goes on every ``separation`` steps, with equal
    contributions (Kalinin & Lampert 2024, arXiv:2405.13763). *Proof.* Entries are at least 0, so are inner products of
    columns, and equal contributions are the worst. For i ≤ j, ⟨C_i, C_j⟩ = Σ_{s<n−j} c_s·c_{s+j−i} falls in j − i, as
    coefficients do, and in j, as there are fewer terms. The r-th step of any pattern is at least r·separation, and two
    of its steps are at least as far apart as those of this pattern: no inner product is larger, and steps that are
    added make none smaller. ∎

    Examples
    --------
    >>> import deniable as dn
    >>> decay = 0.9 ** np.arange(100_000)
    >>> sensitivity = dn.mechanisms.toeplitz_sensitivity(decay, participations=10, separation=10_000)
    >>> round(sensitivity, 4), dn.MatrixMechanism(8.0, sensitivity=sensitivity).adjacency
    (7.2548, 'zero-out')
    """
    c = numbers("coefficients", coefficients, at_least=0.0, below=math.inf)
    count, apart = integer("participations", participations, at_least=1), integer("separation", separation, at_least=1)
    if c.ndim != 1 or c.size == 0 or np.any(np.diff(c) > 0):
        raise InputError(
            "coefficients must be a list that never rises, as only then is its sensitivity known at any length; give "
            "MatrixMechanism the strategy itself"
        )
    total, pattern = np.zeros_like(c), range(0, min(count * apart, c.size), apart)
    for start in pattern:
        total[start:] += c[: c.size - start]
    return math.hypot(*total) * (1 + (len(pattern) + 4) * EPS)
