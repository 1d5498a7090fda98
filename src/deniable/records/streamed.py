"""Profiles of rows that need not fit into memory: the same sums and the same pass, task by task.

Every pass reads the rows anew. One number per record and quantity is held, never n × parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, Indices, InputError
from deniable._parallel import in_order
from deniable.records.certified_radius import RadiusCertificate
from deniable.records.fit import Fit, margins_of
from deniable.records.inputs import penalties
from deniable.records.losses import Loss
from deniable.records.low_rank import Changes, LowRank, Pivot
from deniable.records.neighbours import Neighbours, lengths, make_pivot
from deniable.records.problem import ROWS, Part, Problem, Sums, add_up, norms_of
from deniable.records.refine import refine
from deniable.tables.blocks import MOST_LEVELS, Block, RowPart, Source, matrix, numeric, texts

_MOST_LABELS = 1000  # number of distinct targets above which they are numbers, not classes
_MOST_ITERATED = 20_000  # most records that are iterated because their certificate is too wide


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
        if labels is not None and len(labels) > _MOST_LABELS:
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
            found.append(frozenset(texts(block, column, name).tolist()))
            if len(found[-1] or ()) > MOST_LEVELS:
                raise InputError(f"column {name!r} has over {MOST_LEVELS} different texts; drop or encode it")
            squares += 1.0
        else:
            found.append(None)
            squares += numeric(block, column, name) ** 2
    y = block.y
    if y.dtype == object:
        texts(block, y, "the target")
    else:
        numeric(block, y, "the target")
    different = np.unique(y)
    labels = frozenset(different.tolist()) if len(different) <= _MOST_LABELS else None
    at = int(np.argmax(squares))
    where = f"{block.where} row {block.first + at}"
    return Scan((len(y),), tuple(found), labels, float(np.sqrt(squares[at])), where)


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
            X = matrix(block, self.levels, self.names)
            if self.intercept:
                X = np.column_stack([X, np.ones(len(X))])
            y = self._targets(block.y)
            norms = norms_of(X)
            for at in range(0, len(y), ROWS):
                rows = slice(at, at + ROWS)
                yield Part(start + at, X[rows], y[rows], np.ones(len(y[rows])), norms[rows])
            start += len(y)

    def _targets(self, y: NDArray[Any]) -> FloatArray:
        if self.labels is None:
            return self.loss.targets(y)[0]
        return self.loss.targets(np.concatenate([self.labels, y]))[0][len(self.labels) :]

    @property
    def columns(self) -> int:
        """Columns of X."""
        return sum(1 if known is None else len(known) for known in self.levels) + self.intercept


@dataclass(frozen=True, eq=False)
class StreamedProblem(Problem):
    """A problem whose rows are read when needed; ``X`` and what belongs to it are empty."""

    encoder: BlockEncoder | None = field(default=None, repr=False)
    tasks: tuple[tuple[RowPart, int], ...] = field(default=(), repr=False)  # each with the number of its first row
    rows: int = 0
    longest_row: float = 0.0
    longest_at: str = ""
    n_jobs: int | None = None
    held: Any = field(default=None, repr=False)  # objects that must stay alive while rows are read

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.rows

    @property
    def in_memory(self) -> bool:
        """False: rows are read when they are needed."""
        return False

    @property
    def longest(self) -> float:
        """Upper bound of the rows' norms, the intercept's column included."""
        return self.longest_row

    @property
    def heaviest(self) -> float:
        """All weights are 1."""
        return 1.0

    def longest_found(self) -> tuple[float, str]:
        """Norm of the longest row, and the file and row where it is."""
        return self.longest_row, self.longest_at

    @property
    def typical_weight(self) -> float:
        """All weights are 1."""
        return 1.0

    @property
    def bare(self) -> StreamedProblem:
        """The problem without its tasks: what a worker needs besides its own task."""
        return replace(self, tasks=(), held=None)

    def parts(self) -> Iterator[Part]:
        """All rows, ``ROWS`` at a time."""
        assert self.encoder is not None
        for task, start in self.tasks:
            yield from self.encoder.parts(task, start)

    def sums(self, centre: FloatArray, margins: FloatArray | None = None, *, precise: bool = True) -> Sums:
        """What the objective's derivatives at ``centre`` need from the rows, task by task in order."""
        return reduce(add, in_order(_sums_of, self.tasks, self.n_jobs, self.bare, centre, precise))


def _sums_of(problem: StreamedProblem, centre: FloatArray, precise: bool, task: tuple[RowPart, int]) -> Sums:
    assert problem.encoder is not None
    return add_up(problem, problem.encoder.parts(*task), centre, None, precise=precise)


