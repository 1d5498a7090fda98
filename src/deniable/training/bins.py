"""Edges of bins with about equal numbers of records, from two noisy looks at a column.

First look: uniform cells, half-octave cells and a cell around zero. Second look: the same cells, but the heavy ones are
cut into finer ones (all years from 1024 to 2047 would otherwise share one cell). Where nearly all records are in two
adjacent cells even then (times of one day, in seconds since 1970), two more looks go into these. Everything after the
noisy histograms is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray, IntArray

_UNIFORM = 64  # cells of equal width over the range
_HALF_OCTAVES = 24  # cells whose width halves every second time, towards zero: skewed columns
_FINER = 16  # parts into which a heavy cell is cut for the second look
_HEAVY = 5.0  # standard deviations of noise by which a cell must stand out to be cut
_FINEST = 2.0**-40  # relative to the numbers' size: narrower cells are not cut
_CROWDED = 0.85  # share of the records in two adjacent cells above which these get a closer look

Counter = Callable[[IntArray, int], FloatArray]  # cells of the records, number of cells → noisy counts


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Shrunk counts of adjacent cells: ``edges`` are the inner ones, ``low`` and ``high`` the ends of the range."""

    low: float
    high: float
    edges: FloatArray
    mass: FloatArray

    @property
    def bounds(self) -> FloatArray:
        """All edges, the ends of the range included."""
        return np.concatenate(([self.low], self.edges, [self.high]))


def first_edges(low: float, high: float) -> FloatArray:
    """Return the inner edges of the first look: sorted, strictly between ``low`` and ``high``."""
    largest = max(abs(low), abs(high))
    halves = largest * 2.0 ** (-np.arange(1, _HALF_OCTAVES + 1) / 2)
    edges = np.unique(np.concatenate((np.linspace(low, high, _UNIFORM + 1), halves, -halves)))
    return edges[(edges > low) & (edges < high)]


def shrunk(counts: FloatArray, sd: float) -> FloatArray:
    """Return the counts pulled towards their mean by the share of their spread that is noise; never negative."""
    signal = max(float(np.var(counts)) - sd**2, 0.0)
    kept = signal / (signal + sd**2) if sd > 0 else 1.0
    mean = max(float(np.mean(counts)), 0.0)
    return np.maximum(mean + kept * (counts - mean), 0.0)


def look_twice(values: FloatArray, low: float, high: float, count: Counter, sd: float) -> NoisyCells:
    """Return the noisy cells of a column from two histograms, each with noise of standard deviation ``sd``."""
    edges = first_edges(low, high)
    first = count(_cells(values, edges), edges.size + 1)
    bounds = np.concatenate(([low], edges, [high]))
    mass = shrunk(first, sd)
    heavy = (first > _HEAVY * sd) & (mass > mass.sum() / _UNIFORM * 2) & ~((bounds[:-1] < 0) & (bounds[1:] > 0))
    cuts = [np.linspace(a, b, _FINER + 1)[1:-1] for a, b in zip(bounds[:-1][heavy], bounds[1:][heavy], strict=True)]
    fine = np.unique(np.concatenate([edges, *cuts]))
    second = count(_cells(values, fine), fine.size + 1)
    parent = _cells(np.concatenate(([low], fine)), edges)  # the first look's cell of each cell of the second
    whole = ~heavy[parent]
    out = np.empty(fine.size + 1)
    out[whole] = shrunk((first[parent[whole]] + second[whole]) / 2, sd / np.sqrt(2)) if whole.any() else 0.0
    for cell in np.flatnonzero(heavy):
        out[parent == cell] = shrunk(second[parent == cell], sd)
    return NoisyCells(low, high, fine, out)


def crowded(bounds: FloatArray, mass: FloatArray, sd: float = 0.0) -> tuple[float, float] | None:
    """Return (low, high) of the two adjacent cells with nearly all of the mass, or None; never cells at zero.

    They hold nearly all of what stands out of noise of standard deviation ``sd``, and most of the total count.
    """
    pairs = np.where((bounds[:-2] <= 0) & (bounds[2:] >= 0), 0.0, mass[:-1] + mass[1:])
    clear = float(mass[mass > _HEAVY * sd].sum())
    if not pairs.size or not pairs.max() > max(_CROWDED * clear, mass.sum() / 2) > 0:
        return None
    first = int(np.argmax(pairs))
    low, high = float(bounds[first]), float(bounds[first + 2])
    return (low, high) if high - low > _FINEST * max(abs(low), abs(high)) else None


def with_inside(cells: NoisyCells, inside: NoisyCells) -> NoisyCells:
    """Return the cells with those between two of their bounds replaced by finer ones."""
    first, last = np.searchsorted(cells.bounds, (inside.low, inside.high))
    bounds = np.concatenate((cells.bounds[:first], inside.bounds, cells.bounds[last + 1 :]))
    mass = np.concatenate((cells.mass[:first], inside.mass, cells.mass[last:]))
    return NoisyCells(cells.low, cells.high, bounds[1:-1], mass)


def equal_mass_edges(cells: NoisyCells, bins: int) -> FloatArray:
    """Return inner edges of about ``bins`` bins of equal mass; a cell heavier than a bin gets a bin of its own.

    What the heavy cells leave is shared out among the remaining bins. Within a cell the mass counts as uniform.
    """
    total = float(cells.mass.sum())
    bounds = cells.bounds
    if not total > 0:
        return np.linspace(cells.low, cells.high, bins + 1)[1:-1]
    heavy = cells.mass > total / bins
    light = np.where(heavy, 0.0, cells.mass)
    left = bins - int(np.sum(heavy))
    reached = np.concatenate(([0.0], np.cumsum(light)))
    edges = [bounds[:-1][heavy], bounds[1:][heavy]]
    if left > 1 and reached[-1] > 0:
        shares = reached[-1] * np.arange(1, left) / left
        at = np.clip(np.searchsorted(reached, shares, side="left"), 1, reached.size - 1)
        inside = (shares - reached[at - 1]) / np.maximum(reached[at] - reached[at - 1], 1e-300)
        edges.append(bounds[at - 1] + inside * (bounds[at] - bounds[at - 1]))
    found = np.unique(np.concatenate(edges))
    return found[(found > cells.low) & (found < cells.high)]


def mass_between(cells: NoisyCells, edges: FloatArray) -> FloatArray:
    """Return the share of the mass in each bin, the outer ones included; equal shares if there is no mass."""
    total = float(cells.mass.sum())
    if not total > 0:
        return np.full(edges.size + 1, 1 / (edges.size + 1))
    reached = np.interp(edges, cells.bounds, np.concatenate(([0.0], np.cumsum(cells.mass))) / total)
    return np.diff(reached, prepend=0.0, append=1.0)


def quantile(cells: NoisyCells, share: float) -> float:
    """Return the point below which ``share`` of the mass lies."""
    total = float(cells.mass.sum())
    if not total > 0:
        return cells.low + share * (cells.high - cells.low)
    reached = np.concatenate(([0.0], np.cumsum(cells.mass)))
    return float(np.interp(share * total, reached, cells.bounds))


def _cells(values: FloatArray, edges: FloatArray) -> IntArray:
    return np.searchsorted(edges, values, side="right")
