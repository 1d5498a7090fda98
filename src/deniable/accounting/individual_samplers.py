"""A record's own curve where batches are not Poisson-sampled one by one: the largest of its norms counts for all steps.

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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.door import tradeoff
from deniable.accounting.steps.base import Repeated
from deniable.accounting.steps.gaussian_mixture import truncated_poisson
from deniable.curves import Assumptions, Tradeoff
from deniable.mechanisms import (
    GaussianDP,
    MatrixMechanism,
    Mechanism,
    RandomAllocation,
    ShuffledBatches,
    TruncatedPoisson,
    WithoutReplacement,
)

_POINTS = 33  # thresholds ε, symmetric about 0
_MOST = 8  # curves: norms are rounded up to as many levels
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


def of_largest(
    shares: list[tuple[NDArray[np.intp], FloatArray]], records: int, run: Mechanism, levels: int
) -> tuple[FloatArray, Assumptions]:
    """Return log γ and both hockey sticks of every record, shape (3, records, points), and what the curves assume."""
    largest, seen = np.zeros(records), np.zeros(records, dtype=np.intp)
    for where, share in shares:
        largest[where] = np.maximum(largest[where], share)
        seen[where] += 1
    largest[seen < len(shares)] = 1.0  # a norm that is not known may have been the clip
    known, level = np.unique(largest, return_inverse=True)
    most = min(levels, _MOST)
    if known.size > most:
        up = np.minimum(np.ceil(largest * most) / most * (1 + 4 * EPS), 1.0)  # the product is rounded
        known, level = np.unique(up, return_inverse=True)
    curves = [tradeoff(SAMPLERS[type(run)].weaker(run, float(share))) for share in known]
    tables = np.array([_table(curve) for curve in curves])
    return tables[level].transpose(1, 0, 2), tradeoff(run).assumptions


def _table(curve: Tradeoff) -> FloatArray:
    reach = float(np.clip(curve.epsilon(_RARE), _LEAST_REACH, _MOST_REACH))
    log_gamma = np.linspace(-reach, reach, _POINTS)
    both = [np.asarray(curve.hockey_stick(np.exp(log_gamma), direction)) for direction in ("add", "remove")]
    return np.array([log_gamma, *both])
