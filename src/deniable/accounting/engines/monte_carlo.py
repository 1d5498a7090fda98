"""The sampling bound of Mahloujifar et al. (Algorithm 1), corrected: for teaching and for tests of the other engines.

Erratum E8: with η = log Q/P of the transcript drawn from P, the term is 1 − e^{min(η, 0)}; max(η, 0), as printed, makes
it ≤ 0. Erratum E9: Hoeffding's tail is 2·e^{−2mδ²}, about six times fewer samples than the printed e^{−mδ²/3}. The
Dvoretzky–Kiefer–Wolfowitz inequality has the same tail for all thresholds at once, so it is what is used: every
number of one object holds simultaneously with the stated confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from deniable._check import FloatArray, InputError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Direction, Side, Tradeoff

_BATCH = 1 << 16


@dataclass(frozen=True, eq=False)
class MonteCarloTradeoff(Tradeoff):
    """Trade-off estimated from losses drawn under "in" and under "out", ± the radius of the confidence band.

    Attributes
    ----------
    in_losses, out_losses
        Sorted samples of L = log in/out under either law.
    """

    in_losses: FloatArray
    out_losses: FloatArray

    @classmethod
    def sample(cls, loss: PrivacyLoss, samples: int, confidence: float, rng: Generator) -> MonteCarloTradeoff:
        """Draw ``samples`` transcripts from either law; the time is proportional to samples × steps."""
        if loss.randomized_responses:
            raise InputError("engine 'monte-carlo' serves SubsampledGaussian and GaussianDP only; use engine='grid'")
        in_rng, out_rng = rng.spawn(2)
        inside, out = _draw(loss, samples, True, in_rng), _draw(loss, samples, False, out_rng)
        return cls(np.sort(inside), np.sort(out), method=f"Monte Carlo, {samples} draws", confidence=confidence)

    @property
    def radius(self) -> float:
        """Half-width of the band: √(log(2/β)/(2m)), half of β = 1 − confidence for either sample."""
        return math.sqrt(math.log(4 / (1 - self.confidence)) / (2 * self.in_losses.size))

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        # H_γ(P‖Q) = E_P (1 − γe^{−L})₊, a monotone function of L with values in [0, 1]
        losses = self.in_losses if direction == "add" else -self.out_losses
        bound = np.empty_like(log_gamma)
        for k, level in enumerate(log_gamma):
            bound[k] = -np.mean(np.expm1(np.minimum(level - losses, 0.0))) if np.isfinite(level) else float(level < 0)
        trivial = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
        known = np.isinf(log_gamma)
        moved = bound + np.where(known, 0.0, self.radius if side == "upper" else -self.radius)
        return np.clip(moved, trivial, 1.0)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        inside, out = (self.in_losses, self.out_losses) if direction == "add" else (-self.out_losses, -self.in_losses)
        levels = np.sort(np.concatenate([inside, out]))[:: max(1, inside.size // 200)]
        if side == "upper":
            hockey_sticks = self._hockey_stick(levels, direction, "upper")
            bound = np.min(np.exp(levels) * fpr[:, None] + hockey_sticks, axis=1)
        else:
            inside, out = np.sort(inside), np.sort(out)
            rate = 1 - np.searchsorted(out, levels, side="right") / out.size + self.radius
            found = 1 - np.searchsorted(inside, levels, side="right") / inside.size - self.radius
            share = np.minimum(fpr[:, None] / np.clip(rate, 1e-300, None), 1.0)
            bound = np.max(share * found, axis=1)
        return np.where((fpr > 0) & (fpr < 1), np.clip(bound, fpr, 1.0), fpr)

    def _least_log_ratio(self, direction: Direction) -> float:
        return 0.0


def _draw(loss: PrivacyLoss, samples: int, member: bool, rng: Generator) -> FloatArray:
    total: FloatArray = np.zeros(samples)
    for step, count in loss.gaussian_steps:
        for start in range(0, samples, _BATCH):
            part = total[start : start + _BATCH]
            for _ in range(int(count)):
                part += step.drawn(part.size, member, rng)
    return total
