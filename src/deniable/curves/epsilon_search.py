"""ε from δ(ε): a search that trusts nothing but comparisons of computed values, and returns the safe end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable.curves.safe import TINY

_FARTHEST = 1e9  # |ε| that is looked for where no curve knows of a larger one: of noise 1/40,000, one loss
_LONG = 1e3  # steps that grow faster from here on
_TIGHT = 1e-3  # steps, by 1 + |ε|, that only a guess which was thought good has
_MOST_ROUNDS = 60  # enough to get there


@dataclass(frozen=True)
class EpsilonSearch:
    """The inverse of a computed δ(ε), for many δ at once; brackets are narrowed to ``apart``, by 1 + |ε|."""

    at: Callable[[FloatArray], FloatArray]
    apart: float

    def bracket(self, delta: FloatArray, near: FloatArray, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ends with δ(low) > delta ≥ δ(high), infinite where none exists; a bad guess costs time, no more."""
        near = np.nan_to_num(near, posinf=0.0, neginf=0.0)
        farthest = np.maximum(_FARTHEST, 2 * np.abs(near))  # a curve may know of larger ones
        step = np.where(np.isfinite(step) & (step > 0), step, 1.0)
        low, high = near - step, near + step
        at_low, at_high = np.split(self.at(np.concatenate([low, high])), 2)
        for _ in range(_MOST_ROUNDS):  # far ends are costly
            too_low, too_high = (at_high > delta) & (high < farthest), (at_low <= delta) & (low > -farthest)
            if not (too_low.any() or too_high.any()):
                break
            step *= np.where(step < _TIGHT * (1 + np.abs(near)), 30.0, np.where(step < _LONG, 1.5, 10.0))
            end = np.where(too_low, high + step, low - step)
            at_end = self.at(end)
            (low, high), (at_low, at_high) = (
                (np.where(too_low, b, np.where(too_high, new, a)), np.where(too_low, new, np.where(too_high, a, b)))
                for a, b, new in ((low, high, end), (at_low, at_high, at_end))
            )
        unreachable, always = at_high > delta, at_low <= delta
        if not np.all(always | unreachable):
            low, high = self._narrowed(delta, (low, high), (at_low, at_high))
        low = np.where(always | (delta >= 1), -np.inf, np.where(unreachable, high, low))
        high = np.where(always | (delta >= 1), -np.inf, np.where(unreachable, np.inf, high))
        return low, high

    def settled(self, epsilon: FloatArray, delta: FloatArray) -> FloatArray:
        """Return each finite ε, or a little more, at which δ(ε) ≤ δ also where that ε is all that is asked for."""
        found = epsilon.copy()
        for k in np.flatnonzero(np.isfinite(epsilon)):
            found[k] = self._asked_alone(float(epsilon[k]), float(delta[k]))
        return found

    def _asked_alone(self, epsilon: float, delta: float) -> float:
        step = float(np.spacing(abs(epsilon)))
        for _ in range(_MOST_ROUNDS):
            if self.at(np.array([epsilon]))[0] <= delta:
                return epsilon
            epsilon, step = epsilon + step, 2 * step
        return float("inf")

    def _narrowed(
        self, delta: FloatArray, ends: tuple[FloatArray, FloatArray], at_ends: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Narrow δ(low) > delta ≥ δ(high) down to neighbouring numbers, or to ``apart``.

        Each round looks at both sides of the secant of log δ, closer and closer to it, and at the middle, which alone
        would be bisection. Only comparisons of computed values move an end, whatever the secant is worth.
        """
        low, high = ends
        with np.errstate(divide="ignore", invalid="ignore"):
            target = np.log(np.maximum(delta, TINY))
            f_low, f_high = (np.log(np.maximum(value, TINY)) - target for value in at_ends)
            reach = np.clip(high - low, 1e-3, 0.1)  # log δ is nearly straight over short ones
            for _ in range(200):
                width, middle = high - low, (low + high) / 2
                if not np.any((middle > low) & (middle < high) & (width > self.apart * (1 + np.abs(high)))):
                    break
                guess = low + width * f_low / (f_low - f_high)
                guess = np.where(np.isfinite(guess), guess, middle)
                step = np.maximum(reach * width, np.spacing(np.abs(guess)))
                points = np.sort(np.clip([guess - step, middle, guess + step], low, high), axis=0)
                found = self.at(points.ravel()).reshape(points.shape)
                for x, value in zip(points, found, strict=True):
                    f = np.log(np.maximum(value, TINY)) - target
                    rises, falls = (value > delta) & (x > low) & (x < high), (value <= delta) & (x > low) & (x < high)
                    low, f_low = np.where(rises, x, low), np.where(rises, f, f_low)
                    high, f_high = np.where(falls, x, high), np.where(falls, f, f_high)
                reach = np.clip((high - low) / width, 1e-6, 0.1)
        return low, high
