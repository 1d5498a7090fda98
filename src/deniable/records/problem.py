"""A regularised problem and the sums over its records, with bounds on their rounding errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, Indices, InputError, number, numbers
from deniable._floats import EPS
from deniable._parallel import in_order
from deniable.records.losses import Loss, Margins

Normalization = Literal["mean", "sum"]
Intercept = Literal["none", "regularized", "unregularized"]
ROWS = 1024  # rows per block: bounds the memory, and the length over which sums round
UNIT = EPS / 2  # unit roundoff
LONG = np.longdouble
UNIT_LONG = float(np.finfo(LONG).eps) / 2


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a problem; consecutive ones, the first of them number ``start``, unless they were picked out."""

    start: int
    X: FloatArray
    y: FloatArray
    weights: FloatArray
    norms: FloatArray

    @classmethod
    def of(cls, start: int, X: FloatArray, y: FloatArray, weights: FloatArray) -> Part:
        """Return rows with upper bounds of their norms."""
        return cls(start, X, y, weights, np.sqrt(np.einsum("ij,ij->i", X, X)) * (1 + 4e-16 * X.shape[1]))

    @classmethod
    def joined(cls, parts: Iterable[Part]) -> Part:
        """Return rows of several parts as one."""
        each = zip(*((part.X, part.y, part.weights, part.norms) for part in parts), strict=True)
        return cls(0, *map(np.concatenate, each))

    def __getitem__(self, rows: slice | Indices) -> Part:
        return Part(self.start, self.X[rows], self.y[rows], self.weights[rows], self.norms[rows])


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in memory."""

    X: FloatArray
    y: FloatArray
    weights: FloatArray

    def parts(self, start: int) -> Iterator[Part]:
        """Yield the rows, ``ROWS`` at a time; the first is row ``start`` of all."""
        for at in range(0, len(self.y), ROWS):
            rows = slice(at, at + ROWS)
            yield Part.of(start + at, self.X[rows], self.y[rows], self.weights[rows])


class RowTask(Protocol):
    """Consecutive rows, which are read anew in every pass."""

    def parts(self, start: int) -> Iterator[Part]:
        """Yield the rows, ``ROWS`` at a time; the first is row ``start`` of all."""


@dataclass(frozen=True, eq=False)
class Problem:
    """minimise Σ_j s_j·φ(x_jᵀF, y_j) + ½·Σ_k penalty_k·F_k² + tilt·F  (a total, not a mean).

    The rows are those of ``tasks``, each with the number of its first row, and hold the intercept column if there is
    one; ``penalty`` (columns·classes,) is the total penalty with all rows in; ``relief`` (columns·classes,) is how much
    of it leaves with one unit of sample weight: Λ where the training objective is a mean, 0 where it is a sum.
    """

    loss: Loss
    tasks: tuple[tuple[RowTask, int], ...] = field(repr=False)
    count: int  # of rows
    penalty: FloatArray
    relief: FloatArray
    classes: int
    intercept: bool  # whether the last column is one of ones
    longest: float  # norm of the longest row
    longest_at: str
    heaviest: float = 1.0  # largest sample weight
    typical_weight: float = 1.0
    tilt: FloatArray | float = 0.0
    n_jobs: int | None = None
    held: Any = field(default=None, repr=False)  # what must stay alive while rows are read

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.penalty)

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self.size // self.classes

    @property
    def norm_bound(self) -> float:
        """Upper bound of the rows' norms."""
        return self.longest * (1 + 4e-16 * (self.columns + 4))

    @property
    def total_penalty(self) -> float:
        """nΛ: the strong convexity of the summed objective (0 if a parameter is unpenalised)."""
        return float(self.penalty.min())

    @property
    def bare(self) -> Problem:
        """The problem without its rows: what a worker needs besides its own task."""
        return replace(self, tasks=(), held=None)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in memory."""
        return isinstance(self.tasks[0][0], Rows)

    @property
    def rows(self) -> Rows:
        """The rows, which must be in memory."""
        return cast(Rows, self.tasks[0][0])

    def parts(self) -> Iterator[Part]:
        """All rows, ``ROWS`` at a time."""
        for task, start in self.tasks:
            yield from task.parts(start)

    def parts_with(self, at: Indices) -> Iterator[tuple[Part, Indices]]:
        """Yield the rows whose numbers are ``at``, and where in ``at`` they stand; tasks without any are not read."""
        ends = [start for _, start in self.tasks[1:]] + [self.count]
        for (task, start), end in zip(self.tasks, ends, strict=True):
            if np.any((at >= start) & (at < end)):
                for part in task.parts(start):
                    here = np.flatnonzero((at >= part.start) & (at < part.start + len(part.y)))
                    if here.size:
                        yield part[at[here] - part.start], here

    def sums(self, centre: FloatArray, *, precise: bool = True) -> Sums:
        """What the objective's derivatives at ``centre`` need from the rows, task by task in order."""
        return reduce(add, in_order(_sums_of, self.tasks, self.n_jobs, self.bare, centre, precise))


