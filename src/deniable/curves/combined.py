"""Curves made of other curves or of points: exchanged worlds, envelopes, the smallest of several, brackets, failure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from deniable._check import FloatArray, InputError, finite
from deniable._floats import EPS
from deniable.curves.answer import Charged, Question, bound_of
from deniable.curves.base import Tradeoff
from deniable.curves.closed import ApproximateTradeoff
from deniable.curves.safe import OPPOSITE, AnyDirection, Direction, Side
from deniable.mechanisms import Mechanism, leaves_of, sampling_of


@dataclass(frozen=True)
class _Inverse(Tradeoff):
    """The same pair of laws with the roles of the two worlds exchanged."""

    of: Tradeoff

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self.of.hockey_sticks(log_gamma, OPPOSITE[direction], side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self.of.rates(fpr, OPPOSITE[direction], side)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        return self.of.log_ratio_bound(OPPOSITE[direction], side)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return self.of.renyi_divergences(order, OPPOSITE[direction])

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        return self.of.epsilon_near(delta, direction if direction == "both" else OPPOSITE[direction])

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return self.of.charges(question, at, OPPOSITE[direction])

    def inverse(self) -> Tradeoff:
        of, own = self.of, (self.assumptions, self.confidence)
        return of if own == (of.assumptions, of.confidence) else replace(of, assumptions=own[0], confidence=own[1])


@dataclass(frozen=True, eq=False)
class EnvelopeTradeoff(Tradeoff):
    """Upper bounds known only as hockey sticks at some γ, in both directions: a sampled or numerical certificate.

    ``log_gamma`` is increasing; ``add`` and ``remove`` hold upper bounds on H_γ there. Between the points H is
    bounded by convexity in γ (linear interpolation), and TPR ≤ min over the points of γ·FPR + H_γ. The lower side
    is the trivial one: it knows nothing.
    """

    log_gamma: FloatArray
    remove: FloatArray
    add: FloatArray
    method: str = field(default="bounds known at some points, joined by convexity", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("log_gamma", "remove", "add"):
            object.__setattr__(self, name, finite(name, getattr(self, name)))
        points = self.log_gamma
        if points.ndim != 1 or points.size == 0 or not np.all(np.diff(points) > 0):
            raise InputError("log_gamma must be a non-empty increasing one-dimensional array")
        if not self.remove.shape == self.add.shape == points.shape:
            raise InputError(
                f"remove and add must be as long as log_gamma, got {self.remove.shape} and {self.add.shape}"
            )

    def _bounds(self, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """γ and H_γ with the ends γ = 0 (H = 1) and the last known value kept for ever larger γ."""
        values = self.remove if direction == "remove" else self.add
        return np.concatenate([[0.0], np.exp(self.log_gamma)]), np.concatenate([[1.0], np.clip(values, 0.0, 1.0)])

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        with np.errstate(over="ignore"):
            gamma = np.exp(log_gamma)
        if side == "lower":
            return np.zeros_like(gamma)  # what two equal laws have is added to every curve
        points, values = self._bounds(direction)
        value = np.interp(gamma, points, values)
        # γ is rounded, and H falls: look a little to the left, but at the points themselves the values are known
        between = np.interp(gamma * (1 - 4 * EPS), points, values) * (1 + 8 * EPS)
        known = np.isin(log_gamma, self.log_gamma)  # not γ: it may round to that of a point
        largest = values[np.clip(np.searchsorted(points, gamma) - 1, 0, None)]  # of the numbers that are interpolated
        bound: FloatArray = np.where(known, value, np.maximum(value, between) + 4 * EPS * largest)
        return np.clip(bound, 0.0, 1.0)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "lower":
            return fpr.copy()
        points, values = self._bounds(direction)
        bound: FloatArray = np.clip(np.min(points * fpr[:, None] + values, axis=1) * (1 + 4 * EPS), fpr, 1.0)
        return bound

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        """The first point at which H_γ is known to be 0."""
        values = self.remove if direction == "remove" else self.add
        return float(np.min(self.log_gamma[values <= 0], initial=np.inf)) if side == "upper" else 0.0


@dataclass(frozen=True)
class SmallestTradeoff(Tradeoff):
    """Several upper bounds on one pair of worlds: the smallest holds, point by point; of lower sides the largest."""

    parts: tuple[Tradeoff, ...]
    method: str = field(default="the best of several bounds", kw_only=True)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._best([part.hockey_sticks(log_gamma, direction, side) for part in self.parts], side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._best([part.rates(fpr, direction, side) for part in self.parts], side)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        known = [part.log_ratio_bound(direction, side) for part in self.parts]
        return min(known) if side == "upper" else max(known)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return np.asarray(np.min([part.renyi_divergences(order, direction) for part in self.parts], axis=0))

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        found = [part.epsilon_near(delta, direction) for part in self.parts]
        near, step = (np.array(parts) for parts in zip(*found, strict=True))
        best = np.argmin(np.where(np.isfinite(near), near, np.inf), axis=0), np.arange(delta.size)
        return near[best], step[best]

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        upper, lower = (
            [bound_of(part, question, at, direction, side) for part in self.parts] for side in get_args(Side)
        )
        above, below = self.parts[int(np.argmin(upper))], self.parts[int(np.argmax(lower))]
        found = above.charges(question, at, direction)
        return found if below is above else found.with_lower(below.charges(question, at, direction))

    @staticmethod
    def _best(values: list[FloatArray], side: Side) -> FloatArray:
        return np.asarray(np.min(values, axis=0) if side == "upper" else np.max(values, axis=0))


@dataclass(frozen=True)
class BracketTradeoff(Tradeoff):
    """A trade-off known between two others: its upper side is ``above``'s, its lower side ``below``'s."""

    above: Tradeoff
    below: Tradeoff
    method: str = field(default="between two bounds", kw_only=True)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._on(side).hockey_sticks(log_gamma, direction, side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._on(side).rates(fpr, direction, side)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        return self._on(side).log_ratio_bound(direction, side)

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return self.above.renyi_divergences(order, direction)

    def deltas(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        return self._on(side).deltas(epsilon, direction, side)

    def epsilon_bracket(self, delta: FloatArray, direction: AnyDirection, side: Side) -> tuple[FloatArray, FloatArray]:
        return self._on(side).epsilon_bracket(delta, direction, side)

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        return self.above.epsilon_near(delta, direction)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        above, below = (curve.charges(question, at, direction) for curve in (self.above, self.below))
        return above.with_lower(below)

    def _on(self, side: Side) -> Tradeoff:
        return self.above if side == "upper" else self.below


FIXED_BEFOREHAND = (
    "Noise, rates and the number of steps of every phase were fixed beforehand. If one was chosen from what earlier "
    "steps released (or training stopped for what the data showed), the bound of what happened to run is none."
)
TUNING_COUNTED = (
    "Tuning is counted in: a random number of runs was made, and only the best output is released. Settings that "
    "differ between runs were drawn at random from a list that does not depend on the data."
)
_ONE_PERSON = "add or remove one person with all its records"
_PERSONS = (
    "A record stands for a person: all records of a person (records_per_person in what ran) are added or removed "
    "together, and each is drawn and clipped by itself."
)
TUNING_PARTLY_COUNTED = "Tuning is counted in for some parts of the composition, not for all of them."


def with_note(tradeoff: Tradeoff, note: str) -> Tradeoff:
    """Return ``tradeoff`` with a note added to its :class:`Assumptions`."""
    return with_assumptions(tradeoff, notes=(*tradeoff.assumptions.notes, note))


def with_assumptions(tradeoff: Tradeoff, **changes: Any) -> Tradeoff:
    """Return ``tradeoff`` with fields of its :class:`Assumptions` replaced."""
    return replace(tradeoff, assumptions=replace(tradeoff.assumptions, **changes))


def with_batches_of(tradeoff: Tradeoff, mechanism: Mechanism) -> Tradeoff:
    """Return ``tradeoff`` with whose records ``mechanism`` is about, and how they come into its batches."""
    leaves = leaves_of(mechanism)
    if any(getattr(leaf, "records_per_person", 1) > 1 for leaf in leaves):
        tradeoff = with_assumptions(with_note(tradeoff, _PERSONS), adjacency=_ONE_PERSON)
    return with_assumptions(tradeoff, batches=sampling_of(leaves))


@dataclass(frozen=True)
class FailureTradeoff(Tradeoff):
    """With probability ``failure`` the world is revealed, otherwise the pair is that of ``of``.

    The worst pair of an (ε, δ)-DP mechanism is this with randomised response; composition keeps the form, with
    1 − failure = Π(1 − δ). Hence H_γ = failure + (1 − failure)·H_γ(of), and since a revealing outcome is never a false
    positive, TPR(α) = failure + (1 − failure)·TPR_of(α/(1 − failure)).
    """

    of: Tradeoff
    failure: float

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        inner = self.of.hockey_sticks(log_gamma, direction, side)
        return self._outward(self.failure + (1 - self.failure) * inner, side)

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        return float("inf")

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        return np.full(order.shape, np.inf)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        nudged = fpr / (1 - self.failure) * (1 + (4 if side == "upper" else -4) * EPS)
        inner = self.of.rates(np.clip(nudged, 0.0, 1.0), direction, side)
        return np.clip(self._outward(self.failure + (1 - self.failure) * inner, side), fpr, 1.0)

    def epsilon_bracket(self, delta: FloatArray, direction: AnyDirection, side: Side) -> tuple[FloatArray, FloatArray]:
        """No ε will do for a δ below the probability of failure, which every H_γ exceeds."""
        low, high = np.full_like(delta, np.inf), np.full_like(delta, np.inf)
        enough = ~(delta < self.failure * (1 - 16 * EPS))
        if enough.any():
            low[enough], high[enough] = super().epsilon_bracket(delta[enough], direction, side)
        return low, high

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Where the rest has (δ − failure)/(1 − failure)."""
        left = np.clip((delta - self.failure) / (1 - self.failure), 1e-300, 1.0)
        return self.of.epsilon_near(left, direction)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        left = 1 - self.failure
        inner = self.of.charges(question, at if question == "hockey stick" else min(at / left, 1.0), direction)
        return inner.scaled(left, f"; fails with probability {self.failure:.3g}")

    @staticmethod
    def _outward(value: FloatArray, side: Side) -> FloatArray:
        moved: FloatArray = np.clip(value * (1 + (8 if side == "upper" else -8) * EPS), 0.0, 1.0)
        return moved


def with_failure(tradeoff: Tradeoff, failure: float, exact: bool = False) -> Tradeoff:
    """Return the trade-off of a mechanism that is ``tradeoff``'s but for failures of this probability.

    ``exact`` says that the probability is a δ as it was given; others are charged 8 roundings.
    """
    if failure == 0:
        return tradeoff
    if exact and isinstance(tradeoff, ApproximateTradeoff):
        return ApproximateTradeoff(tradeoff.guaranteed_epsilon, failure)
    return FailureTradeoff(tradeoff, failure, method=tradeoff.method, confidence=tradeoff.confidence)
