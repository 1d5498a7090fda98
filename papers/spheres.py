"""LeBlond et al.'s worst-case neighbouring model, and the sphere and half-space that hold the exact one.

Let b = −∇J_i(f) be the pull on the base optimum f when record i has gone, m the ridge that is left, f + δ the exact
optimum without the record, and H̄ the mean Hessian of J_i on the segment between the two, so b = H̄δ.

* Sphere (Okumura et al. 2015; LeBlond et al. eqs. 17–18). H̄ ⪰ m·I gives ⟨b, δ⟩ ≥ m‖δ‖²: δ lies in the ball with the
  diameter from 0 to b/m. Its far end is the worst case: one gradient step with Hessian m·I, not an approximation of
  the optimum (erratum E14).
* Half-space. LeBlond et al. take theirs from another paper without a formula and say that the worst case lies on its
  boundary. This one has the same axis and cuts the worst case off. By self-concordance the Hessian at f + sδ is
  at least exp(−s·a)·H_i with a = M·R·‖δ‖ and H_i the Hessian at f, so H̄ ⪰ κ·H_i with κ = (1 − e^{−a})/a, and, as
  inversion reverses the order of positive definite matrices,

      ⟨b, δ⟩ = bᵀH̄⁻¹b ≤ bᵀH_i⁻¹b/κ,        hence        ‖δ‖² ≤ ⟨b, δ⟩/m ≤ bᵀH_i⁻¹b/(κ·m).

  κ falls with ‖δ‖, so start from the sphere's ‖δ‖ ≤ ‖b‖/m and repeat with each better bound. A loss with kinks has
  no such κ; its half-space only touches the sphere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError
from deniable.records.certified_radius import RadiusCertificate
from deniable.records.fit import fit
from deniable.records.losses import Loss, as_loss
from deniable.records.low_rank import LowRank
from deniable.records.neighbours import make_pivot
from deniable.records.problem import make_problem

_ROUNDS = 30  # refinements of the half-space; every one is valid


@dataclass(frozen=True, eq=False)
class Sphere:
    """Where every optimum without record i must lie, from the base optimum alone.

    Attributes
    ----------
    centre, radius
        Each optimum lies in the ball around ``centre[i]`` of ``radius[i]``. The base optimum lies on its surface
        (LeBlond et al. eq. 21).
    worst_case
        LeBlond et al.'s A_wc, opposite to the base optimum (eq. 22), (n, parameters).
    reach
        Each optimum f also lies in the half-space ⟨f − base, v⟩ ≤ reach·‖v‖² with v = ``worst_case[i]`` − base:
        how far along the diameter it can be, above 0 and at most 1, (n,).
    """

    centre: FloatArray
    radius: FloatArray
    worst_case: FloatArray
    reach: FloatArray

    @property
    def largest_distance(self) -> FloatArray:
        """Upper bound of ‖A(y_i) − A(x)‖ over the ball and the half-space, (n,)."""
        return np.asarray(2 * self.radius * np.sqrt(self.reach))


def worst_case_sphere(X: ArrayLike, y: ArrayLike, *, regularization: float, loss: str | Loss = "logistic") -> Sphere:
    """Bound every leave-one-out optimum by a ball and a half-space, without solving for any of them.

    Always valid, and finite where the certificate of a Newton step is not: a screen for records that cannot be
    exposed, ``largest_distance`` times the rate of the noise being their largest ρ. Rounding errors are bounded and
    added.

    Parameters
    ----------
    X, y, regularization, loss
        As in :func:`deniable.privacy_profile`: rows (n, d), labels or responses (n,), Λ above 0.

    Raises
    ------
    InputError
        if a parameter is not regularized: the sphere rests on strong convexity.
    """
    base = fit(make_problem(X, y, regularization, as_loss(loss), "none", None, "mean"))
    problem = base.problem
    left = problem.penalty - np.outer(problem.rows.weights, problem.relief)
    if float(left.min()) <= 0:
        raise InputError("the worst-case sphere needs regularization above 0: it rests on strong convexity")
    ridge = left.min(axis=1)
    pivot = make_pivot(base, problem.typical_weight)
    certificate = RadiusCertificate.of(pivot)
    step, radius, reach = np.empty(left.shape), np.empty(len(ridge)), np.ones(len(ridge))
    for part in problem.parts():
        rows = slice(part.start, part.start + len(part.y))
        m, block = ridge[rows], LowRank.of(pivot, part)
        step[rows] = block.pull() / m[:, None]
        diameter = np.linalg.norm(step[rows], axis=1)
        newton, coefficients = block.newton()
        length = np.linalg.norm(newton, axis=1)
        rounding = certificate.newton_rounding(block, coefficients, length)
        radius[rows] = (diameter / 2 + rounding / m) * (1 + 1e-12)
        if problem.loss.self_concordance is not None:
            energy = block.energies(newton)[0]  # bᵀH_i⁻¹b
            energy = energy + 1e-12 * np.abs(energy) + rounding * (length + diameter + rounding / m)
            reach[rows] = _reach(energy / (m * diameter**2 + 1e-300), certificate.reach * 2 * radius[rows])
    return Sphere(base.centre + step / 2, radius, base.centre + step, reach)


def _reach(share: FloatArray, bent: FloatArray) -> FloatArray:
    """The least of 1 and share/κ(a), from share = bᵀH_i⁻¹b·m/‖b‖² and ``bent``, a at the far end of the diameter."""
    reach = np.ones(len(share))
    for _ in range(_ROUNDS):
        a = np.maximum(bent * np.sqrt(reach), 1e-9)
        reach = np.minimum(reach, share * a / -np.expm1(-a) * (1 + 1e-12))
    return reach
