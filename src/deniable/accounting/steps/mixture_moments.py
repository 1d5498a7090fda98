"""Moments of the likelihood ratio of a Gaussian mixture under Q, hence its Rényi divergences, rounded up.

Q = N(0, 1), r = Σ w_j·e^{s_j·u − s_j²/2} with slopes s_j = j/σ, and E r = 1, so that what M(c) = E r^c exceeds 1 by is
the mean of g = r^c − 1 − c·(r − 1) ≥ 0, for c > 1 and for c < 0: a sum of terms ≥ 0.

*Trapezoid rule* of step h in u. Up to a height |y| ≤ a = 1/S, S the largest slope, no term of r turns by more than 1:
cos(1)·r(x) ≤ Re r and |r| ≤ r(x). So φ·r^c is analytic there, and its integral over Im u = y is at most
e^{a²/2}·cos(1)^{min(c, 0)} times M(c): the rule errs by a relative 2·e^{a²/2}·cos(1)^{min(c, 0)}/(e^{2πa/h} − 1)
(Trefethen and Weideman 2014, Theorem 5.1), below 3·e^{−60} here; for φ and φ·r likewise.

*What is left out.* With L = log r, F = c·L − u²/2 is known at coarse points d apart. L is convex. For c > 1 so is
F + u²/2, and F is at most d²/8 above its chords; for c < 0, F is concave and below its chords, continued. The same
bounds hold for L − u²/2. Cells in which F, L − u²/2 and −u²/2 all are far below their largest values are bounded and
not summed. Beyond the last point B = 40 + max(c, 1)·S, F and L − u²/2 fall by at least 40 a unit; before the first,
−40, r is at most 1 and at least w_0.

*Weights that were left out*, λ in all, have slopes of at most K: as r^c is convex, E r^c is at most
(1 − λ)^{min(1 − c, 0)} times that of the others plus λ·e^{c(c − 1)K²/2}.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT

_DIGITS = 60.0  # −log of what is aliased or left out, relative
_END = 40.0  # deviations
_COARSE = 0.125  # d
_MOST_NODES = 1 << 20


def log_excess(loss: Callable[[FloatArray], FloatArray], steepest: float, least: float, c: float) -> float:
    """Return an upper bound on log(M(c) − 1), c > 1 or c < 0; ∞ where the sum would be long.

    ``loss`` is L, ``steepest`` S and ``least`` w_0 of weights that add up to 1. Exponents err by a few roundings of
    S·|u| + S², which moves L by at most the share 1 − w_0/r of terms that have some.
    """
    height, turned = 1 / steepest, math.log(math.cos(1.0)) * min(c, 0.0)
    h = 2 * math.pi * height / (_DIGITS + height**2 / 2 + turned)
    size = math.ceil((2 * _END + max(c, 1.0) * steepest) / _COARSE)
    if not size < _MOST_NODES:
        return math.inf
    edges: FloatArray = -_END + _COARSE * np.arange(size + 1, dtype=np.float64)
    known, powers = loss(edges), (c, 1.0, 0.0)
    bounds = [_cells(power, power * known - edges**2 / 2) for power in powers]
    seen = np.any([bound > bound.max() - _DIGITS for bound in bounds], axis=0)
    if not np.count_nonzero(seen) * _COARSE < _MOST_NODES * h:
        return math.inf
    first, end = np.ceil(edges[:-1][seen] / h), np.ceil(edges[1:][seen] / h)
    counts = (end - first).astype(np.intp)
    u = np.asarray(h * (np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())), np.float64)
    top, scale = max(float(bounds[0].max()), 0.0), h / math.sqrt(2 * math.pi)
    with np.errstate(over="ignore", under="ignore"):
        x = loss(u)
        whole, hit, out = (scale * np.exp(power * x - u**2 / 2 - top) for power in powers)
        near = np.abs(c * x) < 1
        some = np.where(near, x, 0.0)
        rise = np.where(near, out * (np.expm1(c * some) - c * np.expm1(some)), whole - out - c * (hit - out))
        off = EPS * (16 * (np.abs(u) + steepest) * steepest * -np.expm1(np.minimum(math.log(least) - x, 0.0)))
        off += 8 * EPS * np.abs(x)
        wrong = abs(c) * off * np.where(near, np.abs(whole - hit) + off * (whole + hit), whole + hit)
        wrong += 16 * EPS * np.where(near, np.abs(c * x) * out, (1 + u**2) * (whole + (1 + abs(c)) * (hit + out)))
        left_out = [float(np.sum(np.exp(np.minimum(bound[~seen] - top, MOST_EXPONENT)))) for bound in bounds]
    others = 1 + abs(c)
    rest = (_COARSE + h) * (left_out[0] + others * (left_out[1] + left_out[2]))
    last = max(power * float(known[-1]) - float(edges[-1]) ** 2 / 2 for power in powers)
    tails = 2 * others * math.exp(min(last - top, 0.0))
    tails += others * math.exp(min(min(c, 0.0) * math.log(least) - _END**2 / 2 - top, 0.0))
    aliased = 8 * math.exp(-_DIGITS) * (float(whole.sum()) + others * math.exp(-top))
    total = float(np.sum(np.maximum(rise, 0.0) + wrong)) * (1 + u.size * EPS) + rest + tails + aliased
    return math.log(total) + top


def _cells(c: float, values: FloatArray) -> FloatArray:
    """Bounds on F in every cell, by its values at the ends of cells."""
    low, high = values[:-1], values[1:]
    if c >= 0:
        return np.maximum(low, high) + _COARSE**2 / 8
    rise = np.diff(values)
    before, after = np.concatenate([[np.inf], rise[:-1]]), np.concatenate([rise[1:], [-np.inf]])
    return np.asarray(np.minimum(np.maximum(low, low + before), np.maximum(high, high - after)))
