"""Steps of little noise as finite laws that bracket them: of an outcome u one is told the cell e_i < u ≤ e_{i+1} only.

From below that is a post-processing: the masses of every cell. From above both masses of a cell are split between the
likelihood ratios at its ends: H is convex in γ, and among all laws on a range of ratios with the same two masses the
one on its ends has the largest H. Mass beyond the last end counts as giving the record away.

Below e_0 a step shows next to nothing: that is one outcome, "none", and all others are rare. So the composition of T
steps is sorted by how many of them show something: none^T, T·none^{T−1}·cell, and for several, which are rarer still,
cells that are brought onto wider ones (:meth:`FiniteLaw.onto`) before they are multiplied.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Side

SIDES: tuple[Side, ...] = ("upper", "lower")

_FINEST, _WIDEST = 7e-4, 0.05  # widths of cells in u: in the middle of the jump, and at most
_BEYOND, _FURTHEST = 8.0, 35.0  # of the jump's mean, where cells end; beyond the latter masses would underflow
_NORMAL_ERROR = 64 * EPS  # relative error of Φ(x) over 1 + x²: see benchmarks/accounting/special_functions.py
_RATIO_ERROR = 1e-13  # of ρ at an end of a cell, and of masses computed from it
_HIDDEN = 1e-9, 1e-5  # error that "none" may cause, and relative to the record's taking part: see first_end
_COARSE, _COARSER = 850, 250  # outcomes where several steps show something: of one phase, of two
# log-ratios of several, above the least: close where thresholds of rates that people ask for lie
_LADDER = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 250), np.linspace(0.5, 40.0, 5000)[1:]])
_NEGLIGIBLE = 1e-8  # mass of even more steps that show something, relative to that of the record taking part
_MOST_SHOWN = 0.3  # steps that show something by chance
_MOST_SEVERAL = 8
_BLOCKS = 150  # wide cells of the smaller of two log-ratios
_OUTCOMES = "log_ratio", "p", "q"


@dataclass(frozen=True, eq=False)
class ShownSteps:
    """A composition by how many steps show something: nothing (one outcome), one of them, or several."""

    none: FiniteLaw
    one: FiniteLaw
    several: FiniteLaw

    def law(self) -> FiniteLaw:
        """Everything."""
        return _joined([self.none, self.one, self.several])

    def beside(self, other: ShownSteps, side: Side) -> ShownSteps:
        """The composition of both."""
        some, others = (_coarse(_joined([x.one, x.several]), side, _COARSER) for x in (self, other))
        several = [self.none.composed(other.several), self.several.composed(other.none), _product(some, others)]
        return ShownSteps(
            self.none.composed(other.none),
            _joined([self.none.composed(other.one), self.one.composed(other.none)]),
            _on_ladder(_joined(several), side),
        )


def composed_cells(loss: PrivacyLoss, starts: Sequence[float], side: Side) -> FiniteLaw:
    """All phases of ``loss``, whose first cells begin at ``starts``, from above or from below."""
    phases = zip(loss.noise, loss.rate, loss.steps, starts, strict=True)
    parts = [shown(float(noise), float(rate), round(float(steps)), start, side) for noise, rate, steps, start in phases]
    return reduce(lambda a, b: a.beside(b, side), parts).law()


def first_end(sigma: float, rate: float, steps: float, variance: float) -> float:
    """Choose e_0 for steps beside a loss of this variance; only the width of brackets depends on it.

    What "none" hides is the record taking part at u < e_0. As long as ρ(e_0) is small beside the spread of the other
    loss, its effect is of second order. NaN if too many steps would show something by chance.
    """
    u = np.arange(0.5, min(1 / sigma + 2, _FURTHEST - 2), 0.05)
    with np.errstate(over="ignore"):
        hidden = ndtr(u - 1 / sigma) * np.minimum(1.0, 40 * np.exp(_log_odds(u, sigma, rate)) / variance)
    fine = np.flatnonzero(hidden <= min(_HIDDEN[0] / (steps * rate), _HIDDEN[1]))
    if not fine.size or not steps * ndtr(-u[fine[-1]]) < _MOST_SHOWN:
        return math.nan
    return float(u[fine[-1]])


def shown(sigma: float, rate: float, steps: int, start: float, side: Side) -> ShownSteps:
    """``steps`` sampled Gaussian steps whose first cell begins at ``start``, from above or from below."""
    none, some = _above(sigma, rate, start) if side == "upper" else _below(sigma, rate, start)
    one = _times(some.composed(_power(none, steps - 1)), float(steps))
    wide, several = _coarse(some, side, _COARSE), []
    more, factor, lost = wide, float(steps), (0.0, 0.0)
    for count in range(2, min(steps, _MOST_SEVERAL) + 1):
        factor *= (steps - count + 1) / count
        most = 2 * _COARSE // count  # the more, the rarer
        both = _square(some, side) if count == 2 else _product(_coarse(more, side, most), _coarse(wide, side, most))
        more = _on_ladder(both, side)
        several.append(_times(more.composed(_power(none, steps - count)), factor))
        means = steps * float(some.p.sum()), steps * float(some.q.sum())
        lost = (_rest(means[0], count + 1), _rest(means[1], count + 1)) if count < steps else (0.0, 0.0)
        if lost[0] <= _NEGLIGIBLE * steps * rate:
            break
    all_ = _joined(several) if several else replace(one, log_ratio=one.log_ratio[:0], p=one.p[:0], q=one.q[:0])
    if side == "upper":
        all_ = replace(all_, lost=lost)
        # steps that give the record away, in the first law only: at most all of them
        one = replace(one, only=(min(steps * some.only[0], 1.0) * (1 + 4 * EPS), 0.0))
        all_ = replace(all_, only=(0.0, 0.0))
    return ShownSteps(_power(none, steps), one, all_)


def _log_odds(u: FloatArray, sigma: float, rate: float) -> FloatArray:
    """log ρ, where r(u) = (1 − q)(1 + ρ(u))."""
    return np.asarray((u - 0.5 / sigma) / sigma + math.log(rate) - math.log1p(-rate))


def _ends(sigma: float, start: float) -> FloatArray:
    """Ends of cells, the closer, the more of the jump's law lies there."""
    stop = min(1 / sigma + _BEYOND, _FURTHEST)
    u = np.linspace(start, stop, 4000)
    # errors grow with the square of a width times the density
    width = np.minimum(_FINEST * np.exp((u - 1 / sigma) ** 2 / 4), _WIDEST)
    count = np.concatenate([[0.0], np.cumsum(np.diff(u) / width[:-1])])
    found: FloatArray = np.interp(np.linspace(0.0, count[-1], math.ceil(count[-1]) + 1), count, u)
    return found


