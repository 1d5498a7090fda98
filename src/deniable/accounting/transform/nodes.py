"""Where the nodes in u must lie for trapezoid sums of φ(u)·r(u)^w to be exact up to a stated error.

With w = c + it, θ = y/σ ≤ π/2 and the odds ρ(u) = q/(1 − q)·e^{u/σ − 1/(2σ²)}, on the line Im u = y

    log|φ·r^w| ≤ W(u) + y²/2 + D + t·κ·θ,   W = c·L − u²/2 on the real line,   κ = max(ρ/(1 + ρ), arg(1 + ρe^{iθ})/θ),

where arg r = arg(1 + ρe^{iθ}) grows with u, |r| is smaller than on the real line, by a factor whose logarithm is
d = −½·log(1 − 2ρ(1 − cos θ)/(1 + ρ)²), and D = max(−c, 0)·d. All four parts are at most proportional to y below any
height Y at which they are known: y²/2 ≤ y·Y/2, d is convex in θ, and arg r is at most θ·ρ/(1 + ρ) where it is concave.

A sum with spacing h differs from the integral by at most Σ± ∫ |f|/(e^{2π|Im u|/h} − 1) along any curve on either side
of the real line that f is analytic up to. Ours runs at height Y above the windows in which f is not negligible on the
real line, and comes down at their ends: beyond them f on Im u = Y may be astronomically large. If a window ends at a
ceiling where f is not negligible, the sum over the nodes up to there differs from the integral up to half a spacing
beyond the last of them by at most twice the last summand: the factor 1.25 below makes |f|·e^{−2πy/h} ≤
|f(b)|·e^{−2πy/5h} on the way down, 0.8·h·|f(b)| a side.

Every maximum over u is taken cell by cell from bounds, not samples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import PRODUCT_EXPONENT
from deniable.accounting.sizes import DIGITS

MISSED = math.exp(4 - DIGITS)  # relative error of a sum: curves on both sides and the ends, of 20 units of u or so
_HEIGHTS = np.array([0.05, 0.15, 0.4, 1.0])  # tried, of the largest that is worth having


class Nodes(NamedTuple):
    """Range and spacing of nodes in u."""

    low: float
    high: float
    spacing: float


def nodes(noise: FloatArray, rate: FloatArray, ceiling: float, least: float, most: float, t_max: float = 0.0) -> Nodes:
    """Nodes that serve every phase at all real parts c between ``least`` and ``most``, for 0 ≤ t ≤ ``t_max``.

    Where these differ only t = 0 is served: W and D are linear in c on either side of 0, so that two points tell all.
    """
    if noise.size == 0:
        return Nodes(-1.0, 1.0, 1.0)
    narrow, left = float(noise.min()), max(-least, 0.0)
    # for 0 < c < 1 M(c) itself is small where q is close to 1; else it is at least 1, and e^peak·(1 + max L″·|c|)^−½
    margin = DIGITS + float(np.minimum(-np.log1p(-rate) / 2, 1 / (8 * noise**2)).max())
    margin += math.log1p(left / (4 * (narrow * narrow))) / 2
    reach = math.sqrt(2 * (margin + left * float(np.max(-np.log1p(-rate)))))  # r ≥ 1 − q, and L′ ≤ 1/σ
    low, high = -reach, min(reach + max(most, 0.0) / narrow, ceiling)
    highest = math.sqrt(2 * margin)
    if t_max == 0 and left == 0:  # with r^c·φ ≤ M(c), and θ up to π
        height = min(0.97 * math.pi * narrow, highest)
        return Nodes(low, high, 2 * math.pi / (margin / height + height / 2))
    u = np.linspace(low, high, int(min((high - low) / min(0.1, 0.3 * narrow), 4000)) + 2)
    sigma, q = noise[:, None], rate[:, None]
    log_odds = np.log(q) - np.log1p(-q) + u / sigma - 1 / (2 * sigma**2)
    odds, tilt = np.exp(np.minimum(log_odds, PRODUCT_EXPONENT)), least * (np.logaddexp(0.0, log_odds) + np.log1p(-q))
    peak = np.maximum((tilt - u**2 / 2).max(axis=1, keepdims=True), 0.0)
    nearest = np.where(u[:-1] > 0, u[:-1], np.minimum(u[1:], 0.0))  # the bell is largest there in every cell
    weight = margin - nearest**2 / 2 + np.maximum(tilt[:, 1:], tilt[:, :-1]) - (peak if least == most else 0.0)
    y = np.minimum(_HEIGHTS * min(math.pi / 2 * narrow, highest), highest)[:, None, None]
    odds, angle = odds[:, 1:], y / sigma  # κ grows with u, and d up to ρ = 1
    half = np.minimum(odds, 1.0)
    rise = -left / 2 * np.log1p(-2 * half * (1 - np.cos(angle)) / (1 + half) ** 2)
    if t_max > 0:
        turned = np.arctan2(odds * np.sin(angle), 1 + odds * np.cos(angle))
        rise = rise + t_max * np.maximum(odds / (1 + odds) * angle, turned)
    slope = np.where(weight > 0, y / 2 + rise / y, 0.0)
    asked = np.maximum((np.maximum(weight, 0.0) / y + slope).max(axis=(1, 2)), 1.25 * slope[..., -1].max(axis=1))
    asked = np.maximum(asked, (margin / y + y / 2)[:, 0, 0])  # of φ alone, and of c > 0 where t = 0: r^c·φ ≤ M(c)
    return Nodes(low, high, 2 * math.pi / float(asked.min()))
