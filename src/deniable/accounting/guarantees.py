"""Mechanisms that are known through a guarantee only: what the door does with them before it asks for exact laws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from deniable.accounting.engines.renyi_region import RenyiRegionTradeoff
from deniable.accounting.loss import PrivacyLoss
from deniable.accounting.renyi import ConcentratedCurve, RenyiCurve, TabulatedCurve, composed, curve_of_loss
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism, RenyiDP, ZeroConcentratedDP


def is_stated_in_divergences(mechanism: Mechanism) -> bool:
    """Whether all that is known of a mechanism are Rényi divergences."""
    return isinstance(mechanism, RenyiDP | ZeroConcentratedDP)


def from_divergences(stated: Sequence[Mechanism], exact: Iterable[Mechanism], below: Tradeoff | None) -> Tradeoff:
    """Return what Rényi divergences say of a composition: those ``stated`` and those of ``exact`` laws.

    ``below`` is the trade-off of the exact ones alone, which an attacker reaches who ignores the others' outputs.
    """
    curves = [_stated_curve(part) for part in stated]
    known = list(exact)
    if known:
        curves.append(curve_of_loss(PrivacyLoss.of(known)))
    return RenyiRegionTradeoff(composed(curves), below, method="Rényi divergences of every order, intersected")


def _stated_curve(mechanism: Mechanism) -> RenyiCurve:
    if isinstance(mechanism, ZeroConcentratedDP):
        return ConcentratedCurve(mechanism.rho, mechanism.xi)
    assert isinstance(mechanism, RenyiDP)
    bounds = np.array(mechanism.epsilons)
    return TabulatedCurve(np.array(mechanism.orders), bounds, bounds)
