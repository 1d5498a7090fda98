"""How fast the transform of the privacy loss decays along a vertical line: a bound, not a sample.

For one step with tilted law P_c (density ∝ φ·r^c), |ψ(t)| = |M(c + it)|/M(c) is bounded by

- a sample plus a Lipschitz constant: |ψ(t) − e^{…}ψ(s)| ≤ |t − s|·E_c min(t·X², 2|X|), X = L − E_c L; and
- one integration by parts on u > v: |ψ(t)| ≤ P_c(u ≤ v) + (d(v) + TV_{u>v} d)/t with d = (tilted density)/L′.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable.accounting.loss import Line, PrivacyLoss

_MOST_PANELS = 200


@dataclass(frozen=True, eq=False)
class Envelope:
    """Panels [t_i, t_{i+1}) with a bound on log |M(c + it)|/M(c) of the composed loss on each."""

    edges: FloatArray
    log_bound: FloatArray
    last: tuple[float, float]  # beyond the last edge |M| ≤ exp(log bound)·(edge/t)^power

    @classmethod
    def of(cls, loss: PrivacyLoss, c: float, width: float, target: float) -> Envelope:
        start = 0.5 / width
        base = loss.line(c)
        deviation = _mean_deviation(base)
        coarse = start * 1.5 ** np.arange(60)
        parts = _by_parts(base, coarse)
        composed = loss.steps @ np.log(parts) - loss.gaussian * coarse**2 / 2
        enough = np.flatnonzero(composed < np.log(target) - 5)
        stop = float(coarse[enough[0]] if enough.size else coarse[-1])
        edges = [start]
        while edges[-1] < stop and len(edges) < _MOST_PANELS:
            edges.append(edges[-1] + min(0.15 * edges[-1], max(0.1 / deviation, 0.02 * edges[-1])))
        fine = np.array(edges)
        middle, half = (fine[1:] + fine[:-1]) / 2, np.diff(fine) / 2
        log_bound = -loss.gaussian * fine[:-1] ** 2 / 2
        tail_edges = fine[-1] * 1.5 ** np.arange(40)
        log_tail = -loss.gaussian * tail_edges**2 / 2
        if loss.steps.size:
            sampled = np.abs(_samples(loss, c, middle, fine[-1])) + _lipschitz(base, fine[1:]) * half
            log_bound = log_bound + loss.steps @ np.log(
                np.clip(np.minimum(sampled, _by_parts(base, fine[:-1])), 1e-300, 1)
            )
            log_tail = log_tail + loss.steps @ np.log(_by_parts(base, tail_edges))
        power = float(loss.steps.sum())
        return cls(
            np.concatenate([fine[:-1], tail_edges]), np.concatenate([log_bound, log_tail]), (float(log_tail[-1]), power)
        )

    def cut(self, target: float, spacing: float) -> tuple[float, FloatArray]:
        """Return the smallest t_N whose neglected sums are all below ``target``, and bounds for 1/t, 1/t and 1/t²."""
        a, b = self.edges[:-1], self.edges[1:]
        height = np.exp(self.log_bound[:-1])
        once = height * (b - a + spacing) / a
        twice = once / a
        end, (log_last, power) = self.edges[-1], self.last
        beyond = np.exp(log_last) / max(power, 1.0) * (1 + spacing / end)
        remaining_once = np.concatenate([np.cumsum(once[::-1])[::-1], [0.0]]) + beyond
        remaining_twice = np.concatenate([np.cumsum(twice[::-1])[::-1], [0.0]]) + np.exp(log_last) / end
        fine = np.flatnonzero(remaining_once / np.pi <= target)
        k = int(fine[0]) if fine.size else self.edges.size - 1
        return float(self.edges[k]), np.array([remaining_once[k], remaining_once[k], remaining_twice[k]]) / np.pi


def _samples(loss: PrivacyLoss, c: float, t: FloatArray, t_max: float) -> FloatArray:
    line = loss.line(c, t_max)
    return np.exp(np.stack([line._log_ratio_of_transforms(j, t).real for j in range(loss.steps.size)]))


def _centred(line: Line) -> tuple[FloatArray, FloatArray]:
    weight = line.tilted / line.mgf[:, None] if line.of.steps.size else line.tilted
    mean = np.sum(weight * line.loss, axis=1, keepdims=True)
    return weight, np.abs(line.loss - mean)


def _mean_deviation(line: Line) -> float:
    weight, x = _centred(line)
    return float(np.max(np.sum(weight * x, axis=1), initial=1e-300))


def _lipschitz(line: Line, t: FloatArray) -> FloatArray:
    weight, x = _centred(line)
    return np.stack([np.minimum(np.multiply.outer(t, x[j] ** 2), 2 * x[j]) @ weight[j] for j in range(weight.shape[0])])


def _by_parts(line: Line, t: FloatArray) -> FloatArray:
    """Bound |ψ_j(t)| for every phase: the best split point v among the nodes (5 % for what lies between nodes)."""
    sigma, rate = line.of.noise[:, None], line.of.rate[:, None]
    weight = line.tilted / line.mgf[:, None]
    with np.errstate(over="ignore"):
        slope = np.exp(np.log(rate) + line.u / sigma - 1 / (2 * sigma**2) - line.loss) / sigma
    density = np.minimum(weight / line.spacing, 1e300) / np.maximum(slope, 1e-300)
    below = np.cumsum(weight, axis=1)
    below = np.concatenate([below[:, 1:], below[:, -1:]], axis=1)
    change = np.abs(np.diff(density, axis=1, append=0.0))
    variation = 1.05 * (np.cumsum(change[:, ::-1], axis=1)[:, ::-1] + density)
    bound = np.empty((weight.shape[0], t.size))
    for j in range(weight.shape[0]):
        bound[j] = np.min(below[j][None, :] + variation[j][None, :] / t[:, None], axis=1)
    return np.clip(bound, 1e-300, 1.0)