def read_problem(
    source: Source,
    loss: Loss,
    regularization: float,
    intercept: str,
    normalization: str,
    n_jobs: int | None,
) -> StreamedProblem:
    """Check all rows in one pass and state the objective."""
    if loss.self_concordance is None:
        raise InputError(
            f"loss={loss.name!r} has kinks, and its certificate needs all rows in memory: give arrays, or another loss"
        )
    found = reduce(add, _typed(in_order(scan_task, source.tasks, n_jobs, source.names)))
    if sum(found.rows) < 2:
        raise InputError(f"the data must have at least two rows, got {sum(found.rows)}")
    classes, labels = 1, None
    if loss.name in ("logistic", "squared_hinge", "softmax"):
        if found.labels is None:
            raise InputError(f"the target must hold classes for loss={loss.name!r}, it has over {_MOST_LABELS} values")
        labels = np.array(sorted(found.labels))
        classes = loss.targets(labels)[1]
    levels = tuple(None if known is None else tuple(sorted(known)) for known in found.texts)
    encoder = BlockEncoder(source.names, levels, labels, loss, intercept != "none")
    d, n = encoder.columns, sum(found.rows)
    penalty, relief = penalties(d, classes, float(n), regularization, intercept, normalization)
    starts = np.concatenate([[0], np.cumsum(found.rows)]).tolist()
    tasks = [(task, start) for task, start, rows in zip(source.tasks, starts, found.rows, strict=False) if rows]
    longest = float(np.hypot(found.longest, 1.0)) if intercept != "none" else found.longest
    return StreamedProblem(
        loss=loss,
        X=np.empty((0, d)),
        y=np.empty(0),
        weights=np.empty(0),
        penalty=penalty,
        relief=relief,
        classes=classes,
        encoder=encoder,
        tasks=tuple(tasks),
        rows=n,
        longest_row=longest * (1 + 4e-16 * (d + 4)),
        longest_at=found.longest_at,
        n_jobs=n_jobs,
        held=source.held,
    )


def _typed(scans: Iterator[Scan]) -> Iterator[Scan]:
    """Give empty tasks the column kinds of the others."""
    kept = list(scans)
    filled = [scan for scan in kept if scan.rows != (0,)]
    if not filled:
        raise InputError("the data have no rows")
    for scan in kept:
        yield scan if scan.rows != (0,) else replace(scan, texts=filled[0].texts, labels=frozenset())


@dataclass(frozen=True, eq=False)
class Passed:
    """What the pass over one task found: a number per record and quantity, and rows whose certificate is too wide."""

    distance: FloatArray
    along: FloatArray
    radius: FloatArray
    wide: Indices
    X: FloatArray
    y: FloatArray
    margins: FloatArray


def _pass_of(pivot: Pivot, tolerance: float, direction: FloatArray, task: tuple[RowPart, int]) -> Passed:
    problem = pivot.fit.problem
    assert isinstance(problem, StreamedProblem)
    assert problem.encoder is not None
    bound: RadiusCertificate | None = None
    found: list[tuple[NDArray[Any], ...]] = []
    for part in problem.encoder.parts(*task):
        changes = Changes(part.X, part.y, part.weights, margins_of(pivot.fit, part))
        bound = bound or RadiusCertificate.of(pivot)
        block = LowRank.of(pivot, changes)
        step, coefficients = block.newton()
        radius, distance = bound.after_newton(block, step, coefficients), lengths(step)
        wide = np.flatnonzero(~(radius <= tolerance * distance))[:_MOST_ITERATED]
        at = part.start - task[1] + wide
        found.append((distance, step @ direction, radius, at, part.X[wide], part.y[wide], changes.margins[wide]))
    return Passed(*(np.concatenate(some) for some in zip(*found, strict=True)))


def leave_each_out(base: Fit, tolerance: float, direction: FloatArray) -> StreamedNeighbours:
    """Distances and radii of all records in one pass over the tasks; a limited number of wide ones is iterated."""
    problem = base.problem
    assert isinstance(problem, StreamedProblem)
    pivot = make_pivot(base, 1.0)
    light = replace(pivot, fit=replace(base, problem=problem.bare))
    n = problem.rows
    each = in_order(_pass_of, problem.tasks, problem.n_jobs, light, tolerance, direction)
    distance, along, radius = np.empty(n), np.empty(n), np.empty(n)
    wide: list[tuple[FloatArray, ...]] = []
    places: list[Indices] = []
    for (_, start), found in zip(problem.tasks, each, strict=True):
        here = slice(start, start + len(found.distance))
        distance[here], along[here], radius[here] = found.distance, found.along, found.radius
        if sum(map(len, places)) + len(found.wide) <= _MOST_ITERATED:
            wide.append((found.X, found.y, found.margins))
            places.append(start + found.wide.astype(np.intp))
    at = np.concatenate(places)
    X, y, margins = (np.concatenate(some) for some in zip(*wide, strict=True))
    changes = Changes(X, y, np.ones(len(y)), margins)
    if not len(at):
        return StreamedNeighbours(pivot, changes, distance, along, radius)
    first = Neighbours(pivot, changes, distance[at], along[at], radius[at])
    better = refine(pivot, changes, first, tolerance, np.arange(len(at)), direction)
    distance[at], along[at], radius[at] = better.distance, better.along, better.radius
    return StreamedNeighbours(pivot, changes, distance, along, radius, at, better.kept, better.iterations)


@dataclass(frozen=True, eq=False)
class StreamedNeighbours(Neighbours):
    """Neighbours whose rows are read again when their models are requested."""

    def first_steps(self, at: Indices) -> FloatArray:
        """Newton steps of these records, (records, parameters)."""
        problem = self.pivot.fit.problem
        assert isinstance(problem, StreamedProblem)
        assert problem.encoder is not None
        found = np.empty((len(at), problem.size))
        ends = [start for _, start in problem.tasks[1:]] + [problem.rows]
        for (task, start), end in zip(problem.tasks, ends, strict=True):
            if not np.any((at >= start) & (at < end)):
                continue
            for part in problem.encoder.parts(task, start):
                here = np.flatnonzero((at >= part.start) & (at < part.start + len(part.y)))
                if here.size:
                    margins = margins_of(self.pivot.fit, part)
                    rows = at[here] - part.start
                    changes = Changes(part.X[rows], part.y[rows], part.weights[rows], margins[rows])
                    found[here] = LowRank.of(self.pivot, changes).newton()[0]
        return found
