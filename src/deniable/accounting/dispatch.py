"""From a mechanism to what an attacker can do against it: checks, what is special, then one curve a kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from deniable._check import InputError, choice, flag
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.curve import ComposedTradeoff, replaced_record
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.engines.inversion import GOOD
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.guarantees import from_divergences, is_stated_in_divergences
from deniable.accounting.reductions import Dominated, merged, reduced
from deniable.accounting.renyi import loss_divergence
from deniable.accounting.sizes import PATIENT, POINTS
from deniable.accounting.steps.discrete import ResponseStep
from deniable.accounting.steps.sampled import SampledTradeoff
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
    with_batches_of,
    with_failure,
)
from deniable.mechanisms import (
    ADJACENCIES,
    ApproximateDP,
    FinitePair,
    GaussianDP,
    Grouped,
    Mechanism,
    PureDP,
    RandomAllocation,
    SubsampledGaussian,
    Tuned,
    held,
    parts_of,
    together,
)
from deniable.risks import replaced

Engine = Literal["auto", "inversion", "pld"]
_MOST_PHASES = 4096  # more are rounded to this many, unless patience was asked for


@dataclass(frozen=True)
class Request:
    """How a curve is to be computed: see :func:`tradeoff`."""

    engine: Engine
    points: int


def tradeoff(
    mechanism: Mechanism | Sequence[Any],
    *,
    engine: Engine = "auto",
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
        ``ZeroConcentratedDP`` part is bounded through the Rényi divergences of all parts. Or what holds one (a fitted
        model, statistics, a certificate, a recorded run, (ε, δ)), with its notes; a list of these is composed.
    engine
        ``"auto"``: closed form, else transform inversion of sampled Gaussian steps and, where its error bound is not
        small and for other steps, a multi-scale privacy loss distribution. ``"inversion"``, ``"pld"``: that engine
        alone.
    adjacency
        What the two worlds differ in; by default the mechanism's own, which is ``"add-remove"`` for most and stands on
        the curve's ``assumptions``. ``"replace"``: the content of one record; where the mechanism's own is adding or
        removing, the curve is that of a removal followed by an addition (:func:`deniable.risks.replaced`): exactly 2μ
        for Gaussian mechanisms, attained for ``PureDP`` and ``ApproximateDP``, an upper bound otherwise. For Poisson
        batches with Gaussian noise it is composed step by step, and attained.
        ``"zero-out"``: one record contributes 0 and everything else stays, sampling included.
    patient
        Let a hard question take a hundred times as long, and more memory, before a wider bracket is returned: four
        times as many points; of runs of more than 4,096 different phases, all phases.

    Returns
    -------
    Tradeoff
        The curve. It answers ``advantage``, ``tpr``, ``epsilon``, … when asked, rounded up by default.

    Raises
    ------
    InputError
        For an unknown mechanism, engine or adjacency, or an engine that does not serve the mechanism.

    Examples
    --------
    See ``SubsampledGaussian``.
    """
    choice("engine", engine, get_args(Engine))
    every = together(mechanism) if isinstance(mechanism, list | tuple) else held(mechanism)
    if every is None:
        raise InputError(f"mechanism must be one of deniable's mechanisms, or a list of them, got {mechanism!r}")
    curve = _between_worlds(every, adjacency, Request(engine, PATIENT if flag("patient", patient) else POINTS))
    notes, worlds = tuple(dict.fromkeys((*every.notes, *curve.assumptions.notes))), curve.assumptions.adjacency
    if every.unit not in (None, "record"):
        whose = "the same column in each release" if every.unit == "person" else repr(every.unit)
        worlds = worlds.replace("one record", f"one person ({whose}) with all its records")
    return with_assumptions(curve, notes=notes, adjacency=worlds)


