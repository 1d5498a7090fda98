"""Dates in statistics: people write them, computations count the days since 1970-01-01."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from deniable._check import InputError
from deniable.noise.tabulation.grammar import Day, Statistic

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
LOCATIONS = ("mean", "median", "quantile", "trimmed_mean")  # statistics of dates that are dates themselves


def days_in_ranges(ranges: Mapping[str, Sequence[Any]], statistics: Sequence[Statistic]) -> dict[str, Sequence[Any]]:
    """Return the ranges with pairs of dates as days; categories, which look alike, stay what they are."""
    labels = {c for one in statistics for c in (*one.by, *(one.columns if one.function == "share" else ()))}
    return {name: ends if name in labels else _in_days(name, ends) for name, ends in ranges.items()}


def _in_days(name: str, ends: Sequence[Any]) -> Sequence[Any]:
    if isinstance(ends, str):
        return ends
    if not isinstance(ends, Iterable):
        raise InputError(f"the range of {name!r} must be two numbers (low, high), got {ends!r}")
    ends = tuple(end.isoformat()[:10] if isinstance(end, date) else end for end in ends)
    texts = [isinstance(end, str) and bool(_ISO.fullmatch(end)) for end in ends]
    if not (any(texts) and len(texts) == 2):
        return ends
    if not all(texts):
        raise InputError(f"the range of {name!r} must be two dates or two numbers, got {ends!r}")
    return tuple(Day.of(end) for end in ends)


def refuse_sums(statistic: Statistic, dates: Collection[str]) -> None:
    """Raise for the sum of a column of dates, which depends on where days are counted from."""
    if statistic.function == "sum" and statistic.columns[0] in dates:
        raise InputError(f"{statistic}: dates have no sum; ask for mean({statistic.columns[0]})")


def written(value: float, *, as_date: bool) -> str:
    """Return a number of six digits, or the date of the day in which a moment lies."""
    return str(Day(value)) if as_date else f"{value:.6g}"


def place_of(item: str) -> float:
    """Return where a number or a date that labels a row lies on an axis."""
    return Day.of(item) if _ISO.fullmatch(item) else float(item.removeprefix("day "))


def calendar(axis: Any) -> None:
    """Label an axis of Matplotlib, on which days since 1970 were drawn, with dates."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    places = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    axis.set_major_locator(places)
    axis.set_major_formatter(ConciseDateFormatter(places))  # type: ignore[no-untyped-call]
