"""Rows that need not fit into memory: what one pass over the raw columns finds, and the encoding that follows.

Every pass reads the rows anew. One number per record and quantity is held, never n × parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, IntArray
from deniable._parallel import in_order
from deniable.records.losses import Loss
from deniable.records.problem import Part, Problem, Rows, penalties
from deniable.tables import WORD, Block, RowPart, Source, kind_counts, kind_of

_DISTINCT = 1000  # texts of a column, each of which becomes a column of numbers; targets that are classes


@dataclass(frozen=True, eq=False)
class Scan:
    """What one pass over the raw columns found; scans of several tasks add up."""

    rows: tuple[int, ...]  # of each task
    texts: tuple[frozenset[str] | None, ...]  # different texts of each column, None for numbers
    labels: frozenset[Any] | None  # different targets, None if there are too many for classes
    longest: float
    longest_at: str

    def __add__(self, other: Scan) -> Scan:
        found = tuple(
            a | b if a is not None and b is not None else None for a, b in zip(self.texts, other.texts, strict=True)
        )
        labels = self.labels | other.labels if self.labels is not None and other.labels is not None else None
        if labels is not None and len(labels) > _DISTINCT:
            labels = None
        worst = self if self.longest >= other.longest else other
        return Scan(self.rows + other.rows, found, labels, worst.longest, worst.longest_at)


def count_task(task: RowPart) -> IntArray:
    """Count the cells of each kind of each column, that of the target last."""
    return np.asarray(sum(np.array([*map(kind_counts, (*block.columns, block.y))]) for block in task.blocks()))


def scan_task(names: Sequence[str], kinds: Sequence[str], task: RowPart) -> Scan:
    """Check every value of a task's rows and collect what the encoding needs."""
    found = reduce(add, (_scan_block(block, names, kinds) for block in task.blocks()))
    return replace(found, rows=(sum(found.rows),))


def _scan_block(block: Block, names: Sequence[str], kinds: Sequence[str]) -> Scan:
    squares = np.zeros(len(block.y))
    found: list[frozenset[str] | None] = []
    for column, name, kind in zip(block.columns, names, kinds, strict=False):
        values = block.values(column, name, kind)
        found.append(frozenset(values.tolist()) if kind == "category" else None)
        if len(found[-1] or ()) > _DISTINCT:
            raise InputError(f"column {name!r} has over {_DISTINCT} different texts; drop or encode it")
        squares += 1.0 if kind == "category" else values**2
    different = np.unique(block.values(block.y, "the target", kinds[-1]))
    labels = frozenset(different.tolist()) if len(different) <= _DISTINCT else None
    at = int(np.argmax(squares))
    return Scan((len(block.y),), tuple(found), labels, float(np.sqrt(squares[at])), block.place_of(at))


@dataclass(frozen=True, eq=False)
class BlockEncoder:
    """Encode a block as numbers."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]  # of the columns, that of the target last
    levels: tuple[tuple[str, ...] | None, ...]
    labels: NDArray[Any] | None  # sorted, for losses of classes
    loss: Loss
    intercept: bool

    def rows(self, block: Block) -> Rows:
        """Return the rows as numbers, with weight 1."""
        y = block.values(block.y, "the target", self.kinds[-1])
        return Rows(self._matrix(block), self._targets(y), np.ones(len(y)))

    def _matrix(self, block: Block) -> FloatArray:
        """Return numbers: a text becomes one column of zeros and ones for each of its levels; ones are the last."""
        X, at = np.zeros((len(block.y), self.columns)), 0
        for column, known, name, kind in zip(block.columns, self.levels, self.names, self.kinds, strict=False):
            values = block.values(column, name, kind)
            if known is None:
                X[:, at] = values
            else:
                place = np.searchsorted(np.asarray(known, dtype=object), values)
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


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """A task whose rows are read and encoded when they are needed."""

    encoder: BlockEncoder
    task: RowPart

    def parts(self, start: int) -> Iterator[Part]:
        """Yield the rows, ``ROWS`` at a time; the first is row ``start`` of all."""
        for block in self.task.blocks():
            rows = self.encoder.rows(block)
            yield from rows.parts(start)
            start += len(rows.y)


def read_problem(
    source: Source,
    loss: Loss,
    regularization: float,
    intercept: str,
    normalization: str,
    n_jobs: int | None,
) -> Problem:
    """Check all rows in one pass and state the objective."""
    if not source.tasks:
        raise InputError("the data have no rows")
    counts = reduce(add, in_order(count_task, source.tasks, n_jobs))
    classed = loss.name in ("logistic", "squared_hinge", "softmax")
    kinds = tuple(kind_of(row, own.kind) for row, own in zip(counts, source.tasks[0].how, strict=True))
    if counts[-1][WORD] and (classed or kinds[-1] != "yes/no"):
        kinds = (*kinds[:-1], "category")
    found = reduce(add, in_order(scan_task, source.tasks, n_jobs, source.names, kinds))
    if sum(found.rows) < 2:
        raise InputError(f"the data must have at least two rows, got {sum(found.rows)}")
    classes, labels = 1, None
    if classed:
        if found.labels is None:
            raise InputError(f"the target must hold classes for loss={loss.name!r}, it has over {_DISTINCT} values")
        labels = np.array(sorted(found.labels))
        classes = loss.targets(labels)[1]
    levels = tuple(None if known is None else tuple(sorted(known)) for known in found.texts)
    encoder = BlockEncoder(source.names, kinds, levels, labels, loss, intercept != "none")
    d, n = encoder.columns, sum(found.rows)
    penalty, relief = penalties(d, classes, float(n), regularization, intercept, normalization)
    starts = accumulate(found.rows, initial=0)
    tasks = [(EncodedRows(encoder, task), start) for task, start in zip(source.tasks, starts, strict=False)]
    return Problem(
        loss=loss,
        tasks=tuple(tasks),
        count=n,
        penalty=penalty,
        relief=relief,
        classes=classes,
        intercept=encoder.intercept,
        longest=float(np.hypot(found.longest, encoder.intercept)),
        longest_at=found.longest_at,
        n_jobs=n_jobs,
        held=source.held,
    )
