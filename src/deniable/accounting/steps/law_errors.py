"""What may be wrong with the law of a likelihood ratio S that is a mean of t independent terms: by where it stands.

Q sees an error dm of the law at S as it is, P as S·dm: both are told apart. An error with mass α that stands on a part
X of the sum tS = X + R with mean m, R the independent rest, where m + low ≤ X ≤ m + high, has the place low to high: in
P it is α·(1 + high/t) at most.

Relative errors add up over the terms. In the mean square they nearly cancel: let the mass of one term be wrong by
factors 1 + δ with E δ² ≤ v and |E δ| ≤ b. Then of n independent terms

    E(Π(1 + δ_i) − 1)² ≤ ((1 + b)ⁿ − 1)² + (1 + b)²ⁿ·((1 + v)ⁿ − 1),

as (1 + 2b + v)ⁿ − 2(1 ± b)ⁿ + 1 with 1 + 2b + v ≤ (1 + b)² + v: about (n·b)² + n·v instead of n²·v, and b is measured.
Outcomes of equal sums are joined, which averages their factors: a mean square does not grow (Jensen). Of errors made
one after the other the norms √v add up, but for products of two, which are below a share _FEW of them. Weighted by S^c
the error is E S^c·|δ| ≤ √v·√(E S^{2c}) (Cauchy–Schwarz) where S^c is not too large: of many terms far less than the
sum of the relative errors. c = 0 and c = 1 are the L1 errors in the worlds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from deniable._check import FloatArray
from deniable._floats import MOST_EXPONENT

_CUTS = 256  # of a law, where the one way of bounding relative errors may pass into the other
_PARTS = 32  # of a lattice, in which errors are placed
_FEW = 1e-3  # of a law: where errors are larger nothing is claimed
_PRODUCTS = 1.01  # errors of several terms at once, where the whole error is below _FEW


def _none() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class LawErrors:
    """Errors of the law of a sum: relative ones; placed ones; and L1 errors wherever they lie.

    ``mass``, ``low``, ``high``, ``mean``: placed errors, between which deviations from the mean of their part of the
    sum they stand, and that mean. ``lost``, ``moved``: of the others, in mass and in mass times sum. ``square``: the
    mean square of the relative ones. ``bias``: what they do to the total mass.
    """

    relative: float = 0.0
    lost: float = 0.0
    moved: float = 0.0
    mass: FloatArray = field(default_factory=_none)
    low: FloatArray = field(default_factory=_none)
    high: FloatArray = field(default_factory=_none)
    mean: FloatArray = field(default_factory=_none)
    square: float = 0.0
    bias: float = 0.0

    @classmethod
    def rounding(cls, relative: float) -> LawErrors:
        """Relative errors of which nothing else is known."""
        return cls(relative, square=relative**2, bias=relative)

    @classmethod
    def of_places(cls, mass: FloatArray, low: FloatArray, high: FloatArray, mean: float) -> LawErrors:
        """Errors between points of a part of the sum with that mean."""
        return cls(mass=mass, low=low - mean, high=high - mean, mean=np.full(mass.shape, mean))

    def __add__(self, other: LawErrors) -> LawErrors:
        return LawErrors(
            self.relative + other.relative,
            self.lost + other.lost,
            self.moved + other.moved,
            np.concatenate([self.mass, other.mass]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.mean, other.mean]),
            (math.sqrt(self.square) + math.sqrt(other.square)) ** 2,
            self.bias + other.bias + self.bias * other.bias,
        )

    @property
    def total(self) -> float:
        """All errors in mass, as if relative ones were of mass 1."""
        return self.relative + self.lost + float(self.mass.sum())

    def of_sum(self, count: int, mean: float) -> LawErrors:
        """Errors of a sum with that mean of which this many parts have these."""
        moved = count * (self.moved + self.lost * mean)
        return LawErrors(
            count * self.relative, count * self.lost, moved, count * self.mass, self.low, self.high, self.mean,
            square_error(count, self.square, self.bias), bias_of(count, self.bias),
        )  # fmt: skip

    def without(self, lost: float, moved: float) -> LawErrors:
        """Add an L1 error of any place."""
        return replace(self, lost=self.lost + lost, moved=self.moved + moved)

    def placed(self, point: FloatArray, error: FloatArray, mean: float) -> LawErrors:
        """Add an error at every point of a law with this mean."""
        if not error.any():
            return self
        cuts = np.unique(np.linspace(0, point.size, _PARTS + 1).astype(np.intp))
        mass, low, high = np.add.reduceat(error, cuts[:-1]), point[cuts[:-1]], point[cuts[1:] - 1]
        some = mass > 0
        return self + LawErrors.of_places(mass[some], low[some], high[some], mean)

    def spread(self, point: FloatArray, error: float, points: int, mean: float) -> LawErrors:
        """Add an error whose L2 norm is known, ``error``/√``points``, on increasing points of a lattice.

        By the inequality of Cauchy and Schwarz a share of n points has at most √(n/points) of ``error`` in L1.
        """
        cuts = np.unique(np.linspace(0, point.size, _PARTS + 1).astype(np.intp))
        mass = error * np.sqrt(np.diff(cuts) / points)
        return self + LawErrors.of_places(mass, point[cuts[:-1]], point[cuts[1:] - 1], mean)

    def in_worlds(self, terms: int) -> tuple[float, float]:
        """L1 bounds of what is placed or lost, in P and in Q."""
        inside = float(self.mass @ np.maximum(1 + self.high / terms, 0.0))
        found = self.moved / terms + inside, self.lost + float(self.mass.sum())
        grown = _PRODUCTS if max(found) < _FEW else math.inf
        return found[0] * grown, found[1] * grown

    def rounded(self, log_weight: FloatArray, log_growth: FloatArray, share: float) -> float:
        """Relative errors as a share of the law weighted by S^c, whose points are sorted.

        ``log_weight`` is the logarithm of that law, ``log_growth`` that of S^c over its size e^{K(c)}, and ``share``
        bounds what is placed in it. Where S^c is at most a, Cauchy and Schwarz: with its own placed errors
        E(S^{2c}; S^c ≤ a) is at most the sum over the points and a·e^{K(c)}·``share``. Elsewhere errors are relative.
        """
        if not self.relative + share <= _FEW:
            return self.relative
        if log_growth[0] > log_growth[-1]:
            log_weight, log_growth = log_weight[::-1], log_growth[::-1]
        cuts = np.unique(np.linspace(0, log_weight.size, _CUTS, endpoint=False).astype(np.intp))
        with np.errstate(over="ignore", under="ignore"):
            weight = np.exp(log_weight)
            square = np.cumsum(np.add.reduceat(weight * np.exp(log_growth), cuts))
            beyond = np.maximum(np.cumsum(np.add.reduceat(weight, cuts)[::-1])[::-1], 0.0)
            square += np.exp(log_growth[np.append(cuts[1:], log_growth.size) - 1]) * share
        found = math.sqrt(self.square) * np.sqrt(square) + self.relative * (np.append(beyond[1:], 0.0) + share)
        return min(self.relative, _PRODUCTS * float(np.nanmin(np.where(np.isfinite(found), found, np.inf))))


def square_error(count: int, square: float, bias: float) -> float:
    """Mean square of the error of a sum of terms with such relative errors and such a bias of their total masses."""
    grown, many = count * math.log1p(bias), count * math.log1p(square)
    if not (grown < 1 and many < 1):
        return math.inf
    return (math.expm1(grown) ** 2 + math.exp(2 * grown) * math.expm1(many)) * (1 + 1e-9)


def bias_of(count: int, bias: float) -> float:
    """What a bias of the total masses of terms is for a sum of this many."""
    return math.expm1(min(count * math.log1p(bias), MOST_EXPONENT)) * (1 + 1e-12)
