"""One door from a mechanism to what an attacker can do against it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from deniable._check import InputError, choice, flag, number
from deniable._floats import EPS
from deniable._optional import require
from deniable.accounting.curve import ComposedTradeoff
from deniable.accounting.engines.closed import LabelledTradeoff, OneStepTradeoff
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.engines.lines import Effort
from deniable.accounting.guarantees import from_divergences, is_stated_in_divergences
from deniable.accounting.pld.curve import MultiScaleTradeoff, replaced_record
from deniable.accounting.reductions import Dominated, merged, reduced
from deniable.accounting.renyi import curve_of_loss
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.gaussian_mixture import GaussianMixtureStep
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import (
    EVERY_CASE,
    FIXED_BEFOREHAND,
    TUNING_COUNTED,
    TUNING_PARTLY_COUNTED,
    ApproximateTradeoff,
    BracketTradeoff,
    GaussianTradeoff,
    SmallestTradeoff,
    Tradeoff,
    with_assumptions,
    with_note,
)
from deniable.curves.combined import with_failure
from deniable.mechanisms import (
    ADJACENCIES,
    ApproximateDP,
    Composition,
    FinitePair,
    GaussianDP,
    Grouped,
    Mechanism,
    PureDP,
    RandomAllocation,
    Tuned,
)
from deniable.mechanisms.core import parts_of
from deniable.risks import replaced

Engine = Literal["auto", "inversion", "pld", "ball"]
_MOST_OUTCOMES = 1 << 15  # of a composition that is listed outcome by outcome
_MOST_TIMES = 256  # that one of its steps is made
_MOST_PHASES = 4096  # more are rounded to this many, unless patience was asked for
_SHARPEST = 0.1  # noise multipliers below are beyond the reach of lines alone
_HARDLY_EVER = 1e-140  # sampling rates below: the variance of the loss would underflow


def tradeoff(
    mechanism: Mechanism,
    *,
    engine: Engine = "auto",
    tolerance: float = 1e-13,
    adjacency: str | None = None,
    patient: bool = False,
) -> Tradeoff:
    """Return the trade-off of ``mechanism``: bounds on every membership attack against it.

    Parameters
    ----------
    mechanism
        Any of ``deniable.mechanisms``, or a ``Composition`` of them. Equal phases are merged, Gaussian parts (full
        batches included) become one, and closed forms are used where one is left. (ε, δ)-DP parts enter through their
        worst pair, so the result holds for every such mechanism. A composition with a ``RenyiDP`` or
        ``ZeroConcentratedDP`` part is bounded through the Rényi divergences of all parts.
    engine
        ``"auto"``: closed form, else transform inversion of sampled Gaussian steps and, where its error bound is not
        small and for other steps, a multi-scale privacy loss distribution. ``"inversion"``, ``"pld"``: that engine
        alone. ``"ball"``: interval arithmetic by python-flint (extra ``proof``), which proves every digit and may take
        seconds.
    tolerance
        Aliasing and truncation error that the inversion aims at, relative to the size of what is integrated. The
        error that was reached, not this aim, is what separates ``side="upper"`` from ``side="lower"``.
    adjacency
        What the two worlds differ in; by default the mechanism's own, which is ``"add-remove"`` for most and stands on
        the curve's ``assumptions``. ``"replace"``: the content of one record; where the mechanism's own is adding or
        removing, the curve is that of a removal followed by an addition (:func:`deniable.risks.replaced`): exactly 2μ
        for Gaussian mechanisms, attained for ``PureDP`` and ``ApproximateDP``, an upper bound otherwise. For Poisson
        batches with Gaussian noise it is composed step by step, and attained.
        ``"zero-out"``: one record contributes 0 and everything else stays, sampling included.
    patient
        Let a hard question take a hundred times as long, and more memory, before a wider bracket is returned: four
        times as many points; of runs of more than 512 different phases, all phases.

    Raises
    ------
    InputError
        For an unknown mechanism, engine or adjacency, or an engine that does not serve the mechanism.
    """
    choice("engine", engine, get_args(Engine))
    number("tolerance", tolerance, above=0.0, at_most=1e-2)
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"mechanism must be one of deniable's mechanisms, got {mechanism!r}")
    if isinstance(mechanism, Grouped):
        one = tradeoff(
            mechanism.mechanism,
            engine=engine,
            tolerance=tolerance,
            adjacency=adjacency,
            patient=patient,
        )
        return one.group(mechanism.records_per_person)
    own = mechanism.adjacency
    wanted = own if adjacency is None else choice("adjacency", adjacency, ADJACENCIES)
    same = wanted in (own, *mechanism.also)
    if not same and wanted != "replace":
        raise InputError(
            f"adjacency must be {own!r} for this mechanism, got {wanted!r}: no bound for this pair of "
            "worlds is known here"
        )
    effort = Effort.patient() if flag("patient", patient) else Effort()
    found = replace(
        _add_or_remove(mechanism, engine, tolerance, effort),
        holds_for=EVERY_CASE,
    )
    if _composed_of_several(mechanism):
        found = with_note(found, FIXED_BEFOREHAND)
    tuned = [isinstance(part, Tuned) for part in parts_of(mechanism)]
    if any(tuned):
        found = with_note(found, TUNING_COUNTED if all(tuned) else TUNING_PARTLY_COUNTED)
    if mechanism.hidden:
        secret = "; and ".join(mechanism.hidden)
        found = with_assumptions(found, access=f"what is released at the end; secret must stay {secret}")
    if same:
        return found if wanted == "add-remove" else with_assumptions(found, adjacency=ADJACENCIES[wanted])
    twice = replaced(found, any_mechanism=isinstance(mechanism, PureDP | ApproximateDP))
    return replaced_record(map(reduced, parts_of(mechanism)), twice) if engine == "auto" else twice


def _add_or_remove(
    mechanism: Mechanism,
    engine: Engine,
    tolerance: float,
    effort: Effort,
) -> Tradeoff:
    parts = tuple(reduced(part) for part in parts_of(mechanism))

    def of(some: Sequence[Mechanism]) -> Tradeoff:
        return _add_or_remove(Composition(some), engine, tolerance, effort)

    dominated = [part for part in parts if isinstance(part, Dominated)]
    if dominated:
        others = [part for part in parts if not isinstance(part, Dominated)]
        above = of([*others, *(part.above for part in dominated)])
        below = Composition([*others, *(part.below for part in dominated)])
        own: Engine = engine if engine == "ball" else "auto"
        reached = [_add_or_remove(below, own, tolerance, effort)]
        reached += [curve for part in dominated for curve in part.alone]
        if mechanism.adjacency == "replace":  # either content may be the one that is there
            reached += [curve.inverse() for curve in reached]
        return BracketTradeoff(
            above, SmallestTradeoff(tuple(reached)), method=above.method, confidence=above.confidence
        )
    failure = _failure(parts)
    if failure == 1:
        return ApproximateTradeoff(math.inf, 1.0)
    stated = [part for part in parts if is_stated_in_divergences(part)]
    if stated:
        if engine != "auto":
            raise InputError(f"engine must be 'auto' for guarantees in Rényi divergences, got {engine!r}")
        # failures are told apart: the rest is what happens without one
        exact = [
            PureDP(part.epsilon) if isinstance(part, ApproximateDP) else part for part in parts if part not in stated
        ]
        rest = of(exact) if exact else None
        return with_failure(from_divergences(stated, exact, rest, lambda run: of([run])), failure)
    if engine == "ball":
        require("flint", purpose="engine 'ball'")
        from deniable.accounting.engines.ball import BallTradeoff

        return BallTradeoff.of(parts)
    loss = PrivacyLoss.of(parts)
    alone = sum(isinstance(part, ApproximateDP) for part in parts) == 1
    if engine == "auto":
        found = _composed(loss, tolerance, effort)
    elif engine == "pld":
        found = MultiScaleTradeoff.of(loss, most=effort.points)
    elif loss.others:
        raise InputError(f"engine {engine!r} does not serve every step of this mechanism; use engine='auto'")
    elif loss.steps.size > 0 and float(loss.noise.min()) < _SHARPEST:
        raise InputError(
            f"engine {engine!r} works for noise multipliers of at least {_SHARPEST:g}, got {loss.noise.min():g}; "
            "use engine='auto'"
        )
    else:
        found = InvertedTradeoff(loss, tolerance, effort)
    return with_failure(found, failure, exact=alone)


def _outcome_by_outcome(loss: PrivacyLoss) -> Tradeoff | None:
    """The closed form of a single step, or a composition of few outcomes, where there is nothing else."""
    if loss.steps.size or loss.gaussian > 0:
        return None
    ((step, count), *rest) = loss.others
    single = not rest and count == 1 and not loss.randomized_responses
    labelled = LabelledTradeoff.of(step) if single and isinstance(step, GaussianMixtureStep) else None
    alone = step.one_step() if single and labelled is None else labelled
    if alone is not None:
        return alone
    laws = [(step.support(), count) for step, count in loss.others]
    laws += [(FiniteLaw.randomized_responses(e, 1), round(count)) for e, count in loss.randomized_responses]
    found: FiniteLaw | None = None
    log_outcomes = 0.0
    for law, times in laws:
        if law is None or times > _MOST_TIMES:
            return None
        kinds = max(law.p.size, 1)  # equal sums are merged: what counts is how often each outcome was drawn
        log_outcomes += math.lgamma(times + kinds) - math.lgamma(times + 1) - math.lgamma(kinds)
        if not log_outcomes <= math.log(_MOST_OUTCOMES):
            return None
        for _ in range(times):
            found = law if found is None else found.composed(law)
    if found is None:
        return None
    finite = FiniteTradeoff.of(found)
    known = all(step.bounds_divergence for step, _ in loss.others)
    if known and math.isinf(max(found.reach)):  # outcomes were left out that have no largest ratio
        finite = replace(finite, divergences=curve_of_loss(replace(loss, gaussian=0.0)))
    return finite


def _composed(loss: PrivacyLoss, tolerance: float, effort: Effort) -> Tradeoff:
    """Closed forms, or the loop over engines; apart are phases that hardly ever draw, and rounded are too many."""
    alone = _outcome_by_outcome(loss) if loss.others else _closed_form(loss)
    if alone is not None:
        return alone
    hardly = loss.rate < _HARDLY_EVER
    if hardly.any():
        rest = _composed(loss.phases(~hardly), tolerance, effort)
        took = min(float(loss.steps[hardly] @ loss.rate[hardly]) * (1 + 8 * EPS), 1.0)
        return BracketTradeoff(
            with_failure(rest, took), rest, method=f"{rest.method}; steps that hardly ever draw apart"
        )
    if loss.steps.size <= _MOST_PHASES or effort == Effort.patient():
        return ComposedTradeoff.of(loss, tolerance, effort)
    above, below = (ComposedTradeoff.of(run, tolerance, effort) for run in merged(loss, _MOST_PHASES))
    method = f"{loss.steps.size:,} phases rounded to {_MOST_PHASES} (patient=True keeps all): {above.method}"
    return BracketTradeoff(above, below, method=method)


def _composed_of_several(mechanism: Mechanism) -> bool:
    """Whether something could have been chosen after looking at earlier outputs."""
    parts = parts_of(mechanism)
    return len(parts) > 1 or any(isinstance(part, RandomAllocation) or getattr(part, "steps", 1) > 1 for part in parts)


def _failure(parts: tuple[Mechanism, ...]) -> float:
    """Probability that some (ε, δ)-DP part gives the world away: 1 − Π(1 − δ), and 1 where ε = ∞.

    It is 1 only if it is certain: the double below stands for what rounds to 1.
    """
    pure = [p for p in parts if isinstance(p, PureDP | ApproximateDP)]
    if any(isinstance(p, FinitePair) and not np.any(np.minimum(p.p, p.q) > 0) for p in parts):  # nothing in common
        return 1.0
    if any(math.isinf(p.epsilon) for p in pure) or any(isinstance(p, GaussianDP) and math.isinf(p.mu) for p in parts):
        return 1.0
    deltas = [p.delta for p in pure if isinstance(p, ApproximateDP)]
    if any(delta == 1 for delta in deltas):
        return 1.0
    if len(deltas) == 1:
        return deltas[0]
    return min(-math.expm1(math.fsum(math.log1p(-delta) for delta in deltas)) * (1 + 4 * EPS), 1 - EPS / 2)


def _closed_form(loss: PrivacyLoss) -> Tradeoff | None:
    kinds = loss.steps.size, int(loss.gaussian > 0), int(sum(count for _, count in loss.randomized_responses))
    match kinds:
        case (0, _, 0):
            return GaussianTradeoff(math.sqrt(loss.gaussian))
        case (0, 0, 1):
            ((epsilon, _),) = loss.randomized_responses
            return ApproximateTradeoff(epsilon, 0.0)
        case (1, 0, 0) if loss.steps[0] == 1:
            return OneStepTradeoff(float(loss.noise[0]), float(loss.rate[0]))
        case (0, 0, _):
            try:
                return FiniteTradeoff.randomized_responses(loss.randomized_responses)
            except MemoryError:  # hundreds of millions of parts
                return None
        case _:
            return None
