"""Runs of hundreds of different phases, rounded to fewer: more noise or a smaller rate never tells an attacker more.

A step with noise σ′ > σ is one with σ whose output got further Gaussian noise. A step with rate q′ < q is one with q
whose output is replaced, with probability 1 − q′/q, by a fresh draw of the world without the record: that turns
(1 − q)N(0, σ²) + qN(1, σ²) into the same with q′, and leaves N(0, σ²) what it is. Neither needs to know the world, so
by the data processing inequality no hockey stick of the composition grows, in either direction. Phases that are near
each other are therefore replaced from above by the least noise and the largest rate among them, and from below by the
opposite.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray, Indices
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import BracketTradeoff, Direction, Side, Tradeoff

MOST_PHASES = 512  # more are rounded to this many, unless patience was asked for
_LEAKS = 300.0  # largest 1/σ² that tells phases apart by what they leak


@dataclass(frozen=True)
class MergedPhasesTradeoff(BracketTradeoff):
    """The curve between two runs of fewer phases; at even priors the sum over one line, ``even``, which takes many."""

    even: InvertedTradeoff

    @classmethod
    def of(
        cls, loss: PrivacyLoss, curve: Callable[[PrivacyLoss], Tradeoff], even: InvertedTradeoff, most: int
    ) -> MergedPhasesTradeoff:
        """``curve`` makes one of at most ``most`` phases."""
        above, below = (curve(part) for part in merged(loss, most))
        method = f"{loss.steps.size:,} phases rounded to {most} (patient=True keeps all): {above.method}"
        return cls(above, below, even, method=method)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        found = super()._hockey_stick(log_gamma, direction, side)
        even = log_gamma == 0
        if even.any():
            known = self.even._hockey_sticks(log_gamma[even], direction, side)
            found[even] = np.minimum(found[even], known) if side == "upper" else np.maximum(found[even], known)
        return found


def merged(loss: PrivacyLoss, most: int) -> tuple[PrivacyLoss, PrivacyLoss]:
    """Return runs of at most ``most`` different phases that reveal no less, and no more, than this one."""
    noise, rate = loss.noise, loss.rate
    place = np.column_stack([np.log(noise), np.log(rate)])
    slope = np.minimum(1 / noise**2, _LEAKS)
    steepness = np.column_stack([2 + 2 * slope, np.full_like(rate, 2.0)])  # of what a step leaks, about
    leak = loss.steps * rate**2 * np.expm1(slope)

    def cell(some: Indices) -> tuple[float, int, Indices, int]:
        extent = np.ptp(place[some], axis=0) * steepness[some].max(axis=0)
        axis = int(np.argmax(extent))
        return -float(extent[axis] * leak[some].sum()), int(some[0]), some, axis

    cells = [cell(np.arange(noise.size))]
    while len(cells) < most and cells[0][0] < 0:
        _, _, some, axis = heapq.heappop(cells)
        ends = place[some, axis]
        left = ends - ends.min() <= np.ptp(ends) / 2
        for part in (some[left], some[~left]):
            heapq.heappush(cells, cell(part))

    def run(sigma: Callable[[FloatArray], float], q: Callable[[FloatArray], float]) -> PrivacyLoss:
        phases: Counter[tuple[float, float]] = Counter()
        for _, _, some, _ in cells:
            phases[float(sigma(noise[some])), float(q(rate[some]))] += int(loss.steps[some].sum())
        keys = np.array(list(phases), dtype=np.float64).reshape(-1, 2)
        return replace(loss, noise=keys[:, 0], rate=keys[:, 1], steps=np.array(list(phases.values()), dtype=np.float64))

    return run(np.min, np.max), run(np.max, np.min)
