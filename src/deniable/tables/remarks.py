"""What the owner of a table should know of how a column is written: formats, doubts, cells that were not read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from deniable.tables.cell import NOTHING, ColumnCells
from deniable.tables.schema import ColumnSchema

RARE = 3  # a text in fewer rows than this could be one person's
_SENTINELS = (-9999.0, -999.0, -99.0, 999.0, 9999.0, 99999.0, 999999.0)  # numbers that often mean "not known"
_SIGNS = "€$£¥₹%"
_DOUBTS = (  # what settles it; how it is written, beside what, unless beside what; how it was read
    ("decimal", r"[+-]?[1-9]\d{0,2},\d{3}", "", r"[\d,]+\.\d+|\d{1,3}(?:,\d{3}){2,}", "1,234 was read as 1234"),
    (
        "decimal",
        r"[+-]?[1-9]\d{0,2}\.\d{3}",
        r"[+-]?[\d.]+,\d+",
        "",
        "1.234 was read as 1.234, though others have decimal commas",
    ),
    ("order", r"(?:0?\d|1[0-2])/(?:0?\d|1[0-2])/\d{2,4}", "", "", "04/05/2021 was read as 5 April"),
    ("code", r"0\d+", "", "", "01067 was read as 1067; list the categories if it is a code"),
)
_MARKS = {  # how numbers with a decimal mark are written; what can be read with either is not among these
    ",": re.compile(r"[+-]?(?:0,\d+|\d+,\d{1,2}|\d+,\d{4,}|\d{1,3}(?:[. ]\d{3})+,\d+)"),
    ".": re.compile(r"[+-]?(?:0\.\d+|\d+\.\d{1,2}|\d+\.\d{4,}|\d{1,3}(?:[, ]\d{3})+\.\d+)"),
}
_DAY = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-]\d{2,4}(?: .*)?")
_UNIT = re.compile(r"([^\w\s.,()+-]?) ?([+-]?[\d.,' ]*\d) ?([^\d\s.,()]{0,12})")
_MOST = 0.5  # share of the cells that have to be written in one way
_LIMITED = re.compile(r"[<>≤≥]=? ?[\d.,]+.*|[\d.,]+ ?\+")


def remarks(kind: str, values: pd.Series[Any], cells: ColumnCells, raw: Any, declared: ColumnSchema) -> Iterable[str]:
    """Say how a column is written, what was not read, and what a person may have meant otherwise; no word is quoted."""
    texts = texts_of(raw)
    form = format_of(texts)
    if form.unit and form.unit not in _SIGNS and form.unit != declared.unit:
        yield f"most cells have one unit: unit = {form.unit!r} makes numbers of them"
    limits = sum(count for text, count in texts.items() if _LIMITED.fullmatch(text))
    if limits and not declared.censored:
        yield f"{_many(limits)} such as 90+ or < 0.5: a word, unless censored = 'limit' makes it a number"
    if faults := sum(count for text, count in texts_of(raw, "#").items() if text in NOTHING):
        yield f"{_many(faults)} with a formula error of a sheet read as missing"
    if alike := len(cells.words) - len({word.casefold() for word in cells.words}):
        yield f"{alike} of {len(cells.words)} words differ from another one in case only"
    if kind not in ("number", "date"):
        return
    other = (cells.kind > 0) & values.isna().to_numpy()
    if other.any():
        yield f"{_many(other.sum())} with something else than a {kind} read as missing"
    yield from doubts(texts, declared.settled).values()
    if len({sign for text in texts for sign in _SIGNS if sign in text}) > 1:
        yield "signs of several units were left out"
    numbers = values.dropna().to_numpy()
    for word in _SENTINELS if kind == "number" else ():
        here = numbers == word
        if here.sum() >= RARE and (~here).any() and np.abs(numbers[~here]).max() * 2 < abs(word):
            yield f"{word:g} appears as a number; if it means missing, empty these cells"


def doubts(texts: Collection[str], settled: Collection[str] = ()) -> dict[str, str]:
    """Return what in the texts of a column may be meant otherwise, by what would settle it and is not ``settled``."""
    found = dict[str, str]()
    for settles, written, beside, unless, said in _DOUBTS:
        seen = [bool(form) and any(re.fullmatch(form, text) for text in texts) for form in (written, beside, unless)]
        if settles not in settled and seen[0] and (seen[1] or not beside) and not seen[2]:
            found[settles] = said
    return found


def written(raw: Any, declared: ColumnSchema) -> str:
    """Say which decimal mark and which order of dates most of the texts of a column have."""
    form = format_of(texts_of(raw))
    mark, first = declared.decimal or form.decimal, declared.order or form.order
    said = ["decimal comma"] * (mark == ",") + [f"{first} first"] * bool(form.order)
    return ", ".join(said)


def _many(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells:,} cells"


def texts_of(raw: Any, sign: str = "") -> Counter[str]:
    """Return how often each text is there that holds a digit, or begins with a sign."""
    if pd.api.types.is_numeric_dtype(raw):
        return Counter()
    texts = (cell.strip() for cell in raw if isinstance(cell, str))
    return Counter(text for text in texts if (text.startswith(sign) if sign else any(map(str.isdigit, text))))


def format_of(texts: Counter[str]) -> ColumnSchema:
    """Return how most of the texts of a column are written."""
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
