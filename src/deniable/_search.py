"""One certified bisection: the end of the bracket at which the condition was seen to hold is what is returned.

:func:`bisect` parts doubles, :func:`bisect_integers` whole numbers, :func:`false_position` the doubles around the
zero of a continuous function, in fewer questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray

_MOST = 2200  # halvings that part any two doubles: from 2¹⁰²⁴ down to 2⁻¹⁰⁷⁴, and a few


def bisect(
    holds: Callable[[FloatArray], ArrayLike],
    good: ArrayLike,
    bad: ArrayLike,
    *,
    relative: float = 0.0,
    halvings: int = _MOST,
) -> tuple[FloatArray, FloatArray]:
    """Narrow brackets between points where a condition holds and points where it does not, all at once.

    Parameters
    ----------
    holds
        The condition at points of the brackets' shape; one boolean each. It is never asked outside a bracket.
    good, bad
        Ends at which it holds and fails, in either order; neither is checked.
    relative
        Width at which a bracket is narrow enough, as a share of its larger end; 0 narrows down to neighbouring doubles.
    halvings
        Stop after this many at the latest: for searches where only tightness depends on how near they come.

    Returns
    -------
    The ends, good and bad, of every bracket. Whatever the condition does in between (rounding may make it waver), it
    was seen to hold at each good end that differs from the one given, and to fail at each such bad end.
    """
    a, b = np.broadcast_arrays(np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64))
    a, b = a.copy(), b.copy()
    for _ in range(halvings):
        middle = a + (b - a) / 2
        inside = (middle != a) & (middle != b) & ~np.isnan(middle)
        if relative:
            inside &= np.abs(b - a) > relative * np.maximum(np.abs(a), np.abs(b))
        if not inside.any():
            break
        fine: NDArray[np.bool_] = np.asarray(holds(middle), dtype=np.bool_)
        if fine.shape != a.shape:
            fine = np.broadcast_to(fine, a.shape)
        a, b = np.where(inside & fine, middle, a), np.where(inside & ~fine, middle, b)
    return a, b


def false_position(
    excess: Callable[[float], float], good: float, bad: float, *, relative: float
) -> tuple[float, float]:
    """Narrow the bracket between a point where ``excess`` ≤ 0 and one where it is > 0: :func:`bisect` of one number.

    Where the function is smooth, about half the questions suffice (false position with Illinois' correction, Dowell &
    Jarratt 1971; every third step halves, so that there are never more than three times as many). Returned are the
    ends, good and bad, as by :func:`bisect`: ``excess`` ≤ 0 was seen at a good end that differs from the one given.
    The bracket is not wider than ``relative`` times its larger end, unless even the good end fails: both come back
    as they are.
    """
    a, b, before = good, bad, 0
    if not (at_a := excess(a)) <= 0:
        return a, b
    at_b = excess(b)
    for turn in count():
        x, narrow = a + (b - a) / 2, relative * max(abs(a), abs(b))
        if abs(b - a) <= narrow or x in {a, b} or math.isnan(x):
            return a, b
        if turn % 3 and -math.inf < at_a < at_b < math.inf:
            away = min(0.45 * narrow, abs(b - a) / 2)  # next to a zero at one end, the other end comes as near
            x = a - at_a * ((b - a) / (at_b - at_a))
            x = min(max(x, min(a, b) + away), max(a, b) - away)
        value = excess(x)
        if value <= 0:
            a, at_a, at_b = x, value, at_b / 2 if before < 0 else at_b
        else:
            b, at_b, at_a = x, value, at_a / 2 if before > 0 else at_a
        before = -1 if value <= 0 else 1
    raise AssertionError


def bisect_integers(
    holds: Callable[[NDArray[np.int64]], ArrayLike], good: ArrayLike, bad: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Narrow brackets of whole numbers down to neighbours: as :func:`bisect`, but in ℤ.

    A bracket that is narrow already is asked at its ends while others are narrowed, and stays as it is.
    """
    a, b = np.broadcast_arrays(np.asarray(good, dtype=np.int64), np.asarray(bad, dtype=np.int64))
    while (wide := np.abs(b - a) > 1).any():
        middle = (a + b) // 2
        fine: NDArray[np.bool_] = np.broadcast_to(np.asarray(holds(middle), dtype=np.bool_), a.shape)
        a, b = np.where(wide & fine, middle, a), np.where(wide & ~fine, middle, b)
    return a, b