def _between_worlds(mechanism: Mechanism, adjacency: str | None, request: Request) -> Tradeoff:
    """The curve for the pair of worlds that is asked for, or the mechanism's own."""
    if isinstance(mechanism, Grouped):
        return _between_worlds(mechanism.mechanism, adjacency, request).group(mechanism.records_per_person)
    own = mechanism.adjacency
    wanted = own if adjacency is None else choice("adjacency", adjacency, ADJACENCIES)
    same = wanted in (own, *mechanism.also)
    if not same and wanted != "replace":
        raise InputError(
            f"adjacency must be {own!r} for this mechanism, got {wanted!r}: no bound for this pair of "
            "worlds is known here"
        )
    found = replace(_curve([mechanism], request), holds_for=EVERY_CASE)
    parts = parts_of(mechanism)
    tuned = [isinstance(part, Tuned) for part in parts]
    # whether something could have been chosen after looking at earlier outputs
    several = any(isinstance(part, RandomAllocation) or getattr(part, "steps", 1) > 1 for part in parts)
    notes = (FIXED_BEFOREHAND,) * (several or len(parts) > 1)
    notes += (TUNING_COUNTED if all(tuned) else TUNING_PARTLY_COUNTED,) * any(tuned)
    found = with_assumptions(found, notes=notes)
    if mechanism.hidden:
        secret = "; and ".join(mechanism.hidden)
        found = with_assumptions(found, access=f"what is released at the end; secret must stay {secret}")
    found = with_batches_of(found, mechanism)
    if same:
        return found if wanted == "add-remove" else with_assumptions(found, adjacency=ADJACENCIES[wanted])
    twice = replaced(found, any_mechanism=isinstance(mechanism, PureDP | ApproximateDP))
    if request.engine != "auto":
        return twice
    return replaced_record(
        [part if isinstance(part, SubsampledGaussian) else reduced(part) for part in parts_of(mechanism)],
        twice,
        request.points,
    )


def _curve(mechanisms: Iterable[Mechanism], request: Request) -> Tradeoff:
    parts = [reduced(part) for one in mechanisms for part in parts_of(one)]
    for belongs, curve in SPECIAL:
        if own := [part for part in parts if belongs(part)]:
            return curve(own, [part for part in parts if not belongs(part)], request)
    return _compose(parts, request)


def _between(own: list[Any], others: list[Mechanism], request: Request) -> Tradeoff:
    """Between the pairs that dominate and the best of what is reached."""
    pairs = dict.fromkeys([tuple(part.above for part in own), tuple(part.or_above or part.above for part in own)])
    known = tuple(_curve([*others, *pair], request) for pair in pairs)
    above = known[0] if len(known) == 1 else SmallestTradeoff(known, method=known[0].method)
    reached = [_curve([*others, *(part.below for part in own)], replace(request, engine="auto"))]
    reached += [curve for part in own for curve in part.alone]
    if any(part.adjacency == "replace" for part in own):  # either content may be the one that is there
        reached += [curve.inverse() for curve in reached]
    return BracketTradeoff(above, SmallestTradeoff(tuple(reached)), method=above.method, confidence=above.confidence)


def _gives_away(part: Mechanism) -> bool:
    match part:
        case PureDP(epsilon):
            return math.isinf(epsilon)
        case ApproximateDP(epsilon, delta):
            return math.isinf(epsilon) or delta == 1
        case GaussianDP(mu):
            return math.isinf(mu)
        case FinitePair(p, q):
            return not np.any(np.minimum(p, q) > 0)
        case _:
            return False


def _failing(own: list[Any], others: list[Mechanism], request: Request) -> Tradeoff:
    """Pure parts that give the world away with probability 1 − Π(1 − δ), which is not 1 though it may round to it."""
    pure = _curve([*(PureDP(part.epsilon) for part in own), *others], request)
    if len(own) == 1:
        return with_failure(pure, own[0].delta, exact=True)
    failure = -math.expm1(math.fsum(math.log1p(-part.delta) for part in own)) * (1 + 4 * EPS)
    return with_failure(pure, min(failure, 1 - EPS / 2))


