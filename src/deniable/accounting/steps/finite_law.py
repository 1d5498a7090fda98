"""Pairs of laws on finitely many outcomes: randomised responses, thresholds over steps, any two lists of masses.

With outcomes sorted by log-ratio l₁ < l₂ < …, γ_k = e^{l_k} and Q_k the mass of outcomes k, k + 1, … under Q, the
hockey stick is piecewise linear in γ and a sum without cancellation: H(γ_{k−1}) = H(γ_k) + (γ_k − γ_{k−1})·Q_k. The ROC
is piecewise linear, too: its corners are the tests "outcomes from k on", its slopes the γ_k.

Errors are relative (of masses), absolute (of log-ratios) or mass left out; each is charged outwards. Binomial laws
have a stated error, which SciPy's ``bdtr`` (wrong by up to 1e-3 for large counts) has not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, numbers
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable.accounting.sizes import BLOCK, MOST, NEGLIGIBLE, UNDERFLOW, UNLIKELY
from deniable.curves import Side


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """Two laws on the same outcomes, sorted by log-ratio.

    Attributes
    ----------
    log_ratio
        log P/Q of every outcome, increasing; each wrong by at most ``shift``.
    p, q
        Masses under either law; each wrong by at most a factor 1 ± ``relative_error``.
    only
        Mass of outcomes that only P, and that only Q can produce.
    lost
        Mass under P and under Q of outcomes that were left out.
    reach
        Essential suprema of log P/Q and of log Q/P, up to ``shift`` and rounding.
    """

    log_ratio: FloatArray
    p: FloatArray
    q: FloatArray
    relative_error: float
    shift: float
    only: tuple[float, float]
    lost: tuple[float, float]
    reach: tuple[float, float] = (math.inf, math.inf)

    @classmethod
    def of(cls, p: ArrayLike, q: ArrayLike) -> FiniteLaw:
        """Return the pair with these probabilities of the same outcomes, which are taken as exact.

        Raises
        ------
        InputError
            If they are not two vectors of equal length, non-negative, each with a sum of 1 up to rounding.
        """
        first, second = numbers("p", p, at_least=0.0, at_most=1.0), numbers("q", q, at_least=0.0, at_most=1.0)
        if first.ndim != 1 or first.shape != second.shape or first.size == 0:
            raise InputError(f"p and q must be vectors of equal length, got shapes {first.shape} and {second.shape}")
        for name, vector in (("p", first), ("q", second)):
            if not abs(math.fsum(vector) - 1) <= 1e-9:
                raise InputError(f"{name} must sum to 1, got {math.fsum(vector):.12g}; divide it by its sum")
        both = (first > 0) & (second > 0)
        only = math.fsum(first[second == 0]), math.fsum(second[first == 0])
        log_p, log_q = np.log(first[both]), np.log(second[both])
        shift = 2 * EPS * float(np.max(np.abs(log_p) + np.abs(log_q), initial=0.0))
        law = _by_ratio(cls(log_p - log_q, first[both], second[both], 2 * EPS, shift, only, (0.0, 0.0)))
        ends = (float(law.log_ratio[-1]), -float(law.log_ratio[0])) if both.any() else (math.inf, math.inf)
        reach = (math.inf if only[0] > 0 else ends[0], math.inf if only[1] > 0 else ends[1])
        return _drop_impossible(replace(law, reach=reach))

    @classmethod
    def randomized_responses(cls, epsilon: float, count: int) -> FiniteLaw:
        """Return ``count`` randomised responses, the worst pair of ε-DP: a binomial law on ε·(2k − count)."""
        law = binomial(count, 1 / (1 + math.exp(-epsilon)), BLOCK // 2, np.exp(LONG(epsilon)))
        mine = law.first + np.arange(law.mass.size)  # Q is the mirror image of P
        places = np.union1d(mine, count - mine)
        p, q = np.zeros(places.size), np.zeros(places.size)
        p[np.searchsorted(places, mine)], q[np.searchsorted(places, (count - mine)[::-1])] = law.mass, law.mass[::-1]
        exact = epsilon.as_integer_ratio()[0].bit_length() + count.bit_length() <= 53  # every multiple is a double
        shift = 0.0 if exact else EPS * epsilon * count
        log_ratio = epsilon * (2 * places - count).astype(np.float64)
        reach = (epsilon * count, epsilon * count)
        return _drop_impossible(
            cls(log_ratio, p, q, law.relative_error, shift, (0.0, 0.0), (law.unseen, law.unseen), reach)
        )

    @cached_property
    def swapped(self) -> FiniteLaw:
        """Return the pair with the two laws exchanged."""
        return replace(
            self, log_ratio=-self.log_ratio[::-1], p=self.q[::-1], q=self.p[::-1], only=self.only[::-1],
            lost=self.lost[::-1], reach=self.reach[::-1],
        )  # fmt: skip

    @cached_property
    def knots(self) -> tuple[FloatArray, FloatArray, float]:
        """γ_k·Q_k and H(γ_k) for every outcome, without what only P produces, and the relative error of computing them.

        The first is Σ_{i ≥ k} p_i·e^{l_k − l_i}, in blocks in which no exponential can overflow.
        """
        levels, p = self.log_ratio.astype(LONG), self.p.astype(LONG)
        scaled = np.zeros(levels.size + 1, dtype=LONG)
        end = levels.size
        with np.errstate(under="ignore"):
            while end > 0:
                start = int(np.searchsorted(self.log_ratio[:end], self.log_ratio[end - 1] - PRODUCT_EXPONENT))
                top = levels[end - 1]
                part = np.cumsum((p[start:end] * np.exp(top - levels[start:end]))[::-1])[::-1]
                after = scaled[end] * np.exp(levels[start:end] - levels[end]) if end < levels.size else LONG(0)
                scaled[start:end] = part * np.exp(levels[start:end] - top) + after
                end = start
            gaps = -np.expm1(levels[:-1] - levels[1:])
            hockey_sticks = np.concatenate([np.cumsum((gaps * scaled[1:-1])[::-1])[::-1], np.zeros(1, dtype=LONG)])
        error = (4 * levels.size + 8 * PRODUCT_EXPONENT + 64) * LONG_EPS + 8 * EPS
        return np.asarray(scaled[:-1], dtype=np.float64), np.asarray(hockey_sticks, dtype=np.float64), error

    @cached_property
    def tails(self) -> tuple[FloatArray, FloatArray, float]:
        """Mass of outcomes k, k + 1, … under P and Q for every k (and after the last), and their relative error."""
        sums = [np.cumsum(m[::-1].astype(LONG))[::-1] for m in (self.p, self.q)]
        p, q = (np.append(np.asarray(total, dtype=np.float64), 0.0) for total in sums)
        return p, q, self.relative_error + self.p.size * LONG_EPS + 4 * EPS

    def hockey_stick(self, log_gamma: FloatArray, side: Side) -> FloatArray:
        """H_γ(P‖Q) of these laws, rounded to a side."""
        moved = log_gamma + (-2 * self.shift if side == "upper" else 2 * self.shift)  # twice, as sums are rounded
        scaled, hockey_sticks, error = self.knots
        if self.log_ratio.size:
            k = np.searchsorted(self.log_ratio, moved, side="right")
            above = np.minimum(k, self.log_ratio.size - 1)
            rise = -np.expm1(np.minimum(moved - self.log_ratio[above], 0.0)) * scaled[above]
            value = np.where(k < self.log_ratio.size, hockey_sticks[above] + rise, 0.0)
        else:
            value = np.zeros_like(moved)
        relative = error + self.relative_error + 8 * EPS
        if side == "upper":
            return value * (1 + relative) + self.only[0] * (1 + 4 * EPS) + self.lost[0]
        return value * (1 - relative) + self.only[0] * (1 - 4 * EPS)

    def rate(self, fpr: FloatArray, side: Side) -> FloatArray:
        """Largest true positive rate of these laws at false positive rates in [0, 1], rounded to a side.

        Upper: γα + H_γ at the slopes γ_k next to α. Lower: the randomised test itself.
        """
        p, q, error = self.tails
        size = self.log_ratio.size
        sure = self.only[0] * (1 - 4 * EPS)
        if size == 0:
            return np.minimum(fpr + self.only[0] * (1 + 4 * EPS) + self.lost[0], 1.0) if side == "upper" else fpr + 0.0
        corner = size - np.searchsorted(q[:-1][::-1], fpr, side="left")  # first k with Q_k < α, or 0
        bound = np.ones_like(fpr) if side == "upper" else np.full_like(fpr, sure)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            log_fpr = np.log(fpr)
            for offset in (-2, -1, 0, 1):
                k = np.clip(corner + offset, 0, size - 1)
                level = self.log_ratio[k]
                if side == "upper":
                    exponent = level + self.shift + log_fpr
                    slack = 4 * EPS * (2 + np.abs(level) + np.abs(log_fpr))
                    line = np.where(fpr > 0, np.exp(exponent) * (1 + slack), 0.0)
                    bound = np.minimum(bound, line + self._at(k))
                else:
                    rate, hit = q[k + 1] * (1 + error) + UNDERFLOW * (self.q[k] < UNDERFLOW), p[k + 1] * (1 - error)
                    share = np.clip(
                        (fpr * (1 - EPS) - rate) / (self.q[k] * (1 + self.relative_error) + UNDERFLOW), 0.0, 1.0
                    )
                    found = (hit + share * self.p[k] * (1 - self.relative_error)) * (1 - 8 * EPS) + sure
                    bound = np.where(rate <= fpr, np.maximum(bound, found), bound)
        return bound

    def _at(self, k: NDArray[np.intp]) -> FloatArray:
        """Upper bound on H at log γ = l_k + shift."""
        _, hockey_sticks, error = self.knots
        known: FloatArray = hockey_sticks[k] * (1 + error + self.relative_error + 8 * EPS)
        return known + self.only[0] * (1 + 4 * EPS) + self.lost[0]

    def composed(self, other: FiniteLaw) -> FiniteLaw:
        """Return the law of both: log-ratios add, masses multiply; equal log-ratios are merged."""
        if self.p.size * other.p.size > MOST:
            raise MemoryError(f"{self.p.size} times {other.p.size} outcomes")
        with np.errstate(under="ignore"):
            log_ratio = np.add.outer(self.log_ratio, other.log_ratio).ravel()
            p, q = (np.multiply.outer(a, b).ravel() for a, b in ((self.p, other.p), (self.q, other.q)))
        largest = float(np.max(np.abs(log_ratio), initial=0.0))
        (p_only, q_only), (p_too, q_too) = self.only, other.only
        joined = FiniteLaw(
            log_ratio,
            p,
            q,
            self.relative_error + other.relative_error + self.relative_error * other.relative_error + 2 * EPS,
            self.shift + other.shift + EPS * largest,
            (p_only + p_too - p_only * p_too, q_only + q_too - q_only * q_too),
            (self.lost[0] + other.lost[0], self.lost[1] + other.lost[1]),
            (self.reach[0] + other.reach[0], self.reach[1] + other.reach[1]),
        )
        return _drop_impossible(_merge_near(_by_ratio(joined), 4 * EPS * largest))

    def times(self, count: int) -> FiniteLaw:
        """Return the law of ``count`` independent draws."""
        if count == 1:
            return self
        half = self.times(count // 2)
        both = half.composed(half)
        return both.composed(self) if count % 2 else both

    def coarse(self, most: int, side: Side) -> FiniteLaw:
        """Return a law with at most ``most`` outcomes that is easier (``"upper"``) or harder to tell apart."""
        if self.log_ratio.size <= most:
            return self
        low, high = float(self.log_ratio[0]), float(self.log_ratio[-1])
        return self.onto(low + (high - low) / (most - 2) * np.arange(most, dtype=np.float64), side)

    def onto(self, edges: FloatArray, side: Side) -> FiniteLaw:
        """Split outcomes between the log-ratios next to them (``"upper"``), or merge those between two of them.

        ``edges`` increase; all log-ratios lie between the first and the last, and need not be sorted.
        """
        low, high, most = float(edges[0]), float(edges[-1]), edges.size
        place = np.clip(np.searchsorted(edges, self.log_ratio, side="right") - 1, 0, most - 2)
        if side == "lower":
            p, q = (_placed(place, mass, most) for mass in (self.p, self.q))
            # a group's log-ratio is a mean of its members', under the law with more mass there (the other may be 0)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
                down = _placed(place, self.p * np.exp(edges[place] - self.log_ratio), most)
                up = _placed(place, self.q * np.exp(self.log_ratio - edges[place]), most)
                log_ratio = edges + np.where(p > q, np.log(p / down), np.log(up / q))
            keep = np.isfinite(log_ratio)
            log_ratio, p, q = log_ratio[keep], p[keep], q[keep]
            relative_error = self.relative_error + self.p.size * EPS
            shift = self.shift + 2 * relative_error + 8 * EPS * (1 + max(abs(low), abs(high)))
            return _by_ratio(replace(self, log_ratio=log_ratio, p=p, q=q, relative_error=relative_error, shift=shift))
        spacing = np.diff(edges)[place]
        above = np.clip(self.log_ratio - edges[place], 0.0, spacing)
        higher = np.expm1(-above) / np.expm1(-spacing)  # of P, to the upper end: representable however far the ends are
        share = higher * np.exp(above - spacing)  # of Q
        rest = 1 - share
        q = _placed(place, self.q * rest, most) + _placed(place + 1, self.q * share, most)
        # whatever the rounding of shares: a split whose sums are those of the outcome is easier to tell apart
        lower, upper = self.p * rest * np.exp(-above), self.p * higher
        p = _placed(place, lower, most) + _placed(place + 1, upper, most)
        keep = (p > 0) | (q > 0)
        moved = 8 * EPS * (1 + max(abs(low), abs(high)))  # of edges and of what lies above them
        relative_error = self.relative_error + self.p.size * EPS + 16 * EPS
        return replace(
            self, log_ratio=edges[keep], p=p[keep], q=q[keep], relative_error=relative_error, shift=self.shift + moved
        )


def _placed(place: NDArray[np.intp], mass: FloatArray, size: int) -> FloatArray:
    return np.bincount(place, mass, size).astype(np.float64, copy=False)


def _by_ratio(law: FiniteLaw) -> FiniteLaw:
    order = np.argsort(law.log_ratio, kind="stable")
    return replace(law, log_ratio=law.log_ratio[order], p=law.p[order], q=law.q[order])


def _merge_near(law: FiniteLaw, near: float) -> FiniteLaw:
    """Merge runs of outcomes whose neighbours' log-ratios differ by at most ``near``, a matter of rounding."""
    new = np.concatenate([[True], np.diff(law.log_ratio) > near])
    if new.all():
        return law
    start = np.flatnonzero(new)
    first, last = law.log_ratio[start], law.log_ratio[np.append(start[1:], law.log_ratio.size) - 1]
    p, q = (np.add.reduceat(mass, start) for mass in (law.p, law.q))
    longest = int(np.max(np.diff(np.append(start, law.p.size))))
    relative_error = law.relative_error + longest * EPS
    return replace(
        law, log_ratio=first, p=p, q=q, relative_error=relative_error, shift=law.shift + float(np.max(last - first))
    )


