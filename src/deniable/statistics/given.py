"""What is declared of the columns that statistics need, before any record is seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deniable._check import InputError
from deniable.statistics.grammar import ABSENT, OTHER, ColumnScale, Day, Statistic
from deniable.tables import Schema, as_schema, shorthand

_OF_PERSONS = "whole persons are hidden, so say how much one may add in all, as in sum(spend, per_person=5000)"
_NO_PERSONS = "per_person bounds what a person's records add up to; name the column of persons (group=, --schema)"


@dataclass(frozen=True, eq=False)
class Given:
    """The columns that the statistics need, with what is declared of them; the data have no part in it.

    Attributes
    ----------
    numbers, groups
        Columns of numbers, and those whose categories make groups.
    scales, labels
        Declared ranges and categories. A column of numbers whose range does not matter (it is cut at given edges, or
        is an event) needs none.
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
            groups |= dict.fromkeys(one.grouped)
            numbers |= dict.fromkeys(() if shared else one.columns)
            edges, bound = one.option("edges", ()), one.option("per_person", ())
            if one.function == "sum" and bool(bound) == (schema.person is None):
                raise InputError(f"{one}: {_OF_PERSONS if schema.person else _NO_PERSONS}")
            if bound:
                bounds[one.columns[0]] = max(*bound, bounds.get(one.columns[0], 0.0))
            elif edges or shared:
                cut_at_dates |= {one.columns[0]} if edges and all(isinstance(edge, Day) for edge in edges) else set()
            else:
                ranged |= set(one.columns[: 1 if one.function == "survival" else None])
        for name in (*numbers, *groups):
            kind = schema.kind(name)
            if kind == "dropped" or (name in numbers and kind in ("category", "code")):
                raise InputError(f"column {name!r} is declared as {kind!r}, so it has no numbers to release")
        own = {name: schema.column(name) for name in (*numbers, *groups)}
        labels = {name: own[name].labels for name in groups if own[name].labels}
        for name, found in labels.items():
            if {OTHER, ABSENT} & set(found):
                raise InputError(f"the categories of {name!r} must not be {OTHER} or {ABSENT}, which every column has")
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
    groups = {name for one in statistics for name in one.grouped}
    numbers = {name for one in statistics for name in one.columns} - groups
    for name in said.keys() & (groups | numbers):
        (value,) = said[name].values()
        said[name] = {"range": value} if name in numbers else said[name] | {"categories": value}
    told = as_schema(schema).saying(said)
    return told if group is None else replace(told, person=group)
