"""Laws on given points that are larger or smaller in convex order: certified discretisation of a likelihood ratio.

A pair of laws is known by the law of S = dP/dQ under Q: H_γ(P‖Q) = E(S − γ)₊ and H_γ(Q‖P) = E(1 − γS)₊ are means of
convex functions of S. If S′ is larger than S in convex order (E f(S) ≤ E f(S′) for every convex f; the means agree),
its pair is at least as easy to tell apart, in either direction and under every composition (Blackwell 1953). Convex
order survives sums of independent terms and mixtures, so that terms of a sum may be discretised one by one.

With U(x) = E(S − x)₊, S ≤ S′ holds if and only if masses and means agree and U ≤ U′. On points x₀ < x₁ < …:

- above: every atom between x_k and x_{k+1} is split onto the two so that mass and mean stay. U′ is then the polygon
  through U(x_k), and U lies below its chords.
- below: U″ is a convex polygon with U″(x_k) ≤ U(x_k) − D_k, where D_k is at least the largest gap between U and its
  chord on either side of x_k. On [x_k, x_{k+1}] the polygon lies below chord − min(D_k, D_{k+1}) ≤ U. The gap of a cell
  is at most Σ w·(y − x_k)(x_{k+1} − y)/(x_{k+1} − x_k) over its atoms (y, w), as the Green's function of a cell is
  largest on its diagonal. The masses of U − D are those of the split minus the second differences of D: no potential
  is ever computed. Where they are negative the greatest convex minorant is taken (isotonic regression of the slopes).
  Near the ends U″ follows the two lines between which U runs for as long as U − D is beyond them. Atoms that lie closer
  than the points are merged into their mean first, and the mean made a point.

Rounding: points are wrong by a relative 8ε, which moves log S by as much; masses by a relative 16ε and, of pooled
slopes, by what :class:`Spread` says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from deniable._check import FloatArray
from deniable._floats import EPS

_TOLERANCE = 1e-10  # of mass and mean: what tells rounding from an order that does not exist


class Spread(NamedTuple):
    """Masses on points, and the absolute rounding of slopes that were pooled, in mass and in mass times point."""

    mass: FloatArray
    error: float = 0.0
    moment_error: float = 0.0


class Atoms(NamedTuple):
    """A finite measure: increasing points and their masses."""

    point: FloatArray
    mass: FloatArray

    @classmethod
    def joined(cls, parts: list[Atoms]) -> Atoms:
        """Return the sum of several measures."""
        parts = [part for part in parts if part.point.size]
        if len(parts) == 1:
            return parts[0]
        point, mass = (np.concatenate(found) for found in zip(*parts, strict=True))
        order = np.argsort(point, kind="stable")
        return cls(point[order], mass[order])

    def positive(self) -> Atoms:
        """Return the same without points of no mass."""
        keep = self.mass > 0
        return Atoms(self.point[keep], self.mass[keep])


def first_group(atoms: Atoms, width: float) -> tuple[int, float]:
    """How many of the first atoms to merge, and their mean: the next atom lies at least ``width`` further."""
    mean = np.cumsum(atoms.point * atoms.mass) / np.cumsum(atoms.mass)
    far = np.flatnonzero(atoms.point - mean >= width)
    count = int(far[0]) if far.size else atoms.point.size
    return count, float(min(max(mean[count - 1], atoms.point[0]), atoms.point[count - 1]))


def merged(atoms: Atoms, count: int, mean: float) -> Atoms:
    """Return the measure with its first ``count`` atoms at their mean."""
    point = np.concatenate([[mean], atoms.point[count:]])
    return Atoms(point, np.concatenate([[float(np.sum(atoms.mass[:count]))], atoms.mass[count:]]))


def above(atoms: Atoms, nodes: FloatArray) -> Spread:
    """Split every atom onto its two neighbours among ``nodes``, which enclose all atoms."""
    return Spread(_split(atoms, nodes)[0])


def below(atoms: Atoms, nodes: FloatArray) -> Spread:
    """Masses on ``nodes`` that are smaller in convex order.

    Where so few nodes lie among the atoms that no such masses exist, all mass is charged as error.
    """
    mass, gap = _split(atoms, nodes)
    width = np.diff(nodes)
    depth = np.zeros(nodes.size)
    depth[1:-1] = np.maximum(gap[:-1], gap[1:])
    slope = np.diff(depth) / width
    mass = mass - np.diff(slope, prepend=0.0, append=0.0)
    mass = _bounded_end(mass, width, bool(gap[0] > 0))
    mass = _bounded_end(mass[::-1], width[::-1], bool(gap[-1] > 0))[::-1]
    found = _convex(mass, nodes, width)
    total, moment = float(atoms.mass.sum()), float(atoms.mass @ atoms.point)
    kept = abs(found.mass.sum() - total) <= _TOLERANCE * total
    if kept and abs(found.mass @ nodes - moment) <= _TOLERANCE * (moment + found.moment_error):
        return found
    return Spread(above(atoms, nodes).mass, 2 * total, 2 * float(nodes[-1]) * total)


def _split(atoms: Atoms, nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Masses of the split, and per cell a bound on the gap between U and its chord."""
    k = np.clip(np.searchsorted(nodes, atoms.point, side="right") - 1, 0, nodes.size - 2)
    width = (nodes[1:] - nodes[:-1])[k]
    up = np.clip((atoms.point - nodes[k]) / width, 0.0, 1.0)
    lifted = atoms.mass * up
    mass = _placed(k, atoms.mass - lifted, nodes.size) + _placed(k + 1, lifted, nodes.size)
    return mass, _placed(k, lifted * (1 - up) * width, nodes.size - 1)


