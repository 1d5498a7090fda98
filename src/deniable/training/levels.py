"""A last look at the level and the slope of a model's scores: a handful of sums over all records.

The residuals of a step are clipped, because its noise grows with the clip in every coordinate. Where a target has a
long tail, that leaves predictions near the median and shapes too flat. A handful of sums over all records can bear a
wide clip, so a last look finds the level: for a squared loss the regression of what is left on the score (shift and
slope), for a Poisson loss the ratio of all counts to all predicted rates. A classifier's scores are too flat after
shrinkage, and its clip has bitten only where scores have come far: one Newton step on shift, slope and link.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from deniable._check import FloatArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import Paid
from deniable.training.additive import Additive
from deniable.training.design import CHUNK
from deniable.training.looks import Task
from deniable.training.losses import RESIDUAL, ClippedLogistic, ClippedLoss, ClippedPoisson, link_gap, tabulate

LEVEL_SHARE = 0.04  # of μ²: a last look at the level of a regression's predictions
CLASSES_LEVEL_SHARE = 0.02  # of μ²: the same of a classifier's scores
TOLD = 10.0  # n·μ of that look below which it tells nothing
_NARROW = 20.0  # the squared clip, in spreads of the target, is n·μ over this: bias and noise both vanish as n·μ grows
_WORTH = 5.0  # a clip below this many times that of the steps is not worth a look
_FOR_ONE_SIDED = (5.0, 2.0)  # the two above where most targets are at one end: without a look predictions stay there
_SIZED = 100.0  # n·μ at which the clip for one-sided targets is widest in units of √(n·μ) (measured)
_COUNTS = 3.0  # a clip lets counts up to this pass
_NOISY = 0.3  # relative noise of the level above which a narrower clip does less harm
_FAR = 2.0  # spreads: scores farther from the middle are clipped to this
_USUAL = 1.0  # standard deviation of the slope that remains, per ``_FAR`` spreads of the score
_SQUARED = 2.5  # largest squared norm of (e, e·u, u/2, u²/2) for |e|, |u| ≤ 1
_POISSON = 2.0  # largest squared norm of (y, rate), both between 0 and 1
_FLAT = 4.0  # scores of a classifier farther from the middle are taken to be this far
_PRIOR = (0.3, 1.2, 0.7)  # prior standard deviations of a classifier's shift, slope (per _FLAT) and link that remain

ScoreFunctions = Callable[[FloatArray, FloatArray], list[FloatArray]]  # of records' scores and targets


def wide_clip(mu: float, n: float, clip: float, count: float | None = None, *, one_sided: bool = False) -> float | None:
    """Return the clip of a look for ``mu``, in spreads of the target; None if it would tell too little to be paid for.

    ``clip`` is that of the steps; ``count`` is the size of one count in spreads, where the targets are counts: a level
    without a slope, for which any clip that lets counts pass will do. ``one_sided`` targets are mostly at one end.
    """
    narrow, worth = _FOR_ONE_SIDED if one_sided else (_NARROW, _WORTH)
    wide = math.sqrt(mu * n / narrow)
    if one_sided and wide >= worth * clip:
        wide = math.sqrt(mu * n / min(max(_SIZED / (mu * n), mu * n / _SIZED), narrow))
    if count is not None and wide < _COUNTS * count and _COUNTS * count * math.sqrt(_POISSON) < _NOISY * mu * n:
        wide = _COUNTS * count
    return wide if wide >= (worth * clip if count is None else max(clip, count)) else None


def level_scores(
    task: Task, model: Additive, scores: FloatArray, paid: Paid, wide: float
) -> tuple[Additive, ClippedLoss]:
    """Return the model with its ``scores`` shifted and stretched; from one query that is paid for."""
    scores, mu = scores[:, 0], paid.mu
    if isinstance(task.loss, ClippedPoisson):
        narrow = min(wide, math.sqrt(mu * task.n / _NARROW))  # rates are not whole numbers: their clip needs no floor
        felt = math.sqrt(_POISSON) / (mu * task.n)

        def rates(scores: FloatArray, target: FloatArray) -> list[FloatArray]:
            return [np.minimum(target / wide, 1), np.exp(np.minimum(scores, math.log(narrow))) / narrow]

        counts, predicted = means_of(task, scores, rates, paid, _POISSON)
        return _move(model, math.log(wide * max(counts, felt) / (narrow * max(predicted, felt))), 1.0), task.loss
    felt = wide * math.sqrt(_SQUARED) / (mu * task.n)

    def moments(scores: FloatArray, target: FloatArray) -> list[FloatArray]:
        place, left = np.clip(scores / _FAR, -1, 1), np.clip((target - scores) / wide, -1, 1)
        return [left, left * place, place / 2, place**2 / 2]

    left_mean, product, middle, square = means_of(task, scores, moments, paid, _SQUARED)
    middle, square = 2 * middle, 2 * square
    steeper = _steeper(wide * (product - left_mean * middle), square - middle**2, felt, 2 * felt / wide)
    return _move(model, wide * left_mean - steeper * middle, 1 + steeper / _FAR), task.loss


def _steeper(product: float, spread: float, felt: float, unsure: float) -> float:
    """Return the slope that remains: ``product`` = slope·(spread + noise) + noise, slope ~ N(0, ``_USUAL``²).

    ``felt`` and ``unsure`` are the standard deviations of the noise on the product and on the spread.
    """
    spread = min(max(spread, 0.0), 1.0)
    slope = product * spread / (spread**2 + unsure**2 + (felt / _USUAL) ** 2)
    return min(max(slope, -_USUAL), 2 * _USUAL)  # predictions get at least half, at most twice as steep


def means_of(task: Task, scores: FloatArray, columns: ScoreFunctions, paid: Paid, squared: float) -> list[float]:
    """Return noisy means over the units of ``columns`` that together have squared norm at most ``squared`` a record."""
    units, parts = task.look.units, []
    for start in range(0, len(scores), CHUNK):
        some = slice(start, start + CHUNK)
        weights = 1 if units.weights is None else units.weights[some]
        entries = [np.trunc(column * RESIDUAL) * weights for column in columns(scores[some], task.target[some])]
        parts.append(np.sum(entries, axis=1).astype(np.int64))
    sums, unit = np.sum(parts, axis=0), units.heaviest * RESIDUAL
    sd = np.full(sums.size, unit * math.sqrt(squared) / paid.mu * (1 + MANY_ROUNDINGS))
    released = paid.channel("level", sd)(sums)
    return [float(value) / unit / task.n for value in released]


def _move(model: Additive, shift: float, slope: float) -> Additive:
    coefficients = model.coefficients * slope
    coefficients[-1] += shift / model.basis.scale[-1]
    return replace(model, coefficients=coefficients)


def tells(strength: float) -> bool:
    """Return whether a look at a classifier's scores tells enough to be paid for; ``strength`` is n·μ of the fit."""
    return strength * math.sqrt(CLASSES_LEVEL_SHARE) >= TOLD


