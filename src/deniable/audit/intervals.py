"""Exact confidence limits for what an attack reaches, from independent scores of members and nonmembers.

The idea behind every lower limit here. Let Y₍ₖ₎ be the k-th largest of n nonmember scores. The rule "accuse above
Y₍ₖ₎" has a false positive rate U that is Beta(k, n−k+1) whatever the scores are, and given U it accuses
Binomial(m, R(U)) of the m members, where R is the attack's ROC. If R lies below a ceiling g, then

    P(at least x accused) ≤ E_U P(Binomial(m, g(U)) ≥ x),

with equality for R = g. This is an exact p-value against the ceiling: it accounts for the uncertainty of both rates
at once and needs no grid over nuisance parameters. A lower confidence limit is the largest member of a growing family
of ceilings that is rejected. The index k never depends on the scores that are tested.

The families of ROC ceilings are the claims that scores can contradict: each grows with one parameter.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, betaln, ndtr, ndtri, xlog1py, xlogy

from deniable._check import FloatArray, IntArray
from deniable._floats import LEAST
from deniable._notebook import Textual
from deniable._search import false_position
from deniable._shown import shown
from deniable._tails import beta_quantile, binomial_above, binomial_limits


class Family(ABC):
    """ROC ceilings g(u; value) that grow with ``value``; hashable, so that limits can be cached."""

    largest: ClassVar[float] = 64.0  # largest value searched

    @property
    def kink(self) -> float | None:
        """A false positive rate at which the ceiling is not smooth."""
        return None

    @abstractmethod
    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the largest true positive rate at each ``fpr``."""


class Promise(Family):
    """A family that a mechanism can promise."""

    @abstractmethod
    def explaining(self, advantage: float) -> float:
        """Return the smallest value that allows ``advantage``, below 1: right decisions count against it, too."""


@dataclass(frozen=True)
class Shift(Promise):
    """Advantage at most ``value``: TPR ≤ FPR + value."""

    largest = 1.0

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return min(FPR + value, 1)."""
        return np.asarray(np.minimum(1.0, fpr + value), dtype=np.float64)

    def through(self, fpr: FloatArray, tpr: FloatArray) -> FloatArray:
        """Return the value whose ceiling passes through each point (0 below the diagonal), up to rounding."""
        return np.clip(tpr - fpr, 0.0, 1.0)

    def explaining(self, advantage: float) -> float:
        """Return ``advantage``."""
        return advantage


@dataclass(frozen=True)
class EpsilonDelta(Promise):
    """(``value``, delta)-DP: TPR ≤ min(δ + e^ε·FPR, 1 − e^{−ε}(1 − δ − FPR)) (Kairouz, Oh & Viswanath 2015)."""

    delta: float

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the trade-off curve of (value, delta)-DP."""
        rising = self.delta + np.exp(value) * fpr
        falling = 1 - np.exp(-value) * np.maximum(1 - self.delta - fpr, 0.0)
        found: FloatArray = np.minimum(np.minimum(rising, falling), 1.0)
        return found

    def through(self, fpr: FloatArray, tpr: FloatArray) -> FloatArray:
        """Return the ε whose ceiling passes through each point (0 below that of ε = 0), up to rounding."""
        with np.errstate(divide="ignore"):
            rising = np.log(np.maximum(tpr - self.delta, 0.0) / fpr)
            falling = np.log(np.maximum(1 - self.delta - fpr, 0.0) / (1 - tpr))
        return np.clip(np.maximum(rising, falling), 0.0, self.largest)

    def explaining(self, advantage: float) -> float:
        """Return the ε with (e^ε − 1 + 2δ)/(e^ε + 1) = ``advantage``, or 0 (Humphries et al. 2023)."""
        if advantage <= self.delta:
            return 0.0
        return math.log((1 + advantage - 2 * self.delta) / (1 - advantage))


