"""Mechanisms that are known through a guarantee only: what becomes of them before exact laws are asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS
from deniable.accounting.renyi import RenyiCurve, composed, concentrated, curve_of_loss, tabulated
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import OPPOSITE, Direction, Tradeoff
from deniable.mechanisms import Mechanism, RenyiDP, Tuned, ZeroConcentratedDP

_TUNED = np.concatenate([1 + np.geomspace(0.01, 1000.0, 70), [np.inf]])  # orders of tuned mechanisms
_SLACK = math.sqrt(EPS)  # by which the law's parameter is moved to the safe side


def is_stated_in_divergences(mechanism: Mechanism) -> bool:
    """Whether all that is known of a mechanism are Rényi divergences."""
    return isinstance(mechanism, RenyiDP | ZeroConcentratedDP | Tuned)


def from_divergences(
    stated: Sequence[Mechanism], exact: Sequence[Mechanism], below: Tradeoff | None, of: Callable[[Mechanism], Tradeoff]
) -> Tradeoff:
    """Return what Rényi divergences say of a composition: those ``stated`` and those of ``exact`` laws.

    ``of`` gives the trade-off of one run of a tuned mechanism. ``below`` is the trade-off of the exact ones alone, as
    an attacker may ignore the outputs of the others.
    """
    from deniable.accounting.engines.renyi_region import RenyiRegionTradeoff

    lines = [part for part in stated if isinstance(part, ZeroConcentratedDP)]
    curves = [tuned_curve(part, of(part.mechanism)) for part in stated if isinstance(part, Tuned)]
    for part in stated:
        if isinstance(part, RenyiDP):
            bounds = np.array(part.epsilons)
            curves.append(tabulated(np.array(part.orders), bounds, bounds))
    if lines:
        up = 1 + len(lines) * EPS
        curves.append(concentrated(math.fsum(x.rho for x in lines) * up, math.fsum(x.xi for x in lines) * up))
    if exact:
        curves.append(curve_of_loss(PrivacyLoss.of(exact)))
    return RenyiRegionTradeoff(composed(curves), below)


def tuned_curve(mechanism: Tuned, one_run: Tradeoff) -> RenyiCurve:
    """Return the bounds on the divergences of a tuned mechanism, from the trade-off of one run.

    Theorem and proof: :func:`deniable.mechanisms.tuned`.

    Raises
    ------
    InputError
        If no Rényi divergence of a run is known to be finite.
    """
    known: dict[Direction, FloatArray] = {way: one_run.renyi(_TUNED, way) for way in ("remove", "add")}
    if not np.isfinite(known["remove"][:-1]).any() or not np.isfinite(known["add"][:-1]).any():
        raise InputError(
            f"mechanism must have finite Rényi divergences to be tuned, got {mechanism.mechanism!r}; an (ε, δ) "
            "guarantee with δ > 0 has none"
        )
    bounds = {way: _bound(mechanism, one_run, known, way) for way in known}
    return tabulated(_TUNED, bounds["remove"], bounds["add"])


def _bound(mechanism: Tuned, one_run: Tradeoff, known: dict[Direction, FloatArray], way: Direction) -> FloatArray:
    other, mean = OPPOSITE[way], mechanism.trials * (1 + 4 * EPS)
    less = _TUNED - 1
    if math.isinf(mechanism.shape):
        with np.errstate(invalid="ignore", over="ignore"):
            gamma = np.where(np.isinf(_TUNED), 1.0, _TUNED / less) * (1 - 4 * EPS)
            chosen = known[way] + mean * np.asarray(one_run.hockey_stick(gamma, other)) + math.log(mean) / less
            found = np.logaddexp(-mechanism.trials, less * chosen) / less  # of the moment, K = 0 included
        found = np.where(np.isinf(_TUNED), np.maximum(chosen, 0.0), found)
    else:
        log_stop = -math.log(mechanism.stop) * (1 + 4 * EPS) + _SLACK
        share = 1 / _TUNED
        with np.errstate(invalid="ignore"):
            second = np.where(np.isinf(known[other]), np.inf, (1 - share) * known[other] + log_stop * share)
        found = known[way] + (1 + mechanism.shape) * float(np.min(second)) + math.log(mean) / less
    return np.asarray(np.maximum(found, 0.0) * (1 + 32 * EPS) + 32 * EPS)
