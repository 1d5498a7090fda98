"""From an understood table to a matrix: public constants, rows of norm at most 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import FloatArray, InputError
from deniable.tables.draft import Column, Understood
from deniable.tables.inference import RARE, coarse_range


def encode(table: Understood) -> tuple[FloatArray, FloatArray]:
    """Return a table as rows of norm at most 1, (n, d), and the two values of its target as −1 and +1, (n,).

    Numbers go linearly to [−1, 1] and are clipped there, categories to indicators, and a constant column is added (a
    regularised intercept); everything is then divided by √(number of source columns + 1), which bounds the norm of any
    possible row, not only of those at hand. A missing number is 0 with an indicator of its own, a missing text has one
    too; a text that is none of the categories has none. Ranges and categories of the table's schema are the constants;
    those that it does not declare are read off the data, and must be public for any guarantee to hold. Their ends are
    rounded outward to a coarse grid, so none is a person's value, and no text of fewer than 3 rows is among their
    categories.

    Raises
    ------
    InputError
        If no target was named, no column can be used besides, or the target has not two values in 2 rows at least.
    """
    target = table.supervised()
    classes = sorted(target.unique().tolist(), key=str)
    if len(classes) != 2:
        raise InputError(
            f"target {table.target_name!r} must have exactly 2 values to become −1 and +1, got {len(classes)}; choose "
            "or make a binary column"
        )
    if target.value_counts().min() < 2:
        raise InputError(f"target {table.target_name!r} must have at least 2 rows of each value")
    known = dict[Column, list[Any]]()
    for one in table.kept:
        own = table.schema.column(one.name)
        declared = own.labels if one.kind == "category" else own.span
        known[one] = list(declared or _read_off(one, table.frame[one.name]))
    widths = [(len(ends) if one.kind == "category" else 1) + bool(one.missing) for one, ends in known.items()]
    X = np.ones((len(target), sum(widths) + 1))
    scaled = chain.from_iterable(_scale_to_unit(one, ends, table.frame[one.name]) for one, ends in known.items())
    for place, values in enumerate(scaled):  # one column at a time: they are not held twice
        X[:, place] = values
    X *= 1 / math.sqrt(len(table.kept) + 1)
    return X, np.where(target.to_numpy() == classes[1], 1.0, -1.0)


def _scale_to_unit(column: Column, constants: list[Any], values: pd.Series[Any]) -> Iterator[FloatArray]:
    """Yield these columns, between −1 and 1; of each record the squares sum to 1 at most."""
    if column.kind == "category":
        yield from ((values == word).to_numpy(dtype=np.float64) for word in constants)
    else:
        low, high = constants
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        yield np.clip(np.nan_to_num((values.to_numpy(dtype=np.float64) - middle) / half), -1.0, 1.0)
    if column.missing:
        yield np.asarray(values.isna(), dtype=np.float64)


def _read_off(column: Column, values: pd.Series[Any]) -> list[Any]:
    """Return coarse constants of a column for which none are declared."""
    if column.kind != "category":
        low, high = float(values.min()), float(values.max())
        beside = max(1.0, abs(low)) * (low == high)
        return coarse_range(low - beside, high + beside)
    counts = values.astype(str)[values.notna()].value_counts()
    return sorted(counts.index[counts >= min(RARE, counts.max())].tolist())
