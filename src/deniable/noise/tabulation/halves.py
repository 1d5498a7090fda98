"""A statistic of a secret half of the records, certified directly: for what noise on sums would drown in few records.

The game differs from that of noise on all records: the table is known to the attacker, hidden is from which half of it
the statistic was computed. So the choice between the two may look at the table, but what all records have released must
not depend on it: "auto" first releases with noise on all records and turns to a half where *that release* says that it
answers nothing. In this game what all records released is the same whoever is in the half: nothing is composed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.noise.certificate import Release
from deniable.noise.mechanism import release
from deniable.noise.mixture import MOST_DIMENSIONS
from deniable.noise.tabulation.answers import Limits, Row, coefficients_of, pairs_of
from deniable.noise.tabulation.asking import probabilities
from deniable.noise.tabulation.grammar import Statistic
from deniable.noise.tabulation.records import Records

_FAR = 4.0  # standard deviations by which the record that sets the noise of a half is guessed to be off
_OF_ETA = 0.7  # share of η that is left to the noise of a half by the number of its runs, guessed


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


def can_be_halved(statistic: Statistic) -> bool:
    """Whether :func:`of_a_half` takes it."""
    known = statistic.function in _VALUES and not statistic.by
    return known and len(OfRecords(statistic).names) <= MOST_DIMENSIONS


def of_a_half(
    statistic: Statistic, records: Records, eta: float, limits: Limits, **options: Any
) -> tuple[list[Row], Release]:
    """Release a statistic of a secret half; values are clipped to their scales first."""
    if not can_be_halved(statistic):
        raise InputError(
            f"bound='direct' takes one statistic of at most {MOST_DIMENSIONS} numbers, without 'by', of "
            f"{', '.join(_VALUES)}; got {statistic}; use bound='dp'"
        )
    scales = [records.scales[column] for column in statistic.columns]
    columns = [np.clip(records.numbers[c], s.low, s.high) for c, s in zip(statistic.columns, scales, strict=True)]
    algorithm = OfRecords(statistic)
    found = release(algorithm, np.column_stack(columns), eta=eta, bound="direct", **options)
    errors, sampling = found.standard_error, found.sampling_error
    half = np.zeros_like(found.value) if sampling is None else sampling
    rows = [
        limits.row((), item, float(value), float(error), float(own))
        for item, value, error, own in zip(algorithm.names, found.value, errors, half, strict=True)
    ]
    return rows, found


def better_of_a_half(statistic: Statistic, rows: Sequence[Row], n: int, eta: float) -> bool:
    """Whether a release of all ``n`` records says of itself that a half would err less, or has nothing to say.

    What a half costs is guessed from n and η alone. Training on it adds the sampling error of all records; a record z
    standard deviations off moves the mean of a half by 2z/√n of its spread, which is worth a gain of about z·φ(0)/√n,
    so noise must widen that spread by that much over η.
    """
    if not can_be_halved(statistic):
        return False
    widened = max(1.0, _FAR / math.sqrt(2 * math.pi * n) / (_OF_ETA * eta))
    return any(math.isnan(row.value) or row.noise > widened * row.sampling for row in rows)
