"""Noisy full-batch gradient descent with momentum and averaging: all that is released are noised integer sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray, IntArray
from deniable.noise.queries import Channel
from deniable.training.design import Basis, Design
from deniable.training.losses import RESIDUAL, ClippedLoss


@dataclass(frozen=True)
class DescentPlan:
    """Numbers fixed before the first step, from public and noised quantities only.

    Attributes
    ----------
    steps
        Number of sums that are released.
    step
        Factor on the (momentum-averaged) sum of gradients.
    momentum
        Weight of the past in the velocity.
    """

    steps: int
    step: float
    momentum: float = 0.95


@dataclass(frozen=True, eq=False)
class Weighted:
    """The records' targets and whole-number weights (None: each weighs 1); a unit's weights sum to ≤ ``heaviest``.

    ``coarser``, a power of ½, makes the lattice of the residuals coarser where the noise is so large that fine steps
    would be wasted. ``shares``, at most 1, are factors on the residuals of records whose rows are long.
    """

    target: FloatArray
    weights: FloatArray | None = None
    heaviest: int = 1
    coarser: float = 1.0
    shares: FloatArray | None = None

    @property
    def unit(self) -> float:
        """Lattice points of a residual of size 1 with a unit's whole weight."""
        return RESIDUAL * self.heaviest * self.coarser

    def weighted(self, residuals: list[FloatArray], rows: slice) -> list[FloatArray]:
        """Return the residuals times weights and shares on the coarser lattice, rounded towards zero."""
        if self.weights is not None:
            residuals = [r * self.weights[rows] for r in residuals]
        if self.shares is not None:
            shares = self.shares[rows] * self.coarser
            return [np.trunc(r * shares) for r in residuals]
        return residuals if self.coarser == 1 else [np.trunc(r * self.coarser) for r in residuals]


Admit = Callable[[slice, list[FloatArray]], list[FloatArray]]


def descend(
    design: Design, basis: Basis, loss: ClippedLoss, data: Weighted, plan: DescentPlan, channel: Channel, admit: Admit
) -> FloatArray:
    """Return the averaged coefficients, (coordinates, outputs).

    ``channel`` noises sums of shape (coordinates, outputs); ``admit`` sees each chunk's residuals before they are
    weighted and summed, and returns those that count (:meth:`deniable.noise.ledger.RecordLedger.admit`).
    """
    shape = (basis.scale.size, loss.outputs)
    w, velocity, mean = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    started = plan.steps // 2
    scale = basis.scale[:, None]
    for step in range(plan.steps):
        g = channel(gradient(design, basis, loss, data, w, admit)) * (scale / data.unit)
        velocity = plan.momentum * velocity + g
        w = w - plan.step * velocity
        if step >= started:
            mean += w
    return mean / (plan.steps - started)


def gradient(design: Design, basis: Basis, loss: ClippedLoss, data: Weighted, w: FloatArray, admit: Admit) -> IntArray:
    """Return the sum of residuals times rows, (coordinates, outputs): exact, whatever the order of the records."""
    sums = design.empty(loss.outputs)
    for rows, residuals in _residuals(design, basis, loss, data, w, admit):
        design.add(sums, residuals, rows)
    return design.total(sums)


def residuals_at(design: Design, basis: Basis, loss: ClippedLoss, data: Weighted, w: FloatArray) -> list[FloatArray]:
    """Return each record's (weighted) residuals, one array per output."""
    parts = [residuals for _, residuals in _residuals(design, basis, loss, data, w, lambda rows, residuals: residuals)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _residuals(
    design: Design, basis: Basis, loss: ClippedLoss, data: Weighted, w: FloatArray, admit: Admit
) -> Iterator[tuple[slice, list[FloatArray]]]:
    prepared = design.prepare(basis.scale[:, None] * w)
    for rows in design.chunks():
        residuals = admit(rows, loss.residuals(design.scores(prepared, rows), data.target[rows]))
        yield rows, data.weighted(residuals, rows)
