"""Closed forms: a subsampled Gaussian step (Mahloujifar et al., Theorem 6), labelled ones, the largest of outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._search import bisect
from deniable._special import ndtr, ndtri
from deniable.accounting.engines.likelihood import LikelihoodRatioTradeoff, Tails, dual_from, hockey_stick_from
from deniable.accounting.renyi import loss_divergence
from deniable.accounting.sizes import FAR, UNDERFLOW
from deniable.accounting.steps.gaussian_mixture import GaussianMixtureStep
from deniable.accounting.steps.ratios import log_ratio, plain_losses
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Charged, Direction, Question, Side, Tradeoff

_TESTS = np.linspace(-8.0, 38.0, 1500)  # thresholds of the largest outcome that are tried for hockey sticks


@dataclass(frozen=True)
class OneStepTradeoff(LikelihoodRatioTradeoff):
    """N(0, σ²) against (1 − q)·N(0, σ²) + q·N(1, σ²): the likelihood ratio is monotone, so tests are half-lines.

    With the threshold u in units of the noise, out(S) = Φ(−u) and in(S) = (1 − q)Φ(−u) + qΦ(1/σ − u).
    """

    noise: float
    rate: float

    def _largest_log_ratio(self, direction: Direction) -> float:
        return math.inf if direction == "remove" else -math.log1p(-self.rate) * (1 + 4 * EPS)

    def _least_log_ratio(self, direction: Direction) -> float:
        return math.inf if direction == "remove" else -math.log1p(-self.rate) * (1 - 4 * EPS)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        one = np.ones(1)
        return loss_divergence(PrivacyLoss(self.noise * one, self.rate * one, one, 0.0), order, direction)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method, exact=True)

    def tails(self, threshold: FloatArray, wanted: str = "hockey_stick") -> Tails:
        u = self.noise * plain_losses(threshold, self.rate) + 0.5 / self.noise
        return self._at(threshold, u)

    def _at(self, threshold: FloatArray, u: FloatArray) -> Tails:
        """Tails of the half-line above u, a likelihood ratio test at e^threshold up to rounding."""
        q, shift = self.rate, 1 / self.noise
        out_above, out_below = ndtr(-u), ndtr(u)
        hit_above, hit_below = ndtr(shift - u), ndtr(u - shift)
        in_above, in_below = (1 - q) * out_above + q * hit_above, (1 - q) * out_below + q * hit_below
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            gamma = np.exp(threshold)
            fall = np.expm1(threshold)  # γ − 1
            # the argument of Φ is known to EPS·(|u| + 1/σ), which moves log Φ by at most that times |argument| + 1
            steep = 1 + np.minimum(np.abs(u) + shift, 40.0)  # beyond 40 nothing is left of Φ
            wobble = 8 * EPS * (1 + (np.abs(u) + shift) * steep)
            out_error = wobble * np.minimum(out_above, out_below) + UNDERFLOW
            in_error = wobble * np.minimum(in_above, in_below) + UNDERFLOW
            # either from what lies above or from what lies below, whichever loses less
            many = np.where(out_above > 0, fall * out_above, 0.0)
            few = np.where(out_below > 0, fall * out_below, 0.0)
            missed = self._missed(u, fall)
            hockey_stick = q * (hit_above - out_above) - many
            hockey_stick_error = wobble * (q * (hit_above + out_above) + np.abs(many)) + missed + UNDERFLOW
            dual = few + q * (out_below - hit_below)
            dual_error = wobble * (q * (out_below + hit_below) + np.abs(few)) + missed + UNDERFLOW
            other_dual, other_dual_error = dual_from(hockey_stick, hockey_stick_error, threshold)
            other_hockey_stick, other_hockey_stick_error = hockey_stick_from(dual, dual_error, threshold)
            density = np.exp(-(u**2) / 2)
            in_density = np.where(density > 0, density * np.minimum(gamma, 1e300), 0.0)
        above, below = hockey_stick_error <= other_hockey_stick_error, dual_error <= other_dual_error
        hockey_stick, hockey_stick_error = (
            np.where(above, hockey_stick, other_hockey_stick),
            np.where(above, hockey_stick_error, other_hockey_stick_error),
        )
        dual, dual_error = np.where(below, dual, other_dual), np.where(below, dual_error, other_dual_error)
        edge = np.isneginf(u)  # every outcome is above the threshold
        zero = np.zeros_like(u)
        edge_error = self._beyond_least_loss(threshold)
        all_hockey_stick, all_error = hockey_stick_from(zero, edge_error, threshold)
        end = np.isposinf(u)
        return Tails(
            threshold,
            out_above,
            out_below,
            np.where(edge, zero, out_error),
            density,
            in_above,
            in_below,
            np.where(edge, zero, in_error),
            in_density,
            np.where(edge, all_hockey_stick, np.where(end, zero, hockey_stick)),
            np.where(edge, zero, dual),
            np.where(edge, all_error, np.where(end, UNDERFLOW, hockey_stick_error)),
            np.where(edge, edge_error, dual_error),
        )

    def _beyond_least_loss(self, threshold: FloatArray) -> FloatArray:
        """Bound on the dual hockey stick at a threshold that rounding alone puts at or below the least loss log(1 − q).

        With γ = e^threshold it is at most γ − (1 − q), which is 0 below the least loss.
        """
        least = math.log1p(-self.rate) if self.rate < 1 else -math.inf
        unsure = threshold > least * (1 + 8 * EPS)
        return np.where(unsure & (self.rate < 1), 16 * EPS * -least * (1 - self.rate), 0.0)

    def _missed(self, u: FloatArray, fall: FloatArray) -> FloatArray:
        """Bound on the hockey stick that a test at u misses, u being known only to some rounding.

        Between u and the best threshold |p − γq| = φ·|r − γ|, and r changes by (γ − 1 + q)·(e^{Δu/σ} − 1) over Δu.
        """
        rise = np.maximum(fall + self.rate, EPS * self.rate)
        turned = np.where(np.isfinite(fall), 4 * EPS * (1 + np.abs(fall) / rise), 1.0)  # log1p loses digits near −1
        slip = self.noise * turned + 8 * EPS * (np.abs(u) + 1 / self.noise)
        height = np.exp(-(np.maximum(np.abs(u) - slip, 0.0) ** 2) / 2)
        return np.where(height > 0, height * slip * rise * np.expm1(np.minimum(slip / self.noise, MOST_EXPONENT)), 0.0)

    def _tests(self, alpha: FloatArray, direction: Direction) -> Tails:
        q, shift = self.rate, 1 / self.noise
        if direction == "remove":
            u = -ndtri(alpha)
        else:  # (1 − q)Φ(u) + qΦ(u − 1/σ) = α, bisected: Φ(u) lies between α and α/(1 − q)
            low, high = ndtri(alpha), np.minimum(ndtri(np.minimum(alpha / (1 - q), 1.0)), ndtri(alpha) + shift)
            u, _ = bisect(lambda u: (1 - q) * ndtr(u) + q * ndtr(u - shift) < alpha, low, high, halvings=60)
        return self._at(log_ratio(u, np.array(self.noise), np.array(q)), u)


@dataclass(frozen=True)
class LabelledTradeoff(LikelihoodRatioTradeoff):
    """One step of which the attacker is told a label that has the same law in both worlds: tails are mixed.

    ``cases`` are probabilities and the curves under each label; either law is known up to a factor 1 ± ``error``.
    """

    cases: tuple[tuple[float, OneStepTradeoff], ...]
    error: float
    method: str = field(default="closed form under every label", kw_only=True)

    @classmethod
    def of(cls, step: GaussianMixtureStep) -> LabelledTradeoff | None:
        """The curve of a step whose record comes with one number of others under each label, or None."""
        if any(len(case.records) != 2 or case.lost for case in step.cases):
            return None
        cases = ((c.probability, OneStepTradeoff(step.noise / c.records[1], c.weight[1])) for c in step.cases)
        return cls(tuple(cases), 2 * step.error + 8 * EPS)

    @cached_property
    def _lowest(self) -> FloatArray:
        return np.array([math.log1p(-one.rate) for _, one in self.cases])

    def _largest_log_ratio(self, direction: Direction) -> float:
        return math.inf if direction == "remove" else -float(self._lowest.min()) + 8 * self.error

    def _least_log_ratio(self, direction: Direction) -> float:
        return math.inf if direction == "remove" else max(-float(self._lowest.min()) - 8 * self.error, 0.0)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method, exact=True)

    def tails(self, threshold: FloatArray, wanted: str = "hockey_stick") -> Tails:
        """Tails; of tests in a direction, the false positive rate is charged little, the true one as a hockey stick."""
        rows = np.sum([share * one.tails(threshold).stacked() for share, one in self.cases], axis=0)
        found = replace(Tails(*rows), threshold=threshold)
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(threshold)
            # a law that is wrong by a factor has another best test: so has the hockey stick, by what the test shows
            near = np.abs(np.subtract.outer(threshold, self._lowest)) <= 8 * self.error
            edge = np.where(near.any(axis=1), 4 * self.error * (1 + gamma), 0.0)
            above = 4 * self.error * (found.in_above + gamma * found.out_above) + edge
            below = 4 * self.error * (found.in_below + gamma * found.out_below) + edge
            charged = {
                "hockey_stick_error": found.hockey_stick_error + above,
                "dual_error": found.dual_error + below,
                "out_error": found.out_error + (4 * self.error * found.out_above if wanted != "add" else below / gamma),
                "in_error": found.in_error + (4 * self.error * found.in_below if wanted == "add" else above),
            }
            return replace(found, **charged)

    def _tests(self, alpha: FloatArray, direction: Direction) -> Tails:
        return self._either_side(alpha, direction)[0]

    def _either_side(self, alpha: FloatArray, direction: Direction) -> tuple[Tails, Tails]:
        """Tests whose rates are at most, and more than, ``alpha``."""
        highest = max(
            float(log_ratio(*map(np.array, (FAR + 1 / one.noise, one.noise, one.rate)))) for _, one in self.cases
        )
        low, high = (np.full(alpha.shape, end) for end in (float(self._lowest.min()), highest))
        good, bad = (high, low) if direction == "remove" else (low, high)
        few, many = bisect(lambda x: self.tails(x, direction).test(direction)[0] <= alpha, good, bad)
        return self.tails(few, direction), self.tails(many, direction)

    def roc_bracket(self, fpr: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """From either of two neighbouring tests; from below, one of them at random."""
        low, high = super().roc_bracket(fpr, direction)
        inside = (fpr > 0) & (fpr < 1)
        tests = []
        for found in self._either_side(fpr[inside], direction)[::-1]:
            rate, hit, rate_error, hit_error, _, _ = found.test(direction)
            tests.append((np.minimum(rate + rate_error, 1.0), np.maximum(hit - hit_error, 0.0)))
        low[inside] = np.maximum(low[inside], one_of_two(fpr[inside], *tests))
        return low, high


def one_of_two(
    alpha: FloatArray, often: tuple[FloatArray, FloatArray], seldom: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """TPR of one of two tests at random, or of one of them and none, at false positive rates of at most ``alpha``.

    A test is its false positive rate, rounded up, and its true one, rounded down; NaN where nothing is reached.
    """
    (more, hit_more), (less, hit_less) = often, seldom
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.clip((alpha - less) / (more - less), 0.0, 1.0)
        mixed = np.where((less <= alpha) & (more > less), weight * hit_more + (1 - weight) * hit_less, 0.0)
        shares = [np.minimum(alpha / rate, 1.0) * hit for rate, hit in (often, seldom)]
    found: FloatArray = np.fmax.reduce([mixed, *shares]) * (1 - 8 * EPS)
    return found


@dataclass(frozen=True)
class LargestOutcomeTradeoff(Tradeoff):
    """What the test "the largest of all outcomes exceeds a threshold" reaches, from below; the upper side is trivial.

    One record in one uniformly drawn batch of each epoch, nothing else: with n = batches·epochs and u the threshold in
    units of the noise, out(max ≤ u) = Φ(u)ⁿ and in(max ≤ u) = Φ(u)^{n − E}·Φ(u − 1/σ)^E.
    """

    noise_multiplier: float
    batches: int
    epochs: int
    method: str = field(default="a test of the largest outcome", kw_only=True)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "upper":
            return np.ones_like(log_gamma)
        false, true = self._test(_TESTS, direction)
        with np.errstate(over="ignore", invalid="ignore"):
            cost = np.multiply.outer(np.exp(log_gamma), false) * (1 + 4 * EPS)
        value = true - cost - 4 * EPS
        return np.asarray(np.max(np.nan_to_num(value, nan=0.0, neginf=0.0), axis=1).clip(0.0, 1.0))

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "upper":
            return np.ones_like(fpr)
        never = FAR if direction == "remove" else -FAR
        ends = np.full(fpr.shape, never)
        u, _ = bisect(lambda u: self._test(u, direction)[0] <= fpr, ends, -ends, relative=1e-14)
        false, true = self._test(u, direction)
        return np.where(false <= fpr, np.maximum(true, fpr), fpr)

    def _least_log_ratio(self, direction: Direction) -> float:
        return 0.0

    def _test(self, u: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """An upper bound on the false, a lower bound on the true positive rate."""
        apart = u - 1 / self.noise_multiplier
        many, few = self.batches * self.epochs, self.epochs
        if direction == "remove":  # accuse above the threshold
            below_out = _log_power(u, many, "lower")
            below_in = _log_power(u, many - few, "upper") + _log_power(apart, few, "upper")
            return -np.expm1(below_out) * (1 + 8 * EPS) + UNDERFLOW, -np.expm1(below_in) * (1 - 8 * EPS)
        below_in = _log_power(u, many - few, "upper") + _log_power(apart, few, "upper")
        return np.exp(below_in) * (1 + 8 * EPS) + UNDERFLOW, np.exp(_log_power(u, many, "lower")) * (1 - 8 * EPS)


def _log_power(u: FloatArray, count: int, side: Side) -> FloatArray:
    """A bound on count·log Φ(u), at most 0."""
    if count == 0:
        return np.zeros_like(u)
    tail, wrong = ndtr(-u), 64 * EPS * (1 + u**2)
    tail = np.minimum(tail * (1 + wrong) if side == "lower" else tail * (1 - wrong), 1.0)
    with np.errstate(divide="ignore"):
        found = count * np.log1p(-np.maximum(tail, 0.0)) * (1 + 4 * EPS if side == "lower" else 1 - 4 * EPS)
    return np.asarray(np.minimum(found, 0.0))
