"""Trade-offs of composed subsampled Gaussians by transform inversion."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable.accounting.inversion import Contour, Region, Tails, TooSlowError, contour
from deniable.accounting.loss import EPS, PrivacyLoss
from deniable.tradeoff import Direction, Side, Tradeoff

_REACH = 2.5  # widths from its design within which a contour keeps relative accuracy
_MOST_CONTOURS = 60
_NODES = (1024, 1 << 16)


@dataclass(frozen=True)
class InvertedTradeoff(Tradeoff):
    """Exact composition up to a stated error: every bound is a transform inversion ± its error bound.

    ``in`` against ``out`` of the composed privacy loss; lines are placed where they are needed and kept, so that a
    whole curve or a search over ε costs a few of them.
    """

    loss: PrivacyLoss
    tolerance: float = 1e-13
    _contours: list[Contour] = field(default_factory=list, init=False, repr=False, compare=False)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        threshold = log_gamma if direction == "add" else -log_gamma
        finite = np.isfinite(log_gamma)
        tails = self._tails(np.where(finite, threshold, 0.0))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if direction == "add":
                value, error = tails.stick, tails.stick_error
            else:  # H_γ(out‖in) = γ·back at 1/γ, back being scaled by its own γ = e^threshold
                scale = np.exp(np.minimum(log_gamma, 700.0))
                value, error = scale * tails.back, scale * tails.stick_error
        trivial = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
        slack = error + 8 * EPS * np.abs(value)
        bound = value + slack if side == "upper" else value - slack
        bound = np.where(np.isfinite(bound), bound, 1.0 if side == "upper" else 0.0)
        bound = np.clip(np.maximum(bound, trivial), 0.0, 1.0)
        return np.where(finite, bound, np.where(log_gamma > 0, 0.0, 1.0))

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        inside = (fpr > 0) & (fpr < 1)
        bound = fpr.copy()
        if inside.any():
            alpha = fpr[inside]
            tails = self._tails(self._thresholds(alpha, direction))
            bound[inside] = _rate(tails, alpha, direction, side)
        return np.clip(bound, fpr, 1.0)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return float("inf") if direction == "add" else -self.loss.lowest

    @cached_property
    def _landmarks(self) -> tuple[float, float, float, float, float, float]:
        """K′ at 0, ½ and 1 (the losses at which the natural line crosses the poles) and √K″ there."""
        cumulants = [self.loss.line(c).cumulants for c in (0.0, 0.5, 1.0)]
        first = [k[1] for k in cumulants]
        second = [float(np.sqrt(k[2])) for k in cumulants]
        return (first[0], first[1], first[2], second[0], second[1], second[2])

    def _regions(self, threshold: float) -> tuple[Region, ...]:
        """Regions to try for a threshold, the one with its saddle point first."""
        at_zero, at_half, at_one, _, spread, _ = self._landmarks
        if threshold >= at_one:
            return ("right", "middle", "left")
        if threshold <= at_zero:
            return ("left", "middle", "right")
        if spread > 2.5:
            return ("middle", "left", "right")
        return ("right", "left", "middle") if threshold > at_half else ("left", "right", "middle")

    def _contour_near(self, threshold: float) -> Contour:
        failure = TooSlowError()
        for most in _NODES:
            for region in self._regions(threshold):
                try:
                    made = contour(self.loss, region, threshold, self.tolerance, most)
                except TooSlowError as slow:
                    failure = slow
                    continue
                self._contours.append(made)
                return made
        raise failure

    def _assign(self, threshold: FloatArray) -> list[Contour]:
        """A contour near every threshold, made where none is near enough."""
        chosen: list[Contour | None] = [None] * threshold.size
        distance = np.full(threshold.size, np.inf)

        def offer(contour: Contour) -> None:
            d = np.abs(threshold - contour.design) / contour.width
            for k in np.flatnonzero(d < distance):
                chosen[k] = contour
            np.minimum(distance, d, out=distance)

        for known in self._contours:
            offer(known)
        while len(self._contours) < _MOST_CONTOURS and (distance > _REACH).any():
            far = np.flatnonzero(distance > _REACH)
            offer(self._contour_near(float(threshold[far[0]])))
        return [c for c in chosen if c is not None]

    def _tails(self, threshold: FloatArray) -> Tails:
        chosen = self._assign(threshold)
        rows = np.empty((10, threshold.size))
        for contour_ in {id(c): c for c in chosen}.values():
            mine = np.array([c is contour_ for c in chosen])
            rows[:, mine] = contour_.tails(threshold[mine]).stacked()
        return Tails(*rows)

    def _thresholds(self, alpha: FloatArray, direction: Direction) -> FloatArray:
        """Thresholds ℓ whose false positive rate is close to ``alpha``; any will do for soundness."""
        at_zero, _, at_one, low_spread, _, high_spread = self._landmarks
        start, spread = (at_zero, low_spread) if direction == "add" else (at_one, high_spread)
        target = np.log(alpha) - np.log1p(-alpha)
        knots = start + spread * np.linspace(-1.5, 1.5, 13)
        for sign in (1.0, -1.0):  # extend towards small and large false positive rates
            for _ in range(_MOST_CONTOURS):
                odds = self._log_odds(knots, direction)
                wanted = target.min() if (sign > 0) == (direction == "add") else target.max()
                end = -1 if sign > 0 else 0
                short = odds[end] > wanted if (sign > 0) == (direction == "add") else odds[end] < wanted
                if not short or not np.isfinite(odds[end]):
                    break
                width = min(self._contours, key=lambda c: abs(c.design - knots[end])).width
                more = knots[end] + sign * width * np.linspace(0.2, 2.4, 12)
                knots = np.sort(np.concatenate([knots, more]))
        odds = self._log_odds(knots, direction)
        fine = np.isfinite(odds)
        knots, odds = knots[fine], odds[fine]
        falling = 1.0 if direction == "remove" else -1.0
        order = np.maximum.accumulate(falling * odds) + 1e-12 * np.arange(odds.size)
        slope = np.gradient(order, knots)
        guess = np.interp(falling * target, order, knots)
        for _ in range(3):
            found = self._log_odds(guess, direction)
            step = falling * (target - found) / np.interp(guess, knots, slope)
            guess = guess + np.where(np.isfinite(step), step, 0.0)
        return guess

    def _log_odds(self, threshold: FloatArray, direction: Direction) -> FloatArray:
        tails = self._tails(threshold)
        rate, rest = (tails.out_above, tails.out_below) if direction == "add" else (tails.in_below, tails.in_above)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds: FloatArray = np.log(np.where(rate > 0, rate, np.nan)) - np.log(np.where(rest > 0, rest, np.nan))
        return odds


def _rate(tails: Tails, alpha: FloatArray, direction: Direction, side: Side) -> FloatArray:
    """Bound the true positive rate at ``alpha`` from the likelihood ratio test at nearby thresholds.

    Upper: TPR ≤ P(S) + γ(α − Q(S)) for every likelihood ratio test S at γ (weak duality). Lower: the test itself, mixed
    with "never accuse" if its false positive rate may exceed α.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if direction == "add":
            fpr, tpr, miss = tails.out_above, tails.in_above, tails.in_below
            fpr_error, tpr_error, log_gamma = tails.out_error, tails.in_error, tails.threshold
        else:
            fpr, tpr, miss = tails.in_below, tails.out_below, tails.out_above
            fpr_error, tpr_error, log_gamma = tails.in_error, tails.out_error, -tails.threshold
        if side == "upper":
            gap = alpha - fpr + fpr_error + 4 * EPS * alpha
            bound = tpr * (1 + 8 * EPS) + tpr_error + np.exp(np.minimum(log_gamma, 700.0)) * gap
            return np.where(np.isfinite(bound), np.clip(bound, alpha, 1.0), 1.0)
        most = fpr + fpr_error
        share = np.where(most > alpha, alpha / most, 1.0)
        bound = share * (tpr - tpr_error) * (1 - 8 * EPS)
        return np.where(np.isfinite(bound), np.clip(bound, alpha, 1.0), alpha)
