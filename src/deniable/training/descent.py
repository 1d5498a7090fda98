"""Sums of gradients over all records: exact whole numbers, and the noise that they need."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.training.design import Basis, design_of, shares
from deniable.training.encoders import Codes, Pair, with_pairs
from deniable.training.losses import RESIDUAL, ClippedLoss
from deniable.training.pairs import products

MOMENTUM = 0.92  # weight of the past in the velocity
_LARGEST_NOISE = 2.0**36  # lattice points: above it the sampler is slow
STABLE = 3.5  # largest length·n·curvature: from 2·(1 + momentum) on the steps would oscillate


@dataclass(frozen=True, eq=False)
class Lattice:
    """What sums of gradients need besides the records: public or released, and made once, wherever the records are.

    ``unit`` is lattice points of a residual of 1, ``sd`` the noise of each coordinate of a sum, in lattice points.

    ``coarser``, a power of ½, makes the lattice of the residuals coarser where the noise is so large that fine steps
    would be wasted. ``norms`` holds each cell's Σ (basis entry / noise)² over the coordinates, for a residual of 1, and
    ``longest`` what counts of a row's in full; ``table`` is the loss's. ``n`` is about how many records there are.
    """

    basis: Basis
    loss: ClippedLoss
    heaviest: int
    n: float
    coarser: float
    unit: float
    sd: FloatArray
    norms: FloatArray
    longest: float
    table: FloatArray

    @classmethod
    def of(cls, basis: Basis, loss: ClippedLoss, heaviest: int, n: float, mu: float) -> Lattice:
        """Return the lattice with the noise that makes each sum ``mu``-GDP.

        A record's part of a sum is r·z: r has norm ≤ clip (in lattice points), z one basis row per block. In units of
        the noise its square is at most clip²·:meth:`Basis.longest_row`, the same in each step.
        """
        shape = 1 / basis.scale  # after scaling, every coordinate has the same noise
        noise = shape * (loss.clip * math.sqrt(basis.longest_row(shape)) / mu * (1 + MANY_ROUNDINGS))
        unit = RESIDUAL * float(heaviest)
        coarser = 2.0 ** -max(math.ceil(math.log2(float(noise.max()) * unit / _LARGEST_NOISE)), 0)
        unit *= coarser
        sd, longest = noise * unit, basis.longest_row(noise * unit)
        if not loss.clip * unit * math.sqrt(longest) * (1 + MANY_ROUNDINGS / 32) <= mu:
            raise RuntimeError("the noise of a descent does not cover its budget")
        return cls(basis, loss, heaviest, n, coarser, unit, sd, basis.squared_norms(sd), longest, loss.table)


@dataclass(frozen=True, eq=False)
class Coded:
    """Some records: their cells in each block, the intercept's last, targets and whole-number weights (None: all 1)."""

    codes: Sequence[Codes]
    target: FloatArray
    weights: FloatArray | None

    def cut(self, many: int) -> list[Coded]:
        """Return the records in at most so many parts."""
        ends = np.linspace(0, self.target.size, min(many, self.target.size) + 1).astype(int).tolist()
        return [
            Coded([c[a:b] for c in self.codes], self.target[a:b], None if self.weights is None else self.weights[a:b])
            for a, b in pairwise(ends)
        ]


class Descent:
    """Sums of gradients over some records.

    ``shares``, at most 1, are factors on the residuals of records whose rows are long; ``row`` is each record's
    Σ (basis entry / noise)² over the coordinates, for a residual of 1.
    """

    def __init__(self, lattice: Lattice, pairs: Sequence[Pair], rows: Coded) -> None:
        codes, self._rows, self._lattice = with_pairs(rows.codes, pairs), rows, lattice
        row = np.zeros(rows.target.size)
        for start, cells in zip(lattice.basis.starts, codes, strict=True):
            row += lattice.norms[start + cells.astype(np.int64)]
        self._shares = shares(row, lattice.longest)
        self._row = row * np.square(self._shares * lattice.coarser)
        outputs, heaviest = lattice.loss.outputs, lattice.heaviest
        self._design = design_of(iter(codes), lattice.basis, row.size, outputs, lattice.n, heaviest)
        self._squares, self._steps = np.zeros(row.size), list[int]()

    def gradient(self, step: int, w: FloatArray) -> IntArray:
        """Return the sum of residuals times rows, (coordinates, outputs): exact, whatever the order of the records."""
        sums: Any = self._design.empty(self._lattice.loss.outputs)
        for rows, residuals in self._pass(w, self._lattice.loss):
            self._squares[rows] += sum(r * r for r in residuals) * self._row[rows]
            shares = self._shares[rows] * self._lattice.coarser
            self._design.add(sums, [np.trunc(r * shares) for r in self._weigh(residuals, rows)], rows)
        self._steps.append(step)
        return self._design.total(sums)

    def squares(self, steps: Sequence[int], taken: Sequence[FloatArray]) -> FloatArray:
        """Return the sum of each record's squared contributions to these steps, in units of the noise.

        Records that were lost with a worker and are here anew take all steps again, at the weights ``taken``.
        """
        if self._steps != [*steps]:
            self._squares, self._steps = np.zeros(self._row.size), []
            for step, w in zip(steps, taken, strict=True):
                self.gradient(step, w)
        found, self._squares, self._steps = self._squares, np.zeros(self._row.size), []
        return found

    def residuals(self, w: FloatArray, loss: ClippedLoss) -> list[FloatArray]:
        """Return each record's residuals without its weight, one array per output, also those of another ``loss``."""
        parts = [residuals for _, residuals in self._pass(w, loss)]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def products(self, w: FloatArray, loss: ClippedLoss, *query: Any) -> IntArray:
        """Return sums of residuals times functions of pairs of columns: :func:`pairs.products`."""
        return products(self._weigh(self.residuals(w, loss), slice(None)), self._rows.codes, *query)

    def _pass(self, w: FloatArray, loss: ClippedLoss) -> Iterator[tuple[slice, list[FloatArray]]]:
        prepared: Any = self._design.prepare(self._lattice.basis.scale[:, None] * w)
        for rows in self._design.chunks():
            scores = self._design.scores(prepared, rows)
            yield rows, loss.residuals(scores, self._rows.target[rows], self._lattice.table)

    def _weigh(self, residuals: list[FloatArray], rows: slice) -> list[FloatArray]:
        weights = self._rows.weights
        return residuals if weights is None else [r * weights[rows] for r in residuals]
