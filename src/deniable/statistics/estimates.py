"""From noisy sums to the requested statistics, each number with the errors of noise and of sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from deniable._check import FloatArray
from deniable.statistics import distribution
from deniable.statistics.answers import (
    FEW,
    TOO_FEW,
    Limits,
    QueryAnswer,
    Row,
    carried,
    coefficients_of,
    pairs_of,
    withheld,
)
from deniable.statistics.grammar import Statistic
from deniable.statistics.queries import Moments, Products, Query, edges_of, intervals, probabilities
from deniable.statistics.records import Categories, ColumnScale

_LOCATIONS = ("mean", "median", "quantile", "trimmed_mean")  # statistics of dates that are dates themselves
_UNITS = {"sd": "in days", "variance": "in days squared"}  # of columns of dates
_POINTS = 16.0  # intervals of a distribution function, unless ``points`` is given
_FLAT = 2.0  # variances below this many standard deviations of their noise are not divided by
ROUGH = "the noise is not small beside the spread of the columns: a rough figure"


def answered(
    statistic: Statistic,
    query: Query,
    answer: QueryAnswer,
    scales: Mapping[str, ColumnScale],
    categories: Mapping[str, Categories],
    n: float,
    limits: Limits,
) -> list[Row]:
    """Return the statistic's rows from the answer to its query, of about ``n`` records; dates marked as such."""
    function, columns = statistic.function, statistic.columns
    if function == "count":
        return counts(_of_groups(answer, query), ("",), n, limits)
    if function == "share":
        return shares(answer, categories[columns[0]].labels, limits)
    scale = scales[columns[0]]
    if function == "histogram":
        return counts(answer, intervals(statistic, scale), n, limits)
    if function == "survival":
        return survival(answer, edges_of(statistic, scale), limits)
    if isinstance(query, Products):
        known = {column: scales[column] for column in query.variables}
        if function == "regression":
            return regression(answer, columns, known, limits)
        return covariances(answer, function, query.variables, list(known.values()), limits)
    if function == "sum":
        return totals(answer, query, scale, limits)
    return _dated(statistic, _of_one(statistic, answer, scale, limits), scale)


def _of_one(statistic: Statistic, answer: QueryAnswer, scale: ColumnScale, limits: Limits) -> list[Row]:
    """Return the rows of a statistic of one column."""
    match statistic.function:
        case "trimmed_mean":
            return distribution.trimmed_means(answer, scale, statistic.numbers[0], limits)
        case "ecdf":
            points = int(statistic.option("points", (_POINTS,))[0])
            return distribution.distribution_function(answer, scale, points, limits)
        case "median" | "quantile":
            return distribution.quantiles(answer, scale, probabilities(statistic), limits)
        case function:
            return moments(answer, function, scale, limits)


def _dated(statistic: Statistic, rows: list[Row], scale: ColumnScale) -> list[Row]:
    """Return the rows, marked as moments where they are means or quantiles of dates; spreads with their unit."""
    if not scale.dates:
        return rows
    if statistic.function in _LOCATIONS:
        return [replace(row, dated=True) for row in rows]
    unit = _UNITS.get(statistic.function)
    return [replace(row, note=row.note or unit) for row in rows] if unit else rows


def _of_groups(answer: QueryAnswer, query: Query) -> QueryAnswer:
    """Return the counts of the groups; beside moments those with a number and those without one are added up."""
    if not isinstance(query, Moments):
        return answer
    both = answer.sums[:, :1] + answer.sums[:, 3:]
    return replace(answer, sums=both, noise=np.hypot(answer.noise[:1], answer.noise[3:]))


def counts(answer: QueryAnswer, items: tuple[str, ...], n: float, limits: Limits) -> list[Row]:
    """Return counts of cells; the population's is n times the probability of the cell."""
    rows = []
    for group, numbers in zip(answer.labels, answer.sums, strict=True):
        for item, value, noise in zip(items, numbers, answer.noise, strict=True):
            share = min(max(value / n, 0.0), 1.0)
            sampling = math.sqrt(n * share * (1 - share)) if noise > 0 else math.nan
            rows.append(limits.row(group, item, float(value), float(noise), sampling, within=(0.0, math.inf)))
    return rows


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
    return rows


def totals(answer: QueryAnswer, query: Query, scale: ColumnScale, limits: Limits) -> list[Row]:
    """Return the sum of a column in each group; that of dates depends on where days are counted from."""
    if scale.dates:
        return [withheld(group, "", "dates have no sum; ask for their mean") for group in answer.labels]
    parts = np.array([scale.centre, scale.half, 0.0, 0.0] if isinstance(query, Moments) else [scale.farthest])
    noise = float(np.linalg.norm(parts * answer.noise))
    return [limits.row(g, "", float(parts @ sums), noise) for g, sums in zip(answer.labels, answer.sums, strict=True)]


