"""What a column holds, inferred from all of its cells for the owner: its kind, how it is written, what is in doubt."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import InputError, IntArray
from deniable.tables.cell import DATE, NOTHING, NUMBER, SIGN, WHOLE, WORD, ColumnCells
from deniable.tables.containers import few
from deniable.tables.schema import ColumnSchema, Schema

MAX_CATEGORIES = 200  # distinct texts of a column, each of which becomes a column of zeros and ones
_RARE_SHARE = 0.2  # larger shares of rows with rare texts make a column of texts identifying
_LONG_TEXT = 60  # letters on average: somebody wrote sentences
_SCALE = 20  # distinct cells up to which numbers and words of a target are classes like 1, 2, 3+
USED_AS = {"whole": "number", "code": "category"}  # the kind that a declared one is for methods
RARE = 3  # a text in fewer rows than this could be one person's
_SENTINELS = (-9999.0, -999.0, -99.0, 999.0, 9999.0, 99999.0, 999999.0)  # numbers that often mean "not known"
_FIRST_DAY, _LAST_DAY = 19_000_101, 21_000_101  # that whole numbers may spell
_SHORT_YEAR = re.compile(r"\d\d?(?:[./]\d\d?[./]|\.?[ -][^\W\d]{3,9}\.?[ -])\d\d(?:\D.*)?")
_UNIT = re.compile(r"((?:[A-Za-z]{0,3}[^\w\s.,()+<>≤≥=~-])?) ?[+-]?[\d.,' ]*\d ?([^\d\s.,()+<>≤≥=~-]{0,12})")
_DIGITS = re.compile(r"[+-]?[\d.,' ]*\d")
_GRID = 8  # a range that is read off the data is rounded outward to about this share of itself
_IDENTIFIER = re.compile(
    r"(?:^|[^a-z])(?:patient|person|customer|kunde|client|account|member|mitglied|case|fall|employee|subject|versichert"
    r"|konto|akte|matri[ck]|encounter|student|sch[uü]ler|tax|steuer)[a-z]*[^a-z]*(?:nr|no|num|number|nummer|num[eé]ro)\b|"
    r"(?:^|[^a-z])(?:id|ids|uuid|guid|ssn|iban|e-?mail|phone|telephone|passport|surname|firstname|lastname|fullname"
    r"|first[_ ]name|last[_ ]name|full[_ ]name|username|user[_ ]name|address)(?:$|[^a-z])"
)
_ODD_DATE = re.compile(
    r"(?:[^\W\d]+\W+)?(?:\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})(?![\d./-]).*|"
    r".*\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\d.*",
    re.I,
)


def kind_counts(cells: ColumnCells) -> IntArray:
    """Return how many cells are of each kind, and how many are yes or no."""
    return np.append(np.bincount(cells.kind, minlength=4), np.sum(~np.isnan(cells.flags)))


def kind_of(cells: ColumnCells | IntArray, declared: str = "") -> str:
    """What most cells are, given these or their counts: numbers or dates if at least half of those that are present."""
    counts = kind_counts(cells) if isinstance(cells, ColumnCells) else cells
    present = max(counts[1:4].sum(), 1)
    if declared:
        return USED_AS.get(declared, declared)
    if counts[4] == present:
        return "yes/no"
    if 2 * max(counts[NUMBER], counts[DATE]) >= present:
        return "number" if counts[NUMBER] >= counts[DATE] else "date"
    return "category"


def of_kind(cells: ColumnCells, kind: str) -> pd.Series[Any]:
    """Return the cells of a kind; others are NaN."""
    if kind == "category":
        return pd.Series(cells.spelled, dtype=object).where(cells.kind > 0, np.nan)
    if kind == "yes/no":
        return pd.Series(cells.flags)
    return pd.Series(np.where(cells.kind == (DATE if kind == "date" else NUMBER), cells.number, np.nan))


def typed(raw: pd.Series[Any], own: ColumnSchema, target: bool = False) -> pd.Series[Any]:
    """Return a column as numbers (whole if all are) where it is declared so or most cells are, or days, else as texts.

    Of a target yes and no, and a few numbers and words, are classes; truth values stay what they are.
    """
    cells = own.read(raw)
    kind = kind_of(cells, own.kind)
    classes = target and not own.kind and cells.words and len(cells.coded[1]) <= _SCALE
    values = of_kind(cells, "category" if classes or (target and kind == "yes/no") else kind)
    if classes and {*cells.words} <= {"true", "false"} and not values.isna().any():
        return values == "true"
    if kind == "number" and not values.isna().any() and (values == np.rint(values)).all():
        values = values.astype(np.int64) if np.abs(values).max() < WHOLE else values
    return values


def nearly_unique(cells: ColumnCells) -> bool:
    """Whether words, nearly all of which are different, are most of the cells."""
    counts = np.bincount(cells.kind, minlength=4)
    return bool(len(cells.words) > counts[WORD] / 2 and counts[WORD] > max(counts[NUMBER], counts[DATE]))


def nested_in(raw: Any, words: Collection[Any]) -> str:
    """Return the type of a column's nested cells, "" for none: its name is the only word that is read of them."""
    types = {"list", "dict", "tuple", "set"} & {*words} if len(words) == 1 else ()
    return next((type(cell).__name__ for cell in raw if type(cell).__name__ in types), "") if types else ""


