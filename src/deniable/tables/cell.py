"""A cell is read alone: missing, a number, a date or a word, whatever its column, its type and the others hold.

How to use it: open a table (:func:`deniable.tables.open_table`), then read each column::

    found = read_cells(frame["income"])     # an array, a series, a list; of any type
    found.kind                              # MISSING, NUMBER, DATE or WORD, one entry a record
    found.number                            # the numbers, and dates as days since 1970-01-01; NaN elsewhere
    found.words[found.word[i]]              # the word of record i (word is −1 where there is none)
    found.spelled                           # each cell as its canonical text (7.0 is "7"); None where it is missing
    found.at(rows)                          # other records; row −1 is a missing cell

Nothing here looks at a column: what it holds follows from private counts of kinds. So no record decides how another is
read, and ambiguity costs usefulness only. Conventions: the last mark is the decimal mark, but 1,234 is 1234; 04/05/2021
is 5 April; signs of percent and currencies are dropped; times and durations are days; zones go to UTC; words keep
their case, true and false do not; NA, "-", "?", infinity, 0000-00-00 and 9999-12-31 are missing, "none" is a word.
A :class:`CellFormat` declares otherwise for a column.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable._check import FloatArray, IntArray

MISSING, NUMBER, DATE, WORD = range(4)
Value = float | str | None  # of a number or a date, of a word, of nothing

DAY = 86_400_000_000_000  # nanoseconds
WHOLE = 2.0**53  # whole numbers below are written with all their digits
_EPOCH = dt.date(1970, 1, 1).toordinal()
_NEVER = dt.date(9999, 12, 31).toordinal() - _EPOCH  # which registers write for a date that has not come
_LATEST = 1e8  # days that microseconds can count
_EMPTY = (
    "|?|NA|N/A|n/a|na|n.a.|N.A.|k.A.|k. A.|NaN|nan|NAN|NaT|null|NULL|Null|#N/A|#NA|#NV|#DIV/0!|#VALUE!|#REF!|#NAME?|"
    "#NUM!|#NULL!|#WERT!|#BEZUG!|#ZAHL!|0000-00-00|0000-00-00 00:00:00|<NA>|(null)|(missing)|-|--|---|.|..|\\N|nil|inf|"
    "Inf|INF|-inf|-Inf|+inf|Infinity|-Infinity|infinity"
)
NOTHING = frozenset(_EMPTY.split("|"))
_ALIKE = str.maketrans("\u2212\u2013\u2014\u00a0\u202f\u2009\u2019", "---   '")  # one minus, one space, one apostrophe
_EXPONENT = r"(?:[eE][+-]?\d{1,4})?"
_MONEY = r"(?:€|\$|£|¥|₹|US\$|EUR|USD|GBP|CHF|JPY|Fr\.|kr\.?|zł)"
_FORMS = {  # the marks that group thousands: the digits; a comma that is left is the decimal mark
    "": rf"(?:\d+(?:\.\d*)?|\.\d+){_EXPONENT}",  # 7  007  7.50  .5  1e3
    ",": r"[1-9](?:\d{0,2}(?:,\d{3})+|\d?(?:,\d\d)+,\d{3})(?:\.\d*)?",  # 1,234  1,234.50  17,25,874
    ".": r"[1-9]\d{0,2}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})",  # 1.234,50  1.234.567
    " '": r"[1-9]\d{0,2}(?:[ ']\d{3})+(?:[.,]\d+)?",  # 1 234,50  1'234.50
    "none": rf"(?:\d+,\d*|,\d+){_EXPONENT}",  # 1,5  0,125  1234,567
}
_MARKS = tuple(str.maketrans("", "", "" if marks == "none" else marks) for marks in _FORMS)
_NUMBER = re.compile(
    rf"(\()?([+-]?) ?{_MONEY}? ?([+-]?)(?:{'|'.join(f'({f})' for f in _FORMS.values())}) ?(?:%|‰|{_MONEY})?([)-])?",
    re.A,
)
_NO_CENTS = re.compile(r"(?<=\d)([.,])--?(?=\D*$)")  # 12.-  12,-- €
_LIMIT = re.compile(r"^[<>≤≥]=? ?| ?\+$")
SIGN = re.compile(rf"[%‰]|{_MONEY}")  # what is left out beside a number
_SWAPPED = str.maketrans(".,", ",.")
_POINT = re.compile(r"(?<![A-Za-z])[.,]")  # the points of Fr. and kr. stay
_QUICK = re.compile(  # plain and finite, or thousands: read at once, as they would be below; so are words of a code
    r"(-?\d{1,99}(?:\.\d{1,99})?)|([1-9]\d{0,2}(?:,\d{3}){1,33}(?:\.\d{1,99})?)|(?:(?!EUR|USD|GBP|CHF|JPY|kr)[A-Za-z][\w-]*)",
    re.A,
)
_CLOCK = r"(?P<h>\d{1,2}):(?P<min>\d\d)(?::(?P<s>\d\d)(?:[.,](?P<f>\d{1,9})\d*)?)?(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|(?P<zone>[+-]\d\d(?::?\d\d)?)))?"
_YEAR, _MONTH = r"(?P<y>\d{4}|\d\d)", r"(?P<name>[A-Za-zÀ-ÿ]{3,9})"
_DATES = {
    re.compile(rf"{pattern}(?:(?:T|:|,? ){_CLOCK}{_ZONE})?", re.A): swap
    for pattern, swap in {  # whether day and month change places where no other reading is left
        r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})": False,  # 2021-04-19
        r"(?P<y>\d{4})-(?P<m>\d\d)": False,  # 2021-04
        r"(?P<d>\d\d?)(?P<sep>[.-]) ?(?P<m>\d\d?)(?P=sep) ?(?P<y>\d{4})": True,  # 19.4.2021, 19-04-2021
        r"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d\d)": True,  # 19.04.21
        r"(?P<d>\d\d?)\.(?P<m>\d\d?)\.(?P<y>\d\d)(?=.*:)": True,  # 19.4.21 12:30, as 1.4.21 may be a version
        rf"(?P<m>\d\d?)/(?P<d>\d\d?)/{_YEAR}": True,  # 04/19/2021, 4/19/21
        rf"(?P<d>\d\d?)\.?[ -]{_MONTH}\.?[ -]{_YEAR}": False,  # 19 Apr 2021, 19-Apr-21
        rf"(?P<d>\d\d){_MONTH}(?P<y>\d{{4}})": False,  # 19APR2021
        rf"{_MONTH}\.? (?P<d>\d\d?),? (?P<y>\d{{4}})": False,  # April 19, 2021
    }.items()
}
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][01]\d:\d\d:\d\d(?:\.\d{6})?)?", re.A)
_TIME = re.compile(r"\d{1,4}[-/.: ]|\d\d[A-Za-zÀ-ÿ]{3}|[A-Za-zÀ-ÿ]{3,9}\.? \d|-?\d+ day", re.A)  # how all begin
_SPAN = re.compile(rf"(?:(?P<days>-?\d{{1,9}}) days?,? ?)?(?:\+?{_CLOCK})?", re.A)  # 12:30 is half a day and a bit
_LONGEST = 40  # letters of a date
_NAMES = "jan feb,fév,fev mar,mär apr,avr may,mai jun,juin jul,juil aug,aoû,aou sep oct,okt nov dec,dez,déc"
_MONTHS = {name: month for month, names in enumerate(_NAMES.split(), 1) for name in names.split(",")}

_NO = ("no", "false", "n", "f", "nein", "non", "falsch", "faux", "falso", "não")
_YES = ("yes", "true", "y", "t", "ja", "oui", "sí", "si", "wahr", "vrai", "verdadero", "vero", "sim")
_FLAGS = dict.fromkeys(_NO, "no") | dict.fromkeys(_YES, "yes")


@dataclass(frozen=True)
class CellFormat:
    """How the texts of a column are written, where that is declared.

    Attributes
    ----------
    decimal
        The decimal mark, "." or ","; the other one groups thousands, and what is written otherwise is no number.
    order
        What comes first in 04/05/2021 and 4.5.2021, "day" or "month".
    unit
        What stands before or after a number, such as "kg"; a number with another sign is none.
    limits
        Whether "90+" and "< 0,5" are the numbers 90 and 0.5.
    as_written
        Texts are words: "007" is not 7.
    words
        Texts that are words although they usually mean a missing cell, such as "NA" for Namibia.
    """

    decimal: str = ""
    order: str = ""
    unit: str = ""
    limits: bool = False
    as_written: bool = False
    words: frozenset[str] = frozenset()


USUAL = CellFormat()


def read_cell(cell: Any, form: CellFormat = USUAL) -> tuple[int, Value]:
    """Return the kind and the value: a float for numbers and dates, a text for words, None for what is missing."""
    cell = _decoded(cell)
    if isinstance(cell, str | dt.time):
        return _read_text(str(cell), form)
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return MISSING, None
    if isinstance(cell, bool | np.bool_):
        return WORD, "true" if cell else "false"
    try:
        if form.as_written and isinstance(cell, Integral | Decimal) and int(cell) == cell:
            return WORD, str(int(cell))  # a float would lose digits of a long code
        return next(read(cell) for types, read in _TYPES if isinstance(cell, types))
    except (ArithmeticError, ValueError, TypeError):  # beyond what the type can hold; not comparable
        return MISSING, None
    except StopIteration:
        return WORD, _word(text_of(cell))


def _decoded(cell: Any) -> Any:
    try:
        return cell.decode() if isinstance(cell, bytes) else cell
    except UnicodeDecodeError:
        return cell.decode("latin-1")


def _moment(cell: Any) -> tuple[int, Value]:
    if isinstance(cell, pd.Period):
        cell = cell.start_time
    if isinstance(cell, dt.datetime):
        stamp = pd.Timestamp(cell)
        cell = (stamp.tz_convert(None) if stamp.tzinfo else stamp).to_datetime64()  # keeps nanoseconds
    return _known(DATE, _days(np.array([cell], dtype="M8"))[0])


def _span(cell: Any) -> tuple[int, Value]:
    return _known(NUMBER, _days(np.array([pd.Timedelta(cell).to_timedelta64()]))[0])


_TYPES: tuple[tuple[Any, Callable[[Any], tuple[int, Value]]], ...] = (
    ((dt.timedelta, np.timedelta64), _span),
    ((dt.date, np.datetime64, pd.Period), _moment),
    ((Real, Decimal), lambda cell: _known(NUMBER, float(cell))),  # Python's, NumPy's, fractions
)


def text_of(cell: Any) -> str:
    """Return what stands for a cell of another type: its text if it has one of its own, else its type."""
    kind: Any = list if isinstance(cell, np.ndarray) else type(cell)
    plain = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    return str(kind.__name__) if plain or kind in (list, tuple, dict, set) else str(cell)


def _known(kind: int, value: float) -> tuple[int, Value]:
    never = kind == DATE and value // 1 == _NEVER
    return (MISSING, None) if never or not math.isfinite(value) else (kind, float(value) + 0.0)


def _word(raw: str) -> str:
    return " ".join((raw if raw.isascii() else unicodedata.normalize("NFC", raw)).split())


def _read_text(raw: str, form: CellFormat) -> tuple[int, Value]:
    text = (raw if raw.isascii() else raw.translate(_ALIKE)).strip()
    if text in NOTHING and text not in form.words:
        return MISSING, None
    if form.as_written or text in form.words:
        return WORD, _word(raw)
    if _ISO.fullmatch(text):
        try:  # ten times as fast as below, and the same
            stamp = dt.datetime.fromisoformat(text)
            seconds = (stamp.hour * 60 + stamp.minute) * 60 + stamp.second
            return _known(DATE, stamp.toordinal() - _EPOCH + (seconds * 10**9 + stamp.microsecond * 1000) / DAY)
        except ValueError:
            pass
    if (digits := _number(text, form)) is not None:
        return _known(NUMBER, float(digits))
    if len(text) <= _LONGEST and _TIME.match(text):
        for pattern, swap in _DATES.items():
            if (match := pattern.fullmatch(text)) and (day := _date(match, swap, form.order)) is not None:
                return _known(DATE, day)
        if (match := _SPAN.fullmatch(text)) and (clock := _clock(match.groupdict())) is not None:
            return NUMBER, int(match["days"] or 0) + clock / DAY
    return WORD, text.lower() if text.lower() in ("true", "false") else _word(raw)


def _number(text: str, form: CellFormat) -> str | None:
    """Return what is written as a number in Python's way, or None."""
    if form.limits:
        text = _LIMIT.sub("", text)
    if form.unit:
        text = text.removeprefix(form.unit).removesuffix(form.unit).strip()
        if SIGN.search(text):
            return None
    text = _NO_CENTS.sub(r"\g<1>0", text)
    if form.decimal == ",":
        text = _POINT.sub(lambda mark: mark[0].translate(_SWAPPED), text)
    match = _NUMBER.fullmatch(text)
    if not match or (form.decimal and (match[6] or match[8] or "," in (match[7] or ""))):  # the mark is a comma
        return None
    opened, sign, inner, *forms, closed = match.groups("")
    if (opened and "(") + sign + inner + closed not in ("", "+", "-", "()"):
        return None
    digits, marks = next((form, marks) for form, marks in zip(forms, _MARKS, strict=True) if form)
    return "-" * bool(opened or "-" in sign + inner + closed) + digits.translate(marks).replace(",", ".")


