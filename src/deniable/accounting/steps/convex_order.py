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

Points that rounding made equal are one point: the law on distinct points is found, the first of equal ones has its mass
and error, the others have none. That is the same law on the line, so the order is untouched; between distinct doubles
no width is rounded to 0, and no slope is 0/0.

Rounding: points are wrong by a relative 8ε, which moves log S by as much; masses by a relative 16ε and, where slopes
are pooled, by what :class:`Spread` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.binomial import LONG_EPS

_LONGEST = 64  # nodes between two that are kept of a polygon, as a rule
_TOLERANCE = 1e-10  # of mass and mean: what tells rounding from an order that does not exist


class Spread(NamedTuple):
    """Masses on points, and the absolute rounding of slopes that were pooled at every point."""

    mass: FloatArray
    error: FloatArray


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
    return count, mean_of_first(atoms, count)


def mean_of_first(atoms: Atoms, count: int) -> float:
    """Mean of the first ``count`` atoms: rounding does not take it beyond them."""
    point, mass = atoms.point[:count], atoms.mass[:count]
    return float(min(max(float(point @ mass) / float(mass.sum()), point[0]), point[-1]))


def merged(atoms: Atoms, count: int, mean: float) -> Atoms:
    """Return the measure with its first ``count`` atoms at their mean."""
    point = np.concatenate([[mean], atoms.point[count:]])
    return Atoms(point, np.concatenate([[float(np.sum(atoms.mass[:count]))], atoms.mass[count:]]))


def above(atoms: Atoms, nodes: FloatArray) -> Spread:
    """Split every atom onto its two neighbours among ``nodes``, which are sorted and enclose all atoms."""
    return _on_distinct(atoms, nodes, lambda points: Spread(_split(atoms, points)[0], np.zeros(points.size)))


def below(atoms: Atoms, nodes: FloatArray) -> Spread:
    """Masses on ``nodes``, which are sorted and enclose all atoms, that are smaller in convex order.

    Where so few nodes lie among the atoms that no such masses exist, all mass is charged as error.
    """
    return _on_distinct(atoms, nodes, lambda points: _below(atoms, points))


def _on_distinct(atoms: Atoms, nodes: FloatArray, spread: Callable[[FloatArray], Spread]) -> Spread:
    """Masses that are found on the distinct ones among sorted nodes; the others carry nothing."""
    first = np.flatnonzero(np.diff(nodes, prepend=-np.inf) > 0)
    found = Spread(np.zeros(nodes.size), np.zeros(nodes.size))
    if first.size == nodes.size > 1:
        return spread(nodes)
    if first.size == 1:  # and all atoms are there
        found.mass[0] = atoms.mass.sum()
        return found
    found.mass[first], found.error[first] = spread(nodes[first])
    return found


def _below(atoms: Atoms, nodes: FloatArray) -> Spread:
    """The same on distinct nodes."""
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
    if kept and abs(found.mass @ nodes - moment) <= _TOLERANCE * (moment + float(found.error @ np.abs(nodes))):
        return found
    all_wrong = np.zeros(nodes.size)
    all_wrong[[0, -1]] = 2 * total
    return Spread(_split(atoms, nodes)[0], all_wrong)


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
    """Greatest convex minorant of a polygon that is given by its changes of slope.

    Slopes are added up from the nearer end, so that those in a tail are known to a share of themselves: the two halves
    are regressed apart, and pooling goes on where they meet.
    """
    if not (mass < 0).any():
        return Spread(mass, np.zeros_like(mass))
    left, right = np.cumsum(mass)[:-1], np.cumsum(mass[::-1])[::-1][1:]
    total = float(left[-1] + mass[-1])
    half = int(np.searchsorted(left, total / 2))
    starts, slope, rest = _pooled(left[:half], right[half:], width, total)
    if slope[0] < -_TOLERANCE * total or rest[-1] < -_TOLERANCE * total:  # the ends met: there is no such polygon
        return Spread(np.zeros_like(mass), np.zeros_like(mass))
    return _with_chords(mass, nodes, np.append(starts, left.size))


