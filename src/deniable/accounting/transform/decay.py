"""How fast the transform of the privacy loss decays along a vertical line: a bound, not a sample.

For one step with tilted law P_c (density ∝ φ·r^c), |ψ(t)| = |M(c + it)|/M(c) is bounded by

- a sample plus a Lipschitz constant: |ψ(t) − e^{…}ψ(s)| ≤ |t − s|·E_c min(t·X², 2|X|), X = L − E_c L; and
- one integration by parts on u > v: |ψ(t)| ≤ P_c(u ≤ v) + (d(v) + TV_{u>v} d)/t with d = (tilted density)/L′; and
- the contour of u moved up by y: |ψ(t)|·M(c) ≤ e^{y²/2} ∫ φ·|r(u + iy)|^c·e^{−t·arg r(u + iy)} du, which falls as t
  grows because arg r > 0 there: its value at one t bounds all that follow. It is sharp where L is nearly linear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable._check import FloatArray
from deniable._floats import SQUARE_EXPONENT
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.line import Line
from deniable.accounting.transform.nodes import bend, log_fade

BETWEEN_NODES = 1.25  # total variation over all u, over that between nodes: measured at most 1.04
_MOST_PANELS = 400
_BEYOND = 30  # panels past the samples
_DIGITS = 25.0  # −log of the relative error of the samples
_FEW = 32  # steps up to which samples and their Lipschitz constants are too coarse
_HEIGHTS = np.geomspace(0.2, 6.0, 12)
_WIDER = 8.0  # nodes further out than those of the transform
_MOST_PLACES = 100  # nodes tried as v
_MOST_TURN = 1.5  # y/σ at most: the integrand above is analytic π − 1.5 further up, in units of σ


@dataclass(frozen=True, eq=False)
class Envelope:
    """Panels [t_i, t_{i+1}) with a bound on log |M(c + it)|/M(c) of the composed loss on each.

    ``rest`` bounds ∫ |M(c + it)|/(t·M(c)) beyond the last edge.
    """

    edges: FloatArray
    log_bound: FloatArray
    rest: float

    @classmethod
    def of(cls, loss: PrivacyLoss, c: float, width: float, target: float, work: float = math.inf) -> Envelope:
        """Sample where the transform is not yet negligible, integrate by parts beyond.

        Raises
        ------
        TooSlowError
            If more than ``work`` terms would have to be evaluated.
        """
        base = loss.real_line(c)
        parts = ByParts.of(base)
        start = 0.5 / width
        coarse: FloatArray = start * 2.0 ** np.arange(60.0)
        log_parts = loss.steps @ parts(coarse) - loss.gaussian * coarse**2 / 2
        enough = np.flatnonzero(log_parts < math.log(target) - 5)
        stop = float(coarse[enough[0] if enough.size else -1])
        weight, deviation = centred(base)
        typical = float((deviation * weight).sum(axis=1).max(initial=1e-300))
        fine = _panels(start, stop, typical)
        middle, half = (fine[1:] + fine[:-1]) / 2, np.diff(fine) / 2
        line = loss.line(c, float(fine[-1]), _DIGITS)
        if not fine.size * line.loss.size <= work:
            raise TooSlowError("the transform decays slowly")
        beyond = fine[-1] * 1.5 ** np.arange(_BEYOND)
        log_bound = -loss.gaussian * np.concatenate([fine[:-1], beyond]) ** 2 / 2
        if loss.steps.size:
            drift = lipschitz(weight, deviation, fine[1:]) * half
            far = np.flatnonzero(fine[1:] * typical > 3)  # there the constant above is too pessimistic
            if line.shift > 0 and far.size > 20:
                slopes = line.log_slopes(fine[far], fine[far + 1]) * np.log(fine[far + 1] / fine[far])
                drift[:, far] = np.minimum(drift[:, far], slopes)
            sampled = np.exp(line.log_moduli(middle)) + drift
            log_fine = np.minimum(np.log(np.clip(sampled, 1e-300, 1.0)), parts(fine[:-1]))
            log_beyond = parts(beyond)
            by_parts = log_beyond[:, -1]
            if loss.steps.sum() <= _FEW:
                moved = shifted(base, fine, _HEIGHTS)
                log_fine = np.minimum(log_fine, moved[:, :-1])
                log_beyond = np.minimum(log_beyond, moved[:, -1:])
            log_bound += loss.steps @ np.concatenate([log_fine, log_beyond], axis=1)
        end = float(beyond[-1])
        log_last = -loss.gaussian * end**2 / 2
        rest = math.exp(log_last) / (loss.gaussian * end**2) if loss.gaussian > 0 else math.inf
        if loss.steps.size:
            rest = min(rest, math.exp(log_last + float(loss.steps @ by_parts)) * parts.falling(end, by_parts))
        return cls(np.concatenate([fine[:-1], beyond]), log_bound, rest)

    def cut(self, target: float, spacing: float, weight: Literal["1/t", "1/t²"] = "1/t") -> tuple[float, FloatArray]:
        """Return the smallest t_N whose neglected sums with a weight are below ``target``, and the bounds.

        They are for weights 1/t, 1/t, 1/t²; 0 for the densities, of which nothing is claimed.
        """
        a, b = self.edges[:-1], self.edges[1:]
        height = np.exp(self.log_bound[:-1])
        once = height * (b - a + spacing) / a
        twice = once / a
        remaining_once = np.concatenate([np.cumsum(once[::-1])[::-1], [0.0]])
        remaining_once += self.rest * (1 + spacing / self.edges[-1])
        last = math.exp(self.log_bound[-1]) / self.edges[-1] * (1 + spacing / self.edges[-1])
        remaining_twice = np.concatenate([np.cumsum(twice[::-1])[::-1], [0.0]]) + last
        fine = np.flatnonzero((remaining_once if weight == "1/t" else remaining_twice) / np.pi <= target)
        k = int(fine[0]) if fine.size else self.edges.size - 1
        return float(self.edges[k]), np.array(
            [remaining_once[k], remaining_once[k], remaining_twice[k], 0.0, 0.0]
        ) / np.pi


def _panels(start: float, stop: float, typical: float) -> FloatArray:
    """Edges that grow by at most 15 %, and more slowly where the transform turns on the scale 1/typical."""
    edges = [start]
    while edges[-1] < stop and len(edges) < _MOST_PANELS:
        edges.append(edges[-1] + min(0.15 * edges[-1], max(0.1 / typical, 0.05 * edges[-1])))
    return np.array(edges)


def lifts(steps: float) -> FloatArray:
    """Heights that serve this many steps: e^{−33} is reached there."""
    return math.sqrt(66.0 / steps) * np.array([0.6, 0.9])


def shifted(line: Line, t: FloatArray, heights: FloatArray) -> FloatArray:
    """Bound on log |ψ| from every t on, the best of some heights y, one row per phase."""
    y = np.unique(np.minimum(heights, _MOST_TURN * float(line.of.noise.min())))[:, None]
    # e^{y²/2} lifts what is negligible at y = 0, and far left arg r does not damp it: nodes to e^{−100} and beyond
    high = min(line.u[-1] + _WIDER, line.of.ceiling)
    u = np.arange(line.u[0] - _WIDER, high + line.spacing / 4, line.spacing / 2)  # exact to e^{−47}
    # what the side of the strip at a ceiling adds
    rise = bend(line.of.window) * y**2 / 2
    side = (10 * line.edge * y * np.exp(rise))[:, 0]
    fades = np.broadcast_to(log_fade(line.of.window, u), (line.of.steps.size, u.size))
    rows = []
    for sigma, rate, fade in zip(line.of.noise, line.of.rate, fades, strict=True):
        odds = rate / (1 - rate) * np.exp(np.minimum(u / sigma - 1 / (2 * sigma**2), SQUARE_EXPONENT))
        real, imaginary = 1 + odds * np.cos(y / sigma), odds * np.sin(y / sigma)
        weight = line.c * np.log(np.hypot(real, imaginary)) + rise - u**2 / 2 + fade
        size = line.c * np.log1p(odds) - u**2 / 2 + fade
        top = size.max()
        moved = np.exp(weight - top)
        turned = np.multiply.outer(t, np.arctan2(imaginary, real))
        bound = np.einsum("ijk,jk->ij", np.exp(-turned), moved) / np.exp(size - top).sum() + side
        rows.append(np.log(np.maximum(bound.min(axis=1), 1e-300)))
    return np.stack(rows)


def centred(line: Line) -> tuple[FloatArray, FloatArray]:
    """The tilted law at the nodes and |L − its mean|, one row per phase."""
    weight = line.tilted / line.mgf[:, None]
    mean = (weight * line.loss).sum(axis=1, keepdims=True)
    return weight, np.abs(line.loss - mean)


def lipschitz(weight: FloatArray, deviation: FloatArray, t: FloatArray) -> FloatArray:
    """Bound |dψ/dt| up to every t, one row per phase: E_c min(t·X², 2|X|)."""
    rows = [np.minimum(np.multiply.outer(t, x * x), 2 * x) @ w for w, x in zip(weight, deviation, strict=True)]
    return np.stack(rows)


@dataclass(frozen=True, eq=False)
class ByParts:
    """min over the nodes v of P_c(u ≤ v) + (d(v) + TV of d beyond v)/t; a quarter more for what lies between nodes."""

    below: FloatArray
    variation: FloatArray
    far: FloatArray  # bound on the logarithm of TV of d over all v, one per phase

    @classmethod
    def of(cls, line: Line) -> ByParts:
        """Tabulate the two terms at the nodes of a line."""
        weight = line.tilted / line.mgf[:, None]
        slope = line.posterior / line.of.noise[:, None]
        density = np.minimum(weight / line.spacing, 1e300) / np.maximum(slope, 1e-300)
        below = np.cumsum(weight, axis=1)
        change = np.abs(np.diff(density, axis=1, append=0.0))
        variation = BETWEEN_NODES * (np.cumsum(change[:, ::-1], axis=1)[:, ::-1] + density)
        below = np.concatenate([below[:, 1:], below[:, -1:]], axis=1)
        thin = slice(None, None, -(-below.shape[1] // _MOST_PLACES))  # any of the nodes may be v
        return cls(below[:, thin], variation[:, thin], far_variation(line.of.noise, line.of.rate, line.c))

    def __call__(self, t: FloatArray) -> FloatArray:
        """Return the logarithm of the bound, one row per phase."""
        rows = [
            np.min(b + np.multiply.outer(1 / t, v), axis=1) for b, v in zip(self.below, self.variation, strict=True)
        ]
        return np.log(np.clip(np.stack(rows), 1e-300, 1.0)) if rows else np.zeros((0, t.size))

    def falling(self, end: float, log_bound: FloatArray) -> float:
        """Return ∫ Π_j min(1, |ψ_j(t)|/B_j)^T_j/t dt from ``end`` on at most, B_j being the bounds there.

        Of any one step alone: |ψ| ≤ B as far as t = V/B, where V is the variation beyond the first node, from there
        on ≤ p + V/t, p the mass below it; and p is left behind when t reaches the variation over all v.
        """
        log_first = np.log(np.maximum(self.variation[:, 0], 1e-300))
        bulk = np.maximum(log_first - log_bound - math.log(end), 0.0) + 1
        left = self.below[:, 0] * np.exp(-log_bound) * (np.maximum(self.far - math.log(end), 0.0) + 1)
        return float((bulk + left).min())


def far_variation(noise: FloatArray, rate: FloatArray, c: float) -> FloatArray:
    """Bound log TV of d over the whole line, with much room.

    d = σφr^c(1 + 1/ρ)/M(c) and |d′| ≤ d·(|u| + (|c| + 1)/σ). For c ≥ 0 a shift of u by −1/σ, which 1/ρ is, lowers
    E r^c; for c < 0 r^c is at most (1 − q)^c. A window that leaves e^{−100} of the law is covered, too.
    """
    found: FloatArray = 1 / noise**2 - np.log(rate) + abs(c) * np.abs(np.log1p(-rate))
    found += 2 * np.log1p(noise + (abs(c) + 1) / noise) + 200
    return found
