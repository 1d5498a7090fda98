"""From shadow models to membership scores: one function per attack. A larger score says "member".

Arguments are the target's signal on every record, shape (n,), and the signals of the shadows that include (``inside``)
or exclude (``outside``) each record. For classification the signal is the log-odds of the true class (or another
increasing function of its probability), for regression the residual.

Some probabilities are coarse: a forest of 100 trees says 99 % or 100 %, and nothing in between. The log-odds of a vote
of 100 % are infinite. Where they are cut off decides how far such a vote stands from the next
one: far too far (at 30, say) and the Gaussians that attacks fit to a record's shadow signals are ruined by a single
unanimous vote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from deniable._check import FloatArray, InputError, choice
from deniable.audit.shadow import LARGEST_LOGIT, LearningTask


def half_gap(log_odds: FloatArray) -> float:
    """Return half the smallest probability above 0 that models report, if they also report exactly 0 or 1; otherwise 0.

    ``log_odds`` are those of the shadow models on all records. Probabilities that differ from 0 and 1 by less than
    their precision count as 0 and 1. Models that never report 0 or 1 need no correction, nor do margins, which are not
    log-odds (some exceed the largest logit).
    """
    size = np.abs(log_odds)
    inside = size < LARGEST_LOGIT
    if inside.all() or size.max() > LARGEST_LOGIT:
        return 0.0
    return float(expit(-np.max(size[inside], initial=0.0))) / 2


def smoothed_log_odds(log_odds: FloatArray, half: float) -> FloatArray:
    """Return log((p + ``half``)/(1 − p + ``half``)): for 100 trees, unanimity counts as 99.5 % to 0.5 %."""
    if half == 0:
        return log_odds
    exact = np.where(np.abs(log_odds) < LARGEST_LOGIT, log_odds, np.copysign(np.inf, log_odds))
    return np.asarray(np.log(expit(exact) + half) - np.log(expit(-exact) + half))


def arcsine_root(log_odds: FloatArray) -> FloatArray:
    """Return arcsin √p: a share of votes has nearly the same variance on this scale, whatever p is (Anscombe 1948)."""
    exact = np.where(np.abs(log_odds) < LARGEST_LOGIT, log_odds, np.copysign(np.inf, log_odds))
    return np.asarray(np.arcsin(np.sqrt(expit(exact))))


Method = Literal["loss", "calibrated", "lira", "lira-offline", "rmia"]
METHODS: tuple[Method, ...] = ("loss", "calibrated", "lira", "lira-offline", "rmia")

_PRIOR_MODELS = 8  # a record's variance is drawn towards the pooled one as if that came from this many more models
_LIKELIER = 2.0  # how many times likelier than another record a record must be to count as more likely (RMIA)

# how many shadows that exclude (and, for online attacks, include) each record an attack needs
NEEDED: dict[str, int] = {"loss": 0, "calibrated": 1, "lira": 2, "lira-offline": 2, "rmia": 1}


def loss_of(signal: FloatArray, task: LearningTask) -> FloatArray:
    """Return cross-entropy (classification) or squared error (regression)."""
    if task == "regression":
        return np.asarray(signal**2)
    return np.asarray(np.log1p(np.exp(-np.abs(signal))) + np.maximum(-signal, 0.0))  # np.logaddexp is slow


def chance(signal: FloatArray, task: LearningTask) -> FloatArray:
    """Return exp(−loss): the probability of the true class, or a Gaussian density up to a factor."""
    return np.asarray(expit(signal) if task == "classification" else np.exp(-loss_of(signal, task)))


@dataclass(frozen=True, eq=False)
class Shown:
    """What some models showed about each record: the quantities that attacks use.

    Their mean signal, the sum of the squared deviations from it, their mean loss, and their mean of exp(−loss).
    """

    models: int
    mean: FloatArray
    squares: FloatArray
    loss: FloatArray
    chance: FloatArray

    @classmethod
    def of(cls, signals: FloatArray, task: LearningTask) -> Shown:
        """Return the moments of signals of shape (models, n)."""
        mean = signals.mean(axis=0)
        loss, likely = loss_of(signals, task).mean(axis=0), chance(signals, task).mean(axis=0)
        return cls(len(signals), mean, np.sum((signals - mean) ** 2, axis=0), loss, likely)

    def without(self, taken: FloatArray, task: LearningTask) -> Shown:
        """Return the same without one model, which may differ by record: its signals are ``taken``, shape (n,)."""
        left = self.models - 1

        def mean(of_all: FloatArray, own: FloatArray) -> FloatArray:
            return of_all + (of_all - own) / left

        centre = mean(self.mean, taken)
        squares = np.maximum(self.squares - (taken - self.mean) * (taken - centre), 0.0)
        likely = np.maximum(mean(self.chance, chance(taken, task)), 0.0)
        return Shown(left, centre, squares, mean(self.loss, loss_of(taken, task)), likely)


def _lira_offline(target: FloatArray, outside: Shown, task: LearningTask) -> FloatArray:
    """Distance of the signal from what shadows without the record show, in deviations (Carlini et al. 2022, §VI.A)."""
    centre, spread = outside.mean, _shrunk_sd(outside)
    if task == "classification":
        return np.asarray((target - centre) / spread)
    return np.asarray((np.abs(centre) - np.abs(target)) / spread)  # a member's residual is smaller


def _rmia(target: FloatArray, inside: Shown, outside: Shown, task: LearningTask) -> FloatArray:
    """Share of other records that are half as likely as this one or less, against the shadows' average.

    Zarifzadeh, Liu & Shokri 2024, with all attacked records as the population.
    """
    average = (inside.chance + outside.chance) / 2
    with np.errstate(divide="ignore"):
        ratio = -loss_of(target, task) - np.log(np.maximum(average, np.finfo(float).tiny))
    preferred = np.searchsorted(np.sort(ratio), ratio - np.log(_LIKELIER), side="right")
    return np.asarray(preferred / len(ratio), dtype=np.float64)


def score(method: Method, target: FloatArray, inside: Shown, outside: Shown, task: LearningTask) -> FloatArray:
    """Score every record with one of :data:`METHODS`."""
    choice("method", method, METHODS)
    if min(inside.models, outside.models) < NEEDED[method]:
        raise InputError(
            f"method {method!r} needs at least {NEEDED[method]} shadows with and without each record, got "
            f"{inside.models} and {outside.models}; raise n_shadows"
        )
    match method:
        case "loss":  # members have a small one (Yeom et al. 2018)
            return -loss_of(target, task)
        case "calibrated":  # against the mean loss under models without the record (Watson et al. 2022)
            return outside.loss - loss_of(target, task)
        case "lira":  # ratio of two Gaussians fitted to the shadows' signals (Carlini et al. 2022, Algorithm 1)
            return _log_normal(target, inside) - _log_normal(target, outside)
        case "lira-offline":
            return _lira_offline(target, outside, task)
    return _rmia(target, inside, outside, task)


def _shrunk_sd(side: Shown) -> FloatArray:
    """Standard deviation of each record's signals, drawn towards that of all; never quite 0 (trees are certain)."""
    degrees, squares = max(1, side.models - 1), side.squares
    pooled = float(np.sqrt(squares.mean() / degrees))
    own = (_PRIOR_MODELS * pooled**2 + squares) / (_PRIOR_MODELS + degrees)  # mean of an inverse-gamma posterior
    return np.asarray(np.maximum(np.sqrt(own), max(1e-3 * pooled, 1e-9)))


def _log_normal(x: FloatArray, side: Shown) -> FloatArray:
    spread = _shrunk_sd(side)
    return np.asarray(-(((x - side.mean) / spread) ** 2) / 2 - np.log(spread))
