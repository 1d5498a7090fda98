"""Tables that different people wrote, column by column: equal cells are equal values, however each table spells them.

For those who hold all of the tables. Each cell is read alone, as in training: what two tables write in two ways is
declared, or refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from deniable._check import FloatArray, InputError, IntArray
from deniable.tables.cell import DATE, MISSING, NUMBER, WORD, ColumnCells
from deniable.tables.files import open_table
from deniable.tables.inference import kind_of, texts_of, which_way
from deniable.tables.schema import ColumnSchema, Schema

_ALIKE = 0.9  # share of a kind in one table, of its share in another
_CHANCE = 5.0  # standard deviations by which chance may move a share of cells in one table
_MANY = 20  # filled cells from which on two columns must have something in common
_KINDS = {NUMBER: "numbers", DATE: "dates", WORD: "words"}


@dataclass(frozen=True, eq=False)
class SharedColumn:
    """A column of several tables, one below the other.

    ``codes`` are equal where the cells are (−1: missing). ``numbers`` are numbers or days, NaN elsewhere; None in a
    column of words.

    Examples
    --------
    See ``read_alike``.
    """

    codes: IntArray
    numbers: FloatArray | None


def read_alike(tables: dict[str, Any], schema: Schema | None = None) -> tuple[list[SharedColumn], dict[str, slice]]:
    """Return the columns of the first table, which all must have, and which rows belong to which table.

    Parameters
    ----------
    tables
        The tables by name, each in whatever holds one; columns are those of the first.
    schema
        What is declared of how cells are written; it holds for all tables.

    Returns
    -------
    tuple
        One :class:`SharedColumn` for each column, and {name: its rows}.

    Raises
    ------
    InputError
        If a table is none, lacks a column, writes what can be read in two ways (1,234 or 04/05/2021) and does not show
        in which, or in another way than other tables, or if the kind that most cells of the second table, the records,
        are of has less than 90 % of its share there: the column is written otherwise, or is another one.

    Examples
    --------
    >>> import deniable as dn
    >>> columns, rows = dn.tables.read_alike({"a": [["7", "x"], ["8", "y"]], "b": [[7.0, "X"], [9.0, "y"]]})
    >>> isinstance(columns[0], dn.tables.SharedColumn), columns[0].codes.tolist(), rows["b"]
    (True, [0, 1, 0, 2], slice(2, 4, None))
    """
    declared = schema or Schema()
    frames = {name: _frame(name, table, declared) for name, table in tables.items()}
    columns = [_number_cells(title, parts) for title, parts in _match_columns(frames, declared)]
    ends = [0, *accumulate(len(frame) for frame in frames.values())]
    return columns, dict(zip(frames, map(slice, ends, ends[1:]), strict=False))


def _frame(name: str, table: Any, schema: Schema) -> Any:
    try:
        frame = open_table(table, schema).judged().checked().frame
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if not frame.shape[0] or not frame.shape[1]:
        raise InputError(f"{name} must be a table with at least one record, got shape {frame.shape}")
    return frame


def _match_columns(frames: dict[str, Any], schema: Schema) -> Iterator[tuple[Any, list[tuple[str, ColumnCells]]]]:
    """Yield each column of the first table as all have it: by its name, or by its place where tables have none."""
    names = list(next(iter(frames.values())).columns)
    by_name = not all(name == f"{i}" for i, name in enumerate(names))
    absent = {name for other in frames.values() for name in names if name not in list(other.columns)}
    if by_name and absent:
        raise InputError(f"every table must have the released table's columns; missing: {', '.join(sorted(absent))}")
    if not by_name and len({frame.shape[1] for frame in frames.values()}) > 1:
        raise InputError("synthetic, members, nonmembers and reference must be tables with the same columns")
    for i, title in enumerate(names):
        parts = {name: frame[title if by_name else frame.columns[i]] for name, frame in frames.items()}
        own = schema.column(title)
        _refuse_two_ways(title, {name: texts_of(raw) for name, raw in parts.items()}, own)
        yield title, [(name, own.read(raw)) for name, raw in parts.items()]


def _refuse_two_ways(title: Any, texts: dict[str, Counter[str]], own: ColumnSchema) -> None:
    """Refuse what may be read in two ways unless each table shows which, and all the same: copies would be missed.

    1,234 in all tables is one number; the first days of months are others.
    """
    for settles, example in (("decimal", "1,234"), ("order", "04/05/2021")):
        ways, every = {name: which_way(found, own, settles) for name, found in texts.items()}, set()
        for way, marks in ways.values():
            read = "." if settles == "decimal" else "month" if "/" in marks else "day"
            every.add(way or f"either {marks}" if marks and way != read else "")
        if len(every) > 1 or (settles == "order" and any(marks and not way for way, marks in ways.values())):
            where = next(name for name, (_, marks) in ways.items() if marks)
            raise InputError(
                f"column {title!r} may be read in two ways, and not all tables show the same one: {where} has cells "
                f"such as {example}; declare its {settles} in a schema (--schema"
                f"{', or --decimal' * (settles == 'decimal')})"
            )


def _number_cells(title: Any, parts: list[tuple[str, ColumnCells]]) -> SharedColumn:
    """Check that the tables mean one thing by a column, and number its distinct cells."""
    cells = [part for _, part in parts]
    numbers, kinds = (np.concatenate([getattr(part, name) for part in cells]) for name in ("number", "kind"))
    whose = cells[min(1, len(cells) - 1)]
    filled_in = {name: bool(np.any(part.kind != MISSING)) for name, part in parts[1:] if len(part.kind) >= _MANY}
    if len(set(filled_in.values())) > 1:
        empty = next(name for name, filled in filled_in.items() if not filled)
        raise InputError(f"column {title!r} is empty in {empty} and not in the others; fill it, or leave it out of all")
    enough = np.sum(whose.kind != MISSING) >= _MANY
    counts = np.bincount(whose.kind if enough else kinds, minlength=4)[1:]
    kind, share = int(counts.argmax()) + 1, counts.max() / max(counts.sum(), 1)
    for j, ((name, _), part) in enumerate(zip(parts, cells, strict=True)):
        filled = part.kind[part.kind != MISSING]
        least = _ALIKE * share * len(filled) - _CHANCE * np.sqrt(share * (1 - share) * len(filled))
        if (j == 0 or len(filled) >= _MANY) and np.sum(filled == kind) < least:
            raise InputError(
                f"column {title!r}: the records' cells are read as {_KINDS[kind]}, and of the {name} table's "
                f"{100 * np.mean(filled == kind):.0f} %; write all tables alike (1234.5, 2021-04-19; --decimal is for "
                "all of them), or leave the column out"
            )
    place_of: dict[str, int] = {}
    known = [[*(place_of.setdefault(word.casefold(), len(place_of)) for word in part.words), -1] for part in cells]
    codes = np.concatenate([np.array(k, dtype=np.int64)[part.word] for k, part in zip(known, cells, strict=True)])
    distinct, place = np.unique(numbers, return_inverse=True)
    codes = np.where(np.isnan(numbers), codes, len(place_of) + place + len(distinct) * (kinds == DATE))
    words = kind == WORD or (enough and kind_of(whose) == "category")  # as a draft has it
    values = codes if words else np.where(kinds == kind, numbers, np.nan)
    _check_common(title, values[: len(cells[0])][kinds[: len(cells[0])] == kind], values[len(cells[0]) :])
    return SharedColumn(codes, None if words else values)


def _check_common(title: Any, own: Any, theirs: Any) -> None:
    """Refuse a released column that has next to nothing in common with the records': other units, other words."""
    theirs = theirs[theirs >= 0] if theirs.dtype.kind == "i" else theirs[~np.isnan(theirs)]
    if min(len(own), len(theirs)) < _MANY or (own.dtype.kind == "i" and len(np.unique(theirs)) > len(theirs) / 2):
        return  # too few cells, or texts that are all different
    common = np.isin(own, theirs) if own.dtype.kind == "i" else (own >= theirs.min()) & (own <= theirs.max())
    if np.mean(common) < 1 - _ALIKE:
        raise InputError(
            f"column {title!r}: {100 * np.mean(common):.0f} % of the released cells are words, or lie in the range, of "
            "the records; are its units or words others? write all tables alike, or leave the column out"
        )
