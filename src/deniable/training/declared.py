"""What the caller declares as public: ranges and categories, checked against the table."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import InputError, choice, mapping
from deniable.training.columns import MEASURED, FeatureColumn, FeatureTable, days
from deniable.training.looks import Declared

_OUTSIDE = 0.5  # larger shares of a column's values outside its declared range must be a mistake
_CROWDED = 180  # number of texts above which more than half share one of the 255 hash cells with another
_MOST_LISTED = 50_000  # cells are 16-bit numbers, of which others and missing take two
_WORDS = ("hash", "discover")


def declare(
    table: FeatureTable, ranges: Any, categories: Any, discovery_delta: float, *, check_values: bool = True
) -> Declared:
    """Return the checked declarations; refuses columns that do not exist and implausible values."""
    names = {column.name: column for column in table.columns}
    if not (categories is None or isinstance(categories, str | Mapping)):
        raise InputError(
            "categories must be 'hash', 'discover' or a mapping of columns to lists, such as "
            f"{{'region': ['N', 'S']}}, got {categories!r}"
        )
    spans = {}
    for name, span in mapping("ranges", ranges, "{'age': (0, 120)}").items():
        column = _known("ranges", name, names)
        if column.kind not in MEASURED:
            raise InputError(f"ranges names the column {name!r}, which holds texts; give its categories instead")
        spans[name] = span_of(f"ranges[{name!r}]", span, column.kind)
    for j, column in enumerate(table.columns if check_values else ()):
        _check_values(table, j, spans.get(column.name))
    if categories is None or isinstance(categories, str):
        word = choice("categories", "hash" if categories is None else categories, _WORDS)
        texts = frozenset(column.name for column in table.columns if column.kind == "category")
        return Declared(spans, {}, texts if word == "discover" else frozenset(), discovery_delta)
    lists: dict[Any, tuple[str, ...]] = {}
    found: set[Any] = set()
    for name, words in categories.items():
        column = _known("categories", name, names)
        if column.kind != "category":
            raise InputError(f"categories names the column {name!r}, which holds {column.kind} values, not texts")
        if isinstance(words, str):
            found |= {name} if choice(f"categories[{name!r}]", words, _WORDS) == "discover" else set()
            continue
        lists[name] = tuple(dict.fromkeys(str(word) for word in words))
        if not 0 < len(lists[name]) <= _MOST_LISTED:
            raise InputError(
                f"categories[{name!r}] must list at least one category and at most {_MOST_LISTED}, "
                f"got {len(lists[name])}"
            )
    return Declared(spans, lists, frozenset(found), discovery_delta)


def asks_discovery(categories: Any) -> bool:
    """Return whether any column's categories are to be discovered."""
    words = categories.values() if isinstance(categories, Mapping) else [categories]
    return any(isinstance(word, str) and word == "discover" for word in words)


def crowded_columns(table: FeatureTable, categories: Any) -> list[Any]:
    """Return the hashed columns with so many texts that most share their cell."""
    if isinstance(categories, str) and categories == "discover":
        return []
    declared = categories if isinstance(categories, Mapping) else {}
    hashed = [j for j, c in enumerate(table.columns) if c.kind == "category" and _is_hashed(declared, c.name)]
    return [table.columns[j].name for j in hashed if pd.Series(table.values(j)).nunique() > _CROWDED]


def _is_hashed(declared: Mapping[Any, Any], name: Any) -> bool:
    words = declared.get(name, "hash")
    return isinstance(words, str) and words == "hash"


def span_of(option: str, span: Any, kind: str = "number") -> tuple[float, float]:
    """Return (low, high) as numbers (dates: days since 1970; durations: days)."""
    try:
        ends = days(pd.Series(list(span))) if kind != "number" else [float(end) for end in span]
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise InputError(f"{option} must be (low, high), got {span!r}") from None
    if not (low < high and math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{option} must be finite with low < high, got ({low:g}, {high:g})")
    return low, high


def public_inputs(table: FeatureTable, declared: Declared) -> tuple[str, ...]:
    """Return in words what a certificate takes as known to everybody."""
    lines = ["names, kinds and order of the columns"]
    if table.left_out:
        names = ", ".join(str(column.name) for column in table.left_out)
        lines.append(f"that the texts of these columns, which were left out, are mostly different: {names}")
    if declared.ranges:
        lines.append(f"declared ranges: {', '.join(map(str, declared.ranges))}")
    if declared.categories:
        lines.append(f"declared categories: {', '.join(map(str, declared.categories))}")
    return tuple(lines)


def _known(option: str, name: Any, names: Mapping[Any, FeatureColumn]) -> FeatureColumn:
    if name in names:
        return names[name]
    near = difflib.get_close_matches(str(name), [str(n) for n in names], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{option} names the column {name!r}, which X does not have{hint}")


def _check_values(table: FeatureTable, j: int, span: tuple[float, float] | None) -> None:
    """Refuse what must be a mistake: a column without a value, a range that misses the data."""
    column, values = table.columns[j], table.values(j)
    missing = np.asarray(pd.isna(values))
    if missing.all():
        raise InputError(f"column {column.name!r} has no value at all; drop it")
    if span is None:
        return
    outside = float(np.mean((values[~missing] < span[0]) | (values[~missing] > span[1])))
    if outside > _OUTSIDE:
        raise InputError(
            f"ranges[{column.name!r}] = ({span[0]:g}, {span[1]:g}) leaves out {outside:.0%} of the column's values; is "
            "the unit right? Leave the range out to have it found privately"
        )
