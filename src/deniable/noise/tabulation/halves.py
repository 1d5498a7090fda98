"""A statistic of a secret half of the records, certified directly: for few records, where noise on sums drowns it.

The game differs from that of noise on all records: the attacker knows the table, but not from which half of it the
statistic was computed. So the choice between the two may look at the table, but what was released from all records must
not depend on it: "auto" first releases with noise on all records and turns to a half where *that release* shows that it
is mostly noise. In this game that release is the same whoever is in the half: nothing is composed. For the same reason
the two answers may be joined, weighted by their errors: for what is linear in noisy sums a turn never costs accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from deniable._check import FloatArray, InputError
from deniable.noise.certificate import Release
from deniable.noise.covariance import Covariance
from deniable.noise.direct import MOST_RUNS, SHARE, takes_long
from deniable.noise.known_law import REHEARSED, relative_noise_of_a_quantile
from deniable.noise.mechanism import release
from deniable.noise.mixture import guessed_mu, hoeffding_slack, runs_for
from deniable.noise.regression import Ridge
from deniable.noise.statistics import Mean, Quantile
from deniable.noise.tabulation.answers import Limits, QueryAnswer, Row, coefficients_of, pairs_of
from deniable.noise.tabulation.asking import answered, probabilities
from deniable.noise.tabulation.estimates import moment
from deniable.noise.tabulation.grammar import Statistic
from deniable.noise.tabulation.queries import Query
from deniable.noise.tabulation.records import Records

_FAR = 4.0  # standard deviations by which the record that sets the noise of a half is guessed to be off, at least
_GAIN = 1.1  # a half promises less, so turning to it must reduce the error by this factor
_RANGE = 6.0  # standard deviations from the mean to the ends of a public range, guessed
_CONFIDENCE = 0.99  # of a certificate from runs, and of the lower limit of a released variance


def _pairs(table: FloatArray, statistic: Statistic) -> FloatArray:
    matrix = np.asarray(np.cov(table.T) if statistic.function == "covariance" else np.corrcoef(table.T))
    return np.asarray(matrix[pairs_of(statistic.function, statistic.columns)[:2]])


def _least_squares(table: FloatArray, statistic: Statistic) -> FloatArray:
    design = np.column_stack([np.ones(len(table)), table[:, 1:]])
    return np.asarray(np.linalg.lstsq(design, table[:, 0], rcond=None)[0])


def _trimmed(table: FloatArray, statistic: Statistic) -> FloatArray:
    cut = int(statistic.numbers[0] * len(table))
    return np.array([np.sort(table[:, 0])[cut : len(table) - cut].mean()])


_VALUES: Mapping[str, Callable[[FloatArray, Statistic], FloatArray]] = {
    "mean": lambda table, _: np.array([table.mean()]),
    "sum": lambda table, _: np.array([table.sum()]),
    "variance": lambda table, _: np.array([table.var(ddof=1)]),
    "sd": lambda table, _: np.array([table.std(ddof=1)]),
    "median": lambda table, _: np.array([np.median(table)]),
    "quantile": lambda table, statistic: np.quantile(table, statistic.numbers),
    "trimmed_mean": _trimmed,
    "covariance": _pairs,
    "correlation": _pairs,
    "regression": _least_squares,
}


@dataclass(frozen=True)
class OfRecords:
    """A statistic as a function of some records, rows of its columns; those with missing cells are left out."""

    statistic: Statistic

    def __call__(self, table: FloatArray) -> FloatArray:
        """Return its numbers, in the order of :attr:`names`."""
        return _VALUES[self.statistic.function](table[~np.isnan(table).any(axis=1)], self.statistic)

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is."""
        columns, function = self.statistic.columns, self.statistic.function
        if function in ("median", "quantile"):
            return tuple(f"{p:g}" for p in probabilities(self.statistic))
        if function in ("covariance", "correlation"):
            return pairs_of(function, columns)[2]
        return coefficients_of(columns) if function == "regression" else ("",)


