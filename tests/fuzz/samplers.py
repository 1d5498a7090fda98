"""Random mechanisms of every law, each from a named sampler and one integer seed.

Samplers that answer in hundredths of a second are drawn often, the others rarely; the summary says how often each.
"""

import math
from collections.abc import Callable

import numpy as np

import deniable as dn
from fuzz.laws import FINITE, KINDS, SLOW, parts_of
from fuzz.mechanisms import composed, many_parts, random_phase, spread

BALL_SHARE = 0.01
_STREAM = 29
_FEWEST = 8  # steps of laws that are slow
_RARELY = 1 / 8  # how often a law that takes seconds is drawn, beside others
_SHARES = np.array([_RARELY if kind in SLOW else 1.0 for kind in KINDS])
BALL_SAMPLER = "served by ball arithmetic"
_BALL_SECONDS = 20.0
_SLOW_NAMES = {
    "BoundedRange",
    "RandomAllocation",
    "SubsampledGaussian of persons",
    "TruncatedPoisson",
    "WithoutReplacement",
}
_LONGER = 6  # times the limit, for these


def sampler_of(seed: int) -> str:
    """The name of the sampler that draws the mechanism of ``seed``."""
    return _drawn(seed)[0]


def random_mechanism(seed: int) -> dn.mechanisms.Mechanism:
    """A mechanism that depends on ``seed`` only."""
    name, rng = _drawn(seed)
    return _SAMPLERS[name][1](rng)


def seconds_of(seed: int, limit: float) -> float:
    """The limit of CPU time of ``seed``: more for ball arithmetic and for laws that take seconds."""
    if sampler_of(seed) == BALL_SAMPLER:
        return max(limit, _BALL_SECONDS)
    return limit * (_LONGER if not set(laws_of(random_mechanism(seed))).isdisjoint(_SLOW_NAMES) else 1)


def laws_of(mechanism: dn.mechanisms.Mechanism) -> list[str]:
    """The laws of its parts, those of persons with several records apart."""
    named = set()
    for part in parts_of(mechanism):
        persons = isinstance(part, dn.SubsampledGaussian) and part.records_per_person > 1
        named.add(f"{type(part).__name__}{' of persons' if persons else ''}")
    return sorted(named)


def _drawn(seed: int) -> tuple[str, np.random.Generator]:
    rng = np.random.default_rng([seed, _STREAM])
    if rng.random() < BALL_SHARE:
        return BALL_SAMPLER, rng
    names = [name for name in _SAMPLERS if name != BALL_SAMPLER]
    shares = np.cumsum([_SAMPLERS[name][0] for name in names])
    return names[int(np.searchsorted(shares, rng.random() * shares[-1]))], rng


def _proven(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
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


def _steps_alone(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    count = 1 if rng.random() < 0.6 else int(rng.integers(2, 4))
    parts: list[dn.mechanisms.Mechanism] = [_sharp(rng, 0.2, 0.2) for _ in range(count)]
    if rng.random() < 0.2:
        parts += [dn.PureDP(spread(rng, 1e-3, 4.0)) for _ in range(int(rng.integers(1, 3)))]
    return composed(parts, rng)


def _beside_steps(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
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


def _beside_finite(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
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


def _few_steps(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    steps = int(rng.integers(2, 9)) if rng.random() < 0.7 else int(rng.integers(9, 65))
    return dn.SubsampledGaussian(spread(rng, 0.3, 100), spread(rng, 1e-6, 1.0), steps)


def _two_phases(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    return composed([random_phase(rng, 2), random_phase(rng, 2)], rng)


def _kind(rng: np.random.Generator) -> Callable[..., dn.mechanisms.Mechanism]:
    return KINDS[int(rng.choice(len(KINDS), p=_SHARES / _SHARES.sum()))]


def _any_law(
    rng: np.random.Generator, kind: Callable[..., dn.mechanisms.Mechanism] | None = None
) -> dn.mechanisms.Mechanism:
    part = (kind or _kind(rng))(rng, _FEWEST)
    if part.adjacency != "add-remove" or rng.random() < 0.7:
        return part
    return composed([part, dn.GaussianDP(spread(rng, 1e-2, 2.0))], rng)


def _one_of_any_law(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    """One step of any law."""
    return _kind(rng)(rng, 1)


def _few_outcomes(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    return _any_law(rng, FINITE[int(rng.integers(len(FINITE)))])


def _closed(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    """Gaussian parts, pure and approximate ones from those that show nothing to those that show everything."""
    parts: list[dn.mechanisms.Mechanism] = []
    if rng.random() < 0.6:
        parts.append(dn.GaussianDP(spread(rng, 1e-8, 40.0)))
    if not parts or rng.random() < 0.5:
        parts += [dn.PureDP(spread(rng, 1e-8, 30.0)) for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.3:
        parts.append(dn.ApproximateDP(spread(rng, 1e-6, 10.0), spread(rng, 1e-15, 0.5)))
    return composed(parts, rng)


def _corner(rng: np.random.Generator) -> dn.mechanisms.Mechanism:
    """Steps at the ends of the range: rates near 0 and 1, noise at both ends, one step or very many."""
    noise = float(rng.choice([0.02, 0.05, 0.3, 1.0, 30.0, 1000.0])) * float(f"{rng.uniform(1, 1.2):.3g}")
    rates = (1.0, 1 - spread(rng, 1e-15, 1e-3), 0.5, 1e-3, 1e-8)
    steps = (1, 2, 3, 10**3, 10**7)
    return dn.SubsampledGaussian(noise, float(rates[int(rng.integers(5))]), steps[int(rng.integers(5))])


_SAMPLERS: dict[str, tuple[float, Callable[[np.random.Generator], dn.mechanisms.Mechanism]]] = {
    BALL_SAMPLER: (BALL_SHARE, _proven),
    "one phase": (0.26, lambda rng: random_phase(rng, 1)),
    "two phases": (0.05, _two_phases),
    "many phases": (0.02, many_parts),
    "outcomes beside others": (0.12, _beside_finite),
    "few steps": (0.1, _few_steps),
    "sharp steps": (0.06, _steps_alone),
    "sharp steps beside others": (0.04, _beside_steps),
    "any law, few steps": (0.06, _any_law),
    "any law, one step": (0.09, _one_of_any_law),
    "few outcomes": (0.1, _few_outcomes),
    "Gaussian, pure and approximate parts": (0.08, _closed),
    "ends of the range": (0.03, _corner),
}
SAMPLERS = tuple(_SAMPLERS)