def _close_to_overflow(own: list[Any], others: list[Mechanism], request: Request) -> Tradeoff:
    """Pure parts of which e^ε is no double: alone in closed form, else from above they give the world away."""
    if not others and len(own) == 1:
        return ApproximateTradeoff(own[0].epsilon, 0.0)
    return _between([Dominated(PureDP(math.inf), PureDP(MOST_EXPONENT))] * len(own), others, request)


def _stated(own: list[Any], others: list[Mechanism], request: Request) -> Tradeoff:
    if request.engine != "auto":
        raise InputError(f"engine must be 'auto' for guarantees in Rényi divergences, got {request.engine!r}")
    rest = _curve(others, request) if others else None
    return from_divergences(own, others, rest, lambda run: _curve([run], request))


# kinds that are not sums of independent losses: who belongs to them, and the curve of a run in which some do; the first
# that is there decides
SPECIAL: list[tuple[Callable[[Any], bool], Callable[[list[Any], list[Mechanism], Request], Tradeoff]]] = [
    (lambda part: isinstance(part, Dominated), _between),
    (_gives_away, lambda own, others, request: ApproximateTradeoff(math.inf, 1.0)),
    (lambda part: isinstance(part, ApproximateDP), _failing),
    (lambda part: isinstance(part, PureDP) and part.epsilon > MOST_EXPONENT, _close_to_overflow),
    (is_stated_in_divergences, _stated),
]


def _compose(parts: list[Mechanism], request: Request) -> Tradeoff:
    """The curve of a sum of independent losses; phases that are too many are rounded."""
    points = request.points
    loss = PrivacyLoss.of(parts)
    if request.engine == "pld":
        from deniable.accounting.pld.curve import MultiScaleTradeoff

        return MultiScaleTradeoff(loss, most=points)
    if request.engine == "inversion":
        inverted = InvertedTradeoff(loss, points, GOOD)
        if not (loss.has_transform and inverted.in_reach):
            raise InputError("engine 'inversion' does not reach every step of this mechanism; use engine='auto'")
        return inverted
    if (closed := _closed_form(loss)) is not None:
        return closed
    if loss.steps.size <= _MOST_PHASES or points == PATIENT:
        return ComposedTradeoff.of(loss, points)
    above, below = (ComposedTradeoff.of(run, points) for run in merged(loss, _MOST_PHASES))
    method = f"{loss.steps.size:,} phases rounded to {_MOST_PHASES} (patient=True keeps all): {above.method}"
    return BracketTradeoff(above, below, method=method)


def _closed_form(loss: PrivacyLoss) -> Tradeoff | None:
    """The curve of one step, of what composes in closed form, or of few outcomes, which are listed."""
    match int(loss.steps.sum()), loss.gaussian > 0, sum(n for _, n in loss.others):
        case (0, _, 0):
            return GaussianTradeoff(math.sqrt(loss.gaussian))
        case (1, False, 0):
            mu, rate = 1 / float(loss.noise[0]), float(loss.rate[0])
            whole = BracketTradeoff(*(GaussianTradeoff(math.nextafter(mu, end)) for end in (math.inf, 0.0)))
            return SampledTradeoff(whole, rate, partial(loss_divergence, loss))
        case (0, False, 1) if (alone := loss.others[0][0].one_step()) is not None:
            return alone
        case (0, False, _):
            return _as_finite_law(loss)
        case _:
            return None


def _as_finite_law(loss: PrivacyLoss) -> Tradeoff | None:
    """A composition of few outcomes; None if they are many."""
    try:
        laws = []
        for step, count in loss.others:
            if (law := step.support(count)) is None:
                return None
            laws.append(law)
        pure = all(isinstance(step, ResponseStep) and step.categories == 2 for step, _ in loss.others)
        found = FiniteTradeoff.of(laws, coarse=pure)
    except MemoryError:
        return None
    return replace(found, divergences=partial(loss_divergence, loss))
