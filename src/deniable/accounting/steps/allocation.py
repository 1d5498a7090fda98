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
of u = x/σ, then sums of 12, of 144 and so on up to t terms live on uniform lattices, composed by FFT. Spreading n terms
over a lattice of step h adds n·h²/6 to their variance, and h grows with √n: of few terms at a time little. Outcomes are
parted by the size of their largest term, a class each, so that rare large sums get a wide lattice and the bulk a fine
one: classes of terms are independent, and given all classes the order of the terms carries over to the sum. Terms go
from the lattice of one class to the coarser one of the next.

Errors are told apart by what they do in a tail (:mod:`deniable.accounting.steps.law_errors`): *relative* ones, the
rounding of masses and of points; *placed* ones, whose sums are known about, as FFT rounding (L2 forward error,
Cauchy–Schwarz to L1 on parts of a lattice); and mass that is *lost* wherever it lies, under "out" and under "in"
(weighted by S): terms beyond the range (Gaussian tails), what wraps around a lattice (Chernoff's bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._search import bisect
from deniable.accounting.steps.allocation_moments import log_moments
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.convex_order import Atoms, above as larger, below, mean_of_first, merged
from deniable.accounting.steps.law_errors import LawErrors
from deniable.accounting.steps.outcomes import ListedOutcomes
from deniable.accounting.steps.sums import MASS, SUMMED, SumLaw, long_sum, power
from deniable.curves import Direction, Side

SHARPEST = 0.15  # noise multipliers below have terms beyond e^400
_LEFT, _RIGHT = 11.0, 9.3  # standard deviations kept: below and above under "out", above under "in"
_CELLS = 1 << 16  # of u
_APART = 8.0  # between the largest terms of neighbouring classes
_HALVINGS = 12  # of the interval that holds the limit of the first of them
_TRIMMED = 1e-21  # of an epoch: what its ends may weigh that are left out
_RELATIVE = 1e-10  # relative errors of an epoch that need not be told apart by where they stand
_FEW_POINTS, _LEVELS = 256, 12  # of the law that stands for the rest of a sum with an error, and of their places
_TOGETHER = 12  # sums that are added up in a stage, about
_POINTS = 1 << 16  # of a lattice: as many as a second allows; twice as many in a single stage
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)[0], np.array([5, 8, 5], dtype=np.longdouble) / 9
_ROOT = 2 * np.sqrt(2 * np.longdouble("3.14159265358979323846"))


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
        (size, _), *stages = _stages(self.batches)
        limits = self._limits(size)
        points = _POINTS * (1 if stages else 2)
        one = self._terms(side, limits)
        law = one if size == 1 else power([(one, size)], side, points)
        for count, rest in stages:
            size = count * size + rest
            least = self._least(size)
            joined = sum(math.log(limit) < least for limit in limits[:-1])
            one, law, limits = one.joined(joined), law.joined(joined), limits[joined:]
            law = power([(law, count), (one, rest)] if rest else [(law, count)], side, points)
        return law

    def _limits(self, count: int) -> list[float]:
        """Largest terms of the classes for sums of ``count`` terms.

        One limit is about the spread of the whole sum, or a small term, those below it of sums of ``count`` terms.
        """
        last, middle = self._top / self.sigma - 1 / (2 * self.sigma**2), self._least(self.batches)
        if middle > last - math.log(2):
            middle = last
        above_ = np.linspace(middle, last, math.ceil((last - middle) / math.log(_APART)) + 1)
        fewer = max(math.floor((middle - self._least(count)) / math.log(_APART)), 0)
        below_ = middle - math.log(_APART) * np.arange(fewer, 0, -1)
        return [float(limit) for limit in np.exp(np.concatenate([below_, above_]))]

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
                spread = larger(atoms, points)
            else:  # the first two cells are merged
                points = np.concatenate([[mean_of_first(atoms, 6)], points[2:]])
                spread = below(merged(atoms, 6, points[0]), points)
            classes.append(Atoms(points, spread.mass).positive())
            errors = errors.placed(points, spread.error, 1.0)
        beyond = float(ndtr(-_LEFT) + ndtr(-self._top)) * (1 + 1e-9)
        hidden = float(ndtr(1 / self.sigma - self._top) + ndtr(-_LEFT - 1 / self.sigma)) * (1 + 1e-9)
        missing = abs(float(sum((long_sum(part.mass) for part in classes), -np.longdouble(1))))
        bias = missing + beyond + float(errors.mass.sum()) + SUMMED
        rounding = LawErrors(relative=MASS, square=MASS**2, bias=min(bias, MASS))
        return SumLaw(classes, (errors + rounding).without(beyond, hidden), 1.0)

    def _term(self, u: NDArray[np.longdouble]) -> FloatArray:
        """Y at u: a double that is rounded once."""
        found: FloatArray = np.exp((u - 1 / (2 * np.longdouble(self.sigma))) / self.sigma).astype(np.float64)
        return found