def moments(answer: QueryAnswer, function: str, scale: ColumnScale, limits: Limits) -> list[Row]:
    """Return mean, variance or sd of a column in each group; sampling of the last two as for normal records."""
    rows = []
    for group, numbers in zip(answer.labels, answer.sums, strict=True):
        if not numbers[0] > max(TOO_FEW * float(answer.noise[0]), 1.0):
            rows.append(withheld(group, "", FEW))
            continue
        value, noise = moment(function, numbers, answer.noise, scale)
        if function == "mean":
            spread = float(_moment("variance", numbers, scale)[0])
            sampling = math.sqrt(max(spread, 0.0) / numbers[0])
            rows.append(limits.row(group, "", value, noise, sampling, within=(scale.low, scale.high)))
        elif value <= 0:
            rows.append(withheld(group, "", "not above zero in the noise"))
        else:
            sampling = value * math.sqrt((2.0 if function == "variance" else 0.5) / numbers[0])
            rows.append(limits.row(group, "", value, noise, sampling, within=(0.0, math.inf)))
    return rows


def moment(function: str, numbers: FloatArray, noise: FloatArray, scale: ColumnScale) -> tuple[float, float]:
    """Return mean, variance or sd from noisy sums, and its noise; a variance as it comes out, below zero or not."""
    value = float(_moment(function, numbers, scale)[0])
    return value, float(carried(lambda x: _moment(function, x, scale), numbers, noise)[0])


def _moment(function: str, x: FloatArray, scale: ColumnScale) -> FloatArray:
    """Mean, variance or standard deviation from (count, Σu, Σ(u² − ½))."""
    mean = x[1] / x[0]
    if function == "mean":
        return np.array([scale.centre + scale.half * mean])
    spread = (x[2] / x[0] + 0.5 - mean**2) * x[0] / max(x[0] - 1, 1.0) * scale.half**2
    return np.array([spread if function == "variance" else math.sqrt(max(spread, 0.0))])


def covariances(
    answer: QueryAnswer, function: str, columns: tuple[str, ...], scales: list[ColumnScale], limits: Limits
) -> list[Row]:
    """Return covariances (variances included) or correlations, by pairs of columns; sampling as for normal records."""
    rows = []
    d = len(columns)
    i, j, items = pairs_of(function, columns)
    halves = np.array([scale.half for scale in scales])

    def wanted(x: FloatArray) -> FloatArray:
        matrix = _covariance(x, d)
        if function == "covariance":
            return np.asarray((matrix * np.outer(halves, halves))[i, j])
        size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        return np.asarray(matrix[i, j] / size[i] / size[j])

    for group, numbers in zip(answer.labels, answer.sums, strict=True):
        matrix = _covariance(numbers, d) if numbers[0] > max(TOO_FEW * float(answer.noise[0]), 1.0) else None
        shown = math.inf if matrix is None else _in_noise(float(np.diag(matrix).min()), 1, answer, numbers)
        flat = shown <= _FLAT
        if matrix is None or (flat and function == "correlation"):
            rows += [withheld(group, item, FEW) for item in items]
            continue
        values, noise = wanted(numbers), carried(wanted, numbers, answer.noise)
        note = ROUGH if function == "correlation" and shown <= TOO_FEW else ""
        if function == "correlation":
            values, noise = np.clip(values, -1.0, 1.0), np.minimum(noise, 1.0)
            sampling = (1 - values**2) / math.sqrt(numbers[0])
        else:
            full = matrix * np.outer(halves, halves)
            square = np.maximum(full[i, i] * full[j, j], 0.0) + full[i, j] ** 2
            sampling = np.sqrt(square / numbers[0])
        within = (-1.0, 1.0) if function == "correlation" else (-math.inf, math.inf)
        for item, value, off, own in zip(items, values, noise, sampling, strict=True):
            rows.append(limits.row(group, item, float(value), float(off), float(own), within, note))
    return rows