def _masses(ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Φ(b) − Φ(a) of neighbouring ends, and its error."""
    a, b = ends[:-1], ends[1:]
    right = a > 0
    first, last = ndtr(np.where(right, -a, b)), ndtr(np.where(right, -b, a))
    return first - last, _NORMAL_ERROR * ((1 + a**2) * np.where(right, first, last) + (1 + b**2) * first)


def _below(sigma: float, rate: float, start: float) -> tuple[FiniteLaw, FiniteLaw]:
    """ "None" and the cells as they are."""
    ends = _ends(sigma, start)
    (q, q_error), (hit, hit_error) = _masses(ends), _masses(ends - 1 / sigma)
    p, p_error = (1 - rate) * q + rate * hit, (1 - rate) * q_error + rate * hit_error
    error = max(float(np.max(q_error / q)), float(np.max(p_error / p))) + 8 * EPS
    cells = FiniteLaw(np.log(p / q), p, q, error, 2 * error + 1e-12)
    return _none_below(sigma, rate, start), cells


def _none_below(sigma: float, rate: float, start: float) -> FiniteLaw:
    out, hit = float(ndtr(start)), float(ndtr(start - 1 / sigma))
    log_ratio = math.log1p(rate * (hit / out - 1))
    q = -float(ndtr(-start))  # logarithms of masses need those of the complements
    error = _NORMAL_ERROR * (1 + (start - 1 / sigma) ** 2 + start**2)
    log_q = math.log1p(q)
    shift = 4 * EPS * abs(log_ratio) + error * rate
    return FiniteLaw(
        np.array([log_ratio]), np.exp([log_q + log_ratio]), np.exp([log_q]), error * -q + shift + 4 * EPS, shift
    )


def _above(sigma: float, rate: float, start: float) -> tuple[FiniteLaw, FiniteLaw]:
    """ "None" and the ends of cells; every mass is rounded up, which only makes the worlds easier to tell apart."""
    ends = _ends(sigma, start)
    odds = np.exp(_log_odds(ends, sigma, rate))
    (q, q_error), (hit, hit_error) = _masses(ends), _masses(ends - 1 / sigma)
    taken, taken_error = hit * (rate / (1 - rate)), hit_error * (rate / (1 - rate))
    gap = np.diff(odds)
    up = (taken - odds[:-1] * q) / gap  # of Q, to the upper end
    error = (taken_error + odds[:-1] * q_error + _RATIO_ERROR * (taken + odds[:-1] * q)) / gap
    error = error + q_error
    up, down = np.clip(up, 0.0, q) + error, np.clip(q - up, 0.0, q) + error
    # below the first end: between ρ = 0 and ρ(e_0)
    first = float(ndtr(start - 1 / sigma)) * rate / ((1 - rate) * float(odds[0]))
    first_error = first * (_NORMAL_ERROR * (1 + (start - 1 / sigma) ** 2) + 2 * _RATIO_ERROR)
    beyond, hit_beyond = float(ndtr(-ends[-1])), float(ndtr(1 / sigma - ends[-1]))
    mass = np.concatenate([[first + first_error], up]) + np.append(down, beyond * (1 + 1e-9))
    log_ratio = math.log1p(-rate) + np.log1p(odds)
    only = ((1 - rate) * beyond + rate * hit_beyond) * (1 + 1e-9)
    shift = 1e-12
    cells = FiniteLaw(
        log_ratio, mass * np.exp(log_ratio) * (1 + _RATIO_ERROR), mass * (1 + _RATIO_ERROR), 0.0, shift, (only, 0.0)
    )
    shows = float(ndtr(-start)) * (1 - _NORMAL_ERROR * (1 + start**2)) + first - first_error
    log_q, least = math.log1p(-shows), math.log1p(-rate)
    none = FiniteLaw(
        np.array([least]), np.exp([log_q + least]) * (1 + 8 * EPS), np.exp([log_q]) * (1 + 8 * EPS), 0.0, EPS * rate
    )
    return none, cells


def _power(none: FiniteLaw, count: int) -> FiniteLaw:
    """That many steps that show nothing."""
    log_p, log_q = (count * np.log1p(-(1 - m)) for m in (none.p, none.q))
    slack = 8 * EPS * count + 8 * EPS
    up = 1 + slack if none.relative_error == 0 else 1.0  # masses from above are rounded up
    error = 0.0 if none.relative_error == 0 else count * none.relative_error + slack
    shift = count * none.shift + 8 * EPS * count * abs(float(none.log_ratio[0]))
    return FiniteLaw(none.log_ratio * count, np.exp(log_p) * up, np.exp(log_q) * up, error, shift)


def _times(law: FiniteLaw, factor: float) -> FiniteLaw:
    return replace(law, p=law.p * factor, q=law.q * factor, relative_error=law.relative_error + 2 * EPS)


def _rest(mean: float, count: int) -> float:
    """Bound on Σ_{j ≥ count} mean^j/j!, and so on binomial sums."""
    return mean**count / math.factorial(count) / max(1 - mean / (count + 1), 1e-300) * (1 + 1e-9)


def _coarse(law: FiniteLaw, side: Side, most: int) -> FiniteLaw:
    """At most about so many outcomes."""
    every = law.p.size // most
    return law.onto(np.append(law.log_ratio[:-1:every], law.log_ratio[-1]), side) if every > 1 else law


def _product(a: FiniteLaw, b: FiniteLaw) -> FiniteLaw:
    """The composition, its outcomes in no order."""
    with np.errstate(under="ignore"):
        log_ratio = np.add.outer(a.log_ratio, b.log_ratio).ravel()
        p, q = (np.multiply.outer(x, y).ravel() for x, y in ((a.p, b.p), (a.q, b.q)))
    error = a.relative_error + b.relative_error + a.relative_error * b.relative_error + 2 * EPS
    shift = a.shift + b.shift + EPS * float(np.max(np.abs(log_ratio), initial=0.0))
    only = a.only[0] + b.only[0], a.only[1] + b.only[1]
    return FiniteLaw(log_ratio, p, q, error, shift, only, (a.lost[0] + b.lost[0], a.lost[1] + b.lost[1]))


def _square(law: FiniteLaw, side: Side) -> FiniteLaw:
    """Two of these, its outcomes in no order: the smaller log-ratio on wide cells, the larger one as it is.

    What the wide cells cost is the square of their widths in log-ratios, which are small where the smaller ones lie.
    """
    places = np.unique(np.linspace(0, law.p.size, _BLOCKS + 1).astype(int))
    parts = []
    for first, end in itertools.pairwise(places):
        block = replace(law, **{name: getattr(law, name)[first:end] for name in _OUTCOMES}, only=(0, 0), lost=(0, 0))
        ends = block.log_ratio[0], max(block.log_ratio[-1], np.nextafter(block.log_ratio[0], np.inf) + 1e-12)
        wide = block.onto(np.array(ends), side)
        larger = replace(block, **{name: getattr(law, name)[end:] for name in _OUTCOMES})
        parts += [_product(wide, wide), _times(_product(wide, larger), 2.0)]
    found = _together(parts)
    return replace(found, only=(2 * law.only[0], 2 * law.only[1]), lost=(2 * law.lost[0], 2 * law.lost[1]))


def _on_ladder(law: FiniteLaw, side: Side) -> FiniteLaw:
    """Brought onto log-ratios that lie the closer, the nearer they are to the least."""
    low, high = float(law.log_ratio.min()), float(law.log_ratio.max())
    far = np.linspace(low + _LADDER[-1], max(high, low + _LADDER[-1]) + 0.1, 200)
    return law.onto(np.concatenate([low + _LADDER, far[1:]]), side)


def _joined(laws: list[FiniteLaw]) -> FiniteLaw:
    """Outcomes of all, which are outcomes of one law."""
    law = _together(laws)
    order = np.argsort(law.log_ratio, kind="stable")
    return replace(law, log_ratio=law.log_ratio[order], p=law.p[order], q=law.q[order])


def _together(laws: list[FiniteLaw]) -> FiniteLaw:
    """The same in no order."""
    log_ratio, p, q = (np.concatenate([getattr(law, name) for law in laws]) for name in _OUTCOMES)
    error, shift = max(law.relative_error for law in laws), max(law.shift for law in laws)
    only, lost = (
        (sum(getattr(law, name)[0] for law in laws), sum(getattr(law, name)[1] for law in laws))
        for name in ("only", "lost")
    )
    return FiniteLaw(log_ratio, p, q, error, shift, only, lost)
