"""A quantile by the exponential mechanism in whole numbers: exact in its law, charged as Gaussian DP.

The candidates are the points of a public lattice. Of N numbers, of which L are below a candidate t and G above, t is
d(t) = max(0, L − r, r − (N − G)) ranks away from rank r = pN + c, the p-quantile where the public c is 0. Adding or
removing a number moves d(t) by at most max(p, 1 − p), replacing one by at most 1, and N itself stays secret. Ranks are
counted in twentieths, rounded down, which then move by at most k = ⌈20·max(p, 1 − p)⌉ or by 20. Candidates are drawn
with weights w(d), whole numbers with w(d) ≤ r·w(d + 1), so every weight, and their sum, changes by a factor between 1/ρ
and ρ = r^k: for every event A, log-odds(P(A)) − log-odds(Q(A)) ≤ 2·log ρ (Dong, Durfee & Rogers 2020, bounded range).

As Gaussian DP. With g = Φ⁻¹∘σ, σ the logistic function, Φ⁻¹(P(A)) − Φ⁻¹(Q(A)) ≤ sup_x g(x + log ρ) − g(x − log ρ) =
2·g(log ρ), as g is odd and concave on x ≥ 0. Concave: (log g')' = 1 − 2σ + g·g' ≤ 0 says that z·Φ(z)·Φ(−z) is at most
φ(z)·(2Φ(z) − 1) at z = g(x); the difference of the two is 0 at 0 and at ∞ and has the derivative 2φ² − Φ(z)Φ(−z), which
is positive first and negative from one point on. Hence μ-GDP with ρ = Φ(μ/2)/Φ(−μ/2): at a total variation a, log ρ =
log((1 + a)/(1 − a)), twice the rate of the exponential mechanism that is charged as (log ρ)-DP.

Weights are integers of some 160 bits, drawn by comparing whole numbers: no floating point decides.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, floor, log

import numpy as np
from scipy.special import expit, ndtr, ndtri

from deniable import testing
from deniable._check import InputError, IntArray

_UNIT = 40  # bits behind the point of r, and of the least weight: rounding costs 2⁻⁴⁰ of each ratio at most
_REACH = 120 * log(2)  # beyond this many e-folds weights fall no further: all candidates there together are < 2⁻⁹⁰
_LARGEST = 2.0**64  # of ρ
_MOST_WEIGHTS = 1_000_000
_PARTS = 20  # of a rank: 0.05 and its multiples are met exactly
_SHARES = _PARTS * 2**16  # p is rounded to this many parts of 1


@dataclass(frozen=True)
class RankWeights:
    """The weights w(0) ≥ w(1) ≥ …, constant from the last one on, for a ``p``-quantile and a Gaussian DP budget ``mu``.

    ``mu`` is for adding or removing a number, ``replaced`` for replacing one.
    """

    mu: float
    p: float

    def __post_init__(self) -> None:
        if not self.rate / _PARTS * _MOST_WEIGHTS >= _REACH:
            raise InputError(f"mu={self.mu:g} is too small for choosing a quantile; ask for less or raise the target")

    @property
    def share(self) -> int:
        """p in parts of ``_SHARES``."""
        return round(self.p * _SHARES)

    @property
    def moved(self) -> int:
        """k: by how many parts of a rank one number that is added moves a candidate."""
        return -(-_PARTS * max(self.share, _SHARES - self.share) // _SHARES)

    @property
    def ratio(self) -> int:
        """r in units of 2⁻⁴⁰, rounded down; SciPy's normal probabilities are charged 1e-9."""
        odds = min(float(ndtr(self.mu / 2)) / max(float(ndtr(-self.mu / 2)), 1e-300) * (1 - 1e-9), _LARGEST)
        return floor(exp(log(odds) / self.moved) * (1 - 1e-12) * 2.0**_UNIT)

    @property
    def rate(self) -> float:
        """By how much the log weight falls a rank."""
        return _PARTS * (log(max(self.ratio, 1)) - _UNIT * log(2))

    @property
    def replaced(self) -> float:
        """The Gaussian DP parameter of replacing a number, rounded up; never above 2·``mu``."""
        return min(2 * float(ndtri(expit(self.rate))) * (1 + 1e-9), 2 * self.mu)

    def table(self) -> tuple[int, ...]:
        """Return w(0), w(1), … up to the last one, by parts of a rank."""
        return _table(self.ratio, ceil(_REACH / self.rate * _PARTS))


@lru_cache(maxsize=4)
def _table(ratio: int, steps: int) -> tuple[int, ...]:
    weights = [1 << _UNIT]
    for _ in range(steps):
        weights.append(weights[-1] * ratio >> _UNIT)
    return tuple(weights[::-1])


def rank_choice(ordered: IntArray, low: int, high: int, weights: RankWeights, shift: int = 0) -> int:
    """Draw a lattice point ``shift`` ranks from the quantile of ``ordered``, sorted numbers from ``low`` to ``high``.

    Guarantee: ``weights.mu``-Gaussian DP for adding or removing one of the numbers; all else is public.
    """
    rank = weights.share * len(ordered) + shift * _SHARES
    values, counts = np.unique(ordered, return_counts=True)
    upto = np.cumsum(counts)
    # in turn: the gap before the first value, the value, the gap behind it, …
    ends = np.concatenate([[low - 1], values, [high + 1]])
    starts, sizes = np.empty(2 * len(values) + 1, dtype=np.int64), np.ones(2 * len(values) + 1, dtype=np.int64)
    starts[0::2], starts[1::2] = ends[:-1] + 1, values
    sizes[0::2] = np.diff(ends) - 1
    below, at_most = np.zeros_like(starts), np.zeros_like(starts)
    below[2::2], at_most[1::2] = upto, upto
    below[1::2], at_most[2::2] = upto - counts, upto
    table = weights.table()
    away = np.maximum(np.maximum(below * _SHARES - rank, rank - at_most * _SHARES), 0)
    distance = np.minimum(away // (_SHARES // _PARTS), len(table) - 1)
    by_distance = np.bincount(distance, weights=sizes, minlength=len(table)).astype(np.int64)  # exact: below 2⁵³
    rest = _below(sum(w * int(size) for w, size in zip(table, by_distance, strict=True)))
    for d, size in enumerate(by_distance.tolist()):
        mass = table[d] * size
        if rest < mass:
            break
        rest -= mass
    place = rest // table[d]
    runs = np.flatnonzero(distance == d)
    passed = np.cumsum(sizes[runs])
    run = int(np.searchsorted(passed, place, side="right"))
    return int(starts[runs[run]]) + place - (int(passed[run - 1]) if run else 0)


def _below(limit: int) -> int:
    """Return a uniform whole number below ``limit``."""
    rng = testing.generator()
    if rng is None:
        return secrets.randbelow(limit)
    size = limit.bit_length()
    while True:
        drawn = int.from_bytes(rng.bytes(-(-size // 8)), "little") & ((1 << size) - 1)
        if drawn < limit:
            return drawn