def _drop_impossible(law: FiniteLaw) -> FiniteLaw:
    """Leave out outcomes that neither law ever produces, and charge them; charge underflow where it is near."""
    rare = (law.p < UNDERFLOW) & (law.q < UNDERFLOW)
    if rare.any():
        law = replace(law, log_ratio=law.log_ratio[~rare], p=law.p[~rare], q=law.q[~rare])
    small = rare.any() or min(law.p.min(initial=1.0), law.q.min(initial=1.0)) < UNDERFLOW
    charged = UNDERFLOW * (rare.size + 1) if small else 0.0
    return replace(law, lost=(law.lost[0] + charged, law.lost[1] + charged))


LONG = np.longdouble  # 64 bits of mantissa on x86; elsewhere its own (larger) rounding error is charged
LONG_EPS = float(np.finfo(np.longdouble).eps)


class Binomial(NamedTuple):
    """Probabilities of ``first``, ``first`` + 1, … successes, each wrong by at most a factor 1 ± ``relative_error``.

    ``unseen`` bounds the probability of all other numbers.
    """

    first: int
    mass: FloatArray
    relative_error: float
    unseen: float

    @property
    def successes(self) -> FloatArray:
        """Numbers of successes that belong to the masses."""
        return self.first + np.arange(self.mass.size, dtype=np.float64)


