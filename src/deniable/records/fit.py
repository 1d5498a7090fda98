"""A regularised fit that can be trusted to the last digits: Newton with the gradient summed in extended precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS
from deniable.records.losses import Loss, Margins

Normalization = Literal["mean", "sum"]
ROWS = 1024  # rows per block: bounds the memory, and the length over which sums round

UNIT = EPS / 2
_LONG = np.longdouble
_UNIT_LONG = float(np.finfo(_LONG).eps) / 2


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
        """What the objective's derivatives at ``centre`` need of the rows; :func:`add_up`."""
        return add_up(self, self.parts(), centre, margins, precise=precise)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows at one centre; those of several parts add up, in any grouping up to rounding.

    ``gradient`` is Σ s_j φ'_j x_j in extended precision, wrong by at most ``error`` of its units beside what adding
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
        total = self.gradient + (problem.penalty.astype(_LONG) * centre + problem.tilt)
        gradient = total.astype(np.float64)
        # adding a slice rounds by a unit of at most what all hold together
        error = self.error + self.slices * self.size + 2 * float(np.linalg.norm(problem.penalty * centre))
        return gradient, 2 * _UNIT_LONG * error + 2 * UNIT * float(np.linalg.norm(gradient))

    @property
    def hessian_error(self) -> float:
        """Bound, in spectral norm, of the rounding error of ``hessian``."""
        return _hessian_rounding(self.mass, self.slices, self.largest_margin)


def add_up(
    problem: Problem, parts: Iterable[Part], centre: FloatArray, margins: FloatArray | None, *, precise: bool
) -> Sums:
    """Return the sums over ``parts``, leaving their margins in ``margins``; ``precise`` ones in extended precision."""
    number = _LONG if precise else np.float64
    d, k = int(problem.X.shape[1]), problem.classes
    F: Margins = centre.reshape(-1, k).astype(number)
    centre_norm = float(np.linalg.norm(centre))
    gradient, H = np.zeros(problem.size, dtype=_LONG), np.zeros((d, k, d, k))
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
    return Sums(gradient, error, size, _symmetric(H), mass, value, scale, largest, slices)


def add_curvature(H: FloatArray, X: FloatArray, A: FloatArray) -> None:
    """Add Σ_j (x_j x_jᵀ) ⊗ A_j to H (d, k, d, k), in the blocks on and above the diagonal."""
    k = A.shape[1]
    for a in range(k):
        for b in range(a, k):
            if a == b:  # half the work: the product of a matrix with itself
                root = np.sqrt(A[:, a, a, None]) * X
                H[:, a, :, a] += root.T @ root
            else:
                H[:, a, :, b] += X.T @ (A[:, a, b, None] * X)


@dataclass(frozen=True, eq=False)
class Fit:
    """The optimum A(x) and what the certificates need to know about it.

    ``gradient`` is the true gradient at ``centre`` up to ``gradient_error`` (in norm): it need not be zero, because
    the leave-one-out pass subtracts it. ``radius`` bounds the distance of ``centre`` to the exact optimum.
    ``hessian`` is that of the rows, without the penalty. ``margins`` is ``None`` where the rows are not in memory.
    """

    problem: Problem
    centre: FloatArray
    margins: FloatArray | None = field(repr=False)
    gradient: FloatArray
    gradient_error: float
    radius: float
    iterations: int
    hessian: FloatArray = field(repr=False)
    hessian_error: float
    largest_margin: float

    def held_margins(self) -> FloatArray:
        """The margins of all rows, which must be in memory."""
        assert self.margins is not None
        return self.margins


def margins_of(base: Fit, part: Part) -> FloatArray:
    """The margins of some rows at the centre, rounded from extended precision."""
    if base.margins is not None:
        return base.margins[part.rows]
    F: Margins = base.centre.reshape(-1, base.problem.classes).astype(_LONG)
    X: Margins = part.X.astype(_LONG)
    return np.asarray((X @ F).astype(np.float64))


