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
from deniable.tables.draft import MAX_CATEGORIES, RARE, Column, doubts, kind_of, near, understand
from deniable.tables.encoding import coarse_range
from deniable.tables.files import open_table
from deniable.tables.schema import ColumnSchema, Schema, as_schema, toml

_HEAD = (
    "Drafted by looking at the table: for its owner, who corrects it. What stands here is taken as public, so declare",
    "what everybody knows. Lines that begin with # are not read; ranges and categories in them were read off the data.",
)
_MARKS = {  # how numbers with a decimal mark are written; what can be read with either is not among these
    ",": re.compile(r"[+-]?(?:0,\d+|\d+,\d{1,2}|\d+,\d{4,}|\d{1,3}(?:[. ]\d{3})+,\d+)"),
    ".": re.compile(r"[+-]?(?:0\.\d+|\d+\.\d{1,2}|\d+\.\d{4,}|\d{1,3}(?:[, ]\d{3})+\.\d+)"),
}
_DAY = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-]\d{2,4}(?: .*)?")
_UNIT = re.compile(r"([^\w\s.,()+-]?) ?([+-]?[\d.,' ]*\d) ?([^\d\s.,()]{0,12})")
_WRITTEN = {"decimal", "order", "unit"}
_MOST = 0.5  # share of the cells that have to be written in one way
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
    opened, declared = open_table(source), as_schema(schema, drafts=True)
    frame, target = opened.frame, target or declared.target or opened.target
    known = {one.name: one for one in understand(source, drop=drop, schema=schema).columns}
    if target is not None and target not in frame.columns:
        raise InputError(f"target {target!r} is not a column{near(target, map(str, frame.columns))}")
    columns = dict[str, ColumnSchema]()
    notes: dict[str | None, list[str]] = {None: list(_HEAD)}
    for name in map(str, frame.columns):
        raw, column = frame[name], known.get(name)
        own = {key: value for key, value in vars(declared.column(name)).items() if value not in ("", None, ())}
        drafted = replace(_format(raw), **{key: own[key] for key in _WRITTEN & own.keys()})
        cells = drafted.read(raw)
        kind = "dropped" if name in drop else _kind(column, cells, drafted, _texts(raw))
        columns[name] = replace(drafted, **{"kind": kind} | own)
        reason = column.reason.partition(";")[0] if column is not None and kind == "dropped" else ""
        notes[name] = [reason] if reason else list(_said(columns[name], raw, cells, name == target))
        if reason.startswith("the name") and cells.spelled.size > len(set(cells.spelled)):
            notes[None].append(f"If this column says whose record it is: person = {toml(name)}")
    task = "" if target is None else _task(columns[target], columns[target].read(frame[target]))
    task = declared.task or task
    return Schema(columns, target=target, task=task, person=declared.person, drafted=True).to_toml(notes)


def _texts(raw: Any) -> Counter[str]:
    return Counter(cell.strip() for cell in raw if isinstance(cell, str) and any(map(str.isdigit, cell)))


def _format(raw: Any) -> ColumnSchema:
    """Return how most of the texts of a column are written."""
    texts = _texts(raw)
    parts = [(_UNIT.fullmatch(text), count) for text, count in texts.items()]
    units = Counter[str]()
    for match, count in parts:
        units[(match[1] or match[3]) if match else ""] += count
    units.pop("", None)
    unit, seen = max(units.items(), key=lambda item: item[1], default=("", 0))
    unit = unit if seen > _MOST * texts.total() else ""
    marks = {mark: sum(n for match, n in parts if match and form.fullmatch(match[2])) for mark, form in _MARKS.items()}
    days = [(match, count) for text, count in texts.items() if (match := _DAY.fullmatch(text))]
    first, second = (sum(count for match, count in days if int(match[place]) > 12) for place in (1, 2))
    dotted = any("/" not in match[0] for match, _ in days)
    return ColumnSchema(
        decimal=max(marks, key=lambda mark: marks[mark]) if any(marks.values()) else "",
        order="" if not days or not (first or second or dotted) else "day" if first >= second else "month",
        unit=unit,
    )


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
    yield from doubts(_texts(raw), column.settled)
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
