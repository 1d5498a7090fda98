"""Few steps: bounds read off the density of the loss, which :mod:`deniable.accounting.engines.density` convolves.

Every bound is a sum of positive terms ± its error, so that rounding stays relative however small the tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._kept import Kept
from deniable.accounting.engines.density import DISC, HALF, DensityGrid, StepLaw, composed_density, witnesses
from deniable.accounting.engines.likelihood import LikelihoodRatioTradeoff, Tails, dual_from, hockey_stick_from
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Direction

_MOST_STEPS = 64
_MOST_TERMS = float(1 << 28)  # of all convolutions: ten seconds and more
_QUICK = float(1 << 21)  # of them: less than inversion takes for as few steps


@dataclass(frozen=True)
class DirectTradeoff(LikelihoodRatioTradeoff):
    """Composition of a few equal steps by direct convolution: every bound is a sum of positive terms ± its error."""

    loss: PrivacyLoss
    grid: DensityGrid
    method: str = field(default="direct convolution", kw_only=True)
    _kept: Kept[None, tuple[StepLaw, StepLaw, StepLaw]] = field(default_factory=Kept, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        loss: PrivacyLoss,
        most_terms: float = _MOST_TERMS,
    ) -> DirectTradeoff | None:
        """The trade-off of a loss made of a few equal steps and nothing else, or None."""
        few = (
            loss.steps.size == 1
            and loss.gaussian == 0
            and not loss.randomized_responses
            and 2 <= loss.steps[0] <= _MOST_STEPS
        )
        try:
            return cls(loss, DensityGrid.of(loss, most_terms)) if few else None
        except TooSlowError:
            return None

    @property
    def quick(self) -> bool:
        """Whether all convolutions together take less time than one inversion."""
        return self.grid.terms <= _QUICK

    @property
    def _laws(self) -> tuple[StepLaw, StepLaw, StepLaw]:
        """Densities of Z under "out", the same times ρ, and under "in"."""
        return self._kept(None, self._convolved)

    def _convolved(self) -> tuple[StepLaw, StepLaw, StepLaw]:
        grid = self.grid
        out = composed_density(grid)
        rise = grid.log_rise(grid.z)
        first, last = HALF - 1, out.bounds.size - DISC - 1  # cells that can be integrated
        low, high = grid.z[first], float(rise[last]) + self.loss.lowest
        points, growth = witnesses(self.loss)
        below, above = float(ndtr(low)) ** grid.steps, math.exp(float(np.min(growth - points * high)))
        up, inside = (
            StepLaw(out.times(factor), first, last, below * math.exp(factor[first]), above * math.exp(high - shift))
            for factor, shift in ((grid.log_odds(grid.z), self.loss.lowest), (rise + self.loss.lowest, 0.0))
        )
        return StepLaw(out, first, last, below, above), up, inside

    def _at(self, z: FloatArray, threshold: FloatArray, upper: bool) -> Tails:
        """Tails at outcomes, accurate above or below them."""
        (q, dq), (r, dr), (p, dp) = (law.tail(z, upper)[:2] for law in self._laws)
        edge = math.exp(self.loss.lowest)
        with np.errstate(over="ignore"):
            level = np.expm1(np.minimum(threshold - self.loss.lowest, MOST_EXPONENT))  # ρ there
            hockey_stick = edge * np.maximum(r - level * q if upper else level * q - r, 0.0)
            relative = 16 * EPS * (4 + np.abs(threshold) - self.loss.lowest)
            error = edge * (dr + level * dq + relative * (r + (1 + level) * q))
            none = np.zeros_like(z)
            if upper:
                dual, dual_error = dual_from(hockey_stick, error, threshold)
                return Tails(threshold, q, 1 - q, dq, none, p, 1 - p, dp, none, hockey_stick, dual, error, dual_error)
            found, found_error = hockey_stick_from(hockey_stick, error, threshold)
            return Tails(threshold, 1 - q, q, dq, none, 1 - p, p, dp, none, found, hockey_stick, found_error, error)

    def _tails(self, threshold: FloatArray, wanted: str = "hockey_stick") -> Tails:
        rise = threshold - self.loss.lowest
        known = rise > 64 * EPS * (np.abs(threshold) - self.loss.lowest)
        z = self.grid.outcomes(np.where(known, rise, 1.0))
        upper, lower = (self._at(z, threshold, way).stacked() for way in (True, False))
        unknown = Tails.below(threshold, np.ones_like(z), np.ones_like(z)).stacked()
        error = -1 if wanted == "dual" else -2
        return Tails(*np.where(known, np.where(upper[error] < lower[error], upper, lower), unknown))

    def _tests(self, alpha: FloatArray, direction: Direction) -> Tails:
        upper = direction == "add"
        z = self._laws[0 if upper else 2].quantile(alpha, upper)
        return self._at(z, self.loss.lowest + self.grid.log_rise(z), upper)