@dataclass(frozen=True)
class Gaussian(Promise):
    """``value``-GDP: TPR ≤ Φ(Φ⁻¹(FPR) + μ) (Dong, Roth & Su 2022)."""

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the ROC of N(0, 1) against N(value, 1)."""
        return np.asarray(ndtr(ndtri(fpr) + value), dtype=np.float64)

    def explaining(self, advantage: float) -> float:
        """Return the μ with 2Φ(μ/2) − 1 = ``advantage``."""
        return 2 * float(ndtri((1 + advantage) / 2))


@dataclass(frozen=True)
class Tangent(Family):
    """Concave ROCs with TPR = ``value`` at ``fpr`` whose tangent there has slope in [flat, steep]·value/fpr.

    Each lies below its tangent, hence below the line that falls with the flattest slope to the left of ``fpr`` and
    rises with the steepest to the right.
    """

    fpr: float
    flat: float
    steep: float

    largest = 1.0

    @property
    def kink(self) -> float:
        """The false positive rate at which the line is bent."""
        return self.fpr

    def rank(self, n: int) -> int:
        """Return the rank k to test, at or left of the bend: the steeper the tangents, the lower they are there."""
        # any rank is valid: the constants only decide how narrow the limit is
        shift = min(0.4, 2 * float(self.steep**0.7) / math.sqrt(n * self.fpr))
        return min(n, max(1, round(n * self.fpr * (1 - shift))))

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the bent line, capped at 1."""
        distance = fpr / self.fpr - 1
        found: FloatArray = np.minimum(1.0, value * (1 + np.where(distance < 0, self.flat, self.steep) * distance))
        return found


Sides = Literal["two-sided", "lower"]

_LEGENDRE = np.polynomial.legendre.leggauss(16)
_TAIL = 1e-9  # share of the permitted error that is charged for the upper tail left out of an integral
_RARE_RANKS, _EVEN_RANKS = 200, 1000  # numbers of ranks examined: spaced evenly in their logarithm, and evenly
_SHARPEST_STEP = 400.0  # m/n up to which nodes become denser; beyond it, bounds become a little wider
_LOWER_TAIL = 1e-3  # probability below the first node; the integrand is at most its value there


@dataclass(frozen=True)
class Interval(Textual):
    """A confidence interval: ``low`` ≤ the quantity ≤ ``high`` with probability at least ``confidence``.

    Attributes
    ----------
    low, high
        The limits. A one-sided interval keeps the trivial limit on its other side.
    estimate
        The sample's value, without a guarantee.
    of
        The quantity in words.
    sides
        "two-sided", or "lower" if no claim is made about the upper side.
    resolvable
        False where the sample says nothing about the quantity; the limits are then the trivial ones.

    Examples
    --------
    See ``audit_scores``.
    """

    low: float
    high: float
    estimate: float
    of: str
    confidence: float
    sides: Sides = "two-sided"
    method: str = "exact"
    resolvable: bool = True

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def _text(self) -> str:
        if not self.resolvable:
            return f"{self.of}: not resolvable with this sample"
        if self.low == self.high:
            return f"{self.of}: {self.estimate:.4g}"
        low, high = shown(self.low, "number", "lower"), shown(self.high, "number", "upper")
        claim = {
            "two-sided": f"{self.estimate:.4g}, between {low} and {high}",
            "lower": f"{self.estimate:.4g}, at least {low}",
        }[self.sides]
        return f"{self.of}: {claim} ({100 * self.confidence:g} % {self.sides})"


