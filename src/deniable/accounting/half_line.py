"""The advantage at even priors from a single short sum: the line Re w = ½, where both worlds count the same.

With F(t) = M(½ + it)/(t² + ¼) and G(ℓ) = e^{−ℓ/2}·E min(p, e^ℓ q) = (1/2π)∫ F(t)·e^{−itℓ} dt, the advantage is
1 − G(0), and the trapezoid sum with spacing 2π/Λ is Σ_m G(mΛ) (Poisson). G(±mΛ) is e^{−mΛ/2} less a hockey stick at
e^{mΛ} of one order of the worlds, which Chernoff bounds by e^{K(θ) − (θ − 1)mΛ} (θ > 1) and e^{K(θ) + θmΛ} (θ < 0).
So Λ need only be so large that these sticks are nothing, not that the aliases are.
"""

from __future__ import annotations

import math

import numpy as np

from deniable._check import FloatArray
from deniable.accounting.envelope import Envelope
from deniable.accounting.loss import EPS, PrivacyLoss
from deniable.accounting.nodes import TooSlowError

_OFFSETS = np.array([1.0, 2.0, 4.0, 8.0])
_FURTHEST = 3.5  # from ½: what the nodes near the real axis serve
_MOST_NODES = 4096
_TARGET = 1e-14  # what truncation and unknown aliases may add, each


def advantage_bracket(loss: PrivacyLoss) -> tuple[float, float]:
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
    period, sticks = _period(loss, width)
    spacing = 2 * math.pi / period
    t_end, truncation = Envelope.of(loss, 0.5, width, _TARGET).cut(_TARGET, spacing)
    count = math.ceil(t_end / spacing) + 1
    if not count <= _MOST_NODES:
        raise TooSlowError(f"{count} nodes")
    t: FloatArray = spacing * np.arange(count, dtype=np.float64)
    line = loss.line(0.5, float(t[-1]))
    growth, _, _ = line.cumulants
    log_m = line.log_transform(t, spacing)
    terms = np.exp(growth + log_m.real) * (2 / period / (t**2 + 0.25))
    terms[0] /= 2
    error = terms @ (line.doubt(t, log_m) + 32 * EPS) + truncation[2] * math.exp(growth) + 8 * EPS
    value = 1 - float(terms @ np.cos(log_m.imag)) + 2 / math.expm1(period / 2)
    return max(value - float(error) - sticks, 0.0), min(value + float(error), 1.0)


def _period(loss: PrivacyLoss, width: float) -> tuple[float, float]:
    """The shortest period at which the sticks at e^{mΛ} are nothing, and a bound on what they add."""
    offset = np.minimum(_OFFSETS / width, _FURTHEST)
    growth = loss.log_mgf(np.concatenate([0.5 + offset, 0.5 - offset])).reshape(2, -1)
    outside = np.array([0.5 + offset > 1, 0.5 - offset < 0])  # no bound from between the poles
    need = np.where(outside, (growth - math.log(_TARGET)) / offset, np.inf).min(axis=1)
    period = min(float(need.max()), -2 * math.log(_TARGET))
    sticks = np.where(outside, np.exp(np.minimum(growth - offset * period, 0.0)), np.inf).min(axis=1)
    unknown = np.minimum(sticks, math.exp(-period / 2)) / -np.expm1(-period / 2)
    return period, float(unknown.sum())
