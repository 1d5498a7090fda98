"""One certified bisection: the end of the bracket at which the condition was seen to hold is what is returned.

:func:`bisect` parts doubles, :func:`bisect_integers` whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable

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
        inside = (middle != a) & (middle != b) & (np.abs(b - a) > relative * np.maximum(np.abs(a), np.abs(b)))
        if not inside.any():
            break
        fine: NDArray[np.bool_] = np.broadcast_to(np.asarray(holds(middle), dtype=np.bool_), a.shape)
        a, b = np.where(inside & fine, middle, a), np.where(inside & ~fine, middle, b)
    return a, b


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
