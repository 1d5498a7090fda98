"""Runs whose largest step is of a certain size: transform, decay, errors, and a line to invert it on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable._kept import Kept
from deniable.accounting.engines.inversion import MOST_CUT, Contour, period_for
from deniable.accounting.engines.windowed import Split, width
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import ComplexArray, complex_log1p
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.line import TINY, Line
from deniable.accounting.transform.responses import randomized_responses_rounding, randomized_responses_turned
from deniable.accounting.trapezoid import half_line, poles

_BESIDE = 6.0  # logarithm of how much larger than at the saddle point an integrand may be
POINTS = 48
_LEFT = -np.geomspace(100.0, 0.02, 20)  # θ below the poles and between them
_MIDDLE = np.linspace(0.04, 0.96, 24)


@dataclass(frozen=True, eq=False)
class Jumps:
    """Runs whose largest step lies between two windows: D = M_{j+1}^T − M_j^T.

    A phase whose two windows are one, such as many steps of much noise, and Gaussian parts are factors of both.
    """

    loss: PrivacyLoss
    low: FloatArray  # ends of the windows in u, one per phase
    high: FloatArray
    known: Kept[tuple[object, ...], FloatArray] = field(default_factory=Kept)  # real transforms of the factors

    @cached_property
    def jumping(self) -> NDArray[np.intp]:
        """The phases with something between their windows."""
        return np.flatnonzero(self.high > self.low)

    @cached_property
    def parts(self) -> tuple[tuple[int, Split, float], ...]:
        """Number, nodes and steps of each of these phases."""
        return tuple((k, self.splits[k], float(self.loss.steps[k])) for k in self.jumping.tolist())

    @cached_property
    def factors(self) -> PrivacyLoss:
        """The others and the Gaussian parts, without a window: an upper bound on real transforms."""
        loss, others = self.loss, np.setdiff1d(np.arange(self.low.size), self.jumping)
        return PrivacyLoss(
            loss.noise[others], loss.rate[others], loss.steps[others], loss.gaussian, loss.randomized_responses
        )

    @cached_property
    def whole(self) -> PrivacyLoss:
        """The law under the upper windows."""
        return self.loss.windowed(self.high, widths(self.loss))

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        """Every phase."""
        rows = np.stack([self.loss.noise, self.loss.rate, self.low, self.high], axis=1).tolist()
        return tuple(Split(sigma, rate, low, high, self.whole.ceiling) for sigma, rate, low, high in rows)

    def small(self, points: FloatArray) -> FloatArray:
        """log of the transform of "all steps small" at real points."""
        total = self.known((*self.jumping.tolist(), *points.tolist()), lambda: self._small_factors(points))
        for _, split, steps in self.parts:
            total = total + steps * split.small(points)
        return total

    def _small_factors(self, points: FloatArray) -> FloatArray:
        order = np.argsort(np.abs(points))
        near, growth = self.factors.log_mgf_known(points[order])
        found = np.full_like(points, np.inf)  # where a transform is too large to be known
        found[order[: near.size]] = growth
        return found

    def remainder(self, points: FloatArray) -> FloatArray:
        """log D at real points."""
        ratio = np.zeros_like(points)
        with np.errstate(invalid="ignore", divide="ignore"):  # ∞·0 where a transform is too large to be known; log 0
            for _, split, steps in self.parts:
                ratio = ratio + steps * np.log1p(split.rest(points) * np.exp(-split.small(points)))
            grown = np.where(ratio > 30, ratio, np.log(np.expm1(np.minimum(ratio, 30.0))))
        return self.small(points) + np.where(np.isnan(grown), np.inf, grown)

    def decay(self, c: float, t: FloatArray) -> FloatArray:
        """Bound on log |D(c + it)|, decreasing in t."""
        point = np.array([c])
        growth = np.zeros_like(t)
        for _, split, steps in self.parts:
            weight, loss = split.large(c)
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite becomes an infinite error bound
                size = np.abs(weight) * np.exp(c * loss.real)
                bound = np.exp(-np.multiply.outer(t, loss.imag)) @ size
                growth = growth + steps * np.log1p(bound / math.exp(float(split.small(point)[0])))
        with np.errstate(divide="ignore"):
            grown = np.where(growth > PRODUCT_EXPONENT, growth, np.log(np.expm1(np.minimum(growth, PRODUCT_EXPONENT))))
        bound_: FloatArray = self.small(point)[0] + grown
        return bound_

    def transform(self, line: Line, t: FloatArray, growth: float) -> tuple[ComplexArray, FloatArray]:
        """D(c + it)·e^{−growth} = −M^T·(expm1 Σ T·log1p(−M_l/M))·e^{−growth} and what errors of M do to it.

        An error of M changes D by at most as much as the larger of M^T and (M − M_l)^T, relatively, times the smaller
        of 2 and Σ T·|M_l|/max(|M|, |M − M_l|), which is a bound on their relative difference. Errors relative to the
        larger of M and M − M_l are carried through the T-th power in full, Π(1 + x)^T − 1.
        """
        c, spacing, size = line.c, float(t[1]), np.hypot(line.c, t)
        exponent = np.zeros(t.shape, dtype=np.complex128)
        variance = self.loss.gaussian
        turned = variance * (1j * t * (c - 0.5) - t**2 / 2)  # K(c + it) − K(c) of the Gaussian parts
        responses, relative_error = randomized_responses_turned(self.loss.randomized_responses, c, t)
        log_m = responses + line.cumulants[0] - growth + turned
        relative_error = relative_error + 2 * EPS * variance * (abs(c) + 1) * size
        relative_error += 4 * EPS * (np.abs(turned) + np.abs(responses))
        apart = np.zeros(t.shape)
        jumping = {phase: split for phase, split, _ in self.parts}
        for phase, steps in enumerate(self.loss.steps):
            log_ratio = line.log_ratio_of(phase, t, spacing)
            log_m += steps * log_ratio
            larger = np.ones(t.shape)
            if phase in jumping:
                weight, loss = jumping[phase].large(c)
                large = _even_sums(weight * np.exp(c * loss), spacing * loss, t.size)
                share = -large * np.exp(-log_ratio - line.log_mgf_of(phase))
                exponent += steps * complex_log1p(share)
                larger = np.maximum(np.abs(1 + share), 1.0)  # max(|M|, |M − M_l|)/|M|
                apart += steps * np.abs(share) / larger
            error = np.log(line.step_errors(phase, size) + TINY) - log_ratio.real - np.log(larger)
            relative_error += steps * (np.logaddexp(0.0, error) + 4 * EPS * np.abs(log_ratio))
        near = exponent.real < 30
        smaller = np.where(near, 0.0, log_m + exponent)
        values = np.where(
            near, -np.expm1(np.where(near, exponent, 0.0)) * np.exp(log_m), np.exp(log_m) - np.exp(smaller)
        )
        larger_power = log_m.real + np.maximum(exponent.real, 0.0)
        with np.errstate(over="ignore"):  # |Π(1 + x)^T − 1|: all orders of the errors x
            grown = np.exp(larger_power) * np.expm1(np.minimum(relative_error, 1.0))
            changed = np.where(relative_error < 1, grown, np.exp(larger_power + relative_error))
        return values, np.minimum(apart, 2.0) * changed

    def severed(self, c: float) -> float:
        """Bound on what nodes beyond either end do to M_l, relative to M_l(c); the last summand counts twice."""
        ends = []
        for _, split, _ in self.parts:
            _, log_weight, loss = split.real
            end = np.logaddexp(log_weight[-1] + c * loss[-1], split.before(c))
            ends.append(float(end) - math.log(float(split.rest(np.array([c]))[0]) + TINY))
        return 2 * math.exp(min(max(ends), 0.0))

    def noise(self, c: float, w: FloatArray, growth: float) -> FloatArray:
        """Bound on the rounding of Σ T·log1p(−M_l/M) carried into D·e^{−growth}, by perturbing every term of M_l."""
        total = np.zeros_like(w)
        for _, split, steps in self.parts:
            _, log_weight, loss = split.real
            u, sigma = split._real_u, split.sigma
            size = np.exp(np.minimum(c * loss + log_weight, PRODUCT_EXPONENT))
            plain = size @ (64 + u**2)
            posterior = -np.expm1(math.log1p(-split.rate) - loss)
            turned = size @ (4 * np.abs(loss) + 4 * posterior * (np.abs(u) / sigma + 1 / sigma**2))
            total += steps * (plain + w * turned) / math.exp(float(split.small(np.array([c]))[0]))
        return 120 * EPS * total * math.exp(min(float(self.small(np.array([c]))[0]) - growth, PRODUCT_EXPONENT))

    def judged(self, threshold: float, every: int = 1) -> Judged:
        """Real transforms for thresholds near this one, at one of ``every`` points."""
        noise = float(self.loss.noise[self.jumping].max())
        right = 1 + np.geomspace(0.02, max(15 * noise + 5, 60 / threshold), POINTS)
        points = np.concatenate([_LEFT[::every], [0.0], _MIDDLE[::every], [1.0], right[::every]])
        log_d = self.remainder(points)
        with np.errstate(divide="ignore"):
            height = log_d - points * threshold - np.log(np.abs(points * (points - 1)))
        return Judged(points, log_d, np.where(np.isfinite(height), height, np.inf))

    def mass(self, c: int) -> tuple[float, float]:
        """D(0) or D(1), the mass of either law, and a bound on its error."""
        growth = float(self.remainder(np.array([float(c)]))[0])
        t = np.array([0.0, 1e-3])
        line = self.whole.line(float(c), float(t[-1]))
        values, transform_error = self.transform(line, t, growth)
        noise = self.noise(float(c), np.array([float(c)]), growth)
        responses = randomized_responses_rounding(self.loss.randomized_responses, c, np.array(float(c)))
        relative = 2 * self.severed(float(c)) + float(responses) + 64 * EPS
        size = math.exp(growth)
        value = size * float(values[0].real)
        return value, size * float(transform_error[0] + noise[0]) + abs(value) * relative

    def plan(self, judged: Judged, threshold: float, tolerance: float, most_nodes: int) -> JumpPlan:
        """Choose a line for D, its period and its number of nodes.

        Raises
        ------
        TooSlowError
            If there is no saddle point, or more than ``most_nodes`` nodes would be needed.
        """
        points, log_d, best = judged.points, judged.log_d, judged.best
        if best is None:
            raise TooSlowError("no saddle point")
        least = judged.height[best]
        while (
            not max(float(self.loss.steps.sum()) * self.whole.edge(points[best]), self.severed(points[best])) < MOST_CUT
        ):
            best -= 1  # beside the saddle point the integrand is larger, but less of it lies beyond the windows
            if best == 0 or judged.height[best] > least + _BESIDE:
                raise TooSlowError("outcomes beyond the windows would matter")
        c, growth = float(points[best]), float(log_d[best])
        # aliases are bounded by transforms on this side of the poles
        same = (np.sign(points) * np.sign(c) >= 0) & (np.sign(points - 1) * np.sign(c - 1) >= 0)
        chernoff = np.stack([points - c, log_d - growth])[:, np.isfinite(log_d) & (points != c) & same]
        width = math.sqrt(max(_curvature(points, log_d, best), 1e-300))
        target = math.log(tolerance) - math.log(max(1.0, abs(c)) * max(1.0, abs(c - 1)))
        period = period_for(chernoff, threshold, width, target)
        h = 2 * math.pi / period
        edges = np.geomspace(h, 1e9 * h, 100)
        envelope = np.exp(np.minimum(self.decay(c, edges) - growth, PRODUCT_EXPONENT))
        terms = envelope[:-1] * (np.diff(edges) + h) / edges[:-1]
        # beyond, every e^{−t·Im L} falls by its least rate at least, and Π(1 + b)^T − 1 with it: it is convex, 0 at 0
        least = min(float(split.large(c)[1].imag.min()) for _, split, _ in self.parts)
        last = envelope[-1] * (1 / least + h) / edges[-1] if least > 0 else math.inf
        remaining = (np.concatenate([np.cumsum(terms[::-1])[::-1], [0.0]]) + last) / math.pi
        below = np.flatnonzero(remaining < math.exp(target))
        if not below.size or not edges[below[0]] <= most_nodes * h:
            raise TooSlowError("the transform decays slowly")
        count = math.ceil(edges[below[0]] / h) + 1
        return JumpPlan(self, c, growth, chernoff, width, period, count, float(remaining[below[0]]))


@dataclass(frozen=True, eq=False)
class JumpPlan:
    """A line for D: what it takes to lay it."""

    jumps: Jumps
    c: float
    growth: float
    chernoff: FloatArray
    width: float
    period: float
    count: int
    remaining: float

    @property
    def work(self) -> float:
        """About how many terms have to be summed to lay it."""
        return self.count * sum(split.size for split in self.jumps.splits) + 2e3 * self.jumps.loss.steps.size

    def contour(self, threshold: float) -> Contour:
        """Lay it."""
        c, growth, jumps = self.c, self.growth, self.jumps
        h = 2 * math.pi / self.period
        t: FloatArray = h * np.arange(self.count, dtype=np.float64)
        line = jumps.whole.line(c, float(t[-1]))
        w = c + 1j * t
        weight, kernel = half_line(self.count, self.period), poles(w)
        values, transform_error = jumps.transform(line, t, growth)
        coefficients = (weight * values)[:, None] * kernel
        sizes = np.abs(coefficients)
        noise = jumps.noise(c, np.abs(w), growth)
        responses = randomized_responses_rounding(jumps.loss.randomized_responses, c, np.abs(w))
        relative = 2 * jumps.severed(c) + responses + 64 * EPS
        rounding = sizes.T @ relative + np.abs(kernel).T @ (weight * (transform_error + noise))
        truncation = np.array([self.remaining] * 3 + [0.0, 0.0])
        # left of a pole the integral is minus what lies below the threshold: with the whole, what lies above
        (out, out_error), (inside, in_error) = (jumps.mass(pole) if c < pole else (0.0, 0.0) for pole in (0, 1))
        return Contour(
            "right", c, threshold, self.width, growth, self.period, t, coefficients, self.chernoff, truncation,
            rounding, 4 * EPS * (sizes.T @ t), jumps.whole.dropped, masses=(out, inside),
            mass_errors=(out_error, in_error),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Judged:
    """log D(θ) at real points, and the logarithm of the hockey stick's integrand: it is least at a saddle point.

    There is one in each of the three regions that the poles at 0 and 1 part; which is the lowest depends on whether the
    jumps lie above or below the threshold.
    """

    points: FloatArray
    log_d: FloatArray
    height: FloatArray

    @cached_property
    def best(self) -> int | None:
        """Where the lowest saddle point is, among those surrounded by points."""
        h = self.height
        saddle = np.isfinite(h[1:-1]) & (h[1:-1] <= h[:-2]) & (h[1:-1] <= h[2:])
        saddle &= np.isfinite(self.log_d[:-2]) & np.isfinite(self.log_d[2:])
        places = np.flatnonzero(saddle) + 1
        return int(places[np.argmin(h[places])]) if places.size else None

    def size(self, threshold: float) -> float:
        """Logarithm of Chernoff's bound on out(L > ℓ)."""
        return self._least(self.points >= 0, threshold)[2]

    def above(self, threshold: float) -> tuple[float, float, float]:
        """θ and log D(θ) of Chernoff's best bound on the mass above a threshold under "in", and the bound's log."""
        theta, log_d, bound = self._least(self.points >= 1, threshold)
        return theta, log_d, bound + threshold

    def below(self, threshold: float) -> tuple[float, float, float]:
        """The same of the mass below it under "out"."""
        return self._least(self.points <= 0, threshold)

    def _least(self, where: NDArray[np.bool_], threshold: float) -> tuple[float, float, float]:
        exponent = np.where(where & np.isfinite(self.log_d), self.log_d - self.points * threshold, np.inf)
        k = int(np.argmin(exponent))
        return float(self.points[k]), float(self.log_d[k]), float(exponent[k])


def widths(loss: PrivacyLoss) -> FloatArray:
    """Widths of the windows, one per phase."""
    return np.array([width(float(sigma)) for sigma in loss.noise])


def _curvature(points: FloatArray, values: FloatArray, k: int) -> float:
    a, b, c = points[k - 1 : k + 2]
    x, y, z = values[k - 1 : k + 2]
    return float(2 * (x / ((a - b) * (a - c)) + y / ((b - a) * (b - c)) + z / ((c - a) * (c - b))))


def _even_sums(weight: ComplexArray, turn: ComplexArray, count: int) -> ComplexArray:
    """Σ weight·e^{ikx} for k = 0, …, count − 1, with k = Ba + b from two short tables."""
    length = math.isqrt(count - 1) + 1
    near = np.exp(1j * np.multiply.outer(np.arange(length), turn))
    far = np.exp(1j * length * np.multiply.outer(np.arange(-(-count // length)), turn))
    sums: ComplexArray = ((far * weight) @ near.T).ravel()[:count]
    return sums
