"""What is declared of the columns before any record is seen, what each statistic asks for, and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from deniable._check import InputError
from deniable._shown import plural
from deniable.statistics import distribution, estimates
from deniable.statistics.estimates import Limits, QueryAnswer
from deniable.statistics.grammar import ABSENT, OTHER, ColumnScale, Day, Statistic
from deniable.statistics.queries import (
    MOST_RANKS,
    Categories,
    CellCounts,
    Moments,
    Query,
    Ranks,
    Records,
    Totals,
    Tree,
)
from deniable.statistics.released import Row
from deniable.tables import Schema, as_schema, shorthand

_OF_PERSONS = "whole persons are hidden, so say how much one may add in all, as in sum(spend, per_person=5000)"
_NO_PERSONS = "per_person bounds what a person's records add up to; name the column of persons (group=, --schema)"
_MOST = 1e100  # size of a number: its square, and sums of squares, are numbers still
_MOST_GROUPS = 1000  # in which quantiles are chosen one by one: about 3 ms each
_BINS = 10.0  # of a histogram, unless ``bins`` or ``edges`` are given
_LOCATIONS = ("mean", "median", "quantile")  # statistics of dates that are dates themselves
_UNITS = {"sd": "in days", "variance": "in days squared"}  # of columns of dates
_POINTS = 16.0  # intervals of a distribution function, unless ``points`` is given
_LEAST_OWN = 0.1  # of a part that counts keep beside moments that tell nearly all
_NAMES = {"ecdf": "share below each point"}
_DATED = "; dates count in days since 1970-01-01"
_GAPS = "; limits as for values without gaps (of whole numbers: declare them as such)"
_POPULATION = dict.fromkeys(
    ("variance", "sd", "covariance", "correlation"), "; limits for the population as for normal records"
) | {"regression": "; limits for the population as for errors of one variance"}


@dataclass(frozen=True, eq=False)
class Given:
    """The columns that the statistics need, with what is declared of them; the data have no part in it.

    Attributes
    ----------
    numbers, groups
        Columns of numbers, and those whose categories make groups.
    scales, labels
        Declared ranges and categories. A column of numbers whose range does not matter (it is cut at given edges)
        needs none.
    ranged
        Columns of numbers whose range matters.
    """

    numbers: tuple[str, ...]
    groups: tuple[str, ...]
    scales: Mapping[str, ColumnScale]
    labels: Mapping[str, tuple[str, ...]]
    ranged: frozenset[str]

    @property
    def unknown(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Columns of numbers without a range, and of categories without a list."""
        numbers = tuple(column for column in self.numbers if column not in self.scales)
        return numbers, tuple(column for column in self.groups if column not in self.labels)

    @classmethod
    def of(cls, statistics: Sequence[Statistic], schema: Schema) -> Given:
        """Collect the columns of all statistics and check what is declared of them."""
        numbers, groups = dict[str, None](), dict[str, None]()
        ranged, cut_at_dates, bounds = set[str](), set[str](), dict[str, float]()
        for one in statistics:
            shared = one.function == "share"
            groups |= dict.fromkeys(one.group_columns)
            numbers |= dict.fromkeys(() if shared else one.columns)
            edges, bound = one.option("edges", ()), one.option("per_person", ())
            if one.function == "sum" and bool(bound) == (schema.person is None):
                raise InputError(f"{one}: {_OF_PERSONS if schema.person else _NO_PERSONS}")
            if bound:
                bounds[one.columns[0]] = max(*bound, bounds.get(one.columns[0], 0.0))
            elif edges or shared:
                cut_at_dates |= {one.columns[0]} if edges and all(isinstance(edge, Day) for edge in edges) else set()
            else:
                ranged |= set(one.columns)
        for name in (*numbers, *groups):
            kind = schema.kind(name)
            if kind == "dropped" or (name in numbers and kind in ("category", "code")):
                raise InputError(f"column {name!r} is declared as {kind!r}, so it has no numbers to release")
        own = {name: schema.column(name) for name in (*numbers, *groups)}
        labels = {name: own[name].labels for name in groups if own[name].labels}
        for name, found in labels.items():
            if {OTHER, ABSENT} & set(found):
                raise InputError(f"the categories of {name!r} must not be {OTHER} or {ABSENT}, which every column has")
        for name in numbers:
            if max(map(abs, own[name].span or (0.0,))) > _MOST:
                raise InputError(f"the range of {name!r} must lie within ±{_MOST:g}, got {own[name].span}: rescale it")
        spans = {name: span for name in numbers if (span := own[name].span) is not None}
        kinds = {name: own[name].kind for name in spans}
        scales = {
            name: ColumnScale(*span, kinds[name] == "date", kinds[name] in ("whole", "yes/no"))
            for name, span in spans.items()
        }
        free = {
            name: ColumnScale(-bounds.get(name, 0.0), bounds.get(name, 1.0), name in cut_at_dates)
            for name in numbers
            if name not in ranged
        }
        for one in statistics:
            if one.function == "sum" and one.columns[0] in scales and scales[one.columns[0]].dates:
                raise InputError(f"{one}: dates have no sum; ask for mean({one.columns[0]})")
        return cls(tuple(numbers), tuple(groups), free | scales, labels, frozenset(ranged))


