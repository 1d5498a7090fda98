"""From an understood table to a matrix: public constants, one scikit-learn encoder, rows of norm at most 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, mapping
from deniable._memory import trim
from deniable.tables.draft import MAX_CATEGORIES, RARE, Ranges
from deniable.tables.reading import Table

_ROWS = 1 << 14  # that are encoded at a time
_GRID = 8  # a range that is read off the data is rounded outward to about this share of itself
GAP = "(missing)"


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """The features of a table as numbers: rows of Euclidean norm at most 1.

    Attributes
    ----------
    X
        Rows of shape (n, d) with a constant last column (a regularised intercept).
    columns
        Name of each column of ``X``.
    ranges
        The scaling constants used: [low, high] for a number, the list of categories otherwise.
    assumed_public
        Columns whose constants were read off the data and must therefore be public for any guarantee to hold. Their
        ends are rounded outward to a coarse grid, so none is a person's value, and no text of fewer than 3 rows is
        among their categories.
    """

    X: FloatArray
    columns: tuple[str, ...]
    ranges: dict[str, list[Any]]
    assumed_public: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Encoded(EncodedRows):
    """A table of two classes as numbers: also labels −1 and +1.

    Attributes
    ----------
    y
        Labels, shape (n,).
    classes
        The target's values that became −1 and +1.
    """

    y: FloatArray
    classes: tuple[Any, Any]


def encode(
    table: Table, *, ranges: Ranges | None = None, rows: NDArray[np.intp] | None = None, consume: bool = False
) -> Encoded:
    """:func:`encode_rows`, and the two values of the target as −1 and +1."""
    y, classes = signs(table)
    found = encode_rows(table, ranges=ranges, rows=rows, consume=consume)
    return Encoded(**vars(found), y=y if rows is None else y[rows], classes=classes)


def encode_rows(
    table: Table, *, ranges: Ranges | None = None, rows: NDArray[np.intp] | None = None, consume: bool = False
) -> EncodedRows:
    """Encode and scale a table with scikit-learn so that every row has norm at most 1.

    Numbers go linearly to [−1, 1] and are clipped there, categories to indicators, and a constant column is added;
    everything is then divided by √(number of source columns + 1), which bounds the norm of any possible row, not only
    of those at hand. A missing number is 0 with an indicator of its own, a missing text has one too; a text that is
    none of the categories has none. The constants in ``ranges`` ([low, high] for a number, the categories for a text)
    are the caller's; those not given are read off the data, coarsely, and are then **assumed public**. ``rows`` are the
    numbers of those to encode, each once, in the order wanted; the constants are those of all. With ``consume`` the
    columns leave ``table.features`` as they are encoded, so that they are never in memory twice.
    """
    given = mapping("ranges", ranges, "{'age': (0, 120)}")
    for column in given:
        if column not in table.features.columns:
            raise InputError(f"ranges names the column {column!r}, which is not in {table.name} or was dropped")
    constants = constants_of(table, given)
    encoder = make_encoder(table, constants)
    names = (*_names(table, constants), "(constant)")
    columns, n, size = tuple(map(str, table.features.columns)), len(table.features), _size(table)
    order = np.arange(n) if rows is None else rows
    place = np.full(n, -1)
    place[order] = np.arange(len(order))
    X = np.empty((len(order), len(names)))
    first = 0
    for part in _parts(table.features, consume):
        wanted = place[first : first + len(part)]
        first += len(part)
        if (wanted >= 0).any():
            X[wanted[wanted >= 0], :-1] = encoder.transform(part[wanted >= 0])
    X[:, -1] = size
    return EncodedRows(
        X=X,
        columns=names,
        ranges=constants,
        assumed_public=tuple(c for c in columns if c not in given),
    )


def _parts(features: pd.DataFrame, consume: bool) -> Iterator[pd.DataFrame]:
    """Yield some rows after the other; with ``consume`` they are taken out of ``features`` first, by column."""
    starts = range(0, len(features), _ROWS)
    if not consume:
        yield from (features.iloc[at : at + _ROWS] for at in starts)
        return
    parts: list[dict[Any, pd.Series[Any]]] = [{} for _ in starts]
    for place, name in enumerate(list(features.columns)):
        column = features.pop(name)
        for part, at in zip(parts, starts, strict=True):
            part[name] = column.iloc[at : at + _ROWS].copy()
        if place % 64 == 63:
            trim()
    while parts:
        yield pd.DataFrame(parts.pop(0))
        if len(parts) % 6 == 0:
            trim()


def signs(table: Table) -> tuple[FloatArray, tuple[Any, Any]]:
    """Return the labels of all rows as −1 and +1, and the target's values that these stand for."""
    classes = sorted(table.target.unique().tolist(), key=str)
    if len(classes) != 2:
        raise InputError(
            f"target {table.target_name!r} must have exactly 2 values to become −1 and +1, got {len(classes)}; "
            "leave it as it is (encode_rows) or make a binary column"
        )
    return np.where(table.target.to_numpy() == classes[1], 1.0, -1.0), (classes[0], classes[1])


def constants_of(table: Table, given: Ranges) -> dict[str, list[Any]]:
    """Return the scaling constants: those given, and coarse ones for the other columns."""
    textual = set(_textual(table))
    return {
        str(c): (_categories if c in textual else _number_range)(str(c), given.get(c), table.features[c])
        for c in table.features.columns
    }


