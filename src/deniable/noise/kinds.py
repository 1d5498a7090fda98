"""What may be known of a statistic beforehand: how far a swap moves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from deniable._check import FloatArray, Indices
from deniable.noise.blocks import Summary
from deniable.noise.evidence import ExactRows
from deniable.noise.laws import NoiseLaw
from deniable.noise.resampling import Population


class ExactSwap(ABC):
    """An algorithm whose swap distances are known, or bounded on average, without any resampling."""

    @abstractmethod
    def __call__(self, data: Any) -> FloatArray:
        """Return the statistic of ``data``."""

    @abstractmethod
    def alike(self, data: Any) -> Indices:
        """Return, for each coordinate of the flattened value, the first one that it is a copy of; −1: a constant."""

    @abstractmethod
    def influence(self, population: Population, coordinates: Indices) -> Summary:
        """Return what the influences of the records on these coordinates are like, to shape the noise by."""

    def units(self, influence: Summary) -> FloatArray:
        """Return the unit in which an error of each coordinate counts: by default its own spread over the records."""
        spread = np.sqrt(influence.square)
        return np.asarray(np.maximum(spread, 1e-9 * spread.max(initial=0.0)))

    @abstractmethod
    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return the swap distances of every record under ``law`` (scale 1), on these coordinates of the value."""
