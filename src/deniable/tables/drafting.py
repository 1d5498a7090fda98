"""A schema drafted from a table, for its owner: kinds and formats as they were inferred, for a person to correct."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import InputError
from deniable.tables.cell import NUMBER, ColumnCells
from deniable.tables.draft import MAX_CATEGORIES, Column, kind_of, near, understand
from deniable.tables.encoding import coarse_range
from deniable.tables.files import WHICH_MARK, open_table
from deniable.tables.remarks import RARE, doubts, format_of, texts_of
from deniable.tables.schema import ColumnSchema, Schema, as_schema, toml

_HEAD = (
    "Drafted by looking at the table: for its owner, who corrects it. What stands here is taken as public, so declare",
    "what everybody knows. Lines that begin with # are not read; ranges and categories in them were read off the data.",
)
_WRITTEN = {"decimal", "order", "unit"}
_CLASSES = 20  # whole numbers up to which a target is of classes


def draft_schema(
    source: Any, target: str | None = None, *, drop: Sequence[str] = (), schema: Schema | None = None
) -> str:
    """Return a schema as TOML, with comments: what was inferred from all cells, and what a person has to decide.

    For the owner's terminal only. What ``schema`` declares stays. Ranges and categories stand in comments: whoever
    knows that they are public removes the "#".

    Parameters
    ----------
    source
        A table, as for :func:`understand`.
    target
        Name of the column to predict, if there is one.
    drop
        Columns to leave out.
    schema
        What is declared already.

    Returns
    -------
    str
        TOML, in the form that :meth:`Schema.read` reads.

    Raises
    ------
    InputError
        If the table cannot be read, or a column is unknown.

    Examples
    --------
    See ``Schema``.
    """
    declared = as_schema(schema, drafts=True)
    opened = open_table(source, declared)
    frame, target = opened.frame, target or declared.target or opened.target
    if WHICH_MARK in opened.problems:  # the mark of most columns that show one is the file's
        marks = Counter(format_of(texts_of(frame[name])).decimal for name in frame.columns)
        declared = replace(declared, decimal=max(",.", key=lambda mark: marks[mark]))
        opened = replace(opened, problems=tuple(set(opened.problems) - {WHICH_MARK}))
    known = {one.name: one for one in understand(opened, drop=drop, schema=declared).columns}
    if target is not None and target not in frame.columns:
        raise InputError(f"target {target!r} is not a column{near(target, map(str, frame.columns))}")
    columns = dict[str, ColumnSchema]()
    notes: dict[str | None, list[str]] = {None: list(_HEAD)}
    for name in map(str, frame.columns):
        raw, column = frame[name], known.get(name)
        own = {key: value for key, value in vars(declared.column(name)).items() if value not in ("", None, ())}
        drafted = replace(format_of(texts_of(raw)), **{key: own[key] for key in _WRITTEN & own.keys()})
        cells = drafted.read(raw)
        kind = "dropped" if name in drop else _kind(column, cells, drafted, texts_of(raw))
        columns[name] = replace(drafted, **{"kind": kind} | own)
        reason = column.reason.partition(";")[0] if column is not None and kind == "dropped" else ""
        notes[name] = [reason] if reason else list(_said(columns[name], raw, cells, name == target))
        if reason.startswith("the name") and cells.spelled.size > len(set(cells.spelled)):
            notes[None].append(f"If this column says whose record it is: person = {toml(name)}")
    task = "" if target is None else _task(columns[target], columns[target].read(frame[target]))
    task = declared.task or task
    mark = declared.decimal
    columns = {
        name: replace(one, decimal=one.decimal.replace(mark, "") if mark else one.decimal)
        for name, one in columns.items()
    }
    made = Schema(columns, target=target, task=task, person=declared.person, decimal=mark, drafted=True)
    return made.to_toml(notes)


def _kind(column: Column | None, cells: ColumnCells, drafted: ColumnSchema, texts: Iterable[str]) -> str:
    """Return the kind as it is inferred, but codes, and numbers whose unit is known now."""
    kind = kind_of(cells)
    if column is not None and column.kind == "dropped" and not (drafted.unit and kind == "number"):
        return "dropped"
    numbers = cells.number[cells.kind == NUMBER]
    if kind == "number" and any(re.fullmatch(r"0\d+", text) for text in texts) and all(map(str.isdecimal, texts)):
        return "code"
    return "whole" if kind == "number" and np.all(numbers == np.rint(numbers)) else kind


def _said(column: ColumnSchema, raw: Any, before: ColumnCells, is_target: bool) -> Iterator[str]:
    """Say what does not fit, what may be meant otherwise, and what could be declared besides."""
    cells = column.read(raw)
    if lost := int(np.sum((before.kind > 0) & (cells.kind == 0))):
        yield f"{lost} {'cell does' if lost == 1 else 'cells do'} not fit and would be missing"
    yield from doubts(texts_of(raw), column.settled).values()
    numbers = cells.number[~np.isnan(cells.number)]
    if column.kind in ("category", "code"):
        counts = pd.Series(cells.spelled).value_counts()
        words = sorted(counts.index[counts >= RARE])[:MAX_CATEGORIES]
        if words:
            yield f"categories = {toml(tuple(words))}"
    elif column.range is None and numbers.size and not is_target:
        yield from _range(numbers, column.kind)


def _range(numbers: Any, kind: str) -> Iterable[str]:
    low, high = float(numbers.min()), float(numbers.max())
    if low < high:
        ends = tuple(coarse_range(low, high))
        days = tuple(str(np.datetime64(int(end), "D")) for end in ends)
        yield f"range = {toml(days if kind == 'date' else ends)}"


def _task(column: ColumnSchema, cells: ColumnCells) -> str:
    few = len(np.unique(cells.number[~np.isnan(cells.number)])) <= _CLASSES
    return (
        "classification"
        if column.kind in ("category", "code", "yes/no") or (column.kind == "whole" and few)
        else "regression"
    )
