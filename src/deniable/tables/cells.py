"""From the texts in the cells of a column to numbers, dates, yes and no; and back to which form they had.

A form is chosen for a whole column: either every present cell has it, or the column is of another kind. Nothing is
guessed cell by cell.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable._check import FloatArray

Separator = Literal["", ",", ".", " "]  # " " stands for any space or apostrophe
DateOrder = Literal["", "ymd", "dmy", "mdy", "year-month", "digits"]

NOTHING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "<NA>")  # missing in any column
NOTHING_AS_NUMBER = ("-", "--", "---", ".", "..", "None", "none", "unknown", "Unknown", "missing", "Missing", "NULL")
_YES_NO = (("yes", "no"), ("true", "false"), ("y", "n"), ("t", "f"), ("ja", "nein"), ("oui", "non"), ("sí", "no"))
_UNIT = re.compile(r"^([€$£¥])\s*(?=[\d+\-−.,])|(?<=[\d.,])\s*(%|€|\$|£|¥|EUR|USD|GBP|CHF)$")
_PLAIN = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_GROUPED = r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?"
_COMMA = r"[+-]?(?:\d+|\d{1,3}(?:[. ]\d{3})+)(?:,\d*)?"
_SPACED = r"[+-]?\d{1,3}(?: \d{3})+(?:\.\d*)?"
_DATES: dict[DateOrder, str] = {
    "ymd": r"(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2})(?P<rest>[T ].*)?",
    "dmy": r"(?P<d>\d{1,2})[./-](?P<m>\d{1,2})[./-](?P<y>\d{4})(?P<rest>[T ].*)?",
    "mdy": r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})(?P<rest>[T ].*)?",
    "year-month": r"(?P<y>\d{4})-(?P<m>\d{2})",
    "digits": r"(?P<y>(?:19|20)\d{2})(?P<m>\d{2})(?P<d>\d{2})",
}
_CLOCK = re.compile(
    r"[T ]\s*(?P<h>\d{1,2}):(?P<min>\d{2})(?::(?P<s>\d{2}(?:\.\d*)?))?\s*(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?"
)
DATE_WORDS: dict[DateOrder, str] = {
    "ymd": "dates written year-month-day",
    "dmy": "dates written day.month.year",
    "mdy": "dates written month/day/year (some days are above 12)",
    "year-month": "months written year-month, read as their first day",
    "digits": "dates written as eight digits",
}
SOME_DATE = re.compile(
    r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}.*|.*\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\d.*", re.I
)


@dataclass(frozen=True)
class Form:
    """How the cells of a column are written; it holds no value of the column.

    Attributes
    ----------
    missing
        Public words that mean that a cell is empty.
    decimal, thousands, unit
        The decimal sign, what groups thousands, and a sign that stands at every number.
    date
        Order of the parts of dates.
    yes
        The words, in lower case, that mean yes and no.
    """

    missing: tuple[str, ...] = NOTHING
    decimal: Literal[".", ","] = "."
    thousands: Separator = ""
    unit: str = ""
    date: DateOrder = ""
    yes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is read otherwise than a computer would by itself."""
        said = []
        if self.decimal == ",":
            said.append("decimal commas")
        if self.thousands:
            said.append(f"thousands grouped by {'spaces or apostrophes' if self.thousands == ' ' else self.thousands}")
        if self.unit:
            said.append(f"the sign {self.unit} at every number was left out")
        if self.date:
            said.append(f"{DATE_WORDS[self.date]}, as days since 1970-01-01")
        if self.yes:
            said.append(f"{self.yes[0]} is 1, {self.yes[1]} is 0")
        return tuple(said)


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of stripped texts: its distinct ``words``, and which of them each cell holds (−1: nothing)."""

    words: NDArray[Any]
    codes: NDArray[np.intp]
    index: pd.Index

    @classmethod
    def of(cls, values: pd.Series[Any]) -> Texts:
        """Take the cells of any column as texts, each by itself: equal ones (1, True) need not be written alike."""
        if pd.api.types.infer_dtype(values, skipna=True) != "string":  # equal texts are written alike, equal cells not
            gaps = values.isna().to_numpy(dtype=bool)
            texts = [None if gap else text_of(cell) for cell, gap in zip(values.tolist(), gaps, strict=True)]
            values = pd.Series(texts, dtype=object, index=values.index)
        codes, raw = pd.factorize(values)
        words = np.array([str(word).strip() for word in np.asarray(raw, dtype=object)] or [""], dtype=object)
        place, distinct = pd.factorize(words)
        return cls(np.asarray(distinct, dtype=object), np.where(codes >= 0, place[codes], -1), values.index)

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of cells that hold each word."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.words))

    def put(self, values: NDArray[Any]) -> pd.Series[Any]:
        """Return a column with ``values[i]`` in every cell that holds ``words[i]``, and NaN in the others."""
        return pd.Series(np.append(values, np.nan)[self.codes], index=self.index)


def text_of(cell: Any) -> str:
    """Return a cell as text, whatever stands in the others; a whole number is written as one."""
    if isinstance(cell, str):
        return cell.strip()
    whole = isinstance(cell, float | np.floating) and np.isfinite(cell) and cell == np.floor(cell)
    return str(int(cell) if whole else cell).strip()


def numbers_from(texts: NDArray[Any], form: Form) -> FloatArray:
    """Return the numbers in ``texts`` (all of them texts), NaN where the text is none in this form."""
    if form == replace(form, decimal=".", thousands="", unit="") and _all_plain(texts):
        return np.asarray(texts, dtype=np.float64)
    cells = pd.Series(texts, dtype=object).map(_tidy)
    if form.unit:
        cells = cells.map(lambda cell: _without_unit(cell, form.unit))
    found = np.full(len(cells), np.nan)
    right = cells.str.fullmatch(_pattern(form)).to_numpy(dtype=bool)
    plain = cells[right]
    for group in ".", " ":  # the pattern has made sure that they group thousands
        if form.decimal == "," or group == form.thousands:
            plain = plain.str.replace(group, "", regex=False)
    plain = plain.str.replace(",", "." if form.decimal == "," else "", regex=False)
    found[right] = plain.to_numpy(dtype=np.float64)
    return found


def number_form(texts: NDArray[Any], decimal_comma: bool) -> tuple[Form, FloatArray, tuple[str, ...]]:
    """Return the form that reads most of the distinct ``texts`` as numbers, these numbers, and what is doubtful.

    ``decimal_comma`` says that the file looks as if written where 1,234 is a bit more than one.
    """
    unit = _common_unit(texts)
    if not unit and _all_plain(texts):
        return Form(), numbers_from(texts, Form()), ()
    forms = [
        Form(unit=unit),
        Form(unit=unit, thousands=","),
        Form(unit=unit, decimal=","),
        Form(unit=unit, thousands=" "),
    ]
    if decimal_comma:
        forms[1], forms[2] = forms[2], forms[1]
    read = [numbers_from(texts, form) for form in forms]
    counts = [int(np.sum(~np.isnan(found))) for found in read]
    best = int(np.argmax(counts))  # the first of equals: plain numbers stay plain
    doubts: tuple[str, ...] = ()
    if forms[best].thousands == "," or forms[best].decimal == ",":
        other = next(i for i in (1, 2) if i != best)
        if counts[other] == counts[best] and not np.array_equal(read[other], read[best], equal_nan=True):
            doubts = ("commas could be decimal or group thousands; write the numbers without them to be sure",)
    form = forms[best]
    if form.decimal == "," and any("." in cell or " " in _tidy(cell) for cell in texts[~np.isnan(read[best])]):
        form = replace(form, thousands="." if any("." in cell for cell in texts) else " ")
    return form, read[best], doubts


def _all_plain(texts: NDArray[Any]) -> bool:
    """Whether all texts are plain numbers, quickly."""
    return bool(_matching(texts, _PLAIN).all())


def _matching(texts: NDArray[Any], pattern: str) -> NDArray[np.bool_]:
    """Which texts a pattern fits as a whole, quickly."""
    import pyarrow as pa
    from pyarrow import compute

    found = compute.match_substring_regex(pa.array(texts, pa.string()), f"^(?:{pattern})$")
    return np.array(found.to_numpy(zero_copy_only=False))


def _pattern(form: Form) -> str:
    if form.decimal == ",":
        return _COMMA
    if form.thousands == ",":
        return f"{_GROUPED}|{_PLAIN}"
    return f"{_SPACED}|{_PLAIN}" if form.thousands == " " else _PLAIN


def _tidy(cell: str) -> str:
    """One kind of space, of minus and of apostrophe."""
    return re.sub(r"(?<=\d)['\u2019\u00a0\u202f\u2009 ](?=\d{3})", " ", cell.strip().replace("\u2212", "-"))


def _common_unit(texts: NDArray[Any]) -> str:
    """The sign that stands at most of the texts, or nothing."""
    found = Counter(match[1] or match[2] if (match := _UNIT.search(cell)) else "" for cell in texts)
    return max(found, key=lambda sign: found[sign], default="")


def _without_unit(cell: str, unit: str) -> str:
    stripped = cell.removeprefix(unit).removesuffix(unit).strip()
    return stripped if stripped != cell else "no unit"


def date_order(texts: NDArray[Any]) -> DateOrder:
    """Return the order of day, month and year that reads every text, or "" if there is none or several differ."""
    found: list[DateOrder] = []
    for order in _DATES:
        if np.isnan(days_from(texts[:8], order)).any():
            continue
        days = days_from(texts, order)
        if not np.isnan(days).any():
            if order == "mdy" and "dmy" in found:
                same = np.array_equal(days_from(texts, "dmy"), days)
                return "dmy" if same else ""
            found.append(order)
    return found[0] if found else ""


def days_from(texts: NDArray[Any], order: DateOrder) -> FloatArray:
    """Return days since 1970-01-01 (with the fraction of a day if there are times), NaN where the text is no date."""
    days = np.full(len(texts), np.nan)
    pattern = re.compile(_DATES[order])
    for i, cell in enumerate(texts):
        match = pattern.fullmatch(cell)
        if match is not None:
            parts = match.groupdict()
            days[i] = _days(int(parts["y"]), int(parts["m"]), int(parts.get("d") or 1)) + _share(parts.get("rest"))
    return days


def known_days(days: FloatArray) -> FloatArray:
    """Return the days without those of the years up to 1 and from 9999 on, which stand for no date."""
    first, last = (np.datetime64(day, "D").astype(int) for day in ("0002-01-01", "9999-01-01"))
    return np.where((days >= first) & (days < last), days, np.nan)


def _days(year: int, month: int, day: int) -> float:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return np.nan
    first = np.datetime64(f"{year:04d}-{month:02d}", "M")
    date = first.astype("M8[D]") + np.timedelta64(day - 1, "D")
    return float(date.astype(int)) if date.astype("M8[M]") == first else np.nan


def _share(rest: str | None) -> float:
    """The time of day as a fraction; a zone is subtracted."""
    if not rest:
        return 0.0
    match = _CLOCK.fullmatch(rest)
    if match is None or int(match["h"]) > 24 or int(match["min"]) > 59:
        return np.nan
    seconds = 3600 * int(match["h"]) + 60 * int(match["min"]) + float(match["s"] or 0)
    zone = match["zone"]
    if zone and zone[0] in "+-":
        seconds -= (1 if zone[0] == "+" else -1) * (3600 * int(zone[1:3]) + 60 * int(zone[-2:]))
    return seconds / 86400


def declared_form(texts: Texts, decimal_comma: bool) -> Form:
    """Return the form of dates, yes and no, or numbers that reads most cells; what it does not read is missing."""
    nothing = (*NOTHING, *NOTHING_AS_NUMBER)
    known = ~np.isin(texts.words, nothing)
    words, counts = texts.words[known], texts.counts[known]
    number = replace(number_form(words, decimal_comma)[0], missing=nothing)
    if not len(words):
        return number
    small = [word.casefold() for word in words]

    def cells(form: Form) -> int:
        if form.date:
            right = _matching(words, _DATES[form.date])
            right[right] = ~np.isnan(days_from(words[right], form.date))
        else:
            right = np.isin(small, form.yes) if form.yes else ~np.isnan(numbers_from(words, form))
        return int(counts[right].sum())

    return max((*(Form(nothing, date=d) for d in _DATES), *(Form(yes=y) for y in _YES_NO), number), key=cells)


def yes_no(words: set[str]) -> tuple[str, ...]:
    """Return (yes, no) in lower case if ``words`` are such a pair, or ()."""
    if len(words) > 8:
        return ()
    small = {word.casefold() for word in words}
    return next((pair for pair in _YES_NO if small == set(pair)), ())
