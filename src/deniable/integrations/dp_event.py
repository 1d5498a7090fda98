"""From a tree of dp-accounting's events (``DpEvent``) to the mechanism that it describes, or to one that bounds it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from deniable._check import InputError, integer, number
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting import Case, Dominated, GaussianMixtureStep, Repeated, Step, truncated, truncated_around
from deniable.integrations.jax_privacy import meant, mechanism_of_plan
from deniable.mechanisms import (
    ApproximateDP,
    BoundedRange,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Laplace,
    MatrixMechanism,
    Mechanism,
    PureDP,
    RandomAllocation,
    RandomizedResponse,
    SubsampledGaussian,
    TruncatedPoisson,
    WithoutReplacement,
    ZeroConcentratedDP,
    tuned,
)

_MOST = 100_000  # largest number of equal guarantees listed one by one
_NOISE = ("noise_multiplier", "sigma", "standard_deviation")  # attributes of events


def from_dp_event(event: Any) -> Mechanism:
    """Return the mechanism that a ``dp_accounting.DpEvent`` or a plan of JAX Privacy describes, or one that bounds it.

    Which event becomes what, and whether its curve is then tight, an upper bound, or refused: see the table in
    docs/integrations.md. Events that exist only on dp-accounting's
    main branch are recognised by class name. Nothing is approximated: what is not tight is on the safe side.

    Parameters
    ----------
    event
        The root of the tree. An event does not say what neighbouring data sets differ in: its curve holds for what its
        author meant (``mechanism.adjacency`` is ``"event"``), which in plans of JAX Privacy is a record zeroed out,
        unless their partition is INDEPENDENT. In tree aggregation it is zeroed out, in sampling without replacement
        replaced. Truncated batches are bounded for data sets of the stated size with or without the record in question.

        Or a ``BandMFExecutionPlanConfig`` of JAX Privacy 2.0.0, of which the partition and the neighbouring relation
        are read. EQUAL_SPLIT leaves records out so that groups are equal: adding a record then moves up to as many as
        there are bands, and the curve is for a record zeroed out or replaced.

    Returns
    -------
    Mechanism
        One mechanism, or a :class:`Composition`. Releases with equal parameters are merged into one phase wherever they
        are in the tree: the composed bound does not depend on their order.

    Raises
    ------
    InputError
        For an event that is refused.

    Notes
    -----
    Several Gaussian releases from the *same* Poisson sample are one release with
    1/σ² = Σ 1/σᵢ²: every test between N(0, σᵢ²) and N(1, σᵢ²) side by side depends on the data through one
    Gaussian sufficient statistic, and sampling acts on that pair as a whole (Zhu, Dong & Wang 2022, Theorem 11). The
    merged σ is rounded down. A Poisson sample of a Poisson sample keeps each record with the product of the rates. An
    (ε, δ) event inside a Poisson sample of rate q is (log(1 + q(e^ε − 1)), qδ)-DP (Balle, Barthe & Gaboardi 2018).

    Examples
    --------
    >>> import deniable as dn
    >>> from dp_accounting import dp_event  # doctest: +SKIP
    >>> step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))  # doctest: +SKIP
    >>> mechanism = dn.from_dp_event(dp_event.SelfComposedDpEvent(step, 5000))  # doctest: +SKIP
    """
    if type(event).__module__.partition(".")[0] == "jax_privacy":
        return mechanism_of_plan(event)
    counts: dict[Any, int] = {}
    for leaf, count in _flatten(event):
        mechanism = _leaf(leaf, 1.0)
        counts[mechanism] = counts.get(mechanism, 0) + count
    # parts that leak nothing are left out, unless there is nothing else
    leaking = {mechanism: count for mechanism, count in counts.items() if mechanism != PureDP(0.0)}
    runs = (leaking or {PureDP(0.0): 1}).items()
    parts = [meant(part, "event") for mechanism, count in runs for part in _repeat(mechanism, count)]
    return parts[0] if len(parts) == 1 else Composition(parts)


def _flatten(root: Any, inside: str = "") -> Iterator[tuple[Any, int]]:
    """The leaves of nested compositions and how often each is run; with an explicit stack, since trees can be deep."""
    stack = [(root, 1)]
    while stack:
        event, count = stack.pop()
        name = _name(event)
        if name == "ComposedDpEvent":
            stack.extend((part, count) for part in reversed(event.events))
        elif name == "SelfComposedDpEvent":
            times = integer("SelfComposedDpEvent.count", event.count, at_least=0)
            stack += [(event.event, count * times)] * (times > 0)
        elif name not in SERVED:
            why = REFUSED.get(name, "it is not an event that is known here")
            raise InputError(f"event must be one of {', '.join(SERVED)}, got {name}{inside}; {why}")
        else:
            yield event, count


def _leaf(event: Any, rate: float) -> Mechanism:
    """The mechanism of one release from a Poisson sample of the given rate (1: from all records)."""
    name = _name(event)
    if any(getattr(event, noise, 1) == 0 for noise in _NOISE):
        return ApproximateDP(0.0, rate)  # what is released without noise gives the record away
    if name in _SAMPLED:
        return _SAMPLED[name](event, rate)
    if name == "DiscreteGaussianDpEvent" and event.dimension == 1:
        return _discrete_gaussian(event, rate)
    whole = _GUARANTEES[name](event)
    return whole if rate == 1 else _amplify(whole, rate, name)


def _poisson_sample(event: Any, rate: float) -> Mechanism:
    """One Poisson sample: of a single release, or of several Gaussians, which are one."""
    mine = number("PoissonSampledDpEvent.sampling_probability", event.sampling_probability, at_least=0.0, at_most=1.0)
    parts = list(_flatten(event.event, inside=" inside PoissonSampledDpEvent"))
    if not parts or mine == 0:
        return PureDP(0.0)
    product = rate * mine if 1 in (rate, mine) else min(rate * mine * (1 + EPS), 1.0)  # rounded up
    if len(parts) == 1 and parts[0][1] == 1:
        return _leaf(parts[0][0], product)
    if any(getattr(part, "noise_multiplier", 1) == 0 for part, _ in parts):
        return ApproximateDP(0.0, product)
    return SubsampledGaussian(_sigma_of_gaussians(event), product, 1)


def _merge_gaussians(gaussians: list[tuple[Any, int]]) -> float:
    """σ of several Gaussian releases from one sample, rounded down."""
    precision = math.fsum(count / _sigma(part) / _sigma(part) for part, count in gaussians)
    return (1 - 4 * EPS) / math.sqrt(precision)


def _fixed_size(event: Any) -> WithoutReplacement:
    """Gaussian releases from one batch of a fixed size."""
    sigma = _sigma_of_gaussians(event)
    size = integer("SampledWithoutReplacementDpEvent.sample_size", event.sample_size, at_least=1)
    records = integer("SampledWithoutReplacementDpEvent.source_dataset_size", event.source_dataset_size, at_least=1)
    return WithoutReplacement(sigma, size, records)


def _allocation(event: Any) -> RandomAllocation:
    """Gaussian releases from each batch of one epoch, of which a record is in some, chosen uniformly."""
    steps = integer("RandomAllocationDpEvent.num_steps", event.num_steps, at_least=1)
    chosen = integer("RandomAllocationDpEvent.num_selected", event.num_selected, at_least=1)
    return RandomAllocation(_sigma_of_gaussians(event), steps, batches_per_record=chosen)


def _sigma_of_gaussians(event: Any) -> float:
    """σ of the Gaussian releases that an event draws one batch for."""
    name = _name(event)
    parts = list(_flatten(event.event, inside=f" inside {name}"))
    if (names := sorted({_name(part) for part, _ in parts})) != ["GaussianDpEvent"]:
        got = ", ".join(names) or "nothing"
        raise InputError(f"event must be Gaussians inside {name}, got {got} inside {name}; no pair is known for that")
    ((first, count), *rest) = parts
    return _sigma(first) if count == 1 and not rest else _merge_gaussians(parts)


def _mixture(event: Any, rate: float) -> Mechanism:
    deviation = number("MixtureOfGaussiansDpEvent.standard_deviation", event.standard_deviation, above=0.0)
    weights = {float(c): 0.0 for c in event.sensitivities}
    for sensitivity, weight in zip(event.sensitivities, event.sampling_probs, strict=True):
        weights[float(sensitivity)] += number("MixtureOfGaussiansDpEvent.sampling_probs", weight, at_least=0.0)
    moved = [c for c, weight in weights.items() if c != 0 and weight > 0]
    if not moved:
        return PureDP(0.0)
    if len(moved) > 1:
        return _several(deviation, {c: weight for c, weight in weights.items() if weight > 0}, rate)
    share = min(weights[moved[0]] * rate * (1 + 2 * EPS), 1.0) if weights[moved[0]] * rate < 1 else 1.0
    return SubsampledGaussian(deviation / abs(moved[0]) * (1 - 2 * EPS), share, 1)


def _several(deviation: float, weights: dict[float, float], rate: float) -> Mechanism:
    """A mixture of 0 and several shifts of one sign, from a Poisson sample of the given rate."""
    records = sorted(map(abs, weights))
    if min(weights) < 0 < max(weights) or records[0] > 0:
        raise InputError(
            "MixtureOfGaussiansDpEvent must have sensitivity 0 with some probability and no sensitivities of both "
            f"signs, got {sorted(weights)}; no curve is known for that"
        )
    number(
        "the sum of MixtureOfGaussiansDpEvent.sampling_probs",
        math.fsum(weights.values()),
        at_least=1 - 1e-9,
        at_most=1 + 1e-9,
    )
    sampled = [rate * weights.get(c, weights.get(-c, 0.0)) for c in records[1:]]
    case = Case(1.0, tuple(records), (1 - math.fsum(sampled), *sampled))
    return GaussianMixtureStep(deviation, (case,), 16 * EPS)


def _discrete_gaussian(event: Any, rate: float) -> Mechanism:
    """One integer, shifted by a whole number."""
    sigma, moved = _discrete(event)
    return DiscreteGaussian(sigma, math.floor(moved), sample_rate=rate) if moved >= 1 else PureDP(0.0)


def _discrete(event: Any) -> tuple[float, float]:
    sigma = number("DiscreteGaussianDpEvent.sigma", event.sigma, above=0.0, below=math.inf)
    return sigma, number("DiscreteGaussianDpEvent.sensitivity", event.sensitivity, at_least=0.0, below=math.inf)


def _discrete_vector(event: Any) -> Mechanism:
    """An integer vector: ρ of its coordinates adds up to ‖shift‖²/(2σ²) (Canonne, Kamath & Steinke 2020, Theorem 4)."""
    sigma, moved = _discrete(event)
    return ZeroConcentratedDP((moved / sigma) ** 2 / 2 * (1 + 4 * EPS)) if moved > 0 else PureDP(0.0)


def _response(event: Any) -> Mechanism:
    """k-ary randomised response; ε, the log-ratio of the input's bucket against any other, is rounded up."""
    p = number("RandomizedResponseDpEvent.noise_parameter", event.noise_parameter, at_least=0.0, at_most=1.0)
    k = integer("RandomizedResponseDpEvent.num_buckets", event.num_buckets, at_least=1)
    if k == 1 or p == 1:
        return PureDP(0.0)
    return RandomizedResponse(math.log1p(k * (1 - p) / p) * (1 + 8 * EPS), k) if p > 0 else ApproximateDP(0.0, 1.0)


