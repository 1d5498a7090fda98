"""The privacy loss of composed Poisson-subsampled Gaussian steps, known through its transform.

Out of the data a step releases u ~ N(0, 1) (in units of the noise), in it (1−q)·N(0, 1) + q·N(1/σ, 1); the
likelihood ratio r(u) = 1 − q + q·exp(u/σ − 1/(2σ²)) gives the loss L = log r. Losses of composed steps add, so that
everything about T steps is in M(w)^T with M(w) = E_out[r^w]. Under "in" the transform is M(w + 1).

The integrals over u are trapezoid sums over nodes whose error :mod:`deniable.accounting.transform.nodes` bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray, InputError
from deniable._floats import EPS
from deniable.accounting.steps.base import Step
from deniable.accounting.steps.ratios import (
    log_ratio,
    randomized_response_cumulants,
)
from deniable.accounting.steps.registry import step_of
from deniable.accounting.transform.guide import Guide
from deniable.accounting.transform.line import TINY, Line, increments
from deniable.accounting.transform.nodes import Nodes, TooSlowError, Window, log_fade, nodes
from deniable.mechanisms import ApproximateDP, GaussianDP, Mechanism, PureDP, SubsampledGaussian

__all__ = ["EPS", "TINY", "Line", "PrivacyLoss"]

_CEILINGS = (10.5, 9.0, 12.0, 13.5, 16.0, 20.0, 26.0)
_DIGITS = 44.0  # −log of the relative error asked of sums over u: far below rounding even after a million steps
_FADED = 9.0  # widths beyond the middle of a window at which it ends: Φ(−9) is 1e-19


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """Composition of different phases (σ_j, q_j, T_j) and one Gaussian with loss variance μ².

    Attributes
    ----------
    noise, rate, steps
        One entry per phase with q < 1; phases with equal noise and rate are merged.
    gaussian
        μ² of everything Gaussian: ``GaussianDP`` and full-batch phases, μ² = Σ T/σ².
    randomized_responses
        (ε, count) of randomised responses, the worst pairs of pure DP: loss ε or −ε.
    others
        (step, count) of every other law of one step.
    ceiling
        Largest u of any step that is kept; the mass beyond is :attr:`dropped`.
    window
        (v, δ), one entry per phase each: densities are multiplied by Φ((v − u)/δ), which leaves a positive measure.
    """

    noise: FloatArray
    rate: FloatArray
    steps: FloatArray
    gaussian: float
    randomized_responses: tuple[tuple[float, float], ...] = ()
    others: tuple[tuple[Step, int], ...] = ()
    ceiling: float = math.inf
    window: Window | None = None
    _kept: list[Line] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, mechanisms: Iterable[Mechanism]) -> PrivacyLoss:
        """Merge equal phases and fold every Gaussian part into one; of (ε, δ)-DP parts, the δ is left to the caller."""
        phases: Counter[tuple[float, float]] = Counter()
        randomized_responses: Counter[float] = Counter()
        others: Counter[Step] = Counter()
        squared = 0.0
        for part in mechanisms:
            if isinstance(part, GaussianDP):
                squared += part.mu**2
            elif isinstance(part, PureDP | ApproximateDP):
                randomized_responses[part.epsilon] += 1
            elif isinstance(part, SubsampledGaussian) and (part.records_per_person == 1 or part.sample_rate == 1):
                if part.sample_rate == 1:
                    squared += part.steps * (part.records_per_person / part.noise_multiplier) ** 2
                else:
                    phases[part.noise_multiplier, part.sample_rate] += part.steps
            elif (known := step_of(part)) is not None:
                step, count = known
                if step.lowest < step.highest or any(step.only):  # else the two laws are the same
                    others[step] += count
            else:
                raise InputError(
                    f"mechanism must be made of deniable's mechanisms or your own subclasses of Step, got {part!r}"
                )
        keys = np.array(list(phases), dtype=np.float64).reshape(-1, 2)
        return cls(
            keys[:, 0],
            keys[:, 1],
            np.array(list(phases.values()), dtype=np.float64),
            squared,
            tuple((epsilon, float(count)) for epsilon, count in randomized_responses.items() if epsilon > 0),
            tuple(others.items()),
        )

    @cached_property
    def lowest(self) -> float:
        """Essential infimum of the composed loss: Σ T·log(1 − q), or −∞ with a Gaussian part."""
        bounded = self.steps @ np.log1p(-self.rate) - sum(
            epsilon * count for epsilon, count in self.randomized_responses
        )
        bounded += sum(step.lowest * count for step, count in self.others)
        return -math.inf if self.gaussian > 0 else float(bounded)

    @cached_property
    def highest(self) -> float:
        """Essential supremum: ∞ with any Gaussian part."""
        if self.gaussian > 0 or self.steps.size > 0:
            return math.inf
        bounded = sum(epsilon * count for epsilon, count in self.randomized_responses)
        return float(bounded + sum(step.highest * count for step, count in self.others))

    def windowed(self, place: FloatArray, width: FloatArray) -> PrivacyLoss:
        """The part of the law in which every step passes a smooth window."""
        return replace(self, ceiling=float(np.max(place + _FADED * width)), window=(place, width))

    @cached_property
    def faded(self) -> FloatArray:
        """Mass under "out" that the window takes from one step, one entry per phase."""
        if self.window is None:
            return np.zeros(self.steps.size)
        place, width = self.window
        mass: FloatArray = ndtr(-place / np.hypot(1.0, width))
        return mass

    @cached_property
    def truncation(self) -> PrivacyLoss:
        """The same without outcomes so rare (about 1e-25) that they only make real transforms at large c explode."""
        return self.truncations[0]

    @cached_property
    def truncations(self) -> tuple[PrivacyLoss, ...]:
        """The body and larger ones: the larger, the rarer what is left out and the larger the c that still explodes."""
        if self.steps.size == 0 or self.window is not None:
            return (self,)
        return tuple(replace(self, ceiling=height + 1 / float(self.noise.min())) for height in _CEILINGS)

    @cached_property
    def dropped(self) -> tuple[float, float]:
        """Mass that the ceiling takes from the composed law under "out" and under "in" (union bound)."""
        if math.isinf(self.ceiling):
            return 0.0, 0.0
        fade = np.exp(log_fade(self.window, np.array([self.ceiling]))[:, 0])
        fade = fade * (1 + 1e-9)  # for the rounding of these functions
        out, hit = fade * ndtr(-self.ceiling), fade * ndtr(1 / self.noise - self.ceiling)
        return float(np.sum(self.steps * out)), float(self.steps @ ((1 - self.rate) * out + self.rate * hit))

    @property
    def randomized_response_rounding(self) -> float:
        """Bound on the relative error of the transform of all randomised responses, over |w|."""
        return 4 * EPS * sum(epsilon * count for epsilon, count in self.randomized_responses)

    def edge(self, c: float) -> float:
        """Density left at the ceiling, relative to its largest value: 0 means that nothing is cut at real part c."""
        if math.isinf(self.ceiling):
            return 0.0
        line, end = self.real_line(c), np.array([self.ceiling])
        top = np.max(np.maximum(c * line.loss, 0) + line.log_weight, axis=1)
        cut = c * log_ratio(end, self.noise[:, None], self.rate[:, None]) - end**2 / 2 + log_fade(self.window, end)
        return float(np.exp(np.max(cut[:, 0] - top)))

    def line(self, c: float, t_max: float = 0.0, digits: float = _DIGITS) -> Line:
        """Prepare evaluations at w = c + it for 0 ≤ t ≤ ``t_max``, to a relative error of e^{−digits}."""
        return Line.on(self, c, self._nodes((c,), t_max, digits))

    def real_line(self, *points: float) -> Line:
        """A line for all real arguments between the ``points``; the nodes for −4 to 4 are kept."""
        outermost = max(points, key=abs)
        if abs(outermost) > 4:
            return Line.on(self, outermost, self._nodes((min(points), max(points))))
        if not self._kept:
            self._kept.append(Line.on(self, 0.0, self._nodes((-4.0, 4.0))))
        return replace(self._kept[0], c=outermost)

    def _nodes(self, points: tuple[float, ...], t_max: float = 0.0, digits: float = _DIGITS) -> Nodes:
        return nodes(self.noise, self.rate, self.ceiling, points, t_max, digits, self.window)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K(c), K′(c) and K″(c) of the composed loss under "out", for real c."""
        k, first, second = self.real_line(c).cumulants
        for step, count in self.others:
            more = step.cumulants(c)
            k, first, second = k + count * more[0], first + count * more[1], second + count * more[2]
        return k, first, second

    def guessed_cumulants(self, c: float) -> tuple[float, float, float]:
        """The same, quickly and to about ten digits: to choose a line, never for a bound."""
        if self.guide is None:
            return self.cumulants(c)
        try:
            k, first, second = self.guide.cumulants(c)
        except TooSlowError:
            return self.cumulants(c)
        found = k + self.gaussian * c * (c - 1) / 2, first + self.gaussian * (c - 0.5), second + self.gaussian
        more = [
            (count, *map(float, randomized_response_cumulants(epsilon, np.asarray(c))))
            for epsilon, count in self.randomized_responses
        ]
        more += [(float(count), *step.cumulants(c)) for step, count in self.others]
        for count, *parts in more:
            found = found[0] + count * parts[0], found[1] + count * parts[1], found[2] + count * parts[2]
        return found

    @cached_property
    def guide(self) -> Guide | None:
        """The subsampled steps on a few nodes; None if there are none, or too many."""
        if self.steps.size == 0:
            return None
        try:
            return Guide.of(self.noise, self.rate, self.steps, self.ceiling, self.window)
        except TooSlowError:
            return None

    def log_mgf(self, points: FloatArray) -> FloatArray:
        """K at several real points."""
        line = self.real_line(float(points.min()), float(points.max()))
        total = self.gaussian * points * (points - 1) / 2
        for epsilon, count in self.randomized_responses:
            total = total + count * randomized_response_cumulants(epsilon, points)[0]
        cut = line._at_ceiling(points)  # for an upper bound: these are Chernoff's
        for phase in range(self.steps.size):
            exponent, log_weight = np.multiply.outer(points, line.loss[phase]), line.log_weight[phase]
            top = np.max(exponent + log_weight, axis=1)
            rise = increments(exponent, log_weight, line.density_unit).sum(axis=1) - self.faded[phase]
            value = np.log1p(rise + cut[phase])
            for k in np.flatnonzero(top > 30):
                size = np.sum(np.exp(exponent[k] + log_weight - top[k])) * line.density_unit
                value[k] = top[k] + np.log(size + cut[phase, k] * np.exp(-top[k]))
            total = total + self.steps[phase] * value
        for step, count in self.others:
            total = total + count * step.log_mgf(points)
        return total

    def log_mgf_known(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of ``points`` (near ones first) at which K is small enough to be computed, and K there."""
        while points.size > 1:
            try:
                return points, self.log_mgf(points)
            except TooSlowError:
                points = points[: 7 * points.size // 8]
        return points, self.log_mgf(points)
