"""One step that takes the record with some probability, in closed form where the step with every record has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable._search import bisect
from deniable._special import ndtr
from deniable.accounting.steps.ratios import plain_losses, sampled_losses
from deniable.curves import Direction, Side, Tradeoff

_HALVINGS = 64  # of the deviations that all false positive rates lie between


@dataclass(frozen=True)
class SampledTradeoff(Tradeoff):
    """Q against (1 − q)·Q + q·P, of a symmetric pair (P, Q) whose curve is ``whole`` (Mahloujifar et al., Theorem 6).

    With r = dP/dQ, H_γ of in against out is E_Q (q·r − k)₊ = q·H_{k/q}(P‖Q), k = γ − 1 + q, and its true positive rate
    is (1 − q)·α + q·TPR. Out against in, H_γ is E_Q (a − b·r)₊ = a·H_{b/a}(Q‖P), a = 1 − γ·(1 − q) and b = γ·q; a test
    of rates x under P and y(x) under Q has (1 − q)·y + q·x under the sampled law, which rises with x.
    """

    whole: Tradeoff
    rate: float
    divergences: Callable[[FloatArray, Direction], FloatArray] = field(compare=False)

    _closed = True

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        outwards = 1.0 if side == "upper" else -1.0
        with np.errstate(all="ignore"):
            if direction == "remove":
                value = self._kept(log_gamma, outwards, side)
            else:
                value = self._missed(log_gamma, outwards, side)
        return np.asarray(np.clip(value * (1 + outwards * 16 * EPS), 0.0, 1.0))

    def _kept(self, log_gamma: FloatArray, outwards: float, side: Side) -> FloatArray:
        rise, at = np.expm1(np.minimum(log_gamma, PRODUCT_EXPONENT)), plain_losses(log_gamma, self.rate)
        share = rise / self.rate  # k/q − 1, whose error weighs more where k/q is small
        wrong = 16 * EPS * np.abs(share) / np.maximum(1 + share, EPS) + 4 * EPS * np.abs(at)
        moved = np.where(np.isfinite(at), at - outwards * wrong, at)
        return np.where(np.isneginf(at), -rise, self.rate * self.whole.hockey_sticks(moved, "remove", side))

    def _missed(self, log_gamma: FloatArray, outwards: float, side: Side) -> FloatArray:
        log_rate, log_rest = np.log(self.rate), np.log1p(-self.rate)
        exponent = np.minimum(log_gamma, PRODUCT_EXPONENT) + log_rest
        least, size = -np.expm1(exponent), np.abs(log_gamma) - log_rest
        a = least + outwards * 8 * EPS * (np.abs(least) + np.where(exponent > -np.inf, size * np.exp(exponent), 0.0))
        at = log_gamma + log_rate - np.log(a)
        wrong = 8 * EPS * (np.abs(log_gamma) - log_rate + np.abs(np.log(a)))
        moved = np.where(np.isfinite(at), at - outwards * wrong, at)
        return np.where(a > 0, a * self.whole.hockey_sticks(np.where(a > 0, moved, 0.0), "add", side), 0.0)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if direction == "remove":
            value = (1 - self.rate) * fpr + self.rate * self.whole.rates(fpr, "remove", side)
            value = value * (1 + (4 * EPS if side == "upper" else -4 * EPS))
        else:
            value = self._accusations(fpr, side)
        return np.where((fpr == 0) | (fpr == 1), fpr, np.clip(value, fpr, 1.0))

    def _accusations(self, fpr: FloatArray, side: Side) -> FloatArray:
        """y(x), or (α − q·x)/(1 − q), at x on a side of where the test has the rate α."""
        ends = np.full(fpr.shape, 37.0)  # deviations: where x would be 1e-300, it is nothing beside α
        below, above = bisect(lambda z: self._rate(ndtr(z), "upper") <= fpr, -ends, ends, halvings=_HALVINGS)
        few, many = ndtr(below), np.where(above < ends, ndtr(above), 1.0)
        few = np.where(self._rate(few, "upper") <= fpr, few, 0.0)
        short = np.maximum(fpr - self._rate(many, "lower"), 0.0)  # the rate rises by at least q
        many = np.minimum((many + short / self.rate) * (1 + 8 * EPS), 1.0)
        if side == "lower":
            least = (fpr * (1 - 8 * EPS) - self.rate * many * (1 + 4 * EPS)) / (1 - self.rate)
            return np.maximum(self.whole.rates(few, "add", "lower"), least)
        most = (fpr * (1 + 8 * EPS) - self.rate * few * (1 - 4 * EPS)) / (1 - self.rate)
        return np.minimum(self.whole.rates(many, "add", "upper"), most)

    def _rate(self, x: FloatArray, side: Side) -> FloatArray:
        """Mass of a test under the sampled law, from its mass under P."""
        found: FloatArray = (1 - self.rate) * self.whole.rates(x, "add", side) + self.rate * x
        return found * (1 + (4 * EPS if side == "upper" else -4 * EPS))

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        sign = 1.0 if direction == "remove" else -1.0
        whole = sign * self.whole.log_ratio_bound(direction, side)
        found = sign * float(sampled_losses(np.array(whole), self.rate))
        return found * (1 + (16 if side == "upper" else -16) * EPS)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return self.divergences(order, direction)
