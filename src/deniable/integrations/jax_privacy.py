"""Plans of JAX Privacy: what runs, and between which data sets; read from jax_privacy 2.0.0, which is not imported."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from deniable._check import InputError
from deniable._floats import EPS
from deniable.accounting import Dominated, ReplacedGaussianStep
from deniable.mechanisms import Composition, Mechanism, PureDP, SubsampledGaussian


def meant(mechanism: Mechanism, adjacency: str, alone: bool = False) -> Mechanism:
    """A copy of a mechanism for adding or removing a record that says what its worlds differ in instead, or also."""
    if isinstance(mechanism, Composition):
        return Composition(meant(part, adjacency) for part in mechanism.mechanisms)
    if isinstance(mechanism, Dominated):
        return replace(mechanism, above=meant(mechanism.above, adjacency))
    if mechanism.adjacency != "add-remove":
        return mechanism
    told = copy.copy(mechanism)
    object.__setattr__(told, "adjacency", adjacency)
    object.__setattr__(told, "also", () if alone else ("add-remove", *mechanism.also))
    return told


def mechanism_of_plan(config: Any) -> Mechanism:
    """What a plan of JAX Privacy does to the record that its neighbouring relation names, its group being known."""
    if type(config).__name__ != "BandMFExecutionPlanConfig":
        raise InputError(
            f"event must be a DpEvent or a BandMFExecutionPlanConfig of JAX Privacy, got its {type(config).__name__}; "
            "of a plan pass the config, which says what neighbouring data sets are"
        )
    if config.noise_seed is not None:
        warnings.warn("noise_seed is set: whoever knows it subtracts all noise; leave it out", stacklevel=3)
    strategy, relation = np.asarray(config.strategy, dtype=float), config.accountant.neighboring_relation.name
    group, most = (config.num_examples or 0) // len(strategy), config.truncated_batch_size
    if config.sampling_prob == 0 or (most is not None and min(most, group) == 0):
        return PureDP(0.0)
    event = config.plan.dp_event.event
    noise = getattr(event, "event", event).noise_multiplier * (2 if relation == "REPLACE_ONE" else 1)
    if config.column_normalize:  # the noise is in units of the columns as they were before
        noise *= min(1.0, float(np.linalg.norm(strategy)) * (1 - 64 * EPS))
    steps = -(-config.iterations // len(strategy))

    def at(rate: float) -> Mechanism:
        if relation == "REPLACE_ONE" and rate < 1:
            return ReplacedGaussianStep(noise, rate).times(steps)
        if relation == "REPLACE_ONE":
            return meant(SubsampledGaussian(noise / 2, 1.0, steps), "replace", alone=True)
        plain = SubsampledGaussian(noise, rate, steps)
        independent = config.partition_type.name == "INDEPENDENT"
        return plain if relation == "ADD_OR_REMOVE_ONE" else meant(plain, "zero-out", alone=not independent)

    rate = float(config.sampling_prob)
    if most is None or most >= group:
        return at(rate)
    return Dominated(at(rate), at(rate * most / group * (1 - 4 * EPS)))  # full batches drop records, whoever they are
