"""Which attack suits this kind of model? A rehearsal among the shadow models, which never looks at the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable.audit.scoring import METHODS, Method, Shown, arcsine_root, half_gap, score, smoothed_log_odds
from deniable.audit.shadow import LARGEST_LOGIT, BoolArray, LearningTask, split_signals

REHEARSALS = 32  # largest number of shadow models that play the target
LEAST_SHADOWS = 6  # two models with and two without each record must be left when one plays the target
_SMALLEST_FPR = 1e-3  # lowest FPR in the mean TPR
_MARGIN = 0.03  # relative: how far chance separates equally strong attacks, with 1,000 records and 32 models


@dataclass(frozen=True)
class Attack:
    """A method, and whether it looks at a share of votes instead of at log-odds or residuals."""

    method: Method
    votes: bool = False

    def __str__(self) -> str:
        return f"{self.method} (arcsine)" if self.votes else self.method


@dataclass(frozen=True, eq=False)
class Scale:
    """How attacks see the signals of one set of shadow models.

    ``half`` is the resolution of the models' probabilities (:func:`half_gap`); residuals are divided by ``unit``, so
    that exp(−loss) is a Gaussian density whatever y is measured in. Both are found on the shadows alone.
    """

    task: LearningTask
    half: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, shadows: FloatArray, task: LearningTask) -> Scale:
        """Learn the resolution of the models, or the size of their residuals, from the shadows' signals."""
        if task == "classification":
            return cls(task, half=half_gap(shadows))
        return cls(task, unit=float(np.sqrt(2 * np.mean(shadows**2))) or 1.0)

    def rescale(self, attack: Attack, signal: FloatArray) -> FloatArray:
        """Return signals as the attack sees them."""
        if self.task == "regression":
            return np.asarray(signal / self.unit)
        return arcsine_root(signal) if attack.votes else smoothed_log_odds(signal, self.half)

    def scores(self, attack: Attack, targets: FloatArray, shadows: FloatArray, member: BoolArray) -> FloatArray:
        """Score every record by the signals of targets, shape (targets, n), and of the shadows with memberships."""
        inside, outside = (Shown.of(side, self.task) for side in split_signals(self.rescale(attack, shadows), member))
        return np.array([score(attack.method, x, inside, outside, self.task) for x in self.rescale(attack, targets)])


def candidates(signal: FloatArray, task: LearningTask) -> list[Attack]:
    """Return the attacks that a rehearsal compares: every method, and LiRA on the scale of votes."""
    found = [Attack(method) for method in METHODS]
    if task == "classification" and np.abs(signal).max() <= LARGEST_LOGIT:
        found += [Attack("lira", votes=True)]
    return found


def rehearse(signal: FloatArray, member: BoolArray, scale: Scale) -> dict[Attack, float]:
    """Return how strong each attack is when shadow models play the target: the mean TPR over log-spaced FPRs.

    Each in turn is attacked with the others. It was one of a balanced design, so a record in it has one place fewer
    among the others; both sides are cut to the same number of models, and the missing place tells nothing.
    """
    strength: dict[Attack, list[float]] = {attack: [] for attack in candidates(signal, scale.task)}
    played = np.unique(np.linspace(0, len(signal) - 1, REHEARSALS).astype(int))
    for votes in sorted({attack.votes for attack in strength}):  # attacks that see the same signals
        alike = [attack for attack in strength if attack.votes == votes]
        seen = scale.rescale(alike[0], signal)
        inside, outside = split_signals(seen, member)
        with_it, without_it = Shown.of(inside, scale.task), Shown.of(outside, scale.task)
        for target in played:
            known, own = member[target], seen[target]
            sides = (
                with_it.without(np.where(known, own, inside[-1]), scale.task),
                without_it.without(np.where(known, outside[0], own), scale.task),
            )
            for attack in alike:
                scores = score(attack.method, own, *sides, scale.task)
                strength[attack].append(area_under_log_roc(scores[known], scores[~known]))
    return {attack: float(np.mean(each)) for attack, each in strength.items()}


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
