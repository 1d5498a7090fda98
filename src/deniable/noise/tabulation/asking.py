"""Which sums a statistic needs, and which estimate is made of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from deniable.noise.tabulation import distribution, estimates
from deniable.noise.tabulation.answers import Limits, QueryAnswer, Row
from deniable.noise.tabulation.dates import LOCATIONS
from deniable.noise.tabulation.grammar import Statistic
from deniable.noise.tabulation.queries import MOST_RANKS, CellCounts, Moments, Products, Query, Ranks, Tree
from deniable.noise.tabulation.records import Records

_BINS = {"histogram": 10.0, "survival": 20.0}
_UNITS = {"sd": "in days", "variance": "in days squared"}  # of columns of dates
_POINTS = 16.0  # intervals of a distribution function, unless ``points`` is given


def query_of(statistic: Statistic, records: Records) -> Query:
    """Return the sums from which the statistic is computed."""
    function, columns, by = statistic.function, statistic.columns, statistic.by
    if function == "count":
        return CellCounts(by)
    if function == "share":
        return CellCounts((*by, columns[0]))
    if function in ("histogram", "survival"):
        event = columns[1] if function == "survival" else None
        return CellCounts(by, columns[0], edges_of(statistic, records), event)
    if function in ("sum", "mean", "variance", "sd"):
        return Moments(by, columns[0], function in ("variance", "sd"))
    if function in ("covariance", "correlation", "regression"):
        return Products(by, tuple(sorted(columns)))
    if function in ("median", "quantile"):
        ranks = Ranks(by, columns[0], tuple(sorted(set(probabilities(statistic)))))
        if ranks.fixed(records) and len(ranks.probabilities) <= MOST_RANKS:
            return ranks
    return Tree(by, columns[0])


def probabilities(statistic: Statistic) -> tuple[float, ...]:
    """Return the probabilities of a median or of quantiles."""
    return statistic.numbers or (0.5,)


def edges_of(statistic: Statistic, records: Records) -> tuple[float, ...]:
    """Return the edges that were given, or those of the requested number of equal bins of the range."""
    given = statistic.option("edges", ())
    if given:
        return given
    scale = records.scales[statistic.columns[0]]
    bins = int(statistic.option("bins", (_BINS[statistic.function],))[0])
    return tuple(np.linspace(scale.low, scale.high, bins + 1).tolist())


def answered(statistic: Statistic, query: Query, answer: QueryAnswer, records: Records, limits: Limits) -> list[Row]:
    """Return the statistic's rows from the answer to its query."""
    return dated(statistic, _answered(statistic, query, answer, records, limits), records)


def dated(statistic: Statistic, rows: list[Row], records: Records) -> list[Row]:
    """Return the rows, marked as moments where they are means or quantiles of dates; spreads with their unit."""
    if len(statistic.columns) != 1 or not getattr(records.scales.get(statistic.columns[0]), "dates", False):
        return rows
    if statistic.function in LOCATIONS:
        return [replace(row, dated=True) for row in rows]
    unit = _UNITS.get(statistic.function)
    return [replace(row, note=row.note or unit) for row in rows] if unit else rows


def _answered(statistic: Statistic, query: Query, answer: QueryAnswer, records: Records, limits: Limits) -> list[Row]:
    function, columns = statistic.function, statistic.columns
    if function == "count":
        one = QueryAnswer(answer.sums[:, :1], answer.noise[:1], answer.labels, answer.fixed)
        return estimates.counts(one, ("",), records.n, limits)
    if function == "share":
        labels = records.categories[columns[0]].labels
        return estimates.shares(answer, labels, None if statistic.by else records.n, limits)
    if function == "histogram":
        edges = edges_of(statistic, records)
        scale = records.scales[columns[0]]
        items = tuple(f"{scale.written(a)} to {scale.written(b)}" for a, b in pairwise(edges))
        return estimates.counts(answer, items, records.n, limits)
    if function == "survival":
        return estimates.survival(answer, edges_of(statistic, records), limits)
    if isinstance(query, Products):
        scales = [records.scales[column] for column in query.variables]
        if function == "regression":
            return estimates.regression(answer, columns, dict(zip(query.variables, scales, strict=True)), limits)
        return estimates.covariances(answer, function, query.variables, scales, limits)
    scale = records.scales[columns[0]]
    if function == "trimmed_mean":
        return distribution.trimmed_means(answer, scale, statistic.numbers[0], limits)
    if function == "ecdf":
        return distribution.distribution_function(answer, scale, int(statistic.option("points", (_POINTS,))[0]), limits)
    if function in ("median", "quantile"):
        return distribution.quantiles(answer, scale, probabilities(statistic), limits)
    return estimates.moments(answer, function, scale, limits)