def _sums_of(problem: Problem, centre: FloatArray, precise: bool, task: tuple[RowTask, int]) -> Sums:
    return add_up(problem, task[0].parts(task[1]), centre, precise=precise)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows at one centre; those of several parts add up, in any grouping up to rounding.

    ``gradient`` is Σ s_j φ'_j x_j in extended precision, wrong by at most ``error`` of its units plus what adding
    ``slices`` parts of total norm ``size`` rounds; ``hessian`` is Σ s_j (x_j x_jᵀ) ⊗ φ''_j, of trace at most ``mass``;
    ``scale`` is Σ s_j‖x_j‖.
    """

    gradient: Margins
    error: float
    size: float
    hessian: FloatArray
    mass: float
    value: float
    scale: float
    largest_margin: float
    slices: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.gradient + other.gradient,
            self.error + other.error,
            self.size + other.size,
            self.hessian + other.hessian,
            self.mass + other.mass,
            self.value + other.value,
            self.scale + other.scale,
            max(self.largest_margin, other.largest_margin),
            self.slices + other.slices,
        )

    def objective(self, problem: Problem, centre: FloatArray) -> float:
        """The objective itself."""
        return float(self.value + problem.penalty @ centre**2 / 2 + np.sum(problem.tilt * centre))

    def total_gradient(self, problem: Problem, centre: FloatArray) -> tuple[FloatArray, float]:
        """The objective's gradient and a bound of its rounding error (of a precise sum)."""
        total = self.gradient + (problem.penalty.astype(LONG) * centre + problem.tilt)
        gradient = total.astype(np.float64)
        # adding a slice rounds by a unit of at most what all hold together
        error = self.error + self.slices * self.size + 2 * float(np.linalg.norm(problem.penalty * centre))
        return gradient, 2 * UNIT_LONG * error + 2 * UNIT * float(np.linalg.norm(gradient))

    @property
    def hessian_error(self) -> float:
        """Bound, in spectral norm, of the rounding error of ``hessian``."""
        return float(2 * UNIT * (ROWS + self.slices + 20 + 2 * self.largest_margin) * self.mass)


def add_up(problem: Problem, parts: Iterable[Part], centre: FloatArray, *, precise: bool) -> Sums:
    """Return the sums over ``parts``; ``precise`` ones in extended precision."""
    kind = LONG if precise else np.float64
    d, k = problem.columns, problem.classes
    F: Margins = centre.reshape(-1, k).astype(kind)
    centre_norm = float(np.linalg.norm(centre))
    gradient, H = np.zeros(problem.size, dtype=LONG), np.zeros((d, k, d, k))
    error = size = mass = value = scale = largest = 0.0
    slices = 0
    for part in parts:
        X: Margins = part.X.astype(kind, copy=False)
        t = X @ F
        t64 = t.astype(np.float64, copy=False)
        slope = problem.loss.slope(t, part.y) * part.weights[:, None]
        gradient += (X.T @ slope).ravel()
        A = problem.loss.curvature(t64, part.y) * part.weights[:, None, None]
        add_curvature(H, part.X, A)
        steep = np.abs(A).max(axis=(1, 2))
        own = float(np.linalg.norm(slope.astype(np.float64), axis=1) @ part.norms)
        size += own
        error += (ROWS + 64 + len(part.y)) * own + 8 * float(steep @ part.norms)
        error += (d + 4) * centre_norm * float(steep @ part.norms**2)
        mass += float(np.einsum("ijj->i", A) @ part.norms**2)
        with np.errstate(over="ignore"):
            value += float(problem.loss.value(t64, part.y) @ part.weights)
        scale += float(part.weights @ part.norms)
        largest = max(largest, float(np.max(np.abs(t64), initial=0.0)))
        slices += 1
    return Sums(gradient, error, size, symmetric(H), mass, value, scale, largest, slices)


