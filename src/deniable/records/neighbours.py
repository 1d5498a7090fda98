"""Where the optimum goes when one record leaves: every record in one pass, each with a certificate.

Let f be the optimum with all rows in, b_i = −∇F_i(f) the pull of the objective without record i, and H_i its Hessian
at f. One Newton step δ_i = H_i⁻¹ b_i costs O(d²) per record, because H_i differs from one matrix H by a matrix of
rank one (rank = number of classes for softmax).

A certificate bounds the distance from f + δ_i to the exact optimum (:mod:`deniable.records.certified_radius`). Records
whose certificate is wider than requested are iterated: quasi-Newton steps on the exact gradients, many at a time, each
round one pass over the rows. Near f the Hessian H_i is an excellent preconditioner; where it fails, and where more than
one record leaves, the neighbour is fitted anew, which needs the rows in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from deniable._check import FloatArray, Indices, InputError
from deniable._parallel import in_order
from deniable.records.certified_radius import RadiusCertificate
from deniable.records.fit import Optimum, fit
from deniable.records.low_rank import LowRank, Pivot
from deniable.records.problem import ROWS, UNIT, Part, Problem, RowTask

_CHEAP = 2e9  # rows² × columns up to which every record is iterated by default
_MOST_ITERATED = 20_000  # most records that are iterated because their certificate is too wide
_BATCH = 256  # records iterated at a time
_ROUNDS = 8  # passes over the rows for a batch


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How far the optimum moves for each change, with certified radii, and, on request, to where.

    ``distance`` is ‖step‖ and ``along`` step·direction for the direction that the pass was given, (n,). Steps are
    recomputed on request, except those of the changes ``kept_at``, which are ``kept``.
    """

    pivot: Pivot = field(repr=False)
    distance: FloatArray = field(repr=False)
    along: FloatArray = field(repr=False)
    radius: FloatArray = field(repr=False)
    kept_at: Indices = field(repr=False)
    kept: FloatArray = field(repr=False)
    iterations: int = 0

    def steps(self, records: slice | Indices) -> FloatArray:
        """Displacements from the centre, (records, parameters)."""
        at = np.arange(len(self.distance))[records]
        place = np.searchsorted(self.kept_at, at)
        known = np.append(self.kept_at, -1)[place] == at
        found = np.empty((len(at), self.pivot.fit.problem.size))
        found[known] = self.kept[place[known]]
        left = np.flatnonzero(~known)
        for part, here in self.pivot.fit.problem.parts_with(at[left]):
            found[left[here]] = LowRank.of(self.pivot, part).newton()[0]
        return found

    def onto(self, directions: FloatArray) -> FloatArray:
        """step·direction for each column of ``directions`` (parameters, k): (n, k)."""
        found = np.empty((len(self.distance), directions.shape[1]))
        for start in range(0, len(found), ROWS):
            rows = slice(start, start + ROWS)
            found[rows] = self.steps(rows) @ directions
        return found