def fit(problem: Problem, start: FloatArray | None = None, *, max_iterations: int = 200) -> Fit:
    """Return the optimum by damped Newton steps, to the precision of floating-point numbers.

    Sums are plain until a step changes the centre by less than a millionth, and in extended precision from then on.

    Raises
    ------
    InputError
        if the steps do not converge, as on separable data without regularisation.
    """
    centre = np.zeros(problem.size) if start is None else start.astype(np.float64)
    margins = np.empty((problem.X.shape[0], problem.classes)) if problem.in_memory else None
    precise = False
    sums = problem.sums(centre, precise=precise)
    best, stalled = np.inf, 0
    for iteration in range(max_iterations):
        gradient = sums.total_gradient(problem, centre)[0]
        size = float(np.linalg.norm(gradient))
        stalled = 0 if size < 0.5 * best else stalled + 1
        best = min(best, size)
        step = _newton_step(sums.hessian + np.diag(problem.penalty), gradient)
        moved, length = float(np.linalg.norm(step)), float(np.linalg.norm(centre))
        if precise and (size == 0 or moved <= 4 * UNIT * length or (stalled >= 2 and size <= 1e-11 * sums.scale)):
            return _finished(problem, centre, margins, sums, iteration)
        if not precise and (moved <= 1e-6 * length or size == 0 or stalled >= 2):
            precise, best, stalled = True, np.inf, 0
        rate, value = 1.0, sums.objective(problem, centre)
        while rate > 1e-10:
            trial = centre + rate * step
            sums = problem.sums(trial, margins, precise=precise)
            new = sums.objective(problem, trial)
            if new <= value + 1e-4 * rate * float(gradient @ step) or abs(new - value) <= 1e-12 * abs(value):
                break
            rate /= 2
        centre = trial
        if not np.all(np.isfinite(centre)) or sums.largest_margin > 1e6:
            break
    raise InputError(
        f"the fit does not converge (gradient norm {size:.3g} after {iteration + 1} Newton steps); "
        "without enough regularization separable or collinear data have no optimum: raise regularization"
    )


def fitted_at(problem: Problem, centre: FloatArray) -> Fit:
    """What :func:`fit` said when it ended at ``centre``."""
    margins = np.empty((problem.X.shape[0], problem.classes)) if problem.in_memory else None
    return _finished(problem, centre, margins, problem.sums(centre, margins), 0)


def fit_at(problem: Problem, centre: FloatArray) -> Fit:
    """What a :class:`Fit` says, at a point that is not the optimum (``radius`` is infinite)."""
    margins = np.empty((problem.X.shape[0], problem.classes))
    sums = problem.sums(centre, margins)
    gradient, error = sums.total_gradient(problem, centre)
    return Fit(
        problem, centre, margins, gradient, error, np.inf, 0, sums.hessian, sums.hessian_error, sums.largest_margin
    )


def _finished(problem: Problem, centre: FloatArray, margins: FloatArray | None, sums: Sums, iterations: int) -> Fit:
    gradient, error = sums.total_gradient(problem, centre)
    size = float(np.linalg.norm(gradient)) + error
    ridge = float(problem.penalty.min())
    H = sums.hessian + np.diag(problem.penalty)
    if problem.loss.self_concordance is None:
        assert margins is not None
        radius = size / ridge if ridge > 0 else local_bound(problem, margins, H, size)
    else:
        values = np.linalg.eigvalsh(H)
        smallest = max(float(values[0]) - sums.hessian_error - 8 * UNIT * len(H) * float(values[-1]), ridge)
        radius = distance_bound(problem, smallest, size)
        radius = min(radius, size / ridge) if ridge > 0 else radius
    separated = sums.largest_margin > 30 and float(problem.penalty.max()) == 0
    if separated and problem.loss.name in ("logistic", "softmax", "poisson"):
        raise InputError(
            "regularization=0 and the data are separable: the optimum lies at infinity; give a regularization above 0"
        )
    return Fit(
        problem, centre, margins, gradient, error, radius, iterations,
        sums.hessian, sums.hessian_error, sums.largest_margin,
    )  # fmt: skip