def _discrete_laplace(event: Any, rate: float) -> Mechanism:
    a = number("DiscreteLaplaceDpEvent.noise_parameter", event.noise_parameter, above=0.0, below=math.inf)
    moved = integer("DiscreteLaplaceDpEvent.sensitivity", event.sensitivity, at_least=0)
    return DiscreteLaplace((1 - 2 * EPS) / a, moved, sample_rate=rate) if moved else PureDP(0.0)


def _tree(event: Any) -> Mechanism:
    """A record lies below one node per level of the tree that holds it: as many as the number of steps has bits."""
    counts = event.step_counts if isinstance(event.step_counts, list | tuple) else [event.step_counts]
    steps = max((integer("SingleEpochTreeAggregationDpEvent.step_counts", c, at_least=1) for c in counts), default=0)
    if steps == 0:
        return PureDP(0.0)
    noise = number("SingleEpochTreeAggregationDpEvent.noise_multiplier", event.noise_multiplier, above=0.0)
    return MatrixMechanism(noise, sensitivity=math.sqrt(steps.bit_length()) * (1 + EPS))


def _truncated_batches(event: Any) -> Mechanism:
    """Truncated Poisson batches; with rate 1 every batch is truncated, and a record takes another's place."""
    sigma, rate, n, most = (
        _sigma(event),
        number(f"{_name(event)}.sampling_probability", event.sampling_probability, at_least=0.0, at_most=1.0),
        integer(f"{_name(event)}.dataset_size", event.dataset_size, at_least=1),
        integer(f"{_name(event)}.truncated_batch_size", event.truncated_batch_size, at_least=1),
    )
    if rate == 0:
        return PureDP(0.0)
    if most > n:
        return SubsampledGaussian(sigma, rate, 1)
    if rate == 1:
        fixed = SubsampledGaussian(sigma / 2, min(most / n * (1 + EPS), 1.0), 1)
        one_more = SubsampledGaussian(sigma / 2, most / (n + 1) * (1 - EPS), 1)
        return fixed if most < n else Dominated(fixed, one_more)
    around = truncated_around(sigma, rate, most, n)
    if most == n:  # of n records none is ever cut
        return Dominated(around.times(1), SubsampledGaussian(sigma, rate, 1))
    return truncated(around, TruncatedPoisson(sigma, rate, 1, most, n), 1)


