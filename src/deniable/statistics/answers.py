"""Noisy sums, what the noise in them does to a function of them, and the rows of a released table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri

from deniable._check import FloatArray
from deniable.statistics.grammar import written

FEW = "too few records for the noise"
TOO_FEW = 4.0  # counts below this many standard deviations of their noise are not divided by


@dataclass(frozen=True, eq=False)
class QueryAnswer:
    """What a query released.

    Attributes
    ----------
    sums
        Sums plus noise in units (a count is 1), shape (groups, coordinates).
    noise
        Standard deviation of the noise in each coordinate; 0 for what was declared.
    labels
        Categories of each group.
    chosen
        Chosen quantiles by probability, between −1 and 1, if any.
    rank_noise
        How many records away from its rank each chosen quantile may be: a standard deviation.
    """

    sums: FloatArray
    noise: FloatArray
    labels: list[tuple[str, ...]]
    chosen: Mapping[float, FloatArray] = field(default_factory=dict)
    rank_noise: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One number of a released table.

    Attributes
    ----------
    group
        Categories of the columns ``by``.
    item
        Which number of the statistic: an interval, a probability, a coefficient; empty if there is one only.
    value
        The estimate; NaN if it was withheld, for the reason in ``note``.
    noise
        Standard deviation of the noise in it: its error against the value on all records of the table.
    sampling
        Standard deviation by which the records themselves, drawn from a population, make it vary; NaN if not known.
    low, high
        Limits for the value on all records of the table.
    population_low, population_high
        Limits for the population.
    note
        Why a value was withheld, or what else to know.
    dated
        Whether value and limits are moments, in days since 1970-01-01.
    """

    group: tuple[str, ...]
    item: str
    value: float
    noise: float
    sampling: float
    low: float
    high: float
    population_low: float
    population_high: float
    note: str = ""
    dated: bool = False

    def written(self, value: float) -> str:
        """Return the value, or a limit, as people write it: a date, or a number of six digits."""
        return written(value, as_date=self.dated)

    @property
    def population_error(self) -> float:
        """Standard error against the population: noise and sampling together."""
        return math.hypot(self.noise, self.sampling)


@dataclass(frozen=True)
class Limits:
    """How rows get their limits: ± z standard errors, cut to what is possible."""

    confidence: float

    @property
    def z(self) -> float:
        """Normal quantile of the two-sided interval."""
        return float(ndtri(0.5 + self.confidence / 2))

    def row(
        self,
        group: tuple[str, ...],
        item: str,
        value: float,
        noise: float,
        sampling: float = math.nan,
        within: tuple[float, float] = (-math.inf, math.inf),
        note: str = "",
    ) -> Row:
        """Return the row; limits are cut to ``within``, the value is not (clipping would bias sums of it)."""
        whole = math.hypot(noise, sampling)
        ends = [value - self.z * noise, value + self.z * noise, value - self.z * whole, value + self.z * whole]
        cut = [min(max(end, within[0]), within[1]) if not math.isnan(end) else end for end in ends]
        return Row(group, item, value, noise, sampling, cut[0], cut[1], cut[2], cut[3], note)


def withheld(group: tuple[str, ...], item: str, note: str) -> Row:
    """Return a row without a value."""
    nothing = math.nan
    return Row(group, item, nothing, nothing, nothing, nothing, nothing, nothing, nothing, note)


def hide_small(rows: list[Row], below: float) -> list[Row]:
    """Withhold counts below a threshold, as published tables do; judged on the noisy counts, so it costs nothing."""
    note = f"below {below:g}"
    return [replace(withheld(r.group, r.item, note), noise=r.noise) if r.value < below else r for r in rows]


def carried(function: Callable[[FloatArray], FloatArray], sums: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the standard deviations of ``function(sums)`` to first order in the noise (the delta method).

    Derivatives are central differences over a hundredth of each coordinate's noise.
    """
    total = np.zeros_like(function(sums))
    for j in np.flatnonzero(noise):
        step = np.zeros_like(sums)
        step[j] = noise[j] / 100
        total += (50 * (function(sums + step) - function(sums - step))) ** 2
    return np.asarray(np.sqrt(total))
