"""A regularised fit that can be trusted to the last digits: Newton with the gradient summed in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.records.losses import Loss

Normalization = Literal["mean", "sum"]
ROWS = 1024  # rows per block: bounds the memory, and the length over which sums round

UNIT = float(np.finfo(np.float64).eps) / 2
_LONG = np.longdouble
_UNIT_LONG = float(np.finfo(_LONG).eps) / 2


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
        object.__setattr__(
            self, "norms", np.sqrt(np.einsum("ij,ij->i", self.X, self.X)) * (1 + 4e-16 * self.X.shape[1])
        )

    @property
    def size(self) -> int:
        """Number of parameters."""
        return int(self.X.shape[1]) * self.classes

    def blocks(self, rows: int = ROWS) -> Iterator[slice]:
        """Row blocks."""
        for start in range(0, self.X.shape[0], rows):
            yield slice(start, start + rows)


@dataclass(frozen=True, eq=False)
class Fit:
    """The optimum A(x) and what the certificates need to know about it.

    ``gradient`` is the true gradient at ``centre`` up to ``gradient_error`` (in norm): it need not be zero, because
    the leave-one-out pass subtracts it. ``radius`` bounds the distance of ``centre`` to the exact optimum.
    """

    problem: Problem
    centre: FloatArray
    margins: FloatArray = field(repr=False)
    gradient: FloatArray
    gradient_error: float
    radius: float
    iterations: int


def fit(problem: Problem, start: FloatArray | None = None, *, max_iterations: int = 200) -> Fit:
    """Return the optimum by damped Newton steps, to the precision of floating-point numbers.

    Raises
    ------
    InputError
        if the steps do not converge, as on separable data without regularisation.
    """
    centre = np.zeros(problem.size) if start is None else start.astype(np.float64)
    value = _value(problem, centre)
    best = np.inf
    stalled = 0
    for iteration in range(max_iterations):
        margins, gradient, error = gradient_at(problem, centre)
        size = float(np.linalg.norm(gradient))
        stalled = 0 if size < 0.5 * best else stalled + 1
        best = min(best, size)
        H = hessian_at(problem, margins, problem.penalty)
        step = _newton_step(H, gradient)
        tiny = float(np.linalg.norm(step)) <= 4 * UNIT * float(np.linalg.norm(centre))
        scale = float(np.sum(problem.weights * problem.norms)) or 1.0
        if size == 0 or tiny or (stalled >= 2 and size <= 1e-11 * scale):
            return _finished(problem, centre, margins, gradient, error, iteration)
        rate = 1.0
        while rate > 1e-10:
            trial = centre + rate * step
            new = _value(problem, trial)
            if new <= value + 1e-4 * rate * float(gradient @ step) or abs(new - value) <= 1e-12 * abs(value):
                break
            rate /= 2
        centre, value = trial, new
        if not np.all(np.isfinite(centre)) or float(np.max(np.abs(margins))) > 1e6:
            break
    raise InputError(
        f"the fit does not converge (gradient norm {size:.3g} after {iteration + 1} Newton steps); "
        "without enough regularization separable or collinear data have no optimum: raise regularization"
    )


def _finished(
    problem: Problem, centre: FloatArray, margins: FloatArray, gradient: FloatArray, error: float, iterations: int
) -> Fit:
    size = float(np.linalg.norm(gradient)) + error
    ridge = float(problem.penalty.min())
    if problem.loss.self_concordance is None:
        H = hessian_at(problem, margins, problem.penalty)
        radius = size / ridge if ridge > 0 else local_bound(problem, margins, H, size)
    else:
        radius = distance_bound(problem, smallest_eigenvalue(problem, margins, problem.penalty), size)
        radius = min(radius, size / ridge) if ridge > 0 else radius
    separated = float(np.max(np.abs(margins))) > 30 and float(problem.penalty.max()) == 0
    if separated and problem.loss.name in ("logistic", "softmax", "poisson"):
        raise InputError(
            "regularization=0 and the data are separable: the optimum lies at infinity; give a regularization above 0"
        )
    return Fit(problem, centre, margins, gradient, error, radius, iterations)


def distance_bound(problem: Problem, curvature: float, gradient_norm: float) -> float:
    """Bound the distance to the optimum by the gradient norm and the Hessian's smallest eigenvalue (self-concordance).

    With q = M·R·‖∇F‖/λ_min < 1 the optimum is within −log(1 − q)/(M·R); for constant curvature ‖∇F‖/λ_min.
    """
    if curvature <= 0 or problem.loss.self_concordance is None:
        return float("inf")
    reach = problem.loss.self_concordance * float(problem.norms.max())
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


def gradient_at(problem: Problem, centre: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return margins, gradient and a bound of the gradient's rounding error, all summed in extended precision."""
    F = centre.reshape(-1, problem.classes).astype(_LONG)
    total = problem.penalty.astype(_LONG) * centre + problem.tilt
    margins = np.empty((problem.X.shape[0], problem.classes))
    error = float(np.linalg.norm(np.abs(problem.penalty * centre)))
    centre_norm = float(np.linalg.norm(centre))
    for rows in problem.blocks():
        X = problem.X[rows].astype(_LONG)
        t = X @ F
        slope = problem.loss.slope(t, problem.y[rows]) * problem.weights[rows, None]
        total = total + (X.T @ slope).ravel()
        margins[rows] = t
        steep = problem.weights[rows] * np.abs(problem.loss.curvature(margins[rows], problem.y[rows])).max(axis=(1, 2))
        size = np.linalg.norm(slope.astype(np.float64), axis=1) @ problem.norms[rows]
        error += (ROWS + 64 + X.shape[0]) * float(size) + 8 * float(steep @ problem.norms[rows])
        error += (X.shape[1] + 4) * centre_norm * float(steep @ problem.norms[rows] ** 2)
    gradient = total.astype(np.float64)
    return margins, gradient, 2 * _UNIT_LONG * error + 2 * UNIT * float(np.linalg.norm(gradient))


