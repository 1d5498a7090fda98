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

Errors are charged as mass left out, under "out" and under "in" (weighted by S), and as a shift of log S: terms beyond
the range (Gaussian tails), what wraps around a lattice (Chernoff's bound at a few points), FFT rounding (L2 forward
error, Cauchy–Schwarz to L1), rounding of masses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.convex_order import Atoms, above, below, merged
from deniable.accounting.steps.sums import MASS, SumLaw, power
from deniable.curves import Side

SHARPEST = 0.15  # noise multipliers below have terms beyond e^400
_LEFT, _RIGHT = 11.0, 7.5  # standard deviations kept: below under "out", above under "in"
_CELLS = 1 << 16  # of u
_APART = 8.0  # between the largest terms of neighbouring classes
_STAGES = 48  # terms from which sums are made in two stages
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


@dataclass(frozen=True)
class Allocation:
    """One epoch with noise ``sigma`` and ``batches`` batches."""

    sigma: float
    batches: int

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
            limits = self._limits(self.batches)
            points = _points(len(limits))
            one = self._terms(side, limits)
            return one if self.batches == 1 else power([(one, self.batches)], side, points)
        size = _block(self.batches)
        limits = self._limits(size)
        points = _points(len(limits))
        one = self._terms(side, limits)
        blocks, rest = divmod(self.batches, size)
        block = power([(one, size)], side, points)
        parts = [(block, blocks)] + ([(one, rest)] if rest else [])
        least = _first_class(self._scale(np.array(limits)), limits, self.batches)
        return power([(_coarser(part, least), count) for part, count in parts], side, points)

    def _scale(self, limit: FloatArray) -> FloatArray:
        """Root mean square of Y·1{Y ≤ limit}."""
        u = self.sigma * np.log(limit) + 1 / (2 * self.sigma)
        found: FloatArray = np.exp(1 / (2 * self.sigma**2)) * np.sqrt(ndtr(u - 2 / self.sigma))
        return found

    def _limits(self, count: int) -> list[float]:
        """Largest terms of the classes: the first is about the spread of a sum of ``count`` terms, or a small term."""
        limits = [math.exp((2 * self._top / self.sigma - 1 / self.sigma**2) / 2)]
        median = math.exp(-1 / (2 * self.sigma**2))
        while True:
            limit = limits[0] / _APART
            if limit < 4 * median or limit < 2 * math.sqrt(count) * float(self._scale(np.array([limit]))[0]):
                return limits
            limits.insert(0, limit)

    @property
    def _top(self) -> float:
        return 1 / self.sigma + _RIGHT

    def _terms(self, side: Side, limits: list[float]) -> SumLaw:
        """The law of Y on its own points: cells of u, split onto their ends or merged."""
        ends = [-_LEFT] + [self.sigma * math.log(limit) + 1 / (2 * self.sigma) for limit in limits]
        ends[-1] = self._top
        classes, error, moment = [], 0.0, 0.0
        for low, high in pairwise(ends):
            count = max(int(_CELLS * (high - low) / (ends[-1] - ends[0])), 1 << 12)
            edges = np.linspace(low, high, count + 1)
            # three Gauss–Legendre atoms stand for a cell: mass, mean and gap are those of the cell but for 1e-16
            u = np.add.outer((edges[1:] + edges[:-1]) / 2, (high - low) / count / 2 * _NODES).ravel()
            weight = (high - low) / count / 2 / math.sqrt(2 * math.pi) * np.tile(_WEIGHTS, count)
            atoms, points = Atoms(self._term(u), np.exp(-(u**2) / 2) * weight), self._term(edges)
            if side == "upper":
                spread = above(atoms, points)
            else:  # the first two cells are merged
                mean = float(np.sum((atoms.point * atoms.mass)[:6]) / np.sum(atoms.mass[:6]))
                points = np.concatenate([[mean], points[2:]])
                spread = below(merged(atoms, 6, mean), points)
            classes.append(Atoms(points, spread.mass).positive())
            error, moment = error + spread.error, moment + spread.moment_error
        beyond = float(ndtr(-_LEFT) + ndtr(-self._top)) * (1 + 1e-9)
        hidden = float(ndtr(-_RIGHT) + ndtr(-_LEFT - 1 / self.sigma)) * (1 + 1e-9)
        return SumLaw(classes, error + beyond + MASS, moment + hidden + MASS, 1.0)

    def _term(self, u: FloatArray) -> FloatArray:
        found: FloatArray = np.exp((u - 1 / (2 * self.sigma)) / self.sigma)
        return found


def _points(classes: int) -> int:
    """Points of a lattice: as many as a second allows."""
    return 1 << (17 if classes <= 4 else 16 if classes <= 12 else 15)


def _block(batches: int) -> int:
    """Size of the blocks in which terms are summed first: about the square root, few terms left over."""
    root = math.isqrt(batches)
    return min(range(max(root // 2, 2), 2 * root + 1), key=lambda m: m + batches // m + batches % m)


def _first_class(scales: FloatArray, limits: list[float], count: int) -> int:
    """Last class whose terms are small beside the spread of a sum of ``count`` terms: lower ones are joined with it."""
    small = np.flatnonzero(np.array(limits[:-1]) < math.sqrt(count) * scales[:-1] * 2 * _APART)
    return int(small[-1]) if small.size else 0


def _coarser(sums: SumLaw, first: int) -> SumLaw:
    """Join the classes up to one."""
    return sums._replace(classes=[sums.up_to(first), *sums.classes[first + 1 :]])
