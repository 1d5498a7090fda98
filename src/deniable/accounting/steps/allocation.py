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
*Left out*, of t terms: in P those beyond 13 deviations above; in Q these, and above also those below −13, which below
belong to the first cell (1e-9 of them covers their rounding); and far less is lost to numbers below all doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.lattices import UNDERFLOW, Law, convolved, fitting, power, scales
from deniable.accounting.steps.allocation_moments import log_moments
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.outcomes import ListedOutcomes
from deniable.curves import Direction, Side

SHARPEST = 0.15  # noise multipliers below have terms beyond e^400
_REACH = 13.0  # standard deviations kept on either side, under both laws of a term
_CELL = 2.0**-11  # of u
_LOG_POINTS = 13  # log2 of the lattice points of a class
_LARGER, _NOT_ALL = 8.0, 0.999  # terms expected beyond the finest class of a sum: at most, and of all its terms


class SumLaw(Law):
    """Measures of sums by class: masses, below also their means above the labels, times mass."""

    rung = 2
    few = 2  # shares of splits are exact
    least = 0.0  # large sums weigh much in P: no end of a row is left out

    def nearest(self, e: int) -> bool:
        """Means are known: a label may be the point below."""
        return False

    def share(self, above: FloatArray, spacing: float) -> FloatArray:
        return above / spacing

    def moved_by(self, far: FloatArray, rows: FloatArray) -> FloatArray:
        return np.stack([rows[0], rows[1] - far * rows[0]])

    def times(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        mass = convolved(rows[0], others[0])
        if self.side == "upper":
            return mass[None]
        return np.stack([mass, convolved(rows[0], others[1]) + convolved(rows[1], others[0])])


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
        least = float(ndtr(-_REACH - 1 / self.sigma) + (1e-9 if self.side == "lower" else 1) * ndtr(-_REACH))
        return 2 * self.batches * float(ndtr(-_REACH)), 2 * self.batches * least

    @property
    def bounds_divergence(self) -> bool:
        return True

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        found, finite = np.full(order.shape, np.inf), np.isfinite(order)
        if finite.any():
            some = order[finite]
            moments = log_moments(self.sigma, self.batches, some if direction == "add" else 1 - some)
            found[finite] = moments / (some - 1) * (1 + 4 * EPS)
        return found


@lru_cache(maxsize=8)
def _epoch(step: AllocationStep) -> ListedOutcomes:
    law = SumLaw(step.side, 1.0, 1 << _LOG_POINTS, {}, True)
    point, mass = _term(step)
    least = float(point[0])  # labels count from there, so that none is at 0
    above, finest = point - least, math.frexp(least * _CELL / step.sigma)[1]
    table = scales(above, above, mass)

    def laid(count: int) -> tuple[int, float]:
        """The finest class of a sum, and about the mean of what it can hold."""
        size, mean = fitting([table], [count], min(_LARGER, _NOT_ALL * count)) or (above[-1], 0.0)
        return SumLaw.rung * (max(math.frexp(size)[1] - _LOG_POINTS, finest) // SumLaw.rung), mean

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
    law = power(law, step.batches, laid)
    x, _, rows = law.listed()
    label, q = x + step.batches * least, rows[0] * (1 + law.relative if step.side == "upper" else 1 - law.relative)
    total = label + rows[1:].sum(axis=0) / np.maximum(rows[0], UNDERFLOW)
    unsure = 2 * law.relative * (1 - label / total)  # of the ratio: there is none above
    loss, p = np.log(total / step.batches), q * total / step.batches * (1 - unsure)
    shift = unsure + 4 * EPS * (4 + np.abs(loss) + (2 * _REACH + 3 / step.sigma) / step.sigma)
    seen = np.minimum(p, q) > UNDERFLOW
    return ListedOutcomes(loss[seen], p[seen], q[seen], shift[seen], 8 * EPS)


def _term(step: AllocationStep) -> tuple[FloatArray, FloatArray]:
    """Points and masses of a term: its cells, split onto their ends or merged."""
    sigma, (node, weight) = step.sigma, np.polynomial.legendre.leggauss(3)
    first, last = -math.ceil(_REACH / _CELL), math.ceil((1 / sigma + _REACH) / _CELL)
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
