"""Enclosures of the transform of one subsampled Gaussian step, in ball arithmetic (python-flint).

Out of the data a step releases u ~ N(0, 1), in it (1−q)·N(0, 1) + q·N(1/σ, 1); y(u) = q·exp(u/σ − 1/(2σ²)), the
likelihood ratio is r = 1 − q + y. Everything here is proven; what double precision is used for (where to put nodes, how
far to go) decides how narrow an enclosure is, never whether it holds.

Facts that the bounds rest on, for real u and 0 < θ = v/σ < π:

(1) |r(u + iv)| ≤ r(u), and 0 ≤ arg r(u + iv) ≤ θ: r has no zero and log r is analytic for 0 ≤ v < πσ;
(2) |r(u + iv)| ≥ cos(θ/2)·r(u), as |A + Be^{iθ}|² = (A + B)² − 4AB·sin²(θ/2);
(3) for f analytic in the strip of half-width d around a line, with ∫|f| ≤ N along every parallel in it, a trapezoid sum
    with spacing h misses ∫f by at most 2N/(e^{2πd/h} − 1) (Trefethen & Weideman 2014, Theorem 5.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from flint import acb, acb_mat, arb

from deniable._check import FloatArray
from deniable._floats import PRODUCT_EXPONENT, SQUARE_EXPONENT

Ball = TypeVar("Ball", arb, acb)
BLOCK = 1 << 17  # nodes, or outcomes in a list, that are held at a time
_WIDEST = 7.0  # distances in units of the noise beyond which a strip gains nothing
_SHARE = 1.4  # half-width of strips over σ: twice that is below π


def log_ratio(u: FloatArray, sigma: float, rate: float) -> FloatArray:
    """log r in double precision: only to choose where to look."""
    return np.logaddexp(math.log1p(-rate), math.log(rate) + u / sigma - 0.5 / sigma**2)


def normal_tail(u: arb) -> arb:
    """P(N(0, 1) > u)."""
    return (u / arb(2).sqrt()).erfc() / 2


def top(x: arb) -> arb:
    """Return the upper end of a ball."""
    return x.upper()


@dataclass(frozen=True)
class BallStep:
    """One step with noise σ and rate q < 1."""

    sigma: float
    rate: float

    def _y(self, u: Ball) -> Ball:
        s = arb(self.sigma)
        return arb(self.rate) * (u / s - 1 / (2 * s * s)).exp()

    def ratio(self, u: Ball) -> Ball:
        """Return r(u)."""
        return 1 - arb(self.rate) + self._y(u)

    def layout(self, digits: float) -> tuple[float, float, float, float]:
        """Shift b, spacing h and the ends of the nodes for :meth:`transform` at an error of about e^{−digits}."""
        b = min(_SHARE * self.sigma, _WIDEST)
        h = 2 * math.pi * b / (digits + 2 * b * b)
        reach = math.sqrt(2 * digits + b * b) + 1
        height = digits + b * b / 2 - 1 / (8 * self.sigma**2) + math.log(self.rate) / 2
        far = 1 / (2 * self.sigma) + math.sqrt(2 * height) + 1 if height > 0 else reach
        return b, h, -reach, max(reach, far)

    def count(self, digits: float) -> float:
        """Number of nodes that :meth:`transform` takes."""
        _, h, low, high = self.layout(digits)
        return (high - low) / h

    def transform(self, spacing: arb, count: int, digits: float) -> list[acb]:
        """Return enclosures of M(½ + ikΔ), k = 0, …, count − 1, where M(w) = E_out[r^w] and Δ = ``spacing``.

        The integral is taken along Im u = b, where r^{it} decays for t > 0 instead of oscillating. On 0 ≤ Im u ≤ 2b
        the integrand is at most e^{2b²}·φ(u)·r(u)^½ by (1), and E_out[r^½] ≤ 1, so that one spacing serves every t.
        """
        b, h, low, high = self.layout(digits)
        first, last = math.floor(low / h), math.ceil(high / h)
        hh, shift = arb(h), arb(b)
        ratio, nodes = [], []
        for j in range(first, last + 1):
            u = acb(j * hh, shift)
            loss = self.ratio(u).log()
            ratio.append(acb(0, 1) * spacing * loss)
            nodes.append((loss / 2 - u * u / 2).exp() * hh / (2 * arb.pi()).sqrt())
        error = 2 * (2 * shift**2).exp() / ((2 * arb.pi() * shift / hh).exp() - 1) + self._beyond(
            first, last, hh, shift
        )
        around = acb(arb(0, top(error)), arb(0, top(error)))
        small = max(1, math.isqrt(count - 1) + 1)
        large = -(-count // small)
        total = None
        most = max(1, BLOCK // max(small, large))
        for start in range(0, len(nodes), most):
            weights, turns = nodes[start : start + most], [x.exp() for x in ratio[start : start + most]]
            strides = [(small * x).exp() for x in ratio[start : start + most]]
            left = acb_mat([[w * p for w, p in zip(weights, row, strict=True)] for row in powers(turns, small)])
            right = acb_mat([list(row) for row in powers(strides, large)]).transpose()
            product = left * right
            total = product if total is None else total + product
        assert total is not None
        table = total.table()
        return [table[k % small][k // small] + around for k in range(count)]

    def _beyond(self, first: int, last: int, h: arb, b: arb) -> arb:
        """What nodes outside first … last could add: |φ(u + ib)·r^½| ≤ e^{b²/2}·φ(u)·(1 + √y).

        √y·φ(u) = √q·e^{−1/(8σ²)}·φ(u − 1/(2σ)); sums over a falling density are below its integral.
        """
        mode = 1 / (2 * arb(self.sigma))
        height = arb(self.rate).sqrt() * (-mode * mode / 2).exp()
        low, high = -first * h, last * h
        second = 1 + h  # the whole of a sum over a bell
        if high > mode:
            second = normal_tail(high - mode)
        return (b * b / 2).exp() * (normal_tail(low) * (1 + height) + normal_tail(high) + height * second)

    def log_moment(self, c: float) -> arb | None:
        """Return an upper bound on log E_out[r^c] for real c ≥ 1 or c ≤ 0; None where it would take too long.

        Trapezoid sum on the real line; on |Im u| ≤ d the integrand is at most e^{d²/2}·cos(d/(2σ))^{min(c, 0)} times
        itself on the real line, by (1) and (2). What nodes leave out is bounded on cells on which r is monotone.
        """
        digits = 60.0
        d = self._strip(c, digits)
        h = 2 * math.pi * d / (digits + d * d / 2 + self._growth_guess(c, d))
        grid = np.arange(-60.0, 60.0 + max(0.0, min(c / self.sigma, 200.0)), 0.05)
        size = c * log_ratio(grid, self.sigma, self.rate) - grid**2 / 2
        kept = grid[size > max(float(size.max()), 0.0) - digits - 12]
        if kept.size == 0:  # the mode lies far out: too many nodes
            return None
        low, high = min(float(kept[0]), -8.0), max(float(kept[-1]), 8.0)
        first, last = math.floor(low / h), math.ceil(high / h)
        if last - first > BLOCK:
            return None
        hh, order = arb(h), arb(c)
        total = arb(0)
        for j in range(first, last + 1):
            u = j * hh
            total += (order * self.ratio(u).log() - u * u / 2).exp()
        total = total * hh / (2 * arb.pi()).sqrt()
        outside = self._outside(order, last * hh, 1) + self._outside(order, -first * hh, -1)
        factor, extra = self._growth(order, arb(d))
        scale = 2 * (arb(d) ** 2 / 2).exp() / ((2 * arb.pi() * arb(d) / hh).exp() - 1)
        missed = scale * factor
        if not missed < 0.5:
            return None
        found = top((total + outside + scale * extra) / (1 - missed)).log()
        return found if found.is_finite() else None

    def _strip(self, c: float, digits: float) -> float:
        """The half-width of the strip that allows the widest spacing in :meth:`log_moment`."""
        widths = min(_SHARE * self.sigma, _WIDEST) * 2.0 ** -np.arange(14)
        return max(map(float, widths), key=lambda d: d / (digits + d * d / 2 + self._growth_guess(c, d)))

    def _far(self, c: float, d: float) -> float:
        """Where the normal mass beyond outweighs (2): the u that divides the two parts of :meth:`_growth`."""
        return math.sqrt(2 * (abs(c) * (d / self.sigma) ** 2 / 7 + 80))

    def _growth_guess(self, c: float, d: float) -> float:
        if c >= 0:
            return 0.0
        angle = d / (2 * self.sigma)
        y = self.rate * math.exp(min(self._far(c, d) / self.sigma, PRODUCT_EXPONENT)) / (1 - self.rate)
        return c / 2 * math.log1p(-min(4 * y, 1.0) * math.sin(angle) ** 2)

    def _growth(self, order: arb, d: arb) -> tuple[arb, arb]:
        """F and X with ∫|φ·r^c| along Im u = v ≤ e^{v²/2}·(F·E_out[r^c] + X) for |v| ≤ d.

        For c < 0, as in (2) with AB/(A + B)² ≤ min(1/4, y/(1 − q)): left of u₁ the y of u₁ counts; right of it r ≥ 1.
        """
        if order >= 0:
            return arb(1), arb(0)
        sine = (d / (2 * arb(self.sigma))).sin() ** 2
        far = arb(self._far(float(order), float(d)))
        odds = 4 * self._y(far) / (1 - arb(self.rate))
        worst = (order / 2 * (1 - sine).log()).exp()
        if odds < 1 and self.ratio(far) > 1:
            return (order / 2 * (1 - odds * sine).log()).exp(), worst * normal_tail(far)
        return worst, arb(0)

    def _outside(self, order: arb, start: arb, sign: int) -> arb:
        """Bound the sum of h·φ(u)·r(u)^c over nodes beyond ``start`` on one side (``sign``), node ``start`` excluded.

        The normal mass beyond each cell's inner end times the largest r^c on the cell; beyond the last cell,
        r^c ≤ 2^{c−1}·((1−q)^c + y^c) on the right, where y^c·φ is a shifted bell, and r ≤ 1 or r ≥ 1 − q else.
        """
        rising = (order > 0) == (sign > 0)
        inner, width, total = start, arb(0.25), arb(0)
        q, s = arb(self.rate), arb(self.sigma)
        if not rising:  # the largest value is at the start
            return normal_tail(start) * (order * self.ratio(sign * start).log()).exp()
        while True:
            if sign > 0:  # r^c grows without bound
                bell = normal_tail(inner - order / s) if inner > order / s else arb(2)
                tail = arb(2) ** (order - 1) * (
                    ((1 - q).log() * order).exp() * normal_tail(inner)
                    + (q.log() * order + (order * order - order) / (2 * s * s)).exp() * bell
                )
            else:
                tail = ((1 - q).log() * order).exp() * normal_tail(inner)
            if tail < 1e-30 or not tail.is_finite():
                break
            outer = inner + width
            total += normal_tail(inner) * (order * self.ratio(sign * outer).log()).exp()
            inner, width = outer, width * arb(1.2)
        return total + tail

    @cached_property
    def _sketch(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Shifts b to try, and on a grid log(φ·r^½·e^{b²/2}·spacing) and arg r(u + ib), in double precision."""
        shifts = np.geomspace(1e-7, 1, 45) * min(2.9 * self.sigma, 12.0)
        u = np.linspace(-13.0, 13.0 + min(0.5 / self.sigma, 30.0), 700)
        angle = shifts[:, None] / self.sigma
        y = np.exp(np.minimum(math.log(self.rate) + u / self.sigma - 0.5 / self.sigma**2, SQUARE_EXPONENT))
        ratio = 1 - self.rate + y * np.exp(1j * angle)
        weight = -(u**2) / 2 + 0.5 * np.log(np.abs(ratio)) + shifts[:, None] ** 2 / 2
        return shifts, u, weight + math.log((u[1] - u[0]) / math.sqrt(2 * math.pi)), np.angle(ratio)

    @cached_property
    def bulk_variance(self) -> float:
        """Variance of log r below u = 3, in double precision: to choose where to look."""
        u = np.linspace(-9.0, 3.0, 600)
        weight = np.exp(-(u**2) / 2)
        loss = log_ratio(u, self.sigma, self.rate)
        return float(np.average((loss - np.average(loss, weights=weight)) ** 2, weights=weight))

    def decay_guess(self, t: float) -> tuple[float, float]:
        """The shift that promises the smallest bound on |M(½ + it′)| for all t′ ≥ t, and the log of that bound."""
        shifts, _, weight, angle = self._sketch
        size = weight - t * angle
        peak = size.max(axis=1)
        bound = np.log(np.exp(size - peak[:, None]).sum(axis=1)) + peak
        best = int(np.argmin(bound))
        return (float(shifts[best]), float(bound[best])) if bound[best] < 0 else (0.0, 0.0)

    def decay(self, b: float, t: arb) -> arb:
        """Return an upper bound on |M(½ + it′)| for every t′ ≥ ``t``: the integral of the modulus along Im u = b.

        |r^{½+it}| = |r|^½·e^{−t·arg r} with arg r ≥ 0, which falls with t. The modulus is real-analytic in u:
        |r|² = r₊r₋ and arg r = (log r₊ − log r₋)/(2i) with r± = 1 − q + y·e^{±ib/σ}.
        """
        if b == 0:
            return arb(1)
        shift, q = arb(b), arb(self.rate)
        turn = (acb(0, 1) * shift / arb(self.sigma)).exp()
        conjugate = turn.conjugate()

        def modulus(u: acb, analytic: bool) -> acb:
            y = self._y(u)
            plus, minus = (1 - q + y * turn).log(analytic=analytic), (1 - q + y * conjugate).log(analytic=analytic)
            return ((plus + minus) / 4 + acb(0, 1) / 2 * t * (plus - minus) - u * u / 2).exp()

        end = math.sqrt(170 + b * b) + 1
        far = end + min(0.5 / self.sigma, 30.0)
        cuts = [-end, -3.0, 0.0, 3.0, end, far] if far > end else [-end, -3.0, 0.0, 3.0, end]
        total = arb(0)
        for low, high in pairwise(cuts):
            total += acb.integral(modulus, low, high, rel_tol=arb(2) ** -60, abs_tol=arb(2) ** -200).real
        mode = 1 / (2 * arb(self.sigma))
        height = q.sqrt() * (-mode * mode / 2).exp()
        outside = normal_tail(arb(end)) * 2 + height * (normal_tail(end + mode) + normal_tail(far - mode))
        bound = top((total / (2 * arb.pi()).sqrt() + outside) * (shift * shift / 2).exp())
        return bound if bound < 1 else arb(1)


def powers(factors: list[acb], count: int) -> list[list[acb]]:
    """Rows of powers 0 … count − 1, by halving, so that no error is multiplied more than log₂ count times."""
    rows = [[acb(1)] * len(factors), factors]
    for k in range(2, count):
        one, other = rows[k // 2], rows[k - k // 2]
        rows.append([a * b for a, b in zip(one, other, strict=True)])
    return rows[:count]