def _placed(place: NDArray[np.intp], mass: FloatArray, size: int) -> FloatArray:
    return np.bincount(place, mass, size).astype(np.float64, copy=False)


def _bounded_end(mass: FloatArray, width: FloatArray, used: bool) -> FloatArray:
    """Keep the polygon above the line on which U starts: it follows that line up to where U − D is above it."""
    left = np.cumsum(mass)
    rise = np.concatenate([[0.0], np.cumsum(left[:-1] * width)])  # of the polygon above the line
    half = int(np.searchsorted(left, 0.5 * left[-1]))
    wrong = np.flatnonzero(rise[: half + 1] < 0)
    last = max(int(wrong[-1]) + 1 if wrong.size else 0, int(used))
    if last == 0 or last > mass.size - 3:
        return mass
    mass = mass.copy()
    mass[:last] = 0.0
    mass[last] = rise[last + 1] / width[last]
    mass[last + 1] = left[last + 1] - mass[last]
    return mass


def _convex(mass: FloatArray, nodes: FloatArray, width: FloatArray) -> Spread:
    """Greatest convex minorant of a polygon that is given by its changes of slope."""
    if not (mass < 0).any():
        return Spread(mass)
    left, right = np.cumsum(mass)[:-1], np.cumsum(mass[::-1])[::-1][1:]
    total = float(left[-1] + mass[-1])
    half = int(np.clip(np.searchsorted(left, total / 2), 1, left.size - 1))
    low, low_changed = _monotone(left[:half], width[:half], True)
    high, high_changed = _monotone(right[half:], width[half:], False)
    changed = np.concatenate([low_changed, high_changed])
    if low[-1] > total - high[0]:  # the middle itself is not convex
        slope, changed = _monotone(np.concatenate([left[:half], total - right[half:]]), width, True)
        low, high = slope[:half], total - slope[half:]
    if low[0] < -_TOLERANCE * total or high[-1] < -_TOLERANCE * total:  # the ends met: there is no such polygon
        return Spread(np.zeros_like(mass))
    low, high = np.clip(low, 0.0, total), np.clip(high, 0.0, total)
    found = np.concatenate([np.diff(low, prepend=0.0), [total - high[0] - low[-1]], -np.diff(high, append=0.0)])
    pooled = np.append(changed, False) | np.append(False, changed)
    size = np.concatenate([low, high, [0.0]]) + np.concatenate([[0.0], low, high])
    error = 16 * EPS * np.where(pooled, size, 0.0)
    mass = np.maximum(np.where(pooled, found, mass), 0.0)
    return Spread(mass, float(error.sum()), float(error @ np.abs(nodes)))


def _monotone(slope: FloatArray, width: FloatArray, increasing: bool) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Isotonic regression, and which slopes were pooled."""
    found = isotonic_regression(slope, weights=width, increasing=increasing)
    sizes = np.diff(found.blocks)
    changed = np.repeat(sizes > 1, sizes)
    return np.where(changed, found.x, slope), changed
