"""Who a cell of the column of persons names: one canonical text for every way of writing it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable._check import InputError
from deniable.tables.cell import NOTHING

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")


def person(cell: Any) -> str | None:
    """Return the canonical text of one cell, read alone; None says that it names nobody.

    Stripped, in Unicode's composed form, and numbers by their value: 7, 7.0, "7", " 7.00" and "007" are one person, as
    they are where a table is read as numbers. Two persons made one share a weight, which only costs usefulness; one
    person made two would count twice.
    """
    text = unicodedata.normalize("NFC", str(cell)).strip()
    if text in NOTHING or cell is None or cell is pd.NaT:
        return None
    if _NUMBER.fullmatch(text):
        text = format(Decimal(text), "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    return text


def persons_of(column: Any) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the number of each cell's person and the persons, in the order in which they come first.

    Raises
    ------
    InputError
        If a cell names nobody: a record without a person would be protected by nothing.
    """
    numbers: dict[str, int] = {}
    cells: Iterable[Any] = column.tolist() if hasattr(column, "tolist") else column
    named = [person(cell) for cell in cells]
    if None in named:
        raise InputError("group must name the person of every record, but some are missing; give each its own label")
    index = [numbers.setdefault(str(name), len(numbers)) for name in named]
    return np.array(index, dtype=np.int64), tuple(numbers)