def calibrate_scores(task: Task, model: Additive, scores: FloatArray, paid: Paid) -> tuple[Additive, ClippedLoss]:
    """Return a classifier of two classes with its scores shifted and stretched and its link bent: one Newton step.

    The three are functions of a record's score, at most 1; what is left of it, y minus its probability, is at most 1
    and the curvature at most ¼, so its ten numbers have squared norm at most 3 + 6/16.
    """
    loss, scores = cast(ClippedLogistic, task.loss), scores[:, 0]
    which = np.triu_indices(3)

    def moments(scores: FloatArray, target: FloatArray) -> list[FloatArray]:
        shares, gap = tabulate(scores, loss.probabilities, link_gap)
        features = np.stack([np.ones_like(scores), np.clip(scores / _FLAT, -1, 1), gap / math.log(2)])
        left, curvature = target - shares, shares * (1 - shares)
        return [*features * left, *(curvature * features[i] * features[j] for i, j in zip(*which, strict=True))]

    found = np.array(means_of(task, scores, moments, paid, 3.375)) * task.n
    bend = np.zeros((3, 3))
    bend[which] = bend[which[::-1]] = found[3:]
    values, axes = np.linalg.eigh(bend)
    bend = (axes * np.maximum(values, 0.0)) @ axes.T
    sure = bend @ np.linalg.inv(bend + np.eye(3) * 3.375 / paid.mu**2)
    step = np.linalg.solve(sure @ bend + np.diag(1 / np.square(_PRIOR)), sure @ found[:3])
    slope, link = min(max(1 + float(step[1]) / _FLAT, 0.5), 2.0), min(max(float(step[2]) / math.log(2), -0.5), 1.5)
    return _move(model, float(step[0]), slope), replace(loss, link=link)  # probabilities rise with the score
