"""Sums of gradients over all records: exact whole numbers, and the noise that they need."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import Units
from deniable.training.design import Basis, Design, design_of, shares
from deniable.training.encoders import Codes
from deniable.training.losses import RESIDUAL, ClippedLoss

MOMENTUM = 0.95  # weight of the past in the velocity
_LARGEST_NOISE = 2.0**36  # lattice points: above it the sampler is slow
_STABLE = 3.5  # largest step·n·curvature: from 2·(1 + momentum) on the steps would oscillate


def length_of_step(loss: ClippedLoss, mu: float, n: float, steps: int, usual: float, longer: float = 1.0) -> float:
    """Return the factor on the averaged sums of gradients, from their budget and the noisy number of records.

    One over length·steps/(1 − momentum) is an implicit ridge. ``usual`` is the length of a usual row before scaling:
    the path is as long as without scaling, and the noise smaller by this factor. ``longer``: a factor on all that.
    """
    reach = min(loss.bend.travel * mu, loss.bend.reach) * usual
    return min(reach * (1 - MOMENTUM) / steps * longer, _STABLE / (loss.bend.largest * n))


@dataclass(eq=False)
class Descent:
    """What sums of gradients are made of: records as rows, targets, whole-number weights (None: each weighs 1).

    ``unit`` is lattice points of a residual of 1, ``sd`` the noise of each coordinate of a sum, in lattice points.

    ``coarser``, a power of ½, makes the lattice of the residuals coarser where the noise is so large that fine steps
    would be wasted. ``shares``, at most 1, are factors on the residuals of records whose rows are long; ``row`` is each
    record's Σ (basis entry / noise)² over the coordinates, for a residual of 1. ``squares`` adds up each record's
    squared contribution in units of the noise.
    """

    design: Design
    basis: Basis
    loss: ClippedLoss
    target: FloatArray
    weights: FloatArray | None
    coarser: float
    shares: FloatArray
    row: FloatArray
    unit: float
    sd: FloatArray
    squares: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def scale(self) -> FloatArray:
        """Return what turns a noisy sum into a gradient with respect to the coefficients, (coordinates, 1)."""
        return np.asarray(self.basis.scale[:, None] / self.unit)

    @property
    def noise(self) -> float:
        """Return the noise of each coordinate of a gradient, the same for all."""
        return float(self.sd[0] * self.basis.scale[0]) / self.unit

    def gradient(self, w: FloatArray) -> IntArray:
        """Return the sum of residuals times rows, (coordinates, outputs): exact, whatever the order of the records."""
        sums: Any = self.design.empty(self.loss.outputs)
        for rows, residuals in self._pass(w):
            self.squares[rows] += sum(r * r for r in residuals) * self.row[rows]
            shares = self.shares[rows] * self.coarser
            self.design.add(sums, [np.trunc(r * shares) for r in self._weighted(residuals, rows)], rows)
        return self.design.total(sums)

    def residuals(self, w: FloatArray, loss: ClippedLoss | None = None) -> list[FloatArray]:
        """Return each record's residuals without its weight, one array per output, also those of another ``loss``."""
        parts = [residuals for _, residuals in self._pass(w, loss)]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _pass(self, w: FloatArray, loss: ClippedLoss | None = None) -> Iterator[tuple[slice, list[FloatArray]]]:
        prepared: Any = self.design.prepare(self.basis.scale[:, None] * w)
        loss = loss or self.loss
        for rows in self.design.chunks():
            yield rows, loss.residuals(self.design.scores(prepared, rows), self.target[rows])

    def _weighted(self, residuals: list[FloatArray], rows: slice) -> list[FloatArray]:
        return residuals if self.weights is None else [r * self.weights[rows] for r in residuals]


def descent_of(
    codes: Sequence[Codes], basis: Basis, loss: ClippedLoss, target: FloatArray, units: Units, n: float, mu: float
) -> Descent:
    """Return sums of gradients for these blocks, with the noise that makes each of them ``mu``-GDP.

    A record's part of a sum is r·z: r has norm ≤ clip (in lattice points), z one basis row per block. In units of the
    noise its square is at most clip²·:meth:`Basis.longest_row`, the same in each step.
    """
    shape = 1 / basis.scale  # after scaling, every coordinate has the same noise
    noise = shape * (loss.clip * math.sqrt(basis.longest_row(shape)) / mu * (1 + MANY_ROUNDINGS))
    unit = RESIDUAL * float(units.heaviest)
    coarser = 2.0 ** -max(math.ceil(math.log2(float(noise.max()) * unit / _LARGEST_NOISE)), 0)
    unit *= coarser
    sd = noise * unit
    if not loss.clip * unit * math.sqrt(basis.longest_row(sd)) * (1 + MANY_ROUNDINGS / 32) <= mu:
        raise RuntimeError("the noise of a descent does not cover its budget")
    norms, row = basis.squared_norms(sd), np.zeros(target.size)
    for start, cells in zip(basis.starts, codes, strict=True):
        row += norms[start + cells.astype(np.int64)]
    kept = shares(row, basis.longest_row(sd))
    design = design_of(iter(codes), basis, target.size, loss.outputs, n, units.heaviest)
    return Descent(design, basis, loss, target, units.weights, coarser, kept, row * np.square(kept * coarser), unit, sd)