def _pooled(
    left: FloatArray, right: FloatArray, width: FloatArray, total: float
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Where blocks of equal slope start, these slopes, and ``total`` minus them.

    The slopes are ``left``, then ``total`` minus ``right``. Regressing two halves apart and then pooling the blocks
    where they meet is isotonic regression of the whole (the order in which violators are pooled does not matter).
    """
    from scipy.optimize import isotonic_regression  # takes longer to import than most curves to compute

    half = left.size
    starts, slope, rest = [np.zeros(0, dtype=np.intp)], [np.zeros(0)], [np.zeros(0)]
    if half:
        low = isotonic_regression(left, weights=width[:half])
        starts.append(low.blocks[:-1].astype(np.intp))
        slope.append(low.x[low.blocks[:-1]])
        rest.append(total - slope[-1])
    if right.size:
        high = isotonic_regression(right, weights=width[half:], increasing=False)
        starts.append(half + high.blocks[:-1].astype(np.intp))
        rest.append(high.x[high.blocks[:-1]])
        slope.append(total - rest[-1])
    first, slopes, rests = np.concatenate(starts), np.concatenate(slope), np.concatenate(rest)
    i = int(np.searchsorted(first, half)) - 1  # the last block of the first half, and the first of the other
    k = i + 1
    if i < 0 or k == first.size or slopes[i] <= slopes[k]:
        return first, slopes, rests
    length = np.add.reduceat(width, first)
    pooled, over, extent = 0.0, 0.0, 0.0
    added = [i, k]
    while added:
        for block in added:
            pooled, over = pooled + slopes[block] * length[block], over + rests[block] * length[block]
            extent += length[block]
        if i > 0 and slopes[i - 1] * extent > pooled:
            i -= 1
            added = [i]
        elif k + 1 < first.size and rests[k + 1] * extent > over:
            k += 1
            added = [k]
        else:
            added = []
    middle = np.array([pooled, over]) / extent
    return (
        np.concatenate([first[: i + 1], first[k + 1 :]]),
        np.concatenate([slopes[:i], middle[:1], slopes[k + 1 :]]),
        np.concatenate([rests[:i], middle[1:], rests[k + 1 :]]),
    )


def _with_chords(mass: FloatArray, nodes: FloatArray, ends: NDArray[np.intp]) -> Spread:
    """Replace a polygon by its chords between some nodes: changes of slope between two go onto them, by position.

    Nothing but masses between the same two ends is added up, so that rounding is relative to these. Where a chord runs
    above the polygon, by rounding of the regression, the difference is charged.
    """
    block = np.repeat(np.arange(ends.size - 1), np.diff(ends))
    inner = np.flatnonzero((np.append(np.diff(block, prepend=-1) == 0, False)) & (mass != 0))
    block = block[inner]
    start, end = ends[block], ends[block + 1]
    share = (nodes[inner] - nodes[start]) / (nodes[end] - nodes[start])
    moved = np.stack([mass[inner] * (1 - share), mass[inner] * share])
    found, error = mass.copy(), np.zeros_like(mass)
    found[inner] = 0.0
    for place, part in zip((start, end), moved, strict=True):
        found += _placed(place, part, mass.size)
        error += 16 * EPS * _placed(place, np.abs(part), mass.size)
    error += np.maximum(-found, 0.0)
    for longest in (4, 16, _LONGEST):
        error += _above_polygon(mass, nodes, ends, longest)
    lengths = np.diff(ends)
    long = np.unique(block[lengths[block] - 1 > _LONGEST])
    if long.size:  # rare: the slopes that the regression saw were rounded, from the end that they were added up from
        tails = np.minimum(np.cumsum(np.abs(mass)), np.cumsum(np.abs(mass[::-1]))[::-1])
        for k in long:
            part = slice(ends[k], ends[k + 1] + 1)
            error[part] += 32 * EPS * tails[part].max()
    return Spread(np.maximum(found, 0.0), error)


def _above_polygon(mass: FloatArray, nodes: FloatArray, ends: NDArray[np.intp], longest: int) -> FloatArray:
    """Masses that lower the chords of a quarter of ``longest`` to ``longest`` inner nodes onto the polygon."""
    error, inside = np.zeros_like(mass), np.diff(ends) - 1
    chosen = np.flatnonzero((inside <= longest) & (inside > (longest // 4 if longest > 4 else 0)))
    if not chosen.size:
        return error
    start, end = ends[chosen][:, None], ends[chosen + 1][:, None]
    place = start + 1 + np.arange(longest)
    some = place < end
    place = np.minimum(place, end)
    change = np.where(some, mass[place], 0.0).astype(np.longdouble)
    x, length = (nodes[place] - nodes[start]).astype(np.longdouble), (nodes[end] - nodes[start]).astype(np.longdouble)
    sums, moments = np.cumsum(change, axis=1), np.cumsum(change * x, axis=1)
    above = sums * x - moments - x * (sums[:, -1:] - moments[:, -1:] / length)
    rounding = 4 * longest * LONG_EPS * np.abs(change).sum(axis=1, keepdims=True) * length
    missing = np.where(some, np.maximum(rounding - above, 0.0), 0.0).astype(np.float64)
    narrowest = np.minimum(nodes[place] - nodes[place - 1], nodes[np.minimum(place + 1, nodes.size - 1)] - nodes[place])
    np.add.at(error, place[some], (4 * missing / np.where(narrowest > 0, narrowest, np.inf))[some])
    return error