def distance_bound(problem: Problem, curvature: float, gradient_norm: float) -> float:
    """Bound the distance to the optimum by the gradient norm and the Hessian's smallest eigenvalue (self-concordance).

    With q = M·R·‖∇F‖/λ_min < 1 the optimum is within −log(1 − q)/(M·R); for constant curvature ‖∇F‖/λ_min.
    """
    if curvature <= 0 or problem.loss.self_concordance is None:
        return float("inf")
    reach = problem.loss.self_concordance * problem.longest
    q = reach * gradient_norm / curvature
    if reach == 0:
        return float(gradient_norm / curvature)
    return float(-np.log1p(-q) / reach * (1 + 1e-12)) if q < 1 else float("inf")


def local_bound(problem: Problem, margins: FloatArray, H: FloatArray, gradient_norm: float) -> float:
    """Bound the distance to the optimum without a ridge, from the Hessian H (of ``margins``) at the point itself.

    By self-concordance (:func:`distance_bound`) or, for a piecewise quadratic loss, as follows. Within
    ρ = 2‖∇F‖/λ_min only rows whose kink is nearer than ρ‖x_j‖ change their curvature. If that costs less than half of
    λ_min, the objective is λ_min/2-strongly convex in that ball and the optimum lies in it.
    """
    rounding = hessian_error(problem, margins) + 8 * UNIT * H.shape[0] * float(np.abs(H).sum())
    m = float(np.linalg.eigvalsh(H)[0]) - rounding
    if problem.loss.self_concordance is not None:
        return distance_bound(problem, m, gradient_norm)
    if m <= 0:
        return float("inf")
    radius = 2 * gradient_norm / m * (1 + 1e-12)
    near = problem.loss.kink(margins, problem.y) <= radius * problem.norms * (1 + 1e-12) + 1e-14
    lost = (problem.loss.smoothness or np.inf) * float(problem.weights[near] @ problem.norms[near] ** 2)
    return radius if lost <= m / 2 else float("inf")


def hessian_at(problem: Problem, margins: FloatArray, penalty: FloatArray) -> FloatArray:
    """Σ_j s_j·(x_j x_jᵀ) ⊗ φ''(t_j) + diag(penalty)."""
    d, k = problem.X.shape[1], problem.classes
    H = np.zeros((d, k, d, k))
    for part in problem.parts():
        add_curvature(H, part.X, problem.loss.curvature(margins[part.rows], part.y) * part.weights[:, None, None])
    return _symmetric(H) + np.diag(penalty)


def _symmetric(H: FloatArray) -> FloatArray:
    """The matrix of a Hessian of which only the blocks [:, a, :, b], a ≤ b, are filled."""
    d, k = H.shape[:2]
    for a in range(k):
        for b in range(a):
            H[:, a, :, b] = H[:, b, :, a].T
    flat = H.reshape(d * k, d * k)
    return (flat + flat.T) / 2


def change_error(problem: Problem, margins: FloatArray) -> float:
    """Rounding, in units, of the summed changes of slopes that are differences of clipped numbers (kinked losses)."""
    if problem.loss.self_concordance is not None:
        return 0.0
    size = 1 + np.abs(margins[:, 0]) + np.abs(problem.y)
    return float(8 * (problem.loss.smoothness or np.inf) * (problem.weights * problem.norms) @ size)


def hessian_error(problem: Problem, margins: FloatArray) -> float:
    """Bound, in spectral norm, the rounding error of :func:`hessian_at` apart from the penalty."""
    mass = 0.0
    for rows in problem.blocks():
        A = problem.loss.curvature(margins[rows], problem.y[rows]) * problem.weights[rows, None, None]
        mass += float(np.einsum("ijj->i", A) @ problem.norms[rows] ** 2)
    largest = float(np.max(np.abs(margins), initial=0.0))
    return _hessian_rounding(mass, problem.X.shape[0] / ROWS, largest)


def _hessian_rounding(mass: float, slices: float, largest_margin: float) -> float:
    """Bound, in spectral norm, the rounding error of a sum of (x xᵀ) ⊗ φ'' with this trace."""
    return float(2 * UNIT * (ROWS + slices + 20 + 2 * largest_margin) * mass)


def _newton_step(H: FloatArray, gradient: FloatArray) -> FloatArray:
    try:
        return np.asarray(-np.linalg.solve(H, gradient))
    except np.linalg.LinAlgError:
        return np.asarray(-np.linalg.lstsq(H, gradient, rcond=None)[0])
