"""Random mechanisms of every law for very many configurations, each from a named sampler.

Samplers that answer in hundredths of a second are drawn often, the others rarely; the summary says how often each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import deniable as dn
from fuzz.broad import BALL_SHARE, beside_finite, beside_steps, composed, few_steps, proven, steps_alone
from fuzz.laws import FINITE, KINDS, SLOW, parts_of
from fuzz.mechanisms import random_mechanism, random_phase, spread

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


def lean_mechanism(seed: int) -> dn.mechanisms.Mechanism:
    """A mechanism that depends on ``seed`` only."""
    name, rng = _drawn(seed)
    return _SAMPLERS[name][1](rng)


def seconds_of(seed: int, limit: float) -> float:
    """The limit of CPU time of ``seed``: more for ball arithmetic and for laws that take seconds."""
    if sampler_of(seed) == BALL_SAMPLER:
        return max(limit, _BALL_SECONDS)
    return limit * (_LONGER if not set(laws_of(lean_mechanism(seed))).isdisjoint(_SLOW_NAMES) else 1)


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
    BALL_SAMPLER: (BALL_SHARE, proven),
    "one phase": (0.26, lambda rng: random_phase(rng, 1)),
    "two phases": (0.05, _two_phases),
    "many phases": (0.02, lambda rng: random_mechanism(int(rng.integers(2**31)))),
    "outcomes beside others": (0.12, beside_finite),
    "few steps": (0.1, few_steps),
    "sharp steps": (0.06, steps_alone),
    "sharp steps beside others": (0.04, beside_steps),
    "any law, few steps": (0.06, _any_law),
    "any law, one step": (0.09, _one_of_any_law),
    "few outcomes": (0.1, _few_outcomes),
    "Gaussian, pure and approximate parts": (0.08, _closed),
    "ends of the range": (0.03, _corner),
}
SAMPLERS = tuple(_SAMPLERS)
