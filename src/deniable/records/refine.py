"""Iterate the records whose certificate is too wide: quasi-Newton steps on the exact gradients, many at a time."""

from __future__ import annotations

import numpy as np

from deniable._check import FloatArray, Indices
from deniable.records.certified_radius import RadiusCertificate
from deniable.records.fit import change_error, hessian_at, local_bound, margins_of
from deniable.records.low_rank import Changes, LowRank, Pivot
from deniable.records.neighbours import Neighbours, lengths
from deniable.records.problem import ROWS, UNIT

_BATCH = 256  # records iterated at a time
_ROUNDS = 60  # rounds after which the best certificate so far is kept
_PASSES = 8  # rounds over rows that are read anew each time


def refine(
    pivot: Pivot,
    changes: Changes,
    found: Neighbours,
    tolerance: float,
    where: Indices,
    direction: FloatArray | None = None,
) -> Neighbours:
    """Iterate the records at indices ``where`` until their radius is at most ``tolerance`` × their distance.

    Each round costs one pass over the data for a batch of records. Near the base optimum the neighbour's base-point
    Hessian is an excellent preconditioner; records for which it fails get true Newton steps.
    """
    where = np.sort(where)
    radius, distance, along = found.radius.copy(), found.distance.copy(), found.along.copy()
    kept = np.empty((len(where), pivot.fit.centre.size))
    bound = RadiusCertificate.of(pivot)
    rounds = 0
    for start in range(0, len(where), _BATCH):
        batch, here = where[start : start + _BATCH], slice(start, start + _BATCH)
        kept[here] = found.steps(batch)
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is too long is detected and shortened
            new, new_radius, used = _refine_batch(pivot, changes[batch], kept[here], bound, tolerance)
        better = new_radius < radius[batch]
        kept[here][better], radius[batch[better]] = new[better], new_radius[better]
        distance[batch] = lengths(kept[here])
        if direction is not None:
            along[batch] = kept[here] @ direction
        rounds = max(rounds, used)
    return Neighbours(pivot, changes, distance, along, radius, where, kept, rounds)


def _refine_batch(
    pivot: Pivot, changes: Changes, step: FloatArray, bound: RadiusCertificate, tolerance: float
) -> tuple[FloatArray, FloatArray, int]:
    """Newton steps, shortened until the gradient norm falls, as it must along a true Newton direction."""
    problem, block = pivot.fit.problem, LowRank.of(pivot, changes)
    best, best_radius = step.copy(), np.full(len(step), np.inf)
    # start at the base optimum: the one-pass step is the true Newton direction from there
    anchor, slope = np.zeros_like(step), -block.pull()
    size, direction, rate = np.linalg.norm(slope, axis=1), step.copy(), np.ones(len(step))
    exact, floor = np.ones(len(step), dtype=bool), np.zeros(len(step))
    for used in range(1, (_ROUNDS if problem.in_memory else _PASSES) + 1):
        gradient, error = gradient_after(block, step)
        new = np.linalg.norm(gradient, axis=1)
        new = np.where(np.isfinite(new), new, np.inf)
        radius = bound.after_gradient(block, np.linalg.norm(step, axis=1), new + error)
        for i in np.flatnonzero(~np.isfinite(radius) & np.isfinite(new)) if problem.in_memory else ():
            radius[i] = local_bound(problem, *_curved(block, int(i), step[i]), float(new[i] + error[i]))
        better = radius < best_radius
        best[better], best_radius[better] = step[better], radius[better]
        open_ = ~(best_radius <= tolerance * np.linalg.norm(best, axis=1))
        worse = ~(new <= size)
        floor = np.where(worse, floor, error)
        if not open_.any() or (used > 2 and np.all(np.minimum(size, new)[open_] <= 2 * floor[open_])):
            break
        slow = ~worse & (new > 0.5 * size)
        anchor = np.where(worse[:, None], anchor, step)
        slope = np.where(worse[:, None], slope, gradient)
        size = np.where(worse, size, new)
        rate = np.where(worse & exact, rate / 4, 1.0)
        cheap = -block.solve(slope)
        for i in np.flatnonzero(open_ & (slow | (worse & ~exact))) if problem.in_memory else ():
            cheap[i] = -np.linalg.solve(_curved(block, int(i), anchor[i])[1], slope[i])
        direction = np.where((worse & exact)[:, None], direction, cheap)
        exact = np.where(worse, True, slow)
        step = np.where(open_[:, None], anchor + rate[:, None] * direction, anchor)
    return best, best_radius, used


def gradient_after(block: LowRank, step: FloatArray) -> tuple[FloatArray, FloatArray]:
    """∇F_i(f + step_i) for every record of the block, with a bound of its rounding error.

    Only the *change* of the slopes is summed, so the rounding error is relative to the step, not to the data.
    """
    pivot, problem = block.pivot, block.pivot.fit.problem
    d, k = problem.X.shape[1], problem.classes
    columns = block.shape(step).transpose(1, 0, 2).reshape(d, -1)  # d × (records·classes)
    total = np.zeros((d, columns.shape[1]))
    moved, mass = np.zeros(len(step)), np.zeros(len(step))
    for part in problem.parts():
        margins = margins_of(pivot.fit, part)
        dt = (part.X @ columns).reshape(len(part.y), -1, k)
        change = problem.loss.change(margins[:, None], dt, part.y[:, None])
        change = change * part.weights[:, None, None]
        total += part.X.T @ change.reshape(len(part.y), -1)
        moved += part.norms @ np.abs(change).sum(axis=2)
        mass += (part.weights * part.norms**2) @ problem.loss.largest_curvature(margins[:, None] + dt)
    flat = total.reshape(d, -1, k).transpose(1, 0, 2).reshape(len(step), -1)
    own_change = problem.loss.change(block.changes.margins, block.project(step), block.changes.y)
    own = np.einsum("id,ic->idc", block.changes.X, own_change * block.changes.weights[:, None])
    pull, penalised = block.pull(), block.left_penalty() * step
    gradient = flat - own.reshape(len(step), -1) + penalised - pull
    steepest = pivot.fit.largest_margin
    units = ROWS + problem.count / ROWS + 4 * d + 64 + 4 * steepest
    scale = np.linalg.norm(pull, axis=1) + np.linalg.norm(penalised, axis=1)
    length = np.linalg.norm(step, axis=1)
    stray = d * length * mass + _change_error(pivot)
    rounding = UNIT * (units * moved + 16 * scale + stray) + block.slope_error()
    return gradient, rounding + pivot.fit.gradient_error


def _change_error(pivot: Pivot) -> float:
    problem = pivot.fit.problem
    return change_error(problem, pivot.fit.held_margins()) if problem.loss.self_concordance is None else 0.0


def _curved(block: LowRank, i: int, step: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Margins of all rows at f + step, and the Hessian there without record i."""
    problem, x = block.pivot.fit.problem, block.changes.X[i]
    F = step.reshape(-1, problem.classes)
    margins = block.pivot.fit.held_margins() + problem.X @ F
    H = hessian_at(problem, margins, block.left_penalty()[i])
    A = problem.loss.curvature(block.changes.margins[i] + x @ F, block.changes.y[i])
    own = np.einsum("d,ab,e->daeb", x, A * block.changes.weights[i], x)
    return margins, H - own.reshape(H.shape)