def hessian_at(problem: Problem, margins: FloatArray, penalty: FloatArray) -> FloatArray:
    """Σ_j s_j·(x_j x_jᵀ) ⊗ φ''(t_j) + diag(penalty)."""
    d, k = problem.X.shape[1], problem.classes
    H = np.zeros((d, k, d, k))
    for rows in problem.blocks():
        X = problem.X[rows]
        A = problem.loss.curvature(margins[rows], problem.y[rows]) * problem.weights[rows, None, None]
        for a in range(k):
            for b in range(a, k):
                H[:, a, :, b] += X.T @ (A[:, a, b, None] * X)
    for a in range(k):
        for b in range(a):
            H[:, a, :, b] = H[:, b, :, a].T
    flat = H.reshape(d * k, d * k)
    return (flat + flat.T) / 2 + np.diag(penalty)


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
    return float(2 * UNIT * (ROWS + problem.X.shape[0] / ROWS + 16 + 2 * largest) * mass)


def smallest_eigenvalue(problem: Problem, margins: FloatArray, penalty: FloatArray) -> float:
    """Lower bound of the Hessian's smallest eigenvalue, at least the smallest penalty."""
    H = hessian_at(problem, margins, penalty)
    values = np.linalg.eigvalsh(H)
    rounding = hessian_error(problem, margins) + 8 * UNIT * H.shape[0] * float(values[-1])
    return float(max(values[0] - rounding, penalty.min()))


def _value(problem: Problem, centre: FloatArray) -> float:
    margins = problem.X @ centre.reshape(-1, problem.classes)
    with np.errstate(over="ignore"):
        loss = float(problem.loss.value(margins, problem.y) @ problem.weights)
    return float(loss + problem.penalty @ centre**2 / 2 + np.sum(problem.tilt * centre))


def _newton_step(H: FloatArray, gradient: FloatArray) -> FloatArray:
    try:
        return np.asarray(-np.linalg.solve(H, gradient))
    except np.linalg.LinAlgError:
        return np.asarray(-np.linalg.lstsq(H, gradient, rcond=None)[0])
