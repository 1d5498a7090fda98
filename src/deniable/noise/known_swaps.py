"""The plan behind ``bound="swap"`` of regressions and quantiles: the change by a swap in closed form, fit by fit.

Two proofs can serve. Around random training sets the change of every record is known, and a bet certifies its mean
(sampled). For ridge regression of many records the swaps of all training sets are bounded around one fit to all records
(exact, :mod:`deniable.noise.linear_swaps`). Where both serve, the one with less noise is taken: the exact one spends no
confidence, so the choice is free.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray, Indices
from deniable.noise.coordinates import Coordinates
from deniable.noise.evidence import NoGuaranteeError, ReleaseError, SampledRows
from deniable.noise.kinds import ResampledSwap
from deniable.noise.laws import NoiseLaw
from deniable.noise.plans import SELECTION, CouplingGame, NoisePlan, nothing_varies, plan_from_closed_form, split
from deniable.noise.resampling import Outputs, Population, Runner
from deniable.noise.shaping import Shaper

_MOST_DISTANCES = 50_000_000  # kept in memory (400 MB): records times resamples times partners
_DISTANCES = 1024  # of each record, over all resamples: partners beyond the first where resamples are fewer
_PARTNERS = 4  # most random partners of each record in each resample: they average out most of their variation
_FEWEST, _MOST = 256, 2048  # resamples by default
_SHARE = 0.1  # of the target, that the number of resamples costs by default
_LARGEST_SHARE = 0.5  # of the target: fewer resamples, to save memory or time, would cost more
_PATIENCE = 5  # times max_seconds: the time that all swaps may take
_SMALL = 0.3  # noise in spreads over training parts below which a second proof is not looked for


def plan_by_known_swaps(
    algorithm: ResampledSwap,
    runner: Runner,
    game: CouplingGame,
    shaper: Shaper,
    resamples: int | None,
    seconds: float,
) -> NoisePlan:
    """Swap distances of every record, around one fit or around random training sets, whichever asks for less noise.

    ``resamples`` None: so many that their number costs a tenth of the target, between 256 and 2,048, fewer where memory
    or ``seconds`` do not allow that; refused if the fewest that can certify would take five times these.
    """
    refused: NoGuaranteeError | None = None
    around: NoisePlan | None = None
    try:
        around = _around_one_fit(algorithm, game, shaper)
    except NoGuaranteeError as error:
        refused = error
    if around is not None and _relative(around, game, around) <= _SMALL:
        return around
    try:
        sampled = _around_training_sets(algorithm, runner, game, shaper, resamples, seconds)
    except ReleaseError:
        if around is not None:
            return around
        if refused is not None and _least(game) * game.population.n_records > _MOST_DISTANCES:
            raise refused from None
        raise
    if around is None or sampled.law is None:
        return sampled
    if _relative(sampled, game, around) < _relative(around, game, around):
        return replace(sampled, deviation=around.deviation)  # of all records, not of a few training sets
    return around


def _around_one_fit(algorithm: ResampledSwap, game: CouplingGame, shaper: Shaper) -> NoisePlan | None:
    together = algorithm.linearised(game.population)
    if together is None:
        return None
    how = "one record swapped, around the fit to all records, what that leaves out bounded; worst record"
    return replace(plan_from_closed_form(together, game, shaper), algorithm=together, coupling=how)


def _relative(plan: NoisePlan, game: CouplingGame, around: NoisePlan) -> float:
    """Root mean square over the coordinates of the noise, in spreads over training parts as ``around`` knows them."""
    assert plan.law is not None  # for the type checker
    assert around.deviation is not None
    try:
        law = plan.law.with_scale(plan.evidence.least_scale(plan.law, game.level, game.log_gamma))
    except ReleaseError:
        return float("inf")
    spread = around.deviation.ravel()[around.coordinates.free]
    with np.errstate(divide="ignore"):
        return float(np.sqrt(np.mean((law.standard_deviation / spread) ** 2)))


def _around_training_sets(
    algorithm: ResampledSwap,
    runner: Runner,
    game: CouplingGame,
    shaper: Shaper,
    asked: int | None,
    seconds: float,
) -> NoisePlan:
    population = game.population
    n, least = population.n_records, _least(game)
    most = _MOST_DISTANCES // n
    if (least if asked is None else asked) > most:
        way = "bound='centre' looks at no single record"
        if asked is not None and most >= least:
            way = f"n_resamples of at most {most} would do; {way}"
        raise NoGuaranteeError(
            f"bound='swap' keeps the swaps of all {n:,} records in each of {asked or least} resamples, too many for "
            f"its memory ({_MOST_DISTANCES:,}); {way}, and PrivateClassifier and PrivateRegressor train on all records "
            "of large tables with less noise"
        )
    number = _usual(game.level, 1 - game.confidence, n) if asked is None else asked
    chosen = first = split(number, game)
    outputs = replace(runner, cache_dir=None).map(Outputs(algorithm, population, population.single_set), chosen)
    values = outputs.reshape(chosen, -1)
    coordinates = Coordinates.of(values, outputs.shape[2:])
    if coordinates.free.size == 0:
        return nothing_varies(coordinates, chosen, chosen)
    values = values[:, coordinates.free]
    law = shaper.law(values - values.mean(axis=0))
    partners = max(1, min(_PARTNERS, _DISTANCES // number, most // number))
    swaps = _KnownSwaps(algorithm, population, law, coordinates.free, partners)
    began = time.process_time()
    swaps(runner.generator(0), "")
    each = max((time.process_time() - began) / runner.workers, 1e-9)
    if asked is None:  # none of those that certify has been looked at
        number = min(number, max(least, int(seconds / each)))
        chosen = split(number, game)
    if number * each > _PATIENCE * seconds:
        raise NoGuaranteeError(
            f"bound='swap' would take about {number * each:.0f} s for {number} resamples; fits that depend "
            "on single records are slow: clip the columns to public bounds, raise the penalty, or "
            "use bound='centre' (max_seconds="
            f"{number * each / _PATIENCE + 1:.0f} runs it anyway)"
        )
    selection, certification = runner.map(swaps, chosen), runner.map(swaps, number - chosen, start=first)
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
    """Resamples by default if time does not limit them."""
    return min(max(_resamples(_SHARE * level, failure), _FEWEST), _MOST, _MOST_DISTANCES // n)


def _least(game: CouplingGame) -> int:
    """Fewest resamples that are tried."""
    return _resamples(_LARGEST_SHARE * game.level, 1 - game.confidence)


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