def declared(schema: Any, ranges: Any, group: str | None, statistics: Iterable[Statistic]) -> Schema:
    """Return a schema with what ``ranges`` and ``group`` declare: of a column that makes groups its categories."""
    said = shorthand(ranges)
    groups = {name for one in statistics for name in one.group_columns}
    numbers = {name for one in statistics for name in one.columns} - groups
    for name in said.keys() & (groups | numbers):
        (value,) = said[name].values()
        said[name] = {"range": value} if name in numbers else said[name] | {"categories": value}
    told = as_schema(schema).saying(said)
    return told if group is None else replace(told, person=group)


def query_of(statistic: Statistic, records: Records) -> Query:
    """Return the sums from which the statistic is computed; few quantiles of records in few groups are chosen."""
    function, columns, by, scales = statistic.function, statistic.columns, statistic.by, records.scales
    match function:
        case "count":
            return CellCounts(by)
        case "share":
            return CellCounts((*by, columns[0]))
        case "histogram":
            return CellCounts(by, columns, edges_of(statistic, scales[columns[0]]))
        case "sum":
            bound = statistic.option("per_person", (0.0,))[0]
            return Totals(by, columns, scales[columns[0]].low < 0 < scales[columns[0]].high, bound)
        case "mean" | "variance" | "sd":
            return Moments(by, columns, function != "mean")
        case "covariance" | "correlation" | "regression":
            return Moments(by, tuple(sorted(columns)))
    wanted = tuple(sorted(set(probabilities(statistic)))) if function in ("median", "quantile") else ()
    ranked = records.units.weights is None and len(records.labels(by)) <= _MOST_GROUPS
    return Ranks(by, columns, wanted) if ranked and 0 < len(wanted) <= MOST_RANKS else Tree(by, columns)


def probabilities(statistic: Statistic) -> tuple[float, ...]:
    """Return the probabilities of a median or of quantiles."""
    return statistic.numbers or (0.5,)


def edges_of(statistic: Statistic, scale: ColumnScale) -> tuple[float, ...]:
    """Return the edges that were given, or those of the requested number of equal bins of the range."""
    given = statistic.option("edges", ())
    if given:
        return given
    bins = int(statistic.option("bins", (_BINS,))[0])
    return tuple(np.linspace(scale.low, scale.high, bins + 1).tolist())


def intervals(statistic: Statistic, scale: ColumnScale) -> tuple[str, ...]:
    """Return what the intervals of a histogram are called."""
    return tuple(f"{scale.written(a)} to {scale.written(b)}" for a, b in pairwise(edges_of(statistic, scale)))