def leave_one_out(base: Optimum, direction: FloatArray, tolerance: float | None = None) -> Neighbours:
    """Return the optima without each record of ``base.problem``, by one pass of Newton steps over its tasks.

    Records whose radius is above ``tolerance`` × their distance are iterated; by default 1e-9 where iterating every
    record is cheap, and 1 % (usually no iteration at all) beyond. Of more than 20,000 of them as many are, spread
    evenly.
    """
    problem = base.problem
    if tolerance is None:
        tolerance = 1e-9 if float(problem.count) ** 2 * problem.size <= _CHEAP else 1e-2
    pivot = make_pivot(base, problem.typical_weight)
    bound = RadiusCertificate.of(pivot)
    light = replace(bound, pivot=replace(pivot, fit=replace(base, problem=problem.bare)))
    each = in_order(_pass_of, problem.tasks, problem.n_jobs, light, direction)
    distance, along, radius = (np.concatenate(found) for found in zip(*each, strict=True))
    wide = np.flatnonzero(~(radius <= tolerance * distance))
    most = min(len(wide), _MOST_ITERATED)
    wide = wide[np.arange(most) * len(wide) // max(most, 1)]  # spread over all of them
    kept, rounds = np.empty((len(wide), problem.size)), 0
    for start in range(0, len(wide), _BATCH):
        at, here = wide[start : start + _BATCH], slice(start, start + _BATCH)
        kept[here], radius[at], used = iterate(bound, at, radius[at], tolerance)
        rounds = max(rounds, used)
    distance[wide], along[wide] = lengths(kept), kept @ direction
    return Neighbours(pivot, distance, along, radius, wide, kept, rounds)


def make_pivot(base: Optimum, typical: float) -> Pivot:
    """Factorise the matrix that the neighbours share: records of weight ``typical`` leave."""
    problem = base.problem
    penalty = problem.penalty - typical * problem.relief
    H = base.hessian + np.diag(penalty)
    values = np.linalg.eigvalsh(H)
    if not values[0] > 0:
        raise InputError(
            "without a record the optimum is not unique (collinear columns or too few rows); raise regularization"
        )
    inverse = np.linalg.inv(H)
    inverse = (inverse + inverse.T) / 2
    rounding = base.hessian_error + 8 * UNIT * problem.size * float(values[-1])
    residual = float(np.linalg.norm(H @ inverse - np.eye(problem.size)))
    inverse_error = residual + 4 * UNIT * problem.size * float(np.linalg.norm(H) * np.linalg.norm(inverse))
    return Pivot(
        fit=base,
        typical=typical,
        penalty=penalty,
        inverse=inverse,
        pull=inverse @ (problem.relief * base.centre),
        drift=inverse @ base.gradient,
        smallest=max(float(values[0]) - rounding, float(penalty.min())),
        largest=float(values[-1]) + rounding,
        matrix_error=rounding,
        inverse_error=inverse_error,
    )


def _pass_of(
    bound: RadiusCertificate, direction: FloatArray, task: tuple[RowTask, int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One Newton step for every row of a task, with its certificate, in O(rows · parameters²)."""
    found = []
    for part in task[0].parts(task[1]):
        block = LowRank.of(bound.pivot, part)
        step, coefficients = block.newton()
        found.append((lengths(step), step @ direction, bound.after_newton(block, step, coefficients)))
    distance, along, radius = (np.concatenate(each) for each in zip(*found, strict=True))
    return distance, along, radius


def lengths(step: FloatArray) -> FloatArray:
    """‖step_i‖."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", step, step)))


