"""A table for a classifier: understood, checked, and all that is wrong with it said at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from deniable._check import InputError
from deniable.tables.draft import Column, Ranges, Understood, listed, understand

MIN_ROWS = 10


@dataclass(frozen=True, eq=False)
class Table:
    """A data set with a target of few values: columns of known kinds, none infinite, constant or identifying.

    ``features`` is :attr:`Understood.frame`: missing cells are NaN. ``columns`` are those of ``features``; ``remarks``
    are what a person has to know about how the table was read.
    """

    name: str
    features: pd.DataFrame
    target: pd.Series
    target_name: str
    columns: tuple[Column, ...]
    remarks: tuple[str, ...] = ()
    understood: Understood | None = None


def read_table(
    source: str | Path | pd.DataFrame,
    target: str | None = None,
    *,
    drop: Sequence[str] = (),
    ranges: Ranges | None = None,
    most_classes: int = 2,
) -> Table:
    """Read and check a table whose target has two values, or a few.

    Parameters
    ----------
    source
        A data frame, the path of a file (see :func:`~deniable.tables.understand`), or a built-in name.
    target
        Name of the column to predict; it must have at least two values. Built-in data sets know theirs.
    drop
        Columns to leave out (identifiers, a train/test flag).
    ranges
        Public knowledge of columns, as in :func:`~deniable.tables.understand`.
    most_classes
        How many values the target may have.

    Raises
    ------
    InputError
        With all problems of the table in one message.

    Warns
    -----
    TableWarning
        For columns that were dropped.
    """
    found = understand(source, target, drop=drop, ranges=ranges, strict=False)
    problems, classes = list(found.problems), []
    if found.target_name is None:
        names = [column.name for column in found.columns]
        problems.append(f"target is missing; name the column to predict, one of: {listed(names)}")
    if 0 < len(found.frame) < MIN_ROWS:
        problems.append(f"it must have at least {MIN_ROWS} rows, got {len(found.frame)}")
    if found.target is not None:
        classes = _wrong_classes(found.target, str(found.target_name), most_classes)
        if not found.kept:
            dropped = f": {'; '.join(column.line for column in found.dropped)}" if found.dropped else ""
            problems.append(f"it has no column that can be used besides the target {found.target_name!r}{dropped}")
    if problems or classes or found.target is None:
        raise InputError(f"{found.name} cannot be used: {'; '.join([*problems, *classes])}")
    found.warn()
    return Table(found.name, found.frame, found.target, str(found.target_name), found.kept, found.remarks, found)


def _wrong_classes(target: pd.Series[Any], name: str, most: int) -> list[str]:
    classes = target.dropna().unique()
    if not 2 <= len(classes) <= most:
        wanted, remedy = ("exactly 2", "a binary column") if most == 2 else (f"2 to {most}", "a column of few classes")
        return [f"target {name!r} must have {wanted} values, got {len(classes)}; choose or make {remedy}"]
    if target.value_counts().min() < 2:
        return [f"target {name!r} must have at least 2 rows of each value"]
    return []
