"""Cells of the loss that are intervals of a normal outcome u: their masses, and log(P/Q) of each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray

_NARROW = 0.03  # cells shorter than that, in units of 1 and of σ, are integrated by five nodes: error 1e-15
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


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
    sigma: float,
) -> FloatArray:
    """log(P/Q) of every cell above its lower edge: Gauss–Legendre where the cell is narrow in u, else the masses.

    ``loss`` is L(u) = log p/q, ``u`` and ``edges`` the ends of the cells in u and in L, ``p`` and ``q`` their masses.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        coarse = np.log(p / q) - edges[:-1]
    coarse = np.where(np.isfinite(coarse), coarse, spacing / 2)
    half = np.diff(u) / 2
    narrow = np.flatnonzero(half < _NARROW * min(1.0, sigma))
    middle = (u[1:] + u[:-1])[narrow] / 2
    weight = mean = np.zeros(narrow.size)
    for node, share in zip(_NODES, _WEIGHTS, strict=True):
        offset = half[narrow] * node
        density = share * np.exp(-offset * (middle + offset / 2))
        rise = loss(middle + offset) - edges[narrow]
        weight, mean = weight + density, mean + density * np.expm1(rise)
    coarse[narrow] = np.log1p(mean / weight)
    return np.clip(coarse, 0.0, spacing)
