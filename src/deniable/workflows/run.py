"""From what ran (a mechanism, a trade-off, a record of a training run) to an assessment: bounds on every attack."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from deniable.accounting import tradeoff as tradeoff_of
from deniable.curves import ApproximateTradeoff, Tradeoff
from deniable.integrations import DPEBM, PrivateRun, from_dp_event, from_opacus
from deniable.mechanisms import Composition, Grouped, Mechanism, SubsampledGaussian, Tuned, WithoutReplacement, parts_of
from deniable.report import (
    Asked,
    Assessment,
    bound_headline,
    bound_section,
    caveats,
    risk_section,
)
from deniable.workflows.settings import settings


def assess_mechanism(source: Mechanism | Tradeoff, asked: Asked) -> Assessment:
    """Return the bounds on every attack, and the other risks that the curve bounds."""
    bound = source if isinstance(source, Tradeoff) else tradeoff_of(source)
    sections = [bound_section(bound, asked, comparisons=from_epsilon_alone(bound, asked.delta))]
    if bound.universal:
        sections.append(risk_section(bound, asked.baselines))
    not_covered, warnings = caveats(bound)
    return Assessment(
        title=asked.title or (describe(source) if isinstance(source, Mechanism) else "A release"),
        status="bounded",
        headline=bound_headline(bound),
        sections=tuple(sections),
        assumptions=bound.assumptions,
        not_covered=not_covered,
        warnings=warnings,
        reproduction={"source": python_text(source)} if isinstance(source, Mechanism) else {},
        remedies=partial(settings, source) if isinstance(source, Mechanism) else None,
    )


def from_epsilon_alone(bound: Tradeoff, delta: float) -> dict[str, Tradeoff]:
    """Return what (ε, δ) alone would say, by its name; nothing for a curve that is made from it, or has no ε."""
    epsilon = bound.epsilon(delta)
    if isinstance(bound, ApproximateTradeoff) or not np.isfinite(epsilon):
        return {}
    return {f"from (ε, δ) = ({epsilon:.4g}, {delta:g}) alone": ApproximateTradeoff(max(epsilon, 0.0), delta)}


def assess_run(source: Any, asked: Asked) -> Assessment:
    """Return the assessment of what Opacus, a DpEvent or :func:`deniable.make_private` recorded."""
    if type(source).__name__.endswith(("DpEvent", "ExecutionPlanConfig")):
        return assess_mechanism(from_dp_event(source), asked)
    return assess_mechanism(source.mechanism if isinstance(source, PrivateRun) else from_opacus(source), asked)


def describe(mechanism: Mechanism) -> str:
    """Return a title for a mechanism."""
    phases = [part for part in parts_of(mechanism) if isinstance(part, SubsampledGaussian)]
    if phases and len(phases) == len(parts_of(mechanism)):
        steps, most = sum(part.steps for part in phases), max(part.records_per_person for part in phases)
        one = f"noise multiplier {phases[0].noise_multiplier:g}, sample rate {phases[0].sample_rate:g}"
        whose = "" if most == 1 else f", persons of {'up to ' * (len(phases) > 1)}{most} records"
        return f"DP-SGD: {one if len(phases) == 1 else f'{len(phases)} phases'}, {steps:,} steps{whose}"
    match mechanism:
        case WithoutReplacement(sigma, batch, n, steps):
            return (
                f"{steps:,} steps on {batch:,} of {n:,} records without replacement, noise multiplier {sigma:g} (over "
                "the norm of one record), for replacing a record, which moves a sum by two norms"
            )
        case DPEBM():
            stated = f"({mechanism.promised_epsilon:g}, {mechanism.promised_delta:g})"
            return f"A private explainable boosting machine, stated to be {stated}-DP"
        case Grouped(of_one, count):
            return f"{describe(of_one)}, persons of {count} records"
        case Tuned():
            one = describe(mechanism.mechanism)
            return f"The best of a random number of runs, {mechanism.trials:g} on average. {one}"
        case Composition(parts):
            return f"A composition of {len(parts)} mechanisms"
    fields = asdict(mechanism).items()  # type: ignore[call-overload]
    given = ", ".join(f"{name} = {_brief(value)}" for name, value in fields if value is not None)
    return f"{type(mechanism).__name__} with {given}"


def _brief(value: Any) -> str:
    """A parameter in a title: a number with six digits, of a long list its ends."""
    if isinstance(value, np.ndarray):
        return f"a matrix of {' × '.join(map(str, value.shape))}"
    if isinstance(value, tuple | list):
        shown = [*value[:2], "…", value[-1]] if len(value) > 4 else list(value)
        return f"({', '.join(_brief(item) for item in shown)})"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


_LONG = 2000  # letters of a mechanism's words on a page


def python_text(mechanism: Mechanism) -> str:
    """Return a mechanism as Python, as far as a page has room."""
    text = repr(mechanism)
    return text if len(text) < _LONG else f"{type(mechanism).__name__} of {text.count('(') - 1} mechanisms"
