"""How a fitted model is released: the noise, its calibration, and the privacy loss of every record at a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable._check import FloatArray, InputError, choice, number
from deniable._search import bisect
from deniable.curves import GaussianTradeoff
from deniable.laws import GaussianLaw, LossLaw, NormLaplaceLaw
from deniable.mechanisms import GaussianDP, Mechanism, PureDP
from deniable.records.problem import UNIT, Problem


@dataclass(frozen=True)
class OutputPerturbation:
    """Release optimum + noise (Chaudhuri, Monteleoni & Sarwate 2011, Algorithm 1; LeBlond et al. §3.2).

    The optimum of a Λ-strongly convex mean loss with slopes at most L and rows of norm at most R moves by at most
    2LR/(nΛ) when a record is replaced, removed or added (n being the larger size), so

    * ``noise="norm-laplace"``: density ∝ e^{−β‖b‖} with β = nΛε/(2LR) is ε-DP. The norm is drawn from Gamma(d, 1/β) and
      the direction uniformly (erratum E12: the density's constant β/2 is right for d = 1 only);
    * ``noise="gaussian"``: N(0, s²I) with s = 2LR/(nΛμ) is μ-Gaussian-DP; μ is the largest that gives (ε, δ)-DP.

    n and the noise are public and the same in both worlds.

    Parameters
    ----------
    epsilon
        Privacy parameter from which the noise is calibrated, above 0. It needs rows of norm at most ``row_bound``
        and a loss of bounded slope.
    noise
        ``"norm-laplace"`` or ``"gaussian"``.
    delta
        For Gaussian noise, in (0, 1).
    scale
        Instead of ``epsilon``: the noise scale itself (1/β, or s). There is then no guarantee beyond the profile.
    row_bound
        Public bound R of the row norms, without the intercept column.

    Examples
    --------
    See ``privacy_profile``.
    """

    epsilon: float | None = None
    noise: Literal["norm-laplace", "gaussian"] = "norm-laplace"
    delta: float | None = None
    scale: float | None = None
    row_bound: float = 1.0

    def __post_init__(self) -> None:
        choice("noise", self.noise, ("norm-laplace", "gaussian"))
        if (self.epsilon is None) == (self.scale is None):
            raise InputError("OutputPerturbation needs exactly one of epsilon and scale")
        if (self.delta is not None) != (self.epsilon is not None and self.noise == "gaussian"):
            raise InputError(f"delta goes with epsilon and noise='gaussian' only, as delta=1e-5, got {self.delta!r}")
        for name in ("epsilon", "delta", "scale", "row_bound"):
            if (value := getattr(self, name)) is not None:
                most = 1.0 if name == "delta" else float("inf")
                object.__setattr__(self, name, number(name, value, above=0.0, below=most))

    def guarantee(self) -> Mechanism | None:
        """What the calibration promises about every data set: ``PureDP`` or ``GaussianDP``; ``None`` for a scale."""
        if self.epsilon is None:
            return None
        return PureDP(self.epsilon) if self.noise == "norm-laplace" else GaussianDP(self._mu())

    def epsilon_of(self, shift: float) -> float:
        """The ε for which the noise is calibrated when the sensitivity is ``shift`` times the noise scale."""
        if self.noise == "norm-laplace":
            return shift
        assert self.delta is not None
        return max(GaussianTradeoff(shift).epsilon(self.delta), 0.0)

    def law(self, parameters: int) -> LossLaw:
        """The law of the privacy loss in units of the noise."""
        return NormLaplaceLaw(parameters) if self.noise == "norm-laplace" else GaussianLaw()

    def rate(self, problem: Problem) -> float:
        """β, or 1/s: what turns a distance of optima into the ρ of the law."""
        if self.scale is not None:
            return 1 / self.scale
        sensitivity = self.sensitivity(problem)
        assert self.epsilon is not None
        return (self.epsilon if self.noise == "norm-laplace" else self._mu()) / sensitivity

    def sample(self, centre: FloatArray, rate: float, *, rng: np.random.Generator) -> FloatArray:
        """One simulated release: correct in distribution, but drawn with NumPy and not hardened; never publish it."""
        return np.asarray(centre + self.law(centre.size).draws(1, centre.size, rng)[0] / rate)

    def privacy_loss(
        self, size: float, distance: FloatArray, along: FloatArray, radius: FloatArray, parameters: int, rate: float
    ) -> tuple[FloatArray, FloatArray]:
        """log of the densities' ratio, in over out, at centre + noise for the two centres, ``distance`` apart.

        ``size`` is ‖noise‖ and ``along`` step·noise. Returns the losses and a bound of the error that the steps'
        ``radius`` causes.
        """
        gap = distance**2 - 2 * along  # ‖M − A(y)‖² − ‖M − A(x)‖² without cancellation
        other = np.sqrt(np.maximum(size**2 + gap, 0.0))
        error = radius + 4 * parameters * UNIT * distance
        if self.noise == "gaussian":
            return gap * rate**2 / 2, rate**2 * error * (size + other + error)
        with np.errstate(invalid="ignore"):
            loss = np.where(size + other > 0, gap / (size + other), 0.0)
        return rate * loss, rate * error

    def sensitivity(self, problem: Problem) -> float:
        """2LR/(nΛ), after checking that the loss and the rows meet the theorem's conditions."""
        if problem.loss.lipschitz is None:
            raise InputError(
                f"OutputPerturbation(epsilon=...) needs a loss of bounded slope, but loss={problem.loss.name!r} has"
                " none; give the noise as scale=... instead"
            )
        if problem.total_penalty <= 0:
            raise InputError(
                "OutputPerturbation(epsilon=...) needs every parameter regularized, or the sensitivity has no bound: "
                "give a regularization above 0 and no intercept='unregularized', or the noise as scale=..."
            )
        bound = row_bound_of(problem, self.row_bound)
        return 2 * problem.loss.lipschitz * bound * problem.heaviest / problem.total_penalty

    def _mu(self) -> float:
        """The largest μ whose Gaussian trade-off is (ε, δ)-DP, from below."""
        assert self.epsilon is not None
        assert self.delta is not None
        low, high = 0.0, 1.0
        while GaussianTradeoff(high).delta(self.epsilon) <= self.delta:
            low, high = high, 2 * high
        epsilon, delta = self.epsilon, self.delta
        return float(bisect(lambda mu: GaussianTradeoff(float(mu)).delta(epsilon) <= delta, low, high)[0])


def row_bound_of(problem: Problem, row_bound: float) -> float:
    """Return the public bound of the rows' norms with the intercept column, after checking it against every row."""
    ones = float(problem.intercept)
    bound = float(np.hypot(row_bound, ones))
    if not problem.longest <= bound * (1 + 1e-12):
        raise InputError(
            f"every row must have norm at most {row_bound:g} for the mechanism's guarantee, {problem.longest_at} has "
            f"{np.sqrt(max(problem.longest**2 - ones, 0.0)):g}; divide X by a public bound, or state one as row_bound"
        )
    return bound
