"""What the caller declares as public: ranges and categories, checked against the table."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from deniable._check import InputError, choice, mapping
from deniable.training.columns import MEASURED, FeatureColumn, FeatureTable, days, text_of
from deniable.training.looks import Declared

_MOST_LISTED = 50_000  # cells are 16-bit numbers, of which others and missing take two
_WORDS = ("hash", "discover")


def declare(table: FeatureTable, ranges: Any, categories: Any, discovery_delta: float) -> Declared:
    """Return the checked declarations; refuses columns that do not exist. No cell is looked at."""
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
        lists[name] = tuple(dict.fromkeys(text_of(word) for word in words))
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
