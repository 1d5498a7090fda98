"""What a table holds, column by column: decided once, reported, and the same for every command."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import InputError, mapping
from deniable.tables.cells import NOTHING, NOTHING_AS_NUMBER, Form, Texts
from deniable.tables.columns import Column, ColumnKind
from deniable.tables.files import Opened, as_opened
from deniable.tables.kinds import (
    kind_of,
    kind_of_texts,
    listed,
    reason_to_drop,
    telling_texts,
    typed,
    typed_texts,
    warn_of_points,
)

Ranges = Mapping[str, Sequence[Any]]
_HEADER_COLUMNS = 2  # columns of numbers or dates with a text in the first row: one could be a mistake
_HEADER_LEAST = 5  # fewest rows from which the others can say what a column holds
_HEADER_SEEN = 200  # rows that are looked at
SAID = 6  # columns that a warning names
_NESTED = (list, tuple, dict, set, np.ndarray, bytes)


class TableWarning(UserWarning):
    """Something in a table was left out, or read differently from how it is written."""


def warn_of(table: str, surprises: Sequence[str]) -> None:
    """Say in one warning what is surprising about how a table was read; see :attr:`Understood.surprises`."""
    if surprises:
        more = len(surprises) - SAID
        lines = [*surprises[:SAID], *([f"and {more} more columns"] if more > 0 else [])]
        warnings.warn(f"{table}: {'; '.join(lines)}", TableWarning, stacklevel=4)


@dataclass(frozen=True)
class Reader:
    """How the cells of the kept columns are read; it holds no value of the table, so it may go with a model.

    ``columns`` are (name, kind, form) of each kept column.
    """

    columns: tuple[tuple[str, ColumnKind, Form], ...]

    def read(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Read more rows in the same way: the same columns of the same kinds; what is not of its kind is missing.

        Raises
        ------
        InputError
            If a column is not there.
        """
        absent = [name for name, _, _ in self.columns if name not in frame.columns]
        if absent:
            raise InputError(f"the table must have the columns {listed(absent)}, which it lacks")
        read = {name: typed(frame[name], kind, form) for name, kind, form in self.columns}
        return pd.DataFrame(read, index=frame.index)


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
        The records (1 is the first) whose line has another number of cells than the header: for the owner.
    """

    name: str
    columns: tuple[Column, ...]
    frame: pd.DataFrame
    target: pd.Series[Any] | None
    target_name: str | None
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    odd: tuple[int, ...] = ()

    @property
    def kept(self) -> tuple[Column, ...]:
        """The columns that are used."""
        return tuple(column for column in self.columns if column.kind != "dropped")

    @property
    def dropped(self) -> tuple[Column, ...]:
        """The columns that are not used."""
        return tuple(column for column in self.columns if column.kind == "dropped")

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person has to know: what was guessed, dropped, or read differently from how it is written."""
        special = [column.line for column in self.columns if column.notes or column.missing or column.kind == "dropped"]
        return (*self.notes, *special)

    @property
    def reader(self) -> Reader:
        """How to read more rows of such a table."""
        return Reader(tuple((column.name, column.kind, column.form) for column in self.kept))

    def checked(self) -> Understood:
        """Return the table if it has no problems; otherwise raise ``InputError`` with all of them."""
        if self.problems:
            raise InputError(f"{self.name} cannot be used: {'; '.join(self.problems)}")
        return self

    @property
    def surprises(self) -> tuple[str, ...]:
        """The remarks on columns that are dropped or read differently from how they are written.

        Yes and no, and dates that are dates already, surprise nobody.
        """
        plain = [c.kind == "yes/no" or (c.kind == "date" and not c.form.date) for c in self.columns]
        return tuple(
            column.line
            for column, expected in zip(self.columns, plain, strict=True)
            if column.kind == "dropped" or (column.notes and not expected)
        )

    def warn(self) -> None:
        """Say in one warning which columns were dropped or read differently from how they are written, and why."""
        warn_of(self.name, self.surprises)