@dataclass(frozen=True, eq=False)
class Ranking:
    """All that the limits need of two samples: how many of ``m`` members lie above each of ``n`` nonmembers.

    ``above[k-1]`` counts the member scores above the k-th largest nonmember score. Equal scores are put in random
    order, which gives the ROC of an attacker who breaks ties at random.
    """

    above: IntArray
    m: int

    @property
    def n(self) -> int:
        """Number of nonmembers."""
        return len(self.above)

    @classmethod
    def of(cls, member: FloatArray, nonmember: FloatArray, rng: np.random.Generator) -> Ranking:
        """Rank two samples of scores; larger means "more likely a member"."""
        scores = np.concatenate([member, nonmember])
        order = np.lexsort((rng.random(len(scores)), scores))[::-1]
        is_member = order < len(member)
        return cls(np.cumsum(is_member)[~is_member].astype(np.int64), len(member))

    def perfect(self) -> Ranking:
        """Return the ranking of as many scores in which every member lies above all others."""
        return Ranking(np.full(self.n, self.m, dtype=np.int64), self.m)

    def hits(self, k: int) -> int:
        """Return the number of members above the k-th largest nonmember score."""
        return int(self.above[k - 1])

    def largest_lead(self) -> int:
        """Largest surplus of accused members over accused nonmembers at any threshold."""
        return max(0, int(np.max(self.above - np.arange(self.n))))

    def lower_limit(self, family: Family, k: int, error: float) -> float:
        """Return the lower confidence limit of the family's parameter from the k-th threshold."""
        return lower_limit(family, k, self.n, self.hits(k), self.m, error)

    def tpr(self, fpr: float) -> float:
        """Empirical true positive rate at an empirical false positive rate of at most ``fpr``."""
        accused = int(np.floor(fpr * self.n + 1e-9))
        return float(self.above[accused] / self.m) if accused < self.n else 1.0


def p_value(
    ceiling: Callable[[FloatArray], FloatArray],
    k: int,
    n: int,
    hits: ArrayLike,
    m: int,
    *,
    kink: float | None,
    error: float,
) -> FloatArray:
    """Return P(at least ``hits`` of m members accused) if the ROC were ``ceiling`` (module docstring), for each hits.

    ``error`` is the size at which the p-value will be judged; an upper tail of 1e-9 of it is charged in full.
    """
    x = np.asarray(hits, dtype=np.float64)[..., None]
    fpr, weight = _beta_rule(k, n, m, kink, error * _TAIL)
    tail = binomial_above(x - 1, m, ceiling(fpr))
    return np.asarray(np.minimum(1.0, tail @ weight + error * _TAIL))


@lru_cache(maxsize=1 << 16)
def lower_limit(family: Family, k: int, n: int, hits: int, m: int, error: float) -> float:
    """Return the largest value of ``family`` that ``hits`` contradict at level ``error`` (0 if none), rounded down."""

    def excess(value: float) -> float:
        return above(
            float(p_value(lambda u: family.ceiling(u, value), k, n, hits, m, kink=family.kink, error=error)), error
        )

    return false_position(excess, 0.0, family.largest, relative=1e-7)[0]


def above(p: float, error: float) -> float:
    """Return how far a p-value lies above ``error``, in standard deviations; ≤ 0 if, and only if, it does not."""
    far = float(ndtri(p) - ndtri(error))
    return max(far, LEAST) if p > error else min(far, 0.0)


def tpr_lower(ranking: Ranking, fpr: float, error: float) -> float:
    """Return a lower confidence limit of the attack's TPR at FPR ``fpr``, valid with probability 1 − ``error``.

    The quantity is the largest TPR of any rule that thresholds the score, at random if need be, at that FPR: the
    concave hull of the ROC (the ROC itself wherever a higher score speaks for membership). The hull lies below its
    tangent at ``fpr``; the tangent's slope is unknown, so every slope must be rejected, each by its own test at the
    full level (an intersection-union test needs no correction). Steep tangents are tested further to the left,
    where they are low.
    """
    return min(ranking.lower_limit(family, family.rank(ranking.n), error) for family in _tangents(fpr))


@lru_cache(maxsize=64)
def _tangents(fpr: float) -> tuple[Tangent, ...]:
    """All slopes that a concave ROC can have at ``fpr``, in eight parts."""
    edges = [float(edge) for edge in np.linspace(0, 1, 9) ** 1.5]
    return tuple(Tangent(fpr, flat, steep) for flat, steep in pairwise(edges))


