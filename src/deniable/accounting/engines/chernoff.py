"""Chernoff's bound on the tails of a composed loss: what is known without any line of its transform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.engines.inversion import ROUNDING_OF_K
from deniable.accounting.engines.likelihood import Tails
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Direction


@dataclass(frozen=True, eq=False)
class Chernoff:
    """The least of the bounds from a ladder of θ; ``middle`` is K′(½) and ``spread`` √K″(½)."""

    loss: PrivacyLoss
    middle: float
    spread: float

    def tails(self, threshold: FloatArray) -> Tails:
        """What is known without a line, from Chernoff's bound on either side of the middle.

        Above: out(L > ℓ) ≤ e^{K(θ) − θℓ} and in(L > ℓ) ≤ e^{K(θ) − (θ − 1)ℓ} for θ ≥ 1. Below: the same expressions
        bound out(L ≤ ℓ) and in(L ≤ ℓ) for θ ≤ 0.
        """
        upper = Tails.below(threshold, *self.masses(threshold, 0)).stacked()
        lower = Tails.above(threshold, *self.masses(threshold, 1)).stacked()
        return Tails(*np.where(threshold > self.middle, upper, lower))

    def masses(self, threshold: FloatArray, side: int) -> tuple[FloatArray, FloatArray]:
        """Bounds under "out" and "in" on the mass above thresholds (side 0) or below them (side 1)."""
        points, growth = self.witnesses[side]
        # K is computed, so a little is charged for its rounding; at 0 and 1 it is known to be 0
        slack = np.where((points == 0) | (points == 1), 0.0, ROUNDING_OF_K + 64 * EPS * np.abs(growth))
        growth = np.where((points == 0) | (points == 1), 0.0, growth) + slack
        exponent = growth - np.multiply.outer(threshold, points)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            out, inside = np.exp(exponent.min(axis=1)), np.exp((exponent + threshold[:, None]).min(axis=1))
        return np.nan_to_num(out, nan=1.0), np.nan_to_num(inside, nan=1.0)

    def hockey_stick(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """Chernoff's bound on the hockey stick: that on the mass above γ in one order of the worlds or the other."""
        pair = self.masses(log_gamma, 0) if direction == "add" else self.masses(-log_gamma, 1)
        return np.minimum(pair[1 if direction == "add" else 0], 1.0)

    def epsilon_guesses(self, delta: FloatArray, direction: Direction) -> FloatArray:
        """About the ε of each δ: the bound solved for ε, corrected as at a saddle point; ∞ where nothing is known."""
        side = 0 if direction == "add" else 1
        points, growth = self.witnesses[side]
        order, growth = np.abs(points[1:] - side), growth[1:]  # θ of the worlds in this order, above 1
        if not order.size:
            return np.full_like(delta, np.inf)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bound = (growth - np.log(delta)[:, None]) / (order - 1)
            best = np.argmin(np.where(np.isfinite(bound), bound, np.inf), axis=1)
            c, epsilon = order[best], bound[np.arange(delta.size), best]
            steep = np.gradient(np.gradient(growth, order), order)[best] if order.size > 2 else np.ones_like(c)
            factor = np.log(c * (c - 1)) + np.log(2 * np.pi * steep) / 2
            corrected: FloatArray = epsilon - np.nan_to_num(np.maximum(factor, 0.0), posinf=0.0) / (c - 1)
        return np.nan_to_num(corrected)

    def threshold_guesses(self, fpr: FloatArray, direction: Direction) -> FloatArray:
        """Thresholds, rising, at which the bound on the FPR is about as asked; none where nothing is known."""
        points, growth = self.witnesses[0 if direction == "add" else 1]
        order = np.abs(points if direction == "add" else points - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = (growth - np.log(fpr)[:, None]) / order
        knots = np.min(np.where(order > 0, reach, np.inf), axis=1, initial=np.inf)
        return np.unique(knots[np.isfinite(knots)] * (1.0 if direction == "add" else -1.0))

    @cached_property
    def witnesses(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Points θ ≥ 1 with K(θ), up to where the rarest outcomes dominate, and points θ ≤ 0."""
        loss, spread = self.loss, self.spread
        last = 40 / max(spread, 1e-150)  # squares of rates below that underflow
        left = -np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 60) * last])
        if loss.steps.size:
            last = min(last, loss.furthest) + 3
        right = 1 + np.concatenate([[0.0], np.geomspace(min(1e-3, last), last, 40)])
        return loss.log_mgf_known(right), loss.log_mgf_known(left)


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
    lowest, highest = -loss.largest_log_ratio("remove", "upper"), loss.largest_log_ratio("add", "upper")
    at_lowest = (threshold >= lowest) & (threshold <= loss.lowest)
    return np.asarray(at_lowest | (threshold >= loss.highest) & (threshold <= highest))
