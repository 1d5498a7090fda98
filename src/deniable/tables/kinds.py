"""Of what kind a column is, how its cells are read, and whether it may be used at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable.tables.cells import (
    NOTHING,
    NOTHING_AS_NUMBER,
    SOME_DATE,
    Form,
    Texts,
    date_order,
    days_from,
    declared_form,
    known_days,
    number_form,
    numbers_from,
    yes_no,
)
from deniable.tables.columns import Column, ColumnKind

MAX_CATEGORIES = 200  # distinct texts of a column, each of which becomes a column of zeros and ones
RARE = 3  # a text in fewer rows than this could be one person's
_RARE_SHARE = 0.2  # larger shares of rows with rare texts make a column of texts identifying
_LONG_TEXT = 60  # letters on average: somebody wrote sentences
_SHORT_SCALE = 20  # distinct numbers up to which a column that also has words can be a scale like 1, 2, 3+
_IDENTIFIER = re.compile(
    r"(?:^|[^a-z])(?:id|ids|uuid|guid|ssn|iban|e-?mail|phone|telephone|passport|surname|firstname|lastname|fullname"
    r"|first[_ ]name|last[_ ]name|full[_ ]name|username|user[_ ]name|address)(?:$|[^a-z])"
)


def kind_of(
    values: pd.Series[Any], decimal_comma: bool, given: Sequence[Any] | None
) -> tuple[ColumnKind, Form, tuple[str, ...], pd.Series[Any]]:
    """Kind, form, notes and the typed cells, before anything is dropped for what it tells; mixtures are "dropped"."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    categories = given is not None and any(isinstance(item, str) for item in given)
    plain = Form()
    if not categories:
        if pd.api.types.is_bool_dtype(values):
            return "yes/no", plain, (), typed(values, "yes/no", plain)
        if pd.api.types.is_numeric_dtype(values):
            cells = typed(values, "number", plain)
            if given is not None:
                return "number", plain, (), cells.where(np.isfinite(cells))
            return "number", plain, _sentinel(values), cells
        if pd.api.types.is_datetime64_any_dtype(values) or isinstance(values.dtype, pd.PeriodDtype):
            return "date", plain, ("as days since 1970-01-01",), typed(values, "date", plain)
        if pd.api.types.is_timedelta64_dtype(values):
            return "number", plain, ("a duration, in days",), typed(values, "number", plain)
    texts = Texts.of(values)
    if categories:
        return "category", plain, (), typed_texts(texts, "category", plain)
    if given is not None:
        form = declared_form(texts, decimal_comma)
        kind: ColumnKind = "date" if form.date else "yes/no" if form.yes else "number"
        return kind, form, (), typed_texts(texts, kind, form)
    return kind_of_texts(texts, decimal_comma)


def kind_of_texts(texts: Texts, decimal_comma: bool) -> tuple[ColumnKind, Form, tuple[str, ...], pd.Series[Any]]:
    """The same for a column of texts: yes/no, dates or numbers if every present cell is one, else categories."""
    every, counts = texts.words, texts.counts
    words = every[~np.isin(every, NOTHING) & (counts > 0)]
    if not len(words):
        return "category", Form(), (), typed_texts(texts, "category", Form())
    if pair := yes_no(set(words.tolist())):
        form = Form(yes=pair)
        return "yes/no", form, _seen(every, NOTHING), typed_texts(texts, "yes/no", form)
    candidates = words[~np.isin(words, NOTHING_AS_NUMBER)]
    if len(candidates) and not _codes(candidates):
        if order := date_order(candidates):
            form = Form((*NOTHING, *NOTHING_AS_NUMBER), date=order)
            return "date", form, _seen(every, form.missing), typed_texts(texts, "date", form)
        form, found, doubts = number_form(candidates, decimal_comma)
        strangers = candidates[np.isnan(found)]
        if 2 * len(strangers) <= len(candidates):
            usual = len(found) - len(strangers) > _SHORT_SCALE
            rows = int(counts[np.isin(every, strangers)].sum())
            if not len(strangers) or (len(strangers) == 1 and usual and rows >= RARE):
                form = replace(form, missing=(*NOTHING, *NOTHING_AS_NUMBER))  # a stranger is somebody's word: not kept
                cells, gone = typed_texts(texts, "number", form), (*form.missing, *strangers)
                return "number", form, (*_seen(every, gone), *doubts, *_sentinel(cells)), cells
            if usual:
                odd = "1 text" if len(strangers) == 1 else f"{len(strangers)} texts"
                where = "1 row" if rows == 1 else f"{rows} rows"
                reason = f"it mixes numbers with {odd}{_infinities(strangers)} in {where}; correct these cells"
                return "dropped", Form(), (reason,), texts.put(every)
    code = ("its digits start with zeros: a code, not a number",) if _codes(words) else ()
    return "category", Form(), (*_seen(every, NOTHING), *code), typed_texts(texts, "category", Form())


