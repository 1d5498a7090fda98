"""The advantage at even priors from a single short sum: the line Re w = ½, where both worlds count the same.

With F(t) = M(½ + it)/(t² + ¼) and G(ℓ) = e^{−ℓ/2}·E min(p, e^ℓ q) = (1/2π)∫ F(t)·e^{−itℓ} dt, the advantage is
1 − G(0), and the trapezoid sum with spacing 2π/Λ is Σ_m G(mΛ) (Poisson). G(±mΛ) is e^{−mΛ/2} less a hockey stick at
e^{mΛ} of one order of the worlds, which Chernoff bounds by e^{K(θ) − (θ − 1)mΛ} (θ > 1) and e^{K(θ) + θmΛ} (θ < 0).
So Λ need only be so large that these sticks are nothing, not that the aliases are.

Where to stop: of the bounds in :mod:`deniable.accounting.transform.decay` that on a moved contour is the quickest, and
sharp enough where the noise is not little.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from deniable._floats import EPS
from deniable.accounting.engines.inversion import ROUNDING_OF_K
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.decay import Envelope, lifts, shifted
from deniable.accounting.trapezoid import even_aliases, falling_rest, half_line, nodes_until

_OFFSETS = np.array([1.0, 2.0, 4.0, 8.0])
_FURTHEST = 3.5  # from ½: what the nodes near the real axis serve
_MOST_NODES = 4096
_TARGET = 1e-14  # what truncation and unknown aliases may add, each
_EDGES = np.geomspace(4.0, 14.0, 24)  # places to stop, in units of 1/√K″
_LOUD, _MOST_PHASES = 0.75, 4  # noise multipliers and phases for which that bound is tried


class EvenPrior(NamedTuple):
    """The advantage at prior ½: a lower and an upper bound, and what was charged."""

    low: float
    high: float
    aliasing: float  # from below only: from above the aliases are known up to hockey sticks, which are positive
    truncation: float
    rounding: float


def advantage_bracket(loss: PrivacyLoss) -> EvenPrior:
    """Lower and upper bound on H_1, the advantage at prior ½.

    Raises
    ------
    TooSlowError
        If the transform decays so slowly that the sum would be long.
    """
    _, _, variance = loss.cumulants(0.5)
    width = math.sqrt(variance)
    if not width > 1e-9:
        raise TooSlowError("the loss is an atom in double precision")
    period, hockey_sticks = _period(loss, width)
    spacing = 2 * math.pi / period
    t_end, neglected = _stop(loss, width, spacing)
    t = nodes_until(t_end, spacing, _MOST_NODES)
    line = loss.line(0.5, float(t[-1]))
    growth, _, _ = line.cumulants
    log_m, transform_error = line.transform(t, spacing)
    weight = math.exp(growth) * (half_line(t.size, period) / (t**2 + 0.25))
    terms = weight * np.exp(log_m.real)
    error = weight @ transform_error + 64 * EPS * terms.sum() + neglected * math.exp(growth) + 8 * EPS
    if not math.isfinite(error):
        raise TooSlowError("rounding is all there is")
    value = 1 - float(terms @ np.cos(log_m.imag)) + float(even_aliases(period))
    low, high = max(value - float(error) - hockey_sticks, 0.0), min(value + float(error), 1.0)
    truncation = neglected * math.exp(growth)
    return EvenPrior(low, high, hockey_sticks, truncation, float(error) - truncation)


def _stop(loss: PrivacyLoss, width: float, spacing: float) -> tuple[float, float]:
    """Where the sum may stop, and a bound on what follows, relative to M(½)."""
    if isinstance(loss, PrivacyLoss) and 0 < loss.steps.size <= _MOST_PHASES and loss.noise.min() >= _LOUD:
        t = _EDGES / width
        moved = shifted(loss.real_line(0.5), t, lifts(float(loss.steps.sum())))
        height = np.exp(loss.steps @ moved - loss.gaussian * t**2 / 2)
        remaining = falling_rest(t, height, spacing)
        enough = np.flatnonzero(remaining < _TARGET)
        if enough.size:
            return float(t[enough[0]]), float(remaining[enough[0]])
    t_end, truncation = Envelope.of(loss, 0.5, width, _TARGET).cut(_TARGET, spacing, "1/t²")
    return t_end, float(truncation[2])


def _period(loss: PrivacyLoss, width: float) -> tuple[float, float]:
    """The shortest period at which the sticks at e^{mΛ} are nothing, and a bound on what they add."""
    offset = np.minimum(_OFFSETS / width, _FURTHEST)
    growth = loss.log_mgf(np.concatenate([0.5 + offset, 0.5 - offset])).reshape(2, -1)
    growth = growth + ROUNDING_OF_K + 64 * EPS * np.abs(growth)
    outside = np.array([0.5 + offset > 1, 0.5 - offset < 0])  # no bound from between the poles
    need = np.where(outside, (growth - math.log(_TARGET)) / offset, np.inf).min(axis=1)
    period = min(float(need.max()), -2 * math.log(_TARGET))
    hockey_sticks = np.where(outside, np.exp(np.minimum(growth - offset * period, 0.0)), np.inf).min(axis=1)
    unknown = np.minimum(hockey_sticks, math.exp(-period / 2)) / -np.expm1(-period / 2)
    return period, float(unknown.sum())
