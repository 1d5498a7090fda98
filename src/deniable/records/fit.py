"""A regularised fit accurate to the last digits: Newton's method with the gradient summed in extended precision."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.records.losses import Margins
from deniable.records.problem import LONG, UNIT, Part, Problem, Sums

_STEPS = 200  # of Newton, after which it is said that they do not converge; about ten are enough


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum A(x) and what the certificates need.

    ``gradient`` is the true gradient at ``centre`` up to ``gradient_error`` (in norm): it need not be zero, because
    the leave-one-out pass subtracts it. ``radius`` bounds the distance of ``centre`` to the exact optimum.
    ``hessian`` is that of the rows, without the penalty.
    """

    problem: Problem
    centre: FloatArray
    gradient: FloatArray
    gradient_error: float
    radius: float
    iterations: int
    hessian: FloatArray = field(repr=False)
    hessian_error: float
    largest_margin: float

    @classmethod
    def at(cls, problem: Problem, centre: FloatArray, sums: Sums | None = None, iterations: int = 0) -> Optimum:
        """Return what is known at a point, the optimum or not (``radius`` is infinite)."""
        sums = problem.sums(centre) if sums is None else sums
        gradient, error = sums.total_gradient(problem, centre)
        return cls(
            problem, centre, gradient, error, np.inf, iterations, sums.hessian, sums.hessian_error, sums.largest_margin
        )

    def margins(self, part: Part) -> FloatArray:
        """Return the margins of some rows at the centre, rounded from extended precision."""
        F: Margins = self.centre.reshape(-1, self.problem.classes).astype(LONG)
        X: Margins = part.X.astype(LONG)
        return np.asarray((X @ F).astype(np.float64))


def fit(problem: Problem, start: FloatArray | None = None) -> Optimum:
    """Return the optimum by damped Newton steps, to the precision of floating-point numbers.

    Sums are in double precision until a step changes the centre by less than a millionth, and extended from then on.

    Raises
    ------
    InputError
        if the steps do not converge, as on separable data without regularisation.
    """
    centre = np.zeros(problem.size) if start is None else start.astype(np.float64)
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
            return _with_radius(Optimum.at(problem, centre, sums, iteration), sums)
        if not precise and (moved <= 1e-6 * length or size == 0 or stalled >= 2):
            precise, best, stalled = True, np.inf, 0
        rate, value = 1.0, sums.objective(problem, centre)
        while rate > 1e-10:
            trial = centre + rate * step
            sums = problem.sums(trial, precise=precise)
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


def _with_radius(found: Optimum, sums: Sums) -> Optimum:
    """Return the fit with the radius in which the exact optimum lies."""
    problem = found.problem
    separated = sums.largest_margin > 30 and float(problem.penalty.max()) == 0
    if separated and problem.loss.name in ("logistic", "softmax", "poisson"):
        raise InputError(
            "regularization=0 and the data are separable: the optimum lies at infinity; give a regularization above 0"
        )
    size, ridge = float(np.linalg.norm(found.gradient)) + found.gradient_error, problem.total_penalty
    values = np.linalg.eigvalsh(sums.hessian + np.diag(problem.penalty))
    smallest = max(float(values[0]) - sums.hessian_error - 8 * UNIT * len(values) * float(values[-1]), ridge)
    radius = size / ridge if ridge > 0 else np.inf
    if smallest > 0 and problem.loss.self_concordance is not None:
        radius = min(radius, _self_concordant_bound(problem, smallest, size))
    elif smallest > 0 and ridge == 0:
        radius = _kinked_bound(found, smallest, size)
    return replace(found, radius=radius)


def _self_concordant_bound(problem: Problem, curvature: float, gradient_norm: float) -> float:
    """Bound the distance to the optimum by the gradient norm and the Hessian's smallest eigenvalue.

    With q = M·R·‖∇F‖/λ_min < 1 the optimum is within −log(1 − q)/(M·R); for constant curvature ‖∇F‖/λ_min.
    """
    reach = (problem.loss.self_concordance or 0.0) * problem.norm_bound
    q = reach * gradient_norm / curvature
    if reach == 0:
        return float(gradient_norm / curvature)
    return float(-np.log1p(-q) / reach * (1 + 1e-12)) if q < 1 else float("inf")


def _kinked_bound(found: Optimum, curvature: float, gradient_norm: float) -> float:
    """Bound the distance to the optimum without a ridge, for a piecewise quadratic loss.

    Within ρ = 2‖∇F‖/λ_min only rows whose kink is nearer than ρ‖x_j‖ change their curvature. If that costs less than
    half of λ_min, the objective is λ_min/2-strongly convex in that ball and the optimum lies in it.
    """
    loss, radius, lost = found.problem.loss, 2 * gradient_norm / curvature * (1 + 1e-12), 0.0
    for part in found.problem.parts():
        near = loss.kink(found.margins(part), part.y) <= radius * part.norms * (1 + 1e-12) + 1e-14
        lost += (loss.smoothness or np.inf) * float(part.weights[near] @ part.norms[near] ** 2)
    return radius if lost <= curvature / 2 else float("inf")


def _newton_step(H: FloatArray, gradient: FloatArray) -> FloatArray:
    try:
        return np.asarray(-np.linalg.solve(H, gradient))
    except np.linalg.LinAlgError:
        return np.asarray(-np.linalg.lstsq(H, gradient, rcond=None)[0])