def iterate(
    bound: RadiusCertificate, at: Indices, known: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray, int]:
    """Return the steps of some records with the smallest radii found, their radii, and the number of rounds.

    A step that does not lower the gradient's norm is too long, and shortened. ``known`` are the first steps' radii.
    """
    problem = bound.pivot.fit.problem
    block = LowRank.of(bound.pivot, Part.joined([part for part, _ in problem.parts_with(at)]))
    step = block.newton()[0]
    best, best_radius = step.copy(), known.copy()
    anchor, slope = np.zeros_like(step), -block.pull()  # the first step is the true Newton direction from the optimum
    size, direction, rate = np.linalg.norm(slope, axis=1), step.copy(), np.ones(len(step))

    def keep(step: FloatArray, radius: FloatArray, at: Indices) -> None:
        better = radius < best_radius[at]
        best[at[better]], best_radius[at[better]] = step[better], radius[better]

    for used in range(1, _ROUNDS + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            gradient, error = gradient_after(block, step)
        new = np.nan_to_num(np.linalg.norm(gradient, axis=1), nan=np.inf)
        keep(step, bound.after_gradient(block, lengths(step), new + error), np.arange(len(at)))
        stuck = np.minimum(size, new) <= 2 * error
        wide = np.flatnonzero(~(best_radius <= tolerance * lengths(best)))
        if not wide.size or (used > 2 and stuck[wide].all()):
            break
        worse = (~(new <= size))[:, None]
        anchor, slope = np.where(worse, anchor, step), np.where(worse, slope, gradient)
        size, rate = np.minimum(size, new), np.where(worse[:, 0], rate / 4, 1.0)
        direction = np.where(worse, direction, -block.solve(slope))
        step = anchor + rate[:, None] * direction
    if problem.in_memory:
        for i in wide[~stuck[wide] | np.isinf(best_radius[wide])]:
            moved, radius, _ = _optimum_without(problem, bound.pivot.fit.centre, at[[i]])
            keep(moved[None], np.array([radius]), np.array([i]))
    return best, best_radius, used


def gradient_after(block: LowRank, step: FloatArray) -> tuple[FloatArray, FloatArray]:
    """∇F_i(f + step_i) for every record of the block, with a bound of its rounding error.

    Only the *change* of the slopes is summed, so the rounding error is relative to the step, not to the data.
    """
    pivot, problem = block.pivot, block.pivot.fit.problem
    d, k = problem.columns, problem.classes
    columns = block.shape(step).transpose(1, 0, 2).reshape(d, -1)  # d × (records·classes)
    total = np.zeros((d, columns.shape[1]))
    moved, mass, clipped = np.zeros(len(step)), np.zeros(len(step)), 0.0
    for part in problem.parts():
        margins = pivot.fit.margins(part)
        dt = (part.X @ columns).reshape(len(part.y), -1, k)
        change = problem.loss.change(margins[:, None], dt, part.y[:, None])
        change = change * part.weights[:, None, None]
        total += part.X.T @ change.reshape(len(part.y), -1)
        moved += part.norms @ np.abs(change).sum(axis=2)
        mass += (part.weights * part.norms**2) @ problem.loss.largest_curvature(margins[:, None] + dt)
        if problem.loss.self_concordance is None:  # changes of slopes are differences of clipped numbers
            sizes = 1 + np.abs(margins[:, 0]) + np.abs(part.y)
            clipped += 8 * (problem.loss.smoothness or np.inf) * float((part.weights * part.norms) @ sizes)
    flat = total.reshape(d, -1, k).transpose(1, 0, 2).reshape(len(step), -1)
    own_change = problem.loss.change(block.margins, block.project(step), block.rows.y)
    own = np.einsum("id,ic->idc", block.rows.X, own_change * block.rows.weights[:, None])
    pull, penalised = block.pull(), block.left_penalty() * step
    gradient = flat - own.reshape(len(step), -1) + penalised - pull
    steepest = pivot.fit.largest_margin
    units = ROWS + problem.count / ROWS + 4 * d + 64 + 4 * steepest
    scale = np.linalg.norm(pull, axis=1) + np.linalg.norm(penalised, axis=1)
    length = np.linalg.norm(step, axis=1)
    stray = d * length * mass + clipped
    rounding = UNIT * (units * moved + 16 * scale + stray) + block.slope_error()
    return gradient, rounding + pivot.fit.gradient_error


def without_groups(base: Optimum, groups: Indices, direction: FloatArray, n_jobs: int | None) -> Neighbours:
    """Optima without each group of rows; ``groups`` numbers them 0, 1, …"""
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    found = in_order(_optimum_without, members, n_jobs, base.problem, base.centre)
    step, radius, rounds = (np.array(one) for one in zip(*found, strict=True))
    return Neighbours(
        make_pivot(base, 0.0), lengths(step), step @ direction, radius, np.arange(len(step)), step, int(rounds.max())
    )


def _optimum_without(problem: Problem, centre: FloatArray, gone: Indices) -> tuple[FloatArray, float, int]:
    """Return where the optimum goes without some rows, the radius in which it is, and the number of iterations."""
    rows = problem.rows
    weights = rows.weights.copy()
    weights[gone] = 0.0
    penalty = problem.penalty - float(rows.weights[gone].sum()) * problem.relief
    new = fit(replace(problem, tasks=((replace(rows, weights=weights), 0),), penalty=penalty), centre)
    radius = new.radius * (1 + 1e-10) + 4 * UNIT * float(np.linalg.norm(centre))
    return new.centre - centre, radius, new.iterations