@dataclass(frozen=True)
class AllocationStep(Step):
    """One epoch as a step: the law of log S, from above or from below."""

    sigma: float
    batches: int
    side: Side = "upper"
    tails: bool = False

    def on(self, side: Side) -> AllocationStep:
        return replace(self, side=side)

    def for_tails(self) -> AllocationStep:
        return replace(self, tails=True)

    def pieces(self) -> tuple[ListedOutcomes]:
        return (_epoch(self).outcomes,)

    @property
    def lost(self) -> tuple[float, float]:
        """What is not among outcomes, and relative errors in the mean square if they are not those of outcomes."""
        outcomes, errors = _epoch(self)
        found = errors.in_worlds(self.batches)
        if outcomes.relative < errors.relative:
            log_q, loss = np.log(outcomes.q), outcomes.loss
            found = (
                found[0] + errors.rounded(log_q + loss, loss, found[0]),
                found[1] + errors.rounded(log_q, 0 * loss, found[1]),
            )
        return found

    def excess(self, order: FloatArray, log_moment: FloatArray, direction: Direction) -> tuple[FloatArray, float]:
        """Of errors by their place.

        An error of mass α at a part X of the sum with mean m, m + low ≤ X ≤ m + high, R the rest: every lattice that
        comes later is smaller in convex order, and R at most that of true terms, so that a mean of f(S) is too large by
        at most that of f((R + X)/t). *Rising functions*, at most s^c: R + m is smaller than tS in convex order, and
        (E((R + X)/t)^c)^{1/c} ≤ (E S^c)^{1/c} + high⁺/t (Minkowski). *Falling ones*, at most s^{−b}, b = c − 1: R + X
        is at least R, and (R/t)^{−b} is (t/n)^b times that power of a mean of n terms, less in mean the more.
        What stands at the whole sum is too much only at outcomes, none below the least. Errors of two parts at once go
        beside those that are lost.
        """
        outcomes, errors = _epoch(self)
        if outcomes.relative < errors.relative:
            return np.full(order.shape, np.inf), 0.0
        t, worlds = self.batches, errors.in_worlds(self.batches)
        twice = 4 * max(worlds) ** 2
        if direction == "add":
            away = np.maximum(errors.high, 0.0) / t
            powers = order[:, None] * np.log1p(away * np.exp(-log_moment / order)[:, None])
            return np.exp(powers) @ errors.mass, errors.moved / t + twice
        power, whole = order - 1, errors.mean > t - 0.5
        least = np.maximum((errors.mean + errors.low)[whole] / t, math.exp(float(outcomes.loss[0]) - outcomes.shift))
        found = np.exp(-power[:, None] * np.log(least) - log_moment[:, None]) @ errors.mass[whole]
        if not whole.all():
            others = t - np.rint(errors.mean[~whole])
            log_rest = np.zeros(order.shape)
            log_rest[power > 0] = log_moments(self.sigma, int(others.min()), -power[power > 0])
            missing = np.exp(np.multiply.outer(power, np.log(t / others))) @ errors.mass[~whole]
            found += np.exp(log_rest - log_moment) * missing
        return found, errors.lost + twice

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


