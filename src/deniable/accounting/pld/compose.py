"""Composition of steps by squaring, on lattices that fit what has been added up so far.

A step is cut on all lattices at once, so that nothing falls between two of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT, PRODUCT_EXPONENT
from deniable._kept import Kept
from deniable.accounting.lattices import SIZES, Law, fitting, power, product, scales, trim_ends
from deniable.accounting.sizes import BLOCK, MOST, UNDERFLOW
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import Cut, ListedOutcomes, Piece
from deniable.curves import Side

# laws of sums by lattice and parts, so that a release more costs one product; keys hold no outcomes
_COMPOSED: Kept[tuple[Hashable, ...], Law] = Kept(MOST, lambda law: sum(rows.size for _, rows in law.parts.values()))
_COARSEST = -7  # log2 of the coarsest spacing, in nats, unless the law itself is wider


@dataclass(frozen=True)
class ComposedLaw:
    """The law of the sum, labels counted from ``middle``; what only P produces, and all that steps lose or misplace.

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
        found = fitting(tables[: len(counts)], counts)
        if found is None or even:
            return coarsest, 0.0 if found is None else found[1]
        e = math.floor(math.log2(found[0] * 2 / points / unit))
        return max(min(Law.rung * (e // Law.rung), coarsest), least), found[1]

    top = max(coarsest, laid([count for _, count in parts])[0])
    lattice = (unit, even, least, coarsest, top, side, points, direct)
    names = [(step.step, step.swapped, count) for step, count in parts]
    known = ((k, _COMPOSED.get((*lattice, *names[:k]))) for k in range(len(parts), 0, -1))
    # how many parts a law is kept of, and that law: asked once, as another thread may make it go in between
    nothing: tuple[int, Law | None] = (0, None)
    first, total = next(((k, law) for k, law in known if law is not None), nothing)
    for i, (step, count) in list(enumerate(parts))[first:]:

        def of(k: int, i: int = i) -> tuple[int, float]:
            return laid([*[0] * i, k])

        single = one(step, Law.empty(side, unit, points, direct), min(of(1)[0], top), top, step.middle)
        law = power(single, count, of, top)
        total = law if total is None else product(total, law, *laid([n for _, n in parts[: i + 1]]), top)
    assert total is not None  # there is a part
    _COMPOSED((*lattice, *names), lambda: total)
    middle = math.fsum(step.middle * count for step, count in parts)
    only = -math.expm1(math.fsum(count * math.log1p(-min(step.only, 1 - 1e-16)) for step, count in parts))
    # below, an outcome that is left out is in no test
    every = [(s.lost if side == "upper" else s.step.misplaced[:: -1 if s.swapped else 1], count) for s, count in parts]
    missed = (math.fsum(count * of[k] for of, count in every) for k in (0, 1))
    lost, missing = (math.expm1(min(mass, MOST_EXPONENT)) * (1 + 64 * EPS) for mass in missed)
    size = math.fsum(abs(step.middle) * count for step, count in parts)
    return ComposedLaw(total, middle, only, (lost, missing), size)


def unit_of(steps: Sequence[Cuttable]) -> tuple[float, bool]:
    """The spacing of class 0 on which all atoms lie (1 if there is none), and whether nothing else is there."""
    pitches = [step.pitch for step in steps if step.pitch > 0]
    if not pitches or any(step.pitch == 0 and step.atomic for step in steps):
        return 1.0, False
    least = min(pitches)
    for slices in range(1, (1 << Law.rung) + 1):  # at most one class finer
        places = np.array(pitches) * slices / least
        if np.all(np.abs(places - np.rint(places)) < 1e-9 * places):
            return least / slices, all(step.even for step in steps)
    return 1.0, False


@dataclass(frozen=True, eq=False)
class Cuttable:
    """A step in one order of its laws: pieces whose masses add up, and P mass that is on none of them.

    Attributes
    ----------
    step, swapped
        Whose pieces these are, and whether P and Q are exchanged.
    pieces
        Lines and atoms.
    only
        P mass that Q lacks.
    lost
        Bounds on the mass of P, and of Q, that pieces lack or have too much.
    pitch
        Distance of which all atoms are a whole number apart, 0 if there is none; ``even``: there are no other losses.
    """

    step: Step
    swapped: bool
    pieces: tuple[Piece, ...]
    only: float
    lost: tuple[float, float]
    pitch: float
    even: bool

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Losses between which all lie."""
        low, high = zip(*(piece.ends for piece in self.pieces), strict=True)
        return min(low), max(high)

    @property
    def atomic(self) -> bool:
        """Whether there is nothing but atoms."""
        return all(isinstance(piece, ListedOutcomes) for piece in self.pieces)

    @property
    def size(self) -> int:
        """About how many numbers are kept: three an atom, and a table of each line."""
        return sum(3 * piece.loss.size if isinstance(piece, ListedOutcomes) else BLOCK >> 4 for piece in self.pieces)

    @cached_property
    def middle(self) -> float:
        """About the median of the loss under P: lattices are counted from there."""
        atoms = [np.stack([piece.loss, piece.p]) for piece in self.pieces if isinstance(piece, ListedOutcomes)]
        if atoms and not self.atomic:  # of atoms between lines the largest is to lie on the lattice
            loss, mass = np.concatenate(atoms, axis=1)
            return float(loss[np.argmax(mass)])
        loss, mass = (np.concatenate(x) for x in zip(*(piece.sample() for piece in self.pieces), strict=True))
        order = np.argsort(loss)
        above = np.cumsum(mass[order])
        return float(loss[order[int(np.searchsorted(above, above[-1] / 2))]])

    def cut(self, edges: FloatArray, blur: FloatArray | float = 0.0) -> Cut:
        """Masses of cells between edges, known up to ``blur`` and a rounding, all pieces together."""
        cuts = [piece.cut(edges, blur + 4 * EPS * np.abs(edges)) for piece in self.pieces]
        return Cut(*(np.sum([cut[k] for cut in cuts], axis=0) for k in range(4)))

    @cached_property
    def scales(self) -> FloatArray:
        """Those of the loss from the middle, by cells."""
        low, high = self.ends
        edges = np.unique(np.concatenate([self.middle - SIZES, self.middle + SIZES, [self.middle, low - 1, high + 1]]))
        edges = edges[np.searchsorted(edges, low - 1) :]
        edges = edges[: np.searchsorted(edges, high + 1) + 1]
        _, p, rise, _ = self.cut(edges)
        with np.errstate(all="ignore"):
            mean = np.where(p > 0, edges[:-1] - np.log1p(-np.minimum(rise / p, 1 - 1e-12)), 0.0) - self.middle
        return scales(np.maximum(np.abs(edges[:-1] - self.middle), np.abs(edges[1:] - self.middle)), mean, p)

    @property
    def finest(self) -> int:
        """log2 of the spacing below which losses are rounding."""
        return math.ceil(math.log2(max(32 * EPS * max(map(abs, self.ends)), 1e-290)))


_CUTTABLE: Kept[tuple[Step, bool], Cuttable] = Kept(8 * MOST, lambda step: step.size)  # all steps of a run at once


def cuttable(step: Step, swapped: bool) -> Cuttable:
    """Return a step's pieces, in the order "remove" or, ``swapped``, "add"."""

    def made() -> Cuttable:
        pieces = tuple(piece.swapped() if swapped else piece for piece in step.pieces())
        beyond = (piece.beyond for piece in pieces)  # Q mass there is in no test
        lost = math.fsum([step.lost[swapped], *beyond]), step.lost[not swapped]
        return Cuttable(step, swapped, pieces, step.only[swapped], lost, step.pitch, step.even)

    return _CUTTABLE((step, swapped), made)


def one(step: Cuttable, law: Law, bottom: int, top: int, middle: float) -> Law:
    """Put a step into an empty law, in classes from ``bottom`` on; labels count from ``middle``."""
    low, high = (end - middle for end in step.ends)
    runs: list[tuple[int, int, int]] = []  # class, first and last lattice point
    e, inner = bottom, 0.0
    while True:
        h = law.spacing(e)
        last = e >= top and max(-low, high) < (law.points if law.direct else BLOCK) / 2 * h
        reach = math.inf if last else law.points / 2 * h
        for a, b in [(-reach, reach)] if inner == 0 else [(-reach, -inner), (inner, reach)]:
            i, k = max(a / h, math.floor(low / h) - 1.0), min(b / h, math.ceil(high / h) + 1.0)
            if i < k:
                runs.append((e, round(i), round(k)))
        if last or reach > max(-low, high) + h:
            break
        inner, e = reach, min(e + Law.rung, top) if e < top else e + Law.rung
    runs.sort(key=lambda run: run[1] * law.spacing(run[0]))
    upper = law.side == "upper"
    cells = [np.r_[i, np.arange(i, k) + 0.5, k] if law.nearest(e) else np.arange(i, k + 1.0) for e, i, k in runs]
    edges = [at[:-1] * law.spacing(e) for at, (e, _, _) in zip(cells, runs, strict=True)]
    at = np.concatenate([*edges, [runs[-1][2] * law.spacing(runs[-1][0])]])
    cut = step.cut(at + middle, 2 * EPS * (np.abs(at) + abs(middle)))
    dropped, here = 0.0, 0
    for (e, i, _), places in zip(runs, cells, strict=True):
        h, size = law.spacing(e), places.size - 1
        least, most, rise, rest = (x[here : here + size] for x in cut)
        if upper:
            up = np.clip(rise * (1 + 4 * EPS) / -math.expm1(-h), 0.0, most)
            rows = (np.r_[most - up, 0.0] + np.r_[0.0, up])[None]
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                points = h * np.arange(i, i + float(size))
                moved = rest * np.exp(np.minimum(points - at[here : here + size], PRODUCT_EXPONENT))
            rows = np.stack([least, np.where(least > 0, moved, 0.0)])
        first, stop, less = trim_ends(rows, law.least)
        dropped += less
        if first < stop:
            law.put(e, (i + first, rows[:, first:stop]))
        here += size
    law.keep_one(top)
    listed = sum(piece.loss.size for piece in step.pieces if isinstance(piece, ListedOutcomes))
    law.relative, law.error = (64 + listed) * EPS, dropped + UNDERFLOW
    return law
