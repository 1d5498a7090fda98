"""Where to look for a false positive rate or a δ: approximations of the law of the loss that nothing is proven about.

Where a record is drawn so rarely that the law is far from normal, its masses on a lattice, composed by a fast Fourier
transform; else Esscher's approximation at saddle points, from unproven cumulants: if the tilted loss were normal with
variance s², then for c > 0 out(L > ℓ) = e^{K − cℓ}·B(cs) at ℓ = K′(c), with B(x) = e^{x²/2}·Φ(−x), and so on for the
other tail, for "in" (c − 1 for c) and for hockey sticks. Guesses cost a fraction of a line and no bound rests on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, ndtri

from deniable._check import FloatArray
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import log_ratio
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Direction

_FIRST, _FURTHER = 0.25, 1.6  # distance of the first saddle point, in units of 1/√K″, and ratio of the next ones
_MOST, _PASSES = 60, 4
_APART = 1.5  # logarithms that neighbouring points may differ in before one is put in between
_DEEPEST = -720.0
_RARE, _FEW_PHASES = 10.0, 4  # draws of a record below which the law is far from normal; phases on a lattice
_POINTS, _FINE, _REACH = 1 << 14, 0.01, 8.5  # of a lattice; spacing of nodes in u, and their range beside 1/σ
_NOISY = 0.05  # noise multipliers that the range of u serves
_LEAST = 1e-11  # rates that a Fourier transform in double precision tells from rounding

Height = Callable[[float, float], float]  # from c and √K″: what is added to K − cℓ


def threshold_guesses(loss: PrivacyLoss, alpha: FloatArray, direction: Direction) -> FloatArray | None:
    """Thresholds ℓ at which the likelihood ratio test has about these false positive rates; None if unknown."""
    lattice = _lattice(loss, float(alpha.min()))
    with np.errstate(over="ignore", invalid="ignore"):
        found = None if lattice is None else _looked_up(alpha, lattice.rates(direction), lattice.level)
    if found is not None:
        return found
    pole = 0.0 if direction == "add" else 1.0
    target = np.log(alpha) - np.log1p(-alpha)
    least = float(np.minimum(np.log(alpha), np.log1p(-alpha)).min()) - 1
    # false positives lie above ℓ under "out", below it under "in"
    tails = [_along(loss, pole, sign, lambda x, spread: _log_b(x * spread), least) for sign in (1.0, -1.0)]
    sides = []
    for (level, log_tail), sign in zip(tails, (1.0, -1.0), strict=True):
        odds = log_tail - np.log1p(-np.exp(np.minimum(log_tail, -0.7)))
        sides.append((level, odds if (sign > 0) == (direction == "add") else -odds))
    level, odds = (np.concatenate(parts) for parts in zip(*sides, strict=True))
    order = np.argsort(odds)
    if level.size < 2:
        return None
    return np.asarray(np.interp(target, odds[order], level[order]))


def epsilon_guesses(loss: PrivacyLoss, delta: FloatArray, direction: Direction) -> FloatArray | None:
    """About the ε at which the hockey stick is δ, for δ below the advantage; None if nothing is known."""
    pole, sign = (1.0, 1.0) if direction == "add" else (0.0, -1.0)
    lattice = _lattice(loss, float(delta.min()))
    with np.errstate(over="ignore", invalid="ignore"):
        found = None if lattice is None else _looked_up(delta, lattice.hockey_sticks(direction), lattice.level)
    if found is not None:
        return sign * found

    def height(x: float, spread: float) -> float:
        near, far = _log_b(x * spread), _log_b((x + 1) * spread)
        return near + math.log(max(-math.expm1(far - near), 1e-300))

    level, log_hockey_stick = _along(loss, pole, sign, height, float(np.log(delta).min()) - 1)
    if level.size < 2:
        return None
    order = np.argsort(log_hockey_stick)
    return np.asarray(sign * np.interp(np.log(delta), log_hockey_stick[order], level[order]))


class _Lattice(NamedTuple):
    """About the composed law under "out" at rising losses, and the mass above all of them."""

    level: FloatArray
    mass: FloatArray
    beyond: float

    def rates(self, direction: Direction) -> FloatArray:
        """False positive rates of the tests at all levels."""
        if direction == "add":
            return np.asarray(np.cumsum(self.mass[::-1])[::-1] + self.beyond)
        return np.cumsum(self.mass * np.exp(self.level))

    def hockey_sticks(self, direction: Direction) -> FloatArray:
        """Hockey sticks at e^level, or at e^−level with the worlds exchanged; without what lies above all levels."""
        inside = self.mass * np.exp(self.level)
        if direction == "add":
            above = np.cumsum(inside[::-1])[::-1]
            return np.asarray(above - np.exp(self.level) * np.cumsum(self.mass[::-1])[::-1])
        return np.asarray(np.cumsum(self.mass) - np.exp(-self.level) * np.cumsum(inside))


def _looked_up(wanted: FloatArray, found: FloatArray, level: FloatArray) -> FloatArray | None:
    """Levels at which wanted values are found; None if some are beyond them, or so small that rounding hides them."""
    if found[0] > found[-1]:
        found, level = found[::-1], level[::-1]
    found = np.maximum.accumulate(found)  # NaN beyond the largest exponent ends the search
    if not (max(found[0], _LEAST) < wanted.min() and wanted.max() < found[-1]):
        return None
    return np.asarray(np.interp(wanted, found, level))


def _lattice(loss: PrivacyLoss, least: float) -> _Lattice | None:
    """The law of rarely drawn records up to events as rare as ``least``; steps are split so that two moments stay."""
    if not isinstance(loss, PrivacyLoss) or loss.gaussian or loss.randomized_responses or loss.others:
        return None
    if not (0 < loss.steps @ loss.rate < _RARE and least > _LEAST and loss.steps.size <= _FEW_PHASES):
        return None
    try:
        _, middle, variance = loss.guessed_cumulants(0.0)
    except TooSlowError:
        return None
    if not (variance > 0 and float(loss.noise.min()) > _NOISY):
        return None
    spread = math.sqrt(variance)
    noise, rate = loss.noise[:, None], loss.rate[:, None]
    once = 1 / noise - ndtri(np.minimum(least / (4 * loss.steps.sum() * rate), 0.5))  # a draw that is as rare
    low, high = middle - 8 * spread, middle + 8 * spread + 1.5 * float(log_ratio(once, noise, rate).max())
    apart = (high - low) / _POINTS
    u = np.arange(-_REACH, _REACH + 1 / float(loss.noise.min()), _FINE)
    mass, log_law = np.exp(-(u**2) / 2) * (_FINE / math.sqrt(2 * math.pi)), np.zeros(_POINTS // 2 + 1, np.complex128)
    beyond = 0.0
    for one, steps in zip(log_ratio(u, noise, rate), loss.steps, strict=True):
        kept = one < high
        beyond += float(steps * mass[~kept].sum())
        near = np.rint(one[kept] / apart)
        off, place = one[kept] / apart - near, near.astype(np.int64)
        law = np.zeros(_POINTS)
        for move, share in ((-1, off * (off - 1) / 2), (0, 1 - off * off), (1, off * (off + 1) / 2)):
            law += np.bincount((place + move) % _POINTS, mass[kept] * share, _POINTS)
        log_law = log_law + steps * np.log(np.fft.rfft(law) + 1e-300)
    first = math.floor(low / apart)
    level: FloatArray = apart * (first + np.arange(_POINTS, dtype=np.float64))
    return _Lattice(level, np.roll(np.fft.irfft(np.exp(log_law), _POINTS), -first), beyond)


def _along(loss: PrivacyLoss, pole: float, sign: float, height: Height, least: float) -> tuple[FloatArray, FloatArray]:
    """Thresholds and logarithms at saddle points c = ``pole`` + ``sign``·x, x growing until ``least`` is reached."""
    least = max(least, _DEEPEST)

    def at(x: float) -> tuple[float, float, float]:
        k, level, variance = loss.guessed_cumulants(pole + sign * x)
        found = k - sign * x * level + height(x, math.sqrt(max(variance, 0.0)))
        if not math.isfinite(found) or not math.isfinite(level):
            raise TooSlowError("nothing to guess from")
        return x, level, found

    points: list[tuple[float, float, float]] = []
    try:
        width = math.sqrt(loss.guessed_cumulants(pole)[2])
        if width > 0:
            points.append(at(0.0))
            x = _FIRST / width
            while points[-1][2] > least and len(points) < _MOST:
                points.append(at(x))
                x *= _FURTHER
    except TooSlowError:
        pass
    for _ in range(_PASSES):
        wide = [k for k in range(1, len(points)) if points[k - 1][2] - points[k][2] > _APART]
        if not wide:
            break
        try:
            points += [at(math.sqrt(points[k - 1][0] * points[k][0]) or points[k][0] / 2) for k in wide]
        except TooSlowError:
            break
        points.sort()
    return np.array([level for _, level, _ in points]), np.array([found for *_, found in points])


def _log_b(x: float) -> float:
    """log of e^{x²/2}·Φ(−x)."""
    return math.log(float(erfcx(x / math.sqrt(2))) / 2)
