"""How fast the transform of the privacy loss decays along a vertical line: a bound, not a sample.

For one step with tilted law P_c (density ∝ φ·r^c), |ψ(t)| = |M(c + it)|/M(c) is bounded by

- a sample plus a Lipschitz constant: |ψ(t) − e^{…}ψ(s)| ≤ |t − s|·E_c min(t·X², 2|X|), X = L − E_c L; and
- one integration by parts on u > v: |ψ(t)| ≤ P_c(u ≤ v) + (d(v) + TV_{u>v} d)/t with d = (tilted density)/L′.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable.accounting.loss import Line, PrivacyLoss

_MOST_PANELS = 400
_BEYOND = 30  # panels past the samples
_DIGITS = 25.0  # −log of the relative error of the samples


@dataclass(frozen=True, eq=False)
class Envelope:
    """Panels [t_i, t_{i+1}) with a bound on log |M(c + it)|/M(c) of the composed loss on each."""

    steps: float  # of all phases together
    edges: FloatArray
    log_bound: FloatArray

    @classmethod
    def of(cls, loss: PrivacyLoss, c: float, width: float, target: float) -> Envelope:
        """Sample where the transform is not yet negligible, integrate by parts beyond."""
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
            log_bound += loss.steps @ np.concatenate([log_fine, parts(beyond)], axis=1)
        return cls(float(loss.steps.sum()), np.concatenate([fine[:-1], beyond]), log_bound)

    def cut(self, target: float, spacing: float) -> tuple[float, FloatArray]:
        """Return the smallest t_N whose neglected sums are below ``target``, and the bounds.

        They are for weights 1/t, 1/t, 1/t²; 0 for the densities, of which nothing is claimed.
        """
        a, b = self.edges[:-1], self.edges[1:]
        height = np.exp(self.log_bound[:-1])
        once = height * (b - a + spacing) / a
        twice = once / a
        # past the last edge every phase decays like 1/t at least once per step, or nothing is claimed of 1/t
        last, power = np.exp(self.log_bound[-1]), max(self.steps, 1.0)
        rest_once = last / power if self.log_bound[-1] < self.log_bound[-2] - 0.1 else np.inf
        remaining_once = np.concatenate([np.cumsum(once[::-1])[::-1], [0.0]]) + rest_once
        remaining_twice = np.concatenate([np.cumsum(twice[::-1])[::-1], [0.0]]) + last / self.edges[-1]
        fine = np.flatnonzero(remaining_once / np.pi <= target)
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


def centred(line: Line) -> tuple[FloatArray, FloatArray]:
    """The tilted law at the nodes and |L − its mean|, one row a phase."""
    weight = line.tilted / line.mgf[:, None]
    mean = (weight * line.loss).sum(axis=1, keepdims=True)
    return weight, np.abs(line.loss - mean)


def lipschitz(weight: FloatArray, deviation: FloatArray, t: FloatArray) -> FloatArray:
    """Bound |dψ/dt| up to every t, one row a phase: E_c min(t·X², 2|X|)."""
    rows = [np.minimum(np.multiply.outer(t, x * x), 2 * x) @ w for w, x in zip(weight, deviation, strict=True)]
    return np.stack(rows)


@dataclass(frozen=True, eq=False)
class ByParts:
    """min over the nodes v of P_c(u ≤ v) + (d(v) + TV of d beyond v)/t; 5 % more for what lies between nodes."""

    below: FloatArray
    variation: FloatArray

    @classmethod
    def of(cls, line: Line) -> ByParts:
        """Tabulate the two terms at the nodes of a line."""
        weight = line.tilted / line.mgf[:, None]
        slope = line.posterior / line.of.noise[:, None]
        density = np.minimum(weight / line.spacing, 1e300) / np.maximum(slope, 1e-300)
        below = np.cumsum(weight, axis=1)
        change = np.abs(np.diff(density, axis=1, append=0.0))
        variation = 1.05 * (np.cumsum(change[:, ::-1], axis=1)[:, ::-1] + density)
        return cls(np.concatenate([below[:, 1:], below[:, -1:]], axis=1), variation)

    def __call__(self, t: FloatArray) -> FloatArray:
        """Return the logarithm of the bound, one row a phase."""
        rows = [
            np.min(b + np.multiply.outer(1 / t, v), axis=1) for b, v in zip(self.below, self.variation, strict=True)
        ]
        return np.log(np.clip(np.stack(rows), 1e-300, 1.0)) if rows else np.zeros((0, t.size))