def _covariance(x: FloatArray, d: int) -> FloatArray:
    """Covariance matrix of the units (divisor n − 1) from (count, Σu, Σuᵢuⱼ for i ≤ j, of squares Σ(uᵢ² − ½))."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = x[1 + d :]
    matrix[np.diag_indices(d)] += x[0] / 2
    matrix = matrix + np.triu(matrix, 1).T
    mean = x[1 : 1 + d] / x[0]
    return np.asarray((matrix / x[0] - np.outer(mean, mean)) * (x[0] / max(x[0] - 1, 1.0)))


def regression(
    answer: QueryAnswer, columns: tuple[str, ...], known: Mapping[str, ColumnScale], limits: Limits
) -> list[Row]:
    """Return the coefficients of least squares of the first column on the others, with an intercept.

    ``known`` has the scales in the order of the sums. ``noise`` is that of the coefficients to first order;
    ``sampling`` is √(σ²(XᵀX)⁻¹) for errors of one variance.
    """
    rows = []
    d = len(columns)
    items = coefficients_of(columns)
    places = np.array([list(known).index(column) for column in columns])
    scales = [known[column] for column in columns]
    centres, halves = np.array([s.centre for s in scales]), np.array([s.half for s in scales])

    def centred(x: FloatArray) -> FloatArray:
        return np.asarray(_covariance(x, d)[np.ix_(places, places)])

    def coefficients(x: FloatArray) -> FloatArray:
        matrix = centred(x)
        slopes = np.linalg.solve(matrix[1:, 1:], matrix[1:, 0]) * halves[0] / halves[1:]
        means = centres + halves * x[1 : 1 + d][places] / x[0]
        return np.concatenate([[means[0] - slopes @ means[1:]], slopes])

    for group, numbers in zip(answer.labels, answer.sums, strict=True):
        usable = numbers[0] > max(TOO_FEW * float(answer.noise[0]), d + 1)
        matrix = centred(numbers) if usable else np.eye(d)
        shown = _in_noise(float(np.linalg.eigvalsh(matrix[1:, 1:])[0]), d, answer, numbers)
        if not usable or shown <= _FLAT:
            note = FEW if not usable else "the predictors vary too little for the noise, or depend on one another"
            rows += [withheld(group, item, note) for item in items]
            continue
        note = ROUGH if shown <= TOO_FEW else ""
        values, noise = coefficients(numbers), carried(coefficients, numbers, answer.noise)
        slopes = np.linalg.solve(matrix[1:, 1:], matrix[1:, 0])
        rest = max(float(matrix[0, 0] - slopes @ matrix[1:, 0]), 0.0) * (numbers[0] - 1) / (numbers[0] - d)
        inverse = np.linalg.inv(matrix[1:, 1:]) / (numbers[0] - 1)
        at_zero = (centres / halves + numbers[1 : 1 + d][places] / numbers[0])[1:]  # the means, in units from 0
        own = np.concatenate([[1 / numbers[0] + at_zero @ inverse @ at_zero], np.diag(inverse) / halves[1:] ** 2])
        sampling = np.sqrt(rest * own) * halves[0]
        for item, value, off, spread in zip(items, values, noise, sampling, strict=True):
            rows.append(limits.row(group, item, float(value), float(off), float(spread), note=note))
    return rows


def _in_noise(variance: float, d: int, answer: QueryAnswer, numbers: FloatArray) -> float:
    """Return a variance of the units, or of d of them together, in standard deviations of its noise."""
    noise = math.sqrt(d) * float(answer.noise.max()) / max(float(numbers[0]), 1.0)
    return variance / noise if noise > 0 else math.inf


def survival(answer: QueryAnswer, edges: tuple[float, ...], limits: Limits) -> list[Row]:
    """Return the Kaplan–Meier estimate at the end of each interval, times rounded up to the ends of their intervals.

    Records censored within an interval are at risk in it. The curve ends where noise hides how many are at risk.
    """
    rows = []
    for group, numbers in zip(answer.labels, answer.sums, strict=True):
        risk = _at_risk(numbers)
        risk_noise = answer.noise[0] * np.sqrt(2.0 * np.arange(len(risk), 0, -1))
        last = int(np.cumprod(risk > np.maximum(TOO_FEW * risk_noise, 1.0)).sum())
        raw = _log_survival(numbers, last)
        value = np.exp(np.minimum.accumulate(np.minimum(raw, 0.0)))
        noise = value * carried(partial(_log_survival, last=last), numbers, answer.noise)
        events = np.clip(numbers[1 : 2 * last : 2], 0.0, None)
        left = np.maximum(risk[:last] - events, 1e-9)
        sampling = value * np.sqrt(np.cumsum(events / (risk[:last] * left)))  # Greenwood's formula
        for step, (_, end) in enumerate(pairwise(edges)):
            item = f"{end:.6g}"
            if step >= last:
                rows.append(withheld(group, item, "too few at risk for the noise"))
                continue
            errors = float(noise[step]), float(sampling[step])
            rows.append(limits.row(group, item, float(value[step]), *errors, within=(0.0, 1.0)))
    return rows


def _at_risk(cells: FloatArray) -> FloatArray:
    """Number at risk in each interval: all whose time is not before it. Cells are (censored, event) in turn."""
    gone = cells[0::2] + cells[1::2]
    return np.asarray(np.cumsum(gone[::-1])[::-1])


def _log_survival(cells: FloatArray, last: int) -> FloatArray:
    """Σ log(1 − events/at risk) over the first ``last`` intervals, one value for the end of each."""
    hazard = cells[1 : 2 * last : 2] / _at_risk(cells)[:last]
    return np.asarray(np.cumsum(np.log1p(-np.minimum(hazard, 1 - 1e-9))))
