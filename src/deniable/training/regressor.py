"""``PrivateRegressor``: a regression that bounds what any attacker can infer about membership in its training data.

The residuals of a step are clipped, because its noise grows with the clip in every coordinate. Where a target has a
long tail, that leaves predictions near the median and shapes too flat. A handful of sums over all records can bear a
wide clip, so a last look finds the level: for a squared loss the regression of what is left on the score (shift and
slope), for a Poisson loss the ratio of all counts to all predicted rates.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_y

from deniable._check import FloatArray, InputError, choice, nearest_names
from deniable._floats import MANY_ROUNDINGS
from deniable.limits import Limit
from deniable.mechanisms import Mechanism
from deniable.noise import Account, Paid
from deniable.tables import DATE, NUMBER, ColumnCells, ColumnSchema, Schema
from deniable.training import bins
from deniable.training.additive import Additive
from deniable.training.base import PrivateModel
from deniable.training.features import target_cells
from deniable.training.fits import LEVEL_SHARE, Fit, TrainingWarning
from deniable.training.fitting import Task
from deniable.training.looks import number_cells
from deniable.training.losses import CLIP, ClippedLoss, ClippedPoisson, ClippedSquared

_NARROW = 20.0  # the squared clip, in spreads of the target, is n·μ over this: bias and noise both vanish as n·μ grows
_WORTH = 5.0  # a clip below this many times that of the steps is not worth a look
_FOR_ONE_SIDED = (5.0, 2.0)  # the two above where most targets are at one end: without a look predictions stay there
_SIZED = 100.0  # n·μ at which the clip for one-sided targets is widest in units of √(n·μ) (measured)
_COUNTS = 3.0  # a clip lets counts up to this pass
_NOISY = 0.3  # relative noise of the level above which a narrower clip does less harm
_FAR = 2.0  # spreads: scores farther from the middle are clipped to this
_USUAL = 1.0  # standard deviation of the slope that remains, per ``_FAR`` spreads of the score
_PARTS = 1 << 15  # lattice points of an entry of size 1
_SQUARED = 2.5  # largest squared norm of (e, e·u, u/2, u²/2) for |e|, |u| ≤ 1
_POISSON = 2.0  # largest squared norm of (y, rate), both between 0 and 1
TARGET_SHARE = 0.05  # of μ²: location and spread of the target
_MANY = 800.0  # n·μ above which a larger clip pays: less bias on skewed targets, noise matters less
_WIDEST = 4.0  # times the smallest clip, for the number of records alone
_SEEN = 3.0  # standard deviations by which a cell of a tail must stand out of the noise
_MOSTLY = 0.84 - 0.16  # share of the mass from which on one cell may hold all three quantiles
_ENOUGH = 150.0  # n·μ above which the range of a target is found even if most of it is at one end
_ONE_SIDED = 0.2  # distance of the nearer of the 16 % and 84 % quantiles from the median, as a share of the other's


class RegressorFit(Fit):
    """One fit of a :class:`PrivateRegressor`: the target's place and spread are declared, or found first."""

    @staticmethod
    def aim(model: Any) -> ColumnSchema:
        """Return what is declared of the target, ``target_range`` included."""
        declared = Fit.aim(model)
        if model.target_range is None:
            return declared
        return replace(declared, range=model.target_range, categories=()).checked("the target")

    def target(self, y: Any) -> tuple[FloatArray, tuple[float, float] | None]:
        """Return the targets, and their range if it is declared; what is no number in it then weighs nothing."""
        poisson = choice("loss", self.model.loss, ("squared", "poisson")) == "poisson"
        aim = self.aim(self.model)
        if aim.kind not in ("", "number", "whole", "date"):
            raise InputError(f"the target is declared as {aim.kind!r}, a regression needs numbers or dates")
        span, kind = aim.span, DATE if aim.kind == "date" else NUMBER
        if poisson and span is not None and span[0] < 0:
            raise InputError("loss='poisson' needs counts of at least 0 in target_range")
        cells = target_cells(y, aim)
        fits = cells.kind == kind
        if not (aim.kind or isinstance(y, ColumnCells)):
            values = _check_y(np.where(fits, cells.number, np.nan), y_numeric=True, estimator=self.model)
            if poisson and values.min() < 0:
                raise InputError("loss='poisson' needs counts of at least 0")
            return np.asarray(values), None
        if poisson:
            fits &= ~(cells.number < 0)
        self.look.units = self.look.units.only(fits)
        values = np.where(fits, cells.number, 0.0)
        return (values, None) if span is None else (np.clip(values, *span), span)

    def learn(self, target: Any) -> Any:
        """Spend the budget and return the regressor, fitted."""
        (values, span), look, n = target, self.look, self.n
        self.advise()
        mu, poisson = look.ledger.mu * math.sqrt(TARGET_SHARE), self.model.loss == "poisson"
        cells = number_cells(look, "the target", values, mu, span, n, again=True)
        one_sided = not poisson and _one_sided(cells)
        few = cells.mass.size <= 2 or (one_sided and n * mu < _ENOUGH)
        if span is None and not poisson and few:
            warnings.warn(
                "most of the target is at one end and the records are too few to find the range of the rest: the model "
                "may predict worse than the mean; more records, a weaker target or, if it is public, "
                "target_range=(low, high) help",
                TrainingWarning,
                stacklevel=5,
            )
        centre, spread = _location(cells, self.model.loss, mu, one_sided)
        loss = _loss(self.model.loss, n * look.ledger.left)
        public = ("the range of the target",) * (span is not None)
        part, one = look.ledger.mu * math.sqrt(LEVEL_SHARE), 1 / spread if poisson else None
        wide = wide_clip(part, n, loss.clip, one, one_sided=one_sided)
        level = None if wide is None else partial(levelled, wide=wide)
        return self.finished((values - centre) / spread, loss, public, level, centre_=centre, spread_=spread)


class PrivateRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """Regression fitted to a membership target; see :class:`deniable.PrivateClassifier` for what is not described here.

    Parameters
    ----------
    advantage, limit
        What an attacker may reach: at most one of them, ``advantage=0.1`` unless given.
    model, schema, ranges, categories, discovery_delta, interactions, group, records_per_person, ledger
        As for the classifier.
    loss
        "squared": residuals are clipped at ¼ to 16 spreads of the target (half of what lies between 16 % and 84 %, or
        the mean distance from the median), by the number of records and the size of the residuals; "poisson": counts,
        with a logarithmic link.
    target_range
        (low, high) of the target if it is public; otherwise its location and spread are found privately. Where most
        of the target is at one end (zeros) and records are few, ``fit`` warns that the rest may not be found.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 2))
    >>> y = X.sum(axis=1)
    >>> model = dn.PrivateRegressor(advantage=0.1, ranges={0: (0, 1), 1: (0, 1)}, target_range=(0, 2)).fit(X, y)
    >>> bool(model.score(X, y) > 0)
    True
    """

    _steps = RegressorFit

    @nearest_names
    def __init__(
        self,
        *,
        advantage: float | None = None,
        limit: Limit | Mechanism | None = None,
        model: str = "additive",
        loss: str = "squared",
        target_range: tuple[float, float] | None = None,
        schema: Schema | None = None,
        ranges: Mapping[Any, tuple[Any, Any]] | None = None,
        categories: Mapping[Any, Any] | str | None = None,
        discovery_delta: float = 1e-6,
        interactions: int | None = None,
        group: Any = None,
        records_per_person: int = 1,
        ledger: Account | None = None,
    ) -> None:
        self.advantage = advantage
        self.limit = limit
        self.model = model
        self.loss = loss
        self.target_range = target_range
        self.schema = schema
        self.ranges = ranges
        self.categories = categories
        self.discovery_delta = discovery_delta
        self.interactions = interactions
        self.group = group
        self.records_per_person = records_per_person
        self.ledger = ledger

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted target of each row."""
        scores = self._scores(X)[:, 0]
        if self.loss == "poisson":
            return np.asarray(self.spread_ * np.exp(np.minimum(scores, 50.0)))
        return np.asarray(self.centre_ + self.spread_ * scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # tiny data sets are mostly noise: that is the promise
        return tags


def _loss(name: str, strength: float) -> ClippedLoss:
    """Return the loss whose clip and travel grow with the number of records in units of the noise."""
    wider = min(max(math.sqrt(strength / _MANY), 1.0), _WIDEST)
    return (ClippedPoisson if name == "poisson" else ClippedSquared)(CLIP * wider)


def _middles(cells: bins.NoisyCells) -> FloatArray:
    return (cells.bounds[1:] + cells.bounds[:-1]) / 2


def _seen(cells: bins.NoisyCells, mu: float) -> FloatArray:
    """Return the mass of the cells that stand out of the noise; 0 for the others."""
    return np.where(cells.mass > _SEEN * 2 / mu, cells.mass, 0.0)


def _quantiles(cells: bins.NoisyCells) -> tuple[float, float, float]:
    low, middle, high = (bins.quantile(cells, share) for share in (0.16, 0.5, 0.84))
    return low, middle, high


def _one_sided(cells: bins.NoisyCells) -> bool:
    """Return whether most of the target is at one end, as the zeros of claims are: the median is then not the mean."""
    low, middle, high = _quantiles(cells)
    if cells.mass.max() > _MOSTLY * cells.mass.sum():
        return True
    return min(high - middle, middle - low) < _ONE_SIDED * max(high - middle, middle - low)


def _location(cells: bins.NoisyCells, loss: str, mu: float, one_sided: bool) -> tuple[float, float]:
    """Return the centre and the spread in which the target is measured.

    The spread is half of what lies between 16 % and 84 %, which is next to nothing where most targets are equal (gains,
    of which 92 % are 0); then, and in long tails, it is the mean distance from the median, where that is larger: of
    what stands out of the noise, or of everything if most targets are at one end and the 84 % may lie in the noise.
    """
    middles = _middles(cells)
    if loss == "poisson":
        mean = float(np.sum(middles * cells.mass) / cells.mass.sum()) if cells.mass.sum() > 0 else cells.high / 2
        return 0.0, max(mean, 1e-9)
    low, middle, high = _quantiles(cells)
    mass = cells.mass if one_sided else _seen(cells, mu)
    distance = float(mass @ np.abs(middles - middle) / max(float(cells.mass.sum()), 1e-300))
    spread = max((high - low) / 2, distance)
    return middle, spread if spread > 0 else max((cells.high - cells.low) / 2, 1e-12)


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


def levelled(task: Task, model: Additive, paid: Paid, wide: float) -> Additive:
    """Return the model with its scores shifted and stretched; from one query that is paid for."""
    scores, mu = model.scores(task.table)[:, 0], paid.mu
    if isinstance(task.loss, ClippedPoisson):
        narrow = min(wide, math.sqrt(mu * task.n / _NARROW))  # rates are not whole numbers: their clip needs no floor
        felt = math.sqrt(_POISSON) / (mu * task.n)
        rates = np.exp(np.minimum(scores, math.log(narrow))) / narrow
        counts, predicted = _means(task, [np.minimum(task.target / wide, 1), rates], paid, _POISSON)
        return _moved(model, math.log(wide * max(counts, felt) / (narrow * max(predicted, felt))), 1.0)
    felt = wide * math.sqrt(_SQUARED) / (mu * task.n)
    place = np.clip(scores / _FAR, -1, 1)
    left = np.clip((task.target - scores) / wide, -1, 1)
    left_mean, product, middle, square = _means(task, [left, left * place, place / 2, place**2 / 2], paid, _SQUARED)
    middle, square = 2 * middle, 2 * square
    steeper = _steeper(wide * (product - left_mean * middle), square - middle**2, felt, 2 * felt / wide)
    return _moved(model, wide * left_mean - steeper * middle, 1 + steeper / _FAR)


def _steeper(product: float, spread: float, felt: float, unsure: float) -> float:
    """Return the slope that remains: ``product`` = slope·(spread + noise) + noise, slope ~ N(0, ``_USUAL``²).

    ``felt`` and ``unsure`` are the standard deviations of the noise on the product and on the spread.
    """
    spread = min(max(spread, 0.0), 1.0)
    slope = product * spread / (spread**2 + unsure**2 + (felt / _USUAL) ** 2)
    return min(max(slope, -_USUAL), 2 * _USUAL)  # predictions get at least half, at most twice as steep


def _means(task: Task, columns: list[FloatArray], paid: Paid, squared: float) -> list[float]:
    """Return noisy means over the units of columns that together have squared norm at most ``squared`` per record."""
    units = task.look.units
    entries = np.stack([np.trunc(column * _PARTS) for column in columns])
    sums = (entries if units.weights is None else entries * units.weights).sum(axis=1).astype(np.int64)
    unit = units.heaviest * _PARTS
    sd = np.full(sums.size, unit * math.sqrt(squared) / paid.mu * (1 + MANY_ROUNDINGS))
    released = paid.channel("level", sd)(sums)
    return [float(value) / unit / task.n for value in released]


def _moved(model: Additive, shift: float, slope: float) -> Additive:
    coefficients = model.coefficients * slope
    coefficients[-1] += shift / model.basis.scale[-1]
    return replace(model, coefficients=coefficients)
