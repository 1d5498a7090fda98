"""Random mechanisms with other laws of one step than the Gaussian's, and events of one step whose odds are known.

An event of one step has probability ``out`` under "out" and ``hit`` under "in". Whether it happens in some of the
steps, or in at least m of them, is an attack: a lower bound on what the best one reaches. 60-digit arithmetic.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np

import deniable as dn
from fuzz.mechanisms import count_of, spread

Event = tuple[mp.mpf, mp.mpf]
MOST_STEPS = 3000
_MOST_COUNTED = 400  # steps of which an attack may count
_TAIL = 40  # standard deviations or scales of discrete noise that are summed


def parts_of(mechanism: dn.mechanisms.Mechanism) -> tuple[dn.mechanisms.Mechanism, ...]:
    return mechanism.mechanisms if isinstance(mechanism, dn.Composition) else (mechanism,)


def is_newer(mechanism: dn.mechanisms.Mechanism) -> bool:
    """Whether a part has another law than a Gaussian step of single records, (ε, δ)-DP and μ-GDP."""
    old = (dn.PureDP, dn.ApproximateDP, dn.GaussianDP)
    return not all(
        isinstance(part, old) or (isinstance(part, dn.SubsampledGaussian) and part.records_per_person == 1)
        for part in parts_of(mechanism)
    )


def _rate(rng: np.random.Generator) -> float:
    return 1.0 if rng.random() < 0.4 else spread(rng, 1e-4, 1.0)


def _noise(rng: np.random.Generator) -> float:
    """A noise multiplier, mostly such as people use."""
    return spread(rng, 0.4, 20) if rng.random() < 0.5 else spread(rng, 0.03, 300)


def _laplace(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    return dn.Laplace(
        spread(rng, 0.05, 100), 1.0 if rng.random() < 0.5 else spread(rng, 0.1, 5), count_of(rng, most), _rate(rng)
    )


def _discrete_laplace(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    return dn.mechanisms.DiscreteLaplace(spread(rng, 0.1, 30), int(rng.integers(1, 4)), count_of(rng, most), _rate(rng))


def _discrete_gaussian(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    return dn.DiscreteGaussian(spread(rng, 0.2, 20), int(rng.integers(1, 4)), count_of(rng, most), _rate(rng))


def _response(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    return dn.RandomizedResponse(spread(rng, 1e-2, 6), int(rng.integers(2, 9)), count_of(rng, min(most, 300)))


def _pair(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    size = int(rng.integers(2, 6))
    p, q = (rng.dirichlet(np.full(size, float(rng.uniform(0.3, 5)))) for _ in range(2))
    return dn.mechanisms.FinitePair(tuple(p / p.sum()), tuple(q / q.sum()), count_of(rng, min(most, 100)))


def _range(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    return dn.mechanisms.BoundedRange(spread(rng, 1e-2, 4), count_of(rng, min(most, 100)))


def _persons(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    k = int(rng.integers(2, 7))
    return dn.SubsampledGaussian(_noise(rng), spread(rng, 1e-6, 0.5), count_of(rng, most), k)


def _allocation(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    batches = max(count_of(rng, most), 2)
    several = min(int(rng.integers(2, 5)), batches) if rng.random() < 0.2 else 1
    return dn.RandomAllocation(_noise(rng), batches, count_of(rng, min(most, 30)), several)


def _truncated(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    n = 10 + count_of(rng, most)
    rate = spread(rng, 1e-3, 0.5)
    batch = min(max(round(n * rate * float(rng.uniform(0.7, 2))), 1), n - 1)
    return dn.TruncatedPoisson(_noise(rng), rate, count_of(rng, most), batch, n)


def _without(rng: np.random.Generator, most: int = MOST_STEPS) -> dn.mechanisms.Mechanism:
    n = 1 + count_of(rng, most)
    return dn.WithoutReplacement(_noise(rng), min(count_of(rng, most), n), n, count_of(rng, most))


KINDS: tuple[Callable[..., Any], ...] = (
    _laplace, _discrete_laplace, _discrete_gaussian, _pair, _range, _persons, _allocation, _truncated, _response,
    _without,
)  # fmt: skip
FINITE: tuple[Callable[..., Any], ...] = (_pair, _response)
SLOW: tuple[Callable[..., Any], ...] = (_range, _persons, _allocation, _truncated, _without)


def events(part: dn.mechanisms.Mechanism, rng: np.random.Generator) -> tuple[Event, int] | None:
    """An event of one step of a part, at a random threshold, and how many such steps there are; None: not known."""
    known = _EVENTS.get(type(part))
    return None if known is None else (known(part, rng), getattr(part, "steps", getattr(part, "epochs", 1)))


def at_least(event: Event, count: int, least: int) -> Event:
    """Probabilities that an event happens in at least ``least`` of ``count`` independent steps."""
    if least <= 1:
        return tuple(-mp.expm1(count * mp.log1p(-p)) if p < 1 else mp.mpf(1) for p in event)
    found = []
    for p in event:
        terms = (mp.binomial(count, k) * p**k * (1 - p) ** (count - k) for k in range(least, count + 1))
        found.append(min(mp.fsum(terms), mp.mpf(1)))
    return found[0], found[1]


def random_attack(parts: Sequence[dn.mechanisms.Mechanism], rng: np.random.Generator) -> tuple[str, Event] | None:
    """An event of one part, repeated; or of two parts, both of them or either."""
    chosen = []
    for k in rng.permutation(len(parts))[: 1 + int(rng.random() < 0.5)]:
        found = events(parts[k], rng)
        if found is None:
            continue
        event, count = found
        least = int(rng.integers(1, count + 1)) if count <= _MOST_COUNTED and rng.random() < 0.5 else 1
        chosen.append((f"{type(parts[k]).__name__}, {least} of {count}", at_least(event, count, least)))
    if not chosen:
        return None
    name, event = chosen[0]
    if len(chosen) == 1:
        return name, event
    other, second = chosen[1]
    if rng.random() < 0.5:
        return f"{name} and {other}", (event[0] * second[0], event[1] * second[1])
    return f"{name} or {other}", tuple(1 - (1 - p) * (1 - q) for p, q in zip(event, second, strict=True))


def _mixed(out: mp.mpf, hit: mp.mpf, rate: float) -> Event:
    return out, (1 - mp.mpf(rate)) * out + mp.mpf(rate) * hit


def _laplace_event(part: dn.Laplace, rng: np.random.Generator) -> Event:
    shift = mp.mpf(part.sensitivity) / mp.mpf(part.scale)
    place = mp.mpf(float(rng.uniform(-1, 1) * 3 + (rng.random() < 0.5) * float(shift)))

    def tail(u: mp.mpf) -> mp.mpf:
        return mp.exp(-u) / 2 if u >= 0 else 1 - mp.exp(u) / 2

    return _mixed(tail(place), tail(place - shift), part.sample_rate)


def _lattice_event(log_mass: Callable[[int], mp.mpf], scale: float, moved: int, rate: float, place: int) -> Event:
    most = math.ceil(_TAIL * scale) + moved + abs(place) + 5
    mass = {k: mp.exp(log_mass(k)) for k in range(-most, most + 1)}
    total = mp.fsum(mass.values())
    out = mp.fsum(m for k, m in mass.items() if k >= place) / total
    hit = mp.fsum(m for k, m in mass.items() if k >= place - moved) / total
    return _mixed(out, hit, rate)


def _discrete_laplace_event(part: dn.mechanisms.DiscreteLaplace, rng: np.random.Generator) -> Event:
    place = round(float(rng.uniform(-3, 3)) * part.scale) + int(rng.integers(0, part.sensitivity + 1))
    ratio = mp.exp(-1 / mp.mpf(part.scale))

    def tail(k: int) -> mp.mpf:
        return ratio**k / (1 + ratio) if k >= 1 else 1 - ratio ** (1 - k) / (1 + ratio)

    return _mixed(tail(place), tail(place - part.sensitivity), part.sample_rate)


def _discrete_gaussian_event(part: dn.DiscreteGaussian, rng: np.random.Generator) -> Event:
    place = round(float(rng.uniform(-3, 5)) * part.sigma) + int(rng.integers(0, part.sensitivity + 1))
    precision = 1 / (2 * mp.mpf(part.sigma) ** 2)
    return _lattice_event(lambda k: -(k**2) * precision, part.sigma, part.sensitivity, part.sample_rate, place)


def _response_event(part: dn.RandomizedResponse, rng: np.random.Generator) -> Event:
    odds = mp.exp(mp.mpf(part.epsilon))
    return 1 / (odds + part.categories - 1), odds / (odds + part.categories - 1)


def _pair_event(part: dn.mechanisms.FinitePair, rng: np.random.Generator) -> Event:
    taken = rng.random(len(part.p)) < 0.5
    q, p = (mp.fsum(mp.mpf(x) for x, use in zip(side, taken, strict=True) if use) for side in (part.q, part.p))
    # the two vectors are taken as exact but for what their sums miss
    return min(q + mp.mpf(10) ** -15, mp.mpf(1)), max(p - mp.mpf(10) ** -15, mp.mpf(0))


def _range_event(part: dn.mechanisms.BoundedRange, rng: np.random.Generator) -> Event:
    """The pair of two outcomes whose log-ratios are a and a − ε is of range ε."""
    a = mp.mpf(float(rng.uniform(0.01, 0.99))) * mp.mpf(part.epsilon)
    out = (1 - mp.exp(a - mp.mpf(part.epsilon))) / (mp.exp(a) - mp.exp(a - mp.mpf(part.epsilon)))
    return out, out * mp.exp(a)


def _gaussian_place(rng: np.random.Generator, sigma: float) -> tuple[mp.mpf, mp.mpf]:
    return mp.mpf(float(rng.uniform(-2, 5) + (rng.random() < 0.5) / sigma)), 1 / mp.mpf(sigma)


def _persons_event(part: dn.SubsampledGaussian, rng: np.random.Generator) -> Event:
    place, shift = _gaussian_place(rng, part.noise_multiplier)
    k, q = part.records_per_person, mp.mpf(part.sample_rate)
    hit = mp.fsum(mp.binomial(k, j) * q**j * (1 - q) ** (k - j) * mp.ncdf(j * shift - place) for j in range(k + 1))
    return mp.ncdf(-place), hit


def _allocation_event(part: dn.RandomAllocation, rng: np.random.Generator) -> Event:
    t, k = part.batches, part.batches_per_record
    shift = 1 / mp.mpf(part.noise_multiplier)
    if rng.random() < 0.3:  # the sum of an epoch's batches
        place = mp.mpf(float(rng.uniform(-3, 4)))
        return mp.ncdf(-place), mp.ncdf(k * shift / mp.sqrt(t) - place)
    place = mp.mpf(float(rng.uniform(-1, 3))) + mp.sqrt(2 * mp.log(t))  # the largest batch
    miss = t * mp.log(mp.ncdf(place))
    hit = (t - k) * mp.log(mp.ncdf(place)) + k * mp.log(mp.ncdf(place - shift))
    return -mp.expm1(miss), -mp.expm1(hit)


def _truncated_event(part: dn.TruncatedPoisson, rng: np.random.Generator) -> Event:
    """The other records contribute nothing; a batch that is cut keeps the record with probability B/size."""
    place, shift = _gaussian_place(rng, part.noise_multiplier)
    q, n, most = mp.mpf(part.sample_rate), part.n_records - 1, part.max_batch
    kept, weight = mp.mpf(0), (1 - q) ** n
    for others in range(n + 1):
        kept += weight * (1 if others < most else mp.mpf(most) / (others + 1))
        weight *= mp.mpf(n - others) / (others + 1) * q / (1 - q)
    return _mixed(mp.ncdf(-place), mp.ncdf(shift - place), float(kept * q * (1 - mp.mpf(2) ** -50)))


def _without_event(part: dn.WithoutReplacement, rng: np.random.Generator) -> Event:
    """The record's content is one clipping norm in one world, its negative in the other; the others contribute none."""
    place, shift = _gaussian_place(rng, part.noise_multiplier)
    rate = mp.mpf(part.batch) / part.n_records
    rest = (1 - rate) * mp.ncdf(-place)
    return rest + rate * mp.ncdf(-shift - place), rest + rate * mp.ncdf(shift - place)


_EVENTS: dict[type, Callable[[Any, np.random.Generator], Event]] = {
    dn.Laplace: _laplace_event,
    dn.mechanisms.DiscreteLaplace: _discrete_laplace_event,
    dn.DiscreteGaussian: _discrete_gaussian_event,
    dn.RandomizedResponse: _response_event,
    dn.mechanisms.FinitePair: _pair_event,
    dn.mechanisms.BoundedRange: _range_event,
    dn.SubsampledGaussian: _persons_event,
    dn.RandomAllocation: _allocation_event,
    dn.TruncatedPoisson: _truncated_event,
    dn.WithoutReplacement: _without_event,
}
