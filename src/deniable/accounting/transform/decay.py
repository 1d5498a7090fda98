"""How fast the transform of the privacy loss decays along a vertical line: a bound, not a sample.

For one step with tilted law P_c (density ∝ φ·r^c), |ψ(t)| = |M(c + it)|/M(c) is bounded by

- a sample plus a Lipschitz constant: |ψ(t) − e^{…}ψ(s)| ≤ |t − s|·E_c min(t·X², 2|X|), X = L − E_c L. Both are sums
  over the same nodes, which stand for ψ at every t up to the last one: the constant is that of the sum itself, exactly;
- one integration by parts on u > v: |ψ(t)| ≤ P_c(u ≤ v) + (d(v) + TV_{u>v} d)/t with d = (tilted density)/L′; and
- the contour of u moved up by y: |ψ(t)|·M(c) ≤ e^{y²/2} ∫ φ·|r(u + iy)|^c·e^{−t·arg r(u + iy)} du, which falls as t
  grows because arg r > 0 there: its value at one t bounds all that follow. It is sharp where L is nearly linear.

*What sums miss of the last integral.* Its integrand g is analytic in u, and with θ = y/σ, ζ = z/σ ≤ π/2 and θ < π/2

    |g(u + iz)| ≤ φ·r^c·e^{(y² + z²)/2}·((cos θ + cos ζ)/2)^{min(c, 0)/2}:

the modulus of its r^c is that at θ + ζ times that at θ − ζ, to the power c/2, |r| being between r·cos of half the angle
and r; and its arguments, of 1 + ρe^{i(ζ + θ)} and 1 + ρe^{−i(ζ − θ)}, add up to that of
1 + 2ρ·cos ζ·e^{iθ} + ρ²e^{2iθ}, which is between 0 and π, as the imaginary part 2ρ·sin θ·(cos ζ + ρ·cos θ) is not
negative. So a sum with spacing h is wrong by at most 2/(e^{2πz/h} − 1) times the integral of the right side, at any t.
For c < 0 and α ≤ π/2, |1 + ρe^{iα}| ≥ (1 + ρ)^{cos α} (the derivative in ρ of the difference of logarithms has the sign
of (1 − cos α)(1 + ρ + 2·cos α)), hence E|r(u + iα)|^c ≤ (1 − q)^{c(1 − cos α)}·M(c)^{cos α}, as M(c·x) ≤ M(c)^x. With
Cauchy and Schwarz for the two angles, (1 − q)^c/M(c) to the power 1 − cos ζ·cos θ serves in place of the last factor.

*What lies between the nodes of the integration by parts.* |(log f)″| is at most κ = 1 + |k|·max L″ for f = φ·r^k.
Hence f is at most e^{κh²/8} times the larger of its values at the ends of a cell, and if it has an
extremum there, at some z, |(log f)′| ≤ κ|u − z|: log f changes by at most κh²/2 in the cell, which bounds the variation
of f to e^{κh²/2}·κh²/2 times the larger value. Else f is monotone in the cell.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import log_ndtr

from deniable._check import FloatArray
from deniable._floats import MOST_EXPONENT, SQUARE_EXPONENT
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.line import Line
from deniable.accounting.transform.nodes import Nodes

_FINE = 0.02  # κh²/2 aimed at where the variation between nodes is bounded, and
_MOST_FINE = 1 << 14  # nodes of a phase laid for it
_MOST_PANELS = 400
_BEYOND = 30  # panels past the samples
_DIGITS = 25.0  # −log of the relative error of the samples
_FEW = 32  # steps up to which samples and their Lipschitz constants are too coarse
_HEIGHTS = np.geomspace(0.2, 6.0, 12)
_ASIDE = np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.5])  # z/σ, and z/4 at most: where integrands are bounded
_WIDER = 8.0  # nodes further out than those of the transform
_MOST_PLACES = 100  # nodes tried as v
_MOST_TURN = 1.5  # y/σ at most
_NEAR = 3.0  # t·E|X| up to which the constant on real nodes is the better one,
_ALIKE = 8.0  # or an eighth of it, where they would be too many; of phases that share nodes E|X| differs by less


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
        typical = mean_deviations(base)
        fine = _panels(start, stop, float(typical.max(initial=1e-300)))
        line = loss.line(c, float(fine[-1]), _DIGITS)
        if not fine.size * line.loss.size <= work:
            raise TooSlowError("the transform decays slowly")
        beyond = fine[-1] * 1.5 ** np.arange(_BEYOND)
        log_bound = -loss.gaussian * np.concatenate([fine[:-1], beyond]) ** 2 / 2
        if loss.steps.size:
            log_fine = np.minimum(log_sampled(loss, line, fine, typical), parts(fine[:-1]))
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


def mean_deviations(line: Line) -> FloatArray:
    """E_c|X| of every phase."""
    weight, deviation = centred(line)
    return np.asarray((deviation * weight).sum(axis=1))


def log_sampled(loss: PrivacyLoss, line: Line, edges: FloatArray, typical: FloatArray) -> FloatArray:
    """Bound on log |ψ| on the panels between ``edges``, of which a line of ``_DIGITS`` serves the last.

    ``typical`` is about E_c|X| of every phase.

    The sample in the middle and a Lipschitz constant: of the sum over nodes of the line, or of another one on real
    nodes, which is within e^{−_DIGITS} of it.
    """
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    if line.shift > 0:  # few nodes, as e^{itL} decays on them; real ones serve small t
        slopes = line.log_slopes(edges[:-1], edges[1:]) / edges[:-1]
        slopes = np.minimum(slopes, _lipschitz_on_real_nodes(loss, line.c, edges, typical))
    else:
        slopes = _lipschitz(line, edges[1:])
    errors = [line.step_errors(phase, np.hypot(line.c, middle)) for phase in range(line.of.steps.size)]
    missed = 3 * math.exp(-_DIGITS) + np.reshape(errors, slopes.shape)
    sampled = np.exp(line.log_moduli(middle)) + slopes * half * (1 + 1e-9) + missed
    return np.log(np.clip(sampled, 1e-300, 1.0))


def shifted(line: Line, t: FloatArray, heights: FloatArray) -> FloatArray:
    """Bound on log |ψ| from every t on, the best of some heights y, one row per phase."""
    y = np.unique(np.minimum(heights, _MOST_TURN * float(line.of.noise.min())))[:, None]
    # e^{y²/2} lifts what is negligible at y = 0, and far left arg r does not damp it: nodes to e^{−100} and beyond
    high, spacing = min(line.u[-1] + _WIDER, line.of.ceiling), line.spacing / 2
    u = np.arange(line.u[0] - _WIDER, high + spacing / 2, spacing)
    # what the side of the strip at a ceiling adds
    rise = y**2 / 2
    side = (10 * line.edge * y * np.exp(rise))[:, 0]
    rows = []
    rooms = line.c * np.log1p(-line.of.rate) - line.log_mgf
    for sigma, rate, room in zip(line.of.noise, line.of.rate, rooms, strict=True):
        odds = rate / (1 - rate) * np.exp(np.minimum(u / sigma - 1 / (2 * sigma**2), SQUARE_EXPONENT))
        real, imaginary = 1 + odds * np.cos(y / sigma), odds * np.sin(y / sigma)
        weight = line.c * np.log(np.hypot(real, imaginary)) + rise - u**2 / 2
        size = line.c * np.log1p(odds) - u**2 / 2
        top = size.max()
        moved = np.exp(weight - top)
        turned = np.multiply.outer(t, np.arctan2(imaginary, real))
        bound = np.einsum("ijk,jk->ij", np.exp(-turned), moved) / np.exp(size - top).sum() + side
        bound += _missed(float(sigma), y, line.c, spacing, float(room))
        rows.append(np.log(np.maximum(bound.min(axis=1), 1e-300)))
    return np.stack(rows)


def _missed(sigma: float, y: FloatArray, c: float, spacing: float, room: float) -> FloatArray:
    """What sums of g miss at heights y, relative to M(c): the best of some z. ``room`` is log (1 − q)^c/M(c)."""
    z = np.minimum(_ASIDE * sigma, 4 * _ASIDE)
    cosine, aside = np.cos(y / sigma), np.cos(z / sigma)
    log_size = (y**2 + z**2) / 2
    if c < 0:
        turned = c / 2 * np.log((cosine + aside) / 2)
        near = y + z <= math.pi / 2 * sigma
        log_size = log_size + np.where(near, np.minimum(turned, (1 - cosine * aside) * max(room, 0.0)), turned)
    with np.errstate(over="ignore"):
        missed = 2 * np.exp(log_size) / np.expm1(2 * math.pi * z / spacing)
    return np.asarray(missed.min(axis=1))


def centred(line: Line) -> tuple[FloatArray, FloatArray]:
    """The tilted law at the nodes and |L − its mean|, one row per phase."""
    weight = line.tilted / line.mgf[:, None]
    mean = (weight * line.loss).sum(axis=1, keepdims=True)
    return weight, np.abs(line.loss - mean)


def _lipschitz_on_real_nodes(loss: PrivacyLoss, c: float, edges: FloatArray, typical: FloatArray) -> FloatArray:
    """The constant for every phase and panel from real nodes that serve t·E|X| up to 3; ∞ where they would be many.

    Phases of about the same E|X| share their nodes if these are few enough.
    """
    found = np.full((typical.size, edges.size - 1), np.inf)
    alike = np.round(np.log(np.maximum(typical, 1e-300)) / math.log(_ALIKE))
    groups = [np.flatnonzero(alike == one) for one in np.unique(alike)]
    while groups:
        group = groups.pop()
        end = int(np.searchsorted(edges[1:] * typical[group].max(), _NEAR))
        while end > 0:
            with suppress(TooSlowError):
                real = loss.phases(group).line(c, float(edges[end]), _DIGITS, lifted=False)
                found[group, :end] = _lipschitz(real, edges[1 : end + 1])
                break
            if group.size > 1:
                groups += list(group[:, None])
                break
            end = int(np.searchsorted(edges, edges[end] / _ALIKE, side="right")) - 1
    return found


def _lipschitz(line: Line, t: FloatArray) -> FloatArray:
    """Bound |dψ/dt| up to every t, one row per phase: E_c min(t·X², 2|X|) of the law on the nodes."""
    rows = [np.minimum(np.multiply.outer(t, x * x), 2 * x) @ w for w, x in zip(*centred(line), strict=True)]
    return np.stack(rows)


@dataclass(frozen=True, eq=False)
class ByParts:
    """min over some nodes v of P_c(u ≤ v) + (d(v) + TV of d beyond v)/t."""

    below: FloatArray
    variation: FloatArray
    far: FloatArray  # bound on the logarithm of TV of d over all v, one per phase

    @classmethod
    def of(cls, line: Line) -> ByParts:
        """Tabulate the two terms at the nodes of a line, bounding both by cells of denser ones."""
        line = _denser(line)
        weight = line.tilted / line.mgf[:, None]
        slope = line.posterior / line.of.noise[:, None]
        density = np.minimum(weight / line.spacing, 1e300) / np.maximum(slope, 1e-300)
        size = np.maximum(density[:, 1:], density[:, :-1])
        change = np.abs(np.diff(density, axis=1))
        bent = np.minimum(_bent(line), MOST_EXPONENT)
        doubtful = change <= size * -np.expm1(-bent)  # there may be an extremum
        change = np.where(doubtful, size * bent * np.exp(bent), change)
        # beyond the last node d falls to 0; or it rises by such a factor at most and is cut half a cell further on
        steepest = max(line.c + 1, 0.0) * np.minimum(
            slope[:, -1] * np.exp(line.spacing / line.of.noise), 1 / line.of.noise
        )
        rise = np.exp(np.minimum(2 * line.spacing * (steepest + max(-float(line.u[-1]), 0.0)), 500.0))
        change = np.append(change, density[:, -1:] * rise[:, None], axis=1)
        variation = (np.cumsum(change[:, ::-1], axis=1)[:, ::-1] + density) * (1 + 1e-9)
        # in a cell φ·r^c is within e^{κh²/8} of what is log-linear between its ends
        cells = (weight[:, 1:] + weight[:, :-1]) / 2 * np.exp(bent / 4)
        below = np.cumsum(np.append(_before(line)[:, None], cells, axis=1), axis=1) * (1 + 1e-9)
        cells = np.append(
            np.sqrt(weight[:, 1:] * weight[:, :-1]) * np.exp(-bent / 4), np.zeros((len(weight), 1)), axis=1
        )
        below = np.minimum(below, 1 + 1e-9 - np.cumsum(cells[:, ::-1], axis=1)[:, ::-1])
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


def _bent(line: Line) -> FloatArray:
    """κh²/2 of all cells, one row per phase, for k = c and for k = c + 1: L″ is p(1 − p)/σ², p the posterior."""
    low, high = line.posterior[:, :-1], line.posterior[:, 1:]
    spread = np.where(low > 0.5, low * (1 - low), np.where(high < 0.5, high * (1 - high), 0.25))
    curvature = max(abs(line.c), abs(line.c + 1)) * spread / line.of.noise[:, None] ** 2
    return np.asarray((1.0 + curvature) * (line.spacing**2 / 2 * (1 + 1e-9)))


def _denser(line: Line) -> Line:
    """The same with so many nodes that next to nothing lies between them."""
    times = min(math.ceil(math.sqrt(float(_bent(line).max(initial=0.0)) / _FINE)), _MOST_FINE // line.u.size)
    if times <= 1:
        return line
    end = float(line.u[-1])
    high = line.of.ceiling if end + line.spacing > line.of.ceiling else end
    try:
        return Line.on(line.of, line.c, Nodes(float(line.u[0]), high, line.spacing / times))
    except TooSlowError:
        return line


def _before(line: Line) -> FloatArray:
    """Bound P_c(u ≤ the first node), one per phase."""
    least = np.log1p(-line.of.rate) if line.c < 0 else line.loss[:, 0]
    mass: FloatArray = np.exp(np.minimum(line.c * least + log_ndtr(line.u[0]) - line.log_mgf, 0.0))
    return mass


def far_variation(noise: FloatArray, rate: FloatArray, c: float) -> FloatArray:
    """Bound log TV of d over the whole line, with much room.

    d = σφr^c(1 + 1/ρ)/M(c) and |d′| ≤ d·(|u| + (|c| + 1)/σ). For c ≥ 0 a shift of u by −1/σ, which 1/ρ is, lowers
    E r^c; for c < 0 r^c is at most (1 − q)^c.
    """
    found: FloatArray = 1 / noise**2 - np.log(rate) + abs(c) * np.abs(np.log1p(-rate))
    found += 2 * np.log1p(noise + (abs(c) + 1) / noise) + 200
    return found
