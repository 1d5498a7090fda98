"""What its owner declares of a table: public knowledge that no private query then has to pay for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np

from deniable._check import InputError, choice, mapping, refuse_unknown
from deniable._files import read_toml, write_atomically
from deniable.tables.cell import (
    DATE,
    MISSING,
    NOTHING,
    NUMBER,
    USUAL,
    WORD,
    CellFormat,
    ColumnCells,
    measured,
    read_cell,
    read_cells,
    spelled,
)
from deniable.tables.containers import column_among, name_of, names_of

KINDS = ("number", "whole", "date", "yes/no", "category", "code", "dropped")
MOST_LISTED = 50_000  # categories: cells are 16-bit numbers, of which others and missing take two
_AXES = {"number": NUMBER, "whole": NUMBER, "date": DATE}  # the kinds that have a range
_YES_NO = ("no", "yes")
_DRAFTED = "drafted from the data: read, then delete this line"  # the first line of a draft, a comment
_CHOICES = {
    "kind": KINDS,
    "decimal": (".", ","),
    "order": ("day", "month"),
    "task": ("classification", "regression"),
    "censored": ("limit",),
}


@dataclass(frozen=True)
class ColumnSchema:
    """What is declared of one column; nothing is, by default.

    Attributes
    ----------
    kind
        "number", "whole" (numbers), "date", "yes/no", "category", "code" (a category that is spelled with digits:
        "007" is not 7), or "dropped". A cell of another kind is missing; where numbers are declared, yes and no are 1
        and 0. A range or categories say the kind, too.
    range
        (low, high) of numbers or dates, to which cells are clipped.
    categories
        The categories (where a column of numbers makes groups, too), or the classes of the target; other words are
        "(other)".
    decimal, order
        The decimal mark, "." or ","; and what comes first in 04/05/2021, "day" or "month".
    unit
        What stands before or after a number, such as "kg" or "€".
    missing
        Cells that mean that nothing is known, such as 999, besides the usual ones.
    censored
        "limit": of "90+" and "< 0,5" the limits, 90 and 0.5, are the numbers; else these are words.

    Examples
    --------
    See ``Schema``.
    """

    kind: str = ""
    range: tuple[Any, Any] | None = None
    categories: tuple[Any, ...] = ()
    decimal: str = ""
    order: str = ""
    unit: str = ""
    missing: tuple[Any, ...] = ()
    censored: str = ""

    @property
    def form(self) -> CellFormat:
        """How its texts are written."""
        usual = frozenset(word for word in self.categories if isinstance(word, str) and word and word in NOTHING)
        return CellFormat(self.decimal, self.order, self.unit, bool(self.censored), self.kind == "code", usual)

    @property
    def span(self) -> tuple[float, float] | None:
        """The range in numbers, of dates in days since 1970-01-01; None if none is declared."""
        if self.kind == "yes/no":
            return 0.0, 1.0
        return None if self.range is None else span_of("range", self.range)[0]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The categories, those of yes and no among them."""
        return _YES_NO if self.kind == "yes/no" else self.categories

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories as cells are spelled."""
        form = self.form
        return tuple(str(_spelled(word, form)) for word in self.classes)

    def read(self, values: Any) -> ColumnCells:
        """Read each cell alone; what does not fit is missing."""
        cells = read_cells(values, self.form)
        if none := {read_cell(word, self.form) for word in self.missing}:
            gone = np.array([*((WORD, word) in none for word in cells.words), False])[cells.word]
            for axis in (NUMBER, DATE):
                gone |= (cells.kind == axis) & np.isin(cells.number, np.array([v for kind, v in none if kind == axis]))
            cells = _kept(cells, ~gone)
        if self.kind in ("number", "whole", "yes/no") and cells.words:
            cells = measured(np.where(cells.kind == NUMBER, cells.number, cells.flags), NUMBER)
        if self.kind == "yes/no":
            known = (cells.kind == NUMBER) & np.isin(cells.number, (0, 1))
            return read_cells(_YES_NO).at(np.where(known, cells.number, -1).astype(np.int64))
        if self.kind == "date":
            cells = _in_digits(cells)
        if self.kind not in _AXES:
            return cells
        whole = cells.number == np.rint(cells.number) if self.kind == "whole" else True
        return _kept(cells, (cells.kind == _AXES[self.kind]) & whole)

    def checked(self, name: Any) -> ColumnSchema:
        """Return the column with its kind and its values in plain types, or raise ``InputError`` about ``name``."""
        _chosen(self, f"of column {name!r}", ("kind", "decimal", "order", "censored"))
        if not isinstance(self.unit, str):
            raise InputError(f"unit of column {name!r} must be a text, got {self.unit!r}")
        span, kind = self.range, self.kind
        if span is not None:
            ends, axis = span_of(f"the range of {name!r}", span)
            kind, span = kind or ("date" if axis == DATE else "number"), ends
            if _AXES.get(kind) != axis:
                what = "dates" if axis == DATE else "numbers"
                raise InputError(f"the range of {name!r} must fit its kind {kind!r}, got {what}: {self.range!r}")
            span = (str(spelled(DATE, ends[0])), str(spelled(DATE, ends[1]))) if axis == DATE else ends
        words, missing = _plain(self.categories, name, "categories"), _plain(self.missing, name, "missing")
        made = replace(self, kind=kind or ("category" if words else ""), range=span, categories=words, missing=missing)
        texts = made.read(list(words)).spelled.tolist()
        if len({*texts, None}) <= len(texts) or len(texts) > MOST_LISTED:
            raise InputError(
                f"the categories of {name!r} must be a list of at most {MOST_LISTED} different texts, none of which "
                f"means a missing cell or is of another kind, got {words if len(words) < 20 else len(words)!r}"
            )
        return made


@dataclass(frozen=True)
class Schema:
    """What is declared of a table, as public: kinds, formats, ranges, categories, classes, target, person.

    What is declared is not queried and costs nothing; a cell that does not fit is missing. The rest is told by
    private counts. ``deniable check people.csv --schema-out schema.toml`` drafts a schema for its owner to correct.

    Attributes
    ----------
    columns
        {name: :class:`deniable.tables.ColumnSchema`, or a mapping of its attributes}.
    target, task
        The column to predict, whose categories are the classes; "classification" or "regression".
    person
        The column that says whose record it is.
    decimal, order, missing
        As of a column, for all columns that do not say otherwise; cells of all columns that mean nothing is known.
    drafted
        Whether it is a draft that nobody has read, of which private models and statistics make nothing: a record may
        decide a line of it. Not a key of a file, which begins with a comment that says so.

    Examples
    --------
    >>> import deniable as dn
    >>> schema = dn.Schema({"wage": {"range": (0, 9000), "decimal": ","}, "born": {"kind": "date", "order": "day"}})
    >>> schema.column("wage").read(["1.234,50 €", "none", "yes"]).spelled.tolist()
    ['1234.5', None, '1']
    >>> print(schema.to_toml())
    [columns."wage"]
    kind = "number"
    range = [0.0, 9000.0]
    decimal = ","
    <BLANKLINE>
    [columns."born"]
    kind = "date"
    order = "day"
    <BLANKLINE>
    """

    columns: Mapping[Any, Any] = field(default_factory=dict, hash=False)
    target: Any = None
    task: str = ""
    person: Any = None
    decimal: str = ""
    order: str = ""
    missing: tuple[Any, ...] = ()
    drafted: bool = False

    def __post_init__(self) -> None:
        _chosen(self, "of a schema", ("task", "decimal", "order"))
        columns = {}
        for name, said in mapping("columns", self.columns, "{'age': {'range': (0, 120)}}").items():
            given = vars(said) if isinstance(said, ColumnSchema) else said
            given = mapping(f"column {name!r}", given, "{'range': (0, 120)}")
            refuse_unknown(f"column {name!r}", given, [one.name for one in fields(ColumnSchema)])
            columns[name] = ColumnSchema(**given).checked(name)
        for option, name in (("target", self.target), ("person", self.person)):
            if not isinstance(name, str | Real | None):
                raise InputError(f"{option} must be the name of a column, got {name!r}")
            object.__setattr__(self, option, None if name is None else name_of(name))
        object.__setattr__(self, "columns", dict(zip(names_of(columns), columns.values(), strict=True)))
        object.__setattr__(self, "missing", _plain(self.missing, "all columns", "missing"))
        if self.target is not None and self.target == self.person:
            raise InputError(f"target and person must be different columns, got {self.target!r}")

    @property
    def names(self) -> tuple[Any, ...]:
        """The columns that are declared, in their order, with target and person."""
        named = (*self.columns, self.target, self.person)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def says_decimal(self) -> bool:
        """Whether a decimal mark is declared."""
        return bool(self.decimal or any(column.decimal for column in self.columns.values()))

    def kind(self, name: Any) -> str:
        """Return the declared kind of a column, "" for none."""
        return self.column(name).kind

    def column(self, name: Any) -> ColumnSchema:
        """Return what is declared of a column, by itself or for all."""
        own: ColumnSchema = self.columns.get(name_of(name), ColumnSchema())
        decimal, order = own.decimal or self.decimal, own.order or self.order
        return replace(own, decimal=decimal, order=order, missing=(*self.missing, *own.missing))

    def saying(self, declared: Mapping[Any, Mapping[str, Any]]) -> Schema:
        """Return a schema that also declares this, {name: attributes}."""
        given = {name_of(name): said for name, said in declared.items()}
        new = {name: replace(self.columns.get(name, ColumnSchema()), **said) for name, said in given.items()}
        return replace(self, columns={**self.columns, **new}) if new else self

    def only(self, names: Iterable[Any]) -> Schema:
        """Return what is declared of these columns."""
        kept = set(map(name_of, names))
        return replace(self, columns={name: column for name, column in self.columns.items() if name in kept})

    def check_names(self, names: Sequence[Any]) -> None:
        """Refuse to declare columns that are not there."""
        for name in self.columns:
            if name not in (self.target, self.person):
                column_among("schema", name, names)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a TOML file, whose keys are the attributes; a table ``[columns.NAME]`` for each column."""
        content, text = read_toml("schema", path)
        refuse_unknown(f"schema {str(path)!r}", content, [one.name for one in fields(cls) if one.name != "drafted"])
        return cls(**content, drafted=_DRAFTED in text)

    def write(self, path: str | Path) -> None:
        """Write a TOML file."""
        write_atomically(Path(path), self.to_toml())

    def to_toml(self, notes: Mapping[Any, Iterable[str]] | None = None) -> str:
        """Return the schema as TOML, with ``notes`` on columns as comments (on the table: None)."""
        said = notes or {}
        parts = [_lines([f"# {_DRAFTED}"] * self.drafted, self, said.get(None, ()))]
        for name, column in self.columns.items():
            parts.append(_lines([f"[columns.{toml(name)}]"], column, said.get(name, ())))
        return "\n".join("\n".join([*part, ""]) for part in parts if part)


