"""Steps with Gaussian noise in which both worlds are mixtures: several records, a replaced record, truncated batches.

In units of the noise P = φ·A(u) and Q = φ·B(−u), A and B of the form Σ w_j·e^{s_j·u − s_j²/2} with slopes
0 = s_0 < s_1 < …; B = 1 but for replaced records. The transform is ∫ f, f = φ·A(u)^w·B(−u)^{1 − w}, w = c + it; of
labelled cases the sum. Let S be the larger of the largest slopes, W_j the posterior weight of the j-th term of A at u,
m = Σ W_j·s_j and v = Σ W_j·s_j² (for B at −u). log A, m and v rise with u. At a height 0 ≤ y < π/S

* no term's angle leaves its sector: A(u + iy) is not 0, and |A(u + iy)| is between A·cos(Sy/2) and A; also, as
  |A(u + iy)|² = A²·Σ W_j·W_k·cos((s_j − s_k)y), at least A·√(1 − vy²);
* θ = arg A(u + iy) lies between 0 and Sy, and tan θ ≤ y·m/(1 − vy²/2) where that is positive; it rises with u, as its
  derivative has the sign of Σ (s_j − s_k)·|z_j z_k|·sin((s_j − s_k)y), z_j the terms, and with y up to π/2S, as that in
  y has the sign of Σ (s_j + s_k)·|z_j z_k|·cos((s_j − s_k)y).

*Nodes* (:meth:`Mixture.terms`). So log|f| ≤ X + y²/2 + C + t·κ·y on Im u = −y, X = c·log A + (1 − c)·log B − u²/2, κ
the sum of min(S, m/(1 − vY²/2)) of A and of B, C that of |c|·d_A where c < 0 and of |1 − c|·d_B where c > 1, d the
smaller of the two bounds on the fall of the modulus. All parts are at most proportional to y below the height Y where
they are known. As in :mod:`deniable.accounting.transform.nodes` the curve that bounds a sum's error runs at height Y
where f is not negligible beside M(c), and comes down at the ends; every maximum is taken cell by cell, where log A and
log B are monotone and m and v largest at an end, and M(c) is bounded from below by the same cells. For t = 0, |f|
integrates to at most e^{y²/2}·cos(Sy/2)^{min(c, 0) + min(1 − c, 0)}·M(c) on Im u = y: that says what a sum misses.

*Window.* For c ≥ 1, log A ≤ S·u − S²/2 for u > S, so that beyond cS + x f is at most e^{c(c − 1)S²/2 − x²/2}, and M(c)
at least half of w^c·e^{c(c − 1)S²/2}, w the weight of the largest slope; for c < 0, A ≥ w_0; for B likewise. M(c) ≥ 1
outside (0, 1), and within at least the product of both w_0, and e^{−(S_A + S_B)²/8}. A ceiling, and a floor where B is
not 1, cut as in :mod:`deniable.accounting.transform.nodes`: twice the last summand is charged.

*Decay* (:meth:`Mixture.decay`). |M(c + it)| ≤ ∫ g, g = e^{y²/2}·φ·|A(u + iy)|^c·|B|^{1 − c}·e^{−tθ}, θ the sum of both
arguments. At u + iz, y + z ≤ π/2S, |A|² becomes the product of A at y + z and at y − z, and θ half the sum of the
arguments there, which is not negative. So |g(u + iz)| ≤ f·e^{(y² + z²)/2}·((cos Sy + cos Sz)/2)^{k/2} with
k = min(c, 0) + min(1 − c, 0), and a sum of spacing h misses 2/(e^{2πz/h} − 1) times the integral of that. For c < 0 and
B = 1, |A(u + ix)| ≥ w_0^{1 − cos Sx}·A^{cos Sx}, as (1 + ρ)^{cos Sx} ≤ 1 + ρ·cos Sx, which makes
(w_0^c/M(c))^{1 − cos Sy·cos Sz} another such factor, by Cauchy and Schwarz. At a cut f(b) times y, and 4h, is added:
the side of the strip, and what a sum that ends there misses.

*Largest density of a tilted loss.* It is f/(M(c)·L′), L′ = m_A(u) + m_B(−u), both bounded cell by cell, too. Beyond the
window f falls, and where B = 1 to the left 1/L′ ≤ (1 + e^{s²/2 − su}·w_0/w)/s, s and w those of A's second term.

*Rounding.* log A comes from the rise above 1, Σ w_j·(e^{…} − 1), to which w_0 adds nothing, so that weights known to an
error err by as much of the rise. *Weights that were left out* are P mass that is charged as a whole (``unseen``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT, PRODUCT_EXPONENT
from deniable._special import ndtr
from deniable.accounting.sizes import DIGITS, PATIENT, POINTS, UNDERFLOW
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.nodes import MISSED
from deniable.accounting.transform.terms import StepLaw, StepTerms

_HEIGHTS = np.array([0.05, 0.15, 0.3, 0.5, 0.75])  # tried, of π/S and of what is worth having
_ASIDE = np.array([0.25, 0.5, 1.0])  # z, of π/2S − y


class At(NamedTuple):
    """A sum of exponentials at real points: its logarithm, m, v, and how far roundings move the logarithm, in 4ε."""

    log: FloatArray
    mean: FloatArray
    square: FloatArray
    wrong: FloatArray


@dataclass(frozen=True, eq=False)
class Bells:
    """Σ weight·e^{slope·u − slope²/2}: weights of sum 1, of which all but the first are known to ``error``."""

    weight: FloatArray
    slope: FloatArray
    error: float

    @property
    def steepest(self) -> float:
        """The largest slope."""
        return float(self.slope[-1])

    @property
    def ends(self) -> tuple[float, float]:
        """−log of the first and of the last weight."""
        return -math.log(self.weight[0]), -math.log(self.weight[-1])

    def _terms(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        exponent = np.multiply.outer(u, self.slope) - self.slope**2 / 2
        return exponent, np.maximum(exponent.max(axis=1) - PRODUCT_EXPONENT, 0.0)

    def at(self, u: FloatArray) -> At:
        """Evaluate, to full relative precision near 0: the weights but for the first make the rise above 1."""
        if self.weight.size == 1:
            return At(*np.zeros((4, u.size)))
        exponent, over = self._terms(u)
        with np.errstate(under="ignore", divide="ignore", over="ignore"):
            terms = np.exp(exponent - over[:, None]) * self.weight
            total = terms.sum(axis=1)
            rises = np.expm1(np.minimum(exponent[:, 1:], PRODUCT_EXPONENT)) * self.weight[1:]
            rise = rises.sum(axis=1)
            far = (rise < -0.5) | (over > 0)
            log = np.where(far, np.log(total) + over, np.log1p(np.where(far, 0.0, rise)))
            posterior = terms / total[:, None]
            mean, square = posterior @ self.slope, posterior @ self.slope**2
            known = 4 + self.weight.size + self.error / EPS
            moved = np.where(far, 1.0, np.abs(rises).sum(axis=1) / np.exp(np.minimum(log, PRODUCT_EXPONENT)))
        wrong = known * np.minimum(moved, 1 + 1 / np.exp(np.minimum(log, 0.0))) + np.abs(u) * mean + square
        return At(log, mean, square, wrong + known * np.abs(log))

    def turned(self, u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log of the modulus at u + iy, and the argument, both (heights, points)."""
        exponent, _ = self._terms(u)
        top = exponent.max(axis=1, keepdims=True)
        terms = np.exp(exponent - top) * self.weight
        angle = np.multiply.outer(y, self.slope)
        real, imaginary = np.cos(angle) @ terms.T, np.sin(angle) @ terms.T
        return np.log(np.hypot(real, imaginary)) + top[:, 0], np.arctan2(imaginary, real)


