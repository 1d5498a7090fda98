"""Likelihood-ratio attacks on mechanisms whose law is known: by Neyman and Pearson, nothing does better.

Each function simulates releases in both worlds and returns the log-likelihood ratio of "in" over "out" for each. The
laws are written here from their definitions, not taken from the code that promises the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from math import comb
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from deniable._check import FloatArray, InputError, Seed, choice, integer, number, numbers, seeded
from deniable.audit import AttackScores, log_mixture
from deniable.mechanisms import Mechanism, SubsampledGaussian
from deniable.mechanisms.core import parts_of

Noise = Literal["norm-laplace", "gaussian"]

_CHUNK = 1 << 21  # numbers drawn at a time


def log_density(difference: FloatArray, noise: Noise, scale: float) -> FloatArray:
    """Return the log density of noise in R^d at ``difference`` (last axis: coordinates).

    "norm-laplace" is proportional to exp(−‖x‖/scale), so its radius is Gamma(d, scale) (errata E3 and E12: a
    Laplace-distributed radius is another law for d > 1). "gaussian" is N(0, scale²·I).
    """
    d = difference.shape[-1]
    if noise == "gaussian":
        squared = np.sum(difference**2, axis=-1)
        return np.asarray(-squared / (2 * scale**2) - d * np.log(scale * np.sqrt(2 * np.pi)))
    sphere = np.log(2) + d / 2 * np.log(np.pi) - gammaln(d / 2)  # area of the unit sphere
    return np.asarray(-np.linalg.norm(difference, axis=-1) / scale - sphere - gammaln(d) - d * np.log(scale))


def sample_noise(shape: tuple[int, ...], noise: Noise, scale: float, rng: np.random.Generator) -> FloatArray:
    """Draw noise of :func:`log_density`, coordinates last; for simulation only, never for release."""
    direction = rng.standard_normal(shape)
    if noise == "gaussian":
        return scale * direction
    radius = rng.gamma(shape[-1], scale, size=(*shape[:-1], 1))
    return cast(FloatArray, radius * direction / np.linalg.norm(direction, axis=-1, keepdims=True))


def attack_transcript(mechanism: Mechanism, *, n: int = 10_000, rng: Seed = None) -> AttackScores:
    """Attack DP-SGD when every noisy gradient is seen, with the likelihood ratio of the whole transcript.

    A step releases N(0, σ²) without the record and (1−q)·N(0, σ²) + q·N(1, σ²) with it (Mahloujifar et al.,
    Theorem 6); steps are independent, so their log ratios log(1 − q + q·e^{(2x−1)/(2σ²)}) add up.
    """
    phases = parts_of(mechanism)
    n = integer("n", n, at_least=1)
    generator = seeded(rng)
    member, nonmember = np.zeros(n), np.zeros(n)
    for phase in phases:
        if not isinstance(phase, SubsampledGaussian) or phase.records_per_person != 1:
            raise InputError(f"mechanism must consist of SubsampledGaussian phases of one record, got {phase!r}")
        sigma, q = phase.noise_multiplier, phase.sample_rate
        for steps in _blocks(phase.steps, max(1, _CHUNK // n)):
            x = sigma * generator.standard_normal((n, steps))
            nonmember += log_mixture(x, sigma, q)
            x = sigma * generator.standard_normal((n, steps)) + (generator.random((n, steps)) < q)
            member += log_mixture(x, sigma, q)
    return AttackScores(
        member, nonmember, "likelihood ratio of the whole transcript", repr(mechanism), {"exact_ratio": True}
    )


def ratio_advantage(scores: AttackScores) -> tuple[float, float]:
    """Estimate the likelihood-ratio attack's advantage and its standard error, far more precisely than by counting.

    For scores that *are* log-likelihood ratios L of the two simulated worlds: those of this module (but for sampled
    mixtures) and of ``play_game("OIG", "LR", ...)``. The attack that accuses above 0 has TPR − FPR =
    E_in(1 − e^{−L})₊ = E_out(1 − e^{L})₊: each world also tells the rates of the other (importance sampling), and the
    two bounded averages replace counts. Where little leaks, this saves a factor of about 1/advantage² in simulations.
    """
    if not scores.details.get("exact_ratio"):
        raise InputError(
            f"scores must be exact log-likelihood ratios of simulated worlds, got those of {scores.method!r}"
        )
    sides = [np.maximum(-np.expm1(-signed), 0.0) for signed in (scores.member_scores, -scores.nonmember_scores)]
    variance = sum(float(side.var()) / len(side) for side in sides) / 4
    return float(np.mean([side.mean() for side in sides])), float(np.sqrt(variance))


def attack_random_subset(
    algorithm: Callable[[FloatArray], ArrayLike],
    data: ArrayLike,
    record: int,
    noise: Noise,
    scale: float,
    *,
    size: int | None = None,
    n: int = 2_000,
    n_subsets: int = 2_000,
    rng: Seed = None,
) -> AttackScores:
    """Attack a release trained on a random subset of known data: Izzo's optimal adversary (Proposition 2).

    The attacker knows ``data``, ``algorithm`` and the noise, but not which ``size`` records were drawn; it compares
    the two mixtures of released laws, over the subsets with and without the record. Where there are at most
    ``n_subsets`` of each they are enumerated and the attack is optimal; otherwise each mixture is approximated by
    ``n_subsets`` subsets that the simulated releases do not share: a valid attack, but perhaps not the best.

    Parameters
    ----------
    algorithm
        Deterministic function from the rows of a subset, shape (size, ...), to parameters. For noise with another
        standard deviation in each coordinate, let it divide the parameters by these and use ``scale=1``.
    data, record
        All records and the index of the attacked one.
    size
        Records in the training subset; half of all by default.
    n
        Releases simulated in each world.
    """
    rows = numbers("data", data)
    total = len(rows)
    record = integer("record", record, at_least=0)
    size = total // 2 if size is None else integer("size", size, at_least=1)
    if not (record < total and size < total):
        raise InputError(f"record and size must be below the number of records, {total}, got {record} and {size}")
    law, scale, n = _noise(noise), number("scale", scale, above=0.0), integer("n", n, at_least=1)
    generator = seeded(rng)

    def values(member: bool, count: int) -> FloatArray:
        chosen = _subsets(total, record, size, member, count, generator)
        return np.array([np.ravel(np.asarray(algorithm(rows[c]), dtype=np.float64)) for c in chosen])

    known = {member: values(member, n_subsets) for member in (True, False)}
    exact = {member: len(known[member]) == _count(total, size, member) for member in (True, False)}

    def scores(member: bool) -> FloatArray:
        centres = known[member] if exact[member] else values(member, n)
        released = centres[generator.integers(len(centres), size=n)]
        released = released + sample_noise(released.shape, law, scale, generator)
        return _log_average(released, known[True], law, scale) - _log_average(released, known[False], law, scale)

    return AttackScores(
        scores(True),
        scores(False),
        "optimal adversary" if all(exact.values()) else "likelihood ratio of sampled mixtures",
        f"release with {law} noise of scale {scale:g}, trained on {size} of {total} records",
        {"record": record, "subsets": (len(known[True]), len(known[False])), "exact_ratio": all(exact.values())},
    )


def _noise(noise: str) -> Noise:
    return cast(Noise, choice("noise", noise, ("norm-laplace", "gaussian")))


def _blocks(total: int, size: int) -> Iterable[int]:
    return [min(size, total - start) for start in range(0, total, size)]


def _count(total: int, size: int, member: bool) -> int:
    return comb(total - 1, size - 1 if member else size)


def _subsets(total: int, record: int, size: int, member: bool, count: int, rng: np.random.Generator) -> list[list[int]]:
    """Return every subset of ``size`` records with (without) ``record``, or ``count`` random ones if there are more."""
    others = [i for i in range(total) if i != record]
    start = [record] if member else []
    pick = size - len(start)
    if _count(total, size, member) <= count:
        return [start + list(rest) for rest in combinations(others, pick)]
    return [start + list(rng.choice(others, size=pick, replace=False)) for _ in range(count)]


def _log_average(released: FloatArray, centres: FloatArray, noise: Noise, scale: float) -> FloatArray:
    """Log density of each release under the mixture of the noise around every centre."""
    rows = max(1, _CHUNK // centres.size)
    parts = [
        logsumexp(log_density(block[:, None, :] - centres, noise, scale), axis=1)
        for block in (released[i : i + rows] for i in range(0, len(released), rows))
    ]
    return cast(FloatArray, np.concatenate(parts) - np.log(len(centres)))
