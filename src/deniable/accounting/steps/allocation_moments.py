"""Moments of the likelihood ratio of an epoch of random allocation, hence its Rényi divergences.

S = (1/t)·ΣY is the mean of t independent log-normal Y = e^{(2x − 1)/(2σ²)}, x ~ N(0, σ²) out of the data; E S = 1.

*Positive orders.* For sizes m and n and w = m/(m + n), E S_{m+n}^a = Σ_j C(a, j)·w^j·(1 − w)^{a−j}·E S_m^j·E S_n^{a−j}
for whole a. The weights add up to 1, so that what exceeds 1 is a sum of terms ≥ 0 and keeps its relative accuracy.
Between whole orders log E S^a is convex, and chords bound it.

*Negative orders.* E S^{−p}·Γ(p) = ∫λ^{p−1}·g(λ) dλ with g(λ) = E e^{−λS} = φ(λ/t)^t, φ the Laplace transform of Y. In
v = log λ the integrand is analytic, and its integral over the line Im v = θ is at most cos(θ)^{−p} times that of the
real line (|E e^{−λe^{iθ}S}| ≤ E e^{−λ·cos(θ)·S}), so that the trapezoid rule of step h errs by a relative
2·cos(θ)^{−p}/(e^{2πθ/h} − 1) (Trefethen and Weideman 2014, Theorem 5.1): below 10⁻³⁷ here. Γ(p) is the same integral
for S = 1; what E S^{−p} exceeds 1 by is that of g(λ) − e^{−λ} ≥ 0 over it. φ is a trapezoid sum over s = x/σ in the
same way, analytic where |Im s| ≤ πσ/2. For small u = λ/t it is φ(u)·e^u − 1 = E k(u(Y − 1)) that is summed, where
k(z) = e^{−z} − 1 + z ≥ 0; where φ is lost in its error, φ(u) ≤ (q/(eu))^q·E Y^{−q} for every q > 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS

LARGEST = 512  # order up to which moments are computed; beyond, the batch is taken as revealed
_SLACK = 90.0  # −log of what trapezoid rules err by, relative to bounds on their integrands
_ERRORS = 1e-37  # these errors and tails of s, with room
_FIRST = -45.0  # log λ: below, the integrand is at most its second-order term
_APART = 70.0  # −log of what is left out of the integral, relative to its largest term
_DIRECT = 20.0  # u above which φ is summed as it is
_FLOOR = 1e-22  # φ below which its error would be seen
_REACH = 14.0  # standard deviations of s on either side, under both worlds
_NODES = 512  # of λ at a time
_LAST = 600.0  # log λ up to which is looked
_ROUNDING = 1e-10  # of sums of terms ≥ 0, relative, apart from their exponents


@dataclass(frozen=True)
class _Batches:
    sigma: float
    batches: int


def log_moments(sigma: float, batches: int, orders: FloatArray) -> FloatArray:
    """Return upper bounds on log E S^order under "out", for orders above 1 or below 0 (all on one side), shape (k,)."""
    step = _Batches(sigma, batches)
    revealed = orders * (orders - 1) / (2 * step.sigma**2)  # E S^a ≤ E Y^a, by convexity
    found = np.full(orders.shape, np.inf)
    known = np.abs(orders) <= LARGEST
    if step.batches > 1 and known.any():
        if orders[0] > 1:
            logs = _whole_moments(step, math.ceil(orders[known].max()))
            found[known] = np.interp(orders[known], np.arange(logs.size), logs) * (1 + 8 * EPS)
        else:
            found[known] = [_NegativeMoment(step, -float(order)).log_bound() for order in orders[known]]
    return np.asarray(np.where(found < revealed, found, revealed) * (1 + 8 * EPS))


def _whole_moments(step: _Batches, most: int) -> FloatArray:
    """Upper bounds on log E S^a for a = 0, …, most, from logarithms of what the moments exceed 1 by."""
    a = np.arange(most + 1.0)
    growth = a * (a - 1) / (2 * step.sigma**2)
    log_choose = [np.array([math.log(math.comb(n, j)) for j in range(n + 1)]) for n in range(most + 1)]
    single = _log_expm1(growth)
    size, excess, sums = 1, single, 0
    for bit in bin(step.batches)[3:]:
        size, excess, sums = 2 * size, _of_means(excess, size, excess, size, log_choose), sums + 1
        if bit == "1":
            size, excess, sums = size + 1, _of_means(excess, size, single, 1, log_choose), sums + 1
    # a sum adds ``each`` to the error of a logarithm; errors of two factors, of orders j and a − j, add up
    logs = np.abs(np.where(np.isfinite([excess, single]), [excess, single], 0.0)).max(axis=0)
    largest = np.maximum.accumulate(logs)  # of all orders that enter
    each = 16 * EPS * (largest + a * (math.log(2 * step.batches) + math.log(most + 2)) + 8)
    return np.asarray(np.logaddexp(0.0, excess + (sums + 1) * np.maximum(a, 1.0) * each) * (1 + 8 * EPS))


def _of_means(first: FloatArray, m: int, second: FloatArray, n: int, log_choose: Sequence[FloatArray]) -> FloatArray:
    """Log-excess of the moments of the mean of m and n terms, from those of the means of either."""
    found = np.full(first.size, -np.inf)
    log_m, log_n = math.log(m / (m + n)), math.log(n / (m + n))
    for a in range(2, first.size):
        j = np.arange(a + 1)
        x, y = first[: a + 1], second[a::-1]
        both = np.logaddexp(np.logaddexp(x, y), x + y)
        found[a] = np.logaddexp.reduce(both + log_choose[a] + j * log_m + (a - j) * log_n)
    return found


def _log_expm1(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.where(x > 30, x + np.log1p(-np.exp(-np.maximum(x, 30))), np.log(np.expm1(np.minimum(x, 30))))
        )


@dataclass(frozen=True, eq=False)
class _NegativeMoment:
    """E S^{−p} of an epoch."""

    step: _Batches
    p: float

    def log_bound(self) -> float:
        """Return an upper bound on its logarithm; ∞ where the sum would be too long."""
        p, t = self.p, self.step.batches
        h = 2 * math.pi / (_SLACK + 0.7 * p)  # θ = 1: cos(1)^{−p} < e^{0.62p}
        first = math.floor(_FIRST / h)
        variance = math.expm1(1 / self.step.sigma**2) / t
        # g − e^{−λ} ≤ λ²·Var S/2 + λ³/6
        start = first * h
        terms = [math.log(variance / 2 / (p + 2)) + (p + 2) * start, (p + 3) * start - math.log(6 * (p + 3))]
        logs, sizes = np.array(terms), np.zeros(2)
        for begin in range(first, math.floor(_LAST / h), _NODES):
            v = h * np.arange(begin, begin + _NODES)
            lam = np.exp(v)
            logs = np.append(logs, p * v + self._log_difference(lam) + math.log(h))
            sizes = np.append(sizes, p * np.abs(v) + np.minimum(lam, _DIRECT * t))
            rest = self._log_rest(float(v[-1]))
            if rest < logs.max() - _APART:
                relative = _ROUNDING + 8 * EPS * float(sizes[logs > logs.max() - _APART].max())
                total = float(np.logaddexp.reduce(np.append(logs, rest))) + relative - self._log_gamma(h)
                return float(np.logaddexp(0.0, np.logaddexp(total, math.log(_ERRORS)))) * (1 + 8 * EPS)
        return math.inf

    @staticmethod
    def _log_sum(p: float, h: float) -> float:
        v = h * np.arange(math.floor(-60 / min(p, 1.0) / h), math.ceil(math.log(p + 60 + 12 * math.sqrt(p)) / h) + 1)
        return float(np.logaddexp.reduce(p * v - np.exp(v))) + math.log(h)

    def _log_gamma(self, h: float) -> float:
        """Lower bound on log Γ(p) = log Γ(p + 1) − log p, by the same rule."""
        return self._log_sum(self.p + 1, h) - math.log(self.p) - _ROUNDING

    def _log_difference(self, lam: FloatArray) -> FloatArray:
        """Upper bound on log(g(λ) − e^{−λ})."""
        t = self.step.batches
        u = lam / t
        few = np.minimum(u, _DIRECT)
        z = np.multiply.outer(few, self._moved)
        near = _remainder(z) @ self._weight
        near = near * (1 + 1e-12) + _ERRORS * np.exp(few) * (1 + few) ** 2
        small = -lam + _log_expm1(t * np.log1p(near))
        with np.errstate(under="ignore"):
            direct = np.exp(-np.multiply.outer(np.maximum(u, _DIRECT), 1 + self._moved)) @ self._weight
        log_phi = np.where(
            direct > _FLOOR, np.log(np.maximum(direct, _FLOOR)) + 1e-12, self._log_chernoff(u).min(axis=1)
        )
        log_g = t * log_phi
        gap = np.maximum(log_g + lam, 0.0) + t * 1e-12 * (1 + u)
        large = log_g + np.log(-np.expm1(-np.minimum(gap, 700.0)))
        return np.where(u <= _DIRECT, small, large)

    def _log_chernoff(self, u: FloatArray) -> FloatArray:
        """log (q/(eu))^q·E Y^{−q} for each u and q."""
        q = self._powers
        return np.asarray(
            q * (np.log(q) - 1 + (q + 1) / (2 * self.step.sigma**2)) - np.multiply.outer(np.log(u), q) + 1e-10
        )

    def _log_rest(self, v: float) -> float:
        """Upper bound on the log of the integral beyond v: there g falls at least as λ^{−qt}."""
        t = self.step.batches
        logs = self.p * v + t * self._log_chernoff(np.array([math.exp(v) / t]))[0]
        falls = self._powers * t - self.p
        return float(np.min((logs - np.log(np.maximum(falls, 1e-300)))[falls > 0], initial=math.inf))

    @cached_property
    def _powers(self) -> FloatArray:
        return np.geomspace(1e-3, 400 + 4 * self.p, 800)

    @cached_property
    def _nodes(self) -> FloatArray:
        sigma = self.step.sigma
        a = min(0.999 * math.pi * sigma / 2, 6.0)
        h = 2 * math.pi * a / (_SLACK + a * a / 2)
        return np.asarray(h * np.arange(math.floor(-_REACH / h), math.ceil((_REACH + 1 / sigma) / h) + 1))

    @cached_property
    def _weight(self) -> FloatArray:
        s = self._nodes
        return np.asarray(np.exp(-(s**2) / 2) * ((s[1] - s[0]) / math.sqrt(2 * math.pi)))

    @cached_property
    def _moved(self) -> FloatArray:
        """Y − 1 at the nodes."""
        return np.asarray(np.expm1((self._nodes - 1 / (2 * self.step.sigma)) / self.step.sigma))


def _remainder(z: FloatArray) -> FloatArray:
    """e^{−z} − 1 + z ≥ 0, to a few roundings."""
    small = np.abs(z) < 0.5
    near, series = np.where(small, z, 0.0), np.zeros_like(z)
    for n in range(16, 1, -1):
        series = 1 / math.factorial(n) - near * series
    return np.asarray(np.where(small, series * near**2, np.expm1(-np.where(small, 0.5, z)) + z))
