"""One phase on nodes, with what smooth windows over u keep of it: small outcomes and those in between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr

from deniable._check import FloatArray
from deniable._floats import PRODUCT_EXPONENT
from deniable.accounting.steps.ratios import ComplexArray, complex_log_ratio, log_ratio

_FIRST = -10.5  # node in u
_CONSTANT = 1e-18  # what r/(1 − q) − 1 may be where r is taken as constant
GONE = 45.0  # widths beyond the end of a window, where less than e^{−1000} is left


@dataclass(frozen=True, eq=False)
class Split:
    """One phase on nodes with Im u = shift: windows that end at ``low`` and at ``high``, and what is between them."""

    sigma: float
    rate: float
    low: float
    high: float
    reach: float  # nodes run up to this u

    @cached_property
    def shift(self) -> float:
        """Height of the nodes above the real line."""
        return 3 * self.window

    @cached_property
    def window(self) -> float:
        """Width δ of the windows Φ((v − u)/δ): on the nodes they grow by at most e^{y²/(2δ²)} = e^{4.5}."""
        return width(self.sigma)

    @property
    def size(self) -> float:
        """About how many nodes there are."""
        return (self.reach - _FIRST) / (2 * math.pi * self.shift / 70.0)

    @cached_property
    def _real_u(self) -> FloatArray:
        spacing = 2 * math.pi * self.shift / 70.0  # e^{−70 + 19}, e^{19} being the growth on Im u = 2·shift
        u: FloatArray = np.arange(_FIRST, self.reach, spacing)
        return u

    @cached_property
    def real(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logarithms of the weights under the lower window and between the two, and the loss, at real nodes."""
        u = self._real_u
        log_weight = -(u**2) / 2 + math.log((u[1] - u[0]) / math.sqrt(2 * math.pi))
        low, high = (self.low - u) / self.window, (self.high - u) / self.window
        right = u > (self.low + self.high) / 2  # Φ(a) − Φ(b) = Φ(−b) − Φ(−a)
        a, b = np.where(right, high, -low), np.where(right, low, -high)
        between = log_ndtr(a) + np.log(-np.expm1(log_ndtr(b) - log_ndtr(a)))
        loss = log_ratio(u, np.array(self.sigma), np.array(self.rate))
        return log_weight + log_ndtr(low), log_weight + between, loss

    def small(self, points: FloatArray) -> FloatArray:
        """log M_s of one step from above: (1 − q)^θ where r is no more, and what it adds elsewhere.

        Before the first node r^θ ≤ 1 if θ ≥ 0; else it is at most (1 − q)^θ, and at most (q·e^{u/σ − 1/(2σ²)})^θ.
        """
        log_weight, _, loss = self.real
        here, least = self._varying, math.log1p(-self.rate) if self.rate < 1 else -math.inf
        sums = _sum_of_exp(np.multiply.outer(points, loss[here]) + log_weight[here])
        if here.start == 0:
            theta = np.minimum(points, 0.0)
            tilted = theta * (theta - 1) / (2 * self.sigma**2) + log_ndtr(_FIRST - theta / self.sigma)
            before = np.minimum(log_ndtr(_FIRST) + theta * least, tilted + theta * math.log(self.rate))
            return np.asarray(np.logaddexp(np.log(sums), before))
        # ∫ φ(u)·Φ((v − u)/δ) du = Φ(v/√(1 + δ²))
        others = float(ndtr(self.low / math.hypot(1.0, self.window))) - float(np.exp(log_weight[here]).sum())
        return np.log(sums + others * np.exp(points * least))

    @cached_property
    def _varying(self) -> slice:
        """Nodes under the lower window from where r/(1 − q) − 1 is above 1e-18."""
        spacing = float(self._real_u[1] - self._real_u[0])
        start = self.sigma * math.log(_CONSTANT / self.rate) + 0.5 / self.sigma - _FIRST
        stop = self.low + GONE * self.window - _FIRST
        return slice(max(int(start / spacing), 0) if self.rate < 0.5 else 0, int(stop / spacing) + 1)

    @property
    def terms(self) -> int:
        """Terms of both sums at one point."""
        beyond = int(np.searchsorted(self._real_u, self.low - GONE * self.window))
        size: int = self._varying.stop - self._varying.start + self._real_u.size - beyond
        return size

    def rest(self, points: FloatArray) -> FloatArray:
        """M_l of one step."""
        _, log_weight, loss = self.real
        above = self._real_u > self.low - GONE * self.window
        return _sum_of_exp(np.multiply.outer(points, loss[above]) + log_weight[above])

    def first(self, c: float) -> int:
        """Number of the first node at which M_l(c) is summed: below e^{−60} of it lies before.

        The window falls as e^{−x²/2} x widths before its end, and r^c rises by at most |c|·δ/σ per width if c < 0.
        """
        widths = 11 + max(-c, 0.0) * self.window / self.sigma
        return int(np.searchsorted(self._real_u, self.low - widths * self.window))

    def before(self, c: float) -> float:
        """Logarithm of a bound on what M_l(c + it) leaves out before its first node.

        Summands are log-concave if c < 0, else r^c falls as well, so that they are at most a geometric series. On
        shifted nodes windows grow by at most e^{4.5}, and |r|, the argument of ρ being ½, is at least cos(¼)·r.
        """
        _, log_weight, loss = self.real
        k = self.first(c)
        if k == 0 or log_weight[k] == -math.inf:
            return -math.inf
        near = slice(k, k + 2)
        first, second = log_weight[near] + min(c, 0.0) * loss[near]
        series = -math.log(-math.expm1(first - second)) if first < second else math.inf
        return float(log_weight[k] + c * loss[k] + series + 5 + 0.04 * max(-c, 0.0))

    def large(self, c: float) -> tuple[ComplexArray, ComplexArray]:
        """Weights between the windows and the loss, at the shifted nodes that M_l(c + it) needs."""
        u = np.asarray(self._real_u[self.first(c) :] + 1j * self.shift, dtype=np.complex128)
        low, high = (self.low - u) / self.window, (self.high - u) / self.window
        right = u.real > (self.low + self.high) / 2
        between = ndtr(np.where(right, high, -low)) - ndtr(np.where(right, low, -high))
        weight = np.exp(-(u**2) / 2) * ((u[1] - u[0]).real / math.sqrt(2 * math.pi)) * between
        return weight, complex_log_ratio(u, self.sigma, self.rate)


def width(sigma: float) -> float:
    """Width of a phase's windows: σ/6, and 0.7/3 where there is much noise."""
    return min(0.5 * sigma, 0.7) / 3


def _sum_of_exp(exponent: FloatArray) -> FloatArray:
    """Row sums of exponentials, ∞ where they would overflow: an unknown transform must never look small."""
    sums: FloatArray = np.exp(np.minimum(exponent, PRODUCT_EXPONENT)).sum(axis=1)
    return np.where(exponent.max(axis=1) < PRODUCT_EXPONENT, sums, np.inf)
