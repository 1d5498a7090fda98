"""Which step a mechanism that is no simpler one is made of, and how often: one line per mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from deniable._check import InputError
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.steps.allocation import AllocatedStep
from deniable.accounting.steps.base import Repeated, SampledStep, Step
from deniable.accounting.steps.discrete import DiscreteGaussianStep, DiscreteLaplaceStep, FinitePairStep, ResponseStep
from deniable.accounting.steps.gaussian_mixture import several_records
from deniable.accounting.steps.laplace import LaplaceStep, epsilon_of
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep
from deniable.mechanisms import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    FinitePair,
    GaussianDP,
    Laplace,
    Mechanism,
    PureDP,
    RandomizedResponse,
    SubsampledGaussian,
)

STEPS: dict[type[Mechanism], Callable[[Any], tuple[Step, int]]] = {
    Laplace: lambda m: (LaplaceStep(epsilon_of(m.sensitivity, m.scale), m.sample_rate), m.steps),
    PureDP: lambda m: (ResponseStep(m.epsilon, 2), 1),
    DiscreteGaussian: lambda m: (DiscreteGaussianStep(m.sigma, m.sensitivity, m.sample_rate), m.steps),
    DiscreteLaplace: lambda m: (DiscreteLaplaceStep(m.scale, m.sensitivity, m.sample_rate), m.steps),
    FinitePair: lambda m: (FinitePairStep(m.p, m.q), m.steps),
    RandomizedResponse: lambda m: (ResponseStep(m.epsilon, m.categories), m.steps),
    SubsampledGaussian: lambda m: (several_records(m), m.steps),  # of one record: the loss's own phases
    Repeated: lambda m: (m.step, m.count),
}


def step_of(mechanism: Mechanism) -> tuple[Step, int] | None:
    """Return the step that a mechanism repeats and how often; None if it is not made of one."""
    if isinstance(mechanism, Step):
        return mechanism, 1
    for kind in type(mechanism).__mro__:  # a subclass runs what it is nearest to
        if kind in STEPS:
            return STEPS[kind](mechanism)
    return None


def sampled(mechanism: Mechanism, rate: float) -> Mechanism:
    """Return ``mechanism`` with each of its steps made on a Poisson sample: a record takes part by its own coin.

    Parameters
    ----------
    mechanism
        What runs on the sample: noise, finite laws, (ε, δ), your own :class:`Step` with a way to be sampled.
    rate
        Probability with which the record takes part in a step.

    Returns
    -------
    Mechanism
        As many sampled steps as ``mechanism`` has.

    Raises
    ------
    InputError
        For what compares two contents of a record, or is not made of steps whose law is known.

    Examples
    --------
    >>> import deniable as dn
    >>> guarantee = dn.ApproximateDP(1.0, 1e-6)
    >>> runs = guarantee, dn.accounting.sampled(guarantee, 0.1), dn.accounting.allocated(guarantee, 10)
    >>> [round(dn.tradeoff(run).advantage(), 4) for run in runs]
    [0.4621, 0.0462, 0.1343]
    """
    step, count = _one_of(mechanism)
    return SampledStep(step, rate).times(count)


def allocated(mechanism: Mechanism, batches: int) -> Mechanism:
    """Return ``mechanism`` with an epoch of ``batches`` batches for each of its steps, the record in a random one.

    There the step runs with the record, in the other batches as if it were out.

    Parameters
    ----------
    mechanism
        What runs on a batch, as for :func:`sampled`.
    batches
        Of an epoch; the record is in one of them, each with the same probability.

    Returns
    -------
    Mechanism
        As many epochs as ``mechanism`` has steps.

    Raises
    ------
    InputError
        As :func:`sampled`.

    Examples
    --------
    See ``sampled``.
    """
    step, count = _one_of(mechanism)
    return AllocatedStep(step, batches).times(count)


def _one_of(mechanism: Mechanism) -> tuple[Step, int]:
    match mechanism:
        case GaussianDP(mu) if 0 < mu < MOST_EXPONENT:
            return SubsampledGaussianStep(1 / mu * (1 - 2 * EPS), 1.0), 1
        case SubsampledGaussian(sigma, rate, steps, 1):
            return SubsampledGaussianStep(sigma, rate), steps
        case ApproximateDP(epsilon, delta) if epsilon < MOST_EXPONENT:
            more, fails = epsilon + 16 * EPS * (1 + epsilon), min(delta * (1 + 4 * EPS), 1.0)  # than roundings move
            right, wrong = ((1 - fails) / (1 + math.exp(sign * more)) for sign in (-1, 1))
            return FinitePairStep((fails, right, wrong, 0.0), (0.0, wrong, right, fails)), 1
        case _ if (known := step_of(mechanism)) is not None:
            return known
    raise InputError(f"mechanism must be one kind of step whose law is known, got {mechanism!r}; sample its parts")
