"""From noisy sums to the requested statistics, each number with the errors of noise and of sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from deniable._check import FloatArray
from deniable.statistics.grammar import ColumnScale
from deniable.statistics.queries import Query, Totals
from deniable.statistics.released import Row

FEW = "too few records for the noise"
NO_NUMBERS = "too few numbers or dates in the column for the noise"  # so of few records as of a column of texts
TOO_FEW = 4.0  # counts below this many standard deviations of their noise are not divided by
_SHARE_OF_SPREAD = (-1.0, 1.0)  # where correlations lie
_FLAT = 2.0  # variances below this many standard deviations of their noise are not divided by
Judgement = tuple[str, str, FloatArray]  # why numbers are withheld, or ""; a note; their deviations over samples
_STILL = "a column varies too little for the noise"
ROUGH = "the noise is not small beside the spread of the columns: a rough figure"


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
    """

    sums: FloatArray
    noise: FloatArray
    labels: list[tuple[str, ...]]


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
        """Return the row; limits are cut to ``within``, the value is not (clipping would bias sums of it).

        Those of a value that is not within are around the nearest one that is: wider, and never cut to nothing.
        """
        whole, near = math.hypot(noise, sampling), min(max(value, within[0]), within[1])
        ends = [near - self.z * noise, near + self.z * noise, near - self.z * whole, near + self.z * whole]
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


