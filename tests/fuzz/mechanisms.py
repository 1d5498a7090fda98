"""Random mechanisms over the whole range that the library claims to serve, phase by phase."""

import math

import numpy as np

import deniable as dn

SMALLEST_NOISE, LARGEST_NOISE = 0.02, 1000.0
SMALLEST_RATE = 1e-8
MOST_STEPS = 10**7
MOST_PHASES = 50


def many_parts(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    """Phases, sometimes beside other parts.

    Half of the runs are log-uniform over the range, most of which leak all or nothing; the other half are aimed at a
    leak between 1e-3 and 5 standard deviations of the loss, where brackets are hard and answers are interesting.
    """
    kind = rng.random()
    count = 1 if kind < 0.55 else int(rng.integers(2, 6)) if kind < 0.85 else int(rng.integers(6, MOST_PHASES + 1))
    if kind > 0.98:
        count = 0  # nothing but (ε, δ)-DP and Gaussian parts
    parts = [random_phase(rng, count) for _ in range(count)]
    if count == 0 or rng.random() < 0.2:
        parts.append(dn.GaussianDP(spread(rng, 1e-3, 4.0)))
    if count == 0 or rng.random() < 0.15:
        parts += [dn.PureDP(spread(rng, 1e-3, 4.0)) for _ in range(int(rng.integers(1, 5)))]
    if rng.random() < 0.1:
        parts.append(dn.ApproximateDP(spread(rng, 1e-3, 3.0), spread(rng, 1e-12, 0.1)))
    return composed(parts, rng)


def composed(parts: list[dn.mechanisms.Mechanism], rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    """The parts in a random order."""
    order = rng.permutation(len(parts))
    return parts[0] if len(parts) == 1 else dn.Composition([parts[k] for k in order])


def random_phase(rng: np.random.Generator, count: int) -> dn.SubsampledGaussian:
    """One of ``count`` phases that together leak at random, or between 1e-3 and 5 standard deviations of the loss."""
    aimed = rng.random() < 0.5
    for _ in range(50):
        noise = spread(rng, SMALLEST_NOISE, LARGEST_NOISE)
        rate = 1.0 if rng.random() < 0.04 else spread(rng, SMALLEST_RATE, 1.0)
        few = rng.random() < 0.15
        if not aimed:
            return dn.SubsampledGaussian(noise, rate, int(rng.integers(1, 8)) if few else count_of(rng, MOST_STEPS))
        leak = spread(rng, 1e-3, 5.0)
        one = rate * math.sqrt(min(math.expm1(min(noise**-2, 600.0)), 1e4 / rate))  # √(χ² of a step), jumps held back
        steps = (leak / one) ** 2 / count
        if 1 <= steps <= MOST_STEPS:
            return dn.SubsampledGaussian(noise, rate, round(steps))
    return dn.SubsampledGaussian(noise, rate, 1)


def spread(rng: np.random.Generator, low: float, high: float) -> float:
    """Log-uniform, rounded to four digits so that a mechanism can be typed in again."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.4g}")


def count_of(rng: np.random.Generator, most: int) -> int:
    """Log-uniform from 1."""
    return round(math.exp(rng.uniform(0.0, math.log(most))))


def shown(mechanism: dn.mechanisms.Mechanism) -> str:
    """The mechanism as Python that makes it again after ``from deniable import *``-like imports as ``dn``."""
    if isinstance(mechanism, dn.Composition):
        return f"dn.Composition([{', '.join(shown(part) for part in mechanism.mechanisms)}])"
    values = ", ".join(repr(value) for value in vars(mechanism).values())
    name = type(mechanism).__name__
    return f"dn.{'' if name in dn.__all__ else 'mechanisms.'}{name}({values})"
