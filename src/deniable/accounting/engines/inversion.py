"""Transform inversion on vertical lines: tails of the privacy loss and hockey sticks with an error bound.

With w = c + it, the out-law transform M(w) = E_out[e^{wL}] and a threshold ℓ,

    out(L > ℓ)  = 1/(2πi) ∫ M(w) e^{−wℓ}      / w         dw      (c > 0; for c < 0 it is −out(L ≤ ℓ))
    in(L > ℓ)   = 1/(2πi) ∫ M(w) e^{−(w−1)ℓ}  / (w − 1)   dw      (c > 1; for c < 1 it is −in(L ≤ ℓ))
    H_{e^ℓ}     = 1/(2πi) ∫ M(w) e^{−(w−1)ℓ}  / (w(w−1))  dw      (c > 1; minus E min(p, γq) for 0 < c < 1;
                                                                   γ·H_{1/γ}(out‖in) for c < 0).

The trapezoid rule with spacing h turns each into itself plus aliases at ℓ + mΛ, Λ = 2π/h, which Chernoff's inequality
bounds by real transforms M(θ); the sum cut at t_N is wrong by at most ∫ |M(c + it)|/t^k beyond t_N; and rounding is
bounded by perturbing every term: every number comes as a :class:`deniable.accounting.trapezoid.Sum`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.engines.likelihood import Tails, dual_from, hockey_stick_from
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import ComplexArray
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.decay import Envelope
from deniable.accounting.transform.line import TINY
from deniable.accounting.trapezoid import Sum, half_line, nodes_until, poles

Region = Literal["left", "middle", "right"]  # c < 0, 0 < c < 1, c > 1
_EDGES: dict[Region, tuple[float, float]] = {"left": (-np.inf, 0.0), "middle": (0.0, 1.0), "right": (1.0, np.inf)}
_STEPS = np.array([0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0])
_MOST_NODES = 1 << 14
_MOST_SAMPLED, _FEW_PHASES = 1 << 20, 32  # terms of samples that only guess, of runs of at most so many phases
ROUNDING_OF_K = 1e-6  # far above the rounding of K at 10⁷ steps (measured), and nothing to Chernoff's bounds
MOST_CUT = 1e-9  # relative error that a ceiling in the midst of the law may cause


@dataclass(frozen=True, eq=False)
class Contour:
    """One line Re w = c with its nodes, serving thresholds near ``design``."""

    region: Region
    c: float
    design: float
    width: float  # √K″(c): thresholds within a few widths of the design keep relative accuracy
    growth: float  # K(c)
    period: float
    t: FloatArray
    # (nodes, 5): for out, in, hockey stick and the densities; the factor h/π and the half weight included
    coefficients: ComplexArray
    chernoff: FloatArray  # (2, points): θ − c and K(θ) − K(c)
    truncation: FloatArray  # (5,)
    rounding: FloatArray  # (5,) constant part, relative to the prefactor
    phase_rounding: FloatArray  # (5,) times |ℓ|
    dropped: tuple[float, float]  # mass left out of the two laws

    def tails(self, threshold: FloatArray) -> Tails:
        """Evaluate at every threshold; far from the design the errors grow, they never lie."""
        found = self.sums(threshold)
        q, p, s, density, in_density = found.value
        eq, ep, es, *_ = found.error
        if self.region == "left":
            out_below, in_below = -q, -p
            out_above, in_above = 1 + q, 1 + p
            dual, dual_error = s, es
            hockey_stick, hockey_stick_error = hockey_stick_from(s, es, threshold)
        else:
            in_below = -p if self.region == "middle" else 1 - p
            in_above = 1 + p if self.region == "middle" else p
            out_above, out_below = q, 1 - q
            # in the middle −s = E min(p, γq): H_γ = 1 + s, and γ·H_{1/γ}(out‖in) = γ + s
            hockey_stick, hockey_stick_error = (1 + s, es + 4 * EPS) if self.region == "middle" else (s, es)
            if self.region == "middle":
                with np.errstate(over="ignore"):
                    gamma = np.exp(threshold)
                    dual, dual_error = gamma + s, es + 4 * EPS * (gamma + np.abs(s))
            else:
                dual, dual_error = dual_from(s, es, threshold)
        return Tails(
            threshold, out_above, out_below, eq, density, in_above, in_below, ep, in_density,
            hockey_stick, dual, hockey_stick_error, dual_error,
        )  # fmt: skip

    def sums(self, threshold: FloatArray) -> Sum:
        """The three integrals and the two densities; what was left out counts as truncated."""
        total = self._integrals(threshold)
        missed = np.zeros_like(total.truncation)
        missed[:3] = np.stack(self._missed(threshold))
        # below the smallest normal number nothing has relative accuracy
        return replace(total, truncation=total.truncation + missed, rounding=total.rounding + TINY)

    def _missed(self, threshold: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What was left out takes at most this from out, in and the hockey stick.

        Above ℓ the in-law is at least e^ℓ times the out-law, below it is at most that, so that one mass bounds both.
        """
        out, inside = self.dropped
        with np.errstate(over="ignore", under="ignore"):
            gamma = np.exp(threshold)
            out_above = np.minimum(out, inside / np.maximum(gamma, TINY) + (gamma < TINY))
            in_below = np.minimum(inside, gamma * out) if out > 0 else np.full_like(threshold, inside)
            if self.region == "left":
                return np.full_like(threshold, out), in_below, gamma * out if out > 0 else in_below
            if self.region == "middle":
                return out_above, in_below, in_below
            in_above = np.full_like(threshold, inside)
        return out_above, in_above, in_above

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.t.size

    @cached_property
    def _blocks(self) -> ComplexArray:
        """The coefficients of t = h·(Ba + b) as B rows of A·5: e^{−itℓ} is then a product of two short tables."""
        length = math.isqrt(self.t.size - 1) + 1
        padded = np.zeros((length * -(-self.t.size // length), 5), dtype=np.complex128)
        padded[: self.t.size] = self.coefficients
        return padded.reshape(-1, length, 5).transpose(1, 0, 2).reshape(length, -1)

    def _sums(self, threshold: FloatArray) -> FloatArray:
        """Re Σ coefficients·e^{−itℓ} at every threshold: row by row, so that none depends on which others are asked."""
        sums = np.empty((threshold.size, 5))
        length, count = self._blocks.shape[0], self._blocks.shape[1] // 5
        rows = max(1, (1 << 17) // self._blocks.shape[1])
        for k in range(0, threshold.size, rows):
            turn = -2j * np.pi / self.period * threshold[k : k + rows]
            short, long = (np.exp(np.multiply.outer(turn, n)) for n in (np.arange(length), length * np.arange(count)))
            inner = (short[:, None, :] @ self._blocks).reshape(-1, count, 5)
            sums[k : k + rows] = (long[:, None, :] @ inner)[:, 0].real
        return sums

    def _integrals(self, threshold: FloatArray) -> Sum:
        sums = self._sums(threshold)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            exponent = self.growth - self.c * threshold
            prefactor = np.exp(
                np.stack([exponent, exponent + threshold, exponent + threshold, exponent, exponent + threshold])
            )
            argument = 2 * EPS * (np.abs(self.growth) + np.abs(self.c * threshold) + np.abs(threshold))
            rounding = self.rounding[:, None] + self.phase_rounding[:, None] * np.abs(threshold)
            values = prefactor * sums.T
            rounding = prefactor * rounding + np.abs(values) * argument
            return Sum(
                values, prefactor * self._aliases(threshold), prefactor * self.truncation[:, None], rounding
            ).checked()

    def _aliases(self, threshold: FloatArray) -> FloatArray:
        """Chernoff bound of all aliases, relative to the prefactor; the best θ on either side."""
        offset, log_ratio = self.chernoff
        total = np.zeros_like(threshold)
        for sign in (1.0, -1.0):
            side = offset * sign > 0
            distance = np.abs(offset[side]) * self.period
            relative_error = ROUNDING_OF_K + 64 * EPS * (np.abs(log_ratio[side]) + 2 * abs(self.growth))
            log_bound = log_ratio[side] + relative_error - np.multiply.outer(threshold, offset[side]) - distance
            total += np.exp(np.min(log_bound - np.log(-np.expm1(-distance)), axis=1, initial=MOST_EXPONENT))
        return total


def saddle(loss: PrivacyLoss, region: Region, threshold: float, start: float | None = None) -> float:
    """Return c near the minimum of K(c) − cℓ − log|c| − log|c − 1| in the region: the saddle of the integrand."""
    sign = 1.0 if region == "right" else -1.0
    # middle: c = 1/(1 + e^{−x}); else c = 1 + e^x or −e^x
    x = 0.0 if region == "middle" else -0.5 * math.log(max(loss.guessed_cumulants(0.5)[2], 1e-300))
    if start is not None:
        x = math.log(start / (1 - start)) if region == "middle" else math.log(abs(start - (sign > 0)))
    low, high = -MOST_EXPONENT, MOST_EXPONENT
    for _ in range(60):
        if region == "middle":
            c = 1 / (1 + math.exp(-x))
            speed = c * (1 - c)
        else:
            speed = sign * math.exp(x)
            c = speed + (sign > 0)
        if c in (0.0, 1.0):
            raise TooSlowError("the saddle point is at a pole")
        try:
            _, first, second = loss.guessed_cumulants(c)
        except TooSlowError:  # too far out
            high = x
            x = (low + high) / 2 if low > -MOST_EXPONENT else x - 2
            continue
        slope = (first - threshold - 1 / c - 1 / (c - 1)) * speed
        curvature = (second + 1 / c**2 + 1 / (c - 1) ** 2) * speed**2
        low, high = (x, high) if slope < 0 else (low, x)
        step = max(-2.0, min(2.0, -slope / curvature))
        if abs(slope) < 0.05 * math.sqrt(curvature):
            break
        x = x + step if low < x + step < high else (low + high) / 2
    return c


@dataclass(frozen=True, eq=False)
class Plan:
    """A line for thresholds near ``threshold``: where it stands, and about how much it takes to lay it."""

    loss: PrivacyLoss
    region: Region
    threshold: float
    c: float
    growth: float
    width: float
    chernoff: FloatArray
    log_target: float
    period: float
    likely: tuple[float, int]  # t at which samples are negligible, and nodes in u there: nothing is claimed of it

    @classmethod
    def of(cls, loss: PrivacyLoss, region: Region, threshold: float, tolerance: float) -> Plan:
        """Choose line and period.

        Raises
        ------
        TooSlowError
            If the tilted law is out of reach.
        """
        loss, c = _body_if_enough(loss, region, threshold)
        growth, _, variance = loss.cumulants(c)
        width = math.sqrt(variance)
        if not width * (1 + abs(c)) > 1e-12:
            raise TooSlowError("the tilted law is an atom in double precision")
        chernoff = _chernoff(loss, region, c, width, growth)
        # natural sizes of the three integrals, relative to the prefactor
        spread = min(1.0, 1 / (width * abs(c)))
        target = math.log(tolerance) + math.log(spread) - math.log(max(1.0, abs(c - 1)))
        period = period_for(chernoff, threshold, width, target)
        return cls(loss, region, threshold, c, growth, width, chernoff, target, period, _likely(loss, c, width, target))

    def within(self, factor: float) -> Plan:
        """The same line with errors that may be larger by a factor."""
        target = self.log_target + math.log(factor)
        period = period_for(self.chernoff, self.threshold, self.width, target)
        likely = _likely(self.loss, self.c, self.width, target)
        return replace(self, log_target=target, period=period, likely=likely)

    @property
    def nodes(self) -> float:
        """About how many nodes it has."""
        return self.likely[0] * self.period / (2 * math.pi) + 1

    @property
    def work(self) -> float:
        """About how many terms have to be summed to lay it."""
        return self.nodes * self.likely[1]

    def contour(self, most_nodes: int, work: float = math.inf) -> Contour:
        """Lay the line.

        Raises
        ------
        TooSlowError
            If it takes more than ``most_nodes`` nodes or ``work`` terms.
        """
        loss, c, period = self.loss, self.c, self.period
        spacing, target = 2 * math.pi / period, math.exp(self.log_target)
        envelope = Envelope.of(loss, c, self.width, target, work / 8)
        t_end, truncation = envelope.cut(target, spacing)
        t = nodes_until(t_end, spacing, most_nodes)
        line = loss.line(c, float(t[-1]))
        if not t.size * line.loss.size <= work:
            raise TooSlowError(f"{t.size} nodes of {line.loss.size} terms")
        log_m, transform_error = line.transform(t, spacing)
        w = c + 1j * t
        weight, kernel = half_line(t.size, period), poles(w)
        coefficients = (weight * np.exp(log_m))[:, None] * kernel
        sizes = np.abs(coefficients)
        rounding = np.abs(kernel).T @ (weight * transform_error) + 64 * EPS * sizes.sum(axis=0)
        return Contour(
            self.region, c, self.threshold, self.width, self.growth, period, t, coefficients, self.chernoff,
            truncation, rounding, 4 * EPS * (sizes.T @ t), loss.dropped,
        )  # fmt: skip


def contour(
    loss: PrivacyLoss,
    region: Region,
    threshold: float,
    tolerance: float,
    most_nodes: int = _MOST_NODES,
    work: float = math.inf,
) -> Contour:
    """Choose line, period and number of nodes for thresholds near ``threshold``, and lay the line.

    Raises
    ------
    TooSlowError
        If it takes more than ``most_nodes`` nodes or ``work`` terms.
    """
    return Plan.of(loss, region, threshold, tolerance).contour(most_nodes, work)


def _likely(loss: PrivacyLoss, c: float, width: float, log_target: float) -> tuple[float, int]:
    """Where samples of the transform, a factor of 2 apart, fall below the target, and terms per sample; or ∞."""
    t: FloatArray = 0.5 / width * 2.0 ** np.arange(24.0)
    for part in (t[:6], t[6:12], t[12:18], t[18:]):
        try:
            line = loss.line(c, float(part[-1]), 25.0)
        except TooSlowError:
            break
        if not part.size * line.loss.size <= _MOST_SAMPLED * max(1.0, loss.steps.size / _FEW_PHASES):
            break
        below = np.flatnonzero(line.log_transform(part).real < log_target)
        if below.size:
            return float(part[below[0]]), max(line.loss.size, 1)
    return math.inf, 1


def _body_if_enough(loss: PrivacyLoss, region: Region, threshold: float) -> tuple[PrivacyLoss, float]:
    """Leave out the rarest outcomes where they are no part of the answer, at a ceiling that cuts through little.

    At large c they are a second mode of the tilted law, far out and much larger than the first.
    """
    found: list[tuple[float, int, PrivacyLoss, float]] = []
    c: float | None = None
    for truncation in loss.truncations:
        try:
            c = saddle(truncation, region, threshold, c)
            size = truncation.guessed_cumulants(c)[0] - c * threshold
        except TooSlowError:
            continue
        if math.log(max(truncation.dropped[0], 1e-300)) < size - 20:
            edge = truncation.edge(c) if truncation.guide is None else truncation.guide.edge(c)
            if edge < 1e-19:
                return truncation, c
            found.append((edge, len(found), truncation, c))
    if found and min(found)[0] * loss.steps.sum() < MOST_CUT:
        _, _, truncation, c = min(found)
        return truncation, c
    return loss, saddle(loss, region, threshold)


def _chernoff(loss: PrivacyLoss, region: Region, c: float, width: float, growth: float) -> FloatArray:
    low, high = _EDGES[region]
    points: list[float] = []
    for sign, edge in ((1.0, high), (-1.0, low)):
        room = abs(edge - c)
        points += [sign * d for d in _STEPS / width if d < room] + ([sign * room] if np.isfinite(room) else [])
    offsets = np.array(points)
    return np.stack([offsets, loss.log_mgf(c + offsets) - growth])


def period_for(chernoff: FloatArray, threshold: float, width: float, target: float) -> float:
    """Smallest Λ for which aliases stay below the target for thresholds within three widths of the design."""
    offset, log_ratio = chernoff
    need = []
    for sign in (1.0, -1.0):
        side = offset * sign > 0
        exponent = log_ratio[side] - offset[side] * threshold - target + 0.7
        need.append(np.min(exponent / np.abs(offset[side]), initial=np.inf) + 3 * width)
    return float(max(*need, 6 * width))