def whole_of(cell: Any, form: CellFormat = USUAL) -> int:
    """Return the whole number that a large number's cell holds, with every digit that the cell has."""
    cell = _decoded(cell)
    if not isinstance(cell, str):
        return int(cell)
    digits = _number(cell.translate(_ALIKE).strip(), form) or "0"
    return int(Decimal(digits) if "e" not in digits.lower() else float(digits))


def _date(match: re.Match[str], swap: bool, order: str) -> float | None:
    part, place = match.groupdict(), match.re.groupindex
    if swap and order:
        as_written = (order == "day") == (place["d"] < place["m"])
        part, swap = part if as_written else part | {"d": part["m"], "m": part["d"]}, False
    year, day, clock, name = int(part["y"]), int(part.get("d") or 1), _clock(part), part.get("name", "").casefold()
    month = int(part["m"]) if not name else _MONTHS.get(name[:4]) or _MONTHS.get(name[:3]) or 0
    year += (2000 if year < 69 else 1900) * (len(part["y"]) == 2)
    month, day = (day, month) if swap and month > 12 else (month, day)  # 04.19.2021, 19/04/2021
    try:
        ordinal = dt.date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    return None if clock is None else ordinal + clock // DAY + clock % DAY / DAY


def _clock(part: dict[str, Any]) -> int | None:
    """Return nanoseconds since midnight, in UTC where there is a zone."""
    hour, half, zone = int(part.get("h") or 0), (part.get("half") or "").lower(), part.get("zone")
    minutes = 60 * (hour % 12 + 12 * (half == "p") if half else hour) + int(part.get("min") or 0)
    if hour > 24 or int(part.get("min") or 0) > 59:
        return None
    if zone:
        minutes -= (1 if zone[0] == "+" else -1) * (60 * int(zone[1:3]) + int(zone[3:].strip(":") or 0))
    return (60 * minutes + int(part.get("s") or 0)) * 1_000_000_000 + int((part.get("f") or "0").ljust(9, "0"))


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells of a column: each one's kind, its number or day (else NaN), and which of ``words`` it is (else −1)."""

    kind: NDArray[np.uint8]
    number: FloatArray
    word: NDArray[np.int32]
    words: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, rows: Any) -> ColumnCells:
        """Return other rows; row −1 is a missing cell."""
        kind = np.append(self.kind, np.uint8(MISSING))[rows]
        words = np.isnan(self.number).all()  # then no number takes memory
        number = np.broadcast_to(np.nan, kind.shape) if words else np.append(self.number, np.nan)[rows]
        return ColumnCells(kind, number, np.append(self.word, np.int32(-1))[rows], self.words)

    @property
    def flags(self) -> FloatArray:
        """Return 1 and 0 for words that mean yes and no, NaN for all other cells."""
        ends = {"yes": 1.0, "no": 0.0, "": math.nan}
        return np.array([*(ends[flag_of(word)] for word in self.words), math.nan])[self.word]

    @property
    def coded(self) -> tuple[IntArray, tuple[str, ...]]:
        """Return every cell's place among canonical texts, −1 for a missing one, and these: equal cells are alike."""
        codes, texts = self.word.astype(np.int64), list(self.words)
        for kind in (NUMBER, DATE):
            here = self.kind == kind
            distinct, place = np.unique(self.number[here], return_inverse=True)
            codes[here] = len(texts) + place
            texts += [str(spelled(kind, value)) for value in distinct.tolist()]
        return codes, tuple(texts)

    @property
    def spelled(self) -> NDArray[Any]:
        """Return every cell as its canonical text, None for a missing one."""
        codes, texts = self.coded
        return np.asarray(np.array([*texts, None], dtype=object)[codes])