def estimand(statistic: Statistic, scales: Mapping[str, ColumnScale], unit: str) -> str:
    """Return what a statistic's numbers and limits are of: of values limited to their ranges, of records or persons."""
    function, columns = statistic.function, statistic.columns
    names = columns if len(columns) > 1 else ("values",)
    gaps = function in ("median", "quantile") and not scales[columns[0]].whole
    ends = (scales[column].exactly() for column in columns if column in scales)
    limited = ", ".join(f"{name} limited to ({own})" for name, own in zip(names, ends, strict=False))
    bound = statistic.option("per_person", ())
    if bound:
        return f"sum of {limited}, what one person adds in all limited to ±{bound[0]:g}"
    counted = {"count": "number", "share": "share", "histogram": "number"}.get(function)
    named = f"{counted} of {plural(unit)}" if counted else f"{_NAMES.get(function, function)} of {limited}"
    shares = "; each person's records count as one together" if unit == "person" else ""
    dated = len(columns) > 1 and any(scales[column].dates for column in columns if column in scales)
    return f"{named}{shares}{_DATED * dated}{_POPULATION.get(function, '')}{_GAPS if gaps else ''}"


def shares_of(queries: list[Query]) -> dict[Query, float]:
    """Return each query's share of what is left of μ²: equal parts, one for those that need the same sums.

    Moments tell about the counts of their groups, too: where both are asked for, counts leave them as much of their
    part as lets them be as exact as by a whole part alone.
    """
    parts = dict.fromkeys(queries, 1.0)
    for cells in [query for query in parts if query == CellCounts(query.by)]:
        beside = [query for query in parts if isinstance(query, Moments) and query.by == cells.by]
        told = sum(query.counting for query in beside) / max(len(beside), 1)
        given = min(len(beside) * told / (1 - told), 1 - _LEAST_OWN)
        parts |= {cells: 1 - given} | dict.fromkeys(beside, 1 + given / max(len(beside), 1))
    return {query: part / sum(parts.values()) for query, part in parts.items()}


def share_queries(queries: list[Query]) -> list[Query]:
    """Replace each query by a wider one that answers it, if there is one; quantiles of a column are chosen together."""
    ranks: dict[Query, set[float]] = {}
    for query in queries:
        if isinstance(query, Ranks):
            ranks.setdefault(replace(query, probabilities=()), set()).update(query.probabilities)

    def widest(query: Query) -> Query:
        if isinstance(query, Ranks):
            return replace(query, probabilities=tuple(sorted(ranks[replace(query, probabilities=())])))
        wide = next((other for other in queries if other.answers(query)), None)
        return query if wide is None else widest(wide)

    return [widest(query) for query in queries]


def rows_of_answer(
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
        return estimates.counts(answer, ("",), n, limits)
    if function == "share":
        return estimates.shares(answer, categories[columns[0]].labels, limits)
    scale = scales[columns[0]]
    match function:
        case "histogram":
            rows = estimates.counts(answer, intervals(statistic, scale), n, limits)
        case "sum":
            rows = estimates.totals(answer, query, scale, limits)
        case "mean":
            rows = estimates.means(answer, scale, limits)
        case "variance" | "sd":
            rows = estimates.spreads(answer, function, scale, limits)
        case "regression":
            rows = estimates.regression(answer, columns, {column: scales[column] for column in query.columns}, limits)
        case "ecdf":
            points = int(statistic.option("points", (_POINTS,))[0])
            rows = distribution.distribution_function(answer, scale, points, limits)
        case "median" | "quantile":
            rows = distribution.quantiles(answer, scale, probabilities(statistic), limits)
        case _:
            known = {column: scales[column] for column in query.columns}
            rows = estimates.covariances(answer, function, known, limits)
    return _mark_dates(statistic, rows, scale) if len(columns) == 1 else rows


def _mark_dates(statistic: Statistic, rows: list[Row], scale: ColumnScale) -> list[Row]:
    """Return the rows, marked as moments where they are means or quantiles of dates; spreads with their unit."""
    if not scale.dates:
        return rows
    if statistic.function in _LOCATIONS:
        return [replace(row, dated=True) for row in rows]
    unit = _UNITS.get(statistic.function)
    return [replace(row, note=row.note or unit) for row in rows] if unit else rows
