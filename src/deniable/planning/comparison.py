"""Bounds that others would quote for the same run, to set beside the exact curve. None of them is below it but one.

The exception is the Gaussian approximation, which is no bound at all; it comes with its measured error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, choice, numbers
from deniable.accounting.door import tradeoff
from deniable.accounting.reductions import reduced
from deniable.bounds import humphries as humphries_bound
from deniable.bounds import pinsker as pinsker_bound
from deniable.curves import Direction, GaussianTradeoff, Tradeoff
from deniable.mechanisms import (
    ApproximateDP,
    Composition,
    GaussianDP,
    Grouped,
    MatrixMechanism,
    Mechanism,
    NoisyGradientDescent,
    PureDP,
    RenyiDP,
    ShuffledBatches,
    SubsampledGaussian,
    Tuned,
    ZeroConcentratedDP,
)
from deniable.mechanisms.core import parts_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUNDING = 1e-12  # relative; sums of positive terms, each computed to a few ulp
_SMALLEST_SIGMA = 2e-3  # below, the quadrature would need millions of nodes


def humphries_of(mechanism: Mechanism, delta: ArrayLike | None = None) -> float | FloatArray:
    """Return the bound on the advantage from the run's own optimal (ε, δ): (e^ε − 1 + 2δ)/(e^ε + 1).

    Parameters
    ----------
    mechanism
        What ran.
    delta
        The δ, or an array of them, at which the run's optimal ε(δ) is quoted. By default the best pair on the whole
        curve, which is (0, δ(0)): every pair bounds the advantage from above, and that one equals it.

    Notes
    -----
    Source: Humphries et al. (2020), Theorem 3 in Mahloujifar et al.; the worst pair of an (ε, δ)-DP mechanism.
    """
    curve = tradeoff(mechanism)
    if delta is None:
        return curve.delta(0.0)
    deltas = numbers("delta", delta, at_least=0.0, at_most=1.0)
    epsilons = np.maximum(curve.epsilon(deltas), 0.0)  # a mechanism that is (ε < 0, δ)-DP is (0, δ)-DP
    return humphries_bound(epsilons, delta=deltas)


def pinsker_of(mechanism: Mechanism) -> float:
    """Return the bound √(KL/2) on the advantage, with the exact KL divergence in its better direction, at most 1.

    It says nothing once KL exceeds 2. The divergence is integrated, not taken as a limit of Rényi divergences.
    """
    divergence = min(kl_divergence(mechanism, "add"), kl_divergence(mechanism, "remove"))
    return float(pinsker_bound(divergence))


def kl_divergence(mechanism: Mechanism, direction: Direction = "add") -> float:
    """Return KL(in‖out), or KL(out‖in) for ``direction="remove"``, in nats, rounded up.

    KL divergences of composed mechanisms add. Of guarantees and brackets it is the smallest bound known. For ``PureDP``
    it is the worst mechanism's, ε·tanh(ε/2). The relative error is below 1e-11, save for noise multipliers under 0.002,
    where the bound q/(2σ²) by convexity is returned.
    """
    choice("direction", direction, ("add", "remove"))
    match mechanism:
        case Composition(mechanisms):
            return math.fsum(kl_divergence(part, direction) for part in mechanisms) * (1 + _ROUNDING)
        case SubsampledGaussian(sigma, rate, steps, 1):
            return steps * _step_divergence(sigma, rate, direction)
        case GaussianDP(mu):
            return mu**2 / 2 * (1 + _ROUNDING)
        case PureDP(epsilon):
            return epsilon * math.tanh(epsilon / 2) * (1 + _ROUNDING)
        case ApproximateDP(epsilon, delta):
            return kl_divergence(PureDP(epsilon), direction) if delta == 0 else math.inf
        case ShuffledBatches(sigma, _, epochs):
            return epochs / sigma**2 / 2 * (1 + _ROUNDING)
        case RenyiDP(_, epsilons):
            return min(epsilons)  # D_1 ≤ D_α
        case ZeroConcentratedDP(rho, xi):
            return rho + xi
        case SubsampledGaussian():
            raise InputError("mechanism must have one record per person: no divergence of several is known here")
        case Grouped():
            raise InputError("mechanism must be that of one record: no divergence of a group is known here")
        case Tuned():
            return float(np.min(tradeoff(mechanism).renyi([1.1, 1.5, 2.0, 4.0], direction)))
        case NoisyGradientDescent() | MatrixMechanism():
            return kl_divergence(reduced(mechanism), direction)
        case _:
            raise InputError(f"mechanism must be one of deniable's mechanisms, got {mechanism!r}")


def _step_divergence(sigma: float, rate: float, direction: Direction) -> float:
    """KL of one step by the trapezoid rule: with r = p/q_out = 1 + w, the mean under the out world of g(w) ≥ 0.

    g is r·log r − r + 1 (in‖out) or r − 1 − log r (out‖in): no cancellation, also where w is tiny. The integrand is
    analytic in |Im x| < πσ² (where r has its zeros), hence spacing ≤ σ²/2 for an error of e^{−39}.
    """
    convex = rate / 2 / sigma / sigma
    if rate == 1 or sigma < _SMALLEST_SIGMA:
        return convex * (1 + _ROUNDING)
    spacing = min(sigma / 4, sigma**2 / 2)
    x = np.arange(-12 * sigma, 2 + 12 * sigma, spacing)
    exponent = (2 * x - 1) / (2 * sigma**2)
    log_out = -((x / sigma) ** 2) / 2
    log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + exponent)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        w = rate * np.expm1(exponent)
        small = np.abs(w) < 0.1
        out, inside = np.exp(log_out), np.exp(log_out + log_ratio)
        order = np.arange(2, 20)
        if direction == "add":
            series = polyval(np.where(small, w, 0.0), np.concatenate([[0, 0], (-1.0) ** order / (order * (order - 1))]))
            direct = inside * log_ratio - inside + out
        else:
            series = polyval(np.where(small, w, 0.0), np.concatenate([[0, 0], (-1.0) ** order / order]))
            direct = inside - out - out * log_ratio
        terms = np.where(small, out * series, direct)
    mean = float(np.sum(terms)) * spacing / (sigma * math.sqrt(2 * math.pi))
    return min(mean, convex) * (1 + _ROUNDING)


@dataclass(frozen=True)
class GaussianApproximation:
    """The central limit approximation of a run by one Gaussian mechanism, beside the exact curve.

    It is *not* a bound: it can be below what an attacker reaches. ``advantage_error`` and ``tpr_error`` are
    approximation minus truth, so negative means that it understates the attack.
    """

    mu: float
    exact: Tradeoff

    @property
    def approximation(self) -> GaussianTradeoff:
        """The trade-off of N(0, 1) against N(``mu``, 1)."""
        return GaussianTradeoff(self.mu, method="central limit approximation (not a bound)")

    @property
    def advantage_error(self) -> float:
        """Approximate minus exact advantage."""
        return self.approximation.advantage() - self.exact.advantage()

    def tpr_error(self, fpr: ArrayLike) -> float | FloatArray:
        """Approximate minus exact true positive rate at each ``fpr``."""
        return self.approximation.tpr(fpr) - self.exact.tpr(fpr)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both ROC curves."""
        return self.approximation.plot(self.exact.plot(ax))


def gdp_clt(mechanism: Mechanism) -> GaussianApproximation:
    """Return the Gaussian approximation with μ² = Σ T·q²·(e^{1/σ²} − 1) over the phases, and its error.

    Source: Bu, Dong, Long & Su (2020), the central limit theorem for Poisson-subsampled Gaussians as T → ∞ with
    q√T fixed; ``GaussianDP`` parts add μ². With q = 1 the formula is off (the exact μ² is T/σ²).
    """
    parts = parts_of(mechanism)
    return GaussianApproximation(math.sqrt(math.fsum(map(_clt_square, parts))), tradeoff(mechanism))


def _clt_square(mechanism: Mechanism) -> float:
    match mechanism:
        case SubsampledGaussian(sigma, rate, steps, 1):
            with np.errstate(over="ignore"):
                return float(steps * rate**2 * np.expm1(1 / np.float64(sigma) ** 2))
        case SubsampledGaussian():
            raise InputError(
                "mechanism must have one record per person (records_per_person=1): the limit theorem is for those, got "
                f"{mechanism!r}"
            )
        case GaussianDP(mu):
            return mu**2
        case _:
            raise InputError(f"mechanism must consist of SubsampledGaussian and GaussianDP, got {mechanism!r}")
