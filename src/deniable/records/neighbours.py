"""Where the optimum goes when one record leaves: every record in one pass, each with a certificate.

Let f be the optimum with all rows in, b_i = −∇F_i(f) the pull of the objective without record i, and H_i its Hessian
at f. One Newton step δ_i = H_i⁻¹ b_i costs O(d²) per record, because H_i differs from one matrix H by a matrix of
rank one (rank = number of classes for softmax).

A certificate bounds the distance from f + δ_i to the exact optimum (:mod:`deniable.records.certified_radius`). Records
whose certificate is wider than requested are iterated (:mod:`deniable.records.refine`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray, Indices, InputError
from deniable.records.certified_radius import RadiusCertificate
from deniable.records.fit import Fit
from deniable.records.low_rank import Changes, LowRank, Pivot
from deniable.records.problem import ROWS, UNIT

_CHEAP = 2e9  # rows² × columns up to which every record is iterated by default


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How far the optimum moves for each change, with certified radii, and, on request, to where.

    ``distance`` is ‖step‖ and ``along`` step·direction for the direction that the pass was given, (n,). Steps are
    recomputed on request, except those of the changes ``kept_at``, which are ``kept``.
    """

    pivot: Pivot = field(repr=False)
    changes: Changes = field(repr=False)
    distance: FloatArray = field(repr=False)
    along: FloatArray = field(repr=False)
    radius: FloatArray = field(repr=False)
    kept_at: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp), repr=False)
    kept: FloatArray | None = field(default=None, repr=False)
    iterations: int = 0

    def steps(self, records: slice | Indices) -> FloatArray:
        """Displacements from the centre, (records, parameters)."""
        at = np.arange(len(self.distance))[records]
        found = np.empty((len(at), self.pivot.fit.centre.size))
        place = np.searchsorted(self.kept_at, at)
        known = np.zeros(len(at), dtype=bool)
        if self.kept is not None and len(self.kept_at):
            known = self.kept_at[np.minimum(place, len(self.kept_at) - 1)] == at
            found[known] = self.kept[place[known]]
        if not known.all():
            found[~known] = self.first_steps(at[~known])
        return found

    def first_steps(self, at: Indices) -> FloatArray:
        """Newton steps of these changes, (changes, parameters)."""
        found = np.empty((len(at), self.pivot.fit.centre.size))
        for start in range(0, len(at), ROWS):
            some = slice(start, start + ROWS)
            found[some] = LowRank.of(self.pivot, self.changes[at[some]]).newton()[0]
        return found

    def onto(self, directions: FloatArray) -> FloatArray:
        """step·direction for each column of ``directions`` (parameters, k): (n, k)."""
        found = np.empty((len(self.distance), directions.shape[1]))
        for start in range(0, len(found), ROWS):
            rows = slice(start, start + ROWS)
            found[rows] = self.steps(rows) @ directions
        return found

    @property
    def optima(self) -> FloatArray:
        """Parameters of every neighbour, (n, parameters)."""
        return self.pivot.fit.centre + self.steps(slice(None))


def leave_one_out(base: Fit, direction: FloatArray | None = None) -> tuple[Pivot, Changes, Neighbours]:
    """Optima without each record of ``base.problem``, by one blocked pass of Newton steps."""
    problem = base.problem
    changes = Changes(problem.X, problem.y, problem.weights, base.held_margins())
    pivot = make_pivot(base, problem.typical_weight)
    return pivot, changes, one_pass(pivot, changes, direction)


def make_pivot(base: Fit, typical: float) -> Pivot:
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


def one_pass(pivot: Pivot, changes: Changes, direction: FloatArray | None = None) -> Neighbours:
    """One Newton step for every change, with its certificate, in O(records · parameters²)."""
    n = changes.X.shape[0]
    distance, along, radius = np.empty(n), np.zeros(n), np.empty(n)
    bound = RadiusCertificate.of(pivot)
    for start in range(0, n, ROWS):
        rows = slice(start, start + ROWS)
        block = LowRank.of(pivot, changes[rows])
        step, coefficients = block.newton()
        radius[rows] = bound.after_newton(block, step, coefficients)
        distance[rows] = lengths(step)
        if direction is not None:
            along[rows] = step @ direction
    return Neighbours(pivot, changes, distance, along, radius)


def lengths(step: FloatArray) -> FloatArray:
    """‖step_i‖."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", step, step)))


def default_tolerance(records: int, parameters: int) -> float:
    """1e-9 where iterating every record is cheap, 1 % (usually no iteration at all) beyond."""
    return 1e-9 if float(records) ** 2 * parameters <= _CHEAP else 1e-2
