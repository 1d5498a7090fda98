"""Far tails that come from a few rare steps: the bulk and what rare steps add to it, each on a line of its own.

With a small sampling rate the loss of most steps is tiny and the tail is made by one or a few large ones. No single
line Re w = c suits both: where the bulk decays, r^c explodes on outcomes so rare that they are no part of the answer.
Let M_j be one step's transform under a smooth window that ends at v_j, v_0 < v_1 < … < v_n. Then

    M_n^T = M_0^T + Σ_j (M_{j+1}^T − M_j^T),

what is beyond v_n is charged, all terms are transforms of positive measures, and each has its own saddle point: M_0 is
the bulk, the others are runs whose largest step is one of a certain size. Where the bulk cannot reach the threshold
(Chernoff's bound with a large θ says how nearly), it needs no line.

Phases in which no step reaches the lowest window keep one window in all terms and are factors of every difference, as
are Gaussian parts and randomised responses. A difference D is the transform of a positive pair of masses D(0) under
"out" and D(1) under "in". Left of a pole its integral is minus what lies below the threshold, so that D(0) or D(1) is
added, with its own error. Jumps that all but surely lie above the threshold need no line: their tails are D(0) and D(1)
less what lies below, at most D(θ)·e^{−θℓ} under "out" and D(θ)·e^{−(θ−1)ℓ} under "in" for any θ ≤ 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import PRODUCT_EXPONENT
from deniable._kept import Kept
from deniable.accounting.engines.inversion import Contour, Plan
from deniable.accounting.engines.jumps import POINTS, Judged, JumpPlan, Jumps, widths
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.line import TINY

_LEVELS = (0.7, 0.4, 0.25, 0.15, 0.08, 0.03)  # of the lowest window, as shares of the threshold
_TOPS = (8.5, 9.0, 9.5, 10.0, 10.5, 11.5, 13.0, 16.0, 20.0, 30.0)  # ends of the highest window
_FURTHEST = 10.5
_MOST_BEYOND = 1e-11  # mass beyond it, relative to the integrand
_NEGLIGIBLE = 1e-10  # likewise, of runs that need no line
_NEARLY = 2.0  # logarithms of integrands that are nearly as small as the smallest
_NARROWER = 4.0  # than a single line's is the range of thresholds that several serve together
_CHEAP = 1 << 10  # nodes above which the range of jumps is halved instead
_DEPTH = 4  # halvings of the range of jumps
_QUICKER = 8  # times as fast are terms of lines as terms of real transforms
_ROUGHLY = 4  # of real transforms one in this many tells where the windows should end
_TRIES, _GOOD = 3, 5e-8  # choices of the lowest window, and the relative error at which no other is tried


class Work:
    """What may still be summed."""

    def __init__(self, terms: float) -> None:
        self.left = terms

    def spend(self, terms: float) -> None:
        """Count terms before they are evaluated.

        Raises
        ------
        TooSlowError
            If they are more than what is left.
        """
        self.left -= terms
        if not self.left >= 0:
            raise TooSlowError("too much work")


def jump_contour(
    loss: PrivacyLoss, threshold: float, tolerance: float, most_nodes: int, work: float = math.inf
) -> Contour:
    """Lay the lines for a tail above a threshold: one contour, with others besides.

    Raises
    ------
    TooSlowError
        If nothing parts bulk and jumps well, or more than ``most_nodes`` nodes would be needed on a line, or ``work``
        terms for all of them.
    """
    if not threshold > 0 or loss.steps.size == 0:
        raise TooSlowError("no jumps")
    ladder = Ladder(loss, threshold, tolerance, most_nodes, Work(work))
    best: tuple[float, Contour] | None = None
    places = ladder.lowest()
    for _ in range(_TRIES):
        try:
            low = next(places, None)
            if low is None:
                break
            line = ladder.contour(low)
        except TooSlowError:
            continue
        tails = line.tails(np.array([threshold]))
        error = float(tails.out_error[0] / max(tails.out_above[0], TINY))
        if best is None or error < best[0]:
            best = error, line
        if error < _GOOD:
            break
    if best is None:
        raise TooSlowError("nothing parts the bulk from its jumps")
    return best[1]


@dataclass(frozen=True, eq=False)
class Ladder:
    """The lines for one threshold."""

    loss: PrivacyLoss
    threshold: float
    tolerance: float
    most_nodes: int
    work: Work = field(default_factory=lambda: Work(math.inf))
    known: Kept[tuple[object, ...], FloatArray] = field(default_factory=Kept)

    def _jumps(self, low: FloatArray, high: FloatArray) -> Jumps:
        return Jumps(self.loss, low, high, self.known)

    def _judged(self, jumps: Jumps, every: int = 1) -> Judged:
        self.work.spend(sum(2 * POINTS / every * split.terms for _, split, _ in jumps.parts))
        return jumps.judged(self.threshold, every)

    def lowest(self) -> Iterator[FloatArray]:
        """Ends of the lowest windows to try, the most promising first.

        That is where the bulk needs no line, from the largest windows on; else where the integrands are small.
        """
        found = []
        for share in _LEVELS:
            low = self._places(share * self.threshold)
            low[low > _FURTHEST - 1] = _FURTHEST  # phases in which no step is so large are all bulk
            if low.min() == _FURTHEST:
                continue
            jumps = self._jumps(low, np.full(low.size, _FURTHEST))
            size = self._judged(jumps, _ROUGHLY).size(self.threshold)
            _, bulk = self._bulk(jumps)
            if bulk > size + math.log(self.tolerance):
                found.append((max(size, bulk), low))
            else:
                yield low
        least = min((size for size, _ in found), default=0.0)
        found.sort(key=lambda one: max(one[0] - least, _NEARLY))
        yield from (low for _, low in found)

    def contour(self, low: FloatArray) -> Contour:
        """Lay all lines, given the ends of the lowest windows."""
        size = self._judged(self._jumps(low, np.full(low.size, _FURTHEST)), _ROUGHLY).size(self.threshold)
        width = np.hypot(1.0, widths(self.loss))
        lowest = float(low[low < _FURTHEST].max()) + 1
        for top in (place for place in _TOPS if place > lowest):
            out, hit = ndtr(-top / width), ndtr((1 / self.loss.noise - top) / width)
            inside = (1 - self.loss.rate) * out + self.loss.rate * hit
            beyond = float(self.loss.steps @ out) * (1 + 1e-9), float(self.loss.steps @ inside) * (1 + 1e-9)
            enough = size + math.log(_MOST_BEYOND)
            if math.log(beyond[0] + TINY) < enough and math.log(beyond[1] + TINY) < enough + self.threshold:
                break
        low, high = np.where(low < _FURTHEST, low, top), np.full(low.size, top)
        (theta, log_bulk), bulk = self._bulk(self._jumps(low, high))
        plans, whole, bounded = self._rungs(low, high, size, _DEPTH)
        lines = []
        if bulk < size + math.log(self.tolerance):
            bounded.append((theta, log_bulk))
        else:
            bulk_law = self.loss.windowed(low, widths(self.loss))
            plan = Plan.of(bulk_law, "right", self.threshold, self.tolerance)
            self.work.spend(plan.work / _QUICKER)
            lines.append(plan.contour(self.most_nodes, _QUICKER * self.work.left))
        self.work.spend(sum(plan.work for plan in plans) / _QUICKER)
        lines += [plan.contour(self.threshold) for plan in plans]
        if not lines:
            raise TooSlowError("nothing is left")
        narrow = min(range(len(lines)), key=lambda k: lines[k].width)
        dropped = lines[narrow].dropped[0] + beyond[0], lines[narrow].dropped[1] + beyond[1]
        besides = tuple(line for k, line in enumerate(lines) if k != narrow)
        reach = lines[narrow].width / _NARROWER
        found = replace(lines[narrow], width=reach, dropped=dropped, bounded=tuple(bounded), besides=besides)
        for jumps in whole:
            masses, errors = zip(jumps.mass(0), jumps.mass(1), strict=True)
            found = replace(
                found,
                masses=(found.masses[0] + masses[0], found.masses[1] + masses[1]),
                mass_errors=(found.mass_errors[0] + errors[0], found.mass_errors[1] + errors[1]),
            )
        return found

    def _rungs(
        self, low: FloatArray, high: FloatArray, size: float, depth: int
    ) -> tuple[list[JumpPlan], list[Jumps], list[tuple[float, float]]]:
        """Lines between two windows, with as many windows between them as it takes, and what needs no line.

        The latter are jumps that all but surely lie above the threshold, of which the mass is all, and the θ and K(θ)
        of Chernoff's bounds on what is left out.
        """
        jumps = self._jumps(low, high)
        judged = self._judged(jumps)
        negligible = size + math.log(_NEGLIGIBLE)
        theta, log_d, bound = judged.above(self.threshold)
        if bound < negligible:
            return [], [], [(theta, log_d)]
        theta, log_d, bound = judged.below(self.threshold)
        if bound < negligible:
            return [], [jumps], [(theta, log_d)]
        try:
            plan = [jumps.plan(judged, self.threshold, self.tolerance, self.most_nodes)]
        except TooSlowError:
            plan = []
        if depth == 0 or (plan and plan[0].count < _CHEAP):
            if not plan:
                raise TooSlowError("no line for jumps of this size")
            return plan, [], []
        middle = (low + high) / 2
        try:
            upper, lower = (self._rungs(*ends, size, depth - 1) for ends in ((middle, high), (low, middle)))
        except TooSlowError:
            if plan:
                return plan, [], []
            raise
        if plan and sum(one.count for one in upper[0] + lower[0]) > plan[0].count:
            return plan, [], []
        return upper[0] + lower[0], upper[1] + lower[1], upper[2] + lower[2]

    def _bulk(self, jumps: Jumps) -> tuple[tuple[float, float], float]:
        """θ and K(θ) of the best bound on the bulk's mass above the threshold under "in", and the bound's log."""
        steep = np.geomspace(1.0, 3e3, 40) / self.threshold
        log_bulk = jumps.small(steep)
        sizes = np.where(np.isfinite(log_bulk), log_bulk - (steep - 1) * self.threshold, np.inf)
        k = int(np.argmin(sizes))
        return (float(steep[k]), float(log_bulk[k])), float(sizes[k])

    def _places(self, level: float) -> FloatArray:
        """Outcomes u at which the loss of one step is ``level``."""
        sigma, rate = self.loss.noise, self.loss.rate
        odds = np.log1p(math.expm1(min(level, PRODUCT_EXPONENT)) / rate)
        return sigma * np.maximum(odds, level - 1) + 0.5 / sigma  # the maximum only matters far out
