"""Which attack suits this kind of model? A rehearsal among the shadow models, which never looks at the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable._check import FloatArray
from deniable.audit.scoring import (
    METHODS,
    Method,
    Shown,
    ShownByOthers,
    half_gap,
    joint,
    score,
    smoothed_log_odds,
    stabilised,
)
from deniable.audit.shadow import LARGEST_LOGIT, BoolArray, LearningTask, split_signals

Scale = Literal["log-odds", "arcsine", "residual"]
REHEARSALS = 32  # largest number of shadow models that play the target
LEAST_SHADOWS = 6  # two models with and two without each record must be left when one plays the target
_SMALLEST_FPR = 1e-3  # lowest FPR in the mean TPR
_MARGIN = 0.03  # relative: how far chance separates equally strong attacks, with 1,000 records and 32 models


@dataclass(frozen=True)
class Attack:
    """A method and the scale of the signal that it looks at."""

    method: Method
    scale: Scale

    def __str__(self) -> str:
        return self.method if self.scale != "arcsine" else f"{self.method} (arcsine)"


@dataclass(frozen=True, eq=False)
class Scorer:
    """What is the same for every attack on one set of shadow models.

    ``half`` is the resolution of the models' probabilities (:func:`half_gap`); residuals are divided by ``unit`` (a
    number, or one per output), so that exp(−loss) is a Gaussian density whatever y is measured in. Both are found on
    the shadows alone.
    """

    task: LearningTask
    half: float = 0.0
    unit: float | FloatArray = 1.0

    @classmethod
    def of(cls, shadows: FloatArray, task: LearningTask) -> Scorer:
        """Learn the resolution of the models, or the size of their residuals, from the shadows' signals."""
        if task == "classification":
            return cls(task, half=half_gap(shadows))
        size = np.sqrt(2 * np.mean(shadows**2, axis=(0, -1)))
        return cls(task, unit=np.where(size > 0, size, 1.0)[..., None])

    def __call__(self, attack: Attack, target: FloatArray, inside: FloatArray, outside: FloatArray) -> FloatArray:
        """Score every record by the target's signals, (n,) or (n_outputs, n), and the shadows', with one more axis."""
        seen = [output[0] for output in self.outputs(attack, target[None])]
        sides = ([Shown(output, self.task) for output in self.outputs(attack, side)] for side in (inside, outside))
        return self.score(attack, seen, *sides)

    def score(
        self, attack: Attack, seen: Sequence[FloatArray], inside: Sequence[Shown], outside: Sequence[Shown]
    ) -> FloatArray:
        """Score every record; one entry for each of :meth:`outputs`, whose evidence adds up."""
        each = zip(seen, inside, outside, strict=True)
        parts = (score(attack.method, *signals, self.task) for signals in each)
        return np.asarray(sum(parts), dtype=np.float64)

    def sides(
        self, attack: Attack, signal: FloatArray, member: BoolArray
    ) -> tuple[list[FloatArray], list[Shown], list[Shown]]:
        """Return, for each output, the models' signals and what those with and without each record showed."""
        outputs = self.outputs(attack, signal)
        split = [[Shown(side, self.task) for side in split_signals(output, member)] for output in outputs]
        return outputs, [inside for inside, _ in split], [outside for _, outside in split]

    def outputs(self, attack: Attack, signal: FloatArray) -> list[FloatArray]:
        """Return the models' signals as the attack sees them, (models, n) for each output; RMIA sees all as one."""
        scaled = self.scaled(attack.scale, signal)
        if scaled.ndim == 2:
            return [scaled]
        return [joint(scaled, self.task)] if attack.method == "rmia" else [*np.moveaxis(scaled, 1, 0)]

    def scaled(self, scale: Scale, signal: FloatArray) -> FloatArray:
        """Return the signal as attacks on this scale see it."""
        if self.task == "regression":
            return np.asarray(signal / self.unit)
        return stabilised(signal) if scale == "arcsine" else smoothed_log_odds(signal, self.half)


