"""Far tails that come from a few rare steps: inversion of what remains after taking the bulk away.

With a small sampling rate the loss of most steps is tiny and the tail is made by one or a few large ones. The bulk is
then almost an atom, whose transform does not decay. Split every step with a smooth window χ into small and large
losses, M = M_s + M_l. All steps small has the transform M_s^T and cannot reach the threshold ℓ (Chernoff's bound with
a large θ says how nearly), so the tail is that of D = M^T − M_s^T, a positive measure whose transform decays quickly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr

from deniable._check import FloatArray
from deniable.accounting.inversion import Contour, period_for
from deniable.accounting.loss import EPS, PrivacyLoss
from deniable.accounting.nodes import TooSlowError
from deniable.accounting.ratios import ComplexArray, complex_log1p, complex_log_ratio, log_ratio

_LEVELS = np.array(
    [0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.07, 0.04, 0.02]
)  # split levels tried, as a share of the threshold


@dataclass(frozen=True, eq=False)
class Split:
    """One phase on nodes with Im u = shift: small and large losses parted at the loss ``level``."""

    sigma: float
    rate: float
    level: float
    reach: float  # nodes run up to this u

    @cached_property
    def shift(self) -> float:
        """Height of the nodes above the real line."""
        return min(0.5 * self.sigma, 0.7)

    @property
    def window(self) -> float:
        """Width δ of the window Φ((v − u)/δ): on the nodes it grows by at most e^{y²/(2δ²)} = e^{4.5}."""
        return self.shift / 3

    @cached_property
    def _real_u(self) -> FloatArray:
        spacing = 2 * math.pi * self.shift / 70.0  # e^{−70 + 19}, e^{19} being the growth on Im u = 2·shift
        u: FloatArray = np.arange(-10.5, self.reach + spacing, spacing)
        return u

    @cached_property
    def place(self) -> float:
        """u at which the loss is ``level``."""
        odds = math.log1p(math.expm1(min(self.level, 600.0)) / self.rate)
        return self.sigma * max(odds, self.level - 1) + 0.5 / self.sigma  # the maximum only matters far beyond reach

    @cached_property
    def real(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logarithms of the weights of small and of large losses, and the loss, at real nodes."""
        u = self._real_u
        log_weight = -(u**2) / 2 + math.log((u[1] - u[0]) / math.sqrt(2 * math.pi))
        z = (self.place - u) / self.window
        loss = log_ratio(u, np.array(self.sigma), np.array(self.rate))
        return log_weight + log_ndtr(z), log_weight + log_ndtr(-z), loss

    def small(self, points: FloatArray) -> FloatArray:
        """log M_s of one step."""
        log_weight, _, loss = self.real
        return np.log(_sum_of_exp(np.multiply.outer(points, loss) + log_weight))

    def rest(self, points: FloatArray) -> FloatArray:
        """M_l of one step."""
        _, log_weight, loss = self.real
        return _sum_of_exp(np.multiply.outer(points, loss) + log_weight)

    @cached_property
    def large(self) -> tuple[ComplexArray, ComplexArray]:
        """Weights of large losses and the loss, at shifted nodes."""
        u = np.asarray(self._real_u + 1j * self.shift, dtype=np.complex128)
        weight = (
            np.exp(-(u**2) / 2) * ((u[1] - u[0]).real / math.sqrt(2 * math.pi)) * ndtr((u - self.place) / self.window)
        )
        keep = self._real_u > self.place - 11 * self.window  # the window is below e^{−60} before that
        return weight[keep], complex_log_ratio(u[keep], self.sigma, self.rate)


