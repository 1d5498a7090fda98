"""Which coupling certifies a release, and the evidence for it: all decided before the training part is drawn.

Coupling of opposite sets (``bound="centre"``). Draw two training sets that share as few records as possible. Given that
record x* is in the first and not in the second, the first is a draw of "in" and the second of "out", so
H_γ(P_in‖P_out) ≤ E[H_γ(N_a‖N_b) | x* separates them]; by the symmetry of H_γ in the pair and of the two sets this is at
most E H_γ(N_a‖N_b)/(2·min(π, 1−π)), whatever the record. By the triangle inequality it is never worse than the bound
E TV(N_θ, N_c) around any fixed centre c.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.noise import GaussianNoise, NoiseLaw, NormLaplaceNoise, sealed
from deniable.releases.certificate import CertificateKind
from deniable.releases.coordinates import Coordinates, Summary
from deniable.releases.evidence import ExactRows, ReleaseError, SampledPairs, needed_resamples
from deniable.releases.mixture import MixtureEvidence
from deniable.releases.resampling import Algorithm, Outputs, Population, Runner, evaluate
from deniable.releases.statistics import ExactSwap

ROUNDING = 1e-13  # relative margin between what is computed and what is certified
SELECTION = 0.25  # share of the resamples that fixes the shape of the noise; the others certify
_RESAMPLES = 256  # of "centre" unless ``n_resamples`` is given


@dataclass(frozen=True)
class ReleaseTask:
    """The checked arguments of a release, and how the coupling ``bound`` turns E H_γ(N_a‖N_b) into what is to be shown.

    centre: given x* in one of an opposite pair, H_γ(P_in‖P_out) ≤ E H_γ(N_a‖N_b)/(2·min(π, 1−π)) by symmetry.
    swap: H_γ(P_in‖P_out) ≤ E H_γ(N_a‖N_b) for record x*. direct: H_γ itself. In all three the gain over guessing is
    min(π, 1−π)·H at γ = max(π, 1−π)/min(π, 1−π), and the advantage is twice the gain (Izzo et al. call the gain η).
    """

    algorithm: Algorithm
    population: Population
    advantage: float
    noise: str
    bound: str
    runner: Runner
    n_resamples: int | None
    failure: float  # 1 − confidence

    @property
    def gain(self) -> float:
        """Accuracy above guessing from the prior: half the advantage."""
        return self.advantage / 2

    @property
    def rare(self) -> float:
        """min(π, 1 − π)."""
        return min(self.population.prior, 1 - self.population.prior)

    @property
    def inflation(self) -> float:
        """Factor between E H_γ(N_a‖N_b) and the bound on H_γ(P_in‖P_out)."""
        return 1 / (2 * self.rare) if self.bound == "centre" else 1.0

    @property
    def log_gamma(self) -> float:
        """Log of the γ at which H_γ gives the accuracy of the best attack."""
        return float(np.log((1 - self.rare) / self.rare)) if self.rare < 0.5 else 0.0

    @property
    def level(self) -> float:
        """Largest E H_γ(N_a‖N_b) that gives the gain, a rounding error below it."""
        return self.gain / (self.rare * self.inflation) * (1 - ROUNDING)

    def law(self, factor: FloatArray) -> NoiseLaw:
        """Return the law of the chosen family with this shape."""
        if self.noise == "laplace" and factor.size > 1:
            raise InputError(
                f"noise='laplace' needs a one-dimensional value, got {factor.size} varying coordinates; "
                "use 'gaussian' or 'norm-laplace'"
            )
        if not np.all(np.isfinite(factor)):
            raise ReleaseError("the values are too large to be compared: rescale them, or give public bounds (bounds=)")
        return (GaussianNoise if self.noise == "gaussian" else NormLaplaceNoise)(1.0, factor)

    def law_for(self, deviations: FloatArray) -> NoiseLaw:
        """Return the law at scale 1 for draws of shape (draws, coordinates) of the centred or differenced value.

        Each coordinate's noise is in proportion to its own spread, which minimises Σ(noise/spread)² at a given
        Σ(spread/noise)²: the error in units of the spread, so nothing depends on the units of a column. The mean
        absolute deviation is the spread: one huge output does not drown the others.
        """
        absolute = np.abs(deviations).mean(axis=0)
        return self.law(np.maximum(absolute, 1e-9 * absolute.max()))


@dataclass(frozen=True, eq=False)
class NoisePlan:
    """Everything that is decided before the training part is drawn; none of it depends on who trains."""

    coordinates: Coordinates
    law: NoiseLaw | None  # None: nothing varies
    evidence: ExactRows | SampledPairs | MixtureEvidence
    kind: CertificateKind
    coupling: str
    resamples: int = 0
    runs: int = 0
    assumptions: tuple[str, ...] = ()
    deviation: FloatArray | None = None  # RMS distance of the value on training parts from that on all records
    bias: FloatArray | None = None  # the part of it that is the same on every training part

    def compared_on(self, task: ReleaseTask, values: FloatArray) -> NoisePlan:
        """Add how far outputs of the free coordinates (draws, free) are from the value on all records, if it has one.

        Of a sum or a count of distinct values that is mostly a bias: on a part it is smaller every time.
        """
        whole = None
        with sealed(), suppress(ReleaseError, SystemExit):
            rows = np.arange(task.population.n_records)
            whole = evaluate(task.algorithm, task.population, rows, "on all records")
        if whole is None or whole.shape != self.coordinates.shape:
            return self
        fixed = np.abs(self.coordinates.constants - whole.ravel())
        away = values - whole.ravel()[self.coordinates.free]
        deviation, bias = np.sqrt(np.mean(away**2, axis=0)), np.abs(away.mean(axis=0))
        expand = self.coordinates.expand
        return replace(self, deviation=expand(deviation, fixed), bias=expand(bias, fixed))


def plan_from_closed_form(task: ReleaseTask, algorithm: ExactSwap) -> NoisePlan:
    """Swap distances in closed form: nothing is run but the release itself."""
    population = task.population
    whole = evaluate(algorithm, population, None, "on the whole data set")
    coordinates = Coordinates.like(algorithm.alike(population.data), whole.shape, whole.ravel())
    if coordinates.free.size == 0:
        return nothing_varies(task, coordinates)
    influence = algorithm.influence(population, coordinates.free)
    units = algorithm.units(influence)
    best: tuple[float, NoiseLaw, ExactRows] | None = None
    for law in _laws(task, influence, units):  # nothing is sampled, so the choice is free
        rows = algorithm.swap_rows(population, law, coordinates.free)
        noise = law.with_scale(rows.rough().least_scale(law, task.level, task.log_gamma)).standard_deviation
        cost = float(np.sum((noise / units) ** 2))
        if best is None or cost < best[0]:
            best = cost, law, rows
    assert best is not None  # for the type checker: there is at least one shape
    n, k = population.n_records, population.n_train
    deviation = np.sqrt(influence.square * (1 / k) * (1 - k / n))
    return NoisePlan(
        coordinates,
        best[1],
        best[2],
        "exact",
        "one record swapped, in closed form; worst record",
        deviation=coordinates.expand(deviation, 0.0),
    )


def _laws(task: ReleaseTask, influence: Summary, units: FloatArray) -> list[NoiseLaw]:
    """Return shapes to choose from: equal in ``units``, by the mean influence, or by the largest.

    The mean suits the average record, the largest the worst one; which shape needs the least noise depends on the
    worst record (a rare bin of a histogram, an outlier in one column).
    """
    sizes = np.stack([np.ones(units.size), influence.absolute / units, influence.largest / units])
    sizes = np.maximum(sizes, 1e-9 * sizes.max(axis=1, keepdims=True))
    return [task.law(units * np.sqrt(one)) for one in sizes[: 3 if units.size > 1 else 1]]


def plan_by_pairs(task: ReleaseTask) -> NoisePlan:
    """Opposite training sets at random: any algorithm, all records. Some resamples shape the noise, others certify."""
    population, resamples = task.population, task.n_resamples or _RESAMPLES
    chosen = max(4, round(SELECTION * resamples))
    needed = needed_resamples(task.level, task.failure)
    if resamples - chosen < needed:
        raise ReleaseError(
            f"advantage={task.advantage:g} cannot be certified at confidence {1 - task.failure:g} from "
            f"n_resamples={resamples}, even if nothing leaks; use n_resamples of at least "
            f"{int(np.ceil(needed / (1 - SELECTION))) + 4}"
        )
    outputs = task.runner.map(Outputs(task.algorithm, population, population.opposite_pair), resamples)
    values = outputs.reshape(2 * resamples, -1)
    coordinates = Coordinates.of(values[: 2 * chosen], outputs.shape[2:])
    if coordinates.free.size == 0:
        return nothing_varies(task, coordinates, resamples, 2 * resamples)
    pairs = values[:, coordinates.free].reshape(resamples, 2, -1)
    law = task.law_for(pairs[:chosen, 0] - pairs[:chosen, 1])
    distances = law.distance(pairs[:, 0], pairs[:, 1])
    return NoisePlan(
        coordinates,
        law,
        SampledPairs(distances[:chosen], distances[chosen:], task.failure),
        "sampled",
        "opposite training sets; every record at once",
        resamples=resamples,
        runs=2 * resamples,
    ).compared_on(task, pairs[:chosen].reshape(2 * chosen, -1))


def nothing_varies(task: ReleaseTask, coordinates: Coordinates, resamples: int = 0, runs: int = 0) -> NoisePlan:
    """Return the plan that publishes a constant of the data set: it does not depend on who trains."""
    return NoisePlan(
        coordinates,
        None,
        ExactRows(np.zeros((1, 1))),
        "exact",
        "none needed: the algorithm returned the same value on every training set that was tried",
        resamples=resamples,
        runs=runs,
        assumptions=("that value is published as it is, without noise and without running on the training part",),
    ).compared_on(task, np.zeros((1, 0)))
