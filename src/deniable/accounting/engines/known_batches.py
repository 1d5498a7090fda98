"""A bound that needs no integral: the attacker is told in which steps the record would take part.

Knowing the batches only helps him, and makes the composed law Gaussian: with k of T steps, N(0, 1) against N(√k/σ, 1).
By joint convexity H_γ ≤ Σ_k Bin(k; T, q)·H_γ(N(√k/σ, 1)‖N(0, 1)), in either direction. For small noise the batches are
all but visible, and the bound is nearly attained; for large noise it is loose.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr

from deniable._check import FloatArray
from deniable.accounting.loss import EPS, PrivacyLoss
from deniable.curves import EnvelopeTradeoff, GaussianTradeoff

_FAR = np.geomspace(0.05, 700.0, 80)
_LOG_GAMMA = np.concatenate([-_FAR[::-1], [0.0], _FAR])
_LEVELS = 120  # numbers of steps told apart; those in between are rounded up
_MASS = 1e-12  # charged to the largest number, for the rounding of the binomial law


def known_batches(loss: PrivacyLoss) -> EnvelopeTradeoff:
    """Return upper bounds for a composed loss; the lower side is the trivial one.

    Several phases are taken with every record in every batch, and randomised responses as giving the record away.
    """
    method = (
        "told the batches: an upper bound only, since the noise is too small (or the leak too rare) for the engines"
    )
    if loss.flips:
        bound = np.ones_like(_LOG_GAMMA)
        return EnvelopeTradeoff(_LOG_GAMMA, bound, bound, method=method)
    squared, weight = _cases(loss)
    bound = np.zeros_like(_LOG_GAMMA)
    for variance, share in zip(squared, weight, strict=True):
        gaussian = GaussianTradeoff(math.sqrt(variance) * (1 + 4 * EPS))
        bound += share * gaussian._hockey_stick(_LOG_GAMMA, "add", "upper")
    bound = np.minimum(bound * (1 + 1e-12), 1.0)
    return EnvelopeTradeoff(_LOG_GAMMA, bound, bound, method=method)


def _cases(loss: PrivacyLoss) -> tuple[FloatArray, FloatArray]:
    """μ² of the Gaussian pair in every case, and the probabilities of the cases, both rounded to the safe side."""
    if loss.steps.size != 1:
        return np.array([loss.gaussian + float(np.sum(loss.steps / loss.noise**2))]), np.ones(1)
    steps, rate = float(loss.steps[0]), float(loss.rate[0])
    mean, spread = steps * rate, math.sqrt(steps * rate * (1 - rate))
    near = np.linspace(mean - 10 * spread, mean + 10 * spread + 40, _LEVELS)
    levels = np.unique(np.concatenate([np.arange(9.0), np.ceil(near), [steps]]).clip(0, steps))
    weight = np.diff(bdtr(levels, int(steps), rate), prepend=0.0).clip(0.0)
    weight[-1] += _MASS
    return loss.gaussian + levels / float(loss.noise[0]) ** 2, weight * (1 + 1e-12)
