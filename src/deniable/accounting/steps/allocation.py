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

Here the law of S is bracketed in convex order (:mod:`deniable.accounting.steps.convex_order`): Y is cut into cells
of u = x/σ, then sums of m and of t terms live on uniform lattices, composed by FFT. Outcomes are parted by the size of
their largest term, a class each, so that rare large sums get a wide lattice and the bulk a fine one: classes of terms
are independent, and given all classes the order of the terms carries over to the sum.

Errors are told apart by what they do in a tail (:mod:`deniable.accounting.steps.law_errors`): *relative* ones, the
rounding of masses and of points; *placed* ones, whose sums are known about, as FFT rounding (L2 forward error,
Cauchy–Schwarz to L1 on parts of a lattice); and mass that is *lost* wherever it lies, under "out" and under "in"
(weighted by S): terms beyond the range (Gaussian tails), what wraps around a lattice (Chernoff's bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._search import bisect
from deniable.accounting.steps.convex_order import Atoms, above, below, mean_of_first, merged
from deniable.accounting.steps.law_errors import LawErrors
from deniable.accounting.steps.sums import MASS, SUMMED, SumLaw, long_sum, power
from deniable.curves import Side

SHARPEST = 0.15  # noise multipliers below have terms beyond e^400
_LEFT, _RIGHT = 11.0, 9.3  # standard deviations kept: below and above under "out", above under "in"
_CELLS = 1 << 16  # of u
_APART = 8.0  # between the largest terms of neighbouring classes
_HALVINGS = 12  # of the interval that holds the limit of the first of them
_STAGES = 48  # terms from which sums are made in two stages
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)[0], np.array([5, 8, 5], dtype=np.longdouble) / 9
_ROOT = 2 * np.sqrt(2 * np.longdouble("3.14159265358979323846"))