def _codes(words: NDArray[Any]) -> bool:
    """Whether the digits are a code (postal codes with leading zeros) and no numbers."""
    digits = [word for word in words if word.isdigit()]
    return len(digits) == len(words) and any(len(word) > 1 and word[0] == "0" for word in digits)


def _seen(every: NDArray[Any], missing: tuple[str, ...]) -> tuple[str, ...]:
    """Say which words were read as missing; a word that is none of the usual ones is somebody's, and not quoted."""
    seen = {str(word) for word in every if word in missing and word}
    usual = {word for word in seen if word in (*NOTHING, *NOTHING_AS_NUMBER) or _infinite(word)}
    words = [*map(repr, sorted(usual)), *(["one more word"] if seen != usual else [])]
    return (f"{listed(words)} read as missing",) if words else ()


def _sentinel(values: pd.Series[Any]) -> tuple[str, ...]:
    """Note numbers that often stand for "not known" and lie far from all others."""
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = numbers[~np.isnan(numbers)]
    doubts = []
    for word in (-9999.0, -999.0, -99.0, 999.0, 9999.0, 99999.0, 999999.0):
        here = numbers == word
        others = numbers[~here]
        if here.sum() >= RARE and others.size and np.abs(others).max() * 2 < abs(word):
            doubts.append(f"{word:g} appears as a number; if it means missing, empty these cells")
    return tuple(doubts)


def _infinities(strangers: Iterable[Any]) -> str:
    """Name texts that spell infinity, and no others: what else stands in a cell may be somebody's name."""
    spelled = [str(word) for word in strangers if _infinite(word)]
    return f" ({listed(map(repr, spelled), 3)})" if spelled else ""


def _infinite(word: str) -> bool:
    return word.strip().lower().lstrip("+-") in ("inf", "infinity")


def warn_of_points(column: Column, values: pd.Series[Any]) -> Column:
    """Note points in a file with decimal commas: 1.234 could mean more than a thousand."""
    if column.kind != "number" or column.form.decimal == "," or pd.api.types.is_numeric_dtype(values):
        return column
    if any(re.fullmatch(r"[+-]?\d{1,3}\.\d{3}", word) for word in Texts.of(values).words):
        note = "points were read as decimal, though other columns have decimal commas"
        return replace(column, notes=(*column.notes, note))
    return column


def typed(values: pd.Series[Any], kind: ColumnKind, form: Form) -> pd.Series[Any]:
    """Read cells that are known to be of a kind; what is not is missing."""
    if kind == "number" and pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        if pd.api.types.is_integer_dtype(values) and not values.isna().any():
            return values.astype(np.int64) if int(values.max()) < 2**63 else values.astype(np.float64)
        return values.astype(np.float64) if not values.isna().any() else _floats(values)
    if pd.api.types.is_timedelta64_dtype(values):
        return pd.Series(values.dt.total_seconds().to_numpy(dtype=np.float64) / 86400, index=values.index)
    if kind == "date" and not (values.dtype == object or pd.api.types.is_string_dtype(values)):
        return _days_of(values)
    if kind == "yes/no" and pd.api.types.is_bool_dtype(values):
        return _floats(values)
    return typed_texts(Texts.of(values), kind, form)