@dataclass(frozen=True, eq=False)
class Jumps:
    """All phases split at one level."""

    loss: PrivacyLoss
    splits: tuple[Split, ...]

    @classmethod
    def at(cls, loss: PrivacyLoss, level: float, reach: float) -> Jumps:
        """Split every phase."""
        pairs = zip(loss.noise, loss.rate, strict=True)
        return cls(loss, tuple(Split(float(s), float(q), level, reach) for s, q in pairs))

    def small(self, points: FloatArray) -> FloatArray:
        """log of the transform of "all steps small" at real points."""
        only = PrivacyLoss(np.zeros(0), np.zeros(0), np.zeros(0), self.loss.gaussian, self.loss.flips)
        total = only.log_mgf(points)
        for split, steps in zip(self.splits, self.loss.steps, strict=True):
            total = total + steps * split.small(points)
        return total

    def remainder(self, points: FloatArray) -> FloatArray:
        """log D at real points."""
        ratio = np.zeros_like(points)
        with np.errstate(invalid="ignore"):  # ∞·0 where a transform is too large to be known
            for split, steps in zip(self.splits, self.loss.steps, strict=True):
                ratio = ratio + steps * np.log1p(split.rest(points) * np.exp(-split.small(points)))
            grown = np.where(ratio > 30, ratio, np.log(np.expm1(np.minimum(ratio, 30.0))))
        return self.small(points) + np.where(np.isnan(grown), np.inf, grown)

    def decay(self, c: float, t: FloatArray) -> FloatArray:
        """Bound on log |D(c + it)|, decreasing in t."""
        point = np.array([c])
        growth = np.zeros_like(t)
        for split, steps in zip(self.splits, self.loss.steps, strict=True):
            weight, loss = split.large
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite becomes an infinite error bound
                size = np.abs(weight) * np.exp(c * loss.real)
                bound = np.exp(-np.multiply.outer(t, loss.imag)) @ size
                growth = growth + steps * np.log1p(bound / math.exp(float(split.small(point)[0])))
        with np.errstate(divide="ignore"):
            grown = np.where(growth > 600, growth, np.log(np.expm1(np.minimum(growth, 600.0))))
        bound_: FloatArray = self.small(point)[0] + grown
        return bound_

    def transform(self, c: float, t: FloatArray, log_m: ComplexArray, growth: float) -> ComplexArray:
        """D(c + it)·e^{−growth} = −M^T·(expm1 Σ T·log1p(−M_l/M))·e^{−growth}."""
        exponent = np.zeros(t.shape, dtype=np.complex128)
        line = self.loss.line(c, float(t[-1]))
        for phase, (split, steps) in enumerate(zip(self.splits, self.loss.steps, strict=True)):
            weight, loss = split.large
            size = weight * np.exp(c * loss)
            rows = max(1, (1 << 17) // size.size)
            parts = [np.exp(np.multiply.outer(1j * t[k : k + rows], loss)) @ size for k in range(0, t.size, rows)]
            whole = np.exp(line.log_one(phase, t))
            share = np.asarray(-np.concatenate(parts) / whole, dtype=np.complex128)
            exponent += steps * complex_log1p(share)
        return -np.expm1(exponent) * np.exp(log_m - growth)

    def noise(self, c: float, w: FloatArray, growth: float) -> FloatArray:
        """Bound on the rounding of Σ T·log1p(−M_l/M) carried into D·e^{−growth}, by perturbing every term of M_l."""
        total = np.zeros_like(w)
        for split, steps in zip(self.splits, self.loss.steps, strict=True):
            _, log_weight, loss = split.real
            u, sigma = split._real_u, split.sigma
            size = np.exp(np.minimum(c * loss + log_weight, 600.0))
            plain = size @ (64 + u**2)
            turned = size @ (4 * np.abs(loss) + 4 * (np.abs(u) / sigma + 1 / sigma**2))
            total += steps * (plain + w * turned) / math.exp(float(split.small(np.array([c]))[0]))
        return 120 * EPS * total * math.exp(min(float(self.small(np.array([c]))[0]) - growth, 600.0))


def _sum_of_exp(exponent: FloatArray) -> FloatArray:
    """Row sums of exponentials, ∞ where they would overflow: an unknown transform must never look small."""
    sums: FloatArray = np.exp(np.minimum(exponent, 600.0)).sum(axis=1)
    return np.where(exponent.max(axis=1) < 600, sums, np.inf)


def jump_contour(loss: PrivacyLoss, threshold: float, tolerance: float, most_nodes: int) -> Contour:
    """Lay a line for the tail above a threshold that the bulk does not reach.

    Raises
    ------
    TooSlowError
        If there is no gap between bulk and threshold, or more than ``most_nodes`` nodes would be needed.
    """
    if not threshold > 0 or loss.steps.size == 0 or loss.gaussian > 0:
        raise TooSlowError("no jumps")
    points = 1 + np.geomspace(0.02, 15 * float(loss.noise.max()) + 5, 60)
    reach = 10.5 + float(points[-1] / loss.noise.min())
    steep = np.geomspace(1.0, 3e3, 40) / threshold
    for share in _LEVELS:
        jumps = Jumps.at(loss, share * threshold, reach)
        if max(split.place for split in jumps.splits) > 9.0:
            continue
        log_d = jumps.remainder(points)
        height = log_d - points * threshold - np.log(points * (points - 1))
        height = np.where(np.isfinite(height), height, np.inf)
        best = int(np.argmin(height))
        bulk = jumps.small(steep) - steep * threshold
        witness = int(np.argmin(np.where(np.isfinite(bulk), bulk, np.inf)))
        if bulk[witness] + threshold < height[best] + math.log(tolerance) + 4:
            break
    else:
        raise TooSlowError("the bulk reaches the threshold")
    c, growth = float(points[best]), float(log_d[best])
    if not 0 < best < points.size - 1:
        raise TooSlowError("no saddle point")
    fine = np.isfinite(log_d)
    chernoff = np.stack([points - c, log_d - growth])[:, fine & (points != c)]
    width = math.sqrt(max(_curvature(points, log_d, best), 1e-300))
    target = math.log(tolerance) - math.log(c * max(1.0, c - 1))
    period = period_for(chernoff, threshold, width, target)
    h = 2 * math.pi / period
    edges = np.geomspace(h, 1e9 * h, 400)
    envelope = np.exp(np.minimum(jumps.decay(c, edges) - growth, 600.0))
    terms = envelope[:-1] * (np.diff(edges) + h) / edges[:-1]
    remaining = (np.concatenate([np.cumsum(terms[::-1])[::-1], [0.0]]) + envelope[-1] * 1e3) / math.pi
    below = np.flatnonzero(remaining < math.exp(target))
    if not below.size or not edges[below[0]] <= most_nodes * h:
        raise TooSlowError("the transform decays slowly")
    count = math.ceil(edges[below[0]] / h) + 1
    t = h * np.arange(count)
    line = loss.line(c, float(t[-1]))
    log_m = line.log_transform(t, h) + loss.cumulants(c)[0]
    w = c + 1j * t
    weight = np.full(count, 2.0 / period)
    weight[0] /= 2
    values = jumps.transform(c, t, log_m, growth)
    coefficients = (weight * values)[:, None] * np.stack([1 / w, 1 / (w - 1), 1 / (w * (w - 1)), w**0, w**0], axis=1)
    sizes = np.abs(coefficients)
    blur = line.rounding() * np.abs(w)
    noise = jumps.noise(c, np.abs(w), growth)
    poles = np.abs(np.stack([1 / w, 1 / (w - 1), 1 / (w * (w - 1)), w**0, w**0], axis=1))
    rounding = sizes.T @ (2 * blur + 64 * EPS) + poles.T @ (weight * noise)
    truncation = np.array([remaining[below[0]]] * 3 + [0.0, 0.0])
    return Contour(
        "right", c, threshold, width, growth, period, t, coefficients, chernoff, truncation, rounding,
        4 * EPS * (sizes.T @ t), replace(loss, ceiling=reach).dropped,
        (float(steep[witness]), float(jumps.small(steep)[witness])),
    )  # fmt: skip


def _curvature(points: FloatArray, values: FloatArray, k: int) -> float:
    a, b, c = points[k - 1 : k + 2]
    x, y, z = values[k - 1 : k + 2]
    return float(2 * (x / ((a - b) * (a - c)) + y / ((b - a) * (b - c)) + z / ((c - a) * (c - b))))
