"""The optimal membership attack on a release, computed exactly for small data sets: the oracle for everything else.

Izzo et al., Proposition 2: the best attacker names the more likely of "in" and "out" given the output. For a
deterministic algorithm whose output gets noise of a known density, both likelihoods are averages over the size-k
subsets, and with few records all of them can be written down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb, log
from typing import Any, Protocol, runtime_checkable

import numpy as np

from deniable._check import FloatArray, InputError, Seed, integer, number, seeded
from deniable.releases.resampling import Algorithm, Population, evaluate, stack

_MOST_SUBSETS = 20_000
_WORK = 2e8  # density evaluations after which quadrature stops refining and reports the error that is left
_SHARE, _FEW_CELLS = 1 / 200, 40  # share of the allowed error for one cell; less if there are more cells
_MOST_CENTRES = 512  # most outputs around which cells are laid one by one
_BATCH = 2_000_000  # density evaluations held in memory at once


@runtime_checkable
class NoiseDensity(Protocol):
    """What is needed from the noise: its normalised log density at points of shape (..., d)."""

    def log_density(self, x: FloatArray, /) -> FloatArray:
        """Return the log density at x of shape (..., d)."""
        ...


@dataclass(frozen=True, eq=False)
class ExactMembership:
    """What the optimal attacker gains over guessing, record by record.

    Attributes
    ----------
    advantage
        2·(Bayes accuracy − max(prior, 1 − prior)) of each record, shape (n,): twice what Izzo et al. call η.
    prior
        k/n, the chance of each record to be in the training set.
    error
        How far an entry of ``advantage`` may be from the truth. For ``"counting"`` rounding only; for quadrature the
        sum of the changes at the last refinement and all probability mass not covered, a generous estimate; for Monte
        Carlo a bound for all records at once that holds with probability ``confidence``.
    method
        ``"counting"``, ``"adaptive quadrature"`` or ``"Monte Carlo"``; the last is an estimate, not exact.
    confidence
        1, or that of the Monte Carlo interval.
    """

    advantage: FloatArray
    prior: float
    error: float
    method: str
    confidence: float = 1.0

    @property
    def worst(self) -> float:
        """The largest advantage over the records: no valid certificate is below it."""
        return float(self.advantage.max())


def exact_membership(
    algorithm: Callable[[Any], Any],
    data: Any,
    noise: Any = None,
    k: int | None = None,
    *,
    tolerance: float = 1e-8,
    n_samples: int = 50_000,
    confidence: float = 0.99,
    rng: Seed = None,
) -> ExactMembership:
    """Compute the exact advantage of the best attack on ``algorithm(subset) + noise``, the subset uniform of size k.

    Parameters
    ----------
    algorithm
        A deterministic function of a subset of ``data`` (same type, order of the data) to a number or array.
    data
        Array, DataFrame, list, or a tuple of those with equal lengths: at most about 16 records, as all C(n, k)
        subsets are run (twice, to find hidden randomness).
    noise
        An object with ``log_density(x)`` for x of shape (..., d), such as the laws of ``deniable.noise``, or a frozen
        distribution of ``scipy.stats``; None releases the output as it is.
    k
        Size of the training set; half of the records unless given.
    tolerance
        Quadrature refines until its error is about this, for d = 1.
    n_samples, confidence, rng
        For outputs of more than one dimension: Monte Carlo draws (the noise then needs ``sample(size, rng)``), the
        confidence of the interval, and the generator.

    Raises
    ------
    InputError
        If there are too many subsets, the algorithm is random, or the density does not integrate to 1.
    """
    n = len(data[0] if isinstance(data, tuple) else data)
    size = n // 2 if k is None else integer("k", k, at_least=1)
    if not 1 <= size <= n - 1:
        raise InputError(f"k must be between 1 and {n - 1}, got {size}; otherwise membership is no secret")
    if comb(n, size) > _MOST_SUBSETS:
        raise InputError(
            f"data must have at most {_MOST_SUBSETS:,} subsets of size {size}, got {comb(n, size):,}; "
            "the exact computation enumerates them all: use fewer records"
        )
    number("tolerance", tolerance, above=0.0)
    found = _every_output(algorithm, Population(data, n, size))
    if found is None:
        raise InputError("algorithm must be deterministic, but two runs on one subset differ; fix its seed")
    sets, outputs = found
    values = outputs.reshape(len(sets), -1)
    member = np.zeros((n, len(sets)), dtype=bool)
    for column, subset in enumerate(sets):
        member[list(subset), column] = True
    game = _Game(values, np.where(member, 1.0, -1.0) / len(sets), size / n)
    if noise is None:
        return game.counted()
    density = _density(noise)
    if getattr(noise, "dimension", game.dimension) != game.dimension:
        raise InputError(f"noise must have as many dimensions as the output, {game.dimension}, got {noise.dimension}")
    if game.dimension == 1:
        return game.integrated(density, tolerance)
    return game.sampled(noise, density, integer("n_samples", n_samples, at_least=1), confidence, rng)


def _every_output(algorithm: Algorithm, population: Population) -> tuple[list[tuple[int, ...]], FloatArray] | None:
    """Return all training sets and their outputs, or None if the algorithm is not a function of its data.

    Each set is run twice; one differing bit means that the algorithm draws randomness of its own.
    """
    sets = list(combinations(range(population.n_records), population.n_train))
    first, again = (
        stack([evaluate(algorithm, population, np.array(s), f"on records {s}") for s in sets]) for _ in range(2)
    )
    return (sets, first) if np.array_equal(first, again) else None


@dataclass(frozen=True, eq=False)
class _Game:
    """All outputs θ_S (subsets, d), their signed weights (records, subsets): ±1/C(n, k) for in and out, and k/n.

    With g = Σ_S ±f(x − θ_S)/C(n, k), the difference of the joint densities, the Bayes accuracy is ½ + ½∫|g|.
    """

    values: FloatArray
    signs: FloatArray
    prior: float

    @property
    def dimension(self) -> int:
        return int(self.values.shape[1])

    def result(self, variation: FloatArray, error: float, method: str, confidence: float = 1.0) -> ExactMembership:
        """Turn ∫|g| and its error into the answer."""
        guess = max(self.prior, 1 - self.prior)
        advantage = np.maximum(1 + variation - 2 * guess, 0.0)
        return ExactMembership(advantage, self.prior, error, method, confidence)

    def counted(self) -> ExactMembership:
        """No noise: count, for every distinct output, the subsets with and without the record."""
        _, group = np.unique(self.values, axis=0, return_inverse=True)
        balance = np.zeros((group.max() + 1, len(self.signs)))
        np.add.at(balance, group.ravel(), np.sign(self.signs.T))  # whole numbers: nothing is rounded
        return self.result(np.abs(balance).sum(axis=0) / len(self.values), 4e-16, "counting")

    def densities(self, density: Callable[[FloatArray], FloatArray], x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return g of every record (records, points) and the output's density (points,) at x (points, d)."""
        weights = np.vstack([self.signs, np.full(len(self.values), 1 / len(self.values))])
        out = np.empty((len(weights), len(x)))
        step = max(_BATCH // len(self.values), 1)
        for start in range(0, len(x), step):
            part = x[start : start + step]
            out[:, start : start + step] = weights @ np.exp(density(part[None, :, :] - self.values[:, None, :]))
        return out[:-1], out[-1]

    def integrated(self, density: Callable[[FloatArray], FloatArray], tolerance: float) -> ExactMembership:
        """Adaptive Gauss–Legendre quadrature of |g|, halving the cells where one rule and two half rules differ."""
        nodes, weights = np.polynomial.legendre.leggauss(8)

        def rule(low: FloatArray, high: FloatArray) -> FloatArray:
            """∫|g| for every record and ∫p in the last row, over each cell."""
            half = (high - low) / 2
            x = low[:, None] + half[:, None] * (nodes + 1)
            g, p = self.densities(density, x.reshape(-1, 1))
            parts = np.vstack([np.abs(g), p]).reshape(-1, len(low), len(nodes))
            return np.asarray(parts @ weights * half)

        edges = self._edges(float(np.exp(density(np.zeros((1, 1)))[0])))
        low, high = edges[:-1], edges[1:]
        total, error, work = np.zeros(len(self.signs) + 1), 0.0, 0.0
        coarse = rule(low, high)
        while low.size:
            middle = (low + high) / 2
            left, right = rule(low, middle), rule(middle, high)
            work += 2 * low.size * len(nodes) * len(self.values)
            change = np.max(np.abs(left + right - coarse), axis=0)
            # a kink moves the sum by a quarter as much at each halving: the changes bound what is still to come
            done = (
                (change <= tolerance * _SHARE * np.minimum(1.0, _FEW_CELLS / low.size))
                | (middle <= low)
                | (middle >= high)
            )
            done |= work > _WORK
            total += (left + right)[:, done].sum(axis=1)
            error += float(change[done].sum())
            low, middle, high, split = low[~done], middle[~done], high[~done], ~done
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            coarse = np.concatenate([left[:, split], right[:, split]], axis=1)
        missing = _missing(total[-1])
        return self.result(total[:-1], error + missing + 1e-14, "adaptive quadrature")

    def _edges(self, peak: float) -> FloatArray:
        """Cell edges: the outputs (all, or as many quantiles), steps of the noise's width around them, far tails."""
        if not 0 < peak < np.inf:
            raise InputError(f"noise must have a finite positive density at 0, got {peak:g}")
        width = 1 / peak  # about the width of any single-peaked density
        centres = np.unique(self.values)
        if centres.size > _MOST_CENTRES:
            centres = np.quantile(centres, np.linspace(0, 1, _MOST_CENTRES + 1))
        around = (centres[:, None] + width * np.array([-4.0, -1.0, -0.25, 0.0, 0.25, 1.0, 4.0])).ravel()
        far = width * 4.0 * 2.0 ** np.arange(1, 40)
        return np.unique(np.concatenate([around, centres[0] - far, centres[-1] + far]))

    def sampled(
        self,
        noise: Any,
        density: Callable[[FloatArray], FloatArray],
        n_samples: int,
        confidence: float,
        rng: Seed,
    ) -> ExactMembership:
        """Average |P(in | x) − P(out | x)| over draws x of the release, with Hoeffding's inequality for all records."""
        if not callable(getattr(noise, "sample", None)):
            raise InputError(f"noise must have sample(size, rng) for outputs of {self.dimension} dimensions; add it")
        beta = 1 - number("confidence", confidence, above=0.0, below=1.0)
        generator = seeded(rng)
        which = generator.integers(len(self.values), size=n_samples)
        x = self.values[which] + np.asarray(noise.sample(n_samples, generator)).reshape(n_samples, -1)
        total = np.zeros(len(self.signs))
        step = max(_BATCH // self.values.size, 1)
        for start in range(0, n_samples, step):
            part = x[start : start + step]
            log_f = density(part[None, :, :] - self.values[:, None, :])
            f = np.exp(log_f - log_f.max(axis=0))  # far out, every density underflows in many dimensions
            total += np.sum(np.abs(self.signs @ f) * len(self.values) / f.sum(axis=0), axis=1)
        spread = np.sqrt(log(2 * len(self.signs) / beta) / (2 * n_samples))
        return self.result(total / n_samples, spread, "Monte Carlo", confidence)


def _density(noise: Any) -> Callable[[FloatArray], FloatArray]:
    """The log density of the noise as a function of points (..., d)."""
    if isinstance(noise, NoiseDensity):
        return noise.log_density
    if callable(getattr(noise, "logpdf", None)):
        # scipy drops axes of length one
        return lambda x: np.reshape(noise.logpdf(x[..., 0] if x.shape[-1] == 1 else x), x.shape[:-1])
    raise InputError(
        f"noise must have log_density(x), as the laws of deniable.noise, or be a frozen distribution of scipy.stats, "
        f"got {noise!r}"
    )


def _missing(mass: float) -> float:
    """Probability mass that the quadrature missed; all of it might be distinguishable."""
    missing = abs(1.0 - float(mass))
    if missing > 1e-2:
        raise InputError(
            f"noise must have a density that integrates to 1, got {float(mass):.6g}; normalise log_density"
        )
    return missing
