"""Attacks whose power has a closed form, in 60-digit arithmetic, and a bound that no attack passes.

Nothing here imports numerics of the library: a mechanism is read as its parts.

An attack is a point (FPR, TPR): the probabilities of one event under "out" and under "in". Steps are in units of their
noise: N(0, 1) out, (1 − q)·N(0, 1) + q·N(1/σ, 1) in.
"""

from dataclasses import dataclass

import mpmath as mp
import numpy as np

import deniable as dn
from fuzz.laws import is_newer, parts_of, random_attack

DIGITS = 60
SMALLEST = 1e-35  # complements and differences of probabilities below this have lost digits
_MOST_LEVELS = 400  # of a binomial law


@dataclass(frozen=True)
class Attack:
    """False and true positive rate of a named event."""

    name: str
    fpr: mp.mpf
    tpr: mp.mpf


def attacks(mechanism: dn.mechanisms.Mechanism, rng: np.random.Generator, count: int) -> list[Attack]:
    """Events of several kinds at random thresholds; every one is a lower bound on what the best attack reaches."""
    parts = parts_of(mechanism)
    steps = [part for part in parts if isinstance(part, dn.SubsampledGaussian)]
    found: list[Attack] = []
    if is_newer(mechanism):
        with mp.workdps(DIGITS):
            known = [random_attack(parts, rng) for _ in range(count)]
            return [Attack(name, *event) for name, event in filter(None, known)]
    with mp.workdps(DIGITS):
        for _ in range(count):
            kind = rng.random()
            if steps and kind < 0.4:
                found.append(_largest(steps, _place(rng), "a step's likelihood ratio is large"))
            elif steps and kind < 0.55:
                one = [steps[int(rng.integers(len(steps)))]]
                found.append(_largest(one, _place(rng), "a step of one phase"))
            elif steps and kind < 0.65:
                point = _one_or_two(steps[int(rng.integers(len(steps)))], rng)
                found += [point] if point.fpr > SMALLEST else []
            elif steps and kind < 0.8:
                one = steps[int(rng.integers(len(steps)))]
                point = _sum(one, float(rng.uniform(-3, 9)))
                found += [point] if point else []
            else:
                found += _others(parts, rng)
        # two independent events: accuse if either happens, or only if both do
        if len(found) > 1 and len(parts) > 1:
            found += _both(steps, parts, rng)
    return found


def _place(rng: np.random.Generator) -> float:
    """A threshold in units of the noise, mostly where FPR is above 1e-20."""
    return float(rng.uniform(-2, 9.5) if rng.random() < 0.8 else rng.uniform(9.5, 40))


def _largest(steps: list[dn.SubsampledGaussian], place: float, name: str) -> Attack:
    """Some step passes its threshold; thresholds of different phases belong to one likelihood ratio."""
    ratio = None
    log_fpr, log_tpr = mp.mpf(0), mp.mpf(0)
    for step in steps:
        shift, rate, count = 1 / mp.mpf(step.noise_multiplier), mp.mpf(step.sample_rate), step.steps
        if ratio is None:  # the first phase's threshold sets the ratio
            u = mp.mpf(place)
            ratio = rate * mp.expm1(u * shift - shift**2 / 2)
        else:
            if 1 + ratio / rate <= 0:
                continue  # every outcome of this phase is below the ratio: leave it out
            u = (mp.log1p(ratio / rate) + shift**2 / 2) / shift
        out, hit = mp.ncdf(-u), mp.ncdf(shift - u)
        log_fpr += count * mp.log1p(-out)
        log_tpr += count * mp.log1p(-((1 - rate) * out + rate * hit))
    return Attack(name, -mp.expm1(log_fpr), -mp.expm1(log_tpr))


def _one_or_two(step: dn.SubsampledGaussian, rng: np.random.Generator) -> Attack:
    """One outcome of a phase is very large, or two are large."""
    shift, rate, n = 1 / mp.mpf(step.noise_multiplier), mp.mpf(step.sample_rate), step.steps
    lower = mp.mpf(float(rng.uniform(0.2, 1.0))) * shift + mp.mpf(float(rng.uniform(-2, 2)))
    upper = lower + mp.mpf(float(rng.uniform(0.0, 4.0)))
    neither = []
    for hit in (mp.mpf(0), rate):
        below, near = ((1 - hit) * mp.ncdf(u) + hit * mp.ncdf(u - shift) for u in (lower, upper))
        neither.append(below**n + n * (near - below) * below ** (n - 1))
    return Attack("one outcome is very large or two are large", 1 - neither[0], 1 - neither[1])


