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

DISTINCT = 0.5  # weight of the number of distinct words beside the counts of cells
COUNT_NOISE = math.sqrt(6 * (1 + DISTINCT**2))  # standard deviation of the number of units, times the μ of the query
CLEAR = 3.0  # standard deviations of noise by which cells of a kind must stand out
_KINDS = ("missing", "fractional", "date", "word", "flag", "whole")  # in the order of the counts


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

    A record is in one cell of each column (missing, part of a whole, whole, date, flag or other word), and is at most
    one more distinct word: it moves the counts, in units of their noise, by at most √(columns·(1 + DISTINCT²)). So does
    a person, whose weights sum to at most ``heaviest``: of a word min(heaviest, its weights) is counted.
    """
    heaviest = look.units.heaviest
    counts = np.array([_counted(cells, look.units) for cells in columns])
    paid = look.pay("kinds", "how many there are, and what the columns hold", mu)
    sd = math.sqrt(max(len(counts), 1) * (1 + DISTINCT**2)) / mu * (1 + MANY_ROUNDINGS)
    if not len(counts):
        total = np.array([look.units.total(n_rows)])
        return max(float(paid.channel("kinds", np.array([sd * heaviest]))(total)[0]) / heaviest, 1.0), []
    sds = np.tile([*[sd * heaviest] * len(_KINDS), sd * heaviest / DISTINCT], len(counts))
    noised = (paid.channel("kinds", sds)(counts.ravel()) / heaviest).reshape(counts.shape)
    n = float(noised[:, : len(_KINDS)].sum(axis=1).mean())
    return max(n, 1.0), [_told(row, sd) for row in noised]


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
