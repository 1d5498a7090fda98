"""The plan behind ``bound="direct"``: how many runs, which shape, and what was found on them."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from deniable.noise.certificate import FINE, runs_for_fine
from deniable.noise.coordinates import Coordinates
from deniable.noise.evidence import NoGuaranteeError
from deniable.noise.known_law import HasKnownLaw, KnownEvidence
from deniable.noise.mixture import MOST_DIMENSIONS, MixtureEvidence, chernoff_slack, hoeffding_slack, runs_for
from deniable.noise.plans import CouplingGame, Enumeration, NoisePlan, Shaper, nothing_varies
from deniable.noise.resampling import Algorithm, Outputs, Population, Runner, evaluate

FEWEST_RUNS = 4096
_MOST_RUNS = 32768
_PILOT = 64  # runs that find the shape of the value and of its noise, and how long a run takes
_BITS = 1_000_000_000  # records times runs whose membership is kept
_SCATTERED = (
    20_000_000  # records times runs that Monte Carlo integration (more than one output) gets through in a minute
)
_SHARE = 0.25  # of η that the number of runs may cost, if that takes no more than _MOST_RUNS
_LARGEST_SHARE = 0.9  # of η; beyond, no noise could certify the rest


def plan_by_direct(
    algorithm: Algorithm, runner: Runner, game: CouplingGame, shaper: Shaper, runs: int | None, seconds: float
) -> NoisePlan:
    """Independent random training sets, each record's two mixtures compared directly (:mod:`deniable.noise.mixture`).

    The first 64 runs are a pilot: they fix the coordinates, the shape of the noise and the time of a run, hence the
    number of the others, which alone certify. ``runs`` None: enough for the number of runs to cost a quarter of η,
    at least 4,096 and at most 32,768, but no more than fit into ``seconds``.
    """
    population = game.population
    task = Outputs(algorithm, population, population.single_set)
    began = time.perf_counter()
    pilot = runner.map(task, _PILOT)
    each = (time.perf_counter() - began) / _PILOT
    values = pilot.reshape(_PILOT, -1)
    coordinates = Coordinates.of(values, pilot.shape[2:])
    if coordinates.free.size == 0:
        return nothing_varies(coordinates, _PILOT, _PILOT)
    if coordinates.free.size > MOST_DIMENSIONS:
        raise NoGuaranteeError(
            f"bound='direct' compares the laws of at most {MOST_DIMENSIONS} numbers that vary, got "
            f"{coordinates.free.size}; release fewer at a time, or use bound='auto'"
        )
    doubt = 1 - game.confidence
    number, limit = _number_of_runs(game, runs, each, seconds)
    if runs is None and coordinates.free.size > 1 and number * population.n_records > _SCATTERED:
        raise NoGuaranteeError(
            f"bound='direct' for {coordinates.free.size} numbers of {population.n_records} records takes long; give "
            "n_resamples if you want it all the same, release one number at a time, or use bound='auto'"
        )
    slack = hoeffding_slack(doubt, number)
    if not slack < _LARGEST_SHARE * game.eta:
        needed = runs_for(0.5 * game.eta, doubt)
        raise NoGuaranteeError(
            f"eta={game.eta:g} cannot be certified directly from {number} runs ({limit}), whose number alone adds "
            f"{slack:.3g}; use n_resamples of at least {needed}"
        )
    values = values[:, coordinates.free]
    law = shaper.law(values - values.mean(axis=0))
    white = law.whiten(values)
    spread = float(np.sqrt(np.mean((white - white.mean(axis=0)) ** 2)))
    outputs = runner.map(task, number, start=_PILOT).reshape(number, -1)[:, coordinates.free]
    evidence = MixtureEvidence(
        outputs, _membership(runner, population, number), population.prior, doubt, spread, game.eta, runner.entropy
    )
    return NoisePlan(
        coordinates,
        law,
        evidence,
        "sampled",
        "none: the laws with and without each record are compared directly; every record at once",
        resamples=number,
        runs=_PILOT + number,
        assumptions=(_what_runs_cost(number, limit, slack, doubt, population.prior),),
    ).with_outputs(values)


def plan_by_all_sets(every: Enumeration, game: CouplingGame, shaper: Shaper) -> NoisePlan | None:
    """All training sets of a small data set; None if the algorithm is random or has more than one output."""
    if every.found is None:
        return None
    sets, values, coordinates = every.found
    if coordinates.free.size == 0:
        return nothing_varies(coordinates)
    if coordinates.free.size > 1:
        return None
    values = values[:, coordinates.free]
    law = shaper.law(values - values.mean(axis=0))
    white = law.whiten(values)
    member = np.zeros((game.population.n_records, len(sets)), dtype=bool)
    for column, members in enumerate(sets):
        member[list(members), column] = True
    evidence = MixtureEvidence(
        values,
        np.packbits(member, axis=1),
        game.population.prior,
        0.0,
        float(white.std()),
        game.eta,
    )
    return NoisePlan(
        coordinates,
        law,
        evidence,
        "exact",
        f"none: the laws with and without each record, from all {len(sets)} training sets",
        resamples=len(sets),
        runs=2 * len(sets),
        assumptions=("the algorithm is a function of its data (each training set was run twice, with equal bits)",),
    ).with_outputs(values)


def plan_by_known_law(algorithm: HasKnownLaw, game: CouplingGame, shaper: Shaper) -> NoisePlan | None:
    """The law over random training parts itself; None for a table that needs noise, where this says nothing."""
    population = game.population
    whole = evaluate(algorithm, population, None, "on the whole data set")
    coordinates = Coordinates.like(algorithm.alike(population.data), whole.shape, whole.ravel())
    if coordinates.free.size == 0:
        return nothing_varies(coordinates)
    evidence = KnownEvidence(algorithm.known_laws(population), population.prior)
    if whole.size > 1 and not evidence.needs_no_noise(game.eta):
        return None
    if whole.size == 1:
        spread = np.full(whole.shape, evidence.laws[0].spread)
    else:  # shares of cells
        spread = np.sqrt(whole * (1 - whole) / population.n_train * (1 - population.prior))
    return NoisePlan(
        coordinates,
        shaper.family(np.where(spread > 0, spread, 1.0).ravel()[coordinates.free]),
        evidence,
        "exact",
        "none: the law of the statistic over random training parts, with and without each record, is known",
        deviation=spread,
        typical=whole,
    )


def _what_runs_cost(number: int, limit: str, slack: float, doubt: float, prior: float) -> str:
    """Say what the number of runs adds, and how many would make the smallest true positive rates useful."""
    least = chernoff_slack(doubt, number, prior)
    text = f"{number:,} runs certify ({limit}); their number alone adds {slack:.2g} to η and {least:.2g} to every TPR"
    if least <= FINE:
        return text
    return f"{text} ({runs_for_fine(number, least)} runs, as n_resamples: {FINE:.1%})"


def direct_share(game: CouplingGame, runs: int | None) -> float:
    """Share of η that the number of runs costs if time does not limit it: decides beforehand what is worth trying."""
    number = _number_of_runs(game, runs, 0.0, 1.0)[0]
    return hoeffding_slack(1 - game.confidence, number) / game.eta


def _number_of_runs(game: CouplingGame, runs: int | None, each: float, seconds: float) -> tuple[int, str]:
    """The number of certifying runs and what decided it; nothing here knows their outputs."""
    if runs is not None:
        return runs, "as asked for"
    wanted = runs_for(_SHARE * game.eta, 1 - game.confidence)
    number, limit = min(max(wanted, FEWEST_RUNS), _MOST_RUNS), "enough for this eta"
    if number == FEWEST_RUNS:
        limit = "the least by default"
    if number == _MOST_RUNS:
        limit = "the most by default; n_resamples asks for more"
    held = _BITS // game.population.n_records
    if number > held:
        number, limit = held, "as many as memory holds for so many records"
    if each * number > seconds:
        number, limit = max(int(seconds / each), 1), f"as many as fit into {seconds:g} s; max_seconds changes that"
    return number, limit


def _membership(runner: Runner, population: Population, number: int) -> NDArray[np.uint8]:
    """Who was in each certifying training set, drawn again from the same seeds: bits of shape (n, ⌈number/8⌉)."""
    packed = np.zeros((population.n_records, -(-number // 8)), dtype=np.uint8)
    for first in range(0, number, 8):
        block = np.zeros((population.n_records, 8), dtype=bool)
        for j in range(min(8, number - first)):
            block[population.single_set(runner.generator(_PILOT + first + j))[0], j] = True
        packed[:, first // 8] = np.packbits(block, axis=1)[:, 0]
    return packed