# events of which it is known what sampling does to them
_SAMPLED: dict[str, Callable[[Any, float], Mechanism]] = {
    "PoissonSampledDpEvent": _poisson_sample,
    "GaussianDpEvent": lambda event, rate: SubsampledGaussian(_sigma(event), rate, 1),
    "LaplaceDpEvent": lambda event, rate: Laplace(_sigma(event), sample_rate=rate),
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "MixtureOfGaussiansDpEvent": _mixture,
}
# events that always become one guarantee or one mechanism
_GUARANTEES: dict[str, Callable[[Any], Mechanism]] = {
    "NoOpDpEvent": lambda event: PureDP(0.0),
    "NonPrivateDpEvent": lambda event: ApproximateDP(0.0, 1.0),
    "ZCDpEvent": lambda event: ZeroConcentratedDP(event.rho, event.xi),
    "EpsilonDeltaDpEvent": lambda event: ApproximateDP(event.epsilon, event.delta),
    "RandomizedResponseDpEvent": _response,
    "DiscreteGaussianDpEvent": _discrete_vector,
    "ExponentialMechanismDpEvent": lambda event: BoundedRange(event.epsilon) if event.epsilon else PureDP(0.0),
    "PermuteAndFlipDpEvent": lambda event: PureDP(event.epsilon),
    "SingleEpochTreeAggregationDpEvent": _tree,
    "SampledWithoutReplacementDpEvent": _fixed_size,
    "RandomAllocationDpEvent": _allocation,
    "TruncatedSubsampledGaussianDpEvent": _truncated_batches,
    "RepeatAndSelectDpEvent": lambda event: tuned(from_dp_event(event.event), trials=event.mean, shape=event.shape),
}


