"""Laws of a loss as lists of points and masses whose sums are its transforms E_Q e^{wL}, errors bounded.

Atoms stand for themselves. A density that is analytic around the real line becomes Gauss–Legendre panels: on a panel
of half-length h, an integrand that is at most B on the Bernstein ellipse with semi-axes summing to ρ is integrated by n
nodes up to (64/15)·B·h·ρ^{−2n}/(1 − ρ^{−2}) (Trefethen 2013, Theorem 19.3). Where the exponent of the integrand changes
by at most R over a distance of h, B is e^{R·(ρ + 1/ρ)/2} times the integrand's size at the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS

ORDER = 32  # nodes of a panel
TURN = 10.0  # R of the panels that are laid
_RHO = np.array([1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0])  # tried
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(ORDER)
WEIGHT_ERROR = 1024 * EPS  # of tabulated nodes and weights: up to 513 EPS with NumPy 1.26, which a test measures
_LONGEST = 1.0  # of a panel, in units of how far the integrand is known: ρ = 3 is then within reach
_MOST_PANELS = 2048
_SCAN = 4096  # points among which the lengths of panels are chosen


class ListedLoss(NamedTuple):
    """Points of the loss, increasing or not, and the logarithms of their masses under Q.

    Attributes
    ----------
    loss, log_mass
        M(w) is Σ e^{log_mass + w·loss}.
    missed
        Bound on what this sum misses on the line, whatever Im w is in reach.
    shift
        Bound on the error of every loss.
    relative_error
        Of every mass.
    """

    loss: FloatArray
    log_mass: FloatArray
    missed: float = 0.0
    shift: FloatArray | float = 0.0
    relative_error: FloatArray | float = 0.0


class Panels(NamedTuple):
    """Nodes of all panels, the logarithm of their weights, and of every panel its middle, half-length and number."""

    point: FloatArray
    log_weight: FloatArray
    middle: FloatArray
    half: FloatArray


def panels(low: float, high: float, rate: Callable[[FloatArray], FloatArray], furthest: float = math.inf) -> Panels:
    """Panels between two ends, of such lengths that ``rate``, the steepness of the exponent, times h is about R.

    None is long beside ``furthest``, see :func:`missed`; there are at most 2,048.
    """
    scan = np.linspace(low, high, _SCAN)
    slope = np.maximum(rate(scan) / (2 * TURN), 1 / (_LONGEST * furthest))
    turns = np.concatenate([[0.0], np.cumsum((slope[1:] + slope[:-1]) / 2 * np.diff(scan))])
    if turns[-1] <= _MOST_PANELS:
        count = max(math.ceil(float(turns[-1])), 1)
        edges = np.interp(np.linspace(0.0, float(turns[-1]), count + 1), turns, scan)
    else:  # too steep: what these miss is told
        edges = np.linspace(low, high, _MOST_PANELS + 1)
    edges[0], edges[-1] = low, high
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    point = np.add.outer(middle, np.zeros(ORDER)) + np.multiply.outer(half, _POINTS)
    log_weight = np.add.outer(np.log(half), np.log(_WEIGHTS))
    return Panels(point.ravel(), log_weight.ravel(), middle, half)


def missed(
    laid: Panels,
    log_size: FloatArray,
    steep: Callable[[FloatArray], FloatArray],
    furthest: float = math.inf,
    bend: float = 0.0,
) -> float:
    """Bound on what the panels miss.

    Parameters
    ----------
    laid
        The panels.
    log_size
        Logarithm of the integrand's size at the middle of every panel.
    steep
        Bound on the steepness of its exponent at every complex point that is no further right than x and at most
        ``furthest`` off the real line: it grows with x.
    bend
        Half the curvature that the exponent has besides.
    """
    reach = np.multiply.outer(laid.half, (_RHO + 1 / _RHO) / 2)
    log_bound = log_size[:, None] + steep(laid.middle[:, None] + reach) * reach + bend * reach**2
    log_bound = log_bound - 2 * ORDER * np.log(_RHO) - np.log(1 - _RHO**-2.0)
    best = np.where(reach <= furthest, log_bound, np.inf).min(axis=1)
    with np.errstate(over="ignore"):
        return float(np.sum(np.exp(best) * laid.half)) * (64 / 15) * (1 + 1e-9)


def product_variation(falling: FloatArray, rising: FloatArray) -> float:
    """Bound the total variation of a product of a falling and a rising function from their values at a few points.

    On every cell it is at most the fall of the first times the largest value of the second, and the other way round.
    """
    fall = (falling[:-1] - falling[1:]) * rising[1:]
    rise = (rising[1:] - rising[:-1]) * falling[:-1]
    return float(np.sum(fall) + np.sum(rise)) * (1 + 1e-9)
