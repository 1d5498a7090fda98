"""Nodes in u for the transform of Gaussian mixture steps: several records of one person, and truncated batches.

In units of the noise u ~ N(0, 1) under "out", and r(u) = Σ_j w_j·e^{jsu − j²s²/2} with positive weights, s = 1/σ and
0 ≤ j ≤ J. On the line Im u = y, with θ = Jsy in [0, π), all terms lie in a cone of angle θ, so that

    r(u)·cos(θ/2) ≤ |r(u + iy)| ≤ r(u)   and   0 ≤ arg r(u + iy) ≤ θ,

and arg r grows with u: |r|²·d(arg r)/du = s·Σ_{j>l} (j − l)·a_j·a_l·sin((j − l)sy) ≥ 0, a_j the moduli of the terms.
For w = c + it, t ≥ 0, the integrand f = φ·r^w therefore has ∫ |f(u + iy)| du ≤ e^{F(y)}·M(c),
F(y) = y²/2 − max(−c, 0)·log cos(θ/2): a trapezoid sum on Im u = y with spacing h, f being analytic up to the heights
0 and 2y, differs from the integral M(w) by at most (1 + e^{F(2y)})·M(c)/(e^{2πy/h} − 1). The same nodes serve every t.

A window Φ((v − u)/δ) leaves a positive measure; off the real line it is at most e^{y²/(2δ²)} larger.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from deniable._check import FloatArray
from deniable._floats import PRODUCT_EXPONENT
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.gaussian_mixture import Case, GaussianMixtureStep
from deniable.accounting.steps.ratios import ComplexArray, complex_log1p

_DIGITS = 44.0  # −log of the relative error of sums over u: far below rounding
_AMPLIFIED = 2.0  # log of how much larger than on the real line summands may be
_HEIGHTS = np.geomspace(0.004, 0.97, 40)  # tried, as fractions of the highest
_TALLEST, _TALLEST_WINDOWED = 4.0, 1.25  # heights; Φ has its first zeros 2.8 off the real line
_MOST_NODES = 1 << 15
_COARSE = 0.1  # spacing of points among which the ends of the nodes are looked for
_FAR_BELOW = -0.3  # log r below which 1 is not taken from r
_LOWEST, _DEEPEST, _FURTHEST = 14.0, 60.0, 3000.0  # −u and u between which the ends are looked for

OneWindow = tuple[float, float]


class MixtureNodes(NamedTuple):
    """Nodes on Im u = ``height``, and a bound on what they miss, relative to M(c) + 1."""

    u: FloatArray
    spacing: float
    height: float
    missed: float


def highest(step: GaussianMixtureStep, case: Case, window: OneWindow | None) -> float:
    """Half the height at which the terms of r may cancel."""
    most = _TALLEST if window is None else _TALLEST_WINDOWED * window[1]
    return min(math.pi * step.noise / (2 * case.records[-1]), most)


def _growth(step: GaussianMixtureStep, case: Case, window: OneWindow | None, c: float, y: FloatArray) -> FloatArray:
    """F(y), with the window."""
    bend = 1.0 if window is None else 1 + 1 / window[1] ** 2
    angle = case.records[-1] / step.noise * y
    found: FloatArray = bend * y**2 / 2 - max(-c, 0.0) * np.log(np.cos(angle / 2))
    return found


def nodes_of(
    step: GaussianMixtureStep, case: Case, window: OneWindow | None, c: float, height: float | None = 0.0
) -> MixtureNodes:
    """Nodes on the real line, at a height, or (None) at the height that needs the fewest.

    Raises
    ------
    TooSlowError
        If they would be too many.
    """
    top = highest(step, case, window)
    if height == 0.0:
        tried = _HEIGHTS * 2 * top
        growth = _growth(step, case, window, c, tried)
        reach, least = tried, growth
    else:
        tried = _HEIGHTS * top if height is None else np.array([height])
        growth = _growth(step, case, window, c, 2 * tried)
        least = _growth(step, case, window, c, tried)
        reach = np.where((least < _AMPLIFIED) | (tried == height), tried, 0.0)
    spacings = 2 * math.pi * reach / (_DIGITS + growth)
    best = int(np.argmax(spacings))
    spacing, y = float(spacings[best]), 0.0 if height == 0.0 else float(tried[best])
    if not (spacing > 0 and float(least[best]) < PRODUCT_EXPONENT):
        raise TooSlowError("no line of nodes is near enough")
    low, high, left_out = _ends(step, case, window, c)
    count = (high - low) / spacing
    if not count < _MOST_NODES:
        raise TooSlowError(f"{count:.3g} nodes")
    u: FloatArray = low + spacing * np.arange(math.ceil(count) + 1, dtype=np.float64)
    missed = 4 * math.exp(-_DIGITS) + left_out * math.exp(float(least[best]))
    return MixtureNodes(u, spacing, y, missed)


def _ends(step: GaussianMixtureStep, case: Case, window: OneWindow | None, c: float) -> tuple[float, float, float]:
    """Ends of the real line between which φ, and φ·r^c, have all but a stated share of their masses.

    Beyond the upper end u the logarithm of the integrand falls at least at the rate g = u − c·J·s, or
    u + (u − v)/δ² − c·J·s with a window: what is left out is at most its value there over g. Below the lower end
    r^c is at most its value there for c ≥ 0, and at most w_0^c else.
    """
    slope = max(c, 0.0) * case.records[-1] / step.noise
    reach = _LOWEST + slope
    if window is not None:
        place, width = window
        reach = min(reach, max(_LOWEST, (slope + place / width**2) / (1 + 1 / width**2) + 12.0))
    if not reach < _FURTHEST:
        raise TooSlowError(f"the law tilted by {c:g} is far out")
    u = np.arange(-_LOWEST, reach + _COARSE, _COARSE)
    loss, bell = step.losses_of(case, u), -(u**2) / 2
    if window is not None:
        place, width = window
        above = np.maximum(u - place, 0.0) / width
        bell = bell - above**2 / 2
    log_size = np.maximum(c * loss, 0.0) + bell
    goal = float(log_size.max()) - _DIGITS - 4
    if c < 0:
        left = max(c * math.log(case.weight[0]), 0.0)
        start = max(-math.sqrt(2 * max(left - goal, 0.0) + 4), -_DEEPEST)
        log_before = left + float(log_ndtr(start))
    else:
        below = np.maximum(c * loss, 0.0) + log_ndtr(u)  # grows with u
        first = max(int(np.searchsorted(below, goal)) - 1, 0)
        start, log_before = float(u[first]), float(below[first])
    # where the summand is small and falls
    fall = u - slope + (np.maximum(u - window[0], 0.0) / window[1] ** 2 if window is not None else 0)
    last = np.flatnonzero(log_size > goal)[-1]
    after = np.flatnonzero((u > u[last]) & (fall > 1.0) & (log_size < goal))
    stop = int(after[0]) if after.size else u.size - 1
    if not fall[stop] > 1.0:
        raise TooSlowError(f"the law tilted by {c:g} is far out")
    top = float(log_size.max())
    # the integrand's logarithm is nowhere more curved than that: (M(c) + 1)·√(2π) is at least e^top over this
    bend = 2.0 if window is None else 2 + 1 / window[1] ** 2
    peak = 2 * math.sqrt(bend + abs(c) * (case.records[-1] / step.noise) ** 2 / 4)
    beyond = math.exp(float(log_size[stop]) - top) / float(fall[stop])
    return start, float(u[stop]), (beyond + math.exp(min(log_before - top, 700.0))) * peak


def evaluated(
    step: GaussianMixtureStep, case: Case, window: OneWindow | None, nodes: MixtureNodes
) -> tuple[ComplexArray, ComplexArray]:
    """Logarithm of φ times window and spacing, and the loss, at nodes."""
    u = np.asarray(nodes.u + 1j * nodes.height, dtype=np.complex128)
    log_weight = -(u**2) / 2 + math.log(nodes.spacing / math.sqrt(2 * math.pi))
    if window is not None:
        place, width = window
        fade = log_ndtr((place - u) / width) if nodes.height else log_ndtr((place - nodes.u) / width)
        log_weight = log_weight + fade
    return log_weight, _loss(step, case, u)


def _loss(step: GaussianMixtureStep, case: Case, u: ComplexArray) -> ComplexArray:
    """L = log r off the real line, where all terms lie in a cone and the principal logarithm is analytic."""
    shift, weight = np.array(case.records) / step.noise, np.array(case.weight)
    x = np.multiply.outer(u, shift) - shift**2 / 2
    largest = np.maximum(x.real.max(axis=1) - 300.0, 0.0)
    with np.errstate(under="ignore", over="ignore"):
        far = np.log(np.exp(x - largest[:, None]) @ weight) + largest
        near = complex_log1p(np.asarray(np.expm1(np.where(x.real > 300, 0.0, x)) @ weight, dtype=np.complex128))
    return np.where((largest > 0) | (near.real < _FAR_BELOW), far, near)