SERVED = ("ComposedDpEvent", "SelfComposedDpEvent", *_SAMPLED, *_GUARANTEES)
REFUSED = {
    "SampledWithReplacementDpEvent": "a record may enter a batch several times; no dominating pair is proven for this",
    "UnsupportedDpEvent": "nobody says what ran",
}


def _amplify(mechanism: Mechanism, rate: float, name: str) -> Mechanism:
    """An (ε, δ) guarantee for a Poisson sample."""
    if isinstance(mechanism, RandomizedResponse | BoundedRange):
        mechanism = PureDP(mechanism.epsilon)
    if isinstance(mechanism, PureDP | ApproximateDP) and mechanism.epsilon < MOST_EXPONENT:
        epsilon = min(math.log1p(rate * math.expm1(mechanism.epsilon)) * (1 + 8 * EPS), mechanism.epsilon)
        if isinstance(mechanism, PureDP):
            return PureDP(epsilon)
        return ApproximateDP(epsilon, min(mechanism.delta * rate * (1 + 2 * EPS), mechanism.delta))
    raise InputError(
        f"event must be Gaussian, Laplace or an (ε, δ) guarantee inside a Poisson sample, got {name} inside "
        "PoissonSampledDpEvent; what sampling does to it is not known"
    )


def _repeat(mechanism: Any, count: int) -> list[Mechanism]:
    """``count`` times the same mechanism."""
    if count == 1:
        return [mechanism]
    for times in ("steps", "epochs"):
        if getattr(mechanism, times, None) == 1:
            return [replace(mechanism, **{times: count})]
    if isinstance(mechanism, Step):
        return [mechanism.times(count)]
    if isinstance(mechanism, Repeated):
        return [mechanism.step.times(mechanism.count * count)]
    if isinstance(mechanism, Dominated):
        above, below = (Composition(_repeat(one, count)) for one in (mechanism.above, mechanism.below))
        return [Dominated(above, below)]
    more = 1 + 4 * EPS
    if isinstance(mechanism, ZeroConcentratedDP):
        return [ZeroConcentratedDP(mechanism.rho * count * more, mechanism.xi * count * more)]
    if isinstance(mechanism, MatrixMechanism) and mechanism.sensitivity is not None:
        widened = mechanism.sensitivity * math.sqrt(count) * more
        return [MatrixMechanism(mechanism.noise_multiplier, sensitivity=widened)]
    if count > _MOST:
        raise InputError(f"event must repeat a guarantee at most {_MOST:,} times, got {count:,} of {mechanism!r}")
    return [mechanism] * count


def _sigma(event: Any) -> float:
    return number(f"{_name(event)}.noise_multiplier", event.noise_multiplier, above=0.0, below=math.inf)


def _name(event: Any) -> str:
    """Class name of a dp-accounting event; others get their full name, which no table lists."""
    kind = type(event)
    return (
        f"{kind.__module__}.{kind.__name__}" if kind.__module__.partition(".")[0] != "dp_accounting" else kind.__name__
    )
