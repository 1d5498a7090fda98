"""What the owner of a table learns of it, and how methods without a private account read it: inferred, by column.

The only place where cells together decide what a column is: a draft, for its owner's eyes. Private training and private
statistics never come here. Cells are read one by one (:mod:`deniable.tables.cell`).
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from deniable._check import InputError
from deniable.tables.cell import DATE, NUMBER, WORD, ColumnCells, flag_of
from deniable.tables.files import WHICH_MARK, open_table
from deniable.tables.remarks import RARE, remarks, written
from deniable.tables.schema import ColumnSchema, Schema, as_schema

PUBLIC = (
    "The names and kinds of the columns, how their cells are read and which columns were dropped were decided by "
    "looking at the data; these decisions are taken as public."
)
MAX_CATEGORIES = 200  # distinct texts of a column, each of which becomes a column of zeros and ones
SAID = 6  # columns that a warning names
_RARE_SHARE = 0.2  # larger shares of rows with rare texts make a column of texts identifying
_LONG_TEXT = 60  # letters on average: somebody wrote sentences
_SCALE = 20  # distinct cells up to which numbers and words are a scale like 1, 2, 3+
_HEADER_COLUMNS = 2  # columns of numbers or dates with a text in the first row: one could be a mistake
_HEADER_SEEN = 200  # rows that are looked at
_IDENTIFIER = re.compile(
    r"(?:^|[^a-z])(?:id|ids|uuid|guid|ssn|iban|e-?mail|phone|telephone|passport|surname|firstname|lastname|fullname"
    r"|first[_ ]name|last[_ ]name|full[_ ]name|username|user[_ ]name|address)(?:$|[^a-z])"
)
_ODD_DATE = re.compile(
    r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}.*|.*\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\d.*", re.I
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
        Whether a private model is likely to use it: all are used but those of nearly unique words.
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
        words: list[str] = [f"dropped: {self.reason}" if self.kind == "dropped" else self.kind]
        if self.missing:
            words.append(f"{100 * self.missing:.2g}\u00a0% missing")
        return f"{self.name!r}: {'; '.join([*words, *self.notes])}"


@dataclass(frozen=True, eq=False)
class Understood:
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
        What was guessed of the file: separator, sheet.
    problems
        Why the table cannot be used. :func:`understand` raises if there are any, unless ``strict=False``.
    odd
        The lines (1 is the first below the header) that are no record and weigh nothing: for the owner.
    schema
        What was declared.

    Examples
    --------
    See ``understand``.
    """

    name: str
    columns: tuple[Column, ...]
    frame: pd.DataFrame
    target: pd.Series[Any] | None
    target_name: str | None
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    odd: tuple[int, ...] = ()
    schema: Schema = field(default_factory=Schema)

    @property
    def kept(self) -> tuple[Column, ...]:
        """The columns that are used."""
        return tuple(column for column in self.columns if column.kind != "dropped")

    @property
    def surprises(self) -> tuple[str, ...]:
        """The remarks on lines that weigh nothing, on dropped columns and on cells that may be meant otherwise."""
        lost = [f"lines that are no records and were left out: {len(self.odd)}"] if self.odd else []
        return (*lost, *(column.line for column in self.columns if column.kind == "dropped" or column.notes))

    def checked(self) -> Understood:
        """Return the table if it has no problems; otherwise raise ``InputError`` with all of them."""
        if self.problems:
            raise InputError(f"{self.name} cannot be used: {'; '.join(self.problems)}")
        return self

    def supervised(self) -> pd.Series[Any]:
        """Return the target and warn of surprises, or raise where there is none, or nothing to predict it from."""
        if self.target is None:
            names = listed(column.name for column in self.columns)
            raise InputError(f"target is missing; name the column to predict, one of: {names}")
        if not self.kept:
            why = f": {'; '.join(column.line for column in self.columns)}" if self.columns else ""
            raise InputError(f"{self.name} has no column that can be used besides the target {self.target_name!r}{why}")
        self.warn()
        return self.target

    def warn(self) -> None:
        """Say in one warning what is surprising; see :attr:`surprises`."""
        if self.surprises:
            more = len(self.surprises) - SAID
            lines = [*self.surprises[:SAID], *([f"and {more} more columns"] if more > 0 else [])]
            warnings.warn(f"{self.name}: {'; '.join(lines)}", TableWarning, stacklevel=3)


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
    opened = open_table(source, declared, columns=columns)
    frame, problems, target = opened.frame, list(opened.problems), target or declared.target or opened.target
    left = {name for name, one in declared.columns.items() if one.kind == "dropped"} - {target}
    names = [str(column) for column in frame.columns]
    if twice := sorted({one for one in names if names.count(one) > 1}):
        problems.append(f"the header has {listed(map(repr, twice))} more than once; rename or remove the copies")
    named = [("target", target), *(("drop", column) for column in drop)]
    named += [("schema", column) for column in (*declared.columns, declared.person)]
    for what, asked in named:
        if asked is not None and str(asked) not in names:
            problems.append(f"{what} {asked!r} is not a column{near(str(asked), names)}; it has: {listed(names)}")
    if target is not None and str(target) in drop:
        problems.append(f"column {target!r} is both the target and to be dropped")
    if not len(frame) and not opened.problems:
        problems.append("it has no rows")
    notes, odd = opened.notes, opened.odd
    found = Understood(opened.name, (), pd.DataFrame(), None, target, notes, tuple(problems), odd, declared)
    if not twice and len(frame) and frame.columns.nlevels == 1:
        found = _columns(found, frame, {*drop, *left, declared.person})
    if WHICH_MARK in problems:
        found = replace(found, columns=tuple(_both_readings(column, frame) for column in found.columns))
    return found.checked() if strict else found


