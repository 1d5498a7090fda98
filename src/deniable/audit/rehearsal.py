"""Which attack suits this kind of model? A rehearsal among the shadow models, which never looks at the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable._check import FloatArray
from deniable.audit.resolution import half_gap, smoothed_log_odds, stabilised
from deniable.audit.scoring import METHODS, Method, Variance, joint, score
from deniable.audit.shadow import LARGEST_LOGIT, BoolArray, LearningTask, at_places, places

Scale = Literal["log-odds", "arcsine", "residual"]
REHEARSALS = 32  # shadow models that play the target, at most
LEAST_SHADOWS = 6  # two models with and two without each record must be left when one plays the target
_SMALLEST_FPR = 1e-3
_MARGIN = 0.03  # relative: what chance makes of equally strong attacks with 1,000 records and 32 models


@dataclass(frozen=True)
class Attack:
    """A method and the scale of the signal that it looks at."""

    method: Method
    scale: Scale

    def __str__(self) -> str:
        return self.method if self.scale != "arcsine" else f"{self.method} (arcsine)"


@dataclass(frozen=True)
class Scorer:
    """What is the same for every attack on one set of shadow models.

    ``half`` is the resolution of the models' probabilities (:func:`half_gap`), found on the shadows alone.
    """

    task: LearningTask
    variance: Variance
    gamma: float
    half: float

    @classmethod
    def of(cls, shadows: FloatArray, task: LearningTask, variance: Variance, gamma: float) -> Scorer:
        """Learn the resolution of the models from the shadows' signals."""
        return cls(task, variance, gamma, half_gap(shadows) if task == "classification" else 0.0)

    def __call__(self, attack: Attack, target: FloatArray, inside: FloatArray, outside: FloatArray) -> FloatArray:
        """Score every record; shapes as in :func:`deniable.audit.scoring.score`."""
        return self.scaled_scores(attack, *(self.scaled(attack.scale, signal) for signal in (target, inside, outside)))

    def scaled_scores(self, attack: Attack, seen: FloatArray, within: FloatArray, without: FloatArray) -> FloatArray:
        """Score every record by signals on the attack's scale."""
        if seen.ndim == 2 and attack.method == "rmia":  # of the outputs together
            seen, within, without = (joint(signal, self.task) for signal in (seen, within, without))
        if seen.ndim == 2:  # evidence of several outputs adds up
            parts = (self._one(attack, seen[k], within[:, k], without[:, k]) for k in range(len(seen)))
            return np.asarray(sum(parts), dtype=np.float64)
        return self._one(attack, seen, within, without)

    def _one(self, attack: Attack, seen: FloatArray, within: FloatArray, without: FloatArray) -> FloatArray:
        return score(attack.method, seen, within, without, self.task, variance=self.variance, gamma=self.gamma)

    def scaled(self, scale: Scale, signal: FloatArray) -> FloatArray:
        """Return the signal as attacks on this scale see it."""
        if self.task == "regression":
            return signal
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

    Each in turn is attacked with the others. It was one of a balanced design, so that a record in it has one place
    less among the others; both sides are cut to the same number of models, and the missing place tells nothing.
    """
    strength: dict[Attack, list[float]] = {attack: [] for attack in candidates(signal, scorer.task)}
    half = len(signal) // 2 - 1
    scaled = {scale: scorer.scaled(scale, signal) for scale in {attack.scale for attack in strength}}
    for target in np.unique(np.linspace(0, len(signal) - 1, REHEARSALS).astype(int)):
        rest = np.delete(np.arange(len(signal)), target)
        sides = [rest[models] for models in places(member[rest], half)]
        split = {scale: [at_places(seen, models) for models in sides] for scale, seen in scaled.items()}
        for attack, found in strength.items():
            scores = scorer.scaled_scores(attack, scaled[attack.scale][target], *split[attack.scale])
            found.append(area_under_log_roc(scores[member[target]], scores[~member[target]]))
    return {attack: float(np.mean(found)) for attack, found in strength.items()}


def strongest(rehearsed: dict[Attack, float], usual: Attack) -> Attack:
    """Return ``usual`` unless another attack was stronger by more than a rehearsal can be wrong."""
    best = max(rehearsed, key=lambda attack: rehearsed[attack], default=usual)
    return best if rehearsed and rehearsed[best] > (1 + _MARGIN) * rehearsed[usual] else usual


def area_under_log_roc(member: FloatArray, nonmember: FloatArray) -> float:
    """Return the mean TPR over 50 false positive rates, evenly spaced in their logarithm from 0.1 % (or 1/n) to 1.

    Ties are split by coins: the ROC is straight between its corners.
    """
    if not len(member) or not len(nonmember):
        return 0.0
    scores = np.concatenate([member, nonmember])
    order = np.argsort(-scores)
    last = np.append(scores[order[:-1]] != scores[order[1:]], True)  # of equal scores
    hits = np.cumsum(order < len(member))
    counts = hits[last], np.arange(1, len(scores) + 1)[last] - hits[last]
    tpr, fpr = (np.append(0.0, count / n) for count, n in zip(counts, (len(member), len(nonmember)), strict=True))
    smallest = max(_SMALLEST_FPR, 1 / len(nonmember))
    corners = np.append(np.flatnonzero(np.diff(fpr) > 0), len(fpr) - 1)  # of equal rates the largest TPR
    rates = np.exp(np.linspace(np.log(smallest), 0.0, 50))
    return float(np.mean(np.interp(rates, fpr[corners], tpr[corners])))