def add_curvature(H: FloatArray, X: FloatArray, A: FloatArray) -> None:
    """Add Σ_j (x_j x_jᵀ) ⊗ A_j to H (d, k, d, k), in the blocks on and above the diagonal."""
    k = A.shape[1]
    for a in range(k):
        for b in range(a, k):
            if a == b:  # the product of a matrix with its own transpose takes half the work
                root = np.sqrt(A[:, a, a, None]) * X
                H[:, a, :, a] += root.T @ root
            else:
                H[:, a, :, b] += X.T @ (A[:, a, b, None] * X)


def symmetric(H: FloatArray) -> FloatArray:
    """The matrix of a Hessian of which only the blocks [:, a, :, b], a ≤ b, are filled."""
    d, k = H.shape[:2]
    for a in range(k):
        for b in range(a):
            H[:, a, :, b] = H[:, b, :, a].T
    flat = H.reshape(d * k, d * k)
    return (flat + flat.T) / 2


def make_problem(
    X: ArrayLike,
    y: ArrayLike,
    regularization: float,
    loss: Loss,
    intercept: str,
    sample_weight: ArrayLike | None,
    normalization: str,
) -> Problem:
    """Check the rows and state the total objective."""
    rows = numbers("X", X)
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
        raise InputError(f"X must be a table of at least two rows, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        at = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(f"X must be finite, row {at[0]} column {at[1]} is not; drop or impute it")
    target, classes = loss.targets(y)
    if target.shape != (len(rows),):
        raise InputError(f"y must have one entry per row of X, got shape {target.shape} for {len(rows)} rows")
    if not np.isfinite(target).all():
        raise InputError(f"y must be finite, row {int(np.flatnonzero(~np.isfinite(target))[0])} is not")
    if intercept != "none":
        rows = np.column_stack([rows, np.ones(len(rows))])
    weights = np.ones(len(rows)) if sample_weight is None else _weights(sample_weight, len(rows))
    penalty, relief = penalties(rows.shape[1], classes, float(weights.sum()), regularization, intercept, normalization)
    worst = int(np.argmax(np.einsum("ij,ij->i", rows, rows)))
    return Problem(
        loss=loss,
        tasks=((Rows(np.ascontiguousarray(rows), target, weights), 0),),
        count=len(rows),
        penalty=penalty,
        relief=relief,
        classes=classes,
        intercept=intercept != "none",
        longest=float(np.linalg.norm(rows[worst])),
        longest_at=f"row {worst}",
        heaviest=float(weights.max()),
        typical_weight=float(np.median(weights)),
    )


def _weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    weights = numbers("sample_weight", sample_weight, above=0.0, below=float("inf"), hint="drop rows of weight 0")
    if weights.shape != (n,):
        raise InputError(f"sample_weight must have one entry per row of X, got shape {weights.shape} for {n} rows")
    return weights


def penalties(
    columns: int, classes: int, weight: float, regularization: float, intercept: str, normalization: str
) -> tuple[FloatArray, FloatArray]:
    """Return the total penalty of each parameter, and how much of it leaves with one unit of the total ``weight``."""
    if classes > 1 and intercept == "unregularized":
        raise InputError(
            "intercept='unregularized' has no unique optimum with loss='softmax' (adding a constant to every class"
            " changes nothing); use intercept='regularized'"
        )
    penalised = np.ones((columns, classes))
    if intercept == "unregularized":
        penalised[-1] = 0.0
    unit = number("regularization", regularization, at_least=0.0, below=float("inf")) * penalised.ravel()
    return (unit * weight, unit) if normalization == "mean" else (unit, np.zeros_like(unit))
