"""Which step a mechanism that is no simpler one is made of, and how often: one line per mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deniable.accounting.steps.base import Repeated, Step
from deniable.accounting.steps.discrete import DiscreteGaussianStep, DiscreteLaplaceStep, FinitePairStep, ResponseStep
from deniable.accounting.steps.gaussian_mixture import several_records
from deniable.accounting.steps.laplace import LaplaceStep, epsilon_of
from deniable.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    FinitePair,
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
