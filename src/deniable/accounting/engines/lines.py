"""The lines of one cell of thresholds, laid one after the other as they are needed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._kept import Drawn
from deniable.accounting.engines.inversion import Contour, Plan, Region
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss

_CHEAP = 1 << 10  # nodes of lines that are laid without looking for cheaper ones
_APART = 4.0  # cells are this many spreads wide near the middle, and
_SCALE = 10.0  # this many times a tenth of their distance from it further out
_COARSER = 1e4  # how much larger errors may be on lines that would take too long


@dataclass(frozen=True)
class Effort:
    """How much one line may take, counted in nodes and in terms of sums: the same on every machine.

    ``further`` is what the second and third line of a cell may take: they have little to add. ``points`` are those of a
    class of the multi-scale distribution.
    """

    nodes: int = 1 << 15
    terms: float = float(1 << 24)
    further: float = float(1 << 22)
    points: int = 1 << 13

    @classmethod
    def patient(cls) -> Effort:
        """Return limits a hundred times as high, and more points."""
        return cls(1 << 18, float(1 << 31), float(1 << 29), 1 << 15)


@dataclass(frozen=True)
class CellMap:
    """Cells of thresholds around the ``middle`` of a law: in units of its ``spread``, and of the room to ``lowest``."""

    middle: float
    spread: float
    lowest: float

    def number(self, threshold: FloatArray, level: int) -> NDArray[np.int64]:
        """Number of the cell in which each threshold lies: cells are the wider, the further from the middle.

        They depend on the mechanism alone, not on what was asked before, and so do the lines laid in them: equal
        questions have equal answers whatever their order.
        """
        place = _SCALE * np.arcsinh((threshold - self.middle) / (_SCALE * self.spread))
        if math.isfinite(self.lowest):  # left of the self.middle by ratios of the distance to the infimum
            room = self.middle - self.lowest
            fall = np.log(np.maximum(threshold - self.lowest, 1e-300 * room) / room)
            place = np.where(threshold < self.middle, fall * max(room / self.spread, _APART), place)
        found: NDArray[np.int64] = np.round(place * (2**level / _APART)).astype(np.int64)
        return found

    def design(self, number: int, level: int) -> float:
        """The threshold in the middle of a cell."""
        place = number * (_APART / 2**level)
        if place < 0 and math.isfinite(self.lowest):
            room = self.middle - self.lowest
            return self.lowest + room * math.exp(place / max(room / self.spread, _APART))
        return self.middle + _SCALE * self.spread * math.sinh(place / _SCALE)


@dataclass(frozen=True, eq=False)
class Cell:
    """A design threshold and its lines, the most promising first."""

    loss: PrivacyLoss
    design: float
    ways: tuple[Region, ...]
    tolerance: float
    effort: Effort

    def line(self, k: int) -> Contour | None:
        """Line number k; None if there are no more."""
        return self._lines.item(k)

    @property
    def laid(self) -> tuple[Contour, ...]:
        """The lines that have been laid so far."""
        return self._lines.drawn

    @property
    def size(self) -> int:
        """Nodes of the lines that are kept."""
        return sum(line.size for line in self.laid)

    @cached_property
    def _lines(self) -> Drawn[Contour]:
        return Drawn(self._lay())

    def _lay(self) -> Iterator[Contour]:
        """Cheap lines in the order of preference, then costly ones, and less exact ones if they would be too costly."""
        costly: list[Plan] = []
        for way in self.ways:
            try:
                plan = Plan.of(self.loss, way, self.design, self.tolerance)
                costly.append(plan)
                if plan.nodes < _CHEAP and plan.work < self._most:
                    line = plan.contour(2 * _CHEAP, self._most)
                    costly.pop()
                    yield line
            except TooSlowError:
                continue
        costly.sort(key=lambda plan: plan.work)
        for plan in list(costly):
            try:
                if plan.work < 2 * self._most:
                    yield plan.contour(self.effort.nodes, self._most)
            except TooSlowError:
                continue
        if self.laid:
            return
        for plan in costly:
            try:
                coarser = plan.within(_COARSER)
                if coarser.work < 2 * self._most:
                    yield coarser.contour(self.effort.nodes, self._most)
            except TooSlowError:
                continue

    @property
    def _most(self) -> float:
        return self.effort.further if self.laid else self.effort.terms
