"""Tails of the loss at thresholds, of both laws, each with its error: what likelihood ratio tests are read off."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.curves import Direction


@dataclass(frozen=True, eq=False)
class Tails:
    """Both laws' tails at thresholds ℓ of the loss, and hockey sticks, each with an absolute error bound.

    ``*_above`` is the probability of L > ℓ, ``*_below`` of L ≤ ℓ, ``*_density`` the density at ℓ (for
    Newton's method only: it carries no bound). ``hockey_stick`` is H_γ(in‖out) at γ = e^ℓ,
    ``dual`` is γ·H_{1/γ}(out‖in) = H_γ − 1 + γ. The two differ by 1 − γ, which may be far larger than either: each
    has an error of its own, and whoever knows one gets the other from :func:`dual_from` or :func:`hockey_stick_from`.
    """

    threshold: FloatArray
    out_above: FloatArray
    out_below: FloatArray
    out_error: FloatArray
    out_density: FloatArray
    in_above: FloatArray
    in_below: FloatArray
    in_error: FloatArray
    in_density: FloatArray
    hockey_stick: FloatArray
    dual: FloatArray
    hockey_stick_error: FloatArray
    dual_error: FloatArray

    def stacked(self) -> FloatArray:
        """Return all fields as the rows of one array, in order."""
        return np.stack([getattr(self, f.name) for f in fields(self)])

    @classmethod
    def below(cls, threshold: FloatArray, out: FloatArray, inside: FloatArray) -> Tails:
        """Tails of which only upper bounds on out(L > ℓ) and in(L > ℓ) are known."""
        out, inside = np.minimum(out, 1.0) / 2, np.minimum(inside, 1.0) / 2
        dual, dual_error = dual_from(inside, inside, threshold)
        none = np.zeros_like(out)
        laws = out, 1 - out, out, none, inside, 1 - inside, inside, none
        return cls(threshold, *laws, inside, dual, inside, dual_error)

    @classmethod
    def above(cls, threshold: FloatArray, out: FloatArray, inside: FloatArray) -> Tails:
        """Tails of which only upper bounds on out(L ≤ ℓ) and in(L ≤ ℓ) are known."""
        with np.errstate(over="ignore"):
            gamma = np.exp(threshold) * (1 + 4 * EPS)
            dual = np.minimum(gamma * np.minimum(out, 1.0), 1e300) / 2
        hockey_stick, hockey_stick_error = hockey_stick_from(dual, dual, threshold)
        out, inside = np.minimum(out, 1.0) / 2, np.minimum(inside, 1.0) / 2
        none = np.zeros_like(out)
        laws = 1 - out, out, out, none, 1 - inside, inside, inside, none
        return cls(threshold, *laws, hockey_stick, dual, hockey_stick_error, dual)

    @classmethod
    def certain(cls, threshold: FloatArray, lowest: float) -> Tails:
        """Tails beyond the range of the loss: everything lies on one side."""
        above = (threshold <= lowest).astype(np.float64)
        zero = np.zeros_like(above)
        hockey_stick, hockey_stick_error = (
            np.where(above > 0, x, 0.0) for x in hockey_stick_from(zero, zero, threshold)
        )
        dual, dual_error = (np.where(above > 0, 0.0, x) for x in dual_from(zero, zero, threshold))
        law = above, 1 - above, zero, zero
        return cls(threshold, *law, *law, hockey_stick, dual, hockey_stick_error, dual_error)

    def test(self, direction: Direction) -> tuple[FloatArray, ...]:
        """False and true positive rate of the likelihood ratio test, their errors, log γ and the slope of log-odds."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if direction == "remove":
                slope = -self.out_density / (self.out_above * self.out_below)
                return self.out_above, self.in_above, self.out_error, self.in_error, self.threshold, slope
            slope = self.in_density / (self.in_above * self.in_below)
            return self.in_below, self.out_below, self.in_error, self.out_error, -self.threshold, slope

    def log_odds(self, direction: Direction) -> FloatArray:
        """Log-odds of a false positive; NaN where the rate is lost in its error."""
        rate, rest = (self.out_above, self.out_below) if direction == "remove" else (self.in_below, self.in_above)
        error = self.out_error if direction == "remove" else self.in_error
        known = (rate > 2 * error) & (rest > 2 * error)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(known, np.log(np.abs(rate)) - np.log(np.abs(rest)), np.nan)


# the fields of Tails that belong together: an error, and what it is the error of
_FIELDS_OF = {
    "out_error": ("out_above", "out_below", "out_density"),
    "in_error": ("in_above", "in_below", "in_density"),
    "hockey_stick_error": ("hockey_stick",),
    "dual_error": ("dual",),
}
ROWS = list(Tails.__dataclass_fields__)
ERROR_OF = {name: error for error, names in _FIELDS_OF.items() for name in names}
_PARTS = tuple((ROWS.index(error), tuple(ROWS.index(name) for name in names)) for error, names in _FIELDS_OF.items())


def merge(rows: FloatArray, places: NDArray[np.intp], found: FloatArray) -> None:
    """Replace rows at some thresholds by others wherever their errors are smaller, each quantity by itself."""
    for error, others in _PARTS:
        better = found[error] < rows[error, places]
        rows[np.ix_((error, *others), places[better])] = found[(error, *others), :][:, better]


def dual_from(hockey_stick: FloatArray, error: FloatArray, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """γ·H_{1/γ}(out‖in) = H_γ − (1 − γ) and its error, the rounding of the difference charged."""
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.expm1(threshold)  # γ − 1
        return hockey_stick + fall, error + 4 * EPS * (np.abs(hockey_stick) + np.abs(fall))


def hockey_stick_from(dual: FloatArray, error: FloatArray, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """H_γ = (1 − γ) + γ·H_{1/γ}(out‖in) and its error, the rounding of the difference charged."""
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.expm1(threshold)
        return dual - fall, error + 4 * EPS * (np.abs(dual) + np.abs(fall))


def trivial_hockey_stick(log_gamma: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The bound H_γ ≥ max(1 − γ, 0) of every pair of laws, rounded down and rounded up."""
    least = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
    return least * (1 - 4 * EPS), np.minimum(least * (1 + 4 * EPS), 1.0)