def as_schema(schema: Any, *, drafts: bool = False) -> Schema:
    """Return the schema that an argument ``schema`` holds; an empty one for None. What leaves follows from no draft."""
    if not (schema is None or isinstance(schema, Schema)):
        raise InputError(f"schema must be a deniable.Schema, as Schema.read('schema.toml') makes it, got {schema!r}")
    if schema is not None and schema.drafted and not drafts:
        raise InputError(f'schema must have been read by a person, this one begins with "# {_DRAFTED}"')
    return schema or Schema()


def span_of(option: str, span: Any) -> tuple[tuple[float, float], int]:
    """Return (low, high) as numbers (of dates: days since 1970; of durations: days), and NUMBER or DATE."""
    try:
        (kind, low), (other, high) = (read_cell(end) for end in span)
    except (TypeError, ValueError):
        raise InputError(f"{option} must be (low, high), got {span!r}") from None
    if not (kind == other and isinstance(low, float) and isinstance(high, float)):
        raise InputError(f"{option} must be two finite numbers or dates (low, high), got {span!r}")
    if not (low < high and math.isfinite(high - low)):
        raise InputError(f"{option} must be finite with low < high, got ({low:g}, {high:g})")
    return (low, high), kind


def shorthand(ranges: Any) -> dict[Any, dict[str, Any]]:
    """Return what an argument ``ranges`` declares: two numbers or two dates are a range, other lists categories."""
    said = {}
    for name, value in mapping("ranges", ranges, "{'age': (0, 120)}").items():
        items = value if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
        ends = [read_cell(end)[0] for end in items] if isinstance(items, tuple) else [NUMBER] * 2
        texts = ends == [NUMBER] * 2 and isinstance(items, tuple) and any(isinstance(end, str) for end in items)
        said[name] = {"range" if ends in ([NUMBER] * 2, [DATE] * 2) and not texts else "categories": items}
    return said


