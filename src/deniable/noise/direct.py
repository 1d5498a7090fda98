"""The plan behind ``bound="direct"``: the number of runs, the shape of the noise, and what the runs show."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable.noise.certificate import FINE, runs_for_fine
from deniable.noise.coordinates import Coordinates
from deniable.noise.evidence import NoGuaranteeError, ReleaseError
from deniable.noise.known_law import HasKnownLaw, KnownEvidence
from deniable.noise.laws import NoiseLaw
from deniable.noise.mixture import (
    MixtureEvidence,
    chernoff_slack,
    hoeffding_slack,
    least_noise_of_many,
    runs_for,
)
from deniable.noise.plans import CouplingGame, Enumeration, NoisePlan, nothing_varies
from deniable.noise.resampling import Algorithm, Outputs, Population, Runner, evaluate, stack
from deniable.noise.shaping import Shaper

FEWEST_RUNS = 4096
MOST_RUNS = 32768
_PILOT = 64  # pilot runs: they set the shape of the noise and the time per run
_BITS = 1_000_000_000  # largest number of records times runs whose membership is kept
_SCATTERED = 20_000_000  # (records + 20·outputs) times runs that Monte Carlo integration gets through in a minute
_DISTANCE = 20  # cost of the distance of a point from a run in one of several outputs, in units of that of a record
NEGLIGIBLE = 0.3  # noise below this share of the spread over training parts adds at most 4 % to the error
_FEWER = 4  # the first look uses one run in this many
SHARE = 0.25  # share of the gain that the number of runs may cost, if at most MOST_RUNS are enough for that
_LARGEST_SHARE = 0.9  # largest share of the gain: above it, no noise could certify the rest


def plan_by_direct(
    algorithm: Algorithm, runner: Runner, game: CouplingGame, shaper: Shaper, runs: int | None, seconds: float
) -> NoisePlan:
    """Compare each record's two mixtures over independent random training sets (:mod:`deniable.noise.mixture`).

    The first 64 runs are a pilot: they fix the coordinates, the shape of the noise and the time per run, and with it
    the number of the other runs, which alone certify. With ``runs=None`` these are so many that their number costs a
    quarter of the gain, at least 4,096 and at most 32,768, but no more than fit into ``seconds``. If a quarter of them
    is at least 4,096, that quarter is looked at first, with half of the failure probability; it suffices if its noise
    is small beside the spread.
    """
    population = game.population
    task = Outputs(algorithm, population, population.single_set)
    pilot, each = _timed(runner, task)
    values = pilot.reshape(_PILOT, -1)
    coordinates = Coordinates.of(values, pilot.shape[2:])
    if coordinates.free.size == 0:
        return nothing_varies(coordinates, _PILOT, _PILOT)
    failure, d = 1 - game.confidence, coordinates.free.size
    number, limit = _number_of_runs(game, runs, each, seconds)
    if runs is None and takes_long(population.n_records, number, d):
        raise NoGuaranteeError(
            f"bound='direct' for {d} numbers of {population.n_records} records "
            "would take long; pass n_resamples to run it anyway, release one number at a time, or use bound='auto'"
        )
    slack = hoeffding_slack(failure, number)
    if not slack < _LARGEST_SHARE * game.gain:
        needed = runs_for(0.5 * game.gain, failure)
        raise NoGuaranteeError(
            f"advantage={game.advantage:g} cannot be certified directly from {number} runs ({limit}), whose number "
            f"alone adds {2 * slack:.3g}; use n_resamples of at least {needed}"
        )
    values = values[:, coordinates.free]
    law = shaper.law(values - values.mean(axis=0))
    white = law.whiten(values)
    spread = float(np.sqrt(np.mean((white - white.mean(axis=0)) ** 2)))

    def evidence(outputs: FloatArray, share: float, looks: int) -> MixtureEvidence:
        members = _membership(runner, population, len(outputs))
        return MixtureEvidence(outputs, members, population.prior, share, spread, game.gain, runner.entropy, looks)

    def drawn(first: int, last: int) -> FloatArray:
        found = runner.map(task, last - first, start=_PILOT + first)
        return found.reshape(last - first, -1)[:, coordinates.free]

    few = number // _FEWER if runs is None else 0
    if few >= FEWEST_RUNS and hoeffding_slack(failure / 2, few) < _LARGEST_SHARE * game.gain:
        failure /= 2  # two certificates: whichever is taken must hold
        outputs = drawn(0, few)
        found = evidence(outputs, failure, 2)
        if _is_enough(found, law, game, values):
            number, limit = few, f"{number:,} were planned, but less noise would hardly be noticed"
        else:
            found = evidence(np.concatenate([outputs, drawn(few, number)]), failure, 2)
        slack = hoeffding_slack(failure, number)
    else:
        found = evidence(drawn(0, number), failure, 1)
    return NoisePlan(
        coordinates,
        law,
        found,
        "sampled",
        "none: the laws with and without each record are compared directly; every record at once",
        resamples=number,
        runs=_PILOT + number,
        assumptions=(_what_runs_cost(number, limit, slack, failure, population.prior),),
    ).with_outputs(values)


def _timed(runner: Runner, task: Outputs) -> tuple[FloatArray, float]:
    """The pilot's outputs and the time per run: the least over its quarters, as the first one may load modules."""
    size = _PILOT // 4
    parts, times = [], []
    for start in range(0, _PILOT, size):
        began = time.perf_counter()
        parts.append(runner.map(task, size, start=start))
        times.append((time.perf_counter() - began) / size)
    return stack([output for part in parts for output in part]), min(times)


