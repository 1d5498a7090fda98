"""Random mechanisms that take a tenth of a second each, most of them aimed at the youngest engines."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import deniable as dn
from fuzz.laws import KINDS, random_law
from fuzz.mechanisms import random_mechanism, spread

BALL_SHARE = 0.01
_STREAMS = {"broad": 19, "lean": 29}  # of random numbers, a kind of drawing each
_FEW = 40  # steps of laws that are slow


def broad_mechanism(seed: int) -> dn.mechanisms.Mechanism:
    """A mechanism that depends on ``seed`` only; see the table for how many are aimed at what."""
    rng = np.random.default_rng([seed, 19])
    kind = rng.random()
    if kind < BALL_SHARE:
        return proven(rng)
    if kind < 0.15:
        return random_mechanism(seed)
    if kind < 0.2:
        return random_law(seed)
    shares = np.cumsum([share for share, _ in _AIMED])
    return _AIMED[int(np.searchsorted(shares, rng.random() * shares[-1]))][1](rng)


def is_proven(seed: int, laws: str) -> bool:
    """Whether the mechanism of ``seed`` is one of the hundredth that ball arithmetic serves in a second or two."""
    return np.random.default_rng([seed, _STREAMS[laws]]).random() < BALL_SHARE


def proven(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    kind = rng.random()
    if kind < 0.4:
        rate = 1 - spread(rng, 1e-15, 0.5) if rng.random() < 0.2 else spread(rng, 1e-8, 1.0)
        return dn.SubsampledGaussian(spread(rng, 0.02, 100), rate, 1)
    if kind < 0.6:
        return dn.SubsampledGaussian(spread(rng, 1.0, 100), spread(rng, 1e-3, 1.0), int(rng.integers(20, 200)))
    parts: list[dn.mechanisms.Mechanism] = [dn.PureDP(spread(rng, 1e-3, 4.0)) for _ in range(int(rng.integers(1, 4)))]
    if kind < 0.8:
        parts.append(dn.GaussianDP(spread(rng, 0.05, 4.0)))
    if rng.random() < 0.3:
        parts.append(dn.ApproximateDP(spread(rng, 1e-3, 3.0), spread(rng, 1e-12, 0.1)))
    return composed(parts, rng)


def _sharp(rng: np.random.Generator, most_taken: float, noisiest: float = 0.3) -> dn.SubsampledGaussian:
    """Steps of little noise that hardly ever take the record."""
    rate = spread(rng, 1e-10, 1e-2)
    most = max(min(most_taken / rate, 1e5), 1.0)
    steps = 1 if rng.random() < 0.2 else round(math.exp(rng.uniform(0.0, math.log(most))))
    return dn.SubsampledGaussian(spread(rng, 0.02, noisiest), rate, max(steps, 1))


def steps_alone(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    count = 1 if rng.random() < 0.6 else int(rng.integers(2, 4))
    parts: list[dn.mechanisms.Mechanism] = [_sharp(rng, 0.2, 0.2) for _ in range(count)]
    if rng.random() < 0.2:
        parts += [dn.PureDP(spread(rng, 1e-3, 4.0)) for _ in range(int(rng.integers(1, 3)))]
    return composed(parts, rng)


def beside_steps(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    parts: list[dn.mechanisms.Mechanism] = [_sharp(rng, 0.3) for _ in range(1 + (rng.random() < 0.3))]
    if rng.random() < 0.3:
        parts.append(dn.GaussianDP(spread(rng, 1e-3, 3.0)))
    else:
        parts.append(_bulk(rng, 64))
    if rng.random() < 0.15:
        parts.append(dn.PureDP(spread(rng, 1e-3, 4.0)))
    return composed(parts, rng)


def _bulk(rng: np.random.Generator, least: int) -> dn.SubsampledGaussian:
    """Steps whose loss has a spread of 0.001 to 4."""
    noise = spread(rng, 0.4, 20)
    steps = round(math.exp(rng.uniform(math.log(least), math.log(1e5))))
    wanted = spread(rng, 1e-3, 4.0) / math.sqrt(steps * math.expm1(min(noise**-2, 30.0)))
    return dn.SubsampledGaussian(noise, float(f"{min(max(wanted, 1e-8), 1.0):.4g}"), steps)


def beside_finite(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    parts: list[dn.mechanisms.Mechanism] = [
        dn.PureDP(spread(rng, 1e-3, 6.0))
        if rng.random() < 0.7
        else dn.ApproximateDP(spread(rng, 1e-3, 3.0), spread(rng, 1e-12, 0.1))
        for _ in range(int(rng.integers(1, 7)))
    ]
    kind = rng.random()
    if kind < 0.35:
        parts.append(dn.GaussianDP(spread(rng, 1e-3, 4.0)))
    elif kind < 0.7:
        parts.append(_bulk(rng, 1))
    elif kind < 0.85:
        parts.append(_sharp(rng, 0.2))
    return composed(parts, rng)


def few_steps(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    steps = int(rng.integers(2, 9)) if rng.random() < 0.7 else int(rng.integers(9, 65))
    return dn.SubsampledGaussian(spread(rng, 0.3, 100), spread(rng, 1e-6, 1.0), steps)


def _laws(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    """Laws with atoms, persons, allocation and cut batches, few steps of each, sometimes beside others."""
    part = KINDS[int(rng.integers(len(KINDS)))](rng, _FEW)
    if part.adjacency != "add-remove" or rng.random() < 0.7:
        return part
    beside = (dn.GaussianDP(spread(rng, 1e-2, 2.0)), dn.PureDP(spread(rng, 1e-2, 2.0)), _sharp(rng, 0.1))
    return composed([part, beside[int(rng.integers(3))]], rng)


def composed(parts: list[dn.mechanisms.Mechanism], rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    order = rng.permutation(len(parts))
    return parts[0] if len(parts) == 1 else dn.Composition([parts[k] for k in order])


_AIMED: tuple[tuple[float, Callable[[np.random.Generator], dn.mechanisms.Mechanism]], ...] = (
    (0.25, steps_alone),
    (0.25, beside_steps),
    (0.16, beside_finite),
    (0.12, few_steps),
    (0.14, _laws),
)
