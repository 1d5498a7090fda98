"""Statistics whose law over random training parts is known: counts, tables and quantiles. No runs, often no noise.

Let S be a uniform k-subset of n records and T(S) the statistic. For record i, P(T = t, i ∈ S) = P(T = t)·w_i(t) with
w_i(t) = P(i ∈ S | T = t), which symmetry gives:

* counts: K of the n records count, c of them are in S. P(c) is hypergeometric, and as the K records are exchangeable,
  w = c/K for each of them and (k − c)/(n − K) for each of the others.
* tables: given the counts of all cells, a record of cell b is in S with probability c_b/K_b: the odds depend on c_b
  alone, so H_γ of the whole table is that of c_b. This holds for the table *without noise*: with noise, the other cells
  and the known total tell more about c_b.
* the r-th smallest of S is the j-th smallest of all (the records in a fixed order, ties broken by it) with probability
  C(j−1, r−1)·C(n−j, k−r)/C(n, k), and then w_i = (r−1)/(j−1) for i < j, 1 for i = j, (k−r)/(n−j) for i > j.

Both laws are log-concave and come from products of rational ratios, away from the mode. Records between whose ranks
the quantile hardly ever falls share a class: their w differ there alone, and what that mass can add is charged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable._check import FloatArray, Indices
from deniable._floats import EPS
from deniable.noise.evidence import ResampledEvidence, least_scale
from deniable.noise.integration import IntegralBound, on_a_lattice
from deniable.noise.laws import NoiseLaw
from deniable.noise.mixture import FLOOR
from deniable.noise.resampling import Population

_LARGEST_LOSS = 8.0  # log γ at which little but certain events is left
_TOLERANCE = 5e-3  # relative width of the final bracket of the scale
_CLASS_MASS = 4e-3  # probability that the quantile is the record of one class, where classes have several records
_MOST_ENTRIES = 50_000_000  # most numbers times classes
_SMALLEST = 1e-22  # weight, relative to the mode, down to which the law is computed; the rest is charged
_CERTAIN = 1e-3  # largest probability that a number released without noise proves a membership


@dataclass(frozen=True, eq=False)
class KnownLaw:
    """The law of one number over random training sets, and who is in them given that number.

    Attributes
    ----------
    values, chances
        The numbers and their probabilities, (m,).
    inside
        w: chance that a record of each class is in the training set given the number, (classes, m).
    loose
        Probability of numbers at which records of a class may differ from this by up to 1, (classes,).
    error
        Bound on the total error of ``chances``.
    """

    values: FloatArray
    chances: FloatArray
    inside: FloatArray
    loose: FloatArray
    error: float

    @property
    def mean(self) -> float:
        """Mean of the number."""
        return float(self.values @ self.chances)

    @property
    def spread(self) -> float:
        """Standard deviation of the number."""
        return float(np.sqrt(np.maximum((self.values - self.mean) ** 2 @ self.chances, 0.0)))

    def integrals(self, law: NoiseLaw | None, forms: list[IntegralBound]) -> FloatArray:
        """Return upper bounds of shape (classes, forms); ``law`` None: without noise."""
        ones = np.ones((len(self.inside), 2))
        if law is None:
            order = np.argsort(self.values, kind="stable")
            first = np.flatnonzero(np.diff(self.values[order], prepend=-np.inf))
            joint = np.add.reduceat((self.chances * self.inside)[:, order], first, axis=1)
            other = np.add.reduceat((self.chances * (1 - self.inside))[:, order], first, axis=1)
            found = np.stack([form.integrand(joint, other, ones).sum(axis=1) for form in forms], axis=1)
        else:
            white = law.whiten((self.values - self.mean)[:, None])[:, 0]
            on_lattice = on_a_lattice(white, self.chances, self.inside.__getitem__, len(self.inside), law, forms, ones)
            if on_lattice is None:
                return np.broadcast_to([form.largest for form in forms], (len(self.inside), len(forms)))
            found = on_lattice
        # a number of one class moves a·P̂ − b·Q̂ by a + b at most, half of that in ½|aP̂ − bQ̂|
        moved = np.array([form.a + form.b if form.positive else (form.a + form.b) / 2 for form in forms])
        return np.asarray(found + np.outer(self.loose + self.error, moved))


class HasKnownLaw(ABC):
    """A statistic whose law over random training parts is known."""

    @abstractmethod
    def __call__(self, data: Any) -> FloatArray:
        """Return the statistic of ``data``."""

    @abstractmethod
    def known_laws(self, population: Population) -> list[KnownLaw]:
        """Return the law of the one number of the value; of a table, one for each cell and the records in it."""

    @abstractmethod
    def alike(self, data: Any) -> Indices:
        """Return, for each coordinate of the flattened value, the first one that it is a copy of; −1: a constant."""


@dataclass(frozen=True, eq=False)
class KnownEvidence(ResampledEvidence):
    """Known laws of one number (several: of the cells of a table, which can only be released without noise)."""

    laws: list[KnownLaw]
    prior: float

    @property
    def confidence(self) -> float:
        """1: nothing was sampled."""
        return 1.0

    def gain(self, law: NoiseLaw | None) -> float:
        """Return an upper bound on the gain over guessing, of all records; ``law`` None: without noise."""
        form = IntegralBound(1.0, 1.0)
        most = max(float(one.integrals(law, [form]).max()) for one in self.laws)
        return max(most + 0.5 - max(self.prior, 1 - self.prior), 0.0)

    def needs_no_noise(self, gain: float) -> bool:
        """Whether the random training part alone suffices: the gain is met, and hardly any number proves a membership.

        A quantile is the value of one record, whose membership it proves: without noise only where many share it.
        """
        return self.gain(None) <= gain and float(self.curve(None, np.array([_LARGEST_LOSS]))[0]) <= _CERTAIN

    def least_scale(self, law: NoiseLaw, level: float, log_gamma: float) -> float:
        """Return the least scale with a gain ≤ ``level``·min(π, 1 − π), no less than a 33rd of the law's shape."""
        target = level * min(self.prior, 1 - self.prior)

        def excess(scale: float) -> float:
            return self.gain(law.with_scale(scale)) - target

        if excess(FLOOR) <= 0:
            return FLOOR
        return least_scale(excess, 8 * FLOOR, _TOLERANCE, "no finite noise certifies the target for this statistic")

    def curve(self, law: NoiseLaw | None, log_gammas: FloatArray) -> FloatArray:
        """Return upper bounds on max over records of H_γ, both directions, for γ ≥ 1; ``law`` None: without noise."""
        gammas, share = np.exp(log_gammas).tolist(), self.prior
        forms = [IntegralBound(1 / share, g / (1 - share), True) for g in gammas]
        forms += [IntegralBound(1 / (1 - share), g / share, True, True) for g in gammas]
        found = np.max([one.integrals(law, forms).max(axis=0) for one in self.laws], axis=0)
        return np.asarray(np.minimum(found.reshape(2, -1).max(axis=0), 1.0))