def _both_readings(column: Column, frame: Any) -> Column:
    """Say of a column how many of its cells are numbers with either decimal mark."""
    read = {mark: ColumnSchema(decimal=mark).read(frame[column.name]).kind for mark in (",", ".")}
    comma, point = (int(np.sum(kinds == NUMBER)) for kinds in read.values())
    said = f"numbers with a decimal comma: {comma:,}, with a decimal point: {point:,}"
    return replace(column, notes=(*column.notes, said)) if comma != point else column


def _columns(found: Understood, frame: Any, drop: set[Any]) -> Understood:
    columns, kept, aim, problems, above = [], {}, None, list(found.problems), 0
    place = getattr(frame, "place_of", "row {}".format)
    for name in frame.columns:
        if name in drop and name != found.target_name:
            continue
        own = found.schema.column(name)
        cells = own.read(frame[name])
        above += not own.kind and _text_above(cells)
        if name == found.target_name:
            aim, faults = _target(name, frame[name], cells, place)
            problems += faults
            continue
        column, values = _understood(name, frame[name], cells, own)
        columns.append(column)
        if column.kind != "dropped":
            kept[name] = values
    if above >= _HEADER_COLUMNS:
        problems.append(
            f"it has two header lines: the first row below the header holds texts where {above} columns hold numbers "
            "or dates; delete one of the two lines, or correct these cells"
        )
    made = pd.DataFrame(kept, index=range(len(frame)), copy=False)
    return replace(found, columns=tuple(columns), frame=made, target=aim, problems=tuple(problems))


def _text_above(cells: ColumnCells) -> bool:
    """Whether a text stands above numbers or dates only."""
    kinds = cells.kind[1:_HEADER_SEEN]
    return len(kinds) > RARE and cells.kind[0] == WORD and bool(kinds.any() and not (kinds == WORD).any())


def near(asked: str, names: Iterable[str]) -> str:
    """Suggest the name that was probably meant."""
    small = {name.casefold(): name for name in names}
    word = asked.casefold()
    close = difflib.get_close_matches(word, small, n=1, cutoff=0.6)
    close = close or [name for name in small if len(word) > 2 and (word in name or (len(name) > 2 and name in word))]
    return f"; did you mean {small[close[0]]!r}?" if close else ""


def kind_of(cells: ColumnCells) -> str:
    """What most cells are: numbers or dates if at least half of those that are present, but for a scale of few."""
    counts = np.bincount(cells.kind, minlength=4)
    flags = np.array([*(bool(flag_of(word)) for word in cells.words), False])[cells.word]
    if counts[WORD] and flags.sum() == counts[1:].sum():
        return "yes/no"
    if cells.words and len(cells.words) + len(np.unique(cells.number[cells.kind != WORD])) <= _SCALE:
        return "category"
    if 2 * max(counts[NUMBER], counts[DATE]) >= max(counts[1:].sum(), 1):
        return "number" if counts[NUMBER] >= counts[DATE] else "date"
    return "category"


def _typed(cells: ColumnCells, kind: str) -> pd.Series[Any]:
    """Return the cells of a kind; others are NaN."""
    if kind == "category":
        return pd.Series(cells.spelled, dtype=object).where(cells.kind > 0, np.nan)
    if kind == "yes/no":
        ends = {"yes": 1.0, "no": 0.0}
        return pd.Series(np.array([*(ends.get(flag_of(word), np.nan) for word in cells.words), np.nan])[cells.word])
    return pd.Series(np.where(cells.kind == (DATE if kind == "date" else NUMBER), cells.number, np.nan))


