"""A regularised fit accurate to the last digits: Newton's method with the gradient summed in extended precision."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.records.losses import Margins
from deniable.records.problem import LONG, ROWS, UNIT, Part, Problem, Sums, add_curvature, hessian_rounding, symmetric

_STEPS = 200  # of Newton, after which it is said that they do not converge; about ten are enough


@dataclass(frozen=True, eq=False)
class Fit:
    """The optimum A(x) and what the certificates need.

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
        """Return the margins of all rows, which must be in memory."""
        assert self.margins is not None
        return self.margins


def margins_of(base: Fit, part: Part) -> FloatArray:
    """Return the margins of some rows at the centre, rounded from extended precision."""
    if base.margins is not None:
        return base.margins[part.rows]
    F: Margins = base.centre.reshape(-1, base.problem.classes).astype(LONG)
    X: Margins = part.X.astype(LONG)
    return np.asarray((X @ F).astype(np.float64))


def fit(problem: Problem, start: FloatArray | None = None) -> Fit:
    """Return the optimum by damped Newton steps, to the precision of floating-point numbers.

    Sums are in double precision until a step changes the centre by less than a millionth, and extended from then on.

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
    for iteration in range(_STEPS):
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


def fit_at(problem: Problem, centre: FloatArray) -> Fit:
    """Return a :class:`Fit` at a point that is not the optimum (``radius`` is infinite)."""
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
    return symmetric(H) + np.diag(penalty)


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
    return hessian_rounding(mass, problem.X.shape[0] / ROWS, largest)


def _newton_step(H: FloatArray, gradient: FloatArray) -> FloatArray:
    try:
        return np.asarray(-np.linalg.solve(H, gradient))
    except np.linalg.LinAlgError:
        return np.asarray(-np.linalg.lstsq(H, gradient, rcond=None)[0])
