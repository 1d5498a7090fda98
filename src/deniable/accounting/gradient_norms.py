"""The norms of gradients, as an array or as recorded during a run, and what a record's own say of each mechanism.

**Other noise** (Laplace, discrete, bounded range): a composition of the record's own steps, exact but for the rounding
of norms. With r what it adds, in units of the largest contribution:

- Laplace noise: a record that moves the number by r·sensitivity has the law of that sensitivity (for vectors, of that
  L1 sensitivity: the proof is in :class:`deniable.Laplace`).
- discrete noise: a move by a whole number of at most r·sensitivity, which is dominated by the largest such number: the
  laws are log-concave, so that tests are thresholds, and what lies above one grows with the shift; sampling is
  monotone in the curve.
- bounded range: scores that move by at most r·Δ in place of Δ give a log-ratio whose range is r·ε, as it is
  κ·(u − u′) and a constant, κ the coefficient of the scores.

**Other samplers**: the largest of its norms counts for all steps. With r the largest of a record's clipped norms, in
units of the clipping norm, and σ the noise in the same units:

- random allocation: a batch is made from the pair's outcome x by r_i·u·x + N(0, σ²(1 − r_i²)) for every r_i ≤ 1
  (:mod:`deniable.accounting.steps.allocation`), hence also in units of r: the run with noise σ/r dominates.
- shuffled batches, one contribution zeroed: who is told the permutations sees shifts of at most r: noise σ/r.
- matrix mechanisms: the sensitivity is proportional to the norm of the contributions: noise σ/r. Without sampling every
  norm counts by itself: see :func:`deniable.accounting.reductions.own_matrix_mu`.
- without replacement, one record replaced: a sum moves by its own r and the other content's norm, at most 1: in
  place of 2, (1 + r), noise 2σ/(1 + r).
- truncated Poisson: the sum moves by r, or by r and the norm of the record that it displaces: shifts r and 1 + r in
  place of 1 and 2 (:func:`deniable.accounting.steps.gaussian_mixture.truncated_poisson`).

Norms that differ between steps have no known law for these samplers, but a step of a smaller norm post-processes that
of a larger one, so that the largest is sound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, as_float64, integer, numbers, refuse_sparse
from deniable._floats import EPS
from deniable.accounting.dispatch import tradeoff
from deniable.accounting.sizes import DIGITS
from deniable.accounting.steps.base import Repeated
from deniable.accounting.steps.gaussian_mixture import truncated_poisson
from deniable.curves import Tradeoff
from deniable.mechanisms import (
    BoundedRange,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianDP,
    Laplace,
    MatrixMechanism,
    Mechanism,
    RandomAllocation,
    ShuffledBatches,
    SubsampledGaussian,
    TruncatedPoisson,
    WithoutReplacement,
)

THRESHOLDS = 129  # thresholds ε of a record's curve, symmetric about 0
NEGLECTED = 1e-12  # δ at the last threshold, and what is aimed at for the neglected part of an integral
_MOST_CURVES = 16  # of other noise and other samplers; norms are rounded up to half as many levels
Shares = list[tuple[NDArray[np.intp], FloatArray]]  # of every step: records, and r/C of each


class NormRecorder:
    """Collects gradient norms while training runs, without keeping a (records × steps) array.

    Call :meth:`add` for the records whose norms are known in the current step, as often as needed, then
    :meth:`end_step`. A record that was not added in a step is taken to have had the clipping norm in it. That is
    the only sound choice: the attacker's advantage in a step comes from the chance that the record took part, with the
    gradient that it would have had, and a record left out of the batch did not show that gradient.

    Examples
    --------
    >>> import deniable as dn
    >>> recorder = dn.accounting.NormRecorder(100)
    >>> recorder.add([0, 7], [0.5, 2.0])                              # of the records in the batch
    >>> recorder.end_step()
    """

    def __init__(self, records: int) -> None:
        self.records = integer("records", records, at_least=1)
        self._steps: list[list[tuple[NDArray[np.intp], FloatArray]]] = [[]]

    def __len__(self) -> int:
        """Return the number of finished steps."""
        return len(self._steps) - 1

    def add(self, indices: ArrayLike, norms: ArrayLike) -> None:
        """Note the gradient norms (before or after clipping) of some records in the current step."""
        where = np.atleast_1d(np.asarray(indices))
        values = np.atleast_1d(numbers("norms", norms, at_least=0.0))
        if where.shape != values.shape or where.ndim != 1:
            raise InputError(f"indices and norms must have equal length, got shapes {where.shape} and {values.shape}")
        if where.size and not np.issubdtype(where.dtype, np.integer):
            raise InputError(f"indices must be whole numbers, got {where.dtype}")
        where = where.astype(np.intp)
        if where.size and not (where.min() >= 0 and where.max() < self.records):
            raise InputError(f"indices must be in 0..{self.records - 1}, got {where.min()}..{where.max()}")
        seen = np.concatenate([known for known, _ in self._steps[-1]] + [where])
        if np.unique(seen).size != seen.size:
            raise InputError(
                "indices must name each record at most once per step; a record that is drawn twice counts twice"
            )
        self._steps[-1].append((where, values))

    def end_step(self) -> None:
        """Close the current step."""
        self._steps.append([])

    def steps(self) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
        """Yield (indices, norms) of every finished step."""
        for parts in self._steps[:-1]:
            yield (
                np.concatenate([where for where, _ in parts] or [np.empty(0, dtype=np.intp)]),
                np.concatenate([values for _, values in parts] or [np.empty(0)]),
            )


def norm_array(gradient_norms: ArrayLike) -> FloatArray:
    """Return norms of shape (records, steps) as an array, or raise ``InputError``; NaN is an unknown norm."""
    try:
        refuse_sparse("gradient_norms", gradient_norms)
        array = as_float64(gradient_norms)  # NaN, also for a masked cell, is an unknown norm
    except InputError:
        raise
    except (TypeError, ValueError):
        raise InputError(f"gradient_norms must be an array of numbers, got {type(gradient_norms).__name__}") from None
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"gradient_norms must have shape (records, steps), got {array.shape}")
    if np.any(array < 0):
        raise InputError(f"gradient_norms must be at least 0, got {float(array[array < 0][0]):g}")
    return array


def shares(norms: FloatArray, clip: float) -> FloatArray:
    """r/C of the clipped gradients, 1 where unknown; what is not 0 is at least a millionth."""
    clipped = np.minimum(np.where(np.isnan(norms), clip, norms), clip)
    return np.where(clipped > 0, np.maximum(clipped / clip, 1e-6), 0.0)


def share_levels(shares: Shares, levels: int) -> FloatArray:
    """0, the levels to which shares are rounded up, and 1: the shares themselves if there are few of them."""
    known: FloatArray = np.array([0.0, 1.0])
    for _, share in shares:
        known = np.union1d(known, share)
        if known.size > levels + 1:
            return np.arange(levels + 1) / levels
    return known


def length(run: Any) -> int | None:
    """Number of steps, None if it is not known."""
    if isinstance(run, RandomAllocation | ShuffledBatches):
        return run.batches * run.epochs
    if isinstance(run, MatrixMechanism):
        return None if run.strategy is None else run.strategy.shape[1]
    return int(run.steps)


def _quieter(run: Any, share: float, count: int) -> Any:
    return replace(run, noise_multiplier=run.noise_multiplier / share * (1 - 4 * EPS))


def _matrix(run: MatrixMechanism, share: float, count: int) -> Mechanism:
    return MatrixMechanism(
        run.noise_multiplier / share * (1 - 4 * EPS),
        run.strategy,
        participations=run.participations,
        separation=run.separation,
        sensitivity=run.sensitivity,
        sample_rate=run.sample_rate,
    )


def _whole(run: Any, share: float, count: int) -> Any:
    moved = min(math.floor(run.sensitivity * share * (1 + 8 * EPS)), run.sensitivity)
    return replace(run, sensitivity=moved, steps=count) if moved else GaussianDP(0.0)


# what ``count`` steps (of a sampler: the run) are for a record whose share of the largest contribution is above 0
WEAKER: dict[type[Mechanism], Callable[[Any, float, int], Mechanism]] = {
    SubsampledGaussian: lambda run, share, count: replace(_quieter(run, share, count), steps=count),
    Laplace: lambda run, share, count: replace(
        run, sensitivity=min(run.sensitivity * share * (1 + 4 * EPS), run.sensitivity), steps=count
    ),
    DiscreteLaplace: _whole,
    DiscreteGaussian: _whole,
    BoundedRange: lambda run, share, count: BoundedRange(min(run.epsilon * share * (1 + 4 * EPS), run.epsilon), count),
    RandomAllocation: _quieter,
    ShuffledBatches: _quieter,
    MatrixMechanism: _matrix,
    TruncatedPoisson: lambda run, share, count: Repeated(truncated_poisson(run, max(share, 1e-6)), run.steps),
    WithoutReplacement: lambda run, share, count: replace(
        run, noise_multiplier=run.noise_multiplier * 2 / (1 + share) * (1 - 4 * EPS)
    ),
}
# of these the largest norm counts for all steps; in the last two others' records move with the record's own
SAMPLERS = (RandomAllocation, ShuffledBatches, MatrixMechanism, TruncatedPoisson, WithoutReplacement)
_MOVE_OTHERS = (TruncatedPoisson, WithoutReplacement)


def few_curves(
    shares: Shares, records: int, parts: list[Mechanism], levels: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log γ and both hockey sticks of every record, shape (records, points): those of a few runs of weaker steps."""
    most, ends = min(levels, _MOST_CURVES // 2), np.cumsum([length(part) or len(shares) for part in parts]).tolist()
    runs = [(shares[start:end], part) for start, end, part in zip([0, *ends], ends, parts, strict=False)]
    for largest, count in ((False, most), (True, most), (True, 4), (True, 2), (True, 1)):
        met = [_met(some, records, part, min(count, most), largest) for some, part in runs]
        rows, level = np.unique(np.hstack([counts for _, counts in met]), axis=0, return_inverse=True)
        if len(rows) <= _MOST_CURVES:
            break
    else:  # every record counts as the largest
        rows, level = rows[:1], np.zeros(records, dtype=np.intp)
        rows[:] = np.hstack([np.eye(grid.size)[-1] * counts[0].sum() for grid, counts in met])
    tables = np.array([_table(tradeoff(_weaker(row, met, parts)).sketch()) for row in rows])
    log_gamma, remove, add = tables[level.reshape(-1)].transpose(1, 0, 2)
    return log_gamma, remove, add


def _met(
    shares: Shares, records: int, part: Mechanism, levels: int, largest: bool
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Levels of r, and how many steps each record has at each of them; with ``largest``, all at its largest one."""
    grid = share_levels(shares, levels)
    counts = np.zeros((records, grid.size), dtype=np.intp)
    for where, share in shares:
        counts[where, np.searchsorted(grid, share)] += 1
    counts[:, -1] += len(shares) - counts.sum(axis=1)  # a norm that is not known may have been the clip
    if largest or type(part) in SAMPLERS:
        top = grid.size - 1 - np.argmax(counts[:, ::-1] > 0, axis=1)
        counts[:] = 0
        counts[np.arange(records), top] = len(shares)
    return grid, counts


def _weaker(row: NDArray[np.intp], met: list[tuple[FloatArray, NDArray[np.intp]]], parts: list[Mechanism]) -> Mechanism:
    """What a record with these numbers of steps at each level met."""
    found: list[Mechanism] = []
    start = 0
    for (grid, _), part in zip(met, parts, strict=True):
        for share, count in zip(grid, row[start : start + grid.size], strict=True):
            if count and (share > 0 or isinstance(part, _MOVE_OTHERS)):
                found.append(WEAKER[type(part)](part, float(share), int(count)))
        start += grid.size
    return Composition(found) if found else GaussianDP(0.0)


def _table(curve: Tradeoff) -> FloatArray:
    log_gamma = np.linspace(-1.0, 1.0, THRESHOLDS) * (min(float(curve.epsilon(NEGLECTED)), DIGITS) or 1.0)
    both = [np.asarray(curve.hockey_stick(np.exp(log_gamma), direction)) for direction in ("remove", "add")]
    return np.array([log_gamma, *both])