def binomial(count: int, rate: float, most: int, odds: np.longdouble | None = None) -> Binomial:
    """Return the law of the number of successes among ``count``, each of probability ``rate`` in (0, 1).

    Masses come from ratios of neighbours, (n − k)/(k + 1)·odds, outwards from the mode, and are divided by their sum.
    Numbers farther from the mean than Bernstein's inequality lets them be seen are left out. ``odds`` is given where
    rate/(1 − rate) would lose it to rounding.

    Raises
    ------
    MemoryError
        If more than ``most`` numbers would have to be kept.
    """
    mean, variance = count * rate, count * rate * (1 - rate)
    for unseen in (UNDERFLOW, UNLIKELY, NEGLIGIBLE):  # left out, the first that leaves few enough numbers
        nats = math.log(2 / unseen)  # P(|K − mean| ≥ s) ≤ 2·exp(−s²/(2(variance + s/3)))
        reach = nats / 3 + math.sqrt((nats / 3) ** 2 + 2 * variance * nats)
        reach += 2 + 4 * EPS * mean
        low, high = max(0, math.floor(mean - reach)), min(count, math.ceil(mean + reach))
        if high - low < most:
            break
    else:
        raise MemoryError(f"{count} trials at rate {rate:g} have more than {most} likely outcomes")
    k = np.arange(high - low, dtype=LONG) + LONG(low)
    with np.errstate(under="ignore"):
        ratio = (LONG(count) - k) / (k + 1) * (LONG(rate) / (1 - LONG(rate)) if odds is None else odds)
        mode = min(max(round(mean) - low, 0), ratio.size)
        up, down = np.cumprod(ratio[mode:]), np.cumprod(1 / ratio[:mode][::-1])[::-1]
        weight = np.concatenate([down, np.ones(1, dtype=LONG), up])
        mass = np.asarray(weight / weight.sum(), dtype=np.float64)
    left_out = unseen if low > 0 or high < count else 0.0
    return Binomial(low, mass, 8 * mass.size * LONG_EPS + 4 * EPS + left_out, left_out)
