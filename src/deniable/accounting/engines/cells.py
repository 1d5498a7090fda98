"""One step's pair of laws cut into cells of the privacy loss, and the two discrete pairs that bracket it.

- above: every cell's masses are split onto its two ends so that both P and Q mass are kept ("connect the dots"). The
  split undoes a merge, so this pair is at least as easy to tell apart.
- below: every cell is merged into one outcome, a post-processing. Its log-ratio s lies near the midpoint m of the
  cell; losses are replaced by midpoints, and the largest m − s (times the number of steps) is paid on the safe side.
  Cells where m − s is large move down one place instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.base import MOST_CELLS, TooSlowError, hidden_mass, upper_share
from deniable.accounting.transform.composed import PrivacyLoss

_BLOCK = 1 << 16  # cells at a time: keeps memory at a few MB


class Cells(NamedTuple):
    """Masses of one step's two laws in consecutive cells of the loss: [first + iη, first + (i+1)η)."""

    first: float
    numerator: FloatArray  # P for "add", Q for "remove"
    denominator: FloatArray
    centre: FloatArray  # log(numerator/denominator) minus the lower edge, in [0, η]
    steps: float
    lost: float  # mass of either law outside the cells
    wrong: float  # error of every centre

    def flipped(self, spacing: float) -> Cells:
        """Return the same cells with the two laws exchanged: losses change sign."""
        top = self.first + spacing * self.numerator.size
        centre = spacing - self.centre[::-1]
        return Cells(-top, self.denominator[::-1], self.numerator[::-1], centre, self.steps, self.lost, self.wrong)


class LatticeLaw(NamedTuple):
    """One step on the lattice first + η·i: the logarithm of the denominator mass, numerator = denominator·e^{value}."""

    first: float
    log_mass: FloatArray
    steps: float
    lost: float
    wrong: float = 0.0  # relative error of numerators
    hidden: float = 0.0  # bound on the numerator mass where that of the denominator is below all doubles

    def values(self, spacing: float) -> FloatArray:
        """Return the losses of the lattice points."""
        values: FloatArray = self.first + spacing * np.arange(self.log_mass.size, dtype=np.float64)
        return values


def all_cells(loss: PrivacyLoss, spacing: float, tilt: float) -> Iterator[Cells]:
    """Cut one phase of a composed loss after the other; ``tilt`` says how far out in the tail mass still matters."""
    for step, count in loss.gaussian_steps:
        cells = step.cells(spacing, tilt)
        yield Cells(cells.first, cells.p, cells.q, cells.centre, count, cells.lost[0], cells.centre_error)
    for epsilon, count in loss.randomized_responses:
        yield randomized_response_cells(epsilon, count, spacing)


def widest_step(loss: PrivacyLoss, tilt: float) -> float:
    """Return the longest range of losses that one step's cells cover."""
    ranges = [step.range(tilt) for step, _ in loss.gaussian_steps if step.rate < 1]
    return max((high - low for low, high in ranges), default=0.0)


def randomized_response_cells(epsilon: float, steps: float, spacing: float) -> Cells:
    """Cut randomised response: two atoms, at −ε and ε, the lower one on the lattice."""
    if not 2 * epsilon < MOST_CELLS * spacing:
        raise TooSlowError(f"{2 * epsilon / spacing:.3g} cells")
    size = int(2 * epsilon / spacing) + 2
    likely, rare = 1 / (1 + math.exp(-epsilon)), math.exp(-epsilon) / (1 + math.exp(-epsilon))
    numerator, denominator, centre = np.zeros(size), np.zeros(size), np.full(size, spacing / 2)
    place = int(2 * epsilon / spacing)
    numerator[0], denominator[0], centre[0] = rare, likely, 0.0
    numerator[place] += likely
    denominator[place] += rare
    centre[place] = 2 * epsilon - place * spacing
    return Cells(-epsilon, numerator, denominator, centre, steps, 0.0, 16 * EPS * (1 + epsilon))


def above(cells: Cells, spacing: float) -> LatticeLaw:
    """Split every cell onto its ends, keeping both masses (connect the dots).

    A centre that is wrong by x makes the numerator wrong by a factor e^x: whatever the shares, the split is easier
    to tell apart than the cell with such masses.
    """
    share = upper_share(cells.centre, spacing)
    mass = np.zeros(cells.denominator.size + 1)
    mass[:-1] = cells.denominator * (1 - share)
    mass[1:] += cells.denominator * share
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)
    hidden = hidden_mass(cells.numerator, cells.denominator, spacing)
    return LatticeLaw(cells.first, log_mass, cells.steps, cells.lost, 2 * cells.wrong, hidden)


def below(cells: Cells, spacing: float) -> tuple[LatticeLaw, float]:
    """Merge every cell, put it at its midpoint, or one place lower where that is cheaper; return the loss paid."""
    fall = spacing / 2 - cells.centre
    levels = spacing * np.concatenate([[0.0], np.geomspace(1e-8, 0.5, 60)])
    cheaper = np.zeros(levels.size + 1)
    for k in range(0, fall.size, _BLOCK):
        part = slice(k, k + _BLOCK)
        cheaper += np.bincount(np.searchsorted(levels, fall[part]), cells.numerator[part], levels.size + 1)
    moved = cells.numerator.sum() - np.cumsum(cheaper)[:-1]  # mass with a fall above each level
    level = float(levels[np.argmin(levels + spacing * moved)])
    down = fall > level
    mass = np.zeros(cells.numerator.size + 1)
    mass[1:] = np.where(down, 0.0, cells.numerator)
    mass[:-1] += np.where(down, cells.numerator, 0.0)
    paid = max(float(np.max(np.where(down, 0.0, fall), initial=0.0)), 0.0) + cells.wrong
    first = cells.first - spacing / 2
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass, out=mass)
    log_mass -= first + spacing * np.arange(mass.size)
    return LatticeLaw(first, log_mass, cells.steps, cells.lost), paid * cells.steps


def log_sum(exponent: FloatArray) -> float:
    """Return the logarithm of the sum of exponentials."""
    top = float(np.max(exponent))
    return top + math.log(float(np.sum(np.exp(exponent - top))))
