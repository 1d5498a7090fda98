"""A record's own curve from the sizes of its contributions, for every mechanism that adds noise to them.

*Steps on their own* (Poisson-sampled Gaussians, Laplace and discrete noise, mechanisms of bounded range): a composition
of its own steps, exact but for the rounding of norms. With r what it adds, in units of the largest contribution:

- Laplace noise: a record that moves the number by r·sensitivity has the law of that sensitivity (for vectors, of that
  L1 sensitivity: the proof is in :class:`deniable.Laplace`).
- discrete noise: a move by a whole number of at most r·sensitivity, which is dominated by the largest such number: the
  laws are log-concave, so that tests are thresholds, and what lies above one grows with the shift; sampling is
  monotone in the curve.
- bounded range: scores that move by at most r·Δ in place of Δ give a log-ratio whose range is r·ε, as it is
  κ·(u − u′) and a constant, κ the coefficient of the scores.

*Other samplers*: the largest of its norms counts for all steps.

With r the largest of a record's clipped norms, in units of the clipping norm, and σ the noise in the same units:

- random allocation: a batch is made from the pair's outcome x by r_i·u·x + N(0, σ²(1 − r_i²)) for every r_i ≤ 1
  (:mod:`deniable.accounting.steps.allocation`), hence also in units of r: the run with noise σ/r dominates.
- shuffled batches, one contribution zeroed: who is told the permutations sees shifts of at most r: noise σ/r.
- matrix mechanisms: the sensitivity is proportional to the norm of the contributions: noise σ/r.
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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.dispatch import tradeoff
from deniable.accounting.gradient_norms import Shares, share_levels
from deniable.accounting.reductions import matrix_sensitivity
from deniable.accounting.steps.base import Repeated
from deniable.accounting.steps.gaussian_mixture import truncated_poisson
from deniable.curves import Assumptions, Tradeoff
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

_POINTS = 33  # thresholds ε, symmetric about 0
_MOST = 8  # levels to which norms are rounded up
_MOST_CURVES = 16
_MOST_MEANS = 128  # of Gaussian curves
_RARE = 1e-9  # δ at the last threshold
_LEAST_REACH, _MOST_REACH = 1e-6, 60.0


@dataclass(frozen=True)
class _Sampler:
    """How many steps a run has, if known, and what dominates it for norms of at most a share of the clip."""

    steps: Callable[[Any], int | None]
    weaker: Callable[[Any, float], Mechanism]


def _quieter(run: Any, share: float) -> Mechanism:
    if share == 0:
        return GaussianDP(0.0)
    weaker: Mechanism = replace(run, noise_multiplier=run.noise_multiplier / share * (1 - 4 * EPS))
    return weaker


def _matrix(run: MatrixMechanism, share: float) -> Mechanism:
    if share == 0:
        return GaussianDP(0.0)
    return MatrixMechanism(
        run.noise_multiplier / share * (1 - 4 * EPS),
        run.strategy,
        participations=run.participations,
        separation=run.separation,
        sensitivity=run.sensitivity,
        sample_rate=run.sample_rate,
    )


def _truncated(run: Any, share: float) -> Mechanism:
    return Repeated(truncated_poisson(run, max(share, 1e-6)), run.steps)


def _replaced(run: WithoutReplacement, share: float) -> Mechanism:
    weaker: Mechanism = replace(run, noise_multiplier=run.noise_multiplier * 2 / (1 + share) * (1 - 4 * EPS))
    return weaker


SAMPLERS: dict[type[Mechanism], _Sampler] = {
    RandomAllocation: _Sampler(lambda run: run.batches * run.epochs, _quieter),
    ShuffledBatches: _Sampler(lambda run: run.batches * run.epochs, _quieter),
    MatrixMechanism: _Sampler(lambda run: None if run.strategy is None else run.strategy.shape[1], _matrix),
    TruncatedPoisson: _Sampler(lambda run: run.steps, _truncated),
    WithoutReplacement: _Sampler(lambda run: run.steps, _replaced),
}


def _whole(run: Any, share: float, count: int) -> Mechanism | None:
    moved = min(math.floor(run.sensitivity * share * (1 + 8 * EPS)), run.sensitivity)
    weaker: Mechanism | None = replace(run, sensitivity=moved, steps=count) if moved else None
    return weaker


# what ``count`` steps of a part are for a record whose share of the largest contribution is above 0
LAWS: dict[type[Mechanism], Callable[[Any, float, int], Mechanism | None]] = {
    SubsampledGaussian: lambda run, share, count: replace(
        run, noise_multiplier=run.noise_multiplier / share * (1 - 4 * EPS), steps=count
    ),
    Laplace: lambda run, share, count: replace(
        run, sensitivity=min(run.sensitivity * share * (1 + 4 * EPS), run.sensitivity), steps=count
    ),
    DiscreteLaplace: _whole,
    DiscreteGaussian: _whole,
    BoundedRange: lambda run, share, count: BoundedRange(min(run.epsilon * share * (1 + 4 * EPS), run.epsilon), count),
}
# number of steps of every mechanism that is served, None if it is not known
PARTS: dict[type[Mechanism], Callable[[Any], int | None]] = {
    **{kind: sampler.steps for kind, sampler in SAMPLERS.items()},
    **dict.fromkeys(LAWS, lambda run: int(run.steps)),
}


def of_parts(shares: Shares, records: int, parts: list[Mechanism], levels: int) -> tuple[FloatArray, Assumptions]:
    """Return log γ and both hockey sticks of every record, shape (3, records, points), and what the curves assume."""
    assumed = tradeoff(Composition(parts)).assumptions
    run = parts[0]
    if len(parts) == 1 and isinstance(run, MatrixMechanism) and run.strategy is not None and run.sample_rate == 1:
        return _of_means(own_matrix_mu(shares, records, run)), assumed
    most = min(levels, _MOST)
    for largest, count in ((False, most), (True, most), (True, 4), (True, 2), (True, 1)):
        met = [_met(some, records, part, min(count, most), largest) for some, part in _each(shares, parts)]
        rows, level = np.unique(np.hstack([counts for _, counts in met]), axis=0, return_inverse=True)
        if len(rows) <= _MOST_CURVES:
            break
    else:  # every record counts as the largest
        rows, level = rows[:1], np.zeros(records, dtype=np.intp)
        rows[:] = np.hstack([np.eye(grid.size)[-1] * counts[0].sum() for grid, counts in met])
    tables = np.array([_table(tradeoff(_weaker(row, met, parts)).sketch()) for row in rows])
    return tables[level.reshape(-1)].transpose(1, 0, 2), assumed


def _each(shares: Shares, parts: list[Mechanism]) -> Iterator[tuple[Shares, Mechanism]]:
    """The steps of each part."""
    start = 0
    for part in parts:
        length = PARTS[type(part)](part)
        end = len(shares) if length is None else start + length
        yield shares[start:end], part
        start = end


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
            if count and type(part) in SAMPLERS:
                found.append(SAMPLERS[type(part)].weaker(part, float(share)))
            elif count and share > 0:
                own = LAWS[type(part)](part, float(share), int(count))
                found += [] if own is None else [own]
        start += grid.size
    return Composition(found) if found else GaussianDP(0.0)


def own_matrix_mu(shares: Shares, records: int, run: MatrixMechanism) -> FloatArray:
    """Return μ of every record without sampling, rounded up: √(Σ_{s,t} r_s·r_t·|⟨C_s, C_t⟩|)/σ at most.

    The contributions x_t of the record, ‖x_t‖ ≤ r_t, move the release by ‖Σ_t C_t x_tᵀ‖, whose square is at most that
    sum; nor is it more than the largest r times the sensitivity.
    """
    assert run.strategy is not None
    rows, steps = len(run.strategy), len(run.strategy.T)
    own = np.ones((records, steps))
    for column, (where, share) in enumerate(shares):
        own[where, column] = share
    gram = np.abs(run.strategy.T @ run.strategy)
    gram += 2 * (rows + 1) * EPS * (np.abs(run.strategy).T @ np.abs(run.strategy))
    squared = np.einsum("rs,rs->r", own @ gram, own) * (1 + 4 * (steps + 4) * EPS)
    most = matrix_sensitivity(run.strategy, run.participations, run.separation)
    moved = np.minimum(np.sqrt(squared), own.max(axis=1) * most) * (1 + 4 * EPS)
    return np.asarray(moved / run.noise_multiplier * (1 + 2 * EPS))


def _of_means(mu: FloatArray) -> FloatArray:
    """Tables of Gaussian curves, μ rounded up to one of some levels."""
    known, level = np.unique(mu, return_inverse=True)
    if known.size > _MOST_MEANS:
        grid = np.linspace(0.0, float(mu.max()), _MOST_MEANS)
        level = np.searchsorted(grid, mu)
        known, level = np.unique(np.append(grid, mu.max())[level], return_inverse=True)
    tables = np.array([_table(tradeoff(GaussianDP(float(one)))) for one in known])
    return np.asarray(tables[level].transpose(1, 0, 2))


def _table(curve: Tradeoff) -> FloatArray:
    reach = float(np.clip(curve.epsilon(_RARE), _LEAST_REACH, _MOST_REACH))
    log_gamma = np.linspace(-reach, reach, _POINTS)
    both = [np.asarray(curve.hockey_stick(np.exp(log_gamma), direction)) for direction in ("add", "remove")]
    return np.array([log_gamma, *both])
