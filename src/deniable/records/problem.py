"""A regularised problem and the sums over its records, with bounds on their rounding errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.records.losses import Loss, Margins

Normalization = Literal["mean", "sum"]
ROWS = 1024  # rows per block: bounds the memory, and the length over which sums round
UNIT = EPS / 2  # unit roundoff
LONG = np.longdouble
UNIT_LONG = float(np.finfo(LONG).eps) / 2


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive rows of a problem, the first of them number ``start``."""

    start: int
    X: FloatArray
    y: FloatArray
    weights: FloatArray
    norms: FloatArray

    @property
    def rows(self) -> slice:
        """Where the rows stand among all."""
        return slice(self.start, self.start + len(self.y))


def norms_of(X: FloatArray) -> FloatArray:
    """Upper bounds of the rows' norms."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", X, X)) * (1 + 4e-16 * X.shape[1]))


@dataclass(frozen=True, eq=False)
class Problem:
    """minimise Σ_j s_j·φ(x_jᵀF, y_j) + ½·Σ_k penalty_k·F_k² + tilt·F  (a total, not a mean).

    ``X`` (n, d) already holds the intercept column if there is one; ``penalty`` (d·classes,) is the total penalty
    with all rows in; ``relief`` (d·classes,) is how much of it leaves with one unit of sample weight: Λ where the
    training objective is a mean, 0 where it is a sum.
    """

    loss: Loss
    X: FloatArray
    y: FloatArray
    weights: FloatArray
    penalty: FloatArray
    relief: FloatArray
    classes: int = 1
    tilt: FloatArray | float = 0.0
    norms: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norms", norms_of(self.X))

    @property
    def size(self) -> int:
        """Number of parameters."""
        return int(self.X.shape[1]) * self.classes

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def in_memory(self) -> bool:
        """Whether ``X`` holds the rows."""
        return True

    @property
    def longest(self) -> float:
        """Upper bound of the rows' norms."""
        return float(self.norms.max(initial=0.0))

    @property
    def heaviest(self) -> float:
        """Largest sample weight."""
        return float(self.weights.max())

    def longest_found(self) -> tuple[float, str]:
        """Norm of the longest row, and which it is."""
        worst = int(np.argmax(self.norms))
        return float(np.linalg.norm(self.X[worst])), f"row {worst}"

    @property
    def typical_weight(self) -> float:
        """Median sample weight."""
        return float(np.median(self.weights))

    def blocks(self, rows: int = ROWS) -> Iterator[slice]:
        """Row blocks."""
        for start in range(0, self.X.shape[0], rows):
            yield slice(start, start + rows)

    def parts(self) -> Iterator[Part]:
        """All rows, ``ROWS`` at a time."""
        for rows in self.blocks():
            yield Part(rows.start, self.X[rows], self.y[rows], self.weights[rows], self.norms[rows])

    def sums(self, centre: FloatArray, margins: FloatArray | None = None, *, precise: bool = True) -> Sums:
        """What the objective's derivatives at ``centre`` need from the rows, see :func:`add_up`."""
        return add_up(self, self.parts(), centre, margins, precise=precise)


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
        return hessian_rounding(self.mass, self.slices, self.largest_margin)


def add_up(
    problem: Problem, parts: Iterable[Part], centre: FloatArray, margins: FloatArray | None, *, precise: bool
) -> Sums:
    """Return the sums over ``parts``, leaving their margins in ``margins``; ``precise`` ones in extended precision."""
    number = LONG if precise else np.float64
    d, k = int(problem.X.shape[1]), problem.classes
    F: Margins = centre.reshape(-1, k).astype(number)
    centre_norm = float(np.linalg.norm(centre))
    gradient, H = np.zeros(problem.size, dtype=LONG), np.zeros((d, k, d, k))
    error = size = mass = value = scale = largest = 0.0
    slices = 0
    for part in parts:
        X: Margins = part.X.astype(number, copy=False)
        t = X @ F
        t64 = t.astype(np.float64, copy=False)
        if margins is not None:
            margins[part.rows] = t64
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


def hessian_rounding(mass: float, slices: float, largest_margin: float) -> float:
    """Bound, in spectral norm, the rounding error of a sum of (x xᵀ) ⊗ φ'' with this trace."""
    return float(2 * UNIT * (ROWS + slices + 20 + 2 * largest_margin) * mass)
