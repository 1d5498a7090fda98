"""The transform of a step whose law is a list of points and masses (:mod:`deniable.accounting.steps.listed`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.base import Step, TooSlowError
from deniable.accounting.steps.listed import ListedLoss
from deniable.accounting.transform.mixture_step import LARGE, LossTable, StepTransform, rise

_MOST_POINTS = 1 << 16


@dataclass(frozen=True, eq=False)
class ListedTransform(StepTransform):
    """One step that has a list."""

    step: Step

    def _list(self, c: float, furthest: float) -> ListedLoss:
        found = self.step.listed(c, furthest)
        if found is None or found.loss.size > _MOST_POINTS:
            raise TooSlowError("the law has too many points")
        return found

    def on_real_line(self, c: float) -> tuple[FloatArray, FloatArray]:
        """Return the list at a real c."""
        found = self._list(c, 0.0)
        return found.loss, found.log_mass

    def log_mgf(self, points: FloatArray) -> FloatArray:
        """Return log M at real points, from one list for all of a sign that are of about the same size."""
        found = np.empty(points.size)
        octave = np.copysign(1 + np.ceil(np.log2(np.maximum(np.abs(points), 1.0))), points)
        for one in np.unique(octave):
            mine = np.flatnonzero(octave == one)
            try:
                loss, log_mass = self.on_real_line(float(max(points[mine], key=abs)))
            except TooSlowError:  # for the furthest of them
                found[mine] = super().log_mgf(points[mine])
                continue
            exponent = np.multiply.outer(points[mine], loss)
            top = np.max(exponent + log_mass, axis=1)
            with np.errstate(under="ignore", over="ignore"):
                near = np.log1p(rise(exponent, log_mass).sum(axis=1))
                far = np.log(np.exp(exponent + log_mass - top[:, None]).sum(axis=1)) + top
            found[mine] = np.where(top > LARGE, far, near)
        return found

    def table(self, c: float, furthest: float) -> LossTable:
        """Nodes with bounds on what they miss, relative to M(c), and on rounding over |w|, by perturbing every term.

        Sums are Σ m·(r^w − 1), and of an exact law all masses add up to 1: a mass that is wrong by a factor 1 + κ costs
        κ·|r^w − 1| ≤ κ·|w·L|·max(1, r^c).
        """
        one, found = self.real(c), self._list(c, furthest)
        scale = math.exp(-one.scale)
        with np.errstate(over="ignore", under="ignore"):
            mass, tilted = np.exp(found.log_mass), np.exp(found.log_mass + c * found.loss - one.scale)
            size = np.abs(found.loss)
            relative = 32 * EPS + found.relative_error
            rounded = float((mass * scale + tilted) @ (size * relative)) + float(np.sum(tilted * found.shift))
            if one.scale > 0:  # nothing is taken from the summands
                rounded += float(np.sum(tilted * relative)) * (1 + one.scale) / abs(c)
        missed = (2 * found.missed + 2 * self._list(c, 0.0).missed + 2 * sum(self.step.unlisted)) * scale
        loss = found.loss.astype(np.complex128)
        return LossTable(found.log_mass.astype(np.complex128), loss, missed / one.size, rounded / one.size)

    @property
    def floor(self) -> float:
        """About the logarithm of what atoms keep of |M(½ + it)|/M(½), whatever t is; −∞ without atoms."""
        stays = self._fading(0.5)[0]
        return min(math.log(stays) - self.real(0.5).log_m, 0.0) if stays > 0 else -math.inf

    def decay(self, c: float, edges: FloatArray, total: float) -> tuple[FloatArray, float]:
        """Return (A + C/t)/M(c), with :meth:`Step.fading`; where A > 0 nothing falls for ever."""
        log_m = self.real(c).log_m
        stays, fades = self._fading(c)
        if not (math.isfinite(stays) and math.isfinite(fades)):
            return np.zeros(edges.size), math.inf
        with np.errstate(divide="ignore"):
            moved = np.minimum(np.log(stays + fades / edges) - log_m + 1e-12, 0.0)
        return moved, math.inf if stays > 0 else float(moved[-1])

    def _fading(self, c: float) -> tuple[float, float]:
        """What the step says of it; of constants beyond doubles nothing is known."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return self.step.fading(c)
        except OverflowError:
            return math.inf, math.inf
