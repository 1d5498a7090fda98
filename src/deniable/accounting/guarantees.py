"""Mechanisms that are known through a guarantee only: what becomes of them before exact laws are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from deniable.accounting.engines.renyi_region import RenyiRegionTradeoff
from deniable.accounting.renyi import ConcentratedCurve, RenyiCurve, TabulatedCurve, composed, curve_of_loss
from deniable.accounting.steps.allocation import AllocationStep
from deniable.accounting.steps.base import Repeated
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.tuning import tuned_curve
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism, RenyiDP, Tuned, ZeroConcentratedDP

# of random allocation: whole orders are exact, beyond some hundreds nothing is better than its noise alone
_ORDERS = np.concatenate([1 + np.geomspace(0.01, 0.9, 12), np.arange(2.0, 33.0), np.geomspace(34, 512, 20).round()])


def is_stated_in_divergences(mechanism: Mechanism) -> bool:
    """Whether all that is known of a mechanism are Rényi divergences."""
    return isinstance(mechanism, RenyiDP | ZeroConcentratedDP | Tuned)


def from_divergences(
    stated: Sequence[Mechanism],
    exact: Iterable[Mechanism],
    below: Tradeoff | None,
    of: Callable[[Mechanism], Tradeoff],
) -> Tradeoff:
    """Return what Rényi divergences say of a composition: those ``stated`` and those of ``exact`` laws.

    ``of`` gives the trade-off of one run of a tuned mechanism. ``below`` is the trade-off of the exact ones alone, as
    an attacker may ignore the outputs of the others.
    """
    curves = [_stated_curve(part, of) for part in stated]
    known = list(exact)
    random = [part for part in known if isinstance(part, Repeated) and isinstance(part.step, AllocationStep)]
    others = [part for part in known if part not in random]
    if others:
        curves.append(curve_of_loss(PrivacyLoss.of(others)))
    if random:
        epochs = curve_of_loss(PrivacyLoss.of(random))
        curves.append(TabulatedCurve(_ORDERS, epochs.divergence(_ORDERS, "add"), epochs.divergence(_ORDERS, "remove")))
    return RenyiRegionTradeoff(composed(curves), below)


def _stated_curve(mechanism: Mechanism, of: Callable[[Mechanism], Tradeoff]) -> RenyiCurve:
    if isinstance(mechanism, Tuned):
        return tuned_curve(mechanism, of(mechanism.mechanism))
    if isinstance(mechanism, ZeroConcentratedDP):
        return ConcentratedCurve(mechanism.rho, mechanism.xi)
    assert isinstance(mechanism, RenyiDP)
    bounds = np.array(mechanism.epsilons)
    return TabulatedCurve(np.array(mechanism.orders), bounds, bounds)
