"""Rigorous bounds in ball arithmetic: the oracle of the tests, and what a sceptic may run. Needs python-flint.

Every number is the end of an interval that contains the truth, rounded outwards to a float: integrals, their tails,
truncations, rounding and special functions are enclosed by Arb and by the inequalities in
:mod:`deniable.proof.transform` and :mod:`deniable.proof.hockey_sticks`. Nothing numerical is shared with the engines of
:mod:`deniable.accounting`.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from flint import arb, ctx

from deniable._check import FloatArray, InputError
from deniable._floats import MOST_EXPONENT
from deniable._kept import Kept
from deniable._search import bisect
from deniable.curves import AnyDirection, Direction, Side, Tradeoff
from deniable.mechanisms import ApproximateDP, GaussianDP, Mechanism, PureDP, SubsampledGaussian
from deniable.proof.hockey_sticks import (
    PRECISION,
    Bounds,
    FiniteHockeySticks,
    GaussianHockeySticks,
    HockeySticks,
    InvertedHockeySticks,
    OneStepHockeySticks,
)
from deniable.proof.transform import BallStep

_FARTHEST = MOST_EXPONENT  # |ε| beyond which nothing is computed
_GAP = 1e-9  # of thresholds of tests, relative to the scale of the loss


class _Law(NamedTuple):
    law: HockeySticks
    failure: arb
    largest: tuple[float, float]  # of log-likelihood ratios: added, removed


@dataclass(frozen=True)
class BallTradeoff(Tradeoff):
    """Enclosed hockey sticks, and everything else from them.

    With probability ``failure`` some (ε, δ)-DP part gives the world away: H = failure + (1 − failure)·H of the rest.
    ``tpr``, ``delta`` and the advantage at a prior of ½ are proven to the last digit; ``hockey_stick`` and other priors
    round log γ first, and ``accuracy`` and ``precision`` add the rounding of one or two operations.
    TPR(α) = min over γ of γα + H_γ: any γ gives an upper bound; convexity of H between enclosed points a lower one.
    """

    parts: tuple[Mechanism, ...]
    method: str = field(default="ball arithmetic: every bound is proven", kw_only=True)
    _law: Kept[str, _Law] = field(default_factory=Kept, init=False, repr=False, compare=False)  # balls: never pickled
    _kept: Kept[tuple[float, Direction], Bounds] = field(default_factory=Kept, init=False, repr=False, compare=False)
    _tested: Kept[tuple[float, Direction], Bounds] = field(default_factory=Kept, init=False, repr=False, compare=False)

    @property
    def law(self) -> HockeySticks:
        """The hockey sticks of all but the failures.

        Raises
        ------
        InputError
            For parts that are not enclosed, and for laws that would take too long (see docs/methods.md).
        """
        return self._read.law

    @property
    def failure(self) -> arb:
        """The probability with which the world is given away."""
        return self._read.failure

    @property
    def _read(self) -> _Law:
        return self._law("law", lambda: _law_of(self.parts))

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        return self._read.largest[direction == "add"]

    def _bounds(self, x: float, direction: Direction) -> Bounds:
        """Both bounds on H at γ = e^x, exactly that float x."""
        return self._kept((x, direction), lambda: self._at(arb(x), direction))

    def _at(self, x: arb, direction: Direction) -> Bounds:
        with ctx.workprec(PRECISION):
            if abs(x) > _FARTHEST:  # H falls from 1 to 0, and is at least 1 − γ
                low, high = (arb(0), self._at(arb(_FARTHEST), direction)[1]) if x > 0 else (1 - x.exp(), arb(1))
                return low.lower(), high.upper()
            low, high = self.law.hockey_sticks(x, direction)
            rest = 1 - self.failure
            return (self.failure + rest * low).lower(), (self.failure + rest * high).upper().min(arb(1))

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        found = np.empty_like(log_gamma)
        for k, x in enumerate(log_gamma):
            if math.isinf(x):
                found[k] = 1.0 if x < 0 else outward(self.failure, side)
            else:
                found[k] = outward(self._bounds(float(x), direction)[side == "upper"], side)
        return found

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        found = np.empty_like(fpr)
        for k, alpha in enumerate(fpr):
            with ctx.workprec(PRECISION):
                low, high = self._rate(float(alpha), direction)
                bound = outward(high if side == "upper" else low, side)
            found[k] = min(max(bound, float(alpha)), 1.0)
        return found

    def _rate(self, alpha: float, direction: Direction) -> Bounds:
        return self._tested((alpha, direction), lambda: self._test(alpha, direction))

    def _test(self, alpha: float, direction: Direction) -> Bounds:
        rate = arb(alpha)
        if alpha == 1:
            return rate, rate
        if alpha == 0 and not isinstance(self.law, FiniteHockeySticks):  # the laws have the same null sets
            return self.failure, self.failure
        if isinstance(self.law, FiniteHockeySticks):  # γα + H is piecewise linear
            ends = [loss for loss, _ in self.law.outcomes]
            found = [
                (rate * x.exp() + low, rate * x.exp() + high) for x in ends for low, high in [self._at(x, direction)]
            ]
            return _least([low for low, _ in found]).min(arb(1)), _least([high for _, high in found]).min(arb(1))
        middle = self._threshold(alpha, direction)
        low, high = rate, arb(1)
        for widening in (1, 8, 64, 512):  # where H is known less well chords need points that lie farther apart
            places = [arb(middle) + arb(widening * self._gap) * k for k in (-2, -1, 1, 2)]
            gamma = [x.exp() for x in places]
            hockey_sticks = [self._at(x, direction) for x in places]
            high = _least([high, *(g * rate + up for g, (_, up) in zip(gamma, hockey_sticks, strict=True))])
            low = low.max(_lower_envelope(rate, gamma, hockey_sticks))
            if high - low < 1e-9 * low:
                break
        return low, high

    @cached_property
    def _gap(self) -> float:
        """Distance of the thresholds around the best one: second order in it is lost, and the error of H over it."""
        low, high = self._bounds(0.0, "remove")
        return max(_GAP, math.sqrt(float(high - low))) * self.law.scale

    def _threshold(self, alpha: float, direction: Direction) -> float:
        """The log γ at which γα + H is least, by bisection on the slope."""
        nudge = arb(self._gap)

        def falling(middle: FloatArray) -> bool:
            x = arb(float(middle))
            fall = self.law.guess(x - nudge, direction) - self.law.guess(x + nudge, direction)
            slope = alpha * ((x + nudge).exp() - (x - nudge).exp()) - (1 - self.failure) * fall
            return not float(slope.mid()) > 0

        low, high = -self.law.scale, self.law.scale
        while high < _FARTHEST and falling(np.array(high)):
            high *= 2
        while low > -_FARTHEST and not falling(np.array(low)):
            low *= 2
        halvings = math.ceil(math.log2(max(10 * (high - low) / float(nudge), 1.0)))
        before, after = bisect(falling, low, high, halvings=halvings)
        return float(before + after) / 2

    def epsilon_bracket(self, delta: FloatArray, direction: AnyDirection, side: Side) -> tuple[FloatArray, FloatArray]:
        """No ε will do for a δ below the probability of failure, which every H exceeds."""
        low, high = np.full_like(delta, np.inf), np.full_like(delta, np.inf)
        enough = np.array([not arb(wanted) < self.failure for wanted in delta.tolist()], dtype=bool)
        low[enough], high[enough] = super().epsilon_bracket(delta[enough], direction, side)
        return low, high

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        return np.zeros_like(delta), np.full_like(delta, self.law.scale)


def _law_of(parts: tuple[Mechanism, ...]) -> _Law:
    """What is computed from the parts of a composition."""
    merged: Counter[tuple[float, float]] = Counter()
    randomized_responses: Counter[float] = Counter()
    with ctx.workprec(PRECISION):
        squared, kept = arb(0), arb(1)
        for part in parts:
            if not math.isfinite(getattr(part, "mu", 0.0) + getattr(part, "epsilon", 0.0)):
                raise InputError(f"μ and ε must be finite, got {part!r}: it gives everything away, without proof")
            if isinstance(part, GaussianDP):
                squared += arb(part.mu) ** 2
            elif isinstance(part, SubsampledGaussian) and (part.records_per_person == 1 or part.sample_rate == 1):
                if part.sample_rate == 1:
                    squared += part.steps * (part.records_per_person / arb(part.noise_multiplier)) ** 2
                else:
                    merged[part.noise_multiplier, part.sample_rate] += part.steps
            elif isinstance(part, PureDP | ApproximateDP):
                randomized_responses[part.epsilon] += 1
                kept *= 1 - arb(getattr(part, "delta", 0.0))
            elif isinstance(part, SubsampledGaussian):
                raise InputError(
                    "ball arithmetic serves persons of one record: records_per_person must be 1 where sample_rate "
                    f"is below 1, got {part.records_per_person}; use deniable.tradeoff"
                )
            else:
                raise InputError(
                    "ball arithmetic serves SubsampledGaussian, GaussianDP, PureDP and ApproximateDP, got "
                    f"{part!r}; use deniable.tradeoff"
                )
        failure = 1 - kept
    steps = tuple((BallStep(sigma, rate), count) for (sigma, rate), count in merged.items())
    answers = tuple((epsilon, count) for epsilon, count in randomized_responses.items() if epsilon > 0)
    law: HockeySticks
    if not steps and not answers:
        law = GaussianHockeySticks(squared)
    elif not steps and squared == 0:
        law = FiniteHockeySticks.of(answers)
    elif not answers and squared == 0 and len(steps) == 1 and steps[0][1] == 1:
        law = OneStepHockeySticks(steps[0][0])
    else:
        law = InvertedHockeySticks(steps, squared, answers)
    return _Law(law, failure, _largest(steps, squared, answers, failure))


def _largest(
    steps: tuple[tuple[BallStep, int], ...],
    squared: arb,
    randomized_responses: tuple[tuple[float, int], ...],
    failure: arb,
) -> tuple[float, float]:
    """Essential suprema of the loss and of its negative, rounded up."""
    if failure > 0 or squared > 0:
        return math.inf, math.inf
    with ctx.workprec(PRECISION):
        answers = sum((arb(epsilon) * count for epsilon, count in randomized_responses), arb(0))
        removed = answers - sum((count * (-arb(step.rate)).log1p() for step, count in steps), arb(0))
        ends = [math.nextafter(float(value.upper()), math.inf) if value > 0 else 0.0 for value in (answers, removed)]
    return math.inf if steps else ends[0], ends[1]


def outward(value: arb, side: Side) -> float:
    """The float next to an enclosure of a probability on its safe side."""
    if not value.is_finite():
        return float(side == "upper")
    end = value.upper() if side == "upper" else value.lower()
    found = float(end)
    while (arb(found) < end) if side == "upper" else (arb(found) > end):
        found = math.nextafter(found, math.inf if side == "upper" else -math.inf)
    return min(max(found, 0.0), 1.0)


def _least(values: list[arb]) -> arb:
    found = values[0]
    for value in values[1:]:
        found = found.min(value)
    return found


def _lower_envelope(rate: arb, gamma: list[arb], hockey_sticks: list[Bounds]) -> arb:
    """A lower bound on γα + H_γ over all γ ≥ 0, from H enclosed at increasing γ and its convexity.

    Outside an interval between two points H lies above their chord: through the lower bound at the nearer and the upper
    bound at the farther one. Between points, where chords from both sides hold, so does any mixture of them.
    """

    def chord(near: int, far: int) -> tuple[arb, arb]:
        """(value, slope) at gamma[near] of α·γ + the chord."""
        slope = (hockey_sticks[near][0] - hockey_sticks[far][1]) / (gamma[near] - gamma[far])
        return rate * gamma[near] + hockey_sticks[near][0], slope + rate

    last = len(gamma) - 1
    value, slope = chord(0, 1)  # to the left, down to γ = 0, where H = 1
    candidates = [value.min(value - slope * gamma[0])]
    value, slope = chord(last, last - 1)  # to the right, without end
    candidates.append(value if slope >= 0 else rate * gamma[last])
    for k in range(last):
        lines = []  # (value at gamma[k], value at gamma[k + 1])
        width = gamma[k + 1] - gamma[k]
        if k > 0:
            value, slope = chord(k, k - 1)
            lines.append((value, value + slope * width))
        if k + 2 <= last:
            value, slope = chord(k + 1, k + 2)
            lines.append((value - slope * width, value))
        bounds = [a.min(b) for a, b in lines]
        if len(lines) == 2:
            (a, b), (c, d) = lines
            rise, fall = float((b - a).mid()), float((d - c).mid())
            if rise * fall < 0:  # the mixture that is level
                share = arb(min(max(fall / (fall - rise), 0.0), 1.0))
                bounds.append((share * a + (1 - share) * c).min(share * b + (1 - share) * d))
        best = bounds[0]
        for bound in bounds[1:]:
            best = best.max(bound)
        candidates.append(best)
    return _least(candidates).lower().max(rate)
