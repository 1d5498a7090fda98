"""Who a cell of the column of persons names: cells that read alike, and spellings of one text, are one person.

One person made two would count twice, and nothing would bound what is told of her. Two people made one share a weight:
adding the second *replaces* what their label contributes, so each has the bound of a **replaced** person, that of twice
the μ at most (``replacement_tradeoff_``). So in doubt cells are one person. Where spelling matters ("AB" and "ab",
"007" and "7" are two people), declare the column's ``kind`` as "code".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable.tables.cell import NUMBER, WHOLE, CellFormat, read_cell, read_cells, spelled, whole_of
from deniable.tables.schema import ColumnSchema

_ALIKE = str.maketrans("\u2212\u2018\u2019\u02bc", "-'''")  # a minus is a dash; apostrophes
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def persons_of(column: Any, declared: ColumnSchema | None = None) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the place of each cell's person among the persons, and these in the order in which they come first.

    A cell that names nobody has the place behind the last: its record is to weigh nothing.
    """
    own = declared or ColumnSchema()
    series = column if isinstance(column, pd.Series) else pd.Series(column, dtype=getattr(column, "dtype", object))
    cells = own.read(series)
    codes, texts = cells.coded
    names = np.array([*(_fold(text, own) for text in texts), None], dtype=object)[codes]
    large = np.flatnonzero((cells.kind == NUMBER) & ~(np.abs(cells.number) < WHOLE))
    names[large] = [_canonical(cell, own.form) for cell in series.iloc[large].tolist()]
    places = {name: i for i, name in enumerate(dict.fromkeys(name for name in names.tolist() if name))}
    return np.array([places.get(name, len(places)) for name in names.tolist()], dtype=np.int64), tuple(places)


def _canonical(cell: Any, form: CellFormat) -> str | None:
    kind, value = read_cell(cell, form)
    large = kind == NUMBER and isinstance(value, float) and not abs(value) < WHOLE
    return str(whole_of(cell, form)) if large else spelled(kind, value)


def _fold(text: str, own: ColumnSchema) -> str:
    """Return a canonical text without case, forms of letters, invisible characters and kinds of dashes."""
    if own.kind == "code" or (text.isascii() and text.isprintable()):
        return text if own.kind == "code" else text.casefold()
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).translate(_ALIKE))
    kinds = {c: unicodedata.category(c) for c in plain}
    plain = "".join("-" if kinds[c] == "Pd" else c for c in plain if kinds[c] not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", (_canonical(plain, own.form) or " ".join(plain.split())).casefold())


def copies_line(columns: Iterable[Any]) -> tuple[str, ...]:
    """Say how many rows are exact copies of an earlier one, given their columns; nothing if none is.

    >>> copies_line([["a", "b", "a"], [1, 2, 1]])
    ('1 of 3 rows are exact copies of another row: a person with k of them counts as k, unless ... (--group)',)
    """
    keys, copies = np.zeros(1, dtype=np.uint64), 0
    for column in columns:
        keys = keys * np.uint64(0x9E3779B97F4A7C15) + read_cells(column).coded[0].astype(np.uint64)
        if not (copies := int(pd.Series(keys).duplicated().sum())):
            break
    said = (
        f"{copies:,} of {len(keys):,} rows are exact copies of another row: a person with k of them counts as k, "
        "unless a column says whose each is (--group)"
    )
    return (said,) * bool(copies)