@dataclass(frozen=True, eq=False)
class LabelledPair:
    """With this probability the worlds are those of A and B; P has the case ``odds`` times as often as Q."""

    probability: float
    a: Bells
    b: Bells
    odds: float = 1.0

    def log_share(self, c: float) -> float:
        """What the case contributes to log f on Re w = c."""
        return math.log(self.probability) + c * math.log(self.odds)

    def loss_at(self, u: FloatArray) -> tuple[At, At]:
        """A at u and B at −u."""
        return self.a.at(u), self.b.at(-u)


@dataclass(frozen=True, eq=False)
class Mixture(StepLaw):
    """One kind of step; ``unseen`` is P mass of weights that were left out, ``error`` that of probabilities."""

    cases: tuple[LabelledPair, ...]
    error: float
    unseen: float

    @cached_property
    def slopes(self) -> tuple[float, float]:
        """The largest of A and of B."""
        return max(case.a.steepest for case in self.cases), max(case.b.steepest for case in self.cases)

    @property
    def steepest(self) -> float:
        """The larger of both."""
        return max(self.slopes)

    def cuts(self, ceiling: float) -> FloatArray:
        """Where a ceiling cuts the law: above, and where B is not 1 below."""
        if math.isinf(ceiling):
            return np.zeros(0)
        return np.array([ceiling, -ceiling] if self.slopes[1] > 0 else [ceiling])

    def dropped(self, ceiling: float) -> tuple[float, float]:
        """Mass that a ceiling takes under "out" and under "in"."""
        out = hit = 0.0
        for case in self.cases:
            for v in self.cuts(ceiling):
                s = math.copysign(1.0, v)
                out += case.probability * float(case.b.weight @ ndtr(-abs(v) - s * case.b.slope))
                hit += case.odds * case.probability * float(case.a.weight @ ndtr(-abs(v) + s * case.a.slope))
        return out * (1 + 1e-9), hit * (1 + 1e-9)

    def farthest(self, ceiling: float) -> tuple[float, float]:
        found = []
        for case in self.cases:
            u = self.cuts(ceiling)
            a, b = case.loss_at(u)
            loss = a.log - b.log + math.log(case.odds)
            left = case.a.ends[0] - math.log(case.odds) if self.slopes[1] == 0 else -loss[-1] if u.size else math.inf
            found.append((left, loss[0] if u.size else math.inf))
        return max(left for left, _ in found), max(right for _, right in found)

    def _window(self, c: float, ceiling: float) -> tuple[float, float, float]:
        """Ends of what is not negligible, and how many digits that takes."""
        (a, b), lows = self.slopes, [(*case.a.ends, *case.b.ends) for case in self.cases]
        low_a, top_a, low_b, top_b = (max(x) for x in zip(*lows, strict=True))
        margin = DIGITS + min(low_a + low_b, (a + b) ** 2 / 8)
        less, more = max(-c, 0.0) * low_a, max(c - 1, 0.0) * low_b
        high = max(c, 1.0) * a + math.sqrt(2 * (margin + 1 + less + more + max(c, 0.0) * top_a))
        if b == 0:
            return -math.sqrt(2 * (margin + 1 + less)), min(high, ceiling), margin
        low = max(1 - c, 1.0) * b + math.sqrt(2 * (margin + 1 + less + more + max(1 - c, 0.0) * top_b))
        return max(-low, -ceiling), min(high, ceiling), margin

    def _fall(self, c: float, y: FloatArray) -> FloatArray:
        """How much larger than on the real line |f| may be at height y for its moduli: of cosines."""
        (a, b) = self.slopes
        return min(c, 0.0) * np.log(np.cos(a * y / 2)) + min(1 - c, 0.0) * np.log(np.cos(b * y / 2))

    def terms(self, least: float, most: float, t_max: float, ceiling: float) -> StepTerms:
        windows = [self._window(c, ceiling) for c in (least, most)]
        low, high, margin = min(w[0] for w in windows), max(w[1] for w in windows), max(w[2] for w in windows)
        y = _HEIGHTS * min(math.pi / self.steepest, 2 * math.sqrt(2 * margin))
        if t_max == 0:
            rise = y**2 / 2 + np.maximum(self._fall(least, y), self._fall(most, y))
            asked = np.maximum((margin + rise) / y, 1.25 * rise / y)
        else:
            y = y[y * self.steepest < 2]
            asked = self._asked(least, t_max, low, high, y)
        return self._on(least, low, high, 2 * math.pi / float(asked.min()), ceiling)

    def _cells(
        self, c: float, low: float, high: float
    ) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray, At, At]]]:
        """Edges, and of every case bounds from below and above on log f, and A and B at the edges."""
        width = min(0.1, 0.3 / self.steepest, 1 / (self.steepest * max(abs(c), abs(1 - c), 1.0)))
        u = np.linspace(low, high, int(min((high - low) / width, POINTS >> 1)) + 2)
        nearest = np.where(u[:-1] > 0, u[:-1], np.minimum(u[1:], 0.0))
        furthest = np.maximum(np.abs(u[1:]), np.abs(u[:-1]))
        found = []
        for case in self.cases:
            a, b = case.loss_at(u)
            parts = np.stack([c * a.log, (1 - c) * b.log])
            parts = np.stack([parts[:, :-1], parts[:, 1:]])
            share = case.log_share(c)
            least = parts.min(axis=0).sum(axis=0) - furthest**2 / 2 + share
            found.append((least, parts.max(axis=0).sum(axis=0) - nearest**2 / 2 + share, a, b))
        return u, found

    def _asked(self, c: float, t_max: float, low: float, high: float, y: FloatArray) -> FloatArray:
        u, cells = self._cells(c, low, high)
        least = np.stack([cell[0] for cell in cells])
        top = float(least.max())
        log_m = top + math.log(float(np.exp(least - top).sum()) * (u[1] - u[0]) / math.sqrt(2 * math.pi))
        if not 0 < c < 1:
            log_m = max(log_m, 0.0)
        y = y[:, None]
        asked, digits = np.zeros(y.size), DIGITS + max(math.log((high - low) / 40), 0.0)  # of many modes
        for _, most, a, b in cells:
            weight = digits - log_m + most
            slope = y / 2
            ends = (a.mean[1:], a.square[1:], c), (b.mean[:-1], b.square[:-1], 1 - c)
            for (mean, square, power), s in zip(ends, self.slopes, strict=True):
                if s == 0:
                    continue
                left, half = 1 - y**2 * square, 1 - y**2 * square / 2
                fallen = np.where(left > 0, -np.log(np.maximum(left, EPS)) / 2, np.inf)
                slope = slope + max(-power, 0.0) * np.minimum(fallen, -np.log(np.cos(s * y / 2))) / y
                slope = slope + t_max * np.minimum(s, np.where(half > 0, mean / np.maximum(half, EPS), np.inf))
            slope = np.where(weight > 0, slope, 0.0)
            asked = np.maximum(asked, (np.maximum(weight, 0.0) / y + slope).max(axis=1))
            asked = np.maximum(asked, 1.25 * np.maximum(slope[:, 0], slope[:, -1]))
        return np.maximum(asked, digits / y[:, 0] + y[:, 0] / 2)

    def _on(self, c: float, low: float, high: float, h: float, ceiling: float) -> StepTerms:
        """Lay nodes; where the law is cut, half a spacing before."""
        cuts = self.cuts(ceiling)
        above, below = cuts.size > 0 and high >= ceiling, cuts.size > 1 and low <= -ceiling
        count = math.ceil((high - low) / h) + (0 if above and below else 2)
        if not count * len(self.cases) < PATIENT:
            raise TooSlowError(f"the law tilted by {c:g} is too wide")
        h = (high - low) / count if above and below else h
        u: FloatArray = low + h * (np.arange(count, dtype=np.float64) + (0.5 if below else 0.0))
        if above and not below:
            u += ceiling - (u[-1] + h / 2)
        cut = cuts[np.array([above, below])[: cuts.size]]
        loss, weight, moved, ends = [], [], [], []
        for case in self.cases:
            a, b = case.loss_at(u)
            share, told = math.log(case.probability), math.log(case.odds)
            loss.append(a.log - b.log + told)
            weight.append(b.log - u * u / 2 + share)
            size = np.abs(loss[-1])
            wrong = 4 + self.error / EPS if told else 0.0
            moved.append(size * (8 + u * u) + a.wrong + wrong + (2 + size) * b.wrong)  # B is in the weights, too
            at_a, at_b = case.loss_at(cut)
            ends.append((at_a.log + told, at_b.log, share - cut**2 / 2))
        unit, log_weight = h / math.sqrt(2 * math.pi), np.concatenate(weight)[None]
        joined = tuple(np.concatenate(x) for x in zip(*ends, strict=True))
        return StepTerms(
            c, np.concatenate(loss)[None], log_weight, unit, np.exp(log_weight) * unit,
            np.concatenate(moved), 4 * self.error, (joined[0], joined[1], joined[2]),
        )  # fmt: skip

    def decay(
        self, c: float, t: FloatArray, heights: FloatArray, log_m: float, ceiling: float
    ) -> tuple[FloatArray, float]:
        """Bound on log |ψ| from every t on, the best of some heights; and the log of the largest density of a loss."""
        low, high, _ = self._window(c, ceiling)
        y = np.unique(np.minimum(heights, 1 / self.steepest))
        z = np.multiply.outer(_ASIDE, math.pi / 2 / self.steepest - y)
        size = (y**2 + z**2) / 2
        turned = np.log((np.cos(self.steepest * y) + np.cos(self.steepest * z)) / 2) / 2
        turned = (min(c, 0.0) + min(1 - c, 0.0)) * turned
        if c < 0 and self.slopes[1] == 0:
            room = c * min(math.log(case.a.weight[0]) for case in self.cases) - log_m
            cosines = np.cos(self.steepest * y) * np.cos(self.steepest * z)
            if len(self.cases) == 1:
                turned = np.minimum(turned, (1 - cosines) * max(room, 0.0))
        size = size + turned
        h = min(0.5, float((2 * math.pi * z / (DIGITS + size)).max(axis=0).min()))
        if not (high - low) / h * len(self.cases) < PATIENT:
            raise TooSlowError(f"the law tilted by {c:g} is too wide")
        apart = 2 * math.pi * z / h
        missed = (2 * np.exp(np.minimum(size - apart, MOST_EXPONENT)) / -np.expm1(-apart)).min(axis=0)
        fall = self._fall(c, y) + y**2 / 2
        bound = np.multiply.outer(missed + MISSED * np.exp(np.minimum(fall, MOST_EXPONENT)), np.ones(t.size))
        u, unit = np.arange(low, high + h, h), math.log(h / math.sqrt(2 * math.pi))
        cuts = self.cuts(ceiling)
        for case in self.cases:
            share = case.log_share(c) - log_m
            modulus, angle = case.a.turned(u, y)
            modulus_b, angle_b = case.b.turned(-u, y)
            log_g = c * modulus + (1 - c) * modulus_b - u * u / 2 + (y**2 / 2)[:, None] + share + unit
            fallen = np.exp(-np.multiply.outer(t, angle + angle_b))  # (t, heights, points)
            bound += np.einsum("ijk,jk->ji", fallen, np.exp(np.minimum(log_g, MOST_EXPONENT)))
            if cuts.size:
                at_a, at_b = case.loss_at(cuts)
                edge = np.exp(np.minimum(c * at_a.log + (1 - c) * at_b.log - cuts**2 / 2 + share, MOST_EXPONENT)).sum()
                grown = np.maximum(size.max(axis=0), fall)
                bound += (edge * (y + 4 * h) * np.exp(np.minimum(grown, MOST_EXPONENT)))[:, None]
        return np.log(np.clip(bound.min(axis=0), UNDERFLOW, 1.0)), self._log_density(c, low, high, log_m)

    def _log_density(self, c: float, low: float, high: float, log_m: float) -> float:
        _, cells = self._cells(c, low, high)
        found = []
        for case, (_, most, a, b) in zip(self.cases, cells, strict=True):
            slope = a.mean[:-1] + b.mean[1:]
            with np.errstate(divide="ignore"):
                inside = float((most - np.log(slope)).max())
                right = float(most[-1] - np.log(a.mean[-1]))  # that of B falls beyond
                left = float(most[0] - np.log(b.mean[0]))
            if self.slopes[1] == 0:
                s, odds = float(case.a.slope[1]), float(case.a.weight[0] / case.a.weight[1])
                base = max(c * math.log(case.a.weight[0]), c * float(a.log[0])) + case.log_share(c)
                beyond = -(low**2) / 2 - s * low if -s >= low else s * s / 2
                left = base - math.log(s) + float(np.logaddexp(-(low**2) / 2, math.log(odds) + s * s / 2 + beyond))
            found.append(np.logaddexp(inside, np.logaddexp(left, right)))
        return float(np.logaddexp.reduce(found)) - log_m - math.log(2 * math.pi) / 2
