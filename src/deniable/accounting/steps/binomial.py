"""Binomial laws with a stated error: what SciPy's ``bdtr`` (wrong by up to 1e-3 for large counts) is not used for."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS

LONG = np.longdouble  # 64 bits of mantissa on x86; elsewhere its own (larger) rounding error is charged
LONG_EPS = float(np.finfo(np.longdouble).eps)
_UNSEEN = (1e-300, 1e-60, 1e-30)  # mass that may be left out, the first that leaves few enough numbers


class Binomial(NamedTuple):
    """Probabilities of ``first``, ``first`` + 1, … successes, each wrong by at most a factor 1 ± ``relative_error``.

    ``unseen`` bounds the probability of all other numbers.
    """

    first: int
    mass: FloatArray
    relative_error: float
    unseen: float

    @property
    def successes(self) -> FloatArray:
        """Numbers of successes that belong to the masses."""
        return self.first + np.arange(self.mass.size, dtype=np.float64)


def binomial(count: int, rate: float, most: int, odds: np.longdouble | None = None) -> Binomial:
    """Return the law of the number of successes among ``count``, each of probability ``rate`` in (0, 1).

    Masses come from ratios of neighbours, (n − k)/(k + 1)·odds, outwards from the mode, and are divided by their sum.
    Numbers farther from the mean than Bernstein's inequality lets them be seen are left out. ``odds`` is given where
    rate/(1 − rate) would lose it to rounding.

    Raises
    ------
    MemoryError
        If more than ``most`` numbers would have to be kept.
    """
    mean, variance = count * rate, count * rate * (1 - rate)
    for unseen in _UNSEEN:
        nats = math.log(2 / unseen)  # P(|K − mean| ≥ s) ≤ 2·exp(−s²/(2(variance + s/3)))
        reach = nats / 3 + math.sqrt((nats / 3) ** 2 + 2 * variance * nats)
        reach += 2 + 4 * EPS * mean
        low, high = max(0, math.floor(mean - reach)), min(count, math.ceil(mean + reach))
        if high - low < most:
            break
    else:
        raise MemoryError(f"{count} trials at rate {rate:g} have more than {most} likely outcomes")
    k = np.arange(high - low, dtype=LONG) + LONG(low)
    with np.errstate(under="ignore"):
        ratio = (LONG(count) - k) / (k + 1) * (LONG(rate) / (1 - LONG(rate)) if odds is None else odds)
        mode = min(max(round(mean) - low, 0), ratio.size)
        up, down = np.cumprod(ratio[mode:]), np.cumprod(1 / ratio[:mode][::-1])[::-1]
        weight = np.concatenate([down, np.ones(1, dtype=LONG), up])
        mass = np.asarray(weight / weight.sum(), dtype=np.float64)
    left_out = unseen if low > 0 or high < count else 0.0
    return Binomial(low, mass, 8 * mass.size * LONG_EPS + 4 * EPS + left_out, left_out)
