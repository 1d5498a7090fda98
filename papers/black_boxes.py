"""Coverage: the privacy profile of any black-box sampler, from samples alone (LeBlond et al. §4.1, eqs. 5–6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from deniable._check import FloatArray, InputError, Seed, integer, number, numbers, seeded
from deniable._tails import binomial_limits

NoiseSampler = Callable[[np.random.Generator], ArrayLike]


@dataclass(frozen=True, eq=False)
class Coverage:
    """How often a sampler lands near a model, world by world.

    Attributes
    ----------
    radius
        Cutoff c of the coverage P(‖A(y) − M‖ < c).
    base, neighbours
        Share of the samples within the radius, in the in-world and in each out-world, (n,).
    base_interval, neighbour_intervals
        Clopper–Pearson intervals of those probabilities, (2,) and (n, 2), each at ``confidence``.
    privacy_loss
        log of base over neighbour coverage, (n,): the ex-post loss of the event "near M". Infinite or NaN where
        nothing landed near M.
    privacy_loss_interval
        The range that the intervals leave open, (n, 2), at twice the error probability.
    """

    radius: float
    base: float
    neighbours: FloatArray
    base_interval: FloatArray
    neighbour_intervals: FloatArray
    n_samples: int
    confidence: float

    @property
    def privacy_loss(self) -> FloatArray:
        """log(base/neighbour)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self.base) - np.log(self.neighbours))

    @property
    def privacy_loss_interval(self) -> FloatArray:
        """Lower and upper end for each neighbour."""
        with np.errstate(divide="ignore"):
            base, others = np.log(self.base_interval), np.log(self.neighbour_intervals)
        return np.stack([base[0] - others[:, 1], base[1] - others[:, 0]], axis=1)


def coverage(
    base: NoiseSampler,
    neighbours: Sequence[NoiseSampler],
    model: ArrayLike,
    radius: float,
    *,
    n_samples: int = 1000,
    confidence: float = 0.95,
    rng: Seed = None,
) -> Coverage:
    """Estimate the coverage of ``model`` by a mechanism of unknown density.

    Parameters
    ----------
    base, neighbours
        Functions that train once with the given generator and return the parameters: on all rows, and on each
        neighbouring data set. The generator may be ignored by a mechanism with randomness of its own.
    model
        The released parameters M.
    radius
        Cutoff c above 0. A small one is close to the density ratio, but few samples land within it, so intervals are
        wide.
    n_samples
        Trainings per world.
    """
    point = numbers("model", model).ravel()
    cutoff = number("radius", radius, above=0.0)
    count = integer("n_samples", n_samples, at_least=1)
    level = number("confidence", confidence, above=0.0, below=1.0)
    generators = seeded(rng).spawn(1 + len(neighbours))
    hits = np.array(
        [_hits(sampler, point, cutoff, count, g) for sampler, g in zip([base, *neighbours], generators, strict=True)]
    )
    intervals = np.stack(binomial_limits(hits, count, (1 - level) / 2), axis=-1)
    return Coverage(cutoff, float(hits[0] / count), hits[1:] / count, intervals[0], intervals[1:], count, level)


def _hits(sampler: NoiseSampler, model: FloatArray, radius: float, samples: int, rng: np.random.Generator) -> int:
    found = 0
    for _ in range(samples):
        drawn = numbers("a sample", sampler(rng)).ravel()
        if drawn.shape != model.shape:
            raise InputError(f"model must have the {drawn.size} parameters that the sampler returns, got {model.size}")
        found += bool(np.linalg.norm(drawn - model) < radius)
    return found


def typical_self_coverage(dimension: int, rate: ArrayLike) -> tuple[float | FloatArray, float | FloatArray]:
    """Return E C and E log C of a model's own coverage, C(x, M) = density of M at M ~ A(x), as the radius tends to 0.

    For noise of density ∝ e^{−β‖b‖} in R^d, β = ``rate``, with the constant κ = β^d·Γ(d/2)/(2π^{d/2}·Γ(d)):
    E C = κ/2^d and E log C = log κ − d. In a neighbouring world E log C(y, M) = E log C(x, M) − E l; it has its peak
    where β·d(E l)/dβ = d, since E log C(x, M) rises like d·log β.

    Source: LeBlond et al. §4.4, which calls both solvable in closed form, with the density of erratum E12; the peak is
    what their conclusion reports as an unpublished observation.
    """
    d = integer("dimension", dimension, at_least=1)
    beta = numbers("rate", rate, above=0.0, below=np.inf)
    log_constant = d * np.log(beta) + gammaln(d / 2) - np.log(2) - d / 2 * np.log(np.pi) - gammaln(d)
    mean, log_mean = np.exp(log_constant - d * np.log(2)), log_constant - d
    return (float(mean), float(log_mean)) if np.ndim(beta) == 0 else (np.asarray(mean), np.asarray(log_mean))
