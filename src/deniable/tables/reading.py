"""Tables of people in, matrices out: reading, checking, encoding and scaling.

Every check happens before any work: a table that cannot be assessed is refused in one line that names the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import FloatArray, InputError

MIN_ROWS = 10
MAX_CATEGORIES = 200
Ranges = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Table:
    """A data set with a binary target, checked: no missing or infinite cell, no constant column."""

    name: str
    features: pd.DataFrame
    target: pd.Series
    target_name: str


@dataclass(frozen=True)
class Encoded:
    """A table as numbers: rows of Euclidean norm at most 1, labels −1 and +1.

    Attributes
    ----------
    X, y
        Rows of shape (n, d) with a constant last column (a regularised intercept), and labels of shape (n,).
    columns
        Name of each column of ``X``.
    classes
        The target's values that became −1 and +1.
    ranges
        The scaling constants used: [low, high] for a number, the list of categories otherwise.
    assumed_public
        Columns whose constants were read off the data and must therefore be public for any guarantee to hold.
    """

    X: FloatArray
    y: FloatArray
    columns: tuple[str, ...]
    classes: tuple[Any, Any]
    ranges: dict[str, list[Any]]
    assumed_public: tuple[str, ...]


def builtin_names() -> tuple[str, ...]:
    """Return the names of the data sets that need no file."""
    return ("breast-cancer", "digits-3-8")


def _builtin(name: str) -> tuple[pd.DataFrame, str]:
    from sklearn.datasets import load_breast_cancer, load_digits

    if name == "breast-cancer":
        return load_breast_cancer(as_frame=True).frame, "target"
    frame = load_digits(as_frame=True).frame
    frame = frame[frame["target"].isin([3, 8])].reset_index(drop=True)
    return frame.loc[:, frame.nunique() > 1], "target"


def read_file(path: Path) -> pd.DataFrame:
    """Return the .csv, .tsv (also .gz) or .parquet file as a data frame, unchecked."""
    if not path.is_file():
        raise InputError(
            f"data file {str(path)!r} does not exist; give a .csv, .csv.gz or .parquet file or one of "
            f"{', '.join(builtin_names())}"
        )
    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            return pd.read_parquet(path)
        if name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
            return pd.read_csv(path, sep="\t" if ".tsv" in name else ",")
    except Exception as error:  # pandas and pyarrow raise a dozen kinds: each means that this is not such a file
        raise InputError(f"data file {str(path)!r} could not be read: {error}") from error
    raise InputError(f"data file {str(path)!r} must end in .csv, .csv.gz, .tsv, .tsv.gz or .parquet")


def read_table(source: str | Path | pd.DataFrame, target: str | None = None, *, drop: Sequence[str] = ()) -> Table:
    """Read and check a table.

    Parameters
    ----------
    source
        A data frame, the path of a .csv, .tsv (also .gz) or .parquet file, or a built-in name.
    target
        Name of the column to predict; it must have exactly two values. Built-in data sets know theirs.
    drop
        Columns to leave out (identifiers, a train/test flag).
    """
    if isinstance(source, pd.DataFrame):
        frame, name = source, "data frame"
    elif str(source) in builtin_names():
        frame, known = _builtin(str(source))
        name, target = str(source), target or known
    else:
        frame, name = read_file(Path(source)), Path(source).name
    if target is None:
        raise InputError(f"target is missing; name the column to predict, one of: {_listed(frame.columns)}")
    for column in (target, *drop):
        if column not in frame.columns:
            raise InputError(f"column {column!r} is not in {name}; it has: {_listed(frame.columns)}")
    frame = frame.drop(columns=list(drop))
    _check(frame, target, name)
    return Table(name, frame.drop(columns=target).reset_index(drop=True), frame[target].reset_index(drop=True), target)


def _check(frame: pd.DataFrame, target: str, name: str) -> None:
    if len(frame) < MIN_ROWS:
        raise InputError(f"{name} must have at least {MIN_ROWS} rows, got {len(frame)}")
    missing = frame.isna().sum()
    numeric = frame.select_dtypes("number")
    infinite = pd.Series(np.isinf(numeric.to_numpy(np.float64)).sum(axis=0), numeric.columns)
    for kind, counts in (("missing (NaN)", missing), ("infinite", infinite)):
        bad = counts[counts > 0]
        if len(bad):
            where = ", ".join(f"{count} in {column!r}" for column, count in bad.items())
            raise InputError(f"{name} has {kind} cells: {where}; fill or drop them first")
    classes = frame[target].unique()
    if len(classes) != 2:
        raise InputError(
            f"target {target!r} must have exactly 2 values, got {len(classes)}: {_listed(classes)}; "
            "choose or make a binary column"
        )
    if frame[target].value_counts().min() < 2:
        raise InputError(f"target {target!r} must have at least 2 rows of each value")
    features = frame.drop(columns=target)
    if features.shape[1] == 0:
        raise InputError(f"{name} has no column besides the target {target!r}")
    counts = features.nunique()
    if constant := [str(column) for column in counts.index[counts == 1]]:
        raise InputError(f"{name} has constant columns: {_listed(constant)}; drop them (--drop NAME)")
    for column in features.columns[[not _is_number(features[c]) for c in features.columns]]:
        if counts[column] > MAX_CATEGORIES:
            raise InputError(
                f"column {column!r} has {counts[column]} different texts in {len(frame)} rows (at most "
                f"{MAX_CATEGORIES} categories can be encoded); if it is an identifier, drop it (--drop {column})"
            )


def encode(table: Table, *, ranges: Ranges | None = None) -> Encoded:
    """Encode and scale a table with scikit-learn so that every row has norm at most 1.

    Numbers go linearly to [−1, 1] and are clipped there, categories to indicators, and a constant column is added;
    everything is then divided by √(number of source columns + 1), which bounds the norm of any possible row, not only
    of those at hand. The constants in ``ranges`` ([low, high] for a number, the categories for a text) are the
    caller's; those not given are read off the data and are then **assumed public**.
    """
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    features, given = table.features, dict(ranges or {})
    for column in given:
        if column not in features.columns:
            raise InputError(f"ranges names the column {column!r}, which is not in {table.name}")
    numeric = [c for c in features.columns if _is_number(features[c])]
    textual = [c for c in features.columns if c not in numeric]
    constants = {
        str(c): _number_range(c, given.get(c), features[c])
        if c in numeric
        else _categories(c, given.get(c), features[c])
        for c in features.columns
    }
    blocks = [np.ones((len(features), 1))]
    if textual:
        indicators = OneHotEncoder(categories=[constants[str(c)] for c in textual], handle_unknown="ignore")
        texts = features[textual].astype(str)
        blocks.insert(0, indicators.fit(texts.head(1)).transform(texts).toarray())
    if numeric:  # the scaler learns from a two-row table of lows and highs, not from the data
        ends = pd.DataFrame({c: constants[str(c)] for c in numeric}, dtype=np.float64)
        blocks.insert(0, MinMaxScaler((-1.0, 1.0), clip=True).fit(ends).transform(features[numeric].astype(np.float64)))
    names = [str(c) for c in numeric] + [f"{c}={value}" for c in textual for value in constants[str(c)]]
    X = np.hstack(blocks) / np.sqrt(features.shape[1] + 1)
    classes = sorted(table.target.unique().tolist(), key=str)
    y = np.where(table.target.to_numpy() == classes[1], 1.0, -1.0)
    return Encoded(
        X=np.ascontiguousarray(X, dtype=np.float64),
        y=y,
        columns=(*names, "(constant)"),
        classes=(classes[0], classes[1]),
        ranges=constants,
        assumed_public=tuple(str(c) for c in features.columns if c not in given),
    )


def _number_range(column: Any, given: Sequence[Any] | None, values: pd.Series) -> list[float]:
    try:
        low, high = (float(end) for end in ((values.min(), values.max()) if given is None else given))
    except (TypeError, ValueError):
        raise InputError(f"ranges[{column!r}] must be [low, high], got {given!r}") from None
    if not 0 < high - low < np.inf:
        raise InputError(f"ranges[{column!r}] must be finite with low < high, got [{low:g}, {high:g}]")
    return [low, high]


def _categories(column: Any, given: Sequence[Any] | None, values: pd.Series) -> list[str]:
    if given is None:
        return sorted(values.astype(str).unique().tolist())
    if isinstance(given, str) or not len(given) or len(set(map(str, given))) != len(given):
        raise InputError(f"ranges[{column!r}] must list the categories, each once, got {given!r}")
    return [str(value) for value in given]


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _listed(values: Any, most: int = 12) -> str:
    items = [str(value) for value in values]
    return ", ".join(items[:most]) + (f", … ({len(items)} in all)" if len(items) > most else "")