def reason_to_drop(name: str, kind: str, values: pd.Series[Any], raw: Any) -> str:
    """Say why a readable column must not be used, or nothing."""
    present = values.dropna()
    counts = present.value_counts()
    if not len(counts):
        return "it is empty"
    if held := nested_in(raw, list(counts.index)):
        return f"its cells are nested ({held}); give their parts columns of their own"
    if len(counts) == 1 and len(present) == len(values):
        return "it is constant"
    way_out = "if this is no identifier, declare it in a schema; if it names persons, --group hides all rows of each"
    if named_like_key(name):
        return f"the name looks like an identifier; {way_out}"
    if kind == "number":
        return _numeric_identifier(present, way_out)
    return telling_texts(present, counts, way_out) if kind == "category" else ""


def named_like_key(name: object) -> bool:
    """Whether a column's name, which is public, is one that identifiers have."""
    return bool(_IDENTIFIER.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()))


def advice_on_keys(names: Iterable[object], schema: Schema) -> list[str]:
    """What to do about columns of which only the name is known, and is one that identifiers have; nothing for none."""
    found = few(name for name in names if named_like_key(name) and not schema.kind(name))
    return [f"{found}: named like an identifier; leave it out, or, if it names persons, give it as group"] * bool(found)


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


def telling_texts(present: pd.Series[Any], counts: pd.Series[Any], way_out: str) -> str:
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


