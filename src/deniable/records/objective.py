"""Objective perturbation: noise in the objective instead of the optimum, with every record's loss in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deniable._check import FloatArray, InputError, choice, number
from deniable.laws import GaussianLaw, NormLaplaceLaw
from deniable.mechanisms import PureDP
from deniable.records.fit import Optimum, fit
from deniable.records.low_rank import LowRank
from deniable.records.mechanisms import row_bound_of
from deniable.records.neighbours import make_pivot
from deniable.records.problem import UNIT, Problem


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Release the minimiser of Σ φ_j(f) + (nΛ'/2)‖f‖² + bᵀf with random b (Chaudhuri et al. 2011, Algorithm 2).

    With slopes at most L, curvature at most c and rows of norm at most R: b has density ∝ e^{−β‖b‖}, β = ε'/(2LR), ε' =
    ε − 2·log(1 + cR²/(nΛ)) and Λ' = Λ; where that leaves ε' ≤ 0, Λ' = cR²/(n(e^{ε/4} − 1)) and ε' = ε/2. This is ε-DP
    for *replacing* a record at fixed n. Removing a record from a mean objective also removes its share of the penalty;
    the profile accounts for that exactly, the ε does not (with ``normalization="sum"`` no penalty leaves).

    Parameters
    ----------
    epsilon
        Privacy parameter from which the noise is calibrated, above 0.
    noise
        ``"norm-laplace"``, or ``"gaussian"`` with a given ``scale`` only.
    scale
        Instead of ``epsilon``: 1/β, or the Gaussian standard deviation of b.
    row_bound
        Public bound R of the row norms, without the intercept column.

    Examples
    --------
    See ``privacy_profile``.
    """

    epsilon: float | None = None
    noise: Literal["norm-laplace", "gaussian"] = "norm-laplace"
    scale: float | None = None
    row_bound: float = 1.0

    def __post_init__(self) -> None:
        choice("noise", self.noise, ("norm-laplace", "gaussian"))
        if (self.epsilon is None) == (self.scale is None):
            raise InputError("ObjectivePerturbation needs exactly one of epsilon and scale")
        if self.epsilon is not None and self.noise == "gaussian":
            raise InputError(
                "ObjectivePerturbation calibrates norm-Laplace noise only; give Gaussian noise as scale=..."
            )
        for name in ("epsilon", "scale", "row_bound"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, number(name, getattr(self, name), above=0.0, below=float("inf")))

    def guarantee(self) -> PureDP | None:
        """What the calibration promises for replacing a record."""
        return None if self.epsilon is None else PureDP(self.epsilon)

    def prepare(self, problem: Problem) -> tuple[Problem, float]:
        """Return the problem that is solved (with Λ' in place of Λ) and the rate β or 1/s of the noise b."""
        if self.scale is not None:
            return problem, 1 / self.scale
        assert self.epsilon is not None
        loss = problem.loss
        if loss.lipschitz is None or loss.smoothness is None or problem.classes > 1:
            raise InputError(
                f"ObjectivePerturbation(epsilon=...) needs one margin of bounded slope and curvature, and "
                f"loss={loss.name!r} is not that; give the noise as scale=... instead"
            )
        if problem.total_penalty <= 0:
            raise InputError(
                "ObjectivePerturbation(epsilon=...) needs every parameter regularized: regularization above 0"
            )
        bound = row_bound_of(problem, self.row_bound)
        weight = problem.heaviest
        curvature = loss.smoothness * bound**2 * weight
        left = self.epsilon - 2 * float(np.log1p(curvature / problem.total_penalty))
        if left > 0:
            return problem, left / (2 * loss.lipschitz * bound * weight)
        stronger = curvature / float(np.expm1(self.epsilon / 4)) / problem.total_penalty
        raised = replace(problem, penalty=problem.penalty * stronger, relief=problem.relief * stronger)
        return raised, self.epsilon / 2 / (2 * loss.lipschitz * bound * weight)

    def sample(self, problem: Problem, rate: float, start: FloatArray, *, rng: np.random.Generator) -> FloatArray:
        """Draw b with NumPy and solve the perturbed problem: for simulations, not hardened; never publish it."""
        law = NormLaplaceLaw(problem.size) if self.noise == "norm-laplace" else GaussianLaw()
        return fit(replace(problem, tilt=law.draws(1, problem.size, rng)[0] / rate), start).centre

    def privacy_loss(self, problem: Problem, released: FloatArray, rate: float) -> tuple[FloatArray, FloatArray]:
        """log density ratio, in over out, at ``released``, and a bound of its rounding error.

        In a world with objective F the release M is the image of b = −∇F(M), so its density is
        p(b(M))·|det ∇²F(M)| (Redberg & Wang 2021): no refitting, and the determinants differ by a low rank.
        """
        if float(np.ptp(problem.rows.weights)) > 0 and float(problem.relief.max()) > 0:
            raise InputError("ObjectivePerturbation with sample_weight needs normalization='sum'")
        at = Optimum.at(problem, released)
        pivot = make_pivot(at, problem.typical_weight)
        H_in, H_left = at.hessian + np.diag(problem.penalty), at.hessian + np.diag(pivot.penalty)
        common = np.linalg.slogdet(H_in)[1] - np.linalg.slogdet(H_left)[1]
        own, found = float(np.linalg.norm(at.gradient)), []
        for part in problem.parts():
            block = LowRank.of(pivot, part)
            other = np.linalg.norm(block.pull(), axis=1)
            inner = np.eye(problem.classes) - block.leverage @ block.curvature
            bent = common - np.linalg.slogdet(inner)[1]
            if self.noise == "gaussian":
                noise, wobble = (other**2 - own**2) * rate**2 / 2, rate**2 * (other + own)
            else:
                noise, wobble = rate * (other - own), np.full(len(other), 2 * rate)
            found.append((noise + bent, wobble * (at.gradient_error + 8 * UNIT * (own + other))))
        loss, slack = (np.concatenate(each) for each in zip(*found, strict=True))
        size = problem.size
        bent_error = 4 * size * (pivot.matrix_error + size * UNIT * pivot.largest) / pivot.smallest
        return loss, slack + bent_error
