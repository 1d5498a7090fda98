"""The only interface between the data and a fit: integer sums in, the same plus rounded Gaussian noise out.

Whatever a model learns passes through a :class:`Channel`. The sums are exact integers, so ``sums + round(N)`` equals
``round(sums + N)``: rounding is post-processing of the Gaussian mechanism, floating point reveals nothing, and the
guarantee is the one of exact Gaussian noise.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deniable import testing
from deniable._check import FloatArray, IntArray
from deniable.laws import rounded_gaussian

_BLOCK = 1 << 18  # draws kept in memory at a time


class Channel(Protocol):
    """Answers at most ``times`` questions, each with noise of the same standard deviations."""

    def __call__(self, sums: IntArray) -> IntArray:
        """Return ``sums`` plus fresh rounded Gaussian noise with the channel's standard deviations."""
        ...


class NoiseSource(Protocol):
    """Opens channels; :class:`SumNoise` is the one that protects, others replay a transcript for an attack."""

    def channel(self, label: str, sd: FloatArray, times: int) -> Channel:
        """Open a channel for ``times`` questions whose answers get noise N(0, sd²), rounded, element by element."""
        ...

    def coins(self, label: str, n: int, chance: float) -> NDArray[np.bool_]:
        """Toss a coin for each of ``n`` units that is heads with probability ``chance``, whatever the data are."""
        ...


class SumNoise:
    """Rounded Gaussian noise from the operating system's entropy."""

    def channel(self, label: str, sd: FloatArray, times: int) -> Channel:
        """Open a channel; noise is drawn in blocks of many questions, which is quicker."""
        return _Drawn(np.asarray(sd, dtype=np.float64), times)

    def coins(self, label: str, n: int, chance: float) -> NDArray[np.bool_]:
        """Toss a coin for each of ``n`` units with the operating system's entropy, so that nobody can repeat them.

        A known seed tells who is where by position, and all others move when one record leaves.
        """
        rng = testing.generator()
        if rng is not None:
            return rng.random(n) < chance
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64) < chance * 2.0**64


class _Drawn:
    def __init__(self, sd: FloatArray, times: int) -> None:
        self._sd, self._left = sd, times
        self._ready: list[IntArray] = []

    def __call__(self, sums: IntArray) -> IntArray:
        if not self._ready:
            if self._left < 1:
                raise RuntimeError("this noise source has answered every question in its budget")
            block = min(self._left, max(1, _BLOCK // max(self._sd.size, 1)))
            drawn = rounded_gaussian(self._sd, (block, *self._sd.shape))
            self._ready, self._left = list(drawn), self._left - block
        return sums + self._ready.pop()