def remarks(
    kind: str, values: pd.Series[Any], cells: ColumnCells, raw: Any, form: ColumnSchema, declared: ColumnSchema
) -> Iterable[str]:
    """Say how a column is written, what was not read, and what a person may have meant otherwise; no word is quoted."""
    texts = texts_of(raw)
    most, swapped = np.sum(cells.kind == NUMBER), {",": ".", ".": ","}.get(declared.decimal, "")
    ways = (("unit", form.unit), ("censored", "limit"), ("decimal", swapped))
    for key, value in ways if texts and cells.words else ():
        own = ColumnSchema(**vars(declared) | {"unit": form.unit, key: value})
        now = np.sum(own.read(raw).kind == NUMBER)
        if now > most and 2 * now >= np.sum(cells.kind > 0):
            yield f"{_many(now - most)} would be numbers with {key} = {value!r}, declared for this column"
        most = max(most, now)
    empty = texts_of(raw, lambda text: text in NOTHING and text != "")
    if faults := sum(count for text, count in empty.items() if text[0] == "#"):
        yield f"{_many(faults)} with a formula error of a sheet read as missing"
    if kind == "category" and (words := empty.total() - faults):
        yield f"{_many(words)} such as NA or - read as missing: if one is a word, list it among the categories"
    if alike := len(cells.words) - len({word.casefold() for word in cells.words}):
        yield f"{alike} of {len(cells.words)} words differ from another one in case only"
    if kind == "category" and cells.words and (others := int(np.sum(cells.kind % WORD > 0))):
        yield f"{_many(others)} with a number or a date: kind = 'category' makes groups of all, 'number' gaps of words"
    doubtful = doubts(texts, declared)
    if kind not in ("number", "date"):
        yield from [said for settles, said in doubtful.items() if settles in ("code", "power")]
        return
    other = (cells.kind > 0) & values.isna().to_numpy()
    if other.any():
        yield f"{_many(other.sum())} with something else than a {kind} read as missing"
    yield from doubtful.values()
    if len({sign for text in texts for sign in SIGN.findall(text)}) > 1:
        yield "signs of several units were left out"
    numbers = values.dropna().to_numpy()
    if kind == "number" and (np.abs(numbers) > WHOLE).any():
        yield "whole numbers above 9007199254740992 are rounded: kind = 'code' keeps all digits"
    for word in _SENTINELS if kind == "number" else ():
        here = numbers == word
        if here.sum() < RARE or here.all():
            continue
        if numbers[~here].min() >= 0 > word or np.abs(numbers[~here]).max() * 2 < abs(word):
            yield f"{word:g} appears as a number: missing = [{word:g}] makes gaps of it"
    spelled = kind == "number" and numbers.size and numbers.min() >= _FIRST_DAY and numbers.max() < _LAST_DAY
    if spelled and (ColumnSchema(kind="date").read(numbers).kind == DATE).all():
        yield "20230623 was read as a number: kind = 'date' makes it a day"


def doubts(texts: Counter[str], declared: ColumnSchema) -> dict[str, str]:
    """Return what in the texts of a column may be meant otherwise, by what would settle it and is not declared."""
    found = dict[str, str]()
    way, marks = which_way(texts, declared, "decimal")
    if marks and way != "." and "," in way + marks:
        point = "1.234 was read as 1.234, though others have decimal commas"
        found["decimal"] = point if "." in marks else "1,234 was read as 1234; else --decimal ,"
    elif marks and not way:
        found["point"] = "1.234 was read as 1.234, not as 1234; else --decimal ,"
    way, marks = which_way(texts, declared, "order")
    if "/" in marks:
        others = ", though others have the day first" * (way == "day")
        found["order"] = f"04/05/2021 was read as 5 April{others}; else declare its order"
    if declared.kind != "code" and any(re.fullmatch(r"0\d+", text) for text in texts):
        found["code"] = "01067 was read as 1067: kind = 'code' keeps the zeros"
    if declared.kind != "code" and any(re.fullmatch(r"\d+[eE]\d+", text) for text in texts):
        found["power"] = "2E3 was read as 2000: kind = 'code' keeps such texts"
    if any(_SHORT_YEAR.fullmatch(text) for text in texts):
        found["year"] = "years of two digits were read as 1969 to 2068"
    if texts and all(re.fullmatch(r"(?:0\d|1[0-2])\.(?:19|20)\d\d", text) for text in texts):
        found["month"] = "04.2021 was read as the number 4.2021: write 2021-04"
    if not declared.unit and any("%" in text or "‰" in text for text in texts):
        found["unit"] = "5 % was read as 5, not as 0.05, which a sheet's own 5 % is; unit = '%' says that it is meant"
    return found


