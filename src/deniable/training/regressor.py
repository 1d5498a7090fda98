"""``PrivateRegressor``: a regression that bounds what any attacker can infer about membership in its training data."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from deniable._check import FloatArray, InputError, choice
from deniable.noise import CLEAR
from deniable.tables import DATE, NUMBER, ColumnCells, ColumnSchema
from deniable.training import bins
from deniable.training.base import PrivateModel, estimator
from deniable.training.fits import ModelFit, TrainingWarning
from deniable.training.levels import LEVEL_SHARE, level_scores, wide_clip
from deniable.training.looks import NumberColumn
from deniable.training.losses import CLIP, ClippedLoss, ClippedPoisson, ClippedSquared

TARGET_SHARE = 0.05  # of μ²: location and spread of the target
_MANY = 800.0  # n·μ above which a larger clip pays: less bias on skewed targets, noise matters less
_WIDEST = 4.0  # times the smallest clip, for the number of records alone
_SPREAD = (0.16, 0.5, 0.84)  # quantiles that say where a target lies and how wide it is
_ENOUGH = 150.0  # n·μ above which the range of a target is found even if most of it is at one end
_ONE_SIDED = 0.2  # distance of the nearer of the 16 % and 84 % quantiles from the median, as a share of the other's


class RegressorFit(ModelFit):
    """One fit of a :class:`PrivateRegressor`: the target's place and spread are declared, or found first."""

    @staticmethod
    def aim(model: Any) -> ColumnSchema:
        """Return what is declared of the target, ``target_range`` included."""
        declared = ModelFit.aim(model)
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
        cells = y if isinstance(y, ColumnCells) else aim.read(y)
        fits = cells.kind == kind
        if not (aim.kind or isinstance(y, ColumnCells)):
            self.refuse_cells(cells, ~fits, "a finite number", "convert it, or declare the target's kind or range")
            if poisson and cells.number.min() < 0:
                raise InputError("loss='poisson' needs counts of at least 0")
            return cells.number, None
        if poisson:
            fits &= ~(cells.number < 0)
        self.look.units = self.look.units.only(fits)
        values = np.where(fits, cells.number, 0.0)
        return (values, None) if span is None else (np.clip(values, *span), span)

    def learn(self, target: Any) -> Any:
        """Spend the budget and return the regressor, fitted."""
        (values, span), look, n = target, self.look, self.n
        mu, poisson = look.ledger.mu * math.sqrt(TARGET_SHARE), self.model.loss == "poisson"
        cells = NumberColumn.of(look, "the target", values, mu, n).cells(span)
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
        level = None if wide is None else (LEVEL_SHARE, partial(level_scores, wide=wide))
        return self.finished((values - centre) / spread, loss, public, level, centre_=centre, spread_=spread)


@estimator
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

    loss: str = "squared"
    target_range: tuple[float, float] | None = None
    _steps = RegressorFit

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


def _one_sided(cells: bins.NoisyCells) -> bool:
    """Return whether most of the target is at one end, as the zeros of claims are: the median is then not the mean."""
    low, middle, high = (bins.quantile(cells, share) for share in _SPREAD)
    if cells.mass.max() > (_SPREAD[2] - _SPREAD[0]) * cells.mass.sum():
        return True
    return min(high - middle, middle - low) < _ONE_SIDED * max(high - middle, middle - low)


def _location(cells: bins.NoisyCells, loss: str, mu: float, one_sided: bool) -> tuple[float, float]:
    """Return the centre and the spread in which the target is measured.

    The spread is half of what lies between 16 % and 84 %, which is next to nothing where most targets are equal (gains,
    of which 92 % are 0); then, and in long tails, it is the mean distance from the median, where that is larger: of
    what stands out of the noise, or of everything if most targets are at one end and the 84 % may lie in the noise.
    """
    middles = (cells.bounds[1:] + cells.bounds[:-1]) / 2
    if loss == "poisson":
        mean = float(np.sum(middles * cells.mass) / cells.mass.sum()) if cells.mass.sum() > 0 else cells.high / 2
        return 0.0, max(mean, 1e-9)
    low, middle, high = (bins.quantile(cells, share) for share in _SPREAD)
    mass = cells.mass * (one_sided | (cells.mass > CLEAR * 2 / mu))
    distance = float(mass @ np.abs(middles - middle) / max(float(cells.mass.sum()), 1e-300))
    spread = max((high - low) / 2, distance)
    return middle, spread if spread > 0 else max((cells.high - cells.low) / 2, 1e-12)
