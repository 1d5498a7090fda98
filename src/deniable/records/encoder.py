"""Blocks of rows as numbers: what one pass over the raw columns has to find, and the encoding that follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError
from deniable.records.losses import Loss
from deniable.records.problem import ROWS, Part, norms_of
from deniable.tables import Block, RowPart

MOST_LABELS = 1000  # number of distinct targets above which they are numbers, not classes
_MOST_LEVELS = 1000  # distinct texts of a column, each of which becomes a column of numbers


@dataclass(frozen=True, eq=False)
class Scan:
    """What one pass over the raw columns found; scans of several tasks add up."""

    rows: tuple[int, ...]  # of each task
    texts: tuple[frozenset[str] | None, ...]  # different texts of each column, None for numbers
    labels: frozenset[Any] | None  # different targets, None if there are too many for classes
    longest: float
    longest_at: str

    def __add__(self, other: Scan) -> Scan:
        for mine, theirs in zip(self.texts, other.texts, strict=True):
            if (mine is None) != (theirs is None):
                raise InputError("a column must hold either numbers or texts in all blocks")
        found = tuple(
            a | b if a is not None and b is not None else None for a, b in zip(self.texts, other.texts, strict=True)
        )
        labels = self.labels | other.labels if self.labels is not None and other.labels is not None else None
        if labels is not None and len(labels) > MOST_LABELS:
            labels = None
        worst = self if self.longest >= other.longest else other
        return Scan(self.rows + other.rows, found, labels, worst.longest, worst.longest_at)


def scan_task(names: Sequence[str], task: RowPart) -> Scan:
    """Check every value of a task's rows and collect what the encoding needs."""
    found: Scan | None = None
    for block in task.blocks():
        seen = _scan_block(block, names)
        found = seen if found is None else replace(found + seen, rows=(found.rows[0] + seen.rows[0],))
    return found or Scan((0,), (None,) * len(names), frozenset(), 0.0, "")


def _scan_block(block: Block, names: Sequence[str]) -> Scan:
    squares = np.zeros(len(block.y))
    found: list[frozenset[str] | None] = []
    for column, name in zip(block.columns, names, strict=True):
        if column.dtype == object:
            found.append(frozenset(block.texts(column, name).tolist()))
            if len(found[-1] or ()) > _MOST_LEVELS:
                raise InputError(f"column {name!r} has over {_MOST_LEVELS} different texts; drop or encode it")
            squares += 1.0
        else:
            found.append(None)
            squares += block.numeric(column, name) ** 2
    y = block.y
    if y.dtype == object:
        block.texts(y, "the target")
    else:
        block.numeric(y, "the target")
    different = np.unique(y)
    labels = frozenset(different.tolist()) if len(different) <= MOST_LABELS else None
    at = int(np.argmax(squares))
    return Scan((len(y),), tuple(found), labels, float(np.sqrt(squares[at])), block.place_of(at))


@dataclass(frozen=True, eq=False)
class BlockEncoder:
    """Encode a block as numbers."""

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]
    labels: NDArray[Any] | None  # sorted, for losses of classes
    loss: Loss
    intercept: bool

    def parts(self, task: RowPart, start: int) -> Iterator[Part]:
        """The task's rows, ``ROWS`` at a time; the first is row ``start`` of all."""
        for block in task.blocks():
            X = self._matrix(block)
            y = self._targets(block.y)
            norms = norms_of(X)
            for at in range(0, len(y), ROWS):
                rows = slice(at, at + ROWS)
                yield Part(start + at, X[rows], y[rows], np.ones(len(y[rows])), norms[rows])
            start += len(y)

    def _matrix(self, block: Block) -> FloatArray:
        """Return numbers: a text becomes one column of zeros and ones for each of its levels; ones are the last."""
        X, at = np.zeros((len(block.y), self.columns)), 0
        for column, known, name in zip(block.columns, self.levels, self.names, strict=True):
            if known is None:
                X[:, at] = block.numeric(column, name)
            else:
                place = np.searchsorted(np.asarray(known, dtype=object), block.texts(column, name))
                X[np.arange(len(X)), at + place] = 1.0
            at += 1 if known is None else len(known)
        X[:, at:] = 1.0
        return X

    def _targets(self, y: NDArray[Any]) -> FloatArray:
        if self.labels is None:
            return self.loss.targets(y)[0]
        return self.loss.targets(np.concatenate([self.labels, y]))[0][len(self.labels) :]

    @property
    def columns(self) -> int:
        """Columns of X."""
        return sum(1 if known is None else len(known) for known in self.levels) + self.intercept
