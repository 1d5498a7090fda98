"""One kind of epochs of random allocation: its law on a lattice, tilted, and guides to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._kept import Kept
from deniable.accounting.engines.cells import LatticeLaw, log_sum
from deniable.accounting.steps.allocation import Allocation
from deniable.accounting.steps.convex_order import Atoms
from deniable.accounting.steps.convex_order import above as larger
from deniable.accounting.steps.convex_order import below as smaller
from deniable.accounting.steps.law_errors import LawErrors
from deniable.accounting.steps.sums import SumLaw
from deniable.curves import Side

_TRIMMED = 1e-21  # of an epoch's law: what its ends may weigh that are left out
_MOST_LAWS = 16  # of one epoch that are kept


def _trimmed(sums: SumLaw) -> tuple[Atoms, float, float]:
    """The whole law without ends that weigh next to nothing, and what was left out, in mass and mass times sum.

    Divided by a small sum, or raised to a power, that would look like more.
    """
    atoms = sums.up_to(len(sums.classes))
    mass, moment = np.cumsum(atoms.mass), np.cumsum((atoms.mass * atoms.point)[::-1])[::-1]
    first = int(np.searchsorted(mass, _TRIMMED * mass[-1]))
    last = int(np.searchsorted(-moment, -_TRIMMED * moment[0]))
    left, right = atoms.mass[:first], atoms.mass[last:]
    lost, moved = left.sum() + right.sum(), left @ atoms.point[:first] + right @ atoms.point[last:]
    return Atoms(atoms.point[first:last], atoms.mass[first:last]), float(lost), float(moved)


class _Guide:
    """Cumulants of log S from a coarse picture of its law: they lay out lattices and bound nothing."""

    def __init__(self, sums: SumLaw, batches: int) -> None:
        atoms, _, _ = _trimmed(sums)
        every = np.geomspace(atoms.point[0], atoms.point[-1], 1 << 12)
        cuts = np.unique(np.searchsorted(atoms.point, every[:-1]))
        mass = np.add.reduceat(atoms.mass, cuts)
        mean = np.add.reduceat(atoms.mass * atoms.point, cuts) / mass / batches
        self.log_mass, self.loss = np.log(mass), np.log(mean)
        self.errors, self.batches = sums.errors, batches
        self.ends = float(np.log(atoms.point[0] / batches)), float(np.log(atoms.point[-1] / batches))

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K, K′ and K″ at c."""
        exponent = self.log_mass + c * self.loss
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        total = float(weight.sum())
        first = float(weight @ self.loss) / total
        return top + math.log(total), first, float(weight @ (self.loss - first) ** 2) / total

    def wrong(self, c: float) -> FloatArray:
        """About what is wrong with the law tilted by e^{cL}, as a share of it and anywhere: rows as of ``tilted``."""
        floor, size = self.batches * math.exp(self.ends[0]), self.cumulants(c)[0]
        share = self.errors.tilted(c, size, floor, self.batches)
        relative = self.errors.rounded(self.log_mass + c * self.loss - size, c * self.loss - size, share)
        anywhere = self.errors.anywhere(self.batches)
        return np.array([[share + relative, self.errors.lost], [relative, anywhere]])

    def log_mgf(self, points: FloatArray) -> FloatArray:
        """K at several points."""
        return np.array([self.cumulants(float(c))[0] for c in points])


@dataclass(frozen=True)
class Epochs:
    """``count`` epochs of one allocation."""

    step: Allocation
    count: int
    _guides: Kept[Side, _Guide] = field(default_factory=Kept, init=False, repr=False, compare=False)
    _laws: Kept[tuple[Side, float], tuple[LatticeLaw, LawErrors]] = field(
        default_factory=lambda: Kept(_MOST_LAWS), init=False, repr=False, compare=False
    )

    _rounded: Kept[tuple[Side, float], float] = field(
        default_factory=lambda: Kept(_MOST_LAWS), init=False, repr=False, compare=False
    )

    def guide(self, side: Side) -> _Guide:
        """What lays out the lattices of one side."""
        sums = self.step.above if side == "upper" else self.step.below
        return self._guides(side, lambda: _Guide(sums, self.step.batches))

    def law(self, spacing: float, side: Side) -> tuple[LatticeLaw, LawErrors]:
        """One epoch on a lattice of log S, and what is wrong with it."""
        return self._laws((side, spacing), lambda: self._lay(spacing, side))

    def _lay(self, spacing: float, side: Side) -> tuple[LatticeLaw, LawErrors]:
        sums = self.step.above if side == "upper" else self.step.below
        atoms, left_out, left_moved = _trimmed(sums)
        batches = self.step.batches
        atoms = atoms._replace(point=atoms.point / batches)
        low, high = math.log(atoms.point[0]), math.log(atoms.point[-1])
        first = low - 1.5 * spacing
        values = first + spacing * np.arange(math.ceil((high - first) / spacing) + 3)
        nodes = np.exp(values)
        spread = (larger if side == "upper" else smaller)(atoms, nodes)
        inside = float(np.max(np.abs(values))) + 8  # rounding of exp, of values and of points: relative, of S
        errors = sums.errors.without(left_out, left_moved).placed(nodes * batches, spread.error, batches)
        errors = errors + LawErrors.rounding(16 * EPS + self.step.shift + 2 * EPS * inside)
        keep = np.flatnonzero(spread.mass > 0)
        part = slice(int(keep[0]), int(keep[-1]) + 1)
        with np.errstate(divide="ignore"):
            log_mass = np.log(spread.mass[part])
        return LatticeLaw(float(values[part.start]), log_mass, float(self.count), 0.0), errors

    def tilted(self, spacing: float, side: Side, c: float) -> tuple[LatticeLaw, FloatArray]:
        """The law, and what is wrong with all epochs: as a share of their law tilted by e^{cL}, and wherever it lies.

        Three rows that all hold: what is placed is charged to the tilted law; or it may lie anywhere; or this and what
        is relative.
        """
        law, errors = self.law(spacing, side)
        batches, values = self.step.batches, law.values(spacing)
        floor = batches * math.exp(law.first - 2 * spacing)  # a point without mass, but with an error, may stand below
        exponent = law.log_mass + c * values
        size = log_sum(exponent)
        share = errors.tilted(c, size, floor, batches)
        relative = errors.rounded(exponent - size, c * values - size, share)
        lost = max(errors.lost, errors.moved / batches)
        anywhere = errors.anywhere(batches)
        worlds = self._rounded((side, spacing), lambda: _in_either_world(law, errors, values, anywhere))
        charges = [[relative + share, lost], [relative, anywhere], [0.0, anywhere + worlds]]
        return law, np.array(charges) * self.count * (1 + 1e-9)


def _in_either_world(law: LatticeLaw, errors: LawErrors, values: FloatArray, anywhere: float) -> float:
    """The L1 error that relative errors make, where ``anywhere`` is that of the others."""
    weighted = (errors.rounded(law.log_mass + c * values, c * values, anywhere) for c in (0, 1))
    return max(weighted)