def tpr_upper(ranking: Ranking, fpr: float, error: float) -> float:
    """Return an upper confidence limit of the attack's TPR at FPR ``fpr`` (the quantity of :func:`tpr_lower`).

    The hull at ``fpr`` is a chord of the ROC between two fixed, unknown false positive rates. Each is bounded at
    half the error by :func:`_pointwise_upper`; the hull of these limits bounds the chord.
    """
    left, high = _pointwise_upper(ranking, error / 2)
    if fpr >= left[-1]:
        return 1.0
    before, after = left <= fpr, left > fpr
    x0, y0 = left[before][:, None], high[before][:, None]
    x1, y1 = left[after], high[after]
    return float(np.max(y0 + (y1 - y0) * (fpr - x0) / (x1 - x0)))


def advantage_upper(ranking: Ranking, error: float) -> float:
    """Return an upper confidence limit of sup(TPR − FPR), from samples of any sizes: it sits at one fixed FPR."""
    left, high = _pointwise_upper(ranking, error)
    return float(np.clip(np.max(high - left), 0.0, 1.0))


def clopper_pearson(hits: int, trials: int, error: float) -> tuple[float, float]:
    """Return the exact binomial limits, each with one-sided ``error`` (Clopper & Pearson 1934)."""
    low, high = binomial_limits(hits, trials, error)
    return float(low), float(high)


def _pointwise_upper(ranking: Ranking, error: float) -> tuple[FloatArray, FloatArray]:
    """Upper limits of R(u), each valid on its own with probability 1 − error, as the left corners of a step function.

    With probability 1 − error/2 the k-th nonmember score has FPR at least a_k; then R(u) ≤ R(U₍ₖ₎) for u ≤ a_k,
    which Clopper–Pearson bounds with the other half. The last corner is (a_n, 1).
    """
    m = ranking.m
    ks, reach = _reach(ranking.n, error / 2)
    hits = ranking.above[ks - 1]
    high = np.where(hits < m, beta_quantile(hits + 1, np.maximum(m - hits, 1), error / 2, "upper"), 1.0)
    return np.concatenate([[0.0], reach]), np.concatenate([high, [1.0]])


@lru_cache(maxsize=256)
def _reach(n: int, error: float) -> tuple[IntArray, FloatArray]:
    """Return ranks k (all of them, or a bounded number) and lower limits of the FPR above the k-th nonmember."""
    coarse = np.concatenate([np.geomspace(1, n, _RARE_RANKS), np.linspace(1, n, _EVEN_RANKS)])
    few = n <= _RARE_RANKS + _EVEN_RANKS
    ks: IntArray = np.arange(1, n + 1, dtype=np.int64) if few else np.unique(np.rint(coarse).astype(np.int64))
    return ks, beta_quantile(ks, n - ks + 1, error, "lower")


@lru_cache(maxsize=4096)
def _beta_rule(k: int, n: int, m: int, kink: float | None, tail: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights that bound, for increasing functions, the integral against Beta(k, n−k+1) up to ``tail``.

    All mass below the lowest node is put on that node; a mass of ``tail`` above the highest is left out.
    """
    a, b = float(k), float(n - k + 1)
    low, high = float(betaincinv(a, b, _LOWER_TAIL)), 1 - float(betaincinv(b, a, tail))
    middle = float(np.clip(kink if kink is not None else a / (a + b), low, high))
    panels = 3 * int(np.ceil(np.sqrt(1 + min(m / n, _SHARPEST_STEP))))  # a large m makes the binomial tail a sharp step
    edges = np.concatenate([np.linspace(low, middle, panels + 1), np.linspace(middle, high, panels + 1)[1:]])
    node, gauss = _LEGENDRE
    half = np.diff(edges)[:, None] / 2
    u = ((edges[:-1] + edges[1:])[:, None] / 2 + half * node).ravel()
    density = np.exp(xlogy(a - 1, u) + xlog1py(b - 1, -u) - betaln(a, b))
    weight = density * (half * gauss).ravel()
    return np.append(u, low), np.append(weight, _LOWER_TAIL)


def as_interval(low: float, high: float, estimate: float, of: str, confidence: float, **fields: Any) -> Interval:
    """Build an :class:`Interval`; an estimate outside the limits is moved to the nearer one."""
    return Interval(low, high, float(np.clip(estimate, low, high)), of, confidence, **fields)
