"""What columns hold, by one private query to all of them; nothing else about a column is decided from its cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deniable._check import FloatArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise.queries import Queries, Units

if TYPE_CHECKING:
    from deniable.tables import ColumnCells

DISTINCT, TOTAL = 0.5, 0.5  # weights, beside the counts of a column's cells, of its distinct words and of all records
CLEAR = 3.0  # standard deviations of noise by which cells of a kind must stand out
_KINDS = ("missing", "fractional", "date", "word", "flag", "whole")  # in the order of the counts
_PURPOSE = "how many there are, and what the columns hold"
COUNT_NOISE = math.sqrt((1 + DISTINCT**2 + TOTAL**2) / (1 / len(_KINDS) + TOTAL**2))  # sd of the number, times μ


@dataclass(frozen=True, kw_only=True)
class ColumnKind:
    """What a column holds, by released counts or by declaration.

    Attributes
    ----------
    kind
        "number" or "date", whose values have an order, or "category"; "any" before it is known.
    words
        The words: "" for none that are worth a cell, "flags" (yes and no), "many", or "unique" (nearly).
    whole
        Its numbers are whole.
    sure
        Whether any kind stands out of the noise; otherwise it is read as numbers and words.
    """

    kind: str = "any"
    words: str = ""
    whole: bool = False
    sure: bool = True

    @property
    def measured(self) -> bool:
        """Whether it has bins."""
        return self.kind in ("number", "date")

    def __str__(self) -> str:
        words = {"flags": "yes and no", "many": "words", "unique": "nearly unique words", "": ""}[self.words]
        numbers = f"{'whole ' * self.whole}{self.kind}s" if self.measured else ""
        return (" and " if self.sure else " or ").join(part for part in (numbers, words) if part)


def ask_kinds(look: Queries, columns: Iterable[ColumnCells], n_rows: int, mu: float) -> tuple[float, list[ColumnKind]]:
    """Return about how many units there are, and what each column holds, by one query.

    A record is in one cell of each column (missing, part of a whole, whole, date, flag or other word), is at most one
    more distinct word, and is counted once more for all columns: it moves the counts, in units of their noise, by at
    most √(columns·(1 + DISTINCT² + TOTAL²)). So does a person, whose weights sum to at most ``heaviest``: of a word
    min(heaviest, its weights) is counted.
    """
    counts = np.array([_counted(cells, look.units) for cells in columns])
    if not len(counts):
        return look.count(n_rows, mu, _PURPOSE), []
    heaviest, k = look.units.heaviest, len(counts)
    paid = look.pay("kinds", _PURPOSE, mu)
    sd = math.sqrt(k * (1 + DISTINCT**2 + TOTAL**2)) / mu * (1 + MANY_ROUNDINGS)
    each = [*[1.0] * len(_KINDS), 1 / DISTINCT]
    sds = np.array([*each * k, 1 / (TOTAL * math.sqrt(k))]) * sd * heaviest
    noised = paid.channel("kinds", sds)(np.append(counts.ravel(), look.units.total(n_rows))) / heaviest
    rows = noised[:-1].reshape(k, -1)
    mean = float(rows[:, : len(_KINDS)].sum(axis=1).mean())
    n = (mean / len(_KINDS) + TOTAL**2 * float(noised[-1])) / (1 / len(_KINDS) + TOTAL**2)  # by their variances
    return max(n, 1.0), [_told(row, sd) for row in rows]


def _counted(cells: ColumnCells, units: Units) -> list[int]:
    """Count the cells of each of ``_KINDS``, and the distinct words that are no flags."""
    from deniable.tables import NUMBER, WORD, flag_of  # needs pandas

    flags = np.array([*(bool(flag_of(word)) for word in cells.words), False])[cells.word]
    whole = cells.number == np.rint(cells.number)
    kind = np.where(flags, 4, np.where(whole & (cells.kind == NUMBER), 5, cells.kind))
    words = kind == WORD
    weights = units.weights if units.weights is None else units.weights[words]
    distinct = np.minimum(np.bincount(cells.word[words], weights), units.heaviest).sum()
    return [*np.bincount(kind, units.weights, minlength=len(_KINDS)).astype(np.int64).tolist(), int(distinct)]


def _told(noised: FloatArray, sd: float) -> ColumnKind:
    """Return what a column holds by its noisy counts: where neither words nor numbers stand out, or both do, both."""
    _, part, date, word, flag, whole, distinct = noised.tolist()
    clear, number = CLEAR * sd, part + whole
    sure, some = max(number / math.sqrt(2), date) > clear, (word + flag) / math.sqrt(2) > clear
    words = "many"
    if sure and not some:
        words = ""
    elif flag > clear > word:
        words = "flags"
    elif distinct > word / 2 + sd / DISTINCT:
        words = "unique"
    if some and not sure:
        return ColumnKind(kind="category", words=words)
    if date > max(number, clear):
        return ColumnKind(kind="date", words=words)
    return ColumnKind(kind="number", words=words, whole=part < clear < whole, sure=sure or some)
