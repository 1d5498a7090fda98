"""The plan behind ``bound="swap"`` of quantiles: around random training sets the change of every record is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray, Indices
from deniable.noise.coordinates import Coordinates
from deniable.noise.evidence import NoGuaranteeError, SampledRows
from deniable.noise.kinds import ResampledSwap
from deniable.noise.laws import NoiseLaw
from deniable.noise.plans import SELECTION, CouplingGame, NoisePlan, nothing_varies, split
from deniable.noise.resampling import Outputs, Population, Runner
from deniable.noise.shaping import Shaper

_MOST_DISTANCES = 50_000_000  # kept in memory (400 MB): records times resamples times partners
_DISTANCES = 1024  # of each record, over all resamples: partners beyond the first where resamples are fewer
_PARTNERS = 4  # most random partners of each record in each resample: they average out most of their variation
_FEWEST, _MOST = 256, 2048  # resamples by default
_SHARE = 0.1  # of the target, that the number of resamples costs by default
_LARGEST_SHARE = 0.5  # of the target: fewer resamples, to save memory, would cost more


def plan_by_known_swaps(
    algorithm: ResampledSwap, runner: Runner, game: CouplingGame, shaper: Shaper, asked: int | None
) -> NoisePlan:
    """Swap distances of every record around random training sets; a bet certifies their means.

    ``asked`` None: so many resamples that their number costs a tenth of the target, between 256 and 2,048, fewer where
    memory does not allow that.
    """
    population = game.population
    n, least = population.n_records, _resamples(_LARGEST_SHARE * game.level, 1 - game.confidence)
    most = _MOST_DISTANCES // n
    if (least if asked is None else asked) > most:
        way = "bound='centre' looks at no single record"
        if asked is not None and most >= least:
            way = f"n_resamples of at most {most} would do; {way}"
        raise NoGuaranteeError(
            f"bound='swap' keeps the swaps of all {n:,} records in each of {asked or least} resamples, too many for "
            f"its memory ({_MOST_DISTANCES:,}); {way}"
        )
    number = _usual(game.level, 1 - game.confidence, n) if asked is None else asked
    chosen = split(number, game)
    outputs = runner.map(Outputs(algorithm, population, population.single_set), chosen)
    values = outputs.reshape(chosen, -1)
    coordinates = Coordinates.of(values, outputs.shape[2:])
    if coordinates.free.size == 0:
        return nothing_varies(coordinates, chosen, chosen)
    values = values[:, coordinates.free]
    law = shaper.law(values - values.mean(axis=0))
    partners = max(1, min(_PARTNERS, _DISTANCES // number, most // number))
    swaps = _KnownSwaps(algorithm, population, law, coordinates.free, partners)
    selection, certification = runner.map(swaps, chosen), runner.map(swaps, number - chosen, start=chosen)
    return NoisePlan(
        coordinates,
        law,
        SampledRows(selection, certification, 1 - game.confidence),
        "sampled",
        "one record swapped, change in closed form; worst of all records",
        resamples=number,
        runs=len(values) + number,
    ).with_outputs(values)


def _usual(level: float, failure: float, n: int) -> int:
    """Resamples by default."""
    return min(max(_resamples(_SHARE * level, failure), _FEWEST), _MOST, _MOST_DISTANCES // n)


def _resamples(loss: float, failure: float) -> int:
    """Resamples whose number costs this much of the mean: a bet of 1 on each that leaks nothing has to win 2/β."""
    return int(np.ceil(np.log(2 / failure) / loss / (1 - SELECTION)))


@dataclass(frozen=True)
class _KnownSwaps:
    """One resample of the swap distances of every record."""

    algorithm: ResampledSwap
    population: Population
    law: NoiseLaw
    coordinates: Indices
    partners: int

    def __call__(self, rng: np.random.Generator, where: str) -> FloatArray:
        inside = self.population.single_set(rng)[0]
        return self.algorithm.swap_distances(self.population, inside, self.law, self.coordinates, self.partners, rng)
