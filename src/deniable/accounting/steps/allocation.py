"""One epoch of random allocation: a record enters exactly one of t batches, chosen uniformly.

Out of the data an epoch releases x ~ N(0, σ²I_t), in it x ~ (1/t)·Σ_i N(e_i, σ²I_t). The likelihood ratio is
S = (1/t)·Σ Y_i with independent Y_i = e^{(2x_i − 1)/(2σ²)}, log-normal with mean 1 under "out".

The pair dominates every adaptive use, adding and removing alike: given the other records and all that was released, a
batch releases N(g, σ²) out of the data and, in the batch, N(g + r·u, σ²) with a unit vector u and r ≤ 1 that earlier
releases may decide (clipped contributions, public divisor). From x_i this is made by r·u·x_i + N(0, σ²(1 − r²)) along u
and fresh noise elsewhere, by the same rule whether or not the record was there, so that the whole transcript
post-processes x (Chua et al. 2024, arXiv 2412.16802; Feldman & Shenfeld 2025, arXiv 2502.08202). It is attained
by contributions that do not change. The other records' batches do not depend on the record, and the divisor must be
public: a batch mean over its realised size is another mechanism.

*Convex order.* H_γ(P‖Q) = E(S − γ)₊ and H_γ(Q‖P) = E(1 − γS)₊ under Q are means of convex functions of S: a law that
is larger in convex order (masses and means agree) is that of a pair that is easier to tell apart, in either direction
and under every composition (Blackwell 1953). Sums of independent terms keep the order, so that terms may be brought
onto lattices, and sums of them onto coarser ones (:mod:`deniable.accounting.lattices`, squaring as with losses):

- *above*, a mass between two lattice points goes to both, mass and mean kept: convex functions rise in mean;
- *below*, a row holds the mass of a label k and another E[X − k; label k] ≥ 0, so that the two know the mean of all
  that has one label. Labels of independent sums add, and (m, d)∗(m′, d′) = (m∗m′, m∗d′ + d∗m′) are these rows of
  X + X′. The law of the means given the label is smaller in convex order (Jensen).

*Errors.* Sums of terms ≥ 0, and no transforms: rounding is relative, however far in a tail. A term is cut into cells of
u = x/σ, split onto their ends or merged. There three Gauss–Legendre nodes are wrong by a share below 1e-18, as
h⁷/2016000·max|f⁽⁶⁾| with h·(|u| + 1/σ) < 0.02, and masses by eight roundings at the most; a point by those of its
exponent, which moves S by no larger share. Masses of S, known to a share, are brought to the safe side in both worlds
alike: a pair of measures that are smaller by the same factor, outcome by outcome, has smaller hockey sticks, and so has
its product with anything. Then S errs below by a share of what means lie above their labels, and above not at all.
*Left out*, of t terms: in P those beyond 14 deviations above; in Q these, and above also those below −14, which below
belong to the first cell (1e-9 of them covers their rounding); and far less is lost to numbers below all doubles.

*Moments* of S make Rényi divergences. *Positive orders.* For sizes m and n and w = m/(m + n), E S_{m+n}^a = Σ_j C(a,
j)·w^j·(1 − w)^{a−j}·E S_m^j·E S_n^{a−j} for whole a. The weights add up to 1, so that what exceeds 1 is a sum of terms
≥ 0 and keeps its relative accuracy. Between whole orders log E S^a is convex, and chords bound it.

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
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable._special import ndtr
from deniable.accounting.lattices import Law, convolve_directly, fitting, power, scales
from deniable.accounting.sizes import BLOCK, POINTS, UNDERFLOW
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import REACH, ListedOutcomes
from deniable.curves import Direction, Side

SHARPEST = 0.15  # noise multipliers below have terms beyond e^400
_CELL = 2.0**-11  # of u
LARGEST = 512  # order up to which moments are computed; beyond, the batch is taken as revealed
_SLACK = 90.0  # −log of what trapezoid rules err by, relative to bounds on their integrands, and of what is left out
_ERRORS = math.exp(5 - _SLACK)  # these errors and tails of s, with room
_DIRECT = 20.0  # u above which φ is summed as it is
_FLOOR = _ERRORS / EPS  # φ below which its error would be seen
_LARGER = 8.0  # terms that are expected beyond the finest class of a sum, at most
_ROUNDING = 1e-10  # of sums of terms ≥ 0, relative, apart from their exponents


class SumLaw(Law):
    """Measures of sums by class: masses, below also their means above the labels, times mass."""

    rung = 2
    few = 2  # shares of splits are exact

    @property
    def least(self) -> float:
        """Nothing: large sums weigh much in P."""
        return 0.0

    def nearest(self, e: int) -> bool:
        """Means are known: a label may be the point below."""
        return False

    def share(self, above: FloatArray, spacing: float) -> FloatArray:
        return above / spacing

    def moved_by(self, far: FloatArray, rows: FloatArray) -> FloatArray:
        return np.stack([rows[0], rows[1] - far * rows[0]])

    def times(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        mass = convolve_directly(rows[0], others[0])
        if self.side == "upper":
            return mass[None]
        return np.stack([mass, convolve_directly(rows[0], others[1]) + convolve_directly(rows[1], others[0])])


@dataclass(frozen=True)
class AllocationStep(Step):
    """One epoch with noise ``sigma`` and ``batches`` batches: the law of log S, from above or from below."""

    sigma: float
    batches: int
    side: Side = "upper"

    def on(self, side: Side) -> AllocationStep:
        return replace(self, side=side)

    def pieces(self) -> tuple[ListedOutcomes]:
        return (_epoch(self),)

    @property
    def lost(self) -> tuple[float, float]:
        least = float(ndtr(-REACH - 1 / self.sigma) + (1e-9 if self.side == "lower" else 1) * ndtr(-REACH))
        return 2 * self.batches * float(ndtr(-REACH)), 2 * self.batches * least

    bounds_divergence = True

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        found, finite = np.full(order.shape, np.inf), np.isfinite(order)
        if finite.any():
            some = order[finite]
            moments = log_moments(self.sigma, self.batches, some if direction == "remove" else 1 - some)
            found[finite] = moments / (some - 1) * (1 + 4 * EPS)
        return found


@lru_cache(maxsize=8)
def _epoch(step: AllocationStep) -> ListedOutcomes:
    law = SumLaw.empty(step.side, 1.0, POINTS, True)
    point, mass = _term(step)
    least = float(point[0])  # labels count from there, so that none is at 0
    above, finest = point - least, math.frexp(least * _CELL / step.sigma)[1]
    table = scales(above, above, mass)

    def laid(count: int) -> tuple[int, float]:
        """The finest class of a sum, and about the mean of what it can hold."""
        size, mean = fitting([table], [count], _LARGER) or (above[-1], 0.0)
        return SumLaw.rung * (max(math.frexp(size / POINTS)[1], finest) // SumLaw.rung), mean

    far, e, reach = np.abs(above - min(float(np.exp(-1 / (2 * step.sigma**2))) - least, least)), laid(1)[0], 0.0
    while reach <= far.max():
        h = law.spacing(e)
        some = (far >= reach) & (far < h * law.points / 2)
        if some.any():
            base = np.floor(above[some] / h).astype(np.intp)
            rows = np.stack([mass, np.zeros(mass.size)])[: 1 if step.side == "upper" else 2, some]
            law.put(e, law.laid(base, above[some] - h * base, h, 0.0, rows))
        e, reach = e + law.rung, h * law.points / 2
    law.relative = 16 * EPS
    law = power(law, step.batches, laid, math.frexp(float(above[-1]) * step.batches)[1])
    x, _, rows = law.listed()
    label, q = x + step.batches * least, rows[0] * (1 + law.relative if step.side == "upper" else 1 - law.relative)
    total = label + rows[1:].sum(axis=0) / np.maximum(rows[0], UNDERFLOW)
    unsure = 2 * law.relative * (1 - label / total)  # of the ratio: there is none above
    loss, p = np.log(total / step.batches), q * total / step.batches * (1 - unsure)
    shift = unsure + 4 * EPS * (4 + np.abs(loss) + (2 * REACH + 3 / step.sigma) / step.sigma)
    seen = np.minimum(p, q) > UNDERFLOW
    return ListedOutcomes(loss[seen], p[seen], q[seen], shift[seen], 8 * EPS)


def _term(step: AllocationStep) -> tuple[FloatArray, FloatArray]:
    """Points and masses of a term: its cells, split onto their ends or merged."""
    sigma, (node, weight) = step.sigma, np.polynomial.legendre.leggauss(3)
    first, last = -math.ceil(REACH / _CELL), math.ceil((1 / sigma + REACH) / _CELL)
    edge: FloatArray = np.arange(first, last + 1, dtype=np.float64) * _CELL
    place: FloatArray = (node + 1) / 2 * _CELL
    bell = np.exp(-(edge[:-1] ** 2) / 2) / math.sqrt(2 * math.pi)  # edges have 17 bits: their squares are exact
    mass = bell[:, None] * np.exp(-np.multiply.outer(edge[:-1], place) - place**2 / 2) * (weight * _CELL / 2)
    if step.side == "upper":
        up = np.expm1(place / sigma) / math.expm1(_CELL / sigma)
        return _ratio(sigma, edge), np.append(mass @ (1 - up), 0.0) + np.append(0.0, mass @ up)
    q, p = mass.sum(axis=1), (mass * _ratio(sigma, edge[:-1, None] + place)).sum(axis=1)
    q[0], p[0] = q[0] + ndtr(edge[0]), p[0] + ndtr(edge[0] - 1 / sigma)
    return p / q, q


def _ratio(sigma: float, u: FloatArray) -> FloatArray:
    """Y at u."""
    return np.asarray(np.exp((u - 1 / (2 * sigma)) / sigma))


def log_moments(sigma: float, batches: int, orders: FloatArray) -> FloatArray:
    """Return upper bounds on log E S^order under "out", for orders above 1 or below 0 (all on one side), shape (k,)."""
    step = AllocationStep(sigma, batches)
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


def _whole_moments(step: AllocationStep, most: int) -> FloatArray:
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

    step: AllocationStep
    p: float

    def log_bound(self) -> float:
        """Return an upper bound on its logarithm; ∞ where the sum would be too long."""
        p, t = self.p, self.step.batches
        h = 2 * math.pi / (_SLACK + 0.7 * p)  # θ = 1: cos(1)^{−p} < e^{0.62p}
        first = math.floor(-_SLACK / 2 / h)  # before, the integrand is at most its second-order term
        variance = math.expm1(1 / self.step.sigma**2) / t
        # g − e^{−λ} ≤ λ²·Var S/2 + λ³/6
        start = first * h
        terms = [math.log(variance / 2 / (p + 2)) + (p + 2) * start, (p + 3) * start - math.log(6 * (p + 3))]
        logs, sizes, many = np.array(terms), np.zeros(2), max(BLOCK // self._nodes.size, 1)
        for begin in range(first, math.floor(PRODUCT_EXPONENT / h), many):
            v = h * np.arange(begin, begin + many)
            lam = np.exp(v)
            logs = np.append(logs, p * v + self._log_difference(lam) + math.log(h))
            sizes = np.append(sizes, p * np.abs(v) + np.minimum(lam, _DIRECT * t))
            rest = self._log_rest(float(v[-1]))
            if rest < logs.max() - _SLACK:
                relative = _ROUNDING + 8 * EPS * float(sizes[logs > logs.max() - _SLACK].max())
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
        return np.asarray(h * np.arange(math.floor(-REACH / h), math.ceil((REACH + 1 / sigma) / h) + 1))

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