def understand(
    source: Any,
    target: str | None = None,
    *,
    drop: Sequence[str] = (),
    ranges: Ranges | None = None,
    strict: bool = True,
    only: Collection[str] | None = None,
) -> Understood:
    """Read a table as people have it, and say of every column what was understood.

    Columns that identify people (nearly unique texts, identifiers, running numbers), free text, dates in a form that
    is not understood, mixtures, constant and empty columns are dropped, never made into categories. No value of them
    is kept. Which columns these are, and all other decisions taken here, are then public (``tables.PUBLIC``).

    Parameters
    ----------
    source
        A data frame, or the path of a .csv, .tsv, .txt (also .gz), .parquet, .feather or .xlsx file; a folder of
        Parquet files, a Dask data frame, or blocks (a list, an iterator, or a function that returns one, of data
        frames). The columns of Parquet, Dask and blocks are read one at a time.
    target
        Name of the column to predict, if there is one.
    drop
        Columns to leave out.
    ranges
        Public knowledge of columns: [low, high] of a number, the categories of a text. Such a column is never dropped;
        what does not fit in it is missing.
    strict
        Whether problems raise; otherwise they are listed in ``problems``.
    only
        Names of the columns to read, if others are not needed.

    Raises
    ------
    InputError
        With all problems of the table in one message: duplicate names, infinite numbers, lists in cells, an unknown
        target or column to drop (with the nearest name), rows of another length.
    """
    ranges = mapping("ranges", ranges, "{'age': (0, 120)}")
    opened, name = as_opened(source)
    frame, problems = opened.frame, list(opened.problems)
    names = [str(column) for column in frame.columns]
    problems += [*_duplicates(names), *_second_header(opened, ranges)]
    named = [("target", target), *(("drop", column) for column in drop), *(("ranges", c) for c in ranges)]
    for what, asked in named:
        if asked is not None and str(asked) not in names:
            problems.append(f"{what} {asked!r} is not a column{_near(str(asked), names)}; it has: {listed(names)}")
    if only is not None and set(only) <= set(names):
        frame = frame[[column for column in frame.columns if str(column) in only]]
        opened = replace(opened, frame=frame)
    if target is not None and str(target) in drop:
        problems.append(f"column {target!r} is both the target and to be dropped")
    if not len(frame):
        problems.append("it has no rows")
    understood = Understood(name, (), pd.DataFrame(), None, target, opened.notes, tuple(problems), opened.odd)
    if len(set(names)) == len(names) and len(frame) and frame.columns.nlevels == 1:
        understood = _columns(understood, opened, set(drop), ranges)
    return understood.checked() if strict else understood


def _columns(understood: Understood, opened: Opened, drop: set[str], ranges: Ranges) -> Understood:
    frame, target, problems = opened.frame, understood.target_name, list(understood.problems)
    columns, kept, aim = [], {}, None
    place = getattr(frame, "place_of", "row {}".format)
    for name in frame.columns:
        values = frame[name]
        if fault := _unusable(values, place, declared=name in ranges and name != target):
            if name not in drop:
                problems.append(f"column {name!r} {fault}")
        elif name == target:
            aim, faults = _target(name, values, opened.decimal_comma, place)
            problems += faults
        elif name not in drop:
            column, cells = _understood(name, values, opened.decimal_comma, ranges.get(name))
            columns.append(column)
            if column.kind != "dropped":
                kept[name] = cells
    if any(c.form.decimal == "," for c in columns):
        columns = [warn_of_points(column, frame[column.name]) for column in columns]
    made = pd.DataFrame(kept, index=range(len(frame)), copy=False)
    return replace(understood, columns=tuple(columns), frame=made, target=aim, problems=tuple(problems))


def _duplicates(names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f"the header has {listed(map(repr, twice))} more than once; rename or remove the copies"] if twice else []


