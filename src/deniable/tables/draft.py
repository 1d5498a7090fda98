"""What the owner of a table learns of it, and how methods without a private account read it: inferred, by column.

The only place where cells together decide what a column is: a draft, for its owner's eyes. Private training and private
statistics never come here. Cells are read one by one (:mod:`deniable.tables.cell`).
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from deniable._check import InputError
from deniable.tables import inference
from deniable.tables.cell import NUMBER, WORD, ColumnCells
from deniable.tables.containers import column_among, few, name_of, names_of, no_column
from deniable.tables.files import WHICH_MARK, Opened, open_table
from deniable.tables.persons import copies_line
from deniable.tables.schema import ColumnSchema, Schema, as_schema, toml

PUBLIC = (
    "The names and kinds of the columns, how their cells are read and which columns were dropped were decided by "
    "looking at the data; these decisions are taken as public."
)
SAID = 6  # columns that a warning names
_HEADER_COLUMNS = 2  # columns of numbers or dates with a text in the first row: one could be a mistake
_HEADER_SEEN = 200  # rows that are looked at
_LAST_ROWS = 5  # in which totals and remarks stand
_FEW_COLUMNS = 2  # of which one may well be empty
_TOTAL = re.compile(
    r"(?:(?:grand|sub)[- ]?)?(?:totale?s?|totaal|sum|summe|gesamt|insgesamt|somme|suma)(?: g[eé]n[eé]rale?| \d{4})?\W*",
    re.I,
)
_HEAD = (
    "Drafted by looking at the table: for its owner, who corrects it. What stands here is taken as public, so declare",
    "what everybody knows. Lines that begin with # are not read; ranges and categories in them were read off the data.",
)


class TableWarning(UserWarning):
    """Something in a table was left out, or read differently from how it is written.

    Examples
    --------
    See ``understand``.
    """


@dataclass(frozen=True)
class Column:
    """What was understood of one column; no value of it is kept here.

    Attributes
    ----------
    name
        As in the header.
    kind
        "number", "category", "yes/no" or "date" (days since 1970-01-01); "dropped" columns are not used.
    missing
        Share of the cells that hold nothing of this kind.
    notes
        What a person may have meant otherwise.
    reason
        Why the column was dropped and what to do if it should not be; empty for the others.
    trained
        Whether a private model is likely to use it: all are used but empty ones and those of nearly unique words.
    written
        How its texts are written: with a decimal comma, with the day or the month first.

    Examples
    --------
    See ``understand``.
    """

    name: str
    kind: Literal["number", "category", "yes/no", "date", "dropped"]
    missing: float = 0.0
    notes: tuple[str, ...] = ()
    reason: str = ""
    trained: bool = True
    written: str = ""

    @property
    def line(self) -> str:
        """The column in one line, for people."""
        kind = f"dropped: {self.reason}" if self.kind == "dropped" else self.kind
        gaps = [f"{100 * self.missing:.2g}\u00a0% missing"] * bool(self.missing)
        return f"{self.name!r}: {'; '.join([kind, *gaps, *self.notes])}"


@dataclass(frozen=True, eq=False)
class Understood(Opened):
    """A table, and what was understood of it.

    Attributes
    ----------
    name
        The file's name, or "data frame".
    columns
        One :class:`Column` for each column but the target, in the table's order.
    frame
        The kept columns. Numbers, dates (days since 1970-01-01) and yes/no (1, 0) are numbers, NaN where missing;
        categories are texts, NaN where missing.
    target, target_name
        The column to predict, numbers or texts, or None if none was named.
    notes
        What was guessed of the file: separator, sheet; how many rows are copies.
    problems
        Why the table cannot be used. :func:`understand` raises if there are any, unless ``strict=False``.
    odd, unit
        The lines (1 is the first below the header) that are no record and weigh nothing: for the owner; what a row is.
    schema
        What was declared.

    Examples
    --------
    See ``understand``.
    """

    columns: tuple[Column, ...] = ()
    target: pd.Series[Any] | None = None
    schema: Schema = field(default_factory=Schema)

    @property
    def kept(self) -> tuple[Column, ...]:
        """The columns that are used."""
        return tuple(column for column in self.columns if column.kind != "dropped")

    def supervised(self) -> pd.Series[Any]:
        """Return the target and warn of what is odd, or raise where there is none, or nothing to predict it from."""
        if self.target is None:
            raise InputError(f"target is missing; name a column, one of: {few(one.name for one in self.columns)}")
        if not self.kept:
            why = f": {'; '.join(column.line for column in self.columns)}" if self.columns else ""
            raise InputError(f"{self.name} has no column that can be used besides the target {self.target_name!r}{why}")
        lines = [f"lines that are no records and were left out: {len(self.odd)}"] * bool(self.odd)
        lines += [column.line for column in self.columns if column.kind == "dropped" or column.notes]
        if lines:
            more = [f"and {len(lines) - SAID} more columns"] * (len(lines) > SAID)
            warnings.warn(f"{self.name}: {'; '.join([*lines[:SAID], *more])}", TableWarning, stacklevel=2)
        return self.target


def understand(
    source: Any,
    target: str | None = None,
    *,
    drop: Sequence[str] = (),
    schema: Schema | None = None,
    columns: Sequence[str] = (),
    strict: bool = True,
) -> Understood:
    """Read a real-world table, and say of every column what was understood.

    Columns that identify people (nearly unique texts, identifiers, running numbers), free text, dates in a form that
    is not understood, constant and empty columns are dropped, never made into categories. No value of them is kept.
    Which columns these are, and all other decisions taken here, are then public (``tables.PUBLIC``).

    Parameters
    ----------
    source
        The path of a file (.csv, .tsv, .txt, .parquet, .feather, .xlsx, .xls, .ods, .dta, .jsonl; .gz, .zip) or of a
        folder of Parquet files, a built-in name; a data frame of pandas, Polars, PyArrow, DuckDB or Dask, whatever else
        Narwhals knows or has ``__arrow_c_stream__``; an array, a dict of columns; or blocks (a list or iterator, or a
        function that returns one). The columns of Parquet, DuckDB, Dask and blocks are read one at a time.
    target
        Name of the column to predict, if there is one; otherwise that of the schema.
    drop
        Columns to leave out, besides those that the schema drops and the one that names persons.
    schema
        Public knowledge of columns. One whose kind is declared is never dropped; what does not fit in it is missing.
    columns
        The names of the columns of a list of dicts or of lines of JSON, if no schema declares them.
    strict
        Whether problems raise; otherwise they are listed in ``problems``.

    Returns
    -------
    Understood
        Columns, what was dropped and why, and ``problems``.

    Raises
    ------
    InputError
        With all problems of the table in one message: duplicate names, two header lines, an unknown target or column
        to drop (with the nearest name), missing cells of the target.

    Examples
    --------
    >>> import deniable as dn
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [*map(str, range(18, 57)), "unknown"] * 3, "town": ["A", "B"] * 60})
    >>> found = dn.tables.understand(frame)
    >>> [(column.name, column.kind) for column in found.columns]
    [('age', 'number'), ('town', 'category')]
    """
    declared = as_schema(schema, drafts=True)
    opened = open_table(source, declared, columns=columns).judged()
    frame, problems, target = opened.frame, list(opened.problems), target or declared.target or opened.target_name
    target, drop = target and name_of(target), names_of(drop)
    left = {name for name, one in declared.columns.items() if one.kind == "dropped"} - {target}
    names = list(frame.columns)
    named = [("target", target), *(("drop", column) for column in drop)]
    named += [("schema", column) for column in (*declared.columns, declared.person)]
    problems += [no_column(what, asked, names) for what, asked in named if asked is not None and asked not in names]
    if target is not None and target in drop:
        problems.append(f"column {target!r} is both the target and to be dropped")
    if not len(frame) and not opened.problems:
        problems.append("it has no rows")
    known = vars(opened) | {"frame": pd.DataFrame(), "problems": tuple(problems), "target_name": target}
    found = Understood(**known, schema=declared)
    if len(frame):
        out = {*drop, *left, declared.person} - {target}
        found = _columns(found, frame, [name for name in frame.columns if name not in out])
    if WHICH_MARK in problems:
        found = replace(found, columns=tuple(_both_readings(column, frame) for column in found.columns))
    return found.checked() if strict else found


def _both_readings(column: Column, frame: Any) -> Column:
    """Say of a column how many of its cells are numbers with either decimal mark."""
    read = {mark: ColumnSchema(decimal=mark).read(frame[column.name]).kind for mark in (",", ".")}
    comma, point = (int(np.sum(kinds == NUMBER)) for kinds in read.values())
    said = f"numbers with a decimal comma: {comma:,}, with a decimal point: {point:,}"
    return replace(column, notes=(*column.notes, said)) if comma != point else column


def _columns(found: Understood, frame: Any, names: Sequence[Any]) -> Understood:
    columns, kept, aim, problems, above = [], {}, None, list(found.problems), 0
    last = np.zeros(min(_LAST_ROWS, len(frame)), dtype=int)  # how many cells of the last rows hold anything
    totals = np.zeros(len(last), dtype=bool)
    place = getattr(frame, "place_of", "row {}".format)
    for name in names:
        own, raw = found.schema.column(name), frame[name]
        cells = own.read(raw)
        above += not own.kind and _text_above(cells)
        end = cells.at(slice(len(cells) - len(last), len(cells)))
        last += end.kind > 0
        totals |= np.array([*map(bool, map(_TOTAL.fullmatch, end.words)), False])[end.word]
        if name == found.target_name:
            aim, faults = _target(name, raw, own, place)
            problems += faults
            continue
        column, values = _understood(name, raw, cells, own)
        columns.append(column)
        if column.kind != "dropped":
            kept[name] = values
    if above >= _HEADER_COLUMNS:
        problems.append(
            f"it has two header lines: the first row below the header holds texts where {above} columns hold numbers "
            "or dates; delete one of the two lines, or correct these cells"
        )
    made = pd.DataFrame(kept, index=range(len(frame)), copy=False)
    copies = () if found.schema.person is not None else copies_line(frame[name] for name in names)
    footers = int(np.sum(totals | ((last == 1) & (len(names) > _FEW_COLUMNS))))
    said = f"of the last {len(last)} rows look like totals or remarks: {footers}; delete them, each counts as a record"
    notes = (*found.notes, *copies, *[said] * bool(footers))
    return replace(found, columns=tuple(columns), frame=made, target=aim, problems=tuple(problems), notes=notes)


def _text_above(cells: ColumnCells) -> bool:
    """Whether a text stands above numbers or dates only."""
    kinds = cells.kind[1:_HEADER_SEEN]
    return len(kinds) > inference.RARE and cells.kind[0] == WORD and bool(kinds.any() and not (kinds == WORD).any())


def _understood(name: str, raw: Any, cells: ColumnCells, declared: ColumnSchema) -> tuple[Column, pd.Series[Any]]:
    """Decide of what kind a column is and read it."""
    kind: Any = inference.kind_of(cells, declared.kind)
    values = inference.of_kind(cells, kind)
    texts = inference.texts_of(raw)
    form = inference.format_of(texts, int(np.sum(cells.kind > 0)), declared)
    comma = form.decimal == "," and any(re.search(r"\d,\d", text) for text in texts)
    said = ["decimal comma"] * comma + [f"{form.order} first"] * bool(form.order)
    made = Column(name, kind, float(values.isna().mean()), written=", ".join(said))
    if declared.kind:
        return made, values
    made = replace(made, trained=not inference.nearly_unique(cells) and bool(np.any(cells.kind)))
    reason = inference.reason_to_drop(name, kind, values, raw)
    made = replace(made, notes=tuple(inference.remarks(kind, values, cells, raw, form, declared)))
    return replace(made, kind="dropped", missing=0.0, reason=reason) if reason else made, values


def _target(name: str, raw: Any, own: ColumnSchema, place: Any) -> tuple[pd.Series[Any] | None, list[str]]:
    """Read the column to predict: numbers stay numbers, everything else texts (truth values stay such)."""
    values = inference.typed(raw, own, target=True)
    present, faults = values.dropna(), []
    asked = pd.api.types.is_object_dtype(values) and len(present) >= 10
    if asked and (why := inference.telling_texts(present, present.value_counts(), "choose another target")):
        return values, [f"target {name!r} cannot be predicted: {why}"]
    if gaps := int(values.isna().sum()):
        where = place(int(values.isna().to_numpy().argmax()))
        faults.append(f"target {name!r} has {gaps} missing cell{'s' * (gaps > 1)}, first in {where}; remove these rows")
    if values.nunique() == 1:
        faults.append(f"target {name!r} is constant")
    return values, faults


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
    frame, target = opened.frame, target or declared.target or opened.target_name
    target, drop = target and column_among("target", target, frame.columns), names_of(drop)
    if WHICH_MARK in opened.problems:  # the mark of most columns that show one is the file's
        marks = Counter(
            inference.format_of(inference.texts_of(frame[name]), len(frame), ColumnSchema()).decimal
            for name in frame.columns
        )
        declared = replace(declared, decimal=max(",.", key=lambda mark: marks[mark]))
        opened = replace(opened, problems=tuple(set(opened.problems) - {WHICH_MARK}))
    known = {one.name: one for one in understand(opened, drop=drop, schema=declared).columns}
    columns = dict[str, ColumnSchema]()
    notes: dict[str | None, list[str]] = {None: list(_HEAD)}
    for name in frame.columns:
        raw, own = frame[name], declared.column(name)
        texts = inference.texts_of(raw)
        drafted = inference.format_of(texts, int(np.sum(own.read(raw).kind > 0)), own)
        cells = drafted.read(raw)
        kind, reason = ("dropped", "") if name in drop else _drafted_kind(known.get(name), cells, drafted, texts)
        said = {key: value for key, value in vars(own).items() if value not in ("", None, ())}
        columns[name] = replace(drafted, **{"kind": kind} | said)
        notes[name] = [reason] if reason else list(_comments(columns[name], raw, cells, name == target))
        if reason.startswith("the name") and cells.spelled.size > len(set(cells.spelled)):
            notes[None].append(f"If this column says whose record it is: person = {toml(name)}")
    if mark := declared.decimal:
        columns = {name: replace(one, decimal=one.decimal.replace(mark, "")) for name, one in columns.items()}
    made = Schema(columns, target, declared.task, declared.person, mark, drafted=True)
    return made.to_toml(notes)


def _drafted_kind(
    column: Column | None, cells: ColumnCells, drafted: ColumnSchema, texts: Collection[str]
) -> tuple[str, str]:
    """Return the kind as it is inferred, but codes, and numbers whose unit is known now; and why it is dropped."""
    kind = inference.kind_of(cells)
    if column is not None and column.kind == "dropped" and not (drafted.unit and kind == "number"):
        return "dropped", column.reason.partition(";")[0]
    numbers = cells.number[cells.kind == NUMBER]
    whole = kind == "number" and np.all(numbers == np.rint(numbers))
    return "code" if inference.is_code(texts) else "whole" if whole else kind, ""


def _comments(column: ColumnSchema, raw: Any, before: ColumnCells, is_target: bool) -> Iterator[str]:
    """Say what does not fit, what may be meant otherwise, and what could be declared besides."""
    cells = column.read(raw)
    if lost := int(np.sum((before.kind > 0) & (cells.kind == 0))):
        yield f"{lost} {'cell does' if lost == 1 else 'cells do'} not fit and would be missing"
    read = column if column.kind == "code" else replace(column, kind="")  # that it is whole was inferred
    yield from inference.doubts(inference.texts_of(raw), read).values()
    numbers = cells.number[~np.isnan(cells.number)]
    if column.kind in ("category", "code"):
        counts = pd.Series(cells.spelled).value_counts()
        if words := sorted(counts.index[counts >= inference.RARE])[: inference.MAX_CATEGORIES]:
            yield f"categories = {toml(tuple(words))}"
    elif column.range is None and len(numbers) and not is_target and (low := numbers.min()) < numbers.max():
        ends = tuple(inference.coarse_range(float(low), float(numbers.max())))
        days = tuple(str(np.datetime64(int(end), "D")) for end in ends)
        yield f"range = {toml(days if column.kind == 'date' else ends)}"