def which_way(texts: Counter[str], own: ColumnSchema, settles: str) -> tuple[str, str]:
    """Return the way in which texts are meant, and the marks in those that can be read in both ways.

    The way, of a decimal mark or of what comes first in a date, is that in which alone most texts can be read that
    cannot be read in both; "" where none shows it. What is declared, "decimal" or "order", ``settles`` it: ("", "").
    Undeclared, a mark is a decimal point, and the month is first where "/" stands, the day where others do.
    """
    if getattr(own, settles):
        return "", ""
    written, ways = list(texts), (".", ",") if settles == "decimal" else ("day", "month")
    plain = vars(own) | {"kind": "", "censored": "limit"}
    first, second = (ColumnSchema(**plain | {settles: way}).read(written).number for way in ways)
    alone = (np.isnan(second) & ~np.isnan(first), np.isnan(first) & ~np.isnan(second))
    shown = [sum(count for count, here in zip(texts.values(), only, strict=True) if here) for only in alone]
    doubtful = np.flatnonzero((first != second) & ~np.isnan(first + second))
    marks = "".join(mark for mark in ".,/" + "-" * (settles == "order") if any(mark in written[i] for i in doubtful))
    return "" if shown[0] == shown[1] else ways[shown[1] > shown[0]], marks


def _many(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells:,} cells"


def texts_of(raw: Any, kept: Callable[[str], bool] = lambda text: any(map(str.isdigit, text))) -> Counter[str]:
    """Return how often each text is there that is ``kept``: by default those with a digit."""
    if pd.api.types.is_numeric_dtype(raw):
        return Counter()
    texts = Counter(cell.strip() for cell in raw if isinstance(cell, str))
    return Counter({text: count for text, count in texts.items() if kept(text)})


def is_code(texts: Collection[str]) -> bool:
    """Whether some texts begin with a zero, and none is a number that is written with more than digits."""
    written = [text for text in texts if _DIGITS.fullmatch(text)]
    return all(map(str.isdecimal, written)) and any(len(text) > 1 and text[0] == "0" for text in written)


def format_of(texts: Counter[str], filled: int, declared: ColumnSchema) -> ColumnSchema:
    """Return what is declared but the kind, and how most texts of a column are written where it is not.

    It has a unit if most of the ``filled`` cells have it.
    """
    units = Counter[str]()
    for text, count in texts.items():
        units[(match[1] or match[2]) if (match := _UNIT.fullmatch(text)) else ""] += count
    units.pop("", None)
    unit, seen = max(units.items(), key=lambda item: item[1], default=("", 0))
    made = replace(declared, kind="", unit=declared.unit or unit * (2 * seen > filled))
    ways = {settles: getattr(made, settles) or which_way(texts, made, settles)[0] for settles in ("decimal", "order")}
    return ColumnSchema(**vars(made) | ways)


def coarse_range(low: float, high: float) -> list[float]:
    """Return round numbers strictly outside ``low`` and ``high``; 0 stays the end of what is never negative.

    Flags of 0 and 1 keep [0, 1]. Other ends are multiples of 1, 2 or 5 times a power of ten, an eighth of the range or
    finer: they say about how wide a column is, and are nobody's value.
    """
    if low >= 0 and high <= 1 and {low, high} <= {0.0, 1.0}:
        return [0.0, 1.0]
    span = high - low
    if not 0 < span < np.inf:
        raise InputError(f"a column of numbers must have a finite range, got one from {low:.1g} to {high:.1g}")
    power = 10.0 ** math.floor(math.log10(span / _GRID)) if span > 1e-290 else 0.0
    step = max((k * power for k in (1, 2, 5) if k * power <= span / _GRID), default=power)
    ends = [(math.ceil(low / step) - 1) * step, (math.floor(high / step) + 1) * step] if step > 0 else [low, high]
    rounded = [float(f"{end:.12g}") for end in ends]
    if not (rounded[0] < low and high < rounded[1]) or not np.isfinite(rounded[1] - rounded[0]):
        rounded = [low - span / 3, high + span / 3]  # numbers so close or so large that no grid lies between them
    return [0.0 if low >= 0 > rounded[0] else rounded[0], 0.0 if high <= 0 < rounded[1] else rounded[1]]