def _second_header(opened: Opened, ranges: Ranges) -> list[str]:
    """Refuse a first row that holds texts above numbers or dates: it is a header too."""
    if not isinstance(opened.frame, pd.DataFrame):  # a file that stores the kinds of its columns
        return []
    frame, above = opened.frame.iloc[:_HEADER_SEEN], 0
    if len(frame) < _HEADER_LEAST:
        return []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        word = column.iloc[0]
        if column.name in ranges:
            continue
        if isinstance(word, str) and word.strip() not in (*NOTHING, *NOTHING_AS_NUMBER) and not _unusable(column):
            first, rest = (kind_of_texts(Texts.of(part), opened.decimal_comma)[0] for part in (column[:1], column[1:]))
            above += first == "category" and rest in ("number", "date")
    if above < _HEADER_COLUMNS:
        return []
    return [
        f"it has two header lines: the first row below the header holds texts where {above} columns hold numbers or "
        "dates; delete one of the two lines, or correct these cells"
    ]


def _near(asked: str, names: Iterable[str]) -> str:
    """Suggest the name that was probably meant."""
    small = {name.casefold(): name for name in names}
    word = asked.casefold()
    close = difflib.get_close_matches(word, small, n=1, cutoff=0.6)
    close = close or [name for name in small if len(word) > 2 and (word in name or (len(name) > 2 and name in word))]
    return f"; did you mean {small[close[0]]!r}?" if close else ""


def _unusable(values: pd.Series[Any], place: Callable[[int], str] = str, declared: bool = False) -> str:
    """Say why the cells cannot be read at all, or nothing; ``place`` names a row. No cell refuses a declared column."""
    if pd.api.types.is_complex_dtype(values):
        return "holds complex numbers"
    if declared:
        return ""
    if values.dtype == object:
        kinds = {type(cell) for cell in values}
        if odd := sorted(kind.__name__ for kind in kinds if issubclass(kind, _NESTED)):
            return f"holds a {odd[0]} in each cell; write one value per cell, or drop it"
        if complex in kinds:
            return "holds complex numbers"
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        wrong = np.isinf(values.to_numpy(dtype=np.float64, na_value=np.nan))
        if bad := int(wrong.sum()):
            where = place(int(wrong.argmax()))
            return f"has {bad} infinite {'cell' if bad == 1 else 'cells'}, first in {where}; fill or remove them"
    return ""


def _understood(
    name: str, values: pd.Series[Any], decimal_comma: bool, given: Sequence[Any] | None
) -> tuple[Column, pd.Series[Any]]:
    """Decide of what kind a column is and read it."""
    kind, form, notes, cells = kind_of(values, decimal_comma, given)
    missing = float(cells.isna().mean()) if kind != "dropped" else 0.0
    column = Column(name, kind, missing, (*form.notes, *notes), form=form)
    if kind == "dropped":
        reason = notes[-1]
    elif given is not None:
        reason = ""
    else:
        reason = "it is empty" if missing == 1 else reason_to_drop(name, kind, cells)
    if reason:
        return Column(name, "dropped", reason=reason), cells
    return column, cells


def _target(
    name: str, values: pd.Series[Any], decimal_comma: bool, place: Callable[[int], str]
) -> tuple[pd.Series[Any] | None, list[str]]:
    """Read the column to predict: numbers stay numbers, everything else texts (booleans stay booleans)."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        made = values
    else:
        texts = Texts.of(values)
        kind, _, notes, cells = kind_of_texts(texts, decimal_comma)
        made = cells if kind in ("number", "date") else typed_texts(texts, "category", Form())
        present = made.dropna()
        why = telling_texts(present, present.value_counts(), "choose another target") if len(present) else ""
        if why and kind not in ("number", "date") and len(present) >= 10:
            return made, [f"target {name!r} cannot be predicted: {notes[0] if kind == 'dropped' else why}"]
    faults = []
    if gaps := int(made.isna().sum()):
        many = f"{gaps} missing {'cell' if gaps == 1 else 'cells'}"
        where = place(int(made.isna().to_numpy().argmax()))
        faults.append(f"target {name!r} has {many}, first in {where}; remove these rows")
    if made.nunique() == 1:
        faults.append(f"target {name!r} is constant")
    return made.reset_index(drop=True), faults
