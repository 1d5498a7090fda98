"""Scores from any other tool, read from CSV, Parquet or NPZ."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, numbers
from deniable._optional import require

SCORE_NAMES = ("score", "scores", "mia_score", "mia_scores", "llr")
MEMBER_NAMES = ("member", "is_member", "membership", "memberships", "in", "label", "labels")
_SIDES = (("member", "nonmember"), ("member_scores", "nonmember_scores"), ("in", "out"))
_YES = frozenset({"1", "1.0", "true", "yes", "in", "member"})
_NO = frozenset({"0", "0.0", "-1", "-1.0", "false", "no", "out", "nonmember", "non-member"})


def read_scores(
    path: str | Path, *, score: str | None = None, member: str | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return (member scores, nonmember scores) from a file.

    Two layouts are understood, in .csv (.csv.gz), .parquet and .npz: one column or array of scores and one that says
    which are members (1/0, true/false, in/out), or one column or array for each side ("member" and "nonmember",
    shorter columns padded with empty cells).

    Parameters
    ----------
    score, member
        Names of the score and membership columns, if they are not among the usual ones.

    Raises
    ------
    InputError
        If the file, a column or a value cannot be used.
    """
    table = _read(Path(path))
    if score is None and member is None:
        for pair in _SIDES:
            if all(side in table for side in pair):
                first, second = (_padded(side, table[side]) for side in pair)
                return first, second
    name = _named(table, score, SCORE_NAMES, "score")
    values = numbers(f"{name!r}", table[name])
    inside = _membership(_named(table, member, MEMBER_NAMES, "member"), table)
    if values.shape != inside.shape:
        raise InputError(f"scores and membership must have one length, got {values.shape} and {inside.shape}")
    return values[inside], values[~inside]


def each_score(lines: Iterable[str]) -> Iterator[tuple[float, bool]]:
    """Yield score and membership from CSV lines as they come; the first line names the columns."""
    rows = csv.DictReader(lines)
    names = [name.strip() for name in rows.fieldnames or ()]
    rows.fieldnames = names
    table: dict[str, NDArray[Any]] = dict.fromkeys(names, np.zeros(0))
    score, member = (
        _named(table, None, usual, what) for usual, what in ((SCORE_NAMES, "score"), (MEMBER_NAMES, "member"))
    )
    for row in rows:
        inside = _membership(member, {member: np.array([row[member]])})[0]
        try:
            value = float(row[score] or "nan")
        except ValueError:
            value = float("nan")
        if np.isnan(value):
            raise InputError(f"line {rows.line_num}: {score!r} must be a number, got {row[score]!r}")
        yield value, bool(inside)


def _read(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise InputError(f"score file {str(path)!r} does not exist; give a .csv, .parquet or .npz file")
    name = path.name.lower()
    try:
        if name.endswith(".npz"):
            with np.load(path, allow_pickle=False) as arrays:
                return {key: np.ravel(arrays[key]) for key in arrays.files}
        pd = require("pandas", purpose="reading a table")
        if name.endswith((".csv", ".csv.gz")):
            frame = pd.read_csv(path)
        elif name.endswith(".parquet"):
            frame = pd.read_parquet(path)
        else:
            raise InputError(f"score file {str(path)!r} must end in .csv, .csv.gz, .parquet or .npz")
    except InputError:
        raise
    except Exception as error:  # each reader raises its own errors: all mean that this is not such a file
        raise InputError(f"score file {str(path)!r} could not be read: {error}") from error
    return {str(column): frame[column].to_numpy() for column in frame.columns}


def _named(table: dict[str, NDArray[Any]], asked: str | None, usual: tuple[str, ...], what: str) -> str:
    found = [asked] if asked is not None else [name for name in usual if name in table]
    if not found or found[0] not in table:
        wanted = repr(asked) if asked is not None else f"one of {', '.join(usual)}"
        raise InputError(f"no {what} column ({wanted}) in the file; it has: {', '.join(table) or 'nothing'}")
    return found[0]


def _padded(name: str, column: NDArray[Any]) -> FloatArray:
    """Drop the empty cells at the end of a shorter column; one in the middle is a missing score."""
    values = _floats(name, column)
    filled = np.flatnonzero(~np.isnan(values))
    return numbers(f"{name!r}", values[: filled[-1] + 1] if filled.size else values[:0])


def _floats(name: str, column: NDArray[Any]) -> FloatArray:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"column {name!r} must hold numbers") from None


def _membership(name: str, table: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    words = np.array([str(value).strip().lower() for value in table[name]])
    inside, outside = np.isin(words, list(_YES)), np.isin(words, list(_NO))
    if not (inside | outside).all():
        odd = words[~(inside | outside)][0]
        raise InputError(f"column {name!r} must say member or not (1/0, true/false, in/out), got {str(odd)!r}")
    return np.asarray(inside)
