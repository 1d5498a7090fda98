"""From statistics to queries: which sums answer them, their parts of the budget, and what the numbers are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from deniable.statistics.grammar import ColumnScale, Statistic
from deniable.statistics.queries import MOST_RANKS, CellCounts, Moments, Query, Ranks, Totals, Tree

_BINS = {"histogram": 10.0, "survival": 20.0}
_LEAST_OWN = 0.1  # of a part that counts keep beside moments that tell nearly all
_POPULATION = dict.fromkeys(
    ("variance", "sd", "covariance", "correlation"), "; limits for the population as for normal records"
) | {"regression": "; limits for the population as for errors of one variance"}


def query_of(statistic: Statistic, scales: Mapping[str, ColumnScale]) -> Query:
    """Return the sums from which the statistic is computed."""
    function, columns, by = statistic.function, statistic.columns, statistic.by
    match function:
        case "count":
            return CellCounts(by)
        case "share":
            return CellCounts((*by, columns[0]))
        case "histogram" | "survival":
            return CellCounts(by, columns, edges_of(statistic, scales[columns[0]]))
        case "sum":
            bound = statistic.option("per_person", (0.0,))[0]
            return Totals(by, columns, scales[columns[0]].low < 0 < scales[columns[0]].high, bound)
        case "mean" | "variance" | "sd":
            return Moments(by, columns, function != "mean")
        case "covariance" | "correlation" | "regression":
            return Moments(by, tuple(sorted(columns)))
    wanted = tuple(sorted(set(probabilities(statistic)))) if function in ("median", "quantile") else ()
    return Ranks(by, columns, wanted) if 0 < len(wanted) <= MOST_RANKS else Tree(by, columns)


def probabilities(statistic: Statistic) -> tuple[float, ...]:
    """Return the probabilities of a median or of quantiles."""
    return statistic.numbers or (0.5,)


def edges_of(statistic: Statistic, scale: ColumnScale) -> tuple[float, ...]:
    """Return the edges that were given, or those of the requested number of equal bins of the range."""
    given = statistic.option("edges", ())
    if given:
        return given
    bins = int(statistic.option("bins", (_BINS[statistic.function],))[0])
    return tuple(np.linspace(scale.low, scale.high, bins + 1).tolist())


def intervals(statistic: Statistic, scale: ColumnScale) -> tuple[str, ...]:
    """Return what the intervals of a histogram are called."""
    return tuple(f"{scale.written(a)} to {scale.written(b)}" for a, b in pairwise(edges_of(statistic, scale)))


def estimand(statistic: Statistic, scales: Mapping[str, ColumnScale], unit: str) -> str:
    """Return what a statistic's numbers and limits are of: of values limited to their ranges, of records or persons."""
    function, columns = statistic.function, statistic.columns
    ends = {name: f"limited to ({scales[name].exactly()})" for name in columns if name in scales}
    cut = function in ("histogram", "survival") and statistic.option("edges", ())
    if function in ("count", "share", "histogram", "survival"):
        what = {"count": "number", "histogram": "number", "share": "share", "survival": "share alive"}[function]
        named = f"{what} of {unit}s" + ("" if cut or not ends else f"; {columns[0]} {ends[columns[0]]}")
    elif len(columns) == 1:
        named = f"{function.replace('_', ' ')} of values {ends[columns[0]]}"
    else:
        named = f"{function} of {', '.join(f'{name} {ends[name]}' for name in columns)}"
    bound = statistic.option("per_person", ())
    if bound:
        return f"{named}, what one person adds in all limited to ±{bound[0]:g}"
    shares = "; each person's records count as one together" if unit == "person" else ""
    return f"{named}{shares}{_POPULATION.get(function, '')}"


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


def shared(queries: list[Query]) -> list[Query]:
    """Replace each query by a wider one that answers it, if there is one; quantiles of a column are chosen together."""
    ranks: dict[Query, set[float]] = {}
    for query in queries:
        if isinstance(query, Ranks):
            ranks.setdefault(replace(query, probabilities=()), set()).update(query.probabilities)
    queries = [
        replace(query, probabilities=tuple(sorted(ranks[replace(query, probabilities=())])))
        if isinstance(query, Ranks)
        else query
        for query in queries
    ]

    def widest(query: Query) -> Query:
        wide = next((other for other in queries if other.answers(query)), None)
        return query if wide is None else widest(wide)

    return [widest(query) for query in queries]
