"""Where to look for a false positive rate or a δ: Esscher's approximation at saddle points, from unproven cumulants.

If the tilted loss were normal with variance s², then for c > 0 out(L > ℓ) = e^{K − cℓ}·B(cs) at ℓ = K′(c), with
B(x) = e^{x²/2}·Φ(−x), and so on for the other tail, for "in" (c − 1 for c) and for hockey sticks. Guesses cost a
fraction of a line and no bound rests on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erfcx

from deniable._check import FloatArray
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.mixture import Transformed
from deniable.curves import Direction

_FIRST, _FURTHER = 0.25, 1.6  # distance of the first saddle point, in units of 1/√K″, and ratio of the next ones
_MOST, _PASSES = 60, 4
_APART = 1.5  # logarithms that neighbouring points may differ in before one is put in between
_DEEPEST = -720.0

Height = Callable[[float, float], float]  # from c and √K″: what is added to K − cℓ


def threshold_guesses(loss: Transformed, alpha: FloatArray, direction: Direction) -> FloatArray | None:
    """Thresholds ℓ at which the likelihood ratio test has about these false positive rates; None if unknown."""
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


def epsilon_guesses(loss: Transformed, delta: FloatArray, direction: Direction) -> FloatArray | None:
    """About the ε at which the hockey stick is δ, for δ below the advantage; None if nothing is known."""
    pole, sign = (1.0, 1.0) if direction == "add" else (0.0, -1.0)

    def height(x: float, spread: float) -> float:
        near, far = _log_b(x * spread), _log_b((x + 1) * spread)
        return near + math.log(max(-math.expm1(far - near), 1e-300))

    level, log_stick = _along(loss, pole, sign, height, float(np.log(delta).min()) - 1)
    if level.size < 2:
        return None
    order = np.argsort(log_stick)
    return np.asarray(sign * np.interp(np.log(delta), log_stick[order], level[order]))


def _along(loss: Transformed, pole: float, sign: float, height: Height, least: float) -> tuple[FloatArray, FloatArray]:
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