def typed_texts(texts: Texts, kind: ColumnKind, form: Form) -> pd.Series[Any]:
    """The same for texts: each distinct word is read once."""
    known = ~np.isin(texts.words, form.missing)
    if kind == "category":
        return texts.put(np.where(known, texts.words, np.nan)).astype(object)
    words, found = texts.words[known], np.full(len(texts.words), np.nan)
    if kind == "yes/no":
        yes, no = form.yes or ("true", "false")
        found[known] = [{yes: 1.0, no: 0.0}.get(word.casefold(), np.nan) for word in words]
    else:
        found[known] = known_days(days_from(words, form.date or "ymd")) if kind == "date" else numbers_from(words, form)
    read = texts.put(found)
    whole = kind == "number" and bool(np.all(np.abs(read) < 2**53) and np.all(read == np.round(read)))
    return read.astype(np.int64) if whole else read


def _floats(values: pd.Series[Any]) -> pd.Series[Any]:
    return pd.Series(values.to_numpy(dtype=np.float64, na_value=np.nan), index=values.index)


def _days_of(values: pd.Series[Any]) -> pd.Series[Any]:
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.where(values.dt.year.between(1678, 2261)).dt.to_timestamp()  # of nanoseconds
    if getattr(values.dt, "tz", None) is not None:
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    days = (values - pd.Timestamp("1970-01-01").as_unit("s")) / pd.Timedelta(days=1)
    return pd.Series(known_days(np.asarray(days.to_numpy(dtype=np.float64, na_value=np.nan))), index=values.index)


def reason_to_drop(name: str, kind: ColumnKind, typed: pd.Series[Any]) -> str:
    """Say why a readable column must not be used, or nothing."""
    present = typed.dropna()
    counts = present.value_counts()
    if len(counts) == 1:
        return "it is constant" if len(present) == len(typed) else "all cells that hold anything are equal"
    way_out = "if it is none, give its public values as ranges"
    if _IDENTIFIER.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()):
        return f"its name is that of an identifier; {way_out}"
    if kind == "number":
        return _numeric_identifier(present, way_out)
    return telling_texts(present, counts, way_out) if kind == "category" else ""


def _numeric_identifier(present: pd.Series[Any], way_out: str) -> str:
    numbers = np.sort(present.to_numpy(dtype=np.float64))
    if not np.all(numbers == np.round(numbers)) or len(numbers) < RARE:
        return ""
    if len(numbers) >= 10 and np.all(np.diff(numbers) == 1):
        return f"it numbers the rows; {way_out}"
    unique = np.sum(np.diff(numbers) > 0) + 1
    if unique > 0.9 * len(numbers) and len(numbers) >= 10 and np.median(np.abs(numbers)) >= 1e8:
        return f"its long whole numbers are nearly unique, as identifiers are; {way_out}"
    return ""


def telling_texts(present: pd.Series[Any], counts: pd.Series[Any], way_out: str) -> str:
    """Say why a column of texts tells who somebody is, or nothing."""
    words = [str(word) for word in counts.index]
    if sum(bool(SOME_DATE.fullmatch(word)) for word in words) > 0.9 * len(words):
        return "its dates are in a form that is not understood; write them as 2024-12-31"
    if np.mean([len(word) for word in words]) > _LONG_TEXT:
        return "it is free text"
    rare = float(counts[counts < RARE].sum()) / len(present)
    if rare > _RARE_SHARE:
        return f"its texts are nearly unique and identify people; {way_out}"
    if len(words) > MAX_CATEGORIES:
        return f"it has more than {MAX_CATEGORIES} different texts; group them, or {way_out}"
    return ""


def listed(values: Iterable[Any], most: int = 12) -> str:
    """Return names in a row, shortened if there are many."""
    items = [str(value) for value in values]
    return ", ".join(items[:most]) + (f", … ({len(items)} in all)" if len(items) > most else "")
