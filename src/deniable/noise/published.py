"""The plan behind ``noise="published"``: the paper's own scale and sampler, to reproduce it."""

from __future__ import annotations

import numpy as np

from deniable.noise.coordinates import Coordinates
from deniable.noise.evidence import SampledRows
from deniable.noise.laws import PublishedNoise
from deniable.noise.plans import CouplingGame, NoisePlan, nothing_varies
from deniable.noise.resampling import Algorithm, Outputs, Runner


def plan_as_published(
    algorithm: Algorithm, runner: Runner, game: CouplingGame, resamples: int, moment: float, reproduce: bool
) -> NoisePlan:
    """Izzo Corollary 10 as printed, at scale 1, with σᵢ = (E|θᵢ − Eθᵢ|^M)^{1/M} over training sets.

    The spread comes from training sets drawn from the whole data set: Algorithm 1 takes it from halves of the
    training set, which leaks, and measures another law (erratum E5).
    """
    PublishedNoise(1.0, np.ones(1), moment, reproduce)  # refuses before anything runs
    outputs = runner.map(Outputs(algorithm, game.population, game.population.opposite_pair), resamples)
    values = outputs.reshape(2 * resamples, -1)
    coordinates = Coordinates.of(values, outputs.shape[2:])
    if coordinates.free.size == 0:
        return nothing_varies(coordinates, resamples, 2 * resamples)
    pairs = values[:, coordinates.free].reshape(resamples, 2, -1)
    deviations = np.abs(pairs - pairs.mean(axis=(0, 1)))
    largest = deviations.max(axis=(0, 1))
    spread = largest * np.mean((deviations / largest) ** moment, axis=(0, 1)) ** (1 / moment)
    law = PublishedNoise(1.0, spread, moment, reproduce)
    distances = law.distance(pairs[:, 0], pairs[:, 1])[:, None, None]
    if law.dimension == 1:
        note = "the published sampler holds for d = 1 only, which this is, and if σ (here estimated) is an upper bound"
    else:
        note = f"the published sampler holds for d = 1 only; here d = {law.dimension}, so nothing at all is certified"
    return NoisePlan(
        coordinates,
        law,
        SampledRows(distances, distances, 1 - game.confidence),
        "published",
        "Izzo et al., Corollary 10 as printed",
        resamples=resamples,
        runs=2 * resamples,
        assumptions=(note,),
    )
