"""DpEvent in: from a tree of dp-accounting's events to the mechanism that it describes, exactly or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from deniable._check import InputError, integer, number
from deniable.mechanisms import Composition, Mechanism, SubsampledGaussian

_EPS = 2.0**-52


def from_dp_event(event: Any) -> Mechanism:
    """Return the mechanism that a ``dp_accounting.DpEvent`` tree describes.

    Known are ``GaussianDpEvent``, ``PoissonSampledDpEvent`` of Gaussian events, and ``ComposedDpEvent`` and
    ``SelfComposedDpEvent`` of these. Everything else is refused by name: nothing is approximated.

    Parameters
    ----------
    event
        The root of the tree. Neighbouring data sets differ by adding or removing one record.

    Returns
    -------
    Mechanism
        A :class:`SubsampledGaussian`, or a :class:`Composition` of them. Releases with equal parameters are merged
        into one phase wherever they stand in the tree: the composed bound does not depend on their order.

    Raises
    ------
    InputError
        For any other event, for an empty tree, and for parameters without a bound (noise or sampling rate 0).

    Notes
    -----
    Several Gaussian releases from the *same* Poisson sample are one release with
    1/σ² = Σ 1/σᵢ²: every test between N(0, σᵢ²) and N(1, σᵢ²) side by side depends on the data through one
    Gaussian sufficient statistic, and sampling acts on that pair as a whole (Zhu, Dong & Wang 2022, Theorem 11). The
    merged σ is rounded down.
    """
    steps: dict[tuple[float, float], int] = {}
    for leaf, count in _flatten(event, ("PoissonSampledDpEvent", "GaussianDpEvent")):
        sigma, rate = _release(leaf)
        steps[sigma, rate] = steps.get((sigma, rate), 0) + count
    if not steps:
        raise InputError("event must contain at least one Gaussian release, got an empty composition")
    phases = [SubsampledGaussian(sigma, rate, count) for (sigma, rate), count in steps.items()]
    return phases[0] if len(phases) == 1 else Composition(phases)


def _flatten(root: Any, leaves: tuple[str, ...], inside: str = "") -> Iterator[tuple[Any, int]]:
    """The leaves of nested compositions with how often each is run; an explicit stack, since trees can be deep."""
    stack = [(root, 1)]
    while stack:
        event, count = stack.pop()
        name = _name(event)
        if name in leaves:
            yield event, count
        elif name == "ComposedDpEvent":
            stack.extend((part, count) for part in reversed(event.events))
        elif name == "SelfComposedDpEvent":
            times = integer("SelfComposedDpEvent.count", event.count, at_least=1)
            stack.append((event.event, count * times))
        else:
            raise InputError(
                f"event must consist of ComposedDpEvent, SelfComposedDpEvent, PoissonSampledDpEvent and "
                f"GaussianDpEvent, got {name}{inside}; no exact bound for it is known here"
            )


def _release(event: Any) -> tuple[float, float]:
    """(noise_multiplier, sample_rate) of one release: a Gaussian, or Gaussians from one Poisson sample."""
    if _name(event) == "GaussianDpEvent":
        return _sigma(event), 1.0
    parts = list(_flatten(event.event, ("GaussianDpEvent",), inside=" inside PoissonSampledDpEvent"))
    if not parts:
        raise InputError("PoissonSampledDpEvent must contain a Gaussian release, got an empty composition")
    rate = number("PoissonSampledDpEvent.sampling_probability", event.sampling_probability, above=0.0, at_most=1.0)
    if len(parts) == 1 and parts[0][1] == 1:
        return _sigma(parts[0][0]), rate
    precision = math.fsum(count / _sigma(part) / _sigma(part) for part, count in parts)
    return (1 - 4 * _EPS) / math.sqrt(precision), rate


def _sigma(event: Any) -> float:
    return number("GaussianDpEvent.noise_multiplier", event.noise_multiplier, above=0.0, below=math.inf)


def _name(event: Any) -> str:
    """Class name of a dp-accounting event; objects from elsewhere get their full name, which is never known."""
    kind = type(event)
    return (
        kind.__name__ if kind.__module__.partition(".")[0] == "dp_accounting" else f"{kind.__module__}.{kind.__name__}"
    )