def _in_digits(cells: ColumnCells) -> ColumnCells:
    """Return dates where a column of dates has whole numbers such as 20230623."""
    rows = np.flatnonzero((cells.number >= 10_000_101) & (cells.number < 1e8) & (cells.kind == NUMBER))
    texts = [str(int(cells.number[row])) for row in rows]
    days = read_cells([f"{text[:4]}-{text[4:6]}-{text[6:]}" for text in texts])
    kind, number = cells.kind.copy(), np.array(cells.number)
    kind[rows], number[rows] = np.where(days.kind == DATE, DATE, MISSING), days.number
    return replace(cells, kind=kind, number=number)


def _kept(cells: ColumnCells, fits: Any) -> ColumnCells:
    if fits.all():
        return cells
    return cells.at(np.where(fits, np.arange(len(cells)), -1))


def _spelled(word: Any, form: CellFormat) -> str | None:
    return spelled(*read_cell(word, form))


def _chosen(one: Any, of: str, names: Iterable[str]) -> None:
    for name in names:
        if value := vars(one)[name]:
            choice(f"{name} {of}", value, _CHOICES[name])


def _plain(words: Any, name: Any, what: str) -> tuple[Any, ...]:
    """Return words and numbers in plain types, dates as texts; that None is missing need not be declared."""
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise InputError(f"{what} of {name!r} must be a list, got {words!r}")
    items = [word.item() if isinstance(word, np.generic) else word for word in words]
    plain = [item if isinstance(item, bool | int | float | str) else _spelled(item, USUAL) for item in items]
    return tuple(item for item in plain if item is not None or what == "categories")


def _lines(head: list[str], one: Any, notes: Iterable[str]) -> list[str]:
    said = {key: value for key, value in vars(one).items() if key not in ("columns", "drafted")}
    keys = [f"{key} = {toml(value)}" for key, value in said.items() if value not in (None, "", ())]
    return [*head, *(f"# {line}" for note in notes for line in note.splitlines()), *keys]


def toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