_MOMENTS: Mapping[str, str] = {"mean": "mean", "sum": "mean", "variance": "variance", "sd": "variance"}
_JOINED = (*_MOMENTS, "trimmed_mean")


def can_be_halved(statistic: Statistic) -> bool:
    """Whether :func:`of_a_half` takes it."""
    return statistic.function in _VALUES and not statistic.by


@dataclass(frozen=True, eq=False)
class AllRecords:
    """What a release of all records said, unbiased, and the standard deviation of the noise in it."""

    value: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, statistic: Statistic, query: Query, answer: QueryAnswer, records: Records) -> AllRecords | None:
        """Return what can be joined: a sum by its mean, an sd by its variance; None for what divides by noisy sums."""
        function = statistic.function
        if function in _MOMENTS:
            scale = records.scales[statistic.columns[0]]
            found = [moment(_MOMENTS[function], answer.sums[0], answer.noise, scale)]
        elif function == "trimmed_mean":
            found = [(row.value, row.noise) for row in answered(statistic, query, answer, records, Limits(0.95))]
        else:
            return None
        value, noise = np.array(found).T
        return None if np.isnan(value).any() else cls(value, noise)

    def joined(self, value: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of this and an answer of a half, weighted by 1/error², and its error, below both.

        Their errors are independent: one is noise alone, the other is the draw of the half and the noise on it.
        """
        both = np.hypot(self.noise, error)
        share = np.divide(self.noise, both, out=np.ones_like(both), where=both > 0) ** 2
        return share * value + (1 - share) * self.value, np.sqrt(share) * error


@dataclass(frozen=True)
class Closed:
    """A statistic whose swaps or whose law over halves are known; ``places``: where its numbers stand in the value."""

    algorithm: Mean | Covariance | Quantile | Ridge
    places: Sequence[int]
    root: bool = False
    times: int = 1

    @classmethod
    def of(cls, statistic: Statistic, n: int = 1) -> Closed | None:
        """Return it if there is one: a quantile is the ⌈pk⌉-th smallest, an sd a root, a sum n times a mean."""
        function = statistic.function
        if function in ("mean", "sum"):
            return cls(Mean(), [0], times=n if function == "sum" else 1)
        if function in ("variance", "sd"):
            return cls(Covariance(), [0], function == "sd")
        if function == "covariance":
            i, j, _ = pairs_of(function, statistic.columns)
            return cls(Covariance(), [int(place) for place in i * len(statistic.columns) + j])
        if function in ("median", "quantile") and len(probabilities(statistic)) == 1:
            return cls(Quantile(probabilities(statistic)[0]), [0])
        if function == "regression":
            slopes = len(statistic.columns) - 1
            return cls(Ridge(alpha=0.0), [slopes, *range(slopes)])
        return None

    def data(self, table: FloatArray) -> Any:
        """Return the columns as the algorithm takes them."""
        return (table[:, 1:], table[:, 0]) if isinstance(self.algorithm, Ridge) else table

    def numbers(self, found: Release, first: AllRecords | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the numbers with their standard errors: of noise and half together, and of the half alone.

        ``first``: what all records answered of the same moments, joined with them.
        """
        sampling = np.zeros(found.value.shape) if found.sampling_error is None else found.sampling_error
        value, error, half = (np.ravel(part)[self.places] for part in (found.value, found.standard_error, sampling))
        if first is not None:
            value, error = first.joined(value, error)
        value, error, half = (self.times * part for part in (value, error, half))
        if self.root:  # √(v + e) − √v is e/(2√v) where e is small, and √e at 0
            value = np.maximum(value, 0.0)
            error, half = (np.sqrt(value + part) - np.sqrt(value) for part in (error, half))
            value = np.sqrt(value)
        return value, error, half


def of_a_half(
    statistic: Statistic,
    records: Records,
    eta: float,
    limits: Limits,
    first: AllRecords | None = None,
    **options: Any,
) -> tuple[list[Row], Release]:
    """Release a statistic of a secret half; values are clipped to their scales first.

    Closed forms take whichever of their ways needs the least noise; with missing cells, which closed forms do not know,
    and for other statistics the half is certified by runs. ``first``: what all records answered, joined with it.
    """
    if not can_be_halved(statistic):
        raise InputError(
            f"bound='direct' takes one statistic without 'by', of {', '.join(_VALUES)}; got {statistic}; use bound='dp'"
        )
    scales = [records.scales[column] for column in statistic.columns]
    columns = [np.clip(records.numbers[c], s.low, s.high) for c, s in zip(statistic.columns, scales, strict=True)]
    table, algorithm = np.column_stack(columns), OfRecords(statistic)
    closed = None if np.isnan(table).any() else Closed.of(statistic, records.n)
    if closed is None:
        found = release(algorithm, table, eta=eta, bound="direct", **options)
        own = np.zeros_like(found.value) if found.sampling_error is None else found.sampling_error
        times = records.n / found.certificate.n_train if statistic.function == "sum" else 1.0
        numbers = times * found.value, times * found.standard_error, times * own
        if first is not None and statistic.function == "trimmed_mean":
            numbers = *first.joined(*numbers[:2]), numbers[2]
    else:
        found = release(closed.algorithm, closed.data(table), eta=eta, **options)
        numbers = closed.numbers(found, first)
    rows = [
        limits.row((), item, float(value), float(error), float(half))
        for item, value, error, half in zip(algorithm.names, *numbers, strict=True)
    ]
    return rows, found


@dataclass(frozen=True)
class ReleasedMoments:
    """What a release of all records said of a column, its mean and its variance, and the public ends of its range."""

    mean: Row
    variance: Row
    low: float
    high: float

    @property
    def least_sd(self) -> float:
        """Standard deviation at the lower limit of the noisy variance; 0 where that is not above 0 or was withheld.

        A release that happens to say too much is the one that stays, and errs by what it said too much. Judged by its
        value, releases that are mostly noise would stay in half of the cases; so they have to show the spread.
        """
        least = self.variance.value - float(ndtri(_CONFIDENCE)) * self.variance.noise
        return math.sqrt(least) if least > 0 else 0.0

    def farthest(self, n: int, sd: float) -> float:
        """Guess how many standard deviations the farthest of n records is from the mean: no farther than the range.

        Median of the largest of n of a lognormal law with this mean and spread that starts at the nearer end of the
        range: far from both ends it is normal, a mean near an end means a long tail to the other side (the longest is
        that of shape q/2, q the normal's median). At least that of a law with four finite moments, max(4, n^¼).
        """
        near, far = sorted(max(end, 0.0) / sd for end in (self.mean.value - self.low, self.high - self.mean.value))
        quantile = float(ndtri(math.exp(-math.log(2) / n)))
        near = max(near, 1 / math.sqrt(math.expm1(quantile**2 / 4)))
        square = math.log1p(near**-2)
        tail = near * math.expm1(math.sqrt(square) * quantile - square / 2)
        return min(max(_usual(n), tail), max(far, 1.0))


def better_of_a_half(
    statistic: Statistic, rows: Sequence[Row], n: int, eta: float, column: ReleasedMoments | None = None
) -> bool:
    """Whether a release of all ``n`` records itself shows that a half would err less, or shows nothing at all.

    What a half costs is guessed from n, η and, for means, variances and sds, from what was released of the ``column``:
    in sampling errors of all records, which training on a half adds. Where the two are joined, the half need not be the
    better one: noise a on all records and an error h of the half leave ah/√(a² + h²).
    """
    if not can_be_halved(statistic):
        return False
    if any(math.isnan(row.value) for row in rows):
        return True
    if any(row.sampling == 0 < row.noise for row in rows):
        return True  # the records show no spread in the noise
    ratio, far = max(row.noise / row.sampling if row.sampling > 0 else 0.0 for row in rows), _usual(n)
    if column is not None:
        sd = column.least_sd
        if sd == 0:
            return True
        of_mean = statistic.function == "mean"
        ratio = rows[0].noise / sd if of_mean else column.variance.noise / (math.sqrt(2) * sd**2)
        ratio, far = ratio * math.sqrt(n), column.farthest(n, sd)
    if ratio > 0 and statistic.function in ("median", "quantile") and Closed.of(statistic) is not None:
        ratio = max(ratio, _chosen(probabilities(statistic)[0], n, ratio))
    least = math.sqrt(_GAIN**2 - 1) if statistic.function in _JOINED else _GAIN
    return ratio > least * _widened(statistic, n, eta, far)


def _usual(n: int) -> float:
    """Standard deviations by which the farthest of n records is off: with four finite moments not many more."""
    return max(_FAR, math.sqrt(math.sqrt(n)))


def _chosen(p: float, n: int, ratio: float) -> float:
    """Error, in sampling errors, of choosing a quantile of n normal records by rank; to first order it is ``ratio``.

    Far from the middle it is more: beyond the largest record the whole rest of the range is one gap. Each point has the
    weight exp(−rate·|its rank − pn|), and the noise of the rank is √2/rate (:class:`Ranks`).
    """
    n = min(n, REHEARSED)
    rate = math.sqrt(2) / (ratio * math.sqrt(p * (1 - p) * n))
    edges = np.concatenate([[-_RANGE], ndtri((np.arange(n) + 0.5) / n), [_RANGE]])
    weights = np.diff(edges) * np.exp(-rate * np.abs(np.arange(n + 1) - p * n))
    square = (edges[:-1] + edges[1:]) / 2 - float(ndtri(p))
    error = math.sqrt(float(weights @ (square**2 + np.diff(edges) ** 2 / 12)) / float(weights.sum()))
    return error * math.exp(-(float(ndtri(p)) ** 2) / 2) / math.sqrt(2 * math.pi * p * (1 - p) / n)


def _widened(statistic: Statistic, n: int, eta: float, far: float) -> float:
    """Error of a half in sampling errors of all records; the record that sets the noise is z = ``far`` sds off.

    A swap moves the mean of a half by about 2z/n, a variance by 2z²/n, whose sampling errors are 1/√n and √(2/n), and
    each of d coefficients by 2z²/n of its √n (column and residual z off), which takes √d of the noise.
    """
    function = statistic.function
    if Closed.of(statistic) is None:
        z = _trimmed_reach(statistic.numbers[0]) if function == "trimmed_mean" else far
        return _by_runs(n, eta, z)
    if function in ("median", "quantile"):
        return math.hypot(1.0, relative_noise_of_a_quantile(probabilities(statistic)[0], n, eta))
    d = len(statistic.columns) if function == "regression" else 1
    moved = 2 * far if function in ("mean", "sum") else math.sqrt(2 * d) * far**2
    if function == "regression":
        moved *= math.sqrt(2)
    swapped = math.hypot(1.0, moved / (math.sqrt(n) * guessed_mu(eta)))
    runs = min(runs_for(SHARE * eta, 1 - _CONFIDENCE), MOST_RUNS)
    return swapped if d == 1 or takes_long(n, runs, d) else min(swapped, _by_runs(n, eta, far))


def _by_runs(n: int, eta: float, z: float) -> float:
    """The same without a closed form, or beside one.

    A record moves the half by 2z/√n of its spread, which is worth a gain of z·φ(0)/√n, so noise must widen the spread
    by that over what the number of runs leaves of η. A record moves a trimmed mean as far as one at the cut at most.
    """
    left = eta - max(SHARE * eta, hoeffding_slack(1 - _CONFIDENCE, MOST_RUNS))
    return max(1.0, float(z / math.sqrt(2 * math.pi * n) / max(left, 1e-9)))


def _trimmed_reach(cut: float) -> float:
    """How far a record moves a trimmed mean of normal records at most, in standard deviations of what each moves it."""
    z = float(ndtri(1 - cut))
    density = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return z / math.sqrt(1 - 2 * cut - 2 * z * density + 2 * cut * z**2)
