"""The plan behind ``bound="direct"``: the number of runs, the shape of the noise, and what the runs show."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable.releases.coordinates import Coordinates
from deniable.releases.evidence import NoGuaranteeError
from deniable.releases.mixture import MixtureEvidence, chernoff_slack, hoeffding_slack, runs_for
from deniable.releases.plans import NoisePlan, ReleaseTask, nothing_varies
from deniable.releases.resampling import Outputs, Population, Runner, stack

_FEWEST_RUNS = 4096
_MOST_RUNS = 32768
_SECONDS = 120.0  # that the runs may take unless their number is given
_PILOT = 64  # pilot runs: they set the shape of the noise and the time per run
_BITS = 1_000_000_000  # largest number of records times runs whose membership is kept
_SCATTERED = 20_000_000  # (records + 20·outputs) times runs that Monte Carlo integration gets through in a minute
_DISTANCE = 20  # cost of the distance of a point from a run in one of several outputs, in units of that of a record
_SHARE = 0.25  # share of the gain that the number of runs may cost, if at most _MOST_RUNS are enough for that
_LARGEST_SHARE = 0.9  # largest share of the gain: above it, no noise could certify the rest


def plan_by_direct(task: ReleaseTask) -> NoisePlan:
    """Compare each record's two mixtures over independent random training sets (:mod:`deniable.releases.mixture`).

    The first 64 runs are a pilot: they fix the coordinates, the shape of the noise and the time per run, and with it
    the number of the other runs, which alone certify. Unless it is given, these are so many that their number costs a
    quarter of the gain, at least 4,096 and at most 32,768, but no more than fit into two minutes.
    """
    population, runner = task.population, task.runner
    once = Outputs(task.algorithm, population, population.single_set)
    pilot, each = _run_pilot(runner, once)
    values = pilot.reshape(_PILOT, -1)
    coordinates = Coordinates.of(values, pilot.shape[2:])
    if coordinates.free.size == 0:
        return nothing_varies(task, coordinates, _PILOT, _PILOT)
    failure, d = task.failure, coordinates.free.size
    number, limit = _number_of_runs(task, each)
    takes_long = d > 1 and number * (population.n_records + _DISTANCE * d) > _SCATTERED
    if takes_long and task.n_resamples is None:
        raise NoGuaranteeError(
            f"bound='direct' for {d} numbers of {population.n_records} records "
            "would take long; pass n_resamples to run it anyway, release one number at a time, or use bound='auto'"
        )
    slack = hoeffding_slack(failure, number)
    if not slack < _LARGEST_SHARE * task.gain:
        needed = runs_for(0.5 * task.gain, failure)
        raise NoGuaranteeError(
            f"advantage={task.advantage:g} cannot be certified directly from {number} runs ({limit}), whose number "
            f"alone adds {2 * slack:.3g}; use n_resamples of at least {needed}"
        )
    values = values[:, coordinates.free]
    law = task.law_for(values - values.mean(axis=0))
    white = law.whiten(values)
    spread = float(np.sqrt(np.mean((white - white.mean(axis=0)) ** 2)))
    outputs = runner.map(once, number, start=_PILOT).reshape(number, -1)[:, coordinates.free]
    members = _membership(runner, population, number)
    found = MixtureEvidence(outputs, members, population.prior, failure, spread, task.gain, runner.entropy)
    return NoisePlan(
        coordinates,
        law,
        found,
        "sampled",
        "none: the laws with and without each record are compared directly; every record at once",
        resamples=number,
        runs=_PILOT + number,
        assumptions=(
            f"{number:,} runs certify ({limit}); their number alone adds {2 * slack:.2g} to the advantage and "
            f"{chernoff_slack(failure, number, population.prior):.2g} to every TPR, the latter like 1/n_resamples",
        ),
    ).compared_on(task, values)


def _run_pilot(runner: Runner, task: Outputs) -> tuple[FloatArray, float]:
    """The pilot's outputs and the time per run: the least over its quarters, as the first one may load modules."""
    size = _PILOT // 4
    parts, times = [], []
    for start in range(0, _PILOT, size):
        began = time.perf_counter()
        parts.append(runner.map(task, size, start=start))
        times.append((time.perf_counter() - began) / size)
    return stack([output for part in parts for output in part]), min(times)


def direct_share(task: ReleaseTask) -> float:
    """Share of the gain that the number of runs costs if time does not limit it; decides beforehand what to try."""
    return hoeffding_slack(task.failure, _number_of_runs(task, 0.0)[0]) / task.gain


def _number_of_runs(task: ReleaseTask, each: float) -> tuple[int, str]:
    """The number of certifying runs and what decided it; independent of their outputs."""
    if task.n_resamples is not None:
        return task.n_resamples, "as asked for"
    wanted = runs_for(_SHARE * task.gain, task.failure)
    number, limit = min(max(wanted, _FEWEST_RUNS), _MOST_RUNS), "enough for this advantage"
    if number == _FEWEST_RUNS:
        limit = "the least by default"
    if number == _MOST_RUNS:
        limit = "the most by default; n_resamples asks for more"
    held = _BITS // task.population.n_records
    if number > held:
        number, limit = held, "as many as memory holds for this many records"
    if each * number > _SECONDS:
        number, limit = max(int(_SECONDS / each), 1), f"as many as fit into {_SECONDS:g} s; n_resamples asks for more"
    return number, limit


def _membership(runner: Runner, population: Population, number: int) -> NDArray[np.uint8]:
    """Who was in each certifying training set, drawn again from the same seeds: bits of shape (n, ⌈number/8⌉)."""
    packed = np.zeros((population.n_records, -(-number // 8)), dtype=np.uint8)
    for first in range(0, number, 8):
        last = min(first + 8, number)
        block = np.stack([population.random_members(runner.generator(_PILOT + j)) for j in range(first, last)])
        packed[:, first // 8] = np.packbits(block, axis=0)[0]
    return packed