def delta_method_sd(function: Callable[[FloatArray], FloatArray], sums: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the standard deviations of ``function(sums)`` to first order in the noise (the delta method).

    Derivatives are central differences over a hundredth of each coordinate's noise.
    """
    total = np.zeros_like(function(sums))
    for j in np.flatnonzero(noise):
        step = np.zeros_like(sums)
        step[j] = noise[j] / 100
        total += (50 * (function(sums + step) - function(sums - step))) ** 2
    return np.asarray(np.sqrt(total))


def reconcile(counted: QueryAnswer, moments: QueryAnswer) -> tuple[QueryAnswer, QueryAnswer]:
    """Return both, the counts of groups and of their records with a number improved by one another.

    By least squares: their gap, counts − with a number − without one, is shared by the variances of the three.
    """
    gap = counted.sums[:, :1] - moments.sums[:, :1] - moments.sums[:, -1:]
    own, present, absent = counted.noise[0] ** 2, moments.noise[0] ** 2, moments.noise[-1] ** 2
    part, other = (variance / (own + present + absent) for variance in (own, present))
    sums, noise = moments.sums.copy(), moments.noise.copy()
    sums[:, :1] += other * gap
    noise[0] *= math.sqrt(1 - other)
    better = replace(counted, sums=counted.sums - part * gap, noise=counted.noise * math.sqrt(1 - part))
    return better, replace(moments, sums=sums, noise=noise)


def counts(answer: QueryAnswer, items: tuple[str, ...], n: float, limits: Limits) -> list[Row]:
    """Return counts of cells; the population's is n times the probability of the cell."""
    rows = []
    for group, numbers in zip(answer.labels, answer.sums, strict=True):
        for item, value, noise in zip(items, numbers, answer.noise, strict=True):
            share = min(max(value / n, 0.0), 1.0)
            sampling = math.sqrt(n * share * (1 - share)) if noise > 0 and (group or item) else math.nan
            rows.append(limits.row(group, item, float(value), float(noise), sampling, within=(0.0, math.inf)))
    return [_note_of_others(row) for row in rows]


def _note_of_others(row: Row) -> Row:
    """Note on a number of records that no records explain as well: such as "(other)" where all are of a category."""
    return replace(row, note="may be noise alone") if row.noise > 0 and not row.note and row.low <= 0 else row


def shares(answer: QueryAnswer, labels: tuple[str, ...], limits: Limits) -> list[Row]:
    """Return the share of each category, the last of the grouping columns, within the groups of the others."""
    rows = []
    size = len(labels)
    noise = float(answer.noise[0])
    for begin in range(0, len(answer.labels), size):
        group = answer.labels[begin][:-1]
        cells = answer.sums[begin : begin + size, 0]
        total = float(cells.sum())
        for label, cell in zip(labels, cells, strict=True):
            if not total > TOO_FEW * noise * math.sqrt(size):
                rows.append(withheld(group, label, FEW))
                continue
            p = float(cell) / total
            within = (1 - p) ** 2 + p * p * (size - 1)
            inside = min(max(p, 0.0), 1.0)
            sampling = math.sqrt(inside * (1 - inside) / total)
            rows.append(limits.row(group, label, p, noise * math.sqrt(within) / total, sampling, within=(0.0, 1.0)))
    return [_note_of_others(row) for row in rows]


def totals(answer: QueryAnswer, query: Query, scale: ColumnScale, limits: Limits) -> list[Row]:
    """Return the sum of a column in each group; that of dates depends on where days are counted from."""
    if scale.dates:
        return [withheld(group, "", "dates have no sum; ask for their mean") for group in answer.labels]
    alone = [query.bound or scale.farthest] if isinstance(query, Totals) else [scale.centre, scale.half, 0.0, 0.0]
    parts = np.array(alone)
    noise = float(np.linalg.norm(parts * answer.noise))
    return [limits.row(g, "", float(parts @ sums), noise) for g, sums in zip(answer.labels, answer.sums, strict=True)]


def of_moments(
    answer: QueryAnswer,
    items: tuple[str, ...],
    wanted: Callable[[FloatArray], FloatArray],
    judged: Callable[[FloatArray], Judgement],
    limits: Limits,
    within: tuple[float, float] = (-math.inf, math.inf),
    least: float = 1.0,
) -> list[Row]:
    """Return numbers that are ``wanted`` of the moments of each group, with the noise in them, to first order."""
    rows = []
    for group, x in zip(answer.labels, answer.sums, strict=True):
        enough = x[0] > max(TOO_FEW * float(answer.noise[0]), least)
        why, note, sampling = judged(x) if enough else (NO_NUMBERS, "", np.empty(0))
        if why:
            rows += [withheld(group, item, why) for item in items]
            continue
        values, noise = wanted(x), delta_method_sd(wanted, x, answer.noise)
        if within == _SHARE_OF_SPREAD:
            values, noise = np.clip(values, *within), np.minimum(noise, 1.0)
        for item, value, off, own in zip(items, values, noise, sampling, strict=True):
            rows.append(limits.row(group, item, float(value), float(off), float(own), within, note))
    return rows


def means(answer: QueryAnswer, scale: ColumnScale, limits: Limits) -> list[Row]:
    """Return the mean of a column in each group."""

    def mean(x: FloatArray) -> FloatArray:
        return np.array([scale.centre + scale.half * x[1] / x[0]])

    def judged(x: FloatArray) -> Judgement:
        return "", "", np.sqrt(np.maximum(_covariance(x, 1)[0] / x[0], 0.0)) * scale.half

    return of_moments(answer, ("",), mean, judged, limits, (scale.low, scale.high))


def spreads(answer: QueryAnswer, function: str, scale: ColumnScale, limits: Limits) -> list[Row]:
    """Return variance or sd of a column in each group, sampling as for normal records; limits of sd are roots."""

    def variance(x: FloatArray) -> FloatArray:
        return np.asarray(_covariance(x, 1)[0] * scale.half * scale.half)

    def judged(x: FloatArray) -> Judgement:
        return "" if variance(x)[0] > 0 else "not above zero in the noise", "", variance(x) * math.sqrt(2 / x[0])

    rows = of_moments(answer, ("",), variance, judged, limits, (0.0, math.inf))
    return rows if function == "variance" else [_root_of_variance(row) for row in rows]


def _root_of_variance(row: Row) -> Row:
    ends = (row.value, row.low, row.high, row.population_low, row.population_high)
    root, low, high, least, most = (math.sqrt(end) for end in ends)
    noise, sampling = row.noise / (2 * root), row.sampling / (2 * root)
    return Row(row.group, row.item, root, noise, sampling, low, high, least, most, row.note)


def covariances(answer: QueryAnswer, function: str, known: Mapping[str, ColumnScale], limits: Limits) -> list[Row]:
    """Return covariances (variances included) or correlations, by pairs of columns; sampling as for normal records."""
    d, related = len(known), function == "correlation"
    i, j = np.triu_indices(d, int(related))
    names, halves = list(known), np.array([scale.half for scale in known.values()])

    def wanted(x: FloatArray) -> FloatArray:
        matrix = _covariance(x, d)
        size = 1 / np.sqrt(np.maximum(np.diag(matrix), 1e-300)) if related else halves
        return np.asarray(matrix[i, j] * size[i] * size[j])

    def judged(x: FloatArray) -> Judgement:
        matrix = _covariance(x, d)
        if not related:
            full = matrix * np.outer(halves, halves)
            return "", "", np.sqrt((np.maximum(full[i, i] * full[j, j], 0.0) + full[i, j] ** 2) / x[0])
        shown = _in_noise(float(np.diag(matrix).min()), 1, answer, x)
        sampling = (1 - np.clip(wanted(x), -1.0, 1.0) ** 2) / math.sqrt(x[0])
        return _STILL if shown <= _FLAT else "", ROUGH if shown <= TOO_FEW else "", sampling

    items = tuple(f"{names[a]}, {names[b]}" for a, b in zip(i, j, strict=True))
    return of_moments(answer, items, wanted, judged, limits, _SHARE_OF_SPREAD if related else (-math.inf, math.inf))


def regression(
    answer: QueryAnswer, columns: tuple[str, ...], known: Mapping[str, ColumnScale], limits: Limits
) -> list[Row]:
    """Return the coefficients of least squares of the first column on the others, with an intercept.

    ``known`` has the scales in the order of the sums. ``noise`` is that of the coefficients to first order;
    ``sampling`` is √(σ²(XᵀX)⁻¹) for errors of one variance.
    """
    d = len(columns)
    places = np.array([list(known).index(column) for column in columns])
    centres, halves = np.array([(known[column].centre, known[column].half) for column in columns]).T

    def centred(x: FloatArray) -> FloatArray:
        return np.asarray(_covariance(x, d)[np.ix_(places, places)])

    def coefficients(x: FloatArray) -> FloatArray:
        matrix = centred(x)
        slopes = np.linalg.solve(matrix[1:, 1:], matrix[1:, 0]) * halves[0] / halves[1:]
        means = centres + halves * x[1 : 1 + d][places] / x[0]
        return np.concatenate([[means[0] - slopes @ means[1:]], slopes])

    def judged(x: FloatArray) -> Judgement:
        matrix, n = centred(x), x[0]
        shown = _in_noise(float(np.linalg.eigvalsh(matrix[1:, 1:])[0]), d, answer, x)
        if shown <= _FLAT:
            return "the predictors vary too little for the noise, or depend on one another", "", np.empty(0)
        slopes = np.linalg.solve(matrix[1:, 1:], matrix[1:, 0])
        rest = max(float(matrix[0, 0] - slopes @ matrix[1:, 0]), 0.0) * (n - 1) / (n - d)
        inverse = np.linalg.inv(matrix[1:, 1:]) / (n - 1)
        at_zero = (centres / halves + x[1 : 1 + d][places] / n)[1:]  # the means, in units from 0
        own = np.concatenate([[1 / n + at_zero @ inverse @ at_zero], np.diag(inverse) / halves[1:] ** 2])
        return "", ROUGH if shown <= TOO_FEW else "", np.sqrt(rest * own) * halves[0]

    return of_moments(answer, ("intercept", *columns[1:]), coefficients, judged, limits, least=d + 1)


def _covariance(x: FloatArray, d: int) -> FloatArray:
    """Covariance matrix of the units (divisor n − 1) from (count, Σu, Σuᵢuⱼ for i ≤ j, of squares Σ(uᵢ² − ½), …)."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = x[1 + d : -1]
    matrix[np.diag_indices(d)] += x[0] / 2
    matrix = matrix + np.triu(matrix, 1).T
    mean = x[1 : 1 + d] / x[0]
    return np.asarray((matrix / x[0] - np.outer(mean, mean)) * (x[0] / max(x[0] - 1, 1.0)))


def _in_noise(variance: float, d: int, answer: QueryAnswer, x: FloatArray) -> float:
    """Return a variance of the units, or of d of them together, in standard deviations of its noise."""
    return variance / (math.sqrt(d) * float(answer.noise.max()) / max(float(x[0]), 1.0))
