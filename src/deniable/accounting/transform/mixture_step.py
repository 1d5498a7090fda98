"""The transform of one Gaussian mixture step: sums over nodes in u, each with a bound on its error.

The proofs are in :mod:`deniable.accounting.transform.mixture_nodes`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._kept import Kept
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.gaussian_mixture import Case, GaussianMixtureStep
from deniable.accounting.steps.ratios import ComplexArray
from deniable.accounting.transform.mixture_nodes import MixtureNodes, OneWindow, evaluated, highest, nodes_of

LARGE = 30.0  # exponents from which −1 is nothing
_LIFTS = np.array([0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0])  # heights that bound T steps, times √(66/T): e^{−33} at 1
_LONG = 64  # values of t from which tables pay
_ENTRIES = 1 << 17  # matrix entries evaluated at a time
_MOST_KEPT = 64  # real points
_NDTR_ERROR = 1e-13  # relative, of log_ndtr off the real line


@dataclass(frozen=True, eq=False)
class Real:
    """M and its derivatives at a real c: sums on the real line."""

    excess: float  # M(c) − 1, or M(c)·e^{−scale}
    scale: float
    first: float
    second: float

    @property
    def size(self) -> float:
        """M(c)·e^{−scale}."""
        return self.excess if self.scale > 0 else 1 + self.excess

    @property
    def log_m(self) -> float:
        """log M(c)."""
        return math.log(self.size) + self.scale if self.scale > 0 else math.log1p(self.excess)


class LossTable(NamedTuple):
    """What sums on a line Re w = c are made of, and bounds on what is wrong with them, relative to M(c)."""

    log_weight: ComplexArray  # of φ, window, spacing and the case's probability
    loss: ComplexArray
    missed: float  # by quadrature
    rounding: float  # over |w|


class StepTransform(ABC):
    """M(w) = E_Q e^{wL} of one step as a sum over nodes."""

    @abstractmethod
    def on_real_line(self, c: float) -> tuple[FloatArray, FloatArray]:
        """Return losses and logarithms of masses that make the sum at a real c."""

    @abstractmethod
    def table(self, c: float, furthest: float) -> LossTable:
        """Lay the nodes for the line Re w = c up to Im w = ``furthest``."""

    @abstractmethod
    def decay(self, c: float, edges: FloatArray, total: float) -> tuple[FloatArray, float]:
        """Bounds on log |M(c + it)|/M(c) of one step from every t on, and on its logarithm times (t/t_0)^{1/T}."""

    @property
    def faded(self) -> float:
        """Mass under "out" that a window takes."""
        return 0.0

    @property
    def floor(self) -> float:
        """About the logarithm of what atoms keep of |M(½ + it)|/M(½), whatever t is; −∞ without atoms."""
        return -math.inf

    @cached_property
    def _kept(self) -> Kept[float, Real]:
        return Kept(_MOST_KEPT)

    def real(self, c: float) -> Real:
        """M, M′ and M″ at real c."""
        return self._kept(c, lambda: self._real(c))

    def _real(self, c: float) -> Real:
        loss, log_weight = self.on_real_line(c)
        exponent = c * loss
        top = float(np.max(exponent + log_weight))
        scale = top if top > LARGE else 0.0
        tilted = np.exp(exponent + log_weight - scale)
        if scale > 0:
            excess = total = float(tilted.sum())
        else:
            excess = float(rise(exponent, log_weight).sum()) - self.faded
            total = 1 + excess
        first = float(tilted @ loss) / total
        second = float(tilted @ (loss - first) ** 2) / total
        return Real(excess, scale, first, second)

    def log_mgf(self, points: FloatArray) -> FloatArray:
        """Return log M at real points."""
        return np.array([self.real(float(c)).log_m for c in points], dtype=np.float64)

    def difference(self, table: LossTable, c: float, t: FloatArray, spacing: float | None) -> ComplexArray:
        """(M(c + it) − M(c))·e^{−scale} = Σ φ·(r^{c + it} − 1) − (M(c) − 1), a window's loss of mass included."""
        log_weight, loss, *_ = table
        real = self.real(c)
        taken = real.excess if real.scale > 0 else real.excess + self.faded
        if spacing is not None and t.size > _LONG:  # t = spacing·(Ba + b), 0 ≤ b < B
            length = math.isqrt(t.size - 1) + 1
            few, many = spacing * np.arange(length), spacing * length * np.arange(-(-t.size // length))
            near = np.multiply.outer(1j * few, loss)
            far = np.multiply.outer(1j * many, loss) + c * loss
            if real.scale > 0:
                every = np.exp(far + log_weight - real.scale) @ np.exp(near).T
            else:  # r^{c + i(x + y)} − 1 = (r^{c + ix} − 1)·r^{iy} + (r^{iy} − 1)
                weight, turn = np.exp(log_weight), np.expm1(near)
                every = rise(far, log_weight) @ (1 + turn).T + turn @ weight
            found: ComplexArray = every.ravel()[: t.size] - taken
            return found
        parts = []
        rows = max(1, _ENTRIES // loss.size)
        for k in range(0, t.size, rows):
            exponent = np.multiply.outer(c + 1j * t[k : k + rows], loss)
            if real.scale > 0:
                parts.append(np.exp(exponent + log_weight - real.scale).sum(axis=1))
            else:
                parts.append(rise(exponent, log_weight).sum(axis=1))
        return np.asarray(np.concatenate(parts) - taken, dtype=np.complex128)


@dataclass(frozen=True, eq=False)
class MixtureTransform(StepTransform):
    """One step under a window (v, δ), if there is one."""

    step: GaussianMixtureStep
    window: OneWindow | None

    def on_real_line(self, c: float) -> tuple[FloatArray, FloatArray]:
        """Return losses at the nodes of all cases and logarithms of their weights."""
        weights, losses = [], []
        for case in self.step.cases:
            nodes = nodes_of(self.step, case, self.window, c)
            log_weight, loss = evaluated(self.step, case, self.window, nodes)
            weights.append(log_weight.real + math.log(case.probability))
            losses.append(loss.real)
        return np.concatenate(losses), np.concatenate(weights)

    @cached_property
    def faded(self) -> float:
        """Mass under "out" that the window takes."""
        if self.window is None:
            return 0.0
        place, width = self.window
        return float(ndtr(-place / math.hypot(1.0, width)))

    def decay(self, c: float, edges: FloatArray, total: float) -> tuple[FloatArray, float]:
        """Bounds from lines of u off the real one, the best of some heights."""
        one = self.real(c)
        top = min(highest(self.step, case, self.window) for case in self.step.cases)
        moved, lasts = np.zeros(edges.size), [math.inf]
        for height in np.unique(np.minimum(_LIFTS * math.sqrt(66 / total), 0.97 * top)):
            bound, last = np.zeros(edges.size), 0.0
            try:
                for case in self.step.cases:
                    nodes = nodes_of(self.step, case, self.window, c, float(height))
                    log_weight, loss = evaluated(self.step, case, self.window, nodes)
                    size = np.exp(log_weight.real + c * loss.real - one.scale) * case.probability
                    decayed = np.exp(-np.multiply.outer(edges, np.maximum(loss.imag, 0.0)))
                    bound += decayed @ size + nodes.missed * (2 * one.size + 1)
                    last += self._beyond(case, one, c, nodes, float(edges[-1]), 1 / total)
            except TooSlowError:
                continue
            with np.errstate(divide="ignore"):
                moved = np.minimum(moved, np.log(bound / one.size) + 1e-12)
            lasts.append(last / one.size)
        least = min(lasts)
        return moved, math.log(least) if 0 < least < math.inf else math.inf

    def _beyond(self, case: Case, one: Real, c: float, nodes: MixtureNodes, start: float, power: float) -> float:
        """Bound e^{−scale}·∫ |φ·r^c|·max over x ≥ 1 of x^p·e^{−x·t_0·A} du, A = arg r, on a moved line, cell by cell.

        The maximum is e^{−t_0·A} where t_0·A ≥ p, and never more than (p/(t_0·A))^p·e^{−p}. To the left of the first
        node u_0, arg r ≥ Im r/r, of which Im r falls no faster than e^{J·s·u}: A ≥ cos(θ/2)·sin(A_0)·e^{J·s·(u − u_0)}.
        """
        loss = evaluated(self.step, case, self.window, nodes)[1]
        bend = 1.0 if self.window is None else 1 + 1 / self.window[1] ** 2
        u, y, steepest = nodes.u, nodes.height, case.records[-1] / self.step.noise
        real, shrink = self.step.losses_of(case, u), math.log(math.cos(steepest * y / 2))
        turned = start * loss.imag[:-1] * (1 - 1e-9)
        with np.errstate(divide="ignore"):
            grown = np.where(turned >= power, -turned, power * np.log(power / turned) - power)
        largest = c * real[1:] if c >= 0 else c * (real[:-1] + shrink)
        nearest = np.where(u[:-1] > 0, u[:-1], np.minimum(u[1:], 0.0))
        rise = bend * y**2 / 2 - one.scale
        found = float(np.exp(largest + grown - nearest**2 / 2 + rise).sum()) * nodes.spacing / math.sqrt(2 * math.pi)
        slowest = start * math.exp(shrink) * math.sin(min(float(loss.imag[0]), 1.0)) * (1 - 1e-9)
        if not slowest > 0:
            return math.inf
        low, moved = float(u[0]), power * steepest
        left = power * math.log(power / slowest) - power + moved * low + moved**2 / 2 + float(log_ndtr(low + moved))
        left += (c * float(real[0]) if c >= 0 else c * (math.log(case.weight[0]) + shrink)) + rise
        return case.probability * (found + math.exp(min(left, 700.0)) + nodes.missed * (2 * one.size + 1))

    def table(self, c: float, furthest: float) -> LossTable:
        """Lay the nodes: the same ones serve every t."""
        one = self.real(c)
        weights, losses = [], []
        missed = rounded = 0.0
        for case in self.step.cases:
            nodes = nodes_of(self.step, case, self.window, c, None)
            log_weight, loss = evaluated(self.step, case, self.window, nodes)
            log_weight = log_weight + math.log(case.probability)
            weights.append(log_weight)
            losses.append(loss)
            missed += case.probability * nodes.missed
            rounded += self._rounding(case, c, nodes, log_weight, loss, one.scale)
        scaled = (2 + math.exp(-one.scale) / one.size) * missed
        return LossTable(np.concatenate(weights), np.concatenate(losses), scaled, rounded / one.size)

    def _rounding(
        self, case: Case, c: float, nodes: MixtureNodes, log_weight: ComplexArray, loss: ComplexArray, scale: float
    ) -> float:
        """Bound on the rounding of one case's sum over |w|, by perturbing every term."""
        u = nodes.u + 1j * nodes.height
        shift = np.array(case.records) / self.step.noise
        x = np.multiply.outer(u, shift) - shift**2 / 2
        with np.errstate(over="ignore", under="ignore"):
            relative = x.real - loss.real[:, None]
            term = np.exp(np.minimum(relative, 700.0)) * np.abs(x)
            rise = np.abs(np.expm1(np.where(x.real > 1, 0.0, x))) * np.exp(-loss.real)[:, None]
            moved = np.where(x.real > 1, 2 * np.exp(np.minimum(relative, 700.0)), rise)
            argument = (term + (8 + self.step.error / EPS) * moved) @ np.array(case.weight)
            argument = argument + np.abs(loss) * (8 + np.abs(u) ** 2 + self.step.error / EPS)
            if scale > 0:  # nothing is taken from the summands, which keep the rounding of their exponents
                argument = argument + (8 + np.abs(u) ** 2 + scale) / abs(c)
            grown = np.exp(log_weight.real - scale) + np.exp(log_weight.real + c * loss.real - scale)
        total = 4 * EPS * float(grown @ argument)
        if self.window is not None:
            place, width = self.window
            fading = np.minimum(np.exp(-np.minimum((place - nodes.u) / width, 25.0)), 1.0)
            total += 4 * _NDTR_ERROR * float(grown @ (np.abs(loss) * fading))
        return total


def rise(exponent: ComplexArray | FloatArray, log_weight: ComplexArray | FloatArray) -> ComplexArray:
    """e^{log_weight}·(e^x − 1) without cancellation for small x, and without overflow for large ones."""
    far = exponent.real > LARGE
    with np.errstate(under="ignore"):
        found = np.expm1(np.where(far, 0.0, exponent)) * np.exp(log_weight)
        if far.any():
            found = np.where(far, np.exp(exponent + log_weight), found)
    return np.asarray(found)
