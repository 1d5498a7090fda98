"""One step in classes: its losses cut on all lattices at once, so that nothing falls between two of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable.accounting.lattices import SIZES, UNDERFLOW, Law, scales, trimmed
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import Cut, ListedOutcomes, Piece

_MOST_POINTS = 1 << 19  # of a class of one step


@dataclass(frozen=True, eq=False)
class Cuttable:
    """A step in one order of its laws: pieces whose masses add up, and P mass that is on none of them.

    Attributes
    ----------
    pieces
        Lines and atoms.
    only
        P mass that Q lacks.
    lost
        Bounds on the mass of P, and of Q, that pieces lack or have too much.
    pitch
        Distance of which all atoms are a whole number apart, 0 if there is none; ``even``: there are no other losses.
    """

    pieces: tuple[Piece, ...]
    only: float = 0.0
    lost: tuple[float, float] = (0.0, 0.0)
    pitch: float = 0.0
    even: bool = False

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Losses between which all lie."""
        low, high = zip(*(piece.ends for piece in self.pieces), strict=True)
        return min(low), max(high)

    @property
    def atomic(self) -> bool:
        """Whether there is nothing but atoms."""
        return all(isinstance(piece, ListedOutcomes) for piece in self.pieces)

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


def cuttable(step: Step, swapped: bool) -> Cuttable:
    """Return a step's pieces, in the order "add" or, ``swapped``, "remove"."""
    pieces = tuple(piece.swapped() if swapped else piece for piece in step.pieces())
    beyond = (piece.beyond for piece in pieces)  # Q mass there is in no test
    lost = math.fsum([step.lost[swapped], *beyond]), step.lost[not swapped]
    return Cuttable(pieces, step.only[swapped], lost, step.pitch, step.even)


def one(step: Cuttable, law: Law, bottom: int, top: int, middle: float) -> Law:
    """Put a step into an empty law, in classes from ``bottom`` on; labels count from ``middle``."""
    low, high = (end - middle for end in step.ends)
    runs: list[tuple[int, int, int]] = []  # class, first and last lattice point
    e, inner = bottom, 0.0
    while True:
        h = law.spacing(e)
        last = e >= top and max(-low, high) < (law.points if law.direct else _MOST_POINTS) / 2 * h
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
        first, stop, less = trimmed(rows, law.least)
        dropped += less
        if first < stop:
            law.put(e, (i + first, rows[:, first:stop]))
        here += size
    law.keep_one(top)
    listed = sum(piece.loss.size for piece in step.pieces if isinstance(piece, ListedOutcomes))
    law.relative, law.error = (64 + listed) * EPS, dropped + UNDERFLOW
    return law