def count_law(n: int, k: int, counted: int) -> KnownLaw:
    """The share of a training set that counts, when ``counted`` of all n records do."""

    def ratio(c: FloatArray) -> FloatArray:
        return (counted - c) * (k - c) / ((c + 1) * (n - counted - k + c + 1))

    low, high = max(0, k - (n - counted)), min(counted, k)
    mode = min(max((k + 1) * (counted + 1) // (n + 2), low), high)
    c, chances, error = log_concave(ratio, low, high, mode, n)
    rows = [c / counted] if counted else []
    rows += [(k - c) / (n - counted)] if counted < n else []
    return KnownLaw(c / k, chances, np.stack(rows), np.zeros(len(rows)), error)


def quantile_law(ordered: FloatArray, k: int, rank: int) -> KnownLaw:
    """The ``rank``-th smallest (from 1) of k of these sorted numbers."""
    n = len(ordered)

    def ratio(j: FloatArray) -> FloatArray:
        return j / (j - rank + 1) * (n - j - k + rank) / (n - j)

    low, high = rank, n - k + rank
    mode = low + int(np.floor((rank - 1) * (n - k) / max(k - 1, 1)))
    j, chances, error = log_concave(ratio, low, high, min(max(mode, low), high), n)
    # classes: all below the least j, groups of those between, all above the largest j
    group = np.floor(np.cumsum(chances) / max(_CLASS_MASS, j.size / _MOST_ENTRIES))
    first = np.flatnonzero(np.diff(group, prepend=-1.0))
    last = np.append(first[1:], j.size) - 1
    varies = ordered[j[last].astype(np.intp) - 1] > ordered[j[first].astype(np.intp) - 1]  # else: equal records
    loose = np.where(varies, np.add.reduceat(chances, first), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        before, after = (rank - 1) / (j - 1), (k - rank) / (n - j)
    ends = [j[:1] - 1, j[first], j[-1:] + 1]
    some = np.concatenate([ends[0][ends[0] >= 1], ends[1], ends[2][ends[2] <= n]])[:, None]
    inside = np.where(some < j, before, np.where(some > j, after, 1.0))
    extra = np.zeros(len(inside))
    begin = int(ends[0][0] >= 1)
    extra[begin : begin + loose.size] = loose
    return KnownLaw(ordered[j.astype(np.intp) - 1], chances, inside, extra, error)


def log_concave(
    ratio: Callable[[FloatArray], FloatArray], low: int, high: int, mode: int, n: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return (points, probabilities, error) of the law on low … high with p(x + 1) = ``ratio``(x)·p(x), decreasing.

    Each step away from the mode rounds by fewer than 8 units, each probability is divided by the sum of all, and beyond
    the last point the law falls at least as fast as a geometric series.
    """
    reach = int(4 * np.sqrt(n)) + 50
    while True:
        begin, end = max(low, mode - reach), min(high, mode + reach)
        up = np.cumprod(ratio(np.arange(mode, end, dtype=np.float64)))
        down = np.cumprod(1 / ratio(np.arange(mode - 1, begin - 1, -1, dtype=np.float64)))
        weights = np.concatenate([down[::-1], [1.0], up])
        if (end == high or weights[-1] < _SMALLEST) and (begin == low or weights[0] < _SMALLEST):
            break
        reach *= 2
    kept = np.flatnonzero(weights >= _SMALLEST)
    begin, end, weights = begin + int(kept[0]), begin + int(kept[-1]), weights[kept[0] : kept[-1] + 1]
    total = float(weights.sum())
    beyond = 0.0
    if end < high:
        falls = float(ratio(np.array([float(end)]))[0])
        beyond += weights[-1] * falls / (1 - falls)
    if begin > low:
        falls = float(1 / ratio(np.array([float(begin - 1)]))[0])
        beyond += weights[0] * falls / (1 - falls)
    error = 2 * float(beyond / total) + 32 * EPS * (len(weights) + 1)
    return np.arange(begin, end + 1, dtype=np.float64), weights / total, error