def plain(method: Method, task: LearningTask) -> Attack:
    """Return a method on its usual scale."""
    return Attack(method, "residual" if task == "regression" else "log-odds")


def candidates(signal: FloatArray, task: LearningTask) -> list[Attack]:
    """Return the attacks that a rehearsal compares: every method, and LiRA on the scale of votes."""
    found = [plain(method, task) for method in METHODS]
    if task == "classification" and np.abs(signal).max() <= LARGEST_LOGIT:
        found += [Attack("lira", "arcsine")]
    return found


def rehearse(signal: FloatArray, member: BoolArray, scorer: Scorer) -> dict[Attack, float]:
    """Return how strong each attack is when shadow models play the target: the mean TPR over log-spaced FPRs.

    Each in turn is attacked with the others. It was one of a balanced design, so a record in it has one place fewer
    among the others; both sides are cut to the same number of models, and the missing place tells nothing.
    """
    strength: dict[Attack, list[float]] = {attack: [] for attack in candidates(signal, scorer.task)}
    views = {attack: (attack.scale, signal.ndim == 3 and attack.method == "rmia") for attack in strength}
    shown = {view: scorer.sides(attack, signal, member) for attack, view in views.items()}
    for target in np.unique(np.linspace(0, len(signal) - 1, REHEARSALS).astype(int)):
        inside = member[target]
        left = {view: _without(target, inside, *sides) for view, sides in shown.items()}
        for attack, found in strength.items():
            scores = scorer.score(attack, *left[views[attack]])
            found.append(area_under_log_roc(scores[inside], scores[~inside]))
    return {attack: float(np.mean(found)) for attack, found in strength.items()}


def _without(
    target: int, member: BoolArray, outputs: list[FloatArray], inside: list[Shown], outside: list[Shown]
) -> tuple[list[FloatArray], list[Shown], list[Shown]]:
    """Return a model's signals and what the others showed, one model fewer on both sides of every record."""
    seen = [output[target] for output in outputs]
    with_it = [ShownByOthers(s, np.where(member, own, s.signals[-1])) for s, own in zip(inside, seen, strict=True)]
    without = [ShownByOthers(s, np.where(member, s.signals[0], own)) for s, own in zip(outside, seen, strict=True)]
    return seen, [*with_it], [*without]


def strongest(rehearsed: dict[Attack, float], usual: Attack) -> Attack:
    """Return ``usual`` unless another attack was stronger by more than the error of a rehearsal."""
    best = max(rehearsed, key=lambda attack: rehearsed[attack], default=usual)
    return best if rehearsed and rehearsed[best] > (1 + _MARGIN) * rehearsed[usual] else usual


def area_under_log_roc(member: FloatArray, nonmember: FloatArray) -> float:
    """Return the mean TPR over 50 false positive rates, evenly spaced in their logarithm from 0.1 % (or 1/n) to 1.

    Ties are split at random: the ROC is straight between its corners.
    """
    if not len(member) or not len(nonmember):
        return 0.0
    hits, false = np.sort(member), np.sort(nonmember)
    n, m = len(hits), len(false)
    rates = np.exp(np.linspace(np.log(max(_SMALLEST_FPR, 1 / m)), 0.0, 50))
    reached = false[m - 1 - np.minimum((rates * m).astype(int), m - 1)]  # the score at which the rate is reached
    least = np.searchsorted(false, reached)  # nonmembers below it
    before, after = m - np.searchsorted(false, reached, side="right"), m - least  # above it, and with it
    below = np.where(least > 0, np.searchsorted(hits, false[least - 1], side="right"), 0)  # spared after the corner
    above = np.searchsorted(hits, reached, side="right")  # spared at the corner before
    part = np.clip((rates * m - before) / (after - before), 0.0, 1.0)
    return float(np.mean(1 - (above + part * (below - above)) / n))