def spelled(kind: int, value: Value) -> str | None:
    """Return the canonical text of a cell; read again, it is the same cell (of dates: to the microsecond)."""
    if isinstance(value, float) and kind == DATE and abs(value) < _LATEST:
        day = value.is_integer()
        moment = np.datetime64(int(value), "D") if day else np.datetime64(round(value * 86_400_000_000), "us")
        return str(moment).removesuffix(".000000")
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < WHOLE else repr(value)
    return value


def flag_of(word: str) -> str:
    """Return "yes" or "no" for a word that means it in some language, "" for others."""
    return _FLAGS.get(word.casefold(), "")


def read_cells(values: Any, form: CellFormat = USUAL) -> ColumnCells:
    """Read each cell of an array, a series or a list alone; equal texts are read once."""
    series = values if isinstance(values, pd.Series) else pd.Series(values, dtype=getattr(values, "dtype", object))
    dtype, is_a = series.dtype, pd.api.types
    if isinstance(dtype, pd.CategoricalDtype):
        return read_cells(dtype.categories, form).at(series.cat.codes.to_numpy(dtype=np.int64))
    if is_a.is_bool_dtype(dtype):
        flags = series.astype("boolean").astype("Int8").fillna(-1).to_numpy(dtype=np.int64)
        return _found([(WORD, "false"), (WORD, "true")]).at(flags)
    if is_a.is_integer_dtype(dtype) and form.as_written:
        return read_cells(series.astype("str"), form)  # a float would lose digits of a long code
    if is_a.is_integer_dtype(dtype) or is_a.is_float_dtype(dtype):
        return measured(series.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0, NUMBER)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        return measured(_days(series.to_numpy()), DATE if dtype.kind == "M" else NUMBER)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return measured(_days(series.dt.tz_convert(None).to_numpy()), DATE)
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow":  # which tells texts apart by all their bytes
        rows, distinct = pd.factorize(series)
        return _found(_read_texts(np.asarray(distinct, dtype=object), form)).at(rows)
    cells = series.to_numpy(dtype=object)
    text = np.fromiter((type(cell) is str for cell in cells), bool, len(cells))
    rows, place = np.empty(len(cells), dtype=np.int64), dict[tuple[int, Value], int]()
    given = cells[text].tolist()  # told apart by Python: a column's hash table takes some texts for others
    known = {word: i for i, word in enumerate(dict.fromkeys(given))}
    rows[text] = np.fromiter(map(known.__getitem__, given), np.int64, len(given))
    found = _read_texts(known, form)
    for row in np.flatnonzero(~text):
        cell = read_cell(cells[row], form)
        rows[row] = place.setdefault(cell, len(found))
        found += [cell] if rows[row] == len(found) else []
    return _found(found).at(rows)


