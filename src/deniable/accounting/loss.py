"""The privacy loss of composed Poisson-subsampled Gaussian steps, known through its transform.

Out of the data a step releases u ~ N(0, 1) (in units of the noise), in it (1−q)·N(0, 1) + q·N(1/σ, 1); the
likelihood ratio r(u) = 1 − q + q·exp(u/σ − 1/(2σ²)) gives the loss L = log r. Losses of composed steps add, so that
everything about T steps is in M(w)^T with M(w) = E_out[r^w]. Under "in" the transform is M(w + 1).

The integrals over u are trapezoid sums: the integrand is analytic in |Im u| < πσ (beyond, r has a zero), so a sum with
spacing h is wrong by at most 2·N(y)/(e^{2πy/h} − 1), N(y) its absolute integral on the line Im u = y.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError
from deniable.mechanisms import GaussianDP, Mechanism, SubsampledGaussian

ComplexArray = NDArray[np.complex128]

EPS = float(np.finfo(np.float64).eps)
_DIGITS = 44.0  # −log of the relative error asked of sums over u: far below rounding even after a million steps
_STRIP = np.array([0.03, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97])
_ENTRIES = 1 << 17  # matrix entries evaluated at a time: keeps memory at a few MB


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """Composition of different phases (σ_j, q_j, T_j) and one Gaussian with loss variance μ².

    Attributes
    ----------
    noise, rate, steps
        One entry a phase with q < 1; phases with equal noise and rate are merged.
    gaussian
        μ² of everything Gaussian: ``GaussianDP`` and full-batch phases, μ² = Σ T/σ².
    """

    noise: FloatArray
    rate: FloatArray
    steps: FloatArray
    gaussian: float

    @classmethod
    def of(cls, mechanisms: Iterable[Mechanism]) -> PrivacyLoss:
        """Merge equal phases and fold every Gaussian part into one."""
        phases: Counter[tuple[float, float]] = Counter()
        squared = 0.0
        for part in mechanisms:
            if isinstance(part, GaussianDP):
                squared += part.mu**2
            elif isinstance(part, SubsampledGaussian):
                if part.sample_rate == 1:
                    squared += part.steps / part.noise_multiplier**2
                else:
                    phases[part.noise_multiplier, part.sample_rate] += part.steps
            else:
                raise InputError(f"a privacy loss needs SubsampledGaussian or GaussianDP phases, got {part!r}")
        keys = np.array(list(phases), dtype=np.float64).reshape(-1, 2)
        return cls(keys[:, 0], keys[:, 1], np.array(list(phases.values()), dtype=np.float64), squared)

    @cached_property
    def lowest(self) -> float:
        """Essential infimum of the composed loss: Σ T·log(1 − q), or −∞ with a Gaussian part."""
        return -np.inf if self.gaussian > 0 else float(np.sum(self.steps * np.log1p(-self.rate)))

    def line(self, c: float, t_max: float = 0.0) -> Line:
        """Prepare evaluations at w = c + it for 0 ≤ t ≤ ``t_max``."""
        return Line.through(self, c, t_max)


@dataclass(frozen=True, eq=False)
class Line:
    """Nodes in u for the transform on the vertical line Re w = c, for all phases at once.

    With ``shift`` y > 0 the nodes lie on Im u = y, where e^{itL} decays instead of oscillating: fewer nodes for large t.
    """

    of: PrivacyLoss
    c: float
    t_max: float
    u: FloatArray
    spacing: float
    shift: float

    @classmethod
    def through(cls, loss: PrivacyLoss, c: float, t_max: float) -> Line:
        low, high, spacing, shift = _grid(loss, c, t_max)
        count = int((high - low) / spacing) + 2
        return cls(loss, c, t_max, low + spacing * np.arange(count), spacing, shift)

    @cached_property
    def loss(self) -> FloatArray:
        """L at the real nodes, one row a phase."""
        sigma, rate = self.of.noise[:, None], self.of.rate[:, None]
        return log_ratio(self.u, sigma, rate)

    @cached_property
    def density(self) -> FloatArray:
        """Standard normal density at the nodes times the spacing."""
        return np.exp(-(self.u**2) / 2) * (self.spacing / np.sqrt(2 * np.pi))

    @cached_property
    def scale(self) -> FloatArray:
        """Per phase, a power of e that keeps r^c·φ representable (0 in all ordinary cases)."""
        top = np.max(self.c * self.loss - self.u**2 / 2, axis=1, initial=-np.inf)
        return np.where(top > 30, top, 0.0)

    @cached_property
    def tilted(self) -> FloatArray:
        """φ·r^c·e^{−scale} at the nodes: the tilted law before normalisation."""
        exponent = self.c * self.loss - self.u**2 / 2 - self.scale[:, None]
        return np.exp(np.maximum(exponent, -745.0)) * (self.spacing / np.sqrt(2 * np.pi))

    @cached_property
    def excess(self) -> FloatArray:
        """M(c) − 1 per phase where the scale is 0 (else M·e^{−scale}), free of cancellation."""
        with np.errstate(over="ignore"):
            plain = np.sum(self.density * np.expm1(np.minimum(self.c * self.loss, 700.0)), axis=1)
        return np.where(self.scale > 0, np.sum(self.tilted, axis=1), plain)

    @cached_property
    def mgf(self) -> FloatArray:
        """M(c)·e^{−scale} per phase."""
        return np.where(self.scale > 0, self.excess, 1 + self.excess)

    @cached_property
    def cumulants(self) -> tuple[float, float, float]:
        """K, K′ and K″ of the composed loss at the real point c."""
        with np.errstate(divide="ignore"):
            log_m = np.where(
                self.scale > 0, self.scale + np.log(np.abs(self.mgf)), np.log1p(self.excess * (self.scale == 0))
            )
        first = np.sum(self.tilted * self.loss, axis=1) / self.mgf
        second = np.sum(self.tilted * (self.loss - first[:, None]) ** 2, axis=1) / self.mgf
        c, variance, steps = self.c, self.of.gaussian, self.of.steps
        return (
            float(steps @ log_m) + variance * c * (c - 1) / 2,
            float(steps @ first) + variance * (c - 0.5),
            float(steps @ second) + variance,
        )

    def log_transform(self, t: FloatArray) -> ComplexArray:
        """K(c + it) − K(c) of the composed loss, as an array like ``t`` (imaginary part modulo 2π·steps)."""
        total = self.of.gaussian * (1j * t * (self.c - 0.5) - t**2 / 2)
        for phase in range(self.of.steps.size):
            total = total + self.of.steps[phase] * self._log_ratio_of_transforms(phase, t)
        return total

    def _log_ratio_of_transforms(self, phase: int, t: FloatArray) -> ComplexArray:
        """log M(c + it)/M(c) for one step of one phase, from the difference so that nothing cancels."""
        evaluate = self._shifted_difference if self.shift > 0 else self._difference
        keep = self._relevant(phase)
        rows = max(1, _ENTRIES // keep.size)
        parts = [evaluate(phase, keep, t[k : k + rows]) for k in range(0, t.size, rows)]
        z = np.concatenate(parts) / self.mgf[phase]
        x, y = z.real, z.imag
        square = 2 * x + x * x + y * y
        with np.errstate(divide="ignore"):
            modulus = np.where(square > -0.5, 0.5 * np.log1p(np.maximum(square, -0.5)), np.log(np.hypot(1 + x, y)))
        return modulus + 1j * np.arctan2(y, 1 + x)

    def _relevant(self, phase: int) -> NDArray[np.intp]:
        weight = self.tilted[phase]
        return np.flatnonzero(weight * (1 + np.abs(self.u)) > 1e-24 * weight.max())

    def _difference(self, phase: int, keep: NDArray[np.intp], t: FloatArray) -> ComplexArray:
        """M(c + it) − M(c) = Σ A·(e^{itL} − 1) on real nodes."""
        half = np.multiply.outer(t / 2, self.loss[phase, keep])
        sine, cosine = np.sin(half), np.cos(half)
        weight = 2 * self.tilted[phase, keep]
        cosine *= sine
        sine *= sine
        return -(sine @ weight) + 1j * (cosine @ weight)

    def _shifted_difference(self, phase: int, keep: NDArray[np.intp], t: FloatArray) -> ComplexArray:
        """The same on Im u = shift: Σ φ(u)·(r^{c+it} − 1) − (M(c) − 1)."""
        u = self.u[keep] + 1j * self.shift
        loss = complex_log_ratio(u, float(self.of.noise[phase]), float(self.of.rate[phase]))
        scale = self.scale[phase]
        weight = np.exp(-(u**2) / 2 + self.c * loss - scale) * (self.spacing / np.sqrt(2 * np.pi))
        rotated = np.exp(np.multiply.outer(1j * t, loss))
        return rotated @ weight - self.mgf[phase]

    def rounding(self) -> float:
        """Bound on |ΔK(c + it)|/|w| from floating point, by perturbing every term of the sums over u."""
        sigma, rate = self.of.noise[:, None], self.of.rate[:, None]
        posterior = np.exp(np.log(rate) + self.u / sigma - 1 / (2 * sigma**2) - self.loss)
        argument = np.abs(self.loss) * (8 + self.u**2) + posterior * (np.abs(self.u) / sigma + 1 / sigma**2)
        plain = np.where(self.scale[:, None] > 0, 0.0, self.density)
        per_step = np.sum((self.tilted + plain) * argument, axis=1) / self.mgf
        return float(EPS * (4 * self.of.steps @ per_step + 2 * self.of.gaussian * (abs(self.c) + 1)))


def log_ratio(u: FloatArray, sigma: FloatArray, rate: FloatArray) -> FloatArray:
    """L(u) = log(1 − q + q·e^a), a = u/σ − 1/(2σ²), without overflow and to full relative precision near 0."""
    a = u / sigma - 1 / (2 * sigma**2)
    with np.errstate(over="ignore"):
        moderate = np.log1p(rate * np.expm1(np.minimum(a, 600.0)))
    large = a + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(a, 600.0)))
    return np.where(a > 600, large, moderate)


def complex_log_ratio(u: ComplexArray, sigma: float, rate: float) -> ComplexArray:
    """L(u) off the real line, |Im u| < πσ, where the principal logarithm is analytic."""
    a = u / sigma - 1 / (2 * sigma**2)
    large = a.real > 600
    small = np.where(large, 0.0, a)
    value = rate * np.expm1(small)
    modulus = 0.5 * np.log1p(np.maximum(2 * value.real + value.real**2 + value.imag**2, -1 + 1e-300))
    return np.where(large, a + np.log(rate), modulus + 1j * np.arctan2(value.imag, 1 + value.real))


def _grid(loss: PrivacyLoss, c: float, t_max: float) -> tuple[float, float, float, float]:
    """Range, spacing and shift of the nodes that serve every phase."""
    if loss.steps.size == 0:
        return -1.0, 1.0, 1.0, 0.0
    sigma, rate = loss.noise[:, None], loss.rate[:, None]
    top = 12.0 + max(c, 0.0) / float(loss.noise.min())
    coarse = np.linspace(-40.0, top, int(min(4 * (top + 40), 4000)))
    logs = log_ratio(coarse, sigma, rate)
    weight = -(coarse**2) / 2 + np.maximum(c * logs, 0.0)
    peak = weight.max(axis=1, keepdims=True)
    reach = np.flatnonzero(np.any(weight > peak - _DIGITS - 4, axis=0))
    step = coarse[1] - coarse[0]
    low, high = coarse[reach[0]] - step, coarse[reach[-1]] + step
    window = slice(reach[0], reach[-1] + 1, max(1, reach.size // 96))
    spacing, shift = _spacing(loss, c, t_max, coarse[window], peak)
    return low, high, spacing, shift


def _spacing(loss: PrivacyLoss, c: float, t_max: float, u: FloatArray, peak: FloatArray) -> tuple[float, float]:
    """Largest safe spacing for real nodes, or for nodes on Im u = shift where that needs far fewer.

    Real nodes: 2πy/h ≥ digits + log N(y), where N(y) carries e^{t·arg r}. Nodes on Im u = s: the line Im u = 0 lies s
    below and the line Im u = y lies y − s above, and on both e^{itL} no longer grows, whatever t is.
    """
    sigma, rate = loss.noise[:, None, None], loss.rate[:, None, None]
    y = _STRIP * min(np.pi * float(loss.noise.min()), 9.0)
    growth = rate * np.exp(np.minimum(u / sigma - 1 / (2 * sigma**2), 600.0))
    angle = y[:, None] / sigma
    real, imag = 1 - rate + growth * np.cos(angle), growth * np.sin(angle)
    still = -(u**2) / 2 + c * np.log(np.hypot(real, imag)) - peak[:, :, None]  # (phases, strip, u)
    turning = np.max(still + t_max * np.arctan2(imag, real), axis=(0, 2))
    margin = _DIGITS + y**2 / 2 + 4.0
    spacing = float(np.max(2 * np.pi * y / (margin + np.maximum(turning, 0.0))))
    resting = y**2 / 2 + np.maximum(np.max(still, axis=(0, 2)), 0.0)
    above = 2 * np.pi * (y[None, :] - y[:, None]) / (_DIGITS + 4.0 + resting[None, :])
    below = 2 * np.pi * y[:, None] / (_DIGITS + 4.0)
    reach = np.where(resting[:, None] < 2.5, np.minimum(above, below), 0.0)
    best = int(np.argmax(np.max(reach, axis=1)))
    shifted = float(reach[best].max())
    if spacing < shifted / 3:
        return shifted, float(y[best])
    return spacing, 0.0
