"""Plain differential privacy as a bound of a release: all records are used, and one may have been replaced.

In a game of fixed size "out" means replaced, so the sensitivity is that of replacing a record: for a mean of n records
in [low, high] it is (high − low)/n, not half of it. Gaussian noise then gives an advantage of 2Φ(μ/2) − 1,
μ = distance/scale, for every data set and every record, whatever the attacker knows of the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from deniable._check import InputError
from deniable.noise.coordinates import Coordinates
from deniable.noise.evidence import ExactRows
from deniable.noise.kinds import BoundedStatistic
from deniable.noise.plans import CouplingGame, NoisePlan
from deniable.noise.shaping import Shaper

_TYPICAL = 1 / 6  # guessed standard deviation of a column, as a share of its public range (±3 standard deviations)


def plan_by_privacy(algorithm: Any, game: CouplingGame, shaper: Shaper) -> NoisePlan:
    """Plan with all records and noise for the replacement of one."""
    n = game.population.n_records
    known = algorithm.sensitivity(game.population.data, n)
    if known is None:
        raise InputError(
            f"bound='dp' needs public bounds, which {algorithm!r} lacks; give them, as in Mean(bounds=(0, 100)), from "
            "what is known without the data, or use bound='auto'"
        )
    size = known.factor.size
    everything = np.arange(size)
    coordinates = Coordinates(known.shape, everything, everything, np.zeros(size))
    shaper.one_dimensional(size)
    law = shaper.family(known.factor)
    return NoisePlan(
        coordinates,
        law,
        ExactRows(np.array([[known.distance * (1 + 1e-12)]])),
        "exact",
        "differential privacy on all records: one record replaced by any other within the public bounds",
        assumptions=(
            "all records are used; the bounds and the number of records are public, nothing else was read off the data",
            "out means replaced by another record within the bounds; the prior is 1/2",
        ),
        deviation=np.zeros(known.shape),
    )


def plain_privacy_is_better(algorithm: BoundedStatistic, game: CouplingGame, shaper: Shaper) -> bool:
    """Decide for plain privacy by public numbers alone: its noise against what training on a part is expected to cost.

    That cost is guessed from the public ranges, a sixth of which stands for the standard deviation of a column. The
    data are not used: otherwise the choice itself would reveal something that plain privacy promises to hide.
    """
    population, game = game.population, replace(game, bound="dp")
    known = algorithm.sensitivity(population.data, population.n_records)
    if known is None:
        return False
    plan = plan_by_privacy(algorithm, game, shaper)
    if plan.law is None:
        return False
    noise = plan.law.with_scale(plan.evidence.least_scale(plan.law, game.level, game.log_gamma)).standard_deviation
    k = population.n_train
    part = known.width * _TYPICAL * np.sqrt((1 / k) * (1 - k / population.n_records))
    return bool(np.mean((noise / part) ** 2) <= 1)
