"""How fast the transform of the privacy loss decays along a vertical line: a bound, not a sample.

For one step with tilted law P_c (density ∝ φ·r^c) the contour of u is moved up by y: |ψ(t)| = |M(c + it)|/M(c) is at
most B(t) with B(t)·M(c) = e^{y²/2} ∫ φ·|r(u + iy)|^c·e^{−t·arg r(u + iy)} du, which falls as t grows because arg r > 0
there: its value at one t bounds all that follow. It is sharp where L is nearly linear.

*What sums miss of the last integral.* Its integrand g is analytic in u, and with θ = y/σ, ζ = z/σ ≤ π/2 and θ < π/2

    |g(u + iz)| ≤ φ·r^c·e^{(y² + z²)/2}·((cos θ + cos ζ)/2)^{min(c, 0)/2}:

the modulus of its r^c is that at θ + ζ times that at θ − ζ, to the power c/2, |r| being between r·cos of half the angle
and r; and its arguments, of 1 + ρe^{i(ζ + θ)} and 1 + ρe^{−i(ζ − θ)}, add up to that of
1 + 2ρ·cos ζ·e^{iθ} + ρ²e^{2iθ}, which is between 0 and π, as the imaginary part 2ρ·sin θ·(cos ζ + ρ·cos θ) is not
negative. So a sum with spacing h is wrong by at most 2/(e^{2πz/h} − 1) times the integral of the right side, at any t.
For c < 0 and α ≤ π/2, |1 + ρe^{iα}| ≥ (1 + ρ)^{cos α} (the derivative in ρ of the difference of logarithms has the sign
of (1 − cos α)(1 + ρ + 2·cos α)), hence E|r(u + iα)|^c ≤ (1 − q)^{c(1 − cos α)}·M(c)^{cos α}, as M(c·x) ≤ M(c)^x. With
Cauchy and Schwarz for the two angles, (1 − q)^c/M(c) to the power 1 − cos ζ·cos θ serves in place of the last factor.

*Beyond the last sample s.* Of any two steps ∫ |ψ₁ψ₂| dt ≤ π·max D over t > 0, by Plancherel and Cauchy and Schwarz, D
being the largest density of a tilted loss; all others have fallen to their B(s). With L′ = ρ/((1 + ρ)σ) that density is
σφr^c(1 + 1/ρ)/M(c), and D ≤ σ·(1 + e^{1/σ²}/q)·max(1, (1 − q)^c, 1/M(c)): φ(u)·e^{−u/σ} is at most e^{1/(2σ²)}; r is
at least 1 − q, at most 1 for u < 0; and for c > 0 the largest φ·r^c is at most M(c), since log r is convex, or, where
a ceiling cuts there, 1 + c/σ times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT, SQUARE_EXPONENT
from deniable.accounting.sizes import BLOCK, DIGITS, UNDERFLOW
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import ComplexArray
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.line import Line, Phases
from deniable.accounting.transform.mixtures import Mixture
from deniable.accounting.transform.nodes import MISSED

PLACES = 3.0 * 1.25 ** np.arange(47)  # where B is known, in units of 1/√K″
_ASIDE = np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.5])  # z/σ, and z/4 at most: where integrands are bounded


@dataclass(frozen=True, eq=False)
class Envelope:
    """Panels [t_i, t_{i+1}) with a bound on log |M(c + it)|/M(c) of the composed loss on each.

    ``rest`` bounds ∫ |M(c + it)|/(t·M(c)) beyond the last edge.
    """

    edges: FloatArray
    log_bound: FloatArray
    rest: float

    @classmethod
    def of(cls, line: Line, width: float, *, near: bool = False) -> Envelope:
        """The bounds of all steps together, from one moved contour for every kind of step and place; ``near``: few."""
        t, loss = np.asarray((PLACES[:15:2] if near else PLACES) / width, dtype=np.float64), line.of
        log_bound: FloatArray = -loss.gaussian * t**2 / 2
        end, variance = float(t[-1]), loss.gaussian
        rest = 1 / (variance * end**2) if variance > 0 else math.inf
        count, several = (
            4 if near else 8,
            float(loss.steps.sum()) + sum(n for law, _, n in line.others if isinstance(law, Mixture)),
        )
        pairs: list[float] = []  # logarithms of what two steps leave beyond the last edge, over what is known of them
        if loss.steps.size:
            moved = shifted(line.phases, t, lifts(loss.steps, several, count))
            log_bound = log_bound + loss.steps @ moved
            if loss.steps.sum() >= 2:
                pairs.append(_log_density(line.phases) - 2 * float(moved[:, -1].min()))
        for law, terms, steps in line.others:
            if isinstance(law, Mixture):
                heights = lifts(np.array([float(steps)]), several, count)[0]
                fallen, log_density = law.decay(line.c, t, heights, float(terms.log_mgf[0]), loss.ceiling)
                log_bound = log_bound + steps * fallen
                if steps >= 2:
                    pairs.append(log_density - 2 * float(fallen[-1]))
        if pairs and min(pairs) < SQUARE_EXPONENT:
            rest = min(rest, math.pi / end * math.exp(min(pairs)))
        return cls(t, log_bound, math.exp(log_bound[-1]) * rest)

    def cut(self, target: float, spacing: float) -> tuple[float, FloatArray]:
        """Return the smallest t_N whose neglected sums are below ``target``, and bounds on them.

        They are for weights 1/t, 1/t, 1/t²; 0 for the densities, of which nothing is claimed. Where none serves the
        weight 1/t, t_N serves 1/t² alone.

        Raises
        ------
        TooSlowError
            If no edge is so far out.
        """
        a, last = self.edges, self.edges[-1]
        room = np.append((np.diff(a) + spacing) / a[:-1], 0.0)
        once = np.cumsum((np.exp(self.log_bound) * room)[::-1])[::-1] + self.rest * (1 + spacing / last)
        twice = np.cumsum((np.exp(self.log_bound) * room / a)[::-1])[::-1]
        twice = twice + math.exp(self.log_bound[-1]) / last * (1 + spacing / last)
        fine = np.flatnonzero((once if once[-1] / np.pi <= target else twice) / np.pi <= target)
        if not fine.size:
            raise TooSlowError("the transform decays slowly")
        k = int(fine[0])
        return float(a[k]), np.array([once[k], once[k], twice[k], 0.0, 0.0]) / np.pi


def cut(line: Line, width: float, target: float, spacing: float) -> tuple[float, FloatArray]:
    """:meth:`Envelope.cut` of a real line whose tilted law has this width: from few bounds where these will do."""
    try:
        return Envelope.of(line, width, near=True).cut(target, spacing)
    except TooSlowError:
        return Envelope.of(line, width).cut(target, spacing)


def returning(loss: PrivacyLoss, c: float, t: FloatArray) -> tuple[FloatArray, float, tuple[ComplexArray, FloatArray]]:
    """Bounds on what nodes t = 0, h, …, (N − 1)h neglect, as of :meth:`Envelope.cut`, without decay; K(c); the line.

    |ψ_a|² is positive definite, being that of the difference of two draws, and so is the triangle 1 − |n|/N, in that
    its transform is not negative. So Σ (1 − |n − m|/N)·|ψ_a(nh)|² is largest for m = 0, and over any N nodes in a row
    Σ |ψ_a|² is at most B_a = 2·Σ (1 − |n|/N)·|ψ_a(nh)|² over |n| < N, N even, which is known. With two halves a and b
    of all laws and Cauchy and Schwarz Σ |ψ_aψ_b| is at most √(B_aB_b); of the weight 1/t² (h/π)·π²/6·√(B_aB_b)/(Nh)²
    follow. Of the weight 1/t nothing is known.
    """
    count, spacing, squares, growth, found = t.size, float(t[1]), 1.0, 0.0, []
    for k in (0, 1):
        line = replace(loss, others=loss.others[k::2]).line(c, float(t[-1]))
        log_m, error = line.transform(t, spacing)
        size = np.exp(log_m.real)
        square = np.minimum(size + error, 1.0) ** 2
        squares *= 4 * float((1 - np.arange(count) / count) @ square) - 2 * float(square[0])
        growth += line.cumulants[0]
        found.append((log_m, size, error))
    (log_a, a, wrong_a), (log_b, b, wrong_b) = found
    twice = math.sqrt(squares) * math.pi / (6 * count**2 * spacing) * (1 + count * EPS)
    neglected = np.array([np.inf, np.inf, twice, 0.0, 0.0])
    return (
        neglected,
        growth,
        (log_a + log_b, (a * wrong_b + b * wrong_a + wrong_a * wrong_b) * (1 + 4 * EPS) + 4 * EPS * a * b),
    )


def lifts(steps: FloatArray, total: float, count: int = 8) -> FloatArray:
    """So many heights that serve so many steps of every phase, of a ``total``: one row per phase.

    Of a normal law the best one costs as much as the transform has fallen, e^{−DIGITS} in all where that is next to
    nothing.
    """
    low, high = 0.25 * np.sqrt(2 * DIGITS / total), 2.5 * np.sqrt(2 * DIGITS / steps)[:, None]
    return np.asarray(low * (high / low) ** np.linspace(0.0, 1.0, count))


def shifted(line: Phases, t: FloatArray, heights: FloatArray) -> FloatArray:
    """Bound on log |ψ| from every t on, the best of some heights y, both one row per phase."""
    spacing, noise, c = line.spacing / 2, line.of.noise[:, None, None], line.c
    u = np.arange(line.u[0], line.u[-1] + spacing / 2, spacing)
    rates, rows = line.of.rate[:, None, None], [np.zeros((0, t.size))]
    rooms = np.maximum(c * np.log1p(-rates) - line.log_mgf[:, None, None], 0.0)
    many = max(BLOCK // (t.size * heights.shape[1] * u.size), 1)  # phases at a time
    for part in (slice(k, k + many) for k in range(0, len(noise), many)):
        sigma, rate = noise[part], rates[part]
        y = np.minimum(heights[part, :, None], sigma)
        rise = y**2 / 2
        odds = rate / (1 - rate) * np.exp(np.minimum(u / sigma - 1 / (2 * sigma**2), SQUARE_EXPONENT))
        real, imaginary = 1 + odds * np.cos(y / sigma), odds * np.sin(y / sigma)
        size = c * np.log1p(odds) - u**2 / 2
        top = size.max(axis=2, keepdims=True)
        moved = np.exp(c * np.log(np.hypot(real, imaginary)) + rise - u**2 / 2 - top)
        fallen = np.exp(-t[:, None, None] * np.arctan2(imaginary, real)[:, None])
        bound = np.einsum("kijl,kjl->kij", fallen, moved) / np.exp(size - top).sum(axis=2)[:, None]
        # the side of the strip at a ceiling, and a cell; the ends
        beside = _aliasing(sigma, y, c, spacing, rooms[part]) + 10 * line.edge * (y + spacing) * np.exp(rise)
        bound += (beside + MISSED * np.exp(rise))[:, None, :, 0]
        rows.append(np.log(np.clip(bound.min(axis=2), UNDERFLOW, 1.0)))
    return np.concatenate(rows)


def _aliasing(sigma: FloatArray, y: FloatArray, c: float, spacing: float, room: FloatArray) -> FloatArray:
    """What sums of g miss at heights y, relative to M(c): the best of some z. ``room`` is log (1 − q)^c/M(c), or 0."""
    z = np.minimum(_ASIDE * sigma, 4 * _ASIDE)
    cosine, aside = np.cos(y / sigma), np.cos(z / sigma)
    log_size = (y**2 + z**2) / 2
    if c < 0:
        turned = c / 2 * np.log((cosine + aside) / 2)
        near = y + z <= math.pi / 2 * sigma
        log_size = log_size + np.where(near, np.minimum(turned, (1 - cosine * aside) * room), turned)
    apart = 2 * math.pi * z / spacing
    missed = 2 * np.exp(np.minimum(log_size - apart, MOST_EXPONENT)) / -np.expm1(-apart)
    return np.asarray(missed.min(axis=-1, keepdims=True))


def _log_density(line: Phases) -> float:
    """log D, the largest of all phases."""
    noise, rate = line.of.noise, line.of.rate
    scale = np.maximum(line.c * np.log1p(-rate), -line.log_mgf) + np.log1p(max(line.c, 0.0) / noise)
    return float((np.log(noise) + np.logaddexp(0.0, 1 / noise**2 - np.log(rate)) + np.maximum(scale, 0.0)).max())
