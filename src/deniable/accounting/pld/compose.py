"""Composition of steps by squaring, on lattices that fit what has been added up so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.lattices import Law, fitting, power, product
from deniable.accounting.pld.one import Cuttable, one
from deniable.curves import Side

_COARSEST = -7  # log2 of the coarsest spacing, in nats, unless the law itself is wider
_SLICES = 8  # a pitch is divided by at most this to be that of several steps


@dataclass(frozen=True)
class ComposedLaw:
    """The law of the sum, labels counted from ``middle``; what only P produces, and all that steps lose of P and Q.

    If n steps have measures m_i that differ by δ_i in L1 from true ones, products differ by Π(1 + δ_i) − 1 at most.
    """

    law: Law
    middle: float
    only: float
    lost: tuple[float, float]
    size: float  # Σ |middle| of all steps

    @property
    def missed(self) -> float:
        """What rows may miss, or have too much."""
        return self.law.error * self.law.moved

    @property
    def charged(self) -> float:
        """What errors may add to a hockey stick."""
        return self.missed + self.lost[0]


def compose(parts: Sequence[tuple[Cuttable, int]], side: Side, points: int, direct: bool = False) -> ComposedLaw:
    """The law of ``count`` steps of every part."""
    unit, even = unit_of([step for step, _ in parts])
    tables = [step.scales for step, _ in parts]
    least = Law.rung * math.ceil(max(step.finest for step, _ in parts) / Law.rung)
    coarsest = 0 if even else math.floor(_COARSEST - math.log2(unit))

    def laid(counts: Sequence[int]) -> tuple[int, float]:
        """The finest class for a sum, and about where what it can hold has its mean."""
        found = fitting(tables, counts)
        if found is None or even:
            return coarsest, 0.0 if found is None else found[1]
        e = math.floor(math.log2(found[0] * 2 / points / unit))
        return max(min(Law.rung * (e // Law.rung), coarsest), least), found[1]

    top = max(coarsest, laid([count for _, count in parts])[0])
    total: Law | None = None
    so_far = [0] * len(parts)
    for i, (step, count) in enumerate(parts):

        def of(k: int, i: int = i) -> tuple[int, float]:
            return laid([k if j == i else 0 for j in range(len(parts))])

        single = one(step, Law(side, unit, points, {}, direct), min(of(1)[0], top), top, step.middle)
        law = power(single, count, of, top)
        so_far[i] = count
        total = law if total is None else product(total, law, *laid(so_far), top)
    assert total is not None  # there is a part
    middle = math.fsum(step.middle * count for step, count in parts)
    only = -math.expm1(math.fsum(count * math.log1p(-min(step.only, 1 - 1e-16)) for step, count in parts))
    missed = (math.fsum(count * step.lost[k] for step, count in parts) for k in (0, 1))
    lost, missing = (math.expm1(min(mass, MOST_EXPONENT)) * (1 + 64 * EPS) for mass in missed)
    size = math.fsum(abs(step.middle) * count for step, count in parts)
    return ComposedLaw(total, middle, only, (lost, missing), size)


def unit_of(steps: Sequence[Cuttable]) -> tuple[float, bool]:
    """The spacing of class 0 on which all atoms lie (1 if there is none), and whether nothing else is there."""
    pitches = [step.pitch for step in steps if step.pitch > 0]
    if not pitches or any(step.pitch == 0 and step.atomic for step in steps):
        return 1.0, False
    least = min(pitches)
    for slices in range(1, _SLICES + 1):
        places = np.array(pitches) * slices / least
        if np.all(np.abs(places - np.rint(places)) < 1e-9 * places):
            return least / slices, all(step.even for step in steps)
    return 1.0, False
