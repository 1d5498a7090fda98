"""Which step a mechanism is made of, and how often: one line a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deniable.accounting.steps.base import Repeated, Step
from deniable.accounting.steps.laplace import BoundedRangeStep, LaplaceStep
from deniable.mechanisms import BoundedRange, Laplace, Mechanism

STEPS: dict[type[Mechanism], Callable[[Any], tuple[Step, int]]] = {
    Laplace: lambda m: (LaplaceStep(m.sensitivity / m.scale, m.sample_rate), m.steps),
    BoundedRange: lambda m: (BoundedRangeStep(m.epsilon), m.steps),
    Repeated: lambda m: (m.step, m.count),
}


def step_of(mechanism: Mechanism) -> tuple[Step, int] | None:
    """Return the step that a mechanism repeats and how often; None if it is not made of one."""
    if isinstance(mechanism, Step):
        return mechanism, 1
    found = STEPS.get(type(mechanism))
    return None if found is None else found(mechanism)