def make_encoder(table: Table, constants: dict[str, list[Any]]) -> Any:
    """Return the encoding as a scikit-learn transformer that has seen nothing but the constants."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import KNNImputer, MissingIndicator
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    size, textual, gappy = _size(table), _textual(table), _gappy(table)
    numeric = [c for c in table.features.columns if c not in textual]
    scale = MinMaxScaler((-size, size), clip=True)
    middle = KNNImputer(n_neighbors=2)  # the mean of the scaled ends, −size and size: 0 (skops trusts this one)
    words = [[*constants[c], *([np.nan] if c in gappy else [])] for c in textual]
    indicate = OneHotEncoder(categories=words, handle_unknown="ignore", sparse_output=False)
    whole, gaps = [c for c in numeric if c not in gappy], [c for c in numeric if c in gappy]
    steps = [
        ("numbers", scale, whole),
        ("numbers with gaps", make_pipeline(scale, middle), gaps),
        ("gaps", MissingIndicator(features="all"), gaps),
        ("categories", indicate, textual),
    ]
    public = pd.DataFrame(
        {
            c: pd.Series(constants[c], dtype=np.float64)
            if c in numeric
            else pd.Series([constants[c][0]] * 2, dtype=object)
            for c in table.features.columns
        }
    )
    steps = [step for step in steps if step[2]]
    encoder = ColumnTransformer(steps, transformer_weights={"gaps": size, "categories": size})
    return encoder.fit(public)


def _names(table: Table, constants: dict[str, list[Any]]) -> list[str]:
    textual, gappy = _textual(table), _gappy(table)
    numeric = [c for c in table.features.columns if c not in textual]
    gaps = [c for c in numeric if c in gappy]
    names = [*(c for c in numeric if c not in gappy), *gaps, *(f"{c}={GAP}" for c in gaps)]
    for c in textual:
        names += [f"{c}={value}" for value in (*constants[c], *([GAP] if c in gappy else []))]
    return names


def _size(table: Table) -> float:
    return 1 / math.sqrt(table.features.shape[1] + 1)


def _textual(table: Table) -> list[str]:
    return [column.name for column in table.columns if column.kind == "category"]


def _gappy(table: Table) -> set[str]:
    return {column.name for column in table.columns if column.missing}


def _number_range(column: str, given: Sequence[Any] | None, values: pd.Series[Any]) -> list[float]:
    if given is None:
        low, high = coarse_range(float(values.min()), float(values.max()))
        spare = max(_narrowest(low, high) - (high - low), 0.0)
        return [low, high] if spare == 0 else [low - spare, high + spare]
    try:
        if isinstance(given, str):
            raise TypeError
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise InputError(f"ranges[{column!r}] must be [low, high], got {given!r}") from None
    if not 0 < high - low < np.inf:
        raise InputError(f"ranges[{column!r}] must be finite with low < high, got [{low:g}, {high:g}]")
    if high - low < (least := _narrowest(low, high)):
        raise InputError(
            f"ranges[{column!r}] must be at least {least:.1g} wide to be told apart in floating point, got "
            f"[{low!r}, {high!r}]; give the column in smaller units or relative to its middle"
        )
    return [low, high]


def _narrowest(low: float, high: float) -> float:
    """Return the width below which scaling to [−1, 1] loses the middle, where a missing number must come to lie."""
    return max(1e-12, 1e-9 * max(abs(low), abs(high)))


def coarse_range(low: float, high: float) -> list[float]:
    """Return round numbers strictly outside ``low`` and ``high``; 0 stays the end of what is never negative.

    Flags of 0 and 1 keep [0, 1]. Other ends are multiples of 1, 2 or 5 times a power of ten, an eighth of the range or
    finer: they say about how wide a column is, and are nobody's value.
    """
    if low >= 0 and high <= 1 and {low, high} <= {0.0, 1.0}:
        return [0.0, 1.0]
    span = high - low
    if not 0 < span < np.inf:
        raise InputError(f"a column of numbers must have a finite range, got one from {low:.1g} to {high:.1g}")
    power = 10.0 ** math.floor(math.log10(span / _GRID)) if span > 1e-290 else 0.0
    step = max((k * power for k in (1, 2, 5) if k * power <= span / _GRID), default=power)
    ends = [(math.ceil(low / step) - 1) * step, (math.floor(high / step) + 1) * step] if step > 0 else [low, high]
    rounded = [float(f"{end:.12g}") for end in ends]
    if not (rounded[0] < low and high < rounded[1]) or not np.isfinite(rounded[1] - rounded[0]):
        rounded = [low - span / 3, high + span / 3]  # numbers so close or so large that no grid lies between them
    return [0.0 if low >= 0 > rounded[0] else rounded[0], 0.0 if high <= 0 < rounded[1] else rounded[1]]


def _categories(column: str, given: Sequence[Any] | None, values: pd.Series[Any]) -> list[str]:
    if given is None:
        counts = values.astype(str)[values.notna()].value_counts()
        return sorted(counts.index[counts >= min(RARE, counts.max())].tolist())
    if isinstance(given, str) or not len(given) or len(set(map(str, given))) != len(given):
        raise InputError(f"ranges[{column!r}] must list the categories, each once, got {given!r}")
    if not all(isinstance(item, str) for item in given):
        raise InputError(
            f"column {column!r} holds texts, so ranges[{column!r}] must list its categories, got {given!r}"
        )
    if len(given) > 100 * MAX_CATEGORIES:
        raise InputError(
            f"ranges[{column!r}] lists {len(given)} categories, at most {100 * MAX_CATEGORIES} can be encoded"
        )
    return [str(value) for value in given]
