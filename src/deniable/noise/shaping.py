"""The shape of the noise: chosen from outputs that certify nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.noise.blocks import Summary
from deniable.noise.laws import GaussianNoise, NoiseLaw, NormLaplaceNoise


@dataclass(frozen=True)
class Shaper:
    """Chooses the shape of the noise from outputs that certify nothing."""

    noise: str

    def law(self, deviations: FloatArray) -> NoiseLaw:
        """Return the law at scale 1 for draws of shape (draws, coordinates) of the centred or differenced value."""
        return self.fitting(Summary.of([deviations]))

    def fitting(self, found: Summary) -> NoiseLaw:
        """Return the law at scale 1 for deviations like these.

        Each coordinate's noise is in proportion to its own spread, which minimises Σ(noise/spread)² at a given
        Σ(spread/noise)²: the error in units of the spread, so nothing depends on the units of a column. The mean
        absolute deviation is the spread: one huge output does not drown the others.
        """
        spread = np.maximum(found.absolute, 1e-9 * found.absolute.max(initial=0.0))
        self.one_dimensional(spread.size)
        return self.family(spread)

    def laws(self, influence: Summary, units: FloatArray) -> list[NoiseLaw]:
        """Return shapes to choose from: equal in ``units``, by the mean influence, or by the largest.

        The mean suits the average record, the largest the worst one; which shape needs the least noise depends on the
        worst record (a rare bin of a histogram, an outlier in one column).
        """
        self.one_dimensional(units.size)
        sizes = np.stack([np.ones(units.size), influence.absolute / units, influence.largest / units])
        sizes = np.maximum(sizes, 1e-9 * sizes.max(axis=1, keepdims=True))
        return [self.family(units * np.sqrt(one)) for one in sizes[: 3 if units.size > 1 else 1]]

    def family(self, factor: FloatArray) -> NoiseLaw:
        """Return the law of the chosen family with this shape."""
        return (GaussianNoise if self.noise == "gaussian" else NormLaplaceNoise)(1.0, factor)

    def one_dimensional(self, size: int) -> None:
        """Refuse Laplace noise for more than one number that varies."""
        if self.noise == "laplace" and size > 1:
            raise InputError(
                f"noise='laplace' needs a one-dimensional value, got {size} varying coordinates; "
                "use 'gaussian' or 'norm-laplace'"
            )