@dataclass(frozen=True)
class Allocation:
    """One epoch with noise ``sigma`` and ``batches`` batches; ``finer``: times as many points of its laws as usual."""

    sigma: float
    batches: int
    finer: int = 1

    @cached_property
    def above(self) -> SumLaw:
        """Law of Σ Y that is larger in convex order."""
        return self._sum("upper")

    @cached_property
    def below(self) -> SumLaw:
        """Law of Σ Y that is smaller in convex order."""
        return self._sum("lower")

    @property
    def shift(self) -> float:
        """Bound on the error of log S: points of three lattices, each wrong by a relative 8ε."""
        return 32 * EPS

    def _sum(self, side: Side) -> SumLaw:
        if self.batches < _STAGES:
            limits, _ = self._limits(self.batches)
            points = self.finer * _points(len(limits))
            one = self._terms(side, limits)
            return one if self.batches == 1 else power([(one, self.batches)], side, points)
        size = _block(self.batches)
        limits, joined = self._limits(size)
        points = self.finer * _points(len(limits))
        one = self._terms(side, limits)
        blocks, rest = divmod(self.batches, size)
        block = power([(one, size)], side, points)
        parts = [(block, blocks)] + ([(one, rest)] if rest else [])
        return power([(_coarser(part, joined), count) for part, count in parts], side, points)

    def _limits(self, count: int) -> tuple[list[float], int]:
        """Largest terms of the classes for sums of ``count`` terms, and how many are joined with the next in the end.

        One limit is about the spread of the whole sum, or a small term, those below it of sums of ``count`` terms.
        """
        last, middle = self._top / self.sigma - 1 / (2 * self.sigma**2), self._least(self.batches)
        if middle > last - math.log(2):
            middle = last
        above_ = np.linspace(middle, last, math.ceil((last - middle) / math.log(_APART)) + 1)
        least = self._least(count)
        joined = max(math.floor((middle - least) / math.log(_APART)), 0)
        below_ = middle - math.log(_APART) * np.arange(joined, 0, -1)
        return [float(limit) for limit in np.exp(np.concatenate([below_, above_]))], joined

    def _least(self, count: int) -> float:
        """Logarithm of the least limit of terms in a sum of ``count``: twice its spread, or a small term."""
        last, least = self._top / self.sigma - 1 / (2 * self.sigma**2), math.log(4.0) - 1 / (2 * self.sigma**2)

        def is_small(limit: float) -> bool:
            u = self.sigma * limit + 1 / (2 * self.sigma)
            scale = math.exp(1 / (2 * self.sigma**2)) * math.sqrt(ndtr(u - 2 / self.sigma))  # of terms below the limit
            return math.exp(limit) < 2 * math.sqrt(count) * scale

        if is_small(least):
            least = float(bisect(lambda limit: is_small(float(limit)), least, last, halvings=_HALVINGS)[1])
        return min(least, last)

    @property
    def _top(self) -> float:
        return max(1 / self.sigma + _RIGHT, _LEFT)

    def _terms(self, side: Side, limits: list[float]) -> SumLaw:
        """The law of Y on its own points: cells of u, split onto their ends or merged."""
        ends = [-_LEFT] + [self.sigma * math.log(limit) + 1 / (2 * self.sigma) for limit in limits]
        ends[-1] = self._top
        classes, errors = [], LawErrors()
        for low, high in pairwise(ends):
            count = max(int(_CELLS * (high - low) / (ends[-1] - ends[0])), 1 << 12)
            edges = np.linspace(low, high, count + 1)
            # three Gauss–Legendre atoms stand for a cell: mass, mean and gap are those of the cell but for 1e-16
            middle = (edges[1:] + edges[:-1]).astype(np.longdouble) / 2
            u = np.add.outer(middle, (high - low) / count / 2 * _NODES).ravel()
            weight = (np.longdouble(high) - low) / count / _ROOT * np.tile(_WEIGHTS, count)  # so that totals are right
            mass = (np.exp(-(u**2) / 2) * weight).astype(np.float64)
            atoms, points = Atoms(self._term(u), mass), self._term(edges.astype(np.longdouble))
            if side == "upper":
                spread = above(atoms, points)
            else:  # the first two cells are merged
                points = np.concatenate([[mean_of_first(atoms, 6)], points[2:]])
                spread = below(merged(atoms, 6, points[0]), points)
            classes.append(Atoms(points, spread.mass).positive())
            errors = errors.placed(points, spread.error, 1.0)
        beyond = float(ndtr(-_LEFT) + ndtr(-self._top)) * (1 + 1e-9)
        hidden = float(ndtr(1 / self.sigma - self._top) + ndtr(-_LEFT - 1 / self.sigma)) * (1 + 1e-9)
        missing = abs(float(sum((long_sum(part.mass) for part in classes), -np.longdouble(1))))
        bias = missing + beyond + float(errors.mass.sum()) + SUMMED
        rounding = LawErrors(relative=MASS, even=MASS, bias=min(bias, MASS))
        return SumLaw(classes, (errors + rounding).without(beyond, hidden), 1.0)

    def _term(self, u: NDArray[np.longdouble]) -> FloatArray:
        """Y at u: a double that is rounded once."""
        found: FloatArray = np.exp((u - 1 / (2 * np.longdouble(self.sigma))) / self.sigma).astype(np.float64)
        return found


def _points(classes: int) -> int:
    """Points of a lattice: as many as a second allows."""
    return 1 << (17 if classes <= 5 else 16 if classes <= 24 else 15)


def _block(batches: int) -> int:
    """Size of the blocks in which terms are summed first: about the square root, few terms left over."""
    root = math.isqrt(batches)
    return min(range(max(root // 2, 2), 2 * root + 1), key=lambda m: m + batches // m + batches % m)


def _coarser(sums: SumLaw, first: int) -> SumLaw:
    """Join the classes up to one."""
    return sums._replace(classes=[sums.up_to(first), *sums.classes[first + 1 :]])