def _understood(name: str, raw: Any, cells: ColumnCells, declared: ColumnSchema) -> tuple[Column, pd.Series[Any]]:
    """Decide of what kind a column is and read it."""
    kind: Any = {"whole": "number", "code": "category"}.get(declared.kind, declared.kind) or kind_of(cells)
    values = _typed(cells, kind)
    if declared.kind:
        return Column(name, kind, float(values.isna().mean())), values
    made = Column(
        name, kind, float(values.isna().mean()), trained=not _nearly_unique(cells), written=written(raw, declared)
    )
    if reason := _reason_to_drop(name, kind, values, raw):
        return replace(made, kind="dropped", missing=0.0, reason=reason), values
    return replace(made, notes=tuple(remarks(kind, values, cells, raw, declared))), values


def _nearly_unique(cells: ColumnCells) -> bool:
    """Whether words, nearly all of which are different, are most of the cells."""
    counts = np.bincount(cells.kind, minlength=4)
    return bool(len(cells.words) > counts[WORD] / 2 and counts[WORD] > max(counts[NUMBER], counts[DATE]))


def _reason_to_drop(name: str, kind: str, values: pd.Series[Any], raw: Any) -> str:
    """Say why a readable column must not be used, or nothing."""
    present = values.dropna()
    counts = present.value_counts()
    if not len(counts):
        return "it is empty"
    if len(counts) == 1 and any(type(cell).__name__ == counts.index[0] for cell in raw):  # read as the type's name
        return f"its cells are nested ({counts.index[0]}); give their parts columns of their own"
    if len(counts) == 1:
        return "it is constant" if len(present) == len(values) else "all cells that hold anything are equal"
    way_out = "if this is not an identifier, declare it in a schema"
    if _IDENTIFIER.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()):
        return f"the name looks like an identifier; {way_out}"
    if kind == "number":
        return _numeric_identifier(present, way_out)
    return _telling_texts(present, counts, way_out) if kind == "category" else ""


def _numeric_identifier(present: pd.Series[Any], way_out: str) -> str:
    numbers = np.sort(present.to_numpy(dtype=np.float64))
    if len(numbers) < 10 or not np.all(numbers == np.round(numbers)):
        return ""
    if np.all(np.diff(numbers) == 1):
        return f"it numbers the rows; {way_out}"
    unique = np.sum(np.diff(numbers) > 0) + 1
    if unique > 0.9 * len(numbers) and np.median(np.abs(numbers)) >= 1e8:
        return f"its long whole numbers are nearly unique, as identifiers are; {way_out}"
    return ""


def _telling_texts(present: pd.Series[Any], counts: pd.Series[Any], way_out: str) -> str:
    """Say why a column of texts tells who somebody is, or nothing."""
    words = [str(word) for word in counts.index]
    if sum(bool(_ODD_DATE.fullmatch(word)) for word in words) > 0.9 * len(words):
        return "its dates are in a form that is not understood; write them as 2024-12-31"
    if np.mean([len(word) for word in words]) > _LONG_TEXT:
        return "it is free text"
    if float(counts[counts < RARE].sum()) / len(present) > _RARE_SHARE:
        return f"its texts are nearly unique and identify people; {way_out}"
    if len(words) > MAX_CATEGORIES:
        return f"it has more than {MAX_CATEGORIES} different texts; group them, or {way_out}"
    return ""


def _target(name: str, raw: Any, cells: ColumnCells, place: Any) -> tuple[pd.Series[Any] | None, list[str]]:
    """Read the column to predict: numbers stay numbers, everything else texts (booleans stay booleans)."""
    kind = kind_of(cells)
    values = _typed(cells, "category" if kind == "yes/no" else kind)
    if pd.api.types.is_bool_dtype(raw) and not values.isna().any():
        values = values == "true"
    elif kind == "number" and not values.isna().any() and np.all(values == np.round(values)):
        values = values.astype(np.int64) if np.abs(values).max() < 2.0**53 else values
    present, faults = values.dropna(), []
    asked = kind == "category" and len(present) >= 10
    if asked and (why := _telling_texts(present, present.value_counts(), "choose another target")):
        return values, [f"target {name!r} cannot be predicted: {why}"]
    if gaps := int(values.isna().sum()):
        many = f"{gaps} missing {'cell' if gaps == 1 else 'cells'}"
        where = place(int(values.isna().to_numpy().argmax()))
        faults.append(f"target {name!r} has {many}, first in {where}; remove these rows")
    if values.nunique() == 1:
        faults.append(f"target {name!r} is constant")
    return values, faults


def listed(values: Iterable[Any], most: int = 12) -> str:
    """Return names in a row, shortened if there are many."""
    items = [str(value) for value in values]
    return ", ".join(items[:most]) + (f", … ({len(items)} in all)" if len(items) > most else "")
