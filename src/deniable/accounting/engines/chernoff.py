"""K on real points: Chernoff's bound on the tails of a composed loss, and where saddle points put them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable.accounting.engines.likelihood import ROWS, Tails
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Direction

ROUNDING_OF_K = 1e-6  # far above the rounding of K at 10⁷ steps (measured), and nothing to Chernoff's bounds
_AWAY = np.geomspace(0.1, 60.0, 40)  # distances of points from 0 and 1, in units of 1/√K″
_MOST_PARTS = 8  # of a gap between points


@dataclass(frozen=True, eq=False)
class Chernoff:
    """K, K′ and K″ at rising ``points``, 0, ½ and 1 among them: K from above, up to :data:`ROUNDING_OF_K`."""

    loss: PrivacyLoss
    points: FloatArray
    growth: FloatArray
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, loss: PrivacyLoss) -> Chernoff:
        """Of the law without its rarest outcomes, in units of its spread.

        Raises
        ------
        TooSlowError
            If K is not known in the middle.
        """
        loss, away = loss.truncation, _away(loss)
        left, right = (PRODUCT_EXPONENT / max(end, EPS) for end in loss.farthest)
        points = [-away[away < left][::-1], np.linspace(0.0, 1.0, 5), 1 + away[away < right]]
        return cls._on(loss, np.concatenate(points))

    @classmethod
    def far(cls, loss: PrivacyLoss) -> Chernoff:
        """Of the law with its rarest outcomes, from 1 on: as far as one of them is worth having."""
        sigma = float(loss.noise.min())
        last = min(2 * sigma * sigma * (40 - 2 * math.log(float(loss.rate.min()))), 1000 * sigma)
        return cls._on(loss, np.append(1.0, 1 + last / _AWAY[-1] * _AWAY))

    @classmethod
    def _on(cls, loss: PrivacyLoss, points: FloatArray) -> Chernoff:
        """Points, and more between them where the means of tilted laws lie apart."""
        found = np.stack([points, *loss.cumulants_at(points)])
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.diff(found[2]) / (found[3, 1:] * found[3, :-1]) ** 0.25  # in widths of tilted laws
        parts = np.nan_to_num(np.clip(np.ceil(apart), 1, _MOST_PARTS), nan=1.0)
        gap, place = np.nonzero(np.arange(1, _MOST_PARTS) < parts[:, None])
        if gap.size:
            between = points[gap] + (place + 1) / parts[gap] * np.diff(points)[gap]
            found = np.concatenate([found, [between, *loss.cumulants_at(between)]], axis=1)
        return cls(loss, *found[:, np.argsort(found[0])])

    @cached_property
    def landmarks(self) -> tuple[float, float, float, float]:
        """K′ at 0, ½ and 1 (the losses at which the saddle point crosses a pole) and √K″(½)."""
        low, middle, high = np.searchsorted(self.points, [0.0, 0.5, 1.0])
        return float(self.mean[low]), float(self.mean[middle]), float(self.mean[high]), math.sqrt(self.variance[middle])

    def tails(self, threshold: FloatArray) -> Tails:
        """What is known without a line, from Chernoff's bound on either side of the middle.

        Above: out(L > ℓ) ≤ e^{K(θ) − θℓ} and in(L > ℓ) ≤ e^{K(θ) − (θ − 1)ℓ} for θ ≥ 1. Below: the same expressions
        bound out(L ≤ ℓ) and in(L ≤ ℓ) for θ ≤ 0.
        """
        upper = threshold > self.landmarks[1]
        found = np.empty((len(ROWS), threshold.size))
        if upper.any():
            found[:, upper] = Tails.below(threshold[upper], *self.masses(threshold[upper], 0)).stacked()
        if not upper.all():
            found[:, ~upper] = Tails.above(threshold[~upper], *self.masses(threshold[~upper], 1)).stacked()
        return Tails(*found)

    def masses(self, threshold: FloatArray, side: int) -> tuple[FloatArray, FloatArray]:
        """Bounds under "out" and "in" on the mass above thresholds (side 0) or below them (side 1).

        For θ ≤ 0 what a ceiling leaves out above adds at most its own mass to M(θ) ≥ 1, less than is charged anyway.
        """
        keep = self.points >= 1 if side == 0 else self.points <= 0
        points = self.points[keep]
        exponent = self.bounded_growth[keep] - np.multiply.outer(threshold, points)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            out, inside = np.exp(exponent.min(axis=1)), np.exp((exponent + threshold[:, None]).min(axis=1))
        left_out = self.loss.dropped if side == 0 else self.loss.dropped_below
        unseen = left_out[1] + self.loss.unseen
        return np.nan_to_num(out, nan=1.0) + left_out[0], np.nan_to_num(inside, nan=1.0) + unseen

    @cached_property
    def bounded_growth(self) -> FloatArray:
        """K from above: a little is charged for its rounding; at 0 and 1 it is known to be 0."""
        bound = self.growth + ROUNDING_OF_K + self.loss.dropped[0] + 64 * EPS * np.abs(self.growth)
        return np.where((self.points == 0) | (self.points == 1), 0.0, bound)

    def hockey_stick(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """Chernoff's bound on the hockey stick in one order of the worlds, for γ = e^ℓ.

        H_γ = E_in (1 − e^{ℓ − L})₊ ≤ C·E_in e^{(θ − 1)(L − ℓ)}, θ ≥ 1, with C = (θ − 1)^{θ − 1}/θ^θ, the largest
        (1 − e^{−x})·e^{−(θ − 1)x} over x > 0; in the other order 1 − θ stands for θ, and −ℓ for ℓ.
        """
        keep = self.points >= 1 if direction == "remove" else self.points <= 0
        order = self.points[keep] if direction == "remove" else 1 - self.points[keep]
        log_constant = (order - 1) * np.log(np.maximum(order - 1, EPS**2)) - order * np.log(order)
        log_bound = self.bounded_growth[keep] + log_constant + 64 * EPS * order
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            found = np.exp((log_bound - np.multiply.outer(log_gamma, order - 1)).min(axis=1))
        left_out = self.loss.unseen + (self.loss.dropped[1] if direction == "remove" else self.loss.dropped_below[0])
        return np.asarray(np.minimum(np.nan_to_num(found, nan=1.0) * (1 + 8 * EPS) + left_out, 1.0))

    def saddles(self, poles: tuple[float, ...], *, above: bool) -> tuple[FloatArray, FloatArray]:
        """About the logarithm of an integral over a line at rising thresholds; nothing is claimed of it.

        Each point beyond all ``poles`` is the saddle point c of e^{K(w) − wℓ}/Π(w − pole) for some ℓ. The integral is
        in units of e^{−pℓ}, p the pole next to c: with one pole a tail under "out" (0) or "in" (1), with both a hockey
        stick in one order of the worlds.
        """
        keep = self.points > max(poles) if above else self.points < min(poles)
        offsets = np.stack([self.points[keep] - pole for pole in poles])
        level = self.mean[keep] - (1 / offsets).sum(axis=0)
        curvature = self.variance[keep] + (1 / offsets**2).sum(axis=0)
        nearest = np.abs(offsets).min(axis=0) * (1 if above else -1)
        log_value = self.growth[keep] - nearest * level - np.log(np.abs(offsets)).sum(axis=0)
        log_value -= np.log(2 * np.pi * curvature) / 2
        outwards = np.diff(log_value) * (1 if above else -1)
        wrong = np.flatnonzero(~(outwards <= 0))  # beyond, rarest outcomes are a larger mode of tilted laws
        if wrong.size:
            kept = slice(None, wrong[0] + 1) if above else slice(wrong[-1] + 1, None)
            level, log_value = level[kept], log_value[kept]
        return level, log_value

    def threshold_guesses(self, alpha: FloatArray, direction: Direction) -> FloatArray:
        """Thresholds at which the likelihood ratio test has about these false positive rates."""
        pole = 0.0 if direction == "remove" else 1.0
        level, odds = [], []
        for above in (False, True):
            at, log_tail = self.saddles((pole,), above=above)
            half = log_tail < math.log(0.5)
            found = log_tail[half] - np.log1p(-np.exp(log_tail[half]))
            level.append(at[half])
            odds.append(found if above else -found)  # of a loss above
        target = np.log(alpha) - np.log1p(-alpha)
        return self._looked_up(
            target if direction == "remove" else -target, np.concatenate(odds), np.concatenate(level)
        )

    def epsilon_guesses(self, delta: FloatArray, direction: Direction) -> FloatArray:
        """About the ε at which the hockey stick is δ."""
        level, log_value = self.saddles((0.0, 1.0), above=direction == "remove")
        sign = 1.0 if direction == "remove" else -1.0
        order = np.argsort(sign * level)
        level, log_value = (sign * level)[order], log_value[order]
        first = sign * self.landmarks[2 if direction == "remove" else 0]
        if level.size and level[0] > first:  # none is near the middle, where the hockey stick is below the spread
            level, log_value = np.append(first, level), np.append(min(math.log(self.landmarks[3]), 0.0), log_value)
        return self._looked_up(np.log(delta), log_value, level)

    def _looked_up(self, wanted: FloatArray, falling: FloatArray, level: FloatArray) -> FloatArray:
        if not level.size:
            return np.full_like(wanted, self.landmarks[1])
        spread = self.landmarks[3]  # between levels that lie far apart the smaller is the better guess
        found = np.interp(-wanted, -np.minimum.accumulate(falling), np.arcsinh(level / spread))
        return np.asarray(spread * np.sinh(found))


def _away(loss: PrivacyLoss) -> FloatArray:
    spread = math.sqrt(loss.cumulants(0.5)[2])
    if not spread > 1e-12:
        raise TooSlowError("the law is an atom in double precision")
    return _AWAY / spread


def log_affinity(loss: PrivacyLoss) -> float:
    """2·K(½), the logarithm of (Σ √(pq))², rounded up; 0 where it is not known."""
    try:
        growth = loss.cumulants(0.5)[0]
    except TooSlowError:
        return 0.0
    found = 2 * (growth + ROUNDING_OF_K) + 64 * EPS * abs(growth)
    return min(found, 0.0) if math.isfinite(found) else 0.0


def rates_of_affinity(log_affinity: float, fpr: FloatArray) -> FloatArray:
    """TPR ≥ 1 − e^{2K(½)}/FPR, as out(L > ℓ) ≤ e^{K(½) − ℓ/2} and in(L ≤ ℓ) ≤ e^{K(½) + ℓ/2}, in either direction."""
    with np.errstate(divide="ignore"):
        missed = np.exp(np.minimum(log_affinity - np.log(fpr), 0.0))
    return np.maximum((1 - missed) * (1 - 8 * EPS) - 8 * EPS * missed, fpr)


def at_an_end(loss: PrivacyLoss, threshold: FloatArray) -> NDArray[np.bool_]:
    """Whether the range of the loss, whose ends are rounded, may end at a threshold."""
    lowest, highest = -loss.largest_log_ratio("add", "upper"), loss.largest_log_ratio("remove", "upper")
    at_lowest = (threshold >= lowest) & (threshold <= loss.lowest)
    return np.asarray(at_lowest | (threshold >= loss.highest) & (threshold <= highest))
