"""Trade-offs read off the likelihood ratio test: what every engine that knows the tails of the loss shares."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields

import numpy as np

from deniable._check import FloatArray
from deniable.accounting.loss import EPS
from deniable.curves import Direction, Side, Tradeoff


@dataclass(frozen=True, eq=False)
class Tails:
    """Both laws' tails at thresholds ℓ of the loss, and hockey sticks, each with an absolute error bound.

    ``*_above`` is the probability of L > ℓ, ``*_below`` of L ≤ ℓ, ``*_density`` the density at ℓ (for
    Newton's method only: it carries no bound). ``stick`` is H_γ(in‖out) at γ = e^ℓ,
    ``back`` is γ·H_{1/γ}(out‖in) = H_γ − 1 + γ.
    """

    threshold: FloatArray
    out_above: FloatArray
    out_below: FloatArray
    out_error: FloatArray
    out_density: FloatArray
    in_above: FloatArray
    in_below: FloatArray
    in_error: FloatArray
    in_density: FloatArray
    stick: FloatArray
    back: FloatArray
    stick_error: FloatArray

    def stacked(self) -> FloatArray:
        """Return all fields as the rows of one array, in order."""
        return np.stack([getattr(self, f.name) for f in fields(self)])

    @classmethod
    def below(cls, threshold: FloatArray, out: FloatArray, inside: FloatArray) -> Tails:
        """Tails of which only upper bounds on out(L > ℓ) and in(L > ℓ) are known."""
        out, inside = np.minimum(out, 1.0) / 2, np.minimum(inside, 1.0) / 2
        with np.errstate(over="ignore"):
            back = np.exp(threshold) - 1 + inside
        none = np.zeros_like(out)
        return cls(threshold, out, 1 - out, out, none, inside, 1 - inside, inside, none, inside, back, inside)

    @classmethod
    def above(cls, threshold: FloatArray, out: FloatArray, inside: FloatArray) -> Tails:
        """Tails of which only upper bounds on out(L ≤ ℓ) and in(L ≤ ℓ) are known."""
        with np.errstate(over="ignore"):
            gamma = np.exp(threshold)
            back = np.minimum(gamma * np.minimum(out, 1.0), 1e300) / 2
        out, inside = np.minimum(out, 1.0) / 2, np.minimum(inside, 1.0) / 2
        none = np.zeros_like(out)
        return cls(threshold, 1 - out, out, out, none, 1 - inside, inside, inside, none, 1 - gamma + back, back, back)

    def test(self, direction: Direction) -> tuple[FloatArray, ...]:
        """False and true positive rate of the likelihood ratio test, their errors, log γ and the slope of log-odds."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if direction == "add":
                slope = -self.out_density / (self.out_above * self.out_below)
                return self.out_above, self.in_above, self.out_error, self.in_error, self.threshold, slope
            slope = self.in_density / (self.in_above * self.in_below)
            return self.in_below, self.out_below, self.in_error, self.out_error, -self.threshold, slope

    def log_odds(self, direction: Direction) -> FloatArray:
        """Log-odds of a false positive; NaN where the rate is lost in its error."""
        rate, rest = (self.out_above, self.out_below) if direction == "add" else (self.in_below, self.in_above)
        error = self.out_error if direction == "add" else self.in_error
        known = (rate > 2 * error) & (rest > 2 * error)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(known, np.log(np.abs(rate)) - np.log(np.abs(rest)), np.nan)


@dataclass(frozen=True)
class LikelihoodRatioTradeoff(Tradeoff):
    """A trade-off whose engine gives the tails of the loss at thresholds and near false positive rates."""

    @abstractmethod
    def _tails(self, threshold: FloatArray, wanted: str = "stick") -> Tails:
        """Tails of the loss at finite thresholds; the ``wanted`` field with relative accuracy where possible."""

    @abstractmethod
    def _tests(self, alpha: FloatArray, direction: Direction) -> Tails:
        """Likelihood ratio tests with false positive rates near ``alpha``; nearness matters for tightness only."""

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        low, high = self._stick_bracket(log_gamma, direction)
        return high if side == "upper" else low

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        low, high = self._roc_bracket(fpr, direction)
        return high if side == "upper" else low

    def _stick_bracket(self, log_gamma: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        threshold = log_gamma if direction == "add" else -log_gamma
        finite = np.isfinite(threshold)
        tails = self._tails(np.where(finite, threshold, 0.0), "stick" if direction == "add" else "back")
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if direction == "add":
                value, error = tails.stick, tails.stick_error
            else:  # H_{1/γ}(out‖in) = back/γ
                scale = np.exp(np.minimum(log_gamma, 709.0))
                value, error = scale * tails.back, scale * tails.stick_error
            slack = error + 8 * EPS * np.abs(value)
            low, high = value - slack, value + slack
        trivial = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)  # H_γ ≥ 1 − γ
        end = np.where(log_gamma > 0, 0.0, 1.0)
        low = np.where(finite, np.clip(np.where(np.isfinite(low), low, 0.0), trivial, 1.0), end)
        high = np.where(finite, np.clip(np.where(np.isfinite(high), high, 1.0), trivial, 1.0), end)
        return low, high

    def _roc_bracket(self, fpr: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Bracket the best true positive rate by the likelihood ratio test at nearby thresholds.

        Upper: TPR ≤ P(S) + γ(α − Q(S)) for every likelihood ratio test S at γ (weak duality). Lower: the test itself,
        mixed with "never accuse" if its false positive rate may exceed α.
        """
        low, high = fpr.copy(), fpr.copy()
        inside = np.flatnonzero((fpr > 0) & (fpr < 1))
        if inside.size:
            alpha = fpr[inside]
            found = self._tests(alpha, direction).test(direction)
            rate, tpr, rate_error, tpr_error, log_gamma, _ = found
            with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
                gap = alpha - rate + rate_error + 4 * EPS * alpha
                above = tpr * (1 + 8 * EPS) + tpr_error + np.exp(np.minimum(log_gamma, 709.0)) * gap
                share = np.minimum(alpha / (rate + rate_error), 1.0)
                below = share * (tpr - tpr_error) * (1 - 8 * EPS)
            high[inside] = np.clip(np.where(np.isfinite(above), above, 1.0), alpha, 1.0)
            low[inside] = np.clip(np.where(np.isfinite(below), below, alpha), alpha, 1.0)
        return low, high
