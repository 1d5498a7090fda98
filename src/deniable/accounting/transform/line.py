"""The transform of one step along a vertical line Re w = c: sums over nodes in u, each with a bound on its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS, LEAST_EXPONENT, MOST_EXPONENT, PRODUCT_EXPONENT
from deniable.accounting.loss import ComposedLoss
from deniable.accounting.sizes import BLOCK, DIGITS, FAR, MOST, PATIENT, UNDERFLOW
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import (
    ComplexArray,
    complex_log1p,
    log_ratio,
    randomized_response_cumulants,
)
from deniable.accounting.transform.nodes import MISSED, Nodes

_FAR = PRODUCT_EXPONENT  # exponents from which −1 is nothing, and φ and r^c are only representable together
_LEAST = math.exp(-DIGITS)  # of the largest weight: nodes with less are left out of sums
_OF_K = 16  # roundings of K(c) of randomised responses: see randomized_response_cumulants


@dataclass(frozen=True, eq=False)
class Line:
    """Nodes in u for the transform on the vertical line Re w = c, for all phases at once."""

    of: ComposedLoss
    c: float
    u: FloatArray
    spacing: float
    log_weight: FloatArray  # −u²/2 at the nodes, one row per phase
    density: FloatArray  # normal density times spacing, one row per phase
    loss: FloatArray  # L at the nodes, one row per phase

    @classmethod
    def on(cls, loss: ComposedLoss, c: float, grid: Nodes) -> Line:
        """Lay the nodes of a grid."""
        most = min(PATIENT * max(loss.steps.size, 1), MOST)
        if not (grid.high - grid.low) * loss.steps.size < most * grid.spacing:
            raise TooSlowError(f"the law tilted by {c:g} is too wide")
        count = int((grid.high - grid.low) / grid.spacing) + 2
        u: FloatArray = grid.low + grid.spacing * np.arange(count, dtype=np.float64)
        if grid.high >= loss.ceiling:  # every line must cut at the same place: half a spacing beyond the last node
            u += loss.ceiling - (u[-1] + grid.spacing / 2)
        log_weight = np.broadcast_to(-(u**2) / 2, (loss.steps.size, u.size))
        density = np.exp(log_weight) * (grid.spacing / np.sqrt(2 * np.pi))
        ratio = log_ratio(u, loss.noise[:, None], loss.rate[:, None])
        return cls(loss, c, u, grid.spacing, log_weight, density, ratio)

    @property
    def density_unit(self) -> float:
        """Spacing over √(2π): what turns e^{−u²/2} into a summand."""
        return self.spacing / math.sqrt(2 * math.pi)

    @cached_property
    def scale(self) -> FloatArray:
        """Per phase, a power of e that keeps r^c·φ representable (0 in all ordinary cases)."""
        top = (self.c * self.loss + self.log_weight).max(axis=1, initial=-np.inf)
        return np.where(top > FAR, top, 0.0)

    @cached_property
    def _increments(self) -> FloatArray:
        return increments(self.c * self.loss, self.log_weight, self.density_unit)

    @cached_property
    def tilted(self) -> FloatArray:
        """φ·r^c·e^{−scale} at the nodes: the tilted law before normalisation."""
        if not self.scale.any():
            return self.density + self._increments
        exponent = self.c * self.loss + self.log_weight - self.scale[:, None]
        return np.exp(np.maximum(exponent, LEAST_EXPONENT)) * self.density_unit

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
        bound: FloatArray = self.at_ceiling(np.array([self.c]))[:, 0] * np.exp(-self.scale) / self.mgf
        return bound

    @property
    def edge(self) -> float:
        """Density left at the ceiling, relative to its largest value: 0 means that nothing is cut."""
        if math.isinf(self.of.ceiling):
            return 0.0
        end = np.array([self.of.ceiling])
        top = np.max(np.maximum(self.c * self.loss, 0) + self.log_weight, axis=1)
        cut = self.c * log_ratio(end, self.of.noise[:, None], self.of.rate[:, None]) - end**2 / 2
        return float(np.exp(np.max(cut[:, 0] - top)))

    def at_ceiling(self, points: FloatArray) -> FloatArray:
        """Twice the summand at the ceiling: bound on the error of sums of φ·r^c cut there, (phases, points)."""
        v = self.of.ceiling
        if self.u[-1] + self.spacing < v:
            return np.zeros((self.of.steps.size, points.size))
        end = np.array([v])
        height = log_ratio(end, self.of.noise[:, None], self.of.rate[:, None]) * points - v**2 / 2
        return 2 * self.density_unit * np.exp(np.minimum(height, MOST_EXPONENT))

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

    @cached_property
    def cumulants(self) -> tuple[float, float, float]:
        """K, K′ and K″ of the composed loss at the real point c."""
        log_m = self.log_mgf
        c, variance, steps = self.c, self.of.gaussian, self.of.steps
        first, second = self.moments
        k = [
            float(steps @ log_m) + variance * c * (c - 1) / 2,
            float(steps @ first) + variance * (c - 0.5),
            float(steps @ second) + variance,
        ]
        for epsilon, count in self.of.randomized_responses:
            k = [
                a + count * float(b)
                for a, b in zip(k, randomized_response_cumulants(epsilon, np.asarray(c)), strict=True)
            ]
        return k[0], k[1], k[2]

    def transform(self, t: FloatArray, spacing: float | None = None) -> tuple[ComplexArray, FloatArray]:
        """K(c + it) − K(c) of the composed loss and a bound on the error of its exponential, from rounding and ceiling.

        ``spacing`` says that t is spacing·(0, 1, 2, …), which makes long sums much cheaper.

        With errors Δ_j of single steps, |Π(M_j + Δ_j)^{T_j} − ΠM_j^{T_j}| ≤ Π|M_j|^{T_j}·(e^S − 1) where
        S = Σ T_j·log(1 + |Δ_j|/|M_j|): all orders of Δ are in it. Logarithms of parts are added up with a rounding
        each, those of K(c), which prefactors need, among them.
        """
        total = np.asarray(self.of.gaussian * (1j * t * (self.c - 0.5) - t**2 / 2), dtype=np.complex128)
        size = np.hypot(self.c, t)
        turned = np.abs(total)
        responses, apart = randomized_responses_turned(self.of.randomized_responses, self.c, t)
        relative_error = 2 * EPS * self.of.gaussian * (abs(self.c) + 1) * size + apart
        relative_error += randomized_responses_rounding(self.of.randomized_responses, self.c, size)
        for phase, steps in enumerate(self.of.steps):
            one = self.log_ratio_of(phase, t, spacing)
            total = total + steps * one
            turned = turned + steps * np.abs(one)
            # the errors of one step are relative to M(c): where |M(c + it)| is smaller, they weigh more
            error = np.log(self.step_errors(phase, size) + UNDERFLOW)
            relative_error = relative_error + steps * np.logaddexp(0.0, error - one.real)
        total, turned = total + responses, turned + np.abs(responses)
        sums = turned + float(self.of.steps @ np.abs(self.log_mgf)) + self.of.gaussian * abs(self.c * (self.c - 1)) / 2
        relative_error = relative_error + (4 + self.of.summands) * EPS * sums + 64 * EPS
        with np.errstate(over="ignore"):  # an unknown transform is ∞, and its line useless
            grown = np.exp(total.real) * np.expm1(np.minimum(relative_error, 1.0))
            return total, np.where(relative_error < 1, grown, np.exp(total.real + relative_error))

    def step_errors(self, phase: int, size: FloatArray) -> FloatArray:
        """Bound on the error of one step's transform at |w| = ``size``, relative to M(c).

        Rounding, a ceiling in the midst of the law, what sums miss, and the nodes that are left out.
        """
        left_out = (MISSED + 4 * _LEAST * self.u.size) * (1 + (self.scale[phase] == 0) / self.mgf[phase])
        error: FloatArray = 2 * self.step_rounding[phase] * size + 4 * self.cut[phase] + left_out
        return error

    def log_ratio_of(self, phase: int, t: FloatArray, spacing: float | None = None) -> ComplexArray:
        """log M(c + it)/M(c) of one step of one phase; ``spacing`` as above."""
        keep = self._relevant(phase)
        if not keep.size:
            raise TooSlowError("the tilted law is lost to underflow")
        if spacing is not None:
            return complex_log1p(self._even_difference(phase, keep, spacing, t.size) / self.mgf[phase])
        rows = max(1, BLOCK // keep.size)
        parts = [self._difference(phase, keep, t[k : k + rows]) for k in range(0, t.size, rows)]
        z = np.concatenate(parts) / self.mgf[phase]
        return complex_log1p(z)

    def _relevant(self, phase: int) -> NDArray[np.intp]:
        weight = np.maximum(self.tilted[phase], self.density[phase]) if self.scale[phase] == 0 else self.tilted[phase]
        return np.flatnonzero(weight > _LEAST * weight.max())

    def _difference(self, phase: int, keep: NDArray[np.intp], t: FloatArray) -> ComplexArray:
        """M(c + it) − M(c) = Σ A·(e^{itL} − 1), so that nothing cancels."""
        half = np.multiply.outer(t / 2, self.loss[phase, keep])
        sine, cosine = np.sin(half), np.cos(half)
        weight = 2 * self.tilted[phase, keep]
        cosine *= sine
        sine *= sine
        difference: ComplexArray = -(sine @ weight) + 1j * (cosine @ weight)
        return difference

    def _even_difference(self, phase: int, keep: NDArray[np.intp], spacing: float, count: int) -> ComplexArray:
        """The same at t = spacing·(Ba + b), 0 ≤ b < B: e^{i(x+y)} − 1 = (e^{ix} − 1)·e^{iy} + (e^{iy} − 1)."""
        length = math.isqrt(count - 1) + 1
        turn = spacing * self.loss[phase, keep]
        near, far = (_turned(np.multiply.outer(n, turn)) for n in (np.arange(length), length * np.arange(length)))
        weight = self.tilted[phase, keep]
        every: ComplexArray = (far * weight) @ (1 + near).T + near @ weight
        return every.ravel()[:count]

    def log_ratios(self, t: FloatArray) -> ComplexArray:
        """log M(c + it)/M(c) of one step, one row per phase."""
        rows = [self.log_ratio_of(phase, t) for phase in range(self.of.steps.size)]
        return np.array(rows, dtype=np.complex128).reshape(len(rows), t.size)

    @cached_property
    def posterior(self) -> FloatArray:
        """P(record was in the batch | u) = q·e^a/r, which is also σ·L′(u), at the nodes."""
        sigma, rate = self.of.noise[:, None], self.of.rate[:, None]
        return np.exp(np.log(rate) + self.u / sigma - 1 / (2 * sigma**2) - self.loss)

    @property
    def real_error(self) -> FloatArray:
        """Bound on the error of M(c) of one step, relative to it: rounding, a ceiling, and what nodes miss."""
        left_out = MISSED * (1 + 1 / np.minimum(self.mgf, 1 / UNDERFLOW))
        return 2 * self.step_rounding * (abs(self.c) + 1) + 4 * self.cut + left_out

    @cached_property
    def step_rounding(self) -> FloatArray:
        """Bound on |ΔM(c + it)|/(M(c)·|w|) from floating point, by perturbing every term of the sums over u."""
        sigma = self.of.noise[:, None]
        argument = np.abs(self.loss) * (8 + self.u**2) + self.posterior * (np.abs(self.u) / sigma + 1 / sigma**2)
        plain = np.where(self.scale[:, None] > 0, 0.0, self.density)
        bound: FloatArray = 4 * EPS * ((self.tilted + plain) * argument).sum(axis=1) / self.mgf
        return bound


def increments(exponent: FloatArray, log_weight: FloatArray, unit: float) -> FloatArray:
    """weight·(e^x − 1) times the spacing: free of cancellation for small x, and of overflow for large x far out."""
    with np.errstate(under="ignore"):
        found = np.expm1(np.minimum(exponent, _FAR)) * (np.exp(log_weight) * unit)
        far = exponent > _FAR
        if far.any():
            found = np.where(far, np.exp(np.minimum(exponent + log_weight, MOST_EXPONENT)) * unit, found)
    return found


def _turned(angle: FloatArray) -> ComplexArray:
    """e^{ix} − 1 without cancellation."""
    half = angle / 2
    sine = np.sin(half)
    turned: ComplexArray = 2 * sine * (1j * np.cos(half) - sine)
    return turned


Responses = Sequence[tuple[float, float]]  # ε and how many


def randomized_responses_rounding(responses: Responses, c: float, size: FloatArray) -> FloatArray:
    """Bound on the error of log M(w) of all responses, |w| = ``size``, at real part c: of K(c), and of what turns."""
    real = np.asarray(c)
    known = sum(count * abs(float(randomized_response_cumulants(epsilon, real)[0])) for epsilon, count in responses)
    return 4 * EPS * sum(epsilon * count for epsilon, count in responses) * size + _OF_K * EPS * known


def randomized_responses_turned(responses: Responses, c: float, t: FloatArray) -> tuple[ComplexArray, FloatArray]:
    """log M(c + it)/M(c) of all responses, and a bound on the error of their product: of the logarithm, to all orders.

    That of K(c) is apart, and so is the rounding of the logarithms themselves.

    One is cos x + i·m·sin x, x = εt, m the tilted mean of the signs: 1 + z with z = −2·sin²(x/2) + i·m·sin x, known to
    a few roundings of x; where cos x is next to 0 these weigh more.
    """
    total, error = np.zeros(t.shape, dtype=np.complex128), np.zeros(t.shape)
    for epsilon, count in responses:
        slope = float(randomized_response_cumulants(epsilon, np.asarray(c))[1]) / epsilon
        angle = epsilon * t
        one = complex_log1p(-2 * np.sin(angle / 2) ** 2 + 1j * slope * np.sin(angle))
        total = total + count * one
        error = error + count * np.logaddexp(0.0, np.log(8 * EPS * angle + UNDERFLOW) - one.real)
    return total, error