def _sum(step: dn.SubsampledGaussian, place: float) -> Attack | None:
    """The sum of a phase's outcomes passes a threshold: N(0, T) out, N(k/σ, T) in with k ~ Bin(T, q)."""
    levels, weights = _binomial(step)
    if levels is None:
        return None
    root = mp.sqrt(step.steps)
    shift = 1 / (mp.mpf(step.noise_multiplier) * root)
    tpr = mp.fsum(weight * mp.ncdf(level * shift - place) for level, weight in zip(levels, weights, strict=True))
    return Attack("the sum of a phase is large", mp.ncdf(-mp.mpf(place)), tpr)


def _binomial(step: dn.SubsampledGaussian) -> tuple[list[int] | None, list[mp.mpf]]:
    """Numbers of steps with the record and their probabilities; what is left out lowers the power of an attack."""
    n, q = step.steps, mp.mpf(step.sample_rate)
    if q == 1:
        return [n], [mp.mpf(1)]
    centre, spread = n * step.sample_rate, (n * step.sample_rate * (1 - step.sample_rate)) ** 0.5
    low, high = max(0, int(centre - 12 * spread - 10)), min(n, int(centre + 12 * spread + 30))
    if high - low > _MOST_LEVELS:
        return None, []
    levels = list(range(low, high + 1))
    weight = mp.exp(
        mp.loggamma(n + 1)
        - mp.loggamma(low + 1)
        - mp.loggamma(n - low + 1)
        + low * mp.log(q)
        + (n - low) * mp.log1p(-q)
    )
    weights = []
    for level in levels:
        weights.append(weight)
        weight *= mp.mpf(n - level) / (level + 1) * q / (1 - q)
    return levels, weights


def _others(parts: tuple[dn.mechanisms.Mechanism, ...], rng: np.random.Generator) -> list[Attack]:
    found = []
    for part in parts:
        if isinstance(part, dn.GaussianDP):
            place = mp.mpf(float(rng.uniform(-3, 9)))
            found.append(Attack("the Gaussian part alone", mp.ncdf(-place), mp.ncdf(part.mu - place)))
        elif isinstance(part, dn.PureDP | dn.ApproximateDP):
            delta = mp.mpf(getattr(part, "delta", 0.0))
            heads = 1 / (1 + mp.exp(-mp.mpf(part.epsilon)))
            if delta > 0:
                found.append(Attack("the failure alone", mp.mpf(0), delta))
            found.append(Attack("randomised response alone", (1 - delta) * (1 - heads), delta + (1 - delta) * heads))
    return found


def _both(
    steps: list[dn.SubsampledGaussian], parts: tuple[dn.mechanisms.Mechanism, ...], rng: np.random.Generator
) -> list[Attack]:
    first = _largest(steps, float(rng.uniform(0, 12)), "") if steps else None
    found = []
    for other in _others(parts, rng):
        if first is not None:
            found.append(Attack(f"both: {other.name}", first.fpr * other.fpr, first.tpr * other.tpr))
            neither = (1 - first.fpr) * (1 - other.fpr), (1 - first.tpr) * (1 - other.tpr)
            found.append(Attack(f"either: {other.name}", 1 - neither[0], 1 - neither[1]))
    return found


def told_the_batches(mechanism: dn.mechanisms.Mechanism, epsilon: float) -> mp.mpf | None:
    """H_{e^ε} of an attacker who is told in which steps the record takes part: no lower bound may exceed it.

    For one phase with few participations, Gaussian parts and no other; None otherwise.
    """
    parts = parts_of(mechanism)
    steps = [part for part in parts if isinstance(part, dn.SubsampledGaussian)]
    if len(steps) != 1 or is_newer(mechanism) or any(isinstance(p, dn.PureDP | dn.ApproximateDP) for p in parts):
        return None
    with mp.workdps(DIGITS):
        levels, weights = _binomial(steps[0])
        if levels is None:
            return None
        gaussian = mp.fsum(mp.mpf(part.mu) ** 2 for part in parts if isinstance(part, dn.GaussianDP))
        variance = 1 / mp.mpf(steps[0].noise_multiplier) ** 2
        hockey_sticks = (_gaussian_stick(gaussian + k * variance, mp.mpf(epsilon)) for k in levels)
        known = mp.fsum(weight * hockey_stick for weight, hockey_stick in zip(weights, hockey_sticks, strict=True))
        return known + max(1 - mp.fsum(weights), mp.mpf(0))


def _gaussian_stick(squared: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    if squared == 0:
        return max(-mp.expm1(epsilon), mp.mpf(0))
    mu = mp.sqrt(squared)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