class _Epoch(NamedTuple):
    """Outcomes of an epoch, and what is wrong with its law. Of a mass that errs by dm at S, P errs by S·dm."""

    outcomes: ListedOutcomes
    errors: LawErrors


@lru_cache(maxsize=8)
def _epoch(step: AllocationStep) -> _Epoch:
    if step.tails:
        known = _epoch(replace(step, tails=False))
        rounding = known.errors.relative + 8 * EPS + Allocation(step.sigma, step.batches).shift
        return known._replace(outcomes=known.outcomes._replace(relative=rounding))
    law = Allocation(step.sigma, step.batches)
    sums = law.above if step.side == "upper" else law.below
    found = sums.up_to(len(sums.classes))
    mass, moment = np.cumsum(found.mass), np.cumsum((found.mass * found.point)[::-1])[::-1]
    first, last = np.searchsorted(mass, _TRIMMED * mass[-1]), np.searchsorted(-moment, -_TRIMMED * moment[0])
    cut = np.r_[0:first, last : mass.size]
    errors = sums.errors.without(float(found.mass[cut].sum()), float(found.point[cut] @ found.mass[cut]))
    q, ratio = found.mass[first:last], found.point[first:last] / step.batches
    if step.side == "upper":
        (q, ratio), errors = _with_errors(Atoms(ratio, q), errors, step.batches)
    loss = np.log(ratio)
    shift = law.shift + 4 * EPS * float(np.max(np.abs(loss)))
    relative = errors.relative if errors.relative < _RELATIVE else 0.0
    return _Epoch(ListedOutcomes(loss, q * ratio, q, shift, relative + 8 * EPS + law.shift), errors)


def _with_errors(law: Atoms, errors: LawErrors, batches: int) -> tuple[tuple[FloatArray, FloatArray], LawErrors]:
    """Masses and points of a law and of positive errors of known place, which makes it larger for either order.

    An error of mass α at X ≤ m + d, X a part of the sum with mean m, R the rest: the mean of a convex function that
    rises is at most α times its mean at tS + d, as m + R is smaller than X + R in convex order; that of one that falls,
    of a lower end d. Errors of two parts at once are charged wherever they stand.
    """
    few = larger(law, np.geomspace(law.point[0], law.point[-1], _FEW_POINTS)).mass
    nodes = np.geomspace(law.point[0], law.point[-1], _FEW_POINTS)
    masses, points, below = [law.mass], [law.point], 0.0
    for ends, sign in ((errors.high, 1.0), (errors.low, -1.0)):
        away = sign * ends / batches
        levels = np.unique(np.quantile(away, np.linspace(0.0, 1.0, _LEVELS)))
        mass = np.bincount(np.searchsorted(levels, away), errors.mass, levels.size) * (1 + 1e-9)
        point = np.add.outer(sign * levels, nodes).ravel()
        weight = np.multiply.outer(mass, few).ravel()
        inside = point > law.point[0] / 2
        below += float(weight[~inside].sum())
        masses.append(weight[inside])
        points.append(point[inside])
    twice = 4 * max(errors.in_worlds(batches)) ** 2
    none = np.zeros(0)
    left = replace(errors, mass=none, low=none, high=none, mean=none)
    left = left.without(below + twice, (below * law.point[0] / 2 + twice) * batches)
    return (np.concatenate(masses), np.concatenate(points)), left


def _stages(batches: int) -> list[tuple[int, int]]:
    """How terms are added up: sums of as many terms as the first entry says; then so many of them, and single terms.

    A stage spreads every sum that it adds up over its lattice: of few, what that does stays small.
    """
    if batches < 2 * _TOGETHER:
        return [(batches, 0)]
    near = range(_TOGETHER // 2 + 1, _TOGETHER + _TOGETHER // 2 + 1)
    count = min(near, key=lambda m: abs(m - _TOGETHER) + 2 * (batches % m))
    return [*_stages(batches // count), (count, batches % count)]
