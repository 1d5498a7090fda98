"""Neighbours of more than one record less: each is fitted anew, starting from the base optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deniable._check import FloatArray, Indices
from deniable._parallel import in_order
from deniable.records.fit import Fit, fit
from deniable.records.low_rank import Changes
from deniable.records.neighbours import Neighbours, lengths, make_pivot
from deniable.records.problem import UNIT, Problem


def without_groups(base: Fit, groups: Indices, direction: FloatArray, n_jobs: int | None) -> Neighbours:
    """Optima without each group of rows; ``groups`` numbers them 0, 1, …"""
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    return _refitted(base, _without, members, direction, n_jobs)


def with_each(base: Fit, X: FloatArray, y: FloatArray, direction: FloatArray, n_jobs: int | None) -> Neighbours:
    """Optima with each of the rows ``X``, ``y`` (encoded) added, one at a time."""
    return _refitted(base, _with, list(zip(X, y, strict=True)), direction, n_jobs)


def _without(problem: Problem, rows: Indices) -> Problem:
    weights = problem.weights.copy()
    weights[rows] = 0.0
    gone = float(problem.weights[rows].sum())
    return replace(problem, weights=weights, penalty=problem.penalty - gone * problem.relief)


def _with(problem: Problem, row: tuple[FloatArray, float]) -> Problem:
    X, y, weights = np.vstack([problem.X, row[0]]), np.append(problem.y, row[1]), np.append(problem.weights, 1.0)
    return replace(problem, X=X, y=y, weights=weights, penalty=problem.penalty + problem.relief)


def _refitted(
    base: Fit, change: Callable[[Problem, Any], Problem], each: Sequence[Any], direction: FloatArray, n_jobs: int | None
) -> Neighbours:
    problem, centre = base.problem, base.centre
    found = list(in_order(_moved, each, n_jobs, problem, centre, change))
    step, radius = np.stack([one[0] for one in found]), np.array([one[1] for one in found])
    radius = radius * (1 + 1e-10) + 4 * UNIT * float(np.linalg.norm(centre))
    none = Changes(problem.X[:0], problem.y[:0], problem.weights[:0], base.held_margins()[:0])
    rounds = max(one[2] for one in found)
    kept_at = np.arange(len(step))
    return Neighbours(make_pivot(base, 0.0), none, lengths(step), step @ direction, radius, kept_at, step, rounds)


def _moved(
    problem: Problem, centre: FloatArray, change: Callable[[Problem, Any], Problem], what: Any
) -> tuple[FloatArray, float, int]:
    new = fit(change(problem, what), centre)
    return new.centre - centre, new.radius, new.iterations
