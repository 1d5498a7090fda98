"""LeBlond et al.'s worst-case neighbouring model: a screening bound, not an approximation (erratum E14)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError
from deniable.records.fit import fit
from deniable.records.inputs import make_problem
from deniable.records.losses import Loss, as_loss


@dataclass(frozen=True)
class Sphere:
    """Every optimum without record i lies in the ball around ``centre[i]`` of ``radius[i]`` (Okumura et al. 2015).

    LeBlond et al. eqs. 17–18. The base optimum lies on the sphere (their eq. 21) and ``worst_case[i]`` opposite to
    it (eq. 22), so 2·radius bounds the distance of the two optima: cheap, always valid, and tight only where the
    ridge dominates the curvature. As an approximation of the optimum, ``worst_case`` is one gradient step with
    Hessian (n − 1)Λ·I.
    """

    centre: FloatArray
    radius: FloatArray
    worst_case: FloatArray

    @property
    def largest_distance(self) -> FloatArray:
        """Upper bound of ‖A(y_i) − A(x)‖."""
        return 2 * self.radius


def worst_case_sphere(X: ArrayLike, y: ArrayLike, *, regularization: float, loss: str | Loss = "logistic") -> Sphere:
    """Bound every leave-one-out optimum from the base optimum alone, in O(nd) after the fit.

    Parameters
    ----------
    X, y, regularization, loss
        As in :func:`deniable.privacy_profile`: rows (n, d), labels or responses (n,), Λ above 0.

    Raises
    ------
    InputError
        if a parameter is not regularized: the sphere rests on strong convexity.
    """
    base = fit(make_problem(X, y, regularization, as_loss(loss), "none", None, "mean")[0])
    problem = base.problem
    slope = problem.loss.slope(base.margins, problem.y) * problem.weights[:, None]
    left = problem.penalty - np.outer(problem.weights, problem.relief)
    if float(left.min()) <= 0:
        raise InputError("the worst-case sphere needs regularization above 0: it rests on strong convexity")
    own = np.einsum("id,ic->idc", problem.X, slope).reshape(len(slope), -1)
    step = (own + np.outer(problem.weights, problem.relief) * base.centre - base.gradient) / left
    return Sphere(
        centre=base.centre + step / 2,
        radius=np.linalg.norm(step, axis=1) / 2,
        worst_case=base.centre + step,
    )
