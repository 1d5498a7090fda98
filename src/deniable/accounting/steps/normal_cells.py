"""Cells of the loss that are intervals of a normal outcome u: their masses, and log(P/Q) of each.

*Quadrature.* log(P/Q) is the logarithm of ∫φ·r over ∫φ. A Gauss–Legendre rule of n nodes on [m − h, m + h] is wrong by
at most (64/15)·max|f|·ρ^{2 − 2n}/(1 − ρ^{−2}) on an interval of length 2, |f| being taken on the ellipse of Bernstein
with parameter ρ (Trefethen, SIAM Review 50 (2008), Theorem 4.5). There Re u is within hR of m and |Im u| ≤ hR,
R = (ρ + 1/ρ)/2, and with k the steepest slope of L, |r(u + iy)| ≤ r(u): so |f| exceeds its least value on the interval
by at most e^{(1 + R)h(|m| + k) + (hR)²}. With a = h·(|m| + 8 + k) and ρ = 4(n − 1)/a, hR is at most 1.1 for n = 5, 2.9
for n = 12, and the error below 1e-16 of the integral for n = 5 up to a = 0.05, for n = 12 up to a = 2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray

_RULES = ((5, 0.0, 0.05), (12, 0.05, 2.0))  # nodes, and the a that they serve; wider cells are known by their masses
_ROOM = 8.0


def normal_masses(u: FloatArray) -> FloatArray:
    """Standard normal mass between consecutive points, each tail from its own side."""
    lower, upper = ndtr(u), ndtr(-u)
    return np.maximum(np.where(u[1:] <= 0, lower[1:] - lower[:-1], upper[:-1] - upper[1:]), 0.0)


def normal_centres(
    loss: Callable[[FloatArray], FloatArray],
    u: FloatArray,
    edges: FloatArray,
    p: FloatArray,
    q: FloatArray,
    spacing: float,
    steepest: float,
) -> FloatArray:
    """log(P/Q) of every cell above its lower edge: Gauss–Legendre where the cell is narrow in u, else the masses.

    ``loss`` is L(u) = log p/q and ``steepest`` its largest slope, ``u`` and ``edges`` the ends of the cells in u and in
    L, ``p`` and ``q`` their masses.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(p / q) - edges[:-1]
        half, middle = np.diff(u) / 2, (u[1:] + u[:-1]) / 2
        extent = half * (np.abs(middle) + _ROOM + steepest)
    found = np.where(np.isfinite(found), found, spacing / 2)
    for count, least, most in _RULES:
        cells = np.flatnonzero((extent >= least) & (extent < most))
        weight = mean = np.zeros(cells.size)
        for node, share in zip(*np.polynomial.legendre.leggauss(count), strict=True):
            offset = half[cells] * node
            density = share * np.exp(-offset * (middle[cells] + offset / 2))
            rise = loss(middle[cells] + offset) - edges[cells]
            weight, mean = weight + density, mean + density * np.expm1(rise)
        found[cells] = np.log1p(mean / weight)
    return np.clip(found, 0.0, spacing)
