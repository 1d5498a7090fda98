"""The range of ε in which a record goes from hidden to exposed, and the plateaus of LeBlond et al."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from deniable._check import FloatArray, InputError, number
from deniable._search import bisect
from deniable.laws import LossLaw
from deniable.records.mechanisms import OutputPerturbation

if TYPE_CHECKING:
    from deniable.records.profile import PrivacyProfile


@dataclass(frozen=True, eq=False)
class Transition:
    """Where one record goes from hidden to exposed as the noise shrinks.

    Attributes
    ----------
    record
        The record at the requested quantile of exposure (1: the worst).
    epsilon_low, epsilon_high
        ε at which an upper bound of its advantage reaches ``low`` and a lower bound of it reaches ``high``. Below
        ``epsilon_low`` the record's advantage is certainly at most ``low``.
    epsilon, advantage
        The curve between and around them.
    mean_size
        E|l|/β (or E|l|·s) along the curve, the quantity of LeBlond et al. Figures 5–7, in units of the parameters.
    reading
        What the plateaus of ``mean_size`` do and do not mean (erratum E15).

    Examples
    --------
    See ``privacy_profile``.
    """

    record: int
    low: float
    high: float
    epsilon_low: float
    epsilon_high: float
    epsilon: FloatArray = field(repr=False)
    advantage: FloatArray = field(repr=False)
    mean_size: FloatArray = field(repr=False)
    reading: str = (
        "Below the band E|l|/β levels off because l is about β times a distance: that is a property of the unit, not "
        "of privacy. |l| itself keeps falling in proportion to β, E l and the advantage with it, so less ε always "
        "buys less leakage."
    )


def find_transition(profile: PrivacyProfile, *, quantile: float, low: float, high: float) -> Transition:
    """Locate the range for the record at ``quantile`` of the distances."""
    q = number("quantile", quantile, at_least=0.0, at_most=1.0)
    a = number("low", low, above=0.0, below=1.0)
    b = number("high", high, above=a, below=1.0)
    order = profile.ranking("typical")[::-1]
    record = int(order[min(int(np.ceil(q * len(order))), len(order)) - 1 if q > 0 else 0])
    distance, error = float(profile.distance[record]), float(profile.distance_error[record])
    if distance <= error:
        raise InputError("transition needs a record whose distance is certified above 0; lower tolerance")
    mechanism, sensitivity = profile.mechanism, profile.sensitivity
    if sensitivity is None or not isinstance(mechanism, OutputPerturbation):
        raise InputError("transition needs OutputPerturbation(epsilon=...): it varies ε along a known law")
    law = mechanism.law(profile.optimum.size)

    def epsilon_at(rate: float) -> float:
        return mechanism.epsilon_of(rate * sensitivity)

    first, last = _rho_at(law, a, "low"), _rho_at(law, b, "high")
    rho = np.geomspace(first / 30, last * 4, 100)
    return Transition(
        record=record,
        low=a,
        high=b,
        epsilon_low=epsilon_at(first / (distance + error)),
        epsilon_high=epsilon_at(last / (distance - error)),
        epsilon=np.array([epsilon_at(r / distance) for r in rho]),
        advantage=law.advantage(rho, "upper"),
        mean_size=law.mean_size(rho) / rho * distance,
    )


def _rho_at(law: LossLaw, advantage: float, end: str) -> float:
    """ρ where the advantage reaches the value: the last ρ surely below it, or the first surely at it."""
    side = "upper" if end == "low" else "lower"
    low, high = 0.0, 1.0
    while float(law.advantage(np.array([high]), side)[0]) < advantage:  # type: ignore[arg-type]
        low, high = high, 2 * high
    below, at = bisect(lambda rho: law.advantage(np.atleast_1d(rho), side)[0] < advantage, low, high)  # type: ignore[arg-type]
    return float(below if end == "low" else at)