def _is_enough(found: MixtureEvidence, law: NoiseLaw, game: CouplingGame, values: FloatArray) -> bool:
    """Whether the noise that these runs certify is small beside the spread of the pilot's values over parts."""
    try:
        scale = found.least_scale(law, game.level, game.log_gamma)
    except ReleaseError:
        return False
    relative = law.with_scale(scale).standard_deviation / values.std(axis=0, ddof=1)
    return bool(np.mean(relative**2) <= NEGLIGIBLE**2)


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
        game.gain,
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
    """Use the law over random training parts itself; None for a table that needs noise, of which it says nothing."""
    population = game.population
    whole = evaluate(algorithm, population, None, "on the whole data set")
    coordinates = Coordinates.like(algorithm.alike(population.data), whole.shape, whole.ravel())
    if coordinates.free.size == 0:
        return nothing_varies(coordinates)
    evidence = KnownEvidence(algorithm.known_laws(population), population.prior)
    if whole.size > 1 and not evidence.needs_no_noise(game.gain):
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
    )


def _what_runs_cost(number: int, limit: str, slack: float, failure: float, prior: float) -> str:
    """Say what the number of runs adds, and how many would make the smallest true positive rates useful."""
    least = chernoff_slack(failure, number, prior)
    adds = f"{2 * slack:.2g} to the advantage and {least:.2g} to every TPR"
    text = f"{number:,} runs certify ({limit}); their number alone adds {adds}"
    if least <= FINE:
        return text
    return f"{text} ({runs_for_fine(number, least)} runs, as n_resamples: {FINE:.1%})"


def direct_share(game: CouplingGame, runs: int | None) -> float:
    """Share of the gain that the number of runs costs if time does not limit it; decides beforehand what to try."""
    number = _number_of_runs(game, runs, 0.0, 1.0)[0]
    return hoeffding_slack(1 - game.confidence, number) / game.gain


def least_noise(game: CouplingGame, runs: int | None, d: int) -> float:
    """Guess the noise on ``d`` numbers, in spreads, below which these runs certify nothing; 0 if they take too long."""
    number = _number_of_runs(game, runs, 0.0, 1.0)[0]
    if runs is None and takes_long(game.population.n_records, number, d):
        return 0.0
    return least_noise_of_many(game.gain, 1 - game.confidence, number, d)


def takes_long(n: int, number: int, d: int) -> bool:
    """Whether Monte Carlo integration over d numbers of n records takes more than a minute or so."""
    return d > 1 and number * (n + _DISTANCE * d) > _SCATTERED


def _number_of_runs(game: CouplingGame, runs: int | None, each: float, seconds: float) -> tuple[int, str]:
    """The number of certifying runs and what decided it; independent of their outputs."""
    if runs is not None:
        return runs, "as asked for"
    wanted = runs_for(SHARE * game.gain, 1 - game.confidence)
    number, limit = min(max(wanted, FEWEST_RUNS), MOST_RUNS), "enough for this advantage"
    if number == FEWEST_RUNS:
        limit = "the least by default"
    if number == MOST_RUNS:
        limit = "the most by default; n_resamples asks for more"
    held = _BITS // game.population.n_records
    if number > held:
        number, limit = held, "as many as memory holds for this many records"
    if each * number > seconds:
        number, limit = max(int(seconds / each), 1), f"as many as fit into {seconds:g} s; max_seconds changes that"
    return number, limit


def _membership(runner: Runner, population: Population, number: int) -> NDArray[np.uint8]:
    """Who was in each certifying training set, drawn again from the same seeds: bits of shape (n, ⌈number/8⌉)."""
    packed = np.zeros((population.n_records, -(-number // 8)), dtype=np.uint8)
    for first in range(0, number, 8):
        last = min(first + 8, number)
        block = np.stack([population.random_members(runner.generator(_PILOT + j)) for j in range(first, last)])
        packed[:, first // 8] = np.packbits(block, axis=0)[0]
    return packed
