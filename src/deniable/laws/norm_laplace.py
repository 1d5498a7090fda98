"""Norm-Laplace noise: the exact law of the privacy loss between two shifted copies.

Two worlds release centre + noise from two centres a distance Δ apart. With noise density ∝ e^{−β‖b‖} in d dimensions
the whole trade-off depends on ρ = βΔ and d alone. In prolate spheroidal coordinates with the two centres as foci the
privacy loss is l = ρ·cos θ, and in the "in" world θ ∈ [0, π] has density proportional to

    w(θ) = e^{a·cos θ} · sin^{d−2} θ · (1 + sin² θ / C),   a = ρ/2,   C = (d−1)/a · K_{d/2}(a)/K_{d/2−1}(a);

in the "out" world θ is replaced by π − θ. Every quantity is thus a one-dimensional integral of a smooth positive
function, computed here by Gauss–Legendre quadrature without cancellation, for many ρ at once. In one dimension the
law has atoms and closed forms.

Every trade-off is non-decreasing in ρ: along the line through the centres the noise is log-concave, slice by slice.
So the upper side at an upper bound of ρ, and the lower side at a lower bound, are safe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

import numpy as np
from scipy.special import kve, ndtri

from deniable._check import FloatArray, integer, number
from deniable._floats import EPS, MOST_EXPONENT
from deniable.curves import Direction, Side, Tradeoff
from deniable.laws.loss_law import FEW, LossLaw, in_chunks
from deniable.laws.tabulated import TabulatedBound

# the quadrature agrees with 25-digit integrals to better than this (tests: d up to 10⁴, ρ up to 10⁴)
_RELATIVE = 2e-11


@dataclass(frozen=True)
class NormLaplaceLaw(LossLaw):
    """Noise of density ∝ e^{−β‖b‖} in ``dimension`` dimensions: ρ = βΔ."""

    dimension: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", integer("dimension", self.dimension, at_least=1))

    def tradeoff(self, rho: float) -> Tradeoff:
        """See :class:`NormLaplaceTradeoff`."""
        return NormLaplaceTradeoff(rho, self.dimension)

    def advantages(self, rho: FloatArray, side: Side) -> FloatArray:
        """From a table (:mod:`deniable.laws.tabulated`) for many records; at most 2e-5 wider than :meth:`advantage`."""
        few = super().advantages
        return self._from_table(lambda r: few(r, side), None, rho, side)

    def rates(self, rho: FloatArray, fpr: float, side: Side) -> FloatArray:
        """From a table (:mod:`deniable.laws.tabulated`) for many records; at most 5e-5 wider than :meth:`tpr`."""
        few = super().rates
        return self._from_table(lambda r: few(r, fpr, side), float(fpr), rho, side)

    def _from_table(
        self, few: Callable[[FloatArray], FloatArray], fpr: float | None, rho: FloatArray, side: Side
    ) -> FloatArray:
        if self.dimension == 1 or rho.size <= FEW or fpr in (0.0, 1.0):
            return few(rho)
        value = np.zeros(rho.shape) if fpr is None else np.full(rho.shape, fpr)
        inner = (rho > 1e-12) & (rho <= self.largest)
        value[inner] = _table_of_rates(self, fpr)(rho[inner], side)
        value[~inner] = few(rho[~inner])
        return np.clip(value, 0.0 if fpr is None else fpr, 1.0)

    def hockey_sticks(self, rho: FloatArray, log_gamma: FloatArray, side: Side) -> FloatArray:
        """∫(p − γq)₊, one positive integrand; 1 − γ or 0 outside |log γ| < ρ."""
        with np.errstate(over="ignore"):
            trivial = np.maximum(-np.expm1(log_gamma), 0.0)  # exact outside |log γ| < ρ
        value = trivial.copy()
        inside = np.abs(log_gamma) < rho
        if inside.any():
            value[inside] = self._excess(rho[inside], log_gamma[inside], side)
        return np.clip(value, trivial, 1.0)

    def _excess(self, rho: FloatArray, s: FloatArray, side: Side) -> FloatArray:
        # rounding of ρ cos θ, of (d − 2)·log sin θ, and of a loss that is 1/d of the gap on average
        slack = _RELATIVE + 2e-15 * (rho + self.dimension)
        if self.dimension == 1:
            value = -np.expm1((s - rho) / 2)
        else:
            angles = Angles.of(rho, self.dimension)
            # ρ·cos θ − s, without the cancellation of its two terms for s next to ρ
            gap = rho - s
            last = 2 * np.arcsin(np.minimum(np.sqrt(gap / (2 * rho)), 1.0))
            twice = 2 * rho[:, None]
            value = angles.integrate(
                0.0, last, lambda theta: -np.expm1(np.minimum(twice * np.sin(theta / 2) ** 2 - gap[:, None], 0.0))
            )
        return value * (1 + slack) if side == "upper" else value * (1 - slack)

    def true_positive_rates(self, rho: FloatArray, fpr: FloatArray, side: Side) -> FloatArray:
        """From the quantile of the out-world; see ``_inner_tpr`` for why it is sound."""
        value = fpr.copy()
        inner = (fpr > 0) & (fpr < 1) & (rho > 0)
        if inner.any():
            value[inner] = self._inner_tpr(rho[inner], fpr[inner], side)
        return np.clip(value, fpr, 1.0)

    def _inner_tpr(self, rho: FloatArray, fpr: FloatArray, side: Side) -> FloatArray:
        slack = (_RELATIVE + 2e-15 * rho) * (1 if side == "upper" else -1)
        if self.dimension == 1:
            low, high = np.exp(-rho) / 2, 0.5
            rising = np.exp(rho) * fpr
            bent = 1 - np.exp(-rho) / (4 * fpr)
            falling = 1 - np.exp(-rho) * (1 - fpr)
            return np.where(fpr <= low, rising, np.where(fpr <= high, bent, falling)) * (1 + slack)
        angles = Angles.of(rho, self.dimension)
        at = angles.quantile(fpr)  # beyond which the in-world has mass fpr, nearly
        # Any threshold s is sound, as the ROC is concave with slope e^s there. Upper: TPR(α) ≤ H_γ + γα with γ = e^s.
        s = -rho * np.cos(at)
        if side == "upper":
            gain = np.exp(np.minimum(s + np.log(fpr), MOST_EXPONENT))
            return (self.hockey_sticks(rho, s, "upper") + gain) * (1 + slack)
        # Lower: the chord from (0, 0), or to (1, 1), through an attained point
        false = angles.integrate(at, np.pi) * (1 - slack)
        true = angles.integrate(0.0, np.pi - at) * (1 + slack)
        share = np.clip((1 - fpr) / np.maximum(1 - false, 1e-300), 0.0, 1.0)
        return np.where(false > fpr, true * fpr / np.maximum(false, 1e-300), 1 - (1 - true) * share) + slack

    def _mean_loss(self, rho: FloatArray) -> FloatArray:
        """ρ·E cos θ; ρ + e^{−ρ} − 1 in one dimension."""
        if self.dimension == 1:
            return rho + np.expm1(-rho)
        return self._moment(rho, absolute=False)

    def _mean_size(self, rho: FloatArray) -> FloatArray:
        """ρ·E|cos θ|; ρ − (1 − e^{−ρ/2})² in one dimension."""
        if self.dimension == 1:
            return np.asarray(rho - np.expm1(-rho / 2) ** 2)
        return self._moment(rho, absolute=True)

    def _moment(self, rho: FloatArray, *, absolute: bool) -> FloatArray:
        """ρ·E cos θ folded onto cos θ > 0, where the two halves differ by the factor e^{−ρ cos θ}."""
        value = np.zeros_like(rho)
        inner = rho > 0
        angles = Angles.of(rho[inner], self.dimension)

        def size(theta: FloatArray) -> FloatArray:
            loss = rho[inner, None] * np.cos(theta)
            return np.asarray(loss * ((1 + np.exp(-loss)) if absolute else -np.expm1(-loss)))

        value[inner] = angles.integrate(0.0, np.pi / 2, size)
        return value

    def draws(self, size: int, dimension: int, rng: np.random.Generator) -> FloatArray:
        """Radius Gamma(d) and uniform direction, for every d; a Laplace radius (erratum E3) is right for d = 1 only."""
        direction = rng.standard_normal((size, dimension))
        radius = rng.gamma(dimension, size=(size, 1))
        return np.asarray(radius * direction / np.linalg.norm(direction, axis=1, keepdims=True))

    @property
    def largest(self) -> float:
        """As far as the quadrature was tested (d ≥ 2); where e^ρ is finite (d = 1)."""
        return 1e4 if self.dimension > 1 else MOST_EXPONENT

    def _largest_loss(self, rho: FloatArray) -> FloatArray:
        return rho.copy()


@dataclass(frozen=True, eq=False)
class Angles:
    """The law of θ in the in-world for many ρ > 0 at once (``dimension`` ≥ 2), normalised by quadrature."""

    rho: FloatArray
    dimension: int
    bend: FloatArray  # 1/C
    mode: FloatArray
    spread: FloatArray
    total: FloatArray

    @classmethod
    def of(cls, rho: FloatArray, dimension: int) -> Angles:
        """Locate the mass for every ρ and normalise it."""
        a, d = rho / 2, dimension
        mode = np.arccos(2 * a / ((d - 2) + np.hypot(d - 2, 2 * a)))
        spread = 1 / np.sqrt(a * np.cos(mode) + ((d - 2) / np.sin(mode) ** 2 if d > 2 else 0.0))
        angles = cls(rho, d, _inverse_bend(a, d), mode, spread, np.ones_like(rho))
        return replace(angles, total=angles.integrate(0.0, np.pi))

    def integrate(
        self,
        low: float | FloatArray,
        high: float | FloatArray,
        factor: Callable[[FloatArray], FloatArray] | None = None,
    ) -> FloatArray:
        """∫ of the density times ``factor(θ)`` from ``low`` to ``high``."""
        reach = 18 * self.spread
        start = np.clip(np.minimum(self.mode, high) - reach, low, high)
        stop = np.clip(np.maximum(self.mode, low) + reach, low, high)
        steep = float(np.max(self.rho * np.sin(self.mode) * reach, initial=0.0))
        nodes, weights = _legendre(128 if steep < 400 else 512)
        half = (stop - start) / 2
        theta = (start + half)[:, None] + half[:, None] * nodes
        value = np.exp(self._log_density(theta))
        if factor is not None:
            value = value * factor(theta)
        return np.asarray(half * (value @ weights) / self.total)

    def quantile(self, mass: FloatArray) -> FloatArray:
        """The angle beyond which lies ``mass``: Newton on the logarithm of the tail, which is concave."""
        at = np.clip(self.mode - self.spread * ndtri(mass), 1e-3, np.pi - 1e-3)
        for _ in range(12):
            tail = np.maximum(self.integrate(at, np.pi), 1e-300)
            density = np.exp(self._log_density(at[:, None])[:, 0]) / self.total
            step = np.log(tail / mass) * tail / np.maximum(density, 1e-300)
            at = np.clip(at + step, at / 4, (3 * np.pi + at) / 4)
        return at

    def _log_density(self, theta: FloatArray) -> FloatArray:
        mode = self.mode[:, None]
        fall = -self.rho[:, None] * np.sin((theta + mode) / 2) * np.sin((theta - mode) / 2)  # a(cos θ − cos mode)
        sine = np.sin(theta)
        with np.errstate(divide="ignore"):
            power = (self.dimension - 2) * np.log(sine / np.sin(mode)) if self.dimension > 2 else 0.0
        return np.asarray(fall + power + np.log1p(sine**2 * self.bend[:, None]))


@lru_cache(maxsize=64)
def _table_of_rates(law: NormLaplaceLaw, fpr: float | None) -> TabulatedBound:
    """The total variation, or the TPR at ``fpr``, as a function of ρ.

    With p ∝ e^{−r} in d ≥ 2 dimensions ∂²p = p·(cos²θ − sin²θ/r), where E cos²θ = 1/d, E sin²θ = 1 − 1/d and, r being
    Gamma(d), E 1/r = 1/(d−1): ½∫|∂²p| ≤ 1/d.
    """

    def values(rho: FloatArray, side: Side) -> FloatArray:
        if fpr is None:
            return law.advantage(rho, side)
        return in_chunks(lambda r: law.tpr(r, fpr, side), rho)

    return TabulatedBound(values, 1 / law.dimension, law.largest)


_LARGEST_DIMENSION = 10_000  # as far as the quadrature was tested
_STEP = 1e-3  # relative width of a cell of the table
_SPREADS = 1e-5, 60.0  # range of the table, in standard deviations of one coordinate of the noise


def hockey_stick_at_most(dimension: int, log_gamma: float, rho: FloatArray) -> FloatArray:
    """Upper bounds on H_γ at γ = exp(log_gamma) ≥ 1 for any number of ρ ≥ 0, non-decreasing in ρ.

    H_γ is non-decreasing in ρ, so its value at the next larger ρ of a fixed geometric grid bounds it; the bound is
    never above that of the worst ρ-DP pair, (e^ρ − γ)₊/(1 + e^ρ) (Kairouz, Oh & Viswanath 2015), which is all that is
    used beyond the grid. For ``dimension`` 1 the closed form 1 − e^{(log γ − ρ)/2} needs no grid.
    """
    excess = np.maximum(rho - log_gamma, 0.0)
    if dimension == 1:
        return np.asarray(np.minimum(-np.expm1(-excess / 2) * (1 + 4 * EPS), 1.0))
    worst = np.minimum(-np.expm1(-excess) / (1 + np.exp(-excess - log_gamma)) * (1 + 8 * EPS), 1.0)
    if dimension > _LARGEST_DIMENSION:
        return np.asarray(worst)
    grid, value = _table(dimension, log_gamma)
    return np.asarray(np.minimum(worst, np.append(value, 1.0)[np.searchsorted(grid, rho)]))


@lru_cache(maxsize=256)
def _table(dimension: int, log_gamma: float) -> tuple[FloatArray, FloatArray]:
    low, high = (np.log(spread * np.sqrt(dimension + 1)) for spread in _SPREADS)
    grid = np.exp(np.arange(low, high, _STEP))
    law = NormLaplaceLaw(dimension)
    value = in_chunks(lambda rho: law.hockey_sticks(rho, np.full(rho.shape, log_gamma), "upper"), grid)
    return grid, np.maximum.accumulate(value)


def _inverse_bend(a: FloatArray, dimension: int) -> FloatArray:
    """1/C = a/(d−1) · K_{d/2−1}(a)/K_{d/2}(a), by the stable upward recurrence of the ratio of Bessel functions."""
    order = 0.0 if dimension % 2 == 0 else -0.5
    ratio = kve(0, a) / kve(1, a) if dimension % 2 == 0 else np.ones_like(a)  # K_ν/K_{ν+1}
    while order + 1 < dimension / 2:
        order += 1
        ratio = a / (2 * order + a * ratio)  # K_{ν+1} = K_{ν−1} + (2ν/x)·K_ν
    return np.asarray(a / (dimension - 1) * ratio)


@cache
def _legendre(count: int) -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


@dataclass(frozen=True)
class NormLaplaceTradeoff(Tradeoff):
    """The exact trade-off of two norm-Laplace laws with centres ``rho``/β apart, in any dimension.

    The law of the privacy loss is exact up to the quadrature error, which is charged to the safe side. Both
    directions agree by symmetry. In one dimension it is the Laplace mechanism (TV = 1 − e^{−ρ/2}).

    Examples
    --------
    >>> import deniable as dn
    >>> t = dn.records.NormLaplaceTradeoff(0.5, 10)
    >>> round(t.advantage(), 3)
    0.065
    """

    rho: float
    dimension: int
    method: str = field(default="quadrature of the exact law of the loss", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", number("rho", self.rho, at_least=0.0, below=float("inf")))
        NormLaplaceLaw(self.dimension)  # validates

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        law = NormLaplaceLaw(self.dimension)
        return in_chunks(lambda s: law.hockey_sticks(np.full(s.shape, self.rho), s, side), log_gamma)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        law = NormLaplaceLaw(self.dimension)
        return in_chunks(lambda f: law.true_positive_rates(np.full(f.shape, self.rho), f, side), fpr)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        return self.rho