def _read_texts(distinct: Iterable[str], form: CellFormat) -> list[tuple[int, Value]]:
    if form.decimal == "," or form.as_written or form.words or form.unit:  # than digits with a point, and words
        return [_read_text(text, form) for text in distinct]
    return [
        _quick(text, match.lastindex) if (match := _QUICK.fullmatch(text)) else _read_text(text, form)
        for text in distinct
    ]


def _quick(text: str, form: int | None) -> tuple[int, Value]:
    if form is None:
        small = text.lower()
        return (MISSING, None) if text in NOTHING else (WORD, small if small in ("true", "false") else text)
    return NUMBER, float(text if form == 1 else text.replace(",", "")) + 0.0


def _found(cells: list[tuple[int, Value]]) -> ColumnCells:
    words = {value: i for i, value in enumerate(dict.fromkeys(value for kind, value in cells if kind == WORD))}
    kind = np.array([kind for kind, _ in cells], dtype=np.uint8)
    number = np.array([value if kind in (NUMBER, DATE) else np.nan for kind, value in cells], dtype=np.float64)
    word = np.array([words[value] if kind == WORD else -1 for kind, value in cells], dtype=np.int32)
    return ColumnCells(kind, number, word, tuple(map(str, words)))


def measured(number: FloatArray, kind: int) -> ColumnCells:
    """Return numbers, or days, as cells; what is not finite is missing."""
    known = np.isfinite(number) & ~((kind == DATE) & (np.floor(number) == _NEVER))
    number = np.where(known, number, np.nan)
    kinds = np.where(np.isnan(number), MISSING, kind).astype(np.uint8)
    return ColumnCells(kinds, number, np.broadcast_to(np.int32(-1), kinds.shape))


def _days(values: Any) -> FloatArray:
    """Return NumPy's times and durations in days."""
    day = values.astype("M8[D]" if values.dtype.kind == "M" else "m8[D]")
    share = (values - day).astype("m8[ns]").astype(np.int64) / DAY
    endless = np.abs(values.astype(np.int64)) == np.iinfo(np.int64).max  # as databases write infinity
    return np.asarray(np.where(np.isnat(values) | endless, np.nan, day.astype(np.int64) + share))
