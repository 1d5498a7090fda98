"""Profiles of rows that need not fit into memory: the same sums and the same pass, task by task.

Every pass reads the rows anew. One number per record and quantity is held, never n × parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, Indices, InputError
from deniable._parallel import in_order
from deniable.records.certified_radius import RadiusCertificate
from deniable.records.encoder import MOST_LABELS, BlockEncoder, Scan, scan_task
from deniable.records.fit import Fit, margins_of
from deniable.records.inputs import penalties
from deniable.records.losses import Loss
from deniable.records.low_rank import Changes, LowRank, Pivot
from deniable.records.neighbours import Neighbours, lengths, make_pivot
from deniable.records.problem import Part, Problem, Sums, add_up
from deniable.records.refine import refine
from deniable.tables import RowPart, Source

_MOST_ITERATED = 20_000  # most records that are iterated because their certificate is too wide


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
            raise InputError(f"the target must hold classes for loss={loss.name!r}, it has over {MOST_LABELS} values")
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
