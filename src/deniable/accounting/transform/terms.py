"""Sums Σ A·e^{wL} along a vertical line Re w = c, over nodes or atoms of one step, each with a bound on its error."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS, LEAST_EXPONENT, MOST_EXPONENT, PRODUCT_EXPONENT
from deniable.accounting.sizes import DIGITS, FAR, UNDERFLOW
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import ComplexArray, complex_log1p
from deniable.accounting.transform.nodes import MISSED

_FAR = PRODUCT_EXPONENT  # exponents from which −1 is nothing, and φ and r^c are only representable together
_LEAST = math.exp(-DIGITS)  # of the largest weight: nodes with less are left out of sums


@dataclass(frozen=True, eq=False)
class Terms(ABC):
    """Losses L and weights A of kinds of steps, one row each: M(w) = Σ A·e^{wL} for Re w = c."""

    c: float
    loss: FloatArray
    log_weight: FloatArray  # log A, but for the unit
    unit: float
    density: FloatArray  # A

    @abstractmethod
    def at_ceiling(self, points: FloatArray, scale: FloatArray | float = 0.0) -> FloatArray:
        """Twice the summands where the law is cut, times e^{−scale}: bound on what real sums cut there miss.

        Both, and ``scale``, are of shape (rows, points).
        """

    @property
    @abstractmethod
    def argument(self) -> FloatArray:
        """How far roundings move a term at |w| = 1, in units of 4ε times it."""

    @property
    def wrong(self) -> float:
        """Relative error of masses, and what of them is left out."""
        return 0.0

    @cached_property
    def scale(self) -> FloatArray:
        """Per phase, a power of e that keeps r^c·φ representable (0 in all ordinary cases)."""
        top = (self.c * self.loss + self.log_weight).max(axis=1, initial=-np.inf)
        return np.where(top > FAR, top, 0.0)

    @cached_property
    def _increments(self) -> FloatArray:
        return increments(self.c * self.loss, self.log_weight, self.unit)

    @cached_property
    def tilted(self) -> FloatArray:
        """φ·r^c·e^{−scale} at the nodes: the tilted law before normalisation."""
        if not self.scale.any():
            return self.density + self._increments
        exponent = self.c * self.loss + self.log_weight - self.scale[:, None]
        return np.exp(np.maximum(exponent, LEAST_EXPONENT)) * self.unit

    @cached_property
    def excess(self) -> FloatArray:
        """M(c) − 1 per phase where the scale is 0 (else M·e^{−scale}), free of cancellation."""
        plain: FloatArray = self._increments.sum(axis=1)
        return np.where(self.scale > 0, self.tilted.sum(axis=1), plain)

    @cached_property
    def mgf(self) -> FloatArray:
        """M(c)·e^{−scale} per phase."""
        return np.where(self.scale > 0, self.excess, 1 + self.excess)

    @cached_property
    def cut(self) -> FloatArray:
        """Bound, relative to M(c), on what a ceiling in the midst of the tilted law does to one step's sums."""
        bound: FloatArray = self.at_ceiling(np.array([self.c]), self.scale[:, None])[:, 0] / self.mgf
        return bound

    @cached_property
    def log_mgf(self) -> FloatArray:
        """log M(c) of one step of every phase."""
        large = self.scale > 0
        log_m: FloatArray = np.log1p(np.where(large, 0.0, self.excess)) + np.log(np.where(large, self.mgf, 1.0))
        return log_m + self.scale

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the tilted loss of one step of every phase."""
        first = (self.tilted * self.loss).sum(axis=1) / self.mgf
        return first, (self.tilted * (self.loss - first[:, None]) ** 2).sum(axis=1) / self.mgf

    def cumulants_at(self, row: int, points: FloatArray) -> FloatArray:
        """Rows log M, from above but for rounding, and mean and variance of the tilted loss at several real points."""
        loss, log_weight = self.loss[row], self.log_weight[row]
        exponent = np.multiply.outer(points, loss)
        top = np.max(exponent + log_weight, axis=1)
        scale = np.where(top > FAR, top, 0.0)
        rise = increments(exponent, log_weight, self.unit)  # free of cancellation
        mass = rise + self.density[row]
        large = scale > 0
        mass[large] = np.exp(exponent[large] + log_weight - scale[large, None]) * self.unit
        rise = np.where(large, 0.0, rise.sum(axis=1))
        total = np.where(large, mass.sum(axis=1), 1 + rise)
        mean = mass @ loss / total
        log_m = np.where(large, np.log(total), np.log1p(rise)) + scale
        log_m += np.log1p(self.at_ceiling(points, scale[None])[row] / total) + self.wrong
        return np.stack([log_m, mean, np.maximum(mass @ loss**2 / total - mean**2, 0.0)])

    def step_errors(self, phase: int, size: FloatArray) -> FloatArray:
        """Bound on the error of one step's transform at |w| = ``size``, relative to M(c).

        Rounding, a ceiling in the midst of the law, what sums miss, and the nodes that are left out.
        """
        error: FloatArray = 2 * self.step_rounding[phase] * size + 4 * self.cut[phase] + self.left_out[phase]
        return error + self.wrong

    @cached_property
    def left_out(self) -> FloatArray:
        """What sums miss and nodes that are left out have, relative to M(c)."""
        return np.asarray((MISSED + 4 * _LEAST * self.loss.shape[1]) * (1 + (self.scale == 0) / self.mgf))

    def log_ratio_of(self, phase: int, t: FloatArray, spacing: float | None = None) -> ComplexArray:
        """log M(c + it)/M(c) of one step of one phase; ``spacing``, if t rises by it from a multiple of it."""
        return np.asarray(self.log_ratios_of(slice(phase, phase + 1), t, spacing)[0])

    def log_ratios_of(self, phases: slice, t: FloatArray, spacing: float | None = None) -> ComplexArray:
        """The same of some phases, one row each."""
        return complex_log1p(self._differences(phases, t, spacing) / self.mgf[phases, None])

    def _relevant(self, phases: slice) -> NDArray[np.intp]:
        weight = self.tilted[phases]
        weight = np.where(self.scale[phases, None] == 0, np.maximum(weight, self.density[phases]), weight)
        keep = np.flatnonzero((weight > _LEAST * weight.max(axis=1, keepdims=True)).any(axis=0))
        if not keep.size:
            raise TooSlowError("the tilted law is lost to underflow")
        return keep

    def _differences(self, phases: slice, t: FloatArray, spacing: float | None) -> ComplexArray:
        """M(c + it) − M(c) = Σ A·(e^{itL} − 1), so that nothing cancels.

        At t = spacing·(n + Ba + b), 0 ≤ b < B, by e^{i(x+y)} − 1 = (e^{ix} − 1)·e^{iy} + (e^{iy} − 1).
        """
        keep = self._relevant(phases)
        loss, weight = self.loss[phases, None, keep], self.tilted[phases, None, keep]
        if spacing is None:
            return np.asarray((weight @ _cis_minus_one(t[:, None] * loss).swapaxes(1, 2))[:, 0])
        first, length = round(t[0] / spacing), math.isqrt(t.size - 1) + 1
        near, far = _turns(spacing * loss, 0, 1, length), _turns(spacing * loss, first, length, length)
        every = (far * weight) @ (1 + near).swapaxes(1, 2) + weight @ near.swapaxes(1, 2)
        return np.asarray(every.reshape(len(loss), -1)[:, : t.size])

    @property
    def real_error(self) -> FloatArray:
        """Bound on the error of M(c) of one step, relative to it: rounding, a ceiling, masses, and what nodes miss."""
        left_out = MISSED * (1 + 1 / np.minimum(self.mgf, 1 / UNDERFLOW))
        return 2 * self.step_rounding * (abs(self.c) + 1) + 4 * self.cut + left_out + self.wrong

    @cached_property
    def step_rounding(self) -> FloatArray:
        """Bound on |ΔM(c + it)|/(M(c)·|w|) from floating point, by perturbing every term of the sums over u."""
        plain = np.where(self.scale[:, None] > 0, 0.0, self.density)
        bound: FloatArray = 4 * EPS * ((self.tilted + plain) * self.argument).sum(axis=1) / self.mgf
        return bound


@dataclass(frozen=True, eq=False)
class StepTerms(Terms):
    """The nodes or atoms of one kind of step, in one row."""

    moved: FloatArray  # see argument
    relative: float  # error of masses, and what is left out of them
    ends: tuple[FloatArray, FloatArray, FloatArray]  # where the law is cut: log P/φ, log Q/φ, and log φ

    def at_ceiling(self, points: FloatArray, scale: FloatArray | float = 0.0) -> FloatArray:
        log_p, log_q, log_weight = self.ends
        heights = np.multiply.outer(points, log_p) + np.multiply.outer(1 - points, log_q) + log_weight
        heights = heights - np.reshape(scale, (-1, 1))
        found: FloatArray = 2 * self.unit * np.exp(np.minimum(heights, MOST_EXPONENT)).sum(axis=1)
        return found[None]

    @property
    def argument(self) -> FloatArray:
        return self.moved[None]

    @property
    def wrong(self) -> float:
        return self.relative * (1 + float((self.scale[0] == 0) / self.mgf[0]))


class StepLaw(ABC):
    """One kind of step whose transform is known along lines."""

    @abstractmethod
    def terms(self, least: float, most: float, t_max: float, ceiling: float) -> StepTerms:
        """Sums for c from ``least``, theirs, to ``most``, which differs only for t = 0, and 0 ≤ t ≤ ``t_max``."""

    @abstractmethod
    def farthest(self, ceiling: float) -> tuple[float, float]:
        """Bounds on −L and on L below a ceiling."""


def increments(exponent: FloatArray, log_weight: FloatArray, unit: float) -> FloatArray:
    """weight·(e^x − 1) times the spacing: free of cancellation for small x, and of overflow for large x far out."""
    with np.errstate(under="ignore"):
        found = np.expm1(np.minimum(exponent, _FAR)) * (np.exp(log_weight) * unit)
        far = exponent > _FAR
        if far.any():
            found = np.where(far, np.exp(np.minimum(exponent + log_weight, MOST_EXPONENT)) * unit, found)
    return found


def _turns(turn: FloatArray, first: int, step: int, count: int) -> ComplexArray:
    """e^{i(n + ks)x} − 1 for 0 ≤ k < ``count``: by the same identity; products err by 7ε times their angles."""
    length = math.isqrt(count - 1) + 1
    n = np.arange(length)[:, None]
    near, far = _cis_minus_one(step * n * turn)[:, None], _cis_minus_one((first + step * length * n) * turn)[:, :, None]
    every = near * (1 + far)
    every += far
    return every.reshape(len(turn), -1, turn.shape[2])[:, :count]


def _cis_minus_one(angle: FloatArray) -> ComplexArray:
    """e^{ix} − 1 without cancellation."""
    half = angle / 2
    sine = np.sin(half)
    turned: ComplexArray = 2 * sine * (1j * np.cos(half) - sine)
    return turned
